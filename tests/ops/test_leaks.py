"""A thousand operations leave memory where it was."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow

SIDE = 256
KIB = 1 << 10


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tensors() -> list[ow.Tensor]:
    rng = np.random.default_rng(0)
    return [ow.random((SIDE, SIDE), 0.05, format=f, rng=rng) for f in ("csr", "csc", "coo", "dcsr")]


def operations() -> list[Callable[[Any, Any], Any]]:
    x, y = np.ones((SIDE, 4)), np.ones(SIDE)
    return [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a @ b,
        lambda a, b: a @ x,
        lambda a, b: ow.einsum("ij,kj,k->i", a, b, y),
        lambda a, b: ow.pointwise("A * B + A", {"A": a, "B": b}, format="coo"),
        lambda a, b: ow.sum(a, axis=0),
        lambda a, b: ow.sddmm(a, x, x.T),
        lambda a, b: a.asformat(b.format).T,
        lambda a, b: a[10:200:3, ::-1],
        lambda a, b: ow.concat([a, b.asformat(a.format)], axis=1),
        lambda a, b: ow.spgemm(a, b, semiring="min_plus", mask=a),
        lambda a, b: a.to_numpy(),
        lambda a, b: _refused(a),
    ]


def _refused(a: Any) -> None:
    with pytest.raises(ow.ShapeError):
        a @ np.ones(SIDE + 1)


def run(count: int, given: list[ow.Tensor], todo: list[Callable[[Any, Any], Any]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        op = todo[int(rng.integers(len(todo)))]
        a, b = (given[int(k)] for k in rng.integers(0, len(given), 2))
        op(a, b)


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_thousand_operations_leave_memory_where_it_was() -> None:
    given, todo = tensors(), operations()
    for op in todo:
        for a in given:
            for b in given:
                op(a, b)
    run(200, given, todo, 1)
    gc.collect()
    before = resident()
    run(1000, given, todo, 2)
    gc.collect()
    grown = resident() - before
    tracemalloc.start()
    try:
        run(100, given, todo, 3)
        gc.collect()
        first, _ = tracemalloc.get_traced_memory()
        run(300, given, todo, 3)
        gc.collect()
        second, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert second - first < 64 * KIB
    assert grown < 8 * 1024 * KIB


def test_the_measure_sees_a_leak() -> None:
    kept = []
    tracemalloc.start()
    try:
        first, _ = tracemalloc.get_traced_memory()
        kept += [np.ones(KIB) for _ in range(100)]
        second, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 100
    assert second - first > 64 * KIB
