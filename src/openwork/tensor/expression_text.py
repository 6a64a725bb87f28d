"""Lazy expressions as text, in which operands are A, B, ... (sparse), X, Y, ... and x, y, ... (dense), as they come.

Of a long expression the last operations are shown, and how many there are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..ir.index import PREFIX
from ..ir.operations import INFIX
from .expression_graph import MATMUL, REDUCE, TRANSPOSE, Graph, Node

__all__ = ["ExpressionText", "show"]

SHOWN = 30
"""The most operations of an expression that are shown."""


def show(node: Node) -> str:
    """The text of an expression, of a long one its last operations."""
    graph = Graph((node,), computed=False)
    (root,) = graph.results
    depth = _shown_depth(graph, root)
    text = ExpressionText(graph).text(root, depth=depth)
    return text if depth is None else f"{text}: {len(graph):,} operations"


def _shown_depth(graph: Graph, root: int) -> int | None:
    """How many levels of the expression have no more than `SHOWN` operations; None where that are all."""
    level, shown, depth = [k for k in (root,) if k >= 0], 0, 0
    while level:
        shown += len(level)
        if shown > SHOWN:
            return depth
        level, depth = [k for parent in level for k in graph.args[parent] if k >= 0], depth + 1
    return None


class ExpressionText:
    """Operations of a graph, by number -> their text; a number in `passed` is its place between NULs."""

    def __init__(self, graph: Graph, passed: Collection[int] = ()) -> None:
        self.graph, self.passed = graph, passed
        self.names: dict[int, str] = {}
        """of operands, and of operations that are shown by a name"""
        self._letters = {"sparse": iter("ABCDEFGHIJKLMNOPQ"), "dense": iter("XYZUVWRST"), "vector": iter("xyzuvwpqrst")}
        self._used: set[str] = set()

    def _name(self, k: int, value: Any) -> str:
        if k not in self.names:
            sparse = hasattr(value, "_storage") and not value.format.is_dense
            kind = "sparse" if sparse else "dense" if getattr(value, "ndim", 0) > 1 else "vector"
            letter = next((c for c in self._letters[kind] if c not in self._used), None)
            self.names[k] = letter or f"T{len(self.names)}"
            self._used.add(self.names[k])
        return self.names[k]

    def _operand(self, k: int) -> str:
        value = self.graph.operands[-1 - k]
        if k in self.passed:
            return f"\0{-1 - k}\0"
        return self._name(k, value) if hasattr(value, "_storage") or getattr(value, "shape", None) else repr(value)

    def text(self, k: int, level: int = 0, depth: int | None = None) -> str:
        """The text of operation or operand k; in parentheses where it binds looser than `level`. Below `depth`
        operations there are dots."""
        if k in self.names:
            return self.names[k]
        if k < 0:
            return self._operand(k)
        if depth == 0:
            return "..."
        below = None if depth is None else depth - 1
        node, args = self.graph.nodes[k], self.graph.args[k]
        if node.kind == MATMUL or node.name in INFIX:
            symbol, precedence = ("@", 11) if node.kind == MATMUL else INFIX[node.name]
            left, right = self.text(args[0], precedence, below), self.text(args[1], precedence + 1, below)
            return f"{left} {symbol} {right}" if precedence >= level else f"({left} {symbol} {right})"
        if node.name in PREFIX and len(args) == 1:
            symbol, precedence = PREFIX[node.name]
            operand = symbol + self.text(args[0], precedence, below)
            return operand if precedence >= level else f"({operand})"
        if node.kind == TRANSPOSE:
            return f"{self.text(args[0], 14, below)}.{node.name}"
        operand = ", ".join(self.text(a, 0, below) for a in args)
        axis = node.options[1] if node.kind == REDUCE else None
        return f"{node.name}({operand})" if axis is None else f"{node.name}({operand}, axis={axis})"
