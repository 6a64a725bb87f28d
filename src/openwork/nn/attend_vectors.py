"""A scalar type and a width -> the vectors that attention's kernels are written in: lanes, pieces of rows, folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ..codegen.target import host

__all__ = ["cleared_place", "folded", "lanes_of", "pieces", "row_product", "size_of_a_group", "sum_of_lanes", "windows"]

_WIDTH = {"f32": 4, "f64": 8}


def size_of_a_group(scalar: str) -> int:
    """The queries that a register tile computes together: as many as 64 bytes hold, on every machine."""
    return 64 // _WIDTH[scalar]


@cache
def lanes_of(scalar: str) -> int:
    """Lanes of the widest vectors of this CPU."""
    return (64 if "+avx512f" in host().features.split(",") else 32) // _WIDTH[scalar]


def pieces(width: int, lanes: int) -> list[tuple[int, int]]:
    """A row cut in vectors: (first column, lanes), whole vectors and then powers of two."""
    result, at = [], 0
    while at < width:
        while lanes > width - at:
            lanes //= 2
        result.append((at, lanes))
        at += lanes
    return result


def windows(width: int, lanes: int) -> tuple[int, list[tuple[int, int]]]:
    """A row covered by vectors of equal lanes: these, and (first column, lanes that the vector before has too)."""
    while lanes > max(width, 1):
        lanes //= 2
    whole = [(c, 0) for c in range(0, width - width % lanes, lanes)]
    return lanes, whole + ([(width - lanes, lanes - width % lanes)] if width % lanes else [])


def folded(lines: list[str], names: Sequence[str], lanes: int, combine: Callable[[str, str], str]) -> str:
    """Append the fold of each vector's lanes; returns the vector whose lane k is that of names[k % len(names)].

    names : a power of two of vectors, `lanes` at most; `combine` is of two vectors
    """
    level, names = 0, list(names)
    while lanes > 1 << level:
        pairs = list(zip(names[::2], names[1::2] if len(names) > 1 else names, strict=True))
        names = [f"{x}_{level}" for x, _ in pairs]
        for name, (x, y) in zip(names, pairs, strict=True):
            lines += [f"{name}e = evens({x}, {y})", f"{name}o = odds({x}, {y})"]
            lines.append(f"{name} = {combine(f'{name}e', f'{name}o')}")
        level += 1
    return names[0]


def row_product(to: str, x: str, y: str, at: str, width: int, lanes: int) -> list[str]:
    """The number `to` = x[at:at + width] . y[at:at + width]."""
    lines = [f"{to}v: Tx{lanes} = Tx{lanes}(0.0)", f"{to}: T = T(0.0)"]
    for c, n in pieces(width, lanes):
        one, other = (f"vload({b}, {at} + {c}, {n})" for b in (x, y))
        lines.append(f"{to}v = fma({one}, {other}, {to}v)" if n == lanes else f"{to} += hsum({one} * {other})")
    return [*lines, f"{to} += hsum({to}v)"]


def cleared_place(to: str, width: int) -> str:
    """Write 0 to the rows of a place before the first group of a range that adds to them."""
    return f"for x in range(place * m * {width}, (place + 1) * m * {width}):\n    {to}[x] = T(0.0)"


def sum_of_lanes(x: str, y: str) -> str:
    """How `folded` adds."""
    return f"{x} + {y}"
