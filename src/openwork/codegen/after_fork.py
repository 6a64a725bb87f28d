"""A forked child -> locks and half-done imports of the parent's other threads, released: they have no owner there."""

from __future__ import annotations

import sys
import threading
from functools import cached_property
from importlib import _bootstrap
from typing import Any

__all__ = ["forget_imports", "renew_locks"]


def forget_imports(package: str) -> None:
    """Forget a package that a thread which the child does not have was importing, so that the child imports it anew.

    Python frees no module's lock after a fork: an import of it in the child would wait for ever.
    """
    modules = [name for name in list(sys.modules) if name.partition(".")[0] == package]
    locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
    locked = [name for name in list(locks) if name.partition(".")[0] == package]
    if any(getattr(getattr(sys.modules[name], "__spec__", None), "_initializing", False) for name in modules):
        for name in modules:
            del sys.modules[name]
    for name in locked:
        locks.pop(name, None)


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
