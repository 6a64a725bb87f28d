"""Records kernels while something runs: each with its key, its loop nest as lowered, its executable.

The one thing that is known of the package is its kernel cache, `openwork.codegen.cache.get(key, build)`, which every
kernel is asked of; so the recorder serves trees of any age.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = ["Recorded", "lowered", "recorded"]


@dataclass(frozen=True)
class Recorded:
    """A kernel that was asked for: `executable.loops` is its text, `build()` lowers it anew."""

    key: str
    executable: Any
    build: Callable[[], Any]


@contextmanager
def recorded() -> Iterator[list[Recorded]]:
    """The kernels that are asked for inside, each once, in the order of the first time."""
    cache = import_module("openwork.codegen.cache")
    original, kernels, seen = cache.get, [], set()

    def get(key: str, build: Callable[[], Any]) -> Any:
        executable = original(key, build)
        if key not in seen:
            seen.add(key)
            kernels.append(Recorded(key, executable, build))
        return executable

    with _replaced(original, get):
        yield kernels


def lowered(kernel: Recorded) -> tuple[Any, Any]:
    """The loop nest that a kernel is lowered to, and what it is simplified to; the same where it is in its last form."""
    simplify = import_module("openwork.compiler.simplify").simplify
    nests: list[Any] = []

    def noted(nest: Any) -> Any:
        nests.append(nest)
        return simplify(nest)

    with _replaced(simplify, noted):
        final = kernel.build()
    return (nests[-1] if nests else final), final


@contextmanager
def _replaced(old: Any, new: Any) -> Iterator[None]:
    """`new` wherever a module of the package holds `old`, and back."""
    _put(old, new)
    try:
        yield
    finally:
        _put(new, old)


def _put(old: Any, new: Any) -> None:
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "openwork":
            for attribute in [a for a, value in vars(module).items() if value is old]:
                setattr(module, attribute, new)
