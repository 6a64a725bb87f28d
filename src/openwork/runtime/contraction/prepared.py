"""Two small CSR matrices -> their product by a prepared call: short rows, one thread, no conversion.

Whatever does not change from call to call is computed once for two structures, and kept in a slot of the first one, so
that a product of tiny matrices costs some microseconds of Python. `spgemm.multiply` computes all others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import tuning
from ...codegen.plan_cache import PlanCache
from ...compiler.semiring import SEMIRINGS
from ...storage.buffers import Array, address, as_array, is_unrecorded, length, numpy_dtype, scalar_of
from ...storage.storage import Storage
from ...storage.structure import keep
from .. import trace
from ..conversion.convert import convert
from ..moves import LITTLE
from ..promote import compute_scalar, promote
from .matricize import CSR
from .sparse import CSC, result_format
from .spgemm import BY_TYPES, KEY_BITS, SHORT, Rows, describe, executable_of, types_of

__all__ = ["prepared_product"]

ROWS, PRODUCTS = tuning.SPGEMM_SMALL_ROWS, tuning.SPGEMM_SMALL_PRODUCTS
WINDOW = tuning.SPGEMM_SMALL_WINDOW
PAIRS = 8
"""Matrices with which a structure keeps its products: each takes eight bytes for a row."""
RING = SEMIRINGS["plus_times"]

ORDER = (
    "apos", "acrd", "a", "bpos", "bcrd", "b", "mpos", "mcrd", "flops", "slots", "pos", "crd", "v", "columns", "width",
    "room", "table", "bits", "digits", "sort_to", "dense_from", "window", "last",
)  # fmt: skip
"""The parameters of the product's kernel, see compiler/spgemm.py."""

_FEW = np.zeros(2, np.int64)


class _Counted(NamedTuple):
    """The products of two structures: those of each row, all of them, and the kernel's arguments that follow."""

    flops: NDArray[np.int64]
    total: int
    sizes: tuple[int, ...]


class _PreparedProduct:
    """The kernels for operands of given types."""

    __slots__ = ("_bound", "_index", "_library", "_product", "_result", "_types", "_value")

    def __init__(self, s: Storage, t: Storage) -> None:
        a, b = (Rows(x.pos[1], x.crd[1], x.values, x.shape[1]) for x in (s, t))
        self._library = s.library
        self._result = _result(s, t)
        self._types = types_of(a, b, self._result)
        self._bound, self._product = (executable_of(kind, self._types, RING) for kind in ("bound", "product"))
        assert tuple(p.name for p in self._product.params) == ORDER
        self._index, self._value = numpy_dtype(self._types.out[1]), numpy_dtype(self._result)

    def count(self, s: Storage, t: Storage) -> _Counted | None:
        """The products of two structures; None where rows are long, or products many."""
        rows, columns = s.shape[0], t.shape[1]
        flops = np.empty(rows, np.int64)
        apos, acrd, _ = s._addresses or s.addresses
        self._bound.run((apos, acrd, (t._addresses or t.addresses)[0], address(flops)), 0, rows)
        most, total = int(flops.max()), int(flops.sum())
        bits, digits = max(1, (columns - 1).bit_length()), max(1, (max(most, 64) - 1).bit_length())
        if (most > SHORT and columns > WINDOW) or total > PRODUCTS or bits + digits > KEY_BITS:
            return None
        window, last = min(columns, WINDOW), max(0, length(s.values) - 1)
        sizes = (columns, window, max(most, 1), 1, bits, digits, SHORT, SHORT + 1, window, last)
        return _Counted(flops, total, sizes)

    def run(self, s: Storage, t: Storage, counted: _Counted, recalled: str) -> Storage:
        """The product, whose products were counted."""
        flops, total, sizes = counted
        rows, no_mask = len(flops), address(_FEW)
        pos = np.zeros(rows + 1, self._index)
        crd, values = np.empty(total, self._index), np.empty(total, self._value)
        buffers = no_mask, no_mask, address(flops), no_mask, address(pos), address(crd), address(values)
        operands = (s._addresses or s.addresses) + (t._addresses or t.addresses)
        self._product.run(operands + buffers + sizes, 0, rows)
        pos.cumsum(out=pos)
        end = int(pos[-1])
        if end < total:
            crd, values = crd[:end], values[:end]
        if trace.steps:
            named, nbytes = dict(zip(ORDER[-len(sizes) :], sizes, strict=True)), pos.nbytes + crd.nbytes + values.nbytes
            describe(RING, self._types, flops, named, 1, self._product, nbytes, trace.prepared(recalled))
        parts: tuple[Array, ...] = pos, crd, values
        if self._library == "torch":
            parts = tuple([as_array(x, like=s.values) for x in parts])
        return Storage((rows, t.shape[1]), CSR, self._result, 0, (None, parts[0]), (None, parts[1]), parts[2])


_KERNELS: PlanCache[tuple[int, int], _PreparedProduct | None] = PlanCache("kernels of small sparse products")
"""By signatures; None where the types are none of a prepared product."""
_NONE = object()


def prepared_product(s: Storage, t: Storage) -> Storage | None:
    """The product of two matrices whose shapes agree, both CSR or one of them, or both CSC; None for large ones, of two
    libraries, and where torch records or transforms an operand."""
    if type(s.values) is not np.ndarray and not (is_unrecorded(s.values) and is_unrecorded(t.values)):
        return None
    if len(s.shape) != 2 or not 0 < s.shape[0] <= ROWS or s.fill_value or t.fill_value:
        return None
    if s.format != CSR or t.format != CSR:
        return _of_other_formats(s, t)
    is_new = s.is_new or t.is_new
    if not is_new:
        slot, key = (s._plans or s.plans).contractions, (t._plans or t.plans).number
        prepared = slot.get(key)
        if prepared is not None:
            call, counted = prepared
            return None if counted is None else call.run(s, t, counted, "with the structures")
    types = s.kind[0], t.kind[0]
    product: Any = _KERNELS.get(types, _NONE)
    recalled = "" if product is _NONE else BY_TYPES
    if product is _NONE:
        product = _KERNELS.keep(types, _PreparedProduct(s, t) if _is_applicable(s, t) else None)
    counted = None if product is None or 0 in (s.shape[1], t.shape[1]) else product.count(s, t)
    if not is_new:
        keep(slot, key, (product, counted), PAIRS)
    return None if counted is None else product.run(s, t, counted, recalled)


def _of_other_formats(s: Storage, t: Storage) -> Storage | None:
    """The product of matrices of little data: transposed where both are CSC; in CSR where one is."""
    if s.format == t.format == CSC:
        product = prepared_product(t.permute((1, 0)), s.permute((1, 0)))
        return None if product is None else product.permute((1, 0)).with_format(CSC)
    one, other = (s, t) if s.format == CSR else (t, s)
    if one.format != CSR or other.format.is_dense or other.device != "cpu" or length(other.values) > LITTLE:
        return None
    if result_format((s, t), (s.shape[0], t.shape[1])) != CSR:
        return None
    return prepared_product(*(convert(x, CSR, share=True) for x in (s, t)))


def _result(s: Storage, t: Storage) -> str:
    return RING.result(promote((s.scalar, t.scalar), s.library))


def _is_applicable(s: Storage, t: Storage) -> bool:
    if any(x.format != CSR or x.library != s.library or x.device != "cpu" for x in (s, t)):
        return False
    edges = {scalar_of(b) for x in (s, t) for b in (x.pos[1], x.crd[1]) if b is not None}
    return edges in ({"i32"}, {"i64"}) and compute_scalar(_result(s, t)) == _result(s, t)
