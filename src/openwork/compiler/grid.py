"""A scheduled loop nest -> the device form: a kernel that each item of a grid runs for its part of the outermost loop.

    for k in range(n_k):                     t = group * 128 + item
        for i in range(lo, hi):              if t < n_k * (last - first):
            BODY                                 k = t % n_k;  i = first + t // n_k
                                                 BODY

Sums of a row that several items share begin at the item's number, go on by steps of their number, and are added up by
shuffles, or in local memory between barriers; the first item stores. What items may both write is written by atomics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import CompilerBug
from ..ir.index import Assignment
from ..ir.loop import (
    ATOMICS,
    Assign,
    Atomic,
    Barrier,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    Grid,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Mut,
    Op,
    Scalar,
    Shuffle,
    Stmt,
    Store,
    Var,
)
from ..ir.ops import const, load, op
from ..ir.rewrite import bodies, statements, subexpressions, substitute, walk_body
from ..ir.types import I64
from ..ir.verify import verify
from .operand import Operand
from .schedule.grid import GridSchedule
from .simplify import simplify
from .single.factors import identity
from .single.lower import lower_single_operand

__all__ = ["FIRST", "LAST", "lower_grid", "map_grid"]

FIRST, LAST = "first_at", "last_at"
"""The parameters that bound the outermost loop, those that the kernel of the CPU has as `lo` and `hi`."""
_TEAM, _LANE = Var("team", I64), Var("lane", I64)
Body = tuple[Stmt, ...]


def lower_grid(
    stmt: Assignment, operands: dict[str, Operand], plan: GridSchedule, compute: str
) -> tuple[Kernel, int]:  # fmt: skip
    """The kernel of a statement in the device form, and how many items take part of one row together."""
    kernel = lower_single_operand(stmt, operands, plan.nest, compute)
    out = next(p.name for p in kernel.params if isinstance(p, Buffer) and p.mutable)
    return map_grid(kernel, plan, out)


def _width(plan: GridSchedule) -> int:
    """The items that are to take part of one row together."""
    return {"subgroup": plan.grid.subgroup, "group": plan.grid.items}.get(plan.mapping, 1)


def map_grid(kernel: Kernel, plan: GridSchedule, out: str) -> tuple[Kernel, int]:
    """The kernel, whose outermost loops go to the items of a grid, and the items of a team. out : of the result."""
    loops, body = _outer_loops(kernel.body, len(plan.nest.outer))
    if not plan.exclusive:
        body = walk_body(body, None, lambda s: _atomic(s, out))
    first, last = Var(FIRST, I64), Var(LAST, I64)
    params = kernel.params
    at, end = Var("part", I64), Var("part_end", I64)
    pieces: Expr = const(1)
    lets: list[Stmt] = []
    rest: Expr = _TEAM
    for loop in reversed(loops):
        lets.append(Let(loop.name, op("mod", rest, loop.hi) if loop is not loops[0] or kernel.ranged else rest))
        rest = op("floordiv", rest, loop.hi)
    if kernel.ranged:
        params = (*params, Scalar(FIRST), Scalar(LAST))
        span = op("sub", last, first)
        pieces = span if plan.chunk == 1 else op("floordiv", op("add", span, const(plan.chunk - 1)), const(plan.chunk))
        lets.append(Let("part", op("add", first, rest if plan.chunk == 1 else op("mul", rest, const(plan.chunk)))))
        after = op("add", at, const(plan.chunk))
        if plan.chunk > 1:
            lets.append(Let("part_end", op("min", after, last)))
        body = substitute(body, {"lo": at, "hi": after if plan.chunk == 1 else end})
    total = pieces
    for loop in loops:
        total = op("mul", total, loop.hi)
    mapped = replace(kernel, params=params, ranged=False, grid=plan.grid)
    inner = simplify(replace(mapped, body=(*lets, *body))).body
    shared = _shared(inner, plan) if _width(plan) > 1 else None
    width = 1 if shared is None else _width(plan)
    head, inner = ([], inner) if shared is None else shared
    number = op("add", op("mul", Var("group", I64), const(plan.grid.items)), Var("item", I64))
    numbers: list[Stmt] = [Let("team", op("floordiv", number, const(width)) if width > 1 else number)]
    if width > 1:
        numbers.append(Let("lane", op("mod", Var("item", I64), const(width))))
    body = (*head, *numbers, If(op("lt", _TEAM, total), inner))
    return verify(simplify(replace(mapped, body=body))), width


def _outer_loops(body: Body, count: int) -> tuple[list[For], Body]:
    """Perfectly nested loops from 0 over extents, that many at most, and what is inside."""
    loops: list[For] = []
    while len(loops) < count and len(body) == 1 and isinstance(body[0], For):
        loop = body[0]
        if loop.lo != const(0) or loop.step != 1 or not isinstance(loop.hi, Var | Const) or loop.hi == Var("hi", I64):
            break
        loops.append(loop)
        body = loop.body
    return loops, body


# -- what several items write ---------------------------------------------------------------------------------------


def _atomic(s: Stmt, out: str) -> Body | None:
    """`out[i] = op(out[i], v)` as an atomic."""
    if not isinstance(s, Store) or s.buffer != out:
        return None
    value = s.value
    while isinstance(value, Cast) and value.type.lanes == 1:
        value = value.arg
    match value:
        case Op(name, (old, new)) if _is_old(old, s):
            return (Atomic(name, s.buffer, s.index, new if new.type == s.value.type else Cast(new, s.value.type)),)
    raise CompilerBug(f"device form: a store that several items may do adds nothing: {s}")


def _is_old(e: Expr, s: Store) -> bool:
    while isinstance(e, Cast):
        e = e.arg
    return isinstance(e, Load) and e.buffer == s.buffer and e.index == s.index


# -- rows that several items share -----------------------------------------------------------------------------------


def _shared(body: Body, plan: GridSchedule) -> tuple[list[Stmt], Body] | None:
    """Local memory, and the body whose sums the items of a team share; None where not all stores are of such sums."""
    team = _Team(plan.grid, plan.mapping, _width(plan))
    new = team.block(body)
    return None if new is None else (team.memory, new)


class _Team:
    """Splits the loops of sums among the items of a team."""

    def __init__(self, grid: Grid, mapping: str, width: int) -> None:
        self.grid, self.mapping, self.width = grid, mapping, width
        self.memory: list[Stmt] = []
        self.count = 0

    def block(self, body: Body) -> Body | None:
        """A block all of whose stores come after a loop of sums; None of another."""
        result: list[Stmt] = []
        muts: tuple[Mut, ...] = ()
        for n, s in enumerate(body):
            if isinstance(s, Mut):
                muts = (*muts, s)
            if isinstance(s, For) and (sums := _sums(s, muts)) is not None:
                rest = body[n + 1 :]
                if any(name in sums for name in _assigned(rest)):
                    return None
                loop = replace(s, lo=op("add", s.lo, _LANE), step=self.width, hints=())
                ended = [x for name in sums for x in self.combined(name, *sums[name])]
                return (*result, loop, *ended, If(op("eq", _LANE, const(0)), rest))
            if any(isinstance(x, Store | Atomic) for x in statements((s,))):
                parts = [self.block(b) if b else () for b in bodies(s)]
                if isinstance(s, For) and parts[0] is not None:
                    s = replace(s, body=parts[0])
                elif isinstance(s, If) and parts[0] is not None and parts[1] is not None:
                    s = replace(s, then=parts[0], orelse=parts[1])
                else:
                    return None
            result.append(s)
        return tuple(result) if any(isinstance(x, Store) for x in statements(body)) else None

    def combined(self, name: str, reduce: str, var: Var) -> Iterator[Stmt]:
        """The sum of a team's variables, in each of them."""
        self.count += 1
        if self.mapping == "subgroup":
            mask = self.width // 2
            while mask:
                other = Var(f"{name}_from_{mask}", var.type)
                yield Shuffle(other.name, var, mask)
                yield Assign(name, op(reduce, var, other))
                mask //= 2
            return
        buffer, item = f"team_sums_{self.count}", Var("item", I64)
        self.memory.append(Local(buffer, var.type.scalar, self.grid.items))
        yield Store(buffer, item, var)
        yield Barrier()
        half = self.width // 2
        while half:
            pair = (load(buffer, var.type.scalar, i) for i in (item, op("add", item, const(half))))
            yield If(op("lt", item, const(half)), (Store(buffer, item, op(reduce, *pair)),))
            yield Barrier()
            half //= 2
        yield Assign(name, load(buffer, var.type.scalar, const(0)))
        yield Barrier()


def _assigned(body: Sequence[Stmt]) -> set[str]:
    return {s.name for s in statements(body) if isinstance(s, Assign)}


def _sums(loop: For, muts: tuple[Mut, ...]) -> dict[str, tuple[str, Var]] | None:
    """The variables outside of a loop that it sums, each with its operation; None of a loop that does more."""
    inside = list(statements(loop.body))
    if loop.step != 1 or any(isinstance(s, Store | Atomic | Barrier | Shuffle) for s in inside):
        return None
    own = {s.name for s in inside if isinstance(s, Mut)}
    begun = {m.name: m.value for m in muts}
    found: dict[str, tuple[str, Var]] = {}
    for s in inside:
        if not isinstance(s, Assign) or s.name in own:
            continue
        var = Var(s.name, s.value.type)
        value = s.value
        if s.name not in begun or not isinstance(value, Op) or value.op not in ATOMICS:
            return None
        others = [a for a in value.args if a != var]
        if len(others) != 1 or any(e == var for e in subexpressions(others[0])):
            return None
        if begun[s.name] != identity(value.op, var.type.scalar) or found.get(s.name, (value.op, var))[0] != value.op:
            return None
        found[s.name] = value.op, var
    return found or None
