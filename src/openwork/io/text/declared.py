"""The dtype that openwork writes in a comment of text files -> checked values of that dtype."""

from __future__ import annotations

import numpy as np

from ...storage.buffers import SCALARS, numpy_dtype
from ..shared.records import Array
from .source import Text

__all__ = ["as_declared", "check_end", "declaration"]


_FAMILIES = {"i": ("i", "u", "bool"), "u": ("i", "u", "bool"), "f": ("f", "bf16"), "c": ("c",)}
"""By the kind of the text's numbers: prefixes of the scalar types that may be declared for them."""


def declaration(scalar: str) -> str:
    """The comment's text; it also marks the file as written by openwork, whose last line always has an end."""
    return f"openwork dtype {scalar}"


def check_end(text: Text) -> None:
    """Refuse a file written by openwork whose last line has no end: the last number may have lost digits."""
    if text.size and int(text.data[text.size - 1]) not in (10, 13):
        text.fail(text.size, "the file ends inside a line", "if it is whole, end it with a newline")


def as_declared(text: Text, values: Array, scalar: str) -> Array:
    """`values` in the dtype `scalar`; raises FileFormatError where none is, or a number does not fit."""
    if scalar not in SCALARS:
        text.fail(0, f"unknown dtype {scalar!r} in the comment that names it; known: {', '.join(SCALARS)}")
    if not scalar.startswith(_FAMILIES[values.dtype.kind]):
        text.fail(0, f"the dtype {scalar} that the file declares does not suit its numbers, {values.dtype}")
    with np.errstate(all="ignore"):
        typed = values.astype(numpy_dtype(scalar))
        if values.dtype.kind in "iu" and not np.array_equal(typed.astype(values.dtype), values):
            text.fail(0, f"an entry does not fit the dtype {scalar} that the file declares")
    return typed
