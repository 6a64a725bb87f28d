"""Transforms of functions of Tensors, as arguments, results and closed over, beside those of dense tensors.

Those of openwork.torch.func take all; those of torch.func take Tensors as nodes of its pytrees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import openwork as ow
from openwork.torch import func

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's, when it first has tangents

close = torch.testing.assert_close
BASE = torch.tensor([[0.0, 1.5, 0, 0, -2], [0, 0, 0, 0, 0], [0.5, 3, 0, 0, 0], [0, 0, 0, 0, 4]], dtype=torch.float64)
X = torch.linspace(-1, 2, 10, dtype=torch.float64).reshape(5, 2)
Y = torch.linspace(0.5, 2, 20, dtype=torch.float64).reshape(4, 5)

FORMATS = [
    pytest.param(f, marks=() if f == "csr" else pytest.mark.slow)
    for f in ("csr", "csc", "coo", "dcsr", "csf", "dia", "ell(2)", "bitmap", "bsr(2, 2)", "bsc(3, 2)", "dense")
]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "product": lambda a: a @ X,
    "left": lambda a: X.T @ a.T,
    "by a dense one": lambda a: a * Y,
    "merge": lambda a: a * a * 2 + a,
    "sums": lambda a: (a * a).sum(1),
    "transpose": lambda a: a.T,
    "function": torch.sin,
    "spgemm": lambda a: a @ a.T,
}


def plain(x: Any) -> Any:
    return x.to_dense() if isinstance(x, ow.Tensor) else x


def stored(t: Any, shape: tuple[int, ...]) -> torch.Tensor:
    """Whether an element is stored, in a shape; everything is in a dense tensor."""
    if not isinstance(t, ow.Tensor) or t.format.is_dense:
        return torch.ones(shape, dtype=torch.bool)
    result: torch.Tensor = t.with_values(torch.ones_like(t.values)).to_dense() != 0
    return result


def make(spec: str) -> tuple[ow.Tensor, torch.Tensor]:
    a = ow.asarray(BASE, format=spec)
    return a, stored(a, (4, 5))


@pytest.mark.parametrize("spec", FORMATS)
def test_gradients_by_tensors(spec: str) -> None:
    a, mask = make(spec)
    for f in FUNCTIONS.values():
        gradient = func.grad(lambda t, f=f: (f(t) * f(t)).sum())(a)
        assert isinstance(gradient, ow.Tensor)
        assert gradient.format == a.format
        want, value = func.grad_and_value(lambda t, f=f: (f(t) * f(t)).sum())(BASE)
        close(gradient.to_dense(), torch.where(mask, want, 0))
        close(func.grad_and_value(lambda t, f=f: (f(t) * f(t)).sum())(a)[1], value)


@pytest.mark.parametrize("spec", FORMATS)
def test_products_with_jacobians(spec: str) -> None:
    a, mask = make(spec)
    for f in FUNCTIONS.values():
        want, slope = func.jvp(f, (BASE,), (Y * mask,))
        got, tangent = func.jvp(f, (a,), (ow.asarray(Y * mask, format="coo"),))
        close(plain(got), want)
        close(plain(tangent), slope)
        output, pull = func.vjp(f, a)
        want, pull_dense = func.vjp(f, BASE)
        kept = stored(output, tuple(want.shape))
        cotangent = torch.linspace(-1, 1, want.numel(), dtype=torch.float64).reshape(want.shape) * kept
        close(plain(output), want)
        close(pull(cotangent)[0].to_dense(), torch.where(mask, pull_dense(cotangent)[0], 0))
        sparse = ow.asarray(cotangent, format="coo")
        close(pull(sparse)[0].to_dense(), torch.where(mask, pull_dense(cotangent)[0], 0))


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("name", ["product", "sums", pytest.param("merge"), "by a dense one",
                                  pytest.param("function", marks=pytest.mark.slow)])  # fmt: skip
def test_jacobians(spec: str, name: str) -> None:
    a, mask = make(spec)
    f = FUNCTIONS[name]
    want = func.jacrev(f)(BASE)
    of = stored(f(a), tuple(f(BASE).shape))
    want = torch.where(of.reshape(*of.shape, 1, 1) & mask, want, 0)
    for transform in (func.jacrev, func.jacfwd):
        jacobian, beside = transform(lambda t: (f(t), t * 2), has_aux=True)(a)
        assert isinstance(jacobian, ow.Tensor)
        assert jacobian.shape == tuple(want.shape)
        close(jacobian.to_dense(), want)
        close(plain(beside), 2 * BASE)
    by_dense = transform(lambda y: a * y)(Y)
    close(plain(by_dense), transform(lambda y: BASE * y)(Y))


@pytest.mark.parametrize("spec", FORMATS)
def test_second_derivatives(spec: str) -> None:
    a, mask = make(spec)
    both = mask & mask.reshape(4, 5, 1, 1)
    hessian = func.hessian(lambda t: (t * t * t).sum())
    close(hessian(a).to_dense(), torch.where(both, hessian(BASE), 0))

    def twice(t: Any) -> Any:
        return (func.grad(lambda u: (u * u * u).sum())(t) * t).sum()

    close(func.grad(twice)(a).to_dense(), 9 * BASE * BASE)


@pytest.mark.parametrize("spec", FORMATS)
def test_batches(spec: str) -> None:
    a, mask = make(spec)
    s = ow.stack([a, a * 2, a + a * a])
    d = s.to_dense()
    close(func.vmap(lambda t: t @ X)(s), d @ X)
    close(plain(func.vmap(lambda t: t * t, out_dims=1)(s)), (d * d).transpose(0, 1))
    close(plain(func.vmap(lambda t, y: t @ y, in_dims=(-1, None), out_dims=-1)(s, torch.ones(4).double())), d.sum(1))
    y = torch.stack([Y, 2 * Y, Y - 1])
    close(plain(func.vmap(lambda y: a * y)(y)), BASE * y)
    got = func.vmap(lambda y: {"a": a * y, "y": y + 1}, out_dims={"a": 2, "y": 1})(y)
    close(plain(got["a"]), (BASE * y).movedim(0, 2))
    close(got["y"], (y + 1).transpose(0, 1))
    numbers = torch.arange(3, dtype=torch.float64)
    close(plain(func.vmap(lambda v: a * v)(numbers)), BASE * numbers.reshape(3, 1, 1))
    close(plain(func.vmap(lambda v: a + v)(numbers)), BASE + numbers.reshape(3, 1, 1))
    x = torch.stack([X, 2 * X])
    per_sample = func.vmap(func.grad(lambda t, x: (t @ x).square().sum()), in_dims=(None, 0))
    close(plain(per_sample(a, x)), torch.where(mask, per_sample(BASE, x), 0))


def test_trees_of_arguments_and_masked_tensors() -> None:
    a, mask = make("csr")
    tree = {"a": a, "scale": torch.ones(2, dtype=torch.float64)}
    gradient = func.grad(lambda p: ((p["a"] @ X) * p["scale"]).sum())(tree)
    close(gradient["scale"], (BASE @ X).sum(0))
    close(gradient["a"].to_dense(), torch.where(mask, X.sum(1), 0))
    by_x, by_a = func.grad(lambda x, a: (a @ x).sum(), argnums=(0, 1))(X, a)
    close(by_x, BASE.sum(0)[:, None].expand(5, 2))
    close(by_a.to_dense(), gradient["a"].to_dense())
    m = ow.as_masked_tensor(BASE, BASE != 0)
    slope = func.grad(lambda m: (m * m).sum())(m)
    assert isinstance(slope, ow.MaskedTensor)
    close(slope.filled(0).to_dense(), 2 * BASE)
    shifted = ow.asarray(BASE + 1, format="csr", fill_value=1.0)
    slope = func.grad(lambda t: (t * t).sum())(shifted)
    assert slope.fill_value == 0
    close(slope.to_dense(), torch.where(BASE != 0, 2 * (BASE + 1), 0))


def test_modules_called_with_tensors() -> None:
    a, _ = make("csr")
    layer = torch.nn.Linear(5, 3, dtype=torch.float64)
    parameters = dict(layer.named_parameters())
    call = torch.func.functional_call
    close(call(layer, parameters, (a,)), layer(BASE))
    got = func.grad(lambda p: call(layer, p, (a,)).square().sum())(parameters)
    want = func.grad(lambda p: call(layer, p, (BASE,)).square().sum())(parameters)
    close(got["weight"], want["weight"])
    with pytest.raises(TypeError, match="not an instance of"):
        call(layer, {**parameters, "weight": a}, (X,))


def test_what_transforms_do_not_take() -> None:
    a, _ = make("csr")
    with pytest.raises(ow.UnsupportedError, match="inside ProxyTorchDispatchMode"):
        torch.func.linearize(lambda t: t @ X, a)
    leaf = ow.asarray(BASE.to_sparse_csr(), grad="dense").requires_grad_()
    with pytest.raises(ow.UnsupportedError, match='grad="dense"'):
        func.grad(lambda t: t.sum())(leaf)
    for arguments, options in [((a, torch.ones(3)), {}), ((a, 2.0), {}), ((a,), {"in_dims": 2})]:
        with pytest.raises(ValueError, match="vmap"):
            func.vmap(lambda t, *rest: t * 2, **options)(*arguments)
    with pytest.raises(ow.ShapeError):
        func.jvp(lambda t: t @ X, (a,), (a.T,))
    with pytest.raises(ow.UnsupportedError, match="infinities"):
        func.vmap(lambda y: a * y)(torch.full((2, 4, 5), torch.inf, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="scalar"):
        func.grad(lambda t: t @ X)(a)


@pytest.mark.parametrize("spec", FORMATS)
def test_tensors_in_torchs_own_transforms(spec: str) -> None:
    """As nodes of pytrees: what has one number for each stored element and the fill value 0."""
    a, _ = make(spec)
    for f in FUNCTIONS.values():
        own = torch.func.grad(lambda t, f=f: plain((f(t) * f(t)).sum()))(a)
        assert own.format == a.format
        close(own.to_dense(), func.grad(lambda t, f=f: (f(t) * f(t)).sum())(a).to_dense())
        tangent = a.with_values(a.values * 2)
        for got, want in zip(torch.func.jvp(f, (a,), (tangent,)), func.jvp(f, (a,), (tangent,)), strict=True):
            close(plain(got), plain(want))
        output, pull = torch.func.vjp(f, a)
        close(pull(output)[0].to_dense(), func.vjp(f, a)[1](output)[0].to_dense())
    batch = torch.stack([X, 2 * X])
    close(torch.func.vmap(lambda t, x: t @ x, in_dims=(None, 0))(a, batch), BASE @ batch)
    m = ow.as_masked_tensor(BASE, BASE != 0)
    close(torch.func.grad(lambda m: (m * m).sum().filled(0).to_dense())(m).filled(0).to_dense(), 2 * BASE)


def test_what_torchs_own_transforms_do_not_take_of_tensors() -> None:
    a, _ = make("csr")
    batch = torch.stack([Y, 2 * Y])
    for call in (
        lambda: torch.func.jacrev(lambda t: t @ X)(a),
        lambda: torch.func.hessian(lambda t: (t * t).sum().to_dense())(a),
        lambda: torch.func.vmap(lambda t: t @ X)(ow.stack([a, a])),
        lambda: torch.func.vmap(lambda y: a * y)(batch),
        lambda: torch.func.grad(lambda t: t.sum().to_dense())(ow.asarray(BASE + 1, format="csr", fill_value=1.0)),
    ):
        with pytest.raises(ow.UnsupportedError, match=r"openwork\.torch\.func"):
            call()
    with pytest.raises(RuntimeError, match="to return a Tensor"):
        torch.func.grad(lambda t: (t * t).sum())(a)
    with pytest.raises(RuntimeError, match="same python structure"):
        torch.func.jvp(lambda t: t @ X, (a,), (a.asformat("coo"),))


def test_contexts_of_nodes() -> None:
    a, _ = make("csr")
    leaves, spec = pytree.tree_flatten([a, a.with_values(a.values * 2), ow.asarray(BASE, format="csr")])
    assert [type(x) for x in leaves] == [torch.Tensor] * 3
    first, second, third = spec.children()
    assert first == second == third
    assert hash(first.context) == hash(third.context)
    for other in (a.asformat("csc"), ow.asarray(BASE.T, format="csr"), a * 0 + 1, a[:, :4], ow.as_masked_tensor(a), 1):
        assert first != pytree.tree_structure(other)
    with pytest.raises(ow.UnsupportedError, match="register_for_export"):
        pytree.treespec_dumps(spec)
    n = ow.asarray(BASE.numpy(), format="csr")
    assert isinstance(pytree.tree_map(lambda x: x * 2, n).values, type(n.values))
