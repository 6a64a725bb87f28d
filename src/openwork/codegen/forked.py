"""After a fork: what a thread of the parent held, free again in the child: locks of our classes, imports half done."""

from __future__ import annotations

import sys
import threading
from functools import cached_property
from importlib import _bootstrap
from typing import Any

__all__ = ["forget_imports", "renew_locks"]


def forget_imports(package: str) -> None:
    """Where a thread that the child does not have was importing from a package, let the child import it anew.

    Python frees no module's lock after a fork: whoever imports it in the child would wait for ever.
    """
    mine = [name for name in list(sys.modules) if name.partition(".")[0] == package]
    locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
    held = [name for name in list(locks) if name.partition(".")[0] == package]
    if any(getattr(getattr(sys.modules[name], "__spec__", None), "_initializing", False) for name in mine):
        for name in mine:
            del sys.modules[name]
    for name in held:
        locks.pop(name, None)


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
