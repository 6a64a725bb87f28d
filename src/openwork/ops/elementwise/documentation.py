"""The name of an elementwise function -> its documentation: its first line, cost, errors, related names, example.

`tools/operations.py` runs the examples, and finds which dtypes are refused.
"""

from __future__ import annotations

from ...tables import EXAMPLES, REFUSED

__all__ = ["ANNIHILATES", "documented"]

ANNIHILATES = """

zero_annihilates: an unspecified zero stays zero whatever it meets, as in SciPy; without, the result is NumPy's on the
dense arrays (0 * inf, 0 * NaN and 0 / 0 are NaN), and one pass over the operands tells whether the two differ."""


def documented(name: str, arity: int, doc: str, see: str) -> str:
    """`doc`, the cost, errors, what is related, and an example."""
    cost = "O(nse); the structure is shared" if arity == 1 else "O(nse of both), or O(size) where the result is dense"
    refused = f"DTypeError for {REFUSED[name]}" if name in REFUSED else ""
    errors = [
        *(["ShapeError where the shapes do not broadcast"] if arity == 2 else []),
        *([refused] if refused else []),
    ]
    raises = f"\nRaises {', '.join(errors)}." if errors else ""
    example = EXAMPLES.get(name, "")
    shown = f"\n\nExamples\n--------\n{example}" if example else ""
    return f"{doc}\n\nCost: {cost}.{raises}\nSee also: {see}.{shown}"
