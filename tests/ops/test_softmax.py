"""softmax, log_softmax and logsumexp on every format, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix import FORMATS, dense_array, tensor

import openwork as ow


def oracle(array: np.ndarray[Any, Any], specified: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    powers = np.where(specified, np.exp(array), 0)
    total = powers.sum(axis=axis, keepdims=True)
    return np.where(specified, powers / np.where(total, total, 1), 0)


@pytest.mark.thin(10)
@pytest.mark.parametrize("spec", FORMATS[2])
def test_softmax(spec: str) -> None:
    array = dense_array((8, 12))
    t = tensor(array, spec)
    specified = ow.sparse_mask(np.ones(t.shape), t).to_numpy() > 0
    for axis in (0, 1, -1):
        want = oracle(array, specified, axis)
        np.testing.assert_allclose(ow.softmax(t, axis).to_numpy(), want, rtol=1e-12)
        logs = np.log(want, where=specified, out=np.zeros_like(want))
        np.testing.assert_allclose(ow.log_softmax(t, axis).to_numpy(), logs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spec", ["coo", "csr", "bsr(2, 3)", "dia", "dense"])
@pytest.mark.parametrize("fill", [0.0, 1.5])
def test_logsumexp(spec: str, fill: float) -> None:
    array = dense_array((8, 12))
    t = tensor(array, spec) + fill
    for axis in (0, 1, (0, 1), None):
        want = np.log(np.exp(array + fill).sum(axis=axis))
        np.testing.assert_allclose(ow.logsumexp(t, axis).to_numpy(), want, rtol=1e-12)
    assert ow.logsumexp(t, 0, keepdims=True).shape == (1, 12)


@pytest.mark.parametrize("like", ["numpy", "torch"])
@pytest.mark.parametrize("fill", [np.inf, -np.inf, np.nan, 1e30])
def test_logsumexp_with_a_fill_value_that_is_no_ordinary_number(fill: float, like: str) -> None:
    """It counts where an element is unspecified, and nowhere else."""
    array = np.array([[1.0, fill, 2.0], [1.0, 2.0, 3.0], [fill, fill, fill]])
    t = ow.asarray(ow.asarray(array, format="csr", fill_value=fill), like=like)
    with np.errstate(all="ignore"):
        for axis in (0, 1):
            got, want = ow.logsumexp(t, axis).to_numpy(), np.logaddexp.reduce(array, axis)
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_large_elements_do_not_overflow() -> None:
    t = ow.asarray(np.array([[1000.0, 0.0], [-1000.0, -1001.0]]), format="csr")
    np.testing.assert_allclose(ow.softmax(t, 1).to_numpy(), [[1, 0], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)]])
    np.testing.assert_allclose(ow.logsumexp(t, 1).to_numpy(), [1000.0, -1000.0 + np.log1p(np.exp(-1))])


def test_nothing_has_a_softmax_of_its_shape() -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        for spec in ("csr", "coo", "csc"):
            for axis in (0, 1):
                for function in (ow.softmax, ow.log_softmax):
                    got = function(ow.zeros(shape, dtype="float32", format=spec), axis)
                    assert (got.shape, got.dtype, got.nse) == (shape, np.float32, 0)


def test_integers_and_half() -> None:
    array = dense_array((4, 6))
    assert ow.softmax(tensor(array.astype("int32"), "csr"), 1).dtype == np.float64
    assert ow.softmax(tensor(array.astype("float16"), "csr"), 1).dtype == np.float16
    with pytest.raises(ow.ShapeError, match="axis 2"):
        ow.softmax(tensor(array, "csr"), 2)
