"""`import openwork` is light: what it loads is counted, not timed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "llvmlite",
    "scipy.sparse.linalg",
    "scipy.linalg",
    "rich",
    "matplotlib",
    "dask",
    "h5py",
    "ml_dtypes",
    "numba",
    "pandas",
    "argparse",
)


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that `import openwork` adds to those of numpy."""
    code = (
        "import json, sys, numpy, numpy.ctypeslib; before = set(sys.modules); import openwork; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.mark.parametrize("name", HEAVY)
def test_import_does_not_load(loaded: list[str], name: str) -> None:
    assert [m for m in loaded if m == name or m.startswith(name + ".")] == []


def test_import_loads_few_modules(loaded: list[str]) -> None:
    """About 1 ms each: the quarter of a second allows many more."""
    assert len(loaded) < 150, loaded


def test_the_package_is_there(loaded: list[str]) -> None:
    assert "openwork" in loaded
