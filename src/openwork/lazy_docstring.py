"""Functions -> the same with docstrings that are composed when they are first read, by `openwork.docstrings`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .provided import provided

__all__ = ["Documentation", "TypeText", "document", "unquote_types"]

_compose = provided("compose docstring", __name__)
"""Loaded with the first docstring that is read."""


class Documentation(str):
    """A docstring that is composed when a method of it is first called; its characters are those of the source.

    `help`, `inspect.getdoc`, IPython, Sphinx, doctest and `print` call methods. What reads the characters themselves
    finds the source's text, which says the same in fewer words.
    """

    __slots__ = ("_compose", "_whole")
    _compose: Callable[[], str]
    _whole: str | None

    def __new__(cls, source: str, compose: Callable[[], str]) -> Documentation:
        self = super().__new__(cls, source)
        self._compose, self._whole = compose, None
        return self

    @property
    def source(self) -> str:
        """The source's text."""
        return str.__str__(self)

    @property
    def whole(self) -> str:
        """The composed text."""
        if self._whole is None:
            self._whole = self._compose()
        return self._whole

    def __reduce__(self) -> Any:
        return str, (self.whole,)


class TypeText(str):
    """A type as the source writes it, which signatures show without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def unquote_types(thing: Any) -> None:
    """Have `help` show the types in the signature of a function, or of a class's methods, without quotes."""
    members = [inspect.getattr_static(thing, name) for name in dir(thing)] if inspect.isclass(thing) else [thing]
    for member in members:
        function = getattr(member, "__func__", member)  # of a class method
        if isinstance(function, FunctionType):
            types = function.__annotations__
            types.update({name: TypeText(kind) for name, kind in types.items() if isinstance(kind, str)})


def _delegated(name: str) -> Callable[..., Any]:
    def method(self: Documentation, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.whole, name)(*args, **kwargs)

    method.__name__ = name
    return method


for _name in (set(vars(str)) - {"__new__", "__doc__", "__getattribute__", "__getnewargs__", "maketrans"}) | {
    "__format__"
}:
    setattr(Documentation, _name, _delegated(_name))


def document(function: Any, result: Callable[[], tuple[str, str] | None] = lambda: None) -> None:
    """Have a function's docstring composed when it is read.

    result : gives the type and the description of what is returned, where the source does not say
    """
    unquote_types(function)
    source = function.__doc__
    if source is None or isinstance(source, Documentation):
        return
    package = inspect.unwrap(function).__module__.removeprefix("openwork.").partition(".")[0]

    def composed() -> str:
        text: str = _compose(source, inspect.signature(function), package=package, result=result())
        return text

    function.__doc__ = Documentation(source, composed)
