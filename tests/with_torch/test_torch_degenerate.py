"""Gradients of reductions where their formulas divide by zero, or nothing is stored: those of torch on dense tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow

torch = pytest.importorskip("torch")

OPERANDS: dict[str, tuple[list[list[float]], list[list[int]]]] = {
    "equal elements": ([[2, 2, 2], [3, 3, 3], [0, 0, 0], [1, 1, 0]], [[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]),
    "stored zeros": ([[0, 0, 0], [0, 3, 3], [0, 0, 5], [2, 0, 0]], [[1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 1, 0]]),
    "nothing stored": ([[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]),
    "one element": ([[0, 0, 4], [0, 0, 0], [-1, 0, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]]),
    "ties": ([[4, 4, 4], [-1, -1, 0], [-1, -1, -1]], [[1, 1, 1], [1, 1, 0], [1, 1, 1]]),
    "one column": ([[2], [0], [3]], [[1], [0], [1]]),
}
"""Elements, and which of them are stored."""

Function = Callable[[Any, Any], Any]


def _same(name: str, theirs: str | None = None) -> tuple[Function, Function]:
    function = getattr(torch, theirs or name)
    return lambda t, axis: getattr(ow, name)(t, axis=axis), lambda x, dims: function(x, dims)


def _moment(name: str, correction: int) -> tuple[Function, Function]:
    return (
        lambda t, axis: getattr(ow, name)(t, axis=axis, correction=correction),
        lambda x, dims: getattr(torch, name)(x, dims, correction=correction),
    )


def _norm(order: float) -> tuple[Function, Function]:
    return (
        lambda t, axis: ow.linalg.vector_norm(t, axis=axis, ord=order),
        lambda x, dims: torch.linalg.vector_norm(x, order, dims),
    )


def _prod(x: Any, dims: Any) -> Any:
    return x.prod() if isinstance(dims, tuple) else x.prod(dims)


REDUCTIONS: dict[str, tuple[Function, Function]] = {
    **{name: _same(name) for name in ("sum", "mean", "logsumexp", "nansum", "nanmean")},
    **{name: _same(name, f"a{name}") for name in ("max", "min")},
    "prod": (lambda t, axis: ow.prod(t, axis=axis), _prod),
    **{f"{name}, correction {c}": _moment(name, c) for name in ("var", "std") for c in (0, 1)},
    "nanstd": (lambda t, axis: ow.nanstd(t, axis=axis), _moment("std", 0)[1]),
    **{f"norm of order {order}": _norm(order) for order in (2, 1, 3, 1.5, float("inf"), 0)},
}


def _stored(elements: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], format: str) -> Any:
    """A Tensor that stores the elements of a mask, whose gradient is wanted, and the numbers of these elements."""
    places = torch.from_numpy(np.argwhere(mask).T.copy())
    t = ow.sparse_coo_tensor(places, torch.from_numpy(elements[mask]), elements.shape).asformat(format)
    numbers = torch.arange(elements.size, dtype=torch.float64)[torch.from_numpy(mask.ravel())]
    order = ow.sparse_coo_tensor(places, numbers, elements.shape).asformat(format).values
    t.values.requires_grad_()
    return t, order.long().numpy()


def check(reduction: str, operand: str, format: str, axis: int | None) -> None:
    ours, theirs = REDUCTIONS[reduction]
    elements, mask = (np.array(x) for x in OPERANDS[operand])
    if format == "csf":
        elements, mask = (np.stack([x, 0 * x, x[::-1]]) for x in (elements, mask))
    t, numbers = _stored(elements.astype(float), mask.astype(bool), format)
    x = torch.from_numpy(elements.astype(float)).requires_grad_()
    expected = theirs(x, tuple(range(x.ndim)) if axis is None else axis)
    result = ours(t, axis)
    dense = result.to_dense()
    np.testing.assert_allclose(dense.detach(), expected.detach())
    weights = torch.arange(1.0, 1 + expected.numel(), dtype=torch.float64).reshape(expected.shape)
    (expected * weights).sum().backward()
    (dense.reshape(expected.shape) * weights).sum().backward()
    gradient = torch.zeros_like(x) if x.grad is None else x.grad
    np.testing.assert_allclose(t.values.grad, gradient.ravel()[numbers], atol=1e-12)


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("reduction", ["std, correction 0", "prod", "norm of order 2", "norm of order 0"])
def test_gradients_of_fibres_and_rows(reduction: str, operand: str) -> None:
    for format, axis in (("csr", 1), ("csf", 2)):
        check(reduction, operand, format, axis)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csr", "coo", "csc", "csf"])
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_of_all_reductions(reduction: str, operand: str, format: str) -> None:
    for axis in (None, 0, 1, 2)[: 4 if format == "csf" else 3]:
        if "correction 1" in reduction and operand == "one column" and axis == (2 if format == "csf" else 1):
            continue  # one element less one: there is no variance
        check(reduction, operand, format, axis)


def test_quantiles_without_nan() -> None:
    """Fibres of nothing but NaN too: the gradient goes to the element that is taken, and to `q`."""
    x = torch.tensor([[np.nan, np.nan], [1, np.nan], [3, 1], [2, np.nan]], dtype=torch.float64)
    for format, dim, interpolation in (("csr", 1, "linear"), ("coo", 0, "midpoint"), ("dense", None, "linear")):
        results = []
        for t in (ow.asarray(x, format=format), x.clone()):
            leaf = (t.values if isinstance(t, ow.Tensor) else t).requires_grad_()
            q = torch.tensor([0.2, 0.7], dtype=torch.float64, requires_grad=True)
            out = torch.nanquantile(t, q, dim, True, interpolation=interpolation)
            gradients = torch.autograd.grad(out.sum(), [leaf, q], allow_unused=interpolation != "linear")
            results.append((out, gradients[0].reshape(x.shape), gradients[1]))
        torch.testing.assert_close(*results, equal_nan=True)
