"""Checkpoints, hooks, edges of the graph and pickles: what torch does with its tensors, of Tensors."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import openwork as ow

close = torch.testing.assert_close
BASE = torch.tensor([[0.0, 1.5, 0, -2], [0, 0, 0, 0], [0.5, 3, 0, 4]], dtype=torch.float64)
X = torch.linspace(-1, 2, 8, dtype=torch.float64).reshape(4, 2)
FORMATS = ["csr", *[pytest.param(f, marks=pytest.mark.slow) for f in ("coo", "bsr(2, 2)", "dia", "bitmap", "dense")]]


def leaf(spec: str = "csr") -> ow.Tensor:
    return ow.asarray(BASE, format=spec).requires_grad_()


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "dense result": lambda a, x: (a * a) @ x,
    "sparse result": lambda a, x: a * a * x.sum(),
    "two results": lambda a, x: (a @ x, a * 3),
    "a dict": lambda a, x: {"a": a * x.sum(), "y": a @ x},
}


def total(result: Any) -> Any:
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else (result,)
    return sum((p * p).sum() for p in parts)


@pytest.mark.parametrize("spec", FORMATS)
def test_checkpoints(spec: str) -> None:
    for f in FUNCTIONS.values():
        a, x = leaf(spec), X.clone().requires_grad_()
        total(f(a, x)).backward()
        b, y = leaf(spec), X.clone().requires_grad_()
        doubled = b * 1  # no leaf: its graph is gone through once
        first = checkpoint(f, doubled, y, use_reentrant=False)
        assert isinstance(first, type(f(a, x)))
        total(first).backward()
        close(b.grad.to_dense(), a.grad.to_dense())
        close(y.grad, x.grad)
        c = leaf(spec)
        total(checkpoint(lambda t, f=f: f(t, X), c, use_reentrant=False)).backward()
        d = leaf(spec)
        total(f(d, X)).backward()
        close(c.grad.to_dense(), d.grad.to_dense())


def test_checkpoints_of_several_parts_and_masked_tensors() -> None:
    a, b = leaf(), leaf()
    parts = [lambda t: t * t, torch.sin, lambda t: t * 2]
    checkpoint_sequential(parts, 2, a, use_reentrant=False).sum().backward()
    (torch.sin(b * b) * 2).sum().backward()
    close(a.grad.to_dense(), b.grad.to_dense())
    m, n = (ow.as_masked_tensor(BASE, BASE != 0).requires_grad_() for _ in range(2))
    checkpoint(lambda t: t * t, m, use_reentrant=False).sum().backward()
    (n * n).sum().backward()
    close(m.grad.filled(0).to_dense(), n.grad.filled(0).to_dense())


def test_a_reentrant_checkpoint_of_values() -> None:
    a, b = leaf(), leaf()
    checkpoint(lambda values: (a.with_values(values) @ X).square(), a.values, use_reentrant=True).sum().backward()
    (b @ X).square().sum().backward()
    close(a.grad.to_dense(), b.grad.to_dense())


@pytest.mark.parametrize("spec", FORMATS)
def test_hooks(spec: str) -> None:
    a, seen = leaf(spec), list[Any]()
    handle = a.register_hook(lambda g: seen.append(g) or g * 2)
    kept = a.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    assert a.output_nr == 0
    assert a._version == 0
    (a @ X).sum().backward()
    want = torch.where(ow.asarray(a.with_values(torch.ones_like(a.values))).to_dense() != 0, X.sum(1), 0)
    assert [type(g) for g in seen] == [ow.Tensor] * 2
    close(seen[0].to_dense(), want)
    close(seen[1].to_dense(), 2 * want)
    handle.remove()
    kept.remove()
    a.grad = None
    (a @ X).sum().backward()
    assert len(seen) == 2
    close(a.grad.to_dense(), want)
    doubled = a * 2
    doubled.register_hook(lambda g: torch.ones(3, 4, dtype=torch.float64))
    a.grad = None
    (doubled @ X).sum().backward()
    close(a.grad.to_dense(), torch.where(want != 0, 2.0, 0.0).double())
    wrong = leaf(spec)
    wrong.register_hook(lambda g: torch.ones(2, 2, dtype=torch.float64))
    with pytest.raises(ow.ShapeError, match="register_hook"):
        (wrong @ X).sum().backward()


def test_edges_of_the_graph() -> None:
    a, b, seen = leaf(), leaf(), list[Any]()
    assert type(torch.autograd.graph.get_gradient_edge(a.values).node).__name__ == "AccumulateGrad"
    assert torch.autograd.graph.get_gradient_edge((a * 2).values).node is not None
    x = X.clone().requires_grad_()
    torch.autograd.graph.register_multi_grad_hook((a.values, b.values, x), seen.append)
    ((a @ x).sum() + (b @ x).sum()).backward()
    close(a.with_values(seen[0][0]).to_dense(), a.grad.to_dense())
    with pytest.raises(TypeError, match="must be either a Tensor"):
        torch.autograd.functional.jacobian(lambda t: t @ X, a)
    with pytest.raises(RuntimeError, match="leaf variables"):
        (a * 2).requires_grad_(False)
    moved = a * 2
    assert moved.detach_() is moved
    assert moved.is_leaf
    assert not moved.requires_grad


@pytest.mark.parametrize("recorded", [True, False])
def test_copies_keep_gradients_at_every_element(recorded: bool) -> None:
    a = ow.asarray(BASE.to_sparse_csr(), grad="dense")
    a = a.requires_grad_() if recorded else a

    def saved(safe: bool) -> Callable[[Any], Any]:
        def through(t: Any) -> Any:
            buffer = io.BytesIO()
            torch.save({"t": t}, buffer)
            buffer.seek(0)
            return torch.load(buffer, weights_only=safe)["t"]

        return through

    for copied in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t)), saved(True), saved(False), copy.copy):
        b = copied(a)
        assert type(b) is type(a)
        assert b.requires_grad is recorded
        assert b.is_leaf
        b = b.requires_grad_()
        b.grad = None
        (b @ X).sum().backward()
        close(b.grad.to_dense(), X.sum(1).expand(3, 4))
    again = pickle.loads(pickle.dumps(a * 2))
    assert type(again) is type(a)
    assert again.is_leaf
    make, parts = a.__reduce__()
    with pytest.raises(ow.InvariantError):
        make(parts[0], "yes")
