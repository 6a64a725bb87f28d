"""NumPy's and torch's functions of masked tensors: `__array_ufunc__`, `__array_function__`, `__torch_function__`."""

from __future__ import annotations

from typing import Any

from .. import UnsupportedError
from ..ops.numpy_protocol import by_name
from ..provided import provided
from ..storage.buffers import is_torch
from ..tables import MASKED, NUMPY

lift = provided("masked lift", __name__)
call = provided("masked call", __name__)
call_torch = provided("masked torch call", __name__)


__all__ = ["Protocols"]

_METHODS = {"dot": "__matmul__", "nonzero": "nonzero", "ravel": "flatten", "transpose": "transpose"}
"""NumPy's functions that are methods, and no operations of that meaning."""


def _over_torch(x: Any) -> bool:
    return is_torch(x) or is_torch(getattr(x, "values", None))


class Protocols:
    """The mixin of `MaskedTensor` that answers the array libraries."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Any ufunc, on the specified elements; its `reduce` and `accumulate` where there is a reduction for it."""

        options = {key: value for key, value in kwargs.items() if value is not None and key != "out"}
        if kwargs.get("out") is not None or "where" in options:
            name = ufunc.__name__
            raise UnsupportedError(f"{name}: out= and where= of a masked tensor\n  help: m.where(condition, x)")
        if ufunc.__name__ == "matmul" and method == "__call__":
            return self.__array_namespace__().matmul(*inputs)
        if method == "__call__" and ufunc.nout == 1 and ufunc.signature is None:
            operation = NUMPY.get(ufunc.__name__, ufunc.__name__)
            if operation in MASKED and not options and any(map(_over_torch, inputs)):  # torch records no ufunc
                return getattr(self.__array_namespace__(), operation)(*inputs)
            return lift(lambda *values: ufunc(*values, **options), inputs, ufunc.__name__)
        name = NUMPY.get(f"{ufunc.__name__}.{method}")
        if name is None:
            raise UnsupportedError(f"{ufunc.__name__}.{method} of a masked tensor\n  help: filled(value) first")
        axis = inputs[1] if len(inputs) > 1 else options.pop("axis", 0)
        return getattr(self.__array_namespace__(), name)(inputs[0], axis=axis, **options)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's functions that have a counterpart here."""

        name = func.__name__
        if name in _METHODS:
            return getattr(args[0], _METHODS[name])(*args[1:], **kwargs)
        if func.__module__ == "numpy" and NUMPY.get(name, name) in MASKED:
            return by_name(func, args, kwargs)
        raise UnsupportedError(f"numpy.{name} does not take a masked tensor\n  help: filled(value) first")

    @classmethod
    def __openwork_function__(cls, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The functions of this namespace with a masked tensor among their operands."""

        return call(function, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace that has the array API's functions for this type, as far as they have a meaning for it."""
        return self._tensor.__array_namespace__(api_version=api_version)  # type: ignore[attr-defined]

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch's functions and operators with a masked tensor among their operands."""

        return call_torch(func, args, kwargs or {})
