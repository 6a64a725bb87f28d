"""Adds to a sparse-dense product the elements outside its structure that a dense operand's infinities and NaNs make."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...interop.sources import asarray
from ...runtime.values import apply
from ...runtime.zero_annihilation import FINITE, PARTS, bounded
from ...storage.buffers import cast, host_dtype, host_values, is_torch
from ...storage.recorded import bare, is_batched
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .pointwise import pointwise

__all__ = ["add_nonfinite"]


def add_nonfinite(op: str, result: Storage, zero: str, array: Any) -> Storage:
    """A product or quotient at the elements of a sparse operand -> with all other elements that are not 0 in NumPy too.

    zero : scalar type of the sparse operand, whose fill value is 0
    array : the dense operand; its shape broadcasts to the result's

    Raises UnsupportedError where the dense operand is a batch of `torch.func.vmap` and there are such elements.
    """
    batch = is_torch(array) and is_batched(array)
    dense = host_values(bare(array, all_of_batch=True) if batch else array)
    if result.scalar not in ("f16", "bf16", *PARTS) or 0 in result.shape:
        return result
    if op == "mul":
        if dense.dtype.kind in "biu":
            return result
        flat = dense.ravel(order="K")
        if np.shares_memory(flat, dense) and bounded(flat, FINITE):
            return result
    with np.errstate(all="ignore"):
        others = apply(op, np.zeros((), host_dtype(zero)), dense)
    if not np.any(others != 0):
        return result
    if batch:
        raise UnsupportedError(
            "a product with infinities or NaN, inside torch.func.vmap: the structure of the result depends on them"
            "\n  help: a loop over the batch"
        )

    specified = Tensor._from_storage(result)
    structure = Tensor._from_storage(result.with_values(np.ones(result.values.shape[0], np.bool_), False))
    unspecified = asarray(others, format="dense" if not others.ndim else "coo")
    added = pointwise("select(P, 0, Z)", {"P": structure, "Z": unspecified})
    noncanonical = result.format.batch_ndim or not result.format.is_unique
    out = pointwise("R + Z", {"R": specified, "Z": added}, format="coo" if noncanonical else None)._storage
    return out.with_values(cast(out.values, result.scalar))  # of integers NumPy's quotients are wider than torch's
