"""Reductions, products and structural operations as methods."""

from __future__ import annotations

__all__ = ["Methods"]


class Methods:
    """The mixin of `MaskedTensor` that holds what needs coordinates."""

    __slots__ = ()
