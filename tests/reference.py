"""A slow and plain reference for storage: pack elements into any format, and walk the buffers back, by nothing but the
level functions' own text. For tests only; batch levels are not covered."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from openwork.format.expression import evaluate
from openwork.format.format import Format
from openwork.format.level import Iterate

__all__ = ["Buffers", "Unpackable", "pack", "walk"]

Coordinates = tuple[int, ...]
Item = tuple[Coordinates, float]


class Unpackable(Exception):
    """These elements have no place in this format: too many in a row of ell, none for a singleton, ..."""


@dataclass
class Buffers:
    pos: list[list[int] | None] = field(default_factory=list)
    crd: list[list[int] | None] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def pack(f: Format, shape: Coordinates, elements: Mapping[Coordinates, float]) -> Buffers:
    """The buffers of these elements. A parent is the list of its items, or None for a position that holds nothing."""
    buffers = Buffers()
    items = [(tuple(evaluate(level.expression, c) for level in f.levels), v) for c, v in elements.items()]
    parents: list[list[Item] | None] = [sorted(items)]
    for at, (lo, hi) in enumerate(f.level_intervals(shape)):
        parents, pos, crd = LEVELS[f.levels[at].format.name](f, at, lo, hi, parents)
        buffers.pos.append(pos)
        buffers.crd.append(crd)
    buffers.values = [sum(v for _, v in items or ()) for items in parents]
    return buffers


Packed = tuple[list[list[Item] | None], list[int] | None, list[int] | None]


def _groups(items: list[Item] | None, at: int) -> dict[int, list[Item]]:
    groups: dict[int, list[Item]] = defaultdict(list)
    for item in items or ():
        groups[item[0][at]].append(item)
    return groups


def _full(f: Format, at: int, lo: int, hi: int, parents: list[list[Item] | None]) -> Packed:
    return [_groups(items, at).get(c, []) for items in parents for c in range(lo, hi)], None, None


def _bitmap(f: Format, at: int, lo: int, hi: int, parents: list[list[Item] | None]) -> Packed:
    children = [_groups(items, at).get(c) for items in parents for c in range(lo, hi)]
    return children, None, [int(items is not None) for items in children]


def _children(f: Format, at: int, items: list[Item] | None) -> list[tuple[int, list[Item]]]:
    """One child per coordinate of a unique level; of a nonunique one, one per coordinate of the chain that it heads,
    or one per item where the chain allows duplicates."""
    end = at
    while end + 1 < f.nlevels and not f.levels[end].format.unique and f.levels[end + 1].format.name == "singleton":
        end += 1
    if not f.levels[end].format.unique:
        return sorted((item[0][at], [item]) for item in items or ())
    groups: dict[Coordinates, list[Item]] = defaultdict(list)
    for item in items or ():
        groups[item[0][at : end + 1]].append(item)
    return [(chain[0], group) for chain, group in sorted(groups.items())]


def _compressed(f: Format, at: int, lo: int, hi: int, parents: list[list[Item] | None]) -> Packed:
    children = [_children(f, at, items) for items in parents]
    pos = [0, *itertools.accumulate(map(len, children))]
    return [items for group in children for _, items in group], pos, [c for group in children for c, _ in group]


def _loose(f: Format, at: int, lo: int, hi: int, parents: list[list[Item] | None]) -> Packed:
    """The parents backwards, with a slot that nobody uses after each."""
    below: list[list[Item] | None] = []
    pos, crd = [0] * (2 * len(parents)), []
    for p in reversed(range(len(parents))):
        children = _children(f, at, parents[p])
        pos[2 * p : 2 * p + 2] = len(crd), len(crd) + len(children)
        crd += [*(c for c, _ in children), lo]
        below += [*(items for _, items in children), None]
    return below, pos, crd


def _singleton(f: Format, at: int, lo: int, hi: int, parents: list[list[Item] | None]) -> Packed:
    crd = []
    for items in parents:
        groups = _groups(items, at)
        if items is not None and len(groups) != 1:
            raise Unpackable
        crd.append(next(iter(groups), lo))
    return parents, None, crd


def _slots(f: Format, at: int, lo: int, hi: int, parents: list[list[Item] | None]) -> Packed:
    """n of m, or up to k and then the sentinel."""
    padded = f.levels[at].format.functions.padded
    size = f.levels[at].format.arguments[0]
    below: list[list[Item] | None] = []
    crd: list[int] = []
    for items in parents:
        children: dict[int, list[Item] | None] = dict(sorted(_groups(items, at).items()))
        unused = [c for c in range(lo, hi) if c not in children]
        while len(children) < size and (padded or unused):
            children[-1 - len(children) if padded else unused.pop(0)] = None if padded else []
        if len(children) != size:
            raise Unpackable
        ordered = children.items() if padded else sorted(children.items())
        crd += [max(c, -1) for c, _ in ordered]
        below += [group for _, group in ordered]
    return below, None, crd


LEVELS = {
    "dense": _full,
    "range": _full,
    "bitmap": _bitmap,
    "compressed": _compressed,
    "loose_compressed": _loose,
    "singleton": _singleton,
    "structured": _slots,
    "ell": _slots,
}


def walk(f: Format, shape: Coordinates, buffers: Buffers) -> Iterator[Item]:
    """Every element that the buffers hold inside the shape, by evaluating the level functions."""
    intervals = f.level_intervals(shape)

    def visit(at: int, p: int, parents: int, done: Coordinates) -> Iterator[Item]:
        if at == f.nlevels:
            found = tuple(sum(k * done[level] for level, k in form) for form in f.inverse)
            if all(0 <= c < n for c, n in zip(found, shape, strict=True)):
                yield found, buffers.values[p]
            return
        level = f.levels[at].format
        functions, (lo, hi) = level.functions, intervals[at]
        names: dict[str, Any] = {"p": p, "lo": lo, "hi": hi, "N": hi - lo, "len": len, "parents": parents}
        names |= {"pos": buffers.pos[at], "crd": buffers.crd[at]}
        names |= dict(zip(level.parameters, level.arguments, strict=True))
        if "valid_lo" in functions.bounds:
            names["valid_lo"], names["valid_hi"] = _valid(f, shape, at, done, lo, hi)
        positions = eval(functions.positions, {}, names)
        for counter in range(*(eval(bound, {}, names) for bound in functions.bounds)):
            names["c" if functions.iterate is Iterate.COORDINATE else "q"] = counter
            if functions.present is None or eval(functions.present, {}, names):
                c = eval(functions.coordinate, {}, names)
                q = eval(functions.position, {}, names | {"c": c})
                assert 0 <= q < positions
                yield from visit(at + 1, q, positions, (*done, c))

    yield from visit(0, 0, 1, ())


def _valid(f: Format, shape: Coordinates, at: int, done: Coordinates, lo: int, hi: int) -> tuple[int, int]:
    """The coordinates of a range level for which every dimension that it completes lies inside the shape."""
    for d, form in enumerate(f.inverse):
        *known, (last, sign) = form
        if last == at:
            base = sum(k * done[level] for level, k in known)
            low, high = (-base, shape[d] - base) if sign > 0 else (base - shape[d] + 1, base + 1)
            lo, hi = max(lo, low), min(hi, high)
    return lo, hi
