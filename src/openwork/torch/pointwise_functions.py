"""torch's functions of single elements, by name, and the operation of the loop IR that each of two operands is."""

from __future__ import annotations

from typing import Any

import torch

from ..ops.elementwise.functions import where as choose
from ..ops.elementwise.maps import elementwise
from .nary import several

__all__ = ["BINARY", "ELEMENTWISE", "UNARY", "div", "scaled", "where"]

UNARY = frozenset((
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "celu", "conj_physical", "cos", "cosh", "deg2rad",
    "digamma", "elu", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "float_power", "floor", "frac",
    "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "i0", "imag", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "leaky_relu", "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid",
    "logical_not", "logit", "logsigmoid", "mish", "mvlgamma", "nan_to_num", "neg", "negative", "polygamma",
    "positive", "rad2deg", "real", "reciprocal", "relu", "relu6", "round", "rsqrt", "selu", "sgn", "sigmoid",
    "sign", "signbit", "silu", "sin", "sinc", "sinh", "softplus", "softshrink", "softsign", "special_airy_ai",
    "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_entr",
    "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_log_ndtr", "special_modified_bessel_i0",
    "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1", "special_ndtr",
    "special_ndtri", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_spherical_bessel_j0", "sqrt", "square", "tan", "tanh", "tanhshrink", "threshold", "trunc",
))  # fmt: skip
"""Functions of one tensor, which may have numbers as further arguments."""

ELEMENTWISE = UNARY | frozenset((
    "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "clip", "complex", "fmax", "fmin", "fmod", "gcd",
    "heaviside", "igamma", "igammac", "isclose", "lcm", "ldexp", "lerp", "logaddexp", "logaddexp2", "nextafter",
    "polar", "special_xlog1py", "special_zeta", "xlogy", "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u", "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w",
    "special_hermite_polynomial_h", "special_hermite_polynomial_he", "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p", "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u", "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w", "frexp",
))  # fmt: skip
"""Functions of the single elements of their tensors, however many."""

BINARY = {
    "add": "add", "sub": "sub", "subtract": "sub", "mul": "mul", "multiply": "mul", "div": "div", "divide": "div",
    "true_divide": "div", "truediv": "div", "floor_divide": "floordiv", "floordiv": "floordiv",
    "remainder": "mod", "mod": "mod", "pow": "pow", "maximum": "max", "minimum": "min", "atan2": "atan2",
    "arctan2": "atan2",
    "hypot": "hypot", "copysign": "copysign", "eq": "eq", "ne": "ne", "not_equal": "ne", "lt": "lt", "less": "lt",
    "le": "le", "less_equal": "le", "gt": "gt", "greater": "gt", "ge": "ge", "greater_equal": "ge",
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "band",
    "bitwise_or": "bor", "bitwise_xor": "bxor",
    "and": "band", "or": "bor", "xor": "bxor", "bitwise_left_shift": "shl", "bitwise_right_shift": "shr",
    "lshift": "shl", "rshift": "shr",
}  # fmt: skip
"""Functions of two operands, and the operation of the loop IR that each is."""


def scaled(op: str, a: Any, b: Any, alpha: Any) -> Any:
    """`a op alpha * b`."""
    return elementwise(op, a, b if alpha == 1 else elementwise("mul", b, alpha))


def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """The quotient, rounded down ("floor") or towards zero ("trunc") where that is asked for."""
    if rounding_mode is None:
        return elementwise("div", a, b)
    return several(torch.div, a, b, rounding_mode=rounding_mode)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    return choose(condition, a, b)
