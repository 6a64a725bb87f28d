"""Masked tensors and vectors, matrices or factors -> their products over some dimensions, and sampled products."""

from __future__ import annotations

from typing import Any

from .. import Format, Tensor, asarray
from ..ops.products.tensor_times import mttkrp_subscripts, ttm_letters, ttv_letters
from ..provided import provides
from .contraction import einsum
from .notation import evaluate
from .structure import pattern
from .tensor import MaskedTensor, wrap

__all__ = ["mttkrp", "sddmm", "ttm", "ttv"]


@provides("masked mttkrp")
def mttkrp(t: Any, factors: list[Any], dim: int, *, format: str | Format | None = None) -> MaskedTensor:
    """`openwork.mttkrp` of what is specified."""
    text, others = mttkrp_subscripts(t.ndim, dim)
    return einsum(text, t, *(factors[k] for k in others), format=format)


@provides("masked ttv")
def ttv(t: Any, v: Any, dim: int, *, format: str | Format | None = None) -> MaskedTensor:
    """`openwork.ttv` of what is specified."""
    left, right, output = ttv_letters(t.ndim, dim)
    return einsum(f"{left},{right}->{output}", t, v, format=format)


@provides("masked ttm")
def ttm(t: Any, m: Any, dim: int, *, format: str | Format | None = None) -> MaskedTensor:
    """`openwork.ttm` of what is specified."""
    left, right, output = ttm_letters(t.ndim, dim)
    return einsum(f"{left},{right}->{output}", t, m, format=format)


@provides("masked sddmm")
def sddmm(mask: Any, a: Any, b: Any) -> MaskedTensor:
    """`a @ b` at the elements that `mask` specifies, missing where no product of specified elements is."""
    t = mask.specified if isinstance(mask, MaskedTensor) else asarray(mask)
    there: Tensor = pattern((t if t.format.is_unique else t.coalesce())._storage)
    found: MaskedTensor = evaluate(
        "C<M>[i, k] = A[i, j] * B[j, k]", M=wrap(there) if isinstance(mask, MaskedTensor) else there, A=a, B=b
    )
    return found
