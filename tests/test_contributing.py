"""The recipes of CONTRIBUTING.md, followed word by word in a copy of the tree: each gives what it promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^## (How to add [^\n]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES: dict[str, str] = dict(SECTION.findall((ROOT / "CONTRIBUTING.md").read_text()))

CHECKS = {
    "How to add a level format": """
        x = np.where(rng.random((7, 9)) < 0.4, rng.integers(1, 9, (7, 9)), 0).astype(float)
        t = ow.asarray(x).asformat("graph(9)")
        assert str(t.format) == "(i, j) -> (i : dense, j : neighbours(9))" and ow.format(str(t.format)) == t.format
        same(t, x), same(t @ np.ones(9), x.sum(1)), same(t.asformat("csc"), x), same(t + t.asformat("csr"), 2 * x)
        same(t[1:4], x[1:4]), same(t.T, x.T), same(t @ t.T, x @ x.T), same(t.sum(axis=0), x.sum(0))
        fails(lambda: ow.assemble(t.format, t.shape, crd={1: t.crd(1) + 9}, values=t.values), ow.InvariantError)
        fails(lambda: ow.asarray(x).asformat("graph(1)"), ow.FormatError)
        fails(lambda: ow.format("(i, j) -> (i : dense, j - i : neighbours(2))"), ow.FormatError)
        from openwork.runtime.kernel_text import show_kernel
        text = show_kernel("y(i) += A(i,j) * x(j)", {"A": "(i, j) -> (i : dense, j : neighbours(4))"})
        assert "range(i * 4, i * 4 + 4)" in text, text
    """,
    "How to add an operation": """
        x = np.array([[0.0, 2.0, -1.0], [4.0, 0.0, 0.5]])
        t = ow.asarray(x, format="csr")
        for found in (ow.ptp(t, axis=0), t.ptp(axis=0), np.ptp(t, axis=0), ow.ptp(ow.lazy(t), axis=0)):
            same(found, np.ptp(x, axis=0))
        assert ow.ptp(ow.masked_tensor(x, x != 0)).item() == 5.0
        assert "ptp" in dir(ow.Tensor) and "ptp" in ow.__all__
    """,
    "How to add a gradient": """
        x = np.array([[0.0, 2.0, -3.0], [0.25, 0.0, 0.5]])
        for spec in ("csr", "bsr(2, 3)", "ell(3)"):
            same(ow.asarray(x, format=spec).shrink(0.5), np.sign(x) * np.maximum(abs(x) - 0.5, 0))
        fails(lambda: ow.shrink(ow.asarray(x, format="csr", fill_value=1.0), 0.5), ow.UnsupportedError)
    """,
    "How to add a masked rule": """
        x = np.arange(6.0).reshape(2, 3)
        m = ow.masked_tensor(x, x % 2 == 0)
        for found in (ow.half_turn(m), m.half_turn()):
            assert np.array_equal(found.to_numpy(-1), np.where(x % 2 == 0, x, -1)[::-1, ::-1])
        same(ow.asarray(x, format="coo").half_turn(), x[::-1, ::-1])
    """,
    "How to add a file format": """
        from pathlib import Path
        path = Path("a.pairs")
        path.write_text("; a matrix\\n2 3\\n0 1 2.5\\n1 2 -1\\n")
        same(ow.read(path), [[0, 2.5, 0], [0, 0, -1]])
        path.write_text("2 3\\n0 3 2.5\\n")
        assert "line 2" in str(fails(lambda: ow.read(path), ow.FileFormatError))
    """,
}
GRADIENT = """
        import torch
        x = torch.tensor([[0.0, 2.0, -3.0], [0.25, 0.0, 0.5]], dtype=torch.float64)
        for spec in ("csr", "bsr(2, 3)", "ell(3)"):
            t = ow.asarray(x).asformat(spec)
            values = t.values.clone().requires_grad_()
            out = ow.shrink(ow.Tensor._from_storage(t._storage.with_values(values)), 0.5)
            (out.values**2).sum().backward()
            assert torch.equal(values.grad, 2 * (values.abs() - 0.5).clamp(min=0) * values.sign())
        def made(values):
            return ow.Tensor._from_storage(t._storage.with_values(values)).shrink(0.4).values
        assert torch.autograd.gradcheck(made, values) and torch.autograd.gradgradcheck(made, values)
    """
"""The rest of the recipe for gradients, as torch takes seconds to import."""
HEAD = """
import numpy as np
import openwork as ow

rng = np.random.default_rng(5)

def same(got, want):
    np.testing.assert_array_equal(np.asarray(got.to_numpy() if hasattr(got, "to_numpy") else got), np.asarray(want))

def fails(function, error):
    try:
        function()
    except error as raised:
        return raised
    raise AssertionError("nothing was refused")
"""


def follow(recipe: str, tree: Path) -> None:
    """Put the blocks of a recipe into the tree, in order."""
    for language, body in BLOCK.findall(recipe):
        if language == "py":
            first, rest = body.split("\n", 1)
            path = tree / first.removeprefix("# ")
            assert not path.exists(), f"{path} is there already"
            path.write_text(rest)
        elif language == "diff":
            for file, lines in re.findall(r"^--- (\S+)\n((?:[^-].*\n|-[^-].*\n)+)", body, re.MULTILINE):
                (tree / file).write_text(patched((tree / file).read_text(), lines.splitlines(), file))


def patched(text: str, lines: list[str], file: str) -> str:
    """The text with `+` lines put behind the lines before them, and without `-` lines."""
    out, at = text.splitlines(), 0
    for line in lines:
        sign, content = line[:1], line[1:]
        if sign == "+":
            out.insert(at, content)
            at += 1
            continue
        assert content in out[at:], f"{file} has no line {content!r} there"
        assert at or out.count(content) == 1, f"{file} has {content!r} more than once"
        at = out.index(content, at)
        if sign == "-":
            del out[at]
        else:
            at += 1
    return "\n".join(out) + "\n"


def run(tree: Path, *command: str) -> str:
    settings = {"PYTHONPATH": str(tree / "src"), "OPENWORK_OPTIMIZE": "0", "OPENWORK_CACHE": "0"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENWORK")} | settings
    done = subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the tree in which all recipes were followed."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("src/openwork", "tools", "docs", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".pytest_cache"))
    for name in ("pyproject.toml", "CONTRIBUTING.md", "README.md"):
        shutil.copy(ROOT / name, folder)
    for recipe in RECIPES.values():
        follow(recipe, folder)
    run(folder, "tools/operations.py")
    yield folder
    shutil.rmtree(folder)


def test_each_recipe_is_checked() -> None:
    assert set(RECIPES) == set(CHECKS)


@pytest.mark.ci
def test_the_recipes_give_what_they_promise(tree: Path) -> None:
    run(tree, "-c", HEAD + "".join(map(textwrap.dedent, CHECKS.values())))


def test_a_line_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert patched("a\nb\nc\n", [" b", "+x", "-c"], "f") == "a\nb\nx\n"
    with pytest.raises(AssertionError, match="f has no line 'd' there"):
        patched("a\nb\n", [" d"], "f")
    with pytest.raises(AssertionError, match="more than once"):
        patched("a\nb\nb\n", [" b", "+x"], "f")


@pytest.mark.slow
def test_the_gradient_of_the_recipe_is_torchs(tree: Path) -> None:
    pytest.importorskip("torch")
    run(tree, "-c", HEAD + textwrap.dedent(GRADIENT))


@pytest.mark.slow
def test_the_tests_that_the_recipes_name_pass_in_the_tree(tree: Path) -> None:
    listed = tree / "tests" / "format" / "refusals.txt"
    text = listed.read_text().replace("bitmap, ell; got", "bitmap, ell, neighbours; got")
    listed.write_text(text.replace("dia, ell, csf", "dia, ell, graph, csf"))
    named = (
        "tests/format",
        "tests/test_layers.py",
        "tests/test_level_names.py",
        "tests/test_operations.py",
        "tests/ops/test_convert.py",
    )
    run(tree, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *named)
    run(tree, "tools/operations.py", "--check")
    run(tree, "-m", "ruff", "check", "src")
    run(tree, "-m", "mypy", "--no-error-summary")
