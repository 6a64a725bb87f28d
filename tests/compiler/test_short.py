"""Short fibres walked in one loop: interpreted and compiled, against the dense oracle; and which tensors have them."""

from __future__ import annotations

import numpy as np
import pytest
from drives import agree, drive, packed, run_compiled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrix import dense_array

import openwork as ow
from openwork.format import format as parse_format
from openwork.ir.index_text import parse
from openwork.runtime.operand_type import operand_type

STATEMENTS = {
    2: ["y[i] += A[i, j] * x[j]", "y[i] += u[i] * A[i, j] * x[j]", "y[i] += A[i, j]", "y[i] max= A[i, j]", "Y[b, i] += A[i, j] * X[b, j]"],
    3: ["Y[i, j] += A[i, j, k] * v[k]", "Y[j, i] += A[i, j, k] * v[k] * u[i]"],
}  # fmt: skip
FORMATS = {
    2: ["csr", "dcsr", "csf", "(i, j) -> (j : dense, i : compressed)"],
    3: ["csf", "(i, j, k) -> (i : dense, j : dense, k : compressed)", "(i, j, k) -> (i : dense, j : compressed, k : compressed)"],
}  # fmt: skip
EXTENTS = {"i": 7, "j": 5, "k": 6, "b": 2}
SHORT = {"csr", "dcsr", "csf", *FORMATS[3]}


def lengths(rank: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 4), min_size=35 if rank == 3 else 7, max_size=35 if rank == 3 else 7)


@pytest.mark.thin(2)
@pytest.mark.parametrize("rank", [2, 3])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_fibres_of_any_lengths(rank: int, data: st.DataObject) -> None:
    """Empty ones too, at the ends of ranges as well."""
    counts = data.draw(lengths(rank))
    rng = np.random.default_rng(sum(counts))
    shape = (7, 5, 6)[:rank]
    elements = []
    for parent, n in enumerate(counts):
        above = (parent,) if rank == 2 else divmod(parent, 5)
        elements += [((*above, int(c)), float(rng.integers(1, 5))) for c in sorted(rng.permutation(shape[-1])[:n])]
    spec = data.draw(st.sampled_from(FORMATS[rank]))
    stmt = parse(data.draw(st.sampled_from(STATEMENTS[rank])))
    arrays = {
        a.tensor: dense_array(tuple(EXTENTS[i] for i in a.indices), 7, density=1)
        for a in stmt.accesses
        if a.tensor != "A"
    }
    source = packed(parse_format(spec, rank), shape, elements)
    d = drive(stmt, source, arrays, "f64", short=True)
    assert d.plan.short == (spec in SHORT and d.plan.vector is None)
    for pieces in (1, 3):
        agree(d, pieces=pieces)


@pytest.mark.parametrize(("rank", "text"), [(rank, text) for rank, texts in STATEMENTS.items() for text in texts])
@pytest.mark.parametrize("scalar", ["f32", "i64"])
def test_compiled(rank: int, text: str, scalar: str) -> None:
    stmt = parse(text)
    shape = (7, 5, 6)[:rank]
    places = np.argwhere(np.random.default_rng(rank).random(shape) < 0.3)
    elements = [(tuple(map(int, c)), float(k % 4)) for k, c in enumerate(places)]
    arrays = {
        a.tensor: dense_array(tuple(EXTENTS[i] for i in a.indices), 7, density=1)
        for a in stmt.accesses
        if a.tensor != "A"
    }
    d = drive(stmt, packed(parse_format(FORMATS[rank][0], rank), shape, elements, scalar), arrays, scalar, short=True)
    for pieces in (1, 3):
        agree(d, run=run_compiled, pieces=pieces)


def rows(counts: np.ndarray) -> ow.Tensor:
    """A CSR matrix whose rows have these many elements."""
    pos = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    crd = np.concatenate([np.arange(n) for n in counts]).astype(np.int32)
    return ow.assemble("csr", (len(counts), 64), pos={1: pos}, crd={1: crd}, values=np.arange(1.0, len(crd) + 1))


@pytest.mark.ci
def test_which_tensors_have_short_fibres() -> None:
    """Many, short and of lengths that differ: rows of one length are told by a branch predictor."""
    rng = np.random.default_rng(0)
    n, kept = 20_000, ow.get_num_threads()
    kinds = {
        "random": (rng.poisson(2, n), True), "even": (np.full(n, 2), False), "long": (rng.poisson(9, n), False),
        "few": (rng.poisson(2, 100), False), "empty": (rng.poisson(0.05, 40 * n), False), "runs": (np.repeat([1, 3], n), False),
    }  # fmt: skip
    for name, (counts, short) in kinds.items():
        t = rows(counts)
        assert operand_type(t._storage).fibres.short == short, name
        if name == "random":
            x = rng.random(64)
            want = np.add.reduceat(np.append(t.values * x[t.crd(1)], 0), t.pos(1)[:-1]) * (counts > 0)
            for threads in (1, 2):
                ow.set_num_threads(threads)
                np.testing.assert_allclose(t @ x, want)
            ow.set_num_threads(kept)
            plan = ow.explain(ow.matmul, t, x)
            assert "done" in plan.loops
            assert "fibres       short and of many lengths: all in one loop" in str(plan)


def test_no_branch_asks_where_a_fibre_ends() -> None:
    """Inside the loop there is only that for fibres without elements."""
    t = rows(np.random.default_rng(1).poisson(2, 20_000))
    loops = ow.explain(lambda: t @ np.ones(64)).loops
    inner = loops[loops.index("for q") :]
    assert inner.count("while") == 1
    assert " if e == " not in inner
