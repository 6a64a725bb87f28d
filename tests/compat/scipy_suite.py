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

SPARSE = Path(scipy.__file__).parent / "sparse"
SOURCES = SPARSE / "tests"
GRAPHS = ("connected_components", "conversions", "flow", "graph_laplacian", "matching", "reordering", "shortest_path",
          "spanning_tree", "traversal")  # fmt: skip
FILES = ("test_base", "test_construct", "test_arithmetic1d", "test_indexing1d", "test_minmax1d", "test_common1d",
         "test_coo", "test_csr", "test_csc", "test_dok", "test_extract", "test_array_api", "test_matrix_io",
         *(f"csgraph/test_{name}" for name in GRAPHS))  # fmt: skip
LEFT_OUT = {
    "test_64bit": "test_base once more, with private functions of SciPy's replaced",
    "test_sparsetools, test_sputils, test_spfuncs": "private functions of SciPy's",
    "csgraph/test_pydata_sparse, linalg/test_pydata_sparse": "arrays of pydata/sparse given to SciPy",
    "linalg": "solvers, which take Tensors (see below) and are SciPy's",
    "what SciPy marks `xslow` or skips": "as SciPy runs them",
}
"""The files of scipy.sparse that are not run, with the reason; of those that are run, every test is."""
MODULES = {
    **{f"scipy.sparse{part}": "openwork.compat.scipy_sparse" for part in ("", "._csr", "._construct")},
    "scipy.sparse.linalg": "openwork.compat.scipy_sparse.linalg",
    "scipy.sparse.csgraph": "openwork.compat.scipy_sparse.csgraph",
}
NARROW = "supported_dtypes = [t for t in supported_dtypes if t().itemsize <= (16 if t().dtype.kind == 'c' else 8)]"
"""No long double: openwork has none."""
PARTS = ("_construct", "_extract")
"""Private modules whose functions the tests call, all of which scipy.sparse has too."""
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


def source(name: str) -> Path:
    """The file of a test of scipy.sparse, or of one of its packages."""
    folder, _, name = name.rpartition("/")
    return SPARSE / folder / "tests" / f"{name}.py"


def changed(text: str, home: str = "scipy.sparse") -> str:
    """A test file of a package with its imports of scipy.sparse changed."""
    lines = text.splitlines()
    replaced: list[tuple[str, str]] = []
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
        elif isinstance(node, ast.Import) and node.names[0].name in MODULES:
            name = node.names[0].name  # `import scipy.sparse` binds scipy, whose attribute it asks
            lines[at] = f"{lines[at].partition('import')[0]}import {MODULES[name]}, {name}"
            replaced.append((name, MODULES[name]))
        elif isinstance(node, ast.ImportFrom) and node.level:
            package = f"{home}.tests." if node.level == 1 else f"{home}."
            lines[at] = lines[at].replace(f"from {'.' * node.level}{node.module}", f"from {package}{node.module}")
        if isinstance(node, ast.ImportFrom) and any(a.name == "supported_dtypes" for a in node.names):
            inserted.append((node.end_lineno or 0, NARROW))
        for name in node.names if isinstance(node, ast.ImportFrom) and node.module == "scipy.sparse" else ():
            if name.name in PARTS:
                module = f"from openwork.compat import scipy_sparse as {name.asname or name.name}"
                inserted.append((node.end_lineno or 0, module))
    for at, line in sorted(inserted, reverse=True):
        lines.insert(at, line)
    text = "\n".join(lines) + "\n"
    for name, ours in replaced:
        text = re.sub(rf"(?<!import )(?<!, )\b{re.escape(name)}\.(?=\w)", f"{ours}.", text)
    return text


def run(files: tuple[str, ...], *selection: str, timeout: int = 1800) -> dict[str, str]:
    """Outcomes by test: "passed", or "failed" or "error" with the error's last line; what SciPy skips is left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pytest.ini").write_text(SETTINGS)
        (root / "data").symlink_to(SOURCES / "data")
        for name in files:
            home = "scipy.sparse" + (f".{name.partition('/')[0]}" if "/" in name else "")
            path = root / f"suite_{name.replace('/test_', '_').removeprefix('test_')}.py"
            path.write_text(changed(source(name).read_text(), home))
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
    """The tests that are expected to fail, with their reasons; `*` in a name is any text."""
    lines = EXPECTED.read_text().splitlines()
    return {
        test.strip(): reason.strip() for test, _, reason in (x.partition("|") for x in lines if x[:1] not in ("", "#"))
    }


def reason_of(test: str, expected: dict[str, str]) -> str | None:
    """Why a test is expected to fail; None where it is not."""
    if test in expected:
        return expected[test]
    patterns = (p for p in expected if "*" in p)
    return next((expected[p] for p in patterns if re.fullmatch(re.escape(p).replace(r"\*", ".*"), test)), None)


def unexpected(outcomes: dict[str, str]) -> list[str]:
    """The tests whose outcome is not what is listed."""
    expected = failures()
    failed = {test for test, outcome in outcomes.items() if outcome.startswith(("failed", "error"))}
    wrong = [test for test in outcomes if (test in failed) != (reason_of(test, expected) is not None)]
    return wrong + [test for test in expected if "*" not in test and test not in outcomes]


def table(outcomes: dict[str, str]) -> str:
    """The page's section: how many tests of each class, or file, pass and fail, and why."""
    groups: dict[str, Counter[str]] = {}
    for test, outcome in outcomes.items():
        name, *parts = test.removeprefix("suite_").split("::")
        group = f"test_{name}".removesuffix(".py") + (f", {parts[0]}" if name == "base.py" and len(parts) > 1 else "")
        groups.setdefault(group, Counter())[outcome.partition(" ")[0]] += 1
    total, expected = counts(outcomes), failures()
    failed = [test for test, outcome in outcomes.items() if outcome.startswith(("failed", "error"))]
    reasons = Counter(reason_of(test, expected) or "not known" for test in failed)
    rows = [f"| {name} | {n['passed']} | {n['failed'] + n['error']} |" for name, n in sorted(groups.items())]
    return "\n".join((
        f"SciPy {scipy.__version__}: {total['passed']} pass, {total['failed'] + total['error']} fail; every test of these files, "
        f"those that SciPy skips itself ({total['skipped']}) excepted.",
        "",
        "| tests | pass | fail |",
        "| --- | ---: | ---: |",
        *rows,
        "",
        "| why they fail | tests |",
        "| --- | ---: |",
        *(f"| {reason} | {n} |" for reason, n in reasons.most_common()),
        "",
        "| files of scipy.sparse that are not run | why |",
        "| --- | --- |",
        *(f"| {name} | {reason} |" for name, reason in LEFT_OUT.items()),
    ))  # fmt: skip


def main(arguments: list[str]) -> None:
    """Run the suite, say what failed unexpectedly, and write the page's section."""
    outcomes = run(FILES, *arguments)
    for test in unexpected(outcomes):
        print(f"{test} | {outcomes.get(test, 'is not there')}")
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
