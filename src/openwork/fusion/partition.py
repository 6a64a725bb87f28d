"""A graph of lazy operations -> the steps that compute it: fusion groups, a kernel each, and operations by themselves.

    1. cut       what one kernel would compute is bounded, in operations and in operands: where more would be inlined,
                 operations whose results take little memory for all that is cut off with them are computed before
    2. group     from the results down: a step's operation takes in those below it that one pass can compute
    3. share     what would be computed twice, by two steps, is a step of its own

Every pass goes through the numbers of the graph once; a group is a small tree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from heapq import heappop, heappush

from .. import tuning
from ..classes import frozen
from ..tensor.expression_graph import ELEMENTWISE, MATMUL, SELECT, TRANSPOSE, Graph
from .group import FusionGroup, group_of
from .infer import Meta

__all__ = ["PlannedStep", "partition"]


@frozen
class PlannedStep:
    """How operation `number` is computed: by a fusion group, or by itself on its operands, and why it is not fused."""

    number: int
    group: FusionGroup | None
    operands: tuple[int, ...]
    """what must be computed before, by number"""
    why: str = ""
    product_left: bool | None = None
    """of `M * (A @ B)`, formed where the mask has elements: whether the product stands on the left"""


def partition(graph: Graph, metas: Sequence[Meta | None], passed: Collection[int]) -> list[PlannedStep]:
    """The steps that compute a graph's results, in order; numbers in `passed` are kernel arguments."""
    materialized = {k for k in graph.results if k >= 0}
    consumers = _consumers(graph, materialized)
    materialized |= _cuts(graph, metas, materialized)
    steps: dict[int, PlannedStep] = {}
    pending = [-k for k in set(graph.results) if k >= 0]
    pending.sort()
    while pending:
        number = -heappop(pending)
        if number in steps:
            continue
        step = steps[number] = _shared_apart(number, graph, materialized, consumers, metas, passed)
        for k in step.operands:
            if k >= 0 and k not in steps:
                heappush(pending, -k)
    return [steps[k] for k in sorted(steps)]


def _shared_apart(
    number: int, graph: Graph, materialized: set[int], consumers: Sequence[Collection[int]],
    metas: Sequence[Meta | None], passed: Collection[int],
) -> PlannedStep:  # fmt: skip
    """The step of an operation, without what other steps need too: that is added to `materialized`."""
    while True:
        step = _step(number, graph, materialized, consumers, metas, passed)
        inlined = set() if step.group is None else set(step.group.inlined)
        shared = {k for k in inlined if k != number and not inlined.issuperset(consumers[k])}
        if not shared:
            return step
        materialized |= shared


def _step(
    number: int, graph: Graph, materialized: set[int], consumers: Sequence[Collection[int]],
    metas: Sequence[Meta | None], passed: Collection[int],
) -> PlannedStep:  # fmt: skip
    """How to compute an operation, those of `materialized` being computed."""
    masked = _masked_product(number, graph, materialized, consumers, metas)
    if masked is not None:
        why = "a product of sparse matrices, formed where the factor has elements"
        return PlannedStep(number, None, masked[0], why, masked[1])
    group = group_of(number, graph, materialized, metas, passed)
    if isinstance(group, str):
        return PlannedStep(number, None, graph.args[number], group)
    return PlannedStep(number, group, group.inputs)


def _masked_product(
    number: int, graph: Graph, materialized: Collection[int], consumers: Sequence[Collection[int]],
    metas: Sequence[Meta | None],
) -> tuple[tuple[int, ...], bool] | None:  # fmt: skip
    """The mask and the matrices of `M * (A @ B)`, all of them sparse, or of `(A @ B) * M`, which is then true; None
    where the product is needed besides."""
    node, args = graph.nodes[number], graph.args[number]
    if node.kind != ELEMENTWISE or node.name != "mul" or metas[number] is None or len(args) != 2:
        return None
    for mask, product in (args, args[::-1]):
        if product < 0 or graph.nodes[product].kind != MATMUL:
            continue
        if product in materialized or len(consumers[product]) > 1:
            continue
        operands = (mask, *graph.args[product])
        found = [metas[k] for k in (product, *operands)]
        zero = all(m is not None and m.storage is not None and m.is_sparse and not m.storage.fill_value for m in found)
        if zero and found[0].shape == found[1].shape:  # type: ignore[union-attr]
            return operands, product == args[0]
    return None


def _consumers(graph: Graph, results: Collection[int]) -> list[set[int]]:
    """For each operation those that read it, also through transposes, which no step computes but where they end."""
    consumers: list[set[int]] = [set() for _ in graph.nodes]
    for number in range(len(graph) - 1, -1, -1):
        through = graph.nodes[number].kind == TRANSPOSE and number not in results
        for k in graph.args[number]:
            if k >= 0:
                consumers[k].update(consumers[number] if through else (number,))
    return consumers


# -- cuts --------------------------------------------------------------------------------------------------------------


def _cuts(graph: Graph, metas: Sequence[Meta | None], results: Collection[int]) -> set[int]:
    """The operations that are computed before others so that no group is larger than a kernel should be."""
    cutter = _Cutter(graph, metas, results)
    for number in range(len(graph)):
        cutter.add(number)
    return cutter.cuts


class _Cutter:
    """Operations from the leaves up, each with what a kernel would compute that ends in it: how many operations, one
    that is inlined twice counted twice, and which operands."""

    def __init__(self, graph: Graph, metas: Sequence[Meta | None], results: Collection[int]) -> None:
        self.graph, self.metas, self.results = graph, metas, results
        self.cuts: set[int] = set()
        self.operations = [0] * len(graph)
        self.operands: list[frozenset[tuple[int, ...]]] = [frozenset()] * len(graph)
        self.sizes: list[float] = []

    def add(self, number: int) -> None:
        """Count what the operation takes in, and cut until that is within bounds."""
        self.sizes.append(_size(number, self.graph, self.metas, self.sizes))
        self.count(number)
        while self.is_large(number):
            self.cut_below(number)

    def is_large(self, number: int) -> bool:
        many = len(self.operands[number]) > tuning.FUSED_OPERANDS
        return (many or self.operations[number] > tuning.FUSED_OPERATIONS) and bool(self.inlined(number))

    def inlined(self, number: int) -> list[int]:
        """The operands of an operation that may be inlined."""
        if self.metas[number] is None:
            return []
        return [k for k in self.graph.args[number] if k >= 0 and k not in self.results and self.may_inline(k)]

    def may_inline(self, k: int) -> bool:
        meta = self.metas[k]
        if k in self.cuts or meta is None:
            return False
        if self.graph.nodes[k].kind in (ELEMENTWISE, SELECT):
            return meta.is_sparse or any(m is not None and m.is_sparse for m in map(self.meta_of, self.graph.args[k]))
        return self.graph.nodes[k].kind in (TRANSPOSE, MATMUL)

    def meta_of(self, k: int) -> Meta | None:
        return self.metas[k]

    def count(self, number: int) -> None:
        inlined, args = self.inlined(number), self.graph.args[number]
        self.operations[number] = 1 + sum(self.operations[k] for k in inlined)
        below = [self.operands[k] if k in inlined else frozenset(((k,),)) for k in args if not self.is_number(k)]
        operands = frozenset[tuple[int, ...]]().union(*below)
        if self.graph.nodes[number].kind == TRANSPOSE:  # an operand and its transpose are two
            operands = frozenset((number, *k) for k in operands)
        self.operands[number] = operands

    def is_number(self, k: int) -> bool:
        meta = self.metas[k]
        return meta is not None and meta.number is not None

    def cut_below(self, number: int) -> None:
        """Cut off the operation whose result takes the least memory for each operation that is cut off with it, of
        those that leave enough room, and below which nothing is that is inlined elsewhere too: that would have to be
        cut off as well."""
        tree = self.tree(number)
        alone = [k for k in tree if all(tree[x] == tree[k] * n for x, n in self.tree(k).items())]
        freed = {k: self.operations[k] * tree[k] for k in alone}
        enough = [k for k in alone if self.leaves_room(number, k, freed[k])] or [
            max(alone, key=lambda k: (freed[k], k))
        ]
        least = min(enough, key=lambda k: (self.sizes[k] / freed[k], -k))
        self.cuts.add(least)
        for k in sorted(tree):
            if k != least:
                self.count(k)
        self.count(number)

    def leaves_room(self, number: int, k: int, freed: int) -> bool:
        """Whether what remains without k is within bounds, and will be for some operations more."""
        operands = len(self.operands[number]) - len(self.operands[k]) + 1
        fits = self.operations[number] - freed <= tuning.FUSED_OPERATIONS and operands <= tuning.FUSED_OPERANDS
        return fits and 4 * freed >= tuning.FUSED_OPERATIONS

    def tree(self, number: int) -> Counter[int]:
        """The operations that are inlined in one, and how often."""
        found: Counter[int] = Counter()
        stack = self.inlined(number)
        while stack:
            k = stack.pop()
            found[k] += 1
            stack += self.inlined(k)
        return found


def _size(number: int, graph: Graph, metas: Sequence[Meta | None], sizes: Sequence[float]) -> float:
    """The number of elements that a result stores, as far as types tell."""
    meta = metas[number]
    if meta is None:
        return math.inf
    whole = float(math.prod(meta.shape))
    if not meta.is_sparse or graph.nodes[number].kind not in (ELEMENTWISE, SELECT, TRANSPOSE):
        return whole
    below = [sizes[k] if k >= 0 else _operand_size(metas[k]) for k in graph.args[number]]
    intersects = graph.nodes[number].name in ("mul", "and", "band")
    return min(whole, min(below) if intersects else sum(x for x in below if x < math.inf))


def _operand_size(meta: Meta | None) -> float:
    """The same of a leaf; of a number, which adds no elements, none: infinite as a factor."""
    if meta is None or meta.number is not None:
        return math.inf
    return math.prod(meta.shape) * (tuning.ASSUMED_DENSITY if meta.is_sparse else 1.0)
