"""Python's operators and the elementwise methods of a masked tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..errors import DTypeError
from ..ir.ops import COMPARISONS, arity
from ..late import late
from ..tables import OPERATORS
from ..tensor.inplace import check_writable

if TYPE_CHECKING:
    from .tensor import MaskedTensor

if TYPE_CHECKING:
    from .elementwise import binary, lift, select, unary
    from .tensor import wrap
else:
    unary = late("masked.elementwise", "unary")
    binary = late("masked.elementwise", "binary")
    wrap = late("masked.tensor", "wrap")
    lift = late("masked.elementwise", "lift")
    select = late("masked.elementwise", "select")


__all__ = ["Arithmetic"]


def _me(x: Any) -> MaskedTensor:
    return cast("MaskedTensor", x)


def _unary(op: str, doc: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:

        return unary(op, self)

    method.__doc__ = doc
    return method


def _binary(op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:

        return binary(op, self, other)

    return method


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:

        return binary(op, other, self)

    return method


def _named(op: str) -> Callable[..., Any]:
    def method(self: Any, other: Any, how: str = "equal") -> Any:

        return binary(op, self, other, how)

    method.__doc__ = f"`{op}` with another operand; `how` says what differing masks give, see `openwork.masked.binary`."
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

    add, sub, mul, div = _named("add"), _named("sub"), _named("mul"), _named("div")
    minimum, maximum, pow = _named("min"), _named("max"), _named("pow")
    remainder, floor_divide = _named("mod"), _named("floordiv")
    atan2, hypot, copysign, logaddexp = _named("atan2"), _named("hypot"), _named("copysign"), _named("logaddexp")
    logical_and, logical_or, logical_xor = _named("and"), _named("or"), _named("xor")

    neg, exp2 = (_unary(op, f"`{op}` of each element") for op in ("neg", "exp2"))

    def map(self, function: Callable[[Any], Any]) -> MaskedTensor:
        """A function of arrays that works element by element, on the specified elements."""

        return lift(function, (self,), getattr(function, "__name__", "map"))

    def clamp(self, min: Any = None, max: Any = None) -> MaskedTensor:
        """The elements, no less than `min` and no more than `max`."""

        out = _me(self)
        out = out if min is None else binary("max", out, min)
        return out if max is None else binary("min", out, max)

    clip = clamp

    def where(self, condition: Any, other: Any) -> MaskedTensor:
        """The elements where the condition holds, those of `other` elsewhere."""

        return select(condition, self, other)

    def _take_over(self, result: MaskedTensor) -> MaskedTensor:
        """Write the values of a result of the same structure into this tensor's buffer."""
        me = _me(self)
        check_writable(me._tensor, "in place")
        values = me.values
        if values.dtype != result.values.dtype:
            raise DTypeError(
                f"in place: the result has dtype {result.dtype}, the tensor {me.dtype}\n  help: m = m + x, or astype()"
            )
        values[...] = result.values
        return me


for _name, _op in OPERATORS.items():
    if arity(_op) == 1:
        setattr(Arithmetic, f"__{_name}__", _unary(_op, f"`{_op}` of each element"))
        continue
    setattr(Arithmetic, f"__{_name}__", _binary(_op))
    if _op not in COMPARISONS:
        setattr(Arithmetic, f"__r{_name}__", _reflected(_op))
        setattr(Arithmetic, f"__i{_name}__", _inplace(_op))
