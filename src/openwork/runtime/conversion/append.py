"""A stream of elements in the target's order -> the assembled storage, by count and fill passes, in parallel ranges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...compiler.conversion.append import Pass, append_kernel, by_ranges
from ...compiler.conversion.level_runs import Kind, Run
from ...compiler.conversion.stream import Stream
from ...ir.loop import Kernel
from ...storage.buffers import address
from ...storage.storage import Storage
from .assembly import Assembly, is_zero
from .ranges import Ranges, first_positions, of_walk

__all__ = ["append", "append_walk", "passes"]


def append_walk(out: Assembly, storage: Storage, count: int | None, owned: bool) -> Storage:
    """Assemble from the elements of `storage`, whose walk is in the target's order; in parallel ranges where that pays.

    Buffers that the result shares are copied, or reused where the storage is `owned`.
    """
    stage = out.stage
    ranges = of_walk(storage)
    flags = {"unique": stage.unique, "keep": stage.keep, "hoist": stage.hoist}
    if ranges is not None and not by_ranges(storage.format, stage.target, **flags):
        ranges = None
    source = storage if out.kernels.shared_levels is not None else None
    if ranges is None:
        return append(out, out.kernels.stream, count, source=source, owned=owned)
    starts = first_positions(storage, ranges) if count is not None else None
    return _append_ranges(out, ranges, starts, source, owned)


def append(
    out: Assembly,
    stream: Stream,
    count: int | None,
    kind: str = "append",
    source: Storage | None = None,
    owned: bool = False,
) -> Storage:
    """Assemble from elements in the target's order; `count` is their number where it is known."""
    run, is_distinct = out.kernels.run, out.runs[-1].kind is Kind.CHAIN and (out.stage.unique or out.stage.keep)
    chains = [run for run in out.runs if run.kind is Kind.CHAIN]
    sizes: dict[Run, int] = {}
    if len(chains) == 1 and is_distinct and count is not None:
        sizes[chains[0]] = count
    elif chains:
        out.check(run(f"{kind} count", _kernel_builder(out, stream, Pass.COUNT, source), out.words))
        sizes = {run: out.total(number) for number, run in enumerate(out.runs) if run.kind is Kind.CHAIN}
    out.allocate(sizes, source, owned)
    for task in passes(out):
        out.check(run(f"{kind} {task.value}", _kernel_builder(out, stream, task, source), out.words))
    return out.finish(sizes)


def _append_ranges(
    out: Assembly, ranges: Ranges, starts: np.ndarray[tuple[int], np.dtype[np.int64]] | None, source: Storage | None,
    owned: bool,
) -> Storage:  # fmt: skip
    """Assemble in parallel ranges, each appending from its start; counted first where starts are not known."""
    kernels, arguments, chain = out.kernels, out.words, out.runs[-1]
    arguments |= ranges.words()
    if starts is None:
        starts = np.zeros(ranges.count + 1, np.int64)
        ends = np.zeros(ranges.count, np.int64)
        arguments |= {"starts": address(starts), "ends": address(ends)}
        kernels.run(
            "append count", _kernel_builder(out, kernels.stream, Pass.COUNT, source, ranged=True), arguments, ranges
        )
        np.cumsum(ends, out=starts[1:])
    arguments["starts"] = address(starts)
    count = int(starts[-1])
    out.allocate({chain: count}, source, owned)
    kernels.run("append fill", _kernel_builder(out, kernels.stream, Pass.FILL, source, ranged=True), arguments, ranges)
    if chain.first == 0:
        out.pos[0][1] = count  # type: ignore[index]
    return out.finish({chain: count})


def _kernel_builder(
    out: Assembly, stream: Stream, task: Pass, source: Storage | None, ranged: bool = False
) -> Callable[[], Kernel]:
    stage, target = out.stage, out.kernels.target
    shared_levels = None if source is None else tuple(out.kernels.shared_levels or ())
    return lambda: append_kernel(
        f"append_{task.value}",
        stream,
        target,
        task,
        unique=stage.unique,
        keep=stage.keep,
        assembled=shared_levels,
        ranged=ranged,
    )


def passes(out: Assembly) -> tuple[Pass, ...]:
    """The passes that write values: CLEAR comes first where elements are summed at a fill value that is not zero."""
    adds = not out.stage.unique and out.runs and out.runs[-1].kind is Kind.LOCATED
    return (Pass.CLEAR, Pass.FILL) if adds and not is_zero(out.fill_value) else (Pass.FILL,)
