"""Imported first by what works with torch: ModuleNotFoundError that says how to install it, where it is not there."""

from __future__ import annotations

from importlib.util import find_spec

__all__: list[str] = []

if getattr(find_spec("torch"), "origin", None) is None:
    raise ModuleNotFoundError(
        "openwork.nn and openwork.torch work with torch, which is not installed\n  help: pip install torch",
        name="torch",
    )
