"""The command line `openwork`: tour, info, convert, bench, kernel, formats."""

from __future__ import annotations

from .main import main

__all__ = ["main"]
