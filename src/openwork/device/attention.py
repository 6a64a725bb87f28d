"""Attention at the elements of a mask on a device: scores by a sampled product, their softmax, and a product."""

from __future__ import annotations

from typing import Any

from ..errors import DTypeError, ShapeError
from ..ir.types import FLOATS
from ..reals import real
from ..runtime.formats import resolve_format
from .conversion import assembled
from .coordinates import elements_of
from .elementwise import astype, elementwise
from .kernels import each
from .operations import on_device, refused
from .products import matmul, sddmm
from .row_statistics import softmax
from .tensor import DeviceTensor
from .vector import chosen, fill

__all__ = ["attend"]


@on_device("attend")
def attend(
    mask: DeviceTensor, queries: Any, keys: Any, values: Any, *, dropout: float = 0.0, scale: float | None = None,
    is_causal: bool = False, enable_gqa: bool = False,
) -> DeviceTensor:  # fmt: skip
    """For each query the mean of its keys' values, weighted by the softmax of its scores; one head."""
    operands = (queries, keys, values)
    if dropout or enable_gqa or any(x.ndim != 2 for x in (mask, *operands)):
        raise refused("attend", (mask, *operands), "dropout, and several heads in one call")
    (n, d), m = queries.shape, values.shape[0]
    if mask.shape != (n, m) or keys.shape != (m, d):
        shapes = ", ".join(str(x.shape) for x in operands)
        raise ShapeError(
            f"attend: a mask of shape {mask.shape}, queries, keys and values of {shapes}"
            f"\n  expected: a mask of {(n, m)} and keys of {(m, d)}"
        )
    if any(x.scalar not in FLOATS for x in operands):
        raise DTypeError(f"attend: values of {values.dtype}\n  expected: real floating-point numbers")
    dtype = values.dtype
    wide = "float64" if any(x.scalar == "f64" for x in operands) else "float32"
    q, k, v = (astype(x, wide) for x in operands)
    factor = max(d, 1) ** -0.5 if scale is None else real(scale, "attend", "scale")
    scores = elementwise("multiply", sddmm(_seen(mask, is_causal), q, k.T), factor)
    out = matmul(softmax(scores, axis=1), v)
    return out if out.dtype == dtype or wide == "float64" else astype(out, dtype)


def _seen(mask: DeviceTensor, is_causal: bool) -> DeviceTensor:
    """The elements that count: those of a mask of bool that are True, where asked those on and below the diagonal."""
    mask = mask.asformat("csr") if mask.format.is_dense else mask
    if mask.scalar != "bool" and not is_causal:
        return mask
    found = elements_of(mask if mask.format.is_unique else mask.coalesce())
    i, j = found.coordinates
    marks = fill(mask.adapter, i.length, 1, "i64")
    if mask.scalar == "bool":
        each(mask.adapter, i.length, "y[t] = i64(x[t])", {"y": marks}, x=found.values)
    if is_causal:
        each(mask.adapter, i.length, "y[t] = y[t] & i64(j[t] <= i[t])", {"y": marks}, i=i, j=j)
    return assembled(found.at(chosen(marks)), resolve_format("csr", 2), False, True)
