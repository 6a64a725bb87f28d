"""Elements that are left out equal the fill value, and no element that does is stored; zeros that are not stored meet infinity as stored ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
import torch

import openwork as ow

FORMATS = (
    "coo", "csr", "csc", "dcsr", "bsr(2,2)", "dia", "ell(4)", "bitmap", "dense",
    "(i, j) -> (i : bitmap, j : compressed)", "(i, j) -> (j : compressed(nonunique, unordered), i : singleton)",
)  # fmt: skip
X = np.array([[0.0, -0.0, 1.0, 0.0], [-0.0, 2.0, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -0.0]])


def with_signs(dtype: str) -> np.ndarray[Any, Any]:
    x = X.astype(dtype)
    if dtype == "complex128":
        x.imag[0] = [-0.0, 0.0, 1.0, 0.0]
    return x


def given(x: np.ndarray[Any, Any], library: str) -> dict[str, Any]:
    """The ways from a dense array to a Tensor."""
    a = torch.from_numpy(x) if library == "torch" else x
    ways = {
        "array": a,
        "Tensor": ow.asarray(a),
        "transposed": a.T.copy().T if library == "numpy" else a.mT.contiguous().mT,
    }
    if library == "torch":
        return ways | {"recorded": a.clone().requires_grad_() if a.is_floating_point() else a}
    frame = {} if x.dtype.kind == "c" else {"frame": pandas.DataFrame(x)}
    return ways | {"lists": x.tolist(), **frame}


@pytest.mark.thin(25)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("spec", FORMATS)
def test_what_equals_the_fill_value_is_not_stored(spec: str, dtype: str, library: str) -> None:
    x = with_signs(dtype)
    for fill in (0.0, 1.0):
        count = np.count_nonzero(x != fill)
        for name, way in given(x, library).items():
            a = ow.asarray(way, format=spec, fill_value=fill)
            np.testing.assert_array_equal(a.detach().to_numpy(), x, err_msg=name)
            if not set(spec) & set("bde"):  # of formats without blocks, diagonals, dense and padded levels
                assert a.nse == count, name
            for t in (a.asformat("dense").asformat("coo"), ow.prune(a.asformat("coo")), a.asformat("coo").prune()):
                assert t.nse == count, name


def test_zeros_of_either_sign_are_left_out_as_by_others() -> None:
    """Half of the zeros of `x * (u < .1)` are negative."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 40)) * (rng.random((50, 40)) < 0.1)
    count = scipy.sparse.csr_array(x).nnz
    assert np.signbit(x[x == 0]).any()
    assert torch.from_numpy(x).to_sparse().values().numel() == count
    for format in ("csr", "csc", "coo", "dcsr", "bitmap", "ell(20)", "csf"):
        assert ow.asarray(x, format=format).nse == count
        assert ow.asarray(torch.from_numpy(x), format=format).nse == count
    assert ow.asarray(torch.from_numpy(x)).to_sparse_csr().nse == count
    a = ow.asarray(np.ones((50, 40)), format="csr")
    a[...] = x
    assert a.nse == count
    assert ow.asarray(torch.from_numpy(x).requires_grad_(), format="csr").nse == count


def test_negative_zeros_that_are_stored_stay() -> None:
    a = ow.assemble("csr", (1, 3), pos={1: np.array([0, 2])}, crd={1: np.array([0, 2])}, values=np.array([-0.0, 3.0]))
    for t in (a, a.asformat("coo"), a.asformat("csc"), a.T, a.coalesce()):
        assert t.nse == 2
        assert np.signbit(t.to_numpy()).sum() == 1
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((1 / a).to_numpy(), [[-np.inf, np.inf, 1 / 3]])
    assert a.prune().nse == a.asformat("dense").asformat("csr").nse == 1
    a.eliminate_zeros()
    assert a.nse == 1


def test_zeros_equal_a_negative_zero_as_fill_value() -> None:
    a = ow.asarray(np.array([-0.0, 0.0, 3.0, -0.0]), format="coo", fill_value=-0.0)
    assert a.nse == 1
    assert np.signbit(a.to_numpy()).tolist() == [True, True, False, True]


def test_what_is_near_the_fill_value_is_pruned_with_either_sign() -> None:
    a = ow.asarray(np.array([-0.0, 1e-3, -1e-3, 2.0]), format="coo")
    assert ow.prune(a).nse == 3
    assert ow.prune(a, 0.01).nse == 1


V = np.array([0.0, np.inf, 1.0, -2.0])
W = np.array([[0.0, 1.0, np.nan], [2.0, 0.0, 0.0]])


@pytest.mark.thin(10)
@pytest.mark.parametrize("fills", [(0.0, 0.0), (0.0, 3.0), (np.inf, 0.0)])
@pytest.mark.parametrize("specs", [("coo", "csr"), ("dense", "coo"), ("csf", "dense"), ("bitmap", "dcsr")])
def test_zeros_meet_infinity_in_products_of_all_pairs(specs: tuple[str, str], fills: tuple[float, float]) -> None:
    v = ow.asarray(V, format=ow.format(specs[0], 1), fill_value=fills[0])
    w = ow.asarray(W, format=ow.format(specs[1], 2), fill_value=fills[1])
    with np.errstate(all="ignore"):
        for got, want in (
            (ow.outer(v, w), np.outer(V, W)),
            (ow.outer(w, v, format="coo"), np.outer(W, V)),
            (ow.kron(w, w), np.kron(W, W)),
            (ow.kron(v, w), np.kron(V, W)),
            (ow.kron(w, v, format="coo"), np.kron(W, V)),
        ):
            np.testing.assert_array_equal(got.to_numpy(), want)


@pytest.mark.thin(6)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("spec", ["coo", "csr", "bsr(2, 2)", "bitmap", "(i, j) -> (j : compressed, i : ell(9))"])
def test_a_complex_number_with_one_nan_keeps_its_other_part(spec: str, dtype: str) -> None:
    parts = (0.0, -0.0, 1.0, np.inf, np.nan)
    x = np.array([complex(a, b) for a in parts for b in parts], dtype).reshape(5, 5)
    fills = {complex(np.nan, 0): 23, complex(np.inf, np.nan): 24, complex(np.nan, np.nan): 24, 0j: 21}
    for fill, count in fills.items():
        t = ow.asarray(x, format=spec, fill_value=fill)
        for got in (t, t.asformat("dcsr"), ow.prune(t), t.asformat("dense").asformat(spec)):
            for part in ("real", "imag"):
                want = getattr(x, part)
                np.testing.assert_array_equal(getattr(got.to_numpy(), part), want)
                np.testing.assert_array_equal(getattr(ow, part)(got).to_numpy(), want)
        assert ow.asarray(x, format="coo", fill_value=fill).nse == count
