"""Buffers of any library, a tensor's storage and its invariants."""

from __future__ import annotations

from .storage import Storage

__all__ = ["Storage"]
