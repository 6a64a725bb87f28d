"""Random cases of masked tensors: what NumPy says of data and mask, element by element.

An oracle is a pair (data, mask); values where the mask is False are not compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from search_formats import array, extents, random_format
from search_oracle import Case, Failed, Masked
from search_state import key

import openwork as ow

__all__ = ["masked"]

Array = np.ndarray[Any, Any]
DTYPES = ("float64", "float64", "float32", "int64", "int32", "complex128", "bool")


@dataclass
class Operand:
    tensor: Any
    data: Array
    bits: Array


def operand(
    d: Any,
    shape: tuple[int, ...] | None = None,
    dtype: str | None = None,
    bits: Array | None = None,
    format: Any = None,
) -> Operand:
    """A masked tensor of a drawn format: of data and mask as arrays, or as tensors of one format."""
    rng: random.Random = d.rng
    shape = extents(rng, rng.choice((1, 2, 2, 3))) if shape is None else shape
    data = array(rng, shape, dtype or d.dtype, d.tame)
    if bits is None:
        share = rng.choice((0.0, 0.3, 0.6, 0.6, 1.0))
        bits = np.array([rng.random() < share for _ in range(data.size)], bool).reshape(shape)
    over_torch = d.library == "torch"
    if rng.random() < 0.5:
        x, b = (torch.from_numpy(data.copy()), torch.from_numpy(bits.copy())) if over_torch else (data, bits)
        m = ow.masked_tensor(x, b)
    else:
        kept = np.where(bits, data, 0).astype(data.dtype)
        pattern = ow.sparse_coo_tensor(
            np.argwhere(bits).T.reshape(bits.ndim, -1), np.ones(int(bits.sum()), bool), shape
        )
        values = pattern.with_values(kept[tuple(np.argwhere(bits).T)])
        if over_torch:
            pattern, values = (ow.asarray(t, like=torch) for t in (pattern, values))
        m = ow.masked_tensor(values, pattern)
    if format is not None or rng.random() < 0.7:
        format = format or random_format(rng, len(shape))
        with suppress(ow.FormatError, ow.UnsupportedError, ow.ShapeError):
            m = m.asformat(format)
    d.inputs += [str(m.format), data.tolist(), bits.tolist()]
    d.pairs.append((m.get_data(), data))
    return Operand(m, data, bits)


UNARY = ("negative", "abs", "square", "sqrt", "exp", "sin", "isnan", "floor", "sign", "logical_not", "conj", "real")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "equal", "logical_and", "floor_divide")
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin", "count_nonzero", "var", "median")


def _floats(d: Any, name: str, a: Array) -> Array:
    """Over torch's buffers functions of integers are float32."""
    if d.library == "torch" and a.dtype.kind in "iub" and name in ("sqrt", "exp", "sin", "divide"):
        return a.astype("float32")
    return a


def _unary(d: Any) -> Case:
    name = d.rng.choice(UNARY)
    if name in ("floor", "sign", "conj"):
        d.dtype = "float64"
    m = operand(d)
    return _case(
        d,
        name,
        lambda: getattr(ow, name)(m.tensor),
        lambda: Masked(getattr(np, name)(_floats(d, name, m.data)), m.bits),
    )


def _binary(d: Any) -> Case:
    rng, name = d.rng, d.rng.choice(BINARY)
    m = operand(d)
    how = rng.choice(("equal", "equal", "number", "dense", "intersection", "union"))
    f = getattr(np, name)

    def compute(a: Array, b: Any) -> Array:
        return f(_floats(d, name, a), _floats(d, name, b) if isinstance(b, np.ndarray) else b)

    if how == "number":
        x: Any = (
            rng.choice((1, 2, 3))
            if m.data.dtype.kind in "iu"
            else True
            if m.data.dtype.kind == "b"
            else rng.choice((0.5, 2.0, -1.0))
        )
        d.inputs.append(x)
        return _case(
            d, f"{name} number", lambda: getattr(ow, name)(m.tensor, x), lambda: Masked(compute(m.data, x), m.bits)
        )
    if how == "dense":
        b = array(rng, m.data.shape, m.data.dtype.name, d.tame)
        d.inputs.append(b.tolist())
        u = torch.from_numpy(b.copy()) if d.library == "torch" else b
        return _case(
            d, f"{name} dense", lambda: getattr(ow, name)(m.tensor, u), lambda: Masked(compute(m.data, b), m.bits)
        )
    o = operand(d, m.data.shape, m.data.dtype.name, m.bits if how == "equal" else None)
    if how == "equal":
        return _case(
            d, name, lambda: getattr(ow, name)(m.tensor, o.tensor), lambda: Masked(compute(m.data, o.data), m.bits)
        )
    method = {
        "add": "add",
        "subtract": "sub",
        "multiply": "mul",
        "divide": "div",
        "maximum": "maximum",
        "minimum": "minimum",
    }.get(name, "add")
    f = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }[method]
    name = {"div": "divide"}.get(method, method)

    def wanted() -> Masked:
        found = compute(m.data, o.data)
        if how == "intersection":
            return Masked(found, m.bits & o.bits)
        found = np.where(m.bits & o.bits, found, np.where(m.bits, m.data, o.data).astype(found.dtype))
        return Masked(found, m.bits | o.bits)

    return _case(d, f"{method} {how}", lambda: getattr(m.tensor, method)(o.tensor, how=how), wanted)


def _reduce(d: Any) -> Case:
    rng, name = d.rng, d.rng.choice(REDUCTIONS)
    d.tame = True
    if name in ("max", "min", "argmax", "argmin", "median", "var"):
        d.dtype = rng.choice(("float64", "float32", "int64"))
    m = operand(d)
    axis: Any = rng.choice((None, rng.randrange(-m.data.ndim, m.data.ndim)))
    if axis is not None and rng.random() < 0.2 and name not in ("argmax", "argmin", "median"):
        axis = tuple(rng.sample(range(m.data.ndim), rng.randint(1, m.data.ndim)))
    keepdims = rng.random() < 0.3

    def wanted() -> Masked:
        axes = (
            tuple(range(m.data.ndim))
            if axis is None
            else tuple(k % m.data.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
        )
        rest = [k for k in range(m.data.ndim) if k not in axes]
        shape = tuple(m.data.shape[k] for k in rest)
        rows = np.transpose(m.data, (*rest, *axes)).reshape(
            int(np.prod(shape)), -1 if m.data.size else int(np.prod([m.data.shape[k] for k in axes]))
        )
        there = np.transpose(m.bits, (*rest, *axes)).reshape(rows.shape)
        found, some = [], []
        for values, mask in zip(rows, there, strict=True):
            some.append(bool(mask.any()))
            if not mask.any():
                found.append(0)
            elif name.startswith("arg"):
                found.append(int(np.flatnonzero(mask)[getattr(np, name)(values[mask])]))
            else:
                found.append(getattr(np, name)(values[mask]))
        if keepdims:
            shape = tuple(1 if k in axes else n for k, n in enumerate(m.data.shape))
        one = np.ones(1, m.data.dtype)
        dtype = np.asarray(getattr(np, name)(one)).dtype
        return Masked(np.array(found, dtype).reshape(shape), np.array(some, bool).reshape(shape))

    return _case(
        d,
        f"{name} axis={axis} keepdims={keepdims}",
        lambda: getattr(ow, name)(m.tensor, axis=axis, keepdims=keepdims),
        wanted,
    )


MOVES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "transpose": (lambda t: t.T, lambda a: a.T), "flip": (lambda t: ow.flip(t, axis=0), lambda a: np.flip(a, 0)),
    "reshape": (lambda t: t.reshape(-1), lambda a: a.reshape(-1)), "expand_dims": (lambda t: ow.expand_dims(t, axis=1), lambda a: np.expand_dims(a, 1)),
    "concat": (lambda t: ow.concat([t, t], axis=0), lambda a: np.concatenate([a, a], 0)), "stack": (lambda t: ow.stack([t, t], axis=0), lambda a: np.stack([a, a], 0)),
    "roll": (lambda t: ow.roll(t, 1, axis=0), lambda a: np.roll(a, 1, 0)), "tile": (lambda t: ow.tile(t, (2,)), lambda a: np.tile(a, (2,))),
    "repeat": (lambda t: ow.repeat(t, 2, axis=0), lambda a: np.repeat(a, 2, 0)), "csr": (lambda t: t.asformat("coo"), lambda a: a),
    "clone": (lambda t: t.clone(), lambda a: a), "broadcast_to": (lambda t: ow.broadcast_to(t, (2, *t.shape)), lambda a: np.broadcast_to(a, (2, *a.shape))),
}  # fmt: skip


def _move(d: Any) -> Case:
    name = d.rng.choice(tuple(MOVES))
    m = operand(d)
    ours, theirs = MOVES[name]
    return _case(d, name, lambda: ours(m.tensor), lambda: Masked(theirs(m.data), theirs(m.bits)))


def _index(d: Any) -> Case:
    m = operand(d)
    k = key(d.rng, m.data.shape)
    k = np.array(k, int) if isinstance(k, list) else k
    return _case(d, f"[{k}]", lambda: m.tensor[k], lambda: Masked(m.data[k], m.bits[k]))


def _assign(d: Any) -> Case:
    rng, m = d.rng, operand(d)
    k = key(rng, m.data.shape)
    k = np.array(k, int) if isinstance(k, list) else k
    v = rng.choice((None, array(rng, (), m.data.dtype.name, d.tame).item()))
    d.inputs.append(v)

    def ours() -> Any:
        t = m.tensor.clone()
        t[k] = v
        return t

    def wanted() -> Masked:
        data, bits = m.data.copy(), m.bits.copy()
        bits[k] = v is not None
        if v is not None:
            data[k] = v
        return Masked(data, bits)

    return _case(d, f"[{k}] = {v}", ours, wanted)


def _convert(d: Any) -> Case:
    m = operand(d)
    target = random_format(d.rng, m.data.ndim)
    d.inputs.append(str(target))
    return _case(d, "asformat", lambda: m.tensor.asformat(target), lambda: Masked(m.data, m.bits))


def _filled(d: Any) -> Case:
    m = operand(d)
    v = d.rng.choice((0, 1))
    return d.case(
        f"masked filled({v})", lambda: m.tensor.filled(v), lambda: np.where(m.bits, m.data, np.asarray(v, m.data.dtype))
    )


def _where(d: Any) -> Case:
    m = operand(d)
    o = operand(d, m.data.shape, m.data.dtype.name)
    c = operand(d, m.data.shape, "bool", np.ones(m.data.shape, bool))
    return _case(
        d, "where", lambda: ow.where(c.tensor, m.tensor, o.tensor),
        lambda: Masked(np.where(c.data, m.data, o.data), np.where(c.data, m.bits, o.bits)),
    )  # fmt: skip


def _product(d: Any) -> Case:
    rng = d.rng
    d.tame, d.dtype = True, rng.choice(("float64", "float32", "int64"))
    n, m, q = (rng.choice((0, 1, 2, 3, 4)) for _ in range(3))
    x, y = operand(d, (n, m)), operand(d, (m, q))
    form = rng.choice(("matmul", "einsum", "dense"))
    if form == "dense":
        u = torch.from_numpy(y.data.copy()) if d.library == "torch" else y.data
        return _case(
            d, "matmul dense", lambda: x.tensor @ u,
            lambda: Masked(np.where(x.bits, x.data, 0) @ y.data, (x.bits.astype(int) @ np.ones((m, q), int)) > 0),
        )  # fmt: skip
    return _case(
        d, form, lambda: x.tensor @ y.tensor if form == "matmul" else ow.einsum("ij,jk->ik", x.tensor, y.tensor),
        lambda: Masked(np.where(x.bits, x.data, 0) @ np.where(y.bits, y.data, 0), (x.bits.astype(int) @ y.bits.astype(int)) > 0),
    )  # fmt: skip


def _lazy(d: Any) -> Case:
    m = operand(d)
    o = operand(d, m.data.shape, m.data.dtype.name, m.bits)
    return _case(
        d, "lazy m * o + m", lambda: ow.compute(ow.lazy(m.tensor) * o.tensor + m.tensor),
        lambda: Masked(m.data * o.data + m.data, m.bits),
    )  # fmt: skip


def _gradient(d: Any) -> Case:
    """Of specified elements alone, and those of a mean are what they are without the others."""
    d.library, d.dtype, d.tame = "torch", "float64", True
    m = operand(d)
    name = d.rng.choice(("sum of squares", "exp", "mean"))
    functions: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
        "sum of squares": (lambda t: (t * t).sum(), lambda a: 2 * a), "exp": (lambda t: ow.exp(t).sum(), np.exp),
        "mean": (lambda t: t.mean(), lambda a: np.full(a.shape, 1 / max(int(m.bits.sum()), 1))),
    }  # fmt: skip
    ours, theirs = functions[name]

    def gradient() -> Any:
        leaf = m.tensor.clone().detach().requires_grad_()
        ours(leaf).backward()
        if leaf.grad is None:
            raise Failed("no gradient")
        return leaf.grad

    d.dimensions.append("gradient: masked")
    if not m.bits.any():
        return _case(d, "m", lambda: m.tensor, lambda: Masked(m.data, m.bits))
    return _case(d, f"gradient of {name}", gradient, lambda: Masked(theirs(m.data), m.bits))


def _case(d: Any, label: str, ours: Callable[[], Any], theirs: Callable[[], Masked]) -> Case:
    return d.case(f"masked {label}", ours, theirs, close=True, library="torch" if d.over_torch() else "numpy")


CASES = (
    _unary, _binary, _binary, _binary, _reduce, _reduce, _reduce, _move, _index, _index, _assign, _convert, _filled, _where, _product,
    _product, _lazy, _gradient,
)  # fmt: skip


def masked(d: Any) -> Case:
    d.library = "numpy" if d.library == "mixed" else d.library
    d.dimensions = [f"buffers: {d.library}", "operands: masked"]
    d.dtype = d.rng.choice(DTYPES)
    kind = d.rng.choice(CASES)
    d.dimensions += [f"dtype: {d.dtype}", f"operation: masked {kind.__name__[1:]}"]
    return kind(d)  # type: ignore[no-any-return]
