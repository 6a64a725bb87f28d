"""Loops over the children of consecutive parents that become one, and what is read ahead of a walk."""

from __future__ import annotations

import numpy as np
import pytest

from openwork.compiler.build import Builder
from openwork.compiler.conversion.prefetch import DISTANCE, later
from openwork.compiler.simplify import simplify
from openwork.compiler.single.collapse_loops import flatten
from openwork.ir.interpret import run
from openwork.ir.loop import Expr, Let
from openwork.ir.ops import op
from openwork.ir.printer import show
from openwork.ir.text import parse

HEAD = "def f(n: i64, A_pos1: i32[const], A_pos2: i64[const], A_x: i64[const], w_pos1: i64[mut], y: f64[mut]):\n"


def loops(*lines: str) -> str:
    return HEAD + "".join(f"{'    ' * (1 + depth)}{line}\n" for depth, line in enumerate(lines))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            ("for i in range(n):", "for q in range(A_pos1[i], A_pos1[i + 1]):", "y[q] = 1.0"),
            ("for q in range(A_pos1[0], A_pos1[n]):", "y[q] = 1.0"),
        ),
        (
            (
                "for i in range(3, n):",
                "for q in range(A_pos1[i], A_pos1[i + 1]):",
                "for r in range(A_pos2[q], A_pos2[q + 1]):",
                "y[r] = 1.0",
            ),
            ("for r in range(A_pos2[A_pos1[3]], A_pos2[A_pos1[n]]):", "y[r] = 1.0"),
        ),
        (("for i in range(n):", "for q in range(A_pos1[i], A_pos1[i + 1]):", "y[i] += 1.0"), None),
        (("for i in range(n):", "for q in range(A_pos1[i], A_pos1[i + 2]):", "y[q] = 1.0"), None),
        (("for i in range(n):", "for q in range(A_pos1[i], A_pos2[i + 1]):", "y[q] = 1.0"), None),
        (("for i in range(n):", "for q in range(A_x[i], A_x[i + 1]):", "y[q] = 1.0"), None),
        (("for i in range(n):", "for q in range(w_pos1[i], w_pos1[i + 1]):", "y[q] = 1.0"), None),
    ],
)
def test_by_string(before: tuple[str, ...], after: tuple[str, ...] | None) -> None:
    kernel = parse(loops(*before))
    want = kernel if after is None else parse(loops(*after))
    assert show(flatten(kernel)) == show(want) == show(simplify(kernel))


def test_by_value() -> None:
    text = loops("for i in range(n):", "for q in range(A_pos1[i], A_pos1[i + 1]):", "y[q] += 1.0")
    pos = np.array([0, 2, 2, 5], np.int32)
    results = []
    for kernel in (parse(text), flatten(parse(text))):
        y = np.zeros(6)
        run(
            kernel,
            {
                "n": 3,
                "A_pos1": pos,
                "A_pos2": pos.astype(int),
                "A_x": pos.astype(int),
                "w_pos1": pos.astype(int),
                "y": y,
            },
        )
        results.append(y.tolist())
    assert results[0] == results[1] == [1, 1, 1, 1, 1, 0]


def test_later() -> None:
    """What a loop reads at its position is read later; anything else is not guessed."""
    builder = Builder("f")
    n = builder.scalar("elements")
    crd = builder.buffer("a_crd1", "i32", wide=True)
    other = builder.buffer("x", "i64", wide=True)
    seen: dict[str, str | None] = {}

    def look(name: str, block: object, e: Expr) -> None:
        found = later(block, e, "a_crd", n)  # type: ignore[arg-type]
        seen[name] = None if found is None else show(found)

    def body(block: object, q: Expr) -> None:
        c = block.let("c", crd.read(q))  # type: ignore[attr-defined]
        d = block.let("d", op("mul", c, n))  # type: ignore[attr-defined]
        look("coordinate", block, c)
        look("product", block, d)
        look("position", block, q)
        look("another buffer", block, op("add", c, other.read(q)))
        look("outside", block, n)

    builder.top.loop("q", builder.scalar("lo_"), n, body)
    at = f"min(q + {DISTANCE}, elements - 1)"
    assert seen == {
        "coordinate": f"i64(a_crd1[{at}])",
        "product": f"i64(a_crd1[{at}]) * elements",
        "position": None,
        "another buffer": None,
        "outside": None,
    }
    assert any(isinstance(s, Let) for s in builder.body[0].body)  # type: ignore[union-attr]
