"""SciPy's own tests of its sparse arrays, from the installed SciPy, over `openwork.compat.scipy_sparse`.

The files are copied with their imports of scipy.sparse changed, as a user changes a script's, and run by pytest in a
process of its own. `python tests/compat/scipy_suite.py` runs them and writes the table of docs/compatibility.md.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from pathlib import Path

import scipy
import suites
from suites import Outcomes, counts, unexpected

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
    "linalg": "solvers: direct ones have a table of their own below, others are SciPy's and take Tensors",
    "long doubles, where a test has a list of dtypes": "openwork has none; where they are cases of their own, they fail",
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
BEGIN, END = "<!-- scipy.sparse: made by tests/compat/scipy_suite.py -->", "<!-- end of scipy.sparse -->"


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


def run(files: tuple[str, ...], *selection: str, timeout: int = 1800) -> Outcomes:
    """Outcomes by test; what SciPy skips is left out."""
    with tempfile.TemporaryDirectory() as folder:
        root, names = Path(folder), []
        (root / "data").symlink_to(SOURCES / "data")
        for name in files:
            home = "scipy.sparse" + (f".{name.partition('/')[0]}" if "/" in name else "")
            names.append(f"suite_{name.replace('/test_', '_').removeprefix('test_')}.py")
            (root / names[-1]).write_text(changed(source(name).read_text(), home))
        return suites.run("SciPy", root, tuple(names), selection, timeout)


def whole(*selection: str) -> Outcomes:
    """Outcomes of all files, of which each is run by a process of its own, and named with its counts when it ends."""
    out = Outcomes()
    for name in FILES:
        part = run((name,), *selection)
        out.update(part)
        out.skipped += part.skipped
        print(name, dict(counts(part)), flush=True)
    return out


def failures() -> dict[str, str]:
    """The tests that are expected to fail, with their reasons."""
    return suites.failures(EXPECTED)


def group(test: str) -> str:
    """The row of the table: the file, of test_base the class too."""
    name, *parts = test.removeprefix("suite_").split("::")
    name = f"test_{name}".removesuffix(".py").replace("test_csgraph_", "csgraph/test_")
    return name + (f", {parts[0]}" if name == "test_base" and len(parts) > 1 else "")


def table(outcomes: Outcomes) -> list[str]:
    """The page's section: how many tests of each class, or file, pass and fail, why, and what is not run."""
    total = counts(outcomes)
    return [
        f"SciPy {scipy.__version__}: {total['passed']} pass, {total['failed'] + total['error']} fail, of every test in these files; "
        f"{outcomes.skipped} SciPy skips, or expects to fail, itself.",
        "",
        *suites.table(outcomes, {test: group(test) for test in outcomes}, failures(), LEFT_OUT),
    ]  # fmt: skip


def main(arguments: list[str]) -> None:
    """Run the suite, say what failed unexpectedly, and write the page's section."""
    outcomes = whole(*arguments)
    print(*unexpected(outcomes, failures()), dict(counts(outcomes)), sep="\n")
    if not arguments:
        suites.write(table(outcomes), BEGIN, END)


if __name__ == "__main__":
    main(sys.argv[1:])
