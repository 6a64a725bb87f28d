"""Two paths -> what they name changes places in one step, where system and file system have such a step.

Linux has renameat2 (RENAME_EXCHANGE, since 3.15) and macOS renamex_np (RENAME_SWAP), which their C libraries export.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

__all__ = ["exchange"]

_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
"""The errors of systems and file systems without the step, and of sandboxes that do not let it through."""


def exchange(first: str, second: str) -> bool:
    """Whether the two have changed places; False where nothing can do that in one step. Raises OSError."""
    swap = _swap()
    if swap is None:
        return False
    if swap(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), second)


@cache
def _swap() -> Callable[[bytes, bytes], int] | None:
    """A function of two paths that returns 0 where they have changed places; None where the C library has none."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        call = library.renamex_np if sys.platform == "darwin" else library.renameat2
    except (OSError, AttributeError, TypeError):
        return None
    call.restype = ctypes.c_int
    if sys.platform == "darwin":
        call.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
        return lambda first, second: int(call(first, second, _RENAME_SWAP))
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return lambda first, second: int(call(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE))
