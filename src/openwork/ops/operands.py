"""Operands as they come: Tensors, arrays, numbers and lists, and the sparse tensors of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.buffers import is_array, is_torch

__all__ = ["adopted", "foreign", "plain"]


def foreign(x: Any) -> bool:
    """Whether `x` is a sparse tensor of another library: SciPy's, torch's or pydata's."""
    kind = type(x)
    if kind is np.ndarray or kind is float or kind is int or getattr(x, "_storage", None) is not None:
        return False
    if is_torch(x):
        import torch

        return x.layout is not torch.strided
    from .sources import is_sparse_source

    return is_sparse_source(x)


def adopted(x: Any) -> Any:
    """A sparse tensor of another library as a Tensor over its buffers, anything else as it is."""
    if not foreign(x):
        return x
    from .sources import asarray

    return asarray(x)


def plain(x: Any) -> Any:
    """An operand that is a sparse Tensor or an array: dense Tensors and lists are arrays."""
    from .tensor import Tensor

    x = adopted(x)
    if isinstance(x, Tensor):
        return x.to_dense() if x.format.is_dense else x
    return x if is_array(x) else np.asarray(x)
