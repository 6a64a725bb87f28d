"""CUDA as a device: PTX of the kernels, torch's memory and its current stream, launches by cuda.core.

Nobody has run it on a card yet; its tests run it against a stand-in for cuda.core.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..codegen.device_targets import device
from ..codegen.emit_device import emit_device
from ..codegen.engine import device_assembly
from ..errors import SizeError, UnsupportedError
from ..ir.loop import Grid, Kernel
from ..storage.buffers import is_torch, itemsize, numpy_dtype, scalar_of, torch_dtype, torch_module
from ..storage.recorded import refuse_recorded
from .adapter import Adapter, Argument, Memory, code_of, launched_values

__all__ = ["Cuda", "cuda_of", "ptx_of"]

WORD = 8
"""Bytes of the words by which atomics change elements: a buffer ends with a whole one."""


class _Stream:
    """torch's stream by the protocol that cuda.core asks for."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.number


def ptx_of(kernel: Kernel, architecture: str) -> str:
    """The PTX of a kernel for an architecture, "sm_90" say."""
    row = device("cuda", architecture)
    return device_assembly(emit_device(kernel, row), row.target)


class Cuda(Adapter):
    """A CUDA device of torch's, with its allocator; kernels go to the stream that is torch's current one.

    core : the module cuda.core
    place : torch's name of the device
    """

    grid = Grid(128, 32)
    library = "torch"

    def __init__(self, core: Any, place: str, architecture: str) -> None:
        self.core, self.name, self.place, self.architecture = core, place, place, architecture

    def stream(self) -> Any:
        """The stream that work goes to."""
        return _Stream(torch_module().cuda.current_stream(self.place).cuda_stream)

    def is_capturing(self) -> bool:
        """Whether what is launched goes into a CUDA graph."""
        return bool(torch_module().cuda.is_current_stream_capturing())

    def _refuse_in_capture(self, what: str) -> None:
        if self.is_capturing():
            raise UnsupportedError(
                f"capture of a CUDA graph: {what}"
                "\n  help: call it once before the capture; what needs a size from the device can not be captured"
            )

    def allocate(self, n: int, scalar: str) -> Any:
        torch, room = torch_module(), WORD // itemsize(scalar) or 1
        try:
            return torch.empty(max(room, -(-n // room) * room), dtype=torch_dtype(scalar), device=self.place)
        except torch.OutOfMemoryError as error:
            size = n * itemsize(scalar)
            raise SizeError(f"device {self.name!r}: no memory for {size:,} bytes\n  help: take a part") from error

    def upload(self, handle: Any, array: np.ndarray[Any, Any]) -> None:
        self._refuse_in_capture("elements come from the host")
        handle[: len(array)] = torch_module().from_numpy(array.copy()).to(handle.dtype)

    def download(self, handle: Any, scalar: str, first: int, n: int) -> np.ndarray[Any, Any]:
        self._refuse_in_capture("the host reads a number")
        part = handle[first : first + n].cpu()
        array: np.ndarray[Any, Any] = (part.float() if scalar == "bf16" else part).numpy()
        return array.astype(numpy_dtype(scalar))

    def compile(self, kernel: Kernel) -> Any:
        self._refuse_in_capture("a kernel is not compiled yet")
        core, ptx = self.core, ptx_of(kernel, self.architecture)

        def assembled() -> bytes:
            options = core.ProgramOptions(arch=self.architecture)
            return bytes(core.Program(ptx, "ptx", options).compile("cubin").code)

        cubin = code_of(f"cuda.core {core.__version__} {self.architecture}", ptx, assembled)
        return core.ObjectCode.from_cubin(cubin, name=kernel.name).get_kernel(kernel.name)

    def launch(self, kernel: Kernel, code: Any, arguments: list[Argument], groups: int) -> None:
        values = launched_values(kernel, arguments, lambda memory: memory.handle.data_ptr())
        config = self.core.LaunchConfig(grid=groups, block=self.grid.items)
        self.core.launch(self.stream(), config, code, *values)

    def given(self, x: object) -> Memory | None:
        if not is_torch(x) or str(x.device) != self.place:  # type: ignore[attr-defined]
            return None
        tensor: Any = x
        refuse_recorded(tensor)
        flat = tensor.detach().contiguous().view(-1)
        if flat.nbytes and flat.nbytes % WORD == 0 and flat.data_ptr() % WORD == 0:
            return Memory(self, scalar_of(flat), flat.numel(), flat)
        memory = self.memory(flat.numel(), scalar_of(flat))
        memory.handle[: memory.length] = flat
        return memory

    def uniform(self, n: int, scalar: str) -> Memory:
        memory = self.memory(n, scalar)
        memory.handle.uniform_()
        return memory

    def recorded(self, values: Any) -> Any:
        return values.to(self.place)

    def wrapped(self, memory: Memory, shape: tuple[int, ...]) -> Any:
        return memory.handle[: memory.length].view(shape)


def cuda_of(name: str) -> Cuda:
    """The adapter of torch's device "cuda", the current one, or "cuda:1". UnsupportedError says what is missing."""
    torch = torch_module()
    try:
        import cuda.core as core
    except ImportError as error:
        raise UnsupportedError(
            f"device {name!r}: cuda.core is not installed\n  help: pip install 'openwork[cuda]'"
        ) from error
    if not torch.cuda.is_available():
        raise UnsupportedError(f"device {name!r}: torch finds no CUDA device\n  help: torch.cuda.is_available()")
    index = torch.device(name).index
    number = torch.cuda.current_device() if index is None else index
    major, minor = torch.cuda.get_device_capability(number)
    core.Device(number).set_current()
    return Cuda(core, f"cuda:{number}", f"sm_{major}{minor}")
