"""A module and its public names -> its `__getattr__` and `__dir__`: what the module says of names to those who ask."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

from .errors import suggestion

__all__ = ["absent", "listing"]


def absent(module: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """A module's `__getattr__`, which asks whether one of its public names was meant."""

    def missing(name: str) -> NoReturn:
        hint = "" if name.startswith("_") else suggestion(name, known)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)

    return missing


def listing(module: str, known: Iterable[str]) -> Callable[[], list[str]]:
    """A module's `__dir__`: its public names, without the modules that they come from."""

    def names() -> list[str]:
        return sorted({*known, *(name for name in vars(sys.modules[module]) if name.startswith("__"))})

    return names
