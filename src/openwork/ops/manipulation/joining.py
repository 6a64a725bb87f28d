"""Tensors -> one, joined along an existing or a new dimension; a tensor -> its slices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...format.format import Format
from ...provided import provided
from ...runtime.conversion.remap import IndexMap, on_host, remap
from ...runtime.gradient_hook import differentiable
from ...runtime.leading_slice import join_outer, outer_dim
from ...runtime.moves import Moved, moved
from ...runtime.operation import operation
from ...runtime.promote import promote
from ...storage.buffers import dtype_of
from ...storage.storage import Storage
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axis_of
from ..indexing.index import index
from ..result_format import dense_array, from_dense_array, little_format, to_result_format
from .shaping import expand_dims, reshape

__all__ = ["concat", "concat_little", "concatenate", "joins", "stack", "unstack"]


joins = partial(operation, shape="joined", dtype="promoted", fill="same", format="like")
"""The block of an operation that puts tensors side by side."""


@joins(
    torch=("cat(dim: axis = 0)", "concat(dim: axis = 0)", "concatenate(dim: axis = 0)"),
    masked=provided("masked concat"),
)
def concat(arrays: Sequence[Any], /, *, axis: int | None = 0, format: str | Format | None = None) -> Tensor:
    """The operands one behind the other along `axis`; with None, their elements in row-major order.

    Parameters
    ----------
    arrays : tensors of one shape but for `axis`, one fill value, any formats
    format : of the result; that of the first sparse operand without

    Returns
    -------
    Tensor, canonical; its dtype is the promotion of the operands'. Dense where every operand is.

    `concatenate` is the same function.

    Cost: O(nse). Raises ShapeError where shapes differ, UnsupportedError where fill values do.

    See also: stack, hstack, vstack, block_array.

    Examples
    --------
    >>> ow.concat([ow.asarray([0, 2], format="coo"), ow.zeros((2,), dtype="int64")]).to_numpy()
    array([0, 2, 0, 0])
    """
    joined = concat_little(arrays, axis) if format is None else None
    if joined is not None:
        return joined
    tensors: list[Tensor] = list(one_library(*map(as_tensor, arrays)))
    if not tensors:
        raise ShapeError("concat: need at least one array to concatenate\n  help: give a list of tensors")
    if axis is None:
        return concat([reshape(t, (-1,)) for t in tensors], axis=0, format=format)
    first = tensors[0]
    if first.ndim == 0:
        raise ShapeError("concat: zero-dimensional arrays cannot be concatenated\n  help: use stack")
    d = axis_of(axis, first.ndim, "concat", boolean=False)
    for t in tensors[1:]:
        same = t.ndim == first.ndim and all(
            n == m for k, (n, m) in enumerate(zip(t.shape, first.shape, strict=True)) if k != d
        )
        if not same:
            raise ShapeError(
                f"concat: shapes {first.shape} and {t.shape} differ beside axis {d}\n  help: make the others agree"
            )
    shape = tuple(sum(t.shape[d] for t in tensors) if k == d else n for k, n in enumerate(first.shape))
    return _concat(tensors, d, shape, format)


def concat_little(arrays: Any, axis: Any) -> Tensor | None:
    """Sparse tensors of little data, of one scalar type and fill value, joined by one launch; None of others."""
    if (type(arrays) is not list and type(arrays) is not tuple) or not arrays or type(axis) is not int:
        return None
    storages = []
    for x in arrays:
        if type(x) is not Tensor:
            return None
        storages.append(x._storage)
    first = storages[0]
    for s in storages:
        if s.scalar != first.scalar or s.fill_value != first.fill_value or type(s.values) is not type(first.values):
            return None
    joined = moved(storages, ("concat", axis), lambda: _joined(storages, axis))
    return None if joined is None else Tensor._from_storage(joined)


def _joined(storages: Sequence[Storage], axis: int) -> Moved | None:
    """A concatenation as a move; None where shapes do not fit."""
    first, ndim = storages[0], len(storages[0].shape)
    d = axis + ndim if axis < 0 else axis
    if not 0 <= d < ndim or any(_beside(s.shape, d) != _beside(first.shape, d) for s in storages):
        return None
    starts = [*accumulate((s.shape[d] for s in storages), initial=0)]
    shape = (*first.shape[:d], starts[-1], *first.shape[d + 1 :])
    index_maps = [_shift_map(ndim, d, start, len(storages) == 1) for start in starts[:-1]]
    format = little_format(first.format, shape)
    return None if format is None else Moved(index_maps, shape, format)


def _beside(shape: tuple[int, ...], d: int) -> tuple[int, ...]:
    return (*shape[:d], -1, *shape[d + 1 :])


concatenate = operation("concatenate", masked=provided("masked concat"))(concat)


@differentiable(lambda tensors, *_: [t.values for t in tensors])
def _concat(tensors: list[Tensor], d: int, shape: tuple[int, ...], format: Any) -> Tensor:
    """Operands of agreeing shapes -> their concatenation along d."""
    storages_in = [t._storage for t in tensors]
    torch_operand = next((t for t, s in zip(tensors, storages_in, strict=True) if s.library == "torch"), None)
    scalar = promote(tuple(s.scalar for s in storages_in), "numpy" if torch_operand is None else "torch")
    tensors = [
        t if s.scalar == scalar else t.astype(dtype_of(scalar, s.values), copy=False)
        for t, s in zip(tensors, storages_in, strict=True)
    ]
    if all(t.format.is_dense for t in tensors):
        like = tensors[0] if torch_operand is None else torch_operand
        dtype = dtype_of(scalar, like.values)
        out = from_dense_array(
            np.concatenate([dense_array(t) for t in tensors], axis=d), like.astype(dtype, copy=False)
        )
        return out if format is None else out.asformat(format)
    sparse = next(t for t in tensors if not t.format.is_dense)
    fill = sparse.fill_value
    storages = []
    for t in tensors:
        if t.format.is_dense:
            t = _to_coo(t, fill)
        elif t.fill_value != fill and not (t.fill_value != t.fill_value and fill != fill):
            raise UnsupportedError(
                f"concat: fill values {fill} and {t.fill_value} differ\n  help: make one of them dense"
            )
        storages.append(t._storage)
    for s in storages:
        on_host(s, "concat")
    if format in (None, sparse.format) and outer_dim(sparse.format) == d and _of_one_format(storages):
        joined = join_outer(storages)
        if joined is not None:
            return Tensor._from_storage(joined)
    starts = accumulate((s.shape[d] for s in storages), initial=0)
    parts = [
        (s, _shift_map(len(shape), d, start, len(tensors) == 1)) for s, start in zip(storages, starts, strict=False)
    ]
    return to_result_format(remap(parts, shape, "concat"), sparse.format, format)


def _of_one_format(storages: Sequence[Storage]) -> bool:
    return all(s.format == storages[0].format for s in storages)


def _to_coo(t: Tensor, fill: Any) -> Tensor:
    """A dense operand -> COO with this fill value."""
    dense = t.asformat("dense")._storage
    return Tensor._from_storage(dense.with_values(dense.values, fill)).asformat("coo")


def _shift_map(ndim: int, d: int, offset: int, single: bool) -> IndexMap:
    index_map = IndexMap()
    for k in range(ndim):
        if k == d and not single:
            index_map.rises[k] = k
            index_map.coordinates.append(f"x{k} + {index_map.number(offset)}")
        else:
            index_map.keep(k)
    return index_map


@joins(torch="stack(dim: axis = 0)", masked=provided("masked stack"))
def stack(arrays: Sequence[Any], /, *, axis: int = 0, format: str | Format | None = None) -> Tensor:
    """The operands, of one shape, side by side along a new dimension at `axis`.

    Cost: O(nse).
    See also: concat, unstack.

    Examples
    --------
    >>> a = ow.asarray([0, 2], format="coo")
    >>> ow.stack([a, a], axis=1).to_numpy()
    array([[0, 0],
           [2, 2]])
    """
    tensors = [as_tensor(x) for x in arrays]
    if not tensors:
        raise ShapeError("stack: need at least one array to stack\n  help: give a list of tensors")
    if any(t.shape != tensors[0].shape for t in tensors):
        shapes = ", ".join(str(t.shape) for t in tensors)
        raise ShapeError(
            f"stack: all input arrays must have the same shape\n  got: {shapes}\n  help: concat joins them"
        )
    d = axis_of(axis, tensors[0].ndim + 1, "stack")
    return concat([expand_dims(t, axis=d) for t in tensors], axis=d, format=format)


@operation(
    torch="unbind(dim: axis = 0)",
    masked=provided("masked unstack"),
    shape="moved",
    dtype="same",
    fill="same",
    format="like",
)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The tensors of which `x` consists along `axis`, without that dimension.

    Cost: O(nse) for each.
    See also: stack.

    Examples
    --------
    >>> [t.to_numpy() for t in ow.unstack(ow.asarray([[0, 2], [1, 0]], format="csr"))]
    [array([0, 2]), array([1, 0])]
    """
    t = as_tensor(x)
    if t.ndim == 0:
        raise ShapeError("unstack: a tensor of rank 0 has no axis\n  help: use reshape first")
    d = axis_of(axis, t.ndim, "unstack")
    return tuple(index(t, (*(slice(None),) * d, k)) for k in range(t.shape[d]))
