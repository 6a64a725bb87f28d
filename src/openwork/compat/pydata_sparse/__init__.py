"""`from openwork.compat import pydata_sparse as sparse`: what scripts for pydata/sparse use, over openwork's tensors.

`sparse.COO`, `GCXS`, `DOK`, `CSR` and `CSC` hold pydata/sparse's buffers; `A.tensor` (or `openwork.asarray(A)`) is a
Tensor over the same values, and every operation is openwork's on it. `__all__` is that of pydata/sparse.
"""

from __future__ import annotations

import sys as _sys
from typing import Any

from ...namespaces import listing as _listing
from .base import CLASSES as _CLASSES
from .base import SparseArray, elemwise
from .compressed import CSC as CSC
from .compressed import CSR as CSR
from .compressed import GCXS
from .coo import COO, as_coo
from .creation import (
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    load_npz,
    ones,
    ones_like,
    random,
    save_npz,
    zeros,
    zeros_like,
)
from .dok import DOK
from .functions import named as _named
from .functions import namespace_info as __array_namespace_info__  # noqa: F401

__all__ = [
    "COO", "DOK", "GCXS", "SparseArray", "abs", "acos", "acosh", "add", "all", "any", "argmax", "argmin", "argwhere",
    "asCOO", "as_coo", "asarray", "asin", "asinh", "asnumpy", "astype", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "ceil", "clip", "complex128", "complex64",
    "concat", "concatenate", "conj", "copysign", "cos", "cosh", "diagonal", "diagonalize", "diff", "divide", "dot", "e",
    "einsum", "elemwise", "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "finfo", "flip",
    "float16", "float32", "float64", "floor", "floor_divide", "full", "full_like", "greater", "greater_equal", "hypot",
    "iinfo", "imag", "inf", "int16", "int32", "int64", "int8", "interp", "isdtype", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "kron", "less", "less_equal", "load_npz", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean",
    "min", "minimum", "moveaxis", "multiply", "nan", "nanmax", "nanmean", "nanmin", "nanprod", "nanreduce", "nansum",
    "negative", "newaxis", "nextafter", "nonzero", "not_equal", "ones", "ones_like", "outer", "pad", "permute_dims",
    "pi", "positive", "pow", "prod", "random", "real", "reciprocal", "remainder", "repeat", "reshape", "result_type",
    "roll", "round", "save_npz", "sign", "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std",
    "subtract", "sum", "take", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc", "uint16", "uint32",
    "uint64", "uint8", "unique_counts", "unique_values", "unstack", "var", "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip

__dir__ = _listing(__name__, __all__)
__array_api_version__ = "2024.12"


def __getattr__(name: str) -> Any:
    """The rest of `__all__`, and NumPy's `transpose` and `concat`: made when first asked for."""
    if name not in __all__ and name != "transpose":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _named(name)
    return found


_CLASSES["module"] = _sys.modules[__name__]
