"""Sparse tensors in any storage format, with NumPy's functions, SciPy's solvers and torch's gradients.

>>> import numpy as np, openwork as ow
>>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")      # from lists, NumPy, SciPy, torch, pandas, networkx
>>> A @ np.array([10.0, 20.0])                              # an array, as in SciPy
array([40., 10.])
>>> B = A.asformat("bsr(2, 2)")                             # another format; every operation takes every format
>>> C = 2 * A + B.T
>>> C.to_numpy(), B.nbytes
(array([[0., 5.],
       [4., 0.]]), 44)

In and out    ow.asarray, ow.read, ow.write, ow.random, ow.zeros, ow.eye;  A.to_numpy(), A.to_scipy(), A.to_torch()
Formats       ow.format("csr"), A.format, A.asformat(f), ow.advise(A) says which one is fast
Arithmetic    A @ x, A + B, A * B, A > 0, A[2:5], ow.sum, ow.where, ow.concat, ...: the array API, by NumPy's names
Expressions   ow.einsum, ow.evaluate("C[i,k] += A[i,j] * B[j,k]", ...), @ow.fused and ow.lazy for one pass over all
Fields        ow.linalg (solvers, factorisations, eigenvalues), ow.graph, ow.decomposition, ow.masked (missing values),
              ow.nn and ow.torch (layers and gradients over torch), ow.plot
What happens  A.pos(l), A.crd(l), A.values are what is stored; ow.explain(f, A, x) shows the loops that ran

Over torch's memory (`ow.asarray(A, like="torch")`) functions have gradients, and take `grad="dense"` for those of
elements that are not stored. `help(ow.name)` has an example of each. `openwork doctor` checks an installation.
"""

from __future__ import annotations

import builtins
from importlib import import_module
from types import FunctionType
from typing import Any

from . import quiet_interrupt as _quiet_interrupt  # noqa: F401 - before what takes time
from .errors import (
    BlockError,
    CompilerBug,
    ConvergenceWarning,
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
from .homes import HOMES
from .namespaces import hint as _hint
from .provided import loader as _loader
from .provided import provided as _provided
from .runtime import dynamo as _dynamo
from .runtime import gradient_hook as _gradients
from .runtime.documentation import document_all as _document_all
from .runtime.overrides import overridable, with_hints
from .storage.buffers import at_first_tensor as _at_first_tensor
from .tables import GRADIENTS, NAMES, OPERANDS

__version__ = "0.1.0.dev0"
__array_api_version__ = "2024.12"

_OTHERS: dict[str, tuple[str, ...]] = {
    "advice": ("Advice", "advise"),
    "codegen.cache": ("cache_info", "clear_caches", "get_kernel_limit", "set_kernel_limit"),
    "codegen.notice": ("get_compile_notice", "set_compile_notice"),
    "codegen.pool": ("get_num_threads", "set_num_threads"),
    "io": ("convert", "open", "read", "write"),
    "linalg": ("Assembler", "assembler"),
    "masked": ("MaskedTensor", "as_masked_tensor", "masked_tensor"),
    "interop.constructors": ("assemble",),
    "interop.layouts": (
        "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
        "sparse_csc_tensor", "sparse_csr_tensor",
    ),
    "interop.sklearn": ("to_sklearn",),
    "interop.triplets": ("from_triplets", "to_triplets"),
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

_LAZY = {**{name: HOMES[name] for name in NAMES}, **{name: home for home, names in _OTHERS.items() for name in names}}
"""The modules that public names are loaded from when first used."""
_MODULES = ("decomposition", "graph", "linalg", "masked", "plot")
_BY_NAME = ("compat", "io", "lib")
"""Modules that are there by name; `import *` would put one before Python's own."""
_OPTIONAL = ("dask", "nn", "torch")
"""Modules that import torch or Dask: there by name, and by no `import *`."""


__all__ = [
    "BlockError",
    "CompilerBug",
    "ConvergenceWarning",
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


_document_all(globals(), ("format", "Format"))


def _load(name: str) -> None:
    """Import the module that provides a name: of a front end, which the name begins with, by the table there."""
    home = HOMES.get(name)
    if home is None:
        package = name.partition(" ")[0]
        home = f"{package}.{import_module(f'{__name__}.{package}.homes').HOMES[name]}"
    import_module(f"{__name__}.{home}")


_loader.append(_load)
_dynamo.substitute = lambda: _provided("torch substitute")(__getattr__("matmul"))
_at_first_tensor.append(lambda: _provided("masked register_nodes")())


def __getattr__(name: str) -> Any:
    if name in (*_MODULES, *_BY_NAME, *_OPTIONAL):
        return import_module(f"{__name__}.{name}")
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'openwork' has no attribute {name!r}{_hint(name, __dir__())}", name=name)
    value = getattr(import_module(f"{__name__}.{home}"), name)
    if name in GRADIENTS:
        value = _gradients.with_grad(value)
    if name in OPERANDS and isinstance(value, FunctionType):
        value = overridable(value)
    elif isinstance(value, FunctionType):
        value = with_hints(value)
    _document_all({name: value}, (name,))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "format", *(name for name in globals() if name.startswith("__"))})
