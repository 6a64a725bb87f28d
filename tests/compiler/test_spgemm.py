from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from openwork.codegen import pool
from openwork.codegen.cache import compile_kernel
from openwork.compiler.semiring import MONOIDS, SEMIRINGS, Monoid, Semiring
from openwork.compiler.simplify import simplify
from openwork.compiler.spgemm import ProductTypes, bound_kernel, count_kernel, masked_kernel, product_kernel
from openwork.errors import DTypeError, UnsupportedError
from openwork.ir.verify import verify
from openwork.runtime.contraction import spgemm
from openwork.runtime.contraction.spgemm import Rows, multiply
from openwork.runtime.semirings import monoid, register_semiring, semiring

sparse = pytest.importorskip("scipy.sparse")
TYPES = ProductTypes(("i32", "i32", "f64"), ("i32", "i64", "f32"), ("i32", "i32"), "f64")


def matrix(rows: int, columns: int, density: float, seed: int, dtype: Any = float) -> Any:
    rng = np.random.default_rng(seed)
    m = sparse.random_array((rows, columns), density=density, rng=rng, format="csr", dtype=float)
    m.data = rng.integers(1, 9, m.nnz).astype(dtype)
    m.sort_indices()
    return m


def rows(m: Any) -> Rows:
    return Rows(m.indptr, m.indices, m.data, m.shape[1])


def check(got: Rows, want: Any) -> None:
    want = sparse.csr_array(want)
    want.sort_indices()
    np.testing.assert_array_equal(got.pos, want.indptr)
    np.testing.assert_array_equal(got.crd, want.indices)
    np.testing.assert_array_equal(got.values, want.data)


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "any_pair", "lor_land", "plus_pair"])
def test_kernels_verify(name: str) -> None:
    ring = SEMIRINGS[name]
    types = replace(TYPES, result=ring.result("f64"))
    for kernel in (
        bound_kernel(types),
        count_kernel(types, False),
        count_kernel(types, True),
        product_kernel(types, ring, False),
        product_kernel(types, ring, True),
        masked_kernel(types, ring),
    ):
        verify(kernel)
        verify(simplify(kernel))


ACCUMULATORS = {"sorted": (10**9, 10**9), "hashed": (0, 10**9), "dense": (0, 1), "windows": (10**9, 10**9)}


@pytest.mark.thin(25)
@pytest.mark.parametrize("how", ACCUMULATORS)
@pytest.mark.parametrize(
    "shape", [(30, 40, 50), (3, 200, 5000), (60, 9, 1), (1, 1, 1), (5, 0, 7), (0, 4, 4), (4, 4, 0)]
)
def test_every_accumulator(monkeypatch: pytest.MonkeyPatch, how: str, shape: tuple[int, int, int]) -> None:
    sort_to, dense_from = ACCUMULATORS[how]
    usual = spgemm._accumulators

    def forced(job: Any) -> dict[str, int] | None:
        if usual(job) is None:
            return None
        most = int(job.flops.max(initial=0))
        hashed = min(most, job.b.columns) if how == "hashed" else 0
        table = 1 << max(6, (2 * hashed).bit_length()) if hashed else 1
        room = max(1, most)
        return {
            "width": job.b.columns if how in ("dense", "windows") else 0, "room": room, "table": table,
            "bits": max(1, (job.b.columns - 1).bit_length()), "digits": max(room, table).bit_length(),
            "sort_to": sort_to, "dense_from": dense_from, "window": job.b.columns if how == "windows" else 0,
        }  # fmt: skip

    monkeypatch.setattr(spgemm, "_accumulators", forced)
    for seed, density in enumerate((0.02, 0.2, 0.7)):
        a, b = matrix(*shape[:2], density, seed), matrix(*shape[1:], density, seed + 10)
        check(multiply(rows(a), rows(b), semiring("plus_times")), a @ b)
        mask = matrix(shape[0], shape[2], 0.3, seed + 20)
        ones = sparse.csr_array((np.ones(mask.nnz), mask.indices, mask.indptr), shape=mask.shape)
        both = a @ b
        inside = both.multiply(ones)
        check(multiply(rows(a), rows(b), semiring("plus_times"), mask=rows(mask)), inside)
        outside = sparse.csr_array(both - inside)
        outside.eliminate_zeros()
        check(multiply(rows(a), rows(b), semiring("plus_times"), mask=rows(mask), complement=True), outside)


@pytest.mark.parametrize("semiring_name", ["plus_times", "min_plus"])
def test_bands_have_windows(monkeypatch: pytest.MonkeyPatch, semiring_name: str) -> None:
    """Rows within and beyond a window of 100 columns, which begins anywhere, in one matrix and in one chunk."""
    monkeypatch.setattr(spgemm, "CACHE", 800)
    rng = np.random.default_rng(0)
    near = np.clip(np.repeat(np.arange(500), 6) + rng.integers(-20, 21, 3000), 0, 499)
    far = rng.integers(0, 500, 3000)
    columns = np.where(np.repeat(np.arange(500) % 7 == 3, 6), far, near)
    m = sparse.csr_array((np.ones(3000), (np.repeat(np.arange(500), 6), columns)), shape=(500, 500))
    m.sum_duplicates()
    m.data = rng.integers(1, 9, m.nnz).astype(float)
    for complement in (False, True):
        mask = matrix(500, 500, 0.3, 5) if complement else None
        got = multiply(
            rows(m), rows(m), semiring(semiring_name), mask=None if mask is None else rows(mask), complement=complement
        )
        monkeypatch.setattr(spgemm, "CACHE", 0)
        want = multiply(
            rows(m), rows(m), semiring(semiring_name), mask=None if mask is None else rows(mask), complement=complement
        )
        monkeypatch.setattr(spgemm, "CACHE", 800)
        for part in ("pos", "crd", "values"):
            np.testing.assert_array_equal(getattr(got, part), getattr(want, part))
        if semiring_name == "plus_times" and not complement:
            check(got, m @ m)


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "any_pair"])
@pytest.mark.parametrize("width", [8, 16, 24])
def test_runs_of_columns(monkeypatch: pytest.MonkeyPatch, width: int, name: str) -> None:
    """Rows of blocks, which begin anywhere, across the words of the bitmap too, are added as those of any columns are."""
    rng = np.random.default_rng(width)
    a = matrix(60, 40, 0.4, 1)
    dense = np.zeros((40, 300))
    for row in dense:
        for first in rng.integers(0, 300 - width, 4):
            row[first : first + width] = rng.integers(1, 9, width)
    dense[::3, rng.integers(0, 300, 9)] = 5
    b = sparse.csr_array(dense)
    monkeypatch.setattr(spgemm, "SHORT", 0)
    got = multiply(rows(a), rows(b), semiring(name))
    apart = sparse.csr_array((b.data, 2 * b.indices, b.indptr), shape=(40, 600))
    want = multiply(rows(a), rows(apart), semiring(name))
    np.testing.assert_array_equal(got.pos, want.pos)
    np.testing.assert_array_equal(2 * got.crd, want.crd)
    np.testing.assert_array_equal(got.values, want.values)
    if name == "plus_times":
        check(got, a @ b)


def test_counting_first_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrix(300, 200, 0.1, 1), matrix(200, 400, 0.1, 2)
    want = a @ b
    for limit in (0, 1 << 28):
        monkeypatch.setattr(spgemm, "ONE_PASS", limit)
        for short in (0, 64, 10**6):
            monkeypatch.setattr(spgemm, "SHORT", short)
            check(multiply(rows(a), rows(b), semiring("plus_times")), want)


def test_threads_and_waves_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = matrix(500, 300, 0.1, 3), matrix(300, 2000, 0.05, 4)
    a.data, b.data = rng.random(a.nnz), rng.random(b.nnz)
    monkeypatch.setattr(spgemm, "PARALLEL_WORK", 1)
    before = pool.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 7):
            pool.set_num_threads(threads)
            for wave in (1000, 1 << 28):
                monkeypatch.setattr(spgemm, "WAVE", wave)
                results.append(multiply(rows(a), rows(b), semiring("plus_times")))
    finally:
        pool.set_num_threads(before)
    for other in results[1:]:
        for part in ("pos", "crd", "values"):
            np.testing.assert_array_equal(getattr(results[0], part), getattr(other, part))


def test_columns_far_beyond_the_elements() -> None:
    a, b = matrix(2000, 40, 0.5, 1), matrix(40, 30, 0.9, 2)
    step = 1 << 55
    wide = Rows(b.indptr, b.indices.astype(np.int64) * step, b.data, 30 * step)
    got = multiply(rows(a), wide, semiring("plus_times"))
    want = a @ b
    want.sort_indices()
    np.testing.assert_array_equal(got.crd, want.indices.astype(np.int64) * step)
    np.testing.assert_array_equal(got.values, want.data)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype: str) -> None:
    a, b = (matrix(20, 20, 0.3, k, dtype) for k in (1, 2))
    got = multiply(rows(a), rows(b), semiring("plus_times"))
    assert got.values.dtype == dtype
    full = sparse.csr_array((got.values, got.crd, got.pos), shape=(20, 20)).toarray()
    np.testing.assert_array_equal(full, a.toarray() @ b.toarray())


OPERATIONS: dict[str, Any] = {
    "plus": (np.add, 0), "min": (np.minimum, np.inf), "max": (np.maximum, -np.inf), "times": (np.multiply, None),
    "first": (lambda x, y: x, None), "second": (lambda x, y: y, None),
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "name", sorted(n for n, s in SEMIRINGS.items() if s.dtype == "promote" and s.add.name != "any")
)
def test_semirings(name: str) -> None:
    a, b = matrix(12, 9, 0.4, 5), matrix(9, 11, 0.4, 6)
    add, times = name.split("_")
    got = multiply(rows(a), rows(b), semiring(name))
    x, y = a.toarray(), b.toarray()
    for i in range(12):
        cells = {}
        for k in np.flatnonzero(x[i]):
            for j in np.flatnonzero(y[k]):
                p = OPERATIONS[times][0](x[i, k], y[k, j])
                cells[j] = OPERATIONS[add][0](cells[j], p) if j in cells else p
        at = slice(got.pos[i], got.pos[i + 1])
        np.testing.assert_array_equal(got.crd[at], sorted(cells))
        np.testing.assert_array_equal(got.values[at], [cells[j] for j in sorted(cells)])


def test_a_semiring_of_the_users_own() -> None:
    a, b = matrix(12, 9, 0.4, 5), matrix(9, 11, 0.4, 6)
    ring = register_semiring(Semiring("plus_gap_for_test", monoid("plus"), "abs(x - y)"))
    got = multiply(rows(a), rows(b), semiring("plus_gap_for_test"))
    x, y = a.toarray()[:, :, None], b.toarray()[None]
    want = np.where((x != 0) & (y != 0), abs(x - y), 0).sum(1)
    np.testing.assert_array_equal(sparse.csr_array((got.values, got.crd, got.pos), shape=(12, 11)).toarray(), want)
    assert register_semiring(ring) is ring
    with pytest.raises(ValueError, match="exists already"):
        register_semiring(Semiring("plus_gap_for_test", monoid("min"), "x"))


def test_identities_and_errors() -> None:
    assert MONOIDS["min"].identity_of("i8") == 127
    assert MONOIDS["max"].identity_of("u8") == 0
    assert MONOIDS["max"].identity_of("f32") == -np.inf
    assert MONOIDS["plus"].identity_of("c64") == 0
    assert MONOIDS["land"].identity_of("bool") is True
    with pytest.raises(DTypeError, match="over complex numbers"):
        MONOIDS["min"].identity_of("c128")
    with pytest.raises(UnsupportedError, match="'plus_nothing' is not known"):
        semiring("plus_nothing")
    with pytest.raises(UnsupportedError, match="monoid 'plum' is not known"):
        monoid("plum")
    with pytest.raises(UnsupportedError, match="multiply='x \\+' does not compile"):
        Semiring("broken", MONOIDS["plus"], "x +")
    assert Monoid("gcd", "x + y", "0") != MONOIDS["plus"]


def test_a_wrong_identity_is_noticed() -> None:
    """The checks above can fail: with a sum that begins at 1 the dense accumulator gives other values."""
    a = matrix(40, 40, 0.5, 1)
    wrong = Semiring("wrong", Monoid("plus", "x + y", "1"), "x * y")
    with pytest.raises(AssertionError):
        check(multiply(rows(a), rows(a), wrong), a @ a)


def test_kernels_compile_once() -> None:
    kernel = simplify(bound_kernel(TYPES))
    assert compile_kernel(kernel) is compile_kernel(kernel)
