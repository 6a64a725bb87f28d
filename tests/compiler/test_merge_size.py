"""Expressions of many operands and high rank compile: code is proportional to the lattices' points, and these are bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix import dense_array, same, tensor

import openwork as ow
from openwork.codegen.plan_cache import forget_plans
from openwork.compiler.coiterate import lower
from openwork.compiler.coiterate.code_size import MAX_POINTS, count_points
from openwork.compiler.fill import Regions
from openwork.ir.index_text import parse_expression
from openwork.ir.loop import Kernel
from openwork.ir.ops import const
from openwork.ir.rewrite import operands, statements, subexpressions
from openwork.runtime.coiterate import plan as merge_plan
from openwork.runtime.coiterate.types import typed


def regions(text: str) -> Regions:
    names = [n for n in "ABCDEFGHIJ" if n in text]
    return Regions(typed(parse_expression(text), dict.fromkeys(names, "f64")), {n: const(0.0, "f64") for n in names})


def nodes(kernel: Kernel) -> int:
    """Statements and expressions."""
    return sum(1 + sum(len(list(subexpressions(e))) for e in operands(s)) for s in statements(kernel.body))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Points and nodes of each merge that is lowered."""
    found: list[tuple[int, int]] = []
    counted = 0
    real_lattice, real_lower = lower.lattice, merge_plan.lower_merge

    def lattice(*args: Any) -> Any:
        nonlocal counted
        result = real_lattice(*args)
        counted += 1 if result.every else len(result.points)
        return result

    def lowered(*args: Any) -> Any:
        nonlocal counted
        counted = 0
        kernel = real_lower(*args)
        found.append((counted, nodes(kernel)))
        return kernel

    class Cache:
        """Lowers every kernel, those that are known too."""

        @staticmethod
        def get(key: str, build: Any) -> Any:
            build()
            return real_get(key, build)

    real_get = merge_plan.cache.get
    monkeypatch.setattr(lower, "lattice", lattice)
    monkeypatch.setattr(merge_plan, "lower_merge", lowered)
    monkeypatch.setattr(merge_plan, "cache", Cache)
    forget_plans()
    return found


def compute(text: str, rank: int, spec: str) -> None:
    arrays = {n: dense_array((2,) * rank, k, density=0.3) for k, n in enumerate("ABCDEFGHIJ") if n in text}
    got = ow.pointwise(text, {n: tensor(a, spec) for n, a in arrays.items()})
    same(got, eval(text, {}, arrays))


SIZES = [
    ("A + B", 1, "csf"), ("A + B", 2, "csf"), ("A + B", 4, "csf"), ("A + B", 4, "coo"), ("A + B + C", 2, "csf"),
    ("A + B + C", 3, "csf"), ("A * B + C", 3, "csf"), ("A + B + C + D", 2, "csr"), ("A * B * C * D", 4, "csf"),
]  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize(("text", "rank", "spec"), SIZES)
def test_code_grows_with_the_points_of_lattices(text: str, rank: int, spec: str, built: list[tuple[int, int]]) -> None:
    compute(text, rank, spec)
    assert all(size <= 200 + 400 * count for count, size in built)
    if spec == "csf" and "*" not in text:
        every = count_points(regions(text), rank)
        assert all(count == every if every <= MAX_POINTS else count < MAX_POINTS for count, _ in built)


@pytest.mark.parametrize(
    ("text", "depth", "expected"),
    [("A * B", 8, 8), ("A * B * C * D", 3, 3), ("A", 5, 5), ("A + B", 1, 3), ("A + B", 2, 10), ("A + B", 8, 136),
     ("A + B + C", 1, 7), ("A + B + C", 3, 135)],
)  # fmt: skip
def test_numbers_of_points(text: str, depth: int, expected: int) -> None:
    assert count_points(regions(text), depth) == expected


TEN = "ABCDEFGHIJ"


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("text", "rank", "spec"),
    [
        (" + ".join(TEN), 2, "csr"), (" * ".join(TEN), 8, "csf"), (" + ".join(TEN), 3, "csf"), ("A + B", 8, "coo"),
        pytest.param(" + ".join(TEN), 8, "csf", marks=pytest.mark.slow),
        pytest.param("(A + B + C) * (D + E) + F * G * H - I * J", 6, "coo", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_ten_operands_and_eight_dimensions(text: str, rank: int, spec: str, built: list[tuple[int, int]]) -> None:
    compute(text, rank, spec)
    assert all(count <= 2 * MAX_POINTS and size <= 7000 for count, size in built)


def test_products_of_ten_operands_and_eight_dimensions() -> None:
    letters = "abcdefgh"
    a = dense_array((2,) * 8, 1)
    vectors = [dense_array((2,), k, density=1.0) for k in range(8)]
    for operands_of in (vectors, [tensor(v, "csf") for v in vectors]):
        got = ow.einsum(
            f"{letters},{','.join(letters)},{letters}->ah", tensor(a, "csf"), *operands_of, tensor(a, "coo")
        )
        want = np.einsum(f"{letters},{','.join(letters)},{letters}->ah", a, *vectors, a)
        same(got, want)
