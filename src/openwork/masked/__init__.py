"""Masked tensors: data and mask in one format; what the mask leaves out is missing."""

from __future__ import annotations

from .construct import as_masked_tensor, masked_tensor
from .elementwise import binary, lift, select
from .shaping import concat, pad, stack
from .tensor import MaskedTensor

__all__ = ["MaskedTensor", "as_masked_tensor", "binary", "concat", "lift", "masked_tensor", "pad", "select", "stack"]
