"""Operators, and functions and methods of NumPy's, torch's or ours, of a tensor on a device -> the operation there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.ops import COMPARISONS, arity
from ..provided import provided
from ..tables import ATTRIBUTES, METHODS, NUMPY, OPERATORS, SPOKEN

__all__ = ["Protocols"]

call = provided("device call", __name__)
method = provided("device method", __name__)
of_torch = provided("device of_torch", __name__)

PRIORITY = 2000.0


class Protocols:
    """Python's, NumPy's and torch's protocols of a tensor on a device: each call by the operation of its name."""

    __slots__ = ()
    __array_priority__ = PRIORITY
    __openwork_device__ = True

    _kind = "tensor on a device"
    item: Callable[[], Any]

    @classmethod
    def __openwork_function__(cls, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Functions of the namespace with such a tensor among their operands."""
        return call(function.__name__, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs, by the operations of their names."""
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        return call(NUMPY.get(name, name), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's functions, by the operations of their names."""
        return call(NUMPY.get(func.__name__, func.__name__), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a {self._kind} has no attribute {name!r}")
        if name in ATTRIBUTES:
            return call(name, (self,), {})
        return lambda *args, **kwargs: method(self, name, args, kwargs)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch's functions, by the operations that spell them."""
        return of_torch(func, args, kwargs or {})

    def __bool__(self) -> bool:
        return bool(self.item())


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    def apply(self: Protocols, *others: Any) -> Any:
        return call(name, (*others, self) if reflected else (self, *others), {})

    return apply


for _python, _op in OPERATORS.items():
    setattr(Protocols, f"__{_python}__", _operator(SPOKEN.get(_op, _op), False))
    if arity(_op) == 2 and _op not in COMPARISONS:
        setattr(Protocols, f"__r{_python}__", _operator(SPOKEN.get(_op, _op), True))
for _python, _reflected in (("matmul", False), ("rmatmul", True)):
    setattr(Protocols, f"__{_python}__", _operator("matmul", _reflected))
