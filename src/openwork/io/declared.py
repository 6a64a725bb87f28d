"""The dtype that a file of ours names in a comment: text formats know only integer, real and complex."""

from __future__ import annotations

import numpy as np

from .records import Array
from .source import Text

__all__ = ["as_declared", "declaration"]


def declaration(scalar: str) -> str:
    """The comment's text, "" where the field says enough."""
    return "" if scalar in ("f64", "i64", "c128") else f"openwork dtype {scalar}"


def as_declared(text: Text, values: Array, scalar: str) -> Array:
    """`values` in the dtype `scalar`; raises FileFormatError where none is, or an integer does not fit."""
    from ..storage.buffers import SCALARS, numpy_dtype

    if scalar not in SCALARS:
        text.fail(0, f"unknown dtype {scalar!r} in the comment that names it; known: {', '.join(SCALARS)}")
    with np.errstate(all="ignore"):
        typed = values.astype(numpy_dtype(scalar))
        if values.dtype.kind in "iu" and not np.array_equal(typed.astype(values.dtype), values):
            text.fail(0, f"an entry does not fit the dtype {scalar} that the file declares")
    return typed
