"""Expressions to be computed later, some of whose operands are masked -> their values.

    compute(lazy(m) * n + 1)      one kernel over the elements, where m and n are strided with equal masks

Arithmetic of strided operands with one structure is computed as the program of their Tensors, whose result has it too;
its fill value is left out. Costly functions are not: the array library takes all values in vectors, missing ones too,
in less time than a loop that asks for each whether it is there. Of other formats a program would assemble the structure
again, which takes longer than one operation after the other on the values. These, and all other operations, are run as
those of masked tensors; parts without masked operands are programs of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import Lazy, Tensor, compute
from ..ir.operations import with_trait
from ..ir.ops import arity
from ..ops import mask_formats as forms
from ..provided import provides
from ..runtime.gradient_hook import tracked
from ..runtime.operation import namespace
from ..storage.equal_coordinates import same_structure
from ..storage.storage import Storage
from ..tables import SPOKEN
from ..tensor.expression_graph import ELEMENTWISE, MATMUL, REDUCE, SELECT, TRANSPOSE, Graph, Node
from ..tensor.lazy import leaf
from . import products
from .elementwise import binary, remade, select, unary
from .tensor import MaskedTensor, zero

__all__ = ["evaluate"]

_COSTLY = frozenset(with_trait("costly"))


@provides("masked program")
def evaluate(roots: Sequence[Lazy]) -> tuple[Any, ...]:
    """The values of expressions, each operation computed once."""
    graph = Graph(roots)
    evaluation = _Evaluation(graph)
    needed = evaluation.needed(set(graph.results))
    unmasked = [k for k in needed if not evaluation.masked[k]]
    if unmasked:
        values = compute(*evaluation.expressions(unmasked, {}))
        evaluation.values |= dict(zip(unmasked, (values,) if len(unmasked) == 1 else values, strict=True))
    for k in needed:
        if evaluation.masked[k]:
            evaluation.run(k)
    return tuple(map(evaluation.value, graph.results))


class _Evaluation:
    """The operations of a graph by number: which have masked operands below them, which are one kernel, and values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: dict[int, Any] = {}
        self.masked: list[bool] = []
        """for each operation whether it has masked operands, or has results of such"""
        self.structures = _Structures(graph.operands)
        self.structure_of: list[int | None] = []
        """and which structure all operands below it have, where it is arithmetic of such that one kernel can compute"""
        for node, args in zip(graph.nodes, graph.args, strict=True):
            self.masked.append(any(map(self.is_masked, args)))
            found = {self.structure(k) for k in args} - {_NUMBER}
            self.structure_of.append(found.pop() if len(found) == 1 and _is_elementwise(node) else None)

    def structure(self, k: int) -> int | None:
        return self.structure_of[k] if k >= 0 else self.structures.of_operands[-1 - k]

    def is_masked(self, k: int) -> bool:
        return self.masked[k] if k >= 0 else isinstance(self.graph.operands[-1 - k], MaskedTensor)

    def value(self, k: int) -> Any:
        return self.values[k] if k >= 0 else self.graph.operands[-1 - k]

    def needed(self, results: set[int]) -> list[int]:
        """The operations whose values are needed, in order: results, and below them the operands of those that are run
        one by one."""
        needed = {k for k in results if k >= 0}
        for k in range(len(self.graph) - 1, -1, -1):
            if k in needed and self.masked[k] and not self.is_fused(k):
                needed.update(a for a in self.graph.args[k] if a >= 0)
        return sorted(needed)

    def is_fused(self, k: int) -> bool:
        """Whether the operation and those below it are computed by one program."""
        return self.structure_of[k] is not None and any(a >= 0 for a in self.graph.args[k])

    def run(self, k: int) -> None:
        """Compute an operation, and what it needs besides."""
        result = self.fused(k) if self.is_fused(k) else None
        if result is None:
            for a in self.below(k):
                self.values[a] = _applied(self.graph.nodes[a], [self.value(x) for x in self.graph.args[a]])
        else:
            self.values[k] = result

    def below(self, k: int) -> list[int]:
        """The operation and those below it that have no values yet, in order."""
        found, stack = set[int](), [k]
        while stack:
            x = stack.pop()
            if x >= 0 and x not in found and x not in self.values:
                found.add(x)
                stack += self.graph.args[x]
        return sorted(found)

    def fused(self, k: int) -> MaskedTensor | None:
        """Arithmetic of one structure: the program of the Tensors; None where that gives another one."""
        structure = self.structure_of[k]
        assert structure is not None
        first = self.structures.examples[structure]
        s: Storage = first._tensor._storage
        tensors = {
            slot: leaf(Tensor._from_storage(s.with_values(m.values, zero(m._tensor._storage.scalar))))
            for slot, m in enumerate(self.graph.operands) if self.structures.of_operands[slot] == structure
        }  # fmt: skip
        (expression,) = self.expressions([k], tensors)
        result = compute(expression)
        if not isinstance(result, Tensor) or not same_structure(s, result._storage):
            return None
        return remade(s, result.values, first._scalar)

    def expressions(self, numbers: Sequence[int], operands: dict[int, Any]) -> list[Lazy]:
        """Lazy expressions of operations, with other operands in the place of some."""
        made: dict[int, Any] = {}
        wanted, stack = set[int](), list(numbers)
        while stack:
            k = stack.pop()
            if k >= 0 and k not in wanted:
                wanted.add(k)
                stack += self.graph.args[k]
        for k in sorted(wanted):
            node, args = self.graph.nodes[k], self.graph.args[k]
            inputs = [made[a] if a >= 0 else operands.get(-1 - a, self.graph.operands[-1 - a]) for a in args]
            made[k] = Lazy(node.kind, node.name, tuple(inputs), node.call, node.options)
        return [made[k] for k in numbers]


_NUMBER = -1


class _Structures:
    """Operands -> for each the number of its structure, if it is masked and strided, with values that nothing records;
    -1 for one without dimensions, None for any other; and an operand of each structure."""

    def __init__(self, operands: Sequence[Any]) -> None:
        self.examples: list[MaskedTensor] = []
        self.of_operands = [self._number(x) for x in operands]

    def _number(self, x: Any) -> int | None:
        if not isinstance(x, MaskedTensor):
            return None if hasattr(x, "shape") else _NUMBER
        s = x._tensor._storage
        if not forms.is_strided(x.format) or tracked((s.values,)):
            return None
        for number, other in enumerate(self.examples):
            held = other._tensor._storage
            if other._scalar == x._scalar and (held is s or same_structure(held, s)):
                return number
        self.examples.append(x)
        return len(self.examples) - 1


def _is_elementwise(x: Node) -> bool:
    """Whether an operation is a compiled one of single elements, which takes little time."""
    return x.kind == ELEMENTWISE and arity(x.name) is not None and x.name not in _COSTLY


def _applied(x: Node, args: list[Any]) -> Any:
    """One operation, of masked tensors and others."""
    if not any(isinstance(a, MaskedTensor) for a in args):
        return x.call(*args)
    if x.kind == ELEMENTWISE:
        if arity(x.name) is None:
            return getattr(namespace(), SPOKEN.get(x.name, x.name))(*args)
        return unary(x.name, args[0]) if len(args) == 1 else binary(x.name, *args)
    if x.kind == SELECT:
        return select(*args)
    if x.kind == MATMUL:
        return products.matmul(*args)
    if x.kind == REDUCE:
        _, axis, keepdims, dtype = x.options
        options = {} if dtype is None else {"dtype": dtype}
        return getattr(namespace(), x.name)(args[0], axis=axis, keepdims=keepdims, **options)
    assert x.kind == TRANSPOSE
    return getattr(args[0], x.name) if x.name in ("T", "mT") else args[0].transpose(tuple(x.options) or None)
