"""An operand of any kind -> a Tensor or an array: other libraries' sparse tensors, lists and numbers are converted."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..provided import provides
from ..storage.buffers import PLAIN_TENSORS, is_array, is_torch
from ..tensor.one_library import one_library
from ..tensor.tensor import Tensor
from .dask import register
from .sources import asarray, is_sparse_source, refuse_masked

__all__ = ["adopt_foreign", "adopted", "is_container", "is_foreign_sparse", "is_operand", "sparse_or_array"]


def is_foreign_sparse(x: Any) -> bool:
    """Whether `x` is a sparse tensor of another library: SciPy's, torch's, pydata's or pandas'."""
    cls = type(x)
    if cls is np.ndarray or cls is float or cls is int or hasattr(cls, "_raw_storage"):
        return False
    if getattr(x, "_storage", None) is not None:
        return False
    if is_torch(x):
        import torch

        return x.layout is not torch.strided

    if isinstance(x, np.ma.MaskedArray):
        refuse_masked(x)
        return False
    return is_sparse_source(x)


def adopt_foreign(x: Any) -> Any:
    """A sparse tensor of another library -> a Tensor over its buffers; anything else as it is."""
    if not is_foreign_sparse(x):
        return x

    return asarray(x)


_NOT_NUMBERS = (str, bytes, bytearray, np.character, np.void, np.object_, np.datetime64, np.timedelta64)
_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")
"""Attributes of types that can be converted to arrays."""


@provides("is_container")
def is_container(cls: type) -> bool:
    """Whether its objects are arrays of arrays, of Dask or xarray, whose operators and functions take Tensors.

    Dask's take what they know as chunks: they are told of Tensors when the first of them is met.
    """
    if not hasattr(cls, "__dask_graph__") or not hasattr(cls, "__radd__"):
        return False
    if "dask.array" in sys.modules:
        register()
    return True


@provides("is_operand")
def is_operand(x: Any) -> bool:
    """Whether an operator takes `x`: a number, a list or array of them, or a sparse tensor of any library."""
    if isinstance(x, _NOT_NUMBERS) or is_container(type(x)):
        return False
    if isinstance(x, np.generic | int | float | complex | Sequence | memoryview | array) or is_array(x):
        return True
    return is_foreign_sparse(x) or any(hasattr(type(x), name) for name in _ARRAY_PROTOCOLS)


def sparse_or_array(x: Any) -> Any:
    """An operand -> a sparse Tensor or an array; dense Tensors and lists become arrays."""
    if type(x) is np.ndarray or (type(x) in PLAIN_TENSORS and x.layout is sys.modules["torch"].strided):
        return x
    if type(x) is not Tensor:
        x = adopt_foreign(x)
    if isinstance(x, Tensor):
        return x.to_dense() if x._raw_storage.format.is_dense else x
    return x if is_array(x) else np.asarray(x)


def adopted(a: Any, b: Any) -> Sequence[Any]:
    """Two operands as users give them -> Tensors and arrays over buffers of one library; see `one_library`."""
    first = a._raw_storage.values if type(a) is Tensor else a
    second = b._raw_storage.values if type(b) is Tensor else b
    if type(first) is np.ndarray and type(second) is np.ndarray:
        return a, b
    if type(first) in PLAIN_TENSORS and type(second) in PLAIN_TENSORS:
        dense = sys.modules["torch"].strided
        if first.layout is dense and second.layout is dense:
            return a, b
    return one_library(adopt_foreign(a), adopt_foreign(b))
