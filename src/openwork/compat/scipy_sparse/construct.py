"""SciPy's functions that make and join sparse arrays: matrices are joined by openwork."""

from __future__ import annotations

from typing import Any

import scipy.sparse as scipys

import openwork as ow

from .arithmetic import tensor_of
from .array import Array, wrapped
from .module import bridged

__all__ = ["hstack", "issparse", "isspmatrix", "vstack"]


def issparse(x: Any) -> bool:
    """Whether `x` is a sparse array or matrix, of ours or of SciPy's."""
    return isinstance(x, Array) or bool(scipys.issparse(x))


def isspmatrix(x: Any) -> bool:
    """Whether `x` is a sparse matrix, of ours or of SciPy's."""
    return (isinstance(x, Array) and x.kind == "matrix") or bool(scipys.isspmatrix(x))


def _joined(function: Any, blocks: Any, format: str | None, dtype: Any) -> Any:
    """Blocks of rank 2 joined by openwork; what has other ranks, or no sparse array among it, by SciPy."""
    ours = getattr(scipys, function)
    blocks = list(blocks)
    tensors = [tensor_of(b) for b in blocks]
    if any(t is None or t.ndim != 2 for t in tensors) or not tensors:
        return bridged(ours)(blocks, format=format, dtype=dtype)
    kinds = {b.format for b in blocks if hasattr(b, "format")}
    format = format or (kinds.pop() if kinds <= {"csr"} or kinds <= {"csc"} else "coo")
    made = getattr(ow, function)(tensors, dtype=dtype).to_scipy(format)
    kind = (
        "array" if any(getattr(b, "kind", "") == "array" or isinstance(b, scipys.sparray) for b in blocks) else "matrix"
    )
    return wrapped(made) if kind == "array" else wrapped(getattr(scipys, f"{format}_matrix")(made))


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices side by side."""
    return _joined("hstack", blocks, format, dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices one above the other."""
    return _joined("vstack", blocks, format, dtype)
