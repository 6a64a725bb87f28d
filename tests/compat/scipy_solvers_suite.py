"""SciPy's own tests of its direct solvers, from the installed SciPy, over those of `openwork.compat.scipy_sparse`.

`spsolve`, `splu`, `spilu`, `factorized` and `spsolve_triangular` of test_linsolve.py are those of `openwork.linalg` with
SciPy's errors and rules of casting; matrices stay SciPy's.
`python tests/compat/scipy_solvers_suite.py` runs them and writes the table of docs/compatibility.md.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import scipy
import suites
from suites import Outcomes, counts, unexpected

SOURCE = Path(scipy.__file__).parent / "sparse" / "linalg" / "_dsolve" / "tests" / "test_linsolve.py"
OURS = (
    "from openwork.compat.scipy_sparse.linalg import (\n"
    "    SuperLU, factorized, spilu, splu, spsolve, spsolve_triangular)\n"
)
LEFT_OUT = {
    "TestGstrsErrors, test_is_sptriangular_and_spbandwidth": "private functions of SciPy's",
}
BEGIN, END = "<!-- direct solvers: made by tests/compat/scipy_solvers_suite.py -->", "<!-- end of direct solvers -->"


def changed(text: str) -> str:
    """The test file with our functions behind the import of SciPy's."""
    return re.sub(r"(?ms)^(from scipy\.sparse\.linalg\._dsolve import \(.*?\)\n)", rf"\1{OURS}", text, count=1)


def run(*selection: str, timeout: int = 1800) -> Outcomes:
    """Outcomes by test; what SciPy skips is left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "suite_linsolve.py").write_text(changed(SOURCE.read_text()))
        private = ("-k", "not GstrsErrors and not is_sptriangular")
        return suites.run("SciPy", root, ("suite_linsolve.py",), selection or private, timeout)


def table(outcomes: Outcomes) -> list[str]:
    """The page's section: how many tests of each class pass and fail."""
    total = counts(outcomes)
    groups = {test: test.split("::")[1] for test in outcomes}
    return [
        f"SciPy {scipy.__version__}, test_linsolve.py: {total['passed']} pass, {total['failed'] + total['error']} fail; "
        f"{outcomes.skipped} SciPy skips, or expects to fail, itself.",
        "",
        *suites.table(outcomes, groups, {}, LEFT_OUT),
    ]  # fmt: skip


def main(arguments: list[str]) -> None:
    """Run the suite, say what failed unexpectedly, and write the page's section."""
    outcomes = run(*arguments)
    print(*unexpected(outcomes, {}), dict(counts(outcomes)), sep="\n")
    if not arguments:
        suites.write(table(outcomes), BEGIN, END)


if __name__ == "__main__":
    main(sys.argv[1:])
