"""Imports go down the list of layers, no file is in a circle, and no module of the package is imported inside a function
(docs/design.md, section 12)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from openwork.provided import provided

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "openwork"

LAYERS = (
    {
        "errors",
        "faults",
        "settings",
        "checked",
        "classes",
        "provided",
        "homes",
        "namespaces",
        "integers",
        "reals",
        "interruptible",
        "progress",
        "tables",
        "tuning",
        "caller",
        "quiet_interrupt",
        "needs_torch",
        "needs_dask",
        "docstrings",
        "lazy_docstring",
        "parameters",
    },
    {"format"},
    {"storage"},
    {"ir"},
    {"compiler"},
    {"codegen"},
    {"runtime"},
    {"tensor"},
    {"interop"},
    {"ops"},
    {"fusion"},
    {
        "io",
        "graph",
        "linalg",
        "decomposition",
        "torch",
        "masked",
        "dask",
        "nn",
        "device",
        "plot",
        "advice",
        "cli",
        "compat",
        "lib",
        "__main__",
    },
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
TOP = len(LAYERS) - 1


def module_name(path: Path, root: Path) -> list[str]:
    parts = ["openwork", *path.relative_to(root).with_suffix("").parts]
    return parts[:-1] if parts[-1] == "__init__" else parts


_BODIES = ("body", "orelse", "handlers", "finalbody", "cases")


def _parts(node: ast.AST, expressions: bool) -> list[ast.AST]:
    """The nodes inside a node; without expressions only the statements, which are a tenth of them."""
    if expressions:
        return list(ast.iter_child_nodes(node))
    return [part for name in _BODIES for part in getattr(node, name, ())]


def _runs(tree: ast.AST, expressions: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every node that runs, and whether it does in a function: what stands under `if TYPE_CHECKING` does not."""
    waiting = [(node, False) for node in _parts(tree, expressions)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [(other, inside) for other in node.orelse]
            continue
        yield node, inside
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        waiting += [(child, inside) for child in _parts(node, expressions)]


def imported(
    tree: ast.AST, module: list[str], is_package: bool, expressions: bool = True
) -> list[tuple[int, str, bool]]:
    """(line, absolute dotted name, whether in a function) of everything that a module imports."""
    found: list[tuple[int, str, bool]] = []
    for node, inside in _runs(tree, expressions):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            keep = len(module) - node.level + is_package
            base = module[:keep] if node.level else []
            source = [*base, *(node.module.split(".") if node.module else [])]
            found += [(node.lineno, ".".join([*source, alias.name]), inside) for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.append((node.lineno, node.args[0].value, inside))
    return [x for x in found if x[1] == "openwork" or x[1].startswith("openwork.")]


FOLDERS = {
    "io": ("shared", "text", "containers", "binary", "files", "out_of_core"),
    "torch": ("gradients", "dense_gradient", "functions", "compiled"),
}
"""Packages whose folders are in layers as well."""


@cache
def sources(root: Path) -> dict[str, list[tuple[int, str, bool]]]:
    """What each module imports; the package's own `__init__` may import anything."""
    out = {}
    for path in sorted(root.rglob("*.py")):
        module = module_name(path, root)
        if module != ["openwork"]:
            text = path.read_text()
            calls = "import_module" in text or "__import__" in text
            out[".".join(module)] = imported(ast.parse(text), module, path.name == "__init__.py", calls)
    return out


def violations(root: Path) -> list[str]:
    """Every import that goes up."""
    wrong = []
    for module, imports in sources(root).items():
        package = module.split(".")[1]
        if package not in RANK:
            wrong.append(f"{module}: package {package} is in no layer")
            continue
        for line, name, _ in imports:
            target = name.split(".")[1] if "." in name else ""
            if RANK.get(target, TOP) > RANK[package]:
                wrong.append(f"{module}:{line} imports {name}")
    return wrong


def climbs(root: Path, package: str) -> list[str]:
    """Every import inside a package that goes up its folders; its `__init__` and what is in no folder may import all.

    The last folder may import what is in none.
    """
    order = FOLDERS[package]
    inside = [(m.split("."), imports) for m, imports in sources(root).items() if m.startswith(f"openwork.{package}.")]
    assert {module[2] for module, _ in inside} >= set(order)
    return [
        f"{'.'.join(module)}:{line} imports {name}"
        for module, imports in inside
        for line, name, _ in imports
        if module[2] in order and name.startswith(f"openwork.{package}.")
        if (name.split(".")[2] in order or module[2] != order[-1])
        and name.split(".")[2] not in order[: order.index(module[2]) + 1]
    ]


def circles(root: Path, hidden_arrows: bool = False) -> list[tuple[str, ...]]:
    """Sets of modules that import each other, at module level or inside functions.

    hidden_arrows : count imports that only type checkers see, and modules that are named by a text, as well
    """
    imports = sources(root)
    graph = {m: {_module(name, imports) for _, name, _ in found} - {m} for m, found in imports.items()}
    if hidden_arrows:
        for path in root.rglob("*.py"):
            parts = module_name(path, root)
            if ".".join(parts) in graph:
                graph[".".join(parts)] |= _hidden_arrows(path, parts, imports.keys()) - {".".join(parts)}
    reach = {m: _reachable(graph, m) for m in graph}
    found = {tuple(sorted({m, *(n for n in reach[m] if m in reach.get(n, ()))})) for m in graph if m in reach[m]}
    return sorted(found)


def _hidden_arrows(path: Path, parts: list[str], modules: Collection[str]) -> set[str]:
    """The modules that a module names by a text, "ops.axes" or "openwork.ops.axes", or under `if TYPE_CHECKING`."""
    known, found = set(modules), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            text = node.value.removeprefix("openwork.").removeprefix(".")
            found |= {f"openwork.{text}"} & known
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            body = ast.Module(list(node.body), [])
            found |= {_module(name, modules) for _, name, _ in imported(body, parts, path.name == "__init__.py")}
    return found & known


def _module(name: str, known: Collection[str]) -> str:
    return name if name in known else name.rpartition(".")[0]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        m = waiting.pop()
        if m not in seen:
            seen.add(m)
            waiting += graph.get(m, ())
    return seen


def hidden(root: Path) -> list[str]:
    """Imports of own modules inside functions."""
    return [
        f"{module}:{line} imports {name}"
        for module, imports in sources(root).items()
        for line, name, inside in imports
        if inside
    ]


def provided_names(root: Path) -> set[str]:
    """The names that modules call as `provided(name)`."""
    texts = (text for path in root.rglob("*.py") if "provided(" in (text := path.read_text()))
    nodes = (node for text in texts for node in ast.walk(ast.parse(text)))
    return {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "provided"
        and isinstance(node.args[0], ast.Constant)
    }


@pytest.mark.ci
def test_imports_go_down_the_layers() -> None:
    assert violations(PACKAGE) == []


@pytest.mark.parametrize("package", FOLDERS)
def test_imports_go_down_the_folders_of_a_package(package: str) -> None:
    assert climbs(PACKAGE, package) == []


def test_no_file_is_in_a_circle() -> None:
    assert circles(PACKAGE) == []


@pytest.mark.ci
def test_arrows_that_only_type_checkers_or_texts_make_close_few_circles() -> None:
    """The classes of tensors are written in mixins, whose methods say that they give a tensor; nothing else may."""
    inside = [{module.split(".")[1] for module in circle} for circle in circles(PACKAGE, hidden_arrows=True)]
    assert sorted(map(sorted, inside)) == [["masked"], ["tensor"]]
    assert sum(map(len, circles(PACKAGE, hidden_arrows=True))) <= 13


def test_no_own_module_is_imported_inside_a_function() -> None:
    assert hidden(PACKAGE) == []


def test_what_is_called_by_name_is_provided() -> None:
    pytest.importorskip("torch")
    names = provided_names(PACKAGE)
    assert len(names) > 100
    for name in names:
        found = provided(name).resolve()
        assert callable(found) or isinstance(found, dict)


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
        ("runtime/a.py", "from ..tensor.tensor import Tensor"),
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
        (
            "tensor/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..ops.sets import unique_values",
        ),
        ("__init__.py", "from . import cli"),
    ],
)
def test_the_check_lets_imports_that_go_down_pass(tmp_path: Path, place: str, text: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert violations(tmp_path) == []


def test_the_check_finds_a_circle_and_an_import_inside_a_function(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "a.py").write_text("from .b import x")
    (tmp_path / "ops" / "b.py").write_text("def f():\n    from .c import x")
    (tmp_path / "ops" / "c.py").write_text("from . import a")
    assert circles(tmp_path) == [("openwork.ops.a", "openwork.ops.b", "openwork.ops.c")]
    assert hidden(tmp_path) == ["openwork.ops.b:2 imports openwork.ops.c.x"]


@pytest.mark.parametrize("arrow", ["HOME = 'ops.b'", "if TYPE_CHECKING:\n    from .b import x"])
def test_the_check_finds_a_circle_that_imports_do_not_show(tmp_path: Path, arrow: str) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "a.py").write_text(arrow)
    (tmp_path / "ops" / "b.py").write_text("from . import a")
    assert circles(tmp_path) == []
    assert circles(tmp_path, hidden_arrows=True) == [("openwork.ops.a", "openwork.ops.b")]


@pytest.mark.parametrize(
    ("name", "wrong"), [("shared", []), ("containers", ["openwork.io.text.a:1 imports openwork.io.containers.b"])]
)
def test_the_check_finds_an_import_that_goes_up_the_folders(tmp_path: Path, name: str, wrong: list[str]) -> None:
    for folder in FOLDERS["io"]:
        (tmp_path / "io" / folder).mkdir(parents=True)
        (tmp_path / "io" / folder / "a.py").write_text(f"from ..{name} import b" if folder == "text" else "")
    assert climbs(tmp_path, "io") == wrong
