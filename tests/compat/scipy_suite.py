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
    lines, inserted = text.splitlines(), []
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
            inserted.append(node.end_lineno)
    for at in sorted(inserted, reverse=True):
        lines.insert(at, NARROW)
    return "\n".join(lines) + "\n"


def run(files: tuple[str, ...], *selection: str, timeout: int = 1800) -> dict[str, str]:
    """Outcomes by test: "passed", "failed", "error", "skipped", "xfailed"; of what failed with the error's last line."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pytest.ini").write_text(SETTINGS)
        for name in files:
            (root / f"suite_{name.removeprefix('test_')}.py").write_text(changed((SOURCES / f"{name}.py").read_text()))
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        done = subprocess.run(
            [*command, "-c", str(root / "pytest.ini"), "--rootdir", folder, *selection, folder], cwd=folder,
            env={**os.environ, "COLUMNS": "400", "PYTEST_ADDOPTS": "", "PYTHONPATH": str(Path(openwork.__file__).parents[1])}, capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.*)$", done.stdout, re.MULTILINE)
    out = {rest.partition(" - ")[0]: f"{kind.lower()} {rest.partition(' - ')[2]}".strip() for kind, rest in found}
    if not any(x == "passed" for x in out.values()):
        raise RuntimeError(f"SciPy's suite did not run\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
    return out


def counts(outcomes: dict[str, str]) -> Counter[str]:
    """How many tests of each outcome."""
    return Counter(x.partition(" ")[0] for x in outcomes.values())


if __name__ == "__main__":
    outcomes = run(FILES, *sys.argv[1:])
    for test, outcome in outcomes.items():
        if outcome.startswith(("failed", "error")):
            print(test, "|", outcome)
    print(counts(outcomes))
