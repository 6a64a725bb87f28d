"""Calls with `grad="dense"` that change something, draw numbers, or convert on the way: values and gradients are torch's."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.errors import UnsupportedError

D = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.5], [0.0, 0.0, 3.0]], dtype=torch.float64)
E = torch.tensor([[3.0, 4.0, 0.5], [0.25, 5.0, 0.0], [1.0, 2.0, 6.0]], dtype=torch.float64)
W = torch.arange(1.0, 10.0, dtype=torch.float64).reshape(3, 3)
FORMATS = ["csr", "csc", "coo", "coo(nonunique)", "bsr(2, 2)", "dia", "csf", "ell(3)", "bitmap", "dense"]


def leaf(format: str | None = None, dense_too: bool = True) -> tuple[torch.Tensor, Any]:
    """A dense leaf, and a tensor of its elements: torch's own without a format."""
    a = D.clone().requires_grad_()
    if format is None:
        return a, a.clone()
    t = ow.asarray(a, format=ow.format(format, 2), grad="dense" if dense_too else None)
    return a, t.clone()


def dense(x: Any) -> torch.Tensor:
    found: torch.Tensor = x.to_dense() if isinstance(x, ow.Tensor) else x
    return found


IN_PLACE = {
    "+= 2": lambda c, x: operator.iadd(c, 2.0),
    "-= x": operator.isub,
    "*= 2": lambda c, x: operator.imul(c, 2.0),
    "*= x": operator.imul,
    "/= x": lambda c, x: operator.itruediv(c, x + 1),
    "**= 2": lambda c, x: operator.ipow(c, 2),
    "**= x": lambda c, x: operator.ipow(c, x + 1),
    "mul_": lambda c, x: c.mul_(x),
    "add_": lambda c, x: c.add_(x, alpha=3),
    "sin_": lambda c, x: c.sin_(),
    "c[0] = x[1]": lambda c, x: c.__setitem__(0, x[1]),
    "twice": lambda c, x: operator.imul(operator.imul(c, x), 3.0),
}


@pytest.mark.thin(56)
@pytest.mark.parametrize("end", ["to_dense", "sum", "@"])
@pytest.mark.parametrize("format", FORMATS)
def test_in_place_forms_are_recorded(format: str, end: str) -> None:
    def ending(c: Any) -> torch.Tensor:
        found = dense(c) * W if end == "to_dense" else c.sum(0) if end == "sum" else c @ W
        return dense(found).sum()

    for name, change in IN_PLACE.items():
        for other in (E, ow.asarray(E, format="csr")):
            (a, c), (b, d) = leaf(format), leaf()
            assert change(c, other) is c or name.endswith("]"), name
            assert c.format == ow.format(format.partition("(nonunique")[0], 2), name
            change(d, E)
            ending(c).backward()
            ending(d).backward()
            torch.testing.assert_close(dense(c).detach(), d.detach(), msg=lambda m, name=name: f"{name}: {m}")
            torch.testing.assert_close(a.grad, b.grad, msg=lambda m, name=name: f"{name}: {m}")


def test_matmul_in_place_takes_the_product_over() -> None:
    (a, c), (b, d) = leaf("csr"), leaf()
    c @= E
    (dense(c) * W).sum().backward()
    ((d @ E) * W).sum().backward()
    torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize("format", ["csr", "coo", "bsr(2, 2)"])
def test_what_is_not_recorded_is_written_into_the_values(format: str) -> None:
    """As of an ordinary tensor; a leaf keeps its graph in `no_grad`."""
    t = ow.asarray(D, format=format)
    c = ow.asarray(t, grad="dense")
    c *= 2.0
    assert torch.equal(t.to_dense(), 2 * D)
    leaf_tensor = ow.asarray(t, grad="dense").requires_grad_()
    with torch.no_grad():
        leaf_tensor.mul_(0.5)
    assert leaf_tensor.is_leaf
    assert torch.equal(t.to_dense(), D)
    (leaf_tensor @ W).sum().backward()
    assert leaf_tensor.grad is not None
    torch.testing.assert_close(leaf_tensor.grad.to_dense(), W.sum(1).expand(3, 3))
    with pytest.raises(UnsupportedError, match="leaf that requires a gradient"):
        leaf_tensor *= 2.0


def test_numpys_names_in_place_are_recorded() -> None:
    (a, c), (b, d) = leaf("csr"), leaf()
    np.multiply(c, 3.0, out=c)
    np.add.at(c, ([0, 2], [0, 1]), 2.0)
    d = d * 3.0
    (dense(c) * W).sum().backward()
    (d * W).sum().backward()
    torch.testing.assert_close(a.grad, b.grad)
    with pytest.raises(UnsupportedError, match=r"subtract\.at has no gradient"):
        np.subtract.at(leaf("csr", False)[1], ([0], [1]), 2.0)


@pytest.mark.parametrize("change", [
    lambda t, c: operator.iadd(t, c), lambda t, c: t.mul_(c), lambda t, c: t.copy_(c),
    lambda t, c: t.__setitem__(0, c[0]), lambda t, c: np.add(t, c, out=t),
])  # fmt: skip
def test_an_ordinary_tensor_takes_over_no_gradients_that_it_has_no_place_for(change: Callable[..., Any]) -> None:
    _, c = leaf("csr")
    t = ow.asarray(E, format="csr")
    with pytest.raises(UnsupportedError, match=re.escape('asarray(A, grad="dense") first')):
        change(t, c)
    with torch.no_grad():
        change(t, c)


INTO_DENSE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul,
    "/=": lambda d, c: operator.itruediv(d, c + 1),
    "**=": lambda d, c: operator.ipow(d, c + 1),
    "add_": lambda d, c: d.add_(c), "sub_": lambda d, c: d.sub_(c, alpha=2), "mul_": lambda d, c: d.mul_(c),
    "addmm_": lambda d, c: d.addmm_(c, W), "addcmul_": lambda d, c: d.addcmul_(c, W),
    "copy_": lambda d, c: d.copy_(c), "lerp_": lambda d, c: d.lerp_(c, 0.25), "fill_": lambda d, c: d.fill_(c.sum()),
    "index_put_": lambda d, c: d.index_put_((torch.tensor([0, 2]),), c[:2]),
    "index_copy_": lambda d, c: d.index_copy_(0, torch.tensor([2, 0, 1]), c),
    "scatter_": lambda d, c: d.scatter_(0, torch.tensor([[2, 0, 1], [0, 1, 2], [1, 2, 0]]), c),
    "masked_scatter_": lambda d, c: d.masked_scatter_(W > 4, c),
    "d[0] = c[1]": lambda d, c: d.__setitem__(0, c[1]),
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("grad", ["none", "sparse", "dense"])
@pytest.mark.parametrize("name", INTO_DENSE)
def test_dense_tensors_are_changed_once(name: str, grad: str) -> None:
    """By a sparse operand, as by a dense one: the object stays, and backward changes nothing."""
    change = INTO_DENSE[name]
    for format in ("csr", "coo", *(("bsr(2, 2)", "dense") if grad == "dense" else ())):
        found = []
        for form in (format, None):
            a, c = leaf(form, grad == "dense")
            c = c.detach() if grad == "none" else c
            x = (E * 0.5).requires_grad_()
            d = x * 1
            result = change(d, c)
            assert result is d or result is None
            before = d.detach().clone()
            (d * W).sum().backward()
            assert torch.equal(d.detach(), before)
            found.append((before, x.grad, a.grad))
        (values, first, second), (want, want_first, want_second) = found
        torch.testing.assert_close(values, want)
        torch.testing.assert_close(first, want_first)
        if want_second is not None and second is not None:
            torch.testing.assert_close(second, want_second if grad == "dense" else want_second * (D != 0))
        else:
            assert grad == "none"


def test_out_is_not_recorded_nor_written_again() -> None:
    _, c = leaf("csr")
    out = torch.zeros(3, 3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(c, E, out=out)
    with torch.no_grad():
        assert torch.add(c, E, out=out) is out
    torch.testing.assert_close(out, D + E)


CONVERTED = {
    "smm": (lambda t: torch.smm(t, E), lambda d: d @ E),
    "hspmm": (lambda t: torch.hspmm(t, E), lambda d: d @ E),
    "sspaddmm": (lambda t: torch.sspaddmm(t, t, E), lambda d: d + d @ E),
    "kron": (lambda t: ow.kron(t, ow.asarray(E, format="csr")), lambda d: torch.kron(d, E)),
    "torch.kron": (lambda t: torch.kron(ow.asarray(E, format="coo"), t), lambda d: torch.kron(E, d)),
    "kron of itself": (lambda t: ow.kron(t, t, format="csc"), lambda d: torch.kron(d, d)),
    "kronsum": (
        lambda t: ow.kronsum(t, ow.asarray(E, format="csr")),
        lambda d: torch.kron(torch.eye(3, dtype=torch.float64), d) + torch.kron(E, torch.eye(3, dtype=torch.float64)),
    ),
    "einsum": (lambda t: ow.einsum("ij,kl->ijkl", t, t), lambda d: torch.einsum("ij,kl->ijkl", d, d)),
    "block_diag": (lambda t: ow.block_diag([t, t], format="coo"), lambda d: torch.block_diag(d, d)),
    "kron, csr": (lambda t: ow.kron(t, t).asformat("csr") * 2, lambda d: torch.kron(d, d) * 2),
}


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("name", CONVERTED)
def test_what_a_result_does_not_store_has_its_gradient(name: str) -> None:
    mine, theirs = CONVERTED[name]
    for format in FORMATS:
        (a, c), (b, d) = leaf(format), leaf()
        got, want = dense(mine(c)), theirs(d)
        weights = torch.linspace(0.5, 1.5, want.numel(), dtype=torch.float64).reshape(want.shape)
        torch.testing.assert_close(got, want)
        (got * weights).sum().backward()
        (want * weights).sum().backward()
        torch.testing.assert_close(a.grad, b.grad, msg=lambda m, format=format: f"{format}: {m}")


@pytest.mark.parametrize("sparse", ["csr", "coo"])
def test_zeros_of_a_dense_factor_have_gradients_in_kron(sparse: str) -> None:
    """Every element of a dense tensor is stored, whatever its value."""
    (a, b), other = (D.clone().requires_grad_() for _ in range(2)), ow.asarray(E, format=sparse)
    weights = torch.linspace(0.5, 1.5, 81, dtype=torch.float64).reshape(9, 9)
    (dense(ow.kron(a, other)) * weights).sum().backward()
    (torch.kron(b, E) * weights).sum().backward()
    torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize("format", ["csr", "coo", "bsr(2, 2)"])
def test_dropout_has_the_gradient_of_what_it_drew(format: str) -> None:
    torch.manual_seed(0)
    a = torch.ones(6, 6, dtype=torch.float64).requires_grad_()
    t = ow.asarray(a, format=format, grad="dense")
    dropped = torch.nn.functional.dropout(t, 0.5)
    state = torch.get_rng_state()
    (gradient,) = torch.autograd.grad(dense(dropped).sum(), a)
    assert torch.equal(gradient, dense(dropped).detach())
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("other", [E.clone(), ow.asarray(E.clone(), format="csr")])
def test_backward_sees_that_an_operand_was_changed(other: Any) -> None:
    _, c = leaf("csr")
    product = c * other
    other.mul_(0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
