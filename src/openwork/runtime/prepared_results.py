"""A call that a tensor has seen before -> its result: a fresh array and a launch are all that is left of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..codegen import pool
from ..codegen.executable import Executable
from ..codegen.short_call import SHORT, bound
from ..format.format import Format
from ..interruptible import LONG
from ..storage.buffers import address, numpy_dtype, scalar_name, scalar_of
from ..storage.memory import LARGE, reserve
from ..storage.storage import Storage
from ..storage.structure import Structure
from .conversion.conversion_kernels import WORK
from .formats import dense_format
from .full_sum import is_row, row_launch
from .prepared import PreparedCall
from .strided import fresh
from .zero_annihilation import vdot

__all__ = [
    "Conversion", "DenseArray", "DenseResult", "Part", "Reduction", "SquareRoot", "TorchTotal", "Total", "template",
]  # fmt: skip

_Make = Callable[..., np.ndarray[Any, Any]]


class Reduction:
    """A launch whose one dense operand is its result, an array of known shape and dtype."""

    __slots__ = ("dtype", "make", "prepared_call", "shape")

    def __init__(self, prepared_call: PreparedCall, like: np.ndarray[Any, Any]) -> None:
        self.prepared_call, self.shape, self.dtype = prepared_call, like.shape, like.dtype
        self.make = _maker(like.shape, like.dtype, zero=not prepared_call.prepared.schedule.writes_all)

    @property
    def valid(self) -> bool:
        """Whether the launch still holds."""
        return self.prepared_call.valid

    def __call__(self, storage: Storage) -> np.ndarray[Any, Any]:
        out = self.make(self.shape, self.dtype)
        if (short := self.prepared_call.short) is not None:
            if code := short(storage.values, out):
                self.prepared_call.end(code)
            return out
        self.prepared_call.start((storage._addresses or storage.addresses)[-1], (), address(out))
        return out


class Total:
    """All values and those of `more` reduced by NumPy, an array of one element."""

    __slots__ = ("dtype", "more", "ufunc")
    valid = True

    def __init__(self, ufunc: np.ufunc, dtype: np.dtype[Any], more: np.ndarray[Any, Any] | None = None) -> None:
        self.ufunc, self.dtype, self.more = ufunc, dtype, more

    def __call__(self, storage: Storage) -> np.ndarray[Any, Any]:
        out: np.ndarray[Any, Any] = self.ufunc.reduce(storage.values, 0, self.dtype, None, keepdims=True)
        return out if self.more is None else self.ufunc(out, self.more)


class SquareRoot:
    """The square root of the sum of the squares of few values, by NumPy's dot product; an array of one element.

    None where that is not finite: a dot product warns of nothing.
    """

    __slots__ = ("dtype",)
    valid = True

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, storage: Storage) -> np.ndarray[Any, Any] | None:
        total = vdot(storage.values, storage.values)
        if not total < math.inf:
            return None
        root = np.empty(1, self.dtype)
        root[0] = math.sqrt(total)
        return root


class TorchTotal:
    """All values summed; an array of one element. By torch where it records them, by a kernel where they are few."""

    __slots__ = ("_executable", "_forward", "_level", "_tensor", "array", "dtype", "options", "start")
    valid = True

    def __init__(self, values: Any, dtype: Any) -> None:
        self.dtype, self.options = dtype, {} if values.dtype is dtype else {"dtype": dtype}
        torch = sys.modules["torch"]
        self._level, self._forward = torch._C._functorch.maybe_current_level, torch.autograd.forward_ad
        self._tensor = torch.from_numpy
        launch = row_launch(scalar_of(values), len(values)) if values.dtype is dtype and is_row(values) else None
        self._executable: Executable | None = None
        self.start: Callable[..., int] | None = None
        if launch is not None:
            self._executable, self.start = launch
            self.array = numpy_dtype(scalar_of(values))
            """the type of a result in NumPy's memory, which NumPy allocates in a third of the time"""

    def __call__(self, storage: Storage) -> Any:
        values, start = storage.values, self.start
        if start is None or values.requires_grad or self._forward._current_level >= 0 or self._level() is not None:
            return values.sum(0, True, **self.options)
        out = np.empty(1, self.array)
        start(values.data_ptr(), out)
        return self._tensor(out)


class DenseResult:
    """A prepared reduction whose result is taken as a dense storage of known shape."""

    __slots__ = ("reduction", "scalar", "structure")

    def __init__(self, reduction: Reduction | SquareRoot | Total | TorchTotal, shape: tuple[int, ...]) -> None:
        self.reduction, none = reduction, (None,) * len(shape)
        self.structure = Structure(shape, dense_format(len(shape)), none, none)
        self.scalar = scalar_name(reduction.dtype)

    def __call__(self, storage: Storage) -> Storage | None:
        """The result for values of a storage; None where the call does not hold for them."""
        if not self.reduction.valid:
            return None
        values = self.reduction(storage)
        if values is None:
            return None
        if values.ndim != 1:
            values = values.reshape(-1)
        return Storage.over(self.structure, self.scalar, 0, values)


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer of a result: pos or crd of level `at`, or the values; `names` are its parameters, `like` is torch's
    template of it."""

    part: str
    at: int
    names: tuple[str, ...]
    size: int
    dtype: Any
    zero: bool = False
    like: Any = None

    @property
    def maker(self) -> Callable[[], Any]:
        """Makes the buffer, zero or uninitialised."""
        if self.like is not None:
            torch = sys.modules["torch"]
            return partial(torch.zeros_like if self.zero else torch.empty_like, self.like)
        return partial(np.zeros if self.zero else reserve, self.size, self.dtype)


def template(x: Any) -> Any:
    """A tensor of torch's as large as this one, over one element, for `empty_like`, which takes a third of the time of
    `empty`; None for NumPy's arrays."""
    return None if isinstance(x, np.ndarray) else x.new_empty(()).expand(x.shape)


class Conversion:
    """Kernels that made a result, on one thread, bound to everything but the addresses of its buffers.

    A structure never changes, so that sizes and ways are those of the first time; the values are those of the call.
    """

    __slots__ = ("format", "launches", "makers", "parts", "scratch", "short", "threads", "work")

    def __init__(
        self, format: Format, kernels: Iterable[Executable], words: Mapping[str, int], parts: Sequence[Part]
    ) -> None:
        self.format, self.parts, self.threads = format, tuple(parts), pool.get_num_threads()
        self.work = max([words.get(WORK, 0), *(part.size for part in self.parts)])
        owner = {name: k for k, part in enumerate(parts) for name in part.names}
        self.scratch: Any = None
        """what the words point to beside the tensor and the result"""
        self.makers = tuple([part.maker for part in self.parts])
        self.launches = []
        for kernel in kernels:
            names = [p.name for p in kernel.params]
            owner["a_vals"] = len(parts)
            slots = tuple((slot, owner[name]) for slot, name in enumerate(names) if name in owner)
            self.launches.append((kernel, [words[name] for name in names], slots))
        self.short = self._short() if self.work <= SHORT else None

    def _short(self) -> tuple[tuple[Callable[..., int], tuple[int, ...]], ...] | None:
        """The launches as functions of parts of the result, and last the values, by their numbers; see
        `codegen.short_call`."""
        starts = []
        for kernel, fixed, slots in self.launches:
            start = bound(kernel, fixed, [slot for slot, _ in slots])
            if start is None:
                return None
            starts.append((start, tuple(k for _, k in slots)))
        return tuple(starts)

    @property
    def valid(self) -> bool:
        """Whether as many threads are to be used as when it was made."""
        return self.threads == pool.threads

    def buffers(self, storage: Storage) -> list[Any]:
        """The parts, filled from a storage."""
        if self.short is not None:
            return self._filled(self.short, storage.values)
        buffers: list[Any] = []
        addresses = []
        for make in self.makers:
            buffer = make()
            buffers.append(buffer)
            addresses.append(address(buffer))
        addresses.append(address(storage.values))
        for kernel, fixed, slots in self.launches:
            words = fixed.copy()
            for slot, k in slots:
                words[slot] = addresses[k]
            if self.work < LONG:
                kernel.run(words)
            else:
                kernel.run_sized(self.work, words)
        return buffers

    def _filled(self, short: tuple[tuple[Callable[..., int], tuple[int, ...]], ...], values: Any) -> list[Any]:
        """The parts, filled by short calls."""
        buffers = [make() for make in self.makers]
        operands = [*buffers, values]
        if type(values) is not np.ndarray:
            operands = [address(x) for x in operands]
        for number, (start, places) in enumerate(short):
            if code := start(*[operands[k] for k in places]):
                self.launches[number][0].fail(code)
        return buffers

    def __call__(self, storage: Storage, format: Format) -> Storage:
        """The storage converted again; `format` is equal to the one that it is kept for."""
        pos: list[Any] = [None] * format.nlevels
        crd: list[Any] = [None] * format.nlevels
        *indices, values = self.buffers(storage)
        for part, buffer in zip(self.parts, indices, strict=False):
            (pos if part.part == "pos" else crd)[part.at] = buffer
        return Storage(storage.shape, format, storage.scalar, storage.fill_value, tuple(pos), tuple(crd), values)


class DenseArray:
    """The conversion to a dense array: values -> the array, in the tensor's shape."""

    __slots__ = ("conversion", "make", "shape", "start", "values_first")

    def __init__(self, conversion: Conversion, shape: tuple[int, ...]) -> None:
        self.conversion, self.shape = conversion, shape
        self.make: Callable[[], Any] | None = None
        if conversion.short is None or len(conversion.parts) != 1 or len(conversion.short) != 1:
            return
        (part,), ((self.start, places),) = conversion.parts, conversion.short
        if sorted(places) == [0, 1] and part.zero:
            self.values_first = places == (1, 0)
            if part.like is None:
                self.make = partial(np.zeros, shape, part.dtype)
            else:
                self.make = partial(sys.modules["torch"].zeros_like, part.like.new_empty(()).expand(shape))

    def __call__(self, storage: Storage) -> Any:
        """The array of a storage whose values torch does not record; None where the conversion holds no more."""
        conversion, values = self.conversion, storage.values
        if conversion.threads != pool.threads:
            return None
        if self.make is None:
            return conversion.buffers(storage)[-1].reshape(self.shape)
        out = self.make()
        x, y = (values, out) if type(values) is np.ndarray else (address(values), out.data_ptr())
        if code := self.start(x, y) if self.values_first else self.start(y, x):
            conversion.launches[0][0].fail(code)
        return out


def _maker(shape: tuple[int, ...], dtype: np.dtype[Any], *, zero: bool) -> _Make:
    if zero:
        return np.zeros
    return fresh if math.prod(shape) * dtype.itemsize >= LARGE else np.empty
