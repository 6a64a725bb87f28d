"""`out=`, `where=`, `dtype=` and `casting=` of NumPy's functions: a result -> what the caller gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...storage.buffers import is_torch, numpy_dtype, scalar_name
from ...tensor.casting import may_cast, plain_dtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor

__all__ = ["cast_as", "select", "store"]


def cast_as(x: Any, dtype: Any) -> Any:
    """An operand in the dtype that a loop takes; Python's scalars by their value."""
    if isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic):
        return numpy_dtype(scalar_name(dtype)).type(x)
    if not hasattr(x, "dtype"):
        x = asarray(x)
    if plain_dtype(x) == plain_dtype(dtype):
        return x
    return x.to(_torch_dtype(dtype)) if is_torch(x) else x.astype(dtype)


def _torch_dtype(dtype: Any) -> Any:
    import torch

    return getattr(torch, str(plain_dtype(dtype)))


def select(mask: Any, result: Any, otherwise: Any) -> Any:
    """`result` where the mask is true, `otherwise` elsewhere, zero for None, as nothing says what is there."""
    if mask is True:
        return result
    ow = namespace()
    mask = asarray(mask)
    if mask._storage.scalar != "bool":
        raise DTypeError(f"where= is a mask of bool; got dtype {mask.dtype}\n  help: compare it with something")
    return ow.where(mask, result, 0 if otherwise is None else otherwise)


def store(name: str, result: Any, out: Any, casting: str = "same_kind", where: Any = True) -> Any:
    """`out`, with the elements of `result` where `where` is true: an array, or a Tensor, which keeps format and dtype.

    Raises ShapeError where the result does not broadcast to `out`, DTypeError where `casting` forbids it.
    """
    if is_lazy(result):
        result = result.compute()
    if not isinstance(out, np.ndarray | Tensor):
        raise UnsupportedError(
            f"numpy.{name}: out= is of type {type(out).__name__}\n  supported: a Tensor, an array of NumPy"
        )
    shape, target = tuple(np.shape(result)), tuple(out.shape)
    if len(shape) > len(target) or any(m not in (1, n) for m, n in zip(shape[::-1], target[::-1], strict=False)):
        raise ShapeError(f"{name}: a result of shape {shape} for out= of shape {target}\n  help: make them equal")
    if hasattr(result, "dtype"):
        may_cast(result, out, casting, name)
    if isinstance(out, np.ndarray):
        np.copyto(out, _host(result), casting="unsafe", where=_host(where))
        return out
    stored = select(where, asarray(result), out)
    stored = namespace().broadcast_to(stored, target) if stored.shape != target else stored
    return out._assign_result(
        name, stored.astype(out.dtype, copy=False) if plain_dtype(stored) != plain_dtype(out) else stored
    )


def _host(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, Tensor) else x
