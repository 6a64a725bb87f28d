"""What torch's own sparse tensors are known to do wrong: right or refused here, one test for each."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from torch_matrix import compare, make

import openwork as ow

DENSE = torch.tensor([[0.0, 2, 0, 1], [1, 0, 3, 0], [0, 0, 0, 0], [4, 0, 0, 5]], dtype=torch.float64)


def test_csc_times_csc() -> None:
    """torch.sparse.mm multiplies the buffers of columns as if they were rows."""
    t = ow.asarray(DENSE.to_sparse_csc()).requires_grad_()
    dense = DENSE.clone().requires_grad_()
    got = torch.sparse.mm(t, t)
    compare(got, dense @ dense)
    got.sum().backward()
    (dense @ dense).sum().backward()
    compare(t.grad, torch.where(DENSE != 0, dense.grad, 0))


def test_unsorted_csr_times_csr() -> None:
    """Columns out of order in a row."""
    name = "(i, j) -> (i : dense, j : compressed(unordered))"
    pos, crd = torch.tensor([0, 2, 4]), torch.tensor([3, 1, 2, 0])
    t = ow.assemble(name, (2, 4), pos={1: pos}, crd={1: crd}, values=torch.tensor([1.0, 2, 3, 4]))
    compare(t @ t.T, t.to_dense() @ t.to_dense().T)
    compare(t @ ow.asarray(DENSE.float().to_sparse_csr()), t.to_dense() @ DENSE.float())
    with pytest.raises(ow.InvariantError, match=r"5\.6"):
        ow.sparse_csr_tensor(pos, crd, torch.ones(4), (2, 4))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr(2, 2)", "bsc(2, 2)"])
@pytest.mark.parametrize(("batch", "dense"), [(1, 0), (0, 1), (1, 1)])
def test_additions_of_batches_and_hybrids(layout: str, batch: int, dense: int) -> None:
    """torch adds batched and hybrid tensors of different patterns into corrupt ones."""
    rank = 2 + batch + dense
    a = DENSE.reshape((1,) * batch + (4, 4) + (1,) * dense).expand((2,) * batch + (4, 4) + (3,) * dense).contiguous()
    b = a.transpose(batch, batch + 1).contiguous()
    s, t = (ow.asarray(x).asformat(ow.format(layout, rank, batch=batch, dense=dense)) for x in (a, b))
    compare(s + t, a + b)
    compare(s - 2 * t, a - 2 * b)


@pytest.mark.parametrize("dim", [-1, -2, 0, 1])
def test_softmax_backward_of_negative_dimensions(dim: int) -> None:
    case = make("coo", (4, 6))
    held = case.dense.detach() != 0
    torch.softmax(case.tensor, dim)[:, :3].sum().to_dense().backward()
    filled = torch.softmax(case.dense.masked_fill(~held, -torch.inf), dim).nan_to_num(0)
    filled[:, :3].sum().backward()
    compare(case.own_gradient, case.dense_gradient.nan_to_num(0))


def test_broadcast_products_of_coo() -> None:
    """torch multiplies COO tensors of shapes that broadcast as if they had one shape."""
    a, b = DENSE, torch.tensor([[0.0], [2], [0], [3]], dtype=torch.float64)
    s, t, row = (ow.asarray(x.to_sparse()) for x in (a, b, DENSE[1]))
    compare(s * t, a * b)
    compare(s * row, a * DENSE[1])
    compare(t * row, b * DENSE[1])


@pytest.mark.parametrize("column", [4, 1 << 40, -1])
def test_columns_outside(column: int) -> None:
    """torch.sparse_csr_tensor without checks reads beyond its memory when it is used."""
    pos, crd, values = torch.tensor([0, 1, 2]), torch.tensor([0, column]), torch.ones(2)
    with pytest.raises(ow.InvariantError, match=r"5\.[345]"):
        ow.sparse_csr_tensor(pos, crd, values, (2, 4))
    unchecked = torch.sparse_csr_tensor(pos, crd, values, (2, 4), check_invariants=False)
    with pytest.raises(ow.InvariantError, match=r"5\.[345]"):
        ow.asarray(unchecked)


def test_dense_sizes() -> None:
    """The dense dimensions of values are those of the shape."""
    with pytest.raises((ow.InvariantError, ow.ShapeError)):
        ow.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2, 3), (2, 4, 5))
    with pytest.raises((ow.InvariantError, ow.ShapeError)):
        ow.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 3), (2, 5))
    s, t = (ow.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, n), (2, n)) for n in (3, 4))
    with pytest.raises(ow.ShapeError, match="broadcast"):
        s + t


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_what_torch_has_no_kernel_for_is_a_dtype_error(dtype: str) -> None:
    """torch stores these and computes little with them: an operation works, or says what to do."""
    array = np.array([[0, 3, 0], [5, 0, 7]], dtype)
    t = ow.asarray(ow.asarray(array, format="csr"), like="torch")
    with pytest.raises(ow.DTypeError, match=r"sort: torch does not compute with torch.uint[\s\S]*help: astype"):
        ow.sort(t)
    for name in ("sum", "prod", "min", "max", "cumulative_sum", "diagonal", "trace", "sort", "median", "unique_values"):
        function = getattr(ow, name)
        options = {"axis": 1} if name in ("cumulative_sum", "sort") else {}
        with contextlib.suppress(ow.DTypeError):
            np.testing.assert_array_equal(
                function(t, **options).to_numpy(), function(ow.asarray(array), **options).to_numpy()
            )
