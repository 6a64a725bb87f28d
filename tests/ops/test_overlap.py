"""Ranges whose results overlap, and rows that are cut: NumPy's results, the same ones for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from matrix import dense_array, same, tensor

import openwork as ow
from openwork.runtime import private_accumulators as overlap
from openwork.runtime import program as drive
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import shaped
from openwork.storage.exact import check_indices

HYBRID = "(i, j, k) -> (i : dense, j : compressed, k : dense)"


@pytest.fixture(autouse=True)
def _everything_is_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(drive, "PARALLEL_WORK", 1)
    monkeypatch.setattr(drive, "parts_for", lambda work, size, threads: min(threads, 3))
    before = ow.get_num_threads()
    yield
    ow.set_num_threads(before)


def results(threads: int, operation: Callable[[], Any]) -> np.ndarray[Any, Any]:
    ow.set_num_threads(threads)
    found = operation()
    return np.asarray(found.to_numpy() if isinstance(found, ow.Tensor) else found)


@pytest.mark.thin(2)
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("spec", ["csc", "coo", "dia", "bsr(2, 3)", "bitmap", "dcsc", "ell(40)"])
def test_formats(spec: str, threads: int) -> None:
    array = dense_array((60, 40), 1, density=0.3)
    x, z, wide = (dense_array(n, 2, density=1) for n in ((40,), (60,), (40, 9)))
    t = tensor(array, spec)
    for got, want in (
        (lambda: t @ x, array @ x), (lambda: z @ t, z @ array), (lambda: t @ wide, array @ wide),
        (lambda: ow.sum(t, axis=0), array.sum(0)), (lambda: ow.max(t, axis=0), array.max(0)),
        (lambda: ow.min(t, axis=1), array.min(1)), (lambda: ow.einsum("ij,i,j->", t, z, x), z @ array @ x),
    ):  # fmt: skip
        same(results(threads, got), want)
        same(results(threads, got), want)  # by the launch that was kept


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_dtypes(dtype: str) -> None:
    array, x = dense_array((30, 20), 1, dtype, density=0.4), dense_array((20,), 2, dtype, density=1)
    t = tensor(array, "csc")
    one, many = (results(threads, lambda: t @ x) for threads in (1, 7))
    assert one.dtype == many.dtype
    np.testing.assert_allclose(many, one, rtol=1e-3 if dtype == "float16" else 1e-6)
    low = lambda: ow.min(t, axis=1)  # noqa: E731
    if dtype != "complex64":
        np.testing.assert_array_equal(results(3, low), results(1, low))
    same(results(3, lambda: ow.any(t, axis=1)), array.any(1))


def test_other_ranks_and_libraries() -> None:
    array = dense_array((7, 9, 6), 1, density=0.4)
    b, c, d = (dense_array((n, 5), k, density=1) for k, n in enumerate(array.shape))
    for spec in ("csf", "coo", HYBRID):
        t = tensor(array, spec)
        same(results(3, lambda t=t: ow.mttkrp(t, [b, None, d], 1)), np.einsum("ijk,ir,kr->jr", array, b, d))
        same(results(3, lambda t=t: ow.mttkrp(t, [b, c, None], 2)), np.einsum("ijk,ir,jr->kr", array, b, c))
    batched = ow.asarray(np.stack([dense_array((8, 5), 2)] * 3)).asformat(ow.format("csr", 3, batch=1))
    x = dense_array((5,), 3, density=1)
    same(results(2, lambda: batched @ x), batched.to_numpy() @ x)
    same(results(2, lambda: ow.sum(batched, axis=(0, 1))), batched.to_numpy().sum((0, 1)))
    torch = pytest.importorskip("torch")
    a, y = torch.tensor(dense_array((20, 15), 1)), torch.ones(15, dtype=torch.float64)
    same(results(2, lambda: (ow.asarray(a).asformat("csc") @ y).numpy()), (a @ y).numpy())


def test_sums_are_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the result is small beside the work, and where ranges of it can be had."""
    monkeypatch.setattr(drive, "parts_for", overlap.parts_for)
    monkeypatch.setattr(overlap, "FIXED_WORK", 1)
    rng = np.random.default_rng(1)
    array = np.where(rng.random((3000, 2)) < 0.9, rng.standard_normal((3000, 2)), 0)
    few = tensor(array, "csr")
    assert overlap.parts_for(few.nse, 2, 1) == 1
    monkeypatch.setattr(overlap, "COST", 1)
    assert overlap.parts_for(few.nse, 2, 1) == overlap.PARTS
    band = tensor(np.triu(np.tril(rng.standard_normal((50, 50)), 4), -3), "dia")
    z, x = rng.standard_normal(3000), rng.standard_normal(50)
    for operation in (lambda: ow.sum(few, axis=0), lambda: z @ few, lambda: band @ x, lambda: x @ band):
        first = results(1, operation)
        for threads in (2, 3, 7):
            np.testing.assert_array_equal(results(threads, operation), first)


def test_few_parts_for_large_results() -> None:
    assert overlap.parts_for(10**7, 10**6, 8) == 2
    assert overlap.parts_for(10**6, 10**6, 8) == 1
    assert overlap.parts_for(10**6, 0, 8) == 8
    assert overlap.parts_for(10**8, 10**3, 1) == overlap.PARTS


# -- long rows ---------------------------------------------------------------------------------------------------------


def uneven(shape: tuple[int, ...], rows: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = dense_array(shape, 1, density=0.05)
    for row in rows:
        array[row] = dense_array(shape[1:], 5, density=0.9)
    return array


@pytest.mark.thin(2)
@pytest.mark.parametrize("rows", [(0,), (4, 9), (9,)])
@pytest.mark.parametrize("spec", ["csr", "dcsr", "coo"])
def test_long_rows_are_cut(spec: str, rows: tuple[int, ...]) -> None:
    array = uneven((10, 300), rows)
    t, x, wide = tensor(array, spec), dense_array((300,), 2, density=1), dense_array((300, 17), 3, density=1)
    u, z = dense_array((10, 4), 3, density=1), dense_array((10,), 6, density=1)
    for operation, want in (
        (lambda: t @ x, array @ x), (lambda: t @ wide, array @ wide), (lambda: ow.sum(t, axis=1), array.sum(1)),
        (lambda: ow.sum(t, axis=0), array.sum(0)), (lambda: ow.max(t, axis=1), array.max(1)), (lambda: z @ t, z @ array),
        (lambda: ow.einsum("ij,ik,j->ik", t, u, x), (array @ x)[:, None] * u),
        (lambda: ow.einsum("ij,i,j->i", t, z, x), (array @ x) * z),
    ):  # fmt: skip
        for threads in (1, 2, 7):
            same(results(threads, operation), want)
    other = t.with_values(2 * t.values)  # of the structure whose launches were kept
    for operation, want in (
        (lambda: other @ x, array @ x),
        (lambda: other @ wide, array @ wide),
        (lambda: ow.sum(other, axis=1), array.sum(1)),
    ):
        for threads in (7, 2):
            same(results(threads, operation), 2 * want)
    v = dense_array((4, 300), 7, density=1)
    same(results(2, lambda: ow.sddmm(t, u, v)), np.where(array != 0, u @ v, 0))
    launches = dict(ow.explain(ow.matmul, t, x).steps[-1].facts)["parallel"]
    pieces = 0 if spec == "coo" else overlap.PIECES * len(rows)
    assert int(launches.split()[0]) > pieces


def test_long_rows_of_other_ranks() -> None:
    array = uneven((6, 20, 8), (2,))
    b, c, d = (dense_array((n, 5), k, density=1) for k, n in enumerate(array.shape))
    for spec in ("csf", HYBRID):
        t = tensor(array, spec)
        same(results(2, lambda t=t: ow.mttkrp(t, [None, c, d], 0)), np.einsum("ijk,jr,kr->ir", array, c, d))
        same(results(2, lambda t=t: ow.mttkrp(t, [b, None, d], 1)), np.einsum("ijk,ir,kr->jr", array, b, d))
        same(results(2, lambda t=t: ow.sum(t, axis=(1, 2))), array.sum((1, 2)))


def test_a_single_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sums are the same for any number of threads."""
    monkeypatch.setattr(overlap, "LONG_ROW", 1 << 10)
    monkeypatch.setattr(drive, "parts_for", lambda work, size, threads: overlap.PARTS)
    rng = np.random.default_rng(2)
    array, x = rng.standard_normal((1, 5000)), rng.standard_normal(5000)
    for spec in ("csr", "dcsr", "coo"):
        t = tensor(array, spec)
        for operation in (lambda t=t: t @ x, lambda t=t: ow.sum(t, axis=1)):
            first = results(1, operation)
            for threads in (2, 7):
                np.testing.assert_array_equal(results(threads, operation), first)
        np.testing.assert_allclose(results(2, lambda t=t: t @ x), array @ x)


@pytest.mark.parametrize(
    "spec", ["csr", "(i, j) -> (i : dense, j : bitmap)", "(i, j) -> (i : dense, j // 4 : compressed, j % 4 : dense)"]
)
def test_a_single_row_is_merged_in_ranges(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_chunks, "MINIMUM", 0)
    monkeypatch.setattr(shaped, "MINIMUM", 0)
    arrays = [dense_array((1, 400), k, density=0.5) for k in (1, 2)]
    a, b = (tensor(x, spec) for x in arrays)
    for text in ("A + B", "A * B", "max(A, 2 - B)"):
        want = eval(text, {"max": np.maximum}, dict(zip("AB", arrays, strict=True)))
        for threads in (1, 2, 7):
            ow.set_num_threads(threads)
            got = ow.pointwise(text, {"A": a, "B": b})
            check_indices(got._storage)
            same(got, want)
            assert got.format == a.format
    ranges = dict(ow.explain(ow.add, a, b).steps[-1].facts)["parallel"]
    assert int(ranges.split()[0]) > 1
    same(a.T + b.T, (arrays[0] + arrays[1]).T)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_more_ranges_than_parts(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work is cut for interrupts too: the parts take the ranges in turns."""
    monkeypatch.setattr(drive, "LONG_WORK", 8)
    monkeypatch.setattr(drive, "PARALLEL_WORK", 1)
    before = ow.get_num_threads()
    ow.set_num_threads(threads)
    try:
        A = ow.random((400, 300), 0.05, format="csr", rng=np.random.default_rng(1))
        X = np.random.default_rng(2).random((400, 3))
        assert np.allclose(A.T @ X, A.to_numpy().T @ X)
        assert np.allclose(ow.sum(A, axis=0).to_numpy(), A.to_numpy().sum(0))
    finally:
        ow.set_num_threads(before)


def test_accumulators_take_the_bytes_that_they_need() -> None:
    for size, scalar, width in ((1, "f64", 8), (1000, "f64", 8), (1001, "f32", 4)):
        parts = overlap.PrivateAccumulators((0, 1, 2, 3), 3, "add", scalar, size, 0)
        assert 2 * size * width <= parts.nbytes < 2 * (size * width + overlap.LINES)
