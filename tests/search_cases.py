"""One random case: an operation on tensors of random formats and what NumPy says of the same dense arrays.

`case(seed, number)` gives a `Case`; `run(case)` gives None where both agree, else what differs. Both make the same value
(dtype included), or both refuse with the same kind of error; openwork may refuse more, by an error of its own.
"""

from __future__ import annotations

import inspect
import math
import random
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from search_formats import BATCHES, DTYPES, array, extents, random_format, tensor
from search_oracle import Case, Failed

import openwork as ow
from openwork.format.levels import LEVEL_FORMATS, compressed

__all__ = ["Draw", "case", "renamed_level"]

Array = np.ndarray[Any, Any]
UNARY = (
    "negative", "abs", "square", "sqrt", "exp", "expm1", "log1p", "sign", "floor", "ceil", "trunc", "round", "isnan",
    "isinf", "isfinite", "sin", "tanh", "conj", "real", "imag", "logical_not", "reciprocal", "positive", "signbit",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "pow", "maximum", "minimum", "equal",
    "not_equal", "less", "less_equal", "greater", "logical_and", "logical_or", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "copysign", "hypot", "atan2",
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
    """Operands of one case."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tame = rng.random() < 0.5
        self.inputs: list[Any] = []
        self.dtype = rng.choice(DTYPES)

    def operand(
        self, shape: tuple[int, ...] | None = None, dtype: str | None = None, filled: bool = True
    ) -> tuple[Any, Array]:
        rng, dtype = self.rng, dtype or self.dtype
        shape = extents(rng, rng.choice((1, 2, 2, 2, 3, 3, 4))) if shape is None else shape
        fill: Any = 0
        if filled and rng.random() < 0.2:
            fill = (
                rng.choice((1, 2))
                if self.tame or dtype in ("bool",) or dtype[0] not in "fc"
                else rng.choice((np.nan, np.inf, 1.0))
            )
        fill = np.dtype(dtype).type(fill)
        dense = array(rng, shape, dtype, self.tame, fill)
        t = tensor(rng, dense, fill, random_format(rng, len(shape)), self.tame)
        self.inputs += [t, dense.tolist()]
        return t, dense

    def case(self, label: str, ours: Callable[[], Any], theirs: Callable[[], Any], **options: Any) -> Case:
        return Case(label, ours, theirs, inputs=self.inputs, **options)

    def axis(self, rank: int, none: bool = True) -> Any:
        rng = self.rng
        choices: list[Any] = [rng.randrange(-rank, rank) if rank else 0]
        if none:
            choices += [None, tuple(rng.sample(range(rank), rng.randint(0, rank)))]
        return rng.choice(choices) if rng.random() > 0.05 else rank + 1


def unary(d: Draw) -> Case:
    name = d.rng.choice(UNARY)
    t, a = d.operand()
    return d.case(name, lambda: getattr(ow, name)(t), lambda: _numpy(name)(a), close=True)


def binary(d: Draw) -> Case:
    rng, name = d.rng, d.rng.choice(BINARY)
    t, a = d.operand(dtype="bool" if name.startswith("logical") and rng.random() < 0.5 else None)
    keep = rng.randint(0, a.ndim) if rng.random() < 0.3 else 0
    shape = tuple(1 if rng.random() < 0.25 else n for n in a.shape[keep:])
    if rng.random() < 0.2 and 1 in a.shape[keep:]:
        shape = tuple(n if n != 1 else rng.choice((1, 2, 3)) for n in a.shape[keep:])
    u, b = d.operand(shape, rng.choice((str(a.dtype),) * 3 + DTYPES))
    if rng.random() < 0.5:
        t, a, u, b = u, b, t, a
    if name == "pow" and a.dtype.kind in "iub" and b.dtype.kind in "iub":
        b, u = np.abs(b) % 4, None
        b = b.astype(a.dtype) if a.dtype.kind != "b" else b.astype("int8")
        u = ow.asarray(b, format="coo" if b.ndim else None)
    return d.case(name, lambda: getattr(ow, name)(t, u), lambda: _numpy(name)(a, b), close=True)


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
    d.inputs += [t, a.tolist()]
    u, b = d.operand(tuple(1 if rng.random() < 0.4 else n for n in shape), "float64", filled=False)
    left, right = ((t, u), (a.astype("float64"), b))
    if rng.random() < 0.5:
        left, right = left[::-1], right[::-1]
    return d.case(f"{name} of batches", lambda: getattr(ow, name)(*left), lambda: _numpy(name)(*right), close=True)


def reduction(d: Draw) -> Case:
    rng, name = d.rng, d.rng.choice(REDUCTIONS)
    t, a = d.operand()
    axis, keepdims = d.axis(a.ndim, none=not name.startswith("arg")), rng.random() < 0.3
    if a.dtype.kind == "f" and not d.tame and name in ("sum", "prod", "mean"):
        most = math.sqrt(np.finfo(a.dtype).max)  # where a product overflows depends on the order
        a = np.where(np.abs(a) > most, 1, a).astype(a.dtype)
        t = ow.asarray(a, format=t.format, fill_value=t.fill_value) if t.fill_value == 0 else ow.asarray(a)
    if name == "prod" and a.dtype.kind == "f" and _may_overflow(a):
        a = np.where(np.abs(a) > 1, np.sign(a), a).astype(a.dtype)
        t = ow.asarray(a, format=t.format, fill_value=t.fill_value) if t.fill_value == 0 else ow.asarray(a)
    theirs = _numpy(name)
    return d.case(
        f"{name} axis={axis} keepdims={keepdims}", lambda: getattr(ow, name)(t, axis=axis, keepdims=keepdims),
        lambda: theirs(a, axis=axis, keepdims=keepdims), close=True,
    )  # fmt: skip


def _may_overflow(a: Array) -> bool:
    """Whether some order of the factors overflows, and gives NaN where a zero follows."""
    large = np.abs(a[np.isfinite(a) & (np.abs(a) > 1)]).astype(np.float64)
    return bool(np.log2(large).sum() >= np.finfo(a.dtype).maxexp)


def _key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    parts: list[Any] = []
    for n in shape[: rng.randint(0, len(shape))]:
        kind = rng.random()
        if kind < 0.55:
            ends = [rng.choice((None, rng.randint(-n - 1, n + 1))) for _ in range(2)]
            parts.append(slice(*ends, rng.choice((None, 1, -1, -1, 2, -2, 3))))
        elif kind < 0.75:
            parts.append(rng.randint(-n, n - 1) if n and rng.random() < 0.95 else n)
        elif kind < 0.85 and not any(isinstance(p, list) for p in parts):
            parts.append([rng.randint(-n, n - 1) for _ in range(rng.randint(0, 4))] if n else slice(None))
        elif kind < 0.93:
            parts.append(slice(None, None, -1))
        else:
            parts += [None, slice(None)]
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), Ellipsis)
    return tuple(parts) if len(parts) != 1 or rng.random() < 0.5 else parts[0]


def indexing(d: Draw) -> Case:
    t, a = d.operand()
    if d.rng.random() < 0.1:
        mask = np.array([d.rng.random() < 0.4 for _ in range(a.size)]).reshape(a.shape)
        return d.case("[mask]", lambda: t[ow.asarray(mask)], lambda: a[mask], signs=True)
    key = _key(d.rng, a.shape)
    key = np.array(key, int) if isinstance(key, list) else key
    return d.case(f"[{key}]", lambda: t[key], lambda: a[key], signs=True)


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
    t, a = d.operand((3, 4), filled=False)
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
    d.tame = d.tame or d.dtype[0] in "fc"
    kind = rng.choice(("matmul", "matmul", "tensordot", "einsum", "einsum", "outer", "kron"))
    t, a = d.operand(extents(rng, rng.choice((1, 2, 2, 3))), filled=False)
    if kind in ("outer", "kron"):
        d.tame = rng.random() < 0.5
        t, a = d.operand(extents(rng, 1 if kind == "outer" else 2), filled=False)
        u, b = d.operand(extents(rng, 1 if kind == "outer" else 2), filled=False)
        return d.case(kind, lambda: getattr(ow, kind)(t, u), lambda: getattr(np, kind)(a, b))
    if kind == "einsum":
        n, m = extents(rng, 2)
        text, shapes = rng.choice((
            ("ij,j->i", ((n, m), (m,))), ("ij,ij->j", ((n, m), (n, m))), ("ij,kj->ik", ((n, m), (3, m))), ("ii->i", ((n, n),)),
            ("ijk,jk->i", ((n, m, 2), (m, 2))), ("ij->ji", ((n, m),)), ("ii", ((n, n),)), ("ij,jk,kl->il", ((n, m), (m, 2), (2, n))),
            ("i,j->ij", ((n,), (m,))), ("ijk->kj", ((n, m, 3),)), ("bij,bjk->bik", ((2, n, m), (2, m, 3))),
        ))  # fmt: skip
        pairs = [d.operand(s, filled=False) for s in shapes]
        return d.case(
            f"einsum {text}",
            lambda: ow.einsum(text, *(t for t, _ in pairs)),
            lambda: np.einsum(text, *(a for _, a in pairs)),
            close=True,
        )
    u, b = d.operand((*a.shape[-1:], rng.choice((0, 1, 3)))[: rng.choice((1, 2, 2))], filled=False)
    if kind == "tensordot":
        return d.case("tensordot 1", lambda: ow.tensordot(t, u, axes=1), lambda: np.tensordot(a, b, 1), close=True)
    if rng.random() < 0.3:
        return d.case("matmul dense", lambda: t @ b, lambda: a @ b, close=True)
    return d.case("matmul", lambda: t @ u, lambda: a @ b, close=True)


def written(d: Draw) -> Case:
    t, a = d.operand()

    def ours() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.npz")
            ow.write(path, t)
            again = ow.read(path)
        if again.format != t.format:
            raise Failed(f"read as {again.format}")
        return again

    return d.case("write, read", ours, lambda: a, signs=True)


def merged(d: Draw) -> Case:
    """A broadcast of two, converted and written: the result's format holds what it says."""
    case = binary(d)
    return Case(f"{case.label}, again", lambda: _again(case.ours()), case.theirs, True, case.inputs)


def _again(t: Any) -> Any:
    return (t.asformat("coo") if t.ndim else t) if isinstance(t, ow.Tensor) else t


KINDS = (
    (unary, 2), (binary, 8), (merged, 4), (reduction, 5), (indexing, 7), (shaping, 7), (arguments, 5), (conversion, 9), (chain, 3), (cast, 2),
    (product, 5), (written, 2), (batches, 2),
)  # fmt: skip


def case(seed: int, number: int) -> Case:
    """Case `number` of the search with this seed."""
    rng = random.Random(f"{seed} {number}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0](Draw(rng))


def _numpy(name: str) -> Callable[..., Any]:
    return getattr(np, {"atan2": "arctan2"}.get(name, name))  # type: ignore[no-any-return]
