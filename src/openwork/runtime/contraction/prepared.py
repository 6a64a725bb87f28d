"""Two small CSR matrices -> their product by a prepared call: short rows, one thread, no conversion.

Whatever does not change from call to call is computed once for a pair of signatures, so that a product of tiny matrices
costs some microseconds of Python. `spgemm.multiply` computes all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import tuning
from ...codegen.plan_cache import PlanCache
from ...compiler.semiring import SEMIRINGS
from ...storage.buffers import address, length, numpy_dtype
from ...storage.storage import Storage
from ..promote import compute_scalar, promote
from .matricize import CSR
from .spgemm import SHORT, Rows, executable_of, types_of

__all__ = ["prepared_product"]

ROWS, PRODUCTS = tuning.SPGEMM_SMALL_ROWS, tuning.SPGEMM_SMALL_PRODUCTS
WINDOW = tuning.SPGEMM_SMALL_WINDOW

ORDER = (
    "apos", "acrd", "a", "bpos", "bcrd", "b", "mpos", "mcrd", "flops", "slots", "pos", "crd", "v", "columns", "width",
    "room", "table", "bits", "digits", "sort_to", "dense_from", "window", "last",
)  # fmt: skip
"""The parameters of the product's kernel, see compiler/spgemm.py."""

_PLANS: PlanCache[tuple[int, int], Any] = PlanCache("sparse products")
"""By signatures: a prepared product, or None where it does not apply."""
_NOT_PREPARED = object()
_FEW = np.zeros(2, np.int64)


class _PreparedProduct:
    """The prepared call for operands of given signatures."""

    __slots__ = ("_bound", "_index", "_product", "_result", "_value")

    def __init__(self, s: Storage, t: Storage) -> None:
        ring = SEMIRINGS["plus_times"]
        self._result = _result(s, t)
        a, b = (Rows(x.pos[1], x.crd[1], x.values, x.shape[1]) for x in (s, t))
        types = types_of(a, b, self._result)
        self._bound = executable_of("bound", types, ring)
        self._product = executable_of("product", types, ring)
        assert tuple(p.name for p in self._product.params) == ORDER
        self._index, self._value = numpy_dtype(types.out[1]), numpy_dtype(self._result)

    def __call__(self, s: Storage, t: Storage) -> Storage | None:
        rows, columns = s.shape[0], t.shape[1]
        flops = np.empty(rows, np.int64)
        apos, acrd, a = s.addresses
        bpos, bcrd, b = t.addresses
        at = address(flops)
        self._bound.run((apos, acrd, bpos, at), 0, rows)
        most, total = int(flops.max()), int(flops.sum())
        bits, digits = max(1, (columns - 1).bit_length()), max(1, (max(most, 64) - 1).bit_length())
        if most > SHORT or total > PRODUCTS or bits + digits > 62:
            return None
        pos = np.zeros(rows + 1, self._index)
        crd, values = np.empty(total, self._index), np.empty(total, self._value)
        no_mask = address(_FEW)
        window = min(columns, WINDOW)
        arguments = (
            apos, acrd, a, bpos, bcrd, b, no_mask, no_mask, at, no_mask, address(pos), address(crd), address(values),
            columns, window, max(most, 1), 1, bits, digits, SHORT, SHORT + 1, window, max(0, length(s.values) - 1),
        )  # fmt: skip
        self._product.run(arguments, 0, rows)
        np.cumsum(pos, out=pos)
        end = int(pos[-1])
        if end < total:
            crd, values = crd[:end], values[:end]
        return Storage((rows, columns), CSR, self._result, 0, (None, pos), (None, crd), values)


def prepared_product(s: Storage, t: Storage) -> Storage | None:
    """The product of two CSR matrices whose shapes agree; None for large ones and other formats or libraries."""
    if len(s.shape) != 2 or s.shape[0] > ROWS or not s.shape[0]:
        return None
    key = s.signature, t.signature
    product: Any = _PLANS.get(key, _NOT_PREPARED)
    if product is _NOT_PREPARED:
        product = _PLANS.keep(key, _PreparedProduct(s, t) if _is_applicable(s, t) else None)
    if product is None or s.fill_value or t.fill_value or not s.shape[1] or not t.shape[1]:
        return None
    result: Storage | None = product(s, t)
    return result


def _result(s: Storage, t: Storage) -> str:
    return SEMIRINGS["plus_times"].result(promote((s.scalar, t.scalar), "numpy"))


def _is_applicable(s: Storage, t: Storage) -> bool:
    if any(x.format != CSR or x.library != "numpy" for x in (s, t)):
        return False
    edges = (b for x in (s, t) for b in (x.pos[1], x.crd[1]))
    return all(b is not None and b.dtype == np.int32 for b in edges) and compute_scalar(_result(s, t)) == _result(s, t)
