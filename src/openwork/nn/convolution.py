"""Convolutions whose weight is sparse, as the product of a sparse matrix with the unfolded input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from .. import FormatError, ShapeError, Tensor, sparse_coo_tensor
from ..storage.specified import coordinates
from .linear import SparseLinear, fill_parameter

__all__ = ["SparseConv"]

_DENSE = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d, 3: torch.nn.Conv3d}


class SparseConv(torch.nn.Module):  # type: ignore[misc]
    """torch.nn.Conv1d, Conv2d or Conv3d with a sparse weight: what `prune` makes of these.

    The weight is the matrix (out_channels, in_channels * kernel sizes) of `linear`; with groups, the channels of other
    groups are columns without elements. The input is unfolded, so that a call takes kernel-size times its memory.
    Made by `from_dense`.

    Examples
    --------
    >>> layer = ow.nn.prune(torch.nn.Conv2d(3, 8, 3), 0.9)
    >>> layer(torch.ones(1, 3, 6, 6)).shape, layer.linear.weight.nse
    (torch.Size([1, 8, 4, 4]), 22)
    """

    def __init__(self, linear: SparseLinear, layer: Any) -> None:
        super().__init__()
        self.linear = linear
        self.kernel_size, self.stride, self.dilation = layer.kernel_size, layer.stride, layer.dilation
        self.padding, self.padding_mode, self.groups = layer.padding, layer.padding_mode, layer.groups
        self.in_channels, self.out_channels = layer.in_channels, layer.out_channels
        self._pad = tuple(layer._reversed_padding_repeated_twice)

    @classmethod
    def from_dense(cls, layer: Any, sparsify: Callable[[torch.Tensor], Tensor]) -> SparseConv:
        """The convolution of what `sparsify` makes of a dense one's weight, as a matrix of a row for each channel."""
        weight = sparsify(layer.weight.detach().reshape(layer.out_channels, -1))
        is_trained = layer.weight.requires_grad
        return cls(SparseLinear.of(_block_diagonal(weight, layer.groups), layer.bias, is_trained), layer)

    def to_dense(self) -> Any:
        """The torch.nn.Conv1d, Conv2d or Conv3d of the same weight and bias."""
        weight, bias = self.linear.weight.detach().to_dense(), self.linear.bias
        dense = _DENSE[len(self.kernel_size)](
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation,
            self.groups, bias is not None, self.padding_mode, dtype=weight.dtype, device=weight.device,
        )  # fmt: skip
        groups = weight.reshape(self.groups, self.out_channels // self.groups, self.groups, -1)
        own = groups.diagonal(0, 0, 2).movedim(-1, 0).reshape(dense.weight.shape)
        fill_parameter(dense.weight, own, self.linear.values)
        fill_parameter(dense.bias, bias, bias)
        return dense

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The convolution of (batch, channels, *sizes), or of one without the batch.

        Raises ShapeError for other channels or ranks, and for sizes that the kernel is larger than.
        """
        dims = len(self.kernel_size)
        if x.ndim not in (dims + 1, dims + 2) or x.shape[-dims - 1] != self.in_channels:
            wanted = ", ".join(["batch", str(self.in_channels), *(f"size {k + 1}" for k in range(dims))])
            raise ShapeError(f"SparseConv: input {tuple(x.shape)}\n  expected: ({wanted})")
        batched = x if x.ndim > dims + 1 else x.unsqueeze(0)
        columns, sizes = self._unfold(batched)
        out = self.linear.columns(columns).reshape(len(batched), self.out_channels, *sizes)
        return out if x.ndim > dims + 1 else out.squeeze(0)

    def _unfold(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[int, ...]]:
        """The columns (batch, channels * kernel sizes, places) that the weight multiplies, and the result's sizes."""
        if any(self._pad):
            x = F.pad(x, self._pad, "constant" if self.padding_mode == "zeros" else self.padding_mode)
        dims = len(self.kernel_size)
        for k, (size, step, gap) in enumerate(zip(self.kernel_size, self.stride, self.dilation, strict=True)):
            if (size - 1) * gap >= x.shape[2 + k]:
                raise ShapeError(
                    f"SparseConv: a kernel of {size} (dilation {gap}) over {x.shape[2 + k]} with its padding"
                    "\n  expected: no more than there is"
                )
            x = x.unfold(2 + k, (size - 1) * gap + 1, step)[..., ::gap]
        sizes = tuple(x.shape[2 : 2 + dims])
        places = (0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims))
        return x.permute(places).reshape(len(x), self.linear.in_features, math.prod(sizes)), sizes

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, groups={self.groups}"


def _block_diagonal(weight: Tensor, groups: int) -> Tensor:
    """A matrix (out, in) whose rows are of `groups` groups -> (out, in * groups), each group in columns of its own.

    Raises FormatError where the format would store elements of one group in the columns of another: they would train.
    """
    if groups == 1:
        return weight
    out, columns = weight.shape
    t = weight.to_torch().to_sparse_coo().coalesce()
    rows, at = t.indices()
    at = at + rows // (out // groups) * columns
    coo: Tensor = sparse_coo_tensor(torch.stack([rows, at]), t.values(), (out, columns * groups))
    wide = coo.asformat(weight.format)
    (row, column), _ = coordinates(wide._storage)
    if (row // (out // groups) != column // columns).any():
        raise FormatError(
            f"{weight.format.name or weight.format} stores elements of several of the {groups} groups together"
            f"\n  expected: blocks that divide a group's {out // groups} rows and {columns} columns\n  help: csr"
        )
    return wide
