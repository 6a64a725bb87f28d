"""Drive kernels of random formats and statements: right, well formed, deterministic, the same interpreted and compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from drive_strategies import drives
from drives import Drive, agree, drive, packed, run_compiled
from openwork.compiler.drive import lower_drive
from openwork.compiler.schedule import schedule
from openwork.compiler.simplify import simplify
from openwork.format import format as parse_format
from openwork.ir.index_text import parse
from openwork.ir.loop import Op
from openwork.ir.printer import show
from openwork.ir.rewrite import operands, statements, subexpressions
from openwork.ir.text import parse as parse_loops
from openwork.ir.verify import verify

SCALARS = ("f64", "f64", "f32", "i32", "i64", "u8", "c128")


def operations(d: Drive) -> set[str]:
    return {
        e.op
        for stmt in statements(d.kernel.body)
        for part in operands(stmt)
        for e in subexpressions(part)
        if isinstance(e, Op)
    }


def well_formed(d: Drive) -> None:
    verify(d.kernel)
    assert not operations(d) & {"floordiv", "mod"}
    assert parse_loops(show(d.kernel)) == d.kernel
    again = schedule(d.problem.stmt, dict(reversed(d.problem.operands.items())), d.problem.facts)
    assert again == d.plan
    raw = lower_drive(d.problem.stmt, dict(reversed(d.problem.operands.items())), again, d.problem.compute).kernel
    verify(raw)
    assert show(simplify(raw)) == show(d.kernel)


@settings(max_examples=400)
@given(drives(), st.integers(1, 3))
def test_interpreted(d: Drive, pieces: int) -> None:
    event(str(d.source.storage.format.ndim))
    well_formed(d)
    agree(d, pieces=pieces)


@settings(max_examples=100)
@given(drives(scalars=SCALARS, kinds=("contraction",)), st.integers(1, 3))
def test_interpreted_in_every_kind_of_scalar(d: Drive, pieces: int) -> None:
    well_formed(d)
    agree(d, pieces=pieces)


@settings(max_examples=150)
@given(drives(scalars=SCALARS), st.integers(1, 3))
def test_compiled(d: Drive, pieces: int) -> None:
    agree(d, run=run_compiled, pieces=pieces)


@pytest.mark.nightly
@settings(max_examples=5000)
@given(drives(), st.integers(1, 3))
def test_interpreted_nightly(d: Drive, pieces: int) -> None:
    well_formed(d)
    agree(d, pieces=pieces)
