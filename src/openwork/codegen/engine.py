"""LLVM: from IR text to machine code in memory, assembly and PTX."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..errors import CompilerBug
from . import linker
from .target import Target, host

__all__ = ["assembly", "load", "load_all", "optimised", "quick", "to_object"]

_LOCK = threading.RLock()
SPEED = 2
MANY = 24_000
"""Characters of LLVM IR from which on loops are not unrolled, nor statements put into vectors: in kernels of many loops
that is a third to a half of the time to compile, and the code is no faster."""
LONG = 150_000
"""Characters of LLVM IR from which on only passes in linear time are run; all take minutes for a thousand loops."""


def quick() -> bool:
    """Whether kernels are compiled in linear time: `OPENWORK_OPTIMIZE=0`, for tests and for programs of many kernels.

    That takes a tenth of the time, and kernels run slower. It is part of a kernel's key, in memory and on disk.
    """
    return os.environ.get("OPENWORK_OPTIMIZE", "1") in ("0", "off", "no")


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _machine(target: Target, level: int = SPEED) -> Any:
    llvm = _llvm()
    if not target.is_cpu:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    kind = llvm.Target.from_triple(target.triple)
    options = {"reloc": "pic", "codemodel": "small"} if target.is_cpu else {}
    return kind.create_target_machine(cpu=target.cpu, features=target.features, opt=level, **options)


@cache
def _host_machine(level: int = SPEED) -> Any:
    return _machine(host(), level)


def _module(text: str) -> Any:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompilerBug(f"code generation: LLVM refuses the text of a kernel: {error}\n{text}") from None
    return module


def _optimise(module: Any, machine: Any, few: bool) -> None:
    """All passes; those that make more code of each loop only where there are few."""
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=SPEED)
    options.slp_vectorization = options.loop_unrolling = few
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _optimise_shortly(module: Any, machine: Any) -> None:
    """Variables to registers, branches and instructions simplified: in linear time."""
    llvm = _llvm()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def to_object(text: str, quickly: bool = False) -> bytes:
    """Relocatable machine code for the host from LLVM IR text. Raises CompilerBug where LLVM refuses it."""
    with _LOCK:
        machine, module = _host_machine(0 if quickly else SPEED), _module(text)
        if len(text) < LONG and not quickly:
            _optimise(module, machine, few=len(text) < MANY)
        else:
            _optimise_shortly(module, machine)
        return bytes(machine.emit_object(module))


def load(code: bytes, name: str) -> int:
    """Link an object file into this process; the address of its function `name`. It stays until the end."""
    return load_all(code, (name,))[0]


def load_all(code: bytes, names: Sequence[str]) -> list[int]:
    """Link an object file into this process; the addresses of several of its functions."""
    try:
        return linker.link(code, names)
    except linker.Unlinkable:
        return _load_by_llvm(code, names)


def _load_by_llvm(code: bytes, names: Sequence[str]) -> list[int]:
    llvm = _llvm()
    with _LOCK:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(host()))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [int(engine.get_function_address(name)) for name in names]
        engine.detach()
    if not all(addresses):
        raise CompilerBug(f"code generation: {names} are not all in the object file")
    return addresses


def optimised(text: str) -> str:
    """LLVM IR text after optimisation for the host."""
    with _LOCK:
        module = _module(text)
        _optimise(module, _host_machine(), few=len(text) < MANY)
        return str(module)


def assembly(text: str, target: Target | None = None) -> str:
    """Assembly of LLVM IR text, optimised for `target`; without one, what runs on the host."""
    with _LOCK:
        quickly = target is None and quick()
        machine = _machine(target or host(), 0 if quickly else SPEED)
        module = _module(text)
        if quickly:
            _optimise_shortly(module, machine)
        else:
            _optimise(module, machine, few=len(text) < MANY)
        return str(machine.emit_assembly(module))
