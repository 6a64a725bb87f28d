"""NumPy's functions of Tensors with `where=`, `out=` and operands of other ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

DENSE = np.array([[0.0, 0.5, 1.0], [2.0, 0.0, -1.0]])
MASK = np.array([[True, False, True], [False, True, True]])
FORMATS = ["csr", "coo", "csc", "dense", "bsr(1, 3)"]


@pytest.mark.parametrize("format", FORMATS)
def test_where_of_functions_that_reduce_nothing(format: str) -> None:
    A = ow.asarray(DENSE, format=format)
    np.testing.assert_array_equal(np.clip(A, 0, 0.6, where=MASK).to_numpy(), np.where(MASK, DENSE.clip(0, 0.6), 0))
    out, want = ow.asarray(DENSE + 7, format=format), DENSE + 7
    assert np.clip(A, 0, 0.6, where=MASK, out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), np.clip(DENSE, 0, 0.6, where=MASK, out=want))
    host = np.ones((2, 3))
    assert np.clip(A, 0, 0.6, where=ow.asarray(MASK), out=host) is host
    np.testing.assert_array_equal(host, np.clip(DENSE, 0, 0.6, where=MASK, out=np.ones((2, 3))))
    with pytest.raises(ow.DTypeError, match="mask of bool"):
        np.clip(A, 0, 1, where=DENSE)


@pytest.mark.thin(3)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "nansum", "nanmax", "nanmean"]
)
def test_where_of_reductions(name: str, format: str) -> None:
    function, options = getattr(np, name), {"initial": -5} if name in ("max", "min", "nanmax") else {}
    for axis in (None, 0, 1):
        got = function(ow.asarray(DENSE, format=format), axis=axis, where=MASK, **options)
        want = function(DENSE, axis=axis, where=MASK, **options)
        np.testing.assert_allclose(np.asarray(got.to_dense()), want)


def _ufuncs() -> list[np.ufunc]:
    found = [getattr(np, name) for name in dir(np)]
    return sorted({u for u in found if isinstance(u, np.ufunc) and u.signature is None}, key=lambda u: u.__name__)


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("ufunc", _ufuncs(), ids=lambda u: u.__name__)
def test_a_tensor_takes_the_results_of_arrays(ufunc: np.ufunc) -> None:
    for x in (np.abs(DENSE) + 0.1, np.array([[1, 2, 3], [4, 5, 6]]), DENSE > 0):
        try:
            want = ufunc(*[x] * ufunc.nin)
        except TypeError:
            continue
        wants = want if isinstance(want, tuple) else (want,)
        outs = tuple(ow.asarray(np.ones(w.shape, w.dtype), format="coo") for w in wants)
        got = ufunc(*[x] * ufunc.nin, out=outs if len(outs) > 1 else outs[0])
        for out, w, g in zip(outs, wants, got if isinstance(got, tuple) else (got,), strict=True):
            assert g is out
            np.testing.assert_allclose(out.to_numpy(), w, rtol=1e-12)


@pytest.mark.parametrize("format", FORMATS)
def test_trapezoid_broadcasts_y_and_x(format: str) -> None:
    x, y = np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 5.0]]), np.array([1.0, 2.0, 3.0])
    X, A = ow.asarray(x, format=format), ow.asarray(DENSE, format=format)
    for got, want in (
        (np.trapezoid(y, x=X), np.trapezoid(y, x=x)), (np.trapezoid(A, x=X), np.trapezoid(DENSE, x=x)),
        (np.trapezoid(A, x=y), np.trapezoid(DENSE, x=y)), (np.trapezoid(A, x=x, axis=0), np.trapezoid(DENSE, x=x, axis=0)),
        (np.trapezoid(A, dx=0.5, axis=0), np.trapezoid(DENSE, dx=0.5, axis=0)),
        (np.trapezoid(ow.asarray(y, format="coo"), x=x), np.trapezoid(y, x=x)),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(got.to_dense()), want)


@pytest.mark.parametrize("format", FORMATS)
def test_full_like_of_an_array(format: str) -> None:
    A: Any = ow.asarray(DENSE, format=format)
    for fill in (
        np.array([1.0, 2.0, 3.0]),
        [1, 2, 3],
        ow.asarray([1.0, 0, 3.0], format="coo"),
        np.array([[1.5], [2.0]]),
    ):
        want = np.full_like(DENSE, fill.to_numpy() if isinstance(fill, ow.Tensor) else fill)
        np.testing.assert_array_equal(np.full_like(A, fill).to_numpy(), want)
        np.testing.assert_array_equal(np.full_like(A, fill, dtype=np.int32).to_numpy(), want.astype(np.int32))
    assert str(ow.full_like(A, [0.0, 1, 0], format="csr").format) == str(ow.format("csr"))
    with pytest.raises(ow.ShapeError, match="broadcast"):
        np.full_like(A, np.ones(2))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["csr", "coo", "bsr(1, 1)", "dense"])
def test_matmul_writes_to_out(format: str, library: str) -> None:
    torch = pytest.importorskip("torch")
    in_library: Any = np.asarray if library == "numpy" else torch.tensor
    a, x = np.array([[0, 1.0], [2, 0]]), np.array([[1.0, 2, 3], [4, 5, 6]])
    A, X = ow.asarray(in_library(a), format=format), in_library(x)
    for left, right, expected in ((A, X, a @ x), (X.T, A, x.T @ a), (A, A, a @ a), (A, X[:, 0], a @ x[:, 0])):
        for out in (in_library(np.zeros(expected.shape)), ow.asarray(in_library(np.zeros(expected.shape)))):
            assert ow.matmul(left, right, out=out) is out
            np.testing.assert_array_equal(np.asarray(out.to_dense() if isinstance(out, ow.Tensor) else out), expected)
    with pytest.raises(ow.DTypeError):
        ow.matmul(A, X, out=in_library(np.zeros((2, 3), np.int32)))


def test_full_of_lazy_conjugates_and_negatives() -> None:
    torch = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j])
    assert ow.full((2, 2), z.conj()[0]).fill_value == 1 - 2j
    assert ow.full((2, 2), z.conj().imag[0], format="dense").to_numpy().tolist() == [[-2, -2], [-2, -2]]
    assert ow.full_like(ow.asarray(torch.zeros(2, 2)), z.conj().imag[0]).to_dense().tolist() == [[-2, -2], [-2, -2]]
