"""ndarray methods on Tensors: a method's name and arguments -> the result of NumPy's function of that name.

`A.cumsum(0)`, `A.repeat(2, 1)`, `A.sum(where=mask)`: each is `np.cumsum(A, 0)` and so on, which `numpy_protocol`
hands to an operation. Over torch buffers torch's method goes first.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from ..provided import provided

call_function = provided("call_function", __name__)

__all__ = ["accepts", "array_method", "by_numpy", "by_numpys_arguments", "standard_arguments"]

_IN_PLACE = ("sort", "partition")
"""Methods that change the array, whose functions do not."""
_STANDARD_NAMES = {"dim": "axis", "keepdim": "keepdims"}
"""torch's names of arguments, and the array API's."""


def by_numpy(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's function of a Tensor and other arguments."""
    function = getattr(np, name)
    if isinstance(function, np.ufunc):
        return function(*args, **kwargs)
    return call_function(function, (), args, kwargs)


def array_method(t: Any, name: str) -> Callable[..., Any] | None:
    """The method of arrays of that name for a Tensor, None where NumPy has no such method or no such function."""
    if name == "flatten":
        return lambda order="C": by_numpy("ravel", (t,), {"order": order}).clone()
    if not callable(getattr(np.ndarray, name, None)) or not callable(getattr(np, name, None)):
        return None
    if name in _IN_PLACE:
        return lambda *args, **kwargs: _assign_in_place(t, name, by_numpy(name, (t, *args), kwargs))
    position = 1 if next(iter(signature(getattr(np, name)).parameters)) == "condition" else 0
    return lambda *args, **kwargs: by_numpy(name, (*args[:position], t, *args[position:]), kwargs)


def _assign_in_place(t: Any, name: str, result: Any) -> None:
    t._assign_result(name, result)


def accepts(function: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the function has these arguments."""
    try:
        signature(function).bind(self, *args, **kwargs)
    except TypeError:
        return False
    return True


def standard_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by torch's names -> by the array API's; `unbiased` is a correction of 1.

    Raises TypeError where two of them are one argument, as `axis` and `dim` are.
    """
    out: dict[str, Any] = {}
    for key, value in kwargs.items():
        name = "correction" if key == "unbiased" else _STANDARD_NAMES.get(key, key)
        if name in out:
            raise TypeError(f"got {name!r} by two names, of which {key!r} is one\n  help: give one of them")
        out[name] = float(value) if key == "unbiased" else value
    return out


def by_numpys_arguments(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the namespace on a masked tensor; NumPy's of its name where it has not these arguments."""
    try:
        return function(*args, **kwargs)
    except TypeError:
        if accepts(function, args[0], args[1:], kwargs) or not callable(getattr(np, name, None)):
            raise
    return getattr(np, name)(*args, **kwargs)
