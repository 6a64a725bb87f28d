"""NumPy's ufunc protocol on Tensors: every ufunc and method, `out=`, `where=`, `dtype=`, as on the dense arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy_results import same

import openwork as ow

RNG = np.random.default_rng(5)
X, Y = (np.where(RNG.random((4, 5)) < 0.5, RNG.integers(-4, 5, (4, 5)) / 2, 0.0) for _ in range(2))
K, L = (np.where(RNG.random((4, 5)) < 0.5, RNG.integers(1, 9, (4, 5)), 0) for _ in range(2))
FORMATS = ("csr", "csc", "coo", "dense", "dia", "bitmap")


def made(x: np.ndarray[Any, Any], format: str, library: str = "numpy", fill: Any = 0) -> Any:
    if library == "torch":
        torch = pytest.importorskip("torch")
        return ow.asarray(torch.from_numpy(x.copy()), format=format, fill_value=fill)
    return ow.asarray(x.copy(), format=format, fill_value=fill)


def quietly(function: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function()


UFUNCS = sorted(
    name for name, f in vars(np).items() if isinstance(f, np.ufunc) and f.signature is None and name == f.__name__
)
"""Every ufunc of NumPy's on single elements."""
NEVER = ("isnat",)


@pytest.mark.thin(49)
@pytest.mark.parametrize("name", [n for n in UFUNCS if n not in NEVER])
@pytest.mark.parametrize("format", ["csr", "dense"])
def test_every_ufunc(name: str, format: str) -> None:
    ufunc, tried = getattr(np, name), 0
    for operands in ((X, Y)[: ufunc.nin], (K, L)[: ufunc.nin]):
        try:
            want = quietly(lambda operands=operands: ufunc(*operands))
        except (TypeError, ValueError):
            continue
        tried += 1
        for fill in (0, 1):
            tensors = [made(x, format, fill=fill) for x in operands]
            got = quietly(lambda tensors=tensors: ufunc(*tensors))
            results = got if isinstance(got, tuple) else (got,)
            assert all(isinstance(r, ow.Tensor) and r.format == tensors[0].format for r in results)
            same(got, want)
    assert tried


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_ufunc_that_is_no_operation(format: str, library: str) -> None:
    a, b = made(X, format, library), made(Y, "coo", library)
    same(np.fmax(a, b), np.fmax(X, Y))
    same(np.heaviside(a, 0.5), np.heaviside(X, 0.5))
    same(np.modf(a), np.modf(X))
    same(quietly(lambda: scipy.special.xlogy(a, b)), quietly(lambda: scipy.special.xlogy(X, Y)))
    same(np.fmin(a, Y), np.fmin(X, Y))
    same(np.fmin(a, b[0]), np.fmin(X, Y[0]))
    half = made(np.array(0.5), "dense", library)
    for got, want in ((np.fmod(a, half), np.fmod(X, 0.5)), (np.fmax(half, a), np.fmax(0.5, X))):
        same(got, want)
        assert got.format == a.format  # a number adds no elements


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "out of another dtype": lambda a, b: np.add(a, b, out=a.astype(np.float32), casting="same_kind"),
    "dtype": lambda a, b: np.add(a, b, dtype=np.float32),
    "dtype of one operand": lambda a, b: np.sin(a, dtype=np.float32),
    "signature": lambda a, b: np.multiply(a, b, signature="ff->f"),
    "order and subok": lambda a, b: np.add(a, b, order="F", subok=False),
    "add.outer": lambda a, b: np.add.outer(a[0], b),
    "multiply.outer": lambda a, b: np.multiply.outer(a, b),
    "power.outer with a number": lambda a, b: np.power.outer(a, 2),
    "maximum.outer": lambda a, b: np.maximum.outer(a, b[1]),
    "fmin.outer": lambda a, b: np.fmin.outer(a, b[1]),
    "add.reduce": lambda a, b: np.add.reduce(a),
    "add.reduce of all": lambda a, b: np.add.reduce(a, axis=None),
    "add.reduce with where": lambda a, b: np.add.reduce(a, axis=1, where=b > 0),
    "multiply.reduce with initial": lambda a, b: np.multiply.reduce(a, initial=2.0),
    "maximum.reduce": lambda a, b: np.maximum.reduce(a, axis=1, initial=0.25, where=b > 0),
    "minimum.reduce of none": lambda a, b: np.minimum.reduce(a[:0], initial=0.25),
    "logical_or.reduce": lambda a, b: np.logical_or.reduce(a, axis=1),
    "add.accumulate": lambda a, b: np.add.accumulate(a, axis=1),
    "sum with where": lambda a, b: np.sum(a, where=b > 0),
    "sum with initial": lambda a, b: np.sum(a, axis=0, initial=3.5),
    "max with initial": lambda a, b: np.max(a, axis=0, initial=1.0),
    "any with where": lambda a, b: np.any(a, axis=0, where=b > 0),
    "mean with where": lambda a, b: np.mean(a, where=b != 0),
    "var with where": lambda a, b: np.var(a, where=b != 0, ddof=1),
    "std with where": lambda a, b: np.std(a, axis=0, keepdims=True, where=b == 0),
    "nanvar with where": lambda a, b: np.nanvar(a, axis=1, ddof=1, where=b > 0),
    "var with where and correction": lambda a, b: np.var(a, where=b > 0, correction=1),
    "nansum with where": lambda a, b: np.nansum(a, axis=0, where=b > 0),
    "nanmax with initial": lambda a, b: np.nanmax(a, axis=0, initial=0.75),
    "var in single precision": lambda a, b: np.var(a, dtype=np.float32),
    "rint of integers": lambda a, b: np.rint(a.astype(np.int64)),
    "divmod": lambda a, b: np.divmod(a, 2.0),
}


@pytest.mark.thin(4)
@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
@pytest.mark.parametrize("call", CALLS)
def test_methods_and_arguments(call: str, format: str) -> None:
    want = quietly(lambda: CALLS[call](X.copy(), Y.copy()))
    same(quietly(lambda: CALLS[call](made(X, format), made(Y, format))), want)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["csr", "coo", "dense", "bitmap"])
def test_out_is_a_tensor_that_keeps_its_format(format: str, library: str) -> None:
    a, b, out = made(X, format, library), made(Y, "coo", library), made(Y, format, library)
    kept = out.format
    assert np.add(a, b, out=out) is out
    same(out, X + Y)
    assert out.format == kept
    np.multiply(out, 2, out)
    same(out, (X + Y) * 2)
    np.add(a, b, out=out, where=X > 0)
    same(out, np.add(X, Y, out=(X + Y) * 2, where=X > 0))
    total = ow.zeros(5, format="dense")
    np.sum(a, axis=0, out=total)
    same(total, X.sum(0))
    array = np.empty((4, 5))
    assert np.add(a, b, out=array) is array
    same(array, X + Y)
    whole, part = np.empty((4, 5)), made(X, format)
    np.modf(a, out=(part, whole))
    same((part, whole), np.modf(X))


def test_where_without_out_leaves_zeros() -> None:
    got = np.add(made(X, "csr"), 1.0, where=X > 0)
    same(got, np.where(X > 0, X + 1, 0.0))


@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "maximum", "minimum", "power", "fmin"])
def test_at_counts_a_place_each_time(name: str, format: str) -> None:
    ufunc, key, values = getattr(np, name), (np.array([0, 0, 3, 1]), np.array([1, 1, 2, 4])), np.array([2.0, 3, 1, 2])
    want, got = X.copy(), made(X, format)
    shared = got
    quietly(lambda: ufunc.at(want, key, values))
    assert quietly(lambda: ufunc.at(got, key, values)) is None
    same(got, want)
    assert shared is got
    np.negative.at(want, [0, 2])
    np.negative.at(got, [0, 2])
    same(got, want)
    plain = np.zeros((4, 5))
    np.add.at(plain, np.arange(4), made(X, format))
    same(plain, X)


def test_at_of_huge_extents() -> None:
    places = ([1, 1, 2**30 - 1], [2, 2, 5])
    t = ow.sparse_coo_tensor(np.array([[1], [2]]), [1.0], (2**31 - 1, 2**31))
    np.maximum.at(t, places, [0.5, 3.0, 4.0])
    assert (t.nse, t[1, 2], t[2**30 - 1, 5]) == (2, 3.0, 4.0)
    with pytest.raises(ow.UnsupportedError, match="help: use add, or set"):
        np.maximum.at(ow.sparse_coo_tensor(np.array([[1], [2]]), [1.0], (2**31, 2**31)), places, 2.0)


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (
        lambda a: np.bitwise_or.reduce(a.astype(np.int64)),
        ow.UnsupportedError,
        "bitwise_or.reduce does not take a sparse",
    ),
    (lambda a: np.maximum.accumulate(a), ow.UnsupportedError, "supported: add, multiply"),
    (lambda a: np.add.reduceat(a, [0, 2]), ow.UnsupportedError, "reduceat"),
    (lambda a: np.add(a, a, dtype=np.int64), ow.DTypeError, "casting"),
    (lambda a: np.add(a, a, out=a.astype(np.int64)), ow.DTypeError, "float64 to int64 is not allowed"),
    (lambda a: np.add(a, a, out=np.empty((2, 2))), ow.ShapeError, "for out= of shape"),
    (lambda a: np.add(a, a, out=a[0]), ow.ShapeError, "for out= of shape"),
    (lambda a: np.add(a, a, where=X), ow.DTypeError, "mask of bool"),
    (lambda a: np.max(a, where=X > 0), ow.ShapeError, "without identity"),
    (lambda a: np.fmax(a, a[:, :3]), ow.ShapeError, "do not broadcast"),
    (lambda a: np.gcd(a, a), ow.DTypeError, "gcd does not take"),
    (lambda a: np.add.at(a.astype(np.int64), 0, 1.5), ow.DTypeError, "add.at"),
    (lambda a: np.matmul(a, a.T, axes=[(0, 1)] * 3), ow.UnsupportedError, "axes="),
    (lambda a: np.vecdot(a, a, axes=[1, 1, ()]), ow.UnsupportedError, "vecdot, axes= does not take a Tensor"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals(k: int) -> None:
    call, error, words = REFUSED[k]
    with pytest.raises(error, match=words):
        call(made(X, "csr"))


def test_no_gradient_is_lost() -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.from_numpy(X.copy()), format="csr").requires_grad_()
    with pytest.raises(ow.UnsupportedError, match="no gradient"):
        np.fmax(t, 1.0)


@pytest.mark.parametrize("ufunc", [np.logaddexp, np.arctan2, np.heaviside], ids=lambda f: f.__name__)
def test_methods_of_ufuncs_that_are_no_operation_take_dense_tensors(ufunc: np.ufunc) -> None:
    t, sparse = ow.asarray(X, format="dense"), ow.asarray(X, format="csr")
    np.testing.assert_array_equal(np.asarray(ufunc.accumulate(t, axis=1)), ufunc.accumulate(X, axis=1))
    np.testing.assert_array_equal(np.asarray(ufunc.outer(t, Y)), ufunc.outer(X, Y))
    np.testing.assert_array_equal(np.asarray(ufunc.reduceat(t, [0, 2, 1])), ufunc.reduceat(X, [0, 2, 1]))
    with pytest.raises(ow.UnsupportedError, match="does not take a sparse tensor"):
        ufunc.accumulate(sparse)
