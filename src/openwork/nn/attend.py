"""Attention at the elements of a sparse mask, batched, with heads: scores, softmax over each row's, and a product."""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import DTypeError, ShapeError, Tensor, asarray
from ..reals import real
from ..storage.recorded import is_transformed
from ..torch.functions.autocast_traced import autocast
from .attend_mask import rows_of
from .attend_operator import attention
from .attend_traced import traced_attention

__all__ = ["attend"]

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def attend(
    mask: Tensor, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, *, dropout: float = 0.0,
    scale: float | None = None, is_causal: bool = False, enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Attention along edges: query i gets the mean of its keys' values, weighted by softmax(queries[i] . keys[j]).

    Parameters
    ----------
    mask : Tensor or torch's sparse tensor, shape (n, m) or (..., n, m), any sparse format: query i sees key j where it
        has an element, whatever its value, of bool where that is True. Of "csr" and "bsr(b0, b1)" the buffers are read
        as they are. Where neighbours see much the same keys, whatever the format, 64 bytes of queries and 12 keys are a
        register tile
    queries, keys, values : torch tensors, shapes (..., n, d), (..., m, d), (..., m, e); batches and heads are leading
        dimensions, which broadcast
    dropout : the part of the weights that is set to 0, and the others are made larger
    scale : of the scores, 1 / sqrt(d) without
    is_causal : whether query i sees no key behind i, besides what the mask says
    enable_gqa : whether keys and values have fewer heads, each for as many neighbouring heads of queries

    Returns
    -------
    torch tensor, shape (..., n, e); a query that sees no key gets zeros

    Guarantees: equal to torch's scaled_dot_product_attention with the dense mask.
    Cost: O(nse * (d + e)) for each batch and head, and memory for the results and one number of each query; with
    dropout one of each element. A mask is analysed in O(nse) at its first call, and keeps 20 bytes of each element,
    a tenth more where a query has few. Half precision is computed in float32.
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
    if hasattr(type(mask), "__openwork_device__"):
        options = {"dropout": dropout, "scale": scale, "is_causal": is_causal, "enable_gqa": enable_gqa}
        return mask.__openwork_function__(attend, (mask, queries, keys, values), options)  # type: ignore[attr-defined]
    if not isinstance(mask, Tensor):
        mask = _sparse(mask)
    for x in (queries, keys, values):
        if not isinstance(x, torch.Tensor):
            raise DTypeError(
                f"attend: queries, keys or values of type {type(x).__module__}.{type(x).__name__}"
                "\n  expected: torch tensors\n  help: torch.from_numpy(x)"
            )
    if enable_gqa:
        keys, values = (_repeated(x, queries.shape[-3] if queries.ndim > 2 else 1) for x in (keys, values))
    dropout = real(dropout, "attend", "dropout")
    lead = _leading(mask, queries, keys, values, dropout)
    queries, keys, values = autocast(queries, keys, values)
    dtype = torch.promote_types(torch.promote_types(queries.dtype, keys.dtype), values.dtype)
    if not dtype.is_floating_point:
        raise DTypeError(f"attend: queries, keys and values of {dtype}\n  expected: real floating-point numbers")
    computed = dtype if dtype == torch.float64 else torch.float32
    q, k, v = (_stacked(x, lead, computed) for x in (queries, keys, values))
    scale = max(q.shape[-1], 1) ** -0.5 if scale is None else real(scale, "attend", "scale")
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() or not _is_here(q, k, v):
        out = traced_attention(mask, lead, is_causal, q, k, v, dropout, scale)
    else:
        pos, crd, block = rows_of(mask, lead, is_causal)
        keep = None
        if dropout:
            places = q.shape[0] if len(mask._raw_storage.shape) == 2 else 1
            drawn = torch.rand(places, crd.shape[0] * block[0] * block[1], dtype=computed, device=q.device)
            keep = (drawn >= dropout).to(computed) / (1 - dropout)
        out = attention(pos, crd, block, q, k, v, keep, scale)
    out = out if len(lead) == 1 else out.reshape(*lead, *out.shape[1:])
    return out if out.dtype == dtype else out.to(dtype)


def _sparse(mask: Any) -> Tensor:
    """A mask that is one of torch's sparse tensors."""
    if isinstance(mask, torch.Tensor) and mask.layout != torch.strided:
        return asarray(mask)
    raise DTypeError(
        f"attend: a mask of type {type(mask).__module__}.{type(mask).__name__}\n  expected: first a sparse Tensor, or"
        " one of torch's, then queries, keys and values\n  help: asarray(mask, format='csr'), or torch's"
        " scaled_dot_product_attention for dense masks"
    )


def _stacked(x: torch.Tensor, lead: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A stack of matrices, one for each of the leading indices."""
    x = x if x.dtype == dtype else x.to(dtype)
    if tuple(x.shape[:-2]) != lead:
        x = x.expand(*lead, *x.shape[-2:])
    return x if len(lead) == 1 else x.reshape(math.prod(lead), *x.shape[-2:])


def _is_here(*operands: torch.Tensor) -> bool:
    """Whether what is computed with is in memory, if within a transform of torch.func."""
    return all(x.is_cpu and (type(x) in _PLAIN or is_transformed(x)) for x in operands)


def _repeated(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Keys or values for each of as many heads of queries."""
    own = x.shape[-3] if x.ndim > 2 else 0
    if not own or heads % own:
        raise ShapeError(
            f"attend: enable_gqa with {heads} heads of queries and {own} of keys or values\n  expected: a multiple"
        )
    return x if own == heads else x.repeat_interleave(heads // own, -3)


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
    if not leads[0] and leads[1] == leads[2] == leads[3]:
        return leads[1]
    rank = max([len(s) for s in leads])
    lead = []
    for d in range(rank):
        extents = [s[d - rank + len(s)] for s in leads if d - rank + len(s) >= 0]
        wide = [n for n in extents if n != 1]
        if len(set(wide)) > 1:
            raise ShapeError(f"attend: leading dimensions of {shapes} do not broadcast")
        lead.append(wide[0] if wide else 1)
    return tuple(lead)
