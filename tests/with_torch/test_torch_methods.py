"""torch's names on Tensors as somebody new calls them, wrong arguments included."""

from __future__ import annotations

import copy
import io
import json
import pickle
from typing import Any

import pytest
import torch
from torch_matrix import LAYOUTS, STACKS, compare, make, plain

import openwork as ow
import openwork.torch

BOTH = {
    "sum over a dimension": lambda t: t.sum(dim=1),
    "sum, dimension kept": lambda t: t.sum(1, keepdim=True),
    "sum, dimension kept, by place": lambda t: t.sum(1, True),
    "mean": lambda t: t.mean(dim=0),
    "variance of a sample": lambda t: t.var(dim=1),
    "variance": lambda t: t.var(dim=1, unbiased=False),
    "largest": lambda t: t.max(dim=1).values,
    "sine": lambda t: t.sin(),
    "absolute values in place": lambda t: t.clone().abs_(),
    "power in place": lambda t: t.clone().pow_(2),
    "filled": lambda t: t.clone().fill_(3),
    "exchanged": lambda t: t.transpose(0, 1),
    "exchanged from behind": lambda t: t.transpose(-2, -1),
    "product": lambda t: t.mm(torch.ones(6, 2, dtype=torch.float64)),
    "seen": lambda t: t.view(-1, 3),
    "of a type": lambda t: t.type_as(torch.ones(1)),
    "half": lambda t: t.half(),
    "double": lambda t: t.float().to(torch.ones(1, dtype=torch.float64)),
    "conjugated": lambda t: t.mH,
    "softplus": lambda t: torch.nn.functional.softplus(t),
}


@pytest.mark.parametrize("name", BOTH)
def test_methods(name: str) -> None:
    case = make("csr", (4, 6))
    compare(BOTH[name](case.tensor.detach()), BOTH[name](case.dense.detach()))


def test_numbers_that_torch_has_as_methods() -> None:
    t = make(*STACKS["batched csr"]).tensor.detach()
    assert (t.size(), t.size(0), t.size(-1), t.size) == ((2, 4, 6), 2, 6, 48)
    assert (t.sparse_dim(), t.sparse_dim, t.dense_dim(), t.dense_dim) == (2, 2, 0, 0)
    assert (t.dim(), t.numel(), t._nnz(), t.tolist()) == (3, 48, t.nse // 2, t.to_dense().tolist())
    assert json.dumps([t.size, t.dense_dim]) == "[48, 0]"
    assert type(pickle.loads(pickle.dumps(t.size))) is int
    with pytest.raises(ow.ShapeError, match="size: dimension 3 of shape"):
        t.size(3)


def test_names_that_are_not_there() -> None:
    t = make("csr", (4, 6)).tensor.detach()
    for name in ("nothing", "cdist_", "_private", "data_ptr", "linear"):
        assert not hasattr(t, name)
    assert not hasattr(ow.asarray([1.0]), "relu")
    with pytest.raises(TypeError, match="dim"):
        ow.asarray([[1.0]]).sum(dim=0)


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "axis": (lambda t: t.narrow(2, 0, 1), IndexError, "narrow: axis 2 is out of bounds"),
    "length": (lambda t: t.narrow(0, 0, 9), ow.ShapeError, "0 to 9 of an extent of 4"),
    "place": (lambda t: t.select(0, 7), IndexError, "index 7 is out of bounds"),
    "index": (lambda t: t.index_select(1, torch.tensor([7])), IndexError, "index 7 is out of bounds"),
    "rank of an index": (lambda t: t.index_select(1, torch.tensor([[1]])), ow.ShapeError, "expected: a vector"),
    "dtype of an index": (lambda t: t.index_select(1, torch.tensor([0.5])), ow.DTypeError, "indices are integers"),
    "shape": (lambda t: t.clone().copy_(torch.ones(5, 5)), ow.ShapeError, "copy_: expected shape"),
    "broadcast": (lambda t: t.clone().add_(torch.ones(7, 7)), ow.ShapeError, "do not broadcast"),
    "complex": (lambda t: t.clone().add_(1j), ow.DTypeError, "add_: the result has dtype torch.complex128"),
    "fraction": (lambda t: t.long().mul_(0.5), ow.DTypeError, "mul_: the result has dtype torch.float32"),
    "block": (lambda t: t.to_sparse_bsr("ab"), ow.ShapeError, "blocksize is a tuple of integers"),
    "empty block": (lambda t: t.to_sparse_bsr((0, 1)), ow.FormatError, "not a positive integer"),
    "dense dimensions": (lambda t: t.to_sparse_csr(dense_dim=5), ow.ShapeError, "-3 sparse and 5 dense"),
    "sparse dimensions": (lambda t: t.to_sparse(7), ow.ShapeError, "7 sparse and -5 dense"),
    "mask": (lambda t: t.sparse_mask(ow.asarray(torch.eye(5))), ow.ShapeError, "sparse_mask: shape"),
    "exchange": (lambda t: t.transpose(0, 2), IndexError, "transpose: axis 2 is out of bounds"),
    "format": (lambda t: t.clone().sparse_resize_((5, 3), 2, 0), ow.UnsupportedError, "asformat"),
    "device": (lambda t: t.to("nonsense"), ow.UnsupportedError, "device 'nonsense' is not available"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    call, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        call(make("csr", (4, 6)).tensor.detach())


@pytest.mark.parametrize("layout", ["csr", "uncoalesced coo", "ragged bsr", "dia"])
def test_copies_and_files(layout: str) -> None:
    t = make(*LAYOUTS[layout]).tensor
    file = io.BytesIO()
    torch.save({"weight": t, "others": [2 * t.detach()]}, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)["weight"]
    for found in (read, pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t)):
        assert found.format == t.format
        assert found.requires_grad
        compare(plain(found.detach()), plain(t.detach()))


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.softmax(axis=1),
        lambda t: t.log_softmax(axis=0),
        lambda t: t.logsumexp(axis=0),
        lambda t: t.logsumexp(keepdims=True),
        lambda t: t.argsort(axis=0),
        lambda t: t.diff(axis=0),
        lambda t: t.flip(axis=0),
        lambda t: t.median(axis=0),
        lambda t: t.nanmedian(keepdims=True),
        lambda t: t.quantile(0.5, axis=0),
        lambda t: t.nanquantile(0.5, axis=1, keepdims=True),
        lambda t: t.repeat(2, axis=0),
        lambda t: t.roll(shift=1, axis=0),
        lambda t: t.topk(2, axis=0).values,
        lambda t: t.trace(offset=1),
    ],
)
def test_our_names_of_arguments_are_those_of_our_methods(call: Any) -> None:
    """What `help` and the reference show of a method holds over torch's buffers as over NumPy's."""
    dense = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [0.5, 0.0, 4.0]], dtype=torch.float64)
    found = call(ow.asarray(dense, format="csr"))
    expected = call(ow.asarray(dense.numpy(), format="csr"))
    assert isinstance(found, ow.Tensor)
    torch.testing.assert_close(found.to_dense(), torch.as_tensor(expected.to_numpy()))


def test_gradients_of_a_softmax_over_an_axis() -> None:
    values = torch.rand(4, dtype=torch.float64, requires_grad=True)
    crow, col = torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1])
    torch.autograd.gradcheck(lambda v: ow.sparse_csr_tensor(crow, col, v, (2, 2)).softmax(axis=1).values, (values,))
