"""NumPy's functions that make an array, with `like=` a Tensor: their arguments -> a Tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...tensor.tensor import Tensor
from .registry import numpy_function

__all__: list[str] = []


@numpy_function("array")
def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: str = "K", subok: bool = False, ndmin: int = 0,
    ndmax: int = 0,
) -> Tensor:  # fmt: skip
    """A Tensor of what `object` holds, with at least `ndmin` dimensions; the new ones come first."""
    t = asarray(object, dtype=dtype, copy=copy)
    if 0 < ndmax < t.ndim:
        raise ShapeError(f"numpy.array: {t.ndim} dimensions, and ndmax={ndmax}\n  help: leave ndmax out")
    return t if t.ndim >= ndmin else namespace().reshape(t, (1,) * (ndmin - t.ndim) + t.shape)


@numpy_function("asanyarray", "ascontiguousarray", "asfortranarray")
def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The Tensor that it is, or one of what it holds."""
    return asarray(a, dtype=dtype, device=device, copy=copy)


@numpy_function("identity")
def identity(n: Any, dtype: Any = None) -> Any:
    """The identity matrix in COO."""
    return namespace().eye(n, dtype=dtype)


@numpy_function("tri")
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    """Ones at and below the diagonal `k`, dense."""
    return asarray(np.tri(N, M, k, dtype))


@numpy_function("require")
def require(a: Any, dtype: Any = None, requirements: Any = None) -> Tensor:
    """The Tensor with the dtype; requirements are of memory, which formats describe here."""
    if requirements:
        raise UnsupportedError(
            "numpy.require: requirements of a Tensor\n  help: leave them out; asformat() says how elements lie"
        )
    return asarray(a, dtype=dtype)
