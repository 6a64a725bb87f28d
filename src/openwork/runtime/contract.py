"""A statement with one sparse operand, and its operands -> a new dense array, or values on its structure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from .. import tuning
from ..codegen import pool
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
from .plan import Form, Plan, extents_of, form_of, layout_of, plan_of
from .program import Program, laid_out, new_result
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
    return [
        v.values if isinstance(v, Storage) else v.owner for v in values.values() if isinstance(v, Storage | Strided)
    ]


_SHAPE, _TYPE = attrgetter("shape"), itemgetter(1, 2, 3)
"""The shape of a view; its shape, strides and scalar type."""


class _Call:
    """A statement with its operands: what its program is found by.

    views : the dense operands in the order of the form
    key : of the program, in the structure's slot
    """

    __slots__ = ("form", "kept", "key", "program", "scalar", "shared", "stmt", "storage", "structure", "views")

    def __init__(self, stmt: Assignment, values: Operands, scalar: str, shared: bool) -> None:
        for name, value in values.items():
            if type(value) is Storage:
                storage = self.storage = value
                self.form = stmt.forms.get(name) or form_of(stmt, name)
        views: Sequence[Strided] = list(map(values.__getitem__, self.form.dense))
        if storage.format.is_structured:
            views = _widened(self.form, views, storage, scalar)
        self.stmt, self.scalar, self.shared, self.views = stmt, scalar, shared, views
        self.structure = storage._structure or storage.structure
        self.key = (self.form, storage.scalar, scalar, shared, *map(_TYPE, views))
        try:
            program = self.structure.programs.get(self.key)
        except TypeError as error:  # torch's SymInt has no hash
            raise UnsupportedError(
                "a torch tensor whose extents are symbols\n  help: torch.compile, and torch.export.export(...,"
                " strict=True), take calls of Tensors"
            ) from error
        self.program: Program | None = program if program is not None and program.threads == pool.threads else None
        self.kept = self.program

    def extents(self) -> dict[str, int]:
        """The extents of all indices. Raises ShapeError where the operands disagree."""
        return extents_of(self.stmt, self.form, (self.storage.shape, *map(_SHAPE, self.views)))

    def inspect(self, plan: Plan, packed: list[int | None], extents: Mapping[str, int], out: Any) -> Program:
        """The program of the call, which the structure keeps."""
        if packed.count(None) < len(packed):
            self.views = laid_out(self.views, packed)
        program = self.program = Program(plan, self.storage, self.views, extents, out, packed)
        keep(self.structure.programs, self.key, program)
        return program


def contract(stmt: Assignment, values: Operands, out_scalar: str, like: Array) -> Array:
    """Evaluate a statement whose output is a fresh dense array of the library of `like`.

    Half precision is summed in float32 and rounded once. Duplicates are summed first where that makes a difference; in
    sums of stored floats alone a wider float makes none.
    """
    if type(like) is not np.ndarray and tracked(_buffers(values)):
        return by_rule(contract, "contract", _buffers(values), (stmt, values, out_scalar, like), {})
    scalar = out_scalar if out_scalar not in HALF else compute_scalar(out_scalar)
    call = _Call(stmt, values, scalar, False)
    if not call.storage.format.is_unique and stmt.reduction == "add" and _is_factor(stmt.rhs, call.storage, values):
        widens = len(values) == 1 and call.storage.scalar in FLOATS and out_scalar in FLOATS
        keeps = widens or keeps_sums(call.storage.scalar, out_scalar)
        return with_sums(
            lambda v: _contract(_Call(stmt, v, scalar, False), v, out_scalar, like), values, call.storage, keeps
        )
    if call.program is None and call.form.free:
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
    if call.program is None and call.form.free:
        again = _other_operands(call, values)
        if again is not None:
            slices, dim, n = again
            results = [contract(call.stmt, operands, call.scalar, like) for operands in slices]
            return cast(joined(results, dim) if n is None else cut(results[0], dim, n), out_scalar)
    out = _run(call, like)
    return out if call.scalar == out_scalar else cast(out, out_scalar)


def _run(call: _Call, like: Array) -> Array:
    """The result of a call by its program; one is inspected and kept where there is none."""
    program, storage, form = call.program, call.storage, call.form
    if program is not None:
        out = program.output(like)
    else:
        extents = extents_of(call.stmt, form, (storage.shape, *map(_SHAPE, call.views)))
        layout = layout_of(form, call.views, extents, call.scalar, None)
        plan = plan_of(call.stmt, form, operand_type(storage), call.views, layout, call.scalar)
        is_empty = 0 in storage.shape or 0 in extents.values()
        out = new_result(plan, extents, like, zero=is_empty or not plan.schedule.writes_all)
        if is_empty:
            return out
        program = call.inspect(plan, layout.packed, extents, out)
    program(storage.values, call.views, out)
    if trace.steps:
        _describe(call, program, itemsize(call.scalar) * math.prod(out.shape))
    return out


def sample(stmt: Assignment, values: Operands, out_scalar: str) -> Storage:
    """Evaluate a statement at the stored elements of its sparse operand: a storage that shares the structure."""
    storage = sparse_operand(values)
    buffers = _buffers(values)
    if any(type(b) is not np.ndarray for b in buffers) and tracked(buffers):
        return by_rule(sample, "sample", buffers, (stmt, values, out_scalar), {})  # type: ignore[no-any-return]
    scalar = compute_scalar(out_scalar)
    call = _Call(stmt, values, scalar, True)
    program, storage = call.program, call.storage
    if program is None and (padded := rounded(stmt, call.form, values, storage, f"{scalar} shared")) is not None:
        return sample(stmt, padded[0], out_scalar)
    n = length(storage.values)
    out = empty(n, scalar, storage.values)
    if n:
        if program is None:
            extents = call.extents()
            program = call.inspect(*_plan(call, extents, True), extents, storage)
        has_padding = storage.format.blocksize is not None or storage.format.is_dense or storage.nse != n
        if has_padding or not program.plan.schedule.no_alias:
            out[:] = 0
        if 0 not in storage.shape:
            program(storage.values, call.views, out)
            if trace.steps:
                _describe(call, program, itemsize(scalar) * n)
    return storage.with_values(out if scalar == out_scalar else cast(out, out_scalar), 0)


def update(stmt: Assignment, values: Operands, out: Array, compute: str | None = None) -> None:
    """Evaluate a statement into elements of an array that is there. compute : the scalar type that is computed in."""
    view = strided(out)
    scalar = compute or compute_scalar(view.scalar)
    call = _Call(stmt, values, scalar, False)
    extents = call.extents()
    plan, packed = _plan(call, extents, view)
    views = laid_out(call.views, packed)
    Program(plan, call.storage, views, extents, view.owner, packed)(call.storage.values, views, view.owner)


def _plan(call: _Call, extents: Mapping[str, int], out: Strided | bool | None) -> tuple[Plan, list[int | None]]:
    """The plan of a call, and along which dimension each dense operand is made contiguous; see `layout_of`."""
    layout = layout_of(call.form, call.views, extents, call.scalar, out)
    plan = plan_of(call.stmt, call.form, operand_type(call.storage), call.views, layout, call.scalar)
    return plan, layout.packed


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


def _describe(call: _Call, program: Program, allocated: int) -> None:
    """Tell `explain` about a launch that has run."""
    nothing = (None,) * len(call.views)
    copied = sum(v.nbytes for v, d in zip(call.views, program.packed or nothing, strict=True) if d is not None)
    lined = zip(call.views, program.aligned or nothing, strict=True)
    copied += sum(v.nbytes for v, on in lined if on and not is_on_line(v))
    program.describe(call.storage, allocated + copied, program is call.kept)
