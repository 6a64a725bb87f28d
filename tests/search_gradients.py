"""Random cases of gradients: those of a sparse operand at its elements, those of dense ones, against torch on dense tensors."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from search_formats import extents, random_format
from search_oracle import Case, Failed

import openwork as ow

__all__ = ["gradients"]

Array = np.ndarray[Any, Any]
UNARY = (
    "sin",
    "tanh",
    "square",
    "expm1",
    "exp",
    "cos",
    "sinh",
    "atan",
    "asinh",
    "sign",
    "floor",
    "abs",
    "negative",
    "log1p",
    "sqrt",
)
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "atan2", "pow")
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{n: (lambda t, n=n: getattr(ow, n)(t), lambda a, n=n: getattr(torch, n)(a)) for n in UNARY},
    "sum": (lambda t: ow.sum(t), torch.sum), "sum 0": (lambda t: ow.sum(t, axis=0), lambda a: a.sum(0)),
    "sum -1": (lambda t: ow.sum(t, axis=-1, keepdims=True), lambda a: a.sum(-1, keepdim=True)),
    "mean": (lambda t: ow.mean(t, axis=-1), lambda a: a.mean(-1)), "prod": (lambda t: ow.prod(t, axis=-1), lambda a: a.prod(-1)),
    "prod of all": (lambda t: ow.prod(t), torch.prod),
    "var": (lambda t: ow.var(t, axis=0), lambda a: a.var(0, correction=0)), "cumulative_sum": (lambda t: ow.cumulative_sum(t, axis=0), lambda a: a.cumsum(0)),
    "max": (lambda t: ow.max(t, axis=-1), lambda a: a.amax(-1)), "min": (lambda t: ow.min(t), torch.amin),
    "logsumexp": (lambda t: ow.logsumexp(t, axis=-1), lambda a: a.logsumexp(-1)),
    "transpose": (lambda t: t.T, lambda a: a.permute(*range(a.ndim)[::-1])), "reshape": (lambda t: ow.reshape(t, (-1,)), lambda a: a.reshape(-1)),
    "flip": (lambda t: ow.flip(t, axis=0), lambda a: a.flip(0)), "roll": (lambda t: ow.roll(t, 2, axis=-1), lambda a: a.roll(2, -1)),
    "index": (lambda t: t[::2], lambda a: a[::2]), "last": (lambda t: t[..., 0], lambda a: a[..., 0]), "list": (lambda t: t[[0, 0]], lambda a: a[[0, 0]]),
    "concat": (lambda t: ow.concat([t, t], axis=0), lambda a: torch.cat([a, a])), "stack": (lambda t: ow.stack([t, 2 * t]), lambda a: torch.stack([a, 2 * a])),
    "tile": (lambda t: ow.tile(t, (2,)), lambda a: a.repeat(*[1] * (a.ndim - 1), 2)), "expand_dims": (lambda t: ow.expand_dims(t, axis=0), lambda a: a[None]),
    "where": (lambda t: ow.where(t > 1, t, 0), lambda a: torch.where(a > 1, a, 0)), "clip": (lambda t: ow.clip(t, -1.5, 1.5), lambda a: a.clip(-1.5, 1.5)),
    "times number": (lambda t: 3 * t + t / 2, lambda a: 3 * a + a / 2), "power": (lambda t: t**2, lambda a: a**2),
    "tril": (lambda t: ow.tril(t), torch.tril), "diagonal": (lambda t: ow.diagonal(t), lambda a: a.diagonal(dim1=-2, dim2=-1)),
    "at set": (lambda t: t.at[0].set(2.0), lambda a: torch.cat([torch.full_like(a[:1], 2.0), a[1:]])),
    "at mul": (lambda t: t.at[0].mul(2.0), lambda a: torch.cat([a[:1] * 2, a[1:]])), "astype": (lambda t: t.astype(torch.float32).astype(torch.float64), lambda a: a.float().double()),
    "prune": (lambda t: t.prune(), lambda a: a), "coo": (lambda t: t.asformat("coo"), lambda a: a), "dense": (lambda t: t.asformat("dense"), lambda a: a),
    "sort": (lambda t: ow.sort(t, axis=-1), lambda a: torch.sort(a, dim=-1, stable=True)[0]), "pad": (lambda t: ow.pad(t, 1), lambda a: torch.nn.functional.pad(a, [1, 1] * a.ndim)),
    "broadcast_to": (lambda t: ow.broadcast_to(t, (2, *t.shape)), lambda a: a.expand(2, *a.shape)), "diff": (lambda t: ow.diff(t, axis=0), lambda a: a.diff(dim=0)),
    "repeat": (lambda t: ow.repeat(t, 2, axis=0), lambda a: a.repeat_interleave(2, 0)), "nansum": (lambda t: ow.nansum(t, axis=0), lambda a: a.nansum(0)),
}  # fmt: skip
SQUARE = ("tril", "diagonal")
TIES = ("max", "min", "maximum", "minimum", "abs", "sign", "floor", "sort", "clip")
"""What is not smooth where elements are equal: operands with distinct elements."""


def leaf(d: Any, shape: tuple[int, ...], distinct: bool, dense: bool) -> tuple[Any, Any, Any]:
    """A leaf in a drawn format, the dense tensor of the same elements, and how often each element is stored."""
    rng: random.Random = d.rng
    size = int(np.prod(shape))
    pool = (
        rng.sample([k / 4 for k in range(-4 * size - 8, 4 * size + 9) if k % 4], size)
        if distinct
        else [rng.choice((-2.0, -1.0, 0.5, 1.0, 3.0)) for _ in range(size)]
    )
    share = rng.choice((0.2, 0.5, 0.8, 1.0))
    a = np.array([v if rng.random() < share else 0.0 for v in pool], "float64").reshape(shape)
    t = ow.asarray(a, format="coo")
    if rng.random() < 0.3 and t.nse and shape:
        t = ow.sparse_coo_tensor(
            np.concatenate([t.indices(), t.indices()[:, :1]], 1),
            np.concatenate([t.values, t.values[:1] * 0 + 0.25]),
            shape,
        )
        a = t.to_numpy().copy()
    with suppress(ow.FormatError, ow.UnsupportedError, ow.ShapeError):
        t = t.asformat(random_format(rng, len(shape)))
    count = t.with_values(np.ones(len(t.values))).to_numpy()
    t = ow.asarray(t, like=torch)
    d.inputs += [t, a.tolist(), dense]
    t = ow.asarray(t.clone(), grad="dense") if dense else t.clone()
    return t.requires_grad_(), torch.from_numpy(a.copy()).requires_grad_(), np.ones(shape) if dense else count


def _weights(d: Any, shape: tuple[int, ...]) -> Any:
    return torch.tensor(
        [d.rng.choice((1.0, 2.0, -0.5)) for _ in range(int(np.prod(shape)))], dtype=torch.float64
    ).reshape(tuple(shape))


def _plain(x: Any) -> Any:
    return x.to_dense() if isinstance(x, ow.Tensor) else x


def gradients(d: Any) -> Case:
    """The gradient of a weighted sum of a result, for one operand or two, sparse or dense."""
    rng = d.rng
    d.library = "torch"
    d.dimensions = ["buffers: torch", "dtype: float64"]
    dense = rng.random() < 0.3
    kind = rng.choice(("one", "one", "one", "two", "two", "product", "product", "einsum", "convert", "lazy"))
    d.dimensions.append(f"gradient: {'dense' if dense else 'sparse'}, {kind}")
    shape = tuple(max(n, 1) for n in extents(rng, rng.choice((1, 2, 2, 3))))
    if kind == "one":
        name = rng.choice(tuple(FUNCTIONS))
        shape = shape if name not in SQUARE else (*shape, 3, 4)[-2:]
        ours, theirs = FUNCTIONS[name]
        operands = [leaf(d, shape, name in TIES, dense)]
        if name == "coo" and operands[0][0].format.is_dense and not dense:
            name, (ours, theirs) = "dense", FUNCTIONS["dense"]  # others leave out zeros, and their gradients
    elif kind == "two":
        name = rng.choice(BINARY)
        other = tuple(1 if rng.random() < 0.2 else n for n in shape)[rng.choice((0, 0, 0, 1)) :]
        ours = lambda t, u: getattr(ow, name)(t, u)  # noqa: E731
        theirs = getattr(torch, name)
        operands = [leaf(d, shape, True, dense), leaf(d, other, True, dense)]
    elif kind == "product":
        name = "matmul"
        shape = shape[-2:] if len(shape) > 1 else (3, *shape)
        ours, theirs = (lambda t, u: t @ u), (lambda t, u: t @ u)
        operands = [
            leaf(d, shape, False, dense),
            leaf(d, (shape[-1], rng.choice((1, 3)))[: rng.choice((1, 2))], False, dense),
        ]
    elif kind == "einsum":
        n, m, k = (rng.choice((1, 2, 3, 4)) for _ in range(3))
        name, shapes = rng.choice(
            (
                ("ij,jk->ik", ((n, m), (m, k))),
                ("ij,ij->i", ((n, m), (n, m))),
                ("ijk,k->ij", ((n, m, k), (k,))),
                ("ij,kj->ki", ((n, m), (k, m))),
                ("i,j->ij", ((n,), (m,))),
            )
        )
        ours, theirs = (lambda *t: ow.einsum(name, *t)), (lambda *t: torch.einsum(name, *t))
        operands = [leaf(d, s, False, dense) for s in shapes]
    elif kind == "convert":
        operands = [leaf(d, shape, False, dense)]
        target = random_format(rng, len(shape))
        if operands[0][0].format.is_dense and not dense:
            target = ow.format("dense", len(shape))  # others leave out zeros, and their gradients
        name = f"asformat {target}"
        ours, theirs = (lambda t: t.asformat(target) * 2), (lambda a: a * 2)
    else:
        name, dense = "lazy", False
        ours = lambda t, u: ow.compute((ow.lazy(t) * u + t) * 2)  # noqa: E731
        theirs = lambda a, b: (a * b + a) * 2  # noqa: E731
        operands = [leaf(d, shape, False, False), leaf(d, shape, False, False)]
    if len(operands) == 2 and rng.random() < 0.35 and kind != "lazy":
        _, a, count = operands[1]
        operands[1] = (a.detach().clone().requires_grad_(), a, np.ones(count.shape))
    finite = [False]

    def backward(f: Callable[..., Any], leaves: list[Any]) -> Any:
        result = _plain(f(*leaves))
        weights = _weights(_Seeded(d), result.shape)
        (result * weights).sum().backward()
        return result.detach()

    def mine() -> Any:
        leaves = [t for t, _, _ in operands]
        result = backward(ours, leaves)
        found = []
        for t, _, _ in operands:
            if t.grad is None:
                found.append(np.zeros(tuple(t.shape)))
            elif isinstance(t.grad, ow.Tensor):
                if not dense and t.grad.format != t.format:
                    raise Failed(f"a gradient of format {t.grad.format}")
                found.append(t.grad.to_numpy())
            else:
                found.append(t.grad.to_dense().numpy() if t.grad.layout != torch.strided else t.grad.numpy())
        return (result.numpy(), *found)

    def wanted() -> Any:
        leaves = [a.detach().clone().requires_grad_() for _, a, _ in operands]
        result = backward(theirs, leaves)
        zeros = [torch.zeros_like(a) if a.grad is None else a.grad for a in leaves]
        finite[0] = all(bool(torch.isfinite(g).all()) for g in zeros)
        if not finite[0]:
            return None
        return (result.numpy(), *(g.numpy() * count for g, (_, _, count) in zip(zeros, operands, strict=True)))

    return d.case(f"gradient of {name}", mine, wanted, close=True, library=None)


class _Seeded:
    """The same weights whenever they are asked for."""

    def __init__(self, d: Any) -> None:
        self.rng = random.Random(str(d.inputs)[:200])
