"""pydata/sparse's own tests over `openwork.compat.pydata_sparse`, from the wheel `sparse` as it is installed or on PyPI.

The files are copied with their imports of sparse changed, as a user changes a script's; numba is not needed, as only
tests and the helpers that they compare with are taken. `python tests/compat/pydata_suite.py [FOLDER]` runs them and
writes the table of docs/compatibility.md; FOLDER holds an unpacked wheel.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import suites
from suites import Outcomes, counts, unexpected

VERSION = "0.19.3"
FILES = ("array_function", "compressed", "compressed_2d", "conversion", "coo", "dask_interop", "dok", "dot", "einsum", "elemwise", "io",
         "namespace")  # fmt: skip
LEFT_OUT = {
    "test_coo_numba, test_compressed_convert, test_compressed_slicing": "types and functions of numba's",
}
"""The files that are not run, with the reason."""
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


def run(package: Path, *selection: str, files: tuple[str, ...] = FILES, timeout: int = 3600) -> Outcomes:
    """Outcomes by test: "passed", or "failed" or "error" with the error's last line; skips and xfails are left out."""
    theirs = package / "numba_backend"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "suite_utils.py").write_text(helpers((theirs / "_utils.py").read_text()))
        (root / "conftest.py").write_text(changed((theirs / "tests" / "conftest.py").read_text()))
        for name in files:
            (root / f"suite_{name}.py").write_text(changed((theirs / "tests" / f"test_{name}.py").read_text()))
        names = tuple(f"suite_{name}.py" for name in files)
        return suites.run("pydata/sparse", root, names, selection, timeout)


def failures() -> dict[str, str]:
    """The tests that are expected to fail, with their reasons."""
    return suites.failures(EXPECTED)


def table(outcomes: Outcomes) -> list[str]:
    """The page's section: how many tests of each file pass and fail, why, and what is not run."""
    total = counts(outcomes)
    groups = {test: test.partition(".py")[0].replace("suite_", "test_") for test in outcomes}
    return [
        f"sparse {VERSION}: {total['passed']} pass, {total['failed'] + total['error']} fail, of every test in these files; "
        f"{outcomes.skipped} the suite skips, or expects to fail, itself.",
        "",
        *suites.table(outcomes, groups, failures(), LEFT_OUT),
    ]  # fmt: skip


def main(arguments: list[str]) -> None:
    """Run the suite, say what failed unexpectedly, and write the page's section."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(arguments[0]) / "sparse" if arguments else sources(Path(folder))
        outcomes = run(package, *arguments[1:])
    print(*unexpected(outcomes, failures()), dict(counts(outcomes)), sep="\n")
    if not arguments[1:]:
        suites.write(table(outcomes), BEGIN, END)


if __name__ == "__main__":
    main(sys.argv[1:])
