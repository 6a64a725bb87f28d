"""Sorting along a dimension, searching sorted vectors, and the places of nonzero elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.conversion.level_runs import unbatched
from ..errors import DTypeError, ShapeError
from ..format import coo
from ..ir.types import COMPLEX
from ..provided import provided
from ..runtime.operation import namespace, operation
from ..runtime.promote import promote
from ..storage.buffers import as_array, cast, host_values, is_torch, length, to_numpy
from ..storage.recorded import bare, outside
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .axes import as_tensor, axis_of
from .indexing.index import index
from .indexing.keys import Ints
from .result_format import to_result_format
from .selection import Rows, row_format, rows_of

__all__ = [
    "Fibres",
    "argpartition",
    "argsort",
    "argwhere",
    "comparable_operand",
    "find",
    "nonzero",
    "partition",
    "plain_values",
    "searchsorted",
    "sort",
]


@operation(masked=provided("masked sort"), shape="same", dtype="same", fill="same")
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements of every fibre along `axis` in order.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format and fill value, real
    axis : along which elements move
    descending : the largest first
    stable : either way equal elements keep their order

    Returns
    -------
    Tensor, same shape, dtype and fill value, canonical, in the format of `x` where it suits: of a sparse fibre the
    elements before the fill value come first, those after it last. NaN is the largest value: last, or first where
    `descending`.

    Guarantees: sort(sort(x)) == sort(x); a format without blocks stores as many elements as x.coalesce().
    Cost: O(nse log of the longest fibre); of a dense format O(size log size).
    Gradients go to where the elements came from.
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: argsort, topk, median.

    Examples
    --------
    >>> ow.sort(ow.asarray([3, 0, -2], format="coo")).to_numpy()
    array([-2,  0,  3])
    """
    t, d = comparable_operand(x, axis, "sort")
    return _in_order(t, d, descending)


def partition(x: Any, /, ranks: Sequence[int], *, axis: int = -1) -> Tensor:
    """`sort`, but only the elements of these ranks are in their places, with those before and behind on their sides.

    Cost: O(nse * distinct ranks), and O(log of ranks) of it is usual.
    """
    t, d = comparable_operand(x, axis, "partition")
    return _in_order(t, d, False, ranks)


def argpartition(x: Any, /, ranks: Sequence[int], *, axis: int = -1) -> Tensor:
    """Where the elements of `partition` are. Cost: O(size + nse * distinct ranks)."""
    t, d = comparable_operand(x, axis, "argpartition")
    return _places_in_order(t, d, False, ranks)


def _in_order(t: Tensor, d: int, descending: bool, ranks: Sequence[int] = ()) -> Tensor:
    """The elements along dimension d in order, or those of `ranks`."""
    if t.format.is_dense:
        order = _dense_order(t, d, descending, ranks)
        dense = t.to_dense()
        if is_torch(dense):
            import torch

            return _dense_like(torch.take_along_dim(dense, torch.from_numpy(order).to(dense.device), d), t)
        return _dense_like(np.take_along_axis(dense, order, d), t)
    fibres = Fibres(t, d)
    s = fibres.storage
    order, new_crd = fibres.as_rows().order(descending, ranks)
    last_crd = as_array(new_crd, like=s.values)
    sorted_storage = Storage(
        s.shape, s.format, s.scalar, s.fill_value, s.pos, (*s.crd[:-1], last_crd), _gather(s.values, order)
    )
    restored = Tensor._from_storage(sorted_storage.permute(np.argsort(fibres.order).tolist()))
    return to_result_format(restored._storage, t.format)


@operation(
    method=True,
    torch="argsort(dim: axis = -1, descending = False, stable = False)",
    masked=provided("masked argsort"),
    shape="same",
    dtype="int64",
    fill="dense",
)
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Where the elements of every fibre along `axis` are, in order: `take_along_axis(x, argsort(x)) == sort(x)`.

    Returns
    -------
    Tensor of dense format, int64, of the shape of `x`: every place of a fibre occurs once, so no value fills it.
    Equal elements are in the order of their places; NaN is the largest value, as in `sort`.

    Cost: O(size + nse log nse), `x` itself is not made dense; of a dense format O(size log size).
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: sort, topk, take_along_axis.

    Examples
    --------
    >>> ow.argsort(ow.asarray([3, 0, 2], format="coo")).to_numpy()
    array([1, 2, 0])
    """
    t, d = comparable_operand(x, axis, "argsort")
    return _places_in_order(t, d, descending)


def _places_in_order(t: Tensor, d: int, descending: bool, ranks: Sequence[int] = ()) -> Tensor:
    """The places along dimension d of the elements in order, or of those of `ranks`."""
    if t.format.is_dense:
        return Tensor._from_dense(_as_index(_dense_order(t, d, descending, ranks), t))
    places = np.empty(t.shape, np.int64)
    if places.size:
        rows, dims = rows_of(t, d)
        found = rows.places(descending, ranks).reshape([t.shape[k] for k in dims])
        places = np.ascontiguousarray(found.transpose(np.argsort(dims)))
    return Tensor._from_dense(_as_index(places, t))


@operation(shape="counted", fill="dense")
def find(x: Any, /) -> tuple[Tensor, ...]:
    """The coordinates of the elements that are not zero, in row-major order, and then these elements.

    Returns
    -------
    tuple of Tensors of dense format: int64 for each dimension, the values last; an element that is stored several times
    is their sum

    Guarantees: `nonzero(x)`, and `x` at these places.
    Cost and errors: those of `nonzero`.

    See also: nonzero, argwhere, Tensor.to_scipy.

    Examples
    --------
    >>> rows, columns, values = ow.find(ow.asarray([[0, 2], [1, 0]], format="csr"))
    >>> values
    Tensor(shape=(2,), dtype=int64, format="dense", nse=2, nbytes=16)
    """
    t = as_tensor(x)
    coordinates = nonzero(t)
    values = index(t, coordinates)
    return (*coordinates, values if values.format.is_dense else values.asformat("dense"))


@operation(method=True, dtype="int64", fill="f(fill)")
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """The places in the sorted vector `x1` before which the elements of `x2` keep it sorted.

    Parameters
    ----------
    x1 : Tensor of rank 1, any format, ascending (through `sorter`, where given)
    x2 : Tensor of any shape, format and fill value
    side : "left" is the first such place, "right" the last
    sorter : the order in which `x1` is ascending, as `argsort` gives it

    Returns
    -------
    Tensor, int64, of the shape and in the structure of `x2`; its fill value is the place of that of `x2`

    Cost: O(nse log nse) of both: unspecified elements of `x1` are counted, not visited.
    Raises ShapeError where `x1` is no vector or `sorter` has not its shape, ValueError for another side.

    See also: sort, interp.

    Examples
    --------
    >>> ow.searchsorted(ow.asarray([1, 3, 5]), ow.asarray([0, 4], format="coo")).to_numpy()
    array([0, 2])
    """
    a, b = as_tensor(x1), as_tensor(x2)
    if a.ndim != 1:
        raise ShapeError(f"searchsorted: expected a vector to search; got shape {a.shape}\n  help: sort one fibre")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right'; got {side!r}")
    if sorter is not None and as_tensor(sorter).shape != a.shape:
        raise ShapeError(
            f"searchsorted: sorter of shape {as_tensor(sorter).shape} for {a.shape[0]} elements"
            "\n  help: use argsort(x1)"
        )
    scalar = promote((a._storage.scalar, b._storage.scalar))
    if not b.format.is_unique:
        b = b.coalesce()
    stored = a.asformat("dense")._storage if a.format.is_dense else a.asformat(coo(1))._storage
    sorted_values = plain_values(stored.values, scalar)
    if sorter is not None:
        sorted_values = np.sort(sorted_values)
    queries = np.append(plain_values(b.values, scalar), plain_values(np.asarray([b.fill_value]), scalar))
    ranks = np.searchsorted(sorted_values, queries, side).astype(np.int64)  # type: ignore[call-overload]
    unspecified = a.size - len(sorted_values)
    if unspecified:
        fill = plain_values(np.asarray([a.fill_value]), scalar)
        # The fill value stands before what it would be inserted before.
        ranks += unspecified * np.searchsorted(fill, queries, side)  # type: ignore[call-overload]
    result_values = as_array(ranks[:-1].copy(), like=b.values)
    return Tensor._from_storage(b._storage.with_values(result_values, int(ranks[-1])))


@operation(method=True, masked=provided("masked nonzero"), shape="counted", dtype="int64", fill="dense")
def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The coordinates of the elements that are not zero, in row-major order: one vector for each dimension.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format, dtype and fill value; NaN is not zero

    Returns
    -------
    tuple of Tensors of dense format, int64, shape (count_nonzero(x),)

    Guarantees: all(x[nonzero(x)] != 0).
    Cost: O(nse log nse) for fill value 0, O(size) for any other.
    Raises ShapeError for rank 0.

    See also: argwhere, find, Tensor.indices.

    Examples
    --------
    >>> ow.nonzero(ow.asarray([[0, 2], [1, 0]], format="csr"))[1].to_numpy()
    array([1, 0])
    """
    t = as_tensor(x)
    if not t.ndim:
        raise ShapeError("nonzero: a tensor of rank 0 has no coordinates\n  help: reshape it to (1,)")
    if t.format.is_dense:
        coordinates: Any = np.nonzero(host_values(t.to_dense()))
        return tuple(Tensor._from_dense(_as_index(np.ascontiguousarray(c), t)) for c in coordinates)
    s = t.asformat(coo(t.ndim))._storage
    values, crd = host_values(s.values), [to_numpy(c) for c in s.crd if c is not None]
    if t.fill_value == 0:
        nonzeros = np.flatnonzero(values != 0)
        coordinates = [c[nonzeros].astype(np.int64) for c in crd]
    else:
        flags = np.ones(t.shape, bool)
        flags[tuple(c[values == 0] for c in crd)] = False
        coordinates = np.nonzero(flags)
    return tuple(Tensor._from_dense(_as_index(np.ascontiguousarray(c), t)) for c in coordinates)


@operation(
    method=True,
    masked=lambda m: _coordinate_matrix(namespace().nonzero(m), m.ndim),
    shape="counted",
    dtype="int64",
    fill="dense",
)
def argwhere(x: Any, /) -> Tensor:
    """The coordinates of the elements that are not zero, in row-major order: a dense matrix with a row for each.

    Cost: O(nse log nse).
    See also: nonzero, find.

    Examples
    --------
    >>> ow.argwhere(ow.asarray([[0, 2], [1, 0]], format="csr")).to_numpy()
    array([[0, 1],
           [1, 0]])
    """
    t = as_tensor(x)
    return (
        _coordinate_matrix(nonzero(t), t.ndim)
        if t.ndim
        else _coordinate_matrix(nonzero(t.broadcast_to((1,))), 1)[:, :0]
    )


def _coordinate_matrix(coordinates: tuple[Any, ...], ndim: int) -> Tensor:
    """Vectors of coordinates as the columns of a matrix."""
    table = np.stack([c.to_numpy() for c in coordinates], axis=1) if ndim else np.zeros((0, 0), np.int64)
    return Tensor._from_dense(as_array(np.ascontiguousarray(table), like=coordinates[0].values))


class Fibres:
    """A tensor's stored elements with `axis` last, each fibre along it contiguous: compressed rows as they are, other
    formats in canonical COO."""

    __slots__ = ("extent", "has_rows", "order", "storage")

    def __init__(self, t: Tensor, axis: int) -> None:
        self.order = [*(d for d in range(t.ndim) if d != axis), axis]
        self.extent = t.shape[axis]
        moved = t.transpose(self.order)
        self.has_rows = moved.format == row_format(t.ndim)
        self.storage = (moved if self.has_rows else moved.asformat(coo(t.ndim)))._storage

    def starts(self) -> Ints:
        """The position of each fibre's first element, and the number of all elements."""
        pos = self.storage.pos[-1]
        if pos is not None and self.has_rows:
            return to_numpy(pos)
        count = length(self.storage.values)
        new = np.zeros(count, bool)
        new[:1] = True
        for c in self.storage.crd[:-1]:
            column = to_numpy(c)
            new[1:] |= column[1:] != column[:-1]
        return np.append(np.flatnonzero(new), count)

    def as_rows(self, missing: bool = False) -> Rows:
        """The fibres as rows of stored elements; missing: unspecified elements are none."""
        s, pos = self.storage, self.starts()
        return Rows(s.values, pos, to_numpy(s.crd[-1]), len(pos) - 1, self.extent, s.fill_value, missing)


@outside()
def plain_values(values: Any, scalar: str | None = None) -> np.ndarray[Any, Any]:
    """Values -> a NumPy array of a dtype that NumPy sorts, converted to a scalar type where one is given.

    Only for what orders and counts: the results' own values are gathered from the operand's, with their gradients.
    """
    values = bare(values) if is_torch(values) else values
    converted = values if scalar is None else cast(values, scalar)
    return to_numpy(cast(converted, "f32") if "bfloat16" in str(converted.dtype) else converted)


def comparable_operand(x: Any, axis: int, operation: str) -> tuple[Tensor, int]:
    """The operand as a Tensor, and the axis counted from 0. Raises DTypeError for complex numbers."""
    t = as_tensor(x)
    if t._storage.scalar in COMPLEX:
        raise DTypeError(f"{operation} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    return t, axis_of(axis, t.ndim, operation, boolean=operation == "sort")


def _dense_order(t: Tensor, axis: int, descending: bool, ranks: Sequence[int] = ()) -> Ints:
    values = plain_values(t.to_dense())
    if len(ranks):
        return np.argpartition(values, ranks, axis=axis)
    if not descending:
        return np.argsort(values, axis=axis, kind="stable")
    reverse = np.flip(np.argsort(np.flip(values, axis), axis=axis, kind="stable"), axis)
    return np.ascontiguousarray(t.shape[axis] - 1 - reverse)


def _dense_like(array: Any, t: Tensor) -> Tensor:
    """A dense array in the dense format, and with the fill value, of `t`."""
    out = Tensor._from_dense(array)._storage
    return Tensor._from_storage(out.with_values(out.values, t.fill_value)).asformat(unbatched(t.format))


def _gather(values: Any, order: Ints) -> Any:
    if not is_torch(values):
        return values[order]
    import torch

    return values.index_select(0, torch.from_numpy(order).to(values.device))


def _as_index(array: Ints, t: Tensor) -> Any:
    return as_array(array.astype(np.int64, copy=False), like=t.values)
