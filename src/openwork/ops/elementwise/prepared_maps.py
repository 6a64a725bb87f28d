"""A map of values that a structure has seen -> its result over the same structure: one call of the array library.

    A * 2, A *= 2, torch.sin(A)     # the second time: is it kept, the library's function, and the result around it

Kept is what depends on the structure and the type alone: that no position is padding, the result's type and fill value.
What depends on values is asked at each call: whether NumPy could warn of them, whether torch records them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...codegen.short_call import bound
from ...compiler.single.scaled_values import scale_kernel
from ...runtime.conversion.conversion_kernels import shared_kernel
from ...runtime.values import LIMITS, function_of
from ...runtime.zero_annihilation import FEW, vdot
from ...storage.buffers import scalar_of
from ...storage.storage import Storage
from ...storage.structure import keep
from ...tensor.tensor import Tensor

__all__ = ["keep_function", "keep_scaling", "map_recalled", "scaled", "write_scaled"]

LEAST = 1e-30
LARGEST = 1e18
"""Numbers between these leave a zero as it is, and products with values within `LIMITS` finite."""
_WIDE = frozenset(("f32", "f64"))
_SCALINGS = frozenset(("mul", "div"))

_torch: Any = None
"""torch, once a map over its buffers is kept."""
_forward: Any = None
"""torch's state of forward derivatives."""


class PreparedMap:
    """A function of torch's on the values of a structure; the result has a known type and fill value."""

    __slots__ = ("dtype", "fill", "function", "is_own_kind", "scalar")

    def __init__(self, function: Callable[..., Any], values: Any, fill: Any, s: Storage) -> None:
        self.function, self.dtype, self.scalar, self.fill = function, values.dtype, scalar_of(values), fill
        self.is_own_kind = self.scalar == s.scalar and repr(fill) == repr(s.fill_value)
        """whether the result has the operand's type and fill value"""

    def run(self, s: Storage) -> Storage | None:
        """The function of a storage; None where a transform or a forward derivative takes part, or for another type,
        where torch's default has changed."""
        if _forward._current_level >= 0 or _torch._C._functorch.maybe_current_level() is not None:
            return None
        values = self.function(s.values)
        if values.dtype is not self.dtype:
            return None
        if self.is_own_kind:
            return s.with_own_values(values)
        return Storage.over(s._structure or s.structure, self.scalar, self.fill, values)


class PreparedScaling:
    """Values times or by a number, which leaves their type and a fill value of 0 as they are."""

    __slots__ = ("_executable", "function", "left", "limit", "method", "start", "writes")

    def __init__(self, op: str, left: bool, values: Any) -> None:
        self.left = left
        self.writes = 0
        self.start: Callable[..., int] | None = None
        """writes the products of few values of NumPy's and a number in their place, unless NumPy could warn of one"""
        self.limit = LIMITS.get(values.dtype) if type(values) is np.ndarray else None
        self.function: Callable[..., Any] = function_of(op, self.limit is None)
        self.method: Callable[..., Any] = np.multiply if self.limit is not None else getattr(_torch.Tensor, f"{op}_")

    def note_write(self, values: Any) -> None:
        """Note that products were written in place; prepare the launch at the second time."""
        self.writes += 1
        if self.writes == 2 and self.limit is not None and len(values) <= FEW:
            scalar = scalar_of(values)
            self._executable = shared_kernel(f"scale {scalar}", lambda: scale_kernel(scalar))
            self.start = bound(self._executable, [len(values), 0, 0], (1, 2))

    def is_quiet(self, values: Any, number: float, *, written: bool = True) -> bool:
        """Whether no warning depends on what is done to these values, and no derivative that torch does not record:
        where they are `written` to, none at all."""
        if self.limit is not None:
            few = type(values) is np.ndarray and len(values) <= FEW
            return few and (number <= 1 or bool(vdot(values, values) <= self.limit))
        if (written and values.requires_grad) or _forward._current_level >= 0:
            return False
        return _torch._C._functorch.maybe_current_level() is None


def map_recalled(function: Hashable, t: Tensor) -> Tensor | None:
    """torch's function of a tensor by a prepared map; None where none holds."""
    s = t._storage
    prepared = (s._plans or s.plans).maps.get(function)
    result = None if prepared is None else prepared.run(s)
    return None if result is None else Tensor._from_storage(result)


def scaled(op: str, t: Tensor, number: Any, left: bool) -> Tensor | None:
    """`t op number`, or `number op t`, by a prepared scaling; None where none holds."""
    s = t._storage
    prepared = (s._plans or s.plans).maps.get((op, left))
    if prepared is None or not LEAST < number < LARGEST or not prepared.is_quiet(s.values, number, written=False):
        return None
    return Tensor._from_storage(s.with_own_values(prepared.function(s.values, float(number))))


def write_scaled(op: str, t: Any, number: Any) -> bool:
    """Write `t op number` into the values by a prepared scaling; whether one held and they may be written to."""
    if type(t) is not Tensor:
        return False
    s = t._storage
    prepared = (s._plans or s.plans).maps.get((op, True))
    if prepared is None or not LEAST < number < LARGEST:
        return False
    values = s.values
    if prepared.limit is None:
        if not prepared.is_quiet(values, number):
            return False
        prepared.method(values, float(number))
        return True
    if not values.flags.writeable:
        return False
    if prepared.start is not None and not prepared.start(values, float(number)):
        return True
    if not prepared.is_quiet(values, number):
        return False
    prepared.function(values, float(number), values)
    prepared.note_write(values)
    return True


def keep_scaling(op: str, s: Storage, number: Any, left: bool, result: Storage) -> None:
    """Keep `s op number`, or `number op s`, which has just given `result`, where it is a prepared scaling."""
    if op not in _SCALINGS or not (left or op == "mul") or type(number) not in (int, float):
        return
    is_numpy = type(s.values) is np.ndarray
    if s.scalar not in _WIDE or (is_numpy and op != "mul") or not LEAST < number < LARGEST:
        return
    if s.fill_value != 0 or str(result.fill_value) != str(s.fill_value) or result.scalar != s.scalar:
        return
    if not s.format.is_unique:  # whether duplicates are summed first depends on the numbers
        return
    if is_numpy or _suits(s.values, result.values):
        keep(s.plans.maps, (op, left), PreparedScaling(op, left, s.values))


def keep_function(function: Callable[..., Any], s: Storage, values: Any, fill: Any) -> None:
    """Keep torch's function of a storage without padding, which has just given these values and this fill value."""
    if _suits(s.values, values) and values.untyped_storage().data_ptr() != s.values.untyped_storage().data_ptr():
        keep(s.plans.maps, function, PreparedMap(function, values, fill, s))


def _suits(x: Any, y: Any) -> bool:
    """Whether operand and result of an operation are plain contiguous tensors of torch's."""
    global _torch, _forward
    _torch = sys.modules["torch"]
    _forward = _torch.autograd.forward_ad
    if type(x) is not _torch.Tensor or type(y) is not _torch.Tensor or _torch.compiler.is_compiling():
        return False
    if _forward._current_level >= 0 or _torch._C._functorch.maybe_current_level() is not None:
        return False
    return bool(y.is_contiguous() and not y.is_conj() and not y.is_neg() and y.shape == x.shape)
