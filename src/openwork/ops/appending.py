"""Conversion by appending: elements that come in the target's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.conversion import Stage
from ..compiler.conversion.append import Pass, append_kernel
from ..compiler.conversion.stream import Stream
from ..compiler.conversion.target import Kind, Run
from ..storage.storage import Storage
from .assembly import Assembly, is_zero, run_kernel

__all__ = ["append", "builder", "passes"]


def append(out: Assembly, stream: Stream, arguments: dict[str, Any], key: str, count: int | None) -> Storage:
    """Assemble from elements in the target's order; `count` is their number where it is known."""
    stage = out.stage
    flags = {"unique": stage.unique, "keep": stage.keep}
    chains = [run for run in out.runs if run.kind is Kind.CHAIN]
    totals = np.zeros(max(len(out.runs), 1), np.int64)
    arguments = arguments | {"sizes": totals, **out.arguments()}
    sizes: dict[Run, int] = {}
    one_each = out.runs[-1].kind is Kind.CHAIN and (stage.unique or stage.keep)
    if len(chains) == 1 and one_each and count is not None:
        sizes[chains[0]] = count
    elif chains:
        build = builder(append_kernel, "append_count", stream, out, Pass.COUNT, **flags)
        out.check(run_kernel(f"{key} count", build, arguments), totals)
        sizes = {run: int(totals[number]) for number, run in enumerate(out.runs) if run.kind is Kind.CHAIN}
    out.allocate(sizes)
    arguments |= out.arguments()
    for task in passes(stage, out):
        build = builder(append_kernel, f"append_{task.value}", stream, out, task, **flags)
        out.check(run_kernel(f"{key} {task.value}", build, arguments), totals)
    return out.finish(sizes)


def passes(stage: Stage, out: Assembly) -> tuple[Pass, ...]:
    """CLEAR goes first where elements are added to places that hold a fill value that is not zero."""
    adds = not stage.unique and out.runs and out.runs[-1].kind is Kind.LOCATED
    return (Pass.CLEAR, Pass.FILL) if adds and not is_zero(out.fill_value) else (Pass.FILL,)


def builder(
    kernel: Callable[..., Any], name: str, stream: Stream, out: Assembly, task: Pass, **flags: bool
) -> Callable[[], Any]:
    return lambda: kernel(name, stream, out.operand, task, **flags)
