"""Conversion by appending: elements that come in the target's order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...compiler.conversion.append import Pass, append_kernel, by_ranges
from ...compiler.conversion.stream import Stream
from ...compiler.conversion.target import Kind, Run
from ...ir.loop import Kernel
from ...storage.buffers import address
from ...storage.storage import Storage
from .assembly import Assembly, is_zero
from .ranges import Ranges, first_positions, of_walk

__all__ = ["append", "append_walk", "passes"]


def append_walk(out: Assembly, storage: Storage, count: int | None, owned: bool) -> Storage:
    """Assemble from the elements of `storage`, whose walk is in the target's order; side by side where it pays.

    Buffers that the result holds too are copied as they are, or taken where the storage is `owned`.
    """
    stage = out.stage
    ranges = of_walk(storage)
    flags = {"unique": stage.unique, "keep": stage.keep, "hoist": stage.hoist}
    if ranges is not None and not by_ranges(storage.format, stage.target, **flags):
        ranges = None
    kept = storage if out.recipe.given is not None else None
    if ranges is None:
        return append(out, out.recipe.stream, count, kept=kept, owned=owned)
    starts = first_positions(storage, ranges) if count is not None else None
    return _append_ranges(out, ranges, starts, kept, owned)


def append(
    out: Assembly,
    stream: Stream,
    count: int | None,
    kind: str = "append",
    kept: Storage | None = None,
    owned: bool = False,
) -> Storage:
    """Assemble from elements in the target's order; `count` is their number where it is known."""
    run, one_each = out.recipe.run, out.runs[-1].kind is Kind.CHAIN and (out.stage.unique or out.stage.keep)
    chains = [run for run in out.runs if run.kind is Kind.CHAIN]
    sizes: dict[Run, int] = {}
    if len(chains) == 1 and one_each and count is not None:
        sizes[chains[0]] = count
    elif chains:
        out.check(run(f"{kind} count", _builder(out, stream, Pass.COUNT, kept), out.words))
        sizes = {run: out.total(number) for number, run in enumerate(out.runs) if run.kind is Kind.CHAIN}
    out.allocate(sizes, kept, owned)
    for task in passes(out):
        out.check(run(f"{kind} {task.value}", _builder(out, stream, task, kept), out.words))
    return out.finish(sizes)


def _append_ranges(
    out: Assembly, ranges: Ranges, starts: np.ndarray[tuple[int], np.dtype[np.int64]] | None, kept: Storage | None,
    owned: bool,
) -> Storage:  # fmt: skip
    """The same range by range, each appending where it starts; counted first where that is not known."""
    recipe, words, chain = out.recipe, out.words, out.runs[-1]
    words |= ranges.words()
    if starts is None:
        starts = np.zeros(ranges.count + 1, np.int64)
        ends = np.zeros(ranges.count, np.int64)
        words |= {"starts": address(starts), "ends": address(ends)}
        recipe.run("append count", _builder(out, recipe.stream, Pass.COUNT, kept, ranged=True), words, ranges)
        np.cumsum(ends, out=starts[1:])
    words["starts"] = address(starts)
    count = int(starts[-1])
    out.allocate({chain: count}, kept, owned)
    recipe.run("append fill", _builder(out, recipe.stream, Pass.FILL, kept, ranged=True), words, ranges)
    if chain.first == 0:
        out.pos[0][1] = count  # type: ignore[index]
    return out.finish({chain: count})


def _builder(
    out: Assembly, stream: Stream, task: Pass, kept: Storage | None, ranged: bool = False
) -> Callable[[], Kernel]:
    stage, target = out.stage, out.recipe.target
    given = None if kept is None else tuple(out.recipe.given or ())
    return lambda: append_kernel(
        f"append_{task.value}",
        stream,
        target,
        task,
        unique=stage.unique,
        keep=stage.keep,
        assembled=given,
        ranged=ranged,
    )


def passes(out: Assembly) -> tuple[Pass, ...]:
    """CLEAR goes first where elements are added to places that hold a fill value that is not zero."""
    adds = not out.stage.unique and out.runs and out.runs[-1].kind is Kind.LOCATED
    return (Pass.CLEAR, Pass.FILL) if adds and not is_zero(out.fill_value) else (Pass.FILL,)
