"""Conversions between formats drawn from the whole grammar: the same array, and every invariant."""

from __future__ import annotations

import random

import numpy as np
import pytest

import openwork as ow
from openwork.format.format import Format
from openwork.storage.exact import check_indices
from openwork.storage.invariants import check_layout

LEVELS = (
    "dense", "dense", "compressed", "compressed", "bitmap", "singleton", "loose_compressed", "ell(2)", "ell(4)",
    "structured(1, 2)", "structured(2, 4)",
)  # fmt: skip
BELOW_BITMAPS = (
    "(i, j) -> (i // 2 : bitmap, j // 2 : compressed, i % 2 : dense, j % 2 : dense)",
    "(i, j) -> (j // 2 : bitmap, i : compressed, j % 2 : bitmap)",
    "(i, j, k) -> (j : bitmap, k : compressed, i : dense)",
    "(i, j, k) -> (i : dense, j : bitmap, k // 2 : compressed, k % 2 : dense)",
    "(i, j, k) -> (k : bitmap, j : bitmap, i // 2 : compressed, i % 2 : bitmap)",
)


def drawn(rng: random.Random, rank: int) -> Format:
    """A legal format: dimensions in any order, some split, perhaps a diagonal, any level formats and properties."""
    while True:
        dims = "abc"[:rank]
        parts = [[f"{d} // 2", f"{d} % 2"] if rng.random() < 0.3 else [d] for d in dims]
        if rank > 1 and rng.random() < 0.15:
            x, y = rng.sample(dims, 2)
            parts = [[d] for d in dims if d not in (x, y)] + [[f"{x} {rng.choice('+-')} {y}", f"{y}!"]]
        levels = []
        while any(parts):
            e = rng.choice([p for p in parts if p]).pop(0)
            kind = rng.choice(("range", "dense", "compressed")) if e.endswith("!") else rng.choice(LEVELS)
            if not levels and rng.random() < 0.15:
                kind = "batch"
            if kind in ("compressed", "singleton", "loose_compressed"):
                said = [p for p in ("nonunique", "unordered") if rng.random() < 0.25]
                kind += f"({', '.join(said)})" if said else ""
            levels.append(f"{e.rstrip('!')} : {kind}")
        try:
            return ow.format(f"({', '.join(dims)}) -> ({', '.join(levels)})")
        except ow.FormatError:
            continue


def check(x: np.ndarray[tuple[int, ...], np.dtype[np.float64]], source: Format, target: Format, fill: float) -> None:
    """Convert through `source` to `target`; a format that has no room for the elements may refuse."""
    try:
        given = ow.asarray(x, format="coo", fill_value=fill).asformat(source)
        got = given.asformat(target)
    except (ow.FormatError, ow.ShapeError):
        return
    assert got.format == target
    check_layout(got._storage)
    check_indices(got._storage)
    np.testing.assert_array_equal(got.to_numpy(), x, f"{source} => {target}")


@pytest.mark.thin(2)
@pytest.mark.parametrize("seed", range(16))
def test_pairs_of_drawn_formats(seed: int) -> None:
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2, 3, 3))
    shape = [rng.choice((1, 2, 3, 4)) for _ in range(rank)]
    fill = rng.choice((0.0, 2.0))
    places = np.random.default_rng(seed)
    x = np.where(places.random(shape) < 0.4, places.integers(1, 5, shape), fill)
    check(x, drawn(rng, rank), drawn(rng, rank), fill)


@pytest.mark.parametrize("target", BELOW_BITMAPS)
@pytest.mark.parametrize("source", ["csr", "csf", "bitmap"])
def test_compressed_levels_below_bitmaps(source: str, target: str) -> None:
    wanted = ow.format(target)
    if source == "csr" and wanted.ndim == 3:
        source = "(i, j, k) -> (j : dense, i : compressed, k : compressed)"
    rng = np.random.default_rng(1)
    for shape in ((3, 5, 2)[: wanted.ndim], (4, 1, 6)[: wanted.ndim]):
        x = np.where(rng.random(shape) < 0.4, rng.integers(1, 5, shape), 0.0)
        check(x, ow.format(source, wanted.ndim), wanted, 0.0)


@pytest.mark.parametrize(
    "target",
    [
        "(a, b) -> (a : compressed(nonunique, unordered), b : singleton)",
        "(a, b) -> (a : loose_compressed(nonunique, unordered), b : singleton(nonunique))",
        "(a, b, c) -> (a : compressed, b : compressed(nonunique, unordered), c : singleton)",
        "(a, b, c) -> (a : dense, b : compressed(nonunique, unordered), c : singleton)",
        "(a, b, c) -> (a : compressed(nonunique), b : singleton(nonunique, unordered), c : singleton(nonunique))",
    ],
)
def test_an_ordered_level_below_an_unordered_one(target: str) -> None:
    """Elements walked in another order are sorted for it."""
    f = ow.format(target)
    rank = len(f.dims)
    sources = {
        2: ("(a, b) -> (a : dense, a - b : dense)", "(a, b) -> (b : dense, a : compressed)"),
        3: (
            "(a, b, c) -> (a : dense, b : dense, b - c : dense)",
            "(a, b, c) -> (c : dense, b : dense, a : compressed)",
        ),
    }
    array = np.random.default_rng(0).integers(0, 3, (3, 4, 5)[:rank]).astype(float)
    for source in sources[rank]:
        t = ow.asarray(array, format="coo").asformat(source).asformat(f)
        check_indices(t._storage)
        assert np.array_equal(t.to_numpy(), array)
