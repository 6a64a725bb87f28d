"""Sparse gradients of dense parameters, and torch's optimizers on them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import openwork as ow
from openwork.torch import linear, rows_matmul

BAGS = torch.tensor([[3, 0, 3], [7, 9, 0]])
"""Rows of a table that each sample adds up; one twice."""


def bags(format: str = "coo") -> ow.Tensor:
    counts = torch.zeros(2, 12)
    counts.index_put_((torch.arange(2)[:, None].expand(2, 3), BAGS), torch.tensor(1.0), accumulate=True)
    return ow.asarray(counts).asformat(format)


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "bsr(1, 2)", "dcsr"])
def test_the_gradient_has_the_rows_that_are_read(format: str) -> None:
    weight, dense = (torch.linspace(-1, 1, 36).reshape(12, 3).requires_grad_() for _ in range(2))
    bias = torch.ones(3, requires_grad=True)
    t = bags(format).requires_grad_()
    u = t.to_dense().detach().requires_grad_()
    linear(t, weight, bias).square().sum().backward()
    (u @ dense + 1).square().sum().backward()
    assert weight.grad is not None
    assert weight.grad.layout == torch.sparse_coo
    if format != "bsr(1, 2)":
        assert weight.grad.coalesce().indices()[0].tolist() == [0, 3, 7, 9]
    torch.testing.assert_close(weight.grad.to_dense(), dense.grad)
    torch.testing.assert_close(bias.grad, 2 * (u @ dense + 1).sum(0).detach())
    specified = ow.sparse_mask(u.grad, t.detach())
    torch.testing.assert_close(t.grad.to_dense(), specified.to_dense())


OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.SparseAdam(p, 0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_on_torchs_own_sparse_gradients(name: str) -> None:
    mine, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 36).reshape(12, 3)) for _ in range(2))
    first, second = OPTIMIZERS[name]([mine]), OPTIMIZERS[name]([theirs])
    for step in range(5):
        t = bags()[step % 2 :]
        first.zero_grad()
        second.zero_grad()
        rows_matmul(t, mine).square().sum().backward()
        F.embedding_bag(BAGS[step % 2 :], theirs, mode="sum", sparse=True).square().sum().backward()
        first.step()
        second.step()
        torch.testing.assert_close(mine, theirs)


def test_second_gradients_are_those_of_the_product() -> None:
    found = []
    for multiply in (rows_matmul, lambda t, w: t @ w):
        t = ow.asarray(torch.linspace(-1, 1, 48).double().reshape(4, 12), format="csr").requires_grad_()
        weight = torch.linspace(0, 2, 36).double().reshape(12, 3).requires_grad_()
        by_values, by_weight = torch.autograd.grad(
            multiply(t, weight).square().sum(), (t.values, weight), create_graph=True
        )
        again = torch.autograd.grad(by_values.square().sum() + by_weight.to_dense().square().sum(), (t.values, weight))
        found.append([x.to_dense() for x in again])
    torch.testing.assert_close(*found)


def test_values_of_a_sparse_tensor_train_with_any_optimizer() -> None:
    t = ow.asarray(torch.eye(4).to_sparse_csr()).requires_grad_()
    optimizer = torch.optim.AdamW([t.values], 0.1)
    x, y = torch.ones(4, 1), torch.arange(4.0)[:, None]
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (t @ x - y).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


def test_refusals() -> None:
    with pytest.raises(ow.ShapeError, match="rows_matmul: shapes"):
        rows_matmul(bags(), torch.ones(3, 3))
    with pytest.raises(ow.UnsupportedError, match="all rows are read"):
        rows_matmul(bags() + 1, torch.ones(12, 3))
