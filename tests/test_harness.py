"""The harness is tested: kernels broken on purpose, one place at a time, must fail the comparison with the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from drives import Drive, agree, drive, packed
from kernel_mutants import fuelled, mutants
from matrix import check, dense_array

from openwork.codegen.plan_cache import PlanCache
from openwork.compiler.single import lower as lowering
from openwork.errors import CompilerBug
from openwork.format import format as parse_format
from openwork.ir.index_text import parse
from openwork.ir.loop import Kernel
from openwork.ir.rewrite import statements


@dataclass(frozen=True)
class Case:
    """A statement on a format and the shapes to run it on. `every` keeps each n-th broken kernel of a long list.

    `redundant` says why some guards of the kernel may be changed without effect. Guards depend on coordinates and
    extents alone, and each block adds on its own: `exhaustive`, full tensors of every shape up to two blocks and a
    ragged one, then proves that a change is without effect.
    """

    text: str
    format: str
    shapes: tuple[tuple[int, ...], ...] = ((5, 7), (6, 4))
    extents: dict[str, int] = field(default_factory=dict)
    every: int = 1
    redundant: str = ""
    exhaustive: tuple[int, ...] = ()


SPMV, SPMM = "y[i] += A[i, j] * x[j]", "Y[i, r] += A[i, j] * X[j, r]"
BLOCKS = "padded rows go to registers that are not stored; an element of the first row or column is never outside"
CASES = {
    "csr": Case(SPMV, "csr"),
    "csc": Case(SPMV, "csc"),
    "coo": Case(SPMV, "coo"),
    "block lanes": Case(SPMV, "bsr(2, 4)", ((6, 8), (4, 12))),
    "ragged blocks": Case(SPMV, "bsr(2, 3)", ((5, 7), (7, 8)), redundant=BLOCKS, exhaustive=(5, 7)),
    "diagonals": Case(SPMV, "dia", ((5, 7), (7, 5))),
    "skewed": Case(
        SPMV,
        "(i, j) -> (i : dense, j - i : dense)",
        ((5, 7), (7, 5)),
        redundant="a step more is outside the shape, and guarded",
        exhaustive=(3, 3),
    ),
    "ell": Case(SPMV, "ell(7)"),
    "bitmap": Case(SPMV, "bitmap"),
    "structured": Case(SPMV, "(i, j) -> (i : dense, j // 4 : dense, j % 4 : structured(4, 4))", ((5, 8), (6, 4))),
    "register tile": Case(SPMM, "csr", extents={"r": 13}),
    "tile loop": Case(SPMM, "csr", ((3, 4),), {"r": 292}, every=5),
    "blocks times matrix": Case(
        SPMM, "bsr(2, 2)", ((5, 7), (3, 4)), {"r": 3}, every=3, redundant=BLOCKS, exhaustive=(5, 5)
    ),
    "nested sums": Case("Y[i, r] += A[i, j, k] * B[j, r] * C[k, r]", "csf", ((4, 3, 5), (3, 4, 4)), {"r": 9}),
    "sampled": Case("y[i] += A[i, j] * U[i, r] * V[j, r]", "csr", extents={"r": 12}),
    "minimum": Case("y[i] min= A[i, j]", "csr"),
}


def elements(shape: Sequence[int], seed: int, density: float) -> list[tuple[tuple[int, ...], float]]:
    """Positive values; the first row is full, so that no last step is idle."""
    rng = np.random.default_rng(seed)
    chosen = rng.random(shape) < density
    chosen[0] = True
    return [(tuple(map(int, c)), float(rng.integers(1, 50))) for c in np.argwhere(chosen)]


def problem(case: Case, shape: tuple[int, ...], seed: int, density: float) -> Drive:
    stmt = parse(case.text)
    own = next(a.indices for a in stmt.accesses if a.tensor == "A")
    extents = {**case.extents, **dict(zip(own, shape, strict=True))}
    source = packed(parse_format(case.format, len(own)), shape, elements(shape, seed, density))
    rng = np.random.default_rng(seed)
    arrays = {
        a.tensor: rng.integers(1, 50, tuple(extents[i] for i in a.indices)).astype(float)
        for a in stmt.accesses
        if a.tensor != "A"
    }
    return drive(stmt, source, arrays, "f64")


def caught(kernel: Kernel, problems: Sequence[Drive]) -> bool:
    """Whether the comparison, or the bounds check on the way, refuses the kernel."""
    for d in problems:
        try:
            agree(d, fuelled(kernel))
        except (AssertionError, CompilerBug):
            return True
    return False


@pytest.mark.thin(10)
@pytest.mark.parametrize("name", CASES)
def test_every_broken_kernel_is_caught(name: str) -> None:
    case = CASES[name]
    problems = [problem(case, shape, k, d) for k, (shape, d) in enumerate(itertools.product(case.shapes, (0.3, 0.7)))]
    (kernel,) = {d.kernel for d in problems}
    assert not caught(kernel, problems)
    broken = list(mutants(kernel))[:: case.every]
    assert len(broken) > 8
    missed = [(what, k) for what, k in broken if not caught(k, problems)]
    if case.redundant:
        shapes = itertools.product(*(range(1, n + 1) for n in case.exhaustive))
        ragged = [d for shape in shapes if (d := problem(case, shape, 1, 1.0)).kernel == kernel]
        missed = [(what, k) for what, k in missed if not caught(k, ragged)]
        assert len(missed) < len(broken) / 3
    assert case.redundant or not [what for what, _ in missed]


def public_breakages() -> dict[str, Callable[[Kernel], Kernel]]:
    """Changes of machine code that stay in bounds: the public path is run, not the interpreter."""

    def first(start: str) -> Callable[[Kernel], Kernel]:
        return lambda kernel: next(k for what, k in mutants(kernel) if what.startswith(start))

    return {
        "nothing": lambda kernel: kernel,
        "accumulator": first("wrong start of"),
        "first element": first("first step left out of for pj"),
        "sum": first("sub for add in acc"),
        "store": first("no y["),
    }


@pytest.mark.parametrize("name", public_breakages())
def test_the_format_matrix_catches_broken_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`A @ x` with a broken compiler behind it; dtypes that nothing else uses, so that no other test gets the kernel."""
    change = public_breakages()[name]
    lower = lowering.lower_single_operand
    made = []

    def broken(*args: Any, **kwargs: Any) -> Kernel:
        made.append(change(lower(*args, **kwargs)))
        return made[-1]

    forget(monkeypatch)
    monkeypatch.setattr("openwork.runtime.plan.lower_single_operand", broken)
    x = dense_array((12,), 1, density=1)
    array = dense_array((8, 12))
    array[2] = 1
    if name == "nothing":
        check(lambda t: t @ x, lambda a: a @ x, array, "csr")
    else:
        with pytest.raises(AssertionError):
            check(lambda t: t @ x, lambda a: a @ x, array, "csr")
    assert made
    assert list(statements(made[-1].body))


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel of before or after is seen: caches in memory are empty for the test, that on disk is off."""
    monkeypatch.setenv("OPENWORK_CACHE", "0")
    monkeypatch.setattr("openwork.runtime.plan._plans", PlanCache("of a test"))
    monkeypatch.setattr("openwork.runtime.contract._shaped", PlanCache("of a test, for shapes"))
    monkeypatch.setattr("openwork.codegen.cache._MEMORY", {})
