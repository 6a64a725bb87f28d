"""Random kernels: loops, branches, variables, workspaces and expressions, compiled against interpreted.

Floating-point values stay small whole numbers, so that every way of adding them gives the same bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openwork.codegen.cache import compile_kernel
from openwork.codegen.executable import run
from openwork.ir import interpret, ops
from openwork.ir.loop import Alloc, Assign, Buffer, Expr, For, If, Kernel, Let, Load, Mut, Stmt, Store, Var, While
from openwork.ir.types import FLOATS, I64, INTEGERS, Type
from openwork.ir.verify import verify

LENGTH = 16
KINDS = ("bool", *INTEGERS, *FLOATS, "c64", "c128")
DTYPES = {s: s for s in ("bool",)} | {"c64": "complex64", "c128": "complex128", "bf16": "uint16"}
DTYPES |= {s: {"i": "int", "u": "uint", "f": "float"}[s[0]] + s[1:] for s in (*INTEGERS, "f16", "f32", "f64")}
EXACT = ("add", "sub", "min", "max")
WHOLE = (*EXACT, "mul", "floordiv", "mod", "band", "bor", "bxor", "shl", "shr", "pow")


class Maker:
    """Draws one kernel; keeps the names in scope by type."""

    def __init__(self, draw: st.DrawFn, scalar: str, lanes: int) -> None:
        self.draw, self.scalar, self.lanes = draw, scalar, lanes
        self.count = 0
        self.muts: list[tuple[str, Type]] = []
        self.names: list[tuple[str, Type]] = []

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def index(self) -> Expr:
        """An offset that is in bounds for a load or store of all lanes."""
        loops = [n for n, t in self.names if t == I64]
        room = ops.const(LENGTH - self.lanes + 1)
        base: Expr = Var(str(self.pick(*loops)), I64) if loops and self.draw(st.booleans()) else ops.const(3)
        return ops.op("mod", ops.op("add", base, ops.const(self.draw(st.integers(-5, 20)))), room)

    def expr(self, t: Type, depth: int) -> Expr:
        if depth == 0 or self.draw(st.integers(0, 4)) == 0:
            return self.leaf(t)
        if t.scalar == "bool" and self.draw(st.booleans()):
            inner = Type(str(self.pick(*INTEGERS, *FLOATS)), t.lanes)
            op = str(self.pick("eq", "ne", "lt", "le", "gt", "ge"))
            return ops.op(op, self.expr(inner, 1), self.expr(inner, 1))
        way = self.draw(st.integers(0, 5))
        if way == 0:
            a, b = self.expr(t, depth - 1), self.expr(t, depth - 1)
            return ops.op("select", self.expr(t.with_scalar("bool"), depth - 1), a, b)
        if way == 1 and not t.is_complex:
            other = str(self.pick(*INTEGERS)) if t.is_integer else str(self.pick("i8", "u8", "bool", "i16"))
            return ops.cast(self.expr(t.with_scalar(other), 1), t)
        a, b = self.expr(t, depth - 1), self.expr(t, depth - 1)
        if t.scalar == "bool":
            return ops.op(str(self.pick("and", "or", "xor", "band", "bor", "bxor", "min", "max")), a, b)
        if t.is_integer:
            return ops.op(str(self.pick(*WHOLE)), a, b)
        if t.is_float:
            return ops.op(str(self.pick(*EXACT)), a, b)
        return ops.op(str(self.pick("add", "sub")), a, b)

    def leaf(self, t: Type) -> Expr:
        known = [n for n, other in (*self.names, *self.muts) if other == t]
        if known and self.draw(st.booleans()):
            return Var(str(self.pick(*known)), t)
        if t == Type(self.scalar, self.lanes) and self.draw(st.booleans()):
            return Load(str(self.pick("a", "out", "work")), self.index(), t)
        if t.scalar == "bool":
            return ops.const(self.draw(st.booleans()), t)
        low = 0 if t.scalar[0] == "u" else -3
        return ops.const(self.draw(st.integers(low, 3)), t)

    def block(self, depth: int) -> tuple[Stmt, ...]:
        names, muts = list(self.names), list(self.muts)
        body = [s for _ in range(self.draw(st.integers(1, 3))) for s in self.stmt(depth)]
        self.names, self.muts = names, muts
        return tuple(body)

    def stmt(self, depth: int) -> list[Stmt]:
        t = Type(self.scalar, self.lanes)
        kind = self.draw(st.integers(0, 6 if depth else 3))
        if kind == 0:
            name, value = self.fresh("x"), self.expr(t, 2)
            self.names.append((name, t))
            return [Let(name, value)]
        if kind == 1:
            name, value = self.fresh("m"), self.expr(t, 1)
            self.muts.append((name, t))
            return [Mut(name, value)]
        if kind == 2 and self.muts:
            return [Assign(self.muts[-1][0], self.expr(t, 1))]
        if kind == 4:
            name = self.fresh("i")
            outer = list(self.names)
            self.names.append((name, I64))
            body = self.block(depth - 1)
            self.names = outer
            hint = self.pick((), ("vector",), ("novector",), ("unroll:2", "novector"), ("nounroll",))
            lo, hi = ops.const(self.draw(st.integers(-2, 2))), ops.const(self.draw(st.integers(-3, 4)))
            return [For(name, lo, hi, body, self.draw(st.integers(1, 3)), hint)]  # type: ignore[arg-type]
        if kind == 5:
            return [If(self.expr(Type("bool"), 2), self.block(depth - 1), self.block(depth - 1))]
        if kind == 6:
            name = self.fresh("w")
            step = Assign(name, ops.op("add", Var(name, I64), ops.const(1)))
            again = ops.op("lt", Var(name, I64), ops.const(self.draw(st.integers(0, 3))))
            return [Mut(name, ops.const(0)), While(again, (*self.block(depth - 1), step))]
        return [Store(str(self.pick("out", "work")), self.index(), self.expr(t, 2))]


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    scalar = draw(st.sampled_from(KINDS))
    maker = Maker(draw, scalar, draw(st.sampled_from((1, 1, 4, 8))))
    body = maker.block(2)
    params = (Buffer("a", scalar), Buffer("out", scalar, True))
    zeroed = Alloc("work", scalar, ops.const(LENGTH), True)
    return Kernel(
        "random", params, (zeroed, *body, Store("out", ops.const(0), Load("work", ops.const(1), Type(scalar))))
    )


@pytest.mark.ci
@given(kernels(), st.booleans())
def test_compiled_as_interpreted(kernel: Kernel, reassociate: bool) -> None:
    kernel = Kernel(kernel.name, kernel.params, kernel.body, reassociate=reassociate)
    verify(kernel)
    scalar = kernel.params[0].scalar
    a = (np.arange(LENGTH) % 5).astype(DTYPES[scalar])
    if scalar == "bf16":
        a = (a.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    expected, got = np.zeros_like(a), np.zeros_like(a)
    assert interpret.run(kernel, {"a": a, "out": expected}) == 0
    assert run(compile_kernel(kernel), {"a": a, "out": got}) == 0
    if scalar == "bf16":  # NaN has many spellings, and zero two
        got, expected = ((x.astype(np.uint32) << 16).view(np.float32) for x in (got, expected))
    np.testing.assert_array_equal(got, expected)
