"""A statement and the types of its operands, one of them sparse -> a plan: schedule, kernel, the meaning of its words.

The path of `A @ x`: `ops.products.matmul` writes the statement `y[i] += A[i,j] * x[j]`; `plan_of` gives the kernel,
through `compiler.schedule` (which loops), `compiler.single.lower` (loop IR) and `codegen.cache` (machine code);
`program.Program` binds it to one structure; `contract` allocates the result and runs that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from .. import tuning
from ..classes import define, frozen
from ..codegen import cache, target
from ..codegen.executable import Executable
from ..codegen.plan_cache import PlanCache
from ..codegen.target import permutes
from ..compiler.operand import Operand, ParamRef, parse_ref, reading_one
from ..compiler.schedule import MAX_CONSTANT, Facts, Schedule, schedule, without_gathers
from ..compiler.simplify import simplify
from ..compiler.single.factors import identity
from ..compiler.single.lower import lower_single_operand
from ..errors import ShapeError
from ..ir.index import Access, Assignment
from ..ir.loop import Kernel
from ..storage.storage import Storage
from .launch import kernel_argument
from .operand_type import OperandType
from .strided import Strided, unit_of

__all__ = [
    "Bound", "Form", "Layout", "Output", "Plan", "extents_of", "form_of", "layout_of", "plan_of", "types_of",
    "words_of",
]  # fmt: skip

LARGE_ROWS, LARGE_VECTOR = tuning.GATHERED_ROWS, tuning.GATHERED_VECTOR


@frozen(eq=False)
class Form:
    """What follows from a statement alone, and from which of its operands is sparse.

    driver, at : the name and the indices of the sparse operand
    dense : the names of the others, in order of first appearance; accesses : theirs
    sources : (index, operand, dimension) that tells each index its extent, operands by number, the sparse one 0
    others : (index, operand, dimension) whose extents have to agree with these
    candidates : the dense indices that may run innermost: those of the result, else those that are summed
    free : all indices that the sparse operand has not
    target : the name of the result
    out : the indices of the result
    """

    driver: str
    at: tuple[str, ...]
    dense: tuple[str, ...]
    accesses: tuple[Access, ...]
    sources: tuple[tuple[str, int, int], ...]
    others: tuple[tuple[str, int, int], ...]
    ranks: tuple[tuple[int, int], ...]
    candidates: tuple[str, ...]
    free: tuple[str, ...]
    target: str
    out: tuple[str, ...]


def form_of(stmt: Assignment, driver: str) -> Form:
    """The form of a statement whose operand `driver` is sparse, kept with the statement."""
    form: Form | None = stmt.forms.get(driver)
    if form is None:
        form = stmt.forms[driver] = _new_form(stmt, driver)
    return form


@lru_cache(maxsize=4096)
def _new_form(stmt: Assignment, driver: str) -> Form:
    """The form, one for all equal statements: plans are found by it."""
    at = next(a.indices for a in stmt.accesses if a.tensor == driver)
    names = (driver, *(n for n in stmt.tensors if n != driver))
    sources: dict[str, tuple[str, int, int]] = {}
    others: list[tuple[str, int, int]] = []
    for access in stmt.accesses:
        number = names.index(access.tensor)
        for d, i in enumerate(access.indices):
            if i in sources:
                others.append((i, number, d))
            else:
                sources[i] = (i, number, d)
    free = tuple(i for i in stmt.lhs.indices if i not in at)
    summed = tuple(i for i in sources if i not in at and i not in stmt.lhs.indices)
    ranks = tuple((names.index(a.tensor), len(a.indices)) for a in stmt.accesses)
    dense = tuple(a for a in stmt.accesses if a.tensor != driver)
    return Form(
        driver, at, names[1:], dense, tuple(sources.values()), tuple(others), ranks, free or summed,
        tuple(dict.fromkeys((*free, *summed))), stmt.lhs.tensor, stmt.lhs.indices,
    )  # fmt: skip


def extents_of(stmt: Assignment, form: Form, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The extent of every index variable, of the operands' shapes, the sparse one first.

    Raises ShapeError where they disagree.
    """
    for number, rank in form.ranks:
        if len(shapes[number]) != rank:
            _refuse_shapes(stmt, form, shapes)
    extents = {}
    for i, number, d in form.sources:
        extents[i] = shapes[number][d]
    for i, number, d in form.others:
        if shapes[number][d] != extents[i]:
            _refuse_shapes(stmt, form, shapes)
    for i in form.out:
        if i not in extents:
            _refuse_shapes(stmt, form, shapes)
    return extents


def _refuse_shapes(stmt: Assignment, form: Form, shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise the ShapeError of operands whose shapes do not fit the statement."""
    of_name = dict(zip((form.driver, *form.dense), shapes, strict=True))
    listed = "; ".join(f"{a.tensor} has shape {tuple(of_name[a.tensor])}" for a in stmt.accesses)
    extents: dict[str, int] = {}
    origin: dict[str, str] = {}
    for access in stmt.accesses:
        shape = of_name[access.tensor]
        if len(shape) != len(access.indices):
            raise ShapeError(f"{stmt}: {access.tensor} is used with {len(access.indices)} indices; {listed}")
        for i, n in zip(access.indices, shape, strict=True):
            if extents.setdefault(i, n) != n:
                raise ShapeError(
                    f"{stmt}: index {i} has extent {extents[i]} in {origin[i]} and {n} in {access.tensor}"
                    f"\n  got: {listed}\n  help: make these dimensions equal, by slicing or transposing an operand"
                )
            origin.setdefault(i, access.tensor)
    missing = [i for i in stmt.lhs.indices if i not in extents]
    raise ShapeError(f"{stmt}: nothing on the right tells the extent of {', '.join(missing)}; {listed}")


def vector_index(form: Form, extents: Mapping[str, int]) -> str | None:
    """The dense index to run innermost: the longest free one, else the longest reduced one."""
    if len(form.candidates) > 1:
        return max(form.candidates, key=extents.__getitem__)
    return form.candidates[0] if form.candidates else None


class Output(NamedTuple):
    """Where the result of a statement goes: a fresh array, one that is there, or the elements of the sparse operand.

    scalar : its type; unit : the dimension of stride one; shared : whether it has the sparse operand's structure
    """

    scalar: str
    unit: int | None
    shared: bool = False


output_of = lru_cache(maxsize=1024)(Output)


class Recipe(NamedTuple):
    """Which word of a launch is which address, extent or stride.

    buffers : of the sparse operand's structure, as (kind, level), in the order of a launch's objects
    slots : the words that these go to, then those of the stored values, the dense operands and the result; -1 of one
        that the kernel does not read
    sizes, extents, strides : words with what they hold: of a level, of an index, of a dense operand (-1 the result)
    others : words that are asked of the operands by their references
    """

    buffers: tuple[tuple[str, int], ...]
    slots: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]
    extents: tuple[tuple[int, str], ...]
    strides: tuple[tuple[int, int, int], ...]
    others: tuple[tuple[int, ParamRef], ...]


def _recipe(form: Form, refs: Sequence[ParamRef]) -> Recipe:
    """The recipe of a kernel's references."""
    structure: list[tuple[int, str, int]] = []
    sizes: list[tuple[int, int]] = []
    extents: list[tuple[int, str]] = []
    strides: list[tuple[int, int, int]] = []
    others: list[tuple[int, ParamRef]] = []
    late = dict.fromkeys((form.driver, *form.dense, form.target), -1)
    for at, ref in enumerate(refs):
        match ref.kind:
            case "vals" | "data":
                late[ref.tensor] = at
            case "pos" | "crd" | "packed":
                structure.append((at, ref.kind, ref.level))
            case "size":
                sizes.append((at, ref.level))
            case "extent":
                extents.append((at, ref.tensor))
            case "stride":
                number = -1 if ref.tensor == form.target else form.dense.index(ref.tensor)
                strides.append((at, number, ref.level))
            case _:
                others.append((at, ref))
    buffers = tuple([(kind, level) for _, kind, level in structure])
    slots = (*[at for at, _, _ in structure], *late.values())
    return Recipe(buffers, slots, tuple(sizes), tuple(extents), tuple(strides), tuple(others))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A compiled statement, by types alone.

    operands : the types that it was compiled for, the result's too
    refs : for each word of the kernel the part of an operand that it stands for
    recipe : the same, sorted by what a launch does with them
    start : what the result holds before, where the kernel does not write all of it
    suits_all : whether no word of a launch follows from a structure
    is_iso : whether the kernel reads one value of the sparse operand
    """

    stmt: Assignment
    form: Form
    operands: Mapping[str, Operand]
    output: Output
    schedule: Schedule
    executable: Executable
    refs: tuple[ParamRef, ...]
    recipe: Recipe
    vector: str | None
    start: Any
    suits_all: bool
    is_iso: bool

    @property
    def writes_all(self) -> bool:
        """Whether the kernel writes every element of a dense result."""
        return self.schedule.writes_all


_plans: PlanCache[Any, Plan] = PlanCache("plans")


class Layout(NamedTuple):
    """How the dense operands of a statement lie in memory where its kernel runs, and what it writes to.

    units : the dimension of stride one of each
    packed : along which dimension each has to be made contiguous before, None where it is as it comes
    vector, extent : the dense index that runs innermost, and its extent for a schedule: exact where it is small, else
        one with the same remainder after every tile; None without one
    """

    units: tuple[int | None, ...]
    packed: list[int | None]
    vector: str | None
    extent: int | None
    output: Output


def layout_of(
    form: Form, views: Sequence[Strided], extents: Mapping[str, int], scalar: str, out: Strided | bool | None
) -> Layout:  # fmt: skip
    """The layout of dense operands. out : an array that is there; True for the elements of the sparse operand; None for
    a fresh array of the scalar type."""
    vector = vector_index(form, extents) if form.candidates else None
    units: list[int | None] = []
    packed: list[int | None] = []
    for access, view in zip(form.accesses, views, strict=True):
        unit, along = unit_of(view.shape, view.strides), None
        if vector is not None and vector in access.indices and (unit is None or access.indices[unit] != vector):
            d = access.indices.index(vector)
            along = None if view.strides[d] == 1 or (view.shape[d] <= 1 and unit is None) else d
            unit = d
        units.append(unit)
        packed.append(along)
    if isinstance(out, Strided):
        output = output_of(out.scalar, out.unit, False)
    elif out:
        output = output_of(scalar, None, True)
    else:
        inner = form.out.index(vector) if vector is not None and vector in form.out else max(0, len(form.out) - 1)
        output = output_of(scalar, inner, False)
    extent = extents[vector] if vector is not None else None
    if extent is not None and extent > MAX_CONSTANT:
        extent = 2 * MAX_CONSTANT + extent % MAX_CONSTANT
    return Layout(tuple(units), packed, vector, extent, output)


def plan_of(
    stmt: Assignment, form: Form, of_driver: OperandType, views: Sequence[Strided], layout: Layout, compute: str
) -> Plan:  # fmt: skip
    """The plan for operands of these types, from the table, from disk, or new; `compute` is the type computed in."""
    large, least = False, LARGE_VECTOR if layout.vector is None else LARGE_ROWS
    scalars = []
    for view in views:
        large = large or view.owner.nbytes > least
        scalars.append(view.scalar)
    key = (form, of_driver, *scalars, layout.units, layout.vector, layout.extent, large, layout.output, compute)
    found = _plans.get(key)
    if found is not None:
        return found
    return _plans.keep(key, _new_plan(stmt, form, of_driver, views, layout, large, compute))


def types_of(
    form: Form, of_driver: OperandType, views: Sequence[Strided], layout: Layout, large: bool
) -> tuple[dict[str, Operand], Facts]:
    """The types of all operands and of the result, as the compiler sees them, and the facts that a schedule asks."""
    sparse, fibres, output, vector = of_driver.operand, of_driver.fibres, layout.output, layout.vector
    operands = {form.driver: sparse}
    for name, view, unit in zip(form.dense, views, layout.units, strict=True):
        ndim = len(view.shape)
        operands[name] = Operand(view.scalar, ndim, unit=unit if ndim else 0)
    if output.shared:
        operands[form.target] = replace(sparse, scalar=output.scalar, iso=False)
    else:
        ndim = len(form.out)
        operands[form.target] = Operand(output.scalar, ndim, unit=output.unit if ndim else 0)
    extents = () if vector is None or layout.extent is None else ((vector, layout.extent),)
    packing = (True, permutes()) if of_driver.packed else (False, 0)
    medium = not fibres.long and vector is None and fibres.medium
    return operands, Facts(extents, large, fibres.long, fibres.short, *packing, medium)


def _new_plan(
    stmt: Assignment, form: Form, of_driver: OperandType, views: Sequence[Strided], layout: Layout, large: bool,
    compute: str,
) -> Plan:  # fmt: skip
    operands, facts = types_of(form, of_driver, views, layout, large)
    decided = schedule(stmt, operands, facts)
    text = f"drive {stmt} {sorted(operands.items())} {facts} {compute}"
    executable = cache.get(text, lambda: lower(stmt, operands, decided, facts, compute))
    arrays = [n for n, o in operands.items() if o.format is None and (o.unit is not None or o.ndim)]
    refs = tuple(parse_ref(p.name, operands, arrays) for p in executable.params)
    start = identity(stmt.reduction, layout.output.scalar).value
    suits_all = not any(ref.kind in OF_STRUCTURE for ref in refs)
    recipe = _recipe(form, refs)
    return Plan(
        stmt, form, operands, layout.output, decided, executable, refs, recipe, layout.vector, start, suits_all,
        of_driver.operand.iso,
    )  # fmt: skip


OF_STRUCTURE = frozenset({"packed", "last", "slice"})
"""Kinds of words that follow from a structure, not from its shape."""


def lower(
    stmt: Assignment, operands: Mapping[str, Operand], decided: Schedule, facts: Facts, compute: str
) -> Kernel:  # fmt: skip
    """The simplified loop IR of a statement, by its schedule."""
    decided = decided if target.gathers() else without_gathers(decided, facts)
    return simplify(reading_one(lower_single_operand(stmt, dict(operands), decided, compute), operands))


@define
class Bound:
    """A plan with the operands that it runs on, as the plan wants them laid out.

    storage : the sparse operand; views : the dense ones, as the form names them; extents : of all indices
    """

    plan: Plan
    storage: Storage
    views: Sequence[Strided]
    extents: Mapping[str, int]


def words_of(bound: Bound, out: Any) -> list[int]:
    """The arguments of a launch, addresses included, in the order of the kernel's parameters."""
    form = bound.plan.form
    values = dict(zip((*form.dense, form.driver, form.target), (*bound.views, bound.storage, out), strict=True))
    return [kernel_argument(ref, values, bound.extents) for ref in bound.plan.refs]
