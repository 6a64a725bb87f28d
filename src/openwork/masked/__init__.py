"""Masked tensors: data and mask in one format; what the mask leaves out is missing."""

from __future__ import annotations

from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from .construct import as_masked_tensor, masked_tensor
from .elementwise import binary, lift, select
from .functions import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from .products import (
    attention,
    cross_entropy,
    einsum,
    layer_norm,
    linear,
    matmul,
    mse_loss,
    nll_loss,
)
from .shaping import concat, pad, stack
from .tensor import MaskedTensor

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "attention", "binary", "concat",
    "cross_entropy", "cumprod", "cumsum", "einsum", "layer_norm", "lift", "linear", "log_softmax", "logaddexp",
    "logsumexp", "masked_tensor", "matmul", "mean", "median", "mse_loss", "nll_loss", "norm", "normalize", "pad",
    "prod", "select", "softmax", "softmin", "stack", "std", "sum", "var",
]  # fmt: skip

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_document_all(globals(), __all__)
