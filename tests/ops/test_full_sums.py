"""Sums of whole arrays: rows in lanes, and rows in pairs, so that errors do not grow with the length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.runtime.full_sum import LEAST, ROW, total

SIZES = (1, 2, ROW - 1, ROW, ROW + 1, 2 * ROW, 3 * ROW + 7, 5 * ROW, LEAST - 1, LEAST, LEAST + 1, 99_999, 4 * LEAST + 3)


@pytest.mark.parametrize("scalar", ["f32", "f64"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_rounding_errors_do_not_grow(library: str, scalar: str) -> None:
    torch = pytest.importorskip("torch") if library == "torch" else None
    for n in SIZES:
        x = (np.random.default_rng(n).random(n) * 1000 - 300).astype("f4" if scalar == "f32" else "f8")
        size, want = np.abs(x.astype(float)).sum(), math.fsum(x.astype(float))
        given: Any = x if torch is None else torch.from_numpy(x)
        assert abs(float(total(given, scalar)) - want) <= 16 * np.finfo(x.dtype).eps * size, n
        t = ow.asarray(given, format="coo")
        for _ in range(3):
            assert float(t.sum()) == pytest.approx(want, abs=16 * float(np.finfo(x.dtype).eps) * size)


def test_sums_of_what_is_not_finite() -> None:
    torch = pytest.importorskip("torch")
    for bad, want in ((np.inf, np.inf), (-np.inf, -np.inf), (np.nan, np.nan)):
        x = np.ones(5000)
        x[4321] = bad
        for given in (x, torch.from_numpy(x)):
            t = ow.asarray(given, format="coo")
            for _ in range(3):
                np.testing.assert_equal(float(t.sum()), want)


def test_reductions_of_all_elements_over_torch() -> None:
    """Prepared ones, of other values and fill values, of recorded values, in transforms."""
    torch = pytest.importorskip("torch")
    x = torch.tensor(np.where(np.arange(30).reshape(5, 6) % 3 == 0, np.arange(30.0).reshape(5, 6) / 7 - 2, 0.0))
    for fill in (0.0, 2.0, -3.0):
        dense = torch.where(x == 0, fill, x)
        for dtype in (torch.float64, torch.float32):
            y = dense.to(dtype)
            a = ow.asarray(y.clone(), format="csr", fill_value=fill)
            for k in range(4):
                got = {n: getattr(a, n)() for n in ("sum", "mean", "max", "min", "prod")}
                want = {"sum": y.sum(), "mean": y.mean(), "max": y.max(), "min": y.min(), "prod": y.prod()}
                for n, r in got.items():
                    torch.testing.assert_close(r.to_dense(), want[n], msg=f"{n} {fill} {dtype} {k}")
                a.values.mul_(-1.5)
                y = torch.where(y == fill, fill, -1.5 * y)
    a = ow.asarray(x.clone(), format="csr")
    for _ in range(3):
        a.sum(), a.max(), a.mean()
    w = ow.asarray(a).requires_grad_()
    for name in ("sum", "mean", "max"):
        (gradient,) = torch.autograd.grad(getattr(w, name)().values.sum(), w.values)
        assert gradient.shape == w.values.shape
    pair = torch.stack([a.values, 2 * a.values])

    def summed(v: Any) -> Any:
        return ow.Tensor._from_storage(a._storage.with_values(v)).sum().values[0]

    torch.testing.assert_close(torch.func.vmap(summed)(pair), torch.stack([x.sum(), 2 * x.sum()]))
    assert torch.isnan(ow.asarray(torch.tensor([torch.nan, 1.0]), format="coo").max().to_dense())
