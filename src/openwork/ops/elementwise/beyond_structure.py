"""A sparse result with the elements that a dense operand's infinities and NaNs make outside of its structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interop.sources import asarray
from ...runtime.values import apply
from ...runtime.zero_annihilation import FINITE, PARTS, bounded
from ...storage.buffers import numpy_dtype, to_numpy
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .pointwise import pointwise

__all__ = ["beyond"]


def beyond(op: str, result: Storage, zero: str, array: Any) -> Storage:
    """A product or quotient at the elements of a sparse operand, with what NumPy has at all others where that is not 0.

    zero : scalar type of the sparse operand, whose fill value is 0
    array : the dense operand; its shape broadcasts to the result's
    """
    dense = to_numpy(array, detach=True)
    if result.scalar not in ("f16", "bf16", *PARTS) or 0 in result.shape:
        return result
    if op == "mul":
        if dense.dtype.kind in "biu":
            return result
        flat = dense.ravel(order="K")
        if np.shares_memory(flat, dense) and bounded(flat, FINITE):
            return result
    with np.errstate(all="ignore"):
        others = apply(op, np.zeros((), numpy_dtype(zero)), dense)
    if not np.any(others != 0):
        return result

    found = Tensor._from_storage(result)
    there = Tensor._from_storage(result.with_values(np.ones(result.values.shape[0], np.bool_), False))
    more = asarray(others, format="dense" if not others.ndim else "coo")
    outside = pointwise("select(P, 0, Z)", {"P": there, "Z": more})
    loose = result.format.batch_ndim or not result.format.is_unique
    return pointwise("R + Z", {"R": found, "Z": outside}, format="coo" if loose else None)._storage
