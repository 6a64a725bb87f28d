"""Merge lattices as text, and the fill algebra that they are made from."""

from __future__ import annotations

import math
from typing import Any

import pytest

from openwork.compiler.coiterate import predicated
from openwork.compiler.fill import Regions, partial
from openwork.compiler.lattice import gallop_lattice, lattice
from openwork.ir.index_text import parse_expression
from openwork.ir.loop import Const, Var
from openwork.ir.ops import const
from openwork.ir.printer import show
from openwork.ir.types import Type
from openwork.runtime.coiterate.types import typed

INF, NAN = math.inf, math.nan


def regions(text: str, fills: dict[str, Any] | None = None, scalar: str = "f64", annihilate: bool = True) -> Regions:
    e = parse_expression(text)
    names = [n for n in "ABCDE" if n in text]
    values = {n: const((fills or {}).get(n, 0), scalar) for n in names}
    return Regions(typed(e, dict.fromkeys(names, scalar)), values, annihilate=annihilate)


def points(r: Regions, located: str = "", present: str = "", lead: str = "") -> str:
    """The lattice of one level that all operands but `present` have; those of `located` are asked, not walked. `lead` is
    walked alone."""
    base = frozenset(present)
    walked = tuple(n for n in r.names if n not in located + present)
    found = lattice(
        walked,
        lambda case: r.computes(base | frozenset(case), frozenset()),
        lambda name, case: r.matters(name, base | frozenset(case), frozenset(case)),
        tuple(located),
    )
    return str(gallop_lattice(found, lead, walked) if lead else found)


UNION = "while A, B: {A, B} {A} {B}\nwhile A: {A}\nwhile B: {B}"
BOTH = "while A, B: {A, B}"

LATTICES = {
    "A + B": UNION,
    "A - B": UNION,
    "A * B": BOTH,
    "A * B * C": "while A, B, C: {A, B, C}",
    "A * B + C": "while A, B, C: {A, B, C} {A, B} {A, C} {B, C} {C}\nwhile A, B: {A, B}\nwhile C: {C}",
    "A * (B + C)": "while A, B, C: {A, B, C} {A, B} {A, C}\nwhile A, B: {A, B}\nwhile A, C: {A, C}",
    "max(A, B)": UNION,
    "min(A, B)": UNION,
    "A < B": UNION,
    "A == B": UNION,
    "A != 0 and B != 0": BOTH,
    "A != 0 or B != 0": UNION,
    "xor(A != 0, B != 0)": UNION,
    "A != 0 and not B != 0": "while A, B: {A, B} {A}\nwhile A: {A}",
    "A * (B == 0)": "while A, B: {A, B} {A}\nwhile A: {A}",
    "A ** 2": "while A: {A}",
    "A ** B": "while A, B: {A, B} {B}\nwhile B: {B}",
    "select(A > 0, B, C)": (
        "while A, B, C: {A, B, C} {A, B} {A, C} {B, C} {C}\nwhile A, B: {A, B}\nwhile A, C: {A, C} {C}\nwhile C: {C}"
    ),
    "A * B + A * C": (
        "while A, B, C: {A, B, C} {A, B} {A, C}\nwhile A, B: {A, B}\nwhile A, C: {A, C}"
    ),
    "A + 1 - 1 - A": "while A: {A}",
}  # fmt: skip


@pytest.mark.parametrize("text", LATTICES)
def test_lattices_of_zero_fills(text: str) -> None:
    assert points(regions(text)) == LATTICES[text]


FILLED = [
    ("A * B", {"A": 1.0}, "while A, B: {A, B} {B}\nwhile B: {B}"),
    ("A * B", {"A": 1.0, "B": 1.0}, UNION),
    ("A + B", {"A": 2.0, "B": NAN}, UNION),
    ("min(A, B)", {"A": INF, "B": INF}, UNION),
    ("A * B", {"A": INF}, "while A, B: {A, B} {A} {B}\nwhile A: {A}\nwhile B: {B}"),
    ("A or B", {"A": True, "B": True}, BOTH),
    ("A and B", {"A": True, "B": True}, UNION),
]


@pytest.mark.parametrize(("text", "fills", "expected"), FILLED)
def test_lattices_of_other_fills(text: str, fills: dict[str, Any], expected: str) -> None:
    scalar = "bool" if " and " in text or " or " in text else "f64"
    assert points(regions(text, fills, scalar)) == expected


def test_unsigned_types_know_more() -> None:
    assert points(regions("A < B", scalar="u8")) == "while A, B: {A, B} {B}\nwhile B: {B}"
    assert points(regions("A >= B", scalar="u8")) == "while A, B: {A, B} {B}\nwhile B: {B}"


def test_an_operand_that_is_asked_is_not_walked() -> None:
    assert points(regions("A * B"), located="B") == "while A: {A, B}"
    assert points(regions("A + B"), located="B") == "every coordinate: {A, B} {A} {B}"
    assert points(regions("A != 0 and not B != 0"), located="B") == "while A: {A, B} {A}"


def test_an_operand_that_is_always_there() -> None:
    assert points(regions("A * B"), present="B") == "while A: {A}"
    assert points(regions("A + B"), present="B") == "every coordinate: {A} {}"


def test_what_is_searched() -> None:
    assert points(regions("A * B"), lead="B") == "while B, gallop A: {A, B}"
    assert points(regions("A * B * C"), lead="A") == "while A, gallop B, gallop C: {A, B, C}"
    assert points(regions("(A + B) * C"), lead="C") == "while C, gallop A, gallop B: {A, B, C} {A, C} {B, C}"
    assert points(regions("A * B * C"), located="B", lead="C") == "while C, gallop A: {A, C, B}"
    assert points(regions("A * B"), present="A", lead="B") == "while B: {B}"


def test_no_lattice_for_a_constant() -> None:
    assert points(regions("A * 0", annihilate=True, scalar="i32")) == "nothing"


def test_an_absent_zero_annihilates_only_where_asked() -> None:
    fills = {"A": const(0.0, "f64")}
    body = typed(parse_expression("A * B"), {"A": "f64", "B": "f64"})
    assert partial(body, fills) == const(0.0, "f64")
    assert show(partial(body, fills, annihilate=False)) == "B * 0.0"
    assert points(regions("A * B", annihilate=False)) == UNION


def test_where_both_are_absent_numpy_decides() -> None:
    r = regions("A * B", {"B": INF})
    assert isinstance(r.fill, Const)
    assert math.isnan(float(r.fill.value.real))
    assert regions("A / B").fill == const(NAN, "f64")
    assert regions("A ** B").fill == const(1.0, "f64")
    assert regions("exp(A)").fill == const(1.0, "f64")


def test_a_written_zero_does_not_annihilate() -> None:
    r = regions("0 * A")
    assert r.body("A") is not None
    assert regions("0 * A", scalar="i64").body("A") is None


def test_smallest_sets_that_meet_every_region() -> None:
    def sets(text: str) -> list[str]:
        return ["".join(sorted(s)) for s in regions(text).hitting()]

    assert sets("A + B") == ["AB"]
    assert sets("A * B") == ["A", "B"]
    assert sets("A * B + C") == ["AC", "BC"]
    assert sets("A != 0 and not B != 0") == ["A"]


def test_conditions_that_are_known_leave_no_operation() -> None:
    x = Var("x", Type("bool"))
    for a in (True, False, x):
        assert predicated._and(a, False) is predicated._and(False, a) is False
        assert predicated._and(a, True) is predicated._and(True, a) is a
        assert predicated._or(a, True) is predicated._or(True, a) is True
        assert predicated._or(a, False) is predicated._or(False, a) is a
