"""Choices and estimates around files and blocks of Dask: rows of a block, formats, forests, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sps
from scipy.sparse import csgraph

import openwork as ow

pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from openwork.dask import block, cg, files, from_file, to_file  # noqa: E402

X = np.where(np.arange(30).reshape(5, 6) % 4 == 1, np.arange(30.0).reshape(5, 6), 0)


@pytest.mark.ci
def test_blocks_of_rows_are_of_about_64_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of whole blocks of the format."""
    path = tmp_path / "a.ow"
    ow.write(path, ow.asarray(X, format="csr"))
    for nbytes, unit, rows in (
        (1 << 30, 1, 62),
        (1 << 30, 4, 60),
        (1 << 40, 1, 1),
        (1 << 40, 8, 8),
        (1 << 20, 1, 1000),
        (0, 1, 1000),
    ):
        monkeypatch.setattr(
            files, "_facts", lambda *a, n=nbytes, u=unit: ((1000, 6), ow.format("csr", ndim=2), np.dtype("f8"), n, u)
        )
        assert from_file(path).chunks[0][0] == rows, (nbytes, unit)


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("format", "want"), [(None, "coo"), ("csr", "csr"), ("csc", "csc"), ("bsr(2, 3)", "bsr(2, 3)")]
)
def test_a_file_is_written_in_the_format_that_was_asked_for(format: Any, want: str, tmp_path: Path) -> None:
    x = da.from_array(ow.asarray(X, format="csr"), chunks=(2, 6))
    to_file(x, tmp_path / "a.ow", format=format)
    back = ow.read(tmp_path / "a.ow")
    assert back.format == ow.format(want, ndim=2)
    np.testing.assert_array_equal(back.to_numpy(), X)


@pytest.mark.parametrize(
    ("rows", "columns"), [((0, 4), (0, 9)), ((0, 4), (3, 8)), ((5, 9), (0, 4)), ((2, 6), (6, 9)), ((4, 9), (4, 9))]
)
def test_the_forest_of_a_block_has_the_components_of_its_edges(rows: tuple[int, int], columns: tuple[int, int]) -> None:
    """Edges lead from the block's rows to its columns, both counted in the whole matrix."""
    x = np.random.default_rng(rows[0] + columns[0]).random((rows[1] - rows[0], columns[1] - columns[0])) < 0.3
    whole = np.zeros((9, 9))
    whole[slice(*rows), slice(*columns)] = x
    nodes, first = block._forest_of_rows(ow.asarray(x * 1.0, format="csr"), slice(*rows), slice(*columns))
    forest = np.zeros((9, 9))
    forest[nodes, first] = 1
    for got, want in zip(
        *(csgraph.connected_components(sps.csr_array(m), directed=False) for m in (forest, whole)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.ci
def test_iterations_of_cg_are_ten_for_each_row_where_nothing_is_said() -> None:
    turned = da.from_array(ow.asarray(np.array([[1.0, 2.0], [-2.0, 1.0]]), format="csr"), chunks=2)  # not symmetric
    with pytest.warns(ow.ConvergenceWarning, match="cg: no convergence after 20 iterations"):
        assert ow.dask.cg(turned, np.ones(2))[1] == 20


def test_iterations_of_cg_are_a_number() -> None:
    a = da.from_array(ow.asarray(np.diag([1.0, 2, 4, 8, 16]), format="csr"), chunks=3)
    x, info = cg(a, np.ones(5))
    assert info == 0
    np.testing.assert_allclose(x.compute(), 1 / 2.0 ** np.arange(5), rtol=1e-4)
    with pytest.warns(ow.errors.ConvergenceWarning):
        assert cg(a, np.ones(5), maxiter=2)[1] == 2
    for maxiter in (True, 1.5, "3"):
        with pytest.raises((TypeError, ValueError), match="maxiter"):
            cg(a, np.ones(5), maxiter=maxiter)
