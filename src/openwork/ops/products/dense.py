"""Products of dense arrays alone, by their library: of torch's in the dtype that they promote to, bool included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
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
        if len(values) == 2 and (pair := _pair(inputs, output, values)) is not None:
            return pair
        extents = {c: n for term, x in zip(inputs, values, strict=True) for c, n in zip(term, x.shape, strict=True)}
        by_blas = len(values) > 1 and math.prod(extents.values()) >= tuning.EINSUM_BLAS_WORK
        with np.errstate(all="ignore"):  # as without BLAS
            return np.asarray(np.einsum(subscripts, *values, optimize=by_blas))
    import torch

    return _by_torch(lambda *x: torch.einsum(subscripts, *x), [as_array(x, like=like) for x in values], "einsum")


def _pair(inputs: tuple[str, ...], output: str, values: Sequence[Any]) -> Array | None:
    """Two arrays of one inexact dtype, multiplied element by element or as matrices, in the order of the output; None
    where they are neither: `einsum` finds the same, and takes twice the time for its way there."""
    x, y = values
    product = _pairing(*inputs, output)
    if product is None or x.dtype != y.dtype or x.dtype.kind not in "fc" or x.dtype.itemsize < 4:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(product(x, y))


@lru_cache(maxsize=1024)
def _pairing(left: str, right: str, output: str) -> Callable[[Array, Array], Any] | None:
    """The function of two arrays of these letters that multiplies them; None where there is none."""
    both = set(left) & set(right)
    once = all(len(set(term)) == len(term) for term in (left, right)) and set(left) | set(right) == both | set(output)
    if once and both <= set(output):
        return lambda x, y: _aligned(left, output, x) * _aligned(right, output, y)
    if not once or both & set(output):
        return None
    if len(left) == len(right) == 2 and len(both) == 1:
        turned, turned_too, mirrored = left[1] not in both, right[0] not in both, output[0] not in left

        def matrices(x: Array, y: Array) -> Any:
            v, w = x.T if turned else x, y.T if turned_too else y
            return w.T @ v.T if mirrored else v @ w

        return matrices
    for a, b in ((left, right), (right, left)):
        if "".join(c for c in a + b if c not in both) == output:
            summed = [c for c in a if c in both]
            axes = [a.index(c) for c in summed], [b.index(c) for c in summed]
            first = a == left
            return lambda x, y: np.tensordot(x, y, axes) if first else np.tensordot(y, x, axes)
    return None


def _aligned(letters: str, output: str, x: Array) -> Array:
    """An array with a dimension for each letter of the output, of extent 1 where it has none."""
    order = [letters.index(c) for c in output if c in letters]
    return x.transpose(order)[tuple(slice(None) if c in letters else None for c in output)]


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
