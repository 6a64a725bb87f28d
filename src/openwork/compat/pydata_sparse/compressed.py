"""GCXS, CSR, CSC: compressed dimensions as rows, the others as columns -> a sparse array over a Tensor."""

from __future__ import annotations

import copy as _copy
import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as scipys

from ... import Tensor
from ...interop.buffer_policy import BufferPolicy
from ...interop.pydata import from_pydata
from .base import CLASSES, SparseArray
from .buffers import Buffer, axes_of, fits, linear, shape_of
from .coo import COO, as_coo, converted

__all__ = ["CSC", "CSR", "GCXS"]


def _checked_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Compressed axes that can be: some but not all, in order."""
    if not np.iterable(axes):
        raise ValueError("compressed_axes must be an iterable")
    axes = axes_of(tuple(axes), ndim)
    if len(axes) >= ndim or list(axes) != sorted(set(axes)):
        raise ValueError("compressed_axes: sorted, without repeats, not all axes")
    return tuple(axes)


class GCXS(SparseArray):
    """A sparse array by compressed rows: `data`, `indices`, `indptr`, `compressed_axes`, `shape`, `fill_value`."""

    indices: Buffer
    indptr: Buffer
    _axes: tuple[int, ...]

    def __init__(
        self, arg: Any, shape: Any = None, compressed_axes: Any = None, prune: bool = False, fill_value: Any = None,
        idx_dtype: Any = None,
    ) -> None:  # fmt: skip
        if scipys.issparse(arg):
            arg = GCXS.from_scipy_sparse(arg, fill_value=fill_value)
            compressed_axes = arg.compressed_axes if compressed_axes is None else compressed_axes
        if isinstance(arg, np.ndarray | SparseArray):
            held = compressed_axes
            if isinstance(arg, GCXS) and held is None:
                held = arg.compressed_axes
            self._take(GCXS._compressed(as_coo(arg), held, idx_dtype))
        elif shape is None or not isinstance(arg, tuple | list):
            raise ValueError("missing `shape` argument")
        else:
            self._fill_in(arg, shape_of(shape), compressed_axes, fill_value)
        if prune:
            self._take(GCXS._compressed(self.tocoo()._pruned(), self._axes or None, None))

    def _fill_in(self, arg: Any, shape: tuple[int, ...], axes: Any, fill: Any) -> None:
        """Take buffers over. Raises ValueError where they do not fit each other or the shape."""
        data, indices = np.asarray(arg[0]), np.asarray(arg[1])
        indices = indices.astype(np.intp) if not indices.size else indices
        indptr = arg[2]
        if len(shape) < 2:
            if axes:
                raise ValueError(f"no axes to compress for {len(shape)}d array")
            axes, indptr = (), [0, len(data)] if indptr is None or not len(indptr) else indptr
        elif axes is None:
            rows = len(indptr) - 1
            some = [tuple(range(k)) for k in range(1, len(shape))] + [(k,) for k in range(1, len(shape))]
            axes = next((a for a in some if math.prod(shape[k] for k in a) == rows), None)
            if axes is None:
                raise ValueError("cannot infer `compressed_axes` from `indptr`; pass it explicitly.")
        else:
            axes = _checked_axes(axes, len(shape))
        indptr = np.asarray(indptr)
        self._hold(data, indices, indptr, shape, axes, fill)
        rows, columns = self._compressed_shape
        if data.ndim != 1 or indices.ndim != 1 or indptr.ndim != 1 or data.shape != indices.shape:
            raise ValueError("`data` and `indices` must have one dimension and the same shape.")
        if indices.size and (indices.min() < 0 or indices.max() >= columns):
            raise ValueError("`indices` contains one or more out of bounds indices.")
        if len(indptr) != rows + 1 or (np.diff(indptr) < 0).any() or indptr[0] < 0 or indptr[-1] > len(data):
            raise ValueError(f"`indptr` must have {rows + 1} offsets into `data`, in order.")

    def _hold(
        self, data: Buffer, indices: Buffer, indptr: Buffer, shape: tuple[int, ...], axes: tuple[int, ...], fill: Any
    ) -> None:  # fmt: skip
        self.data, self.indices, self.indptr, self.shape, self._axes = data, indices, indptr, shape, tuple(axes)
        self.fill_value = np.zeros((), data.dtype)[()] if fill is None else np.asarray(fill).astype(data.dtype)[()]

    @property
    def _order(self) -> list[int]:
        return [*self._axes, *(k for k in range(self.ndim) if k not in self._axes)]

    @property
    def _compressed_shape(self) -> tuple[int, int]:
        extents = [self.shape[k] for k in self._order]
        return math.prod(extents[: len(self._axes)]), math.prod(extents[len(self._axes) :])

    @classmethod
    def _compressed(cls, coo: COO, axes: Any, idx_dtype: Any = None) -> Any:
        """The array of a COO array's elements, rows along `axes`."""
        self = object.__new__(cls)
        if coo.ndim < 2:
            if axes not in (None, ()):
                raise ValueError(f"no axes to compress for {coo.ndim}d array")
            indices = coo.coords[0] if coo.ndim else np.zeros(coo.nnz, np.intp)
            self._hold(coo.data, indices, np.array([0, coo.nnz]), coo.shape, (), coo.fill_value)
            return self
        axes = (int(np.argmin(coo.shape)),) if axes is None else _checked_axes(axes, coo.ndim)
        self._hold(coo.data, coo.coords, coo.coords, coo.shape, axes, coo.fill_value)
        rows, columns = self._compressed_shape
        largest = max(rows, columns, coo.nnz)
        if idx_dtype is not None and not fits(idx_dtype, largest):
            raise ValueError(f"cannot store array with the compressed shape {(rows, columns)} with dtype {idx_dtype}.")
        kept = idx_dtype or (coo.coords.dtype if fits(coo.coords.dtype, largest) else np.min_scalar_type(largest))
        places = linear(coo.coords[self._order], tuple(coo.shape[k] for k in self._order))
        order = np.argsort(places, kind="stable")
        row, column = np.divmod(places[order], max(columns, 1))
        indptr = np.zeros(rows + 1, kept)
        np.cumsum(np.bincount(row, minlength=rows), out=indptr[1:])
        self._hold(coo.data[order], column.astype(kept), indptr, coo.shape, axes, coo.fill_value)
        return self

    @classmethod
    def _of(cls, coo: COO, like: Any = None) -> Any:
        """The array of a result; the compressed axes of an operand of the same rank stay."""
        axes = like.compressed_axes if isinstance(like, GCXS) and like.ndim == coo.ndim > 1 else None
        return GCXS._compressed(coo, axes)

    @classmethod
    def from_coo(cls, x: COO, compressed_axes: Any = None, idx_dtype: Any = None) -> Any:
        """The array of a COO array."""
        return GCXS._compressed(x, compressed_axes, idx_dtype)

    @classmethod
    def from_numpy(cls, x: Any, compressed_axes: Any = None, fill_value: Any = None, idx_dtype: Any = None) -> Any:
        """The elements of a dense array that differ from the fill value."""
        return cls.from_coo(COO.from_numpy(x, fill_value, idx_dtype), compressed_axes, idx_dtype)

    @classmethod
    def from_scipy_sparse(cls, x: Any, /, *, fill_value: Any = None) -> Any:
        """The elements that SciPy's array stores, columns compressed where it is CSC."""
        axes = (1,) if x.format == "csc" else (0,)
        return GCXS._compressed(COO.from_scipy_sparse(x, fill_value=fill_value), axes)

    @classmethod
    def from_iter(
        cls, x: Any, shape: Any = None, compressed_axes: Any = None, fill_value: Any = None, idx_dtype: Any = None
    ) -> Any:  # fmt: skip
        """The array of pairs of coordinates and values, as COO's."""
        return cls.from_coo(COO.from_iter(x, shape, fill_value), compressed_axes, idx_dtype)

    @property
    def compressed_axes(self) -> tuple[int, ...]:
        """The dimensions that make the rows."""
        return self._axes

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return int(self.data.nbytes + self.indices.nbytes + self.indptr.nbytes)

    @property
    def tensor(self) -> Tensor:
        """The Tensor over the same values; its format has a level for each compressed dimension."""
        if not self.ndim:
            return self.tocoo().tensor
        used, wide = slice(int(self.indptr[0]), int(self.indptr[-1])), (np.int32, np.int64)
        view = object.__new__(GCXS)
        indices, indptr = (x if x.dtype in wide else x.astype(np.int64) for x in (self.indices, self.indptr))
        view._hold(self.data[used], indices[used], indptr - indptr[0], self.shape, self._axes, self.fill_value)
        return from_pydata(view, BufferPolicy(None))

    def tocoo(self) -> COO:
        """The COO array of the same elements."""
        rows, columns = self._compressed_shape
        row = np.repeat(np.arange(rows), np.diff(self.indptr))
        used = slice(int(self.indptr[0]), int(self.indptr[-1])) if len(self.indptr) else slice(None)
        if not self.ndim:
            return COO._plain(np.zeros((0, self.nnz), np.intp), self.data, (), self.fill_value)
        places = row * max(columns, 1) + self.indices[used]
        extents = tuple(self.shape[k] for k in self._order)
        coords = np.empty((self.ndim, len(places)), np.intp)
        for k in reversed(range(self.ndim)):
            places, coords[self._order[k]] = np.divmod(places, max(extents[k], 1))
        return COO(coords, self.data[used], shape=self.shape, fill_value=self.fill_value)

    def todok(self) -> Any:
        """The DOK array of the same elements."""
        return CLASSES["dok"].from_coo(self.tocoo())

    def change_compressed_axes(self, new_compressed_axes: Any) -> Any:
        """The array with other dimensions compressed."""
        if self.ndim < 2:
            raise NotImplementedError("no axes to compress for 1d array")
        axes = _checked_axes(new_compressed_axes, self.ndim)
        return self if axes == self._axes else GCXS._compressed(self.tocoo(), axes)

    def asformat(self, format: Any, **kwargs: Any) -> Any:
        """The array in another format."""
        if format in ("gcxs", GCXS) and type(self) is GCXS and "compressed_axes" in kwargs:
            return self.change_compressed_axes(kwargs["compressed_axes"])
        return converted(self, format, **kwargs)

    def reshape(self, shape: Any, order: str | None = "C", compressed_axes: Any = None) -> Any:
        """The elements, in row-major order, in another shape."""
        found = super().reshape(shape, order)
        return found if compressed_axes is None else found.change_compressed_axes(compressed_axes)

    def transpose(self, axes: Any = None, compressed_axes: Any = None) -> Any:
        """The dimensions in another order, reversed where none is given."""
        if axes is not None and len(set(axes_of(tuple(axes), self.ndim))) != self.ndim:
            raise ValueError(f"axes {axes} don't match array")
        found = super().transpose(axes)
        return found if compressed_axes is None else found.change_compressed_axes(compressed_axes)

    def _scipy(self) -> Any:
        if self.ndim != 2:
            return super()._scipy()
        kind = scipys.csr_array if self._axes == (0,) else scipys.csc_array
        return kind((self.data, self.indices, self.indptr), shape=self.shape)

    def copy(self, deep: bool = True) -> Any:
        """The array in buffers of its own, or over the same."""
        return _copy.deepcopy(self) if deep else _copy.copy(self)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, compressed_axes={self._axes}>"

    def get_nodes(self) -> dict[str, Any]:
        """What `save_npz` stores."""
        return {
            "format": self.format, "shape": self.shape, "data": self.data, "indices": self.indices,
            "indptr": self.indptr, "compressed_axes": np.array(self._axes, np.intp), "fill_value": self.fill_value,
        }  # fmt: skip

    @classmethod
    def from_nodes(cls, nodes: Any) -> Any:
        """The array of what `save_npz` stored."""
        shape, fill = tuple(int(n) for n in nodes["shape"]), nodes["fill_value"][()]
        axes = tuple(int(a) for a in nodes["compressed_axes"]) or None
        buffers = nodes["data"], nodes["indices"], nodes["indptr"]
        return cls(buffers, shape=shape, compressed_axes=axes, fill_value=fill)


class _Compressed2d(GCXS):
    """A matrix of which rows, or columns, are compressed."""

    axes: ClassVar[tuple[int, ...]] = (0,)

    def __init__(
        self, arg: Any, shape: Any = None, compressed_axes: Any = None, prune: bool = False, fill_value: Any = None
    ) -> None:  # fmt: skip
        if compressed_axes not in (None, self.axes):
            raise ValueError(f"{type(self).__name__} only accepts {self.axes} as compressed axis: {compressed_axes}")
        if hasattr(arg, "ndim") and arg.ndim != 2:
            raise ValueError(f"{arg.ndim}-d array: {type(self).__name__} is 2-d")
        if shape is not None and len(shape) != 2:
            raise ValueError(f"{len(shape)}-d shape: {type(self).__name__} is 2-d")
        super().__init__(arg, shape=shape, compressed_axes=self.axes, prune=prune, fill_value=fill_value)

    @classmethod
    def _of(cls, coo: COO, like: Any = None) -> Any:
        return cls.from_coo(coo) if coo.ndim == 2 else GCXS._compressed(coo, None)

    @classmethod
    def from_coo(cls, x: COO, compressed_axes: Any = None, idx_dtype: Any = None) -> Any:
        """The array of a COO array."""
        made = object.__new__(cls)
        made._take(GCXS._compressed(x, cls.axes, idx_dtype))
        return made

    @classmethod
    def from_numpy(cls, x: Any, fill_value: Any = 0, idx_dtype: Any = None) -> Any:  # type: ignore[override]
        """The elements of a dense matrix that differ from the fill value."""
        return cls.from_coo(COO.from_numpy(x, fill_value, idx_dtype), None, idx_dtype)

    @classmethod
    def from_scipy_sparse(cls, x: Any, /, *, fill_value: Any = None) -> Any:
        """The elements that SciPy's array stores."""
        return cls.from_coo(COO.from_scipy_sparse(x, fill_value=fill_value))

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transpose over the same buffers, or copies."""
        if axes is not None and (not np.iterable(axes) or axes_of(tuple(axes), 2) not in ((0, 1), (1, 0))):
            raise ValueError(f"Invalid transpose axes: {axes}")
        held = self.copy() if copy else self
        if axes is not None and axes_of(tuple(axes), 2) == (0, 1):
            return held
        made = object.__new__(CLASSES["csc" if self.axes == (0,) else "csr"])
        made._hold(held.data, held.indices, held.indptr, self.shape[::-1], (1 - self.axes[0],), self.fill_value)
        return made

    def __repr__(self) -> str:
        return SparseArray.__repr__(self)


del CLASSES["_compressed2d"]


class CSR(_Compressed2d):
    """A matrix by compressed rows."""


class CSC(_Compressed2d):
    """A matrix by compressed columns."""

    axes = (1,)
