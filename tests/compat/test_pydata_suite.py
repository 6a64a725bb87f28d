"""pydata/sparse's own tests run over ours, all of them under the marker `slow`; what fails is what is listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydata_suite import changed, failures, helpers, run, sources, table
from suites import counts, reason, unexpected

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_the_documentation_names_the_reasons():
    page = (ROOT / "docs" / "compatibility.md").read_text()
    expected = failures()
    assert expected
    for why in expected.values():
        assert f"| {why} | " in page


def test_a_pattern_names_parametrized_tests():
    expected = {"suite_coo.py::test_a[*]": "of all", "suite_coo.py::test_b[1]": "of one"}
    assert reason("suite_coo.py::test_a[2-x]", expected) == "of all"
    assert reason("suite_coo.py::test_b[1]", expected) == "of one"
    assert reason("suite_coo.py::test_b[2]", expected) is None


def test_imports_are_changed_as_a_user_changes_them():
    text = "import sparse\nfrom sparse import COO\nfrom sparse.numba_backend._utils import assert_eq\n"
    got = changed(text)
    assert "import openwork.compat.pydata_sparse as sparse" in got
    assert "from openwork.compat.pydata_sparse import COO" in got
    assert "from suite_utils import assert_eq" in got
    taken = helpers("import numba\n\n@numba.jit\ndef algD(): ...\n\ndef assert_nnz(s, x):\n    from ._coo import COO\n")
    assert "numba" not in taken
    assert "from openwork.compat.pydata_sparse import COO" in taken


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_of_pydatas_own(tmp_path):
    """Needs the package `sparse` installed, or the network for its wheel."""
    try:
        package = sources(tmp_path)
    except OSError as error:
        pytest.skip(f"no wheel of sparse: {error}")
    except Exception as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no wheel of sparse: {error}")
    outcomes = run(package)
    assert not unexpected(outcomes, failures())
    assert counts(outcomes)["passed"] > 6000
    assert table(outcomes)
