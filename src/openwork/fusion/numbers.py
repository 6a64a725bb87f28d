"""Numbers in expressions -> which are kernel arguments, and which the plan depends on (through a fill value)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..compiler.scalar_arguments import number_name, passes, value_by_sign
from ..errors import DTypeError
from ..ir.index import Access, Apply
from ..ir.loop import Cast, Op, Var
from ..ir.ops import arity, cast, const
from ..runtime.coiterate.types import typed
from ..tensor.expression_graph import ELEMENTWISE, NUMBERS, Graph, Node
from .infer import Meta

__all__ = ["fixed_numbers", "with_numbers"]

_PLACE = re.compile("\0(\\d+)\0")


def fixed_numbers(graph: Graph, metas: Sequence[Meta | None]) -> frozenset[int]:
    """The numbers, by their place among the operands, that a fill value, and so the plan, depends on."""
    fixed = set()
    for node, args in zip(graph.nodes, graph.args, strict=True):
        for k in args:
            if k < 0 and passes(graph.operands[-1 - k]) and not _is_independent(node, args, k, graph, metas):
                fixed.add(-1 - k)
    return frozenset(fixed)


def _is_independent(
    node: Node, operands: tuple[int, ...], k: int, graph: Graph, metas: Sequence[Meta | None]
) -> bool:  # fmt: skip
    """Whether an operation of number k gives the same type, format and fill value for every number of its sign."""
    if node.kind != ELEMENTWISE or len(operands) != 2 or arity(node.name) != 2:
        return False  # of operations that the loop IR has not, too
    others = [x for x in operands if x >= 0 or type(graph.operands[-1 - x]) not in NUMBERS]
    meta = metas[others[0]] if len(others) == 1 else None
    if meta is None or meta.scalar in ("f16", "bf16"):
        return False
    if meta.storage is None:
        return True
    name = number_name(0, graph.operands[-1 - k])
    try:
        args = tuple(Access("A" if x == others[0] else name) for x in operands)
        e = typed(Apply(node.name, args), {"A": meta.scalar}, meta.library)
    except DTypeError:
        return False
    while isinstance(e, Cast):
        e = e.arg
    if not isinstance(e, Op):
        return False
    fill = const(meta.storage.fill_value, meta.scalar)
    return value_by_sign(e.op, [cast(fill, a.type) if _is_operand(a) else a for a in e.args]) is not None


def _is_operand(e: object) -> bool:
    while isinstance(e, Cast):
        e = e.arg
    return isinstance(e, Var) and e.name == "A"


def with_numbers(text: str, operands: Sequence[Any]) -> str:
    """The text with the numbers among the operands in their places."""
    return _PLACE.sub(lambda m: repr(operands[int(m[1])]), text)
