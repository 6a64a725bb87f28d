"""An open file -> its bytes as pages that are read when they are asked for, as a read-only buffer.

Nothing that is written through such pages reaches the file: torch takes NumPy's read-only arrays and writes to them,
and pages that cannot be written to would end the process then. They are copied instead (copy on write), page by page.
Such pages count as memory of the process where that is limited (RLIMIT_DATA): there, pages can only be read.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["mapped_file"]

_RESERVE_NOTHING = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
"""No memory is set aside for copies: files may be larger than it. Python names the flag from 3.13 on."""


def mapped_file(file: Any) -> memoryview:
    """The bytes of a file, which must have some. Raises OSError where the system does not map it."""
    if hasattr(mmap, "MAP_PRIVATE") and not _limited():
        with suppress(OSError):  # limits that the system has by itself
            writable = mmap.PROT_READ | mmap.PROT_WRITE
            pages = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | _RESERVE_NOTHING, prot=writable)
            return memoryview(pages).toreadonly()
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _limited() -> bool:
    """Whether the process was given a limit of what it could write to."""
    if resource is None:
        return False
    return resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY
