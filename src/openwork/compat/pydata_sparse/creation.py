"""Shapes, numbers and other libraries' arrays -> pydata/sparse's arrays; npz files -> arrays and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as scipys

from .base import CLASSES, SparseArray
from .buffers import fits, shape_of
from .coo import COO

__all__ = ["asarray", "empty", "empty_like", "eye", "full", "full_like", "load_npz", "ones", "ones_like", "random",
           "save_npz", "zeros", "zeros_like"]  # fmt: skip

_generator = np.random.default_rng()


def _cpu(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError('Device must be `"cpu"` or `None`.')


def random(
    shape: Any, density: float | None = None, nnz: int | None = None, random_state: Any = None, data_rvs: Any = None,
    format: Any = "coo", fill_value: Any = None, idx_dtype: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """An array with so many stored elements at uniform places; their values from `data_rvs(n)`, or of [0, 1)."""
    if density is not None and nnz is not None:
        raise ValueError("'density' and 'nnz' are mutually exclusive")
    shape, density = shape_of(shape), 0.01 if density is None else density
    if not 0 <= density <= 1:
        raise ValueError(f"density {density} is not in the unit interval")
    size = int(np.prod(shape, dtype=np.int64))
    count = int(size * density) if nnz is None else nnz
    if not 0 <= count <= size:
        raise ValueError(f"cannot generate {count} nonzero elements for an array with {size} total elements")
    if idx_dtype is not None and not fits(idx_dtype, max(shape, default=0)):
        raise ValueError(f"cannot cast array with shape {shape} to dtype {idx_dtype}.")
    draw = _generator if random_state is None else np.random.default_rng(random_state)
    places = np.sort(draw.choice(size, count, replace=False)) if size else np.zeros(0, np.intp)
    data = np.asarray((data_rvs or draw.random)(count))
    coords = np.stack(np.unravel_index(places, shape)) if shape else np.zeros((0, count), np.intp)
    if data.ndim != 1 or len(data) != count:
        raise ValueError(f"data_rvs({count}) has to give {count} values, gave shape {data.shape}")
    made = COO._plain(coords.astype(idx_dtype or np.intp), data, shape, fill_value)
    return made.asformat(format, **kwargs)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = float, format: Any = "coo", *, device: Any = None, **kw: Any
) -> Any:  # fmt: skip
    """Ones on a diagonal of an N x M matrix."""
    _cpu(device)
    N, k = int(N), int(k)
    M = N if M is None else int(M)
    rows = np.arange(max(0, -k), min(N, M - k))
    data = np.ones(len(rows), dtype)
    return COO._plain(np.stack([rows, rows + k]), data, (N, M), None).asformat(format, **kw)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, format: Any = "coo", order: str | None = "C", *,
    device: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """An array that is its fill value everywhere."""
    _cpu(device)
    if order not in ("C", None):
        raise NotImplementedError("Currently, only 'C' and None are supported.")
    shape = shape_of(shape)
    data = np.empty(0, np.asarray(fill_value).dtype if dtype is None else dtype)
    return COO._plain(np.empty((len(shape), 0), np.intp), data, shape, fill_value).asformat(format, **kwargs)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, format: Any = None, *, device: Any = None, **kw: Any
) -> Any:  # fmt: skip
    """An array that is its fill value everywhere, of the shape, dtype and format of another."""
    _cpu(device)
    kw.pop("order", None)
    sparse = isinstance(a, SparseArray)
    format = format or (a.format if sparse else "coo")
    shape = a.shape if shape is None else shape
    axes = kw.pop("compressed_axes", None)
    made = full(shape, fill_value, dtype=a.dtype if dtype is None else dtype, format=format)
    axes = getattr(a, "compressed_axes", None) if axes is None and made.shape == a.shape else axes
    return made.change_compressed_axes(axes) if axes and made.format == "gcxs" else made


def zeros(shape: Any, dtype: Any = float, format: Any = "coo", *, device: Any = None, **kwargs: Any) -> Any:
    """An array of zeros."""
    return full(shape, 0, dtype=np.dtype(dtype), format=format, device=device, **kwargs)


def ones(shape: Any, dtype: Any = float, format: Any = "coo", *, device: Any = None, **kwargs: Any) -> Any:
    """An array whose fill value is 1."""
    return full(shape, 1, dtype=np.dtype(dtype), format=format, device=device, **kwargs)


def empty(shape: Any, dtype: Any = float, format: Any = "coo", *, device: Any = None, **kwargs: Any) -> Any:
    """An array of zeros."""
    return zeros(shape, dtype, format, device=device, **kwargs)


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, format: Any = None, *, device: Any = None, **kw: Any
) -> Any:
    """An array of zeros like another."""
    return full_like(a, 0, dtype=dtype, shape=shape, format=format, device=device, **kw)


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, format: Any = None, *, device: Any = None, **kw: Any
) -> Any:
    """An array like another whose fill value is 1."""
    return full_like(a, 1, dtype=dtype, shape=shape, format=format, device=device, **kw)


def empty_like(
    a: Any, dtype: Any = None, shape: Any = None, format: Any = None, *, device: Any = None, **kw: Any
) -> Any:
    """An array of zeros like another."""
    return full_like(a, 0, dtype=dtype, shape=shape, format=format, device=device, **kw)


def asarray(obj: Any, /, *, dtype: Any = None, format: Any = None, copy: bool = False, device: Any = None) -> Any:
    """A sparse array of a sparse or dense one, in a dtype and a format."""
    _cpu(device)
    if format not in (None, "coo", "dok", "gcxs", "csc", "csr"):
        raise ValueError(f"{format} format not supported.")
    if isinstance(obj, SparseArray):
        made: Any = obj
        made = made.copy() if copy else made
        made = made if format is None else made.asformat(format)
        return made if dtype is None or made.dtype == dtype else made.astype(dtype)
    kind = CLASSES[format or "coo"]
    if scipys.issparse(obj):
        made = kind.from_scipy_sparse(obj)
    elif np.isscalar(obj) or isinstance(obj, np.ndarray | Iterable):
        made = kind.from_numpy(np.asarray(obj))
    else:
        raise ValueError(f"{type(obj)} not supported.")
    return made if dtype is None else made.astype(dtype, copy=copy)


def save_npz(filename: Any, matrix: Any, compressed: bool = True) -> None:
    """Write an array as pydata/sparse's npz file, which is not SciPy's."""
    if not hasattr(matrix, "get_nodes"):
        raise ValueError(f"Cannot save array of type {type(matrix).__name__} to npz")
    (np.savez_compressed if compressed else np.savez)(filename, **matrix.get_nodes())


def load_npz(filename: Any) -> Any:
    """The array that `save_npz`, here or of pydata/sparse, wrote."""
    with np.load(filename) as nodes:
        name = nodes["format"].item()
        if name not in CLASSES or not hasattr(CLASSES[name], "from_nodes"):
            raise AttributeError(f"load_npz: unknown format {name!r}")
        return CLASSES[name].from_nodes(nodes)
