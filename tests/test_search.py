"""The random search (`python -m tests.search`): a short part of it, that it sees what is broken, and that cases repeat."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import search
import search_cases
import search_huge
import search_oracle
import torch
from search_oracle import Case, Masked, run
from search_routes import Want
from views import LAYOUTS, REPEATED, TORCH_LAYOUTS, numpy_view, torch_view

import openwork as ow


@pytest.fixture(autouse=True)
def _renamed() -> Iterator[None]:
    with search_cases.renamed_level():
        yield


@pytest.mark.ci
def test_a_short_part() -> None:
    """Cases of one seed, the same in every run, in a process of its own."""
    assert search.main(["--count", "40", "--seed", "7"]) == 0


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_the_long_search() -> None:
    assert search.main(["--count", "50000", "--seed", "1"]) == 0


def test_cases_are_drawn_from_their_number_alone() -> None:
    for module in (search_cases, search_huge):
        for number in range(12):
            assert str(module.case(3, number)) == str(module.case(3, number))


A = np.array([[0.0, 2.0], [3.0, 0.0]])
BROKEN = {
    "values": (lambda: ow.asarray(A + 1, format="coo"), lambda: A),
    "shape": (lambda: ow.asarray(A[:1], format="coo"), lambda: A),
    "dtype": (lambda: ow.asarray(A.astype("f4"), format="coo"), lambda: A),
    "a value, NumPy has TypeError": (lambda: ow.asarray(A), lambda: np.flip(A, 0.5)),
    "bare ValueError": (lambda: np.zeros(3).reshape(2, 2), lambda: A),
    "bare KeyError": (lambda: {}["b_crd0"], lambda: A),
    "MemoryError": (lambda: np.empty(2**50), lambda: A),
    "signs of zeros": (lambda: ow.asarray(np.zeros(2)), lambda: -np.zeros(2)),
    "invalid": (
        lambda: ow.assemble("csr", (1, 3), pos={1: [0, 2]}, crd={1: [2, 1]}, values=[1.0, 2.0], check=False),
        lambda: np.array([[0, 2.0, 1.0]]),
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_is_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_oracle, "SIGNS", True)
    difference = run(Case("broken", *BROKEN[kind], signs=kind[0] == "s"))
    assert difference is not None
    assert kind in difference


MASK = np.array([True, False])
WRONG = {
    "dtype float64, expected float32": Case(
        "torch", lambda: torch.ones(2).double(), lambda: Want(np.ones(2), "float32")
    ),
    "over NumPy's buffers": Case("library", lambda: ow.asarray(A), lambda: A, library="torch"),
    "over torch's buffers": Case("library", lambda: ow.asarray(A, like="torch"), lambda: A, library="numpy"),
    "no masked tensor": Case("masked", lambda: ow.asarray(A[0]), lambda: Masked(A[0], MASK)),
    "mask [False, True]": Case("masked", lambda: ow.masked_tensor(A[0], ~MASK), lambda: Masked(A[0], MASK)),
    "values [0.0], expected [1.0]": Case(
        "masked", lambda: ow.masked_tensor(A[0], MASK), lambda: Masked(np.ones(2), MASK)
    ),
    "values": Case(
        "rough", lambda: torch.ones(1, dtype=torch.bfloat16), lambda: Want(np.array([1.1], "f4"), "bfloat16")
    ),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_libraries_dtypes_and_masks_are_told(told: str) -> None:
    difference = run(WRONG[told])
    assert difference is not None
    assert told in difference


def test_every_kind_of_case_is_made_and_agrees() -> None:
    """One case of each, the first of a seed, by the kind that was asked for."""
    try:
        for kind, _ in search_cases.KINDS:
            search_cases.ONLY = kind.__name__
            made = search_cases.case(11, 0)
            assert f"kind: {kind.__name__}" in made.dimensions
            assert run(made) is None, str(made)
    finally:
        search_cases.ONLY = ""


def test_refusals_of_our_own_are_no_differences() -> None:
    def refuse() -> None:
        raise ow.UnsupportedError("not this")

    assert run(Case("refused", refuse, lambda: A)) is None


def test_a_crash_and_a_hang_are_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the process that runs the cases; the next case has a new one."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, sys\nn = int(sys.argv[sys.argv.index('--first') + 1])\nprint('#case', n, flush=True)\n"
        "if n == 1:\n    os.abort()\nprint('#differs', n, 'wrong', flush=True) if n == 2 else None\n"
    )
    monkeypatch.setattr(search, "__file__", str(worker))
    monkeypatch.setattr(search, "BATCH", 1)
    told: list[str] = []
    monkeypatch.setattr("builtins.print", lambda *words, **_: told.append(" ".join(map(str, words)).strip()))
    assert search.main(["--count", "4", "--seed", "5"]) == 1
    assert told[0].startswith("1 process ended with -6")
    assert told[1] == "2 wrong"
    assert told[2].startswith("4 cases of seed 5, 2 differ")


@pytest.mark.ci
def test_the_command() -> None:
    command = [sys.executable, "-m", "tests.search", "--only", "3", "--seed", "7"]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.stdout.endswith("agrees\n"), done.stdout + done.stderr


@pytest.mark.parametrize("shape", [(5,), (6, 5), (2, 3, 4)])
def test_views_hold_the_elements_and_lie_elsewhere(shape: tuple[int, ...]) -> None:
    a = np.arange(float(np.prod(shape))).reshape(shape)
    for how in LAYOUTS:
        x = numpy_view(a, how)
        np.testing.assert_array_equal(x, a)
        packed = x.flags.c_contiguous and x.flags.writeable and x.ctypes.data % 64 == 0 and x.dtype.isnative
        assert not packed or len(shape) == 1
    for how in TORCH_LAYOUTS:
        y = torch_view(torch.from_numpy(a), how)
        np.testing.assert_array_equal(y.numpy(), a)
        assert not y.is_contiguous() or y.storage_offset() or len(shape) == 1
    for how in REPEATED if len(shape) > 1 else ():
        for z in (numpy_view(a, how), torch_view(torch.from_numpy(a), how).numpy()):
            assert z.shape == shape
            assert len(np.unique(z)) < a.size


def test_the_search_has_wide_operands_and_views() -> None:
    rng = search_cases.random.Random(0)
    drawn = [search_cases.extents(rng, 2) for _ in range(400)]
    assert sum(max(shape) >= 24 for shape in drawn) > 10
    whole = np.arange(12.0).reshape(4, 3)
    seen = {search_cases.laid(rng, whole, repeated=True).strides for _ in range(200)}
    assert len(seen) > 8
