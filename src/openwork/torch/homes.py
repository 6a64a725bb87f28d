"""The module of each name that this package provides: made by `python tools/operations.py`."""

from __future__ import annotations

__all__ = ["HOMES"]

_ROWS: dict[str, tuple[str, ...]] = {
    "compiled.products": ("torch substitute",),
    "rules": ("torch rules",),
}

HOMES: dict[str, str] = {name: module for module, names in _ROWS.items() for name in names}
