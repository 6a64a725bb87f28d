"""A merge on ranges by several threads -> their results concatenated in order, each once those before are counted.

A thread walks one range of the outermost loop after another and writes its elements to private memory, small enough for
the cache. Once the elements before the range are counted, it copies the range to its final position. So the result has
no gaps to close, memory past its end is never touched, and nothing is counted twice. Results do not depend on how the
loop is cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...codegen import cache, pool
from ...codegen.executable import Executable
from ...compiler.coiterate.place import place_kernel
from ...compiler.conversion.level_runs import Kind, Run
from ...compiler.schedule.coiterate import MergeSchedule
from ...storage.buffers import Array, address, empty
from .plan import Compiled

__all__ = ["orderable", "run_ordered"]


def orderable(plan: MergeSchedule) -> bool:
    """Whether ranges of the result can be concatenated: it has a chain that is appended to, and no bitmap below."""
    kinds = [run.kind for run in plan.runs]
    if Kind.CHAIN not in kinds:
        return False
    below = plan.target.levels[plan.runs[kinds.index(Kind.CHAIN)].first :]
    return not any(level.format.is_bitmap for level in below)


def run_ordered(
    plan: MergeSchedule, kernel: Compiled, words: Sequence[int], spans: tuple[tuple[int, int], ...], cuts: list[int],
    caps: Mapping[Run, Any], like: Array,
) -> dict[Run, int] | None:  # fmt: skip
    """Run the merge range by range; the number of positions of each chain, or None where no threads are available.

    words: arguments of the kernel on a single range, with the buffers of the whole result.
    """
    count, chains = len(cuts) - 1, list(caps)
    names = [p.name for p in kernel.executable.params]
    state = np.zeros(1 + count + 2 * count * len(chains), np.int64)
    state[: count + 1] = cuts
    ends = np.zeros(len(chains) * (count + 1), np.int64)
    counts = address(state) + 8 * (1 + count * (1 + len(chains)))
    shared = dict(zip(names, words, strict=True)) | {"meta": address(state), "chunks": count}
    place = _place_executable(plan, kernel)
    fixed = {"cuts": address(state), "ends": address(ends), "counts": counts, "chunks": count, "low": spans[0][0]}
    fixed |= {f"size{at}": hi - lo for at, (lo, hi) in enumerate(spans)}
    thread_buffers = [
        _thread_buffers(plan, kernel, spans, caps, like) for _ in range(min(pool.get_num_threads(), count))
    ]
    first, second = [], []
    for buffers in thread_buffers:
        addresses = {name: address(buffer) for name, buffer in buffers.items()}
        first.append([(shared | addresses)[name] for name in names])
        place_arguments = {**shared, **fixed, **{f"own_{name}": a for name, a in addresses.items()}}
        second.append([place_arguments[p.name] for p in place.params])
    if not pool.ordered(kernel.executable, place, first, second, count, counts, address(ends), len(chains)):
        return None
    return {run: int(ends[(r + 1) * (count + 1) - 1]) for r, run in enumerate(chains)}


def _thread_buffers(
    plan: MergeSchedule, kernel: Compiled, spans: tuple[tuple[int, int], ...], caps: Mapping[Run, Any], like: Array
) -> dict[str, Array]:
    """Private buffers for one range: those at and below the first chain, but for its pos."""
    buffers: dict[str, Array] = {}
    parents = 0
    for run in plan.runs:
        if run.kind is Kind.CHAIN:
            if parents:
                buffers[f"out_pos{run.first}"] = empty(parents + 1, kernel.index, like)
            parents = int(caps[run].max())
            for at in run.levels:
                buffers[f"out_crd{at}"] = empty(parents, kernel.index, like)
        elif parents:
            parents *= math.prod(spans[at][1] - spans[at][0] for at in run.levels)
    buffers["out_vals"] = empty(parents, plan.scalar, like)
    return buffers


def _place_executable(plan: MergeSchedule, kernel: Compiled) -> Executable:
    key = f"merge place {plan.target.identity} {kernel.index} {plan.scalar}"
    return cache.get(key, lambda: place_kernel(plan, kernel.index))
