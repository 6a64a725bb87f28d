from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openwork.errors import FormatError, ShapeError
from openwork.ir.index import Access, Apply, Assignment, Expression, Literal
from openwork.ir.index_evaluate import evaluate
from openwork.ir.index_text import parse, parse_expression
from openwork.ir.ops import ARITHMETIC, BITWISE, COMPARISONS, LOGICAL, UNARY

RNG = np.random.default_rng(0)
A, B, X = RNG.random((3, 4)), RNG.random((4, 5)), RNG.random(4)

_literals = st.builds(
    Literal, st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.complex_numbers(allow_nan=False)
)
_accesses = st.sampled_from([Access("A", ("i", "j")), Access("b"), Access("x", ("j",)), Access("T", ("i", "j", "k"))])


def _applications(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    two = st.builds(
        Apply, st.sampled_from((*ARITHMETIC, *BITWISE, *COMPARISONS, "and", "or", "xor")), st.tuples(inner, inner)
    )
    one = st.builds(Apply, st.sampled_from((*UNARY, "not")), st.tuples(inner))
    return two | one | st.builds(Apply, st.sampled_from(("select", "fma")), st.tuples(inner, inner, inner))


@given(st.recursive(_literals | _accesses, _applications, max_leaves=12))
def test_an_expression_reads_back(e: Expression) -> None:
    assert parse_expression(str(e)) == e


@given(
    st.recursive(_accesses, _applications, max_leaves=5), st.sampled_from(("=", "+=", "*=", "min=", "max=", "|=", "&="))
)
def test_an_assignment_reads_back(rhs: Expression, op: str) -> None:
    assignment = Assignment(Access("C", ("k", "i")), op, rhs)
    assert parse(str(assignment)) == assignment


def test_the_logical_operations_are_all_written() -> None:
    assert LOGICAL == ("and", "or", "xor", "not")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("C[i,k] += A[i,j] * B[j,k]", "C[i, k] += A[i, j] * B[j, k]"),
        ("y(i) += A(i,j) * x(j)", "y[i] += A[i, j] * x[j]"),
        ("s() += A(i,j)", "s += A[i, j]"),
        ("s += A(i,j)", "s += A[i, j]"),
        ("y[i]=sin(x[i])", "y[i] = sin(x[i])"),
        ("y[i] = (x[i] + b) * 2 - (c - 1.5e-3)", "y[i] = (x[i] + b) * 2 - (c - 0.0015)"),
        ("y[i] = -x[i]**2 // -3 % +b", "y[i] = -x[i] ** 2 // -3 % b"),
        ("y[i] = max(a, b, x[i])", "y[i] = max(max(a, b), x[i])"),
        ("y[i] = where(0 < x[i] <= b, x[i], -inf)", "y[i] = select(0 < x[i] and x[i] <= b, x[i], -inf)"),
        ("y[i] = not x[i] and not (b or c) | d", "y[i] = not x[i] and not (b or c) | d"),
        ("m min= A[i, j]", "m min= A[i, j]"),
        ("m |= A[i, j] == True", "m |= A[i, j] == True"),
        ("y = neg(2) - neg(a) + abs(neg(2.5))", "y = neg(2) - -a + abs(neg(2.5))"),
        ("z = 2j * complex(1, -0.0)", "z = complex(0.0, 2.0) * complex(1.0, -0.0)"),
    ],
)
def test_spellings(text: str, shown: str) -> None:
    assert str(parse(text)) == shown
    assert parse(str(parse(text))) == parse(text)


def test_the_parts_of_a_statement() -> None:
    stmt = parse("C[i, k] += A[i, j] * B[j, k] * A[i, j] + w[l]")
    assert stmt.lhs == Access("C", ("i", "k"))
    assert stmt.free_indices == ("i", "k")
    assert stmt.reduction_indices == ("j", "l")
    assert stmt.indices == ("i", "k", "j", "l")
    assert stmt.tensors == ("A", "B", "w")
    assert stmt.accesses == (Access("A", ("i", "j")), Access("B", ("j", "k")), Access("w", ("l",)))
    assert stmt.reduction == "add"
    assert hash(stmt) == hash(parse(str(stmt)))


def test_literals_are_equal_by_kind_and_bits() -> None:
    kinds = [Literal(1), Literal(1.0), Literal(True), Literal(0.0), Literal(-0.0), Literal(1 + 0j)]
    assert len(set(kinds)) == len(kinds)
    assert Literal(float("nan")) == Literal(float("nan"))


@pytest.mark.parametrize(
    ("text", "caret", "message"),
    [
        ("y(i) += A(i,j) * x(j", 20, "expected ','; got the end"),
        ("A[i]=A[i]+1", 5, "A is being computed\n  help: give the result a name of its own"),
        ("y[i,i]=x[i]", 2, "expected each index once; got y[i, i]"),
        ("y[i] += i*x[i]", 8, "'i' is both\n  help: call one of the two differently"),
        ("y[i]==x[i]", 4, "expected one of = += *= min= max= |= &=; got '=='"),
        ("y[i]=A[i]+A[i,j]", 10, "expected 1 indices, as in A[i]; got A[i, j]"),
        ("y[i] = §", 7, "got '§'"),
        ("y[i] = A[3]", 9, "expected the name of an index variable; got '3'"),
        ("y = sin(a, b)", 4, "expected 1; got 2"),
        ("y = ", 3, "expected a tensor, a number or a function; got the end"),
        ("y = a b", 6, "expected the end; got 'b'"),
        ("3 = a", 0, "expected a name; got '3'"),
        ("y = (a + b", 10, "expected ')'; got the end"),
        ("y = a + * b", 8, "expected a tensor, a number or a function; got '*'"),
        ("y = complex(a, 1)", 4, "expected complex(1.0, -2.0)"),
        ("y = 1 + sum(j, x[j])", 0, "expected one statement alone\n  help: ow.evaluate takes several"),
        ("", 0, "expected a name; got the end"),
        ("y = " + "(" * 300 + "a", 64, "expected at most 60 levels of nesting"),
        ("y = " + "a + " * 300 + "a", 0, "expected at most 200 operations"),
    ],
)
def test_errors_point_at_the_place(text: str, caret: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("index notation: ")
    if len(text) < 60:
        assert lines[1] == "  " + text
        assert lines[2] == "  " + " " * caret + "^"
    assert "\n".join(lines[3:]) == "  " + message


@given(st.text("Ay[]()ij,=+*-/ 1.e<>", max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        stmt = parse(text)
    except FormatError:
        return
    assert parse(str(stmt)) == stmt


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C[i, k] += A[i, j] * B[j, k]", A @ B),
        ("C[k, i] = A[i, j] * B[j, k]", (A @ B).T),
        ("s += A[i, j]", A.sum()),
        ("s *= A[i, j]", A.prod()),
        ("m min= A[i, j]", A.min()),
        ("m[j] max= A[i, j]", A.max(axis=0)),
        ("m[i] |= A[i, j] > 0.5", (A > 0.5).any(axis=1)),
        ("m[i] &= A[i, j] > 0.5", (A > 0.5).all(axis=1)),
        ("D[i, j] = A[i, j] / x[j] - 2", A / X - 2),
        ("D[j] = where(x[j] < 0.5, -x[j], sqrt(x[j]) ** 2)", np.where(X < 0.5, -X, X)),
        ("t += (A * 0 + 1)", None),
    ],
)
def test_the_oracle_agrees_with_numpy(text: str, expected: np.ndarray | None) -> None:
    if expected is None:
        with pytest.raises(ShapeError, match="A has 0 indices; got an array of shape"):
            evaluate(parse(text), {"A": A})
        return
    np.testing.assert_allclose(evaluate(parse(text), {"A": A, "B": B, "x": X}), expected)


def test_the_oracle_on_integers_empties_and_diagonals() -> None:
    n = np.array([7, -7, 3], np.int8)
    zero = np.array([2, 0, -2], np.int8)
    assert list(evaluate(parse("q[i] = n[i] // z[i]"), {"n": n, "z": zero})) == [3, 0, -2]
    assert list(evaluate(parse("q[i] = n[i] % z[i]"), {"n": n, "z": zero})) == [1, 0, -1]
    assert evaluate(parse("q[i] = n[i] + 1"), {"n": n}).dtype == np.int8
    assert evaluate(parse("s += n[i]"), {"n": n}).dtype == np.int8
    assert evaluate(parse("m min= n[i]"), {"n": n[:0]}) == 127
    assert evaluate(parse("m max= x[i]"), {"x": np.zeros(0)}) == -np.inf
    square = np.arange(9.0).reshape(3, 3)
    assert evaluate(parse("t += S[i, i]"), {"S": square}) == 12
    assert list(evaluate(parse("d[i] = S[i, i] * 2"), {"S": square})) == [0, 8, 16]
    assert evaluate(parse("C[i, j] = b"), {"b": 2.5}, {"i": 2, "j": 3}).shape == (2, 3)
    truth = np.array([True, False])
    assert [evaluate(parse(f"m {op} t[i]"), {"t": t}) for t in (truth, truth[:0]) for op in ("min=", "max=")] == [
        False,
        True,
        True,
        False,
    ]
    assert list(evaluate(parse("q[i] = n[i] * (2 + 3 * sqrt(4.0))"), {"n": n})) == [56, -56, 24]
    assert list(evaluate(parse("q[i] = given(n[i], z[i])"), {"n": n, "z": zero})) == list(n)


def test_the_oracle_refuses_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match="index j has extent 4; got 3 in x"):
        evaluate(parse("y[i] += A[i, j] * x[j]"), {"A": A, "x": np.zeros(3)})
    with pytest.raises(ShapeError, match="nothing on the right tells the extent of i"):
        evaluate(parse("y[i] = b"), {"b": 1})
