"""The fallback of a fused part: its operations one by one, for values where one pass would differ, or torch records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.fill import Regions, partial
from ..compiler.nonfinite_guard import nonfinite_guard
from ..ir.index import Apply, Expression, accesses
from ..ir.loop import Const
from ..ir.ops import const
from ..runtime.coiterate.types import typed
from ..runtime.gradient_hook import tracked
from ..runtime.zero_annihilation import bounded
from ..storage.buffers import is_torch
from ..tensor.lazy import ELEMENTWISE, LEAF, MATMUL, is_lazy
from .partition import Region

__all__ = ["limit_of", "one_pass_suffices", "replay_of"]


def replay_of(region: Region) -> Callable[..., Any]:
    """A function of a part's operands and numbers that calls its operations one after the other."""
    slots: dict[int | float, int] = {}
    for k, (x, _) in enumerate(region.operands.values()):
        slots[_identity(x)] = k
    for k, x in enumerate(region.numbers.values(), len(region.operands)):
        slots[x] = k
    input_count = len(region.operands) + len(region.numbers)
    constants: list[Any] = []
    steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []

    def visit(x: Any) -> int:
        """Where the value of `x` will be: operands, constants (counted from -1 down), then steps."""
        slot = slots.get(x if type(x) is float else _identity(x))
        if slot is not None:
            return slot
        if not is_lazy(x) or x.kind == LEAF or x.known:
            constants.append(x._value if is_lazy(x) else x)
            return -len(constants)
        inputs = tuple(map(visit, x.args))
        steps.append((x.call, inputs))
        slots[id(x)] = input_count + len(steps) - 1
        return slots[id(x)]

    visit(region.root)

    def replay(*values: Any) -> Any:
        results = list(values)
        for call, inputs in steps:
            results.append(call(*[results[k] if k >= 0 else constants[-1 - k] for k in inputs]))
        return results[-1]

    return replay


def _identity(x: Any) -> int:
    """The key of a region's operand: the id of its value where it has one."""
    return id(x.args[0]) if is_lazy(x) and x.kind == LEAF else id(x._value) if is_lazy(x) and x.known else id(x)


def limit_of(region: Region, expression: Expression) -> float | None:
    """The largest magnitude of operands' values at which unspecified zeros annihilate as in NumPy; None for no limit.

    In a matrix product what a sparse operand does not store takes no part in any case."""
    root = region.root
    products = [n for n in region.inlined if n.kind == ELEMENTWISE and n.name == "mul"]
    if all(n.options for n in products) and not any(n.kind == MATMUL and n is not root for n in region.inlined):
        return None
    if root.kind == MATMUL and not products:
        return None
    fills = {n: m.storage for n, m in region.metas.items() if m.is_sparse}
    scalars = {n: m.scalar for n, m in region.metas.items()}
    library = next(iter(region.metas.values())).library
    fills_of = {n: const(s.fill_value, s.scalar) for n, s in fills.items() if s is not None}
    if root.kind == MATMUL:
        assert isinstance(expression, Apply)
        expression = next(a for a in expression.args if any(x.tensor in fills_of for x in accesses(a)))
    expr = typed(expression, scalars, library)
    at_fill = partial(expr, fills_of)
    return nonfinite_guard(Regions(expr, fills_of, at_fill if isinstance(at_fill, Const) else const(0, expr.type)))


def one_pass_suffices(values: tuple[Any, ...], limit: float | None, torch: bool) -> bool:
    """Whether one fused pass over these operands gives what the operations give one by one."""
    if torch and tracked(v._storage.values if hasattr(v, "_storage") else v for v in values):
        return False
    return limit is None or all(bounded(_flat(v), limit) for v in values)


def _flat(x: Any) -> Any:
    """The elements that are stored, in one dimension."""
    storage = getattr(x, "_storage", None)
    if storage is not None:
        return storage.values
    return x.reshape(-1) if is_torch(x) else np.asarray(x).ravel(order="K")
