"""Statements of index notation over masked arrays, element by element: loops in Python over every index.

An element is a value, or None where it is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from openwork.ir.index import Access, Apply, Assignment, Expression, Literal, accesses
from openwork.ir.index_text import parse_program

Masked = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Data, and where it is specified."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "min": min, "max": max, "neg": lambda a: -a, "abs": abs, "gt": lambda a, b: a > b, "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b, "or": lambda a, b: bool(a) or bool(b), "and": lambda a, b: bool(a) and bool(b),
    "exp": np.exp,
}  # fmt: skip
RINGS = {
    "min_plus": ("min", "add"), "max_times": ("max", "mul"), "plus_times": ("add", "mul"), "min_max": ("min", "max"),
    "max_plus": ("max", "add"),
}  # fmt: skip


def run(
    text: str, tensors: Mapping[str, Masked], plain: Mapping[str, Any], ring: str | None = None
) -> tuple[Masked, bool]:
    """What the last statement assigns, and whether it is a masked tensor: `plain` tensors are specified everywhere."""
    known: dict[str, Masked] = {**tensors, **{n: (np.asarray(x), np.ones(np.shape(x), bool)) for n, x in plain.items()}}
    masked = set(tensors)
    for _, parts in parse_program(text):
        for stmt in parts:
            target = stmt.lhs.tensor
            keeps = target in known and (stmt.op != "=" or stmt.mask is not None)
            lacks = any(a.tensor in masked for a in (*accesses(stmt.rhs), *filter(None, [stmt.mask])))
            known[target] = _assign(stmt, known, keeps, ring, lacks or (keeps and target in masked))
            lacks = (lacks and not (keeps and stmt.op != "=")) or (keeps and target in masked)
            masked = masked | {target} if lacks else masked - {target}
    return known[target], target in masked


def _assign(stmt: Assignment, known: Mapping[str, Masked], keeps: bool, ring: str | None, lacks: bool) -> Masked:
    sizes = _sizes([*accesses(stmt.rhs), *filter(None, [stmt.mask]), *([stmt.lhs] if keeps else [])], known)
    shape = tuple(sizes[i] for i in stmt.lhs.indices)
    found = np.empty(shape, object)
    for at in np.ndindex(*shape):
        place = dict(zip(stmt.lhs.indices, at, strict=True))
        old = _value(stmt.lhs, place, known) if keeps else None
        new = _terms(stmt.rhs, place, known, sizes) if stmt.op == "=" and ring is None else _reduced(
            stmt.rhs, place, known, sizes, stmt.reduction if ring is None else RINGS[ring][0], ring
        )  # fmt: skip
        found[at] = _combined(stmt, place, known, new, old, keeps, ring)
    bits = np.array([x is not None for x in found.reshape(-1)], bool).reshape(shape)
    data = np.array([0 if x is None else x for x in found.reshape(-1)]).reshape(shape)
    return data, bits if lacks else np.ones(shape, bool)


def _combined(
    stmt: Assignment, place: dict[str, int], known: Mapping[str, Masked], new: Any, old: Any, keeps: bool, ring: Any
) -> Any:
    """The element that is assigned."""
    if stmt.mask is not None:
        test = _value(stmt.mask, place, known)
        if test is None:
            new, old = None, old if stmt.op != "=" else None
        elif bool(test) == stmt.complement:
            new = old if stmt.op == "=" else None
    if stmt.op == "=" or not keeps:
        return new
    old = bool(old) if old is not None and stmt.reduction in ("or", "and") else old
    if new is None or old is None:
        return old if new is None else new
    return OPERATIONS[stmt.reduction if ring is None else RINGS[ring][0]](old, new)


def _terms(e: Expression, place: dict[str, int], known: Mapping[str, Masked], sizes: Mapping[str, int]) -> Any:
    """Einstein's convention: each term summed over the indices that it has besides."""
    if isinstance(e, Apply) and e.op in ("add", "sub", "neg"):
        parts = [_terms(a, place, known, sizes) for a in e.args]
        return None if None in parts else OPERATIONS[e.op](*parts)
    return _reduced(e, place, known, sizes, "add", None)


def _reduced(
    e: Expression, place: dict[str, int], known: Mapping[str, Masked], sizes: Mapping[str, int], op: str, ring: Any
) -> Any:
    """The specified elements over the other indices, combined; None where there are none."""
    found = [x for x in _elements(e, place, known, sizes, ring) if x is not None]
    total = found[0] if found else None
    for x in found[1:]:
        total = OPERATIONS[op](total, x)
    return total


def _elements(
    e: Expression, place: dict[str, int], known: Mapping[str, Masked], sizes: Mapping[str, int], ring: Any
) -> Iterator[Any]:
    names = list(dict.fromkeys(i for a in accesses(e) for i in a.indices if i not in place))
    for at in itertools.product(*(range(sizes[i]) for i in names)):
        yield _value(e, {**place, **dict(zip(names, at, strict=True))}, known, ring)


def _value(e: Expression, place: Mapping[str, int], known: Mapping[str, Masked], ring: Any = None) -> Any:
    match e:
        case Literal(value):
            return value
        case Access(name, indices):
            data, bits = known[name]
            at = tuple(place[i] for i in indices)
            return data[at].item() if bits[at] else None
        case Apply("either", (a, b)):
            first = _value(a, place, known)
            return _value(b, place, known) if first is None else first
        case Apply("select", (c, a, b)):
            test = _value(c, place, known)
            return None if test is None else _value(a if test else b, place, known)
        case Apply(op, args):
            parts = [_value(a, place, known, ring) for a in args]
            op = RINGS[ring][1] if ring is not None and op == "mul" else op
            return None if None in parts else OPERATIONS[op](*parts)


def _sizes(found: list[Access], known: Mapping[str, Masked]) -> dict[str, int]:
    return {i: n for a in found for i, n in zip(a.indices, known[a.tensor][0].shape, strict=True)}
