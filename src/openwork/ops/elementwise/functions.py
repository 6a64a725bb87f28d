"""The elementwise functions of the array API standard, 2024.12, by their standard names.

Unary functions map stored values and the fill value and share the structure. Functions of two operands broadcast;
what the result is stored as follows from the operands (see `maps`). Dtypes mix as in the operands' library:
NumPy's table, of which the standard's is a part, or torch's.
"""

from __future__ import annotations

import builtins
from typing import Any

from ...errors import DTypeError
from ...integers import integer
from ...interop.sources import asarray
from ...runtime.operation import namespace, operation
from ...storage.buffers import copied
from ...tensor.dtypes import isdtype
from ...tensor.lazy import defer, is_lazy
from ...tensor.tensor import Tensor
from .blocks import annihilating_function, as_tensor, binary_function, unary_function
from .maps import unary

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "conj", "copysign",
    "cos", "cosh", "divide", "equal", "erf", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
    "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log1p", "log2", "log10",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "rsqrt",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


abs = unary_function(
    "abs", "abs", "The absolute value of each element; that of a complex number is real.",
    see="sign, square, linalg.norm", numpy="absolute", operator="abs",
)  # fmt: skip
acos = unary_function(
    "acos", "acos", "The angle in radians whose cosine each element is, 0 to pi; NaN for real ones beyond -1 and 1.",
    see="cos, asin, atan2", numpy="arccos",
)  # fmt: skip
acosh = unary_function(
    "acosh", "acosh", "The inverse hyperbolic cosine of each element; NaN for real ones below 1.", see="cosh, asinh",
    numpy="arccosh",
)  # fmt: skip
asin = unary_function(
    "asin", "asin",
    "The angle in radians whose sine each element is, -pi / 2 to pi / 2; NaN for real ones beyond -1 and 1.",
    see="sin, acos, atan2", numpy="arcsin",
)  # fmt: skip
asinh = unary_function(
    "asinh", "asinh", "The inverse hyperbolic sine of each element.", see="sinh, acosh", numpy="arcsinh",
)  # fmt: skip
atan = unary_function(
    "atan", "atan", "The angle in radians whose tangent each element is, -pi / 2 to pi / 2.", see="tan, atan2",
    numpy="arctan",
)  # fmt: skip
atanh = unary_function(
    "atanh", "atanh", "The inverse hyperbolic tangent of each element; NaN for real ones beyond -1 and 1.",
    see="tanh, log1p", numpy="arctanh",
)  # fmt: skip
bitwise_invert = unary_function(
    "bitwise_invert", "bnot", "Every bit of each integer inverted; of bool, `not`.", see="logical_not, bitwise_xor",
    numpy="invert", torch="bitwise_not", operator="invert",
)  # fmt: skip
ceil = unary_function(
    "ceil", "ceil", "The least integer that is not smaller than each element, in its dtype.", see="floor, trunc, round",
)  # fmt: skip
conj = unary_function(
    "conj", "conj", "The complex conjugate of each element; real ones stay as they are.", see="real, imag, Tensor.H",
    numpy="conjugate",
)  # fmt: skip
cos = unary_function("cos", "cos", "The cosine of each element, an angle in radians.", see="sin, tan, acos")
cosh = unary_function("cosh", "cosh", "The hyperbolic cosine of each element.", see="sinh, cos, acosh")
erf = unary_function(
    "erf", "erf", "The error function of each element x, `2 / sqrt(pi) * integral of exp(-t * t) from 0 to x`.",
    see="exp, tanh",
)  # fmt: skip
exp = unary_function("exp", "exp", "The exponential of each element, `e ** x`.", see="expm1, log, softmax, linalg.expm")
expm1 = unary_function("expm1", "expm1", "`exp(x) - 1` of each element x, accurate near 0.", see="exp, log1p")
floor = unary_function(
    "floor", "floor", "The greatest integer that is not larger than each element, in its dtype.",
    see="ceil, trunc, floor_divide",
)  # fmt: skip
imag = unary_function(
    "imag", "imag", "The imaginary part of each element, 0 of real ones.", see="real, conj", attribute=True,
)  # fmt: skip
isfinite = unary_function(
    "isfinite", "isfinite", "Whether each element is neither infinite nor NaN.", see="isinf, isnan, nan_to_num",
)  # fmt: skip
isinf = unary_function("isinf", "isinf", "Whether each element is infinite, of either sign.", see="isfinite, isnan")
isnan = unary_function("isnan", "isnan", "Whether each element is NaN.", see="isfinite, nan_to_num, nansum")
log = unary_function(
    "log", "log", "The natural logarithm of each element: -inf at 0, NaN for real ones below.",
    see="log1p, log2, log10, exp",
)  # fmt: skip
log10 = unary_function(
    "log10", "log10", "The logarithm to base 10 of each element: -inf at 0, NaN for real ones below.", see="log, log2",
)  # fmt: skip
log1p = unary_function("log1p", "log1p", "`log(1 + x)` of each element x, accurate near 0.", see="log, expm1")
log2 = unary_function(
    "log2", "log2", "The logarithm to base 2 of each element: -inf at 0, NaN for real ones below.", see="log, log10",
)  # fmt: skip
logical_not = unary_function(
    "logical_not", "not", "Whether each element is zero.", see="logical_and, equal, bitwise_invert",
)  # fmt: skip
negative = unary_function(
    "negative", "neg", "`-x` of each element x.", see="subtract, abs", torch="neg", operator="neg",
)  # fmt: skip
real = unary_function("real", "real", "The real part of each element.", see="imag, conj, abs", attribute=True)
reciprocal = unary_function(
    "reciprocal", "reciprocal", "`1 / x` of each element x, infinite at 0; of NumPy's integers the integer part.",
    see="divide, rsqrt",
)  # fmt: skip
sign = unary_function(
    "sign", "sign", "The sign of each element: -1, 0 or 1; a complex number divided by its absolute value.",
    see="abs, signbit, copysign",
)  # fmt: skip
signbit = unary_function(
    "signbit", "signbit", "Whether the sign bit of each element is set, that of -0.0 included.",
    see="sign, copysign, less",
)  # fmt: skip
sin = unary_function("sin", "sin", "The sine of each element, an angle in radians.", see="cos, tan, asin")
sinh = unary_function("sinh", "sinh", "The hyperbolic sine of each element.", see="cosh, sin, asinh")
sqrt = unary_function(
    "sqrt", "sqrt", "The square root of each element; NaN for real ones below 0.", see="rsqrt, square, hypot",
)  # fmt: skip
square = unary_function("square", "square", "`x * x` of each element x.", see="sqrt, pow, multiply")
tan = unary_function("tan", "tan", "The tangent of each element, an angle in radians.", see="sin, cos, atan")
tanh = unary_function("tanh", "tanh", "The hyperbolic tangent of each element.", see="sinh, cosh, atanh")
trunc = unary_function("trunc", "trunc", "The integer part of each element, in its dtype.", see="floor, ceil, round")

add = binary_function(
    "add", "add", "`x1 + x2` of elements, with broadcasting.", see="subtract, sum, pointwise", operator="add",
)  # fmt: skip
atan2 = binary_function(
    "atan2", "atan2", "The angle in radians of each point (x2, x1), between -pi and pi, with broadcasting.",
    see="atan, hypot", numpy="arctan2",
)  # fmt: skip
bitwise_and = binary_function(
    "bitwise_and", "band", "`x1 & x2` of integers, bit by bit, with broadcasting.",
    see="bitwise_or, bitwise_xor, logical_and", torch="and", operator="and",
)  # fmt: skip
bitwise_left_shift = binary_function(
    "bitwise_left_shift", "shl", "`x1 << x2` of integers, with broadcasting.", see="bitwise_right_shift, multiply",
    numpy="left_shift", torch="lshift", operator="lshift",
)  # fmt: skip
bitwise_or = binary_function(
    "bitwise_or", "bor", "`x1 | x2` of integers, bit by bit, with broadcasting.",
    see="bitwise_and, bitwise_xor, logical_or", torch="or", operator="or",
)  # fmt: skip
bitwise_right_shift = binary_function(
    "bitwise_right_shift", "shr", "`x1 >> x2` of integers, with broadcasting.", see="bitwise_left_shift, floor_divide",
    numpy="right_shift", torch="rshift", operator="rshift",
)  # fmt: skip
bitwise_xor = binary_function(
    "bitwise_xor", "bxor", "`x1 ^ x2` of integers, bit by bit, with broadcasting.",
    see="bitwise_and, bitwise_or, logical_xor", torch="xor", operator="xor",
)  # fmt: skip
copysign = binary_function(
    "copysign", "copysign", "The magnitude of each element of x1 with the sign of that of x2, with broadcasting.",
    see="sign, signbit, abs",
)  # fmt: skip
divide = annihilating_function(
    "divide", "div", "`x1 / x2` of elements, with broadcasting; integers and bool give floating-point numbers.",
    see="multiply, floor_divide, remainder, reciprocal", numpy="true_divide", torch=("div", "truediv"),
    operator="truediv",
)  # fmt: skip
equal = binary_function(
    "equal", "eq", "`x1 == x2` of elements, with broadcasting: a tensor of bool.", see="not_equal, isclose, isin",
    torch="eq", operator="eq",
)  # fmt: skip
floor_divide = binary_function(
    "floor_divide", "floordiv", "`x1 // x2` of elements, rounded down, with broadcasting.",
    see="divide, remainder, floor", torch="floordiv", operator="floordiv",
)  # fmt: skip
greater = binary_function(
    "greater", "gt", "`x1 > x2` of elements, with broadcasting: a tensor of bool.", see="greater_equal, less, maximum",
    torch="gt", operator="gt",
)  # fmt: skip
greater_equal = binary_function(
    "greater_equal", "ge", "`x1 >= x2` of elements, with broadcasting: a tensor of bool.", see="greater, less_equal",
    torch="ge", operator="ge",
)  # fmt: skip
hypot = binary_function(
    "hypot", "hypot", "`sqrt(x1**2 + x2**2)` of elements without overflow, with broadcasting.",
    see="sqrt, atan2, linalg.vector_norm",
)  # fmt: skip
less = binary_function(
    "less", "lt", "`x1 < x2` of elements, with broadcasting: a tensor of bool.", see="less_equal, greater, minimum",
    torch="lt", operator="lt",
)  # fmt: skip
less_equal = binary_function(
    "less_equal", "le", "`x1 <= x2` of elements, with broadcasting: a tensor of bool.", see="less, greater_equal",
    torch="le", operator="le",
)  # fmt: skip
logaddexp = binary_function(
    "logaddexp", "logaddexp", "`log(exp(x1) + exp(x2))` of elements without overflow, with broadcasting.",
    see="logsumexp, log1p, maximum",
)  # fmt: skip
logical_and = binary_function(
    "logical_and", "and", "Whether both elements are not zero, with broadcasting.",
    see="logical_or, logical_not, all, bitwise_and",
)  # fmt: skip
logical_or = binary_function(
    "logical_or", "or", "Whether one of two elements, or both, are not zero, with broadcasting.",
    see="logical_and, logical_xor, any, bitwise_or",
)  # fmt: skip
logical_xor = binary_function(
    "logical_xor", "xor", "Whether exactly one of two elements is not zero, with broadcasting.",
    see="logical_or, not_equal, bitwise_xor",
)  # fmt: skip
maximum = binary_function(
    "maximum", "max", "The larger of two elements, NaN where one is NaN, with broadcasting.", see="minimum, max, clip",
)  # fmt: skip
minimum = binary_function(
    "minimum", "min", "The smaller of two elements, NaN where one is NaN, with broadcasting.", see="maximum, min, clip",
)  # fmt: skip
multiply = annihilating_function(
    "multiply", "mul", "`x1 * x2` of elements, with broadcasting.", see="divide, matmul, outer, pointwise", torch="mul",
    operator="mul",
)  # fmt: skip
nextafter = binary_function(
    "nextafter", "nextafter",
    "The next floating-point number after each element of x1 towards that of x2, with broadcasting.",
    see="finfo, isclose",
)  # fmt: skip
not_equal = binary_function(
    "not_equal", "ne", "`x1 != x2` of elements, with broadcasting: a tensor of bool.", see="equal, isclose", torch="ne",
    operator="ne",
)  # fmt: skip
pow = binary_function(
    "pow", "pow", "`x1 ** x2` of elements, with broadcasting.", see="square, sqrt, exp, linalg.matrix_power",
    numpy="power", operator="pow",
)  # fmt: skip
remainder = binary_function(
    "remainder", "mod", "`x1 % x2` of elements, with the sign of x2, with broadcasting.", see="floor_divide, divide",
    torch="mod", operator="mod",
)  # fmt: skip
subtract = binary_function(
    "subtract", "sub", "`x1 - x2` of elements, with broadcasting.", see="add, negative, diff", torch="sub",
    operator="sub",
)  # fmt: skip


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
        return _rounded(as_tensor(x), decimals)
    if is_lazy(x):
        return defer("elementwise", "round", round, (x,))
    return unary("round", as_tensor(x))


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
