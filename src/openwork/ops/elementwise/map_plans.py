"""Maps of values that a type of operand has seen -> the same of another one: one call of the array library.

    A * 2, A *= 2, torch.sin(A)     # is it planned, the library's function, and the result around it

A plan holds what follows from the operand's type and fill value: that no position is padding, the result's type and
fill value. What depends on values is asked at each call: whether NumPy could warn of them, whether torch records them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...codegen.plan_cache import PlanCache
from ...provided import provides
from ...runtime.values import LIMITS, function_of
from ...runtime.zero_annihilation import FEW, vdot
from ...storage.buffers import scalar_of
from ...storage.storage import Storage
from ...tensor.tensor import Tensor

__all__ = ["keep_function", "keep_scaling", "map_recalled", "scaled", "write_scaled"]

LEAST = 1e-30
LARGEST = 1e18
"""Numbers between these leave a zero as it is, and products with values within `LIMITS` finite."""
_WIDE = frozenset(("f32", "f64"))
_SCALINGS = frozenset(("mul", "div"))

_plans: PlanCache[Hashable, Any] = PlanCache("maps", 1 << 12)
"""by function, or operator and side, and the kind of the operand"""
_torch: Any = None
"""torch, once a map over its buffers is kept."""
_forward: Any = None
"""torch's state of forward derivatives."""


class MapPlan:
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


class ScalingPlan:
    """Values times or by a number, which leaves their type and a fill value of 0 as they are."""

    __slots__ = ("function", "left", "limit", "method")

    def __init__(self, op: str, left: bool, values: Any) -> None:
        self.left = left
        self.limit = LIMITS.get(values.dtype) if type(values) is np.ndarray else None
        self.function: Callable[..., Any] = function_of(op, self.limit is None)
        self.method: Callable[..., Any] = np.multiply if self.limit is not None else getattr(_torch.Tensor, f"{op}_")

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
    """torch's function of a tensor by its plan; None where none holds."""
    s = t._storage
    plan = _plans.get((function, s.kind))
    result = None if plan is None else plan.run(s)
    return None if result is None else Tensor._from_storage(result)


def scaled(op: str, t: Tensor, number: Any, left: bool) -> Tensor | None:
    """`t op number`, or `number op t`, by its plan; None where none holds."""
    s = t._storage
    plan = _plans.get((op, left, s.kind))
    if plan is None or not LEAST < number < LARGEST or not plan.is_quiet(s.values, number, written=False):
        return None
    return Tensor._from_storage(s.with_own_values(plan.function(s.values, float(number))))


@provides("write_scaled")
def write_scaled(op: str, t: Any, number: Any) -> bool:
    """Write `t op number` into the values by its plan; whether one held and they may be written to."""
    if type(t) is not Tensor:
        return False
    s = t._storage
    plan = _plans.get((op, True, s.kind))
    if plan is None or not LEAST < number < LARGEST:
        return False
    values = s.values
    if plan.limit is None:
        if not plan.is_quiet(values, number):
            return False
        plan.method(values, float(number))
        return True
    if not values.flags.writeable:
        return False
    if not plan.is_quiet(values, number):
        return False
    plan.function(values, float(number), values)
    return True


def keep_scaling(op: str, s: Storage, number: Any, left: bool, result: Storage) -> None:
    """Keep `s op number`, or `number op s`, which has just given `result`, where it has a plan."""
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
        _plans.keep((op, left, s.kind), ScalingPlan(op, left, s.values))


def keep_function(function: Callable[..., Any], s: Storage, values: Any, fill: Any) -> None:
    """Keep torch's function of a storage without padding, which has just given these values and this fill value."""
    if _suits(s.values, values) and values.untyped_storage().data_ptr() != s.values.untyped_storage().data_ptr():
        _plans.keep((function, s.kind), MapPlan(function, values, fill, s))


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
