"""Python's operators and the elementwise methods of a masked tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..errors import DTypeError
from ..late import late
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
        __add__, __radd__, __iadd__ = _binary("add"), _reflected("add"), _inplace("add")
        __sub__, __rsub__, __isub__ = _binary("sub"), _reflected("sub"), _inplace("sub")
        __mul__, __rmul__, __imul__ = _binary("mul"), _reflected("mul"), _inplace("mul")
        __truediv__, __rtruediv__, __itruediv__ = _binary("div"), _reflected("div"), _inplace("div")
        __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floordiv"), _reflected("floordiv"), _inplace("floordiv")
        __mod__, __rmod__, __imod__ = _binary("mod"), _reflected("mod"), _inplace("mod")
        __pow__, __rpow__, __ipow__ = _binary("pow"), _reflected("pow"), _inplace("pow")
        __and__, __rand__, __iand__ = _binary("band"), _reflected("band"), _inplace("band")
        __or__, __ror__, __ior__ = _binary("bor"), _reflected("bor"), _inplace("bor")
        __xor__, __rxor__, __ixor__ = _binary("bxor"), _reflected("bxor"), _inplace("bxor")
        __lshift__, __rlshift__ = _binary("shl"), _reflected("shl")
        __rshift__, __rrshift__ = _binary("shr"), _reflected("shr")
        __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
        __eq__ = _binary("eq")
        __ne__ = _binary("ne")
        __hash__ = None
        __neg__, __abs__ = _unary("neg", "-x"), _unary("abs", "abs(x)")
        __invert__ = _unary("bnot", "~x")

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
