"""Blocks of a tensor, wherever they are, and factors -> products: each block's part, put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ShapeError
from ..ops.axes import axis_of
from . import block as blocks
from .partition import Array, Indices, sent_bytes

__all__ = ["BlockProducts"]


class BlockProducts(ABC):
    """A tensor of blocks, each at its places; what has them says how a function of each is computed."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    places: list[tuple[Indices, ...]]
    used: list[list[int]]
    _grid: tuple[int, ...]

    @abstractmethod
    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(block, *arguments)` of every block."""

    @abstractmethod
    def reduced(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], merge: Callable[[Any, Any], Any]
    ) -> Any:
        """`merge` of `function(block, *arguments)` of all blocks."""

    @abstractmethod
    def run(self, operand: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`function(operand, *args, **kwargs)` where the blocks are, or NotImplemented."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def predicted(self, columns: int = 1) -> int:
        """The bytes of arrays that a product with factors of this many columns sends."""
        return sent_bytes(self.used, columns, self.dtype.itemsize)

    def mttkrp(self, factors: Sequence[Any], dim: int) -> Array:
        """Matricised tensor times Khatri-Rao product, `openwork.mttkrp`; of a matrix its product with the other factor.

        factors : an array (n_k, r) for each dimension, or (n_k,) of a matrix; that of `dim` is not read
        """
        dim = axis_of(dim, self.ndim, "mttkrp", "dim")
        if len(factors) != self.ndim:
            raise ShapeError(
                f"mttkrp: {len(factors)} factors of a tensor of {self.ndim} dimensions\n  help: one for each"
            )
        arrays = [None if k == dim else np.asarray(f) for k, f in enumerate(factors)]
        for k, f in enumerate(arrays):
            if f is not None and (f.shape[:1] != (self.shape[k],) or f.ndim > 2):
                raise ShapeError(
                    f"a product with blocks of a tensor of shape {self.shape}\n  got: a factor of shape {f.shape}"
                )
        arguments = [
            (dim, [None if f is None else f[place] for f, place in zip(arrays, places, strict=True)])
            for places in self.places
        ]
        return self.assembled(self.map(blocks.product, arguments), dim)

    def assembled(self, parts: list[Array], dim: int) -> Array:
        """Rows that blocks gave at their places along a dimension -> all rows, added where several gave some."""
        if len(parts) == 1 and len(parts[0]) == self.shape[dim]:
            return parts[0]
        alone = all(n == 1 for k, n in enumerate(self._grid) if k != dim)
        out = np.zeros((self.shape[dim], *parts[0].shape[1:]), np.result_type(*parts))
        for places, part in zip(self.places, parts, strict=True):
            if alone:
                out[places[dim]] = part
            else:
                out[places[dim]] += part
        return out

    def square_norm(self) -> float:
        """The sum of the squares of all elements."""
        return float(sum(self.map(blocks.square_sum, [()] * len(self.places))))
