"""Scripts written for scipy.sparse run with their import changed, and give the same numbers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as theirs

SCRIPTS = Path(__file__).parent / "scripts"


def ran(name: str, *, ours: bool) -> list[Any]:
    text = (SCRIPTS / f"{name}.py").read_text()
    if ours:
        text, changes = re.subn(r"\bimport scipy\.sparse\b|\bfrom scipy\.sparse\b", _changed, text)
        assert changes == text.count("openwork.compat.scipy_sparse")
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, f"{name}.py", "exec"), names)
    module = "openwork" if ours else "scipy"
    assert type(names.get("A", names.get("X"))).__module__.startswith(module)
    return names["results"]


def _changed(found: re.Match[str]) -> str:
    return found.group().replace("scipy.sparse", "openwork.compat.scipy_sparse")


def cells(path: Path) -> None:
    """A file of 10x's: counts of 150 genes in 240 cells of three kinds."""
    rng = np.random.default_rng(7)
    rates = rng.gamma(0.3, 1.0, (3, 150))[rng.integers(0, 3, 240)] * rng.gamma(4.0, 0.3, (240, 1))
    scipy.io.mmwrite(path, theirs.coo_array(rng.poisson(rates).T), field="integer")


def files() -> list[str]:
    """The data folder's counts of single cells, where it is there."""
    data = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    return [str(p) for p in sorted(data.glob("singlecell/10x_data__3.0.0*matrix.mtx.gz"))]


@pytest.mark.parametrize("name", ["fem", "text", "cells"])
def test_a_script_for_scipy_runs_with_its_import_changed(name, tmp_path, monkeypatch):
    if name == "cells":
        pytest.importorskip("sklearn")
        cells(tmp_path / "matrix.mtx")
        monkeypatch.setenv("MATRIX", str(tmp_path / "matrix.mtx"))
    agree(name)


@pytest.mark.parametrize("path", files() or [None])
def test_the_script_of_single_cells_on_real_counts(path, monkeypatch):
    if path is None:
        pytest.skip("no data folder")
    pytest.importorskip("sklearn")
    monkeypatch.setenv("MATRIX", path)
    agree("cells")


def agree(name: str) -> None:
    pairs = list(zip(ran(name, ours=True), ran(name, ours=False), strict=True))
    assert len(pairs) > 10
    for k, (got, want) in enumerate(pairs):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10, err_msg=f"result {k}")
