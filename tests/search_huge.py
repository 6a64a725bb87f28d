"""Random cases of huge extents with few elements, against a dictionary of coordinates: what costs the extent is a fault."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from search_cases import Draw as _Draw
from search_formats import random_format
from search_oracle import Case, is_raised, outcome, valid

import openwork as ow

__all__ = ["case", "run"]

LEVELS = ("compressed", "compressed", "compressed", "singleton", "loose_compressed", "dense", "renamed")
EXTENTS = (1, 2, 3, 5, 1 << 20, 1 << 28, (1 << 31) - 1, 1 << 31, 1 << 33, 1 << 40, 1 << 62)
WIDE = 1 << 16
"""An extent from which on nothing may be made that is as long."""
CHECKABLE = 1 << 26
"""Bytes of a result from which on the check of its invariants, by plain NumPy, would need more than the memory of a case."""


@dataclass
class Model:
    """A tensor as its elements by coordinates; what is not there is 0."""

    shape: tuple[int, ...]
    elements: dict[tuple[int, ...], float]

    def moved(self, shape: tuple[int, ...], to: Callable[[tuple[int, ...]], tuple[int, ...] | None]) -> Model:
        found: dict[tuple[int, ...], float] = {}
        for c, v in self.elements.items():
            if (t := to(c)) is not None:
                found[t] = found.get(t, 0.0) + v
        return Model(shape, found)


class Refused(Exception):
    """Nothing that is as long as the extents can be made: any error of our own will do."""


def operand(rng: random.Random, shape: tuple[int, ...], made: _Draw) -> tuple[Any, Model]:
    elements = {
        tuple(rng.choice((0, n - 1, n // 2, rng.randrange(n))) for n in shape): float(rng.randint(1, 9))
        for _ in range(rng.randint(0, 4))
    }
    places = np.array(sorted(elements), np.int64).reshape(-1, len(shape)).T
    t = ow.sparse_coo_tensor(places, np.array([elements[c] for c in sorted(elements)]), shape)
    format = random_format(rng, len(shape), LEVELS) if max(shape) > WIDE else random_format(rng, len(shape))
    try:
        if rng.random() < 0.7 and _fits(format, shape):
            t = t.asformat(format)
    except (ow.FormatError, ow.UnsupportedError, ow.ShapeError):
        pass
    made.inputs += [t, elements]
    return t, Model(shape, elements)


def _fits(format: ow.Format, shape: tuple[int, ...]) -> bool:
    """Whether levels that store something for every coordinate are short."""
    sizes = [hi - lo for lo, hi in format.level_intervals(shape)]
    names = [level.format.name for level in format.levels]
    full = ("dense", "bitmap", "range", "structured", "batch")
    return all(n <= WIDE for n, name in zip(sizes, names, strict=True) if name in full)


def _flip(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    at = d.rng.randrange(len(m.shape))
    moved = m.moved(m.shape, lambda c: (*c[:at], m.shape[at] - 1 - c[at], *c[at + 1 :]))
    key = (*[slice(None)] * at, slice(None, None, -1))
    if d.rng.random() < 0.6:
        return d.case(f"[{key}]", lambda: t[key], lambda: moved)
    return d.case(f"flip {at}", lambda: ow.flip(t, axis=at), lambda: moved)


def _slice(d: _Draw) -> Case:
    rng = d.rng
    t, m = operand(rng, _shape(rng), d)
    key = tuple(
        slice(
            rng.choice((None, rng.randint(-n, n))),
            rng.choice((None, rng.randint(-n, n))),
            rng.choice((1, 1, -1, 2, -2, 3, n // 2 + 1)),
        )
        for n in m.shape[: rng.randint(1, len(m.shape))]
    )
    steps = [range(*k.indices(n)) for k, n in zip(key, m.shape, strict=False)] + [range(n) for n in m.shape[len(key) :]]
    shape = tuple(_length(r) for r in steps)

    def to(c: tuple[int, ...]) -> tuple[int, ...] | None:
        return (
            tuple(r.index(x) for x, r in zip(c, steps, strict=True))
            if all(x in r for x, r in zip(c, steps, strict=True))
            else None
        )

    return d.case(f"[{key}]", lambda: t[key], lambda: m.moved(shape, to))


def _length(r: range) -> int:
    return max(0, -((r.start - r.stop) // r.step))


def _roll(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    at, by = d.rng.randrange(len(m.shape)), d.rng.randint(-(10**12), 10**12)
    n = m.shape[at]
    return d.case(
        f"roll {by} {at}",
        lambda: ow.roll(t, by, axis=at),
        lambda: m.moved(m.shape, lambda c: (*c[:at], (c[at] + by) % n, *c[at + 1 :])),
    )


def _repeat(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    at, by = d.rng.randrange(len(m.shape)), d.rng.choice((0, 1, 2, 3))
    shape = (*m.shape[:at], m.shape[at] * by, *m.shape[at + 1 :])
    found = {(*c[:at], c[at] * by + k, *c[at + 1 :]): v for c, v in m.elements.items() for k in range(by)}
    return d.case(
        f"repeat {by} {at}",
        lambda: ow.repeat(t, by, axis=at),
        lambda: Model(shape, found) if max(shape) < 1 << 63 else _refuse(),
    )


def _permute(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    order = d.rng.sample(range(len(m.shape)), len(m.shape))
    return d.case(
        f"permute {order}",
        lambda: ow.permute_dims(t, tuple(order)),
        lambda: m.moved(tuple(m.shape[k] for k in order), lambda c: tuple(c[k] for k in order)),
    )


def _triangle(d: _Draw) -> Case:
    shape = (_shape(d.rng) + _shape(d.rng))[:2]
    t, m = operand(d.rng, shape if len(shape) == 2 else (*shape, 5), d)
    k = d.rng.choice((0, 1, -1, m.shape[1] // 2, -(m.shape[0] // 2)))
    return d.case(
        f"tril {k}", lambda: ow.tril(t, k=k), lambda: m.moved(m.shape, lambda c: c if c[1] - c[0] <= k else None)
    )


def _binary(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    u, o = operand(d.rng, m.shape, d)
    name = d.rng.choice(("add", "subtract", "multiply", "maximum"))
    f = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y, "maximum": max}[
        name
    ]
    found = {c: f(m.elements.get(c, 0.0), o.elements.get(c, 0.0)) for c in {**m.elements, **o.elements}}
    return d.case(name, lambda: getattr(ow, name)(t, u), lambda: Model(m.shape, found))


def _reduce(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    at = d.rng.randrange(len(m.shape))
    shape = (*m.shape[:at], *m.shape[at + 1 :])
    wide = any(n > WIDE for n in shape)
    return d.case(
        f"sum {at}", lambda: ow.sum(t, axis=at), lambda: m.moved(shape, lambda c: (*c[:at], *c[at + 1 :])), close=wide
    )


def _total(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    return d.case("sum", lambda: ow.sum(t), lambda: Model((), {(): sum(m.elements.values())}))


def _convert(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    target = d.rng.choice(
        (
            ow.format("bitmap", len(m.shape)),
            ow.format("dense", len(m.shape)),
            *(random_format(d.rng, len(m.shape)) for _ in range(3)),
        )
    )
    d.inputs.append(str(target))
    return d.case("asformat", lambda: t.asformat(target), lambda: m if _fits(target, m.shape) else _perhaps(m))


def _perhaps(m: Model) -> Model:
    """Right or refused."""
    return Model(m.shape, {**m.elements, (): 0.0})


def _dense(d: _Draw) -> Case:
    """What has a result as long as the extent: refused where that is long, by an error of our own."""
    rng = d.rng
    t, m = operand(rng, _shape(rng), d)
    at = rng.randrange(len(m.shape))
    n = m.shape[at]
    name = rng.choice(
        (
            "cumulative_sum",
            "argsort",
            "repeat each",
            "take all",
            "reshape",
            "sort",
            "tile",
            "nonzero",
            "cumulative_prod",
            "searchsorted",
        )
    )
    calls: dict[str, Callable[[], Any]] = {
        "cumulative_sum": lambda: ow.cumulative_sum(t, axis=at), "argsort": lambda: ow.argsort(t, axis=at),
        "cumulative_prod": lambda: ow.cumulative_prod(t, axis=at),
        "repeat each": lambda: ow.repeat(t, np.ones(3, int), axis=at) if n != 3 else None,
        "take all": lambda: ow.take(t, np.array([0, n - 1]), axis=at), "reshape": lambda: ow.reshape(t, (-1,)),
        "sort": lambda: ow.sort(t, axis=at), "tile": lambda: ow.tile(t, (2,) * t.ndim), "nonzero": lambda: ow.nonzero(t),
        "searchsorted": lambda: ow.searchsorted(t if t.ndim == 1 else t.sum(), np.array([1.0])),
    }  # fmt: skip
    return d.case(f"{name} {at}", calls[name], lambda: None)


def _join(d: _Draw) -> Case:
    t, m = operand(d.rng, _shape(d.rng), d)
    at = d.rng.randrange(len(m.shape))
    n = m.shape[at]
    shape = (*m.shape[:at], 2 * n, *m.shape[at + 1 :])
    found = {**m.elements, **{(*c[:at], c[at] + n, *c[at + 1 :]): v for c, v in m.elements.items()}}
    return d.case(
        f"concat {at}",
        lambda: ow.concat([t, t], axis=at),
        lambda: Model(shape, found) if 2 * n < 1 << 63 else _refuse(),
    )


def _product(d: _Draw) -> Case:
    shape = (_shape(d.rng) + _shape(d.rng))[:2]
    t, m = operand(d.rng, shape if len(shape) == 2 else (*shape, 5), d)
    u, o = operand(d.rng, (m.shape[1], d.rng.choice(EXTENTS)), d)
    found: dict[tuple[int, ...], float] = {}
    for (i, k), (q, j) in itertools.product(m.elements, o.elements):
        if k == q:
            found[i, j] = found.get((i, j), 0.0) + m.elements[i, k] * o.elements[q, j]
    return d.case("matmul", lambda: t @ u, lambda: Model((m.shape[0], o.shape[1]), found))


def _refuse() -> Model:
    raise Refused


def _shape(rng: random.Random) -> tuple[int, ...]:
    shape = [rng.choice(EXTENTS) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    shape[rng.randrange(len(shape))] = rng.choice(EXTENTS[4:])
    while np.prod([float(n) for n in shape]) >= 2.0**63 and rng.random() < 0.7:
        shape[rng.randrange(len(shape))] = rng.choice((1, 2, 3))
    return tuple(shape)


KINDS = (
    _flip,
    _flip,
    _slice,
    _slice,
    _roll,
    _repeat,
    _permute,
    _triangle,
    _binary,
    _binary,
    _reduce,
    _total,
    _convert,
    _convert,
    _dense,
    _dense,
    _join,
    _product,
)


def case(seed: int, number: int) -> Case:
    """Case `number` of the search with this seed."""
    rng = random.Random(f"huge {seed} {number}")
    return rng.choice(KINDS)(_Draw(rng))


def run(case: Case) -> str | None:
    """What differs, or None; any error of our own is right where the result would be as long as an extent."""
    got, error = outcome(case.ours)
    want, refused = outcome(case.theirs)
    if error is not None:
        if isinstance(error, MemoryError) and "bytes" not in str(error):
            return f"MemoryError: {error}"
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        own = isinstance(error, ow.UnsupportedError | ow.FormatError | ow.ShapeError | ow.DTypeError)
        if own or (isinstance(error, ValueError | MemoryError) and is_raised(last)):
            return None
        return f"{type(error).__name__}: {str(error)[:300]}"
    if refused is not None:
        return f"a value, expected a refusal: {got!r}"[:300]
    if want is None:
        return None
    if isinstance(got, ow.Tensor) and got.nbytes < CHECKABLE:
        _, error = outcome(lambda: valid(got))
        if error is not None:
            return f"invalid: {type(error).__name__}: {str(error)[:300]}"
    wanted = {c: v for c, v in want.elements.items() if v and len(c) == len(want.shape)}
    if tuple(got.shape) != want.shape:
        return f"shape {tuple(got.shape)}, expected {want.shape}"
    if isinstance(got, ow.Tensor) and got.nbytes >= CHECKABLE:
        return _differs_somewhere(got, wanted)
    elements = _elements(got)
    return None if elements == wanted else f"elements {elements}, expected {wanted}"


def _differs_somewhere(got: Any, wanted: dict[tuple[int, ...], float]) -> str | None:
    """What differs of a result whose coordinates need more than the memory of a case: it is asked for its elements."""
    elements = {c: float(got[c]) for c in wanted}
    if elements != wanted:
        return f"elements {elements}, expected {wanted}"
    several, error = outcome(lambda: int(ow.count_nonzero(got)))
    if isinstance(error, MemoryError):
        return None
    return None if several == len(wanted) else f"{several} elements, expected {wanted}"


def _elements(got: Any) -> dict[tuple[int, ...], float]:
    if not isinstance(got, ow.Tensor) or not got.ndim:
        dense = np.asarray(got.to_numpy() if isinstance(got, ow.Tensor) else got)
        return (
            {tuple(c): float(dense[tuple(c)]) for c in np.argwhere(dense).tolist()}
            if dense.ndim
            else ({(): float(dense)} if dense else {})
        )
    coo = got.asformat("coo")
    found: dict[tuple[int, ...], float] = {}
    some = np.flatnonzero(coo.values)
    for *c, v in zip(*coo.indices()[:, some].tolist(), coo.values[some].tolist(), strict=True):
        found[tuple(c)] = found.get(tuple(c), 0.0) + v
    return {c: v for c, v in found.items() if v}
