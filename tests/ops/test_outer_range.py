"""The range that the outermost loop is given: coordinates or positions, whichever it counts."""

from __future__ import annotations

import numpy as np
import pytest

import openwork as ow
from openwork.runtime import program as drive
from openwork.runtime.launch import outer_range, work_bounds

ROWS, COLS, NSE = 10, 12, 50
FORMATS = {
    "csr": (0, ROWS),
    "csc": (0, COLS),
    "bsr(2, 2)": (0, ROWS // 2),
    "dcsr": (0, ROWS),
    "coo": (0, NSE),
    "dia": (0, 3),
    "bitmap": (0, ROWS),
    "(i, j) -> (i : loose_compressed, j : compressed)": (0, ROWS),
    "(i, j) -> (i : ell(10), j : compressed)": (0, ROWS),
}


def matrix(format: str) -> ow.Tensor:
    """NSE elements, none of the rows or columns empty; for `dia`, three diagonals."""
    if format == "dia":
        dense = np.eye(ROWS, COLS) + np.eye(ROWS, COLS, 1) + np.eye(ROWS, COLS, -1)
    else:
        dense = np.zeros(ROWS * COLS)
        dense[np.random.default_rng(3).permutation(dense.size)[:NSE]] = 1
        dense = dense.reshape(ROWS, COLS)
        assert dense.any(0).all()
        assert dense.any(1).all()
    return ow.asarray(dense, format="csr").asformat(ow.format(format, ndim=2))


@pytest.mark.parametrize("format", FORMATS)
def test_outer_range(format: str) -> None:
    storage = matrix(format)._storage
    assert outer_range(storage) == FORMATS[format]
    for parts in (1, 2, 3, 7):
        bounds = work_bounds(storage, parts)
        assert len(bounds) == parts + 1
        assert (bounds[0], bounds[-1]) == FORMATS[format]
        assert list(bounds) == sorted(bounds)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("format", FORMATS)
def test_every_element_is_computed(format: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "PARALLEL_WORK", 0)
    mask = matrix(format)
    a, b = np.random.default_rng(0).random((2, 4, 4))
    a, b = np.tile(a, (3, 1))[:ROWS], np.tile(b, (1, 3))[:, :COLS]
    before = ow.get_num_threads()
    ow.set_num_threads(threads)
    try:
        got = ow.sddmm(mask, a, b).to_numpy()
    finally:
        ow.set_num_threads(before)
    inside = mask.to_numpy() != 0
    assert np.allclose(got[inside], (a @ b)[inside], rtol=1e-12)
