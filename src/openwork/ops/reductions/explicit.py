"""A tensor and an axis -> extremes of its stored elements alone, and where they are: SciPy's `explicit=True`."""

from __future__ import annotations

from typing import Any

from ...provided import provided
from ...runtime.conversion.remap import canonical
from ...tensor.tensor import Tensor
from ..axes import axis_of

as_masked_tensor = provided("masked as_masked_tensor", __name__)

__all__ = ["explicit_arg_extreme", "explicit_extreme"]


def explicit_extreme(op: str, t: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """The least ("min") or largest ("max") stored element over `axis`; the fill value where none is stored."""
    extreme = getattr(_as_masked(t), f"a{op}")(axis=axis, keepdims=keepdims)
    return extreme.filled(t.fill_value)  # type: ignore[no-any-return]


def explicit_arg_extreme(op: str, t: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """Where the first least or largest stored element over `axis` is, int64; 0 where none is stored."""
    axis = None if axis is None else axis_of(axis, t.ndim, f"arg{op}", boolean=False)
    coordinates = getattr(_as_masked(t), f"arg{op}")(axis=axis, keepdims=keepdims)
    return coordinates.filled(0)  # type: ignore[no-any-return]


def _as_masked(t: Tensor) -> Any:
    return as_masked_tensor(t if t.format.is_unique else t.asformat(canonical(t.format)))
