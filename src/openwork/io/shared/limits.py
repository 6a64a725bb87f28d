"""A file's bytes on disk -> the most bytes that it may unpack to: `FLOOR + ratio * packed`.

Deflate packs up to 1032 to 1, bzip2 and xz much tighter, so that a small file can claim all memory. Text and arrays
that mean something pack 2 to 20 to 1. `max_ratio=` of `read`, or OPENWORK_READ_RATIO, allows more.
"""

from __future__ import annotations

import os
from typing import NoReturn

from ...errors import FileFormatError

__all__ = ["FLOOR", "RATIO", "allowed", "refuse_holes", "refuse_size"]

RATIO = 64
FLOOR = 16 << 20
_VARIABLE = "OPENWORK_READ_RATIO"


def allowed(packed: int, ratio: int | None = None) -> int:
    """The most bytes that `packed` ones may become."""
    return FLOOR + (_default_ratio() if ratio is None else ratio) * packed


def _default_ratio() -> int:
    setting = os.environ.get(_VARIABLE, "")
    if not setting:
        return RATIO
    if not (setting.isascii() and setting.isdigit() and 0 < int(setting[:18]) < 10**9):
        raise ValueError(f"{_VARIABLE} must be a whole number from 1 to 10**9 - 1, got {setting!r}")
    return int(setting)


def refuse_size(what: str, packed: int, limit: int) -> NoReturn:
    """Raise FileFormatError for what unpacks to more than it may."""
    raise FileFormatError(
        f"{what} unpacks to more than {limit} bytes from {packed}\n"
        f"  help: if the file is to be trusted, pass max_ratio= (the default is {_default_ratio()})"
    )


def refuse_holes(name: str, descriptor: int) -> None:
    """Refuse a file that is mostly holes: its size is only claimed, like a compressed file's."""
    status = os.fstat(descriptor)
    on_disk = getattr(status, "st_blocks", 0) * 512
    if not hasattr(os, "SEEK_HOLE") or status.st_size <= allowed(on_disk):
        return
    try:
        has_no_holes = os.lseek(descriptor, 0, os.SEEK_HOLE) >= status.st_size
    except OSError:
        has_no_holes = True
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
    if not has_no_holes:
        raise FileFormatError(f"{name}: a file of {status.st_size} bytes, of which only {on_disk} are on disk")
