"""Arrays and tensors of rank 0 where a number is taken: the same values, format, stored elements and fill value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matrix import dense_array, tensor

import openwork as ow

A = dense_array((20, 30), 0, density=0.1)
Function = Callable[[ow.Tensor, Any], Any]


def changed(t: ow.Tensor, change: Callable[[ow.Tensor], Any]) -> ow.Tensor:
    out = ow.copy(t)
    change(out)
    return out


def imul(t: ow.Tensor, k: Any) -> None:
    t *= k


BINARY = (
    "add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "greater", "not_equal", "hypot", "logaddexp",
    "nextafter", "copysign", "isclose",
)  # fmt: skip


def left(name: str) -> Function:
    return lambda t, k: getattr(ow, name)(t, k)


def right(name: str) -> Function:
    return lambda t, k: getattr(ow, name)(k, t)


FUNCTIONS: dict[str, Function] = {
    **{name: left(name) for name in BINARY},
    **{f"{name}, the number first": right(name) for name in BINARY},
    "+": operator.add, "*": operator.mul, "<": operator.lt,
    "where": lambda t, k: ow.where(t > 2, t, k), "where, the number first": lambda t, k: ow.where(t > 2, k, t),
    "where of two": lambda t, k: ow.where(t > 2, k, 0.0), "where of one twice": lambda t, k: ow.where(t > 2, k, k),
    "np.where": lambda t, k: np.where(t > 2, t, k), "np.logaddexp": lambda t, k: np.logaddexp(t, k),
    "clip": lambda t, k: ow.clip(t, 0, k), "clip between": lambda t, k: ow.clip(t, k, k + 1), "np.clip": lambda t, k: np.clip(t, 0, k),
    "pointwise": lambda t, k: ow.pointwise("A * B + k", {"A": t, "B": t + 1, "k": k}),
    "evaluate": lambda t, k: ow.evaluate("C[i, j] = A[i, j] * k", A=t, k=k),
    "lazy": lambda t, k: ow.compute(ow.maximum(ow.lazy(t) * k, k)),
    "lazy where": lambda t, k: ow.compute(ow.where(ow.lazy(t) > 2, ow.lazy(t), k)),
    "fused": lambda t, k: ow.fused(lambda x, y: ow.where(x > 2, x * y, y))(t, k),
    "at": lambda t, k: t.at[3:5, 2:7].set(k),
    "A[key] =": lambda t, k: changed(t, lambda u: operator.setitem(u, (slice(3), 4), k)),
    "A[mask] =": lambda t, k: changed(t, lambda u: operator.setitem(u, u > 2, k)),
    "*=": lambda t, k: changed(t, lambda u: imul(u, k)),
    "pad": lambda t, k: ow.pad(t, 1, constant_values=k), "nan_to_num": lambda t, k: ow.nan_to_num(t, nan=k),
    "full_like": lambda t, k: ow.full_like(t, k), "isin": lambda t, k: ow.isin(t, k),
}  # fmt: skip


def described(t: Any) -> str:
    assert isinstance(t, ow.Tensor)
    return f"{t.format} {t.dtype} {t.fill_value!r} {t.to_numpy().tolist()}"


def rank_zero(number: float, library: str) -> list[Any]:
    found = [np.asarray(number), np.float64(number), ow.asarray(np.asarray(number))]
    if library == "numpy":
        return found
    import torch

    whole = torch.tensor(number, dtype=torch.float64)
    return [*found[:2], whole, torch.stack([whole, whole])[1], ow.asarray(whole)]


@pytest.mark.ci
@pytest.mark.thin(33)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spec", ["csr", "coo", "csc", "bsr(2, 3)", "dia", "dcsr"])
def test_they_are_numbers(spec: str, library: str) -> None:
    t = tensor(A, spec)
    if library == "torch":
        t = ow.asarray(t, like=pytest.importorskip("torch"))
    for number in (0.0, 2.5, -1.0):
        for name, function in FUNCTIONS.items():
            want = function(t, number)
            for value in rank_zero(number, library):
                got = function(t, value)
                assert described(got) == described(want), f"{name}, {number}, {type(value).__name__}"
                assert got.nse <= want.nse, f"{name}, {number}, {type(value).__name__}"


def test_a_condition_of_many_elements_stores_what_its_operands_do() -> None:
    t = ow.random((300, 100), 0.02, format="csr", rng=0)
    assert ow.where(t > 0.5, t, np.asarray(0.0)).nse == t.nse
    assert ow.where(t > 0.5, np.asarray(1.0), np.asarray(0.0)).nse == t.nse
    assert ow.logaddexp(t, np.asarray(1.0)).nse == t.nse


def test_gradients_of_values_of_rank_zero() -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.from_numpy(A), format="csr")
    k = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    ow.where(t > 2, t, k).to_dense().sum().backward()
    assert k.grad == (A <= 2).sum()
    values = t.values.clone().requires_grad_()
    found = ow.where(t > 2, t.with_values(values), torch.tensor(0.0, dtype=torch.float64))
    assert found.nse == t.nse
    found.to_dense().sum().backward()
    np.testing.assert_array_equal(values.grad.numpy(), (t.values > 2).numpy())
