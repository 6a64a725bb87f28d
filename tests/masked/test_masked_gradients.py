"""Gradients of masked tensors: right where specified, missing elsewhere, never NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from masked_cases import arrays

import openwork as ow
from openwork import masked

torch = pytest.importorskip("torch")

FORMATS = ("dense", "csr", "coo", "csc", "bsr(2, 2)", "dia")
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda m: m.sum(),
    "sum of rows": lambda m: m.sum(1),
    "mean": lambda m: m.mean(0),
    "var": lambda m: m.var(1),
    "prod": lambda m: m.prod(1),
    "amax": lambda m: m.amax(0),
    "norm": lambda m: m.norm(2, 1),
    "logsumexp": lambda m: m.logsumexp(1),
    "elementwise": lambda m: m.exp() * m - 3,
    "softmax": lambda m: m.softmax(1),
    "log_softmax": lambda m: m.log_softmax(1),
    "layer_norm": lambda m: masked.layer_norm(m),
    "matmul": lambda m: m @ m.T,
    "index": lambda m: m[1:, [0, 2]],
    "reshape": lambda m: m.reshape(3, 8),
    "concat": lambda m: masked.concat([m, m], 0),
    "union": lambda m: m.add(m * m, how="union"),
    "union of others": lambda m: m[:2].add(m[2:] * m[2:], how="union"),
    "where": lambda m: m.where(m > 1, m * m),
    "sort": lambda m: ow.sort(m, axis=1),
    "median": lambda m: ow.median(m, axis=1),
    "median of all": lambda m: m.median(),
    "sum of a mask": lambda m: masked.sum(m, 1, mask=np.arange(m.shape[1]) % 3 > 0),
    "softmax of a mask": lambda m: masked.softmax(m, 1, mask=np.arange(m.shape[1]) % 3 > 0),
    "running sums": lambda m: m.cumsum(1),
    "running products": lambda m: m.cumprod(0),
}


def weighted(m: Any) -> Any:
    """A number that depends on every specified element of a result."""
    dense = m.to_dense().filled(0).to_dense()
    return (dense * torch.arange(1.0, dense.numel() + 1, dtype=dense.dtype).reshape(dense.shape)).sum()


@pytest.mark.thin(342)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("spec", FORMATS)
def test_gradcheck_over_specified_elements(name: str, spec: str) -> None:
    data, bits = arrays((4, 6), 3)
    data = data + np.random.default_rng(1).random((4, 6))
    where = torch.from_numpy(bits)
    hidden = torch.full((4, 6), np.nan, dtype=torch.float64)

    def function(given: Any) -> Any:
        dense = hidden.masked_scatter(where, given)
        return weighted(OPERATIONS[name](ow.as_masked_tensor(dense, where).asformat(spec)))

    values = torch.from_numpy(data[bits]).requires_grad_()
    assert torch.isfinite(function(values))
    assert torch.autograd.gradcheck(function, (values,))


@pytest.mark.parametrize("name", ["std", 0, 2, 3])
def test_deviations_and_norms_of_zero_have_no_gradient(name: Any) -> None:
    rows = torch.tensor([[2.0, 2, 2], [0, 0, 0]], dtype=torch.float64)
    m = ow.as_masked_tensor(rows, torch.ones_like(rows) > 0).requires_grad_()
    (m.std(1) if name == "std" else m.norm(name, 1)).sum().backward()
    expected = torch.zeros_like(rows)
    expected[0] = 0 if name in ("std", 0) else 3 ** (1 / name - 1)
    torch.testing.assert_close(m.values.grad, expected.ravel())


def test_where_with_an_exponential_that_overflows() -> None:
    x = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100])
    below = x < 0
    mx = ow.masked_tensor(x, below, requires_grad=True)
    my = ow.masked_tensor(torch.ones_like(x), ~below, requires_grad=True)
    y = torch.where(below, torch.exp(mx), my)
    assert y.nse == 11
    y.sum().backward()
    assert mx.grad.nse == 2
    assert torch.equal(mx.grad.compressed(), torch.exp(x[:2]))
    assert my.grad.compressed().tolist() == [1.0] * 9
    for m in (mx, my):
        assert torch.isfinite(m.values.grad).all()


def test_where_that_does_not_take_a_quotient() -> None:
    a = ow.masked_tensor(torch.tensor(0.5), torch.tensor(True), requires_grad=True)
    b, c = torch.tensor(False), torch.ones(())
    out = torch.where(b, a / 0, c)
    assert out.item() == 1
    (found,) = torch.autograd.grad(out, a)
    assert str(found) == "MaskedTensor(--, False)"


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["dense", "csr", "coo", "bsr(2, 2)"])
def test_gradients_that_nothing_asked_for_are_missing(spec: str) -> None:
    data, bits = arrays((4, 6), 3)
    m = ow.masked_tensor(torch.from_numpy(data), torch.from_numpy(bits)).asformat(spec).requires_grad_()
    (found,) = torch.autograd.grad(m[1:3].exp().sum(), m)
    inside = np.zeros_like(bits)
    inside[1:3] = True
    np.testing.assert_array_equal(found.get_mask().to_numpy().astype(bool), bits & inside)
    np.testing.assert_allclose(found.to_numpy(0)[bits & inside], np.exp(data[bits & inside]))
    (square,) = torch.autograd.grad((m * m).sum(), m)  # a gradient of 0 is one all the same
    assert 0 in square.compressed()
    assert square.nse == m.nse
    (twice,) = torch.autograd.grad((m * m).sum(), m, create_graph=True)
    assert torch.autograd.grad(twice.sum(), m)[0].compressed().tolist() == [2.0] * m.nse


def test_masked_quotient_of_zeros() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    divisor = torch.tensor([0.0, 1.0], requires_grad=True)
    y = ow.as_masked_tensor(x, divisor != 0) / divisor
    assert y.compressed().tolist() == [1.0]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert divisor.grad.tolist() == [0, -1]


def test_sum_of_products_with_nan() -> None:
    a = torch.tensor([1.0, 2.0, float("nan")])
    b = torch.tensor(1.0, requires_grad=True)
    c = ow.masked_tensor(a, ~torch.isnan(a)) * b
    (found,) = torch.autograd.grad(torch.sum(c), b)
    assert found.item() == 3


@pytest.mark.parametrize("spec", FORMATS)
def test_sum_of_a_quotient(spec: str) -> None:
    a = torch.tensor([[1.0, 0.0], [3.0, 4.0]], requires_grad=True)
    b = torch.tensor([[2.0, 0.0], [0.0, 8.0]], requires_grad=True)
    known = b.detach() != 0
    (ow.as_masked_tensor(a, known).asformat(spec) / ow.as_masked_tensor(b, known).asformat(spec)).sum().backward()
    assert a.grad.tolist() == [[0.5, 0], [0, 0.125]]
    assert b.grad.tolist() == [[-0.25, 0], [0, -0.0625]]


def test_safe_softmax() -> None:
    data = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    bits = torch.tensor([[True, False, False], [True, False, True], [False, False, False]])
    for spec in FORMATS:
        leaf = data.clone().requires_grad_()
        out = ow.as_masked_tensor(leaf, bits).asformat(spec).softmax(0)
        assert out.nse == 3
        assert out.to_tensor(0)[:, 1].tolist() == [0, 0, 0]
        np.testing.assert_allclose(out.to_tensor(0).detach()[:, 0], [*torch.softmax(data[:2, 0], 0).tolist(), 0])
        (out * out).sum().backward()
        assert torch.isfinite(leaf.grad).all()


def test_gradients_are_missing_where_elements_are() -> None:
    for spec in FORMATS:
        m = ow.masked_tensor(torch.tensor([[1.0, 0.0], [0.0, 4.0]]), torch.eye(2) > 0).asformat(spec)
        m.requires_grad_()
        m.log().sum().backward()
        assert isinstance(m.grad, ow.MaskedTensor)
        assert m.grad.nse == 2
        assert m.grad.compressed().tolist() == [1.0, 0.25]


def test_optimisers_step_only_where_specified() -> None:
    for optimiser in (torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad):
        m = ow.masked_tensor(torch.ones(4, 5), torch.eye(4, 5) > 0).to_sparse_coo().requires_grad_()
        step = optimiser([m.values], lr=0.1)
        (m * m).sum().backward()
        step.step()
        assert m.nse == 4
        assert torch.allclose(m.compressed(), torch.full((4,), 0.8 if optimiser is torch.optim.SGD else 0.9))
        for state in step.state.values():
            assert all(x.numel() in (1, 4) for x in state.values())


def test_adagrad_by_hand() -> None:
    """The sparse semantics of Adagrad, in the words of masked tensors."""
    grad = torch.sparse_coo_tensor([[0, 3]], [2.0, 3.0], (5,))
    param, total = torch.arange(5.0), torch.full((5,), 0.5)
    g = ow.masked_tensor(grad)
    squares = total + (g * g).filled(0).to_dense()
    spread = ow.sparse_mask(ow.asarray(squares), g.specified)
    std = ow.masked_tensor(spread).sqrt() + 1e-10
    step = (g / std).filled(0).to_dense() * -0.1
    want = param.clone().requires_grad_()
    optimiser = torch.optim.Adagrad([want], lr=0.1, initial_accumulator_value=0.5)
    want.grad = grad
    optimiser.step()
    assert torch.allclose(param + step, want)


def test_torch_functions() -> None:
    x = torch.arange(16.0)
    y = x * x.fmod(4)
    m = ow.masked_tensor(y, y != 0)
    assert torch.mean(m).item() == y[y != 0].mean()
    assert torch.argmin(m).item() == 1
    assert torch.var(m).item() == pytest.approx(y[y != 0].var().item())
    assert torch.max(m, 0)[1].item() == 15
    assert torch.sigmoid(m).compressed().tolist() == torch.sigmoid(y[y != 0]).tolist()
    assert torch.nn.functional.relu(-m).compressed().tolist() == [0] * 12
    assert (x - m).compressed().tolist() == (x - y)[y != 0].tolist()
    assert torch.cat([m, m]).shape == (32,)
    assert torch.stack([m, m], 1).shape == (16, 2)
    assert torch.mean(ow.masked_tensor(x, x < 0)).nse == 0
    with pytest.raises(ow.UnsupportedError, match=r"torch\.histc does not take a masked tensor"):
        torch.histc(m)


def test_numpy_functions() -> None:
    data, bits = arrays((4, 6))
    m, a = ow.masked_tensor(data, bits), np.ma.MaskedArray(data, ~bits)
    assert np.sum(m).item() == a.sum()
    assert np.add.reduce(m, 0).compressed().tolist() == a.sum(0).compressed().tolist()
    assert np.var(m, ddof=1).item() == pytest.approx(a.var(ddof=1))
    assert np.concatenate([m, m], 1).shape == (4, 12)
    assert np.where(data > 0, m, 0.0).nse == (bits | (data <= 0)).sum()
    assert np.median(m).item() == np.ma.median(a)
    with pytest.raises(ow.UnsupportedError, match=r"numpy\.histogram does not take a masked tensor"):
        np.histogram(m)
    with pytest.raises(ow.UnsupportedError, match=r"hypot\.reduce of a masked tensor"):
        np.hypot.reduce(m)


@pytest.mark.slow  # torch takes seconds to load its compiler
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_of_masked_tensors() -> None:
    @torch.compile(backend="eager")
    def function(x: Any, mask: Any) -> Any:
        m = ow.as_masked_tensor(torch.sin(x), mask)
        return (m * 2).sum().to_tensor(0) + torch.cos(x).sum()

    x, mask = torch.arange(6.0), torch.arange(6) % 2 == 0
    leaf = x.clone().requires_grad_()
    out = function(leaf, mask)
    assert torch.allclose(out, (2 * torch.sin(x)[mask]).sum() + torch.cos(x).sum())
    out.backward()
    assert torch.allclose(leaf.grad, torch.where(mask, 2 * torch.cos(x), 0.0) - torch.sin(x))


def test_running_sums_and_products() -> None:
    """Of sparse data, whose fibres are followed by their elements alone."""
    data, bits = arrays((4, 6), 3)
    x, where = torch.from_numpy(data + 0.25), torch.from_numpy(bits)
    for op, start in (("cumsum", 0.0), ("cumprod", 1.0)):
        for dim in (0, 1):
            values, plain = x[where].requires_grad_(), x.clone().requires_grad_()
            full = torch.zeros_like(x).masked_scatter(where, values)
            m = ow.as_masked_tensor(full, where).asformat("csr")
            want = torch.where(where, getattr(torch.where(where, plain, start), op)(dim), 0)
            got = weighted(getattr(m, op)(dim))
            expected = (want * torch.arange(1.0, 25, dtype=x.dtype).reshape(4, 6)).sum()
            torch.testing.assert_close(got, expected)
            got.backward()
            expected.backward()
            torch.testing.assert_close(values.grad, plain.grad[where])
