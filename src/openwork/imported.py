"""A module's name and a function -> a call of the function once that module has been imported, by whomever.

    when_imported("distributed.protocol.serialize", register)

A library that has no entry point for what it is to be told can be told as soon as it is there, and is not imported
for that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["when_imported"]


def when_imported(name: str, call: Callable[[ModuleType], None]) -> None:
    """Call `call` with the module `name`: now where it is there, else when its import has ended."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        call(module)
    else:
        sys.meta_path.insert(0, _Waiting(name, call))


class _Waiting:
    """A finder that finds one module, by asking the others, and is told when that has been executed."""

    def __init__(self, name: str, call: Callable[[ModuleType], None]) -> None:
        self.name, self.call, self.asks = name, call, False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of the module that is waited for; None of all others."""
        if name != self.name or self.asks:
            return None
        self.asks = True
        try:
            spec = find_spec(name)
        finally:
            self.asks = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.call(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
