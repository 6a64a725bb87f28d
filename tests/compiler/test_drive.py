"""Drive kernels of random formats and statements: right, well formed, deterministic, the same interpreted and compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from drive_strategies import drives
from drives import Drive, agree, drive, packed, run_compiled, run_interpreted
from hypothesis import event, given, settings
from hypothesis import strategies as st
from matrix import FORMATS, SHAPES, dense_array

from openwork.compiler.schedule import schedule, without_gathers
from openwork.compiler.simplify import simplify
from openwork.compiler.single.lower import lower_single_operand
from openwork.format import format as parse_format
from openwork.ir.index_text import parse
from openwork.ir.loop import Op
from openwork.ir.printer import show
from openwork.ir.rewrite import operands, statements, subexpressions
from openwork.ir.text import parse as parse_loops
from openwork.ir.verify import verify
from openwork.storage.storage import Storage

SCALARS = ("f64", "f64", "f32", "i32", "i64", "u8", "c128")


def operations(d: Drive) -> set[str]:
    return {
        e.op
        for stmt in statements(d.kernel.body)
        for part in operands(stmt)
        for e in subexpressions(part)
        if isinstance(e, Op)
    }


def well_formed(d: Drive) -> None:
    verify(d.kernel)
    assert not operations(d) & {"floordiv", "mod"}
    assert parse_loops(show(d.kernel)) == d.kernel
    again = schedule(d.problem.stmt, dict(reversed(d.problem.operands.items())), d.problem.facts)
    assert again == d.plan
    raw = lower_single_operand(d.problem.stmt, dict(reversed(d.problem.operands.items())), again, d.problem.compute)
    verify(raw)
    assert show(simplify(raw)) == show(d.kernel)


@pytest.mark.ci
@settings(max_examples=80)
@given(drives(), st.integers(1, 3))
def test_interpreted(d: Drive, pieces: int) -> None:
    event(str(d.source.storage.format.ndim))
    well_formed(d)
    agree(d, pieces=pieces)


@pytest.mark.ci
@settings(max_examples=60)
@given(drives(scalars=SCALARS, kinds=("contraction",)), st.integers(1, 3))
def test_interpreted_in_every_kind_of_scalar(d: Drive, pieces: int) -> None:
    well_formed(d)
    agree(d, pieces=pieces)


@pytest.mark.ci
@settings(max_examples=60)
@given(drives(scalars=SCALARS, kinds=("contraction",)), st.integers(1, 3))
def test_compiled_in_every_kind_of_scalar(d: Drive, pieces: int) -> None:
    agree(d, run=run_compiled, pieces=pieces)


@pytest.mark.ci
@settings(max_examples=60)
@given(drives(scalars=("f64", "f32")), st.integers(1, 3))
def test_compiled(d: Drive, pieces: int) -> None:
    agree(d, run=run_compiled, pieces=pieces)


def test_runs_of_a_row_are_not_cut() -> None:
    """Where each row is stored once, one piece has all of its elements: two of row 0 and one of row 1, in three."""
    spec = parse_format("(i, j) -> (i : compressed(nonunique), j : singleton(nonunique, unordered))")
    source = packed(spec, (2, 1), [((0, 0), 2.0), ((0, 0), 3.0), ((1, 0), 4.0)])
    d = drive(parse("y[i] += -A[i, j]"), source, {}, "f64", large=True)
    assert d.plan.run_reduce
    assert d.plan.parallel
    for pieces in (1, 2, 3):
        agree(d, pieces=pieces)


def test_threads_are_given_rows_that_no_other_writes() -> None:
    """A row whose elements are apart, or that comes several times, belongs to no range."""
    for levels, parallel in {
        "i : dense, j : compressed": True,
        "i : compressed, j : compressed": True,
        "i : compressed(nonunique), j : singleton": True,
        "i : compressed(nonunique, unordered), j : singleton(nonunique, unordered)": False,
        "j : compressed, i : compressed": False,
    }.items():
        source = packed(parse_format(f"(i, j) -> ({levels})"), (2, 2), [((0, 0), 2.0), ((0, 1), 3.0), ((1, 0), 4.0)])
        assert drive(parse("y[i] += A[i, j]"), source, {}, "f64", large=True).plan.parallel == parallel, levels


STATEMENTS = {
    0: ("y += A", "y[r] += A * x[r]", "Y[s, r] += A * X[r, s]"),
    1: ("y += A[i]", "y += A[i] * x[i]", "y[r] += A[i] * X[i, r]", "y[i] += A[i]", "y[i] += A[i] * X[r, i]"),
    2: (
        "y[i] += A[i, j] * x[j]",
        "y[j] += x[i] * A[i, j]",
        "Y[i, r] += A[i, j] * X[j, r]",
        "Y[r, j] += X[r, i] * A[i, j]",
        "Y[i, j] += A[i, j]",
        "y += A[i, j]",
        "y[j] += A[i, j]",
        "y += u[i] * A[i, j] * v[j]",
        "y[i] += A[i, j] * U[i, r] * V[j, r]",
        "Y[b, i, r] += A[i, j] * X[b, j, r]",
    ),
    3: (
        "Y[i, r] += A[i, j, k] * B[j, r] * C[k, r]",
        "Y[j, r] += A[i, j, k] * B[i, r] * C[k, r]",
        "Y[k, r] += A[i, j, k] * B[i, r] * C[j, r]",
        "Y[i, k] += A[i, j, k] * v[j]",
        "Y[i, j, r] += A[i, j, k] * M[r, k]",
        "Y[k] += A[i, j, k]",
        "y[i] += A[i, j, k] * v[j] * w[k]",
    ),
    4: (
        "Y[b, r] += A[a, b, c, d] * U[a, r] * V[c, r] * W[d, r]",
        "Y[d, a] += A[a, b, c, d] * u[b] * v[c]",
    ),
}
NAMED = [(spec, text) for d, texts in STATEMENTS.items() for spec in FORMATS[d] for text in texts]


@pytest.mark.thin(168)
@pytest.mark.parametrize(("spec", "text"), NAMED, ids=lambda x: x.replace(" ", ""))
def test_named_statements_on_named_formats(spec: str, text: str) -> None:
    """Extents that blocks divide and that they do not, small and large dense extents, strided operands."""
    stmt = parse(text)
    rank = next(len(a.indices) for a in stmt.accesses if a.tensor == "A")
    fmt = parse_format(spec, rank)
    first, second = SHAPES[rank][0], SHAPES[rank][:2][-1]
    for r, shape, step in ((3, first, 1), (17, second, 1), (3, first, 2)):
        own = next(a.indices for a in stmt.accesses if a.tensor == "A")
        extents = {
            **dict.fromkeys(stmt.indices, r),
            **dict(zip(own, shape, strict=True)),
            "b": shape[1] if rank == 4 else 2,
        }
        source = packed(fmt, shape, elements(shape))
        arrays = {
            a.tensor: spread(dense_array(tuple(extents[i] for i in a.indices), 7, density=1), step)
            for a in stmt.accesses
            if a.tensor != "A"
        }
        d = drive(stmt, source, arrays, "f64")
        if step == 1:
            well_formed(d)
        agree(d)


def spread(array: np.ndarray, step: int) -> np.ndarray:
    """The array with its last dimension's elements `step` apart."""
    if array.ndim == 0 or step == 1:
        return array
    wide = np.full((*array.shape[:-1], array.shape[-1] * step), 77.0)
    wide[..., ::step] = array
    return wide[..., ::step]


def elements(shape: tuple[int, ...], seed: int = 3) -> list[tuple[tuple[int, ...], float]]:
    """A third of the places, with values from 0 (explicit) to 4."""
    rng = np.random.default_rng(seed)
    places = np.argwhere(rng.random(shape) < 0.35)
    return [(tuple(map(int, c)), float(rng.integers(0, 5))) for c in places]


PRINT_KERNELS = """
from openwork.runtime.kernel_text import show_kernel
for spec in ("csr", "coo", "bsr(2,3)", "dia", "ell(4)", "bitmap", "(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)"):
    for text in ("y[i] += A[i, j] * x[j]", "Y[i, r] += A[i, j] * X[j, r]", "y += A[i, j] * B[i, r] * C[j, r]"):
        print(show_kernel(text, {"A": spec}))
for text in ("Y[i, r] += A[i, j, k] * B[j, r] * C[k, r]", "y[j] += A[i, j, k] * B[i, r, s] * C[k, s, r]"):
    print(show_kernel(text, {"A": "csf"}))
"""


@pytest.mark.ci
def test_kernels_do_not_depend_on_the_hash_seed() -> None:
    def printed(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", PRINT_KERNELS], capture_output=True, text=True, check=True, env=env
        ).stdout

    first = printed("1")
    assert first.count("def drive") == 23
    assert printed("2") == first == printed("77")


def test_unordered_coordinates_and_duplicates() -> None:
    """What the reference packs in order, in any order."""
    fmt = parse_format("(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))")
    rng = np.random.default_rng(5)
    places = [(int(i), int(j)) for i, j in rng.integers(0, 5, (40, 2))]
    source = packed(fmt, (5, 5), [(c, float(k % 4)) for k, c in enumerate(places)])
    order = rng.permutation(40)
    crd = tuple(None if c is None else c[order] for c in source.storage.crd)
    s = source.storage
    shuffled = Storage(s.shape, s.format, s.scalar, 0, s.pos, crd, s.values[order])
    arrays = {"X": dense_array((5, 9), 1, density=1)}
    for text in ("Y[i, r] += A[i, j] * X[j, r]", "Y[j, r] += A[i, j] * X[i, r]", "Y[r] += A[i, j] * X[j, r]"):
        agree(drive(parse(text), replace(source, storage=shuffled), arrays, "f64"))


def test_integer_minima_of_empty_rows_do_not_wrap() -> None:
    """The identity of min over integers is no infinity: nothing may be added to it."""
    source = packed(parse_format("csr"), (2, 3), [((0, 1), 4.0), ((0, 2), 7.0)], "i32")
    arrays = {"x": np.array([10, 20], np.int32)}
    d = drive(parse("y[i] min= A[i, j] + x[i]"), source, arrays, "i32")
    agree(replace(d, want=np.array([14, np.iinfo(np.int32).max], np.int32)))


@pytest.mark.nightly
@pytest.mark.timeout(14400)
@settings(max_examples=5000)
@given(drives(), st.integers(1, 3))
def test_interpreted_nightly(d: Drive, pieces: int) -> None:
    well_formed(d)
    agree(d, pieces=pieces)


@pytest.mark.thin(9)
@pytest.mark.parametrize("spec", ["csr", "dcsr", "csc", "csf", "csr(unordered)"])
@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_masked_lanes_take_nothing_of_other_fibres(spec: str, scalar: str) -> None:
    """Rows of 0 to 20 elements by sums, maxima and products, in pieces: what stands behind a row, plays no part
    in it; the interpreter finds no access out of bounds at the end of the last one."""
    shape = (9, 4, 25) if spec == "csf" else (25, 9) if spec == "csc" else (9, 25)
    rng = np.random.default_rng(5)
    dense = rng.integers(1, 9, shape).astype(float)
    lengths = [3, 0, 20, 8, 9, 7, 1, 16, 5]
    for i, n in enumerate(lengths):
        row = dense[:, i] if spec == "csc" else dense[i]
        row[..., n:] = 0
    elements = [(tuple(map(int, at)), float(dense[tuple(at)])) for at in np.argwhere(dense)]
    source = packed(parse_format(spec, len(shape)), shape, elements, scalar)
    names = {"csf": "i,k,j", "csc": "j,i"}.get(spec, "i,j")
    x = rng.integers(1, 9, 25)
    for text in (f"y[i] += A[{names}] * x[j]", f"y[i] max= A[{names}]", f"y[i] *= A[{names}]"):
        stmt = parse(text)
        arrays = {"x": x.astype(source.storage.values.dtype)} if "x" in text else {}
        d = drive(stmt, source, arrays, scalar, medium=True)
        assert d.plan.masked
        assert not without_gathers(d.plan, d.problem.facts).masked
        for run in (run_interpreted, run_compiled):
            for pieces in (1, 3):
                agree(d, d.kernel, run, pieces)
