"""Runs the plan of a sum of products: operands and index letters in, a sparse Tensor or a dense array out.

`compiler.schedule.product` decides the steps; here each is handed to the runtime by its route. `einsum`, `mttkrp`,
`ttm`, `ttv`, `tensordot`, `sddmm` and `evaluate` are front ends of `product`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

import numpy as np

from ...compiler.schedule import OperandFacts, Plan, Route, Step, plan_product
from ...compiler.schedule.product import index_notation_of, keeps_any, product_statement, sum_format
from ...compiler.semiring import Semiring
from ...format import coo
from ...format.format import Format
from ...ir.index import Access, Apply, Assignment, Expression
from ...ir.types import COMPLEX
from ...runtime import trace
from ...runtime.contract import contract, sample
from ...runtime.contraction.matricize import scalar_storage
from ...runtime.contraction.small_product import small_product
from ...runtime.contraction.sparse import Term, absent, alone, in_format, pair, result_format
from ...runtime.duplicates import summed, summed_as
from ...runtime.gradient_hook import tracked
from ...runtime.promote import promote
from ...runtime.strided import strided
from ...storage.buffers import Array, cast, is_torch, length, library_of, scalar_of
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..elementwise.maps import elementwise
from ..result_format import fits
from ..stored_fibres import sparse_reduction
from .dense import dense_product

__all__ = ["product", "sampled"]

Labelled = tuple[str, Array]
"""A dense operand and its letters."""


def product(
    inputs: tuple[str, ...], output: str, operands: Sequence[Any], ring: Semiring, target: Format | None, what: str
) -> Any:  # fmt: skip
    """The sum of products of sparse Tensors and dense arrays, over a semiring.

    Parameters
    ----------
    inputs, output : letters of each operand, and those of the result
    target : the result's format, where one is asked for
    what : the operation in messages

    Returns
    -------
    a sparse Tensor or a dense array, whichever the plan's last step gives; in the format `target` only where that costs
    nothing
    """
    operands = one_library(*operands)
    with_sizes = target is not None or len(operands) > 2
    facts = tuple([_describe_operand(x, with_sizes) for x in operands])
    walks = ring.name == "plus_times" or _walks(ring, operands)
    plan = plan_product(inputs, output, facts, ring, target, walks)
    values = _bind_operands(inputs, operands, ring, plan, what)
    result: Any = values.get("T0")
    for number, step in enumerate(plan.steps, 1):
        _trace_step(step, number, len(plan.steps))
        result = _ROUTES[step.route]([values[n] for n in step.statement.tensors], step, ring, what, target)
        values[step.statement.lhs.tensor] = result
    if isinstance(result, Tensor):
        return result
    if isinstance(result, Term):
        format = target or _default_format(inputs, output, operands, result)
        stored = in_format(result, output, format)
        would_walk = not walks and target is None and len(operands) == 2 and any(x.format is None for x in facts)
        made = Tensor._from_storage(stored)
        return made.to_dense() if would_walk and index_notation_of(ring) else made
    letters, array = result
    order = [letters.index(c) for c in output]
    if order == list(range(len(order))):
        return array
    return array.transpose(order) if isinstance(array, np.ndarray) else array.permute(order)


def _walks(ring: Semiring, operands: Sequence[Any]) -> bool:
    """Whether statements compute the products of a semiring.

    Those that torch records by sums of products alone, and of complex numbers, which are not ordered, those that no
    order chooses.
    """
    assign, times = index_notation_of(ring) or ("", "")
    buffers = [x.values if isinstance(x, Tensor) else x for x in operands]
    if assign not in ("+=", "*=", "&=", "|=") and keeps_any(ring) and any(scalar_of(b) in COMPLEX for b in buffers):
        return False
    return (assign == "+=" and times not in ("add", "min", "max")) or not tracked(buffers)


def _default_format(inputs: tuple[str, ...], output: str, operands: Sequence[Any], result: Term) -> Format:
    """The format of a sparse result: of one operand that is summed its own levels, of others what they have alike."""
    stored = [x._storage for x in operands if isinstance(x, Tensor)] or [result.storage]
    extents = [result.extents[c] for c in output]
    if len(inputs) == 1 and any(c not in output for c in inputs[0]):
        kept = sum_format(inputs[0], output, stored[0].format)
        if kept is not None and fits(kept, tuple(extents), length(result.storage.values)):
            return kept
    return result_format(stored, extents)


def _describe_operand(x: Any, with_sizes: bool) -> OperandFacts:
    """An operand -> its format, for the planner; with its extents and nse where the plan weighs them."""
    if not isinstance(x, Tensor):
        return OperandFacts(None, tuple(x.shape)) if with_sizes else OperandFacts(None)
    s = x._storage
    return OperandFacts(s.format, s.shape, length(s.values)) if with_sizes else OperandFacts(s.format)


def _bind_operands(
    inputs: tuple[str, ...], operands: Sequence[Any], ring: Semiring, plan: Plan, what: str
) -> dict[str, Any]:
    """Operands by the names that steps use (T0, T1, ...), of which only stored elements take part.

    Raises UnsupportedError for fill values that do.
    """
    like = next((x for x in operands if not isinstance(x, Tensor)), None)
    by_walks, cast_all, in_sums = plan.casts
    walks = ring.name == "plus_times" and by_walks
    values = [(x._storage if walks else summed(x._storage)) if isinstance(x, Tensor) else x for x in operands]
    scalars = tuple(x.scalar if isinstance(x, Storage) else scalar_of(x) for x in values)
    scalar = ring.result(promote(scalars, library_of(values[0].values if like is None else like)))
    bound: dict[str, Any] = {}
    for k, (term, x) in enumerate(zip(inputs, values, strict=True)):
        is_alone = len(inputs) == 1 or (f"T{k}" in in_sums and ring.dtype in ("promote", "bool"))
        if isinstance(x, Storage):
            x = absent(x, ring, scalar, what)
            cast_now = is_alone or (cast_all and ring.dtype == "promote")
            bound[f"T{k}"] = Term(term, _cast(x, scalar) if cast_now else x)
        else:
            cast_now = is_alone or cast_all or f"T{k}" in in_sums or ring.dtype == "bool"
            bound[f"T{k}"] = term, cast(x, scalar) if cast_now else x
    return bound


def _cast(s: Storage, scalar: str) -> Storage:
    s = summed_as(s, scalar)
    return s if s.scalar == scalar else s.with_values(cast(s.values, scalar), python_scalar(s.fill_value, scalar))


def _trace_step(step: Step, number: int, count: int) -> None:
    """Add to the trace of `explain` a step whose order was chosen by an estimate."""
    if trace.active() and step.estimate is not None:
        facts = (("terms", str(step.statement)), ("estimate", f"{step.estimate:,.0f} elements"))
        trace.note(trace.Step(f"step {number} of {count} by the cheapest path", facts))


# -- the routes --------------------------------------------------------------------------------------------------------
# Operands of a step, the step, the semiring, the operation in messages and the format that is asked for -> the result.


def _output_letters(step: Step) -> str:
    return "".join(step.statement.lhs.indices)


def _walk(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Labelled:
    """One sparse operand with dense ones: one kernel, whose result is dense."""
    stmt, bound, scalar, like = _bind_walk(values, step, ring)
    try:
        result = contract(stmt, bound, scalar, like)
        if keeps_any(ring) and stmt.op == "max=":
            result = _zero_without_terms(result, stmt, bound, like)
        return _output_letters(step), result
    except MemoryError as error:
        raise MemoryError(f'{what}: {error}\n  help: einsum(..., format="coo") gives a sparse result') from None


def _zero_without_terms(result: Array, stmt: Assignment, bound: Mapping[str, Any], like: Array) -> Array:
    """The largest of each element's terms, 0 where the sparse operand has none for it."""
    driver = next(a for a in stmt.accesses if isinstance(bound[a.tensor], Storage))
    kept = tuple(i for i in stmt.lhs.indices if i in driver.indices)
    presence = Assignment(Access("out", kept), "|=", Apply("pattern", (driver,)))
    present = contract(presence, {driver.tensor: bound[driver.tensor]}, "bool", like)
    if any(0 in x.shape for x in bound.values()):
        present = present & False
    shape = iter(present.shape)
    present = present.reshape([next(shape) if i in kept else 1 for i in stmt.lhs.indices])
    return np.where(present, result, result.dtype.type(0)) if not is_torch(result) else result.masked_fill(~present, 0)


def _sample(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Tensor:
    bound = {n: x.storage if isinstance(x, Term) else x[1] for n, x in zip(step.statement.tensors, values, strict=True)}
    return sampled(step.statement, bound)


def _bind_walk(values: list[Any], step: Step, ring: Semiring) -> tuple[Assignment, dict[str, Any], str, Any]:
    """The statement of a walk, its operands by name, the scalar type of the result and an array of its library."""
    ops = index_notation_of(ring)
    assert ops is not None
    bound: dict[str, Any] = {}
    like: Any = None
    for k, x in enumerate(values):
        bound[f"T{k}"] = x.storage if isinstance(x, Term) else strided(x[1])
        like = bound[f"T{k}"].owner if not isinstance(x, Term) else like
    sparse = next(x.storage for x in values if isinstance(x, Term))
    like = sparse.values if like is None else like
    scalar = ring.result(promote(tuple(v.scalar for v in bound.values()), library_of(like)))
    letters = tuple(x.letters if isinstance(x, Term) else x[0] for x in values)
    return product_statement(letters, _output_letters(step), *ops), bound, scalar, like


def sampled(stmt: Assignment, values: Mapping[str, Any]) -> Tensor:
    """`C[i, j] += S[i, j] * A[i, k] * B[k, j]` of one storage and dense arrays, into the structure of the storage.

    As `pattern(S[i, j])` in the statement its values play no part, nor does their type.
    """
    driver = next(a for a in stmt.accesses if isinstance(values[a.tensor], Storage))
    bound = {n: x if isinstance(x, Storage) else strided(x) for n, x in values.items()}
    factors = _factors(stmt.rhs)
    scalars = tuple(v.scalar for n, v in bound.items() if n != driver.tensor or driver in factors)
    like = next((v.owner for v in bound.values() if not isinstance(v, Storage)), values[driver.tensor].values)
    driver_statement = replace(stmt, lhs=Access(stmt.lhs.tensor, driver.indices))
    result = sample(driver_statement, bound, promote(scalars, library_of(like)))
    order = tuple(driver.indices.index(i) for i in stmt.lhs.indices)
    return Tensor._from_storage(result if order == tuple(range(len(order))) else result.permute(order))


def _factors(e: Expression) -> list[Expression]:
    return [f for a in e.args for f in _factors(a)] if isinstance(e, Apply) and e.op == "mul" else [e]


def _merge(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Term:
    """The elementwise product of two sparse terms of the same letters, by a merge, or of one with a dense operand of
    letters that it has."""
    x, y = values if isinstance(values[0], Term) else values[::-1]
    if not isinstance(y, Term):
        left = Tensor._from_storage(x.storage)
        return Term(x.letters, elementwise("mul", left, _along(x.letters, *y), zero_annihilates=True)._storage)
    if length(y.storage.values) > length(x.storage.values):  # the shorter one is converted to the order of the other
        x, y = y, x
    left = Tensor._from_storage(x.storage)
    right = Tensor._from_storage(y.storage.permute([y.letters.index(c) for c in x.letters]))
    return Term(x.letters, elementwise("mul", left, right, zero_annihilates=True)._storage)


def _along(letters: str, own: str, array: Any) -> Any:
    """A dense operand with a dimension for each of `letters`, of extent 1 where it has none."""
    order = [own.index(c) for c in letters if c in own]
    moved = array.transpose(order) if isinstance(array, np.ndarray) else array.permute(order)
    sizes = iter(moved.shape)
    return moved.reshape(tuple(next(sizes) if c in own else 1 for c in letters))


def _contract(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Term:
    x, y, output = values[0], values[-1], _output_letters(step)
    if ring.name == "plus_times" and x.letters[1:] + output == y.letters[:1] + x.letters[:1] + y.letters[1:]:
        small = small_product(x.storage, y.storage)
        if small is not None:
            return Term(output, small)
    return pair(x, y, output, ring)


def _fold(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Term:
    """A sparse operand with each letter once, of those of the output, the others summed over its stored fibres."""
    (term,), output = values, _output_letters(step)
    term = alone(term, term.letters, ring)  # diagonals
    kept = "".join(c for c in term.letters if c in output)
    op = _ASSIGNMENTS.get(ring.add.operation)
    axes = tuple(d for d, c in enumerate(term.letters) if c not in kept)
    if not axes or op is None:
        return alone(term, kept, ring)
    s = term.storage
    if not kept:
        value = contract(product_statement((term.letters,), "", op), {"T0": s}, s.scalar, s.values)
        zero = python_scalar(ring.add.identity_of(s.scalar), s.scalar)
        return Term("", scalar_storage(value.reshape(-1), s.scalar, zero, s.values))
    target = (sum_format(term.letters, kept, s.format) if target is None else None) or coo(len(kept))
    plan = sparse_reduction(Tensor._from_storage(s), axes, False, target=target)
    if plan is None:
        return alone(Term(term.letters, s), kept, ring)
    rows = plan.rows
    letters = ascii_letters[: len(rows.shape)]
    stmt = product_statement((letters,), letters[0], op)
    fibre_values = contract(stmt, {"T0": rows}, s.scalar, rows.values)
    return Term(kept, plan.result(fibre_values, ring.add.identity_of(s.scalar))._storage)


_ASSIGNMENTS = {"x + y": "+=", "x * y": "*=", "min(x, y)": "min=", "max(x, y)": "max=", "x | y": "|=", "x & y": "&="}
"""The sums of semirings -> how a statement reduces by them."""


def _store(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Term:
    """A dense operand -> a sparse term: without zeros for plus_times, else with all but the semiring's zero."""
    ((letters, array),) = values
    t = Tensor._from_dense(array)
    if ring.name == "plus_times":
        return Term(letters, t.asformat(coo(t.ndim))._storage)
    return Term(letters, absent(t._storage, ring, ring.result(t._storage.scalar), what))


def _dense(values: list[Any], step: Step, ring: Semiring, what: str, target: Format | None) -> Labelled:
    return _output_letters(step), dense_product(
        tuple(v[0] for v in values), _output_letters(step), [v[1] for v in values]
    )


_ROUTES: dict[Route, Callable[[list[Any], Step, Semiring, str, Format | None], Any]] = {
    Route.WALK: _walk, Route.SAMPLE: _sample, Route.MERGE: _merge, Route.CONTRACT: _contract, Route.FOLD: _fold,
    Route.STORE: _store, Route.DENSE: _dense,
}  # fmt: skip
