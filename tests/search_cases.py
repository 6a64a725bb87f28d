"""One random case: an operation on tensors of random formats and what NumPy says of the same dense arrays.

`case(seed, number)` gives a `Case`; `run(case)` gives None where both agree, else what differs. Both make the same value
(dtype included), or both refuse with the same kind of error; openwork may refuse more, by an error of its own.
"""

from __future__ import annotations

import inspect
import math
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from search_chains import chains
from search_formats import BATCHES, DTYPES, array, extents, laid, random_format, tensor
from search_gradients import gradients
from search_masked import masked
from search_oracle import Case
from search_repeated import repeated
from search_rest import notation, rest, semirings
from search_routes import (
    LIBRARIES,
    Want,
    call,
    elementwise,
    forms,
    held,
    is_torch,
    name_of,
    onto_torch,
    promoted,
    reduced,
    rounded,
)  # fmt: skip
from search_state import assignment, exchange, in_place, key
from search_views import views

import openwork as ow
from openwork.format.levels import LEVEL_FORMATS, compressed

__all__ = ["Draw", "case", "renamed_level"]

Array = np.ndarray[Any, Any]
UNARY = (
    "negative", "abs", "square", "sqrt", "exp", "expm1", "log1p", "sign", "floor", "ceil", "trunc", "round", "isnan",
    "isinf", "isfinite", "sin", "tanh", "conj", "real", "imag", "logical_not", "reciprocal", "positive", "signbit",
    "log", "log2", "log10", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
    "bitwise_invert", "nan_to_num",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "pow", "maximum", "minimum", "equal",
    "not_equal", "less", "less_equal", "greater", "logical_and", "logical_or", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "copysign", "hypot", "atan2", "greater_equal", "logaddexp", "nextafter",
)  # fmt: skip
REDUCTIONS = ("sum", "sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin", "count_nonzero")
STRANGE = (
    1.5, 0.5, -0.5, 1.0, "1", True, False, np.float64(1.0), np.array(1), np.array([1]), 2**70, -99, [0], (0, 0), 1j, np.bool_(True),
    np.int8(1), {}, b"0", np.array(0.5), float("nan"), -1.5,
)  # fmt: skip
"""Arguments in the place of integers."""


@contextmanager
def renamed_level() -> Iterator[None]:
    """Inside the block there is a level format that is `compressed` under another name, made as CONTRIBUTING says."""
    text = inspect.getsource(compressed).replace("Compressed", "Renamed").replace('"compressed"', '"renamed"')
    module = types.ModuleType("openwork_renamed_level")
    sys.modules[module.__name__] = module
    exec(text, module.__dict__)
    before = LEVEL_FORMATS.get("renamed")
    LEVEL_FORMATS["renamed"] = before or module.__dict__["Renamed"]
    try:
        yield
    finally:
        if before is None:
            del LEVEL_FORMATS["renamed"]


class Draw:
    """Operands of one case, and how it is called."""

    def __init__(self, rng: random.Random, libraries: tuple[str, ...] = LIBRARIES) -> None:
        self.rng = rng
        self.tame = rng.random() < 0.5
        self.inputs: list[Any] = []
        self.dtype = rng.choice(DTYPES)
        self.library = rng.choice(libraries)
        self.dimensions: list[str] = [f"buffers: {self.library}"]
        self.pairs: list[tuple[Any, Array]] = []

    def operand(
        self, shape: tuple[int, ...] | None = None, dtype: str | None = None, filled: bool = True,
        format: ow.Format | None = None, shaped: Callable[[Array, Any], Array] | None = None,
    ) -> tuple[Any, Array]:  # fmt: skip
        """A tensor, in a format where one is asked for and it can hold the array, and the array; `shaped`: what it makes
        of the elements that were drawn and the fill value."""
        rng, dtype = self.rng, dtype or self.dtype
        over_torch = self.library == "torch" or (self.library == "mixed" and rng.random() < 0.5)
        if self.library != "numpy" and dtype in ("uint16", "uint64"):
            dtype = rng.choice(("uint8", "int16", "bfloat16"))
        elif over_torch and dtype == "float32" and rng.random() < 0.4:
            dtype = "bfloat16"
        wide = "float32" if dtype == "bfloat16" else dtype
        shape = extents(rng, rng.choice((1, 2, 2, 2, 3, 3, 4))) if shape is None else shape
        fill: Any = 0
        if filled and rng.random() < 0.2:
            fill = (
                rng.choice((1, 2))
                if self.tame or wide in ("bool",) or wide[0] not in "fc"
                else rng.choice((np.nan, np.inf, 1.0))
            )
        fill = np.dtype(wide).type(fill)
        dense = array(rng, shape, wide, self.tame, fill)
        dense = dense if shaped is None else shaped(dense, fill)
        if dtype == "bfloat16":
            dense = rounded(dense)
        t = tensor(rng, dense, fill, format or random_format(rng, len(shape)), self.tame)
        if not t.format.is_unique and dense.dtype.kind in "fc":
            dense = dense + 0.0  # sums of elements that stand there more than once have no -0.0
        if over_torch:
            t = onto_torch(t, dtype)
        self.inputs += [t, dense.tolist()]
        self.pairs.append((t, dense))
        self.dimensions.append(f"dtype: {dtype}")
        return t, dense

    def plain(self, shape: tuple[int, ...], dtype: str | None = None) -> tuple[Any, Array]:
        """A dense array, or a torch tensor."""
        dtype = dtype or self.dtype
        dtype = "int16" if self.library != "numpy" and dtype in ("uint16", "uint64") else dtype
        a = array(self.rng, shape, dtype, self.tame)
        x: Any = laid(self.rng, torch.from_numpy(a) if self.library == "torch" else a, repeated=True)
        if self.library == "mixed":
            x = np.asarray(x, x.dtype.newbyteorder("="))
        a = np.array(x, a.dtype)
        self.inputs.append(a.tolist())
        self.pairs.append((x, a))
        self.dimensions.append("operands: dense array")
        return x, a

    def over_torch(self, form: str = "") -> bool:
        return form == "torch" or any(is_torch(t) for t, _ in self.pairs)

    def case(self, label: str, ours: Callable[[], Any], theirs: Callable[[], Any], **options: Any) -> Case:
        options.setdefault("library", "torch" if self.over_torch() else "numpy")
        return Case(label, ours, theirs, inputs=self.inputs, dimensions=tuple(self.dimensions), **options)

    def call(self, name: str, *pairs: tuple[Any, Any], label: str = "", close: bool = True) -> Case:
        """An elementwise operation by any of its spellings."""
        tensors = [t for t, _ in pairs]
        first = next(t for t in tensors if isinstance(t, ow.Tensor))
        found = forms(name, len(pairs), first)
        if first is not tensors[0]:
            found = [f for f in found if f not in ("method", "in place")]
        form = self.rng.choice(found)
        over_torch = self.over_torch(form)
        self.dimensions.append(f"spelling: {form}")

        def theirs() -> Any:
            want = elementwise(name, list(pairs), over_torch)
            return held(want, *pairs[0], over_torch and is_torch(first)) if form == "in place" else want

        library = "torch" if over_torch and (form != "in place" or is_torch(first)) else "numpy"
        label = f"{label or name} ({form})"
        return self.case(label, lambda: call(form, name, tensors), theirs, close=close, library=library)

    def axis(self, rank: int, none: bool = True) -> Any:
        rng = self.rng
        choices: list[Any] = [rng.randrange(-rank, rank) if rank else 0]
        if none:
            choices += [None, tuple(rng.sample(range(rank), rng.randint(0, rank)))]
        return rng.choice(choices) if rng.random() > 0.05 else rank + 1


def unary(d: Draw) -> Case:
    name, pair = d.rng.choice(UNARY), d.operand()
    return d.call(
        "abs" if name == "sign" and str(pair[0].dtype) == "torch.bool" else name, pair
    )  # torch has a sign of bool


def binary(d: Draw) -> Case:
    rng, name = d.rng, d.rng.choice(BINARY)
    t, a = d.operand(dtype="bool" if name.startswith("logical") and rng.random() < 0.5 else None)
    keep = rng.randint(0, a.ndim) if rng.random() < 0.3 else 0
    shape = tuple(1 if rng.random() < 0.25 else n for n in a.shape[keep:])
    if rng.random() < 0.2 and 1 in a.shape[keep:]:
        shape = tuple(n if n != 1 else rng.choice((1, 2, 3)) for n in a.shape[keep:])
    dtype, kind = rng.choice((str(a.dtype),) * 3 + DTYPES), rng.random()
    if name == "pow" and a.dtype.kind in "iub" and np.dtype(dtype).kind in "iub":
        b = abs(array(rng, shape, dtype, True)) % 4
        b = b.astype(a.dtype) if a.dtype.kind != "b" else b.astype("int8")
        u: Any = ow.asarray(b, format="coo" if b.ndim else None)
        if is_torch(t):
            u = onto_torch(u, str(b.dtype))
        d.pairs.append((u, b))
    elif kind < 0.1:
        u = b = rng.choice((0, 1, 2, 3, True) if a.dtype.kind in "iub" else (0, 1, -2, 0.5, 2.0, math.inf, math.nan))
        d.inputs.append(u)
        d.dimensions.append("operands: number")
    elif kind < 0.2:
        u, b = d.plain(shape, dtype)
    else:
        u, b = d.operand(shape, dtype)
    if rng.random() < 0.5:
        t, a, u, b = u, b, t, a
    if name == "pow" and isinstance(u, ow.Tensor) and np.complex64 in (np.asarray(a).dtype, b.dtype):
        few = np.abs(b.astype(np.complex128)) <= 1e3  # no digit of a phase beyond this is right
        u, b = _again_of(u, np.where(few | np.isnan(b), b, b.dtype.type(1)))
    return d.call(name, (t, a), (u, b))


def batches(d: Draw) -> Case:
    """A binary operation of a batch of equal structures with what broadcasts to it."""
    rng, name = d.rng, d.rng.choice(("add", "multiply", "subtract", "maximum", "not_equal"))
    format = ow.format(rng.choice(BATCHES[rng.choice((2, 3, 3))]))
    d.tame, shape = True, [rng.choice((1, 2, 3, 4)) for _ in format.dims]
    flat = np.array([rng.random() < 0.5 for _ in range(math.prod(shape))], int).reshape(shape)
    for level in format.levels[: format.batch_ndim]:
        k = level.expression.index
        flat = np.repeat(flat.take([0], k), shape[k], k)
    a = flat * np.array([rng.randint(1, 9) for _ in range(flat.size)]).reshape(shape)
    t = ow.asarray(a.astype("float64"), format="coo")
    with suppress(ow.FormatError, ow.ShapeError):
        t = t.asformat(format)
    if d.library == "torch":
        t = onto_torch(t, "float64")
    d.inputs += [t, a.tolist()]
    d.pairs.append((t, a.astype("float64")))
    d.operand(tuple(1 if rng.random() < 0.4 else n for n in shape), "float64", filled=False)
    return d.call(name, *(d.pairs if rng.random() < 0.5 else d.pairs[::-1]), label=f"{name} of batches")


def reduction(d: Draw) -> Case:
    rng, name = d.rng, d.rng.choice(REDUCTIONS)
    t, a = d.operand()
    axis, keepdims = d.axis(a.ndim, none=not name.startswith("arg")), rng.random() < 0.3
    if a.dtype.kind == "f" and not d.tame and name in ("sum", "prod", "mean"):
        most = math.sqrt(np.finfo(a.dtype).max)  # where a product overflows depends on the order
        t, a = _again_of(t, np.where(np.abs(a) > most, 1, a).astype(a.dtype))
    if name == "prod" and a.dtype.kind == "f" and _may_overflow(a):
        t, a = _again_of(t, np.where(np.abs(a) > 1, np.sign(a), a).astype(a.dtype))
    found = [
        f
        for f in forms(name, 1, t, reduction=True)
        if f != "torch" or (axis != () and (axis is None) <= (not keepdims))
    ]
    form = rng.choice(found)
    over_torch = d.over_torch(form)
    d.dimensions.append(f"spelling: {form}")
    return d.case(
        f"{name} axis={axis} keepdims={keepdims} ({form})", lambda: call(form, name, [t], axis=axis, keepdims=keepdims),
        lambda: reduced(name, t, a, over_torch, axis, keepdims), close=True, library="torch" if over_torch else "numpy",
    )  # fmt: skip


def _again_of(t: ow.Tensor, a: Array) -> tuple[ow.Tensor, Array]:
    """The tensor with other elements."""
    made = ow.asarray(a)
    if t.fill_value == 0:
        with suppress(ow.FormatError, ow.ShapeError):
            made = ow.asarray(a, format=t.format)
    return (onto_torch(made, name_of(t)) if is_torch(t) else made), a


def _may_overflow(a: Array) -> bool:
    """Whether some order of the factors overflows, and gives NaN where a zero follows."""
    large = np.abs(a[np.isfinite(a) & (np.abs(a) > 1)]).astype(np.float64)
    return bool(np.log2(large).sum() >= np.finfo(a.dtype).maxexp)


def indexing(d: Draw) -> Case:
    t, a = d.operand()
    if d.rng.random() < 0.1:
        mask = np.array([d.rng.random() < 0.4 for _ in range(a.size)]).reshape(a.shape)
        return d.case("[mask]", lambda: t[ow.asarray(mask)], lambda: a[mask], signs=True)
    k = key(d.rng, a.shape)
    k = np.array(k, int) if isinstance(k, list) else k
    return d.case(f"[{k}]", lambda: t[k], lambda: a[k], signs=True)


SHAPING: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[[random.Random, tuple[int, ...]], Any]]] = {
    "flip": (lambda t, k: ow.flip(t, axis=k), lambda a, k: np.flip(a, k), lambda r, s: r.randrange(-len(s), len(s))),
    "roll": (lambda t, k: ow.roll(t, k[0], axis=k[1]), lambda a, k: np.roll(a, k[0], k[1]), lambda r, s: (r.randint(-9, 9), r.randrange(-len(s), len(s)))),
    "roll flat": (lambda t, k: ow.roll(t, k), lambda a, k: np.roll(a, k), lambda r, s: r.randint(-9, 9)),
    "repeat": (lambda t, k: ow.repeat(t, k[0], axis=k[1]), lambda a, k: np.repeat(a, k[0], k[1]), lambda r, s: (r.randint(0, 3), r.randrange(-len(s), len(s)))),
    "tril": (lambda t, k: ow.tril(t, k=k), lambda a, k: np.tril(a, k), lambda r, s: r.randint(-4, 4)),
    "triu": (lambda t, k: ow.triu(t, k=k), lambda a, k: np.triu(a, k), lambda r, s: r.randint(-4, 4)),
    "diagonal": (lambda t, k: ow.diagonal(t, offset=k), lambda a, k: np.linalg.diagonal(a, offset=k), lambda r, s: r.randint(-4, 4)),
    "diag": (lambda t, k: ow.diag(t, k), lambda a, k: np.diag(a, k), lambda r, s: r.randint(-3, 3)),
    "permute": (lambda t, k: ow.permute_dims(t, k), lambda a, k: np.transpose(a, k), lambda r, s: tuple(r.sample(range(len(s)), len(s)))),
    "expand": (lambda t, k: ow.expand_dims(t, axis=k), lambda a, k: np.expand_dims(a, k), lambda r, s: r.randint(-len(s) - 1, len(s))),
    "squeeze": (lambda t, k: ow.squeeze(t, axis=k), lambda a, k: np.squeeze(a, k), lambda r, s: r.randrange(-len(s), len(s))),
    "moveaxis": (lambda t, k: ow.moveaxis(t, *k), lambda a, k: np.moveaxis(a, *k), lambda r, s: (r.randrange(-len(s), len(s)), r.randrange(-len(s), len(s)))),
    "tile": (lambda t, k: ow.tile(t, k), lambda a, k: np.tile(a, k), lambda r, s: tuple(r.randint(0, 3) for _ in range(r.randint(1, 3)))),
    "reshape": (lambda t, k: ow.reshape(t, k), lambda a, k: np.reshape(a, k), lambda r, s: r.choice(((-1,), (*s, 1), (1, -1), (s[0], -1), s[::-1]))),
    "broadcast": (lambda t, k: ow.broadcast_to(t, k), lambda a, k: np.broadcast_to(a, k), lambda r, s: (r.randint(0, 3), *(n if n != 1 else r.randint(0, 3) for n in s))),
    "sort": (lambda t, k: ow.sort(t, axis=k), lambda a, k: np.sort(a, axis=k), lambda r, s: r.randrange(-len(s), len(s))),
    "argsort": (lambda t, k: ow.argsort(t, axis=k), lambda a, k: np.argsort(a, axis=k, stable=True), lambda r, s: r.randrange(-len(s), len(s))),
    "cumulative_sum": (lambda t, k: ow.cumulative_sum(t, axis=k), lambda a, k: np.cumulative_sum(a, axis=k), lambda r, s: r.randrange(-len(s), len(s))),
    "diff": (lambda t, k: ow.diff(t, axis=k), lambda a, k: np.diff(a, axis=k), lambda r, s: r.randrange(-len(s), len(s))),
    "nonzero": (lambda t, _: ow.nonzero(t), lambda a, _: np.nonzero(a), lambda r, s: None),
    "unique": (lambda t, _: ow.unique_values(t), lambda a, _: np.unique(a, equal_nan=False), lambda r, s: None),
    "concat": (lambda t, k: ow.concat([t, t], axis=k), lambda a, k: np.concatenate([a, a], axis=k), lambda r, s: r.randrange(-len(s), len(s))),
    "stack": (lambda t, k: ow.stack([t, t], axis=k), lambda a, k: np.stack([a, a], axis=k), lambda r, s: r.randint(-len(s) - 1, len(s))),
}  # fmt: skip
MOVES = frozenset(SHAPING) - {"cumulative_sum", "diff", "sort", "unique", "tril", "triu"}


def shaping(d: Draw) -> Case:
    name = d.rng.choice(tuple(SHAPING))
    t, a = d.operand()
    ours, theirs, drawn = SHAPING[name]
    k = drawn(d.rng, a.shape)
    return d.case(f"{name} {k}", lambda: ours(t, k), lambda: theirs(a, k), close=name not in MOVES, signs=name in MOVES)


def arguments(d: Draw) -> Case:
    """A strange value where an integer belongs."""
    strange = d.rng.choice(STRANGE)
    name = d.rng.choice((*SHAPING, "sum", "max", "take", "eye", "softmax"))
    d.tame, d.dtype = True, d.rng.choice(("float64", "int64"))
    d.library = "numpy" if isinstance(strange, list) else d.library  # torch takes lists
    t, a = d.operand((3, 4), filled=False)
    if name == "eye":
        d.pairs.clear()
    if name in ("sum", "max"):
        return d.case(
            f"{name} axis={strange!r}",
            lambda: getattr(ow, name)(t, axis=strange),
            lambda: getattr(np, name)(a, axis=strange),
            close=True,
        )
    if name == "take":
        return d.case(
            f"take axis={strange!r}",
            lambda: ow.take(t, np.array([0]), axis=strange),
            lambda: np.take(a, np.array([0]), axis=strange),
        )
    if name == "eye":
        which = d.rng.choice(("n", "m", "k"))
        return d.case(
            f"eye {which}={strange!r}",
            lambda: ow.eye(*_eye(which, strange)[0], **_eye(which, strange)[1]),
            lambda: np.eye(*_eye(which, strange)[0], **_eye(which, strange)[1]),
        )
    if name == "softmax":
        return d.case(
            f"softmax axis={strange!r}",
            lambda: ow.softmax(t, axis=strange).shape and None,
            lambda: np.max(a, axis=strange).shape and None,
        )
    ours, theirs, drawn = SHAPING[name]
    k = drawn(d.rng, a.shape)
    if isinstance(k, tuple) and k:
        at = d.rng.randrange(len(k))
        k = (*k[:at], strange, *k[at + 1 :])
    else:
        k = strange
    if name in ("tril", "triu") and isinstance(k, float):
        return d.case(f"{name} {k!r}", lambda: ours(t, k), lambda: _integer(k), close=True)
    return d.case(f"{name} {k!r}", lambda: ours(t, k), lambda: theirs(a, k), close=True)


def _integer(k: float) -> None:
    raise TypeError(f"{k} is no diagonal")


def _eye(which: str, strange: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((strange,), {}) if which == "n" else ((3, strange), {}) if which == "m" else ((3,), {"k": strange})


def conversion(d: Draw) -> Case:
    t, a = d.operand()
    target = random_format(d.rng, a.ndim)
    d.inputs.append(str(target))
    return d.case("asformat", lambda: t.asformat(target), lambda: a, signs=True)


def chain(d: Draw) -> Case:
    """Two conversions, then a sum over one axis."""
    t, a = d.operand()
    first, second = random_format(d.rng, a.ndim), random_format(d.rng, a.ndim)
    d.inputs += [str(first), str(second)]
    return d.case("asformat twice", lambda: t.asformat(first).asformat(second), lambda: a, signs=first.is_unique)


def cast(d: Draw) -> Case:
    t, a = d.operand()
    to = d.rng.choice(("float64", "float32", "complex128", "bool")) if not d.tame else d.rng.choice(DTYPES)
    return d.case(f"astype {to}", lambda: ow.astype(t, getattr(ow, to)), lambda: a.astype(to))


def product(d: Draw) -> Case:
    rng = d.rng
    d.tame = d.tame or d.dtype[0] in "fc" or d.library != "numpy"
    kind = rng.choice(("matmul", "matmul", "tensordot", "einsum", "einsum", "outer", "kron", "inner", "vecdot", "dot"))
    if kind in ("outer", "kron"):
        d.tame = rng.random() < 0.5
        rank = 1 if kind == "outer" else 2
        d.operand(extents(rng, rank), filled=False)
        d.operand(extents(rng, rank), filled=False)
        return _product(d, kind, getattr(ow, kind), getattr(np, kind), close=False)
    if kind == "einsum":
        n, m = extents(rng, 2)
        text, shapes = rng.choice((
            ("ij,j->i", ((n, m), (m,))), ("ij,ij->j", ((n, m), (n, m))), ("ij,kj->ik", ((n, m), (3, m))), ("ii->i", ((n, n),)),
            ("ijk,jk->i", ((n, m, 2), (m, 2))), ("ij->ji", ((n, m),)), ("ii", ((n, n),)), ("ij,jk,kl->il", ((n, m), (m, 2), (2, n))),
            ("i,j->ij", ((n,), (m,))), ("ijk->kj", ((n, m, 3),)), ("bij,bjk->bik", ((2, n, m), (2, m, 3))),
        ))  # fmt: skip
        sparse = rng.randrange(len(shapes))
        for k, shape in enumerate(shapes):
            if k != sparse and rng.random() < 0.2:
                d.plain(shape)
            else:
                d.operand(shape, filled=False)
        return _product(d, f"einsum {text}", lambda *t: ow.einsum(text, *t), lambda *a: np.einsum(text, *a))
    filled = kind == "matmul" and d.tame and rng.random() < 0.2  # which takes dense arrays alone
    _, a = d.operand(extents(rng, rng.choice((1, 2, 2, 3))), filled=filled)
    shape = (*a.shape[-1:], rng.choice((0, 1, 3)))[: rng.choice((1, 2, 2))]
    if kind in ("inner", "vecdot"):
        d.operand(rng.choice((a.shape[-1:], a.shape)), filled=False)
        return _product(d, kind, getattr(ow, kind), getattr(np, kind))
    d.plain(shape) if filled or rng.random() < 0.3 else d.operand(shape, filled=False)
    if kind == "tensordot":
        return _product(d, "tensordot 1", lambda t, u: ow.tensordot(t, u, axes=1), lambda a, b: np.tensordot(a, b, 1))
    if kind == "dot":
        return _product(d, "dot", ow.dot, np.dot)
    form = rng.choice(("operator", "operator", "function", "numpy", "lazy", "torch"))
    if form == "torch" and not is_torch(d.pairs[0][0]):
        form = "function"
    d.dimensions.append(f"spelling: {form}")
    return _product(d, f"matmul ({form})", lambda t, u: call(form, "matmul", [t, u]), np.matmul)


def _product(d: Draw, label: str, ours: Callable[..., Any], theirs: Callable[..., Any], close: bool = True) -> Case:
    """A sum of products of the operands that were drawn."""
    tensors = [t for t, _ in d.pairs]

    def wanted() -> Any:
        arrays, dtype = promoted(d.pairs)
        found = theirs(*arrays)
        return found if dtype is None else Want(found, dtype)

    return d.case(label, lambda: ours(*tensors), wanted, close=close)


def merged(d: Draw) -> Case:
    """A broadcast of two, converted and written: the result's format holds what it says."""
    case = binary(d)
    return replace(case, label=f"{case.label}, again", ours=lambda: _again(case.ours()))


def _again(t: Any) -> Any:
    return (t.asformat("coo") if t.ndim else t) if isinstance(t, ow.Tensor) else t


AGAIN = (
    unary, binary, binary, merged, reduction, indexing, shaping, conversion, chain, product, product, rest, notation, chains, chains,
)  # fmt: skip


def again(d: Draw) -> Case:
    """A case of several calls, with changes between them."""
    return repeated(d, AGAIN)


KINDS = (
    (unary, 2), (binary, 8), (merged, 4), (reduction, 5), (indexing, 7), (shaping, 7), (arguments, 5), (conversion, 9), (chain, 3), (cast, 2),
    (product, 6), (exchange, 6), (batches, 2), (assignment, 5), (in_place, 2), (rest, 7), (notation, 4), (semirings, 2), (masked, 9), (gradients, 5), (chains, 5), (again, 6), (views, 6),
)  # fmt: skip


ONLY = ""
"""The kind of all cases, where one was asked for (`--kind`)."""


def case(seed: int, number: int) -> Case:
    """Case `number` of the search with this seed."""
    rng = random.Random(f"{seed} {number}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        kinds = [(k, w) for k, w in KINDS if ONLY in ("", k.__name__)]
        kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        made = kind(Draw(rng))
        return replace(made, dimensions=(*made.dimensions, f"kind: {kind.__name__}"))
