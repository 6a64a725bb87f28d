"""Merges led by their shortest operand, for which the others are searched: against NumPy, interpreted, and as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted import interpreted
from matrix import dense_array, same, tensor

import openwork as ow
from openwork.codegen.plan_cache import forget_plans
from openwork.compiler.schedule import gallop
from openwork.ops.elementwise.pointwise import pointwise
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import shaped

LOOSE = "(i, j) -> (i : dense, j : loose_compressed)"
HYBRID = "(i, j, k) -> (i : dense, j : dense, k : compressed)"
SHAPES = {1: (60,), 2: (12, 18), 3: (4, 6, 9)}
PAIRS = {
    1: [("csf", "csf"), ("coo", "csf")],
    2: [
        ("csr", "csr"), ("csr", "dcsr"), ("csr", "coo"), ("dcsr", "csr"), ("coo", "csr"), ("coo", "coo"), ("dcsr", "dcsr"),
        ("csr", "bitmap"), (LOOSE, "csr"), ("csr", LOOSE), ("ell(18)", "dcsr"), ("bsr(2, 3)", "bsr(2, 3)"), ("csc", "csc"),
        ("dia", "dia"), ("csr", "dense"),
    ],
    3: [("csf", "csf"), (HYBRID, HYBRID), (HYBRID, "csf"), ("coo", HYBRID), ("csf", "coo")],
}  # fmt: skip
UNSOUGHT = {"bitmap", "dia", "dense"}
TEXTS = ["A * B", "B * A", "A * B * C", "(A + C) * B", "select(A > 1, B, 0)"]


@pytest.fixture(autouse=True)
def _everybody_leads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The shorter operand leads, however little shorter it is."""
    monkeypatch.setattr(gallop, "RATIO", 0)
    monkeypatch.setattr(gallop, "SMALL", 0)
    kept = ow.get_num_threads()
    ow.set_num_threads(1)
    yield
    ow.set_num_threads(kept)


def arrays_of(shape: tuple[int, ...], seed: int, densities: tuple[float, ...] = (0.6, 0.15, 0.5)) -> dict[str, Any]:
    return {
        n: dense_array(shape, 3 * seed + k, density=d) for k, (n, d) in enumerate(zip("ABC", densities, strict=True))
    }


def want(text: str, arrays: dict[str, Any]) -> Any:
    return eval(text.replace("select", "np.where"), {"np": np}, arrays)


def check(text: str, arrays: dict[str, Any], specs: tuple[str, ...], sought: bool = True) -> None:
    tensors = {n: tensor(a, s) for (n, a), s in zip(arrays.items(), specs, strict=True) if n in text}
    plan = ow.explain(lambda: pointwise(text, tensors))
    got = plan.result
    same(got, want(text, arrays))
    assert "step += step" in plan.loops or not sought or UNSOUGHT.intersection(specs), "nobody is searched"
    with interpreted() as ran:
        again = pointwise(text, tensors)
    assert ran
    for one, other in zip(got._storage.buffers, again._storage.buffers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.thin(8, rest="ci")
@pytest.mark.parametrize(("rank", "pair"), [(rank, pair) for rank, pairs in PAIRS.items() for pair in pairs])
def test_formats(rank: int, pair: tuple[str, str]) -> None:
    for text in TEXTS[:2]:
        check(text, arrays_of(SHAPES[rank], rank), (*pair, pair[0]))


@pytest.mark.thin(15)
@pytest.mark.parametrize("text", TEXTS[2:])
@pytest.mark.parametrize("spec", ["csr", "dcsr", "coo", "csf"])
def test_more_operands(text: str, spec: str) -> None:
    shape = SHAPES[3 if spec == "csf" else 2]
    for densities in ((0.6, 0.15, 0.5), (0.1, 0.5, 0.6)):
        check(text, arrays_of(shape, 1, densities), (spec,) * 3)


ROWS = st.lists(st.integers(0, 2**60 - 1), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(ROWS, ROWS, st.sampled_from(PAIRS[2][:8]))
def test_rows_of_any_kind(long: list[int], short: list[int], pair: tuple[str, str]) -> None:
    """Rows are the bits of numbers; those that are missing are empty."""
    n = max(len(long), len(short))
    arrays = {}
    for name, rows in (("A", long), ("B", short)):
        bits = [[(row >> k) & 1 for k in range(60)] for row in rows]
        arrays[name] = np.array(bits + [[0] * 60] * (n - len(rows)), float) * (2 if name == "A" else 3)
    tensors = {n: tensor(a, s) for (n, a), s in zip(arrays.items(), pair, strict=True)}
    for text in TEXTS[:2]:
        got = pointwise(text, tensors)
        same(got, want(text, arrays))
        assert got.nse == np.count_nonzero(want(text, arrays))


def test_broadcasting() -> None:
    a = dense_array((9, 14), 0, density=0.6)
    row, column = dense_array((14,), 1, density=0.2), dense_array((9, 1), 2, density=0.3)
    for spec in ("csr", "dcsr"):
        check("A * B", {"A": a, "B": row}, (spec, "coo"))
        check("A * B", {"A": a, "B": column}, (spec, "coo"), sought=spec == "dcsr")


@pytest.mark.parametrize("pair", [("csr", "csr"), ("csr", "dcsr"), ("coo", "coo"), (HYBRID, HYBRID)])
def test_ranges(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A range of the outermost loop begins and ends anywhere."""
    for module in (merge_chunks, shaped):
        monkeypatch.setattr(module, "MINIMUM", 0)
    monkeypatch.setattr(merge_chunks, "RANGE", 8)
    arrays = arrays_of((40, 30) if pair[0] != HYBRID else (30, 3, 20), 5)
    a, b = (tensor(arrays[n], s) for n, s in zip("AB", pair, strict=True))
    for threads in (1, 2, 7):
        ow.set_num_threads(threads)
        same(a * b, arrays["A"] * arrays["B"])
        same(b * a, arrays["A"] * arrays["B"])


SUMS = ["ow.sum(A * B)", "ow.sum(A * B, axis=1)", "ow.sum(A * B * C, axis=0)", "(A * B) @ x", "ow.max(A * B, axis=1)"]


@pytest.mark.parametrize("specs", [("csr", "csr", "csr"), ("csr", "dcsr", "coo"), ("coo", "csr", "csr")])
def test_sums(specs: tuple[str, ...]) -> None:
    arrays = arrays_of(SHAPES[2], 2)
    tensors = [tensor(a, s) for a, s in zip(arrays.values(), specs, strict=True)]
    x = np.arange(18.0)
    for text in SUMS:
        plan = ow.explain(ow.fused(eval(f"lambda A, B, C: {text}", {"ow": ow, "x": x})), *tensors)
        np.testing.assert_allclose(
            np.asarray(plan.result), eval(text.replace("ow.", "np."), {"np": np, "x": x}, arrays)
        )
        assert "gallop" in str(plan)


# -- when --------------------------------------------------------------------------------------------------------------


def few(n: int, count: int, spec: str) -> ow.Tensor:
    rng = np.random.default_rng(count)
    i, j = rng.integers(0, n, (2, count))
    return ow.asarray(ow.sparse_coo_tensor(np.stack([i, j]), np.ones(count), (n, n))).asformat(spec)


@pytest.fixture
def _sizes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallop, "RATIO", 16)
    monkeypatch.setattr(gallop, "SMALL", 2048)


@pytest.mark.thin(2)
@pytest.mark.usefixtures("_sizes_count")
@pytest.mark.parametrize("spec", ["csr", "dcsr", "coo"])
def test_only_operands_far_shorter_lead(spec: str) -> None:
    a, short, about = few(1024, 20_000, "csr"), few(1024, 30, spec), few(1024, 9_000, spec)
    for t, leads in ((short, True), (about, False)):
        for f in (lambda t=t: a * t, lambda t=t: t * a):
            plan = ow.explain(f)
            assert ("gallop" in str(plan)) == leads
            same(plan.result, a.to_numpy() * t.to_numpy())
    assert "gallop" not in str(ow.explain(lambda: a + short))


@pytest.mark.usefixtures("_sizes_count")
def test_calls_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of other sizes take another kernel, also where a launch is ready; each kernel's launch is kept."""
    forget_plans()
    drivers: list[Any] = []
    real = shaped._launch
    monkeypatch.setattr(shaped, "_launch", lambda *args: drivers.append(args[-1]) or real(*args))
    a, b, short = few(1024, 20_000, "csr"), few(1024, 9_000, "csr"), few(1024, 30, "csr")
    for _ in range(3):
        for x, y in ((a, b), (a, short), (short, a), (short, short)):
            same(x * y, x.to_numpy() * y.to_numpy())
    assert len(drivers) == len(set(drivers)) > 1


# -- the code ----------------------------------------------------------------------------------------------------------


def loops_of(a: ow.Tensor, b: ow.Tensor) -> str:
    return ow.explain(lambda: ow.multiply(a, b, zero_annihilates=True)).loops


@pytest.mark.parametrize("spec", ["csr", "dcsr", "coo"])
def test_no_loop_counts_the_rows(spec: str) -> None:
    """Of all rows only the edges are written, those between two rows at once."""
    arrays = arrays_of(SHAPES[2], 1)
    few_rows = arrays["B"] * (np.arange(12) % 5 == 2)[:, None]
    loops = loops_of(tensor(arrays["A"], "csr"), tensor(few_rows, spec))
    assert len(re.findall(r"for \w+ in range\(done, (?:i|upper)\):\n +out_pos1\[\w+ \+ 1\] = i32\(q1\)\n", loops)) == 2
    assert len(re.findall(r"\bfor ", loops)) == 3
    assert len(re.findall(r"(step\w*) \+= \1\b", loops)) == (2 if spec == "csr" else 1)
