"""The device form: read, printed, verified, and interpreted item by item, with races and accesses out of bounds found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openwork.compiler.simplify import simplify
from openwork.errors import CompilerBug
from openwork.ir.grid_interpret import run_grid
from openwork.ir.loop import Atomic, Kernel
from openwork.ir.ops import const
from openwork.ir.printer import show
from openwork.ir.rewrite import substitute
from openwork.ir.text import parse
from openwork.ir.verify import verify

SUMS = """
def sums(x: f64[const], y: f64[mut]):  # grid of 8, subgroups of 4
    t: f64[8] = local
    t[item] = x[group * 8 + item]
    barrier()
    near = shuffle(t[7 - item], 1)
    atomic('add', y[group // 2], near)
"""


def kernel(body: str) -> Kernel:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    head = "def f(x: f64[const], y: f64[mut]):  # grid of 8, subgroups of 4\n    t: f64[8] = local\n"
    return verify(parse(head + lines))


def run(body: str, groups: int = 2) -> np.ndarray:
    y = np.zeros(16)
    run_grid(kernel(body), {"x": np.arange(16.0), "y": y}, groups)
    return y


def test_a_kernel_of_the_device_form_is_text_that_reads_back() -> None:
    read = verify(parse(SUMS))
    assert parse(show(read)) == read
    assert "grid of 8, subgroups of 4" in show(read)
    assert "    near = shuffle(t[7 - item], 1)\n    atomic('add', y[group // 2], near)" in show(read)
    assert simplify(read) == read
    renamed = substitute(read.body, {}, {"t": "u", "y": "z"})
    assert "u: f64[8] = local" in show(renamed)
    assert "atomic('add', z[group // 2], near)" in show(renamed)


def test_groups_share_memory_between_barriers_and_add_by_atomics() -> None:
    y = np.zeros(2)
    run_grid(parse(SUMS), {"x": np.arange(32.0), "y": y}, 4)
    assert y.tolist() == [sum(range(16)), sum(range(16, 32))]


def test_loops_and_conditions_may_hold_barriers_that_all_items_reach() -> None:
    y = run("""t[item] = x[item]
half: i64 = 4
while half > 0:
    barrier()
    if item < half:
        t[item] += t[item + half]
    half = half // 2
barrier()
if group == 1:
    if item == 0:
        y[3] = t[0]
    barrier()
for k in range(2):
    barrier()""")
    assert y[3] == 28


RACES = {
    "a read beside a write of another item": ("t[item] = x[item]\ny[group * 8 + item] = t[7 - item]", "t[7 - item]"),
    "two writes to one element": ("y[item // 8] = x[item]", "y[item // 8] = x[item]"),
    "a sum without atomic": ("y[0] += x[item]", "y[0] += x[item]"),
    "two groups": ("y[item] = 1.0", "item 0 of group 1"),
    "a barrier does not order groups": ("y[item] = 1.0\nbarrier()\ny[7 - item] = 2.0", "for element 0 of 'y'"),
    "an atomic beside a plain read": ("atomic('add', y[0], 1.0)\nt[item] = y[0]", "atomic('add', y[0], 1.0)"),
    "a barrier left out of a sum": (
        "t[item] = x[item]\nbarrier()\nif item < 4:\n    t[item] += t[item + 4]\nif item < 2:\n    t[item] += t[item + 2]",
        "t[item + 2]",
    ),
    "local memory used again too early": (
        "for k in range(2):\n    t[item] = x[item]\n    barrier()\n    y[group * 8 + item] = t[0]",
        "t[item] = x[item]",
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_a_planted_race_is_found_and_names_both_lines(name: str) -> None:
    body, line = RACES[name]
    with pytest.raises(CompilerBug, match="a race for element") as caught:
        run(body)
    text = str(caught.value)
    assert line in text
    assert len(text.splitlines()) == 3
    assert text.count(" of group ") == 2


def test_what_items_reach_together_is_checked() -> None:
    for body in ("if item < 3:\n    barrier()", "for i in range(item):\n    barrier()"):
        with pytest.raises(CompilerBug, match=r"items that run together .* a barrier and another"):
            run(body)
    with pytest.raises(CompilerBug, match=r"a shuffle and another: .*near = shuffle\(x\[item\], 1\)"):
        run("if item % 4 < 2:\n    near = shuffle(x[item], 1)\n    y[group * 8 + item] = near")
    run("if item < 4:\n    near = shuffle(x[item], 1)\n    y[group * 8 + item] = near")  # a whole subgroup


def test_accesses_out_of_bounds_and_values_of_no_origin_are_found() -> None:
    with pytest.raises(CompilerBug, match="offset 16 into 'x' of 16 elements"):
        run("y[group * 8 + item] = x[group * 8 + item + 1]")
    with pytest.raises(CompilerBug, match="offset 8 into 't' of 8 elements"):
        run("t[item + 1] = 1.0")
    with pytest.raises(CompilerBug, match="offset -1 into 'y'"):
        run("atomic('add', y[item - 1], 1.0)")
    assert np.isnan(run("y[group * 8 + item] = t[item]\nt[item] = 1.0")).all()  # of each group anew


def test_verify_tells_the_device_form_from_other_kernels() -> None:
    with pytest.raises(CompilerBug, match="not in a kernel without a grid"):
        verify(parse("def f(y: f64[mut]):\n    atomic('add', y[0], 1.0)"))
    with pytest.raises(CompilerBug, match="not in a kernel with a grid"):
        kernel("return 3")
    with pytest.raises(CompilerBug, match="no atomic sub of f64"):
        kernel("atomic('sub', y[0], 1.0)")
    with pytest.raises(CompilerBug, match="no atomic and of f64"):
        kernel("atomic('and', y[0], 1.0)")
    with pytest.raises(CompilerBug, match="lane 4 away in a subgroup of 4"):
        kernel("z = shuffle(x[0], 4)")
    with pytest.raises(CompilerBug, match="sizes are powers of two"):
        verify(parse("def f(y: f64[mut]):  # grid of 6, subgroups of 2\n    y[0] = 1.0"))
    with pytest.raises(CompilerBug, match="local memory is declared at the kernel's top level only"):
        kernel("if item == 0:\n    s: f64[2] = local")
    with pytest.raises(CompilerBug, match="store to 'x', which is only read"):
        verify(replace(kernel("atomic('add', y[0], 1.0)"), body=(Atomic("add", "x", const(0), const(1.0, "f64")),)))


def test_a_table_is_filled_by_compare_and_swap() -> None:
    """Items put their numbers into the first free place; nobody waits, and the interpreter knows no order of them."""
    body = """place: i64 = item % 2
taken: i64 = 0
while taken == 0:
    old = swap(k[group * 16 + place], 0, item + 1)
    if old == 0:
        taken = 1
    else:
        place = (place + 1) % 16"""
    head = "def f(k: i64[mut], y: f64[mut]):  # grid of 8, subgroups of 4\n"
    read = verify(parse(head + "".join(f"    {line}\n" for line in body.splitlines())))
    assert parse(show(read)) == read
    assert "old = swap(k[group * 16 + place], 0, item + 1)" in show(read)
    assert simplify(read) == read
    k = np.zeros(32, np.int64)
    run_grid(read, {"k": k, "y": np.zeros(1)}, 2)
    assert sorted(k[:16]) == sorted(k[16:]) == [0] * 8 + list(range(1, 9))
    with pytest.raises(CompilerBug, match=r"a race for element 0 of 'k'[\s\S]*swap"):
        run_grid(
            verify(parse(head + "    if item == 1:\n        k[0] = item\n    old = swap(k[0], 0, 1)")),
            {"k": k, "y": np.zeros(1)},
            1,
        )
    with pytest.raises(CompilerBug, match="no swap of f64"):
        verify(parse(head + "    old = swap(y[0], 0.0, 1.0)"))
