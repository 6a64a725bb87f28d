"""Types that a checker reads are those that calls give: each expression is run, and read by mypy."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.tensor import methods

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "openwork"

SETUP = """
import numpy as np
import openwork as ow
A = ow.asarray(np.eye(3), format="csr")
x = np.ones(3)
L = ow.lazy(A)
M = ow.masked_tensor(np.eye(3), np.eye(3) > 0)
"""

TYPES = {
    "Tensor": (
        "A @ A", "A + A", "A + 1", "1 + A", "2.5 * A", "A // 2", "A < 0", "A == A", "-A", "abs(A)", "A[0]", "A[:, 1:]",
        "L[0]", "A.T", "A.sum(axis=0)", "A.mean()", "A.argmax()", "A.max(axis=0)", "A.min()", "A.exp()", "A.add(1)",
        "A.real", "A.tril()", "A.nansum()", "A.topk(1).values", "ow.sum(A)", "ow.sum(x)", "ow.exp(A)", "ow.exp(x)",
        "ow.add(A, 1)", "ow.matmul(A, A)", "ow.vecdot(A, A)", 'ow.einsum("ij,jk->ik", A, A)',
        'ow.evaluate("C[i,k] += A[i,j] * B[j,k]", A=A, B=A)', "ow.concat([A, A])", "ow.where(A > 0, A, 0)",
        "ow.clip(A, 0, 1)", "ow.topk(A, 1).indices", "ow.nonzero(A)[0]", "ow.unique_all(A).values", "ow.zeros((2, 3))",
        'ow.asarray(x, format="coo")', "ow.sddmm(A, np.eye(3), np.eye(3))", "ow.kron(A, np.eye(2))", "ow.var(L)",
        'ow.astype(A, "float32")',
    ),
    "bool": ('ow.can_cast(A, "float32")', 'ow.can_cast(M, "float32")', 'ow.isdtype(A.dtype, "integral")'),
    "ndarray": (
        "A @ x", "A + np.ones((3, 3))", "A - np.ones((3, 3))", "ow.matmul(A, x)", "ow.matmul(x, A)", "A.outer(x)",
        "ow.vecdot(A, x)",
    ),
    "Lazy": (
        "A @ L", "L @ x", "L @ A", "A + L", "L + 1", "L < 0", "L.T", "L.sum()", "L.exp()", "ow.sum(L)", "ow.exp(L)",
        "ow.matmul(L, x)", "ow.add(A, L)", "ow.where(L > 0, L, 0)", "-L",
    ),
    "MaskedTensor": (
        "M @ M", "M + 1", "1 + M", "A + M", "M < 0", "-M", "M[0, 0]", "M.sum()", "M.exp()", "M.clip(0, 1)", "M.tril()",
        "M.topk(1).values", "ow.sum(M)", "ow.exp(M)", "ow.matmul(M, M)", "ow.topk(M, 1).values", "ow.concat([M, M])[0]",
        'ow.astype(M, "float32")', 'ow.einsum("ij,jk->ik", M, M)',
    ),
}  # fmt: skip
CASES = [(expression, kind) for kind, expressions in TYPES.items() for expression in expressions]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    values: dict[str, Any] = {}
    exec(SETUP, values)
    return values


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("expression", "kind"), CASES)
def test_what_a_call_gives(expression: str, kind: str, names: dict[str, Any]) -> None:
    assert type(eval(expression, names)).__name__ == kind


MISSPELT = (
    'A.asfromat("csr")', "A.asformat(3)", "A.sum(axs=0)", 'ow.asarray(x, fromat="csr")', "ow.asarray(x, format=3)",
    'ow.read("f.mtx", fromat="csr")', 'ow.read("f.mtx").asfromat("csr")', 'ow.write("f.mtx", A, symetry="general")',
    'ow.einsum("ij,jk->ik", A, A, fromat="csr")', 'ow.einsum("ij,jk->ik", A, A).asfromat("csr")',
    "ow.linalg.cg(A, x, rtoll=1e-5)", "ow.linalg.gmres(A, x, restrat=20)", "ow.linalg.eigsh(A, 1, witch='LM')",
    "ow.random((2, 2), 0.5, format=3)", 'ow.eye(3, fromat="csr")', "M.filled(vale=0)", "ow.graph.pagerank(A, dampng=0.9)",
)  # fmt: skip
"""What a checker refuses: a name, a keyword, or a value that is not there."""


def mypy(folder: Path, lines: list[str]) -> str:
    """What mypy prints of a program."""
    (folder / "program.py").write_text("\n".join(lines) + "\n")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--ignore-missing-imports", "--follow-imports=silent", "program.py"],
        cwd=folder, env={"MYPYPATH": str(PACKAGE.parent), "PATH": ""}, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip


@pytest.mark.slow
def test_what_mypy_reads(tmp_path: Path) -> None:
    setup = SETUP.strip().splitlines()
    lines = [*setup, *(f"reveal_type({expression})" for expression, _ in CASES)]
    lines += ["B = A", "B += A", "reveal_type(B)", "def f(t: ow.Tensor) -> ow.Lazy: return ow.lazy(t) @ t"]
    start = len(lines) + 1
    found = mypy(tmp_path, [*lines, *MISSPELT])
    errors = {int(line) for line in re.findall(r"^program\.py:(\d+): error:", found, re.MULTILINE)}
    assert errors == set(range(start, start + len(MISSPELT))), found
    revealed = re.findall(r'Revealed type is "([^"]*)"', found)
    assert len(revealed) == len(CASES) + 1
    found = {expression: text for (expression, _), text in zip(CASES, revealed, strict=False)}
    wrong = {e: found[e] for e, kind in CASES if not re.search(rf"\.{kind}\b", found[e])}
    assert wrong == {}
    assert revealed[-1].endswith("Tensor")


def _functions(body: list[ast.stmt]) -> dict[str, list[ast.FunctionDef]]:
    out: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            out.setdefault(node.name, []).append(node)
    return out


def _parameters(node: ast.FunctionDef) -> list[str]:
    a = node.args
    extra = [p for p in (a.vararg, a.kwarg) if p is not None]
    return sorted(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *extra))


def test_the_stub_has_the_namespaces_functions_with_their_arguments() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    functions = _functions(stub.body)
    assert len(functions) > 150
    for name, overloads in functions.items():
        want = sorted(inspect.signature(getattr(ow, name)).parameters)
        for node in overloads:
            assert [p for p in _parameters(node) if p != "grad"] == [p for p in want if p != "grad"], name
    exported = {a.asname or a.name for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(ow.__all__) <= {*functions, *exported}


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", ["Methods", "LazyMethods", "MaskedMethods"])
def test_the_stub_has_the_methods_that_are_there(kind: str) -> None:
    stub = ast.parse((PACKAGE / "tensor" / "methods.pyi").read_text())
    (mixin,) = (n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == kind)
    listed = _functions(mixin.body)
    of = {"Methods": ow.Tensor, "LazyMethods": ow.Lazy, "MaskedMethods": ow.MaskedTensor}[kind]
    missing = {name for name in listed if not hasattr(of, name)}
    assert missing == set()
    assert {n for n in vars(getattr(methods, kind)) if n[0] != "_"} <= {*listed, *dir(of)}


def test_topk_of_a_masked_tensor_has_names() -> None:
    m = ow.masked_tensor(np.array([[3.0, 1.0, 2.0]]), np.array([[True, False, True]]))
    for found in (m.topk(2), ow.topk(m, 2)):
        assert found.values.to_numpy(-1).tolist() == [[3.0, 2.0]]
        assert found.indices.to_numpy(-1).tolist() == [[0, 2]]
        values, _ = found
        assert values is found.values
