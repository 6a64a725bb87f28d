"""NumPy's functions that write into an operand (`put`, `place`, `putmask`, ...): the Tensor is changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...integers import integer
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...tensor.tensor import Tensor
from ..axes import axis_of
from .registry import numpy_function

__all__: list[str] = []


def _host(x: Any) -> np.ndarray[Any, Any]:
    return x.to_numpy() if isinstance(x, Tensor) else np.asarray(x)


def _require_tensor(a: Any, name: str) -> Tensor:
    if not isinstance(a, Tensor):
        raise UnsupportedError(f"numpy.{name}: changes an array by a Tensor\n  help: to_numpy() of the Tensor first")
    return a


@numpy_function("put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`v`, again and again, at places of the row-major order."""
    t = _require_tensor(a, "put")
    if mode != "raise":
        raise UnsupportedError(f"numpy.put: mode={mode!r} of a Tensor\n  supported: 'raise'")
    flat_indices = _host(ind).reshape(-1)
    out_of_bounds = flat_indices[(flat_indices < -t.size) | (flat_indices >= t.size)]
    if out_of_bounds.size:
        raise IndexError(f"put: place {out_of_bounds[0]} of {t.size} elements")
    values = np.resize(_host(v), flat_indices.shape)
    t[np.unravel_index(flat_indices % max(t.size, 1), t.shape)] = values


@numpy_function("place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """`vals`, again and again, where the mask is true."""
    t = _require_tensor(arr, "place")
    coordinates = _true_coordinates(mask, t.shape, "place")
    if len(coordinates[0]) and not np.size(vals):
        raise ShapeError("place: no values for the places of the mask\n  help: give one")
    t[coordinates] = np.resize(_host(vals), len(coordinates[0]))


@numpy_function("putmask")
def putmask(a: Any, mask: Any, values: Any) -> None:
    """The element of `values`, again and again, of the same place, where the mask is true."""
    t = _require_tensor(a, "putmask")
    coordinates = _true_coordinates(mask, t.shape, "putmask")
    v = _host(values).reshape(-1)
    t[coordinates] = v[np.ravel_multi_index(coordinates, t.shape) % max(v.size, 1)]


def _true_coordinates(mask: Any, shape: tuple[int, ...], name: str) -> tuple[Any, ...]:
    """The coordinates at which a mask of the tensor's shape is true."""
    m = asarray(mask)
    if m.shape != shape:
        raise ShapeError(f"{name}: a mask of shape {m.shape} for shape {shape}\n  help: make them equal")
    return tuple(c.to_numpy() for c in namespace().nonzero(m))


@numpy_function("fill_diagonal")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`val` on the main diagonal."""
    t = _require_tensor(a, "fill_diagonal")
    if t.ndim < 2 or wrap or (t.ndim > 2 and len(set(t.shape)) > 1):
        raise UnsupportedError(
            f"numpy.fill_diagonal of shape {t.shape}\n  supported: matrices, and tensors of equal extents, wrap=False"
        )
    n = min(t.shape)
    values = _host(val)
    t[(np.arange(n),) * t.ndim] = values if not values.ndim else np.resize(values, n)


@numpy_function("put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """`values` at the coordinates `indices` along an axis."""
    t = _require_tensor(arr, "put_along_axis")
    if axis is None:
        put(t, indices, values)
        return
    d, crd = axis_of(integer(axis, "put_along_axis", "axis"), t.ndim, "put_along_axis"), _host(indices)
    key = np.meshgrid(*(np.arange(n) for n in crd.shape), indexing="ij", sparse=True)
    t[(*key[:d], crd, *key[d + 1 :])] = values
