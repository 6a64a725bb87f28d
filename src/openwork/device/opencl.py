"""OpenCL as a device: SPIR-V of the kernels, memory and one queue by pyopencl (extra `openwork[opencl]`)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..codegen.device_targets import DEVICES
from ..codegen.emit_device import emit_device
from ..codegen.emit_opencl_c import emit_opencl_c
from ..codegen.engine import device_binary
from ..errors import CompilerBug, SizeError, UnsupportedError
from ..ir.loop import Grid, Kernel
from ..storage.buffers import itemsize, numpy_dtype, scalar_name
from .adapter import Adapter, Argument, Memory, code_of, launched_values
from .kernels import whole
from .vector import strided

__all__ = ["OpenCL", "default_opencl", "opencl_of"]

WORD = 8
"""Bytes of the words by which atomics change elements: a buffer ends with a whole one."""


def _pyopencl() -> Any:
    """pyopencl with its arrays. Raises UnsupportedError that says how to install it."""
    try:
        import pyopencl
        import pyopencl.array
    except ImportError as error:
        raise UnsupportedError(
            "device 'opencl': pyopencl is not installed"
            "\n  help: pip install 'openwork[opencl]', and a runtime of OpenCL"
        ) from error
    return pyopencl


class OpenCL(Adapter):
    """A context of OpenCL with one queue, in order."""

    name = "opencl"
    grid = Grid(128, 32)

    def __init__(self, queue: Any) -> None:
        self.cl = _pyopencl()
        self.queue, self.context = queue, queue.context
        self.hardware = h = queue.device
        self.driver = "\n".join((h.platform.name, h.platform.version, h.name, h.version, h.driver_version))
        self.takes_spirv = "SPIR-V" in str(getattr(self.hardware, "il_version", ""))
        if self.hardware.max_work_group_size < self.grid.items:
            raise UnsupportedError(
                f"device 'opencl': groups of {self.hardware.max_work_group_size} items"
                f"\n  expected: {self.grid.items} or more\n  help: choose another device by PYOPENCL_CTX"
            )

        if not (self.takes_spirv and self._shuffles()):
            self.grid = Grid(self.grid.items, 1)

    def _shuffles(self) -> bool:
        """Whether the items of a subgroup add up by shuffles what they have, as kernels rely on: not all runtimes give
        subgroups the size that a kernel asks for, nor say so, and sums would be wrong. OpenCL C is printed without."""
        n, items = self.grid.subgroup, self.grid.items
        steps = "".join(f"from_{k} = shuffle(v, {n >> k})\nv += from_{k}\n" for k in range(1, n.bit_length()))
        y = self.of(np.zeros(items), "i64")
        try:
            whole(self, items, f"v: i64 = item\n{steps}y[item] = v\n", {"y": y})
        except CompilerBug:
            return False
        want = np.arange(items).reshape(-1, n).sum(1).repeat(n)
        return bool((y.to_numpy() == want).all())

    def _check_type(self, scalar: str) -> None:
        if scalar in ("f64", "c128") and not self.hardware.double_fp_config:
            raise UnsupportedError(
                f"device 'opencl': {self.hardware.name.strip()} has no float64\n  help: astype('float32') first"
            )

    def allocate(self, n: int, scalar: str) -> Any:
        self._check_type(scalar)
        size = max(WORD, -(-n * itemsize(scalar) // WORD) * WORD)
        if size > self.hardware.max_mem_alloc_size:
            raise SizeError(
                f"device 'opencl': a buffer of {size:,} bytes\n  expected: at most"
                f" {self.hardware.max_mem_alloc_size:,}, by {self.hardware.name.strip()}\n  help: take a part"
            )
        try:
            return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, size)
        except self.cl.MemoryError as error:
            raise SizeError(f"device 'opencl': no memory for {size:,} bytes\n  help: take a part") from error

    def upload(self, handle: Any, array: np.ndarray[Any, Any]) -> None:
        self.cl.enqueue_copy(self.queue, handle, array.view(np.uint8), is_blocking=True)

    def download(self, handle: Any, scalar: str, first: int, n: int) -> np.ndarray[Any, Any]:
        out = np.empty(n, numpy_dtype(scalar))
        if n:
            at = first * itemsize(scalar)
            self.cl.enqueue_copy(self.queue, out.view(np.uint8), handle, src_offset=at, is_blocking=True)
        return out

    def compile(self, kernel: Kernel) -> Any:
        row, cl = DEVICES["opencl"], self.cl
        text = emit_device(kernel, row) if self.takes_spirv else emit_opencl_c(kernel)

        def built() -> bytes:
            source = device_binary(text, row.target) if self.takes_spirv else text
            program = cl.Program(self.context, source).build(devices=[self.hardware])
            binary: bytes = program.get_info(cl.program_info.BINARIES)[0]
            return binary

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)  # remarks of a build
                code = code_of(self.driver, text, built)
                return getattr(cl.Program(self.context, [self.hardware], [code]).build(), kernel.name)
        except cl.Error as error:
            raise CompilerBug(f"OpenCL refuses the code of kernel {kernel.name!r}: {error}") from error

    def launch(self, kernel: Kernel, code: Any, arguments: list[Argument], groups: int) -> None:
        values = launched_values(kernel, arguments, lambda memory: memory.handle)
        code(self.queue, (groups * self.grid.items,), (self.grid.items,), *values)

    def given(self, x: object) -> Memory | None:
        array = self.cl.array.Array
        if not isinstance(x, array):
            return None
        a: Any = x
        if a.context != self.context:
            raise UnsupportedError(
                "device 'opencl': an array of another context\n  help: asarray(array) first, for that context's tensors"
            )
        if a.queue is not None and a.queue != self.queue:
            a.queue.finish()
        for event in a.events:
            event.wait()
        if not a.flags.c_contiguous:
            width, scalar = a.dtype.itemsize, scalar_name(a.dtype)
            base = Memory(self, scalar, a.base_data.size // width, a.base_data)
            return strided(base, a.shape, [step // width for step in a.strides], a.offset // width)
        memory = Memory(self, scalar_name(a.dtype), a.size, a.base_data)
        if not a.size or a.base_data.size % WORD or a.offset:
            memory = self.memory(a.size, memory.scalar)
            if a.size:
                self.cl.enqueue_copy(self.queue, memory.handle, a.base_data, byte_count=a.nbytes, src_offset=a.offset)
        return memory

    def wrapped(self, memory: Memory, shape: tuple[int, ...]) -> Any:
        dtype = numpy_dtype(memory.scalar)
        return self.cl.array.Array(self.queue, shape, dtype, data=memory.handle)


def default_opencl(_: str = "opencl") -> OpenCL:
    """The adapter of the context that PYOPENCL_CTX chooses, or of the first GPU, or of what there is."""
    cl = _pyopencl()
    try:
        context = cl.create_some_context(interactive=False)
    except cl.Error as error:
        raise UnsupportedError(
            f"device 'opencl': no runtime of OpenCL was found ({error})"
            "\n  help: install that of your hardware, or intel-opencl-rt for the CPU"
        ) from error
    return opencl_of(cl.CommandQueue(context))


_of_contexts: dict[int, OpenCL] = {}


def opencl_of(queue: Any) -> OpenCL:
    """The adapter of a queue's context, made where it is new."""
    number = queue.context.int_ptr
    found = _of_contexts.get(number)
    if found is None:
        found = _of_contexts[number] = OpenCL(queue)
    return found
