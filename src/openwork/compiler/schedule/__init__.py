"""A statement, formats and extents of its operands -> plans and schedules, as data: nothing here sees a buffer.

`single` decides the loops of one kernel with one sparse operand; `path` the order in which several are contracted;
`product` turns a sum of products into the steps of a `plan`, each a statement with its route to machine code.
"""

from .plan import OperandFacts, Plan, Route, Step
from .product import plan_product
from .single import MAX_CONSTANT, Facts, Schedule, Tile, schedule, tiles, without_gathers

__all__ = [
    "MAX_CONSTANT", "Facts", "OperandFacts", "Plan", "Route", "Schedule", "Step", "Tile", "plan_product", "schedule",
    "tiles", "without_gathers",
]  # fmt: skip
