"""Functions by name: packages above provide them, packages below call them, and neither names the other's modules.

    @provides("index")                          # in the package above
    def index(t, key): ...

    index = provided("index", __name__)         # below: found when it is first called

A Tensor's methods are operations, and operations are made of Tensors. The class is the lower of the two: it knows what
it calls by name, and the package's `__init__`, which stands above all, loads the module that provides it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Provided", "loader", "provide", "provided", "provides", "resolved"]

T = TypeVar("T")

_FOUND: dict[str, Any] = {}
"""What the modules that are loaded provide, by name."""
loader: list[Callable[[str], object]] = []
"""Loads the module that provides a name; one function, set by the package's `__init__`."""


def provide(name: str, value: T) -> T:
    """Provide a function, or a table, under a name; the value itself."""
    _FOUND[name] = value
    return value


def provides(name: str) -> Callable[[T], T]:
    """A decorator that provides a function under a name."""
    return lambda value: provide(name, value)


class Provided:
    """A function, or a table, by its name: its module is loaded at the first call."""

    __slots__ = ("_found", "name", "user")

    def __init__(self, name: str, user: str | None) -> None:
        self.name, self.user = name, user
        self._found: Any = None

    def resolve(self) -> Any:
        """What is provided, which takes this one's place among the names of the module that uses it."""
        if self._found is None:
            if self.name not in _FOUND:
                loader[0](self.name)
            self._found = _FOUND[self.name]
            names = vars(sys.modules[self.user]) if self.user is not None else {}
            names.update({key: self._found for key, value in names.items() if value is self})
        return self._found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._found
        return (self.resolve() if found is None else found)(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        """An entry, where a table is provided."""
        return self.resolve()[key]

    def __repr__(self) -> str:
        return f"provided({self.name!r})"


def provided(name: str, user: str | None = None) -> Any:
    """What a package above provides under a name.

    user : the module of which it is a name, `__name__` there, where calls then go straight to what was found
    """
    return Provided(name, user)


def resolved(function: Any) -> Any:
    """What a provided name stands for; anything else itself."""
    return function.resolve() if isinstance(function, Provided) else function
