"""Golden calls: statement, plan, loop nest and simplified kernels of conversions, SpGEMM and merges, word for word.

Each file is a page to learn from: what the call is, what to look at, and each form that it takes on its way. A change of
these files is a change of plans or generated code: look at the difference, then `pytest tests/golden --update-golden`.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_calls import CALLS, Call
from kernel_recorder import Recorded, lowered, recorded

import openwork as ow
from openwork.codegen import cache, target
from openwork.codegen.pool import get_num_threads, set_num_threads
from openwork.compiler.conversion import plan
from openwork.ir.printer import show
from openwork.ir.text import parse as parse_loops
from openwork.ir.verify import verify
from openwork.runtime import check

FOLDER = Path(__file__).parent
WIDTH = 118
STRATEGIES = {
    "coiterate.bitmap.store_bitmap_element", "coiterate.branch_free.value_of", "coiterate.gallop.gallop_level",
    "coiterate.intersect_simd.intersect_in_vectors", "coiterate.predicated.union_loop", "coiterate.reduction.store_if",
    "coiterate.subexpression_order.walk_subexpressions", "coiterate.union_simd.union_in_vectors",
    "coiterate.value_guard.decide", "coiterate.workspace.workspace",
}  # fmt: skip
NAMES = [(kind, name) for kind, calls in CALLS.items() for name in calls]


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    """Plans name the parts that threads take, and a plan that is kept is not made again."""
    threads = get_num_threads()
    set_num_threads(1)
    yield
    set_num_threads(threads)
    cache.clear_memory()


def run(call: Call, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Recorded]]:
    """The plan of a call, with its result, and its kernels."""
    monkeypatch.setattr(target, "expands", lambda: call.vectors)
    monkeypatch.setenv("OPENWORK_CACHE", "0")  # what another machine would run is nothing for the tests that follow
    monkeypatch.setattr(check, "_is_wanted", lambda chain: False)  # checks are compiled when a format has had many
    tensors = call.tensors()
    cache.clear_memory()
    with recorded() as kernels:
        plan = ow.explain(lambda: call.function(**tensors))
    return plan, kernels


def page(call: Call, followed: Any, kernels: list[tuple[Any, Any]]) -> str:
    """The text of a golden file; the kernels are loop nests, and what they are simplified to."""
    parts = [f"# {line}" for line in textwrap.wrap(call.lesson, WIDTH - 2)]
    parts += ["", "statement", f"    {call.statement}"]
    parts += [f"    {name}: {operand}" for name, operand in _formats(call)]
    parts += ["", "plan", textwrap.indent(_plan_text(call, followed), "    ")]
    for number, (nest, final) in enumerate(kernels, 1):
        text = show(verify(final)).rstrip()
        assert parse_loops(text + "\n") == final
        where = f" of kernel {number}" if len(kernels) > 1 else ""
        parts += ["", f"loop nest{where}", show(nest).rstrip(), "", f"simplified{where}"]
        parts += ["the loop nest itself" if nest == final else text]
    return "\n".join(parts) + "\n"


def _formats(call: Call) -> list[tuple[str, str]]:
    rows = [
        (name, f"{ow.format(o.format, len(o.shape))}, {o.dtype}") if hasattr(o, "format") else (name, "dense vector")
        for name, o in call.operands.items()
    ]
    return (
        [*rows, ("B", str(ow.format(call.target, len(rows[0][1].split(")")[0].split(",")))))] if call.target else rows
    )


def _plan_text(call: Call, followed: Any) -> str:
    """A conversion's stages, or the steps without what only says how many bytes they take."""
    if call.target:
        (source,) = call.operands.values()
        ndim = len(source.shape)
        return str(plan(ow.format(source.format, ndim), ow.format(call.target, ndim)))
    lines = str(followed).splitlines()
    return "\n".join(x for x in lines if not x.strip().startswith(("allocates", "in all", "parallel")))


@pytest.mark.thin(18, rest="ci")
@pytest.mark.parametrize(("kind", "name"), NAMES, ids=[name for _, name in NAMES])
def test_stages(kind: str, name: str, update_golden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    call = CALLS[kind][name]
    followed, recorded_kernels = run(call, monkeypatch)
    with _functions_of_the_compiler() as entered:
        kernels = [lowered(kernel) for kernel in recorded_kernels]
    path = FOLDER / kind / f"{name}.txt"
    text = page(call, followed, kernels)
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no golden page {name}: run pytest tests/golden --update-golden"
    assert text == path.read_text(encoding="utf-8")
    assert set(call.strategy) <= entered, "the page is of another strategy than it says"
    result = followed.result
    expected = (call.dense or call.function)(**call.arrays())
    np.testing.assert_array_equal(result.to_numpy() if isinstance(result, ow.Tensor) else result, expected)


def test_no_page_is_left_over() -> None:
    for kind, calls in CALLS.items():
        assert {p.stem for p in (FOLDER / kind).glob("*.txt")} == set(calls)


def test_every_strategy_of_co_iteration_has_a_page() -> None:
    assert {s for call in CALLS["coiterate"].values() for s in call.strategy} >= STRATEGIES


@contextmanager
def _functions_of_the_compiler() -> Iterator[set[str]]:
    """The functions of `compiler/` that are called inside, as "package.module.function"."""
    entered: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "/openwork/compiler/" in (path := frame.f_code.co_filename.replace("\\", "/")):
            module = path.split("/openwork/compiler/")[1].removesuffix(".py").replace("/", ".")
            entered.add(f"{module}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(before)
