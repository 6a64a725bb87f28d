from __future__ import annotations

import pytest

from openwork.errors import CompilerBug
from openwork.ir import ops
from openwork.ir.loop import (
    Alloc,
    Assign,
    Buffer,
    Cast,
    Const,
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
)
from openwork.ir.types import I64, Type
from openwork.ir.verify import verify

N = Var("n", I64)
F64 = Type("f64")
PARAMS = (Buffer("A", "f64"), Buffer("y", "f64", mutable=True), Scalar("n"))
ZERO, ONE = ops.const(0), ops.const(1.0, "f64")


def test_a_sound_kernel_is_returned() -> None:
    kernel = Kernel("k", PARAMS, (Alloc("w", "f64", N), Store("y", N, Load("A", ZERO, F64)), Store("w", ZERO, ONE)))
    assert verify(kernel) is kernel


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Let("n", ZERO),), "'n' is bound already\n  n = 0"),
        ((Let("x", ZERO), For("x", ZERO, N, ())), "'x' is bound already\n  for x in range(n):"),
        ((Let("nan", ZERO),), "'nan' is not a name"),
        ((Let("for", ZERO),), "'for' is not a name"),
        ((Let("x", Var("m", I64)),), "'m' is not bound here, used as i64\n  x = m"),
        ((Let("x", Var("n", F64)),), "'n' is i64, used as f64"),
        ((Let("x", Cast(Var("m", F64), I64)),), "'m' is not bound here, used as f64"),
        ((Let("x", Cast(Load("A", ONE, F64), I64)),), "index of type f64 for f64: 1.0"),
        ((For("i", ZERO, N, (Let("x", ZERO),)), Let("y2", Var("x", I64))), "'x' is not bound here"),
        ((Let("x", ZERO), Assign("x", ZERO)), "'x' is not a Mut\n  x = 0"),
        ((Mut("x", ZERO), Assign("x", ONE)), "'x' is i64, got f64"),
        ((Store("A", ZERO, ONE),), "store to 'A', which is only read\n  A[0] = 1.0"),
        ((Store("B", ZERO, ONE),), "unknown buffer 'B'"),
        ((Store("y", ZERO, ZERO),), "'y' holds f64, got i64"),
        ((Store("y", ONE, ONE),), "index of type f64 for f64: 1.0"),
        ((Let("x", Load("A", N, Type("f32"))),), "'A' holds f64, loaded as f32"),
        ((Let("x", Load("A", Cast(N, Type("i32")), F64)),), "index of type i32 for f64: i32(n)"),
        ((Let("x", Op("add", (N, ONE), F64)),), "add(i64, f64) as f64"),
        ((Let("x", Op("lt", (N, N), I64)),), "lt(i64, i64) as i64: n < n"),
        ((Let("x", Op("pow2", (N,), I64)),), "operation 'pow2' does not take 1 operands"),
        ((Let("x", Const(300, Type("u8"))),), "u8 cannot hold 300"),
        ((Let("x", Const(0.1, Type("f32"))),), "f32 cannot hold 0.1"),
        ((Let("x", Cast(Cast(N, Type("i64", 4)), Type("i64", 8))),), "cast of i64x4 to i64x8"),
        ((For("i", ZERO, N, (), -1),), "step -1, expected a positive one"),
        ((For("i", ZERO, ONE, ()),), "expected i64, got f64: 1.0"),
        ((For("i", ZERO, N, (), 1, ("fast",)),), "unknown hint in ('fast',)"),
        ((If(N, ()),), "expected bool, got i64: n"),
        ((For("i", ZERO, N, (Alloc("w", "f64", N),)),), "top level only\n  for i in range(n):\n    w: f64[n] = empty"),
        ((Alloc("w", "f80", N),), "unknown type 'f80'"),
        ((Let("x", Var("n", Type("f80"))),), "unknown type f80"),
        ((Let("x", Var("n", Type("i64", 0))),), "unknown type i64x0"),
        ((Prefetch("B", ZERO),), "unknown buffer 'B'"),
        ((Return(ONE),), "expected i64, got f64"),
    ],
)
def test_each_rule_has_its_message(body: tuple[Stmt, ...], message: str) -> None:
    with pytest.raises(CompilerBug) as caught:
        verify(Kernel("k", PARAMS, body))
    assert str(caught.value).startswith("verify: kernel 'k': ")
    assert message in str(caught.value)


def test_parameters_are_checked() -> None:
    with pytest.raises(CompilerBug, match="'A' is bound already"):
        verify(Kernel("k", (Buffer("A", "f64"), Scalar("A")), ()))
    with pytest.raises(CompilerBug, match="unknown type 'real'"):
        verify(Kernel("k", (Buffer("A", "real"),), ()))
    with pytest.raises(CompilerBug, match="lo, hi lead a kernel not ranged"):
        verify(Kernel("k", (Scalar("lo"), Scalar("hi")), ()))
    with pytest.raises(CompilerBug, match="'lo' is bound already"):
        verify(Kernel("k", (Scalar("lo"),), (), ranged=True))
