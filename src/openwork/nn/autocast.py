"""Operands of a product in the dtype that torch.autocast asks for, where it is on."""

from __future__ import annotations

from typing import Any

import torch

from ..tensor.dtypes import astype
from ..tensor.tensor import Tensor

__all__ = ["autocast"]


def autocast(*operands: Any) -> tuple[Any, ...]:
    """Tensors, torch tensors and None, with those of real floating point in autocast's dtype; else as they are.

    float64 stays, as in torch. Where torch.compile traces, which it does here and not in `torch.functions.autocast`,
    Tensors stay as they are.
    """
    device = next((_values(x).device.type for x in operands if x is not None), "cpu")
    if not torch.is_autocast_enabled(device):
        return operands
    dtype = torch.get_autocast_dtype(device)
    return tuple([_cast(x, dtype) for x in operands])


def _values(x: Any) -> Any:
    return x._raw_storage.values if isinstance(x, Tensor) else x


def _cast(x: Any, dtype: torch.dtype) -> Any:
    if x is None or not _values(x).is_floating_point() or _values(x).dtype in (dtype, torch.float64):
        return x
    if not isinstance(x, Tensor):
        return x.to(dtype)
    return x if torch.compiler.is_compiling() else astype(x, dtype)
