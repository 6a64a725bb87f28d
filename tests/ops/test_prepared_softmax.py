"""The softmax of a structure that has seen it is what it was the first time, of whatever values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

RNG = np.random.default_rng(7)
X = np.where(RNG.random((6, 7)) < 0.5, RNG.normal(size=(6, 7)), 0.0)
X[2] = 0


def of_dense(x: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    """Softmax of the elements that are not 0."""
    with np.errstate(all="ignore"):
        powers = np.where(x != 0, np.exp(x - np.where(x != 0, x, -np.inf).max(axis, keepdims=True)), 0)
        return np.nan_to_num(powers / powers.sum(axis, keepdims=True))


@pytest.mark.thin(2)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("format", ["csr", "coo", "csc", "ell(7)"])
def test_softmax_again(format: str) -> None:
    torch = pytest.importorskip("torch")
    for library in (np.asarray, torch.from_numpy):
        a = ow.asarray(library(X), format=format)
        first = ow.softmax(a, axis=1).values.copy() if library is np.asarray else None
        for _ in range(4):
            for axis in (1, 0, -1):
                for scale in (1.0, -2.0, 300.0):
                    x = X * scale
                    got = ow.softmax(a * scale, axis=axis).to_numpy()
                    np.testing.assert_allclose(got, of_dense(x, axis), rtol=1e-12, atol=1e-300)
        if first is not None:
            np.testing.assert_array_equal(ow.softmax(a, axis=1).values, first)
        values = np.asarray(a.values).copy()
        values[0], values[3] = np.inf, np.nan
        spoilt = [ow.Tensor._from_storage(s.with_values(library(values))) for s in (a._storage, fresh(a, library))]
        again, once = (np.asarray(ow.softmax(t, axis=1).values) for t in spoilt)
        np.testing.assert_array_equal(again, once)
    c = ow.asarray(torch.from_numpy(X), format=format)
    for _ in range(3):
        want = torch.softmax(c, 1).values
    w = ow.Tensor._from_storage(c._storage.with_values(c.values.clone().requires_grad_()))
    torch.softmax(w, 1).values.square().sum().backward()
    assert bool(w.values.grad.abs().max() > 0)
    with torch.no_grad():
        assert torch.equal(torch.softmax(w, 1).values, want)

    def of_values(v: Any) -> Any:
        return torch.softmax(ow.Tensor._from_storage(c._storage.with_values(v)), 1).values

    if format == "ell(7)":  # padding differs
        return
    batch = torch.stack([c.values, 2 * c.values])
    torch.testing.assert_close(torch.func.vmap(of_values)(batch)[1], of_values(2 * c.values))
    assert torch.softmax(c, 1, dtype=torch.float32).dtype == torch.float32


def fresh(a: Any, library: Any) -> Any:
    """A storage of a structure that has seen nothing."""
    return ow.asarray(library(X), format=a.format)._storage


def test_softmax_of_many_rows_again() -> None:
    x = np.where(np.arange(18000).reshape(2000, 9) % 5 < 2, np.arange(18000).reshape(2000, 9) % 7 - 2.5, 0)
    for spec, axis in (("csr", 1), ("coo", 0)):
        t = ow.asarray(x, format=spec)
        results = [ow.softmax(t, axis).to_numpy() for _ in range(4)]
        for again in results[1:]:
            np.testing.assert_array_equal(again, results[0])
        np.testing.assert_allclose(results[0].sum(axis), 1)
