"""Functions of packages above, by name: what a class calls that stands below its operations.

    index = late("ops.indexing.index", "index")      # found when it is first called

A Tensor's methods are operations, and operations are made of Tensors. The class is the lower of the two, so it knows
its operations by name only; every name is that of a function which a test finds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["Late", "late", "resolved"]


class Late:
    """A function of a module that is imported at its first call."""

    __slots__ = ("_found", "home", "module", "name")

    def __init__(self, module: str, name: str, home: dict[str, Any]) -> None:
        self.module, self.name, self.home = module, name, home
        self._found: Callable[..., Any] | None = None

    def resolve(self) -> Callable[..., Any]:
        """The function itself, which takes this one's place among the names of the file."""
        if self._found is None:
            self._found = getattr(import_module(f"openwork.{self.module}"), self.name)
            for name, value in list(self.home.items()):
                if value is self:
                    self.home[name] = self._found
        return self._found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._found
        return (self.resolve() if found is None else found)(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        """An entry, where the name is a table's."""
        return self.resolve()[key]  # type: ignore[index]

    def __repr__(self) -> str:
        return f"late({self.module!r}, {self.name!r})"


def late(module: str, name: str) -> Any:
    """The function `name` of `openwork.module`, which lies above the caller."""
    return Late(module, name, sys._getframe(1).f_globals)


def resolved(function: Any) -> Callable[..., Any]:
    """The function that a late one stands for; itself where it is there."""
    return function.resolve() if isinstance(function, Late) else function
