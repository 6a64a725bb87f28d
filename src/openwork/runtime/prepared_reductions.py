"""A reduction that a tensor has seen before -> its result: a fresh array and a launch are all that is left of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..codegen import pool
from ..codegen.executable import Executable
from ..compiler.single.factors import identity
from ..ir.index import Assignment
from ..ir.types import COMPLEX
from ..storage.buffers import address, is_torch, numpy_dtype, scalar_name, scalar_of
from ..storage.memory import LARGE
from ..storage.recorded import bare
from ..storage.storage import Storage
from ..storage.structure import Structure
from ..storage.watch import NOTHING
from .contract import contract
from .formats import dense_format
from .full_sum import is_short, short_launch, total
from .gradient_hook import rule, tracked
from .prepared import PreparedCall, key_of, recall
from .prepared_moves import is_plain
from .prepared_results import template
from .promote import compute_scalar
from .strided import fresh
from .zero_annihilation import vdot

__all__ = [
    "DenseResult", "Filled", "KernelTotal", "Mean", "PreparedReduction", "Reduction", "Result", "SquareRoot",
    "TorchReduction", "TorchTotal", "Total", "prepared_reduction",
]  # fmt: skip

_Make = Callable[..., np.ndarray[Any, Any]]
ASKED_LATER = object()


class Reduction:
    """A launch whose one dense operand is its result, an array of known shape and dtype.

    start : what the result holds before, where the kernel does not write all of it
    """

    __slots__ = ("dtype", "make", "prepared_call", "shape", "start")

    def __init__(self, prepared_call: PreparedCall, like: np.ndarray[Any, Any], start: Any = 0) -> None:
        self.prepared_call, self.shape, self.dtype = prepared_call, like.shape, like.dtype
        partial = not prepared_call.prepared.schedule.writes_all
        self.make, self.start = _maker(like.shape, like.dtype, zero=partial), start if partial else 0

    @property
    def valid(self) -> bool:
        """Whether the launch still holds."""
        return self.prepared_call.threads == pool.threads

    def __call__(self, storage: Storage) -> np.ndarray[Any, Any]:
        out = self.make(self.shape, self.dtype)
        if self.start:
            out.fill(self.start)
        if (short := self.prepared_call.short) is not None:
            if code := short(storage.values, out):
                self.prepared_call.end(code)
            return out
        self.prepared_call.start((storage._addresses or storage.addresses)[-1], (), address(out))
        return out


class TorchReduction:
    """`Reduction` over values of torch's, into a tensor; recorded sums have the rule "recorded_sum".

    None where torch records what happens to the values and there is no such rule, or a transform takes part.
    """

    __slots__ = (
        "_forward", "_is_recording", "_level", "_record", "dtype", "like", "make", "prepared_call", "stmt",
    )  # fmt: skip

    def __init__(self, stmt: Assignment, prepared_call: PreparedCall, like: Any, start: Any = 0) -> None:
        torch, writes_all = sys.modules["torch"], prepared_call.prepared.schedule.writes_all
        self._level, self._forward = torch._C._functorch.maybe_current_level, torch.autograd.forward_ad
        self._is_recording, self.stmt = torch.is_grad_enabled, stmt
        self._record: Any = ASKED_LATER
        self.prepared_call, self.dtype, self.like = prepared_call, like.dtype, template(like)
        self.make = torch.empty_like if writes_all else torch.zeros_like
        if not writes_all and start:
            self.make, self.like = torch.clone, torch.full(like.shape, start, dtype=like.dtype, device="cpu")

    @property
    def valid(self) -> bool:
        """Whether the launch still holds."""
        return self.prepared_call.threads == pool.threads

    def __call__(self, storage: Storage) -> Any:
        values = storage.values
        if self._forward._current_level >= 0 or self._level() is not None:
            return None
        if values.requires_grad and self._is_recording():
            if self._record is ASKED_LATER:
                self._record = rule("recorded_sum")(self.stmt, storage)
            return None if self._record is None else self._record(self, storage)
        out = self.make(self.like)
        if (short := self.prepared_call.short) is not None:
            if code := short(values.data_ptr(), out.data_ptr()):
                self.prepared_call.end(code)
            return out
        self.prepared_call.start(address(values.detach()), (), address(out))
        return out


def prepared_reduction(stmt: Assignment, s: Storage, scalar: str, result: Any) -> Reduction | TorchReduction | None:
    """The prepared call of a statement that reduces one storage and has just given `result`; None where there is none
    for other values: of half precision, or where torch records them."""
    (name,) = {access.tensor for access in stmt.accesses}
    if is_torch(s.values) and tracked((s.values, result)):
        if compute_scalar(scalar) != scalar or not is_plain(s.values) or s.device != "cpu":
            return None
        s = s.with_values(bare(s.values))
        contract(stmt, {name: s}, scalar, s.values)
    prepared = recall(s, key_of(stmt, scalar, {name: s}))
    if prepared is None or compute_scalar(scalar) != scalar:
        return None
    start = identity(stmt.reduction, scalar).value
    if type(result) is np.ndarray:
        return Reduction(prepared, result, start)
    if not is_torch(result) or not is_plain(s.values) or scalar in COMPLEX:
        return None
    return TorchReduction(stmt, prepared, result.detach(), start)


class Filled:
    """A reduction of stored elements and of the fill value, where there are other elements.

    function : of the library, of what the reduction gives and of `part`: `minimum`, `maximum`, `add` or `multiply`
    part : the reduction of the unspecified elements
    absent : where there are some; None for everywhere
    finite : whether there is an answer only where what the reduction gives is finite
    """

    __slots__ = ("absent", "dtype", "finite", "function", "part", "reduction")

    def __init__(
        self, reduction: Reduction | TorchReduction, function: Callable[..., Any], part: Any, absent: Any, finite: bool
    ) -> None:
        self.reduction, self.function, self.part, self.absent = reduction, function, part, absent
        self.dtype, self.finite = reduction.dtype, finite

    @property
    def valid(self) -> bool:
        """Whether the launch still holds."""
        return self.reduction.valid

    def __call__(self, storage: Storage) -> Any:
        out: Any = self.reduction(storage)
        if out is None or (self.finite and not bool(out.isfinite().all())):
            return None
        if type(out) is np.ndarray:
            return self.function(out, self.part, out=out, where=True if self.absent is None else self.absent)
        filled = self.function(out, self.part)
        return filled if self.absent is None else filled.where(self.absent, out)


class Mean:
    """Sums divided by a number, in the dtype of the result."""

    __slots__ = ("count", "dtype", "reduction")

    def __init__(self, reduction: PreparedReduction, count: int, dtype: Any) -> None:
        self.reduction, self.count, self.dtype = reduction, count, dtype

    def __call__(self, storage: Storage) -> Any:
        out: Any = self.reduction(storage)
        if out is None:
            return None
        out /= self.count
        if out.dtype is self.dtype:
            return out
        return out.astype(self.dtype, copy=False) if type(out) is np.ndarray else out.to(self.dtype)


class Total:
    """All values and those of `more` reduced by NumPy, an array of one element."""

    __slots__ = ("dtype", "more", "ufunc")

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

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, storage: Storage) -> np.ndarray[Any, Any] | None:
        total = vdot(storage.values, storage.values)
        if not total < math.inf:
            return None
        root = np.empty(1, self.dtype)
        root[0] = math.sqrt(total)
        return root


class KernelTotal:
    """All of many values summed by a kernel, see `full_sum.total`; an array of one element."""

    __slots__ = ("dtype", "scalar")

    def __init__(self, dtype: Any, scalar: str) -> None:
        self.dtype, self.scalar = dtype, scalar

    def __call__(self, storage: Storage) -> Any:
        return total(storage.values, self.scalar).reshape(1)


class TorchTotal:
    """All values summed; an array of one element. By torch where it records them, by a kernel where they are few."""

    __slots__ = ("_executable", "_forward", "_tensor", "array", "dtype", "options", "start")

    def __init__(self, values: Any, dtype: Any) -> None:
        self.dtype, self.options = dtype, {} if values.dtype is dtype else {"dtype": dtype}
        torch = sys.modules["torch"]
        self._forward = torch.autograd.forward_ad
        self._tensor = torch.from_numpy
        launch = short_launch(scalar_of(values), len(values)) if values.dtype is dtype and is_short(values) else None
        self._executable: Executable | None = None
        self.start: Callable[..., int] | None = None
        if launch is not None:
            self._executable, self.start = launch
            self.array = numpy_dtype(scalar_of(values))
            """the type of a result in NumPy's memory, which NumPy allocates in a third of the time"""

    def __call__(self, storage: Storage) -> Any:
        values, start = storage.values, self.start
        if start is None or values.requires_grad or self._forward._current_level >= 0:
            return values.sum(0, True, **self.options)
        out = np.empty(1, self.array)
        try:
            code = start(values.data_ptr(), out)
        except RuntimeError:  # values of a transform have no address
            return values.sum(0, True, **self.options)
        if code and self._executable is not None:
            self._executable.fail(code)
        return self._tensor(out)


_FLAT = frozenset((SquareRoot, Total, TorchTotal, KernelTotal))
"""Reductions that give one element, of rank 1."""


class Result:
    """A prepared reduction whose values are those of a known structure, which has nobody else's buffers.

    places : the positions of these in what the reduction gives; None where they are all of it, in order
    """

    __slots__ = ("_is_flat", "_reduce", "make", "places", "reduction", "structure", "threads", "watch")

    def __init__(
        self, reduction: PreparedReduction, structure: Structure, fill_value: Any = 0, places: Any = None
    ) -> None:
        self.reduction, self.structure, self.places = reduction, structure, places
        self._reduce, self._is_flat = reduction.__call__, type(reduction) in _FLAT  # a bound method is entered sooner
        self.make = Storage.maker(structure, scalar_name(reduction.dtype), fill_value)
        self.watch, self.threads = structure.watch, pool.get_num_threads()

    def run(self, storage: Storage) -> Storage | None:
        """The result for values of a storage; None where the call does not hold for them."""
        if self.threads != pool.threads or (self.watch is not NOTHING and not self.watch.holds()):
            return None
        values = self._reduce(storage)
        if values is None:
            return None
        if not self._is_flat and values.ndim != 1:
            values = values.reshape(-1)
        if self.places is not None:
            values = values.take(self.places)
        return self.make(values)

    __call__ = run


class DenseResult(Result):
    """A prepared reduction whose result is taken as a dense storage of known shape."""

    __slots__ = ()

    def __init__(self, reduction: PreparedReduction, shape: tuple[int, ...]) -> None:
        none = (None,) * len(shape)
        super().__init__(reduction, Structure(shape, dense_format(len(shape)), none, none))


PreparedReduction = Reduction | TorchReduction | Filled | Mean | SquareRoot | Total | TorchTotal | KernelTotal


def _maker(shape: tuple[int, ...], dtype: np.dtype[Any], *, zero: bool) -> _Make:
    if zero:
        return np.zeros
    return fresh if math.prod(shape) * dtype.itemsize >= LARGE else np.empty
