"""Attention at the elements of a sparse mask, batched, with heads: scores, softmax over each row's, and a product."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..errors import DTypeError, ShapeError
from ..format.format import Format
from ..storage.buffers import to_numpy
from ..storage.specified import coordinates
from ..storage.structure import keep as keep_fact
from ..tensor.tensor import Tensor
from .attend_operator import attention
from .autocast import autocast

__all__ = ["attend"]

Rows = tuple[torch.Tensor, torch.Tensor, tuple[int, int]]
"""pos and crd of compressed rows of blocks, and their size."""


def attend(
    mask: Tensor, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, dropout: float = 0.0,
    scale: float | None = None,
) -> torch.Tensor:  # fmt: skip
    """Attention along edges: query i gets the mean of its keys' values, weighted by softmax(queries[i] . keys[j]).

    Parameters
    ----------
    mask : Tensor, shape (n, m) or (..., n, m), any sparse format: query i sees key j where it has an element, whatever
        its value. Of "csr" and "bsr(b0, b1)" the buffers are read as they are, also by torch.compile. Where neighbours
        see much the same keys, whatever the format, 2 vectors of queries and 4 keys are a register tile
    queries, keys, values : torch tensors, shapes (..., n, d), (..., m, d), (..., m, e); batches and heads are leading
        dimensions, which broadcast
    dropout : the part of the weights that is set to 0, and the others are made larger
    scale : of the scores, 1 / sqrt(d) without

    Returns
    -------
    torch tensor, shape (..., n, e); a query that sees no key gets zeros

    Guarantees: equal to torch's scaled_dot_product_attention with the dense mask, where a query sees a key.
    Cost: O(nse * (d + e)) for each batch and head, and memory for the results and one number of each query; with
    dropout one of each element. A mask is analysed in O(nse) at its first call, and keeps two numbers of each element
    at most. Half precision is computed in float32.
    Raises ShapeError for shapes that do not fit and a dropout outside 0 to 1, DTypeError for numbers that are not real
    floating-point ones.
    Source: the row-wise softmax of Rabe and Staats, Self-attention does not need O(n^2) memory, 2021.

    See also: SparseAttention, GraphAttention, sddmm.

    Examples
    --------
    >>> ow.nn.attend(ow.eye(2, format="csr"), torch.ones(2, 4), torch.ones(2, 4), torch.eye(2, 4))
    tensor([[1., 0., 0., 0.],
            [0., 1., 0., 0.]])
    """
    lead = _leading(mask, queries, keys, values, dropout)
    queries, keys, values = autocast(queries, keys, values)
    dtype = torch.promote_types(torch.promote_types(queries.dtype, keys.dtype), values.dtype)
    if not dtype.is_floating_point:
        raise DTypeError(f"attend: queries, keys and values of {dtype}\n  expected: real floating-point numbers")
    computed = dtype if dtype == torch.float64 else torch.float32
    q, k, v = (_stacked(x, lead, computed) for x in (queries, keys, values))
    pos, crd, block = _rows(mask, lead)
    keep = None
    if dropout:
        count = crd.shape[0] * block[0] * block[1]
        drawn = torch.rand(
            q.shape[0] if len(mask._raw_storage.shape) == 2 else 1, count, dtype=computed, device=q.device
        )
        keep = (drawn >= dropout).to(computed) / (1 - dropout)
    out = attention(pos, crd, block, q, k, v, keep, max(q.shape[-1], 1) ** -0.5 if scale is None else scale)
    out = out if len(lead) == 1 else out.reshape(*lead, *out.shape[1:])
    return out if out.dtype == dtype else out.to(dtype)


def _stacked(x: torch.Tensor, lead: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A stack of matrices, one for each of the leading indices."""
    x = x if x.dtype == dtype else x.to(dtype)
    if tuple(x.shape[:-2]) != lead:
        x = x.expand(*lead, *x.shape[-2:])
    return x if len(lead) == 1 else x.reshape(math.prod(lead), *x.shape[-2:])


def _rows(mask: Tensor, lead: tuple[int, ...]) -> Rows:
    """The mask's buffers where it is in compressed rows or blocks that divide it; else it is brought there."""
    s = mask._raw_storage
    block = _block(s.format)
    if len(s.shape) == 2 and block is not None and isinstance(s.pos[1], torch.Tensor) and _divides(block, s.shape):
        return s.pos[1], s.crd[1], block
    if torch.compiler.is_compiling():
        return _converted(mask, lead)
    facts, key = s.plans.facts, ("attention", lead if len(s.shape) > 2 else ())
    if key not in facts:
        keep_fact(facts, key, _converted(mask, lead))
    rows: Rows = facts[key]
    return rows


def _divides(block: tuple[int, int], shape: tuple[int, ...]) -> bool:
    return shape[0] % block[0] == 0 and shape[1] % block[1] == 0


def _converted(mask: Tensor, lead: tuple[int, ...]) -> Rows:
    if len(mask._raw_storage.shape) > 2:
        return _stack(mask, lead)
    t = mask if isinstance(mask.values, torch.Tensor) else _over_torch(mask)
    s = t.detach().asformat("csr")._raw_storage
    return s.pos[1], s.crd[1], (1, 1)


def _over_torch(mask: Tensor) -> Tensor:
    return Tensor._from_storage(mask._storage.mapped(lambda b: torch.from_numpy(to_numpy(b))))


def _stack(mask: Tensor, lead: tuple[int, ...]) -> Rows:
    """The compressed rows of all masks of a stack, one after the other; those that broadcast are repeated."""
    at = torch.from_numpy(coordinates(mask.detach()._storage)[0])
    *outer, n, m = mask.shape
    number = torch.zeros(at.shape[1], dtype=torch.int64)
    for c, extent in zip(at[:-2], outer, strict=True):
        number = number * extent + c
    order = ((number * n + at[-2]) * m + at[-1]).argsort()
    row, column = (number * n + at[-2])[order], at[-1][order]
    counts = torch.bincount(row, minlength=math.prod(outer) * n).reshape(math.prod(outer), n)
    which = torch.arange(math.prod(outer)).reshape(outer).expand(lead).reshape(-1)
    each = column.split(counts.sum(1).tolist())
    pos = torch.zeros(len(which) * n + 1, dtype=torch.int64)
    pos[1:] = counts[which].reshape(-1).cumsum(0)
    return pos, torch.cat([each[k] for k in which.tolist()]) if len(which) else column[:0], (1, 1)


def _blocks_of(format: Format) -> tuple[int, int] | None:
    """The blocks of a format of compressed rows in order, (1, 1) of elements; None for any other format."""
    name, size = format.name or "" if format.is_unique and format.is_ordered else "", format.blocksize
    if name == "csr":
        return (1, 1)
    return (size[0], size[1]) if name.startswith("bsr") and size is not None and len(size) == 2 else None


def _leading(mask: Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout: float) -> tuple[int, ...]:
    """The extents of the leading dimensions."""
    shapes = [tuple(mask._raw_storage.shape), tuple(q.shape), tuple(k.shape), tuple(v.shape)]
    fits = min([len(s) for s in shapes]) >= 2
    if (
        not fits
        or (*shapes[0][-2:], shapes[2][-1]) != (shapes[1][-2], *shapes[2][-2:])
        or shapes[2][-2] != shapes[3][-2]
    ):
        raise ShapeError(
            f"attend: mask, queries, keys, values of shapes {', '.join([str(s) for s in shapes])}"
            "\n  expected: (n, m), (..., n, d), (..., m, d), (..., m, e)"
        )
    if not 0 <= dropout < 1:
        raise ShapeError(f"attend: dropout={dropout}\n  expected: 0 <= dropout < 1")
    leads = [s[:-2] for s in shapes]
    rank = max([len(s) for s in leads])
    lead = []
    for d in range(rank):
        extents = [s[d - rank + len(s)] for s in leads if d - rank + len(s) >= 0]
        wide = [n for n in extents if n != 1]
        if len(set(wide)) > 1:
            raise ShapeError(f"attend: leading dimensions of {shapes} do not broadcast")
        lead.append(wide[0] if wide else 1)
    return tuple(lead)


# last: this loads the tracer, which asks for what stands above
_block: Any = torch.compiler.assume_constant_result(_blocks_of)
