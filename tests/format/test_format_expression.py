from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import formats, shapes

from openwork.format import Add, Dim, Div, Expression, Format, Mod, Range, Sub, evaluate, format, interval, render
from openwork.format.inverse import Digit, digit, solve

X, Y = Dim(0), Dim(1)


@pytest.mark.parametrize(
    ("e", "text", "expected"),
    [
        (X, "i", (0, 5)),
        (Add(X, Y), "i + j", (0, 11)),
        (Sub(Y, X), "j - i", (-4, 7)),
        (Sub(X, Y), "i - j", (-6, 5)),
        (Div(Y, 3), "j // 3", (0, 3)),
        (Mod(Y, 3), "j % 3", (0, 3)),
        (Mod(Y, 30), "j % 30", (0, 30)),
        (Div(Mod(Y, 16), 4), "j % 16 // 4", (0, 4)),
        (Div(Sub(Y, X), 4), "(j - i) // 4", (-1, 2)),
        (Mod(Add(X, Y), 4), "(i + j) % 4", (0, 4)),
    ],
)
def test_interval_and_text(e: Expression, text: str, expected: tuple[int, int]) -> None:
    assert render(e, "ij") == text
    assert interval(e, (5, 7)) == expected
    assert interval(e, (0, 0)) == (0, 0)


@pytest.mark.parametrize("e", [X, Add(X, Y), Sub(X, Y), Div(Sub(X, Y), 3), Mod(Div(Add(X, Y), 2), 3)])
def test_evaluate_takes_arrays(e: Expression) -> None:
    i, j = np.indices((4, 5))
    values = evaluate(e, (i, j)) + np.zeros((4, 5), int)
    assert all(values[a, b] == evaluate(e, (a, b)) for a in range(4) for b in range(5))


@given(st.data())
def test_interval_holds_exactly_what_is_reached(data: st.DataObject) -> None:
    """Every value lies inside; the ends are reached, but for the upper end of a remainder."""
    f = data.draw(formats(max_ndim=3))
    shape = data.draw(shapes(f.ndim, max_extent=5))
    for level in f.levels:
        e = level.expression
        lo, hi = interval(e, shape)
        reached = {evaluate(e, c) for c in itertools.product(*map(range, shape))}
        if 0 not in shape:
            assert min(reached) >= lo
            assert max(reached) < hi
            if not isinstance(digit(e).base, Digit) and digit(e).size == 0:
                assert (min(reached), max(reached) + 1) == (lo, hi)


@given(st.data())
def test_inverse_recovers_every_dimension(data: st.DataObject) -> None:
    """inverse(map(c)) == c, and so different coordinates have different level coordinates."""
    f = data.draw(formats(max_ndim=3))
    shape = data.draw(shapes(f.ndim, max_extent=6))
    intervals = f.level_intervals(shape)
    for c in itertools.product(*map(range, shape)):
        levels = [evaluate(level.expression, c) for level in f.levels]
        assert all(lo <= x < hi for x, (lo, hi) in zip(levels, intervals, strict=True))
        assert c == tuple(sum(k * levels[level] for level, k in form) for form in f.inverse)


def outside(f: Format, shape: tuple[int, ...]) -> bool:
    """Whether some level coordinates inside their ranges are outside the shape, range levels being exact."""
    exact = {d for d, form in enumerate(f.inverse) if isinstance(f.levels[form[-1][0]].format, Range)}
    for levels in itertools.product(*(range(lo, hi) for lo, hi in f.level_intervals(shape))):
        c = [sum(k * levels[level] for level, k in form) for form in f.inverse]
        inside = [0 <= x < n for x, n in zip(c, shape, strict=True)]
        if all(inside[d] for d in exact) and not all(inside):
            return True
    return False


@given(st.data())
def test_ragged_says_whether_a_walk_leaves_the_shape(data: st.DataObject) -> None:
    f = data.draw(formats(max_ndim=2))
    shape = data.draw(shapes(f.ndim, max_extent=4))
    size = 1
    for lo, hi in f.level_intervals(shape):
        size *= hi - lo
    assume(size < 20_000)
    assert f.ragged(shape) == outside(f, shape)


@pytest.mark.parametrize(
    ("spec", "shape", "expected"),
    [
        ("csr", (3, 5), False),
        ("bsr(2,3)", (4, 6), False),
        ("bsr(2,3)", (5, 6), True),
        ("bsr(2,3)", (4, 7), True),
        ("bsr(2,3)", (0, 7), False),
        ("dia", (3, 5), False),
        ("(i, j) -> (j - i : compressed, i : dense)", (3, 5), True),
        ("(i, j) -> (i + j : dense, i : dense)", (1, 1), False),
        ("nm(2,4)", (3, 6), True),
    ],
)
def test_ragged(spec: str, shape: tuple[int, ...], expected: bool) -> None:
    assert format(spec).ragged(shape) is expected


@pytest.mark.parametrize(
    ("text", "inverse"),
    [
        ("(i) -> (i // 16 : dense, i % 16 // 4 : dense, i % 4 : dense)", [[(0, 16), (1, 4), (2, 1)]]),
        ("(i) -> (i % 4 : dense, i // 4 % 4 : dense, i // 16 : dense)", [[(0, 1), (1, 4), (2, 16)]]),
        ("(i) -> (i // 6 : dense, i % 6 // 4 : dense, i % 6 % 4 : dense)", [[(0, 6), (1, 4), (2, 1)]]),
        ("(i, j) -> (j - i : dense, i : dense)", [[(1, 1)], [(0, 1), (1, 1)]]),
        ("(i, j) -> (j - i : dense, j : dense)", [[(0, -1), (1, 1)], [(1, 1)]]),
        ("(i, j) -> (i + j : dense, i : dense)", [[(1, 1)], [(0, 1), (1, -1)]]),
        (
            "(i, j, k) -> (i + j : dense, j - k : dense, k : dense)",
            [[(0, 1), (1, -1), (2, -1)], [(1, 1), (2, 1)], [(2, 1)]],
        ),
        ("(i, j) -> ((j - i) // 4 : dense, i : dense, (j - i) % 4 : dense)", [[(1, 1)], [(0, 4), (1, 1), (2, 1)]]),
    ],
)
def test_inverse(text: str, inverse: list[list[tuple[int, int]]]) -> None:
    assert format(text).inverse == tuple(map(tuple, inverse))


def test_digit_of_nested_blocks() -> None:
    assert digit(Div(Mod(X, 16), 4)) == digit(Mod(Div(X, 4), 4)) == Digit(X, 4, 4)
    assert digit(Div(Div(X, 4), 4)) == digit(Div(X, 16))
    assert digit(Mod(Mod(X, 8), 16)) == digit(Mod(X, 8))
    assert digit(Div(Mod(X, 4), 4)).size < 0


def test_solve_leaves_over_what_it_does_not_need() -> None:
    forms, left = solve([X, Div(X, 2)])
    assert forms == {0: {0: 1}}
    assert left == [(Digit(X, 2, 0), {1: 1})]
