"""NumPy's elementwise functions that are no ufuncs: each on the stored values and on the fill value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...tensor.tensor import Tensor
from ..elementwise.by_elements import by_elements
from .registry import numpy_function

__all__: list[str] = []


def _register_elementwise(*names: str) -> None:
    """Register NumPy's functions of these names: stored values and fill value are mapped, other arguments passed on."""
    for name in names:
        function = getattr(np, name)

        def call(_function: Any = function, _name: str = name, **arguments: Any) -> Any:
            x, *_ = arguments.values()
            options = dict(list(arguments.items())[1:])
            return by_elements(lambda v: _function(v, **options), [asarray(x)], _name)

        numpy_function(name)(call)


_register_elementwise("sinc", "i0", "isposinf", "isneginf", "isreal", "iscomplex", "fix", "angle")


@numpy_function("digitize")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin of every element."""
    edges = bins.to_numpy() if isinstance(bins, Tensor) else bins
    return by_elements(lambda v: np.digitize(v, edges, right), [asarray(x)], "digitize")


@numpy_function("real_if_close")
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real parts where all imaginary parts are nearly 0."""
    t, ow = asarray(a), namespace()
    if t.dtype.kind != "c" or not t.size:
        return t
    limit = tol * np.finfo(t.dtype).eps if tol > 1 else tol
    return t.real if bool(ow.all(ow.abs(t.imag) < limit)) else t


@numpy_function("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The first of the choices whose condition is true, `default` where none is."""
    result = default
    for condition, choice in list(zip(condlist, choicelist, strict=True))[::-1]:
        result = namespace().where(condition, choice, result)
    return result


@numpy_function("choose")
def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    """The elements of `choices[a]`, for each element `a`."""
    return by_elements(lambda k, *c: np.choose(k, c, mode=mode), [asarray(a), *choices], "choose")  # type: ignore[call-overload]
