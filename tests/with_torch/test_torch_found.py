"""Faults that torch's sample inputs found, one test each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_matrix import LAYOUTS, compare, make, plain

import openwork as ow


@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.minimum, torch.rsub])
def test_a_recorded_number_gets_its_whole_gradient(function: object) -> None:
    case = make("csr", (4, 6))
    mine, theirs = (torch.tensor(0.5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    got, want = function(case.tensor, mine), function(case.dense, theirs)  # type: ignore[operator]
    compare(got, want)
    plain(got).sum().backward()
    want.sum().backward()
    assert mine.grad == theirs.grad


def test_a_recorded_factor_keeps_the_result_sparse() -> None:
    factor = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    got = make("csr", (4, 6)).tensor * factor
    assert got.format == ow.format("csr")
    got.sum().backward()
    assert factor.grad is not None


def test_parts_of_an_element_are_rounded_together() -> None:
    where = torch.tensor([[0, 0, 1], [1, 1, 0]])
    t = ow.sparse_coo_tensor(where, torch.tensor([1.5, 1.5, 0.5]), (2, 2), is_coalesced=False)
    assert t.astype(torch.int64).to_dense().tolist() == [[0, 3], [0, 0]]
    t = ow.sparse_coo_tensor(where, torch.tensor([1.5, -1.5, 0.5]), (2, 2), is_coalesced=False)
    assert t.astype(torch.bool).to_dense().tolist() == [[False, False], [True, False]]


def test_the_place_of_the_largest_of_all_has_no_dimensions() -> None:
    t = make("csr", (4, 6)).tensor.detach()
    assert torch.argmax(t).to_dense() == t.to_dense().argmax()
    assert ow.argmax(t).shape == torch.argmax(t).shape == ()
    assert torch.argmax(t, keepdim=True).shape == (1, 1)


@pytest.mark.parametrize("layout", ["uncoalesced coo", "csr"])
def test_diagonals_of_einsum_with_elements_stored_twice(layout: str) -> None:
    case = make(LAYOUTS[layout][0], (4, 4))
    torch.einsum("ii->i", case.tensor).sum().to_dense().backward()
    torch.einsum("ii->i", case.dense).sum().backward()
    compare(case.own_gradient, case.dense_gradient)


def test_zeros_without_memory() -> None:
    """Derivatives of torch's are zeros that have no memory: kernels read what they stand for."""
    zeros = torch._efficientzerotensor((4, 6), dtype=torch.float64)
    t = make("csr", (4, 6)).tensor.detach()
    compare(t + zeros, t.to_dense())
    compare(ow.sparse_mask(zeros, t), 0 * t.to_dense())
    compare(t @ torch._efficientzerotensor((6,), dtype=torch.float64), t.to_dense()[:, 0] * 0)
    with pytest.raises(ow.UnsupportedError, match=r"operands on cpu and meta\n.*with memory\n  help"):
        t @ torch.empty(6, device="meta", dtype=torch.float64)


def test_shared_memory_is_a_copy() -> None:
    """Kernels know buffers by address: those of other tensors stay where they are."""
    t = make("csr", (4, 6)).tensor.detach()
    want = (t * t.to_sparse_coo()).to_dense()
    shared = t.detach().share_memory_()
    assert shared.is_shared()
    assert not t.is_shared()
    compare(t * t.to_sparse_coo(), want)
    leaf = make("csr", (4, 6)).tensor
    values = leaf.values
    assert leaf.share_memory_().values is values
    assert leaf.is_shared()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_products_of_other_reductions_in_every_dtype(dtype: torch.dtype) -> None:
    t = ow.asarray(torch.tensor([[0, 2, 0], [1, 0, 3], [0, 0, 0]], dtype=dtype).to_sparse_csr())
    x = torch.tensor([[1, -2], [3, 4], [-5, 6]], dtype=dtype)
    assert torch.sparse.mm(t, x, "amax").tolist() == [[6, 8], [1, 18], [0, 0]]
    assert torch.sparse.mm(t, x, "amin").tolist() == [[6, 8], [-15, -2], [0, 0]]
    assert torch.sparse.mm(t, x, "mean").tolist() == [[6, 8], [-7, 8], [0, 0]]
    if dtype == torch.int64:
        assert torch.sparse.mm(t, x + 2**40, "amax").tolist()[0] == [2 * (2**40 + 3), 2 * (2**40 + 4)]


def test_whole_numbers_and_halves() -> None:
    whole = torch.tensor([[0, 2, 0], [1, 0, 3]])
    t = ow.asarray(whole.to_sparse())
    compare(torch.logsumexp(t, 1), torch.logsumexp(whole, 1), 1e-6)
    compare(
        torch.addmm(whole[:, :2], t, whole.T, beta=0.6, alpha=2),
        torch.addmm(whole[:, :2], whole, whole.T, beta=0, alpha=2),
    )
    compare(torch.cov(t), torch.cov(whole), 1e-6)
    index = torch.tensor([[0], [2]])
    compare(torch.scatter_add(t, 1, ow.asarray(index), whole[:, 1:2]), whole.scatter_add(1, index, whole[:, 1:2]))
    large = 300 * whole.half()
    compare(torch.linalg.norm(ow.asarray(large.to_sparse())), torch.linalg.norm(large), 1e-3)
    normed = torch.nn.functional.rms_norm(ow.asarray(large.to_sparse()), (3,))
    compare(normed, torch.nn.functional.rms_norm(large, (3,)), 1e-3)
    weights = torch.tensor([1, 2, 1])
    compare(torch.cov(t.double(), fweights=weights), torch.cov(whole.double(), fweights=weights), 1e-9)
    compare(torch.cov(t.to(torch.complex128)), torch.cov(whole.to(torch.complex128)), 1e-9)


@pytest.mark.ci
def test_operands_of_few_elements() -> None:
    one, row = torch.tensor(5.0), torch.tensor([[1.0, -2.0, 3.0]])
    for index in (torch.tensor(0), torch.tensor([0]), torch.tensor([0, 0, 0])):
        compare(torch.gather(ow.asarray(one), 0, index), torch.gather(one, 0, index))
    for slope in (torch.tensor([0.25]), torch.tensor([0.25, 0.5, 1.0])):
        compare(torch.nn.functional.prelu(row, ow.asarray(slope)), torch.nn.functional.prelu(row, slope))
        compare(torch.nn.functional.prelu(ow.asarray(row), slope), torch.nn.functional.prelu(row, slope))


def test_sums_of_uint8_are_int64_as_torch_has_them() -> None:
    x = torch.tensor([[200, 0, 100], [0, 0, 255]], dtype=torch.uint8)
    t = ow.asarray(x, format="csr")
    for found, want in (
        (t.sum(), x.sum()),
        (t.sum(axis=0), x.sum(0)),
        (t.prod(axis=1), x.prod(1)),
        (torch.trace(t), x.trace()),
    ):
        assert found.to_dense().dtype == want.dtype
        assert torch.equal(found.to_dense(), want)


def test_masked_elements_of_another_fill_value_have_its_gradient() -> None:
    x = torch.tensor([[0.5, 2.0, 0.5], [3.0, 0.5, 4.0]], dtype=torch.float64)
    t = ow.asarray(x, format="csr", fill_value=0.5).requires_grad_()
    mask = ow.asarray(np.array([[1, 1, 0], [0, 1, 1.0]]), format="coo")
    found = ow.sparse_mask(t, mask)
    torch.testing.assert_close(found.values, torch.tensor([0.5, 2.0, 0.5, 4.0], dtype=torch.float64))
    assert found.fill_value == 0.5
    (found.values * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert t.grad.values.tolist() == [2.0, 0.0, 4.0]


@pytest.mark.parametrize("fill", [1.0, -0.0, float("nan")])
def test_recorded_tensors_of_one_fill_value_are_joined(fill: float) -> None:
    x = torch.tensor([[fill, 2.0], [3.0, fill]], dtype=torch.float64)
    a, b = (ow.asarray(x * k, format="csr", fill_value=fill).requires_grad_() for k in (1, 1))
    plain_a, plain_b = (ow.asarray(x.numpy(), format="csr", fill_value=fill) for _ in range(2))
    for join in (ow.concat, ow.stack):
        found, want = join([a, b]), join([plain_a, plain_b])
        assert found.requires_grad
        np.testing.assert_array_equal(found.detach().to_numpy(), want.to_numpy())
        assert np.array_equal(np.signbit(found.detach().to_numpy()), np.signbit(want.to_numpy()))
    (found.values * 3).sum().backward()
    assert a.grad.values.tolist() == b.grad.values.tolist() == [3.0, 3.0]


def test_fill_values_of_recorded_tensors_that_differ_are_named() -> None:
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    a, b = (ow.asarray(x, format="csr", fill_value=fill).requires_grad_() for fill in (1.0, 2.0))
    with pytest.raises(ow.UnsupportedError, match=r"fill values 1.0 and 2.0 differ"):
        ow.concat([a, b])


@pytest.mark.parametrize("format", ["dense", "csc", "bsr(1, 2)", "dcsr"])
def test_recorded_conversions_keep_the_sign_of_a_zero_fill_value(format: str) -> None:
    x = torch.tensor([[-0.0, 1.0], [2.0, -0.0]], dtype=torch.float64)
    t = ow.asarray(x, format="csr", fill_value=-0.0).requires_grad_()
    found = t.asformat(format).detach().to_numpy()
    assert np.signbit(found).tolist() == [[True, False], [False, True]]
    assert ow.divide(ow.asarray(torch.ones_like(x)), t).detach().to_numpy()[0, 0] == -np.inf
