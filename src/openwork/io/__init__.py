"""Files -> Tensors and back: `read`, `write`, `header`. Everything is imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import files, records

if TYPE_CHECKING:
    from .files import header, load, read, write
    from .records import Buffers, Coordinates, Header, Options, expand

__all__ = ["Buffers", "Coordinates", "Header", "Options", "expand", "header", "load", "read", "write"]

_FILES = ("header", "load", "read", "write")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    return getattr(files if name in _FILES else records, name)
