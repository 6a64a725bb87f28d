"""The Python blocks of the README and of the pages run, and the README keeps its two commands."""

from __future__ import annotations

import doctest
import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from openwork.errors import UnsupportedError

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "coming-from").glob("*.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


OUTPUT = re.compile(
    r"^```python\n((?:(?!^```$).)*)^```\n\n```\{code-block\} text\n:class: output\n\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def outputs(text: str) -> dict[int, str]:
    """What the page shows below a block as its output, by the line of the block."""
    return {text.count("\n", 0, m.start(1)) + 1: m[2] for m in OUTPUT.finditer(text)}


def blocks(text: str) -> list[tuple[int, str]]:
    """(line, code) of each block marked as Python."""
    return [(text.count("\n", 0, m.start(1)) + 1, m[1]) for m in BLOCK.finditer(text)]


@pytest.mark.thin(48, rest="ci")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of one page share their names, as a reader would type them, and print what is shown below them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    shown = outputs(page.read_text())
    for line, code in blocks(page.read_text()):
        capsys.readouterr()
        try:
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        except UnsupportedError as error:
            lacking = re.search(r"help: pip install (\w+)", str(error))
            if lacking is None or find_spec(lacking[1]) is not None:
                raise
            pytest.skip(f"needs {lacking[1]}")
        if line in shown:
            got = capsys.readouterr().out
            is_shown = doctest.OutputChecker().check_output(shown[line], got, doctest.ELLIPSIS)
            assert is_shown or got == shown[line]
    assert page.exists()


def test_outputs_are_those_of_the_block_above() -> None:
    text = "```python\na\n```\n\ntext\n\n```python\nb\n```\n\n```{code-block} text\n:class: output\n\n1\n2\n```\n"
    assert outputs(text) == {8: "1\n2\n"}
    assert len(outputs((ROOT / "docs" / "masked.md").read_text())) >= 5
    assert len(outputs((ROOT / "docs" / "tutorial.md").read_text())) >= 15


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("line", [line for line, _ in blocks(PAGES[0].read_text())])
def test_each_block_of_the_readme_runs_alone(
    line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever copies one block has all that it needs, and sees what the comments behind `print` say."""
    monkeypatch.chdir(tmp_path)
    code = dict(blocks(PAGES[0].read_text()))[line]
    for library in ("torch", "networkx"):
        if f"import {library}" in code:
            pytest.importorskip(library)
    exec(compile("\n" * (line - 1) + code, str(PAGES[0]), "exec"), {"__name__": "alone"})
    said = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines()[: len(said)] == said


def test_readme_has_examples() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(blocks(text)) >= 3
    assert len(re.findall(r"^print\(.*\)  # ", text, re.MULTILINE)) >= 10


def test_a_broken_block_is_found() -> None:
    ((line, code),) = blocks("text\n```python\nassert 1 == 2\n```\n")
    assert line == 3
    with pytest.raises(AssertionError):
        exec(code, {})


@pytest.mark.parametrize(
    "command", ["pip install . && openwork tour", "pip install -c constraints.txt -e '.[test]' && pytest"]
)
def test_readme_has_its_commands(command: str) -> None:
    assert command in (ROOT / "README.md").read_text().splitlines()


def test_ci_takes_its_command_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "README.md" in script
    assert "set -euo pipefail" in script


def test_constraints_pin_torch_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert "torch==2.13.0" in lines
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines if line and not line.startswith("#"))


def test_entry_points_are_functions() -> None:
    """What the installed package promises others is there."""
    pytest.importorskip("dask")
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for points in (table["scripts"], *table["entry-points"].values()):
        for name, target in points.items():
            module, _, function = target.partition(":")
            found = import_module(module)
            assert found.__doc__ if not function else callable(getattr(found, function)), (
                name
            )  # networkx takes a module
