from __future__ import annotations

import pytest
from hypothesis import given
from loop_strategies import expressions, kernels, types

from openwork.ir import ops
from openwork.ir.loop import Buffer, Cast, Const, Expr, Kernel, Op, Var
from openwork.ir.printer import show
from openwork.ir.text import parse, parse_expr, parse_stmts
from openwork.ir.types import I64, Type
from openwork.ir.verify import verify

ENV = {
    "x": "f64",
    "y": "f64",
    "i": "i64",
    "k": "i32",
    "h": "f32",
    "p": "bool",
    "v": Type("f32", 8),
    "A": Buffer("A", "f64"),
}


@given(kernels())
def test_a_kernel_reads_back(kernel: Kernel) -> None:
    verify(kernel)
    assert parse(show(kernel)) == kernel


@given(
    types.flatmap(
        lambda t: expressions(t, (Var("x", t), Var("i", I64)), (Buffer("A", t.scalar),), 3).map(lambda e: (t, e))
    )
)
def test_an_expression_reads_back(case: tuple[Type, Expr]) -> None:
    kind, expr = case
    env = {"x": kind, "i": I64, "A": Buffer("A", kind.scalar)}
    assert parse_expr(show(expr), env) == expr


@pytest.mark.parametrize(
    "text",
    [
        "x + y * 2.0",
        "(x + y) * 2.0",
        "x - (y - 1.0)",
        "x - y - 1.0",
        "x / (y * x)",
        "-x ** 2.0",
        "(-x) ** 2.0",
        "x ** -y",
        "x ** y ** 2.0",
        "(x ** y) ** 2.0",
        "not p and x < y",
        "not (p and x < y)",
        "x if p else y if x < y else 0.0",
        "(x if p else y) + 1.0",
        "(x < y) == p",
        "i << 1 & 3 | ~i",
        "(i + 1) // 2 % 3",
        "A[k] + A[i + 1]",
        "h + 0.1",
        "v * 2.0",
        "i64(k) + i",
        "f32(x)",
        "f32(0.1) + f32(0.2)",
        "vload(A, i, 4)",
        "cast(x, f64)",
        "const(1.5, f64x4)",
        "complex(1.0, -0.0)",
        "c64(complex(0.1, nan))",
        "u64(7)",
        "u64(18446744073709551615)",
        "-9223372036854775808",
        "neg(-3)",
        "-inf",
        "fma(x, y, 1.0)",
        "xor(p, x == 0.0)",
        "hsum(v)",
        "min(x, max(y, 0.0))",
    ],
)
def test_expressions_print_as_they_are_written(text: str) -> None:

    assert show(parse_expr(text, ENV)) == text


def test_redundant_parentheses_and_conversions_go() -> None:
    assert show(parse_expr("((x) + ((y) * (x)))", ENV)) == "x + y * x"
    assert show(parse_expr("A[i64(k)]", ENV)) == "A[k]"
    assert show(parse_expr("h * f32(2.0)", ENV)) == "h * 2.0"


def test_statements() -> None:
    text = """\
w: f32[n] = zeros
e: i64[8] = empty
t = n + 1
acc: f64 = 0.0
wide: f64x8 = 0.0
for i in range(n):  # vector unroll:4
    for j in range(i, n, 2):
        acc += A[j]
        w[j] *= 2.0
while acc < 3.0 and bool(t):
    acc **= 2.0
if t == 1:
    pass
elif t:
    e[t] = i64x8(wide)
else:
    prefetch(A, t)
return 0"""
    env = {"n": "i64", "A": Buffer("A", "f64")}
    assert show(parse_stmts(text, env)) == text


def test_a_long_header_is_wrapped_and_reads_back() -> None:
    params = ", ".join(f"buffer_{n}: f64[const]" for n in range(12))
    kernel = parse(f"# a note\ndef k({params}):  # reassociate\n    return 0")
    assert kernel.notes == ("a note",)
    assert kernel.reassociate
    assert max(map(len, show(kernel).splitlines())) <= 120
    assert parse(show(kernel)) == kernel
    assert parse(show(kernel)).notes == kernel.notes


def test_casts_that_promotion_would_not_make_stay_visible() -> None:
    x = Var("x", Type("f64"))
    assert show(Cast(ops.const(3), Type("f64"))) == "cast(3, f64)"
    assert show(Cast(x, Type("f64"))) == "cast(x, f64)"
    assert show(Op("add", (Const(1.0, Type("f32")), Const(2.0, Type("f32"))), Type("f32"))) == "f32(1.0) + f32(2.0)"
