"""Level expressions: the coordinate of a level as a function of the coordinates of the tensor.

    e ::= i | i + j | i - j | e // c | e % c          c a positive integer, division rounds down

A dimension is its position in the format, never its name, so expressions are equal by structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..classes import frozen

__all__ = ["Add", "Dim", "Div", "Expression", "Mod", "Sub", "depth", "dimensions", "evaluate", "interval", "render"]


@frozen
class Dim:
    index: int


@frozen
class Add:
    left: Dim
    right: Dim


@frozen
class Sub:
    left: Dim
    right: Dim


@frozen
class Div:
    base: Expression
    divisor: int


@frozen
class Mod:
    base: Expression
    divisor: int


Expression: TypeAlias = Dim | Add | Sub | Div | Mod


def dimensions(e: Expression) -> Iterator[int]:
    """The dimensions that e mentions, left to right."""
    while isinstance(e, Div | Mod):
        e = e.base
    if isinstance(e, Dim):
        yield e.index
    else:
        yield e.left.index
        yield e.right.index


def depth(e: Expression) -> int:
    """How many divisions and remainders are nested in e."""
    count = 0
    while isinstance(e, Div | Mod):
        e, count = e.base, count + 1
    return count


def interval(e: Expression, shape: Sequence[int]) -> tuple[int, int]:
    """The half-open range of the coordinates that e takes over a tensor of this shape; (0, 0) where it takes none.

    `e % c` always gives (0, c), a block's edge included: it is the extent that its level is stored with.
    """
    match e:
        case Dim(i):
            return 0, shape[i]
        case Add(Dim(i), Dim(j)):
            return (0, shape[i] + shape[j] - 1) if shape[i] and shape[j] else (0, 0)
        case Sub(Dim(i), Dim(j)):
            return (1 - shape[j], shape[i]) if shape[i] and shape[j] else (0, 0)
        case Div(base, c):
            lo, hi = interval(base, shape)
            return (lo // c, (hi - 1) // c + 1) if lo < hi else (0, 0)
        case Mod(base, c):
            lo, hi = interval(base, shape)
            return (0, c) if lo < hi else (0, 0)


def evaluate(e: Expression, coordinates: Sequence[Any]) -> Any:
    """The value of e at the given coordinates: integers, or NumPy arrays of them."""
    match e:
        case Dim(i):
            return coordinates[i]
        case Add(Dim(i), Dim(j)):
            return coordinates[i] + coordinates[j]
        case Sub(Dim(i), Dim(j)):
            return coordinates[i] - coordinates[j]
        case Div(base, c):
            return evaluate(base, coordinates) // c
        case Mod(base, c):
            return evaluate(base, coordinates) % c


def rename(e: Expression, position: Sequence[int]) -> Expression:
    """e with dimension d written as dimension position[d]."""
    match e:
        case Dim(i):
            return Dim(position[i])
        case Add(Dim(i), Dim(j)):
            return Add(Dim(position[i]), Dim(position[j]))
        case Sub(Dim(i), Dim(j)):
            return Sub(Dim(position[i]), Dim(position[j]))
        case Div(base, c):
            return Div(rename(base, position), c)
        case Mod(base, c):
            return Mod(rename(base, position), c)


def render(e: Expression, names: Sequence[str]) -> str:
    """The text of e; `(i + j) // 4` takes parentheses, `i % 16 // 4` needs none."""
    suffix = ""
    while isinstance(e, Div | Mod):
        suffix = f" {'//' if isinstance(e, Div) else '%'} {e.divisor}{suffix}"
        e = e.base
    if isinstance(e, Dim):
        return names[e.index] + suffix
    text = f"{names[e.left.index]} {'+' if isinstance(e, Add) else '-'} {names[e.right.index]}"
    return f"({text}){suffix}" if suffix else text
