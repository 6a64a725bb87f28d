"""A Tensor -> dense arrays, DLPack capsules and SciPy's sparse arrays, over the same buffers where layouts agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DTypeError, ExportError, ReadOnlyError, ShapeError, UnsupportedError
from ..format import coo
from ..format import format as parse
from ..format.expression import Dim
from ..ir.index import Access, Assignment
from ..provided import provides
from ..runtime.contract import contract
from ..runtime.layouts import Layout, layout_of
from ..runtime.promote import HALF
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.iso import contiguous, lent
from ..storage.recorded import of_recording
from ..storage.storage import Storage
from ..storage.watch import is_kept, memory_of
from ..tensor.casting import may_cast
from ..tensor.tensor import Tensor
from .scipy import DIAGONALS

__all__ = [
    "array",
    "axes_of_values",
    "require_dense",
    "stacked_coordinates",
    "to_dense",
    "to_scipy",
    "with_own_indices",
    "written",
]

_SCIPY = ("csr", "csc", "bsr", "coo", "dia", "lil", "dok")


@provides("to_dense")
def to_dense(t: Tensor) -> Array:
    """The dense array of the tensor's own library; a view where the format is dense in any order of dimensions."""
    storage = t._storage
    view = _dense_view(storage) if storage.format.is_dense else None
    if view is not None:
        return view
    if storage.device == "cpu" and _is_one_product(storage):
        return _in_array(t)
    dense: Array = _dense_view(t.asformat("dense")._storage)
    return dense


def _is_one_product(s: Storage) -> bool:
    """Whether a dense array of a tensor is a statement over what it stores: the fill value is 0, not -0.0, duplicates
    are added, and the type is one that is computed in."""
    is_zero = not s.fill_value and "-" not in repr(s.fill_value)
    return is_zero and s.scalar not in HALF and (s.format.is_unique or s.scalar != "bool")


def _in_array(t: Tensor) -> Array:
    """The stored elements in a fresh dense array: B[i, j] = A[i, j]."""
    s = t._storage
    array: Array = contract(_store_statement(len(s.shape), s.format.is_unique), {"A": s}, s.scalar, s.values)
    return array


@lru_cache(maxsize=128)
def _store_statement(ndim: int, unique: bool) -> Assignment:
    """B[i, j] = A[i, j]; += where several elements may be stored at one place."""
    indices = tuple(f"i{d}" for d in range(ndim))
    return Assignment(Access("B", indices), "=" if unique else "+=", Access("A", indices))


@provides("written")
def written(t: Tensor, out: Array) -> Array:
    """`out`, a dense array, with the tensor's elements. Raises ShapeError or DTypeError where they do not fit."""
    if not buffers.is_array(out):
        raise UnsupportedError(f"to_dense: out={type(out).__name__}\n  supported: a NumPy array or a torch tensor")
    if tuple(out.shape) != tuple(t.shape):
        raise ShapeError(f"to_dense: out has shape {tuple(out.shape)}; expected {t.shape}\n  help: reshape it")
    may_cast(t, buffers.scalar_of(out), "same_kind", "to_dense")
    dense: Any = buffers.as_array(to_dense(t), like=out)
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ReadOnlyError("to_dense: out is read-only\n  help: give an array that may be written to")
        np.copyto(out, dense, casting="same_kind")
        return out
    filled: Array = out.copy_(dense)
    return filled


def _viewed(s: Storage) -> Array:
    """The values, for views of them that users get; a copy of torch's that are one, which can be written to."""
    return of_recording(contiguous(s.values)) if buffers.is_torch(s.values) else lent(s.values)


def _dense_view(s: Storage) -> Array | None:
    order = [level.expression.index for level in s.format.levels if isinstance(level.expression, Dim)]
    if not s.format.is_dense or len(order) != len(s.format.levels):
        return None
    stored = _viewed(s).reshape([s.shape[d] for d in order])
    axes = [order.index(d) for d in range(len(order))]
    if axes == sorted(axes):
        return stored
    return stored.transpose(axes) if isinstance(stored, np.ndarray) else stored.permute(axes)


_AS_INDEX = "\n  help: as an index of an array, x[ow.nonzero(t)]; or ow.where(t, value, x)"
"""What a mask is taken for besides."""


def require_dense(t: Tensor, operation: str) -> Array:
    """The dense array of a dense tensor.

    Raises UnsupportedError, with the bytes it would take, for a sparse one.
    """
    if not t.format.is_dense and t.size:
        nbytes = t.size * buffers.itemsize(t._storage.scalar)
        error_class = ExportError if operation == "__dlpack__" else UnsupportedError
        raise error_class(
            f"{operation}: a sparse tensor of shape {t.shape} would take {nbytes} bytes as a dense array"
            "\n  help: to_scipy() gives SciPy's sparse array, which scikit-learn takes too, to_numpy() or todense() the"
            f" dense one; openwork.asarray(S) @ t and so on, where a SciPy array S stands on the left of an operator;"
            f" openwork.write(path, t) writes a file{_AS_INDEX if t._storage.scalar == 'bool' else ''}"
        )
    return to_dense(t)


@provides("to_device")
def to_device(t: Tensor, device: object, stream: Any) -> Tensor:
    """The tensor on another device. Raises UnsupportedError for a stream: buffers move on torch's current one."""
    if stream is not None:
        raise UnsupportedError(f"to_device: stream {stream!r}\n  supported: None\n  help: use torch.cuda.stream()")
    return t.to(device)


@provides("to dlpack")
def dlpack(t: Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """The DLPack capsule of the array of a dense tensor."""
    array = require_dense(t, "__dlpack__")
    if isinstance(array, np.ndarray) and not array.flags.writeable:  # torch writes to whatever it takes
        if copy is False:
            raise ExportError(
                "__dlpack__: copy=False of values that are read-only: of a file, an iso tensor, a read-only array"
                "\n  help: leave copy out, or np.asarray(t), which is read-only itself"
            )
        array = array.copy()
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return array.__dlpack__(**{name: value for name, value in options.items() if value is not None})


@provides("to array")
def array(t: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """The result of `np.asarray`: the array itself of a dense tensor, an error for a sparse one.

    Operators of SciPy's sparse arrays ask it of what stands on their right.
    """
    out = buffers.to_numpy(require_dense(t, "__array__"), detach=True)
    if dtype is not None and out.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: copy=False, but {out.dtype} to {dtype} needs a copy\n  help: leave copy out")
        return out.astype(dtype)
    return out.copy() if copy else out


@provides("stacked_coordinates")
def stacked_coordinates(s: Storage) -> Array:
    """The crd buffers of a COO storage as one array (levels, nse); a view where they are rows of one."""
    rows = [c for c in s.crd if c is not None]
    first, n = rows[0], buffers.length(rows[0])
    offsets = [buffers.strided_address(r) - buffers.strided_address(first) for r in rows]
    width = buffers.itemsize(buffers.scalar_of(first))
    if n and offsets == [k * n * width for k in range(len(rows))]:
        if isinstance(first, np.ndarray):
            if all(memory_of(r) is memory_of(first) for r in rows):
                return np.lib.stride_tricks.as_strided(first, (len(rows), n), (n * width, width))
        elif all(r.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() for r in rows):
            return first.as_strided((len(rows), n), (n, 1))
    if isinstance(first, np.ndarray):
        return np.stack(rows)
    import torch

    return torch.stack(rows)


def _zero_fill(t: Tensor, operation: str) -> None:
    if t.fill_value:
        raise UnsupportedError(
            f"{operation}: unspecified elements are {t.fill_value} here and 0 there\n  help: to_dense() first"
        )


@provides("to_scipy")
def to_scipy(t: Tensor, format: str | None = None) -> Any:
    """The tensor as a SciPy sparse array.

    Parameters
    ----------
    t : Tensor, rank 1 or 2; any rank for "coo"
    format : "csr", "csc", "bsr", "coo", "dia", "lil" or "dok"; None takes the one that the tensor has, else csr

    Returns
    -------
    scipy.sparse array over the same buffers where the format is SciPy's (index buffers of different widths excepted)

    Raises UnsupportedError for a non-zero fill value or a rank that SciPy does not have.
    """
    _zero_fill(t, "to_scipy")
    if t._storage.scalar in ("f16", "bf16"):
        raise DTypeError(f"to_scipy: SciPy has no sparse {t.dtype}\n  help: astype('float32') first")
    if format is not None and format not in _SCIPY:
        raise UnsupportedError(f"to_scipy: SciPy has no format {format!r}\n  supported: {', '.join(_SCIPY)}")
    layout = _scipy_layout(t)
    kind = format or (layout.kind if layout else _nearest_scipy_format(t))
    if t.ndim == 0 or (t.ndim != 2 and kind != "coo" and not (t.ndim == 1 and kind in ("csr", "dok"))):
        raise UnsupportedError(f"to_scipy: {kind} of rank {t.ndim}\n  supported: rank 2, or 'coo' of rank 1 and more")
    if kind in ("lil", "dok"):
        return to_scipy(t, "coo").asformat(kind)
    if layout is None or layout.kind != kind:
        t = t.asformat(_scipy_format(t, kind))
        layout = layout_of(t.format)
    assert layout is not None
    return _SCIPY_WRITERS[kind](with_own_indices(t), layout)


def with_own_indices(t: Tensor) -> Tensor:
    """The tensor with cached index buffers copied: the library that gets them may write to them."""
    s = t._storage
    if not any(is_kept(b) for b in (*s.pos, *s.crd) if b is not None):
        return t
    return Tensor._from_storage(s.over(s.structure.unkept(), s.scalar, s.fill_value, s.values))


def _scipy_layout(t: Tensor) -> Layout | None:
    """The layout of `t` when SciPy has it as it is."""
    layout = layout_of(t.format)
    if layout is None or layout.batch or layout.dense or layout.kind in ("dense", "bsc"):
        return None
    if layout.kind == "bsr" and t.format.ragged(t.shape):
        return None
    return None if layout.kind == "dia" and not layout.exact else layout


def _nearest_scipy_format(t: Tensor) -> str:
    if t.ndim != 2:
        return "coo"
    return t.format.name if t.format.name in ("dia", "csc") else "csr"


def _scipy_format(t: Tensor, kind: str) -> Any:
    if kind == "dia":
        return DIAGONALS
    if kind in ("coo", "csr") and (kind == "coo" or t.ndim == 1):
        return coo(t.ndim)
    if kind != "bsr":
        return parse(kind)
    block = t.format.blocksize or (1, 1)
    if len(block) != 2 or any(n % b for n, b in zip(t.shape, block, strict=True)):
        block = (1, 1)
    return parse(f"bsr({block[0]}, {block[1]})")


def _host(x: Array | None) -> np.ndarray[Any, Any]:
    out: np.ndarray[Any, Any] = contiguous(buffers.to_numpy(x, detach=True))
    return out


def _equal_widths(*indices: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    dtype = np.result_type(*indices)
    return tuple(x.astype(dtype, copy=False) for x in indices)


def _scipy_compressed(t: Tensor, layout: Layout) -> Any:
    """CSR or CSC; a vector's coordinates are those of SciPy's 1-D CSR too."""
    import scipy.sparse as sp

    s = t._storage
    pos, crd = _equal_widths(_host(s.pos[layout.level]), _host(s.crd[layout.level]))
    out = getattr(sp, f"{layout.kind}_array" if t.ndim == 2 else "csr_array")(t.shape, dtype=_host(s.values).dtype)
    out.indptr, out.indices, out.data = pos, crd, _host(s.values)
    return out


def _scipy_blocked(t: Tensor, layout: Layout) -> Any:
    import scipy.sparse as sp

    s = t._storage
    pos, crd = _equal_widths(_host(s.pos[layout.level]), _host(s.crd[layout.level]))
    data = _blocks(_host(s.values), (len(crd),), layout, ())
    out = sp.bsr_array(t.shape, blocksize=layout.block, dtype=data.dtype)
    out.indptr, out.indices, out.data = pos, crd, data
    return out


def _blocks(values: Array, element_axes: tuple[int, ...], layout: Layout, dense: tuple[int, ...]) -> Array:
    """Values with axes (*front, rows, columns, *dense); a view."""
    rows, columns = layout.block
    if not layout.column_major:
        return values.reshape(*element_axes, rows, columns, *dense)
    return values.reshape(*element_axes, columns, rows, *dense).swapaxes(len(element_axes), len(element_axes) + 1)


@provides("axes_of_values")
def axes_of_values(t: Tensor, layout: Layout) -> Array:
    """The values of a tensor of a layout, a view: (*batch, stored, *blocksize, *dense), of a dense one its shape."""
    values = _viewed(t._storage)
    if layout.kind == "dense":
        return values.reshape(t.shape)
    batch, dense = t.shape[: layout.batch], t.shape[t.ndim - layout.dense :] if layout.dense else ()
    each = math.prod((*batch, *layout.block, *dense))
    axes = (*batch, buffers.length(values) // each if each else _stored(t, layout))
    return _blocks(values, axes, layout, dense) if layout.kind in ("bsr", "bsc") else values.reshape(*axes, *dense)


def _stored(t: Tensor, layout: Layout) -> int:
    """Stored rows of values, or blocks, of each batch, where values do not tell."""
    crd = t._storage.crd[layout.level]
    slices = t._storage.batches
    return buffers.length(crd) // slices if slices and crd is not None else 0


def _scipy_coo(t: Tensor, layout: Layout) -> Any:
    import scipy.sparse as sp

    s = t._storage
    crd = _equal_widths(*(_host(c) for c in s.crd))
    out = sp.coo_array(t.shape, dtype=_host(s.values).dtype)
    if hasattr(out, "coords"):
        out.coords = tuple(crd)
    else:
        out.row, out.col = crd
    out.data = _host(s.values)
    out.has_canonical_format = layout.exact
    return out


def _scipy_dia(t: Tensor, layout: Layout) -> Any:
    import scipy.sparse as sp

    s = t._storage
    data = _host(s.values).reshape(-1, t.shape[1]) if t.shape[1] else np.zeros((0, 0), _host(s.values).dtype)
    out = sp.dia_array(t.shape, dtype=data.dtype)
    out.offsets, out.data = _host(s.crd[0]), data
    return out


_SCIPY_WRITERS: dict[str, Callable[[Tensor, Layout], Any]] = {
    "csr": _scipy_compressed,
    "csc": _scipy_compressed,
    "bsr": _scipy_blocked,
    "coo": _scipy_coo,
    "dia": _scipy_dia,
}
