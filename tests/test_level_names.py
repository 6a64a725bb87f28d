"""Sources outside `format/` know no level format by class or name: what they need is a property or a level function."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from openwork.format.levels import LEVEL_FORMATS

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "openwork"
CLASSES = {cls.__name__ for cls in LEVEL_FORMATS.values()}
_SUSPECT = re.compile(rf"\.name\b|\b({'|'.join(sorted(CLASSES))})\b")


def known(text: str) -> list[str]:
    """Each place that names a level format's class, or looks at `.name` of a level format."""
    if not _SUSPECT.search(text):
        return []
    found, tree = [], ast.parse(text)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    shown = {inner for text in joined for inner in ast.walk(text)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and "levels" in node.module.split("."):
            found += [f"{node.lineno}: imports {alias.name}" for alias in node.names if alias.name in CLASSES]
        elif isinstance(node, ast.Attribute) and node.attr in CLASSES:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Compare) and any(_is_name(side) for side in (node.left, *node.comparators)):
            sides = [node.left, *node.comparators]
            names = {
                c.value
                for side in sides
                for c in ast.walk(side)
                if isinstance(c, ast.Constant) and isinstance(c.value, str)
            }
            if names & set(LEVEL_FORMATS) and node not in shown:
                found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif _asks_name(node) and node not in shown:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def _asks_name(node: ast.AST) -> bool:
    """Whether `node` is `level.format.name`."""
    match node:
        case ast.Attribute(attr="name", value=ast.Attribute(attr="format", value=e)):
            return _is_level(e)
    return False


def _is_name(e: ast.expr) -> bool:
    return isinstance(e, ast.Attribute) and e.attr == "name"


def _is_level(e: ast.expr) -> bool:
    """Whether `e` reads as a level: `level`, `x.levels[k]`, `levels[k]`."""
    text = ast.unparse(e)
    return text.endswith("level") or "levels[" in text


@pytest.mark.ci
def test_level_formats_are_known_by_property_only() -> None:
    sources = [p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0] != "format"]
    places = {str(p.relative_to(PACKAGE)): found for p in sources if (found := known(p.read_text()))}
    assert len(sources) > 200
    assert places == {}


@pytest.mark.parametrize(
    "text",
    [
        "from ..format.levels import Compressed",
        "isinstance(x, levels.Dense)",
        "if level.format.name == 'compressed': pass",
        "x = f.name in ('dense', 'range')",
        "kinds = [level.format.name for level in f.levels]",
        "format.levels[0].format.name",
    ],
)
def test_the_check_finds_a_name(text: str) -> None:
    assert known(text)


def test_names_may_be_shown() -> None:
    assert known('f"{level.format.name} cannot hold this"') == []
    assert known("t.format.name in ('dia', 'csc')") == []
