"""The name of a preconditioner, as in `M="ic0"`, and a matrix -> the preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import Tensor, UnsupportedError
from ..errors import suggestion
from .amg import amg
from .chebyshev import chebyshev
from .incomplete_lu import ilu0
from .inverse import InverseOperator
from .preconditioners import ic0, jacobi, ssor

__all__ = ["preconditioner_by_name"]

_BY_NAME: dict[str, Callable[[Any], InverseOperator]] = {
    "jacobi": jacobi,
    "ssor": ssor,
    "ic0": ic0,
    "ilu0": ilu0,
    "amg": amg,
    "chebyshev": chebyshev,
}


def preconditioner_by_name(name: str, a: Any) -> InverseOperator:
    """The preconditioner of this name for a matrix."""
    if name not in _BY_NAME:
        supported = ", ".join(map(repr, _BY_NAME))
        raise ValueError(
            f"M={name!r} is not the name of a preconditioner\n  supported: {supported}{suggestion(name, _BY_NAME)}"
        )
    if callable(a) and not isinstance(a, Tensor):
        raise UnsupportedError(f"M={name!r} is made of the matrix's elements, which a function does not have")
    return _BY_NAME[name](a)
