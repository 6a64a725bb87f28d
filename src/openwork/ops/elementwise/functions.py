"""The elementwise functions of the array API standard, 2024.12, by their standard names.

Unary functions map stored values and the fill value and share the structure. Functions of two operands broadcast;
what the result is stored as follows from the operands (see `maps`). Dtypes mix as in the operands' library:
NumPy's table, of which the standard's is a part, or torch's.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...integers import integer
from ...interop.sources import asarray
from ...ir.index import Access, Apply, Literal
from ...late import late
from ...runtime.gradient_hook import tracked
from ...runtime.operation import namespace, operation
from ...runtime.result_rules import result_scalar
from ...runtime.values import apply
from ...storage.buffers import as_array, buffer_of, cast, copied, is_array, is_torch, scalar_name, torch_dtype
from ...tensor.dtypes import iinfo, isdtype, result_type
from ...tensor.lazy import defer, is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from .by_elements import by_elements
from .documentation import ANNIHILATES, documented
from .maps import elementwise, unary
from .pointwise import pointwise

if TYPE_CHECKING:
    from ...masked.elementwise import select
    from ..sorting import nonzero
else:
    select = late("masked.elementwise", "select")
    nonzero = late("ops.sorting", "nonzero")

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
    "where",
]  # fmt: skip


def _tensor(x: Any) -> Any:
    """`x` as an operand: Tensors and arrays as they are, anything else as a dense Tensor."""
    if isinstance(x, Tensor) or is_array(x) or isinstance(x, np.generic | int | float | complex):
        return x

    return asarray(x)


Names = str | tuple[str, ...]


def _unary_function(name: str, op: str, doc: str, **names: Any) -> Callable[[Any], Any]:
    """The block of a function of one operand: its operation of the loop IR; its names elsewhere, see `_register`."""

    def function(x: Any, /) -> Any:

        if is_lazy(x):
            return defer("elementwise", op, function, (x,))

        return unary(op, x if isinstance(x, Tensor) else asarray(x))

    return _register(function, 1, name, doc, op, **names)


def _binary_function(name: str, op: str, doc: str, **names: Any) -> Callable[[Any, Any], Any]:
    """The block of a function of two operands; `op` may be one of the array library that the loop IR has not."""

    def function(x1: Any, x2: Any, /) -> Any:
        if is_lazy(x1) or is_lazy(x2):
            return defer("elementwise", op, function, (x1, x2))
        a, b = _tensor(x1), _tensor(x2)
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            a, b = asarray(a), asarray(b) if is_array(b) else b
        if op in _NOT_COMPILED:
            return _by_array_library(op, a, b)
        return elementwise(op, a, b)

    return _register(function, 2, name, doc, op, **names)


def _annihilating_function(name: str, op: str, doc: str, **names: Any) -> Callable[..., Any]:
    """The block of a binary function in which a zero that is not stored may be asked to annihilate."""

    def function(x1: Any, x2: Any, /, *, zero_annihilates: bool = False) -> Any:
        if is_lazy(x1) or is_lazy(x2):
            call = partial(function, zero_annihilates=True) if zero_annihilates else function
            return defer("elementwise", op, call, (x1, x2), (True,) if zero_annihilates else ())
        a, b = _tensor(x1), _tensor(x2)
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            a, b = asarray(a), asarray(b) if is_array(b) else b
        return elementwise(op, a, b, zero_annihilates)

    return _register(function, 2, name, doc, op, **names)


def _register(
    function: Callable[..., Any], arity: int, name: str, doc: str, op: str, numpy: Names = (), torch: Names = (),
    attribute: bool = False, operator: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`op`, the operation of the loop IR or the array library, is kept for operands that take the call over.

    numpy, torch, attribute, operator : of the block, see `runtime.operation`
    """
    function.__name__ = function.__qualname__ = name
    function.__doc__ = documented(name, arity, doc, numpy, operator)
    function.op = op  # type: ignore[attr-defined]
    block = operation(
        method=not attribute, attribute=attribute, operator=operator, numpy=numpy, torch=torch, masked="elements",
        lazy=True, op=op, arity=arity, returns="mixed" if arity == 2 else None,
    )  # fmt: skip
    return block(function)


_NOT_COMPILED = ("logaddexp", "nextafter")
"""Operations that the loop IR has not."""

_LOGADDEXP = "select(A == B, A + log(2.0), max(A, B) + log1p(exp(-abs(A - B))))"
"""Equal operands by themselves: of two infinite ones the difference is NaN."""


def _by_array_library(op: str, a: Any, b: Any) -> Any:
    """The array library's operation: a sparse operand meets a scalar, or a dense one with which the result is dense."""
    a, b = _in_torch_dtype(*one_library(a, b))
    sparse = [isinstance(x, Tensor) and not x.format.is_dense for x in (a, b)]
    if all(sparse) and op == "logaddexp":
        floating = apply(op, a.values[:0], b.values[:0]).dtype
        return pointwise(_LOGADDEXP, {"A": a.astype(floating, copy=False), "B": b.astype(floating, copy=False)})
    if all(sparse):
        return by_elements(partial(apply, op), (a, b), op)
    if any(sparse) and not any(isinstance(x, np.generic | int | float) for x in (a, b)):
        a, b = (x.asformat("dense") if isinstance(x, Tensor) and x.ndim else x for x in (a, b))
    return elementwise(op, a, b)


def _in_torch_dtype(a: Any, b: Any) -> tuple[Any, Any]:
    """Operands over torch's buffers in the floating dtype of their result: NumPy computes integers in another."""
    buffers = [buffer_of(x) for x in (a, b)]
    if not all(map(is_torch, buffers)):
        return a, b
    import torch

    empty = (buffer.new_empty((0,) if x.ndim else ()) for x, buffer in zip((a, b), buffers, strict=True))
    scalar = result_scalar("floating", scalar_name(torch.result_type(*empty)), "torch")
    a, b = (x.astype(torch_dtype(scalar), copy=False) if isinstance(x, Tensor) else cast(x, scalar) for x in (a, b))
    return a, b


abs = _unary_function(
    "abs", "abs", "The absolute value; that of a complex number is real.", numpy="absolute", operator="abs"
)
acos = _unary_function("acos", "acos", "The inverse cosine.", numpy="arccos")
acosh = _unary_function("acosh", "acosh", "The inverse hyperbolic cosine.", numpy="arccosh")
asin = _unary_function("asin", "asin", "The inverse sine.", numpy="arcsin")
asinh = _unary_function("asinh", "asinh", "The inverse hyperbolic sine.", numpy="arcsinh")
atan = _unary_function("atan", "atan", "The inverse tangent.", numpy="arctan")
atanh = _unary_function("atanh", "atanh", "The inverse hyperbolic tangent.", numpy="arctanh")
bitwise_invert = _unary_function(
    "bitwise_invert", "bnot", "Every bit inverted.", numpy="invert", torch="bitwise_not", operator="invert"
)
ceil = _unary_function("ceil", "ceil", "The least integer that is not smaller.")
conj = _unary_function("conj", "conj", "The complex conjugate.", numpy="conjugate")
cos = _unary_function("cos", "cos", "The cosine.")
cosh = _unary_function("cosh", "cosh", "The hyperbolic cosine.")
erf = _unary_function("erf", "erf", "The error function, `2 / sqrt(pi) * integral of exp(-t * t) from 0 to x`.")
exp = _unary_function("exp", "exp", "The exponential.")
expm1 = _unary_function("expm1", "expm1", "`exp(x) - 1`, accurate near 0.")
floor = _unary_function("floor", "floor", "The greatest integer that is not larger.")
imag = _unary_function("imag", "imag", "The imaginary part of every element, 0 of real ones.", attribute=True)
isfinite = _unary_function("isfinite", "isfinite", "Whether neither infinite nor NaN.")
isinf = _unary_function("isinf", "isinf", "Whether infinite.")
isnan = _unary_function("isnan", "isnan", "Whether NaN.")
log = _unary_function("log", "log", "The natural logarithm.")
log10 = _unary_function("log10", "log10", "The logarithm to base 10.")
log1p = _unary_function("log1p", "log1p", "`log(1 + x)`, accurate near 0.")
log2 = _unary_function("log2", "log2", "The logarithm to base 2.")
logical_not = _unary_function("logical_not", "not", "Whether zero.")
negative = _unary_function("negative", "neg", "`-x`.", torch="neg", operator="neg")
real = _unary_function("real", "real", "The real part of every element.", attribute=True)
reciprocal = _unary_function("reciprocal", "reciprocal", "`1 / x`.")
sign = _unary_function("sign", "sign", "-1, 0 or 1; a complex number divided by its absolute value.")
signbit = _unary_function("signbit", "signbit", "Whether the sign bit is set, that of -0.0 included.")
sin = _unary_function("sin", "sin", "The sine.")
sinh = _unary_function("sinh", "sinh", "The hyperbolic sine.")
sqrt = _unary_function("sqrt", "sqrt", "The square root.")
square = _unary_function("square", "square", "`x * x`.")
tan = _unary_function("tan", "tan", "The tangent.")
tanh = _unary_function("tanh", "tanh", "The hyperbolic tangent.")
trunc = _unary_function("trunc", "trunc", "The integer part.")

add = _binary_function("add", "add", "`x1 + x2`.", operator="add")
atan2 = _binary_function("atan2", "atan2", "The angle of the point (x2, x1).", numpy="arctan2")
bitwise_and = _binary_function("bitwise_and", "band", "`x1 & x2`.", torch="and", operator="and")
bitwise_left_shift = _binary_function(
    "bitwise_left_shift", "shl", "`x1 << x2`.", numpy="left_shift", torch="lshift", operator="lshift"
)
bitwise_or = _binary_function("bitwise_or", "bor", "`x1 | x2`.", torch="or", operator="or")
bitwise_right_shift = _binary_function(
    "bitwise_right_shift", "shr", "`x1 >> x2`.", numpy="right_shift", torch="rshift", operator="rshift"
)
bitwise_xor = _binary_function("bitwise_xor", "bxor", "`x1 ^ x2`.", torch="xor", operator="xor")
copysign = _binary_function("copysign", "copysign", "The magnitude of x1 with the sign of x2.")
divide = _annihilating_function(
    "divide", "div", "`x1 / x2`." + ANNIHILATES, numpy="true_divide", torch=("div", "truediv"), operator="truediv"
)
equal = _binary_function("equal", "eq", "`x1 == x2`.", torch="eq", operator="eq")
floor_divide = _binary_function("floor_divide", "floordiv", "`x1 // x2`.", torch="floordiv", operator="floordiv")
greater = _binary_function("greater", "gt", "`x1 > x2`.", torch="gt", operator="gt")
greater_equal = _binary_function("greater_equal", "ge", "`x1 >= x2`.", torch="ge", operator="ge")
hypot = _binary_function("hypot", "hypot", "`sqrt(x1**2 + x2**2)` without overflow.")
less = _binary_function("less", "lt", "`x1 < x2`.", torch="lt", operator="lt")
less_equal = _binary_function("less_equal", "le", "`x1 <= x2`.", torch="le", operator="le")
logaddexp = _binary_function("logaddexp", "logaddexp", "`log(exp(x1) + exp(x2))` without overflow.")
logical_and = _binary_function("logical_and", "and", "Whether both are true.")
logical_or = _binary_function("logical_or", "or", "Whether one is true.")
logical_xor = _binary_function("logical_xor", "xor", "Whether exactly one is true.")
maximum = _binary_function("maximum", "max", "The larger of two; NaN where one is NaN.")
minimum = _binary_function("minimum", "min", "The smaller of two; NaN where one is NaN.")
multiply = _annihilating_function("multiply", "mul", "`x1 * x2`." + ANNIHILATES, torch="mul", operator="mul")
nextafter = _binary_function("nextafter", "nextafter", "The next floating-point number after x1 towards x2.")
not_equal = _binary_function("not_equal", "ne", "`x1 != x2`.", torch="ne", operator="ne")
pow = _binary_function("pow", "pow", "`x1 ** x2`.", numpy="power", operator="pow")
remainder = _binary_function("remainder", "mod", "`x1 % x2`, with the sign of x2.", torch="mod", operator="mod")
subtract = _binary_function("subtract", "sub", "`x1 - x2`.", torch="sub", operator="sub")


@operation(lazy=True, shape="same", dtype="same", fill="same")
def positive(x: Any, /) -> Any:
    """`+x`: the elements in memory of their own, as NumPy's; pos and crd are shared.

    Cost: O(nse).
    See also: negative, copy.

    Examples
    --------
    >>> ow.positive(ow.asarray([0, 2], format="coo")).to_numpy()
    array([0, 2])
    """

    if is_lazy(x):
        return x
    s = asarray(x)._storage
    if s.scalar == "bool":
        raise DTypeError("positive does not take bool\n  help: clone() copies; convert with .astype(...)")
    return Tensor._from_storage(s.with_values(copied(s.values)))


def _rounded(x: Any, decimals: Any) -> Any:
    """`x` rounded at a decimal place, as NumPy does: scaled, rounded, and scaled back."""
    digits = integer(decimals, "round", "decimals")
    scale = 10.0 ** builtins.abs(digits)
    if isinstance(x, Tensor) and isdtype(x.dtype, ("integral", "bool")):
        return x.clone() if digits >= 0 else (round(x / scale) * scale).astype(x.dtype)
    ow = namespace()
    return ow.round(x * scale) / scale if digits > 0 else ow.round(x / scale) * scale


@operation(
    method=True,
    numpy="around",
    torch="round(*, decimals = 0)",
    masked=lambda m, /, decimals=0: m.round() if not decimals else _rounded(m, decimals),
    lazy=True,
    op="round",
    arity=1,
)
def round(x: Any, /, decimals: int = 0) -> Any:
    """The nearest number with so many decimal places, integers without; the even one of two.

    decimals : places behind the point; negative ones count in front of it. Integers stay integers.

    Cost: O(nse).
    See also: floor, ceil, trunc.

    Examples
    --------
    >>> ow.round(ow.asarray([0, 2.57], format="coo"), 1).to_numpy()
    array([0. , 2.6])
    """
    if integer(decimals, "round", "decimals"):
        return _rounded(_operand(x), decimals)
    if is_lazy(x):
        return defer("elementwise", "round", round, (x,))
    return unary("round", _operand(x))


@operation(method=True, masked=lambda m: 1.0 / m.sqrt(), lazy=True, shape="same", dtype="floating", fill="f(fill)")
def rsqrt(x: Any, /) -> Any:
    """The reciprocal of the square root, `1 / sqrt(x)`: infinite at 0, NaN below.

    Cost: O(nse).
    See also: sqrt, reciprocal.

    Examples
    --------
    >>> ow.rsqrt(ow.asarray([1.0, 4.0])).to_numpy()
    array([1. , 0.5])
    """
    return reciprocal(sqrt(x))


def _operand(x: Any) -> Any:
    """`x` as a Tensor; an expression to be computed later itself."""

    return x if is_lazy(x) else asarray(x)


@operation(
    method=True,
    torch=("clamp(min = None, max = None)", "clip(min = None, max = None)"),
    masked=late("masked.elementwise", "clip"),
    lazy=True,
    shape="broadcast",
    fill="f(fill)",
)
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """`x` limited to between `min` and `max`, each a scalar, an array that broadcasts, or None for no limit.

    The dtype is that of `x` where the limits are of its kind, as the standard says, else the one that `x` and the
    limits promote to, as NumPy's: integers between floats are floats. An integer beyond those of the dtype of `x`
    limits nothing.

    Cost: O(nse).
    See also: maximum, minimum.

    Examples
    --------
    >>> ow.clip(ow.asarray([0, 5, -3], format="coo"), -1, 2).to_numpy()
    array([ 0,  2, -1])
    """
    if min is None and max is None:
        return x if is_lazy(x) else _operand(x).clone()
    out: Any
    out, *limits = one_library(_operand(x), *(None if limit is None else _tensor(limit) for limit in (min, max)))
    limits = [limit if limit is None else _bound_operand(out, limit) for limit in limits]
    out = out.astype(result_type(out, *(_dtype_like(limit) for limit in limits if limit is not None)), copy=False)
    for op, limit in zip(("max", "min"), limits, strict=True):
        if limit is not None:
            out = elementwise(op, out, _limit(limit, out))
    return out


_PYTHON = (bool, int, float, complex)


def _bound_operand(x: Any, limit: Any) -> Any:
    """A bound of `clip` of rank 0 in the library of the tensor that it bounds, unless torch records it."""
    if is_lazy(x) or type(limit) in _PYTHON or limit.ndim or tracked((buffer_of(limit),)):
        return limit
    return as_array(limit.to_dense() if isinstance(limit, Tensor) else np.asarray(limit), like=x.values)


def _dtype_like(limit: Any) -> Any:
    """A limit as `result_type` takes it: Python's numbers are weak."""
    return limit if isinstance(limit, Tensor | bool | int | float | complex) else limit.dtype


def _limit(limit: Any, x: Tensor) -> Any:
    """A bound of `clip` in the dtype of the tensor that it bounds."""
    if type(limit) is int and isdtype(x.dtype, "integral"):
        bounds = iinfo(x.dtype)
        return builtins.min(builtins.max(limit, bounds.min), bounds.max)
    if isinstance(limit, bool | int | float | complex) and not isinstance(limit, np.generic):
        return limit
    return limit.astype(x.dtype) if isinstance(limit, Tensor | np.ndarray | np.generic) else limit.to(x.dtype)


def _masked_where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    if x1 is None and x2 is None:
        return condition.nonzero()
    return select(condition, x1, x2)


@operation(torch="where", masked=_masked_where, lazy=True, shape="broadcast", fill="f(fill)")
def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """`x1` where `condition` is true, else `x2`, with broadcasting; either may be a Python scalar.

    Without both, where it is true: the coordinates of the elements that are not zero, as `nonzero` gives them.

    Returns
    -------
    Tensor, dense where all operands are; else by co-iteration, in the format that `pointwise` finds, its
    fill value the choice of the fill values

    Raises ShapeError if the shapes do not broadcast, or one of `x1` and `x2` alone is given.

    Cost: O(nse of all operands); dense O(size).
    See also: clip, nonzero, masked.select.

    Examples
    --------
    >>> A = ow.asarray([0, 5, -3], format="coo")
    >>> ow.where(A > 0, A, 0).to_numpy()
    array([0, 5, 0])
    """
    if x1 is None or x2 is None:
        if x1 is not x2:
            raise ShapeError("where: either both or neither of x1 and x2 are given\n  help: where(condition, x1, x2)")
        return nonzero(condition.compute() if is_lazy(condition) else condition)
    if any(map(is_lazy, (condition, x1, x2))):
        return defer("select", "where", where, (condition, x1, x2))
    test = _operand(condition)
    choices = [x if isinstance(x, int | float | complex) else _operand(x) for x in (x1, x2)]
    if not any(isinstance(x, Tensor) for x in choices):
        choices[0] = _operand(choices[0])
    test, *choices = one_library(test, *choices)
    dtype = result_type(*choices)
    choices = [x.astype(dtype, copy=False) if isinstance(x, Tensor) else x for x in choices]
    if all(not isinstance(x, Tensor) or x.format.is_dense for x in (test, *choices)):
        dense = (x.to_dense() if isinstance(x, Tensor) else x for x in (test, *choices))
        return Tensor._from_dense(_select(*dense))

    operands = {"C": test if test._storage.scalar == "bool" else test != 0}
    shown = []
    for name, x in zip("AB", choices, strict=True):
        shown.append(Access(name) if isinstance(x, Tensor) else Literal(x))
        operands |= {name: x} if isinstance(x, Tensor) else {}
    return pointwise(Apply("select", (Access("C"), *shown)), operands)


def _select(condition: Any, x1: Any, x2: Any) -> Any:
    if is_torch(condition):
        import torch

        return torch.where(condition.bool(), x1, x2)
    return np.where(condition, x1, x2)
