"""Imports go down the list of layers only, at module level or inside functions (docs/design.md, section 12)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "openwork"

LAYERS = (
    {"checked", "errors", "faults", "integers", "interruptible", "settings"},
    {"format"},
    {"storage"},
    {"ir"},
    {"compiler"},
    {"codegen"},
    {"ops"},
    {"io", "linalg", "torch", "masked", "dask", "nn", "plot", "cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
TOP = len(LAYERS) - 1

# The array API standard has a tensor's `__array_namespace__` return the package itself.
ALLOWED = {("openwork.ops.tensor", "openwork")}


def module_name(path: Path, root: Path) -> list[str]:
    parts = ["openwork", *path.relative_to(root).with_suffix("").parts]
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(tree: ast.AST, module: list[str], is_package: bool) -> list[tuple[int, str]]:
    """(line, absolute dotted name) of everything that a module imports, lazily or not."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            keep = len(module) - node.level + is_package
            base = module[:keep] if node.level else []
            source = [*base, *(node.module.split(".") if node.module else [])]
            found += [(node.lineno, ".".join([*source, alias.name])) for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.append((node.lineno, node.args[0].value))
    return [(line, name) for line, name in found if name == "openwork" or name.startswith("openwork.")]


def violations(root: Path) -> list[str]:
    """Every import that goes up; the package's own `__init__` may import anything."""
    wrong = []
    for path in sorted(root.rglob("*.py")):
        module = module_name(path, root)
        if module == ["openwork"]:
            continue
        if module[1] not in RANK:
            wrong.append(f"{path.name}: package {module[1]} is in no layer")
            continue
        rank = RANK[module[1]]
        for line, name in imported(ast.parse(path.read_text()), module, path.name == "__init__.py"):
            target = name.split(".")[1] if "." in name else ""
            above = RANK.get(target, TOP) > rank
            if above and (".".join(module), name) not in ALLOWED:
                wrong.append(f"{'.'.join(module)}:{line} imports {name}")
    return wrong


def test_imports_go_down_the_layers() -> None:
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("format/a.py", "from openwork.ops import tensor"),
        ("format/a.py", "from ..storage.buffers import empty"),
        ("storage/a.py", "def f():\n    from .. import ops"),
        ("ir/a.py", "import openwork.codegen.emit"),
        ("compiler/a.py", "def f():\n    import openwork as ow"),
        ("compiler/__init__.py", "from ..codegen import engine"),
        ("codegen/a.py", "import importlib\nimportlib.import_module('openwork.ops')"),
        ("codegen/deep/a.py", "from ...ops import tensor"),
        ("surprise/a.py", ""),
    ],
)
def test_the_check_finds_an_import_that_goes_up(tmp_path: Path, place: str, text: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("ops/a.py", "from ..codegen import engine\nfrom . import b\nfrom .b import c"),
        ("format/levels/dense.py", "from ..level import LevelFormat\nfrom ...errors import FormatError"),
        ("cli/a.py", "import openwork as ow\nfrom openwork.io import read"),
        ("__init__.py", "from . import cli"),
    ],
)
def test_the_check_lets_imports_that_go_down_pass(tmp_path: Path, place: str, text: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert violations(tmp_path) == []
