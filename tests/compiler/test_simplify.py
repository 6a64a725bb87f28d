from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ir"))

from loop_strategies import LENGTH, expressions, kernels, types, values

from openwork.compiler.simplify import simplify, simplify_expr
from openwork.compiler.simplify_rules import ROWS, Rule, _holds, build, rules
from openwork.errors import CompilerBug
from openwork.ir import ops
from openwork.ir.arithmetic import DTYPES
from openwork.ir.index import Access, Apply, Expression
from openwork.ir.index import accesses as index_accesses
from openwork.ir.index_text import parse_expression
from openwork.ir.interpret import evaluate, run
from openwork.ir.loop import Buffer, Cast, Const, Expr, For, Kernel, Scalar, Var
from openwork.ir.printer import show
from openwork.ir.rewrite import statements
from openwork.ir.text import parse, parse_expr
from openwork.ir.types import Type
from openwork.ir.values import fit
from openwork.ir.verify import verify

ENV = {
    "x": "i64",
    "y": "i64",
    "a": "f64",
    "b": "f64",
    "p": "bool",
    "q": "bool",
    "u": "u8",
    "k": "i32",
    "v": Type("i64", 4),
}
ENV |= {"A": Buffer("A", "i64")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x + 0", "x"),
        ("0 + x", "x"),
        ("a + 0.0", "a + 0.0"),
        ("a + -0.0", "a"),
        ("a - 0.0", "a"),
        ("a * 0.0", "a * 0.0"),
        ("a * 1.0 / 1.0", "a"),
        ("x * 0 + y", "y"),
        ("0 - x", "-x"),
        ("x + 2 + 3", "x + 5"),
        ("2 + x - 5", "x + -3"),
        ("x * 4 * 2", "x * 8"),
        ("(x + 3) - (x + 1)", "2"),
        ("x + (y - x)", "y"),
        ("1 + x - x", "1"),
        ("x + -y", "x - y"),
        ("--x", "x"),
        ("x ** 2", "square(x)"),
        ("a ** 0.0", "1.0"),
        ("min(min(x, 3), 5)", "min(x, 3)"),
        ("2 * 3 + 4", "10"),
        ("7 // 2 - 7 % -2 + 5 // 0", "4"),
        ("x // 1 + x % 1", "x"),
        ("3 < x", "x > 3"),
        ("x < x or p", "p"),
        ("p and True and q", "p and q"),
        ("p and not not p", "p"),
        ("not x < y", "x >= y"),
        ("not a < b", "not a < b"),
        ("not a == b", "a != b"),
        ("u >= 0", "True"),
        ("a if not p else b", "b if p else a"),
        ("a if 1 < 2 else b", "a"),
        ("True if p else False", "p"),
        ("x if p else x", "x"),
        ("i64(i64(k))", "i64(k)"),
        ("i32(i64(k))", "k"),
        ("k + i64(i32(x))", "i64(k) + i64(i32(x))"),
        ("f64(f32(k))", "f64(f32(k))"),
        ("f32(f64(k))", "f32(k)"),
        ("i8(f64(u))", "i8(f64(u))"),
        ("i32(f64(u))", "i32(u)"),
        ("v + 0 * v", "v"),
        ("v * 1 + 2 + 3", "v + 5"),
        ("A[x + 0] + A[2 * 3]", "A[x] + A[6]"),
        ("sqrt(4.0) + a", "a + 2.0"),
        ("exp(1.0)", "exp(1.0)"),
        ("f16(1.0) + f16(2.0)", "f16(1.0) + f16(2.0)"),
        ("bf16(1.0) * bf16(0.0)", "bf16(1.0) * bf16(0.0)"),
    ],
)
def test_expressions_by_string(before: str, after: str) -> None:
    assert show(simplify_expr(parse_expr(before, ENV))) == after


def edge_values(scalar: str) -> list[Any]:
    small: list[Any] = [0, 1, 2, -1, 7, -128, 255]
    if scalar == "bool":
        return [False, True]
    if scalar in ("c64", "c128"):
        return [complex(re, im) for re in (0.0, -0.0, 1.5, np.inf) for im in (0.0, -2.0, np.nan)]
    if scalar[0] in "fb":
        return [0.0, -0.0, 1.0, -2.5, 1e30, np.inf, -np.inf, np.nan]
    return sorted({fit(x, scalar) for x in (*small, 2**31, 2**63, 2**64 - 1)})


ROW_CASES = [rule for found in rules().values() for rule in found]


def operand_type(rule: Rule, name: str, scalar: str) -> str:
    """The condition of a select is bool; everything else has the row's type."""
    first = rule.pattern.args[0]
    if rule.pattern.op == "select" and Access(name) in index_accesses(first):
        return "bool"
    return scalar


@pytest.mark.thin(11, rest="ci")
@pytest.mark.parametrize("rule", ROW_CASES, ids=lambda c: str(c).split("  ")[0])
def test_every_row_by_value(rule: Rule) -> None:
    """The pattern and its result are evaluated on edge values of every type that the row claims."""
    for scalar in sorted(rule.scalars):
        _agrees(rule, scalar)


def _agrees(rule: Rule, scalar: str) -> None:
    names = list(dict.fromkeys(a.tensor for a in index_accesses(rule.pattern)))
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(25):
        bound = {
            n: ops.const(rng.choice(edge_values(s)).item(), s) for n in names for s in [operand_type(rule, n, scalar)]
        }
        try:
            before = typed(rule.pattern, bound, scalar)
        except CompilerBug:
            return  # the operation is not defined on the type, so that the row never meets it
        after = build(rule.result, bound, before.type, fold=False)
        assert after.type == before.type
        assert text_of(evaluate(before)) == text_of(evaluate(after)), (show(before), show(after))
        checked += 1
    assert checked == 25


def typed(pattern: Expression, bound: dict[str, Const], scalar: str) -> Expr:
    """`pattern` with its literals in the row's type, as the table meets it."""
    if isinstance(pattern, Apply):
        args = [typed(a, bound, scalar) for a in pattern.args]
        return ops.op(pattern.op, *args)
    if isinstance(pattern, Access):
        return bound[pattern.tensor]
    return ops.const(pattern.value, scalar)


def text_of(value: Any) -> str:
    return repr(np.asarray(value).item()).replace("-nan", "nan")


def test_the_rows_are_many_and_distinct() -> None:
    assert len({row[0:3:2] for row in ROWS}) == len(ROWS)
    assert {rule.pattern.op for found in rules().values() for rule in found} <= set(rules())


def test_a_wrong_row_would_be_caught() -> None:
    wrong = Rule(parse_expression("x + 0.0"), parse_expression("x"), frozenset(("f64",)), "float")
    with pytest.raises(AssertionError):
        _agrees(wrong, "f64")


@given(types.flatmap(lambda t: st.tuples(st.just(t), expressions(t, (Var("x", t),), (), 3), values(t.scalar))))
def test_random_expressions_by_value(case: tuple[Type, Expr, Any]) -> None:
    kind, expr, x = case
    held = DTYPES[kind.scalar](fit(x, kind.scalar))
    names = {"x": np.full(kind.lanes, held) if kind.lanes > 1 else held}
    new = simplify_expr(expr)
    assert new.type == expr.type
    np.testing.assert_array_equal(evaluate(new, names), evaluate(expr, names))
    assert simplify_expr(new) == new


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = 3\ny[t] = A[t + 1]", "y[3] = A[4]"),
        ("t = n\ny[t] = 0.0", "y[n] = 0.0"),
        ("t = A[n]\ny[0] = 1.0", "y[0] = 1.0"),
        ("t: f64 = A[n]\ny[0] = t", "t = A[n]\ny[0] = t"),
        ("t: f64 = A[n]\nt = 2.0\ny[0] = 1.0", "y[0] = 1.0"),
        ("t: f64 = A[n]\nu = t\nt += 1.0\ny[0] = u + t", None),
        ("if 1 < 2:\n    y[0] = 1.0\nelse:\n    y[1] = 1.0", "y[0] = 1.0"),
        ("if n < n:\n    y[0] = 1.0\nelse:\n    y[1] = 1.0", "y[1] = 1.0"),
        ("if n < 2:\n    pass\nelse:\n    y[1] = 1.0", "if n >= 2:\n    y[1] = 1.0"),
        ("if n < 2:\n    t = A[0]", "pass"),
        ("for i in range(n, n):\n    y[i] = 1.0", "pass"),
        ("for i in range(5, 2):\n    y[i] = 1.0", "pass"),
        ("for i in range(n):\n    t = A[i]", "pass"),
        ("for i in range(n, n + 1):\n    y[i] = 1.0", "y[n] = 1.0"),
        ("for i in range(n + 2, n + 4, 2):\n    y[i] = A[i]", "i = n + 2\ny[i] = A[i]"),
        (
            "for i in range(n):\n    for j in range(i, 1 + i):\n        y[j] = A[i]",
            "for i in range(n):\n    y[i] = A[i]",
        ),
        ("while False:\n    y[0] = 1.0", "pass"),
        ("while n < n or False:\n    y[0] = 1.0", "pass"),
        ("y[0] = 1.0\nreturn 0\ny[1] = 1.0", "y[0] = 1.0\nreturn 0"),
        ("w: f64[n] = zeros\nw[0] = 1.0\ny[0] = 1.0", "y[0] = 1.0"),
        ("w: f64[n] = zeros\ny[0] = w[0]", None),
        ("m: i64 = 0\nm = m\ny[m] = 1.0", "y[0] = 1.0"),
        ("m: i64 = 0\nwhile m < n:\n    m += 1\ny[m] = 1.0", None),
        ("for i in range(n):\n    m: i64 = 0\n    m += i\n    y[m] = 1.0", None),
        ("if n > 0:\n    t = A[n]\nelse:\n    s = A[0]", "pass"),
        ("if n > 0:\n    t = A[n]\nelse:\n    y[0] = 1.0", "if n <= 0:\n    y[0] = 1.0"),
    ],
)
def test_statements_by_string(before: str, after: str | None) -> None:
    head = "def f(A: f64[const], y: f64[mut], n: i64):\n"
    kernel = verify(parse(head + indent(before)))
    expected = parse(head + indent(before if after is None else after))
    assert show(simplify(kernel)) == show(expected)
    assert simplify(expected) == expected


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def test_names_that_meet_in_one_scope_are_told_apart() -> None:
    kernel = parse("""
    def f(A: i64[const], y: i64[mut], n: i64):
        for i in range(n, n + 1):
            t = A[i]
            y[t] = 1
        for i in range(n + 1, n + 2):
            t = A[i]
            y[t] = t
    """)
    new = verify(simplify(kernel))
    assert show(new).splitlines()[1:] == [
        "    t_2 = A[n]",
        "    y[t_2] = 1",
        "    i = n + 1",
        "    t = A[i]",
        "    y[t] = t",
    ]


def test_new_names_are_of_no_other_variable() -> None:
    kernel = parse("""
    def f(A: i64[const], y: i64[mut], n: i64):
        t_2 = A[0]
        for i in range(n, n + 1):
            t = A[i]
            y[t] = t_2
        for i in range(n + 1, n + 2):
            t = A[i]
            y[t] = t
    """)
    assert show(verify(simplify(kernel))).splitlines()[1:4] == ["    t_2 = A[0]", "    t_3 = A[n]", "    y[t_3] = t_2"]


def test_casts_to_a_type_that_is_there() -> None:
    x, z = Var("x", Type("f64")), Var("z", Type("f64", 4))
    assert simplify_expr(Cast(x, Type("f64"))) == x
    assert simplify_expr(Cast(Cast(z, Type("f64", 4)), Type("f64", 4))) == z
    half = Var("h", Type("f16"))
    assert simplify_expr(Cast(half, Type("f16"))) == Cast(half, Type("f16"))


def arguments(kernel: Kernel, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    result: dict[str, Any] = {}
    for param in kernel.params:
        pool = edge_values(param.scalar)
        if isinstance(param, Scalar):
            result[param.name] = pool[rng.integers(len(pool))]
        else:
            dtype = {"f16": np.float16, "bf16": np.uint16}.get(param.scalar, DTYPES[param.scalar])
            chosen = [pool[i] for i in rng.integers(len(pool), size=LENGTH)]
            numbers = np.array([0 if param.scalar == "bf16" else c for c in chosen])
            with np.errstate(all="ignore"):
                result[param.name] = numbers.astype(dtype)
    return result


@given(kernels(), st.integers(0, 100))
def test_random_kernels_by_value(kernel: Kernel, seed: int) -> None:
    """A simplified kernel is sound, does the same to its buffers, and is not simplified further."""
    verify(kernel)
    new = verify(simplify(kernel))
    assert simplify(new) == new
    bounds = (2, 5) if kernel.ranged else (None, None)
    first, second = arguments(kernel, seed), arguments(kernel, seed)
    assert run(kernel, first, *bounds) == run(new, second, *bounds)
    for name, array in first.items():
        if isinstance(array, np.ndarray):
            np.testing.assert_array_equal(array, second[name])


def test_what_is_simple_is_returned_itself() -> None:
    kernel = parse("def f(A: f64[const], y: f64[mut], n: i64):\n    for i in range(n):\n        y[i] = A[i]")
    assert simplify(kernel) is kernel
    assert any(isinstance(s, For) for s in statements(kernel.body))


def test_which_integer_types_hold_which() -> None:
    """Against the ranges of NumPy's types; a cast to one that holds the other loses nothing."""
    names = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
    ends = {n: np.iinfo(DTYPES[n]) for n in names}
    for wide in names:
        for narrow in names:
            want = ends[wide].min <= ends[narrow].min and ends[narrow].max <= ends[wide].max
            assert _holds(wide, narrow) == want, (wide, narrow)
