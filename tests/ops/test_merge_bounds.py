"""Kernels of sums over merges, run by the bounds-checked interpreter: padding of ragged blocks is written nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.ir.interpret import run as interpret
from openwork.runtime import launch
from openwork.runtime.coiterate import reduction as merge_sum

FORMATS = (
    "(i, j) -> (i // 16 : dense, j // 16 : compressed, i % 16 : dense, j % 16 : dense)",
    "(i, j) -> (i // 3 : compressed, j : compressed, i % 3 : dense)",
    "(i, j) -> (i : dense, j - i : compressed)",
    "(i, j) -> (j - i : compressed, i : range)",
)


@pytest.mark.thin(6)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("spec", FORMATS)
def test_sums_of_products_of_ragged_blocks_stay_inside(
    monkeypatch: pytest.MonkeyPatch, spec: str, axis: int | None
) -> None:
    """A row past the last one was added to what lies behind the result."""
    memory: dict[int, Any] = {}
    real, ran = merge_sum.address, []

    def address(x: Any) -> int:
        where = real(x)
        memory[where] = x
        return where

    def parallel(executable: Any, words: Any, bounds: Any, work: int = 0) -> None:
        args = {p.name: memory.get(w, w) for p, w in zip(executable.params, words, strict=True)}
        assert interpret(executable.kernel, args, bounds[0], bounds[-1]) == 0
        ran.append(executable.name)

    monkeypatch.setattr(merge_sum, "address", address)
    monkeypatch.setattr(launch, "address", address)
    monkeypatch.setattr(merge_sum.pool, "parallel", parallel)
    a = np.arange(1.0, 97).reshape(8, 12) % 5
    A, B = ow.asarray(a).asformat(spec), ow.asarray(a + 1, format="csr").asformat(spec)
    got = ow.compute(ow.sum(ow.lazy(A) * ow.lazy(B), axis=axis))
    np.testing.assert_array_equal(np.asarray(got.to_numpy()), (a * (a + 1)).sum(axis=axis))
    assert ran == ["merge_sum"]
