"""torch's functions that solve with a sparse matrix, or take the logarithm of its determinant."""

from __future__ import annotations

from typing import Any

import torch

from ...linalg import direct
from ...tensor.tensor import Tensor
from .registry import torch_function

__all__ = ["logdet", "spsolve"]


@torch_function("logdet")
def logdet(a: Any) -> Tensor:
    """The logarithm of the determinants of square matrices: NaN of negative ones."""
    sign, log = (x.to_dense() for x in direct.slogdet(a))
    return Tensor._from_dense(log + sign.log() if sign.is_complex() else torch.where(sign < 0, torch.nan, log))


@torch_function("spsolve")
def spsolve(input: Any, other: Any, *, left: bool = True) -> Any:
    """`torch.sparse.spsolve`: x with `input @ x = other`, or `x @ input = other`."""
    if left:
        return direct.solve(input, other)
    x = direct.solve(input.mT, other.mT if other.ndim > 1 else other)
    return x.mT if x.ndim > 1 else x
