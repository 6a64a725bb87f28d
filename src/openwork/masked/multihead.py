"""`nn.MultiheadAttention` of masked tensors -> torch's attention of what is specified.

What is missing contributes nothing to the projections, as in every masked product. A position of a sequence none of
whose features is specified is no query, key or value at all: no query sees it, and what it asks is missing.
"""

from __future__ import annotations

from functools import cache
from inspect import Signature, signature
from typing import Any

import torch

from .construct import strided_tensor
from .tensor import MaskedTensor

__all__ = ["multi_head_attention_forward"]

forward: Any = torch.nn.functional.multi_head_attention_forward


@cache
def _signature() -> Signature:
    return signature(forward)


def multi_head_attention_forward(*args: Any, **kwargs: Any) -> tuple[MaskedTensor, MaskedTensor | None]:
    """torch's function, one of whose query, key and value is masked, (length, batch, features) or unbatched.

    Returns
    -------
    output, missing where the query is, and where it sees no key; weights, missing there and at keys that are, or None
    """
    call = _signature().bind(*args, **kwargs)
    call.apply_defaults()
    options = call.arguments
    asked, *seen_keys = (_specified(options[name]) for name in ("query", "key", "value"))
    there = seen_keys[0] & seen_keys[1]
    options |= {name: _filled(options[name]) for name in ("query", "key", "value")}
    heads, length = options["num_heads"], asked.shape[-1]
    scores = _scores(options, there, heads, length)
    blind = (scores == -torch.inf).all(-1, keepdim=True)
    if options["bias_k"] is not None or options["add_zero_attn"]:
        blind = torch.zeros_like(blind)
    options |= {"attn_mask": scores.masked_fill(blind, 0), "key_padding_mask": None, "is_causal": False}
    output, weights = forward(*call.args, **call.kwargs)
    asks = asked & ~blind.reshape(-1, heads, length).all(1)  # (batch, length)
    single = output.ndim == 2
    answered = _masked(output, asks[0, :, None] if single else asks.T[..., None])
    if weights is None:
        return answered, None
    keys = torch.nn.functional.pad(there, (0, weights.shape[-1] - there.shape[-1]), value=True)
    bits = asks[:, :, None] & keys[:, None]
    bits = bits if options["average_attn_weights"] else bits[:, None]
    return answered, _masked(weights, bits[0] if single else bits)


def _specified(x: Any) -> torch.Tensor:
    """Which positions of a sequence have a feature that is specified: (batch, length)."""
    if isinstance(x, MaskedTensor):
        bits = x.get_mask().to_dense().any(-1)
    else:
        bits = torch.ones(x.shape[:-1], dtype=torch.bool)
    return bits.T if bits.ndim == 2 else bits[None]


def _filled(x: Any) -> torch.Tensor:
    filled: torch.Tensor = x.filled(0).to_dense() if isinstance(x, MaskedTensor) else x
    return filled


def _scores(options: Any, there: torch.Tensor, heads: int, length: int) -> torch.Tensor:
    """What is added to the scores, (batch * heads, queries, keys): minus infinity at keys that are missing."""
    batch, keys = there.shape
    dtype = options["query"].dtype
    total = torch.zeros(batch, 1, 1, keys, dtype=dtype).masked_fill(~there[:, None, None], -torch.inf)
    padding, mask = options["key_padding_mask"], options["attn_mask"]
    if padding is not None:
        total = total + _added(padding, dtype).reshape(batch, 1, 1, keys)
    if mask is not None:
        total = total + _added(mask, dtype).reshape(*((batch, heads) if mask.ndim == 3 else (1, 1)), length, keys)
    return total.expand(batch, heads, length, keys).reshape(-1, length, keys)


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask of torch's, True where there is nothing to see, as what is added to scores."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, -torch.inf)


def _masked(x: torch.Tensor, bits: torch.Tensor) -> MaskedTensor:
    return strided_tensor(x.contiguous(), bits.expand(x.shape).contiguous())
