from __future__ import annotations

import pytest
from hypothesis import given
from loop_strategies import kernels

from openwork.errors import CompilerBug
from openwork.ir import ops
from openwork.ir.loop import Assign, Buffer, Const, Expr, Kernel, Op, Var
from openwork.ir.printer import show
from openwork.ir.rewrite import (
    assigned,
    chain,
    fixpoint,
    free_variables,
    rewrite_kernel,
    statements,
    subexpressions,
    substitute,
    walk,
    walk_body,
)
from openwork.ir.text import parse_expr, parse_stmts
from openwork.ir.types import I64

ENV = {"x": "i64", "y": "i64", "A": Buffer("A", "i64"), "B": Buffer("B", "i64", mutable=True)}


def double(e: Expr) -> Expr | None:
    return ops.const(2 * e.value) if isinstance(e, Const) and isinstance(e.value, int) else None


def name_y(e: Expr) -> Expr | None:
    return Var("y", I64) if e == Var("x", I64) else None


def add_of_consts(e: Expr) -> Expr | None:
    match e:
        case Op("add", (Const(int() as a), Const(int() as b))):
            return ops.const(a + b)
    return None


def test_walk_goes_bottom_up() -> None:
    assert show(walk(parse_expr("x + (1 + 2) * A[3 + 4]", ENV), add_of_consts)) == "x + 3 * A[7]"
    assert show(walk(parse_expr("1 + 2 + 3", ENV), add_of_consts)) == "6"


def test_chain_takes_the_first_that_applies() -> None:
    assert show(walk(parse_expr("x + 1", ENV), chain(double, name_y))) == "y + 2"


def test_fixpoint_ends_or_says_so() -> None:
    assert fixpoint(name_y)(Var("x", I64)) == Var("y", I64)
    assert fixpoint(name_y)(Var("y", I64)) is None
    with pytest.raises(CompilerBug, match="no fixpoint after 64 steps"):
        fixpoint(double)(ops.const(1))


def test_what_does_not_change_is_not_rebuilt() -> None:
    expr = parse_expr("x + (1 + y) * A[3]", ENV)
    assert walk(expr, lambda e: None) is expr


@pytest.mark.ci
@given(kernels())
def test_a_walk_without_effect_gives_the_same_kernel(kernel: Kernel) -> None:
    assert rewrite_kernel(kernel, lambda body: walk_body(body, lambda e: None)) is kernel


BODY = """
t = x + A[y]
m: i64 = t
for i in range(t):
    m += i
    if m > x:
        B[i] = m
"""


def test_free_variables_in_order_of_use() -> None:
    assert [v.name for v in free_variables(parse_stmts(BODY, ENV))] == ["x", "y"]
    assert [v.name for v in free_variables(parse_expr("y + x * y", ENV))] == ["y", "x"]
    assert free_variables([Assign("x", ops.const(1))]) == (Var("x", I64),)


def test_statements_and_subexpressions_outer_first() -> None:
    body = parse_stmts(BODY, ENV)
    assert [type(s).__name__ for s in statements(body)] == ["Let", "Mut", "For", "Assign", "If", "Store"]
    assert [show(e) for e in subexpressions(parse_expr("A[x] + 1", ENV))] == ["A[x] + 1", "A[x]", "x", "1"]
    assert assigned(body) == {"m", "B"}


def test_substitute() -> None:
    body = parse_stmts(BODY, ENV)
    new = substitute(body, {"x": ops.const(5), "m": Var("total", I64)}, {"A": "C", "B": "D"})
    assert show(new) == (
        "t = 5 + C[y]\nm: i64 = t\nfor i in range(t):\n    total += i\n    if total > 5:\n        D[i] = total"
    )


def test_buffers_are_renamed_wherever_they_stand() -> None:
    text = """
    w: f64[2] = zeros
    v: i64[x] = empty
    prefetch(A, x)
    w[0] = A[v[1]] + w[x]
    """
    body = parse_stmts(text, ENV)
    assert show(substitute(body, {}, {"A": "C", "w": "u", "v": "t"})) == (
        "u: f64[2] = zeros\nt: i64[x] = empty\nprefetch(C, x)\nu[0] = f64(C[t[1]]) + u[x]"
    )
