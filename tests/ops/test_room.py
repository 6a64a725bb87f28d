"""Extents and counts beyond memory are typed errors; what holds the interpreter's lock does so for short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import interruptible

SPARSE = (ow.InvariantError, ow.SizeError, ow.ShapeError)

MAKERS: dict[str, Callable[[int], Any]] = {
    "eye": lambda n: ow.eye(n),
    "eye of SciPy": lambda n: ow.eye_array(n),
    "csr eye": lambda n: ow.eye(n, format="csr"),
    "arange": lambda n: ow.arange(n),
    "arange of floats": lambda n: ow.arange(0.0, float(n)),
    "linspace": lambda n: ow.linspace(0, 1, n),
    "random": lambda n: ow.random((n, 3), density=0.1),
    "random of SciPy": lambda n: ow.random_array((n, n)),
    "zeros": lambda n: ow.zeros((n, 3), format="csr"),
    "ones": lambda n: ow.ones((n,), format="dense"),
    "full": lambda n: ow.full((n, 2), 3.0, format="dense"),
    "full of a matrix": lambda n: (
        ow.full_like(ow.asarray(np.eye(2)), 3.0, format="dense") and ow.zeros((n,), format="bitmap")
    ),
    "diags": lambda n: ow.diags_array([[1.0, 2.0]], offsets=[0], shape=(n, n), format="csr"),
}


@pytest.mark.parametrize("n", [2**45, 2**62, 2**63, 2**70])
@pytest.mark.parametrize("name", MAKERS)
def test_more_than_there_is_memory_for(name: str, n: int) -> None:
    with pytest.raises(SPARSE, match="help") as error:
        MAKERS[name](n)
    assert len(str(error.value)) < 400


def test_negative_counts_and_seeds() -> None:
    with pytest.raises(ow.ShapeError, match="linspace"):
        ow.linspace(0, 1, -1)
    with pytest.raises(ValueError, match="seed"):
        ow.random((3, 3), rng=-1)
    assert ow.arange(5, 0, -2).to_numpy().tolist() == [5, 3, 1]
    assert ow.arange(0, -1).shape == (0,)
    assert ow.arange(2**62, 2**62 + 3).to_numpy().tolist() == [2**62, 2**62 + 1, 2**62 + 2]
    assert ow.random((2**62,) * 3, density=1e-56, rng=0).nse == round(1e-56 * 2**186)


@pytest.mark.parametrize("block", [1, 3, 7, 1000])
def test_blocks_of_repeat_and_add_at(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruptible, "BLOCK", block)
    rng = np.random.default_rng(block)
    for n in (0, 1, 5, 40):
        for high in (1, 2, 9, 50):
            counts, x = rng.integers(0, high, n), rng.random(n)
            np.testing.assert_array_equal(interruptible.repeat(x, counts), np.repeat(x, counts))
            out, expected = np.zeros(7), np.zeros(7)
            places = rng.integers(0, 7, n)
            interruptible.add_at(out, places, x)
            np.add.at(expected, places, x)
            np.testing.assert_array_equal(out, expected)
