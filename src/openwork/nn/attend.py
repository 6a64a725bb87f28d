"""Attention at the elements of a sparse mask, batched, with heads: scores, softmax over each row's, and a product."""

from __future__ import annotations

import math

import torch

from ..errors import ShapeError
from ..ops.products.matmul import matmul
from ..ops.products.sddmm import sddmm
from ..ops.reductions.softmax import softmax
from ..tensor.tensor import Tensor
from .autocast import autocast

__all__ = ["attend"]


def attend(
    mask: Tensor, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, dropout: float = 0.0,
    scale: float | None = None,
) -> torch.Tensor:  # fmt: skip
    """Attention along edges: query i gets the mean of its keys' values, weighted by softmax(queries[i] . keys[j]).

    Parameters
    ----------
    mask : Tensor, shape (n, m), any sparse format: query i sees key j where it has an element, whatever its value
    queries, keys, values : torch tensors, shapes (..., n, d), (..., m, d), (..., m, e); batches and heads are leading
        dimensions, which broadcast
    dropout : the part of the weights that is set to 0, and the others are made larger
    scale : of the scores, 1 / sqrt(d) without

    Returns
    -------
    torch tensor, shape (..., n, e); a query that sees no key gets zeros

    Guarantees: equal to torch's scaled_dot_product_attention with the dense mask, where a query sees a key.
    Cost: O(nse * (d + e)) for each batch and head; nothing of size n * m is made, forward or backward.
    Raises ShapeError for shapes that do not fit and a dropout outside 0 to 1.
    """
    lead = _leading(mask, queries, keys, values, dropout)
    queries, keys, values = autocast(queries, keys, values)
    stacked = [x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (queries, keys, values)]
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    places = math.prod(lead)
    results = [_attend_one(mask, q * scale, k, v, dropout) for q, k, v in zip(*stacked, strict=True)]
    out = torch.stack(results) if places else values.new_zeros(0, queries.shape[-2], values.shape[-1])
    return out.reshape(*lead, *out.shape[1:])


def _attend_one(mask: Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout: float) -> torch.Tensor:
    weights = softmax(sddmm(mask, q, k.T), -1)
    if dropout:
        weights = weights.with_values(torch.nn.functional.dropout(weights.values, dropout))
    result: torch.Tensor = matmul(weights, v)
    return result


def _leading(mask: Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout: float) -> tuple[int, ...]:
    """The extents of the leading dimensions."""
    shapes = [tuple(x.shape) for x in (mask, q, k, v)]
    fits = all(len(s) >= 2 for s in shapes) and len(shapes[0]) == 2
    if not fits or (*shapes[0], shapes[2][-1]) != (q.shape[-2], k.shape[-2], q.shape[-1]) or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"attend: mask, queries, keys, values of shapes {', '.join(map(str, shapes))}"
            "\n  expected: (n, m), (..., n, d), (..., m, d), (..., m, e)"
        )
    if not 0 <= dropout < 1:
        raise ShapeError(f"attend: dropout={dropout}\n  expected: 0 <= dropout < 1")
    try:
        return tuple(torch.broadcast_shapes(*(s[:-2] for s in shapes[1:])))
    except RuntimeError:
        raise ShapeError(f"attend: leading dimensions of {shapes[1:]} do not broadcast") from None
