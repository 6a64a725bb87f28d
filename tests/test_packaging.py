"""Wheel and source archive are built and installed in a fresh environment without a compiler; their metadata agrees."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import openwork as ow

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLEAN = "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2], ignore=shutil.ignore_patterns('.git', '*.egg-info', '__pycache__', 'build'))"
BUILD = "import setuptools.build_meta as b; b.build_{kind}({folder!r})"


def test_the_version_stands_once() -> None:
    assert PROJECT["project"]["dynamic"] == ["version", "readme"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "openwork.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", ow.__version__)


def test_extras_are_minimal() -> None:
    """What everybody installs is NumPy, SciPy, llvmlite and rich; an extra names what its subject needs."""
    names = {re.split(r"[\[<>=]", d)[0] for d in PROJECT["project"]["dependencies"]}
    assert names == {"numpy", "scipy", "llvmlite", "rich"}
    extras = PROJECT["project"]["optional-dependencies"]
    assert {name: len(e) for name, e in extras.items() if name not in ("test", "docs") and len(e) > 3} == {}


def test_the_page_of_the_package_has_absolute_links() -> None:
    """And each leads to a file of this tree."""
    names = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    repository = PROJECT["project"]["urls"]["Repository"]
    text = names["absolute"]((ROOT / "README.md").read_text(), repository)
    links = re.findall(r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', text)
    found = [a or b for a, b in links]
    assert len(found) > 25
    assert [link for link in found if not link.startswith("https://")] == []
    paths = [m[1] for link in found if (m := re.search(r"/openwork(?:/blob)?/main/([^#]+)", link))]
    assert len(paths) > 25
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_supported_versions_agree() -> None:
    """Classifiers, the workflow for public hosts and the README say the same versions of Python."""
    said = {c.rsplit(" ", 1)[1] for c in PROJECT["project"]["classifiers"] if re.search(r"Python :: 3\.\d+$", c)}
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    for row in re.findall(r"python: \[(.*)\]", workflow):
        assert set(re.findall(r"3\.\d+", row)) == said
    assert PROJECT["project"]["requires-python"] == f">={min(said, key=lambda v: int(v[2:]))}"
    assert "pip install -c constraints.txt -e '.[test]' && pytest" in workflow


def test_the_citation_is_there() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"license: {PROJECT['project']['license']}" in text
    assert "title: openwork" in text


def build(kind: str, source: Path, folder: Path) -> Path:
    """A wheel or source archive of a tree, by the backend that pyproject names."""
    folder.mkdir()
    code = BUILD.format(kind=kind, folder=str(folder))
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (found,) = folder.iterdir()
    return found


@pytest.mark.slow
def test_wheel_and_source_archive_work_without_a_compiler(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    subprocess.run([sys.executable, "-c", CLEAN, str(ROOT), str(tree)], check=True)
    archive = build("sdist", tree, tmp_path / "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    for path in ("README.md", "docs/images/openwork.svg", "tests/conftest.py", "constraints.txt", "CITATION.cff"):
        assert (unpacked / path).exists(), path
    wheel = build("wheel", tree, tmp_path / "wheel")
    again = build("wheel", unpacked, tmp_path / "again")
    assert wheel.name == again.name == f"openwork-{ow.__version__}-py3-none-any.whl"
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("RECORD")}
    assert names == {name for name in zipfile.ZipFile(again).namelist() if not name.endswith("RECORD")}
    for path in ("openwork/py.typed", "openwork/__init__.pyi", "openwork/tensor/methods.pyi", "openwork/__main__.py"):
        assert path in names
    assert not [name for name in names if name.startswith("tests")]
    installed(wheel, tmp_path / "fresh")


def installed(wheel: Path, place: Path) -> None:
    """Install a wheel in an environment of its own, whose dependencies are this one's, and run it where no program is."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel], check=True)
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (Path(packages) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    env = {
        "PATH": str(place / "bin"),
        "HOME": str(place),
        "OPENWORK_CACHE_DIR": str(place / "cache"),
        "LANG": "C.UTF-8",
    }
    where = subprocess.run(
        [python, "-c", "import openwork; print(openwork.__file__)"],
        env=env,
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert where.startswith(str(place))
    done = subprocess.run(
        [place / "bin" / "openwork", "doctor"], env=env, cwd=place, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "equal to NumPy" in done.stdout
    assert ow.__version__ in done.stdout
    formats = subprocess.run(
        [python, "-m", "openwork", "formats"], env=env, cwd=place, check=True, capture_output=True, text=True
    )
    assert formats.stdout.startswith("name")
    assert not os.path.exists(place / "bin" / "cc")
