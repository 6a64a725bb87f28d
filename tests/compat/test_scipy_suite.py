"""SciPy's own tests of its sparse arrays run over ours: a few in every run, all of them under the marker `slow`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from scipy_suite import SOURCES, changed, failures, table, whole
from suites import counts, unexpected

ROOT = Path(__file__).resolve().parents[2]
FEW = (
    "abs", "add", "add_dense", "constructor1", "copy", "count_nonzero", "diagonal", "dot", "dot_scalar",
    "elementwise_divide", "elementwise_multiply", "elementwise_power", "empty", "fancy_indexing_boolean",
    "fancy_indexing_set", "from_array", "getcol", "getelement", "getrow", "imag", "inplace_dense", "invalid_shapes",
    "matmat_dense", "matmat_sparse", "matmul", "mean", "minmax", "neg", "nonzero", "numpy_sum", "pickle",
    "pow", "radd", "reshape", "rsub", "setdiag", "setelement", "sort_indices", "slicing_2", "solve", "sub_dense",
    "sum", "sum_out", "toarray", "trace", "transpose",
)  # fmt: skip


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    """What SciPy's test_base defines, its imports changed."""
    if not (SOURCES / "test_base.py").exists():
        pytest.skip("SciPy is installed without its tests")
    text = re.sub(r"^Test\w+\.init_class\(\)$", "", changed((SOURCES / "test_base.py").read_text()), flags=re.MULTILINE)
    text = re.sub(r"^ *@pytest\.mark\.(?!param|skip|xfail\(|filter|usefix).*$", "", text, flags=re.MULTILINE)
    names: dict[str, Any] = {"__name__": "scipys_suite"}
    exec(compile(text, "test_base.py", "exec"), names)
    names["TestCSR"].init_class()
    return names


@pytest.mark.thin(18)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FEW)
def test_a_few_of_scipys_own(name, suite):
    method = getattr(suite["TestCSR"], f"test_{name}", None)
    if method is None or any(m.name == "parametrize" for m in getattr(method, "pytestmark", ())):
        pytest.skip("SciPy has no such test in this version")
    method(suite["TestCSR"]())


def test_the_table_of_the_documentation_says_what_is_expected():
    page = (ROOT / "docs" / "compatibility.md").read_text()
    for test, reason in failures().items():
        assert f"| {reason} | " in page, f"{test} has no reason"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_of_scipys_own():
    outcomes = whole()
    assert not unexpected(outcomes, failures())
    assert counts(outcomes)["passed"] > 3000
    assert table(outcomes)
