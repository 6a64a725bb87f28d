"""Results that torch records may be changed in place, as torch's own, whatever their layout in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import openwork as ow

DENSE = torch.where(torch.rand(12, 18, generator=torch.Generator().manual_seed(0)) < 0.3, 2.0, 0.0).double()
CASES: dict[str, tuple[Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], torch.Tensor]]] = {
    "A @ X": (lambda A, X, Y: A @ X, lambda A, X, Y: A @ X),
    "Y @ A": (lambda A, X, Y: Y @ A, lambda A, X, Y: Y @ A),
    "X.T @ A.T": (lambda A, X, Y: X.T @ A.T, lambda A, X, Y: X.T @ A.T),
    "einsum, transposed": (lambda A, X, Y: ow.einsum("ij,jk->ki", A, X), lambda A, X, Y: (A @ X).T),
    "A @ A.T": (
        lambda A, X, Y: (A @ A.T).values,
        lambda A, X, Y: (A @ A.T)[(A != 0).double() @ (A != 0).double().T > 0],
    ),
    "A * 3": (lambda A, X, Y: (A * 3).values, lambda A, X, Y: (A * 3)[A != 0]),
    "sum": (lambda A, X, Y: A.sum(1).to_dense(), lambda A, X, Y: A.sum(1)),
}


@pytest.mark.thin(12)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("format", ["csr", "coo", "dcsr"])
def test_recorded_results_are_changed_in_place(case: str, format: str) -> None:
    ours, theirs = CASES[case]
    gradients = []
    for function in (ours, theirs):
        X, Y = (
            torch.linspace(0, 1, 12 * n, dtype=torch.float64).reshape(s).requires_grad_()
            for n, s in ((9, (18, 6)), (4, (4, 12)))
        )
        leaf = DENSE.clone().requires_grad_()
        A: Any = leaf if function is theirs else ow.asarray(leaf, format=format)
        for _ in range(3):
            y = function(A, X, Y)
            y.add_(1)
            y.mul_(2)
        found = (y * torch.arange(y.numel()).reshape(y.shape)).sum()
        gradients.append(torch.autograd.grad(found, [leaf, X, Y], allow_unused=True, materialize_grads=True))
    gradients[1] = (gradients[1][0] * (DENSE != 0), *gradients[1][1:])  # a sparse tensor has one at its elements
    for a, b in zip(*gradients, strict=True):
        assert torch.allclose(torch.as_tensor(a), b)
