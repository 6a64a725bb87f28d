"""Attention at the elements of a mask on a device: scores by a sampled product, their softmax, and a product.

Batches and heads are one more dimension, of which every mask is a part: "(b, i, j) -> (b : dense, i : dense,
j : compressed)". What is dropped is drawn there, by a number that torch's generator gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.types import FLOATS
from ..provided import provided
from ..reals import real
from ..runtime.formats import resolve_format
from .conversion import assembled, summed
from .coordinates import Elements, elements_of, stretched
from .elementwise import astype, elementwise
from .joins import key_of
from .kernels import each
from .operations import on_device, refused
from .products import product
from .row_statistics import softmax
from .statements import view_of
from .tensor import DeviceTensor
from .transfer import over
from .vector import chosen, fill, strided, uniform

__all__ = ["attend"]

with_graph = provided("device with_graph", __name__)

STACK = "(b, i, j) -> (b : dense, i : dense, j : compressed)"


@on_device("attend")
def attend(
    mask: DeviceTensor, queries: Any, keys: Any, values: Any, *, dropout: float = 0.0, scale: float | None = None,
    is_causal: bool = False, enable_gqa: bool = False,
) -> DeviceTensor:  # fmt: skip
    """For each query the mean of its keys' values, weighted by the softmax of its scores; batches and heads lead."""
    operands = (queries, keys, values)
    if not all(isinstance(x, DeviceTensor) and x.format.is_dense for x in operands):
        raise refused("attend", (mask, *operands), "queries, keys and values are dense there")
    dropout = real(dropout, "attend", "dropout")
    if not 0 <= dropout < 1:
        raise ShapeError(f"attend: dropout={dropout}\n  expected: 0 <= dropout < 1")
    heads = queries.shape[-3] if queries.ndim > 2 else 1
    own = [x.shape[-3] if enable_gqa and x.ndim > 2 else heads for x in operands]
    if any(not n or heads % n for n in own) or (enable_gqa and min(x.ndim for x in operands) < 3 <= queries.ndim):
        raise ShapeError(
            f"attend: enable_gqa with {heads} heads of queries and {min(own)} of keys or values\n  expected: a multiple"
        )
    lead = _leading(mask, operands, own)
    if any(x.scalar not in FLOATS for x in operands):
        dtypes = ", ".join(dict.fromkeys(str(x.dtype) for x in operands))
        raise refused("attend", (mask,), f"values of {dtypes}; real floating-point numbers run there")
    dtype = max((x.dtype for x in operands), key=lambda d: (d.itemsize, d == values.dtype))
    wide = "float64" if any(x.scalar == "f64" for x in operands) else "float32"
    q, k, v = (_stacked(astype(x, wide), lead, heads // n) for x, n in zip(operands, own, strict=True))
    factor = max(q.shape[-1], 1) ** -0.5 if scale is None else real(scale, "attend", "scale")
    seen, b = _seen(mask.detach(), lead, is_causal), "b" if lead else ""
    ones = seen.with_values(fill(seen.adapter, seen.memory.length, 1, q.scalar), 0)
    scores = product("attend", [f"{b}ij", f"{b}ik", f"{b}jk"], f"{b}ij", (ones, q, k))
    weights = softmax(elementwise("multiply", scores, factor), axis=-1)
    if dropout:
        kept = uniform(weights.adapter, weights.memory.length, weights.scalar)
        body = f"y[t] = T_y({1 / (1 - dropout)!r}) if y[t] >= T_y({dropout!r}) else T_y(0.0)"
        each(weights.adapter, kept.length, body, {"y": kept})
        weights = elementwise("multiply", weights, weights.detach().with_values(kept, 0))
    found = product("attend", [f"{b}ij", f"{b}jk"], f"{b}ik", (weights, v))
    out = over(found.memory, (*lead, *found.shape[-2:]))
    out.graph = found.graph
    return out if out.dtype == dtype or wide == "float64" else astype(out, dtype)


def _leading(mask: DeviceTensor, operands: Sequence[DeviceTensor], own: Sequence[int]) -> tuple[int, ...]:
    """The extents of batches and heads. own : the heads of each operand"""
    shapes = [mask.shape, *(x.shape for x in operands)]
    (*_, n, m), *rest = [(0, 0, *s) for s in shapes]
    (*_, queries, d), (*_, keys, inner), (*_, rows, _) = rest
    if min(map(len, shapes)) < 2 or (n, m, m) != (queries, keys, rows) or d != inner:
        raise ShapeError(
            f"attend: mask, queries, keys, values of shapes {', '.join(map(str, shapes))}"
            "\n  expected: (n, m), (..., n, d), (..., m, d), (..., m, e)"
        )
    heads = own[0]
    leads = [s[:-2] if h == heads else (*s[:-3], heads) for s, h in zip(shapes, (heads, *own), strict=True)]
    try:
        return np.broadcast_shapes(*leads)
    except ValueError as error:
        raise ShapeError(f"attend: leading dimensions of {shapes} do not broadcast") from error


def _stacked(x: DeviceTensor, lead: tuple[int, ...], repeat: int) -> DeviceTensor:
    """Dense matrices, one for each of the leading indices, row-major; each of a dimension of heads so many times."""
    view, extents = view_of(x), [*lead, *x.shape[-2:]]
    steps = [step if n > 1 else 0 for n, step in zip(view.shape, view.strides, strict=True)]
    if repeat > 1:
        extents[-3:-2] = [lead[-1] // repeat, repeat]
        steps.insert(-2, 0)
    steps = [0] * (len(extents) - len(steps)) + steps
    shape = (math.prod(lead), *x.shape[-2:]) if lead else x.shape
    if x.is_recorded:
        return with_graph(over(x.memory, shape), x.values.as_strided(extents, steps).reshape(-1))  # type: ignore[no-any-return]
    return over(strided(view.memory, extents, steps), shape)


def _seen(mask: DeviceTensor, lead: tuple[int, ...], is_causal: bool) -> DeviceTensor:
    """The elements that count, of all masks: those of a mask of bool that are True, where asked those on and below the
    diagonal."""
    if mask.format.is_dense:
        mask = mask.asformat("coo")
    if mask.scalar != "bool" and not is_causal and not lead:
        return summed(mask)
    found = elements_of(summed(mask))
    i, j = found.coordinates[-2:]
    marks = fill(mask.adapter, i.length, 1, "i64")
    if mask.scalar == "bool":
        each(mask.adapter, i.length, "y[t] = i64(x[t])", {"y": marks}, x=found.values)
    if is_causal:
        each(mask.adapter, i.length, "y[t] = y[t] & i64(j[t] <= i[t])", {"y": marks}, i=i, j=j)
    found = found.at(chosen(marks))
    if not lead:
        return assembled(found, resolve_format("csr", 2), False, True)
    every = stretched(found, (*lead, *mask.shape[-2:]))
    *stacks, i, j = every.coordinates
    b = key_of(stacks, lead, i.length, i, "attend")
    shape = (math.prod(lead), *mask.shape[-2:])
    return assembled(Elements(shape, [b, i, j], every.values), resolve_format(STACK, 3), False, True)
