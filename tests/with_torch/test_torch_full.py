"""Gradients at every element, `grad="dense"`: against torch on dense tensors, for every operation."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from test_torch_never_lost import NAMES, argument_lists, attempt
from torch.autograd import gradcheck, gradgradcheck
from torch_matrix import BINARY, LAYOUTS, PRODUCTS, REDUCTIONS, STACKS, STRUCTURAL, UNARY, X, compare, make, plain

import openwork as ow
from openwork.tables import ATTRIBUTES, PLACES

EVERY = {name: LAYOUTS[name] for name in ("csr", "coo", "ragged bsr", "dia", "uncoalesced coo", "hybrid", "dense")}
EVERY |= {f"{name}, rank 3": STACKS[name] for name in ("batched csr", "csf")}

SLOW = ("batched csr, rank 3", "csf, rank 3", "hybrid", "uncoalesced coo")


def full(layout: str) -> tuple[ow.Tensor, torch.Tensor, torch.Tensor]:
    """A tensor of a layout, made from a dense leaf, and another dense leaf of the same elements."""
    spec, shape = EVERY[layout]
    dense = make("dense", shape).dense.detach() + 0.0
    mine, theirs = dense.clone().requires_grad_(), dense.clone().requires_grad_()
    return ow.asarray(mine, format=ow.format(spec, len(shape)), grad="dense"), mine, theirs


def check(layout: str, function: Any, reference: Any) -> None:
    t, mine, theirs = full(layout)
    got, want = plain(function(t)), reference(theirs)
    compare(got, want)
    if not (want.is_floating_point() or want.is_complex()):
        return
    weights = torch.linspace(0.5, 1.5, want.numel(), dtype=torch.float64).reshape(want.shape)
    (got * weights).sum().backward()
    (want * weights).sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.ci
@pytest.mark.thin(3)
@pytest.mark.parametrize("layout", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in EVERY])
def test_every_element_has_its_gradient(layout: str) -> None:
    for function, reference in (*UNARY.values(), *REDUCTIONS.values(), *STRUCTURAL.values()):
        check(layout, function, reference)
    for function in (*BINARY.values(), *PRODUCTS.values()):
        check(layout, function, function)


def dense_of(found: Any) -> Iterator[torch.Tensor]:
    for x in found if isinstance(found, tuple | list) else (found,):
        if isinstance(x, ow.Tensor | torch.Tensor):
            y = plain(x)
            if isinstance(y, torch.Tensor) and (y.is_floating_point() or y.is_complex()):
                yield y


def weighted(name: str, v: torch.Tensor) -> torch.Tensor:
    """A sum to which what is 0 adds a gradient too; of values that are made unique any of the equal ones may have it."""
    if name.startswith("unique"):
        return v.abs()
    return v.abs() + v * torch.linspace(0.5, 1.5, v.numel(), dtype=torch.float64).reshape(v.shape)


OTHERWISE = {"softmax", "log_softmax", "prune", "sparse_mask", "floor_divide"}
"""Functions in which unspecified elements play no part, or that depend on what is stored, or that torch has no gradient of."""


@pytest.mark.ci
@pytest.mark.parametrize(
    ("layout", "step"), [("csr", 2), *(pytest.param(x, 1, marks=pytest.mark.slow) for x in ("csr", "ragged bsr"))]
)
def test_public_functions(layout: str, step: int) -> None:
    """What a function gives for a sparse tensor of full gradient is what it gives for the dense one."""
    seen = set()
    for name in sorted(set(NAMES) - OTHERWISE)[::step]:
        t, mine, _ = full(layout)
        _, theirs, _ = full(layout)
        for one, other in zip(argument_lists(t), argument_lists(ow.asarray(theirs)), strict=True):
            got, want = attempt(name, one), attempt(name, other)
            for x, y in zip(dense_of(got), dense_of(want), strict=got is not None and want is not None):
                assert x.requires_grad == y.requires_grad, name
                if y.requires_grad:
                    seen.add(name)
                    pair = [
                        torch.autograd.grad(weighted(name, v).sum().abs(), leaf, retain_graph=True)[0]
                        for v, leaf in ((x, mine), (y, theirs))
                    ]
                    torch.testing.assert_close(*pair, equal_nan=True, msg=lambda m, name=name: f"{name}: {m}")
    assert len(seen) > 60 // step, sorted(seen)


@pytest.mark.parametrize("function", [ow.softmax, lambda t: ow.log_softmax(t, axis=0), lambda t: torch.softmax(t, 1)])
def test_unspecified_elements_of_a_softmax_have_gradient_zero(function: Any) -> None:
    t, mine, _ = full("csr")
    case = make("csr", (4, 6))
    weights = torch.linspace(0, 1, 24, dtype=torch.float64).reshape(4, 6)
    (plain(function(t)) * weights).sum().backward()
    (plain(function(case.tensor)) * weights).sum().backward()
    assert case.tensor.grad is not None
    torch.testing.assert_close(mine.grad, case.tensor.grad.to_dense())


def test_what_is_not_kept_has_gradient_zero() -> None:
    t, mine, theirs = full("csr")
    ow.prune(t, 0.4).sum().backward()
    torch.testing.assert_close(mine.grad, (theirs.detach().abs() > 0.4).double())
    t, mine, _ = full("csr")
    ow.prune(t).sum().backward()
    torch.testing.assert_close(mine.grad, torch.ones_like(mine))
    t, mine, _ = full("csr")
    mask = ow.asarray(torch.eye(4, 6)).asformat("csr")
    (ow.sparse_mask(t, mask) * 2).sum().backward()
    torch.testing.assert_close(mine.grad, 2 * torch.eye(4, 6, dtype=torch.float64))


@pytest.mark.parametrize(
    "name", sorted((PLACES | ATTRIBUTES) - {"dot", "sparse_mask", "any", "all", "argmax", "argmin"})
)
def test_methods_and_attributes(name: str) -> None:
    def method(t: ow.Tensor) -> Any:
        found = getattr(t, name)
        return found if name in ATTRIBUTES else found(axis=None) if name in ("max", "min", "var", "std") else found()

    function = getattr(ow, name) if name != "diagonal" else lambda t: ow.diagonal(t, axis1=0, axis2=1)
    gradients = []
    for call in (method, function):
        t, mine, _ = full("csr")
        result = plain(call(t))
        if not result.requires_grad:
            return
        result.sum().backward()
        gradients.append(mine.grad)
    assert torch.equal(*gradients)


def test_answers_that_are_no_tensors() -> None:
    t, mine, _ = full("csr")
    for function in (torch.is_same_size, torch.equal, torch.allclose):
        assert function(t, t) is True
    assert torch.numel(t) == mine.numel()
    assert torch.is_floating_point(t) is True
    assert torch.is_complex(t) is False
    assert torch.is_nonzero(t[0, 0]) is bool(mine[0, 0])


@pytest.mark.thin(2)
@pytest.mark.parametrize("layout", ["csr", "ragged bsr"])
def test_double_backward(layout: str) -> None:
    spec, _ = EVERY[layout]

    def function(d: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        t = ow.asarray(d, format=spec, grad="dense")
        return plain(ow.cos(t) @ x + (t * t).sum(1)[:, None] + (t @ t.T)[:, :3])

    _, d, _ = full(layout)
    x = X.clone().requires_grad_()
    assert gradcheck(function, (d, x), fast_mode=True)
    assert gradgradcheck(function, (d, x), fast_mode=True)


def test_one_operation_at_a_time() -> None:
    """`grad=` says it of one operation: of tensors that are not told otherwise, and the other way."""
    case = make("csr", (4, 6))
    ow.sum(ow.matmul(case.tensor, X, grad="dense")).backward()
    torch.testing.assert_close(case.own_gradient, (case.tensor.detach() * 0 + 1).values * X.sum(1)[case.tensor.crd(1)])
    t, mine, _ = full("csr")
    ow.matmul(t, X, grad="sparse").sum().backward()
    where = t.detach().to_dense() != 0
    torch.testing.assert_close(mine.grad, where * X.sum(1))
    found = ow.cos(make("csr", (4, 6)).tensor, grad="dense")
    assert type(found) is type(t)
    with pytest.raises(ValueError, match='supported: "sparse", "dense"'):
        ow.cos(t, grad="full")


def test_a_leaf_holds_its_gradient() -> None:
    leaf = ow.asarray(make("csr", (4, 6)).tensor.detach(), grad="dense").requires_grad_()
    assert leaf.is_leaf
    assert leaf.grad is None
    (leaf @ X).sum().backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad.to_dense(), X.sum(1).expand(4, 6))
    seen: list[torch.Tensor] = []
    doubled = 2 * leaf
    doubled.retain_grad()
    doubled.register_hook(seen.append)
    doubled.backward(torch.ones(4, 6, dtype=torch.float64))
    assert doubled.grad is not None
    assert seen[0].shape == (4, 6)
    torch.testing.assert_close(leaf.grad.to_dense(), X.sum(1) + torch.full((4, 6), 2.0, dtype=torch.float64))
    assert not leaf.detach().requires_grad


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_torch_passes_it_on(layout: str) -> None:
    """Through torch's own conversion, and to leaves of the layouts of which torch accumulates gradients."""
    _, mine, theirs = full("csr")
    size = {"blocksize": (2, 3)} if layout.startswith("bs") else {}
    kind = getattr(torch, f"sparse_{layout}")
    (ow.cos(ow.asarray(mine.to_sparse(layout=kind, **size), grad="dense")) @ X).sum().backward()
    (torch.cos(theirs) @ X).sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    if layout in ("coo", "csr"):
        leaf = mine.detach().to_sparse(layout=kind).requires_grad_()
        (ow.cos(ow.asarray(leaf, grad="dense")) @ X).sum().backward()
        torch.testing.assert_close(leaf.grad.to_dense(), theirs.grad)


def test_in_place_and_fused() -> None:
    t, mine, theirs = full("csr")
    u = t * 1
    u.mul_(3).add_(t).transpose_(0, 1)
    u.copy_(u * u)
    ow.fused(lambda a: ow.sum(a * a, axis=1))(u).sum().backward()
    (4 * theirs).T.pow(4).sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    with pytest.raises(ow.UnsupportedError, match="fused"):
        ow.lazy(t)
    with pytest.raises(ow.UnsupportedError, match="leaf"):
        ow.asarray(make("csr", (4, 6)).tensor.detach(), grad="dense").requires_grad_().zero_()


def test_every_function_names_it() -> None:
    stub = Path(ow.__file__).with_suffix(".pyi").read_text()
    for name in ("sin", "matmul", "einsum", "sum"):
        assert re.search(rf"^def {name}\([^)]*grad: str \| None = None", stub, re.MULTILINE), name
    assert 'grad="dense"' in (ow.__doc__ or "")


def test_forward_makes_nothing_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of every element is found when it is asked for."""
    leaf = ow.asarray(ow.random((3000, 3000), 0.0005, format="csr", rng=0).to_torch(), grad="dense").requires_grad_()
    sizes: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda v: (sizes.append(v.untyped_storage().nbytes()), v)[1], lambda v: v
    ):
        y = ow.sin(leaf) @ torch.ones((3000, 2), dtype=torch.float64)
    assert y.requires_grad
    assert max(sizes) < 100_000


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_have_gradients_at_every_element(copied: Any) -> None:
    """A shallow copy is the same leaf, a deep one another."""
    leaf = ow.asarray(make("csr", (3, 4)).tensor.detach(), grad="dense").requires_grad_()
    other = copied(leaf)
    assert other.requires_grad
    assert other.is_leaf
    (other * 3).sum().backward()
    assert torch.equal(other.grad.to_dense(), torch.full((3, 4), 3.0, dtype=torch.float64))
    assert (leaf.grad is None) == (copied is copy.deepcopy)
    later = copied(ow.asarray(make("csr", (3, 4)).tensor.detach(), grad="dense")).requires_grad_()
    later.sum().backward()
    assert torch.equal(later.grad.to_dense(), torch.ones(3, 4, dtype=torch.float64))


KEEP = {
    "clone": lambda t: t.clone(), "torch.clone": torch.clone, "asformat": lambda t: t.asformat("coo"), "T": lambda t: t.T,
    "to": lambda t: t.to(torch.float32), "copy": lambda t: ow.asarray(t, copy=True), "contiguous": lambda t: t.contiguous(),
    "asarray": lambda t: ow.asarray(t, format="csc"), "to_sparse": lambda t: t.to_sparse(), "getitem": lambda t: t[1:],
    "reshape": lambda t: t.reshape(2, 12), "negative": lambda t: -t, "view": lambda t: t.view(24), "sum": lambda t: t.sum(1),
    "with_values": lambda t: t.with_values(t.values * 2), "detach_": lambda t: t.detach_(), "sort": lambda t: torch.sort(t, 1)[0],
}  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
def test_every_result_has_gradients_at_every_element(recorded: bool) -> None:
    """Of a tensor that nothing records yet, and under no_grad, as of one that is recorded."""
    for name, function in KEEP.items():
        leaf = ow.asarray(make("csr", (4, 6)).tensor.detach(), grad="dense")
        if recorded:
            with torch.no_grad():
                t = function(leaf.requires_grad_())
        else:
            t = function(leaf)
        assert type(t) is type(leaf), name
        assert not t.requires_grad, name
        t = t.requires_grad_()
        ow.exp(t).sum().backward()
        torch.testing.assert_close(t.grad.to_dense(), t.detach().to_dense().exp(), msg=name)
    assert ow.asarray(leaf) is leaf
    assert type(ow.asarray(leaf, grad="sparse")) is type(leaf.detach()) is ow.Tensor


def test_names_of_scipy_and_torch_that_change_the_shape() -> None:
    x = X[:, 0]
    for function in (
        lambda t: t.reshape(24), lambda t: t.reshape((2, 12)), lambda t: ow.asarray(t, copy=True), lambda t: ow.asarray(t, format="csc"),
    ):  # fmt: skip
        t, mine, theirs = full("csr")
        plain(ow.exp(function(t))).sum().backward()
        theirs.exp().sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad)
    t, mine, theirs = full("csr")
    (t.matvec(x).sum() + t.rmatmat(X[:4]).sum()).backward()
    (theirs @ x).sum().add((theirs.T @ X[:4]).sum()).backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    t, mine, theirs = full("csr")
    u = t * 1
    u.resize(2, 6)
    ow.exp(u.unsqueeze_(0)).sum().backward()
    theirs[:2].exp().sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)


FORWARD = {
    "function": lambda t: torch.exp(t), "product": lambda t: t @ X, "square": lambda t: t * t, "sum": lambda t: t.sum(1),
    "shape": lambda t: t.reshape(24), "chain": lambda t: torch.sin(t.exp() @ X), "index": lambda t: t[1:].cos(),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["csr", pytest.param("coo", marks=pytest.mark.slow)])
def test_tangents_of_every_element(layout: str) -> None:
    """Forward mode: of a dense tensor that is stored sparse, and of a Tensor with a tangent of any format."""
    _, dense, _ = full(layout)
    dense, tangent = dense.detach(), torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(4, 6)
    spec, _ = EVERY[layout]
    other = ow.asarray(dense, format=spec)
    with forward_ad.dual_level():
        for name, function in FORWARD.items():
            want = forward_ad.unpack_dual(function(forward_ad.make_dual(dense, tangent)))
            own = ow.asarray(forward_ad.make_dual(dense, tangent), format=spec, grad="dense")
            leaf = forward_ad.make_dual(ow.asarray(other, grad="dense"), ow.asarray(tangent, format="csc"))
            for t in (own, leaf):
                got = forward_ad.unpack_dual(plain(function(t)))
                torch.testing.assert_close(got.primal, want.primal, msg=name)
                torch.testing.assert_close(got.tangent, want.tangent, msg=name)
        stored = forward_ad.unpack_dual(forward_ad.make_dual(other, tangent.to_sparse_csr()))
        torch.testing.assert_close(stored.tangent.to_dense(), tangent * (dense != 0))
        assert stored.tangent.format == other.format
        assert forward_ad.unpack_dual(other).tangent is None
        assert ow.asarray(dense.to_sparse_csr()).nse == other.nse


@pytest.mark.parametrize("transform", ["grad", "jacfwd"])
def test_sparse_tensors_of_torch_inside_transforms(transform: str) -> None:
    d = torch.eye(4, 6, dtype=torch.float64)
    for given in (d.to_sparse_csr(), d.to_sparse_coo(), d.to_sparse_bsc((2, 2))):
        values = ow.asarray(given).values
        found = getattr(torch.func, transform)(lambda v, s=given: (ow.asarray(s).with_values(v) @ X).sum())(values)
        assert found.shape == values.shape
