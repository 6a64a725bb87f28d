"""Dense operands of every operation that takes them, as views: what is computed is what NumPy computes of copies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from view_cases import CUBES, MATRICES, K, N, agree, definite, elements, sparse
from views import LAYOUTS, REPEATED, TORCH_LAYOUTS, numpy_view

import openwork as ow

FORMATS = ("csr", "csc", "coo", "csf", "bsr(4, 4)", "dia", "bitmap", "ell(64)")
WAYS = (*LAYOUTS, *REPEATED)


@pytest.mark.thin(160)
@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str, spec: str) -> None:
    for how in WAYS if spec in ("csr", "coo") else WAYS[::3]:
        agree(MATRICES[name], sparse(spec), how)


@pytest.mark.thin(56)
@pytest.mark.parametrize("spec", ["csf", "coo", "(i, j, k) -> (i : dense, j : compressed, k : dense)"])
@pytest.mark.parametrize("name", CUBES)
def test_tensors_of_rank_three(name: str, spec: str) -> None:
    for how in WAYS:
        agree(CUBES[name], sparse(spec, 3), how)


@pytest.mark.ci
@pytest.mark.thin(2)
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spec", ["csr", "csc", "bsr(4, 4)"])
def test_torch(spec: str, step: int) -> None:
    """By default a third of the cases in each layout, others in the next."""
    pytest.importorskip("torch")
    ways = (*TORCH_LAYOUTS, *REPEATED)
    for at, how in enumerate(ways if spec == "csr" else ways[::3]):
        for case in list(MATRICES.values())[at % step :: step]:
            agree(case, sparse(spec, library="torch"), how, "torch")
        for case in list(CUBES.values())[at % step :: step] if spec == "csr" else ():
            agree(case, sparse("csf", 3, "torch"), how, "torch")


@pytest.mark.thin(3)
@pytest.mark.parametrize("how", WAYS)
def test_systems(how: str) -> None:
    t = definite(sparse("csr"))
    for shape in ((N,), (N, K)):
        b = numpy_view(elements(shape), how)
        want = np.linalg.solve(t.to_numpy(), b)
        np.testing.assert_allclose(ow.linalg.solve(t, b), want, rtol=1e-8)
    np.testing.assert_allclose(ow.linalg.cg(t, b[:, 0], rtol=1e-12)[0], want[:, 0], rtol=1e-8)


CHECKED = """
import sys
sys.path.insert(0, sys.argv[1])
from view_cases import CUBES, MATRICES, agree, sparse
from views import LAYOUTS, REPEATED
from openwork.checked import CHECKED
assert CHECKED
for at, how in enumerate((*LAYOUTS, *REPEATED)):
    for case in list(MATRICES.values())[at % STEP :: STEP]:
        agree(case, sparse(("csr", "csc", "coo")[at % 3]), how)
    for case in list(CUBES.values())[at % STEP :: STEP]:
        agree(case, sparse("csf", 3), how)
"""


@pytest.mark.ci
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_checked_mode(step: int) -> None:
    """No operation reads past a view, or by other strides than its own; by default a third of the cases in each."""
    command = [sys.executable, "-c", CHECKED.replace("STEP", str(step)), str(Path(__file__).parent.parent)]
    env = {**os.environ, "OPENWORK_CHECKED": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
