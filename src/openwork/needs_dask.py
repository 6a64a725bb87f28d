"""Imported first by what works with Dask: ModuleNotFoundError that says how to install it, where it is not there."""

from __future__ import annotations

from importlib.util import find_spec

__all__: list[str] = []

if getattr(find_spec("dask"), "origin", None) is None:
    raise ModuleNotFoundError(
        "openwork.dask works with Dask, which is not installed\n  help: pip install 'dask[array]' distributed",
        name="dask",
    )
