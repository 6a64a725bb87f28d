"""Python's operators and the elementwise methods of a masked tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .. import DTypeError, ShapeError
from ..ir.ops import COMPARISONS, arity
from ..ops.elementwise.maps import elementwise
from ..provided import provided
from ..tables import OPERATORS
from ..tensor.expression_graph import ELEMENTWISE
from ..tensor.inplace import holds, make_writable
from ..tensor.lazy import defer, is_lazy

if TYPE_CHECKING:
    from .tensor import MaskedTensor

unary = provided("masked unary", __name__)
binary = provided("masked binary", __name__)
wrap = provided("masked wrap", __name__)
lift: Callable[..., MaskedTensor] = provided("masked lift", __name__)
select: Callable[..., MaskedTensor] = provided("masked select", __name__)


__all__ = ["Arithmetic"]


def _me(x: Any) -> MaskedTensor:
    return cast("MaskedTensor", x)


def _unary(op: str, doc: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:

        return unary(op, self)

    method.__doc__ = doc
    return method


def _now_or_later(op: str, a: Any, b: Any) -> Any:
    """`a op b`; an expression where one of them is to be computed later."""
    if is_lazy(a) or is_lazy(b):
        return defer(ELEMENTWISE, op, partial(elementwise, op), (a, b))
    return binary(op, a, b)


def _binary(op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:

        return _now_or_later(op, self, other)

    return method


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:

        return _now_or_later(op, other, self)

    return method


def _inplace(op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:

        return _me(self)._take_over(binary(op, self, other))

    return method


class Arithmetic:
    """The mixin of `MaskedTensor` that holds its elementwise operations."""

    __slots__ = ()
    __array_priority__ = 2000.0

    if not TYPE_CHECKING:  # the stub of `tensor.methods` has their types
        __hash__ = None

        def __pos__(self) -> MaskedTensor:

            return wrap(+_me(self)._tensor, _me(self)._scalar)

    def map(self, function: Callable[[Any], Any]) -> MaskedTensor:
        """A function of arrays that works element by element, on the specified elements."""

        return lift(function, (self,), getattr(function, "__name__", "map"))

    def where(self, condition: Any, other: Any) -> MaskedTensor:
        """The elements where the condition holds, those of `other` elsewhere."""

        return select(condition, self, other)

    def _take_over(self, result: MaskedTensor, operation: str = "in place") -> MaskedTensor:
        """Write the elements of a result into this tensor, in its buffer where the structure is the same."""
        me = _me(self)
        make_writable(me._tensor, operation)
        if result.shape != me.shape:
            raise ShapeError(
                f"{operation}: the result has shape {result.shape}; got {me.shape} to hold it\n  help: m = m + x"
            )
        if not holds(me._tensor._storage, result._tensor._storage.scalar):
            raise DTypeError(
                f"{operation}: the result has dtype {result.dtype}, the tensor {me.dtype}"
                "\n  help: m = m + x, or astype()"
            )
        me._tensor._assign_result(operation, result._tensor)
        return me


for _name, _op in OPERATORS.items():
    if arity(_op) == 1:
        setattr(Arithmetic, f"__{_name}__", _unary(_op, f"`{_op}` of each element"))
        continue
    setattr(Arithmetic, f"__{_name}__", _binary(_op))
    if _op not in COMPARISONS:
        setattr(Arithmetic, f"__r{_name}__", _reflected(_op))
        setattr(Arithmetic, f"__i{_name}__", _inplace(_op))
