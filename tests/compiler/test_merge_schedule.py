"""Formats, scalar types and fill values -> the schedule of a merge: a pure function, without a tensor."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from openwork.compiler.schedule.coiterate import MergeSchedule, schedule_merge
from openwork.compiler.schedule.reduce import schedule_sum
from openwork.format import format as parse
from openwork.format.format import Format
from openwork.ir.index_text import parse_expression
from openwork.runtime.coiterate.types import typed


class Facts(NamedTuple):
    format: Format
    scalar: str = "f64"
    fill_value: Any = 0.0
    nse: int = 10


def schedule(text: str, *operands: Facts, **options: Any) -> MergeSchedule:
    named = dict(zip("AB", operands, strict=False))
    e = parse_expression(text)
    expr = typed(e, {n: s.scalar for n, s in named.items()})
    return schedule_merge(e, expr, named, dict.fromkeys(named, (0, 1)), 2, options.pop("format", None), **options)


CSR, CSC, COO = (Facts(parse(name, 2)) for name in ("csr", "csc", "coo"))


def test_the_order_of_the_first_operand_is_the_loops_and_others_are_converted() -> None:
    s = schedule("A[i,j] + B[i,j]", CSR, CSC)
    assert (str(s.target.name), s.steps, s.converts, s.same_structure) == ("csr", (None, CSR.format), True, False)
    same = schedule("A[i,j] + B[i,j]", CSR, CSR)
    assert (same.steps, same.converts, same.same_structure, same.shares) == ((None, None), False, True, (0, 1))
    assert (schedule("A[i,j] * B[i,j]", CSR, CSR, format=COO.format).format.name, same.format.name) == ("coo", "csr")


@pytest.mark.parametrize(
    ("text", "fills", "fill", "guard"),
    [
        ("A[i,j] + B[i,j]", (0.0, 0.0), 0.0, False),
        ("A[i,j] * B[i,j]", (0.0, 0.0), 0.0, True),
        ("A[i,j] + B[i,j]", (1.5, 2.0), 3.5, False),
        ("max(A[i,j], B[i,j])", (-1.0, 2.0), 2.0, False),
    ],
)
def test_fill_values_decide_where_something_is_computed(text: str, fills: Any, fill: float, guard: bool) -> None:
    s = schedule(text, *(Facts(CSR.format, fill_value=x) for x in fills))
    assert (s.fill, s.nonfinite_guard is not None) == (fill, guard)
    assert schedule(text, *(Facts(CSR.format, fill_value=x) for x in fills), annihilate=False).nonfinite_guard is None


def test_a_short_operand_is_chosen_by_sizes_alone() -> None:
    chooser = schedule("A[i,j] * B[i,j]", CSR, CSR).gallop_chooser
    assert chooser is not None
    assert chooser.none_pays(2000, (50, 50))
    assert not chooser.none_pays(20_000, (50, 50))
    assert chooser.drivers([(50, 20_000), (50, 30)], (50, 50), CSR.format) == (None, "B")
    assert chooser.drivers([(50, 20_000), (50, 9_000)], (50, 50), CSR.format) == ()
    assert schedule("A[i,j] + B[i,j]", CSR, CSR).gallop_chooser is None


def test_sums_walk_the_operand_whose_order_is_cheapest() -> None:
    e = parse_expression("A[i,j] * B[i,j]")
    operands = {"A": Facts(CSR.format, nse=10), "B": Facts(CSC.format, nse=1000)}
    expr = typed(e, dict.fromkeys("AB", "f64"))
    s = schedule_sum(e, expr, operands, [], dict.fromkeys("AB", (0, 1)), 2, (1,), "add", "f64")
    assert (s.loops, s.steps, s.counts, s.fill) == (CSC.format, (CSC.format, None), False, 0.0)
