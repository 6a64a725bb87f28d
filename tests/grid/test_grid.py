"""Every expression of the grid in every combination of formats: right, canonical, in the format asked for."""

from __future__ import annotations

import numpy as np
import pytest
from expressions import FORMATS, GRID, Expression, canonical, run_case, sample
from matrix import dense_array, tensor

import openwork as ow
from openwork.errors import InvariantError

STRENGTH = 3


def failures(e: Expression, cases: list[tuple[str, ...]]) -> list[str]:
    """What went wrong, case by case."""
    found = []
    for formats in cases:
        try:
            run_case(e, formats)
        except Exception as error:
            found.append(f"{', '.join(formats)}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
    return found


@pytest.mark.thin(9)
@pytest.mark.parametrize("name", GRID)
def test_a_sample_of_the_grid(name: str) -> None:
    assert not failures(GRID[name], sample(GRID[name], STRENGTH))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "last"), [(name, f) for name, e in GRID.items() for f in FORMATS[len(e.result)]])
def test_the_whole_grid(name: str, last: str) -> None:
    e = GRID[name]
    assert not failures(e, [formats for formats in e.cases() if formats[-1] == last])


def test_the_size_of_the_grid() -> None:
    assert len(GRID) == 15
    assert sum(len(list(e.cases())) for e in GRID.values()) >= 990
    for e in GRID.values():
        cases = sample(e, STRENGTH)
        for at, slot in enumerate(e.slots):
            assert {formats[at] for formats in cases} == set(slot)


def test_the_check_can_fail() -> None:
    array = dense_array((4, 5), 1)
    t = tensor(array, "csr")
    canonical(t, array, t.format)
    with pytest.raises(AssertionError):
        canonical(t, array + 1, t.format)
    with pytest.raises(AssertionError):
        canonical(t, array, ow.format("csc"))
    twice = ow.assemble("csr", (1, 3), pos={1: [0, 2]}, crd={1: [1, 1]}, values=[1.0, 2.0], check=False)
    with pytest.raises(InvariantError, match=r"5\.6"):
        canonical(twice, np.array([[0, 3.0, 0]]), twice.format)
