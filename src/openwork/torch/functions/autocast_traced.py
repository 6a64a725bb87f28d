"""Operands of a product in the dtype that torch.autocast asks for, where it is on; torch.compile may trace it."""

from __future__ import annotations

from typing import Any

import torch

from ...tensor.dtypes import astype
from ...tensor.tensor import Tensor

__all__ = ["LOWER_PRECISION", "autocast"]

LOWER_PRECISION = frozenset((
    "mm", "matmul", "rmatmul", "bmm", "addmm", "baddbmm", "addbmm", "linear", "inner", "einsum", "tensordot",
    "multi_dot", "chain_matmul", "sparse_mm", "sparse_addmm", "smm", "bilinear",
))  # fmt: skip
"""torch's products of matrices, whose operands its autocast casts on a CPU; products of vectors are not among them."""


def autocast(*operands: Any) -> tuple[Any, ...]:
    """Tensors, torch tensors and others, with those of real floating point in autocast's dtype; else as they are.

    float64 stays, as in torch, and so do all where none is over torch. Where torch.compile traces, Tensors stay.
    """
    flat = [part for x in operands for part in (x if type(x) in (tuple, list) else (x,))]
    device = next((v.device.type for x in flat if isinstance(v := _values(x), torch.Tensor)), None)
    if device is None or not torch.is_autocast_enabled(device):
        return operands
    dtype = torch.get_autocast_dtype(device)
    return tuple([_cast(x, dtype) for x in operands])


def _values(x: Any) -> Any:
    return x._raw_storage.values if isinstance(x, Tensor) else x


def _cast(x: Any, dtype: torch.dtype) -> Any:
    if type(x) in (tuple, list):
        return type(x)([_cast(part, dtype) for part in x])
    values = _values(x)
    if not isinstance(values, torch.Tensor) or not values.is_floating_point() or values.dtype in (dtype, torch.float64):
        return x
    if not isinstance(x, Tensor):
        return x.to(dtype)
    return x if torch.compiler.is_compiling() else astype(x, dtype)
