"""Buffers, keys, masks and results that are views: parts of tables, columns of records, results of NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from view_cases import K, N, dense, elements, sparse
from views import LAYOUTS, REPEATED, numpy_view

import openwork as ow

Array = np.ndarray[Any, Any]
WAYS = (*LAYOUTS, *REPEATED)
rng = np.random.default_rng(0)
PLACES = rng.integers(0, N, (40, 5))
TRUE = rng.random((N, N)) < 0.3


def same(got: Any, want: Any) -> None:
    np.testing.assert_allclose(dense(got), want, rtol=1e-9, atol=1e-11)


def made(how: str) -> Iterator[tuple[ow.Tensor, Array]]:
    """Tensors over buffers that lie so, and what they hold."""
    csr, coo, blocks = (sparse(spec) for spec in ("csr", "coo", "bsr(4, 4)"))
    a, b = csr.to_numpy(), blocks.to_numpy()
    lie: Callable[[Any], Array] = lambda x: numpy_view(np.asarray(x), how)  # noqa: E731
    index = lie if how in LAYOUTS else np.asarray
    scipy = csr.to_scipy()
    pos, crd, values = scipy.indptr, scipy.indices, lie(scipy.data)
    want = np.zeros((N, N))
    want[np.nonzero(a)] = values
    yield (
        ow.sparse_csr_tensor(pos, crd, values, size=(N, N)),
        want,
    )  # strided indices are refused, as torch refuses them
    yield ow.sparse_coo_tensor(index(np.array(np.nonzero(a))), values, size=(N, N)), want
    yield ow.with_values(csr, values), want
    yield ow.with_values(coo, values), want
    bsr = blocks.to_scipy()
    block_values = lie(bsr.data)
    rows = np.repeat(np.arange(N // 4), np.diff(bsr.indptr))
    tiles = np.zeros((N // 4, N // 4, 4, 4))
    tiles[rows, bsr.indices] = block_values
    assert how in REPEATED or np.array_equal(tiles.transpose(0, 2, 1, 3).reshape(N, N), b)
    yield (
        ow.sparse_bsr_tensor(bsr.indptr, bsr.indices, block_values, size=(N, N)),
        tiles.transpose(0, 2, 1, 3).reshape(N, N),
    )
    whole = lie(elements((N, N)))
    yield ow.sparse_coo_tensor(index(np.arange(N)[None]), whole, size=(N, N)), np.array(whole)
    for spec in ("dense", "csr", "csc", "bsr(4, 4)"):
        yield ow.asarray(whole, format=spec), np.array(whole)


@pytest.mark.thin(9)
@pytest.mark.parametrize("how", WAYS)
def test_constructors(how: str) -> None:
    x = numpy_view(elements((N, K)), how)
    for t, want in made(how):
        same(t, want)
        same(t @ x, want @ x)
        same(t + sparse("csr"), want + sparse("csr").to_numpy())
        same(t.asformat("csc"), want)
        same(t[5:90, 3:7], want[5:90, 3:7])
        same(ow.sum(t, axis=0), want.sum(0))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("how", WAYS)
def test_keys(how: str) -> None:
    t = sparse("csr")
    a = t.to_numpy()
    i, j, both = (numpy_view(x, how) for x in (PLACES[:, 0], PLACES[:, 1], PLACES))
    mask, rows = numpy_view(TRUE, how), numpy_view(TRUE[0], how)
    for key in (i, both, (i, j), (slice(None), i), mask, rows, (slice(None), rows), (rows, slice(3, 9))):
        same(t[key], a[key])
    same(ow.take(t, i, axis=1), a[:, i])
    along = numpy_view(np.resize(PLACES, (N, 5)), how)
    same(ow.take_along_axis(t, along, axis=1), np.take_along_axis(a, along, 1))


@pytest.mark.parametrize("how", WAYS)
def test_what_is_set(how: str) -> None:
    t, want = ow.copy(sparse("csr")), sparse("csr").to_numpy()
    x, y, mask = (numpy_view(z, how) for z in (elements((N, K)), elements((N, N)), TRUE))
    for target in (t, want):
        target[2:10] = y[:8]
        target[:, 100 : 100 + K] = x
        target[mask] = 2.0
        target *= y
        target /= y[0]
    same(t, want)


@pytest.mark.parametrize("how", WAYS)
def test_masked(how: str) -> None:
    x, y, mask = (numpy_view(z, how) for z in (elements((N, K)), elements((N, N)), TRUE))
    m, want = ow.masked_tensor(y, mask), np.where(mask, y, 0)
    same(m.filled(0), want)
    same(m.sum(1).filled(0), want.sum(1))
    same((m @ x).filled(0), want @ x)
    same((m * y).filled(0), want * y)


@pytest.mark.parametrize("how", [name for name in LAYOUTS if name != "read-only"])
def test_results_in_views(how: str) -> None:
    t = sparse("csr")
    a, x, y = t.to_numpy(), elements((N, K)), elements((N, N))
    product, merge, total, dense_sum = (numpy_view(np.ones(s), how) for s in ((N, K), (N, N), (N,), (N, N)))
    np.matmul(t, x, out=product)
    same(product, a @ x)
    np.multiply(t, y, out=merge)
    same(merge, a * y)
    np.sum(t, axis=1, out=total)
    same(total, a.sum(1))
    dense_sum += t
    same(dense_sum, a + 1)
