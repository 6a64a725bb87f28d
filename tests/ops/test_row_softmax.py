"""Softmax along compressed rows in one kernel, with its gradients, against torch over dense rows and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax as dense_softmax

import openwork as ow
from openwork.ops.reductions import row_softmax, softmax
from openwork.tuning import MOVES_KEPT

CASES = [("csr", 1), ("csr", -1), ("csc", 0), ("csc", -2)]


def operand(spec: str, dtype: str = "float64") -> ow.Tensor:
    rng = np.random.default_rng(0)
    t = ow.random((300, 200), 0.2, format="csr", rng=0).astype(dtype)
    t = t.with_values((30 * rng.standard_normal(t.nse)).astype(dtype))
    assert t.nse > MOVES_KEPT
    return ow.tril(t, k=120).asformat(spec)


def wanted(t: ow.Tensor, axis: int) -> np.ndarray[Any, Any]:
    a = t.to_numpy()
    a = np.where(ow.pattern(t).to_numpy(), a, -np.inf)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(dense_softmax(a, axis=axis))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("spec", "axis"), CASES)
def test_rows_in_one_kernel(spec: str, axis: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t = operand(spec, dtype)
    monkeypatch.setattr(softmax, "_subtract_maximum", lambda *_: pytest.fail("statements"))
    got = ow.softmax(t, axis=axis)
    np.testing.assert_allclose(got.to_numpy(), wanted(t, axis), rtol=1e-5 if dtype == "float32" else 1e-12)
    assert got.dtype == dtype
    assert got.format == t.format


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dcsr", "bsr(2, 2)"])
def test_other_formats_and_axes_are_left_to_statements(spec: str, axis: int) -> None:
    t = operand("csr").asformat(spec)
    want = wanted(operand("csr"), axis) if not spec.startswith("bsr") else wanted(t, axis)
    np.testing.assert_allclose(ow.softmax(t, axis=axis).to_numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_as_before(bad: float) -> None:
    torch = pytest.importorskip("torch")
    t = operand("csr")
    values = t.values.copy()
    row = slice(int(t.pos(1)[7]), int(t.pos(1)[8]))
    values[row.start] = bad
    values[t.pos(1)[9] : t.pos(1)[10]] = -np.inf
    over_torch = ow.asarray(t.with_values(values), like=torch)
    got = ow.softmax(over_torch, axis=1).values.numpy()
    assert np.isnan(got[t.pos(1)[9] : t.pos(1)[10]]).all()
    if bad == -np.inf:
        assert got[row.start] == 0
        np.testing.assert_allclose(got[row].sum(), 1)
    else:
        assert np.isnan(got[row.start])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ow.softmax(t.with_values(values), axis=1).values, got)


@pytest.mark.thin(4)
@pytest.mark.parametrize(("spec", "axis"), CASES)
def test_gradients(spec: str, axis: int) -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(operand(spec), like=torch)
    mask = torch.from_numpy(ow.pattern(operand(spec)).to_numpy())
    leaf = t.to_dense().clone().requires_grad_()
    t = t.requires_grad_()
    weights = torch.rand(leaf.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = mask.any(axis, keepdim=True)
    want = torch.where(rows, torch.softmax(leaf.masked_fill(~mask, -torch.inf), axis), 0.0)
    (wanted_grad,) = torch.autograd.grad((want * weights).sum(), leaf, create_graph=True)
    got = ow.softmax(t, axis=axis)
    loss = (got.to_dense() * weights).sum()
    (grad,) = torch.autograd.grad(loss, t.values, retain_graph=True)
    want_of = torch.where(mask, wanted_grad.nan_to_num(0.0), 0.0)
    torch.testing.assert_close(t.detach().with_values(grad).to_dense(), want_of.detach())
    (recorded,) = torch.autograd.grad(loss, t.values, create_graph=True)
    torch.testing.assert_close(recorded.detach(), grad)
    (second,) = torch.autograd.grad(recorded.square().sum(), t.values)
    assert second.isfinite().all()
    assert second.abs().max() > 0


@pytest.mark.ci
def test_second_derivatives_and_tangents(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(row_softmax.tuning, "MOVES_KEPT", 0)
    s = ow.asarray(torch.rand(5, 6, dtype=torch.float64)).asformat("csr")
    values = s.values.detach().clone().requires_grad_()

    def function(v: Any) -> Any:
        return ow.softmax(s.with_values(v), axis=1).values

    assert torch.autograd.gradcheck(function, values, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, values)
