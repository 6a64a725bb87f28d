"""`asarray`: tensors from what other libraries and Python hold, without a copy where their buffers allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DTypeError, UnsupportedError
from ..format import format as parse
from ..format.format import Format, Level
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.invariants import check_layout
from ..storage.storage import Storage
from .lazy import is_lazy
from .tensor import Tensor, python_scalar, resolve_format

__all__ = ["Take", "asarray", "is_sparse_source", "loosened", "settle"]


class Take:
    """Takes buffers over as `copy=` says: True always copies, False never, None where it has to."""

    def __init__(self, copy: bool | None) -> None:
        self.copy = copy

    def flat(self, x: object, scalar: str | None = None) -> Array:
        """`x` as a 1-D contiguous buffer."""
        given = buffers.as_array(x)
        out = buffers.flat(buffers.as_array(given, scalar))
        moved = not buffers.is_array(x) or not buffers.same_memory(out, x)
        return self.settle(out, moved and buffers.length(out) > 0)

    def settle(self, out: Array, moved: bool) -> Array:
        """`out` when it may be a copy already (`moved`)."""
        if moved and self.copy is False:
            raise ValueError(
                "asarray: copy=False, but this cannot be taken over without a copy\n  help: leave copy out"
            )
        return out if moved or not self.copy else buffers.copied(out)

    def index(self, x: Array) -> Array:
        """`x` as an index buffer: int32 and int64 as they are, any other integer as int64."""
        scalar = buffers.scalar_name(x.dtype)
        return self.flat(x, scalar if scalar in ("i32", "i64") else "i64")


def asarray(
    obj: object,
    /,
    *,
    dtype: object = None,
    format: object = None,
    fill_value: Any = 0,
    copy: bool | None = None,
    device: object = None,
) -> Tensor:
    """A Tensor of what `obj` holds.

    Parameters
    ----------
    obj : Tensor, nested lists, scalar, NumPy array, SciPy sparse array or matrix, torch tensor of any layout,
        pydata COO or GCXS, anything with `__dlpack__` or `__array__`
    dtype : of the result; default that of `obj`
    format : of the result; default the one that `obj` has, "dense" for dense arrays
    fill_value : elements of a dense `obj` that a sparse `format` leaves out
    copy : True always copies, False raises ValueError where a copy is needed, None copies where needed
    device : "cpu", or torch's name of one

    Returns
    -------
    Tensor over the buffers of `obj` where they are contiguous. Duplicate or unsorted coordinates give a format
    that says so; what the buffers hold decides, not a flag.

    Raises DTypeError for elements that are no numbers, UnsupportedError for objects that are no arrays.
    """
    if is_lazy(obj):
        obj = obj.compute()  # type: ignore[attr-defined]
    out = obj if isinstance(obj, Tensor) else _adopt(obj, copy, fill_value, format)
    if isinstance(obj, Tensor) and copy:
        out = out.clone()
    if not out.format.is_dense and fill_value not in (0, out.fill_value):
        raise UnsupportedError(
            f"asarray: unspecified elements are {out.fill_value}, fill_value={fill_value} would change them"
            "\n  help: leave fill_value out, or make it dense first"
        )
    if dtype is not None and buffers.scalar_name(dtype) != out._storage.scalar:
        if copy is False:
            raise ValueError(f"asarray: copy=False, but {out.dtype} to {dtype} needs a copy\n  help: leave copy out")
        out = out.astype(dtype)
    if format is not None:
        target = resolve_format(format, out.ndim, out.format)
        out = out if target == out.format else out.asformat(target, copy=False if copy is False else None)
    return out if device is None else out.to(device)


def _adopt(obj: object, copy: bool | None, fill: Any, format: object) -> Tensor:
    take = Take(copy)
    if buffers.is_torch(obj):
        from .torch_source import from_torch

        return from_torch(obj, take, fill)
    if _is_scipy(obj):
        from .scipy_source import from_scipy

        return from_scipy(obj, take)
    if _is_pydata(obj):
        from .pydata_source import from_pydata

        return from_pydata(obj, take)
    return dense(_array(obj), take, fill, obj, format)


def is_sparse_source(obj: object) -> bool:
    """Whether `obj` is a sparse tensor of SciPy or pydata."""
    return _is_scipy(obj) or _is_pydata(obj)


def _is_pydata(obj: object) -> bool:
    return type(obj).__module__.split(".")[0] == "sparse" and hasattr(obj, "fill_value")


def _is_scipy(obj: object) -> bool:
    import sys

    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(obj))


def _array(obj: Any) -> Array:
    if isinstance(obj, np.ma.MaskedArray):
        raise UnsupportedError("asarray: a masked array has elements without a value\n  help: give obj.filled(value)")
    if isinstance(obj, np.ndarray):
        return np.asarray(obj)
    if isinstance(obj, np.generic | int | float | complex | Sequence):
        return buffers.as_array(obj)
    if hasattr(obj, "__dlpack__"):
        if obj.__dlpack_device__()[0] == 1:
            return np.from_dlpack(obj)
        import torch

        return torch.from_dlpack(obj)
    if hasattr(obj, "__array__"):
        return np.asarray(obj)
    raise UnsupportedError(
        f"asarray: {type(obj).__name__} is no array\n  supported: lists, numbers, NumPy, SciPy sparse, torch, pydata"
        " COO and GCXS, objects with __dlpack__ or __array__"
    )


def dense(x: Array, take: Take, fill: Any, source: object, format: object = None) -> Tensor:
    """A dense array; row-major, or column-major where that is asked for and there."""
    if isinstance(x, np.ndarray) and x.dtype == object:
        raise DTypeError("asarray: objects are no numbers\n  help: give numbers of one dtype, in lists of equal length")
    given = buffers.as_array(x)
    made, shape = parse("dense", given.ndim), tuple(int(n) for n in given.shape)
    if format is not None and resolve_format(format, given.ndim) == parse("dense_f", given.ndim):
        made, given = parse("dense_f", given.ndim), given.T if given.ndim != 1 else given
    out = buffers.flat(given)
    moved = (isinstance(source, np.ndarray) or buffers.is_torch(source)) and not buffers.same_memory(out, x)
    scalar = buffers.scalar_of(out)
    values = take.settle(out, moved and buffers.length(out) > 0)
    nothing = (None,) * len(made.levels)
    return Tensor._from_storage(Storage(shape, made, scalar, python_scalar(fill, scalar), nothing, nothing, values))


def loosened(format: Format, *, ordered: bool) -> Format:
    """The format with duplicates allowed on its last stored level, and on all levels any order if not `ordered`."""
    levels = list(format.levels)
    last = max(at for at, level in enumerate(levels) if "nonunique" in level.format.may_be)
    for at, level in enumerate(levels):
        if "nonunique" in level.format.may_be:
            unique = level.format.unique and at != last
            levels[at] = Level(level.expression, replace(level.format, unique=unique and ordered, ordered=ordered))
    return Format(format.dims, tuple(levels))


def settle(storage: Storage, looser: Sequence[Format] | None = None) -> Tensor:
    """A tensor over these buffers in the strictest format that holds of them.

    Tries the format itself, then `looser` in turn: without it, duplicates in order, then duplicates in any order.
    Raises InvariantError where none holds.
    """
    from .check import check, holds

    check_layout(storage)
    if holds(storage):
        return Tensor._from_storage(storage)
    if looser is None:
        looser = [loosened(storage.format, ordered=ordered) for ordered in (True, False)]
    for format in looser:
        storage = storage.with_format(format)
        if holds(storage):
            return Tensor._from_storage(storage)
    check(storage)
    return Tensor._from_storage(storage)
