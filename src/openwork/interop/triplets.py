"""Tables of triplets (a column for each dimension, and one of values) -> Tensors, and Tensors -> tables.

A table is a frame of pandas or polars, a table of Arrow, or a dict of columns: whatever gives columns by their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError
from ..format.format import Format
from ..integers import extents
from ..storage import buffers
from ..tensor.tensor import Tensor
from .layouts import sparse_coo_tensor

__all__ = ["from_triplets", "to_triplets"]

_SHAPE = "openwork_shape"
_LIBRARIES = ("pandas", "arrow", "dict")


def from_triplets(
    table: Any, shape: Sequence[int] | None = None, *, indices: Sequence[str] | None = None, values: str | None = None,
    format: str | Format = "coo",
) -> Tensor:  # fmt: skip
    """The sparse tensor of a table with a column of coordinates for each dimension, and one of values.

    Parameters
    ----------
    table : a frame of pandas or polars, a table of Arrow, or a dict of columns; n rows
    shape : the extents; without them those that `to_triplets` has noted in the table, else as small as they can be
    indices : the names of the columns of coordinates, one for each dimension; all others without them
    values : the name of the column of values; without it "value" where that is there, else the last column
    format : of the result; duplicates are added up but in uncoalesced COO, "coo(nonunique, unordered)"

    Returns
    -------
    Tensor, shape `shape`, of the dtype of the values

    Guarantees: `from_triplets(to_triplets(t))` has the shape and elements of t.
    Raises DTypeError where coordinates are no integers or values no numbers, ShapeError where they lie outside of the
    shape, UnsupportedError where entries are missing.

    Cost: O(n log n).
    See also: asarray, sparse_coo_tensor, read.

    Examples
    --------
    >>> A = ow.from_triplets({"user": [0, 2], "item": [1, 0], "rating": [5.0, 3.0]}, (3, 2))
    >>> A.to_numpy()
    array([[0., 5.],
           [0., 0.],
           [3., 0.]])
    """
    names = _names(table)
    key = values if values is not None else "value" if "value" in names else names[-1] if names else None
    wanted = [n for n in names if n != key] if indices is None else list(indices)
    absent = [n for n in (*wanted, key) if n is not None and n not in names]
    if absent or not wanted or key is None:
        raise ShapeError(
            f"from_triplets: {f'no column {absent[0]!r}' if absent else 'too few columns'} among"
            f" {', '.join(map(repr, names[:9])) or 'none'}\n  help: name them, indices=['i', 'j'], values='x'"
        )
    columns = [_column(table, n) for n in wanted]
    for name, c in zip(wanted, columns, strict=True):
        if c.dtype.kind not in "iu" and c.size:
            raise DTypeError(
                f"from_triplets: coordinates in column {name!r} are {c.dtype}\n  expected: integers\n  help: number"
                " labels first, codes, labels = pandas.factorize(column)"
            )
    data = _column(table, key)
    buffers.scalar_name(data.dtype)
    size = _noted(table, len(wanted)) if shape is None else extents(shape, "from_triplets")
    if size is None:
        size = tuple(int(c.max()) + 1 if c.size else 0 for c in columns)
    crd = np.stack([c.astype(np.int64, copy=False) for c in columns])
    result: Tensor = sparse_coo_tensor(crd, data, size)
    return result.asformat(format)


def _names(table: Any) -> list[Any]:
    if isinstance(table, Mapping):
        return list(table)
    names = getattr(table, "column_names", None)
    names = getattr(table, "columns", None) if names is None else names
    if names is None:
        raise DTypeError(
            f"from_triplets: expected a table; got: {type(table).__name__}\n  help: a frame of pandas or polars, a"
            " table of Arrow, or a dict of columns"
        )
    return list(names)


def _column(table: Any, name: Any) -> np.ndarray[Any, Any]:
    """A column as a vector. Raises UnsupportedError where entries are missing."""
    column = table[name]
    count = getattr(column, "null_count", 0)
    count = count() if callable(count) else count
    if hasattr(column, "isna"):
        count = int(column.isna().sum()) if getattr(column.dtype, "kind", "") not in ("f", "c") else 0
    if count:
        raise UnsupportedError(
            f"from_triplets: {count} entries of column {name!r} are missing\n  help: fill or drop them first"
        )
    array = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if array.dtype == object and array.size and hasattr(column, "dtype"):  # a nullable column of pandas
        array = np.asarray(array.tolist())
    if array.ndim != 1:
        raise ShapeError(f"from_triplets: column {name!r} has shape {array.shape}\n  expected: one dimension")
    return array


def _noted(table: Any, ndim: int) -> tuple[int, ...] | None:
    """The shape that `to_triplets` has noted in the table, or a file in its metadata."""
    attrs = getattr(table, "attrs", None)
    noted = attrs.get(_SHAPE) if isinstance(attrs, Mapping) else None
    metadata = getattr(getattr(table, "schema", None), "metadata", None)
    if noted is None and isinstance(metadata, Mapping) and _SHAPE.encode() in metadata:
        try:
            noted = json.loads(metadata[_SHAPE.encode()])
        except ValueError:
            return None
    is_shape = isinstance(noted, list | tuple) and len(noted) == ndim and all(type(n) is int for n in noted)
    return tuple(noted) if is_shape and noted is not None else None


def to_triplets(t: Tensor, names: Sequence[str] | None = None, library: str = "pandas") -> Any:
    """A table of a tensor's stored elements: a column of coordinates for each dimension, then the values.

    Parameters
    ----------
    t : Tensor of fill value 0, rank 1 at least
    names : of the columns; "i0", "i1", ... and "value" without them
    library : "pandas" for a frame, "arrow" for a table of pyarrow, "dict" for a dict of NumPy's arrays

    Returns
    -------
    the table, sorted by coordinates, with the shape in its `attrs` or its schema's metadata, which a dict has not

    Raises UnsupportedError for another fill value and where the library is missing, ShapeError for a scalar or another
    number of names.

    Cost: O(nse log nse).
    See also: from_triplets, write.

    Examples
    --------
    >>> ow.to_triplets(ow.asarray([[0, 2.0], [1.0, 0]], format="csr"), ["row", "column", "x"], library="dict")
    {'row': array([0, 1]), 'column': array([1, 0]), 'x': array([2., 1.])}
    """
    if library not in _LIBRARIES:
        raise ValueError(f"to_triplets: library must be {', '.join(map(repr, _LIBRARIES))}; got {library!r}")
    columns_of = [f"i{d}" for d in range(t.ndim)] + ["value"] if names is None else [*names]
    other = next((n for n in columns_of if not isinstance(n, str)), None)
    if other is not None:
        raise TypeError(
            f"to_triplets: names of columns are texts; got: {type(other).__name__}"
            '\n  help: names=["row", "column", "value"], one for each dimension and one for the values'
        )
    if not t.ndim or len(columns_of) != t.ndim + 1 or len({*columns_of}) != len(columns_of):
        raise ShapeError(
            f"to_triplets: names {columns_of} for a tensor of shape {t.shape}\n  expected: one for each dimension, and"
            " one for the values"
        )
    if t.fill_value != 0:
        raise UnsupportedError(
            f"to_triplets: elements that are not stored are {t.fill_value!r}\n  help: with_fill(t, 0)"
        )
    s = t.asformat("coo")._storage
    arrays = [buffers.to_numpy(b, detach=True) for b in (*s.crd, s.values) if b is not None]
    columns = {
        n: a.astype(np.int64) if k < t.ndim else a for k, (n, a) in enumerate(zip(columns_of, arrays, strict=True))
    }
    if library == "dict":
        return columns
    return _arrow(columns, t.shape) if library == "arrow" else _frame(columns, t.shape)


def _frame(columns: dict[str, Any], shape: tuple[int, ...]) -> Any:
    try:
        import pandas
    except ImportError:
        raise UnsupportedError("to_triplets: pandas is not installed\n  help: pip install pandas") from None
    frame = pandas.DataFrame(columns)
    frame.attrs[_SHAPE] = tuple(int(n) for n in shape)
    return frame


def _arrow(columns: dict[str, Any], shape: tuple[int, ...]) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError("to_triplets: pyarrow is not installed\n  help: pip install pyarrow") from None
    noted = json.dumps([int(n) for n in shape]).encode()
    return pyarrow.table(columns).replace_schema_metadata({_SHAPE: noted})
