"""openwork: a universal sparse tensor.

One tensor type whose storage format is a value of a small language, and a compiler that makes every operation work
on every format. The functions of this namespace are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .errors import (
    CompilerBug,
    DTypeError,
    FileFormatError,
    FormatError,
    InvariantError,
    ReadOnlyError,
    ShapeError,
    SizeError,
    UnsupportedError,
)
from .format import Format, format
from .ops import dynamo as _dynamo
from .ops import gradients as _gradients
from .ops.dispatch import overridable

if TYPE_CHECKING:
    from . import linalg as linalg
    from . import masked as masked
    from . import nn as nn
    from . import torch as torch
    from .codegen.cache import cache_info as cache_info
    from .codegen.cache import clear_caches as clear_caches
    from .codegen.cache import get_kernel_limit as get_kernel_limit
    from .codegen.cache import set_kernel_limit as set_kernel_limit
    from .codegen.pool import get_num_threads as get_num_threads
    from .codegen.pool import set_num_threads as set_num_threads
    from .io import read as read
    from .io import write as write
    from .masked import MaskedTensor as MaskedTensor
    from .masked import as_masked_tensor as as_masked_tensor
    from .masked import masked_tensor as masked_tensor
    from .ops.addmm import addmm as addmm
    from .ops.construct import *  # noqa: F403
    from .ops.creation import *  # noqa: F403
    from .ops.differences import diff as diff
    from .ops.dtypes import *  # noqa: F403
    from .ops.einsum import einsum as einsum
    from .ops.einsum import mttkrp as mttkrp
    from .ops.einsum import ttm as ttm
    from .ops.einsum import ttv as ttv
    from .ops.explain import explain as explain
    from .ops.functions import *  # noqa: F403
    from .ops.fused import compute as compute
    from .ops.fused import fused as fused
    from .ops.joining import *  # noqa: F403
    from .ops.lazy import lazy as lazy
    from .ops.merge import pointwise as pointwise
    from .ops.namespace import __array_namespace_info__ as __array_namespace_info__
    from .ops.notation import evaluate as evaluate
    from .ops.ordering import argsort as argsort
    from .ops.ordering import nonzero as nonzero
    from .ops.ordering import searchsorted as searchsorted
    from .ops.ordering import sort as sort
    from .ops.products import matmul as matmul
    from .ops.sddmm import sddmm as sddmm
    from .ops.semirings import *  # noqa: F403
    from .ops.sets import *  # noqa: F403
    from .ops.shaping import *  # noqa: F403
    from .ops.softmax import *  # noqa: F403
    from .ops.statistics import *  # noqa: F403
    from .ops.taking import *  # noqa: F403
    from .ops.tensor import Tensor as Tensor
    from .ops.tensor_products import kron as kron
    from .ops.tensor_products import outer as outer
    from .ops.tensor_products import spgemm as spgemm
    from .ops.tensor_products import tensordot as tensordot
    from .ops.tensor_products import vecdot as vecdot
    from .ops.triangles import *  # noqa: F403

__version__ = "0.1.0.dev0"
__array_api_version__ = "2024.12"

_HOMES: dict[str, tuple[str, ...]] = {
    "codegen.cache": ("cache_info", "clear_caches", "get_kernel_limit", "set_kernel_limit"),
    "codegen.pool": ("get_num_threads", "set_num_threads"),
    "io": ("read", "write"),
    "masked": ("MaskedTensor", "as_masked_tensor", "masked_tensor"),
    "ops.addmm": ("addmm",),
    "ops.construct": (
        "asarray", "assemble", "random", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_coo_tensor",
        "sparse_csc_tensor", "sparse_csr_tensor",
    ),
    "ops.creation": (
        "arange", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones",
        "ones_like", "zeros", "zeros_like",
    ),
    "ops.differences": ("diff",),
    "ops.dtypes": (
        "astype", "bool", "can_cast", "complex64", "complex128", "e", "finfo", "float16", "float32", "float64", "iinfo",
        "inf", "int8", "int16", "int32", "int64", "isdtype", "nan", "newaxis", "pi", "result_type", "uint8", "uint16",
        "uint32", "uint64",
    ),
    "ops.einsum": ("einsum", "mttkrp", "ttm", "ttv"),
    "ops.explain": ("explain",),
    "ops.fused": ("compute", "fused"),
    "ops.functions": (
        "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
        "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign",
        "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot",
        "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
        "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
        "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit",
        "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
    ),
    "ops.joining": ("concat", "concatenate", "stack", "unstack"),
    "ops.merge": ("pointwise",),
    "ops.notation": ("evaluate",),
    "ops.lazy": ("lazy",),
    "ops.namespace": ("__array_namespace_info__",),
    "ops.ordering": ("argsort", "nonzero", "searchsorted", "sort"),
    "ops.products": ("matmul",),
    "ops.sddmm": ("sddmm",),
    "ops.semirings": ("Monoid", "Semiring", "monoid", "register_semiring", "semiring"),
    "ops.sets": ("unique_all", "unique_counts", "unique_inverse", "unique_values"),
    "ops.shaping": (
        "broadcast_arrays", "broadcast_to", "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims",
        "repeat", "reshape", "roll", "squeeze", "tile",
    ),
    "ops.softmax": ("log_softmax", "logsumexp", "softmax"),
    "ops.statistics": (
        "all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "max", "mean", "min",
        "prod", "std", "sum", "var",
    ),
    "ops.taking": ("prune", "sparse_mask", "take", "take_along_axis"),
    "ops.tensor": ("Tensor",),
    "ops.tensor_products": ("kron", "outer", "spgemm", "tensordot", "vecdot"),
    "ops.triangles": ("diag", "diagonal", "tril", "triu"),
}  # fmt: skip
"""The modules that public names are loaded from when first used."""

_PLAIN = frozenset((
    "codegen.pool", "io", "masked", "ops.construct", "ops.creation", "ops.explain", "ops.fused", "ops.lazy",
    "ops.namespace", "ops.semirings", "ops.tensor",
))  # fmt: skip
"""Modules whose names are not functions of tensors, or make some: no operand takes these calls over."""

_LAZY = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("linalg", "masked")
_WITH_TORCH = ("nn", "torch")
"""Modules that import torch: there by name, and by no `import *`."""

_DIFFERENTIABLE = {"asarray", "astype"}
_DIFFERENTIABLE |= {
    name
    for home, names in _HOMES.items()
    for name in names
    if home.removeprefix("ops.") in (
        "addmm", "differences", "einsum", "functions", "joining", "merge", "ordering", "products", "sddmm", "shaping",
        "softmax", "statistics", "taking", "tensor_products", "triangles",
    )
}  # fmt: skip
"""The functions of tensors, each of which takes `grad=`."""

__all__ = [
    "CompilerBug",
    "DTypeError",
    "FileFormatError",
    "Format",
    "FormatError",
    "InvariantError",
    "ReadOnlyError",
    "ShapeError",
    "SizeError",
    "UnsupportedError",
    "format",
    *_LAZY,
    *_MODULES,
]


_gradients.source = lambda: import_module(f"{__name__}.torch.rules").RULES


def _substitute() -> None:
    import_module(f"{__name__}.torch.compiled").substitute(__getattr__("matmul"))


_dynamo.substitute = _substitute


def __getattr__(name: str) -> Any:
    if name in _MODULES or name in _WITH_TORCH:
        return import_module(f"{__name__}.{name}")
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'openwork' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    if name in _DIFFERENTIABLE:
        value = _gradients.with_grad(value)
    if home not in _PLAIN and isinstance(value, FunctionType):
        value = overridable(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
