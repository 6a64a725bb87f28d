"""Random loop IR for property tests: well-typed expressions and kernels that run without leaving their buffers."""

from __future__ import annotations

from hypothesis import strategies as st

from openwork.errors import CompilerBug
from openwork.ir import ops
from openwork.ir.loop import (
    Alloc,
    Assign,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Mut,
    Op,
    Prefetch,
    Return,
    Scalar,
    Stmt,
    Store,
    Var,
    While,
)
from openwork.ir.types import COMPLEX, FLOATS, I64, INTEGERS, SCALARS, Type

LENGTH = 16
"""Elements of every buffer of a random kernel; offsets are kept below it by `% LENGTH`."""

scalars = st.sampled_from(SCALARS)
types = st.builds(Type, scalars, st.sampled_from((1, 1, 1, 4)))
_ELEMENTWISE = (*ops.ARITHMETIC, *ops.BITWISE, *ops.COMPARISONS, *ops.LOGICAL, *ops.UNARY, "not", "select", "fma")


def values(scalar: str) -> st.SearchStrategy[bool | int | float | complex]:
    if scalar == "bool":
        return st.booleans()
    if scalar in INTEGERS:
        return st.integers(-3, 3) | st.sampled_from((127, 128, 255, 2**31, 2**63 - 1, -(2**63), 2**64 - 1))
    if scalar in FLOATS:
        return st.sampled_from((0.0, -0.0, 1.0, -1.5, 0.1, 1e30, float("inf"), -float("inf"), float("nan")))
    assert scalar in COMPLEX
    return st.builds(complex, values("f64"), values("f64"))


@st.composite
def constants(draw: st.DrawFn, type: Type) -> Const:
    return ops.const(draw(values(type.scalar)), type)


@st.composite
def expressions(draw: st.DrawFn, type: Type, names: tuple[Var, ...], buffers: tuple[Buffer, ...], depth: int) -> Expr:
    """An expression of `type` over the names and buffers."""
    choice = draw(st.integers(0, 9)) if depth else draw(st.integers(0, 2))
    fitting = [v for v in names if v.type == type]
    if choice <= 1 and fitting:
        return draw(st.sampled_from(fitting))
    if choice == 2:
        return draw(constants(type))
    held = [b for b in buffers if b.scalar == type.scalar]
    if choice == 3 and held:
        return Load(draw(st.sampled_from(held)).name, draw(offsets(names, buffers, type.lanes, depth - 1)), type)
    if choice == 4 and depth:
        source = Type(draw(scalars), draw(st.sampled_from((1, type.lanes))))
        return Cast(draw(expressions(source, names, buffers, depth - 1)), type)
    if choice >= 5 and depth:
        made = draw(operations(type, names, buffers, depth))
        if made.type == type:
            return made
        if made.type.lanes in (1, type.lanes):
            return Cast(made, type)
    return draw(constants(type))


@st.composite
def operations(draw: st.DrawFn, type: Type, names: tuple[Var, ...], buffers: tuple[Buffer, ...], depth: int) -> Expr:
    """An operation whose operands are of `type`, or `type` itself where there is no such operation."""
    name = draw(st.sampled_from(_ELEMENTWISE if type.lanes == 1 else (*_ELEMENTWISE, *ops.REDUCTIONS)))
    args = [draw(expressions(type, names, buffers, depth - 1)) for _ in range(ops.arity(name) or 0)]
    if name == "select":
        args[0] = draw(expressions(Type("bool", type.lanes), names, buffers, depth - 1))
    try:
        return ops.op(name, *args)
    except CompilerBug:
        return args[0]


@st.composite
def offsets(draw: st.DrawFn, names: tuple[Var, ...], buffers: tuple[Buffer, ...], lanes: int, depth: int) -> Expr:
    """An offset that leaves room for `lanes` elements; for several lanes also a vector of offsets."""
    gather = lanes > 1 and draw(st.booleans())
    index = draw(expressions(I64.with_lanes(lanes if gather else 1), names, buffers, max(depth, 0)))
    return ops.op("mod", index, ops.const(LENGTH if gather or lanes == 1 else LENGTH - lanes))


class _Names:
    def __init__(self) -> None:
        self.count = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"


@st.composite
def blocks(
    draw: st.DrawFn,
    names: tuple[Var, ...],
    muts: tuple[Var, ...],
    buffers: tuple[Buffer, ...],
    fresh: _Names,
    depth: int,
) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(("let", "mut", "assign", "store", "for", "if", "while", "prefetch", "return")))
        if kind in ("let", "mut"):
            type = draw(types)
            value = draw(expressions(type, names, buffers, 2))
            name = Var(fresh.fresh("v"), type)
            result.append(Let(name.name, value) if kind == "let" else Mut(name.name, value))
            muts = (*muts, name) if kind == "mut" else muts
            names = (*names, name)
        elif kind == "assign" and muts:
            target = draw(st.sampled_from(muts))
            result.append(Assign(target.name, draw(expressions(target.type, names, buffers, 2))))
        elif kind == "store":
            buffer = draw(st.sampled_from([b for b in buffers if b.mutable]))
            lanes = draw(st.sampled_from((1, 4)))
            value = draw(expressions(Type(buffer.scalar, lanes), names, buffers, 2))
            result.append(Store(buffer.name, draw(offsets(names, buffers, lanes, 1)), value))
        elif kind == "prefetch":
            result.append(Prefetch(draw(st.sampled_from(buffers)).name, draw(offsets(names, buffers, 1, 1))))
        elif kind == "return" and draw(st.integers(0, 5)) == 0:
            result.append(Return(ops.const(draw(st.integers(0, 3)))))
        elif kind == "for" and depth:
            lo = draw(st.sampled_from((*(v for v in names if v.type == I64), ops.const(0))))
            hi = ops.op("add", lo, ops.const(draw(st.integers(-1, 3))))
            loop = Var(fresh.fresh("i"), I64)
            body = draw(blocks((*names, loop), muts, buffers, fresh, depth - 1))
            hints = draw(st.sampled_from(((), ("novector",), ("vector", "unroll:4"))))
            result.append(For(loop.name, lo, hi, body, draw(st.sampled_from((1, 2))), hints))
        elif kind == "if" and depth:
            cond = draw(expressions(Type("bool"), names, buffers, 2))
            arms = [draw(blocks(names, muts, buffers, fresh, depth - 1)) for _ in range(2)]
            result.append(If(cond, *arms))
        elif kind == "while" and depth:
            counter = Var(fresh.fresh("w"), I64)
            step = Assign(counter.name, ops.op("add", counter, ops.const(1)))
            body = draw(blocks((*names, counter), muts, buffers, fresh, depth - 1))
            result += [Mut(counter.name, ops.const(0)), While(ops.op("lt", counter, ops.const(2)), (step, *body))]
            names = (*names, counter)
    return tuple(result)


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """A kernel that `verify` accepts and that ends."""
    buffers = tuple(Buffer(f"b{n}", draw(scalars), draw(st.booleans())) for n in range(draw(st.integers(0, 3))))
    buffers += (Buffer("out", draw(scalars), mutable=True),)
    numbers = tuple(Scalar(f"s{n}", draw(scalars)) for n in range(draw(st.integers(0, 2))))
    ranged = draw(st.booleans())
    names = tuple(Var(s.name, Type(s.scalar)) for s in numbers)
    names += (Var("lo", I64), Var("hi", I64)) if ranged else ()
    head: tuple[Stmt, ...] = ()
    if draw(st.booleans()):
        work = Buffer("work", draw(scalars), mutable=True)
        head = (Alloc(work.name, work.scalar, ops.const(LENGTH), zeroed=True),)
        body = draw(blocks(names, (), (*buffers, work), _Names(), 2))
    else:
        body = draw(blocks(names, (), buffers, _Names(), 2))
    return Kernel("kernel", (*buffers, *numbers), head + body, ranged, draw(st.booleans()))


__all__ = ["LENGTH", "Op", "constants", "expressions", "kernels", "scalars", "types", "values"]
