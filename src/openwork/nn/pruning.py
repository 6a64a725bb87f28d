"""Linear layers pruned by magnitude to any sparse format, and made dense again."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ShapeError
from ..format.format import Format
from ..interop.constructors import asarray
from ..ops.indexing.taking import sparse_mask
from ..runtime.formats import resolve_format
from .linear import SparseLinear

__all__ = ["densify", "prune"]


def prune(module: torch.nn.Module, amount: float = 0.5, format: object = "csr") -> torch.nn.Module:
    """Replace every torch.nn.Linear in a module by a `SparseLinear` of its largest weights.

    Parameters
    ----------
    module : changed in place, but for a Linear itself
    amount : the part of the weights that goes, 0 to 1; not read for n:m formats, which say it themselves
    format : of the weights. In a blocked format the blocks of the largest 2-norm stay, in "nm(n, m)" the n largest of
        each m along the inputs, in any other the largest elements of the layer

    Returns
    -------
    the module, or the layer that takes a Linear's place; it trains as before, its weights' structure is constant

    Raises ShapeError for an amount outside 0 to 1.
    """
    if not 0 <= amount <= 1:
        raise ShapeError(f"prune: amount {amount}\n  expected: the part of the weights that goes, 0 to 1")
    if isinstance(module, torch.nn.Linear):
        return _pruned(module, amount, resolve_format(format, 2))
    for name, child in module.named_children():
        setattr(module, name, prune(child, amount, format))
    return module


def densify(module: torch.nn.Module) -> torch.nn.Module:
    """Replace every `SparseLinear` in a module by the torch.nn.Linear of the same weight and bias."""
    if isinstance(module, SparseLinear):
        weight = module.weight.detach().to_dense().contiguous()
        dense = torch.nn.Linear(module.in_features, module.out_features, module.bias is not None, dtype=weight.dtype)
        with torch.no_grad():
            dense.weight.copy_(weight)
            if module.bias is not None:
                dense.bias.copy_(module.bias)
        return dense
    for name, child in module.named_children():
        setattr(module, name, densify(child))
    return module


def _pruned(layer: torch.nn.Linear, amount: float, format: Format) -> SparseLinear:
    weight = layer.weight.detach()
    last = format.levels[-1].format
    if last.is_structured:
        n, m = last.arguments
        keep = _largest_of_each(weight, n, m)
    else:
        block = format.blocksize or (1, 1)
        keep = _largest_blocks(weight, amount, (block[0], block[1]))
    mask = asarray(keep).asformat(format)
    return SparseLinear(sparse_mask(weight, mask), layer.bias)


def _largest_of_each(weight: torch.Tensor, n: int, m: int) -> torch.Tensor:
    if weight.shape[1] % m:
        raise ShapeError(f"prune: {weight.shape[1]} inputs in groups of {m}\n  help: take a format that divides them")
    groups = weight.abs().reshape(weight.shape[0], -1, m)
    keep = torch.zeros_like(groups, dtype=torch.bool).scatter_(2, groups.topk(n, 2).indices, True)
    return keep.reshape(weight.shape)


def _largest_blocks(weight: torch.Tensor, amount: float, block: tuple[int, int]) -> torch.Tensor:
    rows, columns = (-(-n // b) for n, b in zip(weight.shape, block, strict=True))
    padded: Any = weight.new_zeros(rows * block[0], columns * block[1])
    padded[: weight.shape[0], : weight.shape[1]] = weight
    norms = padded.reshape(rows, block[0], columns, block[1]).square().sum((1, 3)).reshape(-1)
    largest = norms.topk(round(norms.numel() * (1 - amount))).indices
    blocks = torch.zeros_like(norms, dtype=torch.bool).index_fill_(0, largest, True).reshape(rows, 1, columns, 1)
    every = blocks.expand(rows, block[0], columns, block[1]).reshape(padded.shape)
    return every[: weight.shape[0], : weight.shape[1]].contiguous()
