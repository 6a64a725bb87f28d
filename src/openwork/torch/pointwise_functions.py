"""torch's functions of single elements, of Tensors: applied to the values, and to the fill value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import UnsupportedError
from ..ops.elementwise import _on_values, elementwise
from ..ops.functions import where as choose
from ..ops.remap import canonical
from ..ops.tensor import Tensor
from ..storage.buffers import as_array, is_torch

__all__ = ["BINARY", "UNARY", "mapped", "scaled"]

UNARY = frozenset((
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "celu", "conj_physical", "cos", "cosh", "deg2rad",
    "digamma", "elu", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "float_power", "floor", "frac",
    "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "i0", "imag", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "leaky_relu", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "logit",
    "logsigmoid", "mish", "mvlgamma", "nan_to_num", "neg", "negative", "polygamma", "positive", "rad2deg", "real",
    "reciprocal", "relu", "relu6", "round", "rsqrt", "selu", "sgn", "sigmoid", "sign", "signbit", "silu", "sin",
    "sinc", "sinh", "softplus", "softshrink", "softsign", "special_bessel_j0", "special_bessel_j1",
    "special_entr", "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_log_ndtr",
    "special_ndtr", "special_ndtri", "sqrt", "square", "tan", "tanh", "tanhshrink", "threshold", "trunc",
))  # fmt: skip
"""Functions of one tensor, which may have numbers as further arguments."""

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


def mapped(function: Callable[..., Any], t: Tensor, *args: Any, **options: Any) -> Tensor:
    """`function` of every element, whatever it is: of the stored values, and of the fill value."""
    if any(isinstance(a, Tensor) for a in (*args, *options.values())):
        name = getattr(function, "__name__", function)
        raise UnsupportedError(f"torch.{name} takes one Tensor\n  supported: numbers as its other arguments")
    t = t if t.format.is_unique else t.asformat(canonical(t.format))
    s = t._storage
    if not is_torch(s.values):
        s = s.mapped(lambda b: as_array(b, like=torch.empty(0)))
    values = _on_values(s, lambda v: function(v, *args, **options).resolve_conj().contiguous())
    fill = function(torch.tensor([s.fill_value], dtype=s.values.dtype), *args, **options)[0].item()
    return Tensor._from_storage(s.with_values(values, fill))


def scaled(op: str, a: Any, b: Any, alpha: Any) -> Any:
    """`a op alpha * b`."""
    return elementwise(op, a, b if alpha == 1 else elementwise("mul", b, alpha))


def clamp(t: Tensor, min: Any = None, max: Any = None) -> Any:
    """The elements between two limits, each a number, or anything that broadcasts."""
    out: Any = t
    for op, limit in (("max", min), ("min", max)):
        out = out if limit is None else elementwise(op, out, limit)
    return out


def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """The quotient, rounded down ("floor") or towards zero ("trunc") where that is asked for."""
    quotient = elementwise("div", a, b)
    if rounding_mode is None:
        return quotient
    return mapped(torch.floor if rounding_mode == "floor" else torch.trunc, quotient)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    return choose(condition, a, b)
