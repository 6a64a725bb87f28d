"""Elements that are left out are the fill value, bit for bit; zeros that are not stored meet infinity as stored ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

FORMATS = (
    "coo", "csr", "csc", "dcsr", "bsr(2,2)", "dia", "ell(4)", "bitmap", "dense",
    "(i, j) -> (i : bitmap, j : compressed)", "(i, j) -> (j : compressed(nonunique, unordered), i : singleton)",
)  # fmt: skip
X = np.array([[0.0, -0.0, 1.0, 0.0], [-0.0, 2.0, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -0.0]])


def signs(x: Any) -> Any:
    return np.signbit(x.real) + 2 * np.signbit(x.imag)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("spec", FORMATS)
def test_negative_zeros_are_kept(spec: str, dtype: str) -> None:
    x = X.astype(dtype)
    if dtype == "complex128":
        x = x + 0j
        x.imag[0] = np.array([-0.0, 0.0, 1.0, 0.0])
        x.real[:] = X
    a = ow.asarray(x, format=spec)
    for t in (a, a.asformat("csr"), a.asformat("dense").asformat(spec), ow.prune(a)):
        np.testing.assert_array_equal(signs(t.to_numpy()), signs(x))
    assert ow.asarray(np.zeros((4, 4), dtype), format="coo").nse == 0


def test_the_sign_of_a_zero_is_seen() -> None:
    x, y = np.array([-0.0, 0.0, 3.0]), np.array([2.0, 2.0, 2.0])
    a, b = ow.asarray(x, format="coo"), ow.asarray(y, format="coo")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((1 / a).to_numpy(), 1 / x)
    np.testing.assert_array_equal(ow.copysign(b, a).to_numpy(), np.copysign(y, x))


def test_a_negative_zero_as_fill_value_is_not_zero() -> None:
    x = np.array([-0.0, 0.0, 3.0, -0.0])
    a = ow.asarray(x, format="coo", fill_value=-0.0)
    assert a.nse == 2
    np.testing.assert_array_equal(np.signbit(a.to_numpy()), np.signbit(x))


def test_what_is_near_the_fill_value_is_pruned_with_either_sign() -> None:
    a = ow.asarray(np.array([-0.0, 1e-3, -1e-3, 2.0]), format="coo")
    assert ow.prune(a).nse == 4
    assert ow.prune(a, 0.01).nse == 1


V = np.array([0.0, np.inf, 1.0, -2.0])
W = np.array([[0.0, 1.0, np.nan], [2.0, 0.0, 0.0]])


@pytest.mark.thin(2)
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


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("spec", ["coo", "csr", "bsr(2, 2)", "bitmap", "(i, j) -> (j : compressed, i : ell(9))"])
def test_a_complex_number_with_one_nan_keeps_its_other_part(spec: str, dtype: str) -> None:
    parts = (0.0, -0.0, 1.0, np.inf, np.nan)
    x = np.array([complex(a, b) for a in parts for b in parts], dtype).reshape(5, 5)
    for fill in (complex(np.nan, 0), complex(np.inf, np.nan), complex(np.nan, np.nan), 0j):
        t = ow.asarray(x, format=spec, fill_value=fill)
        for got in (t, t.asformat("dcsr"), ow.prune(t), t.asformat("dense").asformat(spec)):
            for part in ("real", "imag"):
                want = getattr(x, part)
                np.testing.assert_array_equal(getattr(got.to_numpy(), part), want)
                np.testing.assert_array_equal(np.signbit(getattr(got.to_numpy(), part)), np.signbit(want))
                np.testing.assert_array_equal(getattr(ow, part)(got).to_numpy(), want)
        assert ow.asarray(x, format="coo", fill_value=fill).nse == 24
