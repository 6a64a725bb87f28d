"""Selections of iso tensors whose blocks store elements beside those that are one value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

FORMATS = [
    "bsr(2, 3)", "bsc(2, 2)", "(i, j) -> (i : compressed, j : dense)", "ell(2)", "dia", "csr",
    "(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)",
]  # fmt: skip
SELECTIONS = {
    "offset": lambda A: A[1:],
    "inside": lambda A: A[1:4, 1:3],
    "backwards": lambda A: A[::-1, ::-1],
    "points": lambda A: A[([[-4, 0, 3], [0, -4, 3]], -1)],
    "rows": lambda A: A[[0, 4, 2]],
    "mask": lambda A: A[np.array([1, 0, 1, 0, 1], bool)],
    "column": lambda A: A[:, 2],
    "take": lambda A: ow.take(A, np.array([4, 0]), axis=0),
    "along an axis": lambda A: ow.take_along_axis(A, np.array([[4, 0, 1]]), axis=0),
    "flip": lambda A: ow.flip(A, axis=0),
    "roll": lambda A: ow.roll(A, 1, axis=0),
    "concat": lambda A: ow.concat([A[1:], A]),
    "lazy": lambda A: ow.compute(ow.lazy(A)[1:] * 1),
}


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.to_dense())


@pytest.mark.thin(66)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("fill", [0.0, 7.0])
@pytest.mark.parametrize("format", FORMATS)
def test_selections_of_iso_blocks_are_those_of_as_many_values(format: str, fill: float, library: str) -> None:
    give = {"numpy": np.asarray, "torch": torch.from_numpy}[library]
    dense = np.full((5, 3), fill)
    dense[[0, 1, 3], [0, 2, 1]] = 2
    one = ow.iso(ow.asarray(give(dense), format=format, fill_value=fill), 2)
    several = one.with_values(2 * give(np.ones(len(one._storage.values))))
    assert one.is_iso
    assert not several.is_iso
    for name, select in SELECTIONS.items():
        for _ in range(2):
            np.testing.assert_array_equal(_array(select(one)), _array(select(several)), err_msg=name)


def test_selections_whose_values_are_one_stay_iso() -> None:
    A = ow.iso(ow.asarray(np.eye(6), format="csr"), 2)
    for part in (A[1:], A[:, 2:4], A[[0, 3]], A.T[1:4], ow.iso(A.asformat("bsr(2, 2)"), 2)[2:]):
        assert part.is_iso
