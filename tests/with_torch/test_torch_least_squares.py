"""Gradients of least-squares solutions by QR: those of torch's dense ones, once and twice, by all of matrix and sides."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import openwork as ow
from openwork import linalg
from openwork.errors import UnsupportedError


@pytest.mark.ci
@pytest.mark.thin(39)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_gradients(shape: tuple[int, int], trans: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(5)
    A = sp.coo_array(sp.csr_array(sp.random_array(shape, density=0.3, rng=rng) + 2 * sp.eye_array(*shape)))
    index = torch.from_numpy(np.stack(A.coords))
    values = torch.from_numpy(A.data).to(dtype)
    if dtype.is_complex:
        values = values + 1j * torch.from_numpy(rng.standard_normal(A.nnz))
    values.requires_grad_()
    rows = shape[0] if trans == "N" else shape[1]
    pattern = ow.asarray(torch.sparse_coo_tensor(index, values.detach(), shape).coalesce(), format="csr")
    for sides in ((), (2,))[: 2 if trans == "N" else 1]:
        b = torch.from_numpy(rng.standard_normal((rows, *sides))).to(dtype).requires_grad_()

        def solution(v: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return linalg.factorized(ow.with_values(pattern, v), "qr").solve(b, trans)

        found, want = solution(values, b), torch.linalg.pinv(_dense(index, values, shape, trans)) @ b
        assert torch.allclose(found, want)
        assert torch.autograd.gradcheck(solution, (values, b))
        assert torch.autograd.gradgradcheck(solution, (values, b))


def _dense(index: torch.Tensor, values: torch.Tensor, shape: tuple[int, int], trans: str) -> torch.Tensor:
    d = torch.zeros(shape, dtype=values.dtype).index_put(tuple(index), values)
    return d if trans == "N" else d.T if trans == "T" else d.mH


def test_factors_are_those_of_their_time_and_of_full_rank() -> None:
    A = np.eye(4, 2) + np.eye(4, 2, -1)
    t = ow.asarray(torch.tensor(A), format="csr").requires_grad_()
    F = linalg.factorized(t, "qr")
    b = torch.arange(4.0, dtype=torch.float64, requires_grad=True)
    x = F(b)
    F.update(ow.asarray(torch.tensor(2 * A), format="csr"))
    (grad,) = torch.autograd.grad(x.sum(), b)
    assert torch.allclose(grad, torch.linalg.pinv(torch.tensor(A)).sum(0))
    A[:, 1] = 0
    A[0, 1] = 1e-30
    F = linalg.factorized(ow.asarray(torch.tensor(A), format="csr"), "qr")
    with pytest.raises(UnsupportedError, match="of lower rank"):
        F(b)
    assert F(b.detach())[1] == 0
