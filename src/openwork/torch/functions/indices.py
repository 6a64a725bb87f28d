"""torch's functions that take elements by coordinates, and what it refuses of an index."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import DTypeError, ShapeError
from ...ops.axes import axis_of
from ...ops.indexing.taking import take, take_along_axis
from ...ops.manipulation import shaping
from ...tensor.tensor import Tensor
from .registry import torch_function

__all__ = ["gather", "index_vector", "whole", "within"]


def whole(index: Any, operation: str) -> Any:
    """An index, as given. Raises DTypeError for one that is not of whole numbers in torch's two dtypes of indices."""
    if index.dtype not in (torch.int32, torch.int64):
        raise DTypeError(f"{operation}: an index of {index.dtype}\n  expected: torch.int64 or torch.int32")
    return index


def index_vector(index: Any, operation: str) -> Any:
    """An index of at most one dimension as a vector; ShapeError for more, DTypeError for one of another dtype."""
    whole(index, operation)
    if index.ndim > 1:
        raise ShapeError(f"{operation}: an index of shape {tuple(index.shape)}\n  expected: a vector")
    return index.reshape(-1)


def within(index: Any, extent: int, operation: str) -> Any:
    """The coordinates, as given. Raises IndexError where one is negative or not below the extent, as torch does."""
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < extent):
        wrong = int(index[(index < 0) | (index >= extent)][0])
        raise IndexError(
            f"{operation}: coordinate {wrong} of a dimension of extent {extent}\n  expected: from 0 to {extent - 1}"
        )
    return index


@torch_function("gather", moves=True)
def gather(t: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """For each place of `index`, the element whose coordinate along `dim` stands there."""
    index = index.to_dense() if isinstance(index, Tensor) else index
    if not t.ndim:
        return shaping.reshape(gather(shaping.reshape(t, (1,)), 0, index.reshape(-1)), tuple(index.shape))
    axis = axis_of(dim, t.ndim, "gather")
    within(index, t.shape[axis], "gather")
    crop = tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(index.shape))
    return take_along_axis(t[crop], index.reshape(-1) if not index.ndim else index, axis=dim)


@torch_function("index_select", moves=True)
def index_select(t: Tensor, dim: int, index: Any) -> Tensor:
    """The slices at the coordinates in a vector; of rank 0 the element, whose one coordinate is 0."""
    index = index_vector(index.to_dense() if isinstance(index, Tensor) else index, "index_select")
    axis = axis_of(dim, max(t.ndim, 1), "index_select")
    within(index, t.shape[axis] if t.ndim else 1, "index_select")
    return take(t, index, axis=axis) if t.ndim else t.index_select(axis, index)


@torch_function("take_along_dim", moves=True)
def take_along_dim(t: Any, indices: Any, dim: int | None = None) -> Tensor:
    """For each place of `indices` the element of that coordinate; of the elements in row-major order without `dim`."""
    if dim is None:
        flat = indices.to_dense() if isinstance(indices, Tensor) else indices
        return take(t, within(whole(flat, "take_along_dim").reshape(-1), math.prod(t.shape), "take_along_dim"))
    return take_along_axis(t, indices, axis=dim)
