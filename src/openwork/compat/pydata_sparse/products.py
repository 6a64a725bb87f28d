"""Arrays -> arrays joined, and products of arrays, by pydata/sparse's rules for their fill values and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

import openwork as ow

from .base import SparseArray, class_of, is_sparse, unwrapped, wrapped
from .buffers import equivalent
from .coo import COO, as_coo
from .registry import FUNCTIONS, own

__all__ = ["zero_fill"]


def _same_fill(arrays: Any) -> list[Any]:
    """Arrays that are all sparse and of one fill value."""
    given = list(arrays)
    if not given or not all(is_sparse(x) for x in given):
        raise ValueError("All arrays must be instances of SparseArray, at least one.")
    same: list[Any] = [x if isinstance(x, SparseArray) else as_coo(x) for x in given]
    if not all(equivalent(x.fill_value, same[0].fill_value) for x in same):
        raise ValueError("This operation requires consistent fill-values.")
    return same


def zero_fill(*arrays: Any) -> None:
    """Refuse arrays of a fill value that is not 0."""
    for k, x in enumerate(arrays):
        if isinstance(x, SparseArray) and x.size and x.fill_value != 0:
            raise ValueError(
                f"This operation requires zero fill values, but argument {k} had a fill value of {x.fill_value}."
            )


@own
def concatenate(arrays: Any, axis: int = 0, compressed_axes: Any = None) -> Any:
    """Arrays joined along an axis."""
    arrays = _same_fill(arrays)
    found = wrapped(ow.concat([x.tensor for x in arrays], axis=axis), class_of(arrays), arrays[0])
    return found if compressed_axes is None else found.change_compressed_axes(compressed_axes)


FUNCTIONS["concat"] = concatenate


@own
def stack(arrays: Any, axis: int = 0, compressed_axes: Any = None) -> Any:
    """Arrays joined along a new axis."""
    arrays = _same_fill(arrays)
    found = wrapped(ow.stack([x.tensor for x in arrays], axis=axis), class_of(arrays))
    return found if compressed_axes is None else found.change_compressed_axes(compressed_axes)


def _product(name: str, a: Any, b: Any, return_type: Any = None, **kwargs: Any) -> Any:
    """A product: sparse of sparse arrays, dense where one is dense, or what `return_type` says."""
    zero_fill(a, b)
    if not (is_sparse(a) or is_sparse(b)):
        found = getattr(np, name)(a, b, **({} if "axes" not in kwargs else {"axes": kwargs["axes"]}))
    else:
        found = getattr(ow, name)(unwrapped(a), unwrapped(b), **kwargs)
    both = is_sparse(a) and is_sparse(b)
    if return_type is np.ndarray or (return_type is None and not both):
        return found.to_numpy() if isinstance(found, ow.Tensor) else found
    kind = class_of((a, b), "gcxs") if return_type is None else return_type
    return wrapped(ow.asarray(found, format="coo") if isinstance(found, np.ndarray) else found, kind)


@own
def tensordot(a: Any, b: Any, axes: Any = 2, *, return_type: Any = None) -> Any:
    """NumPy's `tensordot`."""
    return _product("tensordot", a, b, return_type, axes=axes)


@own
def matmul(a: Any, b: Any) -> Any:
    """The product of matrices, of stacks of them, or of vectors."""
    return _product("matmul", a, b)


@own
def dot(a: Any, b: Any) -> Any:
    """NumPy's `dot`."""
    return _product("dot", a, b)


@own
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The products of vectors along an axis."""
    if not -min(x1.ndim, x2.ndim) <= axis < min(x1.ndim, x2.ndim) or x1.shape[axis] != x2.shape[axis]:
        raise ValueError("Shapes must match along `axis`.")
    return (np.conj(x1) * x2).sum(axis=axis - max(x1.ndim, x2.ndim) if axis >= 0 and x1.ndim == x2.ndim else axis)


@own
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product of arrays of which one is sparse."""
    if not (is_sparse(a) or is_sparse(b)):
        raise ValueError("Performing this operation would produce a dense result: kron")
    a, b = as_coo(a), as_coo(b)
    zero_fill(*(x for x in (a, b) if x.ndim))
    wide = max(a.ndim, b.ndim)
    ta, tb = (ow.reshape(x.tensor, (1,) * (wide - x.ndim) + x.shape) for x in (a, b))
    left = ow.reshape(ta, tuple(n for e in ta.shape for n in (e, 1)))
    right = ow.reshape(tb, tuple(n for e in tb.shape for n in (1, e)))
    shape = tuple(m * n for m, n in zip(ta.shape, tb.shape, strict=True))
    return COO._of_tensor(ow.reshape(left * right, shape) if wide else ta * tb)


@own
def einsum(*operands: Any, **kwargs: Any) -> Any:
    """Einstein's sums of products; sparse where one operand is."""
    if not operands:
        raise ValueError("No input operands")
    arrays = [x for x in operands if is_sparse(x) or isinstance(x, np.ndarray)]
    zero_fill(*arrays)
    if not isinstance(operands[0], str) and not hasattr(operands[0], "shape"):
        raise TypeError(f"einsum: subscripts or arrays expected, got {operands[0]!r}")
    if not any(is_sparse(x) for x in arrays):
        return np.einsum(*operands, **kwargs)
    dtype, given = kwargs.pop("dtype", None), [unwrapped(x) for x in operands]
    if dtype is not None:
        given = [x.astype(dtype) if hasattr(x, "astype") else x for x in given]
    found = ow.einsum(*given, **kwargs)
    kind = class_of(arrays)
    return wrapped(ow.asarray(found, format="coo") if isinstance(found, np.ndarray) else found, kind)
