"""SciPy's own tests of `spsolve`, `splu`, `spilu` and `factorized` over ours: some in every run, all marked `slow`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from scipy_solvers_suite import SOURCE, changed, run, table
from suites import counts, unexpected

ROOT = Path(__file__).resolve().parents[2]
FEW = (
    "TestLinsolve::test_bmatrix_smoketest", "TestLinsolve::test_example_comparison", "TestLinsolve::test_dtype_cast",
    "TestLinsolve::test_sparsity_preservation", "TestLinsolve::test_shape_compatibility", "TestSplu::test_splu_basic",
    "TestSplu::test_splu_nnz0", "TestSplu::test_splu_perm", "TestSplu::test_splu_smoketest", "TestSplu::test_lu_attr",
    "TestFactorized::test_non_singular_without_umfpack", "TestFactorized::test_singular_without_umfpack",
    "TestFactorized::test_call_with_cast_to_complex_without_umfpack", "TestLinsolve::test_singular",
    "TestFactorized::test_call_with_incorrectly_sized_matrix_without_umfpack", "TestLinsolve::test_singular_gh_3312",
    "TestFactorized::test_cannot_factorize_nonsquare_matrix_without_umfpack", "TestSplu::test_bad_inputs",
    "TestSplu::test_singular_matrix", "TestSplu::test_spilu_drop_rule", "TestSplu::test_lu_refcount",
)  # fmt: skip


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    if not SOURCE.exists():
        pytest.skip("SciPy is installed without its tests")
    names: dict[str, Any] = {"__name__": "scipys_solvers_suite"}
    exec(compile(changed(SOURCE.read_text()), SOURCE.name, "exec"), names)
    assert names["splu"].__module__.startswith("openwork")
    assert names["factorized"](names["eye_array"](3, format="csc")).__self__.__class__ is names["SuperLU"]
    return names


@pytest.mark.thin(4, rest="ci")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FEW)
def test_a_few_of_scipys_own(name: str, suite: dict[str, Any]) -> None:
    group, _, method = name.partition("::")
    case = suite[group]()
    if not hasattr(case, method):
        pytest.skip("SciPy has no such test in this version")
    case.setup_method()
    getattr(case, method)()


def test_the_table_of_the_documentation_says_that_all_pass() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text()
    assert re.search(r"test_linsolve\.py: \d+ pass, 0 fail;", page)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_of_scipys_own() -> None:
    outcomes = run()
    assert not unexpected(outcomes, {})
    assert counts(outcomes)["passed"] > 327
    assert table(outcomes)
