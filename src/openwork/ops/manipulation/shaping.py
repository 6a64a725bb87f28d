"""Shapes: reshape, the order of dimensions, dimensions of extent 1, flips and rolls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...integers import extents, integers
from ...runtime.conversion.remap import IndexMap
from ...runtime.operation import operation
from ...tensor.lazy import defer, is_lazy
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axes_of, axis_of
from ..indexing.index import index, insert_dims
from ..result_format import remap_one

__all__ = [
    "copy",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "reshape",
    "roll",
    "squeeze",
    "swapaxes",
]


@operation(masked="moves", lazy=True)
def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """The dimensions in another order, over the same buffers: dimension k of the result is `axes[k]` of `x`.

    Parameters
    ----------
    axes : every dimension once, in the order of the result

    Cost: O(1): buffers are shared.
    See also: moveaxis, swapaxes, Tensor.T.

    Examples
    --------
    >>> ow.permute_dims(ow.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    if is_lazy(x):
        order = tuple(axes)
        return defer("transpose", "permute_dims", partial(permute_dims, axes=order), (x,), order)  # type: ignore[return-value]
    t = as_tensor(x)
    order = axes_of(axes, t.ndim, "permute_dims", "axes", boolean=False)
    if len(order) != t.ndim:
        raise ShapeError(f"permute_dims: axes {order} do not match {t.ndim} dimensions\n  help: name each once")
    return t.transpose(order) if order else t


@operation(method=True, masked=lambda m: m.clone(), shape="same", dtype="same", fill="same")
def copy(x: Any, /) -> Tensor:
    """The same tensor in buffers of its own, structure included: nothing that is done to one changes the other.

    Cost: O(nse).
    See also: Tensor.clone, asarray.

    Examples
    --------
    >>> A = ow.eye(2)
    >>> ow.copy(A).values is A.values
    False
    """
    return as_tensor(x).clone()


@operation(method=True, masked="moves", torch=("transpose", "swapaxes", "swapdims"))
def swapaxes(x: Any, axis1: int, axis2: int, /) -> Tensor:
    """Two dimensions exchanged, over the same buffers. Raises AxisError for an axis that is not there.

    Cost: O(1): buffers are shared.
    See also: permute_dims, moveaxis.

    Examples
    --------
    >>> ow.swapaxes(ow.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    t = as_tensor(x)
    first, second = (axis_of(d, t.ndim, "swapaxes", name) for d, name in ((axis1, "axis1"), (axis2, "axis2")))
    order = list(range(t.ndim))
    order[first], order[second] = second, first
    return t.transpose(order)


@operation(masked="moves", lazy=True)
def matrix_transpose(x: Any, /) -> Tensor:
    """The transpose of the last two dimensions, over the same buffers.

    Cost: O(1): buffers are shared.
    See also: permute_dims, Tensor.T.

    Examples
    --------
    >>> ow.matrix_transpose(ow.asarray([[0, 2], [0, 0]], format="csr")).to_numpy()
    array([[0, 0],
           [2, 0]])
    """
    if is_lazy(x):
        return defer("transpose", "mT", matrix_transpose, (x,))  # type: ignore[return-value]
    return as_tensor(x).mT


@operation(method=True, masked="moves", torch=("moveaxis", "movedim"))
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """The dimensions `source` at the places `destination`, the others in their order; over the same buffers.

    Parameters
    ----------
    source : the dimensions that move
    destination : where each of them is in the result

    Cost: O(1): buffers are shared.
    See also: permute_dims, swapaxes.

    Examples
    --------
    >>> ow.moveaxis(ow.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    t = as_tensor(x)
    sources, targets = (
        axes_of(source, t.ndim, "moveaxis", "source"),
        axes_of(destination, t.ndim, "moveaxis", "destination"),
    )
    if len(sources) != len(targets):
        raise ShapeError(f"moveaxis: {len(sources)} axes to {len(targets)} places\n  help: give as many of both")
    order = [d for d in range(t.ndim) if d not in sources]
    for target, d in sorted(zip(targets, sources, strict=True)):
        order.insert(target, d)
    return permute_dims(t, order)


@operation(method=True, masked="moves", torch="unsqueeze(dim: axis)")
def expand_dims(x: Any, /, axis: int | Sequence[int] = 0) -> Tensor:
    """`x` with dimensions of extent 1 at the places `axis` of the result, over the same buffers.

    Cost: O(1) or O(nse), by format.
    See also: squeeze, reshape.

    Examples
    --------
    >>> ow.expand_dims(ow.eye(3), axis=1).shape
    (3, 1, 3)
    """
    t = as_tensor(x)
    axes = integers(axis, "expand_dims", "axis", sequences=(tuple, list))
    new = tuple(sorted(axes_of(axes, t.ndim + len(axes), "expand_dims")))
    return Tensor._from_storage(insert_dims(t._storage, new)) if new else t


@operation(method=True, masked="moves", torch="squeeze(dim: axis = None)")
def squeeze(x: Any, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` without the dimensions `axis` (all of extent 1, where left out).

    Raises ShapeError where one has another extent.

    Cost: O(1) or O(nse), by format.
    See also: expand_dims, reshape.

    Examples
    --------
    >>> ow.squeeze(ow.zeros((1, 3, 1))).shape
    (3,)
    """
    t = as_tensor(x)
    ones = tuple(d for d, n in enumerate(t.shape) if n == 1)
    removed = ones if axis is None else axes_of(axis, t.ndim, "squeeze", boolean=False, sequences=(tuple,))
    for d in removed:
        if t.shape[d] != 1:
            raise ShapeError(
                f"squeeze: axis {d} has extent {t.shape[d]}\n  expected: 1\n  help: index it with an integer"
            )
    return index(t, tuple(0 if d in removed else slice(None) for d in range(t.ndim))) if removed else t


@operation(method=True, masked="moves", torch="flip(dims: axis)")
def flip(x: Any, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements along `axis` (all, where left out) in reverse order.

    Cost: O(nse log nse).
    See also: roll, Tensor.__getitem__.

    Examples
    --------
    >>> ow.flip(ow.asarray([0, 2, 3], format="coo")).to_numpy()
    array([3, 2, 0])
    """
    t = as_tensor(x)
    flipped = range(t.ndim) if axis is None else axes_of(axis, t.ndim, "flip")
    return index(t, tuple(slice(None, None, -1 if d in flipped else 1) for d in range(t.ndim)))


@operation(method=True, masked="moves", torch="roll(shifts: shift, dims: axis = None)")
def roll(x: Any, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements moved by `shift` along `axis`, those that leave at one end coming in at the other.

    Without `axis` the elements are rolled in row-major order.

    Parameters
    ----------
    shift : how far, towards higher coordinates; one number for each axis, or one for all

    Cost: O(nse log nse).
    See also: flip, pad.

    Examples
    --------
    >>> ow.roll(ow.asarray([0, 2, 3], format="coo"), 1).to_numpy()
    array([3, 0, 2])
    """
    t = as_tensor(x)
    if axis is None:
        return reshape(roll(reshape(t, (-1,)), shift, axis=0), t.shape)
    axes, shifts = integers(axis, "roll", "axis"), integers(shift, "roll", "shift")
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes\n  help: give as many of both")
    axes, shifts = axes * len(shifts) if len(axes) == 1 else axes, shifts * len(axes) if len(shifts) == 1 else shifts
    total = [0] * t.ndim
    for n, d in zip(shifts, axes, strict=True):
        total[axis_of(d, t.ndim, "roll")] += n
    total = [n % extent if extent else 0 for n, extent in zip(total, t.shape, strict=True)]
    if not any(total):
        return t.clone()

    def write(index_map: IndexMap) -> None:
        for d, n in enumerate(total):
            if n:
                shifted = index_map.bind(f"x{d} + {index_map.number(n)}")
                extent = index_map.number(t.shape[d])
                index_map.coordinates.append(f"{shifted} - ({extent} if {shifted} >= {extent} else 0)")
            else:
                index_map.keep(d)

    axes_rolled = tuple(range(t.ndim))
    return remap_one(t, t.shape, "roll", write, lambda a: np.roll(a, tuple(total), axes_rolled))


@operation(masked="moves")
def reshape(x: Any, /, shape: int | Sequence[int], *, order: str = "C", copy: bool | None = None) -> Tensor:
    """The elements, in row-major order, in another shape; one extent may be -1.

    order : "C", or "F" for the elements in column-major order, into a result that is read so

    Cost: O(nse), and a sort where the format is not walked in row-major order.
    Raises ShapeError where the sizes differ, ValueError for copy=False where the elements have to move.

    See also: Tensor.reshape, expand_dims, squeeze.

    Examples
    --------
    >>> ow.reshape(ow.asarray([0, 2, 3, 0], format="coo"), (2, 2)).to_numpy()
    array([[0, 2],
           [3, 0]])
    """
    t = as_tensor(x)
    if order != "C":
        return _column_major(t, shape, order, copy)
    target_shape = _resolve_shape(extents(shape, "reshape", negative=True), t.shape)
    if target_shape == t.shape and t.format.is_unique and t.format.is_ordered:
        return t.clone() if copy else t
    if copy is False and not t.format.is_dense:
        raise ValueError("reshape: the coordinates of a sparse tensor have to be computed anew\n  help: leave copy out")
    small = [n for n in target_shape if n != 1]
    if small == [n for n in t.shape if n != 1] and t.ndim and not t.format.is_dense:
        return _change_unit_dims(t, target_shape)
    if 1 < len(small) < len(target_shape) and any(level.format.is_bitmap for level in t.format.levels):
        # the bitmap stays over an extent of the elements; over one of 1 it would leave all others dense
        return _change_unit_dims(reshape(t, small), target_shape)
    return remap_one(
        t,
        target_shape,
        "reshape",
        lambda p: _write_reshape(p, t.shape, target_shape),
        lambda a: a.reshape(target_shape),
    )


def _column_major(t: Tensor, shape: Any, order: str, copy: bool | None) -> Tensor:
    if order != "F":
        raise UnsupportedError(f"reshape: order={order!r}\n  supported: 'C', 'F'\n  help: leave it out")
    reversed_shape = extents(shape, "reshape", negative=True)[::-1]
    return reshape(t.transpose(), reversed_shape, copy=copy).transpose()


def _resolve_shape(shape: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
    size, known_size = math.prod(old), math.prod(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise ShapeError(f"reshape: {shape} leaves more than one extent open\n  help: write -1 once")
    open_extent = size // known_size if known_size and size % known_size == 0 else -1
    resolved = tuple(open_extent if n == -1 else n for n in shape)
    if min(resolved, default=0) < 0 or math.prod(resolved) != size:
        raise ShapeError(
            f"reshape: cannot reshape array of size {size} into shape {shape}\n  got: shape {old}"
            "\n  help: the product of the extents has to stay"
        )
    return resolved


def _change_unit_dims(t: Tensor, target_shape: tuple[int, ...]) -> Tensor:
    """A reshape that only inserts or removes dimensions of extent 1, over the same buffers."""
    if len(target_shape) < t.ndim or any(n == 1 for n in t.shape):
        t = squeeze(t) if any(n != 1 for n in t.shape) else index(t, (0,) * t.ndim)
    new = tuple(r for r, n in enumerate(target_shape) if n == 1)
    return expand_dims(t, axis=new) if new else t


def _equal_size_groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[range, range]]:
    """Old and new extents -> the shortest runs of dimensions with equal products: (2, 6) and (4, 3) are one pair."""
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        old_start, new_start = i, j
        old_size = new_size = 1
        if i < len(old):
            old_size, i = old[i], i + 1
        if j < len(new):
            new_size, j = new[j], j + 1
        while old_size != new_size:
            if old_size < new_size:
                old_size, i = old_size * old[i], i + 1
            else:
                new_size, j = new_size * new[j], j + 1
        groups.append((range(old_start, i), range(new_start, j)))
    return groups


def _write_reshape(index_map: IndexMap, old: tuple[int, ...], new: tuple[int, ...]) -> None:
    index_map.natural = True
    if 0 in old:
        index_map.coordinates += ["0"] * len(new)
        return
    for old_group, new_group in _equal_size_groups(old, new):
        if len(old_group) == len(new_group) == 1:
            index_map.keep(old_group[0])
            continue
        linear = "0"
        for d in old_group:
            linear = f"x{d}" if linear == "0" else f"({linear}) * {index_map.number(old[d])} + x{d}"
        remainder = index_map.bind(linear, "place")
        digits: list[str] = []
        for r in reversed(new_group[1:]):
            extent = index_map.number(new[r])
            quotient = index_map.bind(f"{remainder} // {extent}", "above")
            digits.append(index_map.bind(f"{remainder} - {quotient} * {extent}", "digit"))
            remainder = quotient
        index_map.coordinates += [remainder, *reversed(digits)] if len(new_group) else []
