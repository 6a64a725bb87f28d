"""What NumPy and torch ask of an operand."""

from __future__ import annotations

from typing import Any

__all__ = ["Protocols"]


class Protocols:
    """The mixin of `MaskedTensor` that answers the array libraries."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Any ufunc, on the specified elements; `reduce` is the reduction of its name."""
        if method != "__call__" or kwargs.get("out") is not None:
            return NotImplemented
        from .elementwise import lift

        return lift(lambda *values: ufunc(*values, **kwargs), inputs, ufunc.__name__)
