"""Missing as a fill value: the order of the rules, and the lattices that follow from it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from openwork.compiler.fill import RULES, Fill, Regions, guarded, is_missing, missing, partial
from openwork.compiler.lattice import lattice
from openwork.ir.index_text import parse_expression
from openwork.ir.ops import const
from openwork.ir.printer import show
from openwork.ir.text import parse_expr
from openwork.runtime.coiterate.types import typed

NONE = missing("f64")


def regions(text: str, zeros: str = "", masked: bool = True) -> Regions:
    """An expression of masked operands; those of `zeros` are ordinary tensors of fill value 0."""
    e = parse_expression(text)
    names = [n for n in "ABCD" if n in text]
    fills: dict[str, Fill] = {n: const(0, "f64") if n in zeros else NONE for n in names}
    expr = typed(e, dict.fromkeys(names, "f64"))
    return Regions(expr, fills, missing(expr.type) if masked else None, annihilate=not masked)


def points(r: Regions, asked: str = "", present: str = "") -> str:
    """The lattice of one level that all operands but `present` have; those of `asked` are bitmaps."""
    base = frozenset(present)
    walked = tuple(n for n in r.names if n not in asked + present)
    found = lattice(
        walked,
        lambda case: r.computes(base | frozenset(case), frozenset()),
        lambda name, case: r.matters(name, base | frozenset(case), frozenset(case)),
        tuple(asked),
    )
    return str(found)


def value(text: str, **fills: Any) -> Any:
    """What an expression is where these operands are absent: None is missing, a name what is not known."""
    e = parse_expression(text)
    names = [n for n in "ABC" if n in text]
    given = {n: NONE if x is None else const(x, "f64") for n, x in fills.items()}
    found = partial(typed(e, dict.fromkeys(names, "f64")), given)
    return "--" if is_missing(found) else show(found)


INTERSECTION = "while A, B: {A, B}"
UNION = "while A, B: {A, B} {A} {B}\nwhile A: {A}\nwhile B: {B}"

LATTICES = {
    "A + B": INTERSECTION,
    "A * B": INTERSECTION,
    "max(A, B)": INTERSECTION,
    "A < B": INTERSECTION,
    "A + A * A": "while A: {A}",
    "A * B + C": "while A, B, C: {A, B, C}",
    "given(A, B)": INTERSECTION,
    "either(A, B)": UNION,
    "either(A + B, either(A, B))": UNION,
    "either(A * B, C)": (
        "while A, B, C: {A, B, C} {A, B} {A, C} {B, C} {C}\nwhile A, B: {A, B}\nwhile C: {C}"
    ),
    "where(A > 0, B, C)": "while A, B, C: {A, B, C} {A, B} {A, C}\nwhile A, B: {A, B}\nwhile A, C: {A, C}",
    "either(A, 0.0) + B": "while A, B: {A, B} {B}\nwhile B: {B}",
}  # fmt: skip


@pytest.mark.parametrize("text", LATTICES)
def test_lattices_of_masked_operands(text: str) -> None:
    assert points(regions(text)) == LATTICES[text]


def test_lattices_of_masked_and_ordinary_operands() -> None:
    assert points(regions("A * B", zeros="B")) == "while A, B: {A, B} {A}\nwhile A: {A}"
    assert points(regions("A + B", zeros="B")) == "while A, B: {A, B} {A}\nwhile A: {A}"
    assert points(regions("A * B", zeros="B"), present="B") == "while A: {A}"
    every = "every coordinate: {A, B, C} {A, B} {A, C} {B, C} {A} {B} {C} {}"
    assert points(regions("where(A > 0, B, C)", zeros="AC")) == every


def test_lattices_of_bitmaps() -> None:
    assert points(regions("A + B"), asked="AB") == "every coordinate: {A, B}"
    assert points(regions("either(A + B, either(A, B))"), asked="AB") == "every coordinate: {A, B} {A} {B}"
    assert points(regions("A + B"), asked="B") == "while A: {A, B}"
    assert points(regions("either(A, B)"), asked="B") == "every coordinate: {A, B} {A} {B}"


def test_the_order_of_the_rules() -> None:
    assert RULES == ("skip", "choose", "missing", "constant", "settle", "annihilate", "simplify")
    # what skips missing elements, before they spread
    assert value("either(A, B)", A=None) == "B"
    assert value("either(A, B)", B=None) == "A"
    assert value("either(A, B)", A=None, B=None) == "--"
    assert value("given(A, B)", B=None) == "--"
    # a branch is chosen before what the other one lacks is seen; a condition that is missing chooses none
    assert value("where(A, B, C)", A=1.0, C=None) == "B"
    assert value("where(A, B, C)", A=0.0, C=None) == "--"
    assert value("where(A, B, C)", A=None) == "--"
    assert value("where(A, B, C)", A=None, B=1.0, C=1.0) == "--"
    # missing beats the annihilator, NaN and whatever decides alone
    assert value("A * B", A=None, B=0.0) == value("A * 0.0", A=None) == "--"
    assert value("A + B", A=None, B=math.nan) == "--"
    assert value("A > 0 and B > 0", A=None, B=0.0) == "--"
    assert value("A > 0 or B > 0", A=None, B=1.0) == "--"
    assert value("A ** B", A=None, B=0.0) == "--"
    # known operands give NumPy's value, before a zero annihilates
    assert value("A * B", A=0.0, B=math.inf) == "nan"
    assert value("A * B", A=0.0, B=math.nan) == "nan"
    # a zero annihilates, before anything is simplified
    assert value("A * (B + 0.0)", A=0.0) == "0.0"
    assert value("A + B * 1.0", A=-0.0) == "B"


def test_where_keeps_its_choice() -> None:
    e = typed(parse_expression("where(A > 0, B, C) * 2.0 + 1.0"), dict.fromkeys("ABC", "f64"))
    body = partial(e, {"C": NONE})
    computed, test = guarded(body)
    assert show(computed) == "B * 2.0 + 1.0"
    assert test is not None
    assert show(test) == "A > 0.0"
    nested = typed(parse_expression("where(A > 0, B, where(A < -1, C, B))"), dict.fromkeys("ABC", "f64"))
    assert [show(x) for x in guarded(partial(nested, {"C": NONE})) if x is not None] == [
        "B",
        "True if A > 0.0 else not A < -1.0",
    ]
    assert guarded(partial(e, {})) == (partial(e, {}), None)
    widened = typed(parse_expression("where(A > 0, B, C) + D"), {"A": "f64", "B": "f32", "C": "f32", "D": "f64"})
    assert [show(x) for x in guarded(partial(widened, {"C": missing("f32")})) if x is not None] == [
        "f64(B) + D",
        "A > 0.0",
    ]
    chosen = typed(parse_expression("where(where(A > 0, B, C) > 1, D, D * 2)"), dict.fromkeys("ABCD", "f64"))
    assert is_missing(partial(chosen, {"C": NONE, "D": NONE}))
    there = typed(parse_expression("given(A, where(B > 0, C, D))"), dict.fromkeys("ABCD", "f64"))
    assert [show(x) for x in guarded(partial(there, {"D": NONE})) if x is not None] == ["A", "B > 0.0"]
    assert guarded(partial(chosen, {"C": NONE}))[1] == parse_expr("A > 0.0", {"A": "f64"})


def test_results_without_missing_elements() -> None:
    r = regions("either(A, 1.0)", masked=False)
    assert show(r.fill) == "1.0"
    assert points(r) == "while A: {A}"
    assert regions("A + B", masked=False).masked
    assert not regions("A + B", zeros="AB", masked=False).masked


def test_missing_of_a_type_and_of_its_name() -> None:
    assert missing(NONE.type) == NONE
