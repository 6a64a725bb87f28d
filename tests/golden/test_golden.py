"""Golden kernels: the loop IR of a statement on a format, word for word.

A change of these files is a change of generated code: look at the difference, then `pytest --update-golden`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from openwork.compiler.operand import Operand
from openwork.compiler.schedule import Facts, schedule
from openwork.compiler.simplify import simplify
from openwork.compiler.single.lower import lower_single_operand
from openwork.format import format as parse_format
from openwork.ir.index import Access, Apply, Assignment
from openwork.ir.index_text import parse
from openwork.ir.printer import show
from openwork.ir.text import parse as parse_loops
from openwork.ir.verify import verify

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A statement whose operand `A` is sparse. `extents` are what the schedule knows; `shared` gives the output the
    structure of A; `permutes` are the bytes of vectors, coordinates being packed; `scalars` other than f64 by operand."""

    statement: str | Assignment
    format: str
    ragged: bool = False
    large: bool = False
    short: bool = False
    permutes: int | None = None
    shared: bool = False
    extents: dict[str, int] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    index: str = "i32"


SPMV, SPMM, LEFT = "y[i] += A[i, j] * x[j]", "Y[i, r] += A[i, j] * X[j, r]", "Y[r, j] += X[r, i] * A[i, j]"
MTTKRP = "Y[i, r] += A[i, j, k] * B[j, r] * C[k, r]"
SDDMM = Assignment(
    Access("C", ("i", "j")),
    "+=",
    Apply(
        "mul",
        (
            Apply("pattern", (Access("A", ("i", "j")),)),
            Apply("mul", (Access("U", ("i", "k")), Access("V", ("k", "j")))),
        ),
    ),
)
"""`pattern` is one at every stored element."""
UNCOALESCED = "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"
NESTED = "(i, j) -> (i // 4 : dense, j // 4 : compressed, i % 4 // 2 : dense, j % 4 // 2 : dense, i % 2 : dense, j % 2 : dense)"

CASES = {
    "spmv-csr": Case(SPMV, "csr"),
    "spmv-csr-64-bit-indices": Case(SPMV, "csr", index="i64"),
    "spmv-csr-prefetch": Case(SPMV, "csr", large=True),
    "spmv-csr-half": Case(SPMV, "csr", scalars={"A": "f16", "x": "f16", "y": "f32"}),
    "spmv-csr-bool": Case(SPMV, "csr", scalars={"A": "bool", "x": "bool", "y": "bool"}),
    "spmv-csc-scatter": Case(SPMV, "csc"),
    "spmv-coo-segments": Case(SPMV, "coo"),
    "spmv-coo-uncoalesced": Case(SPMV, UNCOALESCED),
    "spmv-dcsr": Case(SPMV, "dcsr"),
    "spmv-bsr-block-lanes": Case(SPMV, "bsr(4, 4)"),
    "spmv-bsr-ragged-guards": Case(SPMV, "bsr(2, 3)", ragged=True),
    "spmv-bsc": Case(SPMV, "bsc(2, 3)"),
    "spmv-nested-blocks": Case(SPMV, NESTED),
    "spmv-row-blocks": Case(SPMV, "(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)"),
    "spmv-dia-diagonals": Case(SPMV, "dia"),
    "spmv-dia-by-column": Case(SPMV, "(i, j) -> (j - i : compressed, j : range)"),
    "spmv-antidiagonals": Case(SPMV, "(i, j) -> (i + j : compressed, i : range)"),
    "spmv-skewed-clipped": Case(SPMV, "(i, j) -> (i : dense, j - i : dense)", ragged=True),
    "spmv-skewed-guards": Case(SPMV, "(i, j) -> (i : dense, j - i : compressed)", ragged=True),
    "spmv-ell-sentinel": Case(SPMV, "ell(6)"),
    "spmv-bitmap": Case(SPMV, "bitmap"),
    "spmv-structured": Case(SPMV, "nm(2, 4)"),
    "spmv-structured-permuted": Case(SPMV, "nm(2, 4)", permutes=64, scalars=dict.fromkeys("Axy", "f32"), index="u8"),
    "spmm-structured-packed": Case(SPMM, "nm(4, 8)", permutes=0, extents={"r": 8}, index="u8"),
    "spmv-loose": Case(SPMV, "(i, j) -> (i : dense, j : loose_compressed)"),
    "spmv-batch": Case("y[b, i] += A[b, i, j] * x[b, j]", "(b, i, j) -> (b : batch, i : dense, j : compressed)"),
    "vecmat-csr": Case("y[j] += x[i] * A[i, j]", "csr"),
    "spmm-csr-small-tile": Case(SPMM, "csr", extents={"r": 5}),
    "spmm-csr-one-tile": Case(SPMM, "csr", extents={"r": 32}),
    "spmm-csr-tiles-and-rest": Case(SPMM, "csr", extents={"r": 300}),
    "spmm-csr-float": Case(SPMM, "csr", extents={"r": 40}, scalars={"A": "f32", "X": "f32", "Y": "f32"}),
    "spmm-csr-complex": Case(SPMM, "csr", extents={"r": 8}, scalars=dict.fromkeys("AXY", "c128")),
    "spmm-csr-prefetch": Case(SPMM, "csr", large=True, extents={"r": 32}),
    "spmm-bsr-rows-in-registers": Case(SPMM, "bsr(2, 2)", extents={"r": 16}),
    "spmm-bsr-ragged": Case(SPMM, "bsr(2, 2)", ragged=True, extents={"r": 8}),
    "spmm-coo": Case(SPMM, "coo", extents={"r": 16}),
    "spmm-left-csr": Case(LEFT, "csr", extents={"r": 8}),
    "spmm-batch-of-dense": Case("Y[b, i, r] += A[i, j] * X[b, j, r]", "csr", extents={"r": 8}),
    "sddmm-csr-lanes-of-a-reduction": Case(SDDMM, "csr", shared=True, extents={"k": 20}),
    "sddmm-bsr": Case(SDDMM, "bsr(2, 2)", shared=True, ragged=True, extents={"k": 8}),
    "spmv-csr-short-rows": Case(SPMV, "csr", short=True),
    "ttv-csf-short-fibres": Case("Y[i, j] += A[i, j, k] * v[k]", "csf", short=True),
    "scale-rows-csr": Case("C[i, j] = A[i, j] * d[i]", "csr", shared=True),
    "bilinear-csr": Case("y += u[i] * A[i, j] * v[j]", "csr"),
    "sampled-sum-csr": Case("y[i] += A[i, j] * U[i, k] * V[j, k]", "csr", extents={"k": 20}),
    "mttkrp-csf-nested-sums": Case(MTTKRP, "csf", extents={"r": 16}),
    "mttkrp-csf-middle": Case("Y[j, r] += A[i, j, k] * B[i, r] * C[k, r]", "csf", extents={"r": 8}),
    "mttkrp-coo": Case(MTTKRP, "coo", extents={"r": 8}),
    "ttv-hybrid": Case("Y[i, k] += A[i, j, k] * v[j]", "(i, j, k) -> (i : dense, j : compressed, k : dense)"),
    "sum-bsr": Case("y += A[i, j]", "bsr(2, 2)", ragged=True),
    "row-maximum-csr": Case("y[i] max= A[i, j]", "csr"),
    "to-dense-csr": Case("Y[i, j] += A[i, j]", "csr"),
    "vector-blocks": Case("y += A[i] * x[i]", "(i) -> (i // 4 : compressed, i % 4 : dense)"),
    "scalar": Case("Y[r] += A * x[r]", "() -> ()", extents={"r": 8}),
}  # fmt: skip


def kernel_text(case: Case) -> str:
    """The loop IR of a case under a heading that says what it is, verified and parsed back."""
    stmt = parse(case.statement) if isinstance(case.statement, str) else case.statement
    sparse = next(a for a in stmt.accesses if a.tensor == "A")
    vector = next(iter(case.extents), None)
    operands = {a.tensor: _operand(case, stmt, a, len(sparse.indices), vector) for a in (*stmt.accesses, stmt.lhs)}
    plan = schedule(
        stmt,
        operands,
        Facts(
            tuple(case.extents.items()), case.large, False, case.short, case.permutes is not None, case.permutes or 0
        ),
    )
    scalar = operands[stmt.lhs.tensor].scalar
    kernel = verify(simplify(lower_single_operand(stmt, operands, plan, scalar)))
    text = show(kernel)
    assert parse_loops(text) == kernel
    known = [f"{i} = {n}" for i, n in case.extents.items()]
    known += [
        word
        for word, holds in (("ragged", case.ragged), ("large operands", case.large), ("short fibres", case.short))
        if holds
    ]
    heading = f"# known: {', '.join(known)}\n" if known else ""
    return heading + text.rstrip("\n") + "\n"


def _operand(case: Case, stmt: Assignment, access: Access, rank: int, vector: str | None) -> Operand:
    """Dense operands are row-major, or contiguous along the vector index."""
    name = access.tensor
    scalar = case.scalars.get(name, "f64")
    if name == "A" or (case.shared and name == stmt.lhs.tensor):
        fmt = parse_format(case.format, rank)
        pos, crd = (
            tuple(
                None if part not in level.format.buffers else "bool" if level.format.name == "bitmap" else case.index
                for level in fmt.levels
            )
            for part in ("pos", "crd")
        )
        return Operand(scalar, rank, fmt, pos, crd, case.ragged)
    last = max(0, len(access.indices) - 1)
    return Operand(scalar, len(access.indices), unit=access.indices.index(vector) if vector in access.indices else last)


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, update_golden: bool) -> None:
    path = FOLDER / f"{name}.txt"
    text = kernel_text(CASES[name])
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no golden kernel {name}: run pytest --update-golden"
    assert text == path.read_text(encoding="utf-8")


def test_no_file_is_left_over() -> None:
    assert {p.stem for p in FOLDER.glob("*.txt")} == set(CASES)
