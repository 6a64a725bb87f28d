"""Statements with one sparse operand in the device form, in every format: interpreted item by item, against NumPy.

A race between items, a barrier that some miss and an access out of bounds are errors of the interpreter."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from matrix import FORMATS, SHAPES, dense_array, tensor

import openwork as ow
from openwork.compiler.grid import FIRST, LAST, lower_grid
from openwork.compiler.operand import Operand, parse_ref
from openwork.compiler.schedule.grid import GridSchedule, grid_schedule
from openwork.compiler.single.factors import identity
from openwork.errors import CompilerBug
from openwork.ir.grid_interpret import run_grid
from openwork.ir.index_text import parse
from openwork.ir.loop import Atomic, Barrier, Grid, If, Kernel, Shuffle, Store
from openwork.ir.printer import show
from openwork.ir.rewrite import statements, walk_body
from openwork.ir.text import parse as parse_kernel
from openwork.runtime.launch import kernel_argument, outer_range
from openwork.runtime.operand_type import operand_of
from openwork.runtime.plan import extents_of, form_of
from openwork.runtime.strided import strided

Array = np.ndarray[Any, Any]
SMALL = Grid(8, 4)
STATEMENTS = {
    0: ("y[] += A[]", "D[i] += A[] * B[i]"),
    1: ("y[] += A[i] * B[i]", "C[i] += A[i] * B[i]", "D[i] += A[i]"),
    2: (
        "y[i] += A[i,j] * B[j]", "y[j] += A[i,j] * B[i]", "D[i,k] += A[i,j] * B[j,k]", "D[i,j] += A[i,j]",
        "y[] += A[i,j]", "y[i] max= A[i,j]", "C[i,j] += A[i,j] * B[i,k] * E[k,j]", "C[i,j] += A[i,j] * B[i]",
        "y[i] += A[i,j] * B[j,k] * E[k,l]",
    ),
    3: ("D[i,r] += A[i,j,k] * B[j,r] * E[k,r]", "y[i,j] += A[i,j,k] * B[k]", "y[k] += A[i,j,k]"),
    4: ("D[a,r] += A[a,b,c,d] * B[d,r]", "y[b,d] += A[a,b,c,d]"),
}  # fmt: skip
CASES = [(rank, spec) for rank, specs in FORMATS.items() for spec in specs]


class Drive:
    """A statement on one sparse operand in the device form, with its arguments."""

    def __init__(self, text: str, t: ow.Tensor, mapping: str | None = None, row: float = 0.0) -> None:
        self.stmt, self.t, storage = parse(text), t, t._storage
        self.form = form_of(self.stmt, "A")
        letters = "ijk" if t.ndim < 4 else "abcd"
        known = {"i": 5, **dict(zip(letters, t.shape, strict=False))}
        shapes = {a.tensor: tuple(known.get(i, 3) for i in a.indices) for a in self.form.accesses}
        self.dense = {n: dense_array(s, 7, density=1.0) for n, s in shapes.items()}
        views = {n: strided(x) for n, x in self.dense.items()}
        self.extents = extents_of(self.stmt, self.form, (t.shape, *(shapes[n] for n in self.form.dense)))
        operands = {"A": operand_of(storage)}
        operands |= {n: Operand(v.scalar, len(v.shape), unit=max(0, len(v.shape) - 1)) for n, v in views.items()}
        target, ndim = self.form.target, len(self.form.out)
        self.sampled = target == "C"
        operands[target] = operands["A"] if self.sampled else Operand("f64", ndim, unit=max(0, ndim - 1))
        plan = grid_schedule(self.stmt, operands, row, mapping)
        self.plan = replace(plan, grid=SMALL, chunk=2 if plan.chunk > 1 else 1)
        self.kernel, self.width = lower_grid(self.stmt, operands, self.plan, "f64")
        start = identity(self.stmt.reduction, "f64").value
        self.out: Any = np.full([self.extents[i] for i in self.form.out], start)
        if self.sampled:
            self.out = storage.with_values(np.zeros(len(storage.values)), 0)
        self.values = {**views, "A": storage, target: self.out if self.sampled else strided(self.out)}

    def run(self, kernel: Kernel | None = None) -> Array:
        """The result, dense, of the kernel or of another in its place."""
        storage, plan = self.t._storage, self.plan
        lo, hi = (0, 1) if not storage.format.nlevels else outer_range(storage)
        if plan.nest.sliced is not None:
            lo, hi = 0, self.extents[plan.nest.sliced]
        arrays = [n for n in self.values if n != "A" and not (self.sampled and n == "C")]
        args: dict[str, Any] = {FIRST: lo, LAST: hi}
        for p in self.kernel.params:
            if p.name in args:
                continue
            ref = parse_ref(p.name, self.values, arrays)
            value: Any = self.values.get(ref.tensor)
            match ref.kind:
                case "data":
                    args[p.name] = value.owner.reshape(-1)
                case "vals":
                    args[p.name] = value.values
                case "pos" | "crd":
                    args[p.name] = getattr(value, ref.kind)[ref.level]
                case _:
                    args[p.name] = kernel_argument(ref, self.values, self.extents)
        if not storage.format.nlevels:
            del args[FIRST], args[LAST]
        total = -(-(hi - lo) // plan.chunk)
        for i in plan.nest.outer:
            total *= self.extents[i]
        run_grid(kernel or self.kernel, args, max(1, -(-total * self.width // SMALL.items)))
        return ow.Tensor._from_storage(self.out).to_numpy() if self.sampled else self.out

    def expected(self) -> Array:
        dense = self.t.to_numpy()
        if self.stmt.reduction == "max":
            stored = ow.Tensor._from_storage(self.t._storage.with_values(self.t._storage.values * 0 + 1, 0)).to_numpy()
            return np.where(stored > 0, dense, -np.inf).max(axis=1, initial=-np.inf)
        letters = ",".join("".join(a.indices) for a in self.stmt.accesses)
        operands = [dense if a.tensor == "A" else self.dense[a.tensor] for a in self.stmt.accesses]
        return np.asarray(np.einsum(f"{letters}->{''.join(self.stmt.lhs.indices)}", *operands))


@pytest.mark.thin(58)
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("rank", "spec"), CASES)
def test_every_statement_in_every_format_is_right_and_without_races(rank: int, spec: str, step: int) -> None:
    """By default every fourth pair of a statement and a mapping, others in the next format."""
    pairs = list(product(enumerate(STATEMENTS[rank]), (None, "subgroup", "group")))
    for (number, text), mapping in pairs[CASES.index((rank, spec)) % step :: step]:
        shape = SHAPES[rank][number % 2 if rank in (1, 2, 3) and not spec.startswith("nm") else 0]
        drive = Drive(text, tensor(dense_array(shape), spec), mapping)
        np.testing.assert_array_equal(drive.run(), drive.expected(), err_msg=f"{text} {mapping}\n{show(drive.kernel)}")
        assert parse_kernel(show(drive.kernel)) == drive.kernel


def test_empty_tensors_run() -> None:
    for rank, shape in ((1, (0,)), (2, (0, 4)), (2, (5, 0)), (3, (2, 0, 3))):
        for text in STATEMENTS[rank]:
            drive = Drive(text, ow.zeros(shape, format="coo"))
            np.testing.assert_array_equal(drive.run(), drive.expected())


def _plan(spec: str, text: str = "y[i] += A[i,j] * B[j]", row: float = 0.0) -> GridSchedule:
    return Drive(text, tensor(dense_array((8, 12)), spec), None, row).plan


def test_the_mapping_follows_from_format_and_length_of_rows() -> None:
    assert [_plan("csr", row=row).mapping for row in (1, 100, 10_000)] == ["item", "subgroup", "group"]
    assert _plan("csr", "D[i,k] += A[i,j] * B[j,k]", 1000).mapping == "item"  # neighbours take neighbouring k
    assert _plan("coo").mapping == _plan("csc").mapping == "split"
    assert _plan("csc", "y[j] += A[i,j] * B[i]").exclusive
    assert _plan("dia").mapping == "item"
    assert _plan("dia").exclusive


def _without(kernel: Kernel, kind: type) -> Kernel:
    """The kernel with one kind of statement left out, or made plain."""

    def rule(s: Any) -> Any:
        if isinstance(s, kind):
            return () if kind is Barrier else (Store(s.buffer, s.index, s.value),)
        return None

    return replace(kernel, body=walk_body(kernel.body, None, rule))


def test_a_kernel_without_its_barriers_or_atomics_is_caught() -> None:
    t = tensor(dense_array((8, 12), density=0.9), "csr")
    drive = Drive("y[i] += A[i,j] * B[j]", t, "group")
    assert any(isinstance(s, Barrier) for s in statements(drive.kernel.body))
    with pytest.raises(CompilerBug, match=r"a race for element \d of 'team_sums_1'"):
        drive.run(_without(drive.kernel, Barrier))
    for spec in ("csc", "coo"):
        drive = Drive("y[i] += A[i,j] * B[j]", tensor(dense_array((8, 12), density=0.9), spec))
        assert any(isinstance(s, Atomic) for s in statements(drive.kernel.body))
        with pytest.raises(CompilerBug, match=r"a race for element \d of 'y'"):
            drive.run(_without(drive.kernel, Atomic))


def test_a_kernel_whose_items_all_store_is_caught() -> None:
    drive = Drive("y[i] += A[i,j] * B[j]", tensor(dense_array((8, 12)), "csr"), "subgroup")
    assert any(isinstance(s, Shuffle) for s in statements(drive.kernel.body))
    everywhere = walk_body(
        drive.kernel.body, None, lambda s: s.then if isinstance(s, If) and "lane" in show(s.cond) else None
    )
    with pytest.raises(CompilerBug, match="a race for element 0 of 'y'"):
        drive.run(replace(drive.kernel, body=everywhere))
