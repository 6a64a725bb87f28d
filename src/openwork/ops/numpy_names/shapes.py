"""NumPy's functions that join, split and permute (`vstack`, `delete`, `rot90`, ...), by operations of the namespace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...integers import extents, integer
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...tensor.tensor import Tensor
from ..axes import axis_of
from .registry import numpy_function

__all__: list[str] = []


@numpy_function("transpose")
def transpose(a: Any, axes: Any = None) -> Any:
    """The dimensions in another order, reversed without `axes`."""
    t = asarray(a)
    return t.transpose() if axes is None else t.transpose(axes if isinstance(axes, Sequence) else (axes,))


@numpy_function("ravel")
def ravel(a: Any, order: str = "C") -> Any:
    """All elements in one dimension, row-major, or column-major for "F"."""
    t = asarray(a)
    if order not in ("C", "F", "A", "K"):
        raise UnsupportedError(f"numpy.ravel: order={order!r}\n  supported: 'C', 'F'")
    return namespace().reshape(t.T if order == "F" else t, (-1,))


def at_least(a: Any, ndim: int) -> Any:
    """The operand with at least `ndim` dimensions, the new ones where NumPy's `atleast_1d` to `atleast_3d` put them."""
    t = asarray(a)
    if t.ndim >= ndim:
        return t
    ow = namespace()
    if ndim == 3:
        shape = {0: (1, 1, 1), 1: (1, *t.shape, 1), 2: (*t.shape, 1)}[t.ndim]
        return ow.reshape(t, shape)
    return ow.reshape(t, (1,) * (ndim - t.ndim) + t.shape)


def _at_least_each(arys: Sequence[Any], ndim: int) -> Any:
    results = tuple(at_least(a, ndim) for a in arys)
    return results[0] if len(results) == 1 else results


@numpy_function("atleast_1d")
def atleast_1d(*arys: Any) -> Any:
    """The operands with one dimension at least."""
    return _at_least_each(arys, 1)


@numpy_function("atleast_2d")
def atleast_2d(*arys: Any) -> Any:
    """The operands with two dimensions at least."""
    return _at_least_each(arys, 2)


@numpy_function("atleast_3d")
def atleast_3d(*arys: Any) -> Any:
    """The operands with three dimensions at least."""
    return _at_least_each(arys, 3)


def _concat(parts: Any, axis: int, dtype: Any = None) -> Any:
    result = namespace().concat(parts, axis=axis)
    return result if dtype is None else result.astype(dtype)


@numpy_function("vstack", "row_stack")
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """The operands one below the other; vectors are rows."""
    return _concat([at_least(a, 2) for a in tup], 0, dtype)


@numpy_function("hstack")
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """The operands side by side; vectors one behind the other."""
    parts = [at_least(a, 1) for a in tup]
    return _concat(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


@numpy_function("dstack")
def dstack(tup: Any) -> Any:
    """The operands along a third dimension."""
    return _concat([at_least(a, 3) for a in tup], 2)


@numpy_function("column_stack")
def column_stack(tup: Any) -> Any:
    """Vectors as columns, matrices side by side."""
    parts = [asarray(a) for a in tup]
    return _concat([a if a.ndim >= 2 else namespace().reshape(a, (-1, 1)) for a in parts], 1)


@numpy_function("block")
def block(arrays: Any) -> Any:
    """Nested lists of operands as one, the innermost side by side."""
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0] if inner else None
    leaves = _leaves(arrays)
    ndim = max([depth, *(np.ndim(x) if not isinstance(x, Tensor) else x.ndim for x in leaves)])
    return _block(arrays, depth, ndim)


def _leaves(x: Any) -> list[Any]:
    return [item for part in x for item in _leaves(part)] if isinstance(x, list) else [x]


def _block(x: Any, depth: int, ndim: int) -> Any:
    if not isinstance(x, list):
        t = asarray(x)
        return namespace().reshape(t, (1,) * (ndim - t.ndim) + t.shape)
    return _concat([_block(part, depth - 1, ndim) for part in x], ndim - depth)


@numpy_function("append")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """`values` behind the elements along an axis, both flat without."""
    a, b = asarray(arr), asarray(values)
    if axis is None:
        return _concat([namespace().reshape(x, (-1,)) for x in (a, b)], 0)
    return _concat([a, b], axis)


def _indices_along(obj: Any, extent: int) -> Any:
    if isinstance(obj, slice):
        return np.arange(extent)[obj]
    indices = np.asarray(obj.to_numpy() if isinstance(obj, Tensor) else obj)
    if not indices.size and isinstance(obj, list | tuple):
        return indices.astype(np.intp)
    return np.flatnonzero(indices) if indices.dtype == bool else indices


@numpy_function("delete")
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """The array without the coordinates `obj` along an axis."""
    t = asarray(arr)
    if axis is None:
        t, axis = namespace().reshape(t, (-1,)), 0
    axis = axis_of(axis, t.ndim, "delete")
    remaining = np.delete(np.arange(t.shape[axis]), _indices_along(obj, t.shape[axis]))
    return namespace().take(t, remaining, axis=axis)


@numpy_function("insert")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """The array with `values` in front of the coordinates `obj` along an axis."""
    t, ow = asarray(arr), namespace()
    if axis is None:
        t, axis = ow.reshape(t, (-1,)), 0
    axis = axis_of(axis, t.ndim, "insert")
    extent = t.shape[axis]
    positions = _indices_along(obj, extent)
    new = asarray(values).astype(t.dtype)
    count = positions.size
    if count == 1:  # one place takes any number of values
        new = ow.reshape(new, (1,) * (t.ndim - new.ndim) + new.shape)
        new = new if positions.ndim else ow.moveaxis(new, 0, axis)
        count = new.shape[axis]
    order = np.insert(np.arange(extent), positions, np.arange(extent, extent + count))
    shape = tuple(count if d == axis else n for d, n in enumerate(t.shape))
    return ow.take(ow.concat([t, ow.broadcast_to(new, shape)], axis=axis), order, axis=axis)


def _section_bounds(sections: Any, extent: int, equal: bool, name: str) -> list[int]:
    """Indices or a number of sections -> the bounds of all parts, 0 and the extent included."""
    if getattr(sections, "ndim", 0) or isinstance(sections, list | tuple):
        return [0, *(integer(k, name, "indices_or_sections") for k in sections), extent]
    n = integer(sections, name, "indices_or_sections")
    if n <= 0 or (equal and extent % n):
        raise ShapeError(f"{name}: an extent of {extent} into {n} parts\n  help: array_split takes unequal parts")
    sizes = [extent // n + (k < extent % n) for k in range(n)]
    return [0, *np.cumsum(sizes).tolist()]


def _split(ary: Any, sections: Any, axis: int, equal: bool, name: str) -> list[Any]:
    t = asarray(ary)
    d = axis_of(axis, t.ndim, name)
    cuts = _section_bounds(sections, t.shape[d], equal, name)
    return [t[(*(slice(None),) * d, slice(lo, hi))] for lo, hi in pairwise(cuts)]


@numpy_function("split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Equal parts along an axis, or those that begin at the indices."""
    return _split(ary, indices_or_sections, axis, True, "split")


@numpy_function("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis, the first ones longer by one where they cannot be equal."""
    return _split(ary, indices_or_sections, axis, False, "array_split")


@numpy_function("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts side by side."""
    return _split(ary, indices_or_sections, 1 if asarray(ary).ndim > 1 else 0, True, "hsplit")


@numpy_function("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts one below the other."""
    if asarray(ary).ndim < 2:
        raise ShapeError("vsplit: expected two dimensions or more\n  help: split")
    return _split(ary, indices_or_sections, 0, True, "vsplit")


@numpy_function("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the third dimension."""
    if asarray(ary).ndim < 3:
        raise ShapeError("dsplit: expected three dimensions or more\n  help: split")
    return _split(ary, indices_or_sections, 2, True, "dsplit")


@numpy_function("fliplr")
def fliplr(m: Any) -> Any:
    """The second dimension in reverse order."""
    return namespace().flip(m, axis=1)


@numpy_function("flipud")
def flipud(m: Any) -> Any:
    """The first dimension in reverse order."""
    return namespace().flip(m, axis=0)


@numpy_function("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turned by `k` quarters in the plane of two dimensions."""
    ow, t = namespace(), asarray(m)
    first, second = (axis_of(a, t.ndim, "rot90") for a in axes)
    if first == second:
        raise ShapeError(f"rot90: axes {tuple(axes)} are one dimension\n  help: name two")
    k = integer(k, "rot90", "k") % 4
    if k == 0:
        return t
    if k == 2:
        return ow.flip(t, axis=(first, second))
    return (
        ow.swapaxes(ow.flip(t, axis=second), first, second)
        if k == 1
        else ow.flip(ow.swapaxes(t, first, second), axis=second)
    )


@numpy_function("rollaxis")
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """A dimension moved in front of another one."""
    t = asarray(a)
    d = axis_of(axis, t.ndim, "rollaxis")
    start = integer(start, "rollaxis", "start")
    start = start + t.ndim if start < 0 else start
    order = [k for k in range(t.ndim) if k != d]
    order.insert(start - (d < start), d)
    return t.transpose(order)


@numpy_function("resize")
def resize(a: Any, new_shape: Any) -> Any:
    """Another shape, the elements repeated as often as it takes."""
    shape, ow = extents(new_shape, "resize"), namespace()
    flat, size = ow.reshape(asarray(a), (-1,)), int(np.prod(shape, dtype=np.int64))
    if not flat.size or not size:
        return ow.zeros(shape, dtype=flat.dtype)
    return ow.reshape(ow.tile(flat, -(-size // flat.size))[:size], shape)


@numpy_function("trim_zeros")
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The array without the zeros in front ("f") and behind ("b")."""
    t = asarray(filt)
    nonzeros = [c.to_numpy() for c in namespace().nonzero(t)]
    axes = range(t.ndim) if axis is None else [axis_of(axis, t.ndim, "trim_zeros")]
    key = [slice(None)] * t.ndim
    for d in axes:
        lo, hi = (int(nonzeros[d].min()), int(nonzeros[d].max()) + 1) if len(nonzeros[d]) else (t.shape[d], t.shape[d])
        key[d] = slice(lo if "f" in trim.lower() else 0, hi if "b" in trim.lower() else t.shape[d])
        if not len(nonzeros[d]):
            key[d] = slice(0, 0)
    return t[tuple(key)]
