"""Tensors of up to 64 dimensions, most of them of extent 1: kernels have loops for the others alone."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import UnsupportedError

pytestmark = pytest.mark.timeout(120)

SHAPES = [(1,) * 64, (1,) * 40 + (3,) + (1,) * 20 + (4, 1, 2), (2, 1, 3) + (1,) * 17, (2,) * 5 + (1,) * 12]


def dense(shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 5, shape) * (rng.random(shape) < 0.6)).astype(float)


@pytest.mark.parametrize("shape", SHAPES)
def test_conversions(shape: tuple[int, ...]) -> None:
    d = dense(shape, 0)
    t = ow.asarray(d, format="coo")
    assert t.format == ow.format("coo", len(shape))
    assert t.nse == np.count_nonzero(d)
    np.testing.assert_array_equal(t.to_numpy(), d)
    again = ow.asarray(ow.asarray(d), format="coo")
    assert again.format == t.format
    ones = ow.asarray(np.zeros(shape), format="coo")
    assert ones.nse == 0


@pytest.mark.thin(6)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.gt, np.maximum])
def test_merges(shape: tuple[int, ...], function: Any) -> None:
    d, e = dense(shape, 0), dense(shape, 1)
    a, b = (ow.asarray(x, format="coo") for x in (d, e))
    got = function(a, b)
    assert got.format == a.format
    np.testing.assert_array_equal(got.to_numpy(), function(d, e))
    lazily = ow.compute(function(ow.lazy(a), b) * 2.0)
    assert lazily.format == a.format
    np.testing.assert_array_equal(lazily.to_numpy(), function(d, e) * 2.0)
    np.testing.assert_array_equal(np.asarray(ow.compute(function(ow.lazy(a), b).sum())), function(d, e).sum())


def test_merges_of_recorded_values() -> None:
    torch = pytest.importorskip("torch")
    shape = SHAPES[1]
    a, b = (ow.asarray(torch.from_numpy(dense(shape, k)), format="coo") for k in range(2))
    leaf = a.values.detach().clone().requires_grad_()
    (a.with_values(leaf) * 3 + b).values.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full(len(leaf), 3.0))


@pytest.mark.parametrize("spec", ["csf", "bitmap"])
def test_merges_in_other_formats(spec: str) -> None:
    for shape in SHAPES[2:]:
        d, e = dense(shape, 0), dense(shape, 1)
        a, b = (ow.asarray(x, format="coo").asformat(spec) for x in (d, e))
        got = a + b
        assert got.format == a.format
        np.testing.assert_array_equal(got.to_numpy(), d + e)
    a, b = (ow.asarray(dense(SHAPES[0], k) + 1, format="coo").asformat("csf") for k in range(2))
    assert (a + b).item() == a.item() + b.item()


def test_a_kernel_that_is_too_deep_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: Any) -> None:
        raise RecursionError

    monkeypatch.setattr("openwork.runtime.coiterate.plan.lower_merge", too_deep)
    a, b = (ow.random((5, 6, 7, 3), 0.3, format="csf", dtype="int16", rng=k) for k in range(2))
    ow.clear_caches()
    with pytest.raises(UnsupportedError, match="reshape to fewer dimensions"):
        _ = a - b
