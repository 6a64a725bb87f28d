"""An operation on a storage with duplicates, whose elements are the sums of what is stored for them, in its own dtype.

Where the operation keeps sums, f(a + b) = f(a) + f(b), duplicates may be left as they are: a product with a finite
number in the dtype of the storage does. Two things end that: a conversion that does not keep sums, and numbers that
are not finite, as -2 * inf + 1 * inf is NaN and (-2 + 1) * inf is not. The first is known from the types, the second is
seen in the result, where infinity and NaN stay; then duplicates are summed first, and it is computed again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..ir.types import COMPLEX, FLOATS
from ..storage.buffers import Array, flat, scalar_of
from ..storage.scalars import keeps_sums
from ..storage.storage import Storage
from .conversion.convert import convert
from .conversion.remap import canonical
from .zero_annihilation import bounded

__all__ = ["is_finite", "summed", "summed_as", "with_sums"]


def summed(s: Storage) -> Storage:
    """The storage with its duplicates summed, in its own dtype; itself where there can be none. CSR stays CSR."""
    return s if s.format.is_unique else convert(s, canonical(s.format))


def summed_as(s: Storage, scalar: str) -> Storage:
    """The storage, its duplicates summed where sums in the scalar type would be others."""
    return s if keeps_sums(s.scalar, scalar) else summed(s)


def is_finite(values: Array) -> bool:
    """Whether no value is infinite or NaN."""
    scalar = scalar_of(values)
    return scalar not in (*FLOATS, *COMPLEX) or bounded(flat(values), sys.float_info.max)


def with_sums(
    compute: Callable[[Mapping[str, Any]], Array], values: Mapping[str, Any], s: Storage, keeps: bool
) -> Array:  # fmt: skip
    """`compute` of operands by name, among them the storage `s`, as of `summed(s)`.

    keeps : whether it keeps sums of finite numbers
    """
    if keeps:
        result = compute(values)
        if is_finite(result):
            return result
    one_each = summed(s)
    return compute({name: one_each if v is s else v for name, v in values.items()})
