"""Arrow's sparse tensors (pyarrow's SparseCOOTensor, SparseCSRMatrix, SparseCSCMatrix, SparseCSFTensor) <-> Tensors.

Buffers are shared where Arrow's are one vector for each level; those of Arrow are read-only. Its coordinates are one
matrix, a row for each element, which is copied into columns.
"""

from __future__ import annotations

import sys
from itertools import permutations
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..format import coo
from ..format import format as parse
from ..format.expression import Dim
from ..format.format import Format
from ..provided import provides
from ..runtime.check import check
from ..storage import buffers
from ..storage.iso import contiguous
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .buffer_policy import BufferPolicy, to_strictest_format

__all__ = ["from_arrow", "is_arrow", "to_arrow"]

_MOST_TRIED = 5
"""The most dimensions whose every order is tried."""
_CLASSES = ("SparseCOOTensor", "SparseCSRMatrix", "SparseCSCMatrix", "SparseCSFTensor")


def is_arrow(obj: object) -> bool:
    """Whether `obj` is a sparse tensor of pyarrow, which is not imported for it."""
    return (
        type(obj).__name__ in _CLASSES
        and type(obj).__module__.partition(".")[0] == "pyarrow"
        and "pyarrow" in sys.modules
    )


def from_arrow(obj: Any, policy: BufferPolicy) -> Tensor:
    """The tensor of a sparse tensor of Arrow's, in the format that it has, all invariants checked."""
    kind, shape = type(obj).__name__, tuple(int(n) for n in obj.shape)
    data, *indices = obj.to_numpy()
    values = policy.flat(np.asarray(data).reshape(-1))
    pos: dict[int, Any] = {}
    crd: dict[int, Any]
    if kind == "SparseCOOTensor":
        columns = np.asarray(indices[0])
        format = coo(len(shape), unique=False, ordered=False)
        crd = {d: _index(np.ascontiguousarray(columns[:, d]), policy) for d in range(len(shape))}
        pos[0] = np.array([0, len(columns)], crd[0].dtype)
    elif kind == "SparseCSFTensor":
        pointers, columns = indices
        order = _order(obj, data, pointers, columns)
        inverse = [order.index(d) for d in range(len(shape))]
        format = parse("csf", len(shape)).permute(inverse)
        crd = {k: _index(np.asarray(c).reshape(-1), policy) for k, c in enumerate(columns)}
        pos = {k + 1: _index(np.asarray(p).reshape(-1), policy) for k, p in enumerate(pointers)}
        pos[0] = np.array([0, len(crd[0])], crd[0].dtype)
    else:
        format = parse("csr" if kind == "SparseCSRMatrix" else "csc")
        pos, crd = ({1: _index(np.asarray(b).reshape(-1), policy)} for b in indices)
    if len({b.dtype for b in (*pos.values(), *crd.values())}) > 1:
        pos, crd = ({k: b.astype(np.int64, copy=False) for k, b in side.items()} for side in (pos, crd))
    sides = [tuple(side.get(k) for k in range(len(shape))) for side in (pos, crd)]
    scalar = buffers.scalar_of(values)
    storage = Storage(shape, format, scalar, values.dtype.type(0).item(), sides[0], sides[1], values)
    check(storage)
    return to_strictest_format(storage)


def _order(obj: Any, data: Any, pointers: Any, columns: Any) -> tuple[int, ...]:
    """The dimensions of a CSF in the order of its levels.

    Arrow does not say it to Python, and takes it for a part of equality: the order is that with which the same buffers
    are an equal tensor. Raises UnsupportedError where none of those that are tried is.
    """
    ndim = len(obj.shape)
    likely: tuple[tuple[int, ...], ...] = (tuple(range(ndim)), tuple(np.argsort(obj.shape, kind="stable").tolist()))
    every: list[tuple[int, ...]] = list(permutations(range(ndim))) if ndim <= _MOST_TRIED else []
    for order in (*likely, *every):
        made = type(obj).from_numpy(data, pointers, columns, shape=obj.shape, axis_order=list(order))
        if obj.equals(made):
            return order
    raise UnsupportedError(
        f"asarray: SparseCSFTensor of shape {tuple(obj.shape)}: in which order are its dimensions?\n  help: give a"
        " SparseCOOTensor"
    )


def _index(array: Any, policy: BufferPolicy) -> Any:
    """Pointers or indices as 32 or 64 bits."""
    array = array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)
    return policy.copied_if_asked(array, array.flags.owndata)


@provides("to_arrow")
def to_arrow(t: Tensor) -> Any:
    """The sparse tensor of pyarrow: CSR and CSC as matrices, CSF as that, every other format as coordinates.

    Raises UnsupportedError for a fill value, a scalar, values that Arrow's tensors do not have, and where pyarrow is
    missing.
    """
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError("to_arrow: pyarrow is not installed\n  help: pip install pyarrow") from None
    if t.fill_value != 0 or not t.ndim:
        what = f"elements that are not stored are {t.fill_value!r}" if t.ndim else "a scalar has no coordinates"
        raise UnsupportedError(f"to_arrow: {what}\n  help: to_numpy(), or write a file that has fill values")
    dtype = buffers.numpy_dtype(t._storage.scalar)
    if np.dtype(dtype).kind not in "iuf":
        raise UnsupportedError(f"to_arrow: Arrow has no tensors of {t.dtype}\n  help: astype('float64')")
    order = _csf_order(t.format) if t.ndim > 1 else None
    if t.format not in (parse("csr"), parse("csc")) and order is None:
        t = t.asformat("coo")
    s = t._storage
    values = contiguous(buffers.to_numpy(s.values, detach=True))
    pos, crd = ([None if b is None else buffers.to_numpy(b, detach=True) for b in side] for side in (s.pos, s.crd))
    shape = tuple(int(n) for n in t.shape)
    if t.format == parse("csr"):
        return pyarrow.SparseCSRMatrix.from_numpy(values, pos[1], crd[1], shape=shape)
    if t.format == parse("csc"):
        return pyarrow.SparseCSCMatrix.from_numpy(values, pos[1], crd[1], shape=shape)
    if order is not None:
        return pyarrow.SparseCSFTensor.from_numpy(values, pos[1:], crd, shape=shape, axis_order=order)
    rows = np.stack([c for c in crd if c is not None], axis=1)
    if not rows.size:  # of nothing Arrow takes one stride alone for contiguous
        rows = np.lib.stride_tricks.as_strided(np.zeros(rows.shape, np.int64), rows.shape, (8, 8))
    return pyarrow.SparseCOOTensor.from_numpy(values, rows, shape=shape)


def _csf_order(format: Format) -> list[int] | None:
    """The dimensions of a CSF in the order of its levels; None of another format."""
    levels = format.levels
    is_csf = all(x.format.is_compressed and x.format.unique and x.format.ordered for x in levels)
    dims = [x.expression.index for x in levels if isinstance(x.expression, Dim)]
    return dims if is_csf and len(dims) == format.ndim else None
