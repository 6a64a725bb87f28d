"""Multi-head attention with projections that may be sparse and a mask that may be a sparse Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from .. import ShapeError, Tensor, UnsupportedError, asarray
from ..integers import integer
from ..reals import real
from .attend import attend
from .linear import SparseLinear, fill_parameter

__all__ = ["SparseAttention", "SparseMultiheadAttention"]


class SparseAttention(torch.nn.Module):  # type: ignore[misc]
    """torch.nn.MultiheadAttention, whose mask may be a sparse Tensor: query i sees key j where it stores (i, j), of
    bool where it stores True.

    Parameters
    ----------
    embed_dim, num_heads, dropout, bias, kdim, vdim, batch_first : as torch.nn.MultiheadAttention
    mask : Tensor, shape (L, S), any sparse format, used by every call that is given no `attn_mask`; None for none
    add_bias_kv, add_zero_attn : as there; not together with a sparse mask

    Guarantees: equal to torch.nn.MultiheadAttention of the same projections, for dense masks; for a sparse one equal to
    that of its dense complement, in O(nse) time and memory for each head, and zeros where a query sees no key.
    Stands in for `self_attn` of torch's transformer layers. Its four projections are modules, which `prune` replaces.
    Raises ShapeError where the heads do not divide `embed_dim`.

    Examples
    --------
    >>> import torch, openwork as ow
    >>> from openwork.nn import SparseAttention
    >>> band = ow.asarray(torch.ones(6, 6).tril().triu(-2).to_sparse_csr())
    >>> layer, x = SparseAttention(8, 2, mask=band, batch_first=True), torch.ones(3, 6, 8)
    >>> layer(x, x, x)[0].shape
    torch.Size([3, 6, 8])
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        *, mask: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        kdim, vdim = (embed_dim if n is None else n for n in (kdim, vdim))
        named = {"embed_dim": embed_dim, "num_heads": num_heads, "kdim": kdim, "vdim": vdim}
        embed_dim, num_heads, self.kdim, self.vdim = (integer(n, "SparseAttention", name) for name, n in named.items())
        if num_heads < 1 or embed_dim % num_heads:
            raise ShapeError(
                f"SparseAttention: embed_dim={embed_dim} in {num_heads} heads\n  expected: heads of equal size"
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout = real(dropout, "SparseAttention", "dropout")
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.mask = mask
        sizes = (embed_dim, self.kdim, self.vdim)
        self.q_proj, self.k_proj, self.v_proj = (torch.nn.Linear(n, embed_dim, bias) for n in sizes)
        self.out_proj = torch.nn.Linear(embed_dim, embed_dim, bias)
        self.bias_k, self.bias_v = (
            torch.nn.Parameter(torch.nn.init.xavier_normal_(torch.empty(1, 1, embed_dim))) if add_bias_kv else None
            for _ in range(2)
        )

    _qkv_same_embed_dim = True
    in_proj_bias = None
    """What torch's transformer layers ask before they read weights past the module: not from this one."""

    @property
    def in_proj_weight(self) -> Tensor:
        """The weights of the three projections, one above the other, where torch's transformers look for them."""
        weights = [_dense_weight(p) for p in (self.q_proj, self.k_proj, self.v_proj)]
        return asarray(torch.cat(weights))

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None, need_weights: bool = True, attn_mask: Any = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:  # fmt: skip
        """The attended values and, for dense masks where asked for, the weights: as torch.nn.MultiheadAttention.

        `attn_mask` is torch's, or a sparse Tensor (L, S) of what is seen; with one of these weights are None.
        """
        mask = self.mask if attn_mask is None else attn_mask
        is_single = query.ndim == 2
        if is_single:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (p(x) for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        k, v, added = self._with_added_keys(k, v)
        q, k, v = (x.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2) for x in (q, k, v))
        rate = self.dropout if self.training else 0.0
        weights = None
        if isinstance(mask, Tensor) or hasattr(type(mask), "__openwork_device__"):
            out = self._attend_sparse(mask, q, k, v, key_padding_mask, rate, added)
        else:
            if is_causal and mask is None:
                raise UnsupportedError(
                    "SparseAttention: is_causal without a mask\n  help: give attn_mask=, which is_causal describes"
                )
            scores = _score_mask(mask, key_padding_mask, q, added)
            if need_weights:
                out, weights = _attend_dense(q, k, v, scores, rate)
            else:
                out = F.scaled_dot_product_attention(q, k, v, scores, rate)
        out = self.out_proj(out.transpose(1, 2).reshape(*query.shape[:2], self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if is_single:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _with_added_keys(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Keys and values (batch, S, embed_dim) with those that the layer adds behind them, and how many these are."""
        before = k.shape[1]
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (
                torch.cat([x, bias.to(x.dtype).expand(len(x), 1, -1)], 1)
                for x, bias in ((k, self.bias_k), (v, self.bias_v))
            )
        if self.add_zero_attn:
            k, v = (torch.cat([x, x.new_zeros(len(x), 1, x.shape[2])], 1) for x in (k, v))
        return k, v, k.shape[1] - before

    def _attend_sparse(
        self, mask: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, padding: torch.Tensor | None,
        rate: float, added: int,
    ) -> torch.Tensor:  # fmt: skip
        if added:
            raise UnsupportedError(
                "SparseAttention: a sparse mask with add_bias_kv or add_zero_attn\n  help: leave these out"
            )
        if padding is not None:  # one more feature, 1 in queries, adds a number of each key to its scores
            scale = self.head_dim**-0.5
            hidden = _additive(padding, q.dtype).clamp(min=torch.finfo(q.dtype).min / 4)
            q = torch.cat([q * scale, torch.ones_like(q[..., :1])], -1)
            k = torch.cat([k, hidden[:, None, :, None].expand(*k.shape[:3], 1)], -1)
            return attend(mask, q, k, v, dropout=rate, scale=1.0)
        return attend(mask, q, k, v, dropout=rate)

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        mask = "" if self.mask is None else f", mask={self.mask.shape} of nse {self.mask.nse}"
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}{mask}"


class SparseMultiheadAttention(SparseAttention):
    """What `prune` makes of a torch.nn.MultiheadAttention: its projections are `SparseLinear`.

    Examples
    --------
    >>> layer = ow.nn.prune(torch.nn.MultiheadAttention(8, 2), 0.75)
    >>> x = torch.ones(5, 1, 8)
    >>> layer(x, x, x)[0].shape
    torch.Size([5, 1, 8])
    """

    @classmethod
    def from_dense(
        cls, layer: torch.nn.MultiheadAttention, sparsify: Callable[[torch.Tensor], Tensor]
    ) -> SparseMultiheadAttention:
        """The attention of what `sparsify` makes of the weights of a torch.nn.MultiheadAttention."""
        has_bias = layer.in_proj_bias is not None
        result = cls(
            layer.embed_dim, layer.num_heads, layer.dropout, has_bias, layer.bias_k is not None, layer.add_zero_attn,
            layer.kdim, layer.vdim, layer.batch_first,
        )  # fmt: skip
        result.bias_k, result.bias_v = layer.bias_k, layer.bias_v
        if layer._qkv_same_embed_dim:
            weights = layer.in_proj_weight.chunk(3)
            are_trained = (layer.in_proj_weight.requires_grad,) * 3
        else:
            weights = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
            are_trained = tuple([weight.requires_grad for weight in weights])
        biases = layer.in_proj_bias.chunk(3) if has_bias else (None,) * 3
        for name, weight, bias, is_trained in zip(_PROJECTIONS, weights, biases, are_trained, strict=True):
            linear = SparseLinear.of(sparsify(weight.detach()), bias, is_trained)
            if linear.bias is not None:
                linear.bias.requires_grad_(layer.in_proj_bias.requires_grad)
            setattr(result, name, linear)
        result.out_proj = SparseLinear.from_dense(layer.out_proj, sparsify)
        return result

    def to_dense(self) -> torch.nn.MultiheadAttention:
        """The torch.nn.MultiheadAttention of the same weights."""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        dense = torch.nn.MultiheadAttention(
            self.embed_dim, self.num_heads, self.dropout, self.q_proj.bias is not None, self.bias_k is not None,
            self.add_zero_attn, self.kdim, self.vdim, self.batch_first,
        )  # fmt: skip
        dense.to(_weight_parameter(self.out_proj))
        weights = [_dense_weight(p) for p in projections]
        own = [_weight_parameter(p) for p in projections]
        if dense._qkv_same_embed_dim:
            fill_parameter(dense.in_proj_weight, torch.cat(weights), *own)
        else:
            for name, weight, parameter in zip(_PROJECTIONS, weights, own, strict=True):
                fill_parameter(getattr(dense, f"{name}_weight"), weight, parameter)
        if dense.in_proj_bias is not None:
            biases = [p.bias for p in projections]
            fill_parameter(dense.in_proj_bias, torch.cat(biases), *biases)
        fill_parameter(dense.out_proj.weight, _dense_weight(self.out_proj), _weight_parameter(self.out_proj))
        fill_parameter(dense.out_proj.bias, self.out_proj.bias, self.out_proj.bias)
        dense.bias_k, dense.bias_v = self.bias_k, self.bias_v
        return dense


_PROJECTIONS = ("q_proj", "k_proj", "v_proj")


def _weight_parameter(layer: Any) -> torch.Tensor:
    parameter: torch.Tensor = layer.values if isinstance(layer, SparseLinear) else layer.weight
    return parameter


def _dense_weight(layer: Any) -> torch.Tensor:
    weight = layer.weight.detach()
    result: torch.Tensor = weight.to_dense() if isinstance(weight, Tensor) else weight
    return result


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask as what is added to scores: -inf where one of booleans, as torch means them, is True."""
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, float("-inf"))
    return mask.to(dtype)


def _score_mask(
    mask: torch.Tensor | None, padding: torch.Tensor | None, q: torch.Tensor, added: int
) -> torch.Tensor | None:
    """What is added to the scores (batch, heads, L, S) of dense masks; keys that the layer added are seen."""
    total = None
    if mask is not None:
        total = F.pad(_additive(mask, q.dtype), (0, added))
        total = total.reshape(*q.shape[:2], *total.shape[1:]) if mask.ndim == 3 else total
    if padding is not None:
        hidden = F.pad(_additive(padding, q.dtype), (0, added))[:, None, None]
        total = hidden if total is None else total + hidden
    return total


def _attend_dense(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, rate: float
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = q * q.shape[-1] ** -0.5 @ k.mT
    weights = F.dropout((scores if mask is None else scores + mask).softmax(-1), rate)
    return weights @ v, weights
