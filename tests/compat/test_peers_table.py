"""The README's table of other libraries: what can be asked of a library that is installed is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EYE = np.eye(4) * 2
Check = Callable[[Any], bool]


def cells() -> dict[tuple[str, str], str]:
    """(row, library) -> what the table says."""
    text = (ROOT / "README.md").read_text().split("## What else there is")[1].split("\n## ")[0]
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    head, *rows = [lines[0], *lines[2:]]
    return {(row[0], name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}


def refuses(call: Callable[[], object]) -> bool:
    try:
        call()
    except Exception:
        return True
    return False


def scipy_formats(sp: Any) -> bool:
    found = {n.removesuffix("_array") for n in dir(sp) if n.endswith("_array") and len(n) == 9}
    return found - {"eye"} == {"bsr", "coo", "csc", "csr", "dia", "dok", "lil"}


def scipy_ranks(sp: Any) -> bool:
    taken = {
        name: [n for n in (1, 3) if not refuses(lambda n=n, name=name: getattr(sp, f"{name}_array")(np.ones((2,) * n)))]
        for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    }
    return taken == {"bsr": [], "coo": [1, 3], "csc": [], "csr": [1], "dia": [], "dok": [1], "lil": []}


def torch_layouts(torch: Any) -> bool:
    dense = torch.eye(4)
    made = [getattr(dense, f"to_sparse_{name}")() for name in ("coo", "csr", "csc")]
    made += [getattr(dense, f"to_sparse_{name}")((2, 2)) for name in ("bsr", "bsc")]
    return len({x.layout for x in made}) == 5 and hasattr(torch.sparse, "SparseSemiStructuredTensor")


def torch_gradient(torch: Any) -> bool:
    values = torch.ones(3, requires_grad=True)
    torch.sparse_coo_tensor(torch.arange(3).repeat(2, 1), values, (3, 3)).to_dense().sum().backward()
    return values.grad is not None


def torch_reductions(torch: Any) -> bool:
    a = torch.eye(3).to_sparse_csr()
    return all(
        torch.sparse.mm(a, torch.ones(3, 2), reduce=name).shape == (3, 2) for name in ("sum", "mean", "amin", "amax")
    )


def graphblas_formats(gb: Any) -> bool:
    full = gb.Matrix.from_dense(np.ones((4, 4)))
    hyper = gb.Matrix.from_coo([0, 1], [1, 0], [1.0, 2.0], nrows=10**9, ncols=10**9)
    return full.ss.export()["format"].startswith("full") and hyper.ss.export()["format"].startswith("hyper")


def graphblas_accumulates(gb: Any) -> bool:
    a, c = gb.Matrix.from_dense(EYE), gb.Matrix(float, 4, 4)
    for _ in range(2):
        c(mask=a.S, accum=gb.binary.plus) << gb.semiring.plus_times(a @ a)
    return bool(c[0, 0].new().value == 8)


def solved_by_scipy(sparse: Any) -> bool:
    cg = pytest.importorskip("scipy.sparse.linalg").cg
    return not hasattr(sparse, "linalg") and bool(np.allclose(cg(sparse.COO.from_numpy(EYE), np.ones(4))[0], 0.5))


CHECKS: list[tuple[str, str, str, str, Check]] = [
    ("scipy.sparse", "scipy.sparse", "storage formats", "BSR, COO, CSC, CSR, DIA, DOK, LIL", scipy_formats),
    ("scipy.sparse", "scipy.sparse", "dimensions", "COO any, CSR and DOK 1 or 2, others 2", scipy_ranks),
    ("scipy.sparse", "scipy.sparse", "what is not stored is", "0", lambda sp: refuses(lambda: sp.csr_array(EYE) + 1)),
    ("scipy.sparse", "scipy.sparse", "graph algorithms", "csgraph", lambda sp: hasattr(sp, "csgraph")),
    ("scipy.sparse", "scipy.sparse", "array API standard", "-", lambda sp: not hasattr(sp.csr_array(EYE), "__array_namespace__")),
    ("torch.sparse", "torch", "storage formats", "COO, CSR, CSC, BSR, BSC, 2:4", torch_layouts),
    ("torch.sparse", "torch", "dimensions", "COO any, others 2 and batches",
     lambda torch: torch.ones(2, 2, 2, 2).to_sparse().ndim == 4 and torch.ones(2, 3, 3).to_sparse_csr().ndim == 3),
    ("torch.sparse", "torch", "gradients", "yes", torch_gradient),
    ("torch.sparse", "torch", "other sums and products, such as (min, +)", "sum, mean, min, max of products", torch_reductions),
    ("pydata/sparse", "sparse", "storage formats", "COO, GCXS, DOK",
     lambda sparse: all(hasattr(sparse, n) for n in ("COO", "GCXS", "DOK"))),
    ("pydata/sparse", "sparse", "dimensions", "any number",
     lambda sparse: all(getattr(sparse, n).from_numpy(np.ones((2, 2, 2))).ndim == 3 for n in ("COO", "GCXS", "DOK"))),
    ("pydata/sparse", "sparse", "what is not stored is", "any number",
     lambda sparse: (sparse.COO.from_numpy(EYE) + 7).fill_value == 7),
    ("pydata/sparse", "sparse", "solvers and eigenvalues", "by SciPy", solved_by_scipy),
    ("pydata/sparse", "sparse", "gradients", "-", lambda sparse: not hasattr(sparse.COO.from_numpy(EYE), "backward")),
    ("pydata/sparse", "sparse", "array API standard", "yes",
     lambda sparse: hasattr(sparse.COO.from_numpy(EYE), "__array_namespace__")),
    ("python-graphblas", "graphblas", "storage formats", "chosen for you, of four by rows or columns", graphblas_formats),
    ("python-graphblas", "graphblas", "dimensions", "1 or 2", lambda gb: hasattr(gb, "Vector") and not hasattr(gb, "Tensor")),
    ("python-graphblas", "graphblas", "what is not stored is", "no value",
     lambda gb: gb.Matrix.from_coo([0], [0], [1.0], nrows=2, ncols=2)[1, 1].new().value is None),
    ("python-graphblas", "graphblas", "several operations in one pass", "mask and accumulator", graphblas_accumulates),
    ("python-graphblas", "graphblas", "other sums and products, such as (min, +)", "yes, its heart",
     lambda gb: gb.semiring.min_plus(gb.Matrix.from_dense(EYE) @ gb.Matrix.from_dense(EYE)).new()[0, 0].new().value == 0),
    ("Finch", "finch", "storage formats", "any, composed of parts",
     lambda finch: all(hasattr(finch, f"{n}Level") for n in ("Dense", "Element", "SparseList", "SparseCOO"))),
    ("Finch", "finch", "several operations in one pass", "yes",
     lambda finch: np.allclose(np.asarray(finch.compute(finch.defer(finch.asarray(EYE)) * finch.defer(finch.asarray(EYE)))), EYE * 2)),
    ("Finch", "finch", "array API standard", "2024.12", lambda finch: finch.__array_api_version__ == "2024.12"),
    ("Finch", "finch", "solvers and eigenvalues", "the array API's",
     lambda finch: all(hasattr(finch.linalg, n) for n in ("solve", "eigh", "svd"))),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "package", "row", "said", "check"), CHECKS, ids=[f"{c[1]}-{c[2]}".replace(" ", "_") for c in CHECKS]
)
@pytest.mark.filterwarnings("ignore")
def test_what_the_table_says_of_a_library(library: str, package: str, row: str, said: str, check: Check) -> None:
    assert cells()[row, library] == said
    assert check(pytest.importorskip(package))
