"""Reductions of masked tensors: the specified elements combined over axes, and their counts, where 0 is missing.

Where nothing was counted the result is missing, so that a reduction is a masked tensor again: a strided one, of the
dimensions that are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import Tensor
from ..ops.reductions.folds import axes_of
from ..ops.reductions.specified import reduce_specified
from ..provided import provides
from ..storage.buffers import Array, as_array
from .construct import strided_tensor
from .tensor import wrap

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = ["reduce"]


@provides("masked reduce")
def reduce(
    op: str, m: MaskedTensor, axis: Any = None, keepdims: bool = False, dtype: Any = None,
    correction: float | None = None, ord: float | None = None,
) -> MaskedTensor:  # fmt: skip
    """Reduce over `axis`, an axis, several, or None for all, the missing elements left out; see `reduce_specified`.

    Returns
    -------
    MaskedTensor; missing where nothing is specified over `axis` ("count" is 0 there), and nowhere else. Strided;
    sparse, in levels of the tensor, where the reduction of a Tensor is
    """
    axes = axes_of(axis, m.ndim)
    t = m._tensor
    found = reduce_specified(op, t, (0,) if m._scalar else axes, keepdims, dtype, correction, ord)
    if isinstance(found, Tensor):
        return wrap(found)
    shape = tuple(1 if d in axes else n for d, n in enumerate(m.shape) if keepdims or d not in axes)
    values, bits = (_shaped(x, t, shape) for x in found)
    return strided_tensor(values, bits)


def _shaped(x: Any, t: Tensor, shape: tuple[int, ...]) -> Array:
    """A result as an array of the operand's library and of a shape."""
    like = t._storage.values
    if type(x) is not type(like):
        x = as_array(x, like=like)
    return x if x.shape == shape else x.reshape(shape)
