"""Tensors in and out of torch: leaves of its own layouts, files, processes, solvers; and what torch itself gets wrong."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.data import DataLoader, Dataset
from torch_matrix import LAYOUTS, check, compare, make, plain

import openwork as ow
import openwork.torch

DENSE = torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 4.0]], dtype=torch.float64)
Y = torch.linspace(1, 2, 8, dtype=torch.float64).reshape(4, 2)


@pytest.mark.parametrize("layout", ["coo", "csr", "uncoalesced"])
def test_a_sparse_torch_tensor_is_a_leaf(layout: str) -> None:
    if layout == "uncoalesced":
        indices = torch.tensor([[0, 1, 0], [2, 0, 2]])
        given = torch.sparse_coo_tensor(indices, torch.ones(3, dtype=torch.float64), (2, 4))
    else:
        given = DENSE.to_sparse(layout=getattr(torch, f"sparse_{layout}"))
    given.requires_grad_()
    (ow.asarray(given) @ Y).sum().backward()
    assert given.grad is not None
    assert given.grad.layout == given.layout
    want = Y.sum(1).expand(2, 4).to_sparse_coo().sparse_mask(given.detach().to_sparse_coo().coalesce())
    times = torch.tensor([[1.0, 1, 2, 1], [1, 1, 1, 1]]) if layout == "uncoalesced" else 1
    torch.testing.assert_close(given.grad.to_dense(), want.to_dense() * times)


@pytest.mark.parametrize("layout", ["csc", "bsc"])
def test_other_layouts_carry_the_graph(layout: str) -> None:
    values = torch.ones(4, dtype=torch.float64, requires_grad=True)
    at = [torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 1, 0, 1])]
    if layout == "csc":
        given = torch.sparse_csc_tensor(*at, values, (2, 4))
    else:
        given = torch.sparse_bsc_tensor(*at, values.reshape(4, 1, 1), (2, 4))
    t = ow.asarray(given)
    assert t.requires_grad
    (t @ Y).sum().backward()
    torch.testing.assert_close(values.grad, Y.sum(1))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.strided])
def test_to_torch_stays_on_the_graph(layout: Any) -> None:
    t = ow.asarray(DENSE.to_sparse_csr()).requires_grad_()
    out = (2 * t).to_torch(layout).to_dense()
    out.sum().backward()
    torch.testing.assert_close(t.grad.values, torch.full((4,), 2.0, dtype=torch.float64))


@pytest.mark.parametrize("spec", ["csr", "coo", "bsr(1, 2)", "dia", "ell(2)", "bitmap"])
def test_copies_and_files(spec: str) -> None:
    t = ow.asarray(DENSE).asformat(spec).requires_grad_()
    held = io.BytesIO()
    torch.save({"t": t}, held)
    held.seek(0)
    loaded = torch.load(held, weights_only=True)["t"]
    for u in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), loaded):
        assert u.format == t.format
        assert u.requires_grad
        assert u.values.data_ptr() != t.values.data_ptr()
        compare(u, DENSE)
    assert t.detach().share_memory_().values.is_shared()


class Rows(Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, at: int) -> ow.Tensor:
        return ow.asarray(DENSE.to_sparse_csr())[at % 2]


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_batches(workers: int) -> None:
    assert openwork.torch.__doc__
    (batch,) = list(DataLoader(Rows(), batch_size=4, num_workers=workers))
    compare(batch, torch.cat([DENSE, DENSE]))
    samples: Any = [ow.masked_tensor(DENSE, k < DENSE) for k in range(3)]
    (masked,) = list(DataLoader(samples, batch_size=3))
    assert masked.get_mask().to_dense().equal(torch.stack([k < DENSE for k in range(3)]))


@pytest.mark.thin(14)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "ragged bsr"])
@pytest.mark.parametrize("columns", [0, 2])
def test_solutions(layout: str, columns: int) -> None:
    spec = LAYOUTS[layout][0]
    generator = torch.Generator().manual_seed(0)
    dense = torch.rand((4, 4), generator=generator, dtype=torch.float64) + 3 * torch.eye(4, dtype=torch.float64)
    t = ow.asarray(dense).asformat(spec)
    b = Y[:, :columns] if columns else Y[:, 0]

    def solve(values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return ow.linalg.solve(t._from_storage(t._storage.with_values(values)), right)

    def triangular(values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return ow.linalg.solve_triangular(t._from_storage(t._storage.with_values(values)), right, lower=False)

    given = (t.values.clone().requires_grad_(), b.clone().requires_grad_())
    torch.testing.assert_close(solve(*given), torch.linalg.solve(dense, b))
    for function in (solve, triangular):
        assert gradcheck(function, given, fast_mode=True)
        assert gradgradcheck(function, given, fast_mode=True)


def test_iterative_solvers_have_the_gradients_of_solve() -> None:
    dense = torch.tensor([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]], dtype=torch.float64)
    weights, found = torch.tensor([1.0, -2, 3], dtype=torch.float64), []
    for function in (ow.linalg.solve, ow.linalg.cg, ow.linalg.gmres):
        t = ow.asarray(dense, format="csr").requires_grad_()
        b = torch.ones(3, dtype=torch.float64, requires_grad=True)
        options = {} if function is ow.linalg.solve else {"rtol": 1e-12}
        x = function(t, b, **options)
        ((x[0] if isinstance(x, tuple) else x) * weights).sum().backward()
        found.append((t.values.grad, b.grad))
    for of_values, of_right in found[1:]:
        torch.testing.assert_close(of_values, found[0][0])
        torch.testing.assert_close(of_right, found[0][1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", ["before", "inside"])
def test_compile_breaks_the_graph_around_openwork(made: str) -> None:
    """In a new process, whose tracer is not loaded yet; it never looks into our functions."""
    make_t = "ow.asarray(torch.eye(4, dtype=torch.float64).to_sparse_csr())"
    script = f"""
import torch, openwork as ow
t = {make_t}.requires_grad_()
x = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)

@torch.compile(backend="eager")
def function(t, x):
    t = {make_t + ".requires_grad_()" if made == "inside" else "t"}
    y = ow.einsum("ij,jk->ik", t * 2 + t, x + 1)
    return (t @ (x + 1)).relu().sum() + y.sum()

function(t, x).backward()
function(t, x)
assert x.grad.unique().tolist() == [4.0], x.grad
from torch._dynamo.utils import counters
assert not any("openwork" in reason for reason in counters["inline_call"])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_csc_times_csc() -> None:
    a = make("csc", (4, 4))
    check(a, lambda t: torch.sparse.mm(t, t), lambda d: d @ d)


def test_unsorted_csr_times_csr() -> None:
    given = torch.sparse_csr_tensor(
        torch.tensor([0, 3, 4]), torch.tensor([3, 0, 1, 2]), torch.tensor([1.0, 2.0, 3.0, 4.0]), (2, 4)
    )
    t = ow.asarray(given)
    compare(t @ t.T, given.to_dense() @ given.to_dense().T)


@pytest.mark.parametrize(
    "spec",
    [
        "(i, j, k) -> (i : compressed(nonunique), j : singleton, k : dense)",
        "(i, j, k) -> (i : dense, j : compressed, k : dense)",
        "(b, i, j) -> (b : batch, i : dense, j : compressed)",
        "(b, i, j) -> (b : batch, j : dense, i : compressed)",
    ],
)
def test_sums_of_hybrid_and_batched_tensors(spec: str) -> None:
    check(make(spec, (2, 4, 6)), lambda t: t + 2 * t, lambda d: d + 2 * d)
    one, other = (make(spec, (2, 4, 6), seed=k).tensor.detach() for k in (0, 1))
    compare(one + other, one.to_dense() + other.to_dense())


def test_coo_products_broadcast() -> None:
    case = make("coo", (4, 6))
    check(case, lambda t: t * t[:1], lambda d: d * d[:1])
    check(make("coo", (4, 6)), lambda t: t * t[:, 1:2], lambda d: d * d[:, 1:2])


def test_out_of_range_columns_are_refused() -> None:
    with pytest.raises(ow.InvariantError, match=r"5\.5"):
        ow.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 9]), torch.tensor([1.0, 2.0]), (2, 4))


def test_dense_sizes_are_checked() -> None:
    t = make("(i, j, k) -> (i : dense, j : compressed, k : dense)", (2, 4, 6)).tensor
    u = make("(i, j, k) -> (i : dense, j : compressed, k : dense)", (2, 4, 5)).tensor
    for function in (lambda: t + u, lambda: torch.cat([t, u], 1), lambda: t.copy_(u)):
        with pytest.raises(ow.ShapeError):
            function()


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_softmax_backward_for_every_dimension(dim: int) -> None:
    case = make("coo", (4, 6))
    t = case.tensor

    def function(values: torch.Tensor) -> torch.Tensor:
        return plain(ow.softmax(t._from_storage(t._storage.with_values(values)), dim))

    assert gradcheck(function, (t.values.detach().requires_grad_(),), fast_mode=True)
    assert gradgradcheck(function, (t.values.detach().requires_grad_(),), fast_mode=True)


def test_coordinates_in_no_order_are_handed_over_as_they_are() -> None:
    indices, values = torch.tensor([[2, 0, 2], [1, 1, 1]]), torch.tensor([1.0, 2.0, 3.0])
    got = ow.sparse_coo_tensor(indices, values, (3, 3)).to_torch()
    assert torch.equal(got._indices(), indices)
    assert got._values().data_ptr() == values.data_ptr()
    for layout in ("csr", "csc", "bsr(2, 2)"):
        t = ow.asarray(torch.eye(4), format=layout)
        assert t.to_torch().values().data_ptr() == t.values.data_ptr(), layout


@pytest.mark.parametrize("function", [ow.nextafter, ow.logaddexp, np.fmax, np.copysign, np.heaviside])
@pytest.mark.parametrize("formats", [("csr", "coo"), ("csr", "dense"), ("dense", "dense")])
@pytest.mark.parametrize("swapped", [False, True])
def test_functions_of_the_array_library_of_operands_of_two_libraries(
    function: Any, formats: Any, swapped: bool
) -> None:
    """The result is torch's, whole and of torch's dtypes."""
    a, b = np.array([[0, 2.0], [1, 0]]), np.array([[1.0, 0], [3, 0]])
    t, u = ow.asarray(ow.asarray(a, format=formats[0]), like="torch"), ow.asarray(b, format=formats[1])
    found = function(u, t) if swapped else function(t, u)
    assert isinstance(found.values, torch.Tensor)
    found.check()
    theirs = {ow.nextafter: np.nextafter, ow.logaddexp: np.logaddexp}.get(function, function)
    np.testing.assert_allclose(found.to_numpy(), theirs(b, a) if swapped else theirs(a, b), rtol=1e-15)
    if function in (ow.nextafter, ow.logaddexp):
        assert function(t.astype("int32"), u.astype("bool")).dtype == torch.float32


@pytest.mark.parametrize(
    ("shape", "format", "block"),
    [
        ((4, 6), "bsr(2, 3)", (2, 3)),
        ((4, 6), "bsr(4, 2)", (4, 2)),
        ((5, 6), "bsr(2, 3)", (1, 1)),
        ((4, 7), "bsr(2, 3)", (1, 1)),
        ((4, 6), "csr", (1, 1)),
    ],
)
def test_blocks_are_kept_where_they_divide_the_extents(
    shape: tuple[int, int], format: str, block: tuple[int, int]
) -> None:
    x = np.where(np.arange(np.prod(shape)).reshape(shape) % 3 == 1, 2.0, 0)
    t = ow.asarray(x, format=format)
    for kind in ("bsr", "bsc"):
        found = t.to_torch(kind)
        assert tuple(found.values().shape[1:]) == block
        np.testing.assert_array_equal(found.to_dense().numpy(), x)
