"""Gradients that a caller hands in, to `backward` and to `grad`: matched by coordinates, or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow

DENSE = torch.tensor([[0, 1.0, 0, 4], [2, 0, 3, 0], [0, 0, 0, 5]])
GIVEN = torch.arange(1.0, 13).reshape(3, 4)
LEAVES = {
    "csr": "csr", "csc": "csc", "coo": "coo", "ragged bsr": "bsr(2, 3)", "dia": "dia", "ell": "ell(4)", "dcsr": "dcsr",
    "bitmap": "bitmap", "hybrid": "(i, j) -> (i : compressed, j : dense)", "dense": "dense",
    "columns first": "(i, j) -> (j : compressed, i : compressed)",
}  # fmt: skip


def layouts() -> dict[str, Any]:
    """One gradient in all that can hold it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "torch": GIVEN, "torch, columns first": GIVEN.mT.contiguous().mT, "torch coo": GIVEN.to_sparse(),
            "torch csr": GIVEN.to_sparse_csr(), "torch csc": GIVEN.to_sparse_csc(), "numpy": GIVEN.numpy(),
            "torch bsr": GIVEN.to_sparse_bsr((3, 2)), "torch bsc": GIVEN.to_sparse_bsc((1, 4)),
            "torch hybrid": GIVEN.to_sparse(1), "uncoalesced": doubled(),
            **{f"ow {name}": ow.asarray(GIVEN).asformat(text) for name, text in LEAVES.items()},
            "ow over numpy": ow.asarray(GIVEN.numpy(), format="csc"),
            "ow, a fill value": ow.asarray(GIVEN, format="csr", fill_value=7.0),
        }  # fmt: skip


def doubled() -> torch.Tensor:
    where = GIVEN.nonzero().T
    halves = GIVEN.reshape(-1) / 2
    return torch.sparse_coo_tensor(torch.cat([where, where], 1), torch.cat([halves, halves]), GIVEN.shape)


GRADIENTS = layouts()


def backward(t: Any, g: Any) -> None:
    (t * 1).backward(g)


def assigned(t: Any, g: Any) -> None:
    t.grad = g


TAKE: dict[str, Callable[[Any, Any], None]] = {
    "backward": backward,
    "leaf": lambda t, g: t.backward(g),
    "grad": assigned,
}


@pytest.mark.thin(28)
@pytest.mark.parametrize("take", TAKE)
@pytest.mark.parametrize("leaf", LEAVES)
def test_elements_are_matched_by_coordinates(leaf: str, take: str) -> None:
    for name, g in GRADIENTS.items():
        t = ow.asarray(DENSE).asformat(LEAVES[leaf]).requires_grad_()
        TAKE[take](t, g)
        assert t.grad is not None
        assert t.grad.format == t.format
        wanted = GIVEN if leaf in ("dense", "bitmap") else torch.where(DENSE != 0, GIVEN, t.grad.to_dense())
        torch.testing.assert_close(torch.where(DENSE != 0, t.grad.to_dense(), wanted), wanted, msg=name)


@pytest.mark.parametrize("take", TAKE)
def test_what_the_leaf_does_not_store_is_dropped_and_what_the_gradient_does_not_is_zero(take: str) -> None:
    t = ow.asarray(DENSE, format="csc").requires_grad_()
    some = torch.zeros(3, 4)
    some[0, 0], some[1, 0], some[2, 3] = 7, 8, 9
    for g in (some, ow.asarray(some, format="csr"), some.to_sparse(), some.to_sparse_csr()):
        t.values.grad = None
        TAKE[take](t, g)
        assert t.grad.to_dense().tolist() == [[0, 0, 0, 0], [8, 0, 0, 0], [0, 0, 0, 9]]


def test_an_element_stored_twice_has_its_gradient_twice() -> None:
    t = ow.asarray(doubled()).requires_grad_()
    (t * 1).backward(GIVEN.to_sparse_csr())
    assert t.values.grad.tolist() == [*range(1, 13)] * 2


def test_stacks_hybrids_and_rank_zero() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    for text in ("csf", "coo", "(b, i, j) -> (b : batch, i : dense, j : compressed)"):
        t = ow.asarray(x % 7).asformat(text).requires_grad_()
        (t * 1).backward(ow.asarray(x, format="csf"))
        assert torch.equal(torch.where(x % 7 != 0, t.grad.to_dense(), 0), torch.where(x % 7 != 0, x, 0))
    for g in (torch.tensor(3.0), ow.asarray(torch.tensor(3.0)), np.array(3.0, np.float32)):
        t = ow.asarray(torch.tensor(2.0)).requires_grad_()
        (t * 2).backward(g)
        assert t.values.grad.tolist() == [6]


def test_the_line_of_torchs_notes() -> None:
    """`b.backward(torch.sparse_coo_tensor(...))`."""
    a = ow.asarray(torch.eye(3).to_sparse()).requires_grad_()
    b = a * 2
    b.backward(torch.sparse_coo_tensor([[0, 2, 1], [0, 2, 0]], [1.0, 2, 3], (3, 3)))
    assert a.grad.to_dense().tolist() == [[2, 0, 0], [0, 0, 0], [0, 0, 4]]


def test_gradients_of_a_given_gradient() -> None:
    t = ow.asarray(DENSE.double(), format="csc").requires_grad_()
    g = GIVEN.double().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (t * t).backward(g, create_graph=True)
    t.grad.sum().to_dense().backward()
    torch.testing.assert_close(g.grad, 2 * DENSE.double())
    t.grad = None


REFUSED: dict[str, tuple[Any, type[Exception]]] = {
    "transposed": (GIVEN.mT, ow.ShapeError),
    "flat": (GIVEN.reshape(-1), ow.ShapeError),
    "a row": (GIVEN[:1], ow.ShapeError),
    "one more dimension": (GIVEN[None], ow.ShapeError),
    "rank 0": (torch.tensor(1.0), ow.ShapeError),
    "sparse of another shape": (GIVEN.mT.to_sparse(), ow.ShapeError),
    "a Tensor of another shape": (ow.asarray(GIVEN.mT, format="csr"), ow.ShapeError),
    "too few values": (torch.ones(3), ow.ShapeError),
    "too many values": (torch.ones(9), ow.ShapeError),
    "integers": (GIVEN.long(), ow.DTypeError),
    "bools": (ow.asarray(GIVEN > 3, format="csr"), ow.DTypeError),
    "complex": (GIVEN.to(torch.complex64), ow.DTypeError),
    "meta": (GIVEN.to("meta"), ow.UnsupportedError),
    "a list": (GIVEN.tolist(), ow.UnsupportedError),
    "a number": (1.0, ow.UnsupportedError),
    "masked": (ow.masked_tensor(GIVEN, GIVEN > 2), ow.UnsupportedError),
}


def tensors() -> dict[str, Any]:
    return {
        "csr": ow.asarray(DENSE, format="csr").requires_grad_(),
        "dense": ow.asarray(DENSE).requires_grad_(),
        "grad=dense": ow.asarray(DENSE, format="csr", grad="dense").requires_grad_(),
        "masked": ow.masked_tensor(DENSE, DENSE > 0).requires_grad_(),
    }


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused_by_name(case: str) -> None:
    g, error = REFUSED[case]
    for name, t in tensors().items():
        if name == case:
            continue
        for take, function in TAKE.items():
            with pytest.raises(error, match=r"(?s)(backward|grad): .*expected: .*help: "):
                function(t, g)
            assert t.grad is None, (name, take)


def test_precision() -> None:
    """Another precision is converted by `backward` and refused by `grad`, as by torch."""
    for name, t in tensors().items():
        t.backward(GIVEN.double())
        assert t.grad.dtype == torch.float32, name
        t.grad = None
        with pytest.raises(ow.DTypeError):
            t.grad = GIVEN.double()
        assert t.grad is None


def test_one_element_needs_no_gradient_and_more_need_one() -> None:
    t = ow.asarray(torch.tensor([[0.0, 2.0]]), format="csr").requires_grad_()
    with pytest.raises(ow.ShapeError, match=r"(?s)shape \(1, 2\) needs a gradient.*help"):
        (t * 3).backward()
    (t[:, 1:] * 3).backward()
    assert t.values.grad.tolist() == [3]
    twice = ow.asarray(torch.sparse_coo_tensor([[0, 0], [0, 0]], [1.0, 2.0], (1, 1))).requires_grad_()
    twice.backward()
    assert twice.values.grad.tolist() == [1, 1]
    with pytest.raises(ow.UnsupportedError, match="depends on nothing"):
        ow.asarray(DENSE, format="csr").backward(GIVEN)
    with pytest.raises(ow.UnsupportedError, match="depends on nothing"):
        ow.asarray(DENSE, format="csr", grad="dense").backward(GIVEN)


def test_values_in_the_order_of_the_leaf() -> None:
    t = ow.asarray(DENSE, format="csc").requires_grad_()
    (t * 1).backward(torch.arange(5.0))
    assert t.values.grad.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("take", TAKE)
def test_full_gradients(take: str) -> None:
    for name, g in GRADIENTS.items():
        t = ow.asarray(DENSE, format="csc", grad="dense").requires_grad_()
        TAKE[take](t, g)
        assert torch.equal(t.grad.to_dense(), GIVEN), name


@pytest.mark.thin(6)
@pytest.mark.parametrize("take", TAKE)
@pytest.mark.parametrize("format", ["strided", "csr", "csc", "coo"])
def test_masked_tensors(format: str, take: str) -> None:
    mask = DENSE > 1
    others = {
        "masked": ow.masked_tensor(GIVEN, GIVEN > 2),
        "masked csr": ow.masked_tensor(GIVEN, GIVEN > 2).to_sparse_csr(),
    }
    for name, g in {**GRADIENTS, **others}.items():
        m = ow.masked_tensor(DENSE, mask)
        m = m if format == "strided" else m.asformat(format)
        m.requires_grad_()
        TAKE[take](m, g)
        wanted = torch.where(GIVEN > 2, GIVEN, 0) if name in others else GIVEN
        assert m.grad.to_tensor(0).tolist() == torch.where(mask, wanted, 0).tolist(), name


def test_masked_rank_zero_and_inputs() -> None:
    m = ow.masked_tensor(torch.tensor(2.0), torch.tensor(True)).requires_grad_()
    m.backward(torch.tensor(3.0))
    assert m.grad.item() == 3
    with pytest.raises(ow.ShapeError):
        m.backward(torch.ones(1))
    other = ow.masked_tensor(DENSE, DENSE > 1).requires_grad_()
    (other * m.item()).backward(GIVEN, inputs=[other])
    assert other.grad.nse == other.nse
