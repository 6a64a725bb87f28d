"""torch's functions as methods of Tensors over torch buffers, and their in-place forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..runtime.gradient_hook import any_full
from ..tables import TORCH
from ..tensor.tensor import Tensor
from . import pointwise_functions as single
from .full import run
from .functions import FUNCTIONS, call

__all__ = ["method"]

_DTYPES = {
    "bool": torch.bool, "byte": torch.uint8, "char": torch.int8, "short": torch.int16, "int": torch.int32,
    "long": torch.int64, "half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32,
    "double": torch.float64, "chalf": torch.complex32, "cfloat": torch.complex64, "cdouble": torch.complex128,
}  # fmt: skip
_HIDDEN = frozenset(("slice.Tensor", "return_output", "getitem", "sparse_mm_reduce_impl", "linear", "embedding", "pad"))
"""Names in the tables that are no methods of torch's tensors."""


def method(t: Tensor, name: str) -> Callable[..., Any] | None:
    """What `t.name` is, where torch's tensors have it: a function of openwork's; None elsewhere."""
    if name in _DTYPES:
        return lambda **_: t.astype(_DTYPES[name], copy=False)
    if not hasattr(torch.Tensor, name) or name in _HIDDEN:
        return None
    own = name.removesuffix("_")
    if own not in FUNCTIONS and own not in single.ELEMENTWISE and own not in single.BINARY and own not in TORCH:
        return None
    function = partial(_called, t, own)
    if name == own:
        return function
    return lambda *args, **options: t._becomes(name, function(*args, **options))


def _called(t: Tensor, name: str, *args: Any, **options: Any) -> Any:
    """The method's function, by the protocol that the function itself takes: that of an operand of full gradient."""
    function = getattr(torch.Tensor, name, getattr(torch, name, None))
    operands = (t, *args)
    if any_full((*operands, *options.values())):
        return run(lambda *a, **k: call(function, a, k), name, "dense", operands, options)
    return call(function, operands, options)
