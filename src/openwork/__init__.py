"""openwork: a universal sparse tensor.

One tensor type whose storage format is a value of a small language, and a compiler that makes every operation work
on every format. The functions of this namespace are loaded when first used.
"""

from __future__ import annotations

import builtins
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
from .format import Format
from .format import format as format
from .runtime import dynamo as _dynamo
from .runtime import gradient_hook as _gradients
from .runtime.overrides import overridable
from .tables import GRADIENTS, HOMES, OPERANDS

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
    from .fusion.explain import Plan as Plan
    from .fusion.explain import explain as explain
    from .fusion.notation import evaluate as evaluate
    from .fusion.program import compute as compute
    from .fusion.program import fused as fused
    from .interop.constructors import *  # noqa: F403
    from .io import read as read
    from .io import write as write
    from .masked import MaskedTensor as MaskedTensor
    from .masked import as_masked_tensor as as_masked_tensor
    from .masked import masked_tensor as masked_tensor
    from .ops.creation import *  # noqa: F403
    from .ops.elementwise.functions import *  # noqa: F403
    from .ops.elementwise.pointwise import pointwise as pointwise
    from .ops.indexing.taking import *  # noqa: F403
    from .ops.manipulation.differences import diff as diff
    from .ops.manipulation.joining import *  # noqa: F403
    from .ops.manipulation.shaping import *  # noqa: F403
    from .ops.manipulation.triangles import *  # noqa: F403
    from .ops.namespace import __array_namespace_info__ as __array_namespace_info__
    from .ops.products.addmm import addmm as addmm
    from .ops.products.einsum import einsum as einsum
    from .ops.products.einsum import mttkrp as mttkrp
    from .ops.products.einsum import ttm as ttm
    from .ops.products.einsum import ttv as ttv
    from .ops.products.matmul import matmul as matmul
    from .ops.products.sddmm import sddmm as sddmm
    from .ops.products.spgemm import spgemm as spgemm
    from .ops.products.tensor_products import kron as kron
    from .ops.products.tensor_products import outer as outer
    from .ops.products.tensor_products import tensordot as tensordot
    from .ops.products.tensor_products import vecdot as vecdot
    from .ops.random import random as random
    from .ops.reductions.nan import *  # noqa: F403
    from .ops.reductions.order_statistics import median as median
    from .ops.reductions.order_statistics import topk as topk
    from .ops.reductions.softmax import *  # noqa: F403
    from .ops.reductions.statistics import *  # noqa: F403
    from .ops.sets import *  # noqa: F403
    from .ops.sorting import argsort as argsort
    from .ops.sorting import nonzero as nonzero
    from .ops.sorting import searchsorted as searchsorted
    from .ops.sorting import sort as sort
    from .runtime.semirings import *  # noqa: F403
    from .tensor.dtypes import *  # noqa: F403
    from .tensor.lazy import Lazy as Lazy
    from .tensor.lazy import lazy as lazy
    from .tensor.tensor import Tensor as Tensor

__version__ = "0.1.0.dev0"
__array_api_version__ = "2024.12"

_OTHERS: dict[str, tuple[str, ...]] = {
    "codegen.cache": ("cache_info", "clear_caches", "get_kernel_limit", "set_kernel_limit"),
    "codegen.pool": ("get_num_threads", "set_num_threads"),
    "io": ("read", "write"),
    "masked": ("MaskedTensor", "as_masked_tensor", "masked_tensor"),
    "interop.constructors": (
        "assemble", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
        "sparse_csr_tensor",
    ),
    "tensor.dtypes": (
        "bool", "complex64", "complex128", "e", "finfo", "float16", "float32", "float64", "iinfo", "inf", "int8",
        "int16", "int32", "int64", "isdtype", "nan", "newaxis", "pi", "uint8", "uint16", "uint32", "uint64",
    ),
    "fusion.explain": ("Plan", "explain"),
    "fusion.program": ("compute", "fused"),
    "tensor.lazy": ("Lazy", "lazy"),
    "runtime.semirings": ("Monoid", "Semiring", "monoid", "register_semiring", "semiring"),
    "tensor.tensor": ("Tensor",),
}  # fmt: skip
"""The modules of public names that are no operations."""

_LAZY = {**HOMES, **{name: home for home, names in _OTHERS.items() for name in names}}
"""The modules that public names are loaded from when first used."""
_MODULES = ("linalg", "masked")
_WITH_TORCH = ("nn", "torch")
"""Modules that import torch: there by name, and by no `import *`."""


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
    *(name for name in _LAZY if not hasattr(builtins, name)),
    *_MODULES,
]
"""What `import *` brings: no name of Python's own."""


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
    if name in GRADIENTS:
        value = _gradients.with_grad(value)
    if name in OPERANDS and isinstance(value, FunctionType):
        value = overridable(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "format", *(name for name in globals() if name.startswith("__"))})
