"""The processor's floating-point flags -> whether an operation divided by zero, overflowed or was invalid.

    raised()        # of this thread, since the last call; a flag that was set is cleared

Flags are sticky: if none is set, certainly no addition, subtraction, multiplication, division or square root since then
made infinity or NaN of other values. A set flag proves little, as other code may have set it, and unused lanes of
vectors do: then the values have to be checked.

They are read by the C library, which costs 0.2 microseconds whatever the number of elements. Where that is not
possible, the result is always True.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable

__all__ = ["raised"]

_MASKS = {"x86_64": 1 | 4 | 8, "aarch64": 1 | 2 | 4, "arm64": 1 | 2 | 4}
"""FE_INVALID, FE_DIVBYZERO and FE_OVERFLOW of <fenv.h>, by machine; the same on Linux and macOS."""
_LARGE = 1e200


def _always() -> bool:
    return True


def _raised() -> Callable[[], bool]:
    """`raised` by way of the C library, where a trial shows that this works."""
    mask = _MASKS.get(platform.machine())
    if mask is None or sys.platform == "win32":
        return _always
    try:
        library = ctypes.PyDLL(None)
        test, clear = library.fetestexcept, library.feclearexcept
    except (OSError, AttributeError):
        return _always

    def raised() -> bool:
        if test(mask):
            clear(mask)
            return True
        return False

    clear(mask)
    silent = raised()
    infinite = _LARGE * _LARGE > _LARGE  # a folded constant raises nothing: names are looked up when this runs
    return raised if infinite and raised() and not raised() and not silent else _always


raised = _raised()
