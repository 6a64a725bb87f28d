"""Every public function of NumPy on Tensors: right, or refused with a typed error; the page says which."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import openwork as ow

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
numpy_functions = pytest.importorskip("numpy_functions")

EVERY = 12
"""Every so manyth function is tried in each run; all of them take half a minute."""
BARE = ("isfortran",)
"""Functions of NumPy that ask for memory, and dispatch to nobody."""


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", ["coo", "dense"])
def test_some_functions(format: str) -> None:
    names = [name for name, _ in numpy_functions.functions()][3::EVERY]
    found = numpy_functions.answers(names, format)
    assert len(found) > 20
    wrong = {name: answer.wrong for name, answer in found.items() if answer.wrong and name not in BARE}
    assert wrong == {}


@pytest.mark.slow
def test_all_functions_and_the_page() -> None:
    found = numpy_functions.answers()
    assert {name: a.wrong for name, a in found.items() if a.wrong and name not in BARE} == {}
    assert numpy_functions.section(found) in numpy_functions.PAGE.read_text()


def test_the_page_has_every_function_that_numpy_has() -> None:
    page = numpy_functions.PAGE.read_text()
    taken = page.partition("**Taken")[2].partition("**Refused")[0]
    for name in ("pad", "quantile", "fmax", "where", "split", "unique", "interp", "nanmedian", "linalg.norm"):
        assert f"`{name}`" in taken


def test_the_spectral_norm_of_a_laplacian_and_of_nothing() -> None:
    x = 3 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
    x -= np.diag(x.sum(1))
    for format in ("csr", "coo"):
        np.testing.assert_allclose(np.linalg.norm(ow.asarray(x, format=format), 2).item(), np.linalg.norm(x, 2))
        assert np.linalg.norm(ow.asarray(x * 0, format=format), 2).item() == 0
