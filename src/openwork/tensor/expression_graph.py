"""Lazy expressions -> a graph: every operation has one number, which is above those of its operands.

    y = A + B; z = y * y - (A + B)        operands A, B
                                          0: add(A, B)    1: mul(0, 0)    2: sub(1, 0)        results: 2

Operations that are equal (the same one of the same operands) are one. Whatever asks something of an expression goes
through the numbers in order, without recursion: an expression may be as deep as memory goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..compiler.scalar_arguments import passes

__all__ = [
    "ELEMENTWISE",
    "LEAF",
    "MATMUL",
    "NUMBERS",
    "REDUCE",
    "SELECT",
    "TRANSPOSE",
    "Graph",
    "Node",
    "flat",
    "key_of",
    "of_flat",
    "without_operands",
]

ELEMENTWISE, SELECT, MATMUL, REDUCE, TRANSPOSE, LEAF = "elementwise", "select", "matmul", "reduce", "transpose", "leaf"

NUMBERS = frozenset((bool, int, float, complex))

_NOT_COMPUTED = object()


class Node:
    """An operation that is not computed yet: its kind and name, its operands (nodes and values), the function that
    does it alone, and what it was called with besides."""

    __slots__ = ("_type", "_value", "args", "call", "kind", "name", "options")

    def __init__(
        self, kind: str, name: str, args: tuple[Any, ...], call: Callable[..., Any], options: tuple[Any, ...] = ()
    ) -> None:
        self.kind, self.name, self.args, self.call, self.options = kind, name, args, call, options
        self._value: Any = args[0] if kind == LEAF else _NOT_COMPUTED
        self._type: Any = None
        """what shape inference found, see `fusion.infer`"""

    @property
    def known(self) -> bool:
        """Whether the value is there already."""
        return self._value is not _NOT_COMPUTED


def key_of(x: Node) -> tuple[Any, ...]:
    """What two nodes share where they are the same operation, of whatever operands."""
    return x.kind, x.name, x.options and repr(x.options), getattr(x.call, "__qualname__", None)


def without_operands(x: Node) -> Node:
    """An operation that a cached program may hold."""
    return Node(x.kind, x.name, (), x.call, x.options)


class Graph:
    """Expressions as numbered operations.

    An operand of an operation is a number: k >= 0 is the result of operation k, and -1 - k is `operands[k]`, so that
    both are found by their numbers in a list of the operations' values, followed by those of the operands in reverse.
    """

    __slots__ = ("_computed", "_entries", "_numbers", "_operand_keys", "_slots", "args", "nodes", "operands", "results")

    def __init__(self, roots: Iterable[Node], computed: bool = True) -> None:
        """computed: whether nodes that have their values already are operands"""
        self._computed = computed
        self.nodes: list[Any] = []
        """a node of each operation"""
        self.args: list[tuple[int, ...]] = []
        """the operands of each operation, by number"""
        self.operands: list[Any] = []
        """leaves, values that were computed before, numbers: each once"""
        self._operand_keys: list[Any] = []
        self._entries: dict[Any, int] = {}
        self._numbers: dict[int, int] = {}
        self._slots: dict[Any, int] = {}
        self.results = tuple([self._number(root) for root in roots])

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def key(self) -> Any:
        """What expressions of one structure, over operands of the same types, have in common."""
        return (self.results, *self._entries, *self._operand_keys)

    def _number(self, root: Any) -> int:
        """Number what is below a node, operands first -> the node's number."""
        if not self._is_operation(root):
            return self._operand(root)
        numbers, stack = self._numbers, [root]
        while stack:
            x = stack[-1]
            if id(x) in numbers:
                stack.pop()
                continue
            waiting = [a for a in x.args if self._is_operation(a) and id(a) not in numbers]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            args = tuple([numbers[id(a)] if self._is_operation(a) else self._operand(a) for a in x.args])
            entry = (*key_of(x), args)
            number = self._entries.setdefault(entry, len(self.nodes))
            if number == len(self.nodes):
                self.nodes.append(x)
                self.args.append(args)
            numbers[id(x)] = number
        return numbers[id(root)]

    def _is_operation(self, x: Any) -> bool:
        return isinstance(x, Node) and (x._value is _NOT_COMPUTED or (not self._computed and x.kind != LEAF))

    def _operand(self, x: Any) -> int:
        """The number of an operand; a number that may be a kernel's argument is one for all of its value."""
        value = x._value if isinstance(x, Node) else x
        kind = type(value)
        same: Any = id(value)
        if kind in NUMBERS:
            same = (kind, value if passes(value) else repr(value))
        slot = self._slots.get(same)
        if slot is None:
            slot = self._slots[same] = len(self.operands)
            self.operands.append(value)
            self._operand_keys.append(_operand_key(value))
        return -1 - slot


def _operand_key(value: Any) -> Any:
    """The type of an operand, as far as plans depend on it; a number itself, unless it may be a kernel's argument."""
    storage = getattr(value, "_storage", None)
    if storage is not None:
        fill = storage.fill_value
        return (storage.signature, storage.shape, fill if fill == fill and fill else repr(fill))
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.flags.c_contiguous, value.flags.f_contiguous)
    if passes(value):
        return ("number", value > 0)
    if type(value) in NUMBERS:
        return (type(value), repr(value))
    return (type(value), str(getattr(value, "dtype", "")), tuple(value.shape), str(getattr(value, "device", "")))


# -- as a flat table, for pickles and copies ---------------------------------------------------------------------------


def flat(node: Node) -> tuple[list[tuple[Any, ...]], list[Any], int]:
    """An expression as a table of its operations, its operands, and its number: nothing in it is nested."""
    graph = Graph((node,))
    rows = [(x.kind, x.name, x.call, x.options, args) for x, args in zip(graph.nodes, graph.args, strict=True)]
    return rows, graph.operands, graph.results[0]


def of_flat(make: Callable[..., Any], leaf: Callable[[Any], Any], table: tuple[Any, Sequence[Any], int]) -> Any:
    """The expression that `flat` was given, of nodes that `make` and `leaf` give; equal operations are one node."""
    rows, operands, result = table
    nodes: list[Any] = []
    leaves = [x if type(x) in NUMBERS else leaf(x) for x in operands]
    for kind, name, call, options, args in rows:
        nodes.append(make(kind, name, tuple(nodes[k] if k >= 0 else leaves[-1 - k] for k in args), call, options))
    return nodes[result] if result >= 0 else leaves[-1 - result]
