"""SciPy's own tests of its sparse arrays, from the installed SciPy, over `openwork.compat.scipy_sparse`.

The files are copied with their imports of scipy.sparse changed, as a user changes a script's, and run by pytest in a
process of its own. `python tests/compat/scipy_suite.py` runs them and writes the table of docs/compatibility.md.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import scipy

import openwork

SOURCES = Path(scipy.__file__).parent / "sparse" / "tests"
FILES = ("test_base", "test_construct", "test_arithmetic1d", "test_indexing1d", "test_minmax1d", "test_common1d",
         "test_coo", "test_csr", "test_csc", "test_dok", "test_extract")  # fmt: skip
MODULES = {
    **{f"scipy.sparse{part}": "openwork.compat.scipy_sparse" for part in ("", "._csr", "._construct")},
    "scipy.sparse.linalg": "openwork.compat.scipy_sparse.linalg",
    "scipy.sparse.csgraph": "openwork.compat.scipy_sparse.csgraph",
}
NARROW = "supported_dtypes = [t for t in supported_dtypes if t().itemsize <= (16 if t().dtype.kind == 'c' else 8)]"
"""No long double: openwork has none."""
PARTS = ("_construct", "_extract")
"""Private modules whose functions the tests call, all of which scipy.sparse has too."""
SELECTION = "not Matrix and not NonCanonical"
"""The classes of arrays; those of matrices are the same tests once more."""
EXPECTED = Path(__file__).with_name("scipy_suite_failures.txt")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- scipy.sparse: made by tests/compat/scipy_suite.py -->", "<!-- end of scipy.sparse -->"
SETTINGS = """[pytest]
python_files = suite_*.py
addopts = -p no:randomly
markers =
    fail_slow
    thread_unsafe
    slow
    xslow
    xfail_on_32bit
    parallel_threads_limit
    iterations
"""


def changed(text: str) -> str:
    """A test file with its imports of scipy.sparse changed."""
    lines = text.splitlines()
    inserted: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        at = getattr(node, "lineno", 1) - 1
        if isinstance(node, ast.ImportFrom) and node.module in MODULES and not node.names[0].name.startswith("_"):
            lines[at] = lines[at].replace(f"from {node.module} import", f"from {MODULES[node.module]} import")
        elif isinstance(node, ast.ImportFrom) and node.module == "scipy" and node.names[0].name == "sparse":
            lines[at] = lines[at].replace(
                "from scipy import sparse", "from openwork.compat import scipy_sparse as sparse"
            )
        elif isinstance(node, ast.Import) and node.names[0].name in MODULES and node.names[0].asname:
            name = MODULES[node.names[0].name]
            lines[at] = f"{lines[at].partition('import')[0]}import {name} as {node.names[0].asname}"
        elif isinstance(node, ast.ImportFrom) and node.level:
            package = "scipy.sparse.tests." if node.level == 1 else "scipy.sparse."
            lines[at] = lines[at].replace(f"from {'.' * node.level}{node.module}", f"from {package}{node.module}")
        if isinstance(node, ast.ImportFrom) and any(a.name == "supported_dtypes" for a in node.names):
            inserted.append((node.end_lineno or 0, NARROW))
        for name in node.names if isinstance(node, ast.ImportFrom) and node.module == "scipy.sparse" else ():
            if name.name in PARTS:
                module = f"from openwork.compat import scipy_sparse as {name.asname or name.name}"
                inserted.append((node.end_lineno or 0, module))
    for at, line in sorted(inserted, reverse=True):
        lines.insert(at, line)
    return "\n".join(lines) + "\n"


def run(files: tuple[str, ...], *selection: str, timeout: int = 1800) -> dict[str, str]:
    """Outcomes by test: "passed", or "failed" or "error" with the error's last line; what SciPy skips is left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pytest.ini").write_text(SETTINGS)
        for name in files:
            (root / f"suite_{name.removeprefix('test_')}.py").write_text(changed((SOURCES / f"{name}.py").read_text()))
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        settings = {"COLUMNS": "400", "PYTEST_ADDOPTS": "", "PYTHONPATH": str(Path(openwork.__file__).parents[1])}
        settings["OPENWORK_OPTIMIZE"] = "0"  # many kernels that each run once
        done = subprocess.run(
            [*command, "-c", str(root / "pytest.ini"), "--rootdir", folder, *selection, folder], cwd=folder,
            env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
    out = parsed(done.stdout)
    if not any(x == "passed" for x in out.values()):
        raise RuntimeError(f"SciPy's suite did not run\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
    return out


def parsed(report: str) -> dict[str, str]:
    """What a report of pytest's says, by test."""
    found = re.findall(r"^(PASSED|FAILED|ERROR) (.*)$", report, re.MULTILINE)
    return {rest.partition(" - ")[0]: f"{kind.lower()} {rest.partition(' - ')[2]}".strip() for kind, rest in found}


def counts(outcomes: dict[str, str]) -> Counter[str]:
    """How many tests of each outcome."""
    return Counter(x.partition(" ")[0] for x in outcomes.values())


def failures() -> dict[str, str]:
    """The tests that are expected to fail, with their reasons."""
    lines = EXPECTED.read_text().splitlines()
    return {
        test.strip(): reason.strip() for test, _, reason in (x.partition("|") for x in lines if x[:1] not in ("", "#"))
    }


def table(outcomes: dict[str, str]) -> str:
    """The page's section: how many tests of each class, or file, pass and fail, and why."""
    groups: dict[str, Counter[str]] = {}
    for test, outcome in outcomes.items():
        name, *parts = test.removeprefix("suite_").split("::")
        group = f"test_{name}".removesuffix(".py") + (f", {parts[0]}" if name == "base.py" and len(parts) > 1 else "")
        groups.setdefault(group, Counter())[outcome.partition(" ")[0]] += 1
    total, reasons = counts(outcomes), Counter(failures().values())
    rows = [f"| {name} | {n['passed']} | {n['failed'] + n['error']} |" for name, n in sorted(groups.items())]
    return "\n".join((
        f"SciPy {scipy.__version__}: {total['passed']} pass, {total['failed'] + total['error']} fail.",
        "",
        "| tests | pass | fail |",
        "| --- | ---: | ---: |",
        *rows,
        "",
        "| why they fail | tests |",
        "| --- | ---: |",
        *(f"| {reason} | {n} |" for reason, n in reasons.most_common()),
    ))  # fmt: skip


def main(arguments: list[str]) -> None:
    """Run the suite, say what failed unexpectedly, and write the page's section."""
    outcomes = run(FILES, *(arguments or ("-k", SELECTION)))
    expected = failures()
    for test, outcome in outcomes.items():
        if outcome.startswith(("failed", "error")) != (test in expected):
            print(f"{test} | {outcome}")
    print(dict(counts(outcomes)))
    if not arguments:
        write(outcomes)


def write(outcomes: dict[str, str]) -> None:
    """Put the section into the page."""
    head, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    PAGE.write_text(f"{head}{begin}\n{table(outcomes)}\n{end}{tail}")


if __name__ == "__main__":
    main(sys.argv[1:])
