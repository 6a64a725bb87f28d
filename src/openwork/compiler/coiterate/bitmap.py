"""The last level of bitmaps -> a counted loop without branches that stores a bit and a value for every coordinate.

    for j in range(0, n):
        out_crd[r] = A_crd[p] and B_crd[p]
        out_vals[r] = A_vals[p] + B_vals[p]

LLVM vectorises the loop. Where the bit is not set the value is arbitrary.
"""

from __future__ import annotations

from ...ir.loop import Expr
from ..build import Block
from ..lattice import Point
from .branch_free import is_case, is_cheap, value_of
from .merge_nest import Cursors, MergeLevel, MergeNest
from .output import Place

__all__ = ["store_bitmap_element", "is_bitmap_level"]


def is_bitmap_level(nest: MergeNest, level: MergeLevel, cursors: Cursors) -> bool:
    """Whether the last level reads and writes nothing but a bit and a value for each coordinate."""
    return (
        nest.out.is_bitmap(level.at)
        and not level.walked
        and not nest.regions.guarded
        and nest.are_leaves(level, cursors)
        and is_cheap(nest.regions.expr)
    )


def store_bitmap_element(
    nest: MergeNest, block: Block, level: MergeLevel, cursors: Cursors, c: Expr, place: Place
) -> None:
    """The stores of the bit and the value of a coordinate."""
    presence: dict[str, Expr] = {}
    values: dict[str, Expr] = {}
    for name, cursor in cursors.items():
        source = nest.sources[name]
        if name in (*level.probed, *level.located):
            cursor, present = source.locate(block, cursor, c, nest.out.size(level.at), nest.out.low(level.at))
            if present is not None:
                presence[name] = block.let(f"in{name}", present)
        values[name] = block.let(f"v{name}", source.value(cursor.position, cursor.batch))
    point = Point(level.probed, level.lattice.cases)
    value = value_of(block, nest.regions, point, frozenset(cursors) - frozenset(level.probed), values, presence)
    nest.out.store_bit(block, level.at, c, place, value, is_case(point, presence, all_coordinates=True))
