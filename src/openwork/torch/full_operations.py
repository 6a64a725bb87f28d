"""For `grad="dense"`: operations by name, and the dense operation whose gradient each has instead of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..interop.constructors import asarray
from ..ops.elementwise.functions import abs as absolute
from ..ops.elementwise.functions import where
from ..tensor.tensor import Tensor

__all__ = ["DENSE", "HELD"]


def _dtype_only(obj: Any, /, *, dtype: Any = None, **_: Any) -> Tensor:
    t = asarray(obj)
    return t if dtype is None else t.astype(dtype)


def _itself(t: Tensor, *_: Any, **__: Any) -> Tensor:
    return t


def _far(t: Tensor, threshold: Any = 0, /) -> Tensor:
    """`prune`: whether an element is kept is constant."""
    if not threshold:
        return t
    result: Tensor = where(absolute(t.detach() - t.fill_value) > threshold, t, t.fill_value)
    return result


_CONVERSIONS = (
    "asformat", "coalesce", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr",
    "to_sparse_bsc",
)  # fmt: skip

DENSE: dict[str, Callable[..., Any]] = {
    "prune": _far,
    "asarray of a tensor": _dtype_only,
    **dict.fromkeys(_CONVERSIONS, _itself),
}
"""What operations that choose a format, or what is stored, do to elements."""

HELD: dict[str, tuple[int, ...]] = {
    "softmax": (-1,), "log_softmax": (-1,), "sparse_softmax": (-1,), "sparse_log_softmax": (-1,), "sparse_mask": (1,),
    "sddmm": (0,), "sampled_addmm": (0,), "sparse_sampled_addmm": (0,),
}  # fmt: skip
"""Operations whose meaning depends on which elements are specified, and the operands (-1: all) of which it does: an
element that is not specified plays no part there, and has gradient 0."""
