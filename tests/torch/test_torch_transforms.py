"""Forward-mode derivatives of functions of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad, gradcheck
from torch_matrix import LAYOUTS, X, make, plain

import openwork as ow

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
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
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


def test_transforms_of_torch_func_are_refused() -> None:
    t = make("csr", (4, 6)).tensor.detach()
    for name in ("product", "merge", "spgemm", "conversion", "sum"):
        with pytest.raises(ow.UnsupportedError, match=r"torch\.func"):
            torch.func.grad(lambda v, name=name: of_values(name, t)(v).sum())(t.values)
        with pytest.raises(ow.UnsupportedError, match=r"torch\.func"):
            torch.func.vmap(of_values(name, t))(torch.stack([t.values, t.values]))
