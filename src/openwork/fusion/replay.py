"""The fallback of a fusion group: its operations one by one, where one pass would differ, or torch records."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..classes import frozen
from ..codegen.plan_cache import PlanCache
from ..compiler.fill import Regions, partial
from ..compiler.nonfinite_guard import nonfinite_guard
from ..ir.index import Apply, accesses
from ..ir.loop import Const
from ..ir.ops import const
from ..runtime.coiterate.types import typed
from ..runtime.gradient_hook import tracked
from ..runtime.zero_annihilation import bounded
from ..storage.buffers import is_torch
from ..tensor.expression_graph import ELEMENTWISE, MATMUL, NUMBERS, Graph, Node, key_of, without_operands
from .group import FusionGroup

__all__ = ["Replay", "limit_of", "one_pass_suffices", "replay_of"]


@frozen
class Replay:
    """The operations of a group, one after the other: each function, and where its operands are among the group's
    operands and numbers, constants, and earlier results."""

    nodes: tuple[Node, ...]
    inputs: tuple[tuple[int, ...], ...]
    constants: tuple[Any, ...]

    def __call__(self, *values: Any) -> Any:
        results = [*values, *self.constants]
        for node, inputs in zip(self.nodes, self.inputs, strict=True):
            results.append(node.call(*[results[slot] for slot in inputs]))
        return results[-1]

    @property
    def key(self) -> Any:
        """What two of them share where they do the same; None where that is not known."""
        if any(type(x) not in NUMBERS for x in self.constants):
            return None
        return (*map(key_of, self.nodes), self.inputs, *[(type(x), repr(x)) for x in self.constants])


def replay_of(group: FusionGroup, graph: Graph, number: int) -> Replay:
    """The operations of a group, which ends in operation `number`."""
    slots = {k: slot for slot, k in enumerate(group.inputs)}
    below, stack = set[int](), [number]
    while stack:
        k = stack.pop()
        if k not in slots and k not in below:
            below.add(k)
            stack += graph.args[k] if k >= 0 else ()
    slots |= {k: slot for slot, k in enumerate(sorted(below), len(group.inputs))}
    operations = [k for k in sorted(below) if k >= 0]
    return Replay(
        tuple(without_operands(graph.nodes[k]) for k in operations),
        tuple(tuple(slots[a] for a in graph.args[k]) for k in operations),
        tuple(graph.operands[-1 - k] for k in sorted(below) if k < 0),
    )


def limit_of(group: FusionGroup) -> float | None:
    """The largest magnitude of operands' values at which unspecified zeros annihilate as in NumPy; None for no limit.

    In a matrix product what a sparse operand does not store takes no part in any case."""
    root, expression = group.root, group.expression
    products = [n for n in group.inlined_nodes if n.kind == ELEMENTWISE and n.name == "mul"]
    inner = sum(n.kind == MATMUL for n in group.inlined_nodes) - (root.kind == MATMUL)
    if all(n.options for n in products) and not inner:
        return None
    if root.kind == MATMUL and not products:
        return None
    key = (expression, root.kind, *[(n, m.kind) for n, m in group.metas.items()])
    return _LIMITS[key] if key in _LIMITS else _LIMITS.keep(key, _limit(group))


_LIMITS: PlanCache[Any, float | None] = PlanCache("limits of fused operands")
"""By expression and kinds of its operands."""


def _limit(group: FusionGroup) -> float | None:
    expression = group.expression
    fills = {n: m.storage for n, m in group.metas.items() if m.is_sparse}
    scalars = {n: m.scalar for n, m in group.metas.items()}
    library = next(iter(group.metas.values())).library
    fills_of = {n: const(s.fill_value, s.scalar) for n, s in fills.items() if s is not None}
    if group.root.kind == MATMUL:
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
