"""Products inside chains, which are walked before what they are joined with: against NumPy, interpreted, and as text."""

from __future__ import annotations

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
from openwork.compiler.coiterate.code_size import SLACK
from openwork.ir.loop import Alloc, Kernel
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import plan as merge_plan
from openwork.runtime.coiterate import shaped

CHAINS = [
    "A * B + C", "A * B + C * D", "A + B * C - D", "A * B * C", "A * B * C * D", "(A + B) * C", "(A + B) * C - D",
    "A * (B + C * D)", "A * B + A * C", "A * B * (C + D)", "A * B - A * B * C", "ow.sqrt(A * B) + C", "A * B * 2 + C * 3",
    "(A > 0) * B * C + D", "ow.where(A > 2, B, C) * D", "A * B + C * D + E * F", "A * B * C + D - E", "-(A * B) / 2 - C",
]  # fmt: skip
FORMATS = {1: ["csf", "coo"], 2: ["csr", "csc", "dcsr", "coo", "ell(24)", "bsr(2, 3)"], 3: ["csf", "coo", "bitmap"]}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    kept = ow.get_num_threads()
    ow.set_num_threads(1)
    yield
    ow.set_num_threads(kept)


def operands(text: str, shape: tuple[int, ...], spec: str, seed: int = 0, density: float = 0.4) -> dict[str, Any]:
    """Rows of very different lengths, in which blocks of coordinates are skipped, and not."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for k, name in enumerate("ABCDEF"):
        if name in text:
            array = dense_array(shape, 7 * seed + k, density=density)
            thin = rng.choice([0.0, 0.1, 1.0, 1.0], (*shape[:-1], 1))
            arrays[name] = array * (rng.random(shape) < thin)
    return arrays


def check(text: str, arrays: dict[str, Any], specs: list[str]) -> None:
    function = ow.fused(eval(f"lambda {', '.join(arrays)}: {text}", {"ow": ow}))
    tensors = [tensor(a, spec) for a, spec in zip(arrays.values(), specs, strict=False)]
    want = eval(text.replace("ow.", "np."), {"np": np}, arrays)
    got = function(*tensors)
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-12)
    forget_plans()
    with interpreted() as ran:
        again = function(*tensors)
    forget_plans()
    assert ran
    same(again, got.to_numpy())
    for one, other in zip(got._storage.buffers, again._storage.buffers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.thin(9)
@pytest.mark.parametrize("text", CHAINS)
def test_chains_of_products(text: str) -> None:
    check(text, operands(text, (7, 60), "csr"), ["csr"] * 6)


@pytest.mark.thin(119)
@pytest.mark.parametrize(("rank", "spec"), [(rank, spec) for rank, specs in FORMATS.items() for spec in specs])
@pytest.mark.parametrize("text", ["A * B + C", "A * B * C", "(A + B) * C"])
def test_formats(text: str, rank: int, spec: str) -> None:
    shape = {1: (90,), 2: (6, 24), 3: (3, 4, 20)}[rank]
    check(text, operands(text, shape, spec, 1), [spec] * 3)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "csf"])
def test_dense_operands_and_broadcasting_take_part(spec: str) -> None:
    arrays = operands("A B C", (5, 40), spec)
    row, column = dense_array((40,), 3, density=0.5), dense_array((5, 1), 4, density=0.7)
    for text, extra, form in (
        ("A * B * R + C", row, "dense"),
        ("A * B * R + C", row, "csf"),
        ("A * R * B * C", column, spec),
    ):
        if form == "csf" and extra.ndim == 1:
            form = "coo"
        given_ = {**arrays, "R": extra}
        check(text, given_, [spec] * 3 + [form])


UNIONS = [
    ("A + B + C + D", 3, "csf"), ("A + B - C - D", 3, "coo"), ("A + B + C - D + E", 2, "csr"),
    ("A + B * C + D - E * F", 3, "csf"), ("A + B - (C + D) - (E + F)", 2, "dcsr"), ("A * B + C - D * E", 3, "bitmap"),
    ("ow.maximum(A + B, C - D) * (E + F)", 2, "csr"),
]  # fmt: skip


@pytest.mark.thin(4)
@pytest.mark.parametrize(("text", "rank", "spec"), UNIONS)
def test_unions_of_many(text: str, rank: int, spec: str) -> None:
    """Above, presence is a value; on the innermost level few are merged at a time."""
    check(text, operands(text, {2: (6, 24), 3: (3, 4, 20)}[rank], spec, 2), [spec] * 6)


def test_an_operand_of_the_outer_loop_alone() -> None:
    """The column, which may lack a row, is no operand of the innermost loop."""
    arrays = operands("A B C D", (8, 30), "csr", 3)
    arrays["E"] = dense_array((8, 1), 5, density=0.5)
    for text in ("A + B + C + D * E", "A * B * E + C + D", "A + B + C + D + E * A"):
        check(text, arrays, ["dcsr"] * 4 + ["coo"])


@pytest.mark.thin(4)
@pytest.mark.parametrize("short", ["A", "B", "C", "D"])
def test_one_operand_is_much_shorter(short: str) -> None:
    """What the first two have in common may be more than the others have."""
    arrays = {n: dense_array((50,), k, density=0.9) for k, n in enumerate("ABCD")}
    arrays[short] = np.where(np.arange(50) == 40, 2.0, 0.0)
    for text in ("A * B * C * D", "A * B * (C + D)", "A * B * C - D", "A + B + C - D * A"):
        check(text, arrays, ["coo"] * 4)


def test_reductions_of_products() -> None:
    arrays = operands("A B C D", (6, 50), "csr")
    tensors = [tensor(a, "csr") for a in arrays.values()]
    for text in ("ow.sum(A * B * C)", "ow.sum(A * B - C * D, axis=1)", "ow.sum((A + B) * C, axis=0)"):
        got = ow.fused(eval(f"lambda A, B, C, D: {text}", {"ow": ow}))(*tensors)
        np.testing.assert_allclose(got.to_numpy(), eval(text.replace("ow.", "np."), {"np": np}, arrays), rtol=1e-12)


# -- two rows ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**32 - 1)), min_size=1, max_size=5))
def test_what_two_rows_have_in_common(rows: list[tuple[int, int, int]]) -> None:
    """Rows of every length from 0 to 40, the last ones without a whole block behind them; and of sizes far apart."""
    a, b = np.zeros((len(rows), 60)), np.zeros((len(rows), 60))
    for i, (n, m, seed) in enumerate(rows):
        rng = np.random.default_rng(seed)
        a[i, rng.permutation(60)[:n]] = 2
        b[i, rng.permutation(60)[:m]] = 3
    for index in ("i32", "i64"):
        s, t = (narrow(tensor(x, "csr"), index if k else "i32") for k, x in enumerate((a, b)))
        same(s * t, a * b)
        assert (s * t).nse == np.count_nonzero(a * b)


def narrow(t: ow.Tensor, index: str) -> ow.Tensor:
    if index == "i32":
        return t
    wide = {1: np.asarray(t.pos(1), np.int64)}, {1: np.asarray(t.crd(1), np.int64)}
    return ow.assemble(t.format, t.shape, pos=wide[0], crd=wide[1], values=t.values)


# -- the code ----------------------------------------------------------------------------------------------------------


def built(monkeypatch: pytest.MonkeyPatch, text: str) -> Kernel:
    """The kernel of a chain of CSR matrices, for a processor that expands vectors."""
    kernels: list[Kernel] = []

    def build(merge: Any) -> Kernel:
        kernels.append(real(merge))
        return kernels[-1]

    class Cache:
        @staticmethod
        def get(key: str, make: Any) -> Any:
            make()
            return real_get(key, make)

    real, real_get = merge_plan.build, merge_plan.cache.get
    monkeypatch.setattr(merge_plan.target, "expands", lambda: True)
    monkeypatch.setattr(merge_plan, "build", build)
    monkeypatch.setattr(merge_plan, "cache", Cache)
    forget_plans()
    arrays = operands(text, (3, 5), "csr")
    ow.fused(eval(f"lambda {', '.join(arrays)}: {text}"))(*[tensor(a, "csr") for a in arrays.values()])
    monkeypatch.undo()
    return kernels[0]


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("A + B + C", 1),
        ("A * B + C", 1),
        ("A * B + C - D", 2),
        ("A * B + C * D", 2),
        ("(A + B) * (C - D)", 2),
        ("A + B > C", 1),
    ],
)
def test_which_parts_have_a_row(text: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, of coordinates and values, for every product and every sum that is joined with something."""
    kernel = built(monkeypatch, text)
    allocated = [s for s in kernel.body if isinstance(s, Alloc)]
    assert len(allocated) == 2 * rows


def test_explain_says_what_rows_take() -> None:
    """Coordinates, positions and values for as many elements as the shorter operand has, or as the level is wide."""
    arrays = operands("A B C D", (6, 40), "csr")
    tensors = {n: tensor(a, "csr") for n, a in arrays.items()}
    a, b, c, d = tensors.values()
    for text, names in (
        ("(A + B) * 2", ""),
        ("A * B + C", "AB"),
        ("A * B + C * D", "AB CD"),
        ("ow.sum(A * B + C * D)", "AB CD"),
    ):
        plan = str(ow.explain(ow.fused(eval(f"lambda A, B, C, D: {text}", {"ow": ow})), a, b, c, d))
        sizes = [min(40, *(tensors[n].nse for n in pair)) + 1 + SLACK for pair in names.split()]
        said = f"rows         {len(sizes)} kept for a moment, in workspaces of at most {sum(sizes) * 12:,} bytes on each thread"
        assert said in plan if sizes else "rows  " not in plan


def test_kernels_grow_with_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [len(str(built(monkeypatch, " * ".join("ABCDEF"[:n])))) for n in (3, 4, 5, 6)]
    steps = np.diff(sizes)
    assert steps.max() < 1.5 * steps.min()


def test_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows belong to the thread that writes them."""
    monkeypatch.setattr(merge_chunks, "MINIMUM", 0)
    monkeypatch.setattr(shaped, "MINIMUM", 0)
    arrays = operands("A B C D", (60, 40), "csr", density=0.5)
    tensors = [tensor(a, "csr") for a in arrays.values()]
    function = ow.fused(lambda A, B, C, D: A * B - C * D)
    for threads in (1, 2, 7):
        ow.set_num_threads(threads)
        same(function(*tensors), arrays["A"] * arrays["B"] - arrays["C"] * arrays["D"])
