"""The library of a case's buffers and the spelling of its call, and what NumPy makes of operands of torch's dtypes.

Over torch's buffers kinds of dtypes mix by torch's rule, so that NumPy computes on arrays that were cast to what torch
promotes to; bfloat16 is computed in float32 and compared with a tolerance.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch

import openwork as ow
from openwork.tables import LAZY, METHODS

__all__ = [
    "LIBRARIES",
    "NUMPY",
    "Want",
    "call",
    "elementwise",
    "forms",
    "held",
    "is_torch",
    "name_of",
    "onto_torch",
    "promoted",
    "reduced",
    "rounded",
]

Array = np.ndarray[Any, Any]
LIBRARIES = ("numpy", "numpy", "torch", "torch", "mixed")
NUMPY = {
    "atan2": "arctan2", "pow": "power", "acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh",
    "asinh": "arcsinh", "atanh": "arctanh", "bitwise_invert": "invert",
}  # fmt: skip
TORCH = {
    "equal": "eq", "not_equal": "ne", "bitwise_invert": "bitwise_not", "max": "amax", "min": "amin", "expm1": "expm1",
    "bitwise_left_shift": "bitwise_left_shift", "divide": "true_divide", "conj": "conj_physical",
}  # fmt: skip
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "equal": operator.eq,
    "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "negative": operator.neg,
    "abs": operator.abs, "bitwise_invert": operator.invert, "matmul": operator.matmul,
}  # fmt: skip
IN_PLACE: dict[str, Callable[..., Any]] = {
    "add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv, "remainder": operator.imod, "pow": operator.ipow,
    "bitwise_and": operator.iand, "bitwise_or": operator.ior, "bitwise_xor": operator.ixor,
}  # fmt: skip
ODD_IN_TORCH = {
    "any": ("uint8",),
    "all": ("uint8",),
    "sign": ("complex64", "complex128"),
    "mean": ("int", "uint", "bool"),
}
"""Dtypes for which torch's function of that name is another one."""


class Want:
    """What NumPy makes of a case over torch's buffers: values, and the name of the dtype that torch's rule gives."""

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype = array, dtype


def is_torch(t: Any) -> bool:
    return isinstance(t, torch.Tensor) or isinstance(getattr(t, "values", None), torch.Tensor)


def rounded(dense: Array) -> Array:
    """float32 as bfloat16 has it."""
    return torch.from_numpy(np.ascontiguousarray(dense)).bfloat16().float().numpy()


def onto_torch(t: ow.Tensor, dtype: str) -> ow.Tensor:
    t = ow.asarray(t, like=torch)
    return t.astype(torch.bfloat16) if dtype == "bfloat16" else t


def name_of(x: Any) -> str:
    """The dtype's name; Python's numbers are their types."""
    return (
        type(x).__name__
        if isinstance(x, bool | int | float | complex) and not hasattr(x, "dtype")
        else str(x.dtype).removeprefix("torch.")
    )


def _wide(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def promoted(pairs: list[tuple[Any, Array]]) -> tuple[list[Array], str | None]:
    """The arrays of operands as they are multiplied or joined, and the dtype's name where one is torch's."""
    if not any(is_torch(t) for t, _ in pairs):
        return [a for _, a in pairs], None
    dtype = getattr(torch, name_of(pairs[0][0]))
    for t, _ in pairs[1:]:
        dtype = torch.promote_types(dtype, getattr(torch, name_of(t)))
    name = str(dtype).removeprefix("torch.")
    return [a.astype(_wide(name)) for _, a in pairs], name


@lru_cache(maxsize=4096)
def _dtype(name: str, operands: tuple[str, ...]) -> tuple[str, str] | None:
    """The dtype that torch computes in, and that of the result; None where it refuses the operands."""
    made = [
        {"bool": True, "int": 1, "float": 1.0, "complex": 1j}[n]
        if k == "s"
        else torch.ones(() if k == "0" else 1, dtype=getattr(torch, n))
        for k, n in (o.split(":") for o in operands)
    ]
    try:
        result = getattr(torch, TORCH.get(name, name))(*made)
        common = made[0].dtype if len(made) == 1 else torch.result_type(*made)
    except (RuntimeError, TypeError):
        return None
    if not (common.is_floating_point or common.is_complex) and (
        result.dtype.is_floating_point or result.dtype.is_complex
    ):
        common = result.dtype
    return str(common).removeprefix("torch."), str(result.dtype).removeprefix("torch.")


def elementwise(name: str, pairs: list[tuple[Any, Any]], over_torch: bool) -> Any:
    """What NumPy's function of that name makes of the arrays and numbers."""
    f = getattr(np, NUMPY.get(name, name))
    if not over_torch:
        return (
            None
            if name == "logaddexp" and np.result_type(*(a for _, a in pairs)).kind == "c"
            else f(*(a for _, a in pairs))
        )
    key = tuple(f"{'s' if not hasattr(t, 'dtype') else 't' if t.ndim else '0'}:{name_of(t)}" for t, _ in pairs)
    dtypes = _dtype(name, key)
    if dtypes is None or (name in ("logaddexp", "nextafter") and not dtypes[1].startswith(("float", "bfloat"))):
        return None
    common, result = dtypes
    arrays = [np.asarray(a).astype(_wide(common)) for _, a in pairs]
    if name == "pow" and arrays[0].dtype.kind in "iu" and (arrays[1] < 0).any():
        return None  # torch has integers to negative powers, truncated
    if name == "remainder" and arrays[1].dtype.kind == "f" and _has_subnormals(arrays[1]):
        return None  # torch's vectors give NaN where the quotient overflows
    found = f(*arrays)
    return Want(found.astype(_wide(result)), result)


def _has_subnormals(a: Array) -> bool:
    return bool(((a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny)).any())


def reduced(name: str, t: Any, a: Array, over_torch: bool, axis: Any, keepdims: bool) -> Any:
    found = getattr(np, name)(a, axis=axis, keepdims=keepdims)
    if not over_torch:
        return found
    found = np.asarray(found)
    dtype = name_of(t)
    if name in ("sum", "prod"):
        dtype = dtype if dtype in ("bfloat16", "float16", "float32", "float64", "complex64", "complex128") else "int64"
    elif name in ("any", "all", "argmax", "argmin", "count_nonzero"):
        dtype = "bool" if name in ("any", "all") else "int64"
    elif name == "mean":
        dtype = dtype if found.dtype.name != "float64" else "float64"
    return Want(found.astype(_wide(dtype)), dtype)


def forms(name: str, arity: int, t: Any, reduction: bool = False) -> list[str]:
    """The spellings that there are of an operation with these operands."""
    found = ["function", "function", "numpy"]
    if name in METHODS and name not in ("real", "imag") and (name != "equal" or not is_torch(t)):
        found.append("method")  # torch's `equal` is of whole tensors
    if name in LAZY:
        found.append("lazy")
    if name in OPERATORS:
        found += ["operator"] * 2
    if name in IN_PLACE and arity == 2:
        found.append("in place")
    if (
        not reduction
        and hasattr(np, NUMPY.get(name, name))
        and isinstance(getattr(np, NUMPY.get(name, name)), np.ufunc)
    ):
        found.append("out=")
    few = name_of(t) in ("uint16", "uint32", "uint64")  # dtypes of which torch has few functions
    if (
        hasattr(torch, TORCH.get(name, name))
        and not few
        and not name_of(t).startswith(ODD_IN_TORCH.get(name, ("none",)))
    ):
        found += ["torch"] * (2 if is_torch(t) else 1)
    return found


def call(form: str, name: str, tensors: list[Any], **options: Any) -> Any:
    """The operation by one of its spellings."""
    first, rest = tensors[0], tensors[1:]
    match form:
        case "function":
            return getattr(ow, name)(*tensors, **options)
        case "method":
            return getattr(first, name)(*rest, **options)
        case "operator":
            return OPERATORS[name](*tensors)
        case "numpy":
            return getattr(np, NUMPY.get(name, name))(*tensors, **options)
        case "lazy":
            return ow.compute(
                getattr(ow, name)(*(ow.lazy(t) if isinstance(t, ow.Tensor) else t for t in tensors), **options)
            )
        case "torch":
            if "axis" in options:
                axis, keepdims = options.pop("axis"), options.pop("keepdims", False)
                options = {} if axis is None else {"dim": axis}
                options |= {"keepdim": True} if keepdims else {}
            return getattr(torch, TORCH.get(name, name))(*tensors, **options)
        case "in place":
            return IN_PLACE[name](first.clone(), *rest)
        case "out=":
            result = getattr(ow, name)(*tensors)
            if not isinstance(result, ow.Tensor):
                return result
            target = ow.zeros_like(result)
            return getattr(np, NUMPY.get(name, name))(*tensors, out=target)
    raise AssertionError(form)


def held(found: Any, t: Any, a: Array, over_torch: bool) -> Any:
    """What an in-place form of the first operand leaves in it; raises TypeError, ValueError where it cannot hold that."""
    if found is None:
        return None
    array = np.asarray(found.array if isinstance(found, Want) else found)
    if array.shape != a.shape:
        raise ValueError(f"{array.shape} in the place of {a.shape}")
    if over_torch:
        if not torch.can_cast(getattr(torch, found.dtype), getattr(torch, name_of(t))):
            raise TypeError(f"{found.dtype} in the place of {name_of(t)}")
        return Want(array.astype(a.dtype), name_of(t))
    if not np.can_cast(array.dtype, a.dtype, "same_kind"):
        raise TypeError(f"{array.dtype} in the place of {a.dtype}")
    return array.astype(a.dtype)
