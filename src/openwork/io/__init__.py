"""Files -> Tensors and back: `read`, `open`, `convert`, `write`, `header`. Everything is imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from . import cf as cf
from . import files
from .containers import mapped
from .out_of_core import conversion, parts_of_file
from .shared import records

if TYPE_CHECKING:
    from .containers.mapped import open
    from .files import header, load, read, write
    from .out_of_core.conversion import convert, write_parts
    from .out_of_core.parts_of_file import parts
    from .shared.records import Buffers, Coordinates, Header, Options, expand

__all__ = [
    "Buffers", "Coordinates", "Header", "Options", "convert", "expand", "header", "load", "open", "parts",
    "read", "write", "write_parts",
]  # fmt: skip

_missing = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_HOMES = {**dict.fromkeys(("header", "load", "read", "write"), files), "open": mapped, "parts": parts_of_file}
_HOMES |= dict.fromkeys(("convert", "write_parts"), conversion)


def __getattr__(name: str) -> Any:
    return _missing(name) if name not in __all__ else getattr(_HOMES.get(name, records), name)


for _module in (files, mapped, conversion, parts_of_file, records):
    _document_all(vars(_module), __all__)
