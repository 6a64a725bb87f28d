"""Tell the tracer of torch.compile to leave this package's functions alone: it breaks the graph around them.

The tracer is loaded by the first torch.compile; until then nothing of it is imported, and a finder waits for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ..storage.storage import Storage
from .strided import Strided

__all__ = ["leave_alone"]

_RULES = "torch._dynamo.trace_rules"
_PACKAGE = __name__.partition(".")[0]


class _Waiting(MetaPathFinder):
    """Finds the tracer's rules as others do, and adds to them when they are loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _RULES:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _add(module)

            loader.exec_module = exec_module
        return spec


def leave_alone() -> None:
    """Once, when the first tensor over torch buffers is made."""
    global _told
    if _told:
        return
    _told = True
    if _RULES in sys.modules:
        _add(sys.modules[_RULES])
    else:
        sys.meta_path.insert(0, _Waiting())


_told = False


def _add(rules: Any) -> None:
    """The package's files; the constructors that dataclasses write are in no file until they are told theirs."""
    if hasattr(rules, "add"):
        rules.add(_PACKAGE)
    for kind in (Storage, Strided):
        init: Any = kind.__init__
        init.__code__ = init.__code__.replace(co_filename=__file__)
