"""Modules of the package -> rules of torch.compile's tracer that skip them: it breaks the graph around their functions.

The tracer is loaded by the first torch.compile; until then nothing of it is imported, and an import hook waits for it.
It may trace the layers of `openwork.nn` and what replaces products (`openwork.torch.compiled.traced`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..storage.buffers import at_first_tensor

__all__ = ["substitute"]

_LAST = "torch._dynamo.polyfills.loader"
"""The module of the tracer that is loaded when all others are."""
_PACKAGE = __name__.partition(".")[0]
_SKIPPED = (
    "errors", "format", "storage", "ir", "compiler", "codegen", "runtime", "tensor", "interop", "fusion", "ops", "io",
    "linalg", "masked", "cli",
)  # fmt: skip

_BUFFERS = r".*\._raw_storage\.(values|pos|crd)"
"""The names that the tracer gives to the buffers of a tensor."""

substitute: Callable[[], None] | None = None
"""Registers the functions that replace products in a graph; set by the package."""


class _LoadHook(MetaPathFinder):
    """A finder of the tracer's last module, which adds the package's rules once that is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _LAST:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _add_rules()

            loader.exec_module = exec_module
        return spec


def leave_alone() -> None:
    """Add the rules, now or when the tracer is loaded; called once, when the first of torch's tensors is met."""
    if _LAST in sys.modules:
        _add_rules()
    else:
        sys.meta_path.insert(0, _LoadHook())


at_first_tensor.append(leave_alone)


def _add_rules() -> None:
    """Add the package's files to the tracer's rules."""
    rules: Any = sys.modules.get("torch._dynamo.trace_rules")
    if not hasattr(rules, "add"):
        return
    if substitute is not None:
        substitute()
    root = Path(__file__).parents[1]
    torch_modules = [
        ".".join(p.relative_to(root).with_suffix("").parts)
        for p in root.glob("torch/**/[a-z]*.py")
        if "traced" not in p.stem
    ]
    for name in (*_SKIPPED, *sorted(torch_modules)):
        rules.add(f"{_PACKAGE}.{name}")
    _let_sizes_vary()


def _let_sizes_vary() -> None:
    """Take the lengths of buffers as unknown from the first graph on: another number of elements is no other graph.

    The tracer does so by itself once it has met two lengths, which is one graph more. Before torch 2.7 it has no list.
    """
    config: Any = getattr(sys.modules["torch"].compiler, "config", None)
    if hasattr(config, "dynamic_sources"):
        config.dynamic_sources = ",".join(filter(None, (config.dynamic_sources, _BUFFERS)))
