"""`from openwork.compat import scipy_sparse as sp`: what scripts for scipy.sparse use, over openwork's tensors.

`sp.csr_array` and the other classes hold a Tensor each (`A.tensor`; `openwork.asarray(A)` is it), compute with its
operations and spell everything as SciPy does. `sp.linalg` and `sp.csgraph` take them, `A.to_scipy()` is SciPy's array
over the same memory.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as _scipys

from ...namespaces import listing as _listing
from . import csgraph, linalg
from .array import Array as _Array
from .array import wrapped as from_scipy
from .classes import (
    bsr_array,
    bsr_matrix,
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_array,
    dia_matrix,
    dok_array,
    dok_matrix,
    lil_array,
    lil_matrix,
    sparray,
    spmatrix,
)
from .construct import hstack, issparse, isspmatrix, vstack
from .module import bridged as _bridged

__all__ = [
    "bsr_array", "bsr_matrix", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csgraph", "csr_array",
    "csr_matrix", "dia_array", "dia_matrix", "dok_array", "dok_matrix", "from_scipy", "hstack", "issparse",
    "isspmatrix", "lil_array", "lil_matrix", "linalg", "sparray", "spmatrix", "vstack",
]  # fmt: skip

__dir__ = _listing(__name__, __all__)


def __getattr__(name: str) -> Any:
    """Whatever else `scipy.sparse` has: its functions over arrays of ours, its warnings and errors."""
    found = getattr(_scipys, name)
    if name.startswith("isspmatrix_"):
        return lambda x: isinstance(x, _Array) and x.kind == "matrix" and x.format == name[-3:]
    return _bridged(found) if callable(found) and not isinstance(found, type) else found
