"""torch's elementwise functions by name; those of two operands with their operation of the loop IR."""

from __future__ import annotations

from typing import Any

import torch

from ...ir.ops import arity
from ...ops.elementwise import functions
from ...ops.elementwise.maps import elementwise
from ...runtime.operation import OPERATIONS, Operation
from ..gradients.nary import apply_nary
from .registry import torch_function

__all__ = ["ANY_ELEMENTWISE", "BINARY", "ELEMENTWISE", "UNARY", "div", "scaled"]


def _elementwise(operands: int) -> list[Operation]:
    """The blocks of elementwise operations of so many operands."""
    return [OPERATIONS[name] for name in functions.__all__ if OPERATIONS[name].arity == operands]


def _torch_names(o: Operation) -> set[str]:
    """An elementwise operation -> its names in torch."""
    return {o.name, *o.numpy, *o.torch} - {"conj", "equal"}


def _torch_names_of(operands: int) -> frozenset[str]:
    return frozenset().union(*map(_torch_names, _elementwise(operands)))


UNARY = _torch_names_of(1) | frozenset((
    "angle", "celu", "conj_physical", "deg2rad", "digamma", "elu", "erfc", "erfinv", "exp2", "fix", "float_power",
    "frac", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "i0", "isneginf", "isposinf", "isreal",
    "leaky_relu", "lgamma", "log_sigmoid", "logit", "logsigmoid", "mish", "mvlgamma", "nan_to_num", "polygamma",
    "positive", "rad2deg", "relu", "relu6", "rsqrt", "selu", "sgn", "sigmoid", "silu", "sinc", "softplus",
    "softshrink", "softsign", "special_airy_ai", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0",
    "special_bessel_y1", "special_entr", "special_erfcx", "special_i0e", "special_i1", "special_i1e",
    "special_log_ndtr", "special_modified_bessel_i0", "special_modified_bessel_i1", "special_modified_bessel_k0",
    "special_modified_bessel_k1", "special_ndtr", "special_ndtri", "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1", "special_spherical_bessel_j0", "tanhshrink", "threshold",
))  # fmt: skip
"""Functions of one tensor, which may have numbers as further arguments: operations, and those of torch alone."""

ELEMENTWISE = UNARY | frozenset((
    "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "clip", "complex", "fmax", "fmin", "fmod", "gcd",
    "heaviside", "igamma", "igammac", "isclose", "lcm", "ldexp", "lerp", "logaddexp", "logaddexp2", "nextafter",
    "polar", "special_xlog1py", "special_zeta", "xlogy", "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w", "special_hermite_polynomial_h",
    "special_hermite_polynomial_he", "special_laguerre_polynomial_l", "special_legendre_polynomial_p",
    "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w", "frexp",
))  # fmt: skip
"""Elementwise functions of any number of tensors."""

BINARY = {name: o.op for o in _elementwise(2) if o.op and arity(o.op) for name in _torch_names(o)}
"""Functions of two operands, and the operation of the loop IR that each is."""

ANY_ELEMENTWISE = ELEMENTWISE | _torch_names_of(2)
"""Functions that give each element of the result from the elements of its place alone."""


def scaled(op: str, a: Any, b: Any, alpha: Any) -> Any:
    """`a op alpha * b`."""
    return elementwise(op, a, b if alpha == 1 else elementwise("mul", b, alpha))


@torch_function("div", "divide")
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """The quotient, rounded down ("floor") or towards zero ("trunc") where that is asked for."""
    if rounding_mode is None:
        return elementwise("div", a, b)
    return apply_nary(torch.div, a, b, rounding_mode=rounding_mode)
