"""Files -> Tensors and back: `read`, `open`, `write`, `header`. Everything is imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import files, mapped, records

if TYPE_CHECKING:
    from .files import header, load, read, write
    from .mapped import open
    from .records import Buffers, Coordinates, Header, Options, expand

__all__ = ["Buffers", "Coordinates", "Header", "Options", "expand", "header", "load", "open", "read", "write"]

_FILES = ("header", "load", "read", "write")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    return getattr(files if name in _FILES else mapped if name == "open" else records, name)
