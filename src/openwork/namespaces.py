"""A module's public names -> its `__getattr__` and `__dir__`; a table of functions by name -> what enters them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .errors import suggestion

__all__ = ["NoAttribute", "absent", "entering", "hint", "listing"]

MODULES = ("linalg", "graph", "decomposition", "nn", "masked", "plot", "io", "dask", "torch", "compat/scipy_sparse")
"""The public modules of openwork, in the order in which a name that is not where it was sought is looked for."""

F = TypeVar("F", bound=Callable[..., Any])


class NoAttribute(AttributeError):
    """An object has no attribute of a name. What was meant is sought when the message is read: most who ask are
    `hasattr`, and `numpy.asarray` asks three times.
    """

    def __str__(self) -> str:
        return super().__str__() + hint(self.name or "", dir(type(self.obj)))

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


NoAttribute.__name__, NoAttribute.__qualname__, NoAttribute.__module__ = "AttributeError", "AttributeError", "builtins"
"""Tracebacks and pickles have it as what it is."""


def absent(module: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """A module's `__getattr__`, which asks whether one of its public names was meant."""

    def missing(name: str) -> NoReturn:
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint(name, known)}", name=name)

    return missing


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is not among those known: where openwork has it, else one like it."""
    if name.startswith("_"):
        return ""
    homes = [f"openwork.{module.replace('/', '.')}" for module in MODULES if name in _public(module)]
    if name in getattr(sys.modules[__package__], "_LAZY", ()):
        homes.insert(0, "openwork")
    return f"\n  help: {homes[0]}.{name}" if homes else suggestion(name, known)


@cache
def _public(module: str) -> frozenset[str]:
    """A public module's names, from its source: to import some of them takes torch or Dask."""
    try:
        tree = ast.parse((Path(__file__).parent / module / "__init__.py").read_text("utf-8"))
    except OSError:  # no files here: a package in a zip file
        return frozenset()
    lists = (n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
    return frozenset(name for found in lists for name in ast.literal_eval(found))


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
