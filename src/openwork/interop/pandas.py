"""pandas' sparse arrays, series and frames -> Tensors with their fill value, and Tensors -> series and frames."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..format import coo
from ..format import format as parse
from ..provided import provides
from ..runtime.promote import promote
from ..storage import buffers
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .buffer_policy import BufferPolicy, to_strictest_format

__all__ = ["from_pandas", "to_pandas"]


def from_pandas(obj: Any, policy: BufferPolicy) -> Tensor:
    """The tensor of a sparse array, series or index, in COO, or of a sparse frame, in CSC.

    Raises UnsupportedError for a frame with dense columns too, or with columns of different fill values.
    """
    if hasattr(obj, "columns"):
        return _frame(obj, policy)
    array = obj if hasattr(obj, "sp_values") else obj.array
    rows, values = _column(array)
    crd, data = policy.copied_if_asked(rows, True), policy.flat(values)
    pos = np.array([0, len(crd)], crd.dtype)
    return to_strictest_format(_storage((len(array),), coo(1), array.fill_value, (pos,), (crd,), data))


def _column(array: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A sparse array of pandas -> sorted coordinates and values of its stored elements."""
    rows = np.asarray(array.sp_index.to_int_index().indices)
    return rows, np.asarray(array.sp_values)


def _frame(frame: Any, policy: BufferPolicy) -> Tensor:
    pandas: Any = sys.modules["pandas"]
    dense = [name for name, d in zip(frame.columns, frame.dtypes, strict=True) if not isinstance(d, pandas.SparseDtype)]
    if dense:
        raise UnsupportedError(
            f"asarray: column {dense[0]!r} of the frame is dense, others are sparse"
            "\n  help: frame.astype(pandas.SparseDtype(float, 0)), or frame.to_numpy() for a dense tensor"
        )
    arrays = [frame.iloc[:, k].array for k in range(frame.shape[1])]
    fills = [a.fill_value for a in arrays]
    if any(f != fills[0] and not (f != f and fills[0] != fills[0]) for f in fills):
        raise UnsupportedError(
            f"asarray: columns of the frame have fill values {', '.join(sorted(set(map(str, fills))))}"
            "\n  help: frame.astype(pandas.SparseDtype(float, 0)), or frame.to_numpy() for a dense tensor"
        )
    columns = [_column(a) for a in arrays]
    scalar = promote(tuple(buffers.scalar_name(v.dtype) for _, v in columns))
    pos = np.cumsum([0, *(len(rows) for rows, _ in columns)])
    index_dtype = np.int32 if max(*frame.shape, int(pos[-1])) < 2**31 else np.int64
    crd = policy.copied_if_asked(np.concatenate([rows for rows, _ in columns]).astype(index_dtype), True)
    values = policy.copied_if_asked(buffers.cast(np.concatenate([v for _, v in columns]), scalar), True)
    storage = _storage(frame.shape, parse("csc"), fills[0], (None, pos.astype(index_dtype)), (None, crd), values)
    return to_strictest_format(storage)


def _storage(shape: Any, format: Any, fill: Any, pos: Any, crd: Any, values: Any) -> Storage:
    scalar = buffers.scalar_of(values)
    fill = python_scalar(np.asarray(fill).item(), scalar)
    return Storage(tuple(int(n) for n in shape), format, scalar, fill, pos, crd, values)


@provides("to_pandas")
def to_pandas(t: Tensor, index: Any = None, columns: Any = None) -> Any:
    """A matrix as a frame of sparse columns, a vector as a sparse series, with the tensor's fill value.

    Parameters
    ----------
    t : Tensor of rank 1 or 2
    index, columns : labels of rows and columns; 0, 1, ... without them

    Raises ShapeError for another rank, UnsupportedError where pandas is missing.
    """
    try:
        import pandas
    except ImportError:
        raise UnsupportedError("to_pandas: pandas is not installed\n  help: pip install pandas") from None
    if t.ndim not in (1, 2):
        raise ShapeError(f"to_pandas: a frame has two dimensions, a series one; got shape {t.shape}")
    if t.ndim == 1 and columns is not None:
        raise ShapeError("to_pandas: columns= of a vector, which becomes a series\n  help: index=")
    kind = pandas.SparseDtype(buffers.numpy_dtype(t._storage.scalar), t.fill_value)
    storage = t.asformat("csc" if t.ndim == 2 else "coo")._storage
    rows, values = buffers.to_numpy(storage.crd[-1], detach=True), buffers.to_numpy(storage.values, detach=True)
    if t.ndim == 1:
        return pandas.Series(_series(pandas, t.shape[0], rows, values, kind), index=index)
    pos = buffers.to_numpy(storage.pos[1], detach=True).tolist()
    parts = [_series(pandas, t.shape[0], rows[a:b], values[a:b], kind) for a, b in pairwise(pos)]
    frame = pandas.DataFrame(dict(enumerate(parts)), index=pandas.RangeIndex(t.shape[0]))
    frame.index = frame.index if index is None else pandas.Index(index)
    frame.columns = pandas.RangeIndex(t.shape[1]) if columns is None else pandas.Index(columns)
    return frame


def _series(pandas: Any, n: int, rows: Any, values: Any, kind: Any) -> Any:
    """A sparse array of pandas with these elements; before 3.0 it has no other maker of one than its constructor."""
    array = pandas.arrays.SparseArray
    if hasattr(array, "from_indices"):
        return array.from_indices(values, rows.astype(np.int32), n, kind.fill_value, dtype=kind.subtype)
    sparse_index = array(np.zeros(0)).sp_index.__class__(n, rows.astype(np.int32))
    return array(values, sparse_index=sparse_index, fill_value=kind.fill_value, dtype=kind)
