"""torch's functions with arguments that are rarely given: ranks 0, NaN, nothing, reflected operators; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from raised import check_raised

import openwork as ow

DENSE = torch.linspace(-0.5, 1.0, 20, dtype=torch.float64).reshape(4, 5) * (torch.arange(20).reshape(4, 5) % 3 > 0)
OTHER = torch.linspace(1.0, 2.0, 20, dtype=torch.float64).reshape(4, 5)
CUBE = torch.stack([DENSE, 2 * DENSE, -DENSE])
AT, THREE = torch.tensor([0]), torch.tensor(3.0)
A = ow.asarray(DENSE, format="csr")
HUGE = ow.sparse_coo_tensor(torch.tensor([[5, 7], [9, 2**40 - 1]]), torch.tensor([1.0, 2.0]), (2**40, 2**40))

CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "rsub": (lambda a: OTHER.__rsub__(a), (DENSE,)),
    "rpow": (lambda a: OTHER.__rpow__(a.abs()), (DENSE,)),
    "rfloordiv": (lambda a: OTHER.__rfloordiv__(a), (DENSE,)),
    "matrix norms": (lambda a: [torch.linalg.matrix_norm(a, p) for p in ("fro", 1, -1, torch.inf, -torch.inf)], (DENSE,)),
    "matrix norms of a stack": (lambda a: [torch.linalg.matrix_norm(a), torch.linalg.matrix_norm(a, 1)], (CUBE,)),
    "put": (lambda a: torch.put(a, torch.tensor([0, 3, 7]), OTHER[0, :3]), (DENSE,)),
    "put added": (lambda a: torch.put(a, torch.tensor([0, 3, 0]), OTHER[0, :3], True), (DENSE,)),
    "broadcast": (lambda a, b: torch.broadcast_tensors(a, b, OTHER), (DENSE, DENSE[:1])),
    "meshgrid": (lambda a, b: torch.meshgrid([a, b], indexing="xy"), (DENSE[0], DENSE[1])),
    "one vector's product": (lambda a: torch.cartesian_prod(a), (DENSE[0],)),
    "block_diag": (lambda a, b: torch.block_diag(a, b, OTHER), (DENSE, DENSE[:1])),
    "index_fill of rank 0": (lambda a: torch.index_fill(a, 0, AT, 2.0), (THREE,)),
    "index_add of rank 0": (lambda a: torch.index_add(a, 0, AT, torch.tensor(2.0)), (THREE,)),
    "index_select of rank 0": (lambda a: a.index_select(0, AT), (THREE,)),  # torch_geometric replaces the function
    "index_reduce of nothing": (
        lambda a: torch.index_reduce(a, 0, AT[:0], OTHER[:0], "mean"), (DENSE,)
    ),
    "medians of nothing": (lambda a: [torch.median(a), torch.nanmedian(a)], (torch.empty(0),)),
    "median of NaN of rank 0": (lambda a: torch.nanmedian(a, 0), (torch.tensor(torch.nan),)),
    "masked_select of a dense one": (lambda m: torch.masked_select(OTHER, m), (DENSE > 0,)),
    "fill": (lambda a: torch.fill(a, 2.0), (DENSE,)),
    "histc": (
        lambda a: [torch.histc(a), torch.histc(a, 4), torch.histc(a, 3, -1, 2), torch.histc(a[:0], 2)], (DENSE,)
    ),
    "rot90": (lambda a: [torch.rot90(a, 1, [1, 0]), torch.rot90(a, 3), torch.rot90(a, -1, [0, -1])], (DENSE,)),
    "rank 0, dimensions kept": (lambda a: [f(a, 0, True) for f in (torch.sum, torch.mean, torch.prod)], (THREE,)),
    "atleast of several": (lambda a, b: [*torch.atleast_2d(a, b), *torch.atleast_3d([a, b])], (DENSE[0], DENSE)),
    "diagonal_scatter": (lambda a, b: torch.diagonal_scatter(a, b, 1), (DENSE, DENSE[0, :4])),
    "losses, as they were once reduced": (
        lambda a: [torch.nn.functional.nll_loss(a, torch.tensor([0, 4, 1, 2]), **{k: v})
                   for k in ("reduce", "size_average") for v in (False, True)],
        (DENSE,),
    ),
    "out of ours": (lambda a: torch.amax(a, 1, out=ow.asarray(torch.zeros(4).double())), (DENSE,)),
    "squares of float16": (lambda a: torch.norm(a), (DENSE.half() * 300,)),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_arguments_that_are_rarely_given(layout: str) -> None:
    for name, (function, given) in CASES.items():
        tensors = [ow.asarray(x, format=layout if x.ndim == 2 else "coo" if x.ndim else "dense") for x in given]
        got, want = function(*tensors), function(*given)
        pairs = zip(got, want, strict=True) if isinstance(want, list | tuple) else [(got, want)]
        for g, w in pairs:
            g, w = (x.to_dense() if isinstance(x, ow.Tensor) else x for x in (g, w))
            torch.testing.assert_close(g, w, equal_nan=True, msg=lambda m, name=name: f"{name}: {m}")


REFUSED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "topk: k=9 of an extent of 5": (ow.ShapeError, lambda: torch.topk(A, 9)),
    "kthvalue: k=0 of an extent of 5": (ow.ShapeError, lambda: torch.kthvalue(A, 0)),
    "kthvalue: k=9 of an extent of 5": (ow.ShapeError, lambda: torch.kthvalue(A, 9)),
    "quantile of NaN": (ow.UnsupportedError, lambda: torch.quantile(ow.asarray(torch.tensor([1.0, torch.nan])), 0.5)),
    "searchsorted: in several fibres": (ow.UnsupportedError, lambda: torch.searchsorted(A, THREE)),
    "norm: 'nuc' needs all": (ow.UnsupportedError, lambda: torch.norm(A, "nuc")),
    "matrix_norm: 2 needs all": (ow.UnsupportedError, lambda: torch.linalg.matrix_norm(A, 2)),
    "matrix_norm: dimensions (1, 1)": (ow.ShapeError, lambda: torch.linalg.matrix_norm(A, 1, dim=(1, 1))),
    "glu: extent 5 of dimension 1 is odd": (ow.ShapeError, lambda: torch.nn.functional.glu(A, 1)),
    "rms_norm of complex numbers": (
        ow.UnsupportedError, lambda: torch.nn.functional.rms_norm(A.astype(torch.complex128), (5,))
    ),
    "mm: reduce='prod' of Tensor and Tensor": (ow.UnsupportedError, lambda: torch.sparse.mm(A, OTHER.T, "prod")),
    "mm: shapes (4, 5) and (4, 5)": (ow.ShapeError, lambda: torch.sparse.mm(A, OTHER, "amax")),
    "mm: amax of complex numbers": (
        ow.UnsupportedError, lambda: torch.sparse.mm(A.astype(torch.complex128), OTHER.T, "amax")
    ),
    "repeat: 1 numbers for 2 dimensions": (ow.ShapeError, lambda: A.repeat(2)),
    "pad: mode 'odd'": (ow.UnsupportedError, lambda: torch.nn.functional.pad(A[None], (1, 1), mode="odd")),
    "embedding: padding_idx, max_norm": (
        ow.UnsupportedError, lambda: torch.nn.functional.embedding(AT, A, max_norm=1.0)
    ),
    "index: axis 1 is out of bounds": (IndexError, lambda: torch.index_fill(ow.asarray(THREE), 1, AT, 2.0)),
    "vmap: out_dims=(0, 0)": (ValueError, lambda: ow.torch.func.vmap(lambda x: x, out_dims=(0, 0))(ow.asarray(CUBE, format="coo"))),
    "index_put: values of shape (1, 2, 5)": (
        ow.ShapeError, lambda: torch.index_put(A, (torch.tensor([0, 1]),), OTHER[None, :2])
    ),
    "flatten: from dimension 1 to 0": (ow.ShapeError, lambda: torch.flatten(A, 1, 0)),
    "norm: 'fro' of vectors": (ow.UnsupportedError, lambda: torch.linalg.norm(A[0], "fro")),
    "norm: 1 of a tensor of shape (3, 4, 5)": (
        ow.ShapeError, lambda: torch.linalg.norm(ow.asarray(CUBE, format="coo"), 1)
    ),
    "cov: a weight of -1": (ValueError, lambda: torch.cov(A, fweights=torch.tensor([1, -1, 1, 1, 1]))),
    "out= has shape (4,)": (ow.ShapeError, lambda: torch.amax(A, 0, out=ow.asarray(torch.ones(4, dtype=torch.float64)))),
    "linear: a weight of shape (3, 4, 5)": (
        ow.ShapeError, lambda: torch.nn.functional.linear(OTHER, ow.asarray(CUBE, format="coo"))
    ),
    "solve of a dense matrix with a Tensor": (
        ow.UnsupportedError, lambda: torch.linalg.solve(torch.eye(4).double(), A.detach().requires_grad_())
    ),
    "solve_triangular of a dense matrix": (
        ow.UnsupportedError, lambda: ow.linalg.solve_triangular(torch.eye(4).double().requires_grad_(), A)
    ),
    "scatter: an index of shape (1,) and": (ow.ShapeError, lambda: torch.scatter(A, 0, AT, OTHER)),
    "jvp: a gradient of type tuple": (ow.UnsupportedError, lambda: ow.torch.func.jvp(lambda x: x * 2, (A,), ((A, A),))),
    "params argument given to the optimizer": (TypeError, lambda: ow.torch.optim.SGD(THREE, lr=0.1)),
    "a product over a semiring, of extents too large": (
        ow.UnsupportedError, lambda: ow.einsum("ij,kj->ik", HUGE.requires_grad_(), HUGE, semiring="min_plus")
    ),
    "out min= T0[i, j] has no gradient: it reduces by min=": (
        ow.UnsupportedError,
        lambda: ow.einsum("ij,kl->k", A.detach().requires_grad_(), A, semiring="min_plus"),
    ),
}  # fmt: skip


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    check_raised(REFUSED[message], message)


def test_a_recorded_value_to_fill_with() -> None:
    value = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    filled = torch.fill(A, value)
    assert torch.equal(filled.to_dense(), torch.full((4, 5), 2.0, dtype=torch.float64))
    assert torch.autograd.grad(filled.to_dense().sum(), value)[0] == 20


def test_random_numbers_of_a_vmap() -> None:
    """The same for every item, or others."""
    ones = ow.asarray(torch.ones(3, 4, 5), format="coo")
    torch.manual_seed(0)
    same = ow.torch.func.vmap(lambda a: a * torch.rand(1), randomness="same")(ones).to_dense()
    different = ow.torch.func.vmap(lambda a: a * torch.rand(1), randomness="different")(ones).to_dense()
    assert (same == same[0, 0, 0]).all()
    assert len(different.unique()) == 3


def test_dense_gradients_of_every_layout() -> None:
    """`grad="dense"` of torch's sparse tensors gives each a gradient of its own layout, also in stacks and of blocks."""
    for obj in (
        DENSE.to_sparse(), DENSE.to_sparse_csr(), DENSE.to_sparse_csc(), OTHER.to_sparse_bsr((2, 5)),
        OTHER.to_sparse_bsc((4, 1)), CUBE[..., None].to_sparse(2), torch.stack([OTHER, OTHER]).to_sparse_csr(),
        torch.stack([OTHER, OTHER]).to_sparse_bsr((2, 5)), OTHER[..., None].to_sparse_csr(dense_dim=1),
        OTHER[..., None].expand(4, 5, 3).to_sparse_bsr((2, 5), dense_dim=1),
    ):  # fmt: skip
        leaf = obj.detach().requires_grad_()
        (grad,) = torch.autograd.grad((ow.asarray(leaf, grad="dense") * 2).sum().to_dense(), leaf)
        assert grad.layout == obj.layout
        torch.testing.assert_close(grad.to_dense(), torch.full(obj.shape, 2.0, dtype=torch.float64))
    assert type(ow.asarray(np.eye(3), grad="dense")) is ow.Tensor  # nothing records over NumPy's buffers
    t = ow.asarray(DENSE, format="csr", grad="dense")
    t.requires_grad = True
    assert t.grad_fn is None
    assert t.output_nr == 0
    seen: list[Any] = []
    t.register_post_accumulate_grad_hook(seen.append)
    (t * 3).sum().to_dense().backward()
    assert seen == [t]
    assert (t * 3).grad_fn is not None
    t.requires_grad = False
    assert not t.requires_grad


def test_values_of_another_fill_value_are_set() -> None:
    a = A.detach().requires_grad_()
    row = torch.tensor([1.0, 7, 2, 7, 3], dtype=torch.float64)
    b, source = a * 1, ow.asarray(row, format="coo", fill_value=7.0).requires_grad_()
    b[1] = source
    assert torch.equal(b.to_dense()[1], row)
    of_a, of_source = torch.autograd.grad((b.to_dense() * OTHER).sum(), (a.values, source.values))
    torch.testing.assert_close(of_source, OTHER[1, [0, 2, 4]])
    want = OTHER.clone()
    want[1] = 0
    got = A._from_storage(A._storage.with_values(of_a)).to_dense()
    torch.testing.assert_close(torch.where(DENSE == 0, 0, got), torch.where(DENSE == 0, 0, want))
    c, leaf = ow.asarray(DENSE.numpy().copy(), format="csr"), row.clone().requires_grad_()
    c[1] = leaf * 3  # over NumPy's buffers
    torch.testing.assert_close(torch.autograd.grad(c.to_dense().sum(), leaf)[0], torch.full((5,), 3.0).double())


def test_results_that_have_no_gradient() -> None:
    a, b = A.detach().requires_grad_(), ow.asarray(DENSE, format="coo", fill_value=1.0)
    for f in (ow.count_nonzero, ow.any, ow.argmax, ow.all):
        got, want = f(a, axis=0), f(ow.asarray(DENSE.numpy()), axis=0)
        assert not got.requires_grad
        assert got.to_dense().tolist() == want.to_dense().tolist()
    for _ in range(3):
        less = a < b
        assert not less.requires_grad
        assert torch.equal(less.to_dense(), b.to_dense() > DENSE)


def test_determinants_of_a_batch_of_values() -> None:
    s = ow.asarray(torch.diag(torch.arange(2.0, 5.0)), format="csr")
    batch = torch.stack([s.values, -2 * s.values])

    def determinant(values: torch.Tensor) -> Any:
        return tuple(x.to_dense() for x in ow.linalg.slogdet(s._from_storage(s._storage.with_values(values))))

    for got, *want in zip(torch.vmap(determinant)(batch), *map(determinant, batch), strict=True):
        torch.testing.assert_close(got, torch.stack(want))


def test_copies_of_another_structure() -> None:
    """Of as many elements in other rows, of another fill value, and of the same structure."""
    first, second = torch.tensor([[1.0, 1, 0], [0, 0, 0]]), torch.tensor([[2.0, 0, 0], [0, 3, 0]])
    for convert in (torch.clone, torch.Tensor.numpy):
        for other, fill in ((second, 0.0), (first * 3, 0.0), (first * 3, 5.0), (second, 5.0)):
            t = ow.asarray(convert(first), format="dcsr")
            given, values = ow.asarray(convert(other), format="dcsr", fill_value=fill), t.values
            t.copy_(given)
            assert np.array_equal(t.to_numpy(), other.numpy())
            assert (t.format, t.fill_value) == (given.format, fill)
            assert (t.values is values) == (fill == 0 and other is not second)
    lazy = ow.lazy(ow.asarray(first.to(torch.complex64), format="csr"))
    for name in ("min", "max"):
        with pytest.raises(ow.DTypeError, match="complex"):
            ow.compute(getattr(ow, name)(lazy * 2, axis=0))
