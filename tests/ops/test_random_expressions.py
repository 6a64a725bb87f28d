"""Trees of all elementwise operators over random operands: against NumPy, interpreted, and on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted import interpreted
from matrix import FORMATS

import openwork as ow
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import shaped
from openwork.runtime.conversion import ranges
from openwork.storage.exact import check_indices

Array = np.ndarray[Any, Any]
LEAVES = "ABCD"
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
NUMPY = {
    "select": np.where, "min": np.minimum, "max": np.maximum, "abs": np.abs, "both": np.logical_and,
    "either": np.logical_or, "one": np.logical_xor, "none": np.logical_not,
}  # fmt: skip


@dataclass(frozen=True)
class Tree:
    """One expression, as index notation and for NumPy."""

    text: str
    numpy: str

    @staticmethod
    def both(pattern: str, *parts: Tree, numpy: str | None = None) -> Tree:
        return Tree(pattern.format(*(p.text for p in parts)), (numpy or pattern).format(*(p.numpy for p in parts)))


def leaf(draw: st.DrawFn) -> Tree:
    name = draw(st.sampled_from(LEAVES))
    return Tree(name, name)


def truth(draw: st.DrawFn, depth: int, whole: bool) -> Tree:
    """A comparison, or a few of them joined by logic."""
    kind = draw(st.integers(0, 6)) if depth else 0
    if kind < 3:
        other = leaf(draw) if draw(st.booleans()) else Tree(*2 * (str(draw(st.integers(0, 2))),))
        return Tree.both(f"({{}} {draw(st.sampled_from(COMPARISONS))} {{}})", number(draw, depth, whole), other)
    a = truth(draw, depth - 1, whole)
    if kind == 3:
        return Tree.both("(not {})", a, numpy="none({})")
    b = truth(draw, depth - 1, whole)
    pattern, numpy = [
        ("({} and {})", "both({}, {})"),
        ("({} or {})", "either({}, {})"),
        ("xor({}, {})", "one({}, {})"),
    ][kind - 4]
    return Tree.both(pattern, a, b, numpy=numpy)


def number(draw: st.DrawFn, depth: int, whole: bool) -> Tree:
    """Numbers from operands; `whole` where these are integers. What is divided by is an operand: of a computed zero
    nobody promises the sign."""
    kind = draw(st.integers(0, 15)) if depth else 0
    if kind == 0:
        return leaf(draw)
    below = number(draw, depth - 1, whole)
    if kind < 7:
        sign = ("+", "-", "*")[kind % 3]
        return Tree.both(f"({{}} {sign} {{}})", below, number(draw, depth - 1, whole))
    if kind < 9:
        return Tree.both(f"{('min', 'max')[kind % 2]}({{}}, {{}})", below, number(draw, depth - 1, whole))
    if kind == 9:
        return Tree.both("select({}, {}, {})", truth(draw, depth - 1, whole), below, number(draw, depth - 1, whole))
    if kind == 10:
        return Tree.both("({} * {})", below, truth(draw, depth - 1, whole))
    if kind == 11:
        return Tree.both(draw(st.sampled_from(["(-{})", "abs({})", "({} + 1)", "(2 * {})", "({} ** 2)"])), below)
    if kind == 12:
        return Tree.both(f"({{}} {draw(st.sampled_from(['//', '%']))} {{}})", below, leaf(draw))
    if whole:
        signs = ["({} & {})", "({} | {})", "({} ^ {})"]
        pattern = (*signs, "({} << 1)", "({} >> 1)")[draw(st.integers(0, 4))]
        return Tree.both(pattern, *([below, number(draw, depth - 1, whole)] if pattern in signs else [below]))
    return (
        Tree.both("({} / {})", below, leaf(draw))
        if kind < 15
        else Tree.both("((1.0 * {}) ** {})", leaf(draw), leaf(draw))
    )


def operand(draw: st.DrawFn, shape: tuple[int, ...], whole: bool) -> tuple[Array, ow.Tensor]:
    """Small numbers, some of them zero, in a random format and with a random fill value."""
    rank = len(shape) if draw(st.integers(0, 3)) else draw(st.integers(0, len(shape)))
    own = tuple(1 if n and not draw(st.integers(0, 5)) else n for n in shape[len(shape) - rank :])
    dtype = draw(
        st.sampled_from(["int64", "int64", "int8", "uint8"] if whole else ["float64", "float64", "float32", "int64"])
    )
    special = [] if dtype[0] != "f" else draw(st.sampled_from([[], [], [], [np.inf, np.nan]]))
    least = 0 if dtype[0] == "u" else -3
    fill = draw(st.sampled_from([0, 0, 0, 1, 2 + least, *special[:2]]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    values = rng.choice(np.array([0, 1, 2, 3, least, *special], dtype), own)
    dense = np.asarray(np.where(rng.random(own) < draw(st.sampled_from([0.0, 0.3, 0.6])), values, fill)).astype(dtype)
    spec = draw(st.sampled_from(["() -> ()", "dense"] if not rank else FORMATS[rank]))
    try:
        return dense, ow.asarray(dense, format=ow.format(spec, rank), fill_value=fill)
    except ow.FormatError:
        return dense, ow.asarray(dense, format=ow.format("coo", rank), fill_value=fill)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tree, dict[str, Array], dict[str, ow.Tensor]]:
    whole = draw(st.booleans())
    depth = draw(st.integers(1, 3))
    tree = truth(draw, depth, whole) if not draw(st.integers(0, 4)) else number(draw, depth, whole)
    rank = draw(st.sampled_from([0, 1, 2, 2, 2, 3, 4]))
    shape = tuple(draw(st.sampled_from([0, 1, 2, 3, 4, 5, 7])) for _ in range(rank))
    pairs = {n: operand(draw, shape, whole) for n in LEAVES if n in tree.text}
    return tree, {n: a for n, (a, _) in pairs.items()}, {n: t for n, (_, t) in pairs.items()}


def evaluate(tree: Tree, tensors: dict[str, ow.Tensor]) -> ow.Tensor:
    got = ow.pointwise(tree.text, tensors)
    check_indices(got._storage)
    return got


def check(problem: tuple[Tree, dict[str, Array], dict[str, ow.Tensor]], others: bool) -> None:
    tree, arrays, tensors = problem
    with np.errstate(all="ignore"):
        want = np.asarray(eval(tree.numpy, NUMPY, arrays))
        ow.set_num_threads(1)
        got = evaluate(tree, tensors)
        dense = got.to_numpy()
        assert dense.dtype == want.dtype
        assert dense.shape == want.shape
        np.testing.assert_allclose(dense, want, rtol=1e-5 if want.dtype == np.float32 else 1e-12)
        for threads in (2, 7):
            ow.set_num_threads(threads)
            for x, y in zip(got._storage.buffers, evaluate(tree, tensors)._storage.buffers, strict=True):
                np.testing.assert_array_equal(x, y)
        if others:
            ow.set_num_threads(1)
            with interpreted():
                np.testing.assert_allclose(evaluate(tree, tensors).to_numpy(), dense, rtol=1e-5)


@pytest.fixture(scope="module", autouse=True)
def _chunks() -> Iterator[None]:
    """Chunks even for little work, in merges and in conversions."""
    kept = merge_chunks.MINIMUM, shaped.MINIMUM, ranges.PARALLEL, ow.get_num_threads()
    merge_chunks.MINIMUM = shaped.MINIMUM = ranges.PARALLEL = 0
    yield
    merge_chunks.MINIMUM, shaped.MINIMUM, ranges.PARALLEL = kept[:3]
    ow.set_num_threads(kept[3])


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much]


@pytest.mark.ci
@settings(max_examples=70, deadline=None, suppress_health_check=QUIET)
@given(problems(), st.integers(0, 3))
def test_random_expressions(problem: Any, turn: int) -> None:
    check(problem, turn == 0)


@pytest.mark.nightly
@pytest.mark.timeout(14400)
@settings(max_examples=20000, deadline=None, suppress_health_check=QUIET, derandomize=False)
@given(problems(), st.integers(0, 9))
def test_many_random_expressions(problem: Any, turn: int) -> None:
    check(problem, turn == 0)
