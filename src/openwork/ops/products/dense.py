"""Products of dense arrays alone, by their library: of torch's in the dtype that they promote to, bool included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import tuning
from ...errors import DTypeError
from ...runtime.promote import promote
from ...storage.buffers import Array, as_array, cast, is_torch, scalar_of

__all__ = ["dense_matmul", "dense_product"]


def dense_product(inputs: tuple[str, ...], output: str, values: Sequence[Any]) -> Array:
    """The sum of products of dense arrays, by the `einsum` of torch where one is torch's, else NumPy's."""
    subscripts = f"{','.join(inputs)}->{output}"
    like = next((x for x in values if is_torch(x)), None)
    if like is None:
        extents = {c: n for term, x in zip(inputs, values, strict=True) for c, n in zip(term, x.shape, strict=True)}
        by_blas = len(values) > 1 and math.prod(extents.values()) >= tuning.EINSUM_BLAS_WORK
        with np.errstate(all="ignore"):  # as without BLAS
            return np.asarray(np.einsum(subscripts, *values, optimize=by_blas))
    import torch

    return _by_torch(lambda *x: torch.einsum(subscripts, *x), [as_array(x, like=like) for x in values], "einsum")


def dense_matmul(a: Any, b: Any) -> Any:
    """`a @ b` of two arrays of one library."""
    if not is_torch(a) or (a.dtype == b.dtype and a.dtype.itemsize > 1):
        return a @ b
    return _by_torch(lambda x, y: x @ y, (a, b), "matmul")


def _by_torch(function: Callable[..., Any], arrays: Sequence[Any], name: str) -> Array:
    """torch's function, which takes one dtype and no bool and sums small integers in 64 bits, in the promoted dtype."""
    scalar = promote(tuple(scalar_of(x) for x in arrays), "torch")
    computed = "f32" if scalar == "bool" else scalar  # a sum of ones in which is never 0
    try:
        result = function(*(cast(x, computed) for x in arrays))
    except NotImplementedError as error:
        dtypes = ", ".join(str(x.dtype) for x in arrays)
        raise DTypeError(f"{name} does not take {dtypes}: {error}\n  help: convert with .astype(...)") from error
    return cast(result != 0 if scalar == "bool" else result, scalar)
