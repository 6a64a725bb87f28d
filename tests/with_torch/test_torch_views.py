"""Gradients of dense operands that are views, and by gradients that are: those of the same elements, packed."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from view_cases import CUBES, MATRICES, elements, sparse  # noqa: E402
from views import REPEATED, TORCH_LAYOUTS, torch_view  # noqa: E402

import openwork as ow  # noqa: E402

RECORDED = (
    "A @ X", "X @ A", "addmm", "vecdot", "tensordot", "mttkrp", "sddmm", "sddmm of X, X.T", "einsum ij,j->ij", "einsum ij,ik,jk->ij",
    "einsum ij,ik,jk->", "evaluate a product", "evaluate a merge", "A * Y", "Y - A", "A / v[:, None]", "clip", "where", "sparse_mask", "at", "asarray",
    "lazy sum", "fused sddmm", "fused merge",
)  # fmt: skip
WAYS = (*TORCH_LAYOUTS, *REPEATED)


def gradients(case: Any, t: ow.Tensor, operands: list[Any], how: str | None) -> list[Any]:
    """Gradients of the stored values and of the operands, of a sum with weights that lie as the operands do."""
    ours, _, _ = case
    values = t.values.detach().clone().requires_grad_()
    found = ours(t.with_values(values), *operands)
    found = found.to_dense() if isinstance(found, ow.Tensor) else found
    weights = torch.linspace(0.5, 2, found.numel(), dtype=torch.float64).reshape(found.shape)
    whole = torch_view(weights, how) if how in TORCH_LAYOUTS else weights
    return list(torch.autograd.grad(found, (values, *operands), whole, allow_unused=True))


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "csf"])
def test_gradients(spec: str, step: int) -> None:
    """By default a third of the layouts for each operation, others for the next."""
    cases = CUBES if spec == "csf" else {name: MATRICES[name] for name in RECORDED}
    t = sparse(spec, 3 if spec == "csf" else 2, "torch")
    for at, (name, case) in enumerate(cases.items()):
        for how in (WAYS if spec == "csr" else WAYS[::3])[at % step :: step]:
            views = [torch_view(torch.from_numpy(elements(s)), how) for s in case[2]]
            packed = [x.detach().clone(memory_format=torch.contiguous_format).requires_grad_() for x in views]
            views = [x.detach().requires_grad_() for x in views]
            want = gradients(case, t, packed, None)
            for _ in range(2):
                for got, expected in zip(gradients(case, t, views, how), want, strict=True):
                    message = lambda text, which=f"{name}, {how}": f"{which}: {text}"  # noqa: E731
                    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11, msg=message)
