"""A tensor -> the same with other extents, or without the stored elements that equal the fill value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...provided import provides
from ...runtime.conversion.remap import IndexMap
from ...tensor.tensor import Tensor
from ..result_format import remap_one

__all__ = ["resize_structure"]


@provides("resize_structure")
def resize_structure(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor -> one of other extents with its elements inside of them; added elements are the fill value."""

    def write(index_map: IndexMap) -> None:
        for d, (old, new) in enumerate(zip(t.shape, shape, strict=True)):
            if new < old:
                index_map.test(f"x{d} < {index_map.number(new)}")
        for d in range(t.ndim):
            index_map.keep(d)

    def host(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        out = np.full(shape, t.fill_value, array.dtype)
        common = tuple(slice(min(old, new)) for old, new in zip(t.shape, shape, strict=True))
        out[common] = array[common]
        return out

    return remap_one(t, shape, "resize", write, host)
