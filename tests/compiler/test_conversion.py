"""The plan of a conversion, the question of order it rests on, and the loop nests of the walk."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import formats, shapes

from openwork.compiler.build import Block, Builder
from openwork.compiler.conversion import plan
from openwork.compiler.conversion.blocks import transpose_blocks
from openwork.compiler.conversion.level_runs import Kind, runs, unbatched
from openwork.compiler.conversion.order import follows
from openwork.compiler.operand import Operand
from openwork.compiler.walk import Place, walk
from openwork.errors import FormatError
from openwork.format import Format
from openwork.format import format as fmt
from openwork.format.expression import evaluate
from openwork.ir.printer import show


def levels(text: str) -> list[object]:
    """Expressions of `i, j // 4`, in two dimensions."""
    whole = fmt("(i, j) -> (i : dense, j : dense)")
    found = []
    for part in text.split(","):
        e = part.strip()
        f = {
            "i": whole.levels[0].expression,
            "j": whole.levels[1].expression,
            "j - i": fmt("(i, j) -> (j - i : compressed, i : range)").levels[0].expression,
            "i + j": fmt("(i, j) -> (i + j : compressed, i : range)").levels[0].expression,
        }
        if e in f:
            found.append(f[e])
        else:
            name, operator, size = e.split()
            blocked = fmt(
                f"(i, j) -> (i // {size} : dense, i % {size} : dense, j // {size} : dense, j % {size} : dense)"
            )
            found.append(blocked.levels[2 * (name == "j") + (operator == "%")].expression)
    return found


@pytest.mark.parametrize(
    ("source", "target", "given_", "expected"),
    [
        ("i, j", "i, j", "", True),
        ("i, j", "j, i", "", False),
        ("i, j", "i // 4, i % 4, j", "", True),
        ("i // 4, i % 4, j", "i, j", "", True),
        ("i // 8, i % 8, j", "i // 4, i % 4, j", "", True),
        ("i // 6, i % 6, j", "i // 4, i % 4, j", "", False),
        ("i, j", "i // 4, j // 4, i % 4, j % 4", "", False),
        ("i // 4, j // 4, i % 4, j % 4", "j", "i", True),
        ("i // 4, j // 4, i % 4, j % 4", "i", "", False),
        ("i, j", "j - i, i", "i", True),
        ("i, j", "i + j", "i", True),
        ("j - i, i", "j", "i", True),
        ("j - i, i", "i, j", "", False),
        ("i", "i, j", "", False),
        ("j, i", "j // 2", "", True),
    ],
)
def test_one_order_implies_another(source: str, target: str, given_: str, expected: bool) -> None:
    known = levels(given_) if given_ else []
    assert follows(levels(source), levels(target), known) is expected  # type: ignore[arg-type]


def test_orders_of_blocks_and_diagonals_in_any_combination() -> None:
    """`follows` is what sorting all coordinates gives, but where it is the extents that tell, or two sums together."""
    names = ("i", "i // 2", "i % 2", "i // 4", "i % 4", "j", "j - i", "i + j")
    points = list(np.ndindex(8, 2))
    keys = {n: [evaluate(levels(n)[0], p) for p in points] for n in names}
    expressions = {n: levels(n)[0] for n in names}
    missed = 0
    for source in (c for r in (1, 2) for c in itertools.permutations(names, r)):
        order = sorted(zip(*(keys[n] for n in source), range(len(points)), strict=False))
        ranks = [o[:-1] for o in order]
        for target in (c for r in (1, 2) for c in itertools.permutations(names, r)):
            seen = [tuple(keys[n][o[-1]] for n in target) for o in order]
            # elements that the source does not tell apart come in any order
            want = all(a <= b for a, b in itertools.pairwise(seen)) and all(
                x == y for (r, x), (s, y) in itertools.pairwise(zip(ranks, seen, strict=True)) if r == s
            )
            got = follows([expressions[n] for n in source], [expressions[n] for n in target], [])
            assert want or not got, (source, target)
            missed += want and not got
    assert missed == 69


@pytest.mark.ci
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data())
def test_orders_are_what_sorting_gives(data: st.DataObject) -> None:
    """Where `follows` says yes, elements sorted by the source's levels are sorted by the target's."""
    try:
        f = data.draw(formats(max_batch=0))
        g = data.draw(formats(f.ndim, max_batch=0))
    except FormatError:
        assume(False)
    a = [level.expression for level in f.levels]
    b = [level.expression for level in g.levels]
    cut = data.draw(st.integers(0, len(b)))
    if not follows(a, b[:cut]):
        return
    shape = data.draw(shapes(f.ndim, max_extent=6))
    points = list(np.ndindex(*shape))
    ordered = sorted(points, key=lambda p: tuple(evaluate(e, p) for e in a))
    seen = [tuple(evaluate(e, p) for e in b[:cut]) for p in ordered]
    assert seen == sorted(seen)


HYBRID = "(i, j, k) -> (i : dense, j : compressed, k : dense)"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("csr", "coo", "append"),
        ("coo", "csr", "append"),
        ("csr", "dcsr", "append"),
        ("dense", "csr", "append"),
        ("csr", "ell(4)", "append"),
        ("csr", "csc", "bucket"),
        ("bsr(2, 2)", "csr", "append"),
        ("dia", "csr", "bucket"),
        ("csr", "dense", "scatter"),
        ("csr", "bitmap", "scatter"),
        ("dense", "dense_f", "copy"),
        ("csc", "coo", "bucket append"),
        ("csc", "dcsr", "bucket append"),
        ("bsr(2, 2)", "coo", "append"),
        ("bsc(2, 2)", "bsr(2, 2)", "blocks"),
        ("bsr(2, 3)", "csc", "blocks append"),
        (HYBRID, "(i, j, k) -> (j : dense, i : compressed, k : dense)", "blocks"),
        (HYBRID, "(i, j, k) -> (i : compressed, j : compressed, k : dense)", "append"),
        (HYBRID, "(i, j, k) -> (k : dense, i : dense, j : compressed)", "bucket"),
        ("csc", "bsr(2, 2)", "bucket group"),
    ],
)
def test_strategies(source: str, target: str, expected: str) -> None:
    ndim = 3 if source == HYBRID else 2
    stages = plan(fmt(source, ndim), fmt(target, ndim)).stages
    assert [stage.strategy.value for stage in stages] == expected.split()


def test_plans_print() -> None:
    coo = fmt("(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique))")
    assert str(plan(coo, fmt("csr"))) == (
        "bucket: (i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique)) -> "
        "(i, j) -> (i : dense, j : compressed)  (sort, sum duplicates)"
    )
    assert str(plan(fmt("dense", 2), fmt("csr"))).endswith("(drop)")


def test_plans_do_not_depend_on_names() -> None:
    f, g = fmt("(a, b) -> (b : dense, a : compressed)"), fmt("csr")
    assert plan(f, g) == plan(fmt("csc"), g)


def test_runs_of_levels() -> None:
    f = fmt("(i, j, k) -> (i // 2 : dense, j : compressed(nonunique), k : singleton, i % 2 : dense)")
    assert [(r.kind, r.first, r.last) for r in runs(f)] == [
        (Kind.LOCATED, 0, 0), (Kind.CHAIN, 1, 2), (Kind.LOCATED, 3, 3),
    ]  # fmt: skip
    assert unbatched(fmt("csr", 3, batch=1)) == fmt("(b, i, j) -> (b : dense, i : dense, j : compressed)")


def nest(f: Format, ragged: bool = False) -> str:
    """The loop nest that walks a tensor of format f and counts at its leaves."""
    builder = Builder("walk")
    pos = tuple("i32" if "pos" in level.format.buffers else None for level in f.levels)
    crd = tuple("i32" if "crd" in level.format.buffers else None for level in f.levels)
    extents = [builder.scalar(f"n{d}") for d in range(f.ndim)]
    out = builder.buffer("out", "i64", mutable=True)

    def leaf(block: Block, point: Place) -> None:
        block.run("out[at] += 1", out=out, at=point.leaf)

    walk(builder.top, "a", Operand("f64", f.ndim, f, pos, crd, ragged), extents, leaf)
    return show(builder.kernel()).split(":\n", 1)[1]


def test_walk_of_csr() -> None:
    text = nest(fmt("csr"))
    assert "for a_c0 in range(n0):" in text
    assert "range(a_pos1[a_c0], a_pos1[a_c0 + 1]):" in text
    assert "if" not in text


def test_walk_of_blocks_guards_only_a_ragged_edge() -> None:
    assert "min" not in nest(fmt("bsr(2, 2)"))
    ragged = nest(fmt("bsr(2, 2)"), ragged=True)
    assert "min(2, " in ragged
    assert "//" not in ragged.split("for", 1)[1]


def test_walk_of_diagonals_cuts_the_range() -> None:
    text = nest(fmt("dia"))
    assert "max(0, " in text
    assert "min(n0, " in text


def test_walk_of_batches_offsets_the_slices() -> None:
    text = nest(fmt("csr", 3, batch=1))
    assert "a_c0 * a_pos2_slice" in text
    assert "a_c0 * a_vals2_slice" in text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("bsr(2, 3)", "(i, j) -> (j // 3 : dense, i // 2 : compressed, i % 2 : dense, j % 3 : dense)"),
        ("bsc(2, 3)", "(i, j) -> (i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)"),
        ("csr", None),
        ("dense", None),
        ("(i, j) -> (i // 2 : compressed, j // 2 : compressed, i % 2 : dense, j % 2 : dense)", None),
        ("(i, j) -> (i // 2 : dense, j // 2 : dense, i % 2 : dense, j % 2 : dense)", None),
        ("(i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense)", None),
        ("(i, j) -> (i // 2 : dense, j // 2 : bitmap, i % 2 : dense, j % 2 : dense)", None),
        ("(i, j) -> (i // 2 : dense, j // 2 : ell(3), i % 2 : dense, j % 2 : dense)", None),
    ],
)
def test_blocks_whose_levels_can_be_exchanged(source: str, expected: str | None) -> None:
    assert transpose_blocks(fmt(source, 2)) == (None if expected is None else fmt(expected))
