"""pandas' sparse arrays, series and frames as Tensors with their fill value; a frame is stored by columns."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..format import coo
from ..format import format as parse
from ..runtime.promote import promote
from ..storage import buffers
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .take import Take, settle

__all__ = ["from_pandas"]


def from_pandas(obj: Any, take: Take) -> Tensor:
    """The tensor of a sparse array, series or index, in COO, or of a sparse frame, in CSC.

    Raises UnsupportedError for a frame with dense columns too, or with columns of different fill values.
    """
    if hasattr(obj, "columns"):
        return _frame(obj, take)
    array = obj if hasattr(obj, "sp_values") else obj.array
    rows, values = _column(array)
    crd, leaf = take.settle(rows, True), take.flat(values)
    pos = np.array([0, len(crd)], crd.dtype)
    return settle(_storage((len(array),), coo(1), array.fill_value, (pos,), (crd,), leaf))


def _column(array: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The coordinates of what is stored, in order, and the values."""
    rows = np.asarray(array.sp_index.to_int_index().indices)
    return rows, np.asarray(array.sp_values)


def _frame(frame: Any, take: Take) -> Tensor:
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
    ends = np.cumsum([0, *(len(rows) for rows, _ in columns)])
    index = np.int32 if max(*frame.shape, int(ends[-1])) < 2**31 else np.int64
    crd = take.settle(np.concatenate([rows for rows, _ in columns]).astype(index), True)
    values = take.settle(buffers.cast(np.concatenate([v for _, v in columns]), scalar), True)
    made = _storage(frame.shape, parse("csc"), fills[0], (None, ends.astype(index)), (None, crd), values)
    return settle(made)


def _storage(shape: Any, format: Any, fill: Any, pos: Any, crd: Any, values: Any) -> Storage:
    scalar = buffers.scalar_of(values)
    fill = python_scalar(np.asarray(fill).item(), scalar)
    return Storage(tuple(int(n) for n in shape), format, scalar, fill, pos, crd, values)
