"""The adapter of a device for the host: allocate, move, compile and launch; and vectors of its memory.

An adapter knows nothing of tensors. `compiler.grid` and `device.kernels` make kernels of the device form for its grid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codegen import disk
from ..errors import UnsupportedError
from ..ir.loop import Buffer, Grid, Kernel
from ..storage.buffers import numpy_dtype

__all__ = [
    "Adapter",
    "Argument",
    "Memory",
    "Program",
    "adapter_of",
    "code_of",
    "is_device_name",
    "launched_values",
    "register",
]

Array = np.ndarray[Any, Any]


@dataclass(slots=True, eq=False)
class Memory:
    """A vector in a device's memory.

    handle : what the device's library knows it by
    """

    device: Adapter
    scalar: str
    length: int
    handle: Any

    def to_numpy(self) -> Array:
        """A copy on the host."""
        return self.device.download(self.handle, self.scalar, 0, self.length)

    def at(self, index: int) -> Any:
        """One element, read by the host as a number."""
        return self.device.download(self.handle, self.scalar, index, 1)[0].item()


Argument = Memory | int | float | complex


@dataclass(slots=True, eq=False)
class Program:
    """A kernel of the device form, and what it was compiled to by each adapter."""

    kernel: Kernel
    compiled: dict[Adapter, Any] = field(default_factory=dict)

    def __call__(self, device: Adapter, arguments: Mapping[str, Argument], groups: int) -> None:
        """Launch on so many groups. arguments : by parameter name, those that the kernel has not left out"""
        if groups <= 0:
            return
        code = self.compiled.get(device)
        if code is None:
            code = self.compiled[device] = device.compile(self.kernel)
        device.launch(self.kernel, code, [arguments[p.name] for p in self.kernel.params], groups)


class Adapter(ABC):
    """A device.

    name : what users call it
    grid : the items of its groups and subgroups
    library : whose memory it has, "torch" where methods take torch's arguments
    """

    name: str
    grid: Grid
    library = ""

    @abstractmethod
    def allocate(self, n: int, scalar: str) -> Any:
        """The handle of uninitialised memory of n elements. Raises SizeError where there is none."""

    @abstractmethod
    def upload(self, handle: Any, array: Array) -> None:
        """Copy a vector of the host's to the beginning of memory."""

    @abstractmethod
    def download(self, handle: Any, scalar: str, first: int, n: int) -> Array:
        """A copy of elements on the host."""

    @abstractmethod
    def compile(self, kernel: Kernel) -> Any:
        """Code for `launch`. Raises UnsupportedError for what the device has not."""

    @abstractmethod
    def launch(self, kernel: Kernel, code: Any, arguments: list[Argument], groups: int) -> None:
        """Run a kernel on so many groups, after all that was launched before."""

    def given(self, x: object) -> Memory | None:
        """The memory of a contiguous array of the device's own library; None of anything else."""
        return None

    def recorded(self, values: Any) -> Any:
        """Values that torch records, on the device and still recorded. Raises UnsupportedError where torch is not."""
        raise UnsupportedError(f"to {self.name!r}: torch records the values, and not there\n  help: A.detach()")

    def wrapped(self, memory: Memory, shape: tuple[int, ...]) -> Any:
        """A row-major array of the device's own library over memory; the memory itself where there is no library."""
        return memory

    def memory(self, n: int, scalar: str) -> Memory:
        """An uninitialised vector."""
        return Memory(self, scalar, n, self.allocate(n, scalar))

    def uniform(self, n: int, scalar: str) -> Memory | None:
        """Random numbers from 0 to 1 by the device's library; None where it has no generator."""
        return None

    def of(self, array: Array, scalar: str) -> Memory:
        """A vector with a copy of the host's elements."""
        memory = self.memory(len(array), scalar)
        if len(array):
            self.upload(memory.handle, np.ascontiguousarray(array, numpy_dtype(scalar)))
        return memory


def code_of(driver: str, text: str, make: Callable[[], bytes]) -> bytes:
    """The machine code of a kernel: from the disk where it was made before, else made and kept there.

    driver : all that the code depends on beside its text
    """
    key = f"{driver}\n{text}"
    entry = disk.read(key)
    if entry is None:
        entry = disk.Entry("device", (), make())
        disk.write(key, entry)
    return entry.code


_MAKERS: dict[str, Callable[[str], Adapter]] = {}
_adapters: dict[str, Adapter] = {}


def register(kind: str, make: Callable[[str], Adapter]) -> None:
    """Say how an adapter is made of its name, when it is first asked for: the kind, or "cuda:1" of several."""
    _MAKERS[kind] = make


def is_device_name(name: object) -> bool:
    """Whether there is an adapter of this name, which torch's device may be."""
    return str(name).partition(":")[0] in _MAKERS


def adapter_of(name: str) -> Adapter:
    """The adapter of a name. Raises UnsupportedError where what it needs is not installed."""
    found = _adapters.get(name)
    if found is None:
        if not is_device_name(name):
            raise UnsupportedError(f"device {name!r}\n  supported: cpu, {', '.join(_MAKERS)}, torch's devices")
        found = _adapters[name] = _MAKERS[name.partition(":")[0]](name)
        found = _adapters.setdefault(found.name, found)
    return found


def launched_values(
    kernel: Kernel, arguments: Sequence[Argument], handle_of: Callable[[Memory], Any]
) -> list[Any]:  # fmt: skip
    """Arguments as a driver takes them: handles of memory, complex numbers as two, half precision in float32."""
    values: list[Any] = []
    for p, value in zip(kernel.params, arguments, strict=True):
        if isinstance(p, Buffer):
            assert isinstance(value, Memory)
            values.append(handle_of(value))
        elif p.scalar in ("c64", "c128"):
            real = np.float32 if p.scalar == "c64" else np.float64
            number = complex(value)  # type: ignore[arg-type]
            values += [real(number.real), real(number.imag)]
        else:
            values.append(numpy_dtype("f32" if p.scalar in ("f16", "bf16") else p.scalar).type(value))
    return values
