"""A forked child -> locks of the package's cached properties that the parent's other threads held, renewed."""

from __future__ import annotations

import sys
import threading
from functools import cached_property

__all__ = ["renew_locks"]


def renew_locks() -> None:
    """Replace the lock of every cached property of the package; from Python 3.12 on they have none.

    Cost: about a millisecond.
    """
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("openwork."):
            for value in list(vars(module).values()):
                if isinstance(value, type):
                    for attribute in vars(value).values():
                        if isinstance(attribute, cached_property):
                            vars(attribute)["lock"] = threading.RLock()
