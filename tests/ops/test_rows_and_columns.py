"""Columns taken from compressed rows, and rows that are set: against NumPy, in every format and both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.ops.indexing import take_inner
from openwork.runtime.conversion import remap

SPECS = ("csr", "csc", "coo", "dcsr", "bsr(2, 2)", "dia", "bitmap", "dense")
RANK3 = (
    "(i, j, k) -> (i : dense, j : dense, k : compressed)", "(i, j, k) -> (k : dense, i : dense, j : compressed)",
    "(i, j, k) -> (i : dense, j : compressed, k : dense)", "csf", "coo",
)  # fmt: skip


def made(a: np.ndarray[Any, Any], spec: str, library: str = "numpy") -> ow.Tensor:
    if library == "torch":
        torch = pytest.importorskip("torch")
        return ow.asarray(torch.from_numpy(a.copy())).asformat(spec)
    return ow.asarray(a, format="coo").asformat(spec)


def arrays(n: int) -> list[np.ndarray[Any, Any]]:
    """Permuted, ascending, repeated, few, no and negative coordinates."""
    rng = np.random.default_rng(n)
    some = rng.permutation(n)
    return [some, np.sort(some[: n // 2]), rng.integers(0, n, 2 * n), some[:1], some[:0], np.array([-1, 0, -n, -1])]


@pytest.mark.thin(18)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spec", SPECS)
def test_columns_and_rows_taken(spec: str, library: str) -> None:
    rng = np.random.default_rng(0)
    for shape, share in (((12, 40), 0.3), ((3, 300), 0.6), ((50, 6), 0.05)):
        a = rng.integers(-4, 5, shape) * (rng.random(shape) < share) * 1.0
        t = made(a, spec, library)
        for places in arrays(shape[1]):
            taken = t[:, places]
            np.testing.assert_array_equal(taken.to_numpy(), a[:, places])
            taken.check()
        for places in arrays(shape[0]):
            np.testing.assert_array_equal(t[places].to_numpy(), a[places])
            both = t[places][:, arrays(shape[1])[0]]
            np.testing.assert_array_equal(both.to_numpy(), a[places][:, arrays(shape[1])[0]])
        np.testing.assert_array_equal(ow.take(t, [1, 0, 1], axis=1).to_numpy(), a[:, [1, 0, 1]])


@pytest.mark.thin(2)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spec", ["csr", "csc", "(i, j) -> (i : dense, j // 2 : compressed, j % 2 : dense)"])
def test_many_rows_taken(spec: str, library: str) -> None:
    """Of a tensor that is not small, at coordinates that may not be written to."""
    rng = np.random.default_rng(2)
    a = rng.integers(-4, 5, (1500, 60)) * (rng.random((1500, 60)) < 0.2) * 1.0
    t = made(a, spec, library)
    for places in arrays(1500):
        before = places.copy()
        places.flags.writeable = False
        taken = t[places] if spec != "csc" else t.T[:, places].T
        np.testing.assert_array_equal(taken.to_numpy(), a[places])
        taken.check()
        np.testing.assert_array_equal(places, before)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", RANK3)
def test_coordinates_taken_of_rank_3(spec: str) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (4, 6, 9)) * (rng.random((4, 6, 9)) < 0.3)
    t = made(a, spec)
    for d in range(3):
        for places in arrays(a.shape[d]):
            key = (*(slice(None),) * d, places)
            taken = t[key]
            np.testing.assert_array_equal(taken.to_numpy(), a[key])
            taken.check()


@pytest.mark.parametrize("spec", ["csr", "csc"])
def test_columns_of_compressed_rows_are_not_sorted_as_a_whole(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a remap of all elements nor a conversion is needed, and rows stay canonical where columns are permuted."""
    t = ow.random((30, 40), 0.3, format=spec, rng=0)
    key = (slice(None), np.arange(40)[::-1]) if spec == "csr" else (np.arange(30)[::-1],)
    want = t.to_numpy()[key]
    refuse = lambda *_: pytest.fail("a remap")  # noqa: E731
    monkeypatch.setattr(remap, "remap", refuse)
    monkeypatch.setattr("openwork.ops.indexing.index.remap", refuse)
    taken = t[key]
    np.testing.assert_array_equal(taken.to_numpy(), want)
    assert taken.format == t.format
    assert take_inner.__name__.endswith("take_inner")


@pytest.mark.thin(36)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spec", SPECS)
def test_rows_and_columns_set(spec: str, library: str) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(-4, 5, (9, 12)) * (rng.random((9, 12)) < 0.4) * 1.0
    for places in ([4, 0, 7], [3], slice(2, 8, 2), slice(1, 4), np.array([1, 5, 1]), []):
        for axis in (0, 1):
            key = (places,) if axis == 0 else (slice(None), places)
            shape = a[key].shape
            several = rng.integers(-4, 5, shape) * (rng.random(shape) < 0.5) * 1.0
            one = several[:1] if axis == 0 else several[:, :1]
            for values in (several, 0, 2.5, one if one.size else 0):
                want = a.copy()
                want[key] = values
                plain = made(values, "coo", library) if isinstance(values, np.ndarray) else values
                for v in (plain, values):
                    t = made(a, spec, library)
                    t[key] = v
                    np.testing.assert_array_equal(t.to_numpy(), want)
                    t.check()


@pytest.mark.parametrize("fill", [0.0, 1.5, np.nan])
def test_rows_set_beside_a_fill_value(fill: float) -> None:
    a = np.where(np.random.default_rng(3).random((6, 7)) < 0.6, fill, 2.0)
    t = ow.asarray(a, format="coo", fill_value=fill).asformat("csr")
    row = np.array([fill, 1, fill, 2, 3, fill, fill])
    for value in (fill, row, row[None]):
        b, u = a.copy(), t.clone()
        b[[1, 4]], u[[1, 4]] = value, value
        np.testing.assert_array_equal(u.to_numpy(), b)
        assert u.nse == np.count_nonzero((b != fill) & ~(np.isnan(b) & np.isnan(fill)))


def test_gradients_of_rows_set_and_columns_taken() -> None:
    torch = pytest.importorskip("torch")
    dense = torch.tensor([[0, 1.0, 2], [3, 0, 4], [5, 6, 0]], dtype=torch.float64)
    t = ow.asarray(dense).asformat("csr").requires_grad_()
    v = torch.tensor([[7.0, 0, 8]], dtype=torch.float64, requires_grad=True)
    taken = t[:, [2, 0, 2]]
    weights = torch.arange(1.0, 10, dtype=torch.float64).reshape(3, 3)
    (of_values,) = torch.autograd.grad((taken.to_dense() * weights).sum(), t.values)
    leaf = dense.clone().requires_grad_()
    (wanted,) = torch.autograd.grad((leaf[:, [2, 0, 2]] * weights).sum(), leaf)
    assert t.detach().with_values(of_values).to_dense().equal(torch.where(dense != 0, wanted, 0.0))
    u = t.at[[1]].set(v)
    of_values, of_v = torch.autograd.grad((u.to_dense() * weights).sum(), (t.values, v))
    assert of_v[0, 0] == 4
    assert t.detach().with_values(of_values).to_dense()[1].eq(0).all()


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr(2, 2)", "dia", "dcsr", "bitmap"])
def test_arrays_of_one_element(format: str) -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((6, 7)) < 0.4, rng.integers(1, 9, (6, 7)), 0).astype(float)
    A = ow.asarray(x, format=format)
    first, whole = [True] + [False] * 5, slice(None)
    keys: list[Any] = [([3],), (whole, [3]), ([[3]],), (whole, [[2]]), ([3], slice(1, 4)), ([-1],), ([3], [2])]
    for key in (*keys, (slice(None, None, 2), [1]), (None, [3]), ([3], None), (whole, [3], None), (first,)):
        np.testing.assert_array_equal(A[key].to_numpy(), x[key], err_msg=str(key))


def test_a_list_of_one_row_walks_that_row_alone() -> None:
    A = ow.random((3000, 3000), 0.01, format="csr", rng=0)
    plan = str(ow.explain(lambda A: A[[7]], A))
    assert "ranges of the outermost dimension" in plan, plan
