"""The block of an elementwise function -> its documentation: what it computes, the cost, an example that was run."""

from __future__ import annotations

import numpy as np

from ...tables import EXAMPLES

__all__ = ["ANNIHILATES", "documented"]

ANNIHILATES = """

zero_annihilates: an unspecified zero stays zero whatever it meets, as in SciPy; without, the result is NumPy's on the
dense arrays (0 * inf, 0 * NaN and 0 / 0 are NaN), and one pass over the operands tells whether the two differ."""

_SIGNS = {
    "truediv": "/", "floordiv": "//", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^", "sub": "-", "mul": "*", "mod": "%", "pow": "**",
    "add": "+",
}  # fmt: skip
"""Python's names of operators, and how they are written."""


def documented(name: str, arity: int, doc: str, numpy: str | tuple[str, ...], operator: str | None) -> str:
    """`doc`, the cost, what the function is called elsewhere, and an example."""
    names = (name,) if hasattr(np, name) else (numpy,) if isinstance(numpy, str) else numpy
    see = [f"np.{other}" for other in names]
    if operator in _SIGNS:
        see.append(f"A {_SIGNS[operator]} B")
    see.append(f"A.{name}")
    cost = "O(nse); the structure is shared" if arity == 1 else "O(nse of both), or O(size) where the result is dense"
    example = EXAMPLES.get(name, "")
    shown = f"\n\nExamples\n--------\n{example}" if example else ""
    return f"{doc}\n\nCost: {cost}.\nSee also: {', '.join(see)}.{shown}"
