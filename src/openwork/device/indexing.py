"""Elements by an index key on a device: spans and integers are a filter, index arrays a join with their numbers."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import FormatError, ShapeError, UnsupportedError
from ..format.format import Format
from ..ops.axes import axes_of, swapped_axes
from ..ops.indexing.keys import Group, Selection, select
from ..ops.result_format import candidates
from ..provided import provides
from ..runtime.leading_slice import outer_dim
from ..tensor.tensor import Tensor
from .adapter import Memory
from .conversion import assembled, summed
from .coordinates import Elements, elements_of
from .joins import key_of, pairs
from .kernels import each
from .operations import on_device, refused
from .tensor import DeviceTensor
from .vector import chosen, fill, gather

__all__ = ["index", "selected"]


@provides("device index")
def index(t: DeviceTensor, key: Any) -> DeviceTensor:
    """`t[key]` with NumPy's keys; one element is a tensor of rank 0. Index arrays are the host's, and moved there."""
    if t.is_recorded:
        raise refused("indexing", (t,), "torch records the values, and this has no gradient there; detach()")
    in_order = t.format.is_unique and t.format.is_ordered
    found, t = selected(t, key)
    by, outer = select(key, t.shape), outer_dim(t.format)
    new = tuple(k for k, axis in enumerate(by.axes) if axis.dim is None)
    whole = not by.has_arrays and by.shape and all(span.covers(t.shape[d]) for d, span in by.spans.items())
    own = []
    if whole and (by.integers.keys() == {outer} if by.integers else new and in_order) and not (by.integers and new):
        own = [_format_of(t.format, outer if by.integers else None, new)]
    for target in (*own, *candidates(t.format, found.shape, found.values.length)):
        try:
            return assembled(found, target, t.fill_value, True)
        except (FormatError, ShapeError, UnsupportedError):
            continue
    return assembled(found, t.asformat("coo").format, t.fill_value, True)


@lru_cache(maxsize=1024)
def _format_of(format: Format, dropped: int | None, new: tuple[int, ...]) -> Format:
    """The format without its outermost dimension, or with new ones: the host's, of a small tensor."""
    tiny = Tensor._from_dense(np.zeros((4,) * format.ndim)).asformat(format)
    key: list[Any] = [0 if d == dropped else slice(None) for d in range(format.ndim)]
    for k in new:
        key.insert(k, None)
    return tiny[tuple(key)].format


def selected(t: DeviceTensor, key: Any) -> tuple[Elements, DeviceTensor]:
    """The elements at a key, and the tensor without duplicates."""
    chosen_by = select(key, t.shape)
    t = summed(t)
    e = _in_spans(elements_of(t), chosen_by)
    numbers: dict[int, Memory] = {}
    for group in chosen_by.groups:
        e, numbers = _by_arrays(e, group, numbers)
    device, n = e.values.device, e.values.length
    coordinates = []
    for axis in chosen_by.axes:
        if axis.dim is not None:
            coordinates.append(e.coordinates[axis.dim])
        elif axis.array is not None and axis.array in numbers:
            coordinates.append(numbers[axis.array])
        else:
            coordinates.append(fill(device, n, 0, "i64"))
    return Elements(chosen_by.shape, coordinates, e.values), t


def _in_spans(e: Elements, by: Selection) -> Elements:
    """The elements at integers and in slices, with their numbers there as coordinates."""
    device, n = e.values.device, e.values.length
    kept = fill(device, n, 1, "i64")
    coordinates = list(e.coordinates)
    for d, k in by.integers.items():
        each(device, n, "y[t] = y[t] & i64(c[t] == k)", {"y": kept}, c=e.coordinates[d], k=k)
    for d, span in by.spans.items():
        if span.covers(e.shape[d]):
            continue
        out = device.memory(n, "i64")
        body = """
q = (c[t] - start) // step
inside = i64(start + q * step == c[t]) & i64(q >= 0) & i64(q < count)
out[t] = q
y[t] = y[t] & inside
""".strip("\n")
        each(
            device, n, body, {"y": kept, "out": out}, c=e.coordinates[d], start=span.start, step=span.step,
            count=span.count,
        )  # fmt: skip
        coordinates[d] = out
    return Elements(e.shape, coordinates, e.values).at(chosen(kept))


def _by_arrays(e: Elements, group: Group, numbers: dict[int, Memory]) -> tuple[Elements, dict[int, Memory]]:
    """The elements at the coordinates that index arrays hold, once for each time, and their places in the arrays."""
    device, dims = e.values.device, list(group.arrays)
    extents = [e.shape[d] for d in dims]
    arrays = [device.of(np.asarray(group.arrays[d], np.int64), "i64") for d in dims]
    left = key_of([e.coordinates[d] for d in dims], extents, e.values.length, e.values, "indexing")
    right = key_of(arrays, extents, arrays[0].length, e.values, "indexing")
    at, place = pairs(left, right, math.prod(extents))
    numbers = {axis: gather(x, at) for axis, x in numbers.items()}
    step = math.prod(group.shape)
    for axis, extent in zip(group.axes, group.shape, strict=True):
        step //= max(1, extent)
        out = device.memory(at.length, "i64")
        each(device, at.length, "y[t] = p[t] // step % extent", {"y": out}, p=place, step=step, extent=extent)
        numbers[axis] = out
    return e.at(at), numbers


@on_device("permute_dims")
def permute_dims(t: DeviceTensor, axes: Any) -> DeviceTensor:
    """The dimensions in another order, over the same buffers."""
    order = axes_of(axes, t.ndim, "permute_dims")
    if len(order) != t.ndim:
        raise ShapeError(f"permute_dims: axes {order} of a tensor of rank {t.ndim}\n  help: name each axis once")
    return t.transpose(order)


@on_device("swapaxes")
def swapaxes(t: DeviceTensor, axis1: int, axis2: int) -> DeviceTensor:
    """Two dimensions exchanged, over the same buffers."""
    return t.transpose(swapped_axes(t.ndim, axis1, axis2, "swapaxes"))


@on_device("matrix_transpose")
def matrix_transpose(t: DeviceTensor) -> DeviceTensor:
    """The last two dimensions exchanged, over the same buffers."""
    return swapaxes(t, -2, -1)
