"""Calls of Tensors as operators of torch.library, without a tracer: what they give is what the calls give."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import openwork as ow
from openwork.torch.compiled import traced_calls

DENSE = torch.linspace(-1.0, 1.0, 24, dtype=torch.float64).reshape(4, 6).flip(1)
TWICE = "coo(nonunique, unordered)"

CALLS: dict[str, Callable[[Any], tuple[str, tuple[Any, ...], dict[str, Any]]]] = {
    "an axis": lambda t: ("openwork.sum", (t,), {"axis": 1}),
    "a dtype": lambda t: ("openwork.astype", (t, torch.float32), {}),
    "not linear": lambda t: ("openwork.square", (t,), {}),
    "a list of tensors": lambda t: ("torch.cat", ([t, t], 1), {}),
    "a tuple of tensors": lambda t: ("openwork.stack", ((t, t),), {"axis": 0}),
    "a number": lambda t: ("operator.mul", (t, 2.5), {}),
    "an index": lambda t: (".__getitem__", (t, (slice(1, 3), slice(None, None, 2))), {}),
    "a format": lambda t: (".asformat", (t, ow.format("csc")), {}),
    "two results": lambda t: ("torch.max", (t, 1), {}),
    "results in a list": lambda t: ("torch.split", (t, 2), {}),
    "an attribute": lambda t: (":mT", (t,), {}),
    "beside a dense one": lambda t: ("openwork.matmul", (t, DENSE.T.contiguous()), {}),
    "a constant": lambda t: (".sparse_dim", (t,), {}),
}


def make(spec: str, threshold: float = 0.1) -> ow.Tensor:
    """A recorded tensor of more elements than a sample has; where it may be, one is stored twice."""
    if spec != TWICE:
        return ow.asarray(DENSE * (DENSE.abs() > threshold), format=spec).requires_grad_()
    at = torch.tensor([[3, 0, 1, 0, 2, 3], [5, 1, 1, 1, 0, 2]])
    return ow.asarray(torch.sparse_coo_tensor(at, DENSE[0] + 2, (4, 6))).requires_grad_()


def parts(x: Any) -> list[Any]:
    return [p for part in x for p in parts(part)] if isinstance(x, tuple | list) else [x]


def as_it_is(name: str, args: Any, kwargs: Any) -> Any:
    """The call without an operator of torch.library."""
    if name[0] == ":":
        return operator.attrgetter(name[1:])(*args)
    if name[0] == ".":
        return getattr(args[0], name[1:])(*args[1:], **kwargs)
    module, path = name.split(".", 1)
    function = operator.attrgetter(path)({"openwork": ow, "torch": torch, "operator": operator}[module])
    return function(*args, **kwargs)


@pytest.mark.thin(8)
@pytest.mark.parametrize("spec", ["csr", TWICE, "bitmap", "dense", "bsr(2, 2)"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_as_operators(name: str, spec: str) -> None:
    """Results, their formats and types, and gradients: also where only the last result has one."""
    found = []
    for call in (traced_calls.call, as_it_is):
        t = make(spec)
        result = call(*CALLS[name](t))
        out = parts(result)
        recorded = [y.to_dense() for y in out if getattr(y, "requires_grad", False)]
        last = torch.autograd.grad(recorded[-1].square().sum(), t.values, retain_graph=True) if recorded else ()
        whole = torch.autograd.grad(sum(y.square().sum() for y in recorded), t.values) if recorded else ()
        kinds = [(type(y), getattr(y, "format", None), getattr(y, "dtype", None)) for y in out]
        found.append((type(result), kinds, [getattr(y, "to_dense", lambda y=y: y)() for y in out], *last, *whole))
    (kind, kinds, *got), (want_kind, want_kinds, *want) = found
    assert (kind, kinds) == (want_kind, want_kinds)
    torch.testing.assert_close(got, want)


def declared(t: ow.Tensor, name: str, *args: Any) -> tuple[list[torch.Tensor], str, str]:
    """A call as the operator takes it: buffers, text, and what its results are declared to be."""
    buffers: list[torch.Tensor] = []
    node = traced_calls._node((t, *args), buffers, [])
    text, result, refused = traced_calls._described(name, ("tuple", (node, ("dict", (), ()))), ())
    assert not refused
    return buffers, text, result.outputs


def test_results_are_as_declared_or_refused() -> None:
    """Another format is converted; another fill value or shape, which follows from data, is refused."""
    t = make("csr").detach()
    buffers, text, outputs = declared(t, "operator.mul", 2.5)
    (values,) = torch.ops.openwork.call(buffers, text, outputs)
    torch.testing.assert_close(values, t.values * 2.5)
    _, columns, _ = declared(t, ".asformat", ow.format("csc"))
    (values,) = torch.ops.openwork.call(buffers, columns, outputs)
    torch.testing.assert_close(values, t.values)
    for name, argument in (("operator.add", 1.0), (".__getitem__", slice(2))):
        _, other, _ = declared(t, name, argument)
        with pytest.raises(ow.UnsupportedError, match="fill value or shape depends on data"):
            torch.ops.openwork.call(buffers, other, outputs)


@pytest.mark.parametrize("spec", ["csr", TWICE])
def test_what_torch_asks_of_the_operator(spec: str) -> None:
    """A schema that holds, and a fake kernel that agrees."""
    t, asked = make(spec), ("test_schema", "test_autograd_registration", "test_faketensor")
    for call in (("openwork.square",), (".__getitem__", slice(1, 3)), ("openwork.astype", torch.float32)):
        torch.library.opcheck(torch.ops.openwork.call, declared(t, *call), test_utils=asked)
