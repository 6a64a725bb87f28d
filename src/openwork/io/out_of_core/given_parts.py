"""A part as a caller gave it, coordinates and values -> arrays of one length, of the dtype of the result, checked."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...storage.buffers import is_torch, numpy_dtype, scalar_name, to_numpy
from ...storage.recorded import refuse_recorded
from ..shared.records import Array

__all__ = ["checked_part", "dtype_of_parts"]


def dtype_of_parts(dtype: object, parts: Iterable[Any]) -> tuple[np.dtype[Any], Iterable[Any]]:
    """The dtype of values, in this machine's byte order, that of the first part where none is given; and the parts.

    Raises DTypeError for what is no dtype of tensors.
    """
    if dtype is None:
        rest = iter(parts)
        first = next(rest, None)
        is_pair = isinstance(first, tuple | list) and len(first) == 2
        dtype = _array(first[1]).dtype if is_pair and first is not None else "float64"
        parts = rest if first is None else chain((first,), rest)
    return np.dtype(numpy_dtype(scalar_name(dtype))), parts


def checked_part(
    part: Any, shape: tuple[int, ...], dtype: np.dtype[Any], is_rounded: bool
) -> tuple[list[Array], Array]:
    """A part as arrays of one length; floats of more digits are rounded where that was asked for.

    Raises ShapeError for coordinates outside of the shape, DTypeError for values that the dtype does not hold.
    """
    if not isinstance(part, tuple | list) or len(part) != 2 or not hasattr(part[0], "__len__"):
        raise ShapeError(
            f"write_parts: a part that is a {type(part).__name__}\n  expected: a pair of coordinates and values"
            "\n  help: give ((rows, columns), values)"
        )
    columns, data = [_array(c) for c in part[0]], _array(part[1])
    if len(columns) != len(shape) or any(c.shape != data.shape or data.ndim != 1 for c in columns):
        shapes = ", ".join(str(x.shape) for x in (*columns, data))
        raise ShapeError(
            f"write_parts: a part of {len(columns)} coordinates and values, of shapes {shapes}\n  expected:"
            f" {len(shape)} vectors of coordinates, as long as the values\n  help: give one for each dimension"
        )
    checked = [_coordinates(c, d, n) for d, (c, n) in enumerate(zip(columns, shape, strict=True))]
    return checked, _values(data, dtype, is_rounded)


def _array(given: Any) -> Array:
    if isinstance(given, np.ma.MaskedArray):
        raise UnsupportedError(
            "write_parts: a masked array has elements without a value\n  help: give obj.filled(value)"
        )
    if is_torch(given):
        refuse_recorded(given)
        given = to_numpy(given)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise ShapeError(f"write_parts: a part that is not an array: {error}\n  help: give vectors") from None


def _coordinates(c: Array, d: int, n: int) -> Array:
    """Coordinates of a dimension as int64, whatever integers they are: sums and differences of them are exact."""
    if c.size and c.dtype.kind not in "iu":
        raise DTypeError(f"write_parts: coordinates of dimension {d} are {c.dtype}\n  expected: integers")
    if c.size and not 0 <= int(c.min()) <= int(c.max()) < n:
        raise ShapeError(
            f"write_parts: coordinates of dimension {d} from {int(c.min())} to {int(c.max())}\n  expected: 0 to"
            f" {n - 1}\n  help: give a larger shape"
        )
    return c.astype(np.int64, copy=False)


def _values(data: Array, dtype: np.dtype[Any], is_rounded: bool) -> Array:
    """Values as the dtype: rounded where both are floats and that was asked for, else the same numbers."""
    if data.dtype == dtype:
        return data
    scalar_name(data.dtype)
    if np.can_cast(data.dtype, dtype, "same_kind" if is_rounded else "safe") and dtype.kind not in "iu":
        return data.astype(dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        real = data.real if data.dtype.kind == "c" and dtype.kind != "c" else data
        out = real.astype(dtype)
        holds = np.array_equal(out.astype(data.dtype), data)
    if not holds or (dtype.kind == "u" and data.dtype.kind in "if" and (real < 0).any()) or _wraps(data, dtype):
        raise DTypeError(
            f"write_parts: values of {data.dtype} that {dtype} does not hold\n  expected: the same numbers in {dtype}"
            f"\n  help: dtype={str(data.dtype)!r}, or values.astype({str(dtype)!r}) first"
        )
    return out


def _wraps(data: Array, dtype: np.dtype[Any]) -> bool:
    """Whether unsigned integers are too large for signed ones of as many bytes."""
    return data.dtype.kind == "u" and dtype.kind == "i" and bool((data > np.iinfo(dtype).max).any())
