"""A mask of any format -> compressed rows of blocks, which attention's kernels read: of one mask, or of a stack's."""

from __future__ import annotations

import math
import weakref

import torch

from .. import Format, Tensor, prune
from ..storage.specified import coordinates
from ..storage.structure import keep as keep_fact
from .attend_structure import elements_of, version

__all__ = ["rows_of"]

Rows = tuple[torch.Tensor, torch.Tensor, tuple[int, int]]
"""pos and crd of compressed rows of blocks, and their size."""


def rows_of(mask: Tensor, lead: tuple[int, ...], is_causal: bool) -> Rows:
    """The buffers of a mask in compressed rows or blocks that divide it; what any other is converted to, once.

    lead : the leading dimensions that a stack of masks broadcasts to: its rows are those of each, one after the other
    is_causal : whether only keys up to the query's own number are seen
    """
    mask = _seen(mask)
    s = mask._raw_storage
    block = _blocks_of(s.format)
    is_there = len(s.shape) == 2 and block is not None and isinstance(s.pos[1], torch.Tensor)
    if is_there and not is_causal and s.shape[0] % block[0] == 0 and s.shape[1] % block[1] == 0:  # type: ignore[index]
        return s.pos[1], s.crd[1], block  # type: ignore[return-value]
    facts, key = s.facts, ("attention", lead if len(s.shape) > 2 else (), is_causal)
    if key not in facts:
        every = rows_of(mask, lead, False) if is_causal else _converted(mask, lead)
        keep_fact(facts, key, _lower(*every, s.shape[-2]) if is_causal else every)
    rows: Rows = facts[key]
    return rows


def _seen(mask: Tensor) -> Tensor:
    """A mask of bool without the elements that it stores as False, as blocks do; any other mask itself."""
    s = mask._raw_storage
    values = s.values
    if s.scalar != "bool":
        return mask
    facts, now = s.facts, version(values) if isinstance(values, torch.Tensor) else None
    known = facts.get("attention sees")
    if known is not None and known[0]() is values and known[1] == now is not None:
        return mask if known[2] is None else known[2]
    seen = None if bool(values.all()) else prune(mask.detach().asformat("csr" if mask.ndim == 2 else "coo"))
    keep_fact(facts, "attention sees", (weakref.ref(values), now, seen))
    return mask if seen is None else seen


def _blocks_of(format: Format) -> tuple[int, int] | None:
    """The blocks of a format of compressed rows in order, (1, 1) of elements; None for any other format."""
    name, size = format.name or "" if format.is_unique and format.is_ordered else "", format.blocksize
    if name == "csr":
        return (1, 1)
    return (size[0], size[1]) if name.startswith("bsr") and size is not None and len(size) == 2 else None


def _lower(pos: torch.Tensor, crd: torch.Tensor, block: tuple[int, int], n: int) -> Rows:
    """The elements on and below the diagonal of each mask of n rows."""
    pos, crd = elements_of(pos, crd, block)
    row = torch.arange(len(pos) - 1).repeat_interleave(pos.diff().to(torch.int64))
    is_seen = crd <= row % max(n, 1)
    ends = torch.cat([pos.new_zeros(1), is_seen.cumsum(0).to(pos.dtype)])
    return ends[pos.to(torch.int64)], crd[is_seen], (1, 1)


def _converted(mask: Tensor, lead: tuple[int, ...]) -> Rows:
    if len(mask._raw_storage.shape) > 2:
        return _stack(mask, lead)
    t = mask if isinstance(mask.values, torch.Tensor) else _over_torch(mask)
    s = t.detach().asformat("csr")._raw_storage
    return s.pos[1], s.crd[1], (1, 1)


def _over_torch(mask: Tensor) -> Tensor:
    return Tensor._from_storage(mask._storage.mapped(torch.as_tensor))


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
