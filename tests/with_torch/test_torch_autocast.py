"""Products under torch.autocast: the dtypes of torch's dense products, values near those of float32, gradients in the parameter's dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import openwork as ow

D = torch.eye(4) + torch.eye(4).roll(1, 1) * 0.5
X = torch.arange(8.0).reshape(4, 2) / 8

CALLS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "A @ x": lambda a, x: a @ x,
    "x @ A": lambda a, x: x.mT @ a,
    "A @ vector": lambda a, x: a @ x[:, 0],
    "A @ A": lambda a, x: a @ a,
    "mm": lambda a, x: torch.mm(a, x),
    "mv": lambda a, x: torch.mv(a, x[:, 0]),
    "addmm": lambda a, x: torch.addmm(x, a, x),
    "linear": lambda a, x: F.linear(x.mT, a),
    "einsum": lambda a, x: torch.einsum("ij,jk->ik", a, x),
    "multi_dot": lambda a, x: torch.linalg.multi_dot([a, x, x.mT]),
    "dot": lambda a, x: torch.dot(a[0], x[:, 0]),
    "add": lambda a, x: torch.add(a, a),
    "sum": lambda a, x: torch.sum(a, 0),
    "sin": lambda a, x: torch.sin(a),
    "float64": lambda a, x: a.to(torch.float64) @ x.double(),
}


def dense(y: Any) -> torch.Tensor:
    return y.to_dense() if isinstance(y, ow.Tensor) else y


@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_gradients_are_torchs(name: str) -> None:
    a, b = D.clone().requires_grad_(), ow.asarray(D.to_sparse_csr()).requires_grad_()
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    plain = CALLS[name](D, X)
    with torch.autocast("cpu", torch.bfloat16):
        want, got = CALLS[name](a, x), dense(CALLS[name](b, y))
        assert (CALLS[name](b.detach(), X)).dtype == want.dtype
    assert got.dtype == want.dtype
    torch.testing.assert_close(got.to(plain.dtype), plain, rtol=0.02, atol=0.02)
    want.float().sum().backward()
    got.float().sum().backward()
    assert b.grad.dtype == torch.float32
    torch.testing.assert_close(b.grad.to_dense(), torch.where(D != 0, a.grad, 0), rtol=0.02, atol=0.02)
    if x.grad is not None:
        assert y.grad.dtype == torch.float32
        torch.testing.assert_close(y.grad, x.grad, rtol=0.02, atol=0.02)


def test_what_autocast_leaves_alone() -> None:
    a = ow.asarray(D.to_sparse_csr())
    n = ow.asarray(D.numpy(), format="csr")
    assert (a @ X).dtype == torch.float32  # a prepared call for what follows
    with torch.autocast("cpu", torch.bfloat16):
        assert (n @ X.numpy()).dtype == "float32"
        assert (a.astype(torch.int64) @ X.long()).dtype == torch.int64
        assert ow.matmul(a, X).dtype == torch.float32
        with torch.autocast("cpu", enabled=False):
            assert (a @ X).dtype == torch.float32
        assert (a @ X).dtype == torch.bfloat16
    assert (a @ X).dtype == torch.float32
