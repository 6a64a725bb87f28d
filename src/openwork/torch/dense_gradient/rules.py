"""Tables for `grad="dense"`: operation -> the function of dense tensors whose gradient it has instead of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...interop.constructors import asarray
from ...ops.elementwise.functions import abs as absolute
from ...ops.elementwise.selection import where
from ...tensor.tensor import Tensor

__all__ = ["DENSE_RULES", "RANDOM", "STRUCTURE_OPERANDS", "SUMS"]


def _dtype_only(obj: Any, /, *, dtype: Any = None, **_: Any) -> Tensor:
    t = asarray(obj)
    return t if dtype is None else t.astype(dtype)


def _identity(t: Tensor, *_: Any, **__: Any) -> Tensor:
    return t


def _pruned(t: Tensor, threshold: Any = 0, /) -> Tensor:
    """`prune` of a dense tensor: which elements become the fill value is constant."""
    if not threshold:
        return t
    result: Tensor = where(absolute(t.detach() - t.fill_value) > threshold, t, t.fill_value)
    return result


_CONVERSIONS = (
    "asformat", "coalesce", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr",
    "to_sparse_bsc",
)  # fmt: skip

DENSE_RULES: dict[str, Callable[..., Any]] = {
    "prune": _pruned,
    "asarray of a tensor": _dtype_only,
    **dict.fromkeys(_CONVERSIONS, _identity),
}
"""Operations that change format or structure, by what they do to a dense tensor's elements."""

STRUCTURE_OPERANDS: dict[str, tuple[int, ...]] = {
    "softmax": (-1,), "log_softmax": (-1,), "sparse_softmax": (-1,), "sparse_log_softmax": (-1,), "sparse_mask": (1,),
    "sddmm": (0,), "sampled_addmm": (0,), "sparse_sampled_addmm": (0,), "dropout": (0,),
}  # fmt: skip
"""Operations that depend on which elements are specified, and the operands (-1: all) whose elements these are: an
element that is not specified has gradient 0."""

SUMS = frozenset(("add", "radd", "sub", "rsub", "subtract", "concat", "stack", "cat"))
"""Operations whose gradient depends on the structure of the operands, not on their values."""

RANDOM = frozenset(("dropout",))
"""Operations that draw random numbers, which are drawn again in backward: the same, from the same state."""
