"""DOK: a dict of coordinates and values, which can be assigned to -> a sparse array over a COO Tensor."""

from __future__ import annotations

import copy as _copy
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as scipys

from ... import Tensor
from .base import SparseArray
from .buffers import equivalent, shape_of
from .coo import COO, as_coo, converted

__all__ = ["DOK"]


class DOK(SparseArray):
    """A sparse array by a dict: `data[coordinate]` is the element there; elements can be set."""

    _dtype: Any

    def __init__(self, shape: Any, data: Any = None, dtype: Any = None, fill_value: Any = None) -> None:
        if isinstance(shape, COO | np.ndarray) or scipys.issparse(shape) or isinstance(shape, SparseArray):
            self._take(DOK.from_numpy(shape) if isinstance(shape, np.ndarray) else DOK.from_coo(as_coo(shape)))
            return
        if data is not None and not isinstance(data, dict):
            raise ValueError("data must be a dict.")
        self.shape, self.data = shape_of(shape), {}
        if dtype is None:
            dtype = np.result_type(*(np.asarray(x).dtype for x in data.values())) if data else np.float64
        self._dtype = np.dtype(dtype)
        self.fill_value = np.asarray(0 if fill_value is None else fill_value).astype(dtype)[()]
        for place, value in (data or {}).items():
            self[place] = value

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """The bytes of coordinates and values, as NumPy arrays."""
        return self.nnz * (8 * self.ndim + int(self._dtype.itemsize))

    @classmethod
    def _of(cls, coo: COO, like: Any = None) -> DOK:
        made = object.__new__(cls)
        made.shape, made._dtype, made.fill_value = coo.shape, coo.dtype, coo.fill_value
        made.data = dict(zip(zip(*coo.coords.tolist(), strict=True) if coo.ndim else [()], coo.data, strict=False))
        return made

    from_coo = _of

    @classmethod
    def from_numpy(cls, x: Any) -> DOK:
        """The elements of a dense array that are not 0."""
        x = np.asarray(x)
        return cls._of(COO.from_numpy(x, fill_value=x.dtype.type(0)))

    @classmethod
    def from_scipy_sparse(cls, x: Any, /, *, fill_value: Any = None) -> DOK:
        """The elements that SciPy's array stores."""
        return cls._of(COO.from_scipy_sparse(x, fill_value=fill_value))

    def to_coo(self) -> COO:
        """The COO array of the same elements."""
        coords = np.array(list(self.data), np.intp).reshape(len(self.data), self.ndim).T
        data = np.fromiter(self.data.values(), self._dtype, len(self.data))
        return COO(coords, data, shape=self.shape, fill_value=self.fill_value)

    tocoo = to_coo

    @property
    def tensor(self) -> Tensor:
        """The Tensor of the elements."""
        return self.to_coo().tensor

    def asformat(self, format: Any, **kwargs: Any) -> Any:
        """The array in another format."""
        return converted(self, format, **kwargs)

    def copy(self, deep: bool = True) -> DOK:
        """The array with a dict of its own, or with the same."""
        return _copy.deepcopy(self) if deep else _copy.copy(self)

    def _lists(self, key: Any) -> Any:
        """A key that has a sequence for every dimension, as integers; None for other keys."""
        if not key or not all(np.iterable(k) for k in key):
            return None
        if len(key) != self.ndim:
            raise NotImplementedError(f"Index sequences for all {self.ndim} array dimensions needed!")
        if len({len(k) for k in key}) > 1:
            raise IndexError("Unequal length of index sequences!")
        lists = [np.asarray(k) for k in key]
        if any(k.dtype.kind not in "iu" or k.ndim != 1 for k in lists):
            raise IndexError("Indices must be sequences of integers!")
        for k, n in zip(lists, self.shape, strict=True):
            if k.size and not (-n <= k.min() and k.max() < n):
                raise IndexError(f"index out of bounds for extent {n}")
        return [k % max(n, 1) for k, n in zip(lists, self.shape, strict=True)]

    def __getitem__(self, key: Any) -> Any:
        self._lists(key if isinstance(key, tuple) else (key,))
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        value = np.asarray(value, dtype=self._dtype)
        lists = self._lists(key if isinstance(key, tuple) else (key,))
        if lists is not None:
            if value.ndim > 1 or (value.ndim and value.shape != lists[0].shape):
                raise ValueError(f"Shape mismatch of indices {lists[0].shape} and values {value.shape}!")
            places: Any = zip(*lists, strict=True)
            values = np.broadcast_to(value, lists[0].shape)
        else:
            ranges = self._ranges(key)
            shape = tuple(len(r) for r in ranges if isinstance(r, range))
            if value.ndim > len(shape):
                raise ValueError("setting an array element with a sequence.")
            places = product(*((r if isinstance(r, range) else [r]) for r in ranges))
            values = np.broadcast_to(value, shape).reshape(-1)
        for place, element in zip(places, values, strict=True):
            where = tuple(int(k) for k in place)
            if equivalent(element, self.fill_value):
                self.data.pop(where, None)
            else:
                self.data[where] = element

    def _ranges(self, key: Any) -> list[Any]:
        """A key of integers, slices and an ellipsis as a number or a range for each dimension."""
        given = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in given:
            at = given.index(Ellipsis)
            given[at : at + 1] = [slice(None)] * (self.ndim - len(given) + 1)
        if len(given) > self.ndim:
            raise IndexError(f"{len(given)} indices for {self.ndim} dimensions")
        out: list[Any] = []
        for k, n in zip([*given, *[slice(None)] * (self.ndim - len(given))], self.shape, strict=True):
            if isinstance(k, slice):
                out.append(range(*k.indices(n)))
            elif isinstance(k, int | np.integer) and -n <= k < n:
                out.append(int(k) % n)
            else:
                raise IndexError(f"{k!r} is not an index of a dimension of extent {n}")
        return out
