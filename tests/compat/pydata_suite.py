"""pydata/sparse's own tests over `openwork.compat.pydata_sparse`, from the wheel `sparse` as it is installed or on PyPI.

The files are copied with their imports of sparse changed, as a user changes a script's; numba is not needed, as only
tests and the helpers that they compare with are taken. `python tests/compat/pydata_suite.py [FOLDER]` runs them and
writes the table of docs/compatibility.md; FOLDER holds an unpacked wheel.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from scipy_suite import PAGE, SETTINGS, counts, parsed

import openwork

VERSION = "0.19.3"
FILES = ("array_function", "compressed", "compressed_2d", "conversion", "coo", "dok", "dot", "einsum", "elemwise", "io",
         "namespace")  # fmt: skip
"""Left out: test_coo_numba, test_compressed_convert, test_compressed_slicing (functions and types of numba's)."""
HELPERS = (
    "assert_eq", "assert_gcxs_slicing", "assert_nnz", "is_canonical", "_zero_of_dtype", "random_value_array",
    "equivalent", "human_readable_size", "html_table", "check_zero_fill_value", "convert_format", "default_rng",
)  # fmt: skip
"""What the tests take from sparse's `_utils`."""
MODULE = "openwork.compat.pydata_sparse"
PRIVATE = """from types import SimpleNamespace
sparse._compressed = SimpleNamespace(GCXS=sparse.GCXS, CSR=sparse.CSR, CSC=sparse.CSC)
sparse.numba_backend = SimpleNamespace(_compressed=sparse._compressed)
"""
"""The private modules whose classes the tests name."""
EXPECTED = Path(__file__).with_name("pydata_suite_failures.txt")
BEGIN, END = "<!-- pydata/sparse: made by tests/compat/pydata_suite.py -->", "<!-- end of pydata/sparse -->"


def sources(folder: Path) -> Path:
    """The folder of the package `sparse`: the installed one, or the wheel of PyPI unpacked into `folder`."""
    spec = find_spec("sparse")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), f"sparse=={VERSION}"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder / "sparse"


def changed(text: str) -> str:
    """A test file with its imports of sparse changed."""
    text = re.sub(r"^import sparse$", f"import {MODULE} as sparse\n{PRIVATE}", text, count=1, flags=re.MULTILINE)
    text = re.sub(
        r"^( *)from sparse\.numba_backend\._utils import", r"\1from suite_utils import", text, flags=re.MULTILINE
    )
    text = re.sub(
        r"^from sparse\.numba_backend\._settings import NEP18_ENABLED$",
        "NEP18_ENABLED = True",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^( *)from sparse\.numba_backend\._settings import IS_NUMPY2$", r"\1IS_NUMPY2 = True", text, flags=re.MULTILINE
    )
    return re.sub(
        r"^( *)from sparse(\.numba_backend[\w.]*)? import", rf"\1from {MODULE} import", text, flags=re.MULTILINE
    )


def helpers(text: str) -> str:
    """The functions of sparse's `_utils` that the tests call, without numba."""
    tree = ast.parse(text)
    kept = [n for n in tree.body if getattr(n, "name", "") in HELPERS
            or (isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") in HELPERS)]  # fmt: skip
    body = "\n\n".join(ast.unparse(n) for n in kept)
    body = re.sub(r"from \.[\w.]* import", f"from {MODULE} import", body)
    return f"import functools\nimport warnings\nfrom collections.abc import Iterable\nimport numpy as np\n\n{body}\n"


def run(package: Path, *selection: str, files: tuple[str, ...] = FILES, timeout: int = 3600) -> dict[str, str]:
    """Outcomes by test: "passed", or "failed" or "error" with the error's last line; skips and xfails are left out."""
    theirs = package / "numba_backend"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pytest.ini").write_text(SETTINGS)
        (root / "suite_utils.py").write_text(helpers((theirs / "_utils.py").read_text()))
        (root / "conftest.py").write_text(changed((theirs / "tests" / "conftest.py").read_text()))
        for name in files:
            (root / f"suite_{name}.py").write_text(changed((theirs / "tests" / f"test_{name}.py").read_text()))
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        settings = {
            "COLUMNS": "400",
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": f"{Path(openwork.__file__).parents[1]}:{root}",
        }
        settings["OPENWORK_OPTIMIZE"] = "0"  # many kernels that each run once
        done = subprocess.run(
            [*command, "-c", str(root / "pytest.ini"), "--rootdir", folder, *selection,
             *(str(root / f"suite_{name}.py") for name in files)],
            cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
    out = parsed(done.stdout)
    if not any(x == "passed" for x in out.values()):
        raise RuntimeError(f"pydata/sparse's suite did not run\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
    return out


def failures() -> dict[str, str]:
    """The tests that are expected to fail (`*` for any text in a name), with their reasons."""
    lines = EXPECTED.read_text().splitlines()
    pairs = (x.rpartition(" | ") for x in lines if x[:1] not in ("", "#"))
    return {test.strip(): reason.strip() for test, _, reason in pairs}


def reason(test: str, expected: dict[str, str]) -> str | None:
    """Why a test is expected to fail."""
    for pattern, why in expected.items():
        if test == pattern or re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), test):
            return why
    return None


def table(outcomes: dict[str, str]) -> str:
    """The page's section: how many tests of each file pass and fail, and why."""
    groups: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    expected = failures()
    for test, outcome in outcomes.items():
        group, kind = test.partition(".py")[0].replace("suite_", "test_"), outcome.partition(" ")[0]
        groups.setdefault(group, Counter())[kind] += 1
        if kind != "passed":
            reasons[reason(test, expected) or "not listed"] += 1
    total = counts(outcomes)
    return "\n".join((
        f"sparse {VERSION}: {total['passed']} pass, {total['failed'] + total['error']} fail.",
        "",
        "| tests | pass | fail |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {n['passed']} | {n['failed'] + n['error']} |" for name, n in sorted(groups.items())),
        "",
        "| why they fail | tests |",
        "| --- | ---: |",
        *(f"| {why} | {n} |" for why, n in reasons.most_common()),
    ))  # fmt: skip


def main(arguments: list[str]) -> None:
    """Run the suite, say what failed unexpectedly, and write the page's section."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(arguments[0]) / "sparse" if arguments else sources(Path(folder))
        outcomes = run(package, *arguments[1:])
    expected = failures() if EXPECTED.exists() else {}
    for test, outcome in outcomes.items():
        if outcome.startswith(("failed", "error")) != (reason(test, expected) is not None):
            print(f"{test} | {outcome}")
    print(dict(counts(outcomes)))
    if not arguments[1:] and EXPECTED.exists():
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{table(outcomes)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main(sys.argv[1:])
