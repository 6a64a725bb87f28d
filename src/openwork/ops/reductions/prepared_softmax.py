"""Softmax of a tensor whose structure has seen it -> four launches and the library's exponentials.

    m[i] max= A[i, j];  C[i, j] = A[i, j] - finite(m[i]);  C = exp(C);  t[i] += C[i, j];  C[i, j] = C[i, j] / t[i]

The numbers are those of the general road, operation by operation; maxima and sums stand in arrays of NumPy, which only
the launches see.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from ... import tuning
from ...ir.index import Access, Apply, Assignment, Literal
from ...runtime import trace
from ...runtime.contract import contract, sample
from ...runtime.gradient_hook import rule
from ...runtime.prepared import PreparedCall, key_of, recall
from ...runtime.prepared_moves import NEVER, ONCE, is_plain
from ...runtime.prepared_reductions import ASKED_LATER
from ...runtime.prepared_results import template
from ...runtime.strided import strided
from ...runtime.values import apply
from ...storage.buffers import address, numpy_dtype, to_numpy
from ...storage.recorded import bare
from ...storage.storage import Storage
from ...storage.structure import keep
from ...tensor.tensor import Tensor
from .folds import axes_of, statement_names

__all__ = ["keep_softmax", "max_statement", "softmax_recalled", "sum_statement"]

KEPT = tuning.MOVES_KEPT


class _Softmax:
    """The launches of one structure, axis and type of values."""

    __slots__ = ("_record", "dtype", "largest", "like", "quotient", "rows", "shifted", "short", "stmt", "total")

    def __init__(
        self,
        s: Storage,
        stmt: Assignment,
        rows: tuple[int, ...],
        launches: tuple[PreparedCall, PreparedCall, PreparedCall, PreparedCall],
    ) -> None:
        self.largest, self.shifted, self.total, self.quotient = launches
        self.rows, self.dtype, self.like = rows, numpy_dtype(s.scalar), template(s.values)
        short = [launch.short for launch in launches if launch.short is not None]
        self.short = tuple(short) if len(short) == len(launches) else None
        self.stmt = stmt
        self._record: Any = ASKED_LATER

    def run(self, s: Storage) -> Storage | None:
        """The softmax of a storage; None where torch transforms its values, or the launches hold no more."""
        if not self.largest.valid:
            return None
        if self.like is None:
            return s.with_own_values(self._launch(s.values))
        torch = sys.modules["torch"]
        if torch.autograd.forward_ad._current_level >= 0 or torch._C._functorch.maybe_current_level() is not None:
            return None
        if not s.values.requires_grad or not torch.is_grad_enabled():
            return s.with_own_values(self._launch(s.values))
        if self._record is ASKED_LATER:
            self._record = rule("recorded_softmax")(self.stmt, s, math.prod(self.rows))
        return None if self._record is None else s.with_own_values(self._record(self._launch, s.values))

    def _launch(self, values: Any) -> Any:
        """The softmax of values that are not recorded."""
        like = self.like
        torch: Any = None if like is None else sys.modules["torch"]
        shifted: Any = np.empty(len(values), self.dtype) if torch is None else torch.empty_like(like)
        out: Any = np.empty(len(values), self.dtype) if torch is None else torch.empty_like(like)
        rows = np.empty(self.rows, self.dtype)
        rows.fill(-np.inf)
        if self.short is None:
            self._run(address(values if torch is None else values.detach()), shifted, rows, address(out))
            return out
        largest, shift, total, quotient = self.short
        begin, where, end = values, shifted, out
        if torch is not None:
            begin, where, end = values.data_ptr(), shifted.data_ptr(), out.data_ptr()
        if code := largest(begin, rows) or shift(begin, rows, where):
            self.largest.end(code)
        _exponentials(shifted)
        rows.fill(0)
        if code := total(where, rows) or quotient(where, rows, end):
            self.total.end(code)
        return out

    def _run(self, begin: int, shifted: Any, rows: np.ndarray[Any, Any], end: int) -> None:
        """The launches where they are not short, of values and a result at these addresses."""
        where, row = address(shifted), address(rows)
        self.largest.start(begin, (), row)
        self.shifted.start_one(begin, row, where)
        _exponentials(shifted)
        rows.fill(0)
        self.total.start(where, (), row)
        self.quotient.start_one(where, row, end)


def _exponentials(x: Any) -> None:
    """Exponentials in place, by the array's library."""
    if type(x) is not np.ndarray:
        x.exp_()
        return
    with np.errstate(all="ignore"):
        np.exp(x, x)


def softmax_recalled(t: Any, axis: Any) -> Tensor | None:
    """The softmax of a tensor by its prepared launches; None where there are none."""
    if type(t) is not Tensor or type(axis) is not int or trace.steps:
        return None
    s = t._storage
    prepared = (s._plans or s.plans).reductions.get(("softmax", axis))
    result = prepared.run(s) if type(prepared) is _Softmax else None
    return None if result is None else Tensor._from_storage(result)


def keep_softmax(t: Tensor, axis: int, result: Tensor) -> None:
    """Note a softmax that has just been computed; the second time, keep its launches, where these give its numbers."""
    s = t._storage
    if type(t) is not Tensor or type(axis) is not int or s.scalar not in ("f32", "f64") or trace.active():
        return
    n = s.values.shape[0]
    if not 0 < n <= KEPT or s.nse != n or s.format.is_dense or not s.format.is_unique or str(s.fill_value) != "0.0":
        return
    if s.device != "cpu" or not is_plain(s.values):
        return
    slot, key = s.plans.reductions, ("softmax", axis)
    if slot.get(key) != ONCE:
        keep(slot, key, ONCE if key not in slot else NEVER)
        return
    slot[key] = NEVER
    s = s if s.library == "numpy" else s.with_values(bare(s.values))
    names, kept = statement_names(t.ndim, axes_of(axis, t.ndim, lists=False))
    largest = contract(max_statement(names, kept), {"A": s}, s.scalar, s.values)
    shifted = sample(_shift(names, kept), {"A": s, "D": strided(largest)}, s.scalar)
    powers = s.with_values(apply("exp", shifted.values))
    total = contract(sum_statement(names, kept), {"A": powers}, s.scalar, s.values)
    quotient = sample(_divide(names, kept), {"A": powers, "D": strided(total)}, s.scalar)
    values = result._storage.values
    if to_numpy(quotient.values).tobytes() != to_numpy(values if s.library == "numpy" else bare(values)).tobytes():
        return
    launches: list[PreparedCall] = []
    for stmt, kind, operand in (
        (max_statement(names, kept), "", None),
        (_shift(names, kept), " shared", largest),
        (sum_statement(names, kept), "", None),
        (_divide(names, kept), " shared", total),
    ):
        dense = {} if operand is None else {"D": strided(operand)}
        call = recall(s, key_of(stmt, f"{s.scalar}{kind}", {"A": s, **dense}))
        if call is None or call.problem.copies or any(on_line for *_, on_line in call.inputs):
            return
        if operand is not None and (call.single_slots is None or not call.prepared.schedule.no_alias):
            return
        launches.append(call)
    stmt = sum_statement(names, kept)
    prepared = _Softmax(s, stmt, tuple(largest.shape), (launches[0], launches[1], launches[2], launches[3]))
    slot[key] = prepared


@lru_cache(maxsize=256)
def max_statement(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """s[i] max= A[i, j]; cached, as its hash is in all keys of launches."""
    return Assignment(Access("s", kept_indices), "max=", Access("A", names))


@lru_cache(maxsize=256)
def sum_statement(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """s[i] += A[i, j]."""
    return Assignment(Access("s", kept_indices), "+=", Access("A", names))


@lru_cache(maxsize=256)
def _shift(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """C[i, j] = A[i, j] - select(isfinite(D[i]), D[i], 0)."""
    largest = Access("D", kept_indices)
    finite = Apply("select", (Apply("isfinite", (largest,)), largest, Literal(0.0)))
    return Assignment(Access("C", names), "=", Apply("sub", (Access("A", names), finite)))


@lru_cache(maxsize=256)
def _divide(names: tuple[str, ...], kept_indices: tuple[str, ...]) -> Assignment:
    """C[i, j] = A[i, j] / D[i]."""
    return Assignment(Access("C", names), "=", Apply("div", (Access("A", names), Access("D", kept_indices))))
