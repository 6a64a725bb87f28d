"""One array, lying in memory in every way that people's arrays do: parts of tables, results of NumPy and torch.

`numpy_view(a, how)` and `torch_view(a, how)` give the elements of `a` behind other addresses and strides; in layouts of
`REPEATED` those of its first row or column, over and over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["LAYOUTS", "REPEATED", "TORCH_LAYOUTS", "numpy_view", "torch_view"]

Array = np.ndarray[Any, Any]
LINE = 64


def _room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised table that begins at a cache line, so that layouts do not depend on the allocator."""
    size = int(np.prod(shape)) * dtype.itemsize
    buffer = np.empty(size + LINE, np.uint8)
    begin = -buffer.ctypes.data % LINE
    return buffer[begin : begin + size].view(dtype).reshape(shape)


def _table(a: Array, before: int, step: tuple[int, int] = (1, 1)) -> Array:
    """Rows and columns of a table with rows of whole cache lines, from column `before` on, every `step`th."""
    if not a.ndim:
        return _room((2,), a.dtype)[before : before + 1].reshape(())
    last = before + a.shape[-1] * step[1]
    wide = -(-(last + 1) // LINE) * LINE
    if a.ndim == 1:
        return _room((wide,), a.dtype)[before : last : step[1]]
    table = _room((*a.shape[:-2], a.shape[-2] * step[0], wide), a.dtype)
    return table[..., :: step[0], before : last : step[1]]


def _shifted(a: Array, order: str) -> Array:
    """Packed elements, the first one an element behind a cache line."""
    flat = _room((a.size + 1,), a.dtype)[1:]
    return flat.reshape(a.shape, order=order)  # type: ignore[call-overload,no-any-return]


def _field(a: Array, align: bool) -> Array:
    fields = [("flag", "i1"), ("value", a.dtype), ("other", "i4")]
    records = np.empty(a.shape, np.dtype(fields, align=align))
    return records["value"]  # type: ignore[no-any-return]


def _reversed(a: Array, axis: int) -> Array:
    return np.flip(_table(a, 0), axis) if a.ndim else _table(a, 0)


def _middle(a: Array) -> Array:
    """The last dimension outermost in memory, the others as they were."""
    return np.moveaxis(_room((a.shape[-1:] + a.shape[:-1]), a.dtype), 0, -1) if a.ndim else _table(a, 0)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "an element behind a line": lambda a: _shifted(a, "C"),
    "in Fortran's order, behind a line": lambda a: _shifted(a, "F"),
    "first columns": lambda a: _table(a, 0),
    "inner columns": lambda a: _table(a, 1),
    "every second row": lambda a: _table(a, 0, (2, 1)),
    "every second column": lambda a: _table(a, 1, (1, 2)),
    "reversed rows": lambda a: _reversed(a, 0),
    "reversed columns": lambda a: _reversed(a, -1),
    "columns of a transposed table": lambda a: _table(a.T, 1).T,
    "last dimension outermost": _middle,
    "field of records": lambda a: _field(a, True),
    "unaligned field of records": lambda a: _field(a, False),
    "other byte order": lambda a: np.empty(a.shape, a.dtype.newbyteorder()),
    "read-only": lambda a: _table(a, 0),
}
"""Memory for the array's elements, by the name of a layout."""

REPEATED = ("first row over and over", "first column over and over", "overlapping rows")


def numpy_view(a: Array, how: str) -> Array:
    """The elements of an array in a layout; of `REPEATED`, its first row, column or elements repeated."""
    a = np.asarray(a)
    if how == "first row over and over":
        return np.broadcast_to(numpy_view(a[:1], "inner columns"), a.shape) if a.ndim else a
    if how == "first column over and over":
        return np.broadcast_to(numpy_view(a[..., :1], "every second row"), a.shape) if a.ndim else a
    if how == "overlapping rows":
        if a.ndim < 2:
            return a
        flat = numpy_view(np.resize(a.ravel(), a.shape[-2] + a.shape[-1] - 1), "an element behind a line")
        windows = np.lib.stride_tricks.sliding_window_view(flat, a.shape[-1]) if a.shape[-1] else a[..., :0]
        return np.broadcast_to(windows, a.shape)
    out = LAYOUTS[how](a)
    out[...] = a
    if how == "read-only":
        out.flags.writeable = False
    return out


def _torch_table(x: Any, before: int, step: tuple[int, int] = (1, 1)) -> Any:
    last = before + x.shape[-1] * step[1]
    wide = -(-(last + 1) // LINE) * LINE
    if x.ndim == 1:
        return x.new_empty(wide)[before : last : step[1]]
    return x.new_empty((*x.shape[:-2], x.shape[-2] * step[0], wide))[..., :: step[0], before : last : step[1]]


TORCH_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "an element behind a line": lambda x: x.new_empty(x.numel() + 1)[1:].view(x.shape),
    "narrowed columns": lambda x: _torch_table(x, 1),
    "first columns": lambda x: _torch_table(x, 0),
    "every second row": lambda x: _torch_table(x, 0, (2, 1)),
    "every second column": lambda x: _torch_table(x, 1, (1, 2)),
    "selected": lambda x: x.new_empty((*x.shape, 3)).select(-1, 1),
    "transposed": lambda x: x.new_empty(x.shape[::-1]).permute(*range(x.ndim)[::-1]),
    "columns of a transposed table": lambda x: _torch_table(x.permute(*range(x.ndim)[::-1]), 1).permute(
        *range(x.ndim)[::-1]
    ),
    "as_strided": lambda x: x.new_empty(9 + 5 * x.numel()).as_strided(
        x.shape, tuple(5 * s for s in x.contiguous().stride()), 9
    ),
}


def torch_view(x: Any, how: str) -> Any:
    """The elements of a torch tensor in a layout; of `REPEATED`, its first row, column or elements repeated."""
    if not x.ndim:
        return x.new_empty(3).fill_(x)[1]
    if how == "first row over and over":
        return torch_view(x[:1], "narrowed columns").expand(x.shape)
    if how == "first column over and over":
        return torch_view(x[..., :1], "every second row").expand(x.shape)
    if how == "overlapping rows":
        if x.ndim < 2:
            return x
        rows, columns = x.shape[-2:]
        part = x.reshape(-1)[: rows + columns - 1]
        flat = torch_view(part, "an element behind a line") if len(part) == rows + columns - 1 else None
        return x if flat is None else flat.unfold(0, columns, 1).expand(x.shape)
    out = TORCH_LAYOUTS[how](x)
    out.copy_(x)
    return out
