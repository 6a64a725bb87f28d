"""Numbers as text: lines of indices and values."""

from __future__ import annotations

import numpy as np

from .records import Array

__all__ = ["table_lines", "table_lines_python"]


def table_lines(indices: tuple[Array, ...], values: Array) -> bytes:
    """`index + 1` of each column and the value, blank-separated, one line per element; a complex value is two numbers.

    Guarantees: every float is the shortest text that reads back as it.
    """
    return table_lines_python(indices, values)


def table_lines_python(indices: tuple[Array, ...], values: Array) -> bytes:
    """The same through Python's own formatting; the reference."""
    if values.dtype.kind == "c":
        parts = [values.real, values.imag]
    else:
        parts = [values]
    columns: list[list[object]] = [(c.astype(np.int64) + 1).tolist() for c in indices]
    columns += [_texts(p) for p in parts]
    flat: list[object] = [None] * (len(columns) * values.size)
    for k, column in enumerate(columns):
        flat[k :: len(columns)] = column
    return (("%s " * (len(columns) - 1) + "%s\n") * values.size % tuple(flat)).encode("ascii")


def _texts(values: Array) -> list[object]:
    if values.dtype.kind in "iu" or values.dtype == np.float64:
        return [repr(v) for v in values.tolist()]
    return [str(v) for v in values]
