"""openwork: a universal sparse tensor.

One tensor type whose storage format is a value of a small language, and a compiler that makes every operation work
on every format. The functions of this namespace are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    CompilerBug,
    DTypeError,
    FileFormatError,
    FormatError,
    InvariantError,
    ShapeError,
    UnsupportedError,
)
from .format import Format, format

if TYPE_CHECKING:
    from .codegen.pool import get_num_threads, set_num_threads
    from .io import read, write
    from .ops.construct import (
        asarray,
        assemble,
        random,
        sparse_bsc_tensor,
        sparse_bsr_tensor,
        sparse_coo_tensor,
        sparse_csc_tensor,
        sparse_csr_tensor,
    )
    from .ops.einsum import einsum, mttkrp, ttm, ttv
    from .ops.explain import explain
    from .ops.products import matmul
    from .ops.sddmm import sddmm
    from .ops.tensor import Tensor

__version__ = "0.1.0.dev0"

_LAZY = {
    "Tensor": "ops.tensor",
    **dict.fromkeys(
        (
            "asarray",
            "assemble",
            "random",
            "sparse_bsc_tensor",
            "sparse_bsr_tensor",
            "sparse_coo_tensor",
            "sparse_csc_tensor",
            "sparse_csr_tensor",
        ),
        "ops.construct",
    ),
    **dict.fromkeys(("einsum", "mttkrp", "ttm", "ttv"), "ops.einsum"),
    **dict.fromkeys(("get_num_threads", "set_num_threads"), "codegen.pool"),
    **dict.fromkeys(("read", "write"), "io"),
    "explain": "ops.explain",
    "matmul": "ops.products",
    "sddmm": "ops.sddmm",
}

__all__ = [
    "CompilerBug",
    "DTypeError",
    "FileFormatError",
    "Format",
    "FormatError",
    "InvariantError",
    "ShapeError",
    "Tensor",
    "UnsupportedError",
    "asarray",
    "assemble",
    "einsum",
    "explain",
    "format",
    "get_num_threads",
    "matmul",
    "mttkrp",
    "random",
    "read",
    "sddmm",
    "set_num_threads",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "ttm",
    "ttv",
    "write",
]


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'openwork' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
