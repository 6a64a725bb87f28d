"""COO: coordinates (a row for each dimension) and values in row-major order -> a sparse array over a COO Tensor."""

from __future__ import annotations

import copy as _copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

import numpy as np
import scipy.sparse as scipys

import openwork as ow

from ... import Tensor
from ...interop.buffer_policy import BufferPolicy
from ...interop.pydata import from_pydata
from .base import CLASSES, SparseArray
from .buffers import Buffer, canonical, fits, linear, shape_of, stored

__all__ = ["COO", "as_coo"]


class COO(SparseArray):
    """A sparse array by coordinates: `coords`, `data`, `shape`, `fill_value`."""

    coords: Buffer
    _cache: Any = None

    def __init__(
        self, coords: Any, data: Any = None, shape: Any = None, has_duplicates: bool = True, sorted: bool = False,
        prune: bool = False, cache: bool = False, fill_value: Any = None, idx_dtype: Any = None,
    ) -> None:  # fmt: skip
        if isinstance(coords, COO):
            if data is not None or shape is not None:
                raise ValueError("If `coords` is `COO`, then no other arguments should be provided.")
            self._take(coords)
            if fill_value is not None:
                self.fill_value = self.dtype.type(fill_value)
        elif data is None:
            self._take(as_coo(coords, shape=shape, fill_value=fill_value, idx_dtype=idx_dtype))
        else:
            self._fill_in(coords, data, shape, fill_value, idx_dtype)
            if not sorted or has_duplicates:
                self.coords, self.data = canonical(self.coords, self.data, self.shape)
        if prune:
            self._take(self._pruned())
        if cache:
            self.enable_caching()

    def _fill_in(self, coords: Any, data: Any, shape: Any, fill_value: Any, idx_dtype: Any) -> None:
        """Take buffers over. Raises ValueError where they do not fit each other or the shape."""
        if shape is None:
            raise ValueError("`shape` was not provided.")
        shape, data, coords = shape_of(shape), np.asarray(data), np.asarray(coords)
        if coords.ndim == 1:
            coords = np.zeros((len(shape), len(data)), np.intp) if not coords.size and not shape else coords[None, :]
        if not coords.size:
            coords = np.zeros((len(shape), coords.shape[1] if not shape else 0), np.intp)
        data = np.broadcast_to(data, coords.shape[1]).copy() if not data.ndim else data
        if data.ndim != 1:
            raise ValueError("`data` must be a scalar or 1-dimensional.")
        if not shape:
            coords = np.zeros((0, len(data)), np.intp)
        if len(data) != coords.shape[1]:
            raise ValueError(
                f"The data length does not match the coordinates given.\n{len(data)} values, {coords.shape[1]} places"
            )
        if len(shape) != len(coords):
            raise ValueError(f"Shape {shape} doesn't match the shape of `coords`, which is {coords.shape}")
        extents = np.array(shape, np.int64)[:, None]
        if coords.size and ((coords < 0) | (coords >= extents)).any():
            raise ValueError("`coords` contains one or more out of bounds indices.")
        if idx_dtype is not None:
            if not fits(idx_dtype, max(shape, default=0)):
                raise ValueError(f"cannot cast array with shape {shape} to dtype {idx_dtype}.")
            coords = coords.astype(idx_dtype)
        self._hold(coords, data, shape, fill_value)

    def _hold(self, coords: Buffer, data: Buffer, shape: tuple[int, ...], fill: Any) -> None:
        self.coords, self.data, self.shape = coords, data, shape
        self.fill_value = np.zeros((), data.dtype)[()] if fill is None else np.asarray(fill).astype(data.dtype)[()]

    @classmethod
    def _plain(cls, coords: Buffer, data: Buffer, shape: tuple[int, ...], fill: Any) -> COO:
        """An array of canonical buffers."""
        self = object.__new__(cls)
        self._hold(coords, data, shape, fill)
        return self

    @classmethod
    def _of(cls, coo: COO, like: Any = None) -> COO:
        return coo

    @classmethod
    def _of_tensor(cls, t: Tensor) -> COO:
        """The array of a Tensor's elements that differ from its fill value; a Tensor of rank 0 is its fill value."""
        if not t.ndim:
            return cls.from_numpy(t.to_numpy())
        sorted_ = t.asformat("coo")
        crd: list[Any] = [sorted_.crd(k) for k in range(t.ndim)]
        data = np.asarray(sorted_.values)
        return cls._plain(np.stack(crd), data, t.shape, t.fill_value)._pruned()

    def _pruned(self) -> COO:
        """Without the elements that equal the fill value."""
        keep = stored(self.data, self.fill_value)
        if keep.all():
            return self
        return COO._plain(self.coords[:, keep], self.data[keep], self.shape, self.fill_value)

    @property
    def tensor(self) -> Tensor:
        """The Tensor over the same values."""
        held = self.__dict__.get("_tensor")
        if held is None or held[0] is not self.data or held[1] is not self.coords:
            coords = self.coords if self.coords.dtype in (np.int32, np.int64) else self.coords.astype(np.int64)
            view = COO._plain(coords, self.data, self.shape, self.fill_value)
            held = self.data, self.coords, from_pydata(view, BufferPolicy(None))
            self.__dict__["_tensor"] = held
        tensor: Tensor = held[2]
        return tensor

    @classmethod
    def from_numpy(cls, x: Any, fill_value: Any = None, idx_dtype: Any = None) -> COO:
        """The elements of a dense array that differ from the fill value; a number is its own fill value."""
        x = np.asarray(x)
        fill = fill_value if fill_value is not None else x[()] if not x.ndim else np.zeros((), x.dtype)[()]
        if idx_dtype is not None and not fits(idx_dtype, x.size):
            raise ValueError(f"cannot cast array with shape {x.shape} to dtype {idx_dtype}.")
        fill = np.asarray(fill).astype(x.dtype)[()]
        keep = np.asarray(stored(x, fill))
        coords = np.stack(np.nonzero(keep)) if x.ndim else np.zeros((0, int(keep)), np.intp)
        return cls._plain(coords.astype(idx_dtype or np.intp), x[keep].reshape(-1), x.shape, fill)

    @classmethod
    def from_scipy_sparse(cls, x: Any, /, *, fill_value: Any = None) -> COO:
        """The elements that SciPy's array stores."""
        x = x.asformat("coo")
        coords = np.stack(getattr(x, "coords", None) or (x.row, x.col))
        made = cls._plain(*canonical(coords, x.data, x.shape), x.shape, fill_value)
        return made if fill_value is not None else made._pruned()

    @classmethod
    def from_iter(cls, x: Any, shape: Any, fill_value: Any = None, dtype: Any = None) -> COO:
        """The array of pairs (coordinate, value), of a dict of them, or of (values, coordinates by dimension)."""
        items: Any = list(x.items()) if isinstance(x, dict) else x if isinstance(x, Sized) else list(x)
        if len(items) != 2 and not all(len(item) == 2 for item in items):
            raise ValueError("Invalid iterable to convert to COO.")
        shape = () if shape is None and not items else shape_of(shape) if shape is not None else None
        if not items:
            coords, data = np.empty((len(shape or ()), 0), np.intp), np.empty(0, dtype)
        elif not hasattr(items[0], "__len__") or not len(items[0]) or not np.iterable(items[0][0]):
            data = np.asarray(items[0], dtype=dtype)
            coords = np.stack(items[1]) if len(items[1]) else np.empty((0, data.size), np.intp)
        else:
            coords = np.array([place for place, _ in items]).T
            data = np.array([value for _, value in items], dtype=dtype)
        coords = coords.astype(np.intp) if not coords.size else coords
        if coords.ndim != 2 or data.ndim != 1 or coords.dtype.kind not in "iu" or (coords < 0).any():
            raise ValueError("Invalid iterable to convert to COO.")
        if shape is None:
            shape = tuple(int(n) + 1 for n in coords.max(axis=1))
        return cls(coords, data, shape=shape, fill_value=fill_value)

    @property
    def nbytes(self) -> int:
        """The bytes of coordinates and values."""
        return int(self.data.nbytes + self.coords.nbytes)

    def __sizeof__(self) -> int:
        return self.nbytes

    def linear_loc(self) -> Buffer:
        """The place of each stored element in row-major order."""
        return linear(self.coords, self.shape)

    def enable_caching(self) -> COO:
        """Keep the last few results of transpose, reshape, tocsr and tocsc."""
        self._cache = {}
        return self

    def _kept(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        if self._cache is None:
            return make()
        held = self._cache.setdefault(name, deque(maxlen=3))
        for known, found in held:
            if known == key:
                return found
        found = make()
        if isinstance(found, COO) and found is not self:
            found.enable_caching()
        held.append((key, found))
        return found

    def transpose(self, axes: Any = None) -> Any:
        """The dimensions in another order, reversed where none is given."""
        return self._kept("transpose", repr(axes), lambda: super(COO, self).transpose(axes))

    def reshape(self, shape: Any, order: str | None = "C") -> Any:
        """The elements, in row-major order, in another shape."""
        return self._kept("reshape", repr((shape, order)), lambda: super(COO, self).reshape(shape, order))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key == slice(None):
            return self
        return super().__getitem__(key)

    def tocsr(self) -> Any:
        """SciPy's CSR array."""
        return self._kept("tocsr", None, lambda: self._two().tocsr())

    def tocsc(self) -> Any:
        """SciPy's CSC array."""
        return self._kept("tocsc", None, lambda: self._two().tocsc())

    def _two(self) -> Any:
        if self.ndim != 2:
            raise ValueError("This array must be two-dimensional for this conversion to work.")
        return self.to_scipy_sparse()

    def tocoo(self) -> COO:
        """The array itself."""
        return self

    def copy(self, deep: bool = True) -> COO:
        """The array in buffers of its own, or over the same."""
        return _copy.deepcopy(self) if deep else _copy.copy(self)

    def __getstate__(self) -> Any:
        return self.coords, self.data, self.shape, self.fill_value

    def __setstate__(self, state: Any) -> None:
        self._hold(*state)

    def asformat(self, format: Any, **kwargs: Any) -> Any:
        """The array in another format."""
        return converted(self, format, **kwargs)

    def get_nodes(self) -> dict[str, Any]:
        """What `save_npz` stores."""
        return {
            "format": self.format, "shape": self.shape, "data": self.data, "coords": self.coords,
            "fill_value": self.fill_value,
        }  # fmt: skip

    @classmethod
    def from_nodes(cls, nodes: Any) -> COO:
        """The array of what `save_npz` stored."""
        shape, fill = tuple(int(n) for n in nodes["shape"]), nodes["fill_value"][()]
        return cls(nodes["coords"], nodes["data"], shape=shape, fill_value=fill)


def converted(x: SparseArray, format: Any, **kwargs: Any) -> Any:
    """An array in the format of a name or a class."""
    name = format.__name__.lower() if isinstance(format, type) and issubclass(format, SparseArray) else format
    if not isinstance(name, str):
        raise ValueError(f"Invalid format: {format}")
    if name not in CLASSES or name == "module":
        raise NotImplementedError(f"The given format {name!r} is not supported.")
    if name == x.format and not kwargs:
        return x
    if kwargs and name != "gcxs":
        raise TypeError(f"Invalid keyword arguments provided: {kwargs}")
    return CLASSES[name].from_coo(x.tocoo(), **kwargs) if name != "coo" else x.tocoo()


def as_coo(x: Any, shape: Any = None, fill_value: Any = None, idx_dtype: Any = None) -> COO:
    """The COO array of a sparse or dense array, of pairs or a dict of coordinates and values."""
    if hasattr(x, "shape") and shape is not None:
        raise ValueError("Cannot provide a shape in combination with something that already has a shape.")
    if hasattr(x, "fill_value") and fill_value is not None:
        raise ValueError("Cannot provide a fill-value in combination with something that already has a fill-value.")
    if isinstance(x, SparseArray):
        made: COO = x.tocoo()
        return made
    if isinstance(x, Tensor):
        return COO._of_tensor(x)
    if isinstance(x, np.ndarray) or np.isscalar(x):
        return COO.from_numpy(x, fill_value=fill_value, idx_dtype=idx_dtype)
    if scipys.issparse(x):
        return COO.from_scipy_sparse(x)
    if isinstance(x, Iterable | Iterator):
        return COO.from_iter(x, shape=shape, fill_value=fill_value)
    raise ow.UnsupportedError(f"as_coo: {type(x).__name__} is not an array\n  supported: arrays, pairs, dicts")
