"""Forward-mode derivatives of functions of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import func
from torch.autograd import forward_ad, gradcheck
from torch_matrix import LAYOUTS, X, make, plain

import openwork as ow

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's, when it first has tangents

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "product": lambda t: t @ X,
    "left": lambda t: X.T @ t.T,
    "spgemm": lambda t: t @ (2 * t).T,
    "merge": lambda t: t * t + t,
    "dense": lambda t: t / (X[:, 0] + 3),
    "function": lambda t: ow.sin(t),
    "conversion": lambda t: t.asformat("csc"),
    "slice": lambda t: t[1:, ::2],
    "sum": lambda t: t.sum(0),
    "variance": lambda t: t.var(1),
    "softmax": lambda t: ow.softmax(t, 1),
}


def of_values(name: str, t: ow.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    t = t.detach()
    return lambda values: plain(FUNCTIONS[name](t._from_storage(t._storage.with_values(values))))


@pytest.mark.parametrize("name", ["product", "spgemm", "merge", "variance"])
def test_forward_mode(name: str) -> None:
    t = make("csr", (4, 6)).tensor
    values = t.values.detach().requires_grad_()
    assert gradcheck(of_values(name, t), (values,), check_forward_ad=True, fast_mode=True)


def test_tangents_are_those_of_the_gradient() -> None:
    for name in FUNCTIONS:
        for layout in ("csr", "ragged bsr", "uncoalesced coo"):
            t = make(*LAYOUTS[layout]).tensor
            function, values = of_values(name, t), t.values.detach().requires_grad_()
            tangent = torch.linspace(-1, 1, len(values), dtype=torch.float64)
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(values.detach(), tangent)
                slope = forward_ad.unpack_dual(function(dual).square().sum()).tangent
            (grad,) = torch.autograd.grad(function(values).square().sum(), values)
            torch.testing.assert_close(slope, (grad * tangent).sum())


MORE: dict[str, Callable[[Any], Any]] = {
    **FUNCTIONS,
    "concat": lambda t: ow.concat([t, t * 2]),
    "product of elements": lambda t: t.prod(1),
    "index": lambda t: t[1],
    "comparison": lambda t: (t > 0.1) * t,
    "sampled": lambda t: ow.sddmm(t, X[:4], X.T) * t,
    "einsum": lambda t: ow.einsum("ij,kj,jl->ikl", t, t, X),
    "kron": lambda t: ow.kron(t, t[:1, :2]),
    "solve": lambda t: ow.linalg.solve(t[:, :4] + 4 * ow.eye(4, format="csr"), X[:4]),
    "largest": lambda t: t.max(axis=0),
    "logsumexp": lambda t: ow.logsumexp(t, axis=1),
    "sorted": lambda t: ow.sort(t, axis=1),
    "made sparse": lambda t: t.asformat("dense").asformat("csr") * 2,
}
BY_VALUE = ("softmax", "largest", "logsumexp", "sorted", "made sparse", "variance")
"""Functions of which a batch in a gradient is refused: what they do depends on the values."""


def more_of_values(name: str, t: ow.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    t = t.detach()
    return lambda values: plain(MORE[name](t._from_storage(t._storage.with_values(values))))


@pytest.mark.thin(391)
@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("layout", ["csr", pytest.param("ragged bsr", marks=pytest.mark.slow)])
def test_transforms_of_torch_func(name: str, layout: str) -> None:
    """Each transform gives what the graph gives; a batch, what a loop over it does."""
    t = make(*LAYOUTS[layout]).tensor.detach()
    function, v = more_of_values(name, t), t.values

    def loss(values: torch.Tensor) -> torch.Tensor:
        return function(values).square().sum()

    def slope(values: torch.Tensor) -> torch.Tensor:
        values = values.detach().requires_grad_()
        return torch.autograd.grad(loss(values), values)[0]

    tangent = torch.linspace(-1, 1, len(v), dtype=v.dtype)
    batch = torch.stack([v, v * 0.7 + 0.05 * (v != 0)])
    close = torch.testing.assert_close
    close(func.grad(loss)(v), slope(v))
    close(func.jvp(loss, (v,), (tangent,))[1], (slope(v) * tangent).sum())
    jacobian = torch.autograd.functional.jacobian(function, v)
    close(func.jacrev(function)(v), jacobian)
    close(func.jacfwd(function)(v), jacobian)
    close(func.hessian(loss)(v), torch.autograd.functional.hessian(loss, v))
    if name == "sorted":
        with pytest.raises(ow.UnsupportedError, match="batch"):
            func.vmap(function)(batch)
    else:
        close(func.vmap(function)(batch), torch.stack([function(b) for b in batch]))
    if name == "variance" and layout != "csr":
        return
    if name in BY_VALUE:
        with pytest.raises(ow.UnsupportedError, match="batch"):
            func.vmap(func.grad(loss))(batch)
    else:
        close(func.vmap(func.grad(loss))(batch), torch.stack([slope(b) for b in batch]))


def test_batches_of_dense_operands_are_one_product() -> None:
    t = make("csr", (4, 6)).tensor.detach()
    x = torch.stack([X, 2 * X, X - 1])
    torch.testing.assert_close(func.vmap(lambda b: t @ b)(x), t.to_dense() @ x)
    torch.testing.assert_close(
        func.vmap(lambda b: b.T @ t.T, in_dims=2, out_dims=1)(x.movedim(0, 2)), (x.mT @ t.to_dense().T).movedim(0, 1)
    )
    per_sample = func.vmap(func.grad(lambda v, b: (over(t, v) @ b).square().sum()), in_dims=(None, 0))(t.values, x)
    want = torch.stack([func.grad(lambda v, b=b: (over(t, v) @ b).square().sum())(t.values) for b in x])
    torch.testing.assert_close(per_sample, want)


def over(t: ow.Tensor, values: torch.Tensor) -> ow.Tensor:
    return t._from_storage(t._storage.with_values(values))


def test_a_structure_that_depends_on_the_values_of_a_batch_is_refused() -> None:
    t = make("dense", (4, 6)).tensor.detach()
    batch = torch.stack([t.values, t.values.flip(0)])
    with pytest.raises(ow.UnsupportedError, match="structure of the result depends on the values"):
        func.vmap(lambda v: over(t, v).asformat("coo").to_dense())(batch)


def test_what_cannot_be_transformed_is_refused() -> None:
    with pytest.raises(ow.UnsupportedError, match=r"torch\.func"):
        func.grad(lambda d: ow.asarray(d, format="csr", grad="dense").sum().to_dense())(torch.eye(3))


def test_tangents_of_dense_gradients() -> None:
    stored = ow.asarray(X, format="csr")
    t = ow.asarray(X, format="csr", grad="dense")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, stored)  # torch's, with a tangent of ours
        assert torch.equal(forward_ad.unpack_dual(dual).tangent, X)
        of_stored = ow.asarray(forward_ad.make_dual(stored, stored * 2), grad="dense")
        for given, want in ((forward_ad.make_dual(t, X + 1), X + 1), (of_stored, X * 2)):
            primal, tangent = forward_ad.unpack_dual(given * 3)
            assert torch.equal(primal.to_dense(), X * 3)
            torch.testing.assert_close(tangent.to_dense(), want * 3)
    assert t.requires_grad_() is t
    assert t.requires_grad
    assert (t * 1).requires_grad
    assert not t.requires_grad_(False).requires_grad
