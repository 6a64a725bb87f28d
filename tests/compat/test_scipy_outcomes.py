"""Operators and methods of the classes of `openwork.compat.scipy_sparse` on every kind of operand: SciPy's outcome, which
is a value of a class and a dtype, or an error of a type."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as theirs

from openwork.compat import scipy_sparse as ours

D = np.array([[0, 2.0, 0, -1], [3, 0, 0, 0], [0, 0, 4, 1], [1, 0, 0, 5]])
E = np.array([[1.0, 2, 0, 0], [0, 0, 0, 7], [0, 1, 0, 1], [0, 0, 2, 0]])

OPERANDS: dict[str, Callable[[Any, str], Any]] = {
    "itself": lambda m, kind: made(m, kind, D),
    "another": lambda m, kind: made(m, kind, E),
    "dense": lambda m, kind: E,
    "row": lambda m, kind: np.array([1.0, 0, 2, 3]),
    "number": lambda m, kind: 2.5,
    "0": lambda m, kind: 0,
    "0-d": lambda m, kind: np.array(3.0),
    "another shape": lambda m, kind: made(m, kind, D[:2, :3]),
    "dense of another shape": lambda m, kind: np.ones((2, 3)),
    "text": lambda m, kind: "text",
    "None": lambda m, kind: None,
}
OPERATORS = (
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "iadd",
    "isub",
    "imul",
    "itruediv",
)
METHODS: dict[str, Callable[[Any], Any]] = {
    "round": lambda x: round(x * 1.26, 1),
    "bool": bool,
    "bool of one": lambda x: bool(x[:1, :1]),
    "rows": lambda x: [np.asarray(getattr(r, "toarray", lambda r=r: r)()) for r in x],
    "max of a number": lambda x: x.maximum(1),
    "min of a number": lambda x: x.minimum(-1),
    "max of dense": lambda x: x.maximum(E),
    "max of text": lambda x: x.maximum("text"),
    "max of another shape": lambda x: x.maximum(x[:2]),
    "power": lambda x: x.power(2),
    "power 0": lambda x: x.power(0),
    "power of text": lambda x: x.power("2"),
    "toarray of columns": lambda x: x.toarray(order="F").flags.f_contiguous,
    "toarray into": lambda x: x.toarray(out=np.ones((4, 4))),
    "todense": lambda x: x.todense(),
    "asformat": lambda x: x.asformat("nothing"),
    "dot of dense": lambda x: x.dot(E),
    "dot of a row": lambda x: x.dot(np.arange(4.0)),
    "multiply by a row": lambda x: x.multiply(np.arange(4.0)),
    "sum": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(axis=1),
    "sum along 2": lambda x: x.sum(axis=2),
    "sum along text": lambda x: x.sum(axis="rows"),
    "len": len,
    "reshape": lambda x: x.reshape((2, 8)),
    "index": lambda x: x[1],
    "elements": lambda x: x[[0, 2], [1, 2]],
    "mask": lambda x: x[D > 1],
    "sparse mask": lambda x: x[x > 1],
    "beyond": lambda x: x[9],
    "str": str,
}  # fmt: skip


OTHERWISE = {("eq", "text"), ("ne", "text"), ("pow", "0")}
"""Where SciPy raises TypeError for a comparison with a text, and gives a diagonal array as a matrix's power."""


def made(module: Any, kind: str, dense: Any) -> Any:
    return getattr(module, kind)(dense)


def outcome(call: Callable[[], Any]) -> Any:
    """(class, dtype, values) of the result, or (error,)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = call()
        except Exception as error:
            return (next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"),)
    if hasattr(found, "toarray"):
        return type(found).__name__, str(found.dtype), (found.toarray() + 0).tolist()  # 0.0 for -0.0
    if isinstance(found, list):
        return [np.asarray(x).tolist() for x in found]
    return type(found).__name__, str(getattr(found, "dtype", "")), np.asarray(found).tolist()


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "lil_matrix"])
def test_outcomes_are_scipys(kind: str) -> None:
    """Of the class lil_matrix the values: SciPy gives other classes of what changes in its place."""
    wrong = []

    def compare(call: Callable[[Any], Any], *which: Any) -> None:
        got, want = outcome(lambda: call(ours)), outcome(lambda: call(theirs))
        if kind == "lil_matrix" and len(want) == 3:
            got, want = got[-1], want[-1]
        if repr(got) != repr(want):
            wrong.append((*which, got, want))

    for name in OPERATORS:
        for what, operand in OPERANDS.items():
            for swapped in (False, True) if (name, what) not in OTHERWISE else ():

                def call(module: Any, name: str = name, operand: Any = operand, swapped: bool = swapped) -> Any:
                    pair = made(module, kind, D), operand(module, kind)
                    return getattr(operator, name)(*(pair[::-1] if swapped else pair))

                compare(call, name, what, swapped)
    for what, method in METHODS.items():
        compare(lambda module, method=method: method(made(module, kind, D)), what)  # type: ignore[misc]
    assert not wrong, "\n".join(map(repr, wrong))
