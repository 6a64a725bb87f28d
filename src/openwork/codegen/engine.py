"""LLVM IR text -> object code, machine code in memory, assembly; of devices assembly (PTX) or a binary (SPIR-V)."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, TypeVar

from .. import faults, settings, tuning
from ..errors import CompilerBug
from . import linker
from .llvm import by_llvm, is_limited, library
from .spirv import SharedNumber, renumbered
from .target import Target, host

__all__ = ["assembly", "device_assembly", "device_binary", "load", "is_unoptimised", "to_object"]

T = TypeVar("T")
ROOM, BYTES = 16 << 20, 300
"""Bytes that LLVM may need, at least and for each character of a text, where the address space is limited: a text of
39,000 characters took 3 MiB."""
SPEED = 2
REPEATS = 200
"""How often a kernel of SPIR-V is compiled where LLVM's numbers of blocks are ambiguous: 60 compilations at most have
told those of 620 kernels apart, one of three quarters of them."""
NO_UNROLL_FROM = tuning.LLVM_NO_UNROLL
LINEAR_FROM = tuning.LLVM_LINEAR


def is_unoptimised() -> bool:
    """Whether kernels are compiled without passes: `OPENWORK_OPTIMIZE=0`, for tests and for programs of many kernels.

    That takes a tenth of the time, and kernels run slower. It is part of a kernel's key, in memory and on disk.
    """
    return settings.is_off("OPENWORK_OPTIMIZE")


def _reserve(text: str) -> None:
    """Raise MemoryError where LLVM would find too little memory for this text: it would end the process."""
    if not is_limited():
        return
    try:
        mmap.mmap(-1, ROOM + BYTES * len(text)).close()
    except (OSError, ValueError) as error:
        raise MemoryError(
            "code generation: no memory to compile a kernel\n  help: raise the limit of the address space (ulimit -v)"
        ) from error


def _machine(target: Target, level: int = SPEED) -> Any:
    llvm = library()
    if not target.is_cpu:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    kind = llvm.Target.from_triple(target.triple)
    options = {"reloc": "pic", "codemodel": "small"} if target.is_cpu else {}
    return kind.create_target_machine(cpu=target.cpu, features=target.features, opt=level, **options)


@cache
def _host_machine(level: int = SPEED) -> Any:
    return _machine(host(), level)


@contextmanager
def _module(text: str) -> Iterator[Any]:
    """The text as a module of LLVM, for the block only: a module must be freed before its context, and the garbage
    collector has no order."""
    _reserve(text)
    llvm = library()
    with ExitStack() as owned:
        try:
            context = owned.enter_context(llvm.create_context())
            module = owned.enter_context(llvm.parse_assembly(text, context))
            module.verify()
        except RuntimeError as error:
            raise CompilerBug(f"code generation: LLVM refuses the text of a kernel: {error}\n{text}") from None
        yield module


def _optimise(module: Any, machine: Any, unroll: bool) -> None:
    """Run all passes; loop unrolling and SLP vectorisation, which grow the code, only with `unroll`."""
    llvm = library()
    with ExitStack() as owned:
        options = owned.enter_context(llvm.create_pipeline_tuning_options(speed_level=SPEED))
        options.slp_vectorization = options.loop_unrolling = unroll
        builder = owned.enter_context(llvm.create_pass_builder(machine, options))
        owned.enter_context(builder.getModulePassManager()).run(module, builder)


def _optimise_in_linear_time(module: Any, machine: Any) -> None:
    """Run passes of linear time only: variables to registers, branches and instructions simplified."""
    llvm = library()
    with ExitStack() as owned:
        options = owned.enter_context(llvm.create_pipeline_tuning_options(speed_level=1))
        builder = owned.enter_context(llvm.create_pass_builder(machine, options))
        passes = owned.enter_context(llvm.create_new_function_pass_manager())
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


def to_object(text: str, quickly: bool = False) -> bytes:
    """Relocatable machine code for the host from LLVM IR text. Raises CompilerBug where LLVM refuses it."""
    faults.reach("compile")
    return by_llvm(_to_object, text, quickly)


def _to_object(text: str, quickly: bool) -> bytes:
    with _module(text) as module:
        machine = _host_machine(0 if quickly else SPEED)
        if len(text) >= LINEAR_FROM:
            _optimise_in_linear_time(module, machine)
        elif not quickly:
            _optimise(module, machine, unroll=len(text) < NO_UNROLL_FROM)
        return bytes(machine.emit_object(module))


def load(code: bytes, *names: str) -> linker.Code:
    """Link an object file into this process: the code with the addresses of its functions `names`."""
    try:
        return linker.link(code, names)
    except linker.Unlinkable:
        return _load_by_llvm(code, names)


def _load_by_llvm(code: bytes, names: Sequence[str]) -> linker.Code:
    return by_llvm(_link_by_llvm, code, names)


def _link_by_llvm(code: bytes, names: Sequence[str]) -> linker.Code:
    llvm = library()
    with ExitStack() as owned:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(host()))
        owned.callback(engine.close)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [int(engine.get_function_address(name)) for name in names]
        if not all(addresses):
            raise CompilerBug(f"code generation: {names} are not all in the object file")
        return linker.Code(addresses, len(code), owned.pop_all().close)


def assembly(text: str, target: Target | None = None) -> str:
    """Assembly of LLVM IR text, optimised for `target`; without one, what runs on the host."""
    return by_llvm(_assembly, text, target)


def _assembly(text: str, target: Target | None) -> str:
    quickly = target is None and is_unoptimised()
    with _module(text) as module, _machine(target or host(), 0 if quickly else SPEED) as machine:
        if not quickly:
            _optimise(module, machine, unroll=len(text) < NO_UNROLL_FROM)
        return str(machine.emit_assembly(module))


def device_assembly(text: str, target: Target) -> str:
    """Assembly of a device's kernel, PTX say."""
    return by_llvm(_device_code, text, target, False).decode()


def device_binary(text: str, target: Target) -> bytes:
    """The binary form of a device's kernel, SPIR-V say."""
    if target.kind != "spirv":
        return by_llvm(_device_code, text, target, True)
    return by_llvm(_told_apart, text, target)


def _told_apart(text: str, target: Target) -> bytes:
    """SPIR-V whose blocks have numbers of their own, by as many compilations as that takes."""
    found: list[bytes] = []
    with ExitStack() as held:
        while True:
            found.append(_device_code(text, target, True))
            try:
                return renumbered(*found)
            except SharedNumber:
                if len(found) == REPEATS:
                    raise
            held.enter_context(_module(text))  # memory that the next compilation does not get


def _device_code(text: str, target: Target, binary: bool) -> bytes:
    """Passes of the middle end are those that make variables registers: the driver has its own."""
    with _machine(target) as machine:
        layout = f'target datalayout = "{machine.target_data}"\n'
        with _module(layout + text) as module:
            _registers_for_variables(module, machine)
            return bytes(machine.emit_object(module)) if binary else str(machine.emit_assembly(module)).encode()


def _registers_for_variables(module: Any, machine: Any) -> None:
    llvm = library()
    with ExitStack() as owned:
        options = owned.enter_context(llvm.create_pipeline_tuning_options(speed_level=1))
        builder = owned.enter_context(llvm.create_pass_builder(machine, options))
        passes = owned.enter_context(llvm.create_new_function_pass_manager())
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
