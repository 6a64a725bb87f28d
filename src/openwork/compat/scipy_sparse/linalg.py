"""`scipy.sparse.linalg` over arrays of ours: solvers that multiply run our kernels, direct ones compute our factors."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import Any

import scipy.sparse.linalg as scipys

from ...namespaces import listing
from . import direct
from .array import Array
from .module import bridged, names


def _operator(x: Any) -> Any:
    """A sparse array as SciPy's operator, whose products are those of the Tensor."""
    return scipys.aslinearoperator(x.tensor) if isinstance(x, Array) and x.ndim == 2 and x.dtype.kind in "fc" else x


def _multiplies(function: Any) -> bool:
    """Whether SciPy's documentation lets the matrix be a LinearOperator, of which only products are asked."""
    first = next(iter(signature(function).parameters), "")
    text = (function.__doc__ or "").partition("Parameters")[2][:600]
    return not isinstance(function, type) and first in ("A", "X") and "LinearOperator" in text


def _over_products(function: Any) -> Any:
    """A solver whose matrix is our operator, unless it is to be factorised, as `sigma` asks."""
    solver, bound = bridged(function), signature(function).bind

    @wraps(function)
    def call(A: Any, *args: Any, **kwargs: Any) -> Any:
        shifted = bound(A, *args, **kwargs).arguments.get("sigma") is not None
        return solver(A if shifted else _operator(A), *args, **kwargs)

    return call


__all__ = names(scipys)
__dir__ = listing(__name__, __all__)

for _name in __all__:
    _found = getattr(direct, _name, None) or getattr(scipys, _name)
    if callable(_found) and not isinstance(_found, type):
        _found = _over_products(_found) if _multiplies(_found) else bridged(_found)
    globals()[_name] = _found
