"""Blocks in this process -> a tensor of them, with the products of those on workers, and methods that run over it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from .allocator import kept_memory
from .block import Block
from .partition import length
from .products import BlockProducts
from .runner import named

__all__ = ["LocalTensor", "run_method"]

_PACKAGE = __name__.partition(".")[0]


class LocalTensor(BlockProducts):
    """A tensor whose blocks are in this process."""

    def __init__(
        self, found: Sequence[Block], shape: tuple[int, ...], dtype: np.dtype[Any], grid: tuple[int, ...]
    ) -> None:
        self._found, self.shape, self.dtype, self._grid = found, shape, dtype, grid
        self.places = [b.places for b in found]
        self.used = [[length(p) for p in place] for place in self.places]
        self.sent = 0

    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(block, *arguments)` of every block."""
        return [named(b.name, function, b, *given) for b, given in zip(self._found, arguments, strict=True)]

    def reduced(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], merge: Callable[[Any, Any], Any]
    ) -> Any:
        """`merge` of `function(block, *arguments)` of all blocks."""
        return reduce(merge, self.map(function, [arguments] * len(self._found)))

    def run(self, operand: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NotImplemented: it is here."""
        return NotImplemented


def run_method(
    found: Sequence[Block], made_of: Any, module: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """The result of a method of the package over the tensor, or matrix, of blocks, and what it warns of."""
    shape, dtype, grid, kind = made_of
    if module.partition(".")[0] != _PACKAGE:
        raise ValueError(f"{module}.{name} is not a method of {_PACKAGE}")
    operand = kind.over(LocalTensor(found, shape, dtype, grid))
    with kept_memory(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = getattr(import_module(module), name)(operand, *args, **kwargs)
    return result, [(str(w.message), w.category) for w in told]
