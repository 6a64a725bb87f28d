"""Operators of SciPy's sparse arrays with an operand of ours on the right: what NumPy is told, so that ours is asked.

SciPy makes an array of what it does not know, and answers NotImplemented only where that is one object, NumPy's word
for what is no array. So `__array__` gives such an array to an operator of SciPy's, and to nobody else.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

__all__ = ["called_by_scipy", "declined", "is_left_to"]

_OPERATORS = frozenset(
    ("dot", *(f"__{x}__" for x in ("add", "sub", "mul", "matmul", "truediv", "eq", "ne", "lt", "le", "gt", "ge")))
)


def _caller() -> FrameType | None:
    """The innermost frame that is not of this package."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_globals.get("__package__") or "").startswith("openwork"):
        frame = frame.f_back
    return frame


def called_by_scipy() -> bool:
    """Whether a function of `scipy.sparse` asks."""
    frame = _caller()
    return frame is not None and frame.f_globals.get("__package__") == "scipy.sparse"


_ASKING = ("issparse", "isspmatrix", "__instancecheck__")


def is_left_to(x: Any) -> bool:
    """Whether this package asks what `x` is, or an operator of SciPy's does that is to leave `x` the operation."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name in _ASKING:
        frame = frame.f_back
    if frame is None or (frame.f_globals.get("__package__") or "").startswith("openwork"):
        return True
    return _operator_of(frame, x) is not None


def _operator_of(frame: FrameType | None, x: Any) -> str | None:
    """The operator of SciPy's, among the callers, whose right operand is `x`."""
    while frame is not None and frame.f_globals.get("__package__") == "scipy.sparse":
        code = frame.f_code
        if code.co_name in _OPERATORS and frame.f_locals[code.co_varnames[1]] is x:
            return code.co_name
        frame = frame.f_back
    return None


def declined(x: Any) -> np.ndarray[Any, Any] | None:
    """The array that makes SciPy leave an operation to its right operand `x`; None where no operator of it asks.

    `dot` of its COO arrays only asks whether there is an array, and goes on with `x`.
    """
    name = _operator_of(_caller(), x)
    return None if name is None else np.zeros(0) if name == "dot" else np.array(None, object)
