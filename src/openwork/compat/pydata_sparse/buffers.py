"""Coordinates, values and fill values as pydata/sparse keeps them -> NumPy arrays in its canonical order."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["axes_of", "canonical", "equivalent", "fits", "linear", "shape_of", "stored"]

Buffer = np.ndarray[Any, Any]


def equivalent(a: Any, b: Any) -> Any:
    """Whether elements are the same bits: NaN is NaN, and -0.0 is not 0.0."""
    a, b = np.asarray(a), np.asarray(b)
    common = np.result_type(a.dtype, b.dtype)
    if common.kind not in "fc":
        return a == b
    a, b = np.broadcast_arrays(a.astype(common)[..., None], b.astype(common)[..., None])
    if not a.size:
        return np.empty(a.shape[:-1], np.bool_)
    a, b = (np.ascontiguousarray(x).view(np.uint8) for x in (a, b))
    return (a == b).all(axis=-1)


def stored(data: Buffer, fill: Any) -> Buffer:
    """Which values differ from the fill value."""
    return np.asarray(~equivalent(data, fill))


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape from a number or several."""
    given = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if not all(isinstance(n, int | np.integer) and n >= 0 for n in given):
        raise ValueError(f"shape: numbers from 0 on expected, got {shape!r}")
    return tuple(operator.index(n) for n in given)


def axes_of(axes: Any, ndim: int) -> Any:
    """Axes counted from the front. Raises pydata/sparse's ValueError for what is no axis."""
    if isinstance(axes, int | np.integer):
        if not -ndim <= axes < ndim:
            raise ValueError(f"Invalid axis index {axes} for ndim={ndim}")
        return operator.index(axes) % ndim
    listed = tuple(axes) if isinstance(axes, Iterable) else (None,)
    if not all(isinstance(a, int | np.integer) for a in listed):
        raise ValueError(f"axis {axes} not understood")
    return tuple(axes_of(a, ndim) for a in listed)


def fits(dtype: Any, largest: int) -> bool:
    """Whether an index dtype holds a number."""
    return largest <= np.iinfo(dtype).max


def linear(coords: Buffer, shape: tuple[int, ...]) -> Buffer:
    """The place of each coordinate in row-major order."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return np.asarray(sum((c.astype(np.int64) * s for c, s in zip(coords, strides, strict=True)), np.int64(0)))


def canonical(coords: Buffer, data: Buffer, shape: tuple[int, ...]) -> tuple[Buffer, Buffer]:
    """Coordinates in row-major order, values at one place summed."""
    if not shape:
        return coords[:, :1], data[:1] if len(data) < 2 else data.sum(keepdims=True).astype(data.dtype)
    places = linear(coords, shape)
    steps = np.diff(places)
    if (steps > 0).all():
        return coords, data
    order = np.argsort(places, kind="stable")
    coords, data, places = coords[:, order], data[order], places[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(places) > 0]))
    if len(first) == len(data):
        return coords, data
    return coords[:, first], np.add.reduceat(data, first).astype(data.dtype)
