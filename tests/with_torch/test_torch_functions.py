"""torch's functions take Tensors: the same call on a Tensor and on the dense tensor, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_matrix import LAYOUTS, STACKS, X, check, compare, make, plain

import openwork as ow

W = torch.linspace(0.5, 1.5, 24, dtype=torch.float64).reshape(4, 6)
SOME = {name: LAYOUTS[name] for name in ("coo", "csr", "ragged bsr", "dia", "uncoalesced coo")}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda t: torch.matmul(t, X),
    "mm": lambda t: torch.mm(t, X),
    "mv": lambda t: torch.mv(t, X[:, 0]),
    "rmatmul": lambda t: X.T @ t.T,
    "addmm": lambda t: torch.addmm(W[:, :3], t, X, beta=2, alpha=3),
    "linear": lambda t: F.linear(torch.ones(2, 6, dtype=torch.float64), t),
    "linear of a sparse input": lambda t: F.linear(t, X.T, X[0]),
    "einsum": lambda t: torch.einsum("ij,jk->k", t, X),
    "tensordot": lambda t: torch.tensordot(t, X, dims=1),
    "add": lambda t: torch.add(t, t, alpha=2),
    "sub": lambda t: torch.sub(t, W),
    "rsub": lambda t: torch.rsub(t, 2.0),
    "mul": lambda t: torch.mul(t, W),
    "div": lambda t: torch.div(t, W),
    "div trunc": lambda t: torch.div(t, 0.3, rounding_mode="trunc"),
    "pow": lambda t: torch.pow(t, 2),
    "where": lambda t: torch.where(t > 0.1, t, 2 * t),
    "clamp": lambda t: torch.clamp(t, -0.3, 0.4),
    "maximum": lambda t: torch.maximum(t, -t),
    "relu": lambda t: F.relu(t),
    "leaky_relu": lambda t: F.leaky_relu(t, 0.1),
    "gelu": lambda t: F.gelu(t),
    "sigmoid": lambda t: torch.sigmoid(t),
    "erf": lambda t: torch.erf(t),
    "rsqrt": lambda t: torch.rsqrt(t + 2),
    "nan_to_num": lambda t: torch.nan_to_num(t),
    "sum": lambda t: torch.sum(t, dim=1),
    "sum of all": lambda t: torch.sum(t),
    "mean": lambda t: torch.mean(t, 0, keepdim=True),
    "amax": lambda t: torch.amax(t, dim=1),
    "max": lambda t: torch.max(t, dim=0).values,
    "max places": lambda t: torch.max(t, dim=1).indices,
    "prod": lambda t: torch.prod(t, 1),
    "var": lambda t: torch.var(t, dim=1),
    "std": lambda t: torch.std(t, 1, correction=0),
    "logsumexp": lambda t: torch.logsumexp(t, 1),
    "norm": lambda t: torch.norm(t),
    "norm of rows": lambda t: torch.linalg.vector_norm(t + 0.1, 3, dim=1),
    "cumsum": lambda t: torch.cumsum(t, 1),
    "argmax": lambda t: torch.argmax(t, dim=1),
    "any": lambda t: torch.any(t > 0.3, dim=1),
    "trace": lambda t: torch.trace(t),
    "nonzero": lambda t: torch.nonzero(t),
    "transpose": lambda t: torch.transpose(t, 0, 1),
    "permute": lambda t: torch.permute(t, (1, 0)),
    "reshape": lambda t: torch.reshape(t, (8, 3)),
    "flatten": lambda t: torch.flatten(t),
    "unsqueeze": lambda t: torch.unsqueeze(t, 1),
    "squeeze": lambda t: torch.squeeze(t[:1], 0),
    "flip": lambda t: torch.flip(t, (1,)),
    "roll": lambda t: torch.roll(t, 2, 1),
    "cat": lambda t: torch.cat([t, t * 2], dim=1),
    "stack": lambda t: torch.stack([t, t * 2], dim=1),
    "vstack": lambda t: torch.vstack([t, t]),
    "narrow": lambda t: torch.narrow(t, 1, 2, 3),
    "select": lambda t: torch.select(t, 0, 1),
    "index_select": lambda t: torch.index_select(t, 1, torch.tensor([4, 1])),
    "gather": lambda t: torch.gather(t, 1, torch.tensor([[0, 1], [2, 2], [5, 0]])),
    "split": lambda t: torch.split(t, 4, 1)[1],
    "chunk": lambda t: torch.chunk(t, 3, dim=1)[2],
    "tensor_split": lambda t: torch.tensor_split(t, 4, 1)[1],
    "tensor_split at places": lambda t: torch.tensor_split(t, (1, 5), dim=1)[1],
    "hsplit": lambda t: torch.hsplit(t, 3)[2],
    "vsplit": lambda t: torch.vsplit(t, [1, 3])[1],
    "unbind": lambda t: torch.unbind(t)[2],
    "tril": lambda t: torch.tril(t, diagonal=1),
    "diagonal": lambda t: torch.diagonal(t, offset=1),
    "diag": lambda t: torch.diag(t),
    "repeat_interleave": lambda t: torch.repeat_interleave(t, 2, dim=0),
    "embedding": lambda t: F.embedding(torch.tensor([[1, 2], [0, 1]]), t),
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("layout", SOME)
def test_the_same_call(layout: str) -> None:
    for function in FUNCTIONS.values():
        check(make(*SOME[layout]), function, function)


@pytest.mark.thin(2)
@pytest.mark.parametrize("layout", STACKS)
def test_stacks(layout: str) -> None:
    y = torch.stack([X, 2 * X])
    for function in (
        lambda t: torch.bmm(t, y),
        lambda t: torch.baddbmm(torch.ones(2, 4, 3, dtype=torch.float64), t, y, beta=0.5),
        lambda t: torch.sum(t, (0, 2)),
        lambda t: torch.amax(t, 1),
        lambda t: torch.transpose(t, 0, 2),
        lambda t: torch.select(t, 1, 2),
        lambda t: torch.cat([t, t], 0),
        lambda t: torch.softmax(t.to_dense(), 2),
    ):
        check(make(*STACKS[layout]), function, function)


@pytest.mark.thin(9)
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_is_over_specified_elements(function: Callable[..., Any], dim: int) -> None:
    for layout in ("coo", "csr", "csc", "bsr", "dia", "uncoalesced coo"):
        case = make(*LAYOUTS[layout])
        specified = plain(ow.sparse_mask(torch.ones(4, 6), case.tensor.detach())) > 0

        def dense(d: torch.Tensor, specified: torch.Tensor = specified) -> torch.Tensor:
            return function(d.masked_fill(~specified, -torch.inf), dim).masked_fill(~specified, 0).nan_to_num(0)

        check(case, lambda t: function(t, dim), dense)


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_mm_reduced(reduce: str) -> None:
    case = make("csr", (4, 6))
    x = X.clone().requires_grad_()
    got = torch.sparse.mm(case.tensor, x, reduce)
    dense = case.dense.detach().requires_grad_()
    products = (dense[:, :, None] * X[None]).masked_fill((dense == 0)[:, :, None], torch.nan)
    want = {"mean": products.nanmean(1)} if reduce == "mean" else {}
    edge = -torch.inf if reduce == "amax" else torch.inf
    want = want.get("mean", getattr(products.nan_to_num(edge), "amax" if reduce == "amax" else "amin")(1))
    compare(got, want.detach())
    got.sum().backward()
    assert x.grad is not None
    assert case.tensor.grad is not None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sampled_addmm(layout: str) -> None:
    case = make(*LAYOUTS[layout])
    mask = plain(ow.sparse_mask(torch.ones(4, 6, dtype=torch.float64), case.tensor.detach()))
    check(
        case,
        lambda t: torch.sparse.sampled_addmm(t, X[:4], X.T, beta=2, alpha=3),
        lambda d: 2 * d + 3 * (X[:4] @ X.T) * mask,
    )


def test_what_is_not_there_is_named() -> None:
    t = make("csr", (4, 6)).tensor
    with pytest.raises(ow.UnsupportedError, match=r"torch\.cdist does not take an openwork Tensor\n  supported: .*mm"):
        torch.cdist(t, t)
    with pytest.raises(ow.DTypeError, match=r"nan_to_num does not take these operands.*\n  help"):
        torch.nan_to_num(t, t)


def test_in_place_on_a_torch_tensor() -> None:
    t = make("csr", (4, 6)).tensor.detach()
    x = torch.ones(4, 6, dtype=torch.float64)
    assert x.add_(t) is x
    compare(x, 1 + t.to_dense())


METHODS: dict[str, Callable[[Any], Any]] = {
    "t": lambda t: t.t(),
    "narrow": lambda t: t.narrow(1, 1, 3),
    "select": lambda t: t.select(0, 2),
    "index_select": lambda t: t.index_select(0, torch.tensor([2, 0])),
    "add_": lambda t: (2 * t).add_(t, alpha=3),
    "sub_": lambda t: (2 * t).sub_(t * t),
    "mul_": lambda t: (2 * t).mul_(t),
    "div_": lambda t: (2 * t).div_(3),
    "transpose_": lambda t: (2 * t).transpose_(0, 1),
    "zero_": lambda t: (2 * t).zero_() + t,
    "copy_": lambda t: (2 * t).copy_(t),
    "clone": lambda t: t.clone(),
}


@pytest.mark.parametrize("layout", ["coo", "csr", "bsr"])
def test_methods(layout: str) -> None:
    for function in METHODS.values():
        check(make(*LAYOUTS[layout]), function, function)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
def test_to_sparse(layout: str) -> None:
    case = make(*LAYOUTS[layout])
    for made, name in (
        (case.tensor.to_sparse(), "coo"),
        (case.tensor.to_sparse(layout=torch.sparse_csr), "csr"),
        (case.tensor.to_sparse_csc(), "csc"),
        (case.tensor.to_sparse_bsr((2, 3)), "bsr(2, 3)"),
        (case.tensor.to_sparse_bsc((2, 3)), "bsc(2, 3)"),
        (case.tensor.to_sparse(1), "(i, j) -> (i : compressed, j : dense)"),
    ):
        assert made.format == ow.format(name, 2)
        compare(made, case.dense.detach())
    with pytest.raises(ow.FormatError, match="no sparse layout"):
        case.tensor.to_sparse(layout="dia")
    with pytest.raises(ow.ShapeError, match="two extents of a block"):
        case.tensor.to_sparse(layout="bsr")


def test_in_place_on_a_leaf_is_refused() -> None:
    t = make("csr", (4, 6)).tensor
    with pytest.raises(ow.UnsupportedError, match="a leaf that requires a gradient"):
        t.add_(t)


def test_sparse_resize() -> None:
    t = make("coo", (4, 6)).tensor.detach()
    want = torch.zeros(7, 6, dtype=torch.float64)
    want[:4] = t.to_dense()
    compare(t.clone().sparse_resize_((7, 6), 2, 0), want)
    with pytest.raises(ow.ShapeError, match="do not fit shape"):
        t.sparse_resize_((1, 6), 2, 0)
    for size, sparse_dim, dense_dim in (((4, 6), 1, 0), ((4, 6, 2), 2, 0), ((4, -6), 2, 0), ((-4, 6), 1, 1)):
        with pytest.raises(ow.ShapeError, match="extents of 0 or more"):
            t.clone().sparse_resize_(size, sparse_dim, dense_dim)
    empty = ow.sparse_coo_tensor(torch.zeros((2, 0), dtype=torch.int64), torch.zeros(0), (2, 3))
    assert empty.sparse_resize_((5, 2, 3), 1, 2).shape == (5, 2, 3)
