"""Masked tensors: data and mask in one format; what the mask leaves out is missing."""

from __future__ import annotations

from .construct import as_masked_tensor, masked_tensor
from .elementwise import binary, lift, select
from .products import (
    attention,
    cross_entropy,
    einsum,
    layer_norm,
    linear,
    log_softmax,
    matmul,
    mse_loss,
    nll_loss,
    normalize,
    softmax,
)
from .shaping import concat, pad, stack
from .tensor import MaskedTensor

__all__ = [
    "MaskedTensor", "as_masked_tensor", "attention", "binary", "concat", "cross_entropy", "einsum", "layer_norm",
    "lift", "linear", "log_softmax", "masked_tensor", "matmul", "mse_loss", "nll_loss", "normalize", "pad", "select",
    "softmax", "stack",
]  # fmt: skip
