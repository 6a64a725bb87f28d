from __future__ import annotations

import pytest

from openwork.errors import CompilerBug
from openwork.ir import ops
from openwork.ir.loop import HI, LO, Assign, Buffer, For, Kernel, Let, Load, Mut, Op, Return, Scalar, Store, Var
from openwork.ir.text import parse, parse_expr, parse_stmts
from openwork.ir.types import I64, Type
from openwork.ir.verify import verify

SPMV = """
    def spmv(lo: i64, hi: i64, pos: I[const], crd: I[const], A: T[const], x: T[const], y: T[mut]):
        for i in range(lo, hi):  # novector
            acc: T = 0
            for p in range(pos[i], pos[i + 1]):
                acc += A[p] * x[crd[p]]
            y[i] = acc
"""


def test_a_template() -> None:
    kernel = parse(SPMV, I="i32", T="f32")
    i, p, acc = Var("i", I64), Var("p", I64), Var("acc", Type("f32"))
    at = Load("pos", i, Type("i32")), Load("pos", ops.op("add", i, ops.const(1)), Type("i32"))
    product = ops.op("mul", ops.load("A", "f32", p), ops.load("x", "f32", Load("crd", p, Type("i32"))))
    inner = For("p", ops.cast(at[0], "i64"), ops.cast(at[1], "i64"), (Assign("acc", ops.op("add", acc, product)),))
    body = (Mut("acc", ops.const(0.0, "f32")), inner, Store("y", i, acc))
    held = {"pos": "i32", "crd": "i32", "A": "f32", "x": "f32", "y": "f32"}
    params = tuple(Buffer(name, scalar, name == "y") for name, scalar in held.items())
    assert kernel == Kernel("spmv", params, (For("i", LO, HI, body, 1, ("novector",)),), ranged=True)
    verify(kernel)


def test_kernels_without_a_range_keep_their_parameters() -> None:
    kernel = parse("def f(n: i64, y: bf16[mut]):\n    y[n] = 1\n    return 2")
    assert kernel.params == (Scalar("n"), Buffer("y", "bf16", mutable=True))
    assert not kernel.ranged
    assert kernel.body == (Store("y", Var("n", I64), ops.const(1.0, "bf16")), Return(ops.const(2)))


def test_substitutions_of_operations_lanes_and_expressions() -> None:
    env = {"x": Type("f64", 4), "A": Buffer("A1_values", "f64")}
    expr = parse_expr("OP(x, vload(A, 0, W)) + fill", env, OP="max", W="4", fill="0.5")
    assert expr == ops.op(
        "add",
        ops.op("max", Var("x", Type("f64", 4)), Load("A1_values", ops.const(0), Type("f64", 4))),
        ops.const(0.5, "f64"),
    )
    assert parse_expr("Tx8(1)", T="f32") == ops.cast(ops.const(1.0, "f32"), Type("f32", 8))


def test_names_may_stand_for_expressions() -> None:
    env = {"p": ops.const(2), "pos": Buffer("B2_pos", "i32"), "len(crd)": Var("B2_crd_length", I64)}
    assert parse_expr("pos[2 * p]", env) == ops.load("B2_pos", "i32", ops.op("mul", ops.const(2), ops.const(2)))
    assert parse_expr("len(crd)", env) == Var("B2_crd_length", I64)


def test_statements_over_variables_from_outside() -> None:
    stmts = parse_stmts("x += 1\ny = x", {"x": Var("total", I64)}, mutable=["x"])
    total = Var("total", I64)
    assert stmts == (Assign("total", ops.op("add", total, ops.const(1))), Let("y", total))


def test_literals_take_the_type_of_their_company() -> None:
    env = {"k": "u8", "h": "f16", "z": "c64", "i": "i64"}
    assert parse_expr("k + 1", env).type == Type("u8")
    assert parse_expr("k + 300", env).type == Type("i64")
    assert parse_expr("h * 2", env).type == Type("f16")
    assert parse_expr("i / 2", env).type == Type("f64")
    assert parse_expr("sqrt(i)", env).type == Type("f64")
    assert parse_expr("z == 1", env).type == Type("bool")
    assert parse_expr("abs(z)", env).type == Type("f32")


def test_signs_and_operations_of_several_operands() -> None:
    env = dict.fromkeys("abc", "i64")
    a, b, c = (Var(n, I64) for n in "abc")
    assert parse_expr("+a", env) == a
    assert parse_expr("-a", env) == ops.op("neg", a)
    for name in ("min", "max"):
        assert parse_expr(f"{name}(a, b, c)", env) == ops.op(name, ops.op(name, a, b), c)


def test_chained_comparisons() -> None:
    a, b, c = (Var(n, I64) for n in "abc")
    expected = ops.op("and", ops.op("le", a, b), ops.op("lt", b, c))
    assert parse_expr("a <= b < c", dict.fromkeys("abc", "i64")) == expected
    assert isinstance(expected, Op)


def test_assignments_widen() -> None:
    """And constants are of the variable's type where they fit; what is narrower is said."""
    text = """
    def f(a: i32, b: u8, out: f32[mut]):
        x: i64 = 0
        y: i8 = 0
        z: f32 = 0.0
        x = a
        x += b
        y = 127
        y = i8(a)
        z = b
        z = 0.5
        out[0] = x
    """
    assigned = {type(s.value).__name__: s.value.type.scalar for s in parse(text).body if isinstance(s, Assign)}
    assert assigned == {"Cast": "f32", "Op": "i64", "Const": "f32"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(y: f64[const]):\n    y[0] = 1", "line 2: buffer 'y' is only read\n      y[0] = 1\n      ^"),
        ("def f(n: i64):\n    x = n\n    x = n", "line 3: 'x' is bound already"),
        ("def f(n: i64):\n    x += n", "line 2: 'x' is not a variable that can change"),
        (
            "def f(n: i64):\n    x: i32 = 0\n    x = n",
            "line 3: i64 does not fit in 'x', which is i32\n  help: declare x as i64",
        ),
        ("def f(n: i64):\n    x: u8 = 0\n    x += n", "line 3: i64 does not fit in 'x', which is u8"),
        ("def f(n: f64):\n    x: f32 = 0.0\n    x = n", "line 3: f64 does not fit in 'x', which is f32"),
        ("def f(n: f32):\n    x: i64 = 0\n    x = n", "line 3: f32 does not fit in 'x', which is i64"),
        ("def f(n: i64):\n    x: i8 = 0\n    x = 128", "line 3: i64 does not fit in 'x', which is i8"),
        ("def f(n: i64):\n    x = m", "line 2: unknown name 'm'; known: n\n      x = m\n          ^"),
        ("def f(n: i64):\n    x = n + ", "line 2: invalid syntax"),
        ("def f(n: i64):\n    x = foo(n)", "line 2: unknown operation 'foo'"),
        ("def f(n: i64):\n    x = max(n)", "line 2: max takes 2 operands, got 1"),
        ("def f(n: real):\n    pass", "line 1: expected a type, got 'real'"),
        ("def f(n: i64):\n    x: n + 1 = n", "line 2: expected a type, got 'n + 1'"),
        ("def f(n):\n    pass", "line 1: parameter 'n' needs a type"),
        ("def f(n: i64):\n    for i in range(0, n, -1):\n        pass", "expected a literal integer, got '-1'"),
        ("def f(n: i64):\n    for i in range(0, n, 0):\n        pass", "the step is 0; expected a positive one"),
        ("def f(n: i64):\n    for i in n:\n        pass", "expected `for name in range(...)`"),
        ("def f(A: f64[const]):\n    x = A", "buffer 'A' is used without an index"),
        ("def f(A: f64[const]):\n    x = A[0.5]", "an index of type f64"),
        ("def f(n: i64):\n    x = n[0]", "'n' is not a buffer here"),
        ("def f(n: i64):\n    x = 'a'", "'a' is no literal of the loop IR"),
        ("def f(n: i64):\n    x = f64(n, n)", "f64() takes one argument, got 2"),
        ("def f(n: c64):\n    x = floor(n)", "floor is not defined on c64"),
        ("def f(n: i64):\n    import os", "'import os' is not in the syntax"),
        ("x = 1", "expected one kernel"),
        ("def f(n: i64):\n    w: f64[n] = ones", "a workspace is declared `= zeros` or `= empty`"),
        ("def f(n: i64):\n    x = vload(n, 0, 4)", "'n' is not a buffer here"),
        ("def f(n: i64):\n    x = n is n", "expected one of =="),
        ("def f(n: i64):\n    x = [n]", "line 2: '[n]' is not in the syntax"),
        ("def f(n: i64):\n    x = cast(n)", "cast() takes 2 arguments, got 1"),
        ("def f(n: i64):\n    x = const(n, f64)", "const() takes a literal"),
        ("def f(n: i64):\n    x = complex(n, 1)", "complex() takes two real literals"),
        ("def f(n: i64):\n    x = complex(1, 2j)", "complex() takes two real literals"),
        ("def f(A: f64[const]):\n    x = len(A)", "the length of 'A' is not known here"),
        ("def f(n: i64x4):\n    pass", "line 1: expected a scalar type, got i64x4"),
        ("def f(A: f64[const]):\n    prefetch(A, 0.5)", "expected an integer, got f64"),
        ("def f(n: i64):\n    x, y = n", "cannot assign to '(x, y)'"),
        ("", "expected one kernel"),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(CompilerBug) as caught:
        parse(text)
    assert message in str(caught.value)
