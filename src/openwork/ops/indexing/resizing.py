"""A tensor -> the same with other extents, or without the stored elements that equal the fill value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.conversion.assembly import full
from ...runtime.conversion.remap import Program, canonical
from ...tensor.tensor import Tensor
from ..result_format import remap_one

__all__ = ["drop_fill", "resize_structure"]


def resize_structure(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor -> one of other extents with its elements inside of them; added elements are the fill value."""

    def write(program: Program) -> None:
        for d, (old, new) in enumerate(zip(t.shape, shape, strict=True)):
            if new < old:
                program.test(f"x{d} < {program.number(new)}")
        for d in range(t.ndim):
            program.keep(d)

    def host(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        out = np.full(shape, t.fill_value, array.dtype)
        common = tuple(slice(min(old, new)) for old, new in zip(t.shape, shape, strict=True))
        out[common] = array[common]
        return out

    return remap_one(t, shape, "resize", write, host)


def drop_fill(t: Tensor) -> Tensor:
    """A tensor without its stored elements that equal the fill value, -0.0 and NaN too; a dense one as it is."""
    if t.format.is_dense:
        return t
    if not (t.format.is_unique and t.format.is_ordered):
        t = t.asformat(canonical(t.format))
    fill = full(1, t._storage.scalar, t.fill_value, t.values)

    def write(program: Program) -> None:
        value, base = "a_vals[leaf]", f"{program.array(fill)}[0]"
        program.test(f"{value} != {base}" if t.fill_value == t.fill_value else f"{value} == {value}")
        for d in range(t.ndim):
            program.keep(d)

    return remap_one(t, t.shape, "eliminate_zeros", write, lambda a: a)
