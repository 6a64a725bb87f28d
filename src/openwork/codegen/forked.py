"""After a fork: locks of our classes that a thread of the parent held, free again in the child."""

from __future__ import annotations

import sys
import threading
from functools import cached_property

__all__ = ["renew_locks"]


def renew_locks() -> None:
    """Give every cached property of the package a lock of its own again; from Python 3.12 on they have none.

    Cost: about a millisecond.
    """
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("openwork."):
            for found in list(vars(module).values()):
                if isinstance(found, type):
                    for attribute in vars(found).values():
                        if isinstance(attribute, cached_property):
                            vars(attribute)["lock"] = threading.RLock()
