"""A module's public names -> its `__getattr__` and `__dir__`; a table of functions by name -> what enters them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from .errors import suggestion

__all__ = ["absent", "entering", "listing"]

F = TypeVar("F", bound=Callable[..., Any])


def absent(module: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """A module's `__getattr__`, which asks whether one of its public names was meant."""

    def missing(name: str) -> NoReturn:
        hint = "" if name.startswith("_") else suggestion(name, known)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)

    return missing


def entering(table: dict[Any, Callable[..., Any]]) -> Callable[..., Callable[[F], F]]:
    """A decorator `@enter(*names)` that puts the function into the table under these names."""

    def enter(*names: Any) -> Callable[[F], F]:
        def entered(function: F) -> F:
            table.update(dict.fromkeys(names, function))
            return function

        return entered

    return enter


def listing(module: str, known: Iterable[str]) -> Callable[[], list[str]]:
    """A module's `__dir__`: its public names, without the modules that they come from."""

    def names() -> list[str]:
        return sorted({*known, *(name for name in vars(sys.modules[module]) if name.startswith("__"))})

    return names
