"""An object with slots -> copies of it in which one slot holds another value: by native code, once there is some.

    make = copier(Storage.over(structure, "f64", 0.0, None), "values")      # once
    make(values)                                                            # 0.1 microseconds; filling 14 slots 0.35

Native code is made ready when it is first wanted for a launch (`codegen.short_call`), so that `copier` may give None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Native", "begin", "copier", "when_native"]


class Native(Protocol):
    """Makes the native functions that copy."""

    def copier(self, template: object, slot: str) -> Callable[[Any], Any] | None:
        """A function of a value: a copy of the template, in which the slot of this name holds the value."""

    def copier_of_any(self, template: object, slot: str, cleared: tuple[str, ...]) -> Callable[[Any, Any], Any] | None:
        """A function of an object of the template's type and a value: its copy; slots that are `cleared` are None."""


_native: Native | None = None
_waiting: list[Callable[[Native], None]] = []


def copier(template: object, slot: str) -> Callable[[Any], Any] | None:
    """`Native.copier`; None as long as there is no native code, and where it does not suit the type."""
    return None if _native is None else _native.copier(template, slot)


def when_native(install: Callable[[Native], None]) -> None:
    """Call `install` once there is native code."""
    if _native is None:
        _waiting.append(install)
    else:
        install(_native)


def begin(native: Native) -> None:
    """Take this native code from now on."""
    global _native
    _native = native
    for install in _waiting:
        install(native)
    _waiting.clear()
