"""Two matrices of little data -> their sparse product, by two launches of one thread.

    C[i,k] += A[i,j] * B[j,k]

The first launch counts the products of each row, which says what room the second needs. Both are planned by types and
shapes, so that a product of matrices that were never met costs look-ups. `spgemm.multiply` computes all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import tuning
from ...codegen.plan_cache import PlanCache
from ...compiler.semiring import SEMIRINGS
from ...format.format import Format
from ...storage.buffers import address, as_array, is_unrecorded, length, numpy_dtype, scalar_of
from ...storage.iso import element
from ...storage.storage import Storage
from .. import trace
from ..conversion.convert import convert
from ..gradient_hook import rule, tracked
from ..launch import OneLaunch
from ..moves import LITTLE
from ..program import memory_of
from ..promote import compute_scalar, promote
from .matricize import CSR
from .sparse import CSC, result_format
from .spgemm import BY_TYPES, KEY_BITS, SHORT, Rows, describe, executable_of, types_of

__all__ = ["small_product"]

ROWS, PRODUCTS = tuning.SPGEMM_SMALL_ROWS, tuning.SPGEMM_SMALL_PRODUCTS
WINDOW = tuning.SPGEMM_SMALL_WINDOW
RING = SEMIRINGS["plus_times"]
GIVEN = ("apos", "acrd", "a", "bpos", "bcrd", "b", "flops", "pos", "crd", "v", "last", "room", "digits")
"""What each launch gives the kernel, see compiler/spgemm.py; the other words follow from shapes."""


_NOTHING = np.zeros(2, np.int64)
"""In the place of a mask, and of where a range's rows begin."""
_NO_MASK = dict.fromkeys(("mpos", "mcrd", "slots"), address(_NOTHING))


class _TypedProduct:
    """The product of CSR matrices of given types: its launches, without words that follow from shapes."""

    __slots__ = ("count", "index", "product", "result", "types", "value")

    def __init__(self, s: Storage, t: Storage) -> None:
        a, b = (Rows(x.pos[1], x.crd[1], x.values, x.shape[1]) for x in (s, t))
        self.result = _result(s, t)
        self.types = types_of(a, b, self.result)
        self.index, self.value = numpy_dtype(self.types.out[1]), numpy_dtype(self.result)
        bound, product = (executable_of(kind, self.types, RING) for kind in ("bound", "product"))
        self.count = OneLaunch(bound, {}, ("apos", "acrd", "bpos", "flops"))
        self.product = OneLaunch(product, {}, GIVEN)

    def of_shapes(self, s: Storage, t: Storage) -> _Way:
        """The product of matrices of these shapes."""
        return _ShapedProduct(self, s.shape[0], t.shape[1])


class _ShapedProduct:
    """The product of matrices of given types and shapes: its launches, complete but for addresses and sizes."""

    __slots__ = ("_bits", "_columns", "_product", "_rows", "_typed", "_words")

    def __init__(self, typed: _TypedProduct, rows: int, columns: int) -> None:
        self._typed, self._rows, self._columns = typed, rows, columns
        self._bits = max(1, (columns - 1).bit_length())
        window = min(columns, WINDOW)
        self._words = {
            "columns": columns, "width": window, "table": 1, "bits": self._bits, "sort_to": SHORT,
            "dense_from": SHORT + 1, "window": window, **_NO_MASK,
        }  # fmt: skip
        self._product = typed.product.with_words(self._words)

    def __call__(self, s: Storage, t: Storage, recalled: str) -> Storage | None:
        """The product; None where rows are long, or products many."""
        typed, rows = self._typed, self._rows
        flops = np.empty(rows, np.int64)
        one_of_s, one_of_t = typed.types.iso
        first = element(s.values) if one_of_s else s.values
        second = element(t.values) if one_of_t else t.values
        operands: list[Any] = [s.pos[1], s.crd[1], first, t.pos[1], t.crd[1], second]
        if type(s.values) is not np.ndarray:
            operands = memory_of(operands)
        typed.count((operands[0], operands[1], operands[3], flops), 0, rows)
        most, total = int(flops.max()), int(flops.sum())
        digits = max(1, (max(most, 64) - 1).bit_length())
        if (most > SHORT and self._columns > WINDOW) or total > PRODUCTS or self._bits + digits > KEY_BITS:
            return None
        pos = np.zeros(rows + 1, typed.index)
        crd, values = np.empty(total, typed.index), np.empty(total, typed.value)
        last, room = max(0, length(s.values) - 1), max(most, 1)
        self._product((*operands, flops, pos, crd, values, last, room, digits), 0, rows)
        pos.cumsum(out=pos)
        end = int(pos[-1])
        if end < total:
            crd, values = crd[:end], values[:end]
        if trace.steps:
            named, nbytes = {**self._words, "room": room}, pos.nbytes + crd.nbytes + values.nbytes
            prepared = trace.prepared(recalled)
            describe(RING, typed.types, flops, named, 1, self._product.executable, nbytes, prepared)
        shape = rows, self._columns
        if type(s.values) is np.ndarray:
            return Storage(shape, CSR, typed.result, 0, (None, pos), (None, crd), values)
        pos, crd, values = (as_array(x, like=s.values) for x in (pos, crd, values))
        return Storage(shape, CSR, typed.result, 0, (None, pos), (None, crd), values)


_Way = Callable[[Storage, Storage, str], Storage | None]
_PRODUCTS: PlanCache[Any, _Way] = PlanCache("small sparse products", 1 << 12)
"""By signatures and shapes."""


def small_product(s: Storage, t: Storage) -> Storage | None:
    """The product of two matrices whose shapes agree, neither dense; None for large ones, of two libraries, and inside
    transforms of torch."""
    if type(s.values) is not np.ndarray and not (is_unrecorded(s.values) and is_unrecorded(t.values)):
        return rule("small_product")(s, t) if tracked((s.values, t.values)) else None
    if len(s.shape) != 2 or len(t.shape) != 2 or not 0 < s.shape[0] <= ROWS or s.fill_value or t.fill_value:
        return None
    key = s._signature or s.signature, t._signature or t.signature, s.shape, t.shape
    way = _PRODUCTS.get(key)
    if way is None:
        return _PRODUCTS.keep(key, _way(s, t))(s, t, "")
    return way(s, t, BY_TYPES)


def _way(s: Storage, t: Storage) -> _Way:
    """How matrices of these types and shapes are multiplied."""
    if 0 in s.shape or 0 in t.shape or t.shape[1] >= 2**31:
        return _not_small
    key = s.signature, t.signature
    kind = _KINDS.get(key)
    if kind is None:
        kind = _KINDS.keep(key, _kind(s, t))
    return kind(s, t)


_KINDS: PlanCache[Any, Callable[[Storage, Storage], _Way]] = PlanCache("small sparse products by types")


def _kind(s: Storage, t: Storage) -> Callable[[Storage, Storage], _Way]:
    """How matrices of these types are multiplied, as a function of matrices of shapes of their own."""
    if any(x.library != s.library or x.device != "cpu" for x in (s, t)):
        return lambda *_: _not_small
    if s.format == t.format == CSC:
        return lambda *_: _transposed
    if s.format != CSR or t.format != CSR:
        if s.format.is_dense or t.format.is_dense:
            return lambda *_: _not_small
        return _converted_way
    edges = {scalar_of(b) for x in (s, t) for b in (x.pos[-1], x.crd[-1]) if b is not None}
    is_small = edges in ({"i32"}, {"i64"}) and compute_scalar(_result(s, t)) == _result(s, t)
    return _TypedProduct(s, t).of_shapes if is_small else lambda *_: _not_small


def _converted_way(s: Storage, t: Storage) -> _Way:
    """The product of matrices of other formats."""
    target = result_format((s, t), (s.shape[0], t.shape[1]))
    return _converted if target == CSR else partial(_converted_to, target)


def _not_small(s: Storage, t: Storage, recalled: str) -> None:
    """Other types go by `spgemm.multiply`."""


def _transposed(s: Storage, t: Storage, recalled: str) -> Storage | None:
    """The product of two CSC matrices, as that of their transposes, which are CSR."""
    product = small_product(t.permute((1, 0)), s.permute((1, 0)))
    return None if product is None else product.permute((1, 0)).with_format(CSC)


def _converted(s: Storage, t: Storage, recalled: str) -> Storage | None:
    """The product of matrices of other formats, converted where that is one launch."""
    m, n = length(s.values), length(t.values)
    if max(m, n) > LITTLE or m * n > 2 * PRODUCTS * t.shape[0]:  # products of rows of equal lengths
        return None
    return small_product(convert(s, CSR, share=True), convert(t, CSR, share=True))


def _converted_to(target: Format, s: Storage, t: Storage, recalled: str) -> Storage | None:
    """The same in another format than CSR."""
    product = _converted(s, t, recalled)
    return None if product is None else convert(product, target, share=True)


def _result(s: Storage, t: Storage) -> str:
    return RING.result(promote((s.scalar, t.scalar), s.library))
