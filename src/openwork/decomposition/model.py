"""Factors and weights or a core, which a decomposition gives -> the dense array of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.library_errors import sized
from .operands import Factor

__all__ = ["Model"]


class Model:
    """One factor for each dimension, combined as `_einsum` says: subscripts, and the arrays that these are of."""

    factors: list[Factor]

    def _einsum(self) -> tuple[str, tuple[Factor, ...]]:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return tuple(len(factor) for factor in self.factors)

    @sized
    def to_numpy(self) -> Factor:
        """The dense array of the model, of the tensor's shape.

        Cost: the product of all extents and the rank, or a rank of the core. Raises SizeError where there is no memory
        for the array.
        """
        subscripts, arrays = self._einsum()
        out = np.empty(self.shape, np.result_type(*arrays))
        np.einsum(subscripts, *arrays, out=out, optimize=True)
        return out

    full = to_numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Factor:
        if copy is False:
            raise ValueError(f"{type(self).__name__}: copy=False, but its array is computed\n  help: leave copy out")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype, copy=False)
