"""Two walks of unique levels -> a loop that intersects their coordinates by blocks, in vector lanes.

    while qA < eA and qB < eB:
        a = which of A_crd[qA : qA + 8] are among B_crd[qB : qB + 8]     64 comparisons in vectors, bits
        if any is:
            b = which of B_crd[qB : qB + 8] are among A_crd[qA : qA + 8]
            the first bit of a and that of b are a pair, the next ones too, ...
        if the block of A ends first: qA += 8; if that of B: qB += 8

With two fingers alone every step depends on the comparison of the step before; and most pairs of blocks have nothing in
common. A block may reach beyond its row, into the next one's coordinates: a match there is checked again, one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import tuning
from ...ir.loop import Cast, Expr, Var
from ...ir.ops import const, op
from ..build import Block
from .cursor import Cursor, Source, Walker, truth_as_integer

__all__ = ["OnMatch", "Walk", "intersect_in_vectors"]

LANES = tuning.INTERSECTION_LANES

OnMatch = Callable[[Block, Expr, Var, Var], None]
"""Takes a coordinate that both operands have, and its position in each."""


class Walk(NamedTuple):
    """A walk of one level of an operand."""

    source: Source
    cursor: Cursor
    walker: Walker

    def coordinate(self, q: Expr) -> Expr:
        return self.source.coordinate(self.cursor, q)

    @property
    def at(self) -> Var:
        return self.walker.at

    @property
    def end(self) -> Expr:
        return self.walker.end

    def block(self) -> tuple[Expr | None, Expr] | None:
        """(in bounds, coordinates) of the block at the walker, as `coordinate_block`; None without blocks."""
        return (
            self.source.coordinate_block(self.cursor, self.at, LANES) if self.source.contiguous(self.cursor) else None
        )


def intersect_in_vectors(block: Block, x: Walk, y: Walk, on_match: OnMatch) -> None:
    """Emit `on_match` for every coordinate that two walks of unique levels have in common."""
    x_block, y_block = x.block(), y.block()
    both_left = op("and", op("lt", x.at, x.end), op("lt", y.at, y.end))
    if x_block is None or y_block is None:
        _two_fingers(block, x, y, x.end, y.end, on_match)
        return
    (x_fits, x_coordinates), (y_fits, y_coordinates) = x_block, y_block

    def step(inner: Block) -> None:
        matches: Expr = op("bits", _equal_to_any(x_coordinates, y))
        for fits in (x_fits, y_fits):
            matches = matches if fits is None else op("select", fits, matches, const(-1))
        matches = inner.let("common", matches)
        x_end = inner.let("eX", op("min", op("add", x.at, const(LANES)), x.end))
        y_end = inner.let("eY", op("min", op("add", y.at, const(LANES)), y.end))

        def skip(deeper: Block) -> None:
            a = deeper.let("a", x.coordinate(op("sub", x_end, const(1))))
            b = deeper.let("b", y.coordinate(op("sub", y_end, const(1))))
            deeper.assign(x.at, op("select", op("le", a, b), x_end, x.at))
            deeper.assign(y.at, op("select", op("le", b, a), y_end, y.at))

        def emit_pairs(deeper: Block) -> None:
            x_bits, y_bits = deeper.mut("inX", matches), deeper.mut("inY", const(0))
            sizes = op("add", op("sub", x_end, x.at), op("sub", y_end, y.at))
            deeper.when(
                op("eq", sizes, const(2 * LANES)),
                lambda b: b.assign(y_bits, op("bits", _equal_to_any(y_coordinates, x))),
                lambda b: _partial_block_bits(b, x, y, x_end, y_end, (x_bits, y_bits)),
            )
            _for_each_pair(deeper, x, y, x_bits, y_bits, on_match)
            skip(deeper)

        inner.when(op("eq", matches, const(0)), skip, emit_pairs)

    block.run("while TEST:\n    STEP", TEST=both_left, STEP=step)


def _equal_to_any(coordinates: Expr, y: Walk) -> Expr:
    """A mask of the lanes of `coordinates` that equal one of the next `LANES` coordinates of y."""
    result: Expr | None = None
    for k in range(LANES):
        one = y.coordinate(op("add", y.at, const(k)))
        if (
            isinstance(coordinates, Cast)
            and isinstance(one, Cast)
            and coordinates.arg.type.scalar == one.arg.type.scalar
        ):
            equal = op("eq", coordinates.arg, one.arg)
        else:
            equal = op("eq", coordinates, one)
        result = equal if result is None else op("or", result, equal)
    assert result is not None
    return result


def _partial_block_bits(block: Block, x: Walk, y: Walk, x_end: Expr, y_end: Expr, bits: tuple[Var, Var]) -> None:
    """The bits of the coordinates that two blocks have in common, where a row ends inside of one of them."""
    block.assign(bits[0], const(0))
    first, second = (w._replace(walker=Walker(block.mut("q", w.at), w.end)) for w in (x, y))

    def note(inner: Block, _: Expr, p: Var, q: Var) -> None:
        for matches, begin, at in ((bits[0], x.at, p), (bits[1], y.at, q)):
            inner.assign(matches, op("bor", matches, op("shl", const(1), op("sub", at, begin))))

    _two_fingers(block, first, second, x_end, y_end, note)


def _for_each_pair(block: Block, x: Walk, y: Walk, a: Var, b: Var, on_match: OnMatch) -> None:
    """The loop over pairs of set bits of two blocks: equal coordinates, in the same order in both."""

    def pair(inner: Block) -> None:
        p, q = (inner.let(n, op("add", w.at, op("ctz", v))) for n, w, v in (("p", x, a), ("q", y, b)))
        assert isinstance(p, Var)
        assert isinstance(q, Var)
        on_match(inner, inner.let("c", x.coordinate(p)), p, q)
        for v in (a, b):
            inner.assign(v, op("band", v, op("sub", v, const(1))))

    block.run("while TEST:\n    PAIR", TEST=op("ne", a, const(0)), PAIR=pair)


def _two_fingers(block: Block, x: Walk, y: Walk, x_end: Expr, y_end: Expr, on_match: OnMatch) -> None:
    """The loop of two fingers, up to both ends."""

    def step(inner: Block) -> None:
        a, b = inner.let("a", x.coordinate(x.at)), inner.let("b", y.coordinate(y.at))
        inner.when(op("eq", a, b), lambda deeper: on_match(deeper, a, x.at, y.at))
        inner.assign(x.at, op("add", x.at, truth_as_integer(op("le", a, b))))
        inner.assign(y.at, op("add", y.at, truth_as_integer(op("le", b, a))))

    both_left = op("and", op("lt", x.at, x_end), op("lt", y.at, y_end))
    block.run("while TEST:\n    STEP", TEST=both_left, STEP=step)
