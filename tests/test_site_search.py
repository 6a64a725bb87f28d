"""The site's search, run as a browser runs it: what readers ask for finds the page that answers first.

OPENWORK_SITE names a site that is built; without it one is built, the gallery's scripts not run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
Search = Callable[[str], list[str]]

ANSWERS = {
    # what the newcomer of the findings typed
    "ow.write": "openwork.write",
    "ow.linalg.cg": "openwork.linalg.cg",
    "save": "openwork.write",
    "csr_matrix": "coming-from/scipy",
    "conjugate gradient": "openwork.linalg.cg",
    "install": "install",
    "top-k": "openwork.topk",
    "spmm": "openwork.matmul",
    "matrix market": "files",
    "gradient": "torch-gradients#gradients",
    # and others
    "ow.einsum": "openwork.einsum",
    "write": "openwork.write",
    "load": "openwork.read",
    "pca": "openwork.linalg.pca",
    "Tensor.to_numpy": "openwork.Tensor.to_numpy",
    "todense": "openwork.Tensor.to_numpy",
    "nnz": "openwork.Tensor.nse",
    "softmax": "openwork.softmax",
    "sparse matrix multiplication": "openwork.matmul",
    "eigenvalues": "openwork.linalg.eigsh",
    "preconditioner": "linalg#preconditioners",
    "cholesky": "openwork.linalg.cholesky",
    "cite": "citation",
    "license": "citation",
    "release notes": "changelog",
    "missing values": "masked",
    "fill value": "values",
    "dask": "dask",
    "larger than memory": "scale",
    "shortest path": "openwork.graph.sssp",
    "gcn": "openwork.nn.GraphConv",
    "which format": "advice",
    "identity matrix": "openwork.eye",
    "scikit-learn": "compatibility",
    "ShapeError": "openwork.ShapeError",
    "benchmarks": "benchmarks",
    "own format": "formats",
    "masked mean": "openwork.masked.mean",
    "mean of missing values": "masked",
    "drop-in scipy": "coming-from/scipy",
    "convert a file": "openwork.convert",
    "progress": "linalg#progress",
    "print storage": "formats",
    "cg": "openwork.linalg.cg",
    "cp_als": "openwork.decomposition.cp_als",
}
"""What is asked -> the page, with its section, or the public name that comes first."""

BROWSER = """
const document = {getElementById: () => null, readyState: "loading", addEventListener: () => null, querySelectorAll: () => []};
const window = globalThis;
const localStorage = {setItem: () => null, getItem: () => null, removeItem: () => null};
const DOCUMENTATION_OPTIONS = {};
const _ = (text) => text;
const SPHINX_HIGHLIGHT_ENABLED = false;
const _ready = () => null;
"""
"""What the site's scripts ask of a browser before they search."""

ASK = "JSON.stringify(Search._performSearch(...Search._parseQuery(%s)).reverse().map(r => r[0] + r[2]))"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = os.environ.get("OPENWORK_SITE")
    if built:
        return Path(built)
    pytest.importorskip("pydata_sphinx_theme")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-D", "plot_gallery=0", "docs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def search(site: Path) -> Search:
    """A query -> the addresses that the site's own scripts list, best first."""
    racer = pytest.importorskip("py_mini_racer").MiniRacer()
    racer.eval(BROWSER)
    for name in ("_static/language_data.js", "_static/searchtools.js", "searchindex.js"):
        racer.eval((site / name).read_text())
    return lambda query: json.loads(racer.eval(ASK % json.dumps(query)))


def is_answer(found: str, wanted: str) -> bool:
    """Whether an address, `page#anchor`, is that of a public name, or of the page or section that is wanted."""
    if wanted.startswith("openwork."):
        return found.endswith(f"#{wanted}")
    return found == wanted or ("#" not in wanted and found.partition("#")[0] == wanted)


@pytest.mark.ci
@pytest.mark.timeout(900)
@pytest.mark.parametrize("query", ANSWERS)
def test_the_first_find_answers(query: str, search: Search) -> None:
    assert is_answer(search(query)[0], ANSWERS[query]), search(query)[:5]


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_what_is_nowhere_is_not_found(search: Search) -> None:
    assert search("xyzzyplugh") == []


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_the_packages_abbreviation_finds_nothing_by_itself(search: Search) -> None:
    assert 1 < len(search("ow.write")) < 100


def test_answers_are_told_apart() -> None:
    assert is_answer("reference/openwork.linalg.cg#openwork.linalg.cg", "openwork.linalg.cg")
    assert not is_answer("reference/openwork.linalg.cgs#openwork.linalg.cgs", "openwork.linalg.cg")
    assert is_answer("files", "files")
    assert is_answer("files#formats", "files")
    assert not is_answer("torch", "torch#gradients")
