"""A statement with one sparse operand, and its operands -> a new dense array, or values on its structure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from .. import tuning
from ..codegen import pool
from ..codegen.plan_cache import PlanCache
from ..errors import CompilerBug, UnsupportedError
from ..ir.index import Access, Apply, Assignment, Expression
from ..ir.types import FLOATS
from ..storage.buffers import Array, cast, empty, itemsize, length
from ..storage.scalars import keeps_sums
from ..storage.storage import Storage
from ..storage.structure import keep
from . import trace
from .duplicates import with_sums
from .gradient_hook import by_rule, tracked
from .operand_type import operand_type
from .packed_coordinates import packs
from .plan import Form, extents_of, form_of, layout_of, plan_of
from .program import Program, ShapedPlan, laid_out
from .promote import HALF, compute_scalar
from .strided import Strided, is_on_line, strided
from .widths import cut, joined, rounded, sliced

__all__ = ["contract", "sample", "sparse_operand", "update"]

REREAD = tuning.PACKED_REREAD
Operands = Mapping[str, Any]


def sparse_operand(values: Operands) -> Storage:
    """The one storage among the operands."""
    for v in values.values():
        if type(v) is Storage:
            return v
    raise CompilerBug("a statement with one sparse operand: none is sparse")


def _buffers(values: Operands) -> list[Array]:
    """The buffers of values that a statement reads."""
    found = []
    for v in values.values():
        if type(v) is Storage:
            found.append(v.values)
        elif type(v) is Strided:
            found.append(v.owner)
    return found


_SHAPE, _TYPE = attrgetter("shape"), itemgetter(1, 2, 3)
"""The shape of a view; its shape, strides and scalar type."""


class _Call:
    """A statement with its operands, and the plan for operands of these types and shapes, once there is one.

    views : the dense operands in the order of the form
    key : what the plan is found by
    """

    __slots__ = ("form", "key", "scalar", "shaped", "shared", "stmt", "storage", "views")

    def __init__(self, stmt: Assignment, values: Operands, scalar: str, shared: bool) -> None:
        for name, value in values.items():
            if type(value) is Storage:
                storage = self.storage = value
                self.form = stmt.forms.get(name) or form_of(stmt, name)
        views: Sequence[Strided] = list(map(values.__getitem__, self.form.dense))
        if storage.format.is_structured:
            views = _widened(self.form, views, storage, scalar)
        self.stmt, self.scalar, self.shared, self.views = stmt, scalar, shared, views
        self.key = (self.form, operand_type(storage), storage.shape, scalar, shared, *map(_TYPE, views))
        try:
            self.shaped: ShapedPlan | None = _shaped.get(self.key)
        except TypeError as error:  # torch's SymInt has no hash
            raise UnsupportedError(
                "a torch tensor whose extents are symbols\n  help: torch.compile, and torch.export.export(...,"
                " strict=True), take calls of Tensors"
            ) from error

    def plan(self, out: Strided | None = None) -> ShapedPlan:
        """The plan for operands of these types and shapes, made. out : an array that is there, for the result.

        Raises ShapeError where the operands' extents disagree.
        """
        form = self.form
        extents = extents_of(self.stmt, form, (self.storage.shape, *map(_SHAPE, self.views)))
        layout = layout_of(form, self.views, extents, self.scalar, self.shared or out)
        plan = plan_of(self.stmt, form, operand_type(self.storage), self.views, layout, self.scalar)
        return ShapedPlan(plan, extents, layout.packed)

    def run(self, shaped: ShapedPlan, out: Any) -> None:
        """Run the plan, into an array or into the values of the sparse operand's structure; many ranges, or long rows,
        by the structure's program."""
        storage, program, kept = self.storage, None, self.shaped is not None
        if shaped.is_enough(storage):
            shaped.run(storage, self.views, out)
        else:
            structure = storage._structure or storage.structure
            program = structure.programs.get(shaped)
            kept = program is not None and program.threads == pool.threads
            if program is None or not kept:
                views = self.views if shaped.packed is None else laid_out(self.views, shaped.packed)
                program = Program(shaped, storage, views, storage if self.shared else out)
                keep(structure.programs, shaped, program)
            program(storage.values, self.views, out)
        if trace.steps:
            _describe(self, shaped, program, kept, out)


_shaped: PlanCache[Any, ShapedPlan] = PlanCache("plans for shapes", 1 << 12)
_updates: PlanCache[Any, ShapedPlan] = PlanCache("plans for shapes, of results that are there", 1 << 12)


def contract(stmt: Assignment, values: Operands, out_scalar: str, like: Array) -> Array:
    """Evaluate a statement whose output is a fresh dense array of the library of `like`.

    Half precision is summed in float32 and rounded once. Duplicates are summed first where that makes a difference; in
    sums of stored floats alone a wider float makes none.
    """
    if type(like) is not np.ndarray and tracked(buffers := _buffers(values)):
        return by_rule(contract, "contract", buffers, (stmt, values, out_scalar, like), {}, True)
    scalar = out_scalar if out_scalar not in HALF else compute_scalar(out_scalar)
    call = _Call(stmt, values, scalar, False)
    if not call.storage.format.is_unique and stmt.reduction == "add" and _is_factor(stmt.rhs, call.storage, values):
        widens = len(values) == 1 and call.storage.scalar in FLOATS and out_scalar in FLOATS
        keeps = widens or keeps_sums(call.storage.scalar, out_scalar)
        return with_sums(
            lambda v: _contract(_Call(stmt, v, scalar, False), v, out_scalar, like), values, call.storage, keeps
        )
    if call.shaped is None and call.form.free:
        return _contract(call, values, out_scalar, like)
    out = _run(call, like)
    return out if scalar == out_scalar else cast(out, out_scalar)


def _is_factor(e: Expression, s: Storage, values: Operands) -> bool:
    """Whether an expression is a product of which the storage is a factor."""
    if isinstance(e, Apply):
        return e.op == "mul" and any(_is_factor(a, s, values) for a in e.args)
    return isinstance(e, Access) and values[e.tensor] is s


def _contract(call: _Call, values: Operands, out_scalar: str, like: Array) -> Array:
    """`contract` of operands that torch does not record, duplicates as they are."""
    if call.shaped is None and call.form.free:
        again = _other_operands(call, values)
        if again is not None:
            slices, dim, n = again
            results = [contract(call.stmt, operands, call.scalar, like) for operands in slices]
            return cast(joined(results, dim) if n is None else cut(results[0], dim, n), out_scalar)
    out = _run(call, like)
    return out if call.scalar == out_scalar else cast(out, out_scalar)


def _run(call: _Call, like: Array) -> Array:
    """The result of a call, in the scalar type that is computed in."""
    shaped = call.shaped or _shaped.keep(call.key, call.plan())
    out = shaped.output(like)
    if not shaped.is_empty:
        call.run(shaped, out)
    return out


def sample(stmt: Assignment, values: Operands, out_scalar: str) -> Storage:
    """Evaluate a statement at the stored elements of its sparse operand: a storage that shares the structure."""
    storage = sparse_operand(values)
    buffers = _buffers(values)
    if any(type(b) is not np.ndarray for b in buffers) and tracked(buffers):
        return by_rule(sample, "sample", buffers, (stmt, values, out_scalar), {}, True)  # type: ignore[no-any-return]
    scalar = compute_scalar(out_scalar)
    call = _Call(stmt, values, scalar, True)
    storage = call.storage
    if call.shaped is None and (padded := rounded(stmt, call.form, values, storage, f"{scalar} shared")) is not None:
        return sample(stmt, padded[0], out_scalar)
    n = length(storage.values)
    out = empty(n, scalar, storage.values)
    if n:
        shaped = call.shaped or _shaped.keep(call.key, call.plan())
        has_padding = storage.format.blocksize is not None or storage.format.is_dense or storage.nse != n
        if has_padding or not shaped.plan.schedule.no_alias:
            out[:] = 0
        if 0 not in storage.shape:
            call.run(shaped, out)
    return storage.with_values(out if scalar == out_scalar else cast(out, out_scalar), 0)


def update(stmt: Assignment, values: Operands, out: Array, compute: str | None = None) -> None:
    """Evaluate a statement into elements of an array that is there. compute : the scalar type that is computed in."""
    view = strided(out)
    call = _Call(stmt, values, compute or compute_scalar(view.scalar), False)
    key = (*call.key, _TYPE(view))
    shaped = _updates.get(key) or _updates.keep(key, call.plan(view))
    if shaped.is_enough(call.storage):
        shaped.run(call.storage, call.views, view.owner)
        return
    views = call.views if shaped.packed is None else laid_out(call.views, shaped.packed)
    Program(shaped, call.storage, views, view.owner)(call.storage.values, call.views, view.owner)


def _other_operands(call: _Call, values: Operands) -> tuple[Sequence[Operands], int, int | None] | None:
    """Operands that are cut into slices, or padded, where that is how a statement is run; the dimension of the result
    along which slices are joined, or that is cut to so many elements."""
    if call.storage.format.is_structured:
        slices = sliced(call.stmt, call.form, values, call.storage, call.scalar)
        if slices is not None:
            return (*slices, None)
    if (padded := rounded(call.stmt, call.form, values, call.storage, call.scalar)) is not None:
        operands, dim, n = padded
        return [operands], dim, n
    return None


def _widened(form: Form, views: Sequence[Strided], storage: Storage, scalar: str) -> list[Strided]:
    """The dense operands of a product of an n:m format, those of half precision in the scalar type that is computed in:
    rows read their elements from the first cache again and again, and would convert them each time."""
    if not packs(storage):
        return list(views)
    extents = dict(zip(form.at, storage.shape, strict=True))
    result = list(views)
    for k, (access, view) in enumerate(zip(form.accesses, views, strict=True)):
        read = REREAD * math.prod(extents.get(i, 1) for i in access.indices)
        if compute_scalar(view.scalar) != view.scalar and storage.positions[-1] >= read:
            result[k] = strided(cast(view.owner, scalar))
    return result


def _describe(call: _Call, shaped: ShapedPlan, program: Program | None, kept: bool, out: Any) -> None:
    """Tell `explain` about a launch that has run."""
    allocated = itemsize(call.scalar) * math.prod(out.shape)
    if shaped.packed is not None:
        allocated += sum(v.nbytes for v, d in zip(call.views, shaped.packed, strict=True) if d is not None)
    if program is not None and program.aligned is not None:
        lined = zip(call.views, program.aligned, strict=True)
        allocated += sum(v.nbytes for v, on in lined if on and not is_on_line(v))
    shaped.describe(call.storage, program, allocated, kept)
