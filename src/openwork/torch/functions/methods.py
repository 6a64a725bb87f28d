"""A Tensor over torch buffers and a name -> torch's method of that name, or its in-place form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ...errors import DTypeError
from ...runtime.gradient_hook import any_dense_gradient
from ...tables import TORCH
from ...tensor.tensor import Tensor
from ..dense_gradient.tensor import DenseGradientTensor, run
from . import elementwise as pointwise_functions
from .call import FUNCTIONS, call

__all__ = ["DTYPES", "NOT_METHODS", "RESHAPING", "method"]

DTYPES = {
    "bool": torch.bool, "byte": torch.uint8, "char": torch.int8, "short": torch.int16, "int": torch.int32,
    "long": torch.int64, "half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32,
    "double": torch.float64, "chalf": torch.complex32, "cfloat": torch.complex64, "cdouble": torch.complex128,
}  # fmt: skip
NOT_METHODS = frozenset(
    ("slice.Tensor", "return_output", "getitem", "sparse_mm_reduce_impl", "linear", "embedding", "pad")
)
"""Names in the tables that are no methods of torch's tensors."""
RESHAPING = frozenset(("t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze"))
"""Functions whose in-place forms change the shape, and move nothing."""


def method(t: Tensor, name: str) -> Callable[..., Any] | None:
    """The method `t.name` where torch's tensors have it, else None."""
    if name in DTYPES:
        return partial(_cast, t, name)
    if not hasattr(torch.Tensor, name) or name in NOT_METHODS:
        return None
    base_name = name.removesuffix("_")
    if (
        base_name not in FUNCTIONS
        and base_name not in pointwise_functions.ELEMENTWISE
        and base_name not in pointwise_functions.BINARY
        and base_name not in TORCH
    ):
        return None
    function = partial(_call_method, t, base_name)
    if name == base_name:
        return function
    if base_name in RESHAPING:
        return lambda *args, **options: _reshape_in_place(t, function(*args, **options))
    return lambda *args, **options: t._assign_result(name, function(*args, **options))


def _cast(t: Tensor, name: str, memory_format: Any = None, **options: Any) -> Any:
    """The elements in the dtype that a method is named after; a memory format plays no part."""
    if options:
        raise DTypeError(f"{name}: no argument {next(iter(options))!r}\n  expected: memory_format alone")
    return t.astype(DTYPES[name], copy=False)


def _reshape_in_place(t: Tensor, result: Tensor) -> Tensor:
    """Give a tensor the shape, format and buffers of a result over its values; of a leaf the gradient stays behind."""
    if isinstance(t, DenseGradientTensor):
        return t._take_over(result)
    t._storage = result._storage
    return t


def _call_method(t: Tensor, name: str, *args: Any, **options: Any) -> Any:
    """Call the function of a method, with dense gradients where an operand has them."""
    function = getattr(torch.Tensor, name, getattr(torch, name, None))
    operands = (t, *args)
    if any_dense_gradient((*operands, *options.values())):
        return run(lambda *a, **k: call(function, a, k), name, "dense", operands, options)
    return call(function, operands, options)
