"""Sparse Jacobians and Hessians of torch functions: against torch.func's dense ones, with patterns that are followed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, InvariantError, ShapeError, UnsupportedError

torch = pytest.importorskip("torch")
F: Any = torch.nn.functional
N = 12
SPARSE = (np.random.default_rng(0).random((N, N)) < 0.2) * 1.5
A = ow.asarray(SPARSE, format="csr")
OVER_TORCH = ow.asarray(A, like="torch")
DENSE = torch.tensor(SPARSE)
PLACES = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
WEIGHT = torch.linspace(1, 2, 9, dtype=torch.float64).reshape(3, 1, 3)


def written(x: Any) -> Any:
    y = torch.zeros(N, dtype=x.dtype)
    y[1:] = x[:-1] ** 2
    y[0] += x[3]
    y[2:4] *= x[5]
    return y


def written_through_views(x: Any) -> Any:
    y = x.clone()
    z = y.view(3, 4)
    z[1] = 0
    z[:, 2] += x[0]
    return y.mul_(2)


EXACT: dict[str, Callable[[Any], Any]] = {
    "pointwise": lambda x: F.relu(x) * torch.sin(x) + F.gelu(x) / (1 + x**2) + F.softplus(x),
    "neighbours": lambda x: torch.roll(x, 1) - 2 * x + torch.roll(x, -1) + x * (1 - x),
    "slices": lambda x: torch.diff(x, n=2) * x[1:-1],
    "loop": lambda x: torch.stack([x[i - 1] * x[i + 1] for i in range(1, N - 1)]),
    "in place": written,
    "views": written_through_views,
    "gather": lambda x: x[PLACES] ** 2,
    "index_add": lambda x: torch.zeros(N, dtype=x.dtype).index_add(0, PLACES, x**2),
    "scatter_add": lambda x: torch.zeros(N, dtype=x.dtype).scatter_add(0, PLACES, x**2),
    "index_put": lambda x: (x**3).index_put((PLACES[:3],), x[:3], accumulate=True),
    "put": lambda x: (x**3).index_put((PLACES[6:8],), x[:2]),
    "softmax": lambda x: torch.softmax(x.view(3, 4), 1),
    "layer norm": lambda x: F.layer_norm(x.view(3, 4), (4,)),
    "matrices": lambda x: x.view(3, 4) @ x.view(4, 3),
    "linear": lambda x: F.linear(x.view(3, 4), torch.ones(2, 4, dtype=x.dtype), torch.ones(2, dtype=x.dtype)),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x.view(3, 4), torch.ones(2, 4, dtype=x.dtype)),
    "convolution": lambda x: F.conv1d(x.view(1, 1, N), WEIGHT, padding=1, stride=2),
    "transposed convolution": lambda x: F.conv_transpose1d(x.view(1, 3, 4), WEIGHT, stride=2),
    "sums": lambda x: torch.cat([x.view(2, 6).std(1), x.norm().reshape(1), x.view(4, 3).mean(0), x.sum()[None]]),
    "windows": lambda x: x.unfold(0, 3, 1).sum(1) ** 2,
    "padding": lambda x: F.pad(x, (1, 2), value=3.0) ** 2,
    "triangle": lambda x: x.view(3, 4).tril() ** 2,
    "small matrices": lambda x: torch.linalg.solve(
        x.view(3, 2, 2) + 9 * torch.eye(2, dtype=x.dtype), torch.ones(3, 2, 1, dtype=x.dtype)
    ),
    "constant": lambda x: torch.ones(3, dtype=x.dtype),
    "branches": lambda x: torch.where(x > 0, x**2, x**3),
}
WIDER: dict[str, Callable[[Any], Any]] = {
    "both branches": lambda x: torch.where(x > 0, x, x.flip(0)),
    "sort": lambda x: x.view(3, 4).sort(1)[0],
    "cumsum": lambda x: x.cumsum(0),
    "maximum": lambda x: F.max_pool1d(x.view(1, 1, N), 2),
    "detached": lambda x: x * x.flip(0).detach(),
}


def argument() -> Any:
    return torch.linspace(0.3, 2, N, dtype=torch.float64) * (-1) ** torch.arange(N)


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("name", [*EXACT, *WIDER])
def test_patterns_are_followed(name: str) -> None:
    f, x = {**EXACT, **WIDER}[name], argument()
    J = ow.torch.jacobian(f, x)
    expected = torch.func.jacfwd(f)(x).reshape(-1, N)
    assert torch.allclose(J.to_dense(), expected)
    assert J.nse == torch.count_nonzero(expected) if name in EXACT else J.nse > torch.count_nonzero(expected)


PRODUCTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "over numpy": (lambda x: A @ (x**2) + x, lambda x: DENSE @ (x**2) + x),
    "over torch": (lambda x: OVER_TORCH @ (x**2), lambda x: DENSE @ (x**2)),
    "on the right": (lambda x: (x**2) @ OVER_TORCH, lambda x: (x**2) @ DENSE),
    "by name": (lambda x: ow.matmul(OVER_TORCH, x) * 2, lambda x: (DENSE @ x) * 2),
    "columns": (lambda x: OVER_TORCH @ x.view(N, 1).expand(N, 2), lambda x: DENSE @ x.view(N, 1).expand(N, 2)),
    "torch's": (lambda x: torch.sparse.mm(DENSE.to_sparse(), x.view(N, 1) ** 2), lambda x: DENSE @ x.view(N, 1) ** 2),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_sparse_matrices_are_followed(name: str) -> None:
    f, dense = PRODUCTS[name]
    x = argument()
    expected = torch.func.jacfwd(dense)(x).reshape(-1, N)
    J = ow.torch.jacobian(f, x)
    assert torch.allclose(J.to_dense(), expected)
    assert J.nse == torch.count_nonzero(expected)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "control flow": (lambda x: x * 2 if x.sum() > 0 else x, "_local_scalar_dense is not followed: its result depends"),
    "item": (lambda x: x * x[0].item(), "_local_scalar_dense"),
    "order": (lambda x: x[x.argsort()], "index.Tensor is not followed: elements go where values of x say"),
    "mask": (lambda x: x[x > 0], "index.Tensor is not followed"),
    "numpy": (lambda x: torch.from_numpy(np.sin(x.detach().numpy())), "what numpy does"),
    "list": (lambda x: torch.tensor(x.tolist()), "what tolist does"),
    "no rule": (lambda x: torch.fft.rfft(x).abs(), "_fft_r2c is not followed"),
    "a Tensor's function": (lambda x: ow.multiply(OVER_TORCH, x), "what openwork.multiply does"),
    "a Tensor's operator": (lambda x: OVER_TORCH * x, "what mul does"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_named(name: str) -> None:
    f, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message):
        ow.torch.jacobian(f, argument())


def test_a_tensor_of_the_caller_is_not_written_to() -> None:
    kept = torch.zeros(N, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match="writes to a tensor that f did not make"):
        ow.torch.jacobian(lambda x: kept.add_(x), argument())


HESSIANS: dict[str, Callable[[Any], Any]] = {
    "rosenbrock": lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(),
    "separable": lambda x: x.sin().sum(),
    "linear": lambda x: x.sum(),
    "arrow": lambda x: x[0] ** 2 * (x**2).sum(),
    "one number each": lambda x: ((x.view(3, 4) ** 3).sum(1) ** 2).sum()[None],
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name: str) -> None:
    f, x = HESSIANS[name], argument()
    H = ow.torch.hessian(f, x)
    expected = torch.func.hessian(lambda v: f(v).sum())(x)
    assert torch.allclose(H.to_dense(), expected)
    given = ow.torch.hessian(f, x, pattern=torch.tril(expected), format="csc")
    assert given.format == ow.format("csc")
    assert torch.allclose(given.to_dense(), expected)


def test_hessians_of_products_with_tensors() -> None:
    x = argument()
    H = ow.torch.hessian(lambda v: v @ (OVER_TORCH @ v**2), x)
    assert torch.allclose(H.to_dense(), torch.func.hessian(lambda v: v @ (DENSE @ v**2))(x))


def test_values_stay_on_the_graph() -> None:
    x, w = argument().requires_grad_(), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)

    def f(v: Any) -> Any:
        return w * v[1:] ** 2 * v[:-1]

    J = ow.torch.jacobian(f, x)
    found = torch.autograd.grad(J.values.square().sum(), (x, w), create_graph=True)
    expected = torch.autograd.grad(torch.func.jacfwd(f)(x).square().sum(), (x, w))
    assert all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True))
    assert torch.autograd.grad(found[0].sum(), x)[0].shape == x.shape
    H = ow.torch.hessian(lambda v: f(v).sum(), x)
    dense = torch.func.hessian(lambda v: f(v).sum())(x)
    found = torch.autograd.grad(H.values.square().sum(), (x, w))
    assert all(
        torch.allclose(a, b) for a, b in zip(found, torch.autograd.grad(dense.square().sum(), (x, w)), strict=True)
    )


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_modes_plans_and_shapes(mode: str) -> None:
    x = argument().float().reshape(3, 4)

    def f(v: Any) -> Any:
        return torch.cat([(v**2).sum().reshape(1), v.reshape(-1)[1:] * v[0, 0]])

    expected = torch.func.jacfwd(f)(x).reshape(N, N)
    J = ow.torch.jacobian(f, x, mode=mode)
    assert torch.allclose(J.to_dense(), expected)
    plan = ow.torch.jacobian_plan(J, mode, format="bsr(2, 2)")
    assert torch.allclose(pickle.loads(pickle.dumps(plan))(f, x).to_dense(), expected)
    assert plan(f, 2 * x).format == ow.format("bsr(2, 2)")
    assert plan.evaluations == {"forward": N, "reverse": N}.get(mode, 3)


def test_functions_that_vmap_does_not_follow() -> None:
    def f(v: Any) -> Any:
        return v**2 if float(v.detach().sum()) > -100 else v

    x = argument()
    J = ow.torch.jacobian(f, x, pattern=np.tri(N) - np.tri(N, k=-3))
    assert torch.allclose(J.to_dense(), torch.diag(2 * x))


def test_a_missing_element_is_found() -> None:
    with pytest.raises(InvariantError, match="differs from the derivative along v"):
        ow.torch.jacobian(EXACT["neighbours"], argument(), pattern=np.eye(N))
    with pytest.raises(InvariantError, match="differs from the derivative along v"):
        ow.torch.jacobian(lambda x: x.sum()[None], argument(), pattern=np.eye(1, N), mode="reverse")
    with pytest.raises(InvariantError, match="differs from the derivative along v"):
        ow.torch.hessian(HESSIANS["rosenbrock"], argument(), pattern=np.eye(N))


def test_what_is_refused() -> None:
    x = argument()
    with pytest.raises(DTypeError, match="x is a ndarray"):
        ow.torch.jacobian(torch.sin, np.ones(3))
    with pytest.raises(DTypeError, match=r"x is torch\.int64"):
        ow.torch.jacobian(torch.sin, torch.arange(3))
    with pytest.raises(ShapeError, match="expected: one"):
        ow.torch.hessian(torch.sin, x, pattern=np.eye(N))
    with pytest.raises(ShapeError, match="x has 12 elements"):
        ow.torch.jacobian(torch.sin, x, pattern=np.eye(5))
    with pytest.raises(ShapeError, match="f gave 12 elements"):
        ow.torch.jacobian(torch.sin, x, pattern=np.ones((5, N)))
    with pytest.raises(UnsupportedError, match="f gave a tuple"):
        ow.torch.jacobian(lambda v: (v, v), x)
