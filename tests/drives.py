"""Statements with one sparse operand, for tests: packed by the reference, lowered, and run by the interpreter or as
machine code; `agree` is the comparison with the dense oracle that `test_harness` shows to catch broken kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from reference import Buffers, Unpackable, pack, walk

from openwork.codegen import cache
from openwork.codegen import executable as machine
from openwork.compiler.operand import Operand, ParamRef, parse_ref
from openwork.compiler.schedule import Facts, Schedule, schedule
from openwork.compiler.simplify import simplify
from openwork.compiler.single.factors import identity
from openwork.compiler.single.lower import lower_single_operand
from openwork.format.expression import Dim, Div, Expression, Mod, Sub
from openwork.format.format import Format, Level
from openwork.ir import interpret
from openwork.ir.index import Apply, Assignment
from openwork.ir.index import Expression as Term
from openwork.ir.index_evaluate import evaluate
from openwork.ir.loop import Buffer, Kernel
from openwork.runtime.launch import even_bounds, kernel_argument, outer_range, work_bounds
from openwork.runtime.operand_type import operand_type
from openwork.runtime.plan import extents_of, form_of, layout_of, types_of
from openwork.runtime.program import laid_out
from openwork.runtime.promote import compute_scalar
from openwork.runtime.strided import Strided, new_output, strided
from openwork.storage.buffers import numpy_dtype
from openwork.storage.storage import Storage

__all__ = ["Drive", "Packed", "agree", "drive", "packed", "run_compiled", "run_interpreted"]

Array = np.ndarray[Any, Any]
MAX_POSITIONS = 2000
"""More stored positions than this take the reference too long: levels below a nonunique one repeat for each element."""
Run = Callable[[Kernel, "Drive", Strided | Storage], None]


class _Items(dict[Any, float]):
    """Elements for `pack`, coordinates possibly repeated."""

    def __init__(self, elements: Iterable[tuple[tuple[int, ...], float]]) -> None:
        super().__init__()
        self.elements = list(elements)

    def items(self) -> list[Any]:  # type: ignore[override]
        return self.elements


@dataclass(frozen=True)
class Packed:
    """A storage, and the dense arrays that it stands for: values (duplicates summed) and what is stored."""

    storage: Storage
    dense: Array
    stored: Array

    def unpack(self, values: Array) -> Array:
        """The dense array of other values in the same structure."""
        return _walked(self.storage, values)[0]


def packed(
    fmt: Format,
    shape: tuple[int, ...],
    elements: Sequence[tuple[tuple[int, ...], float]],
    scalar: str = "f64",
    widths: tuple[str, str] = ("int32", "int32"),
) -> Packed:
    """The elements in a format. Of a batched one they are the coordinates of each slice, the values growing by one
    from slice to slice. What the buffers hold besides (padding, gaps, unset slots) is filled with a value that shows.
    Raises `Unpackable` where the format has no place for the elements, or far too much."""
    batch = fmt.batch_ndim
    inner, at = _inner(fmt)
    sizes = [shape[level.expression.index] for level in fmt.levels[:batch]]  # type: ignore[union-attr]
    slices = [
        pack(inner, tuple(shape[d] for d in at), _Items((tuple(c[d] for d in at), v + b) for c, v in elements))
        for b in range(int(np.prod(sizes)))
    ]

    def joined(part: str, k: int, dtype: str) -> Array | None:
        if part not in inner.levels[k].format.buffers:
            return None
        dtype = "bool" if inner.levels[k].format.name == "bitmap" else dtype
        return np.array([x for s in slices for x in getattr(s, part)[k]], dtype)

    none = [None] * batch
    pos, crd = (
        (*none, *(joined(part, k, width) for k in range(inner.nlevels)))
        for part, width in zip(("pos", "crd"), widths, strict=True)
    )
    values = np.array([v for s in slices for v in s.values]).astype(numpy_dtype(scalar))
    if len(values) > MAX_POSITIONS:
        raise Unpackable
    storage = Storage(shape, fmt, scalar, 0, tuple(pos), tuple(crd), values)
    unused = np.ones(values.shape, bool)
    unused[[int(at) for _, at in _elements(storage, np.arange(len(values)))]] = False
    values[unused] = True if scalar == "bool" else 101
    return Packed(storage, *_walked(storage, values))


def _inner(fmt: Format) -> tuple[Format, list[int]]:
    """The format of one batch slice, and its dimensions' numbers."""
    batch = fmt.batch_ndim
    gone = {level.expression.index for level in fmt.levels[:batch]}  # type: ignore[union-attr]
    at = [d for d in range(fmt.ndim) if d not in gone]
    if not batch:
        return fmt, at

    def renumber(e: Expression) -> Expression:
        match e:
            case Dim(index):
                return Dim(at.index(index))
            case Div(base, c):
                return Div(renumber(base), c)
            case Mod(base, c):
                return Mod(renumber(base), c)
        return type(e)(renumber(e.left), renumber(e.right))

    levels = tuple(Level(renumber(level.expression), level.format) for level in fmt.levels[batch:])
    return Format(tuple(fmt.dims[d] for d in at), levels), at


def _walked(s: Storage, values: Array) -> tuple[Array, Array]:
    """The dense array of `values` in the structure of `s`, and how often each element is stored."""
    dense, stored = np.zeros(s.shape, values.dtype), np.zeros(s.shape, int)
    for c, v in _elements(s, values):
        dense[c] = v if not stored[c] else dense[c] + v
        stored[c] += 1
    return dense, stored


def _elements(s: Storage, values: Array) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Coordinates and values of all stored elements."""
    inner, at = _inner(s.format)
    batch = s.format.batch_ndim
    dims = [level.expression.index for level in s.format.levels[:batch]]  # type: ignore[union-attr]
    sizes = [s.shape[d] for d in dims]
    number = int(np.prod(sizes))
    for b in range(number):
        cut = [None if x is None else np.split(x, number)[b] for x in (*s.pos[batch:], *s.crd[batch:])]
        half = len(cut) // 2
        buffers = Buffers(cut[:half], cut[half:], np.split(values, number)[b])  # type: ignore[arg-type]
        lead = np.unravel_index(b, sizes) if batch else ()
        for c, v in walk(inner, tuple(s.shape[d] for d in at), buffers):
            full = [0] * s.format.ndim
            for d, x in (*zip(dims, lead, strict=True), *zip(at, c, strict=True)):
                full[d] = int(x)
            yield tuple(full), v


@dataclass(frozen=True)
class Problem:
    """A statement with its operands laid out, and what a schedule and a lowering ask."""

    stmt: Assignment
    values: Mapping[str, Any]
    operands: Mapping[str, Operand]
    extents: Mapping[str, int]
    facts: Facts
    compute: str
    innermost: int | None


@dataclass(frozen=True)
class Drive:
    """A statement, laid out, scheduled and lowered; `want` is the dense result."""

    problem: Problem
    plan: Schedule
    kernel: Kernel
    refs: tuple[ParamRef, ...]
    source: Packed
    scalar: str
    want: Array
    shared: bool

    def __repr__(self) -> str:
        s = self.source.storage
        operands = {n: (v.shape, v.strides) for n, v in self.problem.values.items() if isinstance(v, Strided)}
        return f"<{self.problem.stmt}, A {s.shape} {s.scalar} {s.format}, {operands}, {self.problem.facts}>\n{s}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to run."""
        return 0 in self.source.storage.shape or 0 in self.problem.extents.values()


def drive(
    stmt: Assignment,
    source: Packed,
    arrays: Mapping[str, Array],
    scalar: str,
    *,
    shared: bool = False,
    large: bool = False,
    short: bool | None = None,
    medium: bool = False,
) -> Drive:
    """The statement lowered for its sparse operand `A`; `shared` gives the output A's structure, `medium` lanes that
    are masked."""
    values = {n: source.storage if n == "A" else strided(arrays[n]) for n in stmt.tensors}
    form = form_of(stmt, "A")
    views = [values[n] for n in form.dense]
    extents = extents_of(stmt, form, [source.storage.shape, *[v.shape for v in views]])
    layout = layout_of(form, views, extents, scalar, shared or None)
    values |= dict(zip(form.dense, laid_out(views, layout.packed), strict=True))
    operands, facts = types_of(form, operand_type(source.storage), views, layout, large)
    facts = replace(facts, short=facts.short if short is None else short, medium=medium)
    innermost = layout.output.unit if layout.vector in form.out else None
    problem = Problem(stmt, values, operands, extents, facts, compute_scalar(scalar), innermost)
    plan = schedule(stmt, operands, facts)
    kernel = simplify(lower_single_operand(stmt, operands, plan, problem.compute))
    strided_names = [n for n, o in operands.items() if o.format is None]
    refs = tuple(parse_ref(p.name, operands, strided_names) for p in kernel.params)
    return Drive(problem, plan, kernel, refs, source, scalar, _want(stmt, source, arrays, scalar), shared)


def _want(stmt: Assignment, source: Packed, arrays: Mapping[str, Array], scalar: str) -> Array:
    """The oracle. Under `min=` and its like only stored elements take part: the rest are the identity."""
    dense = source.dense
    if stmt.reduction != "add":
        neutral = identity(stmt.reduction, source.storage.scalar).value
        dense = np.where(source.stored > 0, dense, np.asarray(neutral, dense.dtype))
    pattern = (source.stored > 0).astype(numpy_dtype(scalar))
    dtype = numpy_dtype(scalar)
    extra = {n: a.astype(dtype) for n, a in arrays.items()}
    plain = Assignment(stmt.lhs, stmt.op, _without_pattern(stmt.rhs))
    return evaluate(plain, {**extra, "A": dense.astype(dtype), "P": pattern}).astype(dtype)


def _without_pattern(e: Term) -> Term:
    """`pattern(A[...])` as an access to the array P."""
    match e:
        case Apply("pattern", (inner,)):
            return replace(inner, tensor="P")  # type: ignore[type-var]
        case Apply(op, args):
            return Apply(op, tuple(_without_pattern(a) for a in args))
    return e


def agree(d: Drive, kernel: Kernel | None = None, run: Run | None = None, pieces: int = 1) -> None:
    """Run the kernel (that of `d`, without one) and compare with the dense oracle, exactly
    but for products so large that their rounding shows the order of the factors."""
    out = _output(d)
    if not d.empty:
        (run or run_interpreted)(kernel or d.kernel, d, out, pieces)  # type: ignore[call-arg]
    if isinstance(out, Storage):
        got = d.source.unpack(out.values)
        want = np.where(d.source.stored > 0, d.want, np.zeros((), d.want.dtype))
    else:
        got, want = out.owner, d.want
    assert got.shape == want.shape
    message = f"{d.problem.stmt} on {d.source.storage.format}"
    if d.problem.stmt.reduction == "mul" and got.dtype.kind in "fc":
        eps = np.finfo(got.dtype).eps
        exact = np.abs(want) * eps < 1
        np.testing.assert_allclose(got[~exact], want[~exact], rtol=d.source.stored.sum() * eps, err_msg=message)
        got, want = got[exact], want[exact]
    np.testing.assert_array_equal(got, want, err_msg=message)


def _output(d: Drive) -> Strided | Storage:
    """Where the result goes: what a covering kernel must write all of is filled with a value that shows."""
    if d.shared:
        s = d.source.storage
        return s.with_values(np.zeros(s.values.shape, numpy_dtype(d.scalar)))
    shape = tuple(d.problem.extents[i] for i in d.problem.stmt.lhs.indices)
    out = new_output(shape, d.scalar, np.empty(0), d.problem.innermost, zero=True)
    out[...] = identity(d.problem.stmt.reduction, d.scalar).value
    if d.plan.writes_all and not d.empty:
        out[...] = 113 if out.dtype.kind != "f" else np.nan
    return strided(out)


def _arguments(d: Drive, kernel: Kernel, out: Strided | Storage) -> dict[str, Any]:
    """What the kernel's parameters are bound to: arrays for buffers, numbers for scalars."""
    values = {**d.problem.values, d.problem.stmt.lhs.tensor: out}

    def buffer(ref: ParamRef) -> Array:
        value = values[ref.tensor]
        if isinstance(value, Strided):
            span = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True))
            return np.lib.stride_tricks.as_strided(value.owner, (span,), (value.owner.itemsize,))
        if ref.kind == "vals":
            return value.values
        return (value.pos if ref.kind == "pos" else value.crd)[ref.level]

    return {
        p.name: buffer(ref) if isinstance(p, Buffer) else kernel_argument(ref, values, d.problem.extents)
        for p, ref in zip(kernel.params, d.refs, strict=True)
    }


def _ranges(d: Drive, kernel: Kernel, pieces: int) -> list[tuple[int, int]]:
    if not kernel.ranged:
        return [(0, 0)]
    if d.plan.parallel and d.plan.run_reduce:  # each row is written once, by whoever has the whole of it
        cuts = work_bounds(d.source.storage, pieces, whole_runs=True)
    else:
        lo, hi = outer_range(d.source.storage) if d.plan.sliced is None else (0, d.problem.extents[d.plan.sliced])
        cuts = even_bounds(lo, hi, pieces)
    return list(itertools.pairwise(cuts))


def run_interpreted(kernel: Kernel, d: Drive, out: Strided | Storage, pieces: int = 1) -> None:
    """By the bounds-checked interpreter, over `pieces` ranges of the outermost loop, the last one first."""
    arguments = _arguments(d, kernel, out)
    for lo, hi in reversed(_ranges(d, kernel, pieces)):
        assert interpret.run(kernel, arguments, *((lo, hi) if kernel.ranged else ())) == 0


def run_compiled(kernel: Kernel, d: Drive, out: Strided | Storage, pieces: int = 1) -> None:
    """As machine code."""
    executable = cache.compile_kernel(kernel)
    arguments = _arguments(d, kernel, out)
    for lo, hi in _ranges(d, kernel, pieces):
        assert machine.run(executable, arguments, lo, hi) == 0


def is_signed(fmt: Format) -> bool:
    """Whether a level's coordinates may be negative."""
    return any(isinstance(level.expression, Sub) for level in fmt.levels)
