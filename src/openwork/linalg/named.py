"""The name of a preconditioner and a matrix -> the preconditioner, for `M="ic0"`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import UnsupportedError, suggestion
from ..tensor.tensor import Tensor
from .amg import amg
from .inverse import InverseOperator
from .preconditioners import ic0, ilu0, jacobi, ssor

__all__ = ["named"]

_NAMED: dict[str, Callable[[Any], InverseOperator]] = {
    "jacobi": jacobi,
    "ssor": ssor,
    "ic0": ic0,
    "ilu0": ilu0,
    "amg": amg,
}


def named(name: str, a: Any) -> InverseOperator:
    """The preconditioner of this name for a matrix."""
    if name not in _NAMED:
        known = ", ".join(map(repr, _NAMED))
        raise ValueError(f"M={name!r} is no preconditioner\n  supported: {known}{suggestion(name, _NAMED)}")
    if callable(a) and not isinstance(a, Tensor):
        raise UnsupportedError(f"M={name!r} is made of the matrix's elements, which a function does not have")
    return _NAMED[name](a)
