"""A tensor's format -> the loop nest over all its stored elements, around a given body: the source of a conversion.

    for a_c0 in range(0, n0):                             i : dense
        for a_q1 in range(a_pos1[a_c0], a_pos1[a_c0 + 1]):  j : compressed
            a_c1 = a_crd1[a_q1]
            LEAF

Extents and intervals are bound once, at the kernel's entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from ..classes import frozen
from ..format.expression import dimensions
from ..format.format import Format
from ..ir.loop import Expr
from ..ir.ops import const
from .build import Block
from .intervals import intervals
from .level_iterator import LevelIterator, Point
from .operand import Operand

__all__ = ["Place", "hoisted", "walk"]


@frozen
class Place(Point):
    """A point of a walk: the coordinates of the dimensions that are known there, and of levels that are hoisted."""

    dims: tuple[Expr | None, ...] = ()
    hoisted: tuple[tuple[int, Expr], ...] = ()
    leaf: Expr = field(default_factory=lambda: const(0))
    """index into `values`, at the last level"""

    @property
    def at(self) -> tuple[Expr, ...]:
        """The dimension coordinates of a stored element."""
        assert None not in self.dims
        return self.dims  # type: ignore[return-value]


Leaf = Callable[[Block, Place], None]


def walk(
    block: Block,
    name: str,
    operand: Operand,
    extents: Sequence[Expr],
    leaf: Leaf,
    *,
    tile: tuple[int, Expr, Expr] | None = None,
    span: tuple[Expr, Expr] | None = None,
    hoist: bool = False,
) -> None:
    """Append the nest that calls `leaf` with every stored element of the tensor `name`.

    `tile` and `span` are those of `LevelIterator`. With `hoist` the levels of `hoisted` are walked first.

    Guarantees: `leaf` sees each stored element once, in storage order unless hoisted, inside the shape, its
    dimensions as linear forms of the level coordinates.
    """
    assert operand.format is not None
    levels = _Walk(block, name, operand, extents)
    levels.tile, levels.span = tile, span
    dims = tuple(const(0) if not form else None for form in operand.format.inverse)
    levels.descend(block, Place(dims=dims), hoisted(operand.format) if hoist else (), leaf)


def hoisted(format: Format) -> tuple[int, ...]:
    """The dense levels below the one compressed level of a format whose loops may be hoisted out of its loop.

    Of blocks, the rows: `i // 4, i % 4, j // 4, j % 4`, the order of rows, instead of `i // 4, j // 4, i % 4, j % 4`.
    """
    stored = [at for at, level in enumerate(format.levels) if not level.format.is_dense]
    if len(stored) != 1 or not format.levels[stored[0]].format.is_compressed:
        return ()
    (at,) = stored
    compressed_dims = set(dimensions(format.levels[at].expression))
    free = [
        x for x in range(at + 1, format.nlevels) if compressed_dims.isdisjoint(dimensions(format.levels[x].expression))
    ]
    return tuple(free)


class _Walk(LevelIterator[Place]):
    def __init__(self, block: Block, name: str, operand: Operand, extents: Sequence[Expr]) -> None:
        assert operand.format is not None
        named = intervals(block, name, operand.format, extents)
        super().__init__(name, operand, block.builder.params, named)
        self.extents = extents

    def extent(self, dim: int) -> Expr:
        return self.extents[dim]

    def known(self, point: Place) -> dict[int, Expr]:
        return dict(point.hoisted) | super().known(point)

    def dimension(self, dim: int, point: Place, without: int = -1) -> Expr:
        bound = point.dims[dim] if without < 0 and dim < self.format.ndim else None
        return super().dimension(dim, point, without) if bound is None else bound

    def child(self, block: Block, point: Place, **names: Expr) -> Place:
        child = super().child(block, point, **names)
        dims = list(child.dims)
        for d in self.completed(point.depth):
            if d < len(dims):
                dims[d] = block.let(self.stem("d", d), self.dimension(d, child))
        return replace(child, dims=tuple(dims))

    def descend(self, block: Block, place: Place, hoist: tuple[int, ...], leaf: Leaf) -> None:
        """The levels below `place`, and above the compressed level among them those of `hoist`."""
        depth = place.depth
        if depth == self.format.nlevels:
            leaf(block, replace(place, leaf=block.let(f"{self.name}_leaf", self.leaf(place.position, place.batch))))
        elif hoist and self.levels[depth].format.is_compressed:

            def body(inner: Block, c: Expr) -> None:
                self.descend(inner, replace(place, hoisted=(*place.hoisted, (hoist[0], c))), hoist[1:], leaf)

            block.loop(self.stem("c", hoist[0]), *self.clipped(place, hoist[0]), body)
        elif (c := dict(place.hoisted).get(depth)) is not None:
            self.enter(block, place, lambda b, p: self.descend(b, p, hoist, leaf), c=c)
        else:
            self.each(block, place, lambda b, p: self.descend(b, p, hoist, leaf))
