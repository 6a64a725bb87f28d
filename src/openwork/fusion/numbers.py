"""Numbers in expressions -> which are kernel arguments, and which the plan depends on (through a fill value)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..compiler.scalar_arguments import number_name, value_by_sign
from ..errors import DTypeError
from ..ir.index import Access, Apply
from ..ir.loop import Cast, Op, Var
from ..ir.ops import arity, cast, const
from ..runtime.coiterate.types import typed
from ..tensor.lazy import ELEMENTWISE, Lazy, is_lazy
from .infer import Meta, meta_of

__all__ = ["fixed_numbers", "with_numbers"]

_PLACE = re.compile("\0(\\d+)\0")


def fixed_numbers(roots: Sequence[Lazy], numbers: Mapping[float, int], metas: dict[int, Meta | None]) -> frozenset[int]:
    """The slots of numbers that a fill value, and so the plan, depends on."""
    fixed: set[int] = set()
    visited: set[int] = set()
    for root in roots:
        _collect_fixed(root, numbers, metas, visited, fixed)
    return frozenset(fixed)


def _collect_fixed(
    x: Any, numbers: Mapping[float, int], metas: dict[int, Meta | None], visited: set[int], fixed: set[int]
) -> None:
    """Add the slots of numbers below a node that a fill value depends on."""
    if not is_lazy(x) or x.known or id(x) in visited:
        return
    visited.add(id(x))
    for a in x.args:
        _collect_fixed(a, numbers, metas, visited, fixed)
        if type(a) is float and a in numbers and not _is_independent(x, a, metas):
            fixed.add(numbers[a])


def _is_independent(node: Lazy, number: float, metas: dict[int, Meta | None]) -> bool:
    """Whether an operation of a number gives the same type, format and fill value for every number of its sign."""
    if node.kind != ELEMENTWISE or len(node.args) != 2 or arity(node.name) != 2:
        return False  # of operations that the loop IR has not, too
    others = [a for a in node.args if is_lazy(a)]
    meta = meta_of(others[0], metas) if len(others) == 1 else None
    if meta is None or meta.scalar in ("f16", "bf16"):
        return False
    if meta.storage is None:
        return True
    name = number_name(0, number)
    try:
        args = tuple(Access("A" if is_lazy(a) else name) for a in node.args)
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


def with_numbers(text: str, numbers: Sequence[float]) -> str:
    """The text with numbers in their places."""
    return _PLACE.sub(lambda m: repr(numbers[int(m[1])]), text)
