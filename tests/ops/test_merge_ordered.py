"""Merges by several threads, range by range: the same results as those of one thread, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import pool
from openwork.runtime.coiterate import ordered_concat as merge_ordered
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import shaped

MATRICES = ["csr", "dcsr", "bsr(2, 2)", "dia", "(i, j) -> (i : compressed, j : bitmap)"]
TENSORS = [
    "csf",
    "coo",
    "(i, j, k) -> (i : compressed, j : compressed, k : dense)",
    "(i, j, k) -> (i : compressed, j : dense, k : compressed)",
]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Three threads and short ranges; the numbers of ranges that were run in order."""
    if not pool.available():
        pytest.skip("no native pool on this system")
    monkeypatch.setattr(merge_chunks, "MINIMUM", 1)
    monkeypatch.setattr(shaped, "MINIMUM", 1)
    monkeypatch.setattr(merge_chunks, "RANGE", 50)
    before, found = ow.get_num_threads(), []
    native = pool.ordered

    def watched(*given: Any) -> bool:
        found.append(given[4])
        return native(*given)

    monkeypatch.setattr(merge_ordered.pool, "ordered", watched)
    ow.set_num_threads(3)
    yield found
    ow.set_num_threads(before)


def some(shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.random(shape) < 0.2) * rng.integers(1, 9, shape).astype(float)


@pytest.mark.parametrize("spec", MATRICES)
def test_matrices(spec: str, jobs: list[int]) -> None:
    x, y = some((60, 50), 0), some((60, 50), 1)
    a, b = (ow.asarray(z).asformat(spec) for z in (x, y))
    for got, want in ((a + b, x + y), (a * b, x * y)):
        assert np.array_equal(got.to_numpy(), want)
        ow.assemble(got.format, got.shape, pos=positions(got), crd=coordinates(got), values=got.values)
    assert all(n > 2 for n in jobs)
    assert bool(jobs) == ("bitmap" not in spec)


@pytest.mark.parametrize("spec", TENSORS)
def test_tensors_and_broadcasting(spec: str, jobs: list[int]) -> None:
    x, y = some((30, 20, 10), 2), some((30, 20, 10), 3)
    f = ow.format(spec, ndim=3)
    a, b, row = (ow.asarray(z).asformat(f) for z in (x, y, y[:1]))
    for got, want in ((a - b, x - y), (a * row, x * y[:1]), (a + row, x + y[:1])):
        assert np.array_equal(got.to_numpy(), want)
    assert jobs


def test_one_heavy_row_and_many_empty_ones(jobs: list[int]) -> None:
    x, y = np.zeros((2, 500, 300))
    x[123], y[123] = 1.0, 2.0
    y[400, ::2] = 5.0
    a, b = (ow.asarray(z).asformat("csr") for z in (x, y))
    assert np.array_equal((a + b).to_numpy(), x + y)
    assert np.array_equal((a * b).to_numpy(), x * y)


def test_a_busy_pool_leaves_it_to_one_thread(jobs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_ordered.pool, "ordered", lambda *_: False)
    x, y = some((60, 50), 4), some((60, 50), 5)
    a, b = (ow.asarray(z).asformat("dcsr") for z in (x, y))
    assert np.array_equal((a + b).to_numpy(), x + y)


def positions(t: ow.Tensor) -> dict[int, Any]:
    return {k: t.pos(k) for k in range(t.format.nlevels) if t.pos(k) is not None}


def coordinates(t: ow.Tensor) -> dict[int, Any]:
    return {k: t.crd(k) for k in range(t.format.nlevels) if t.crd(k) is not None}
