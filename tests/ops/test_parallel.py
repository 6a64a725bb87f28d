"""Ranges of the outermost loop run side by side: the same results for any number of threads, in every format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from matrix import dense_array, same, tensor

import openwork as ow
from openwork.runtime import program as drive


@pytest.fixture(autouse=True)
def _everything_is_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(drive, "PARALLEL_WORK", 1)
    before = ow.get_num_threads()
    yield
    ow.set_num_threads(before)


@pytest.mark.thin(2)
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("spec", ["csr", "coo", "dcsr", "csc", "bsr(4, 4)", "dia", "ell(80)", "bitmap"])
def test_threads_do_not_change_the_result(spec: str, threads: int) -> None:
    array = dense_array((200, 80), density=0.1)
    array[17] = 1  # one row holds most of the work
    array[40:90] = 0
    ow.set_num_threads(threads)
    t = tensor(array, spec)
    x, wide = dense_array((80,), 1, density=1), dense_array((80, 20), 2, density=1)
    u, v = dense_array((200, 4), 3, density=1), dense_array((4, 80), 4, density=1)
    same(t @ x, array @ x)
    same(t @ wide, array @ wide)
    same(t.sum(axis=1), array.sum(axis=1))
    np.testing.assert_array_equal(ow.sddmm(t, u, v).to_numpy()[array != 0], (u @ v)[array != 0])


def test_which_kernels_are_cut() -> None:
    ow.set_num_threads(4)
    array, x = dense_array((200, 80), density=0.1), np.ones((80, 3))
    outermost = "4 range(s) of the outermost loop"
    for spec, how in (
        ("csr", outermost), ("coo", outermost), ("dcsr", outermost), ("dia", "4 range(s) of coordinates of i"),
        ("csc", "2 range(s) of the outermost loop, added up in 2 result(s)"),
    ):  # fmt: skip
        steps = ow.explain(ow.matmul, tensor(array, spec), x).steps
        assert dict(steps[-1].facts)["parallel"] == how


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("spec", ["csr", "coo", "dcsr", "csc", "ell(120)", "(i, j) -> (i : dense, j - i : compressed)"])
def test_long_fibres_are_taken_in_lanes(spec: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.runtime.operand_type.LONG_FIBRE", 0)
    array = dense_array((30, 120), dtype=dtype)
    x, z = dense_array((120,), 1, dtype, density=1), dense_array((30,), 2, dtype, density=1)
    t = tensor(array, spec)
    same(t @ x, array @ x)
    same(z @ t, z @ array)
    same(t.sum(axis=1), array.sum(axis=1))
    lanes = "vload" in ow.explain(ow.matmul, t, x).loops
    assert lanes == (dtype[0] == "f" and spec in ("csr", "coo", "dcsr"))


@pytest.mark.parametrize(("long_rows", "lanes"), [(0, False), (1, False), (16, True)])
def test_few_long_rows_pay_for_lanes(long_rows: int, lanes: bool) -> None:
    """Almost all rows have one element; whether most elements stand in long ones decides."""
    rng = np.random.default_rng(long_rows)
    lengths = np.ones(2048, np.int64)
    lengths[1000 : 1000 + long_rows] = 1900
    crd = np.concatenate([np.sort(rng.choice(2000, n, replace=False)) for n in lengths])
    pos = np.concatenate([[0], np.cumsum(lengths)])
    t = ow.sparse_csr_tensor(pos, crd, rng.random(len(crd)), (2048, 2000))
    x = rng.random(2000)
    np.testing.assert_allclose(t @ x, t.to_numpy() @ x)
    assert ("vload" in ow.explain(ow.matmul, t, x).loops) == lanes


def test_rows_are_taken_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges have about as many elements each; rows without elements are between."""
    monkeypatch.setattr("openwork.runtime.leading_slice.PARALLEL_NSE", 1)
    before = ow.get_num_threads()
    dense = dense_array((40, 9))
    rows = [3, 3, 39, 0, 17, 5, 5, 5, 38]
    ow.set_num_threads(4)
    try:
        same(ow.asarray(dense, format="csr")[rows], dense[rows])
    finally:
        ow.set_num_threads(before)
