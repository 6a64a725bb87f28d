"""The schedule of a merge on ranges -> the kernel that puts what threads wrote on each to its place in the result."""

from __future__ import annotations

from ...classes import frozen
from ...ir.loop import Kernel
from ..build import Builder
from ..conversion.level_runs import Kind
from ..schedule.coiterate import MergeSchedule

__all__ = ["place_kernel"]


@frozen
class _Part:
    """A buffer that is written range by range: pos, to which the count of earlier elements is added, or another."""

    name: str
    scalar: str
    is_pos: bool


def place_kernel(plan: MergeSchedule, index: str) -> Kernel:
    """The kernel that copies ranges from a thread's memory to the result, adding the positions before to pos."""
    builder = Builder("place", ranged=True)
    for name in ("cuts", "ends", "counts"):
        builder.buffer(name, "i64")
    for name in ("chunks", "low"):
        builder.scalar(name)
    lines = ["begin0 = cuts[t] - low", "count0 = cuts[t + 1] - cuts[t]"]
    stage, chain = 0, -1
    for number, run in enumerate(plan.runs):
        if run.kind is not Kind.CHAIN:
            for at in run.levels if number else run.levels[1:]:
                builder.scalar(f"size{at}")
                lines += [f"begin{stage + 1} = begin{stage} * size{at}", f"count{stage + 1} = count{stage} * size{at}"]
                stage += 1
            continue
        chain += 1
        lines.append(f"goal{chain} = ends[{chain} * (chunks + 1) + t]")
        if run.first:
            lines += _copy(builder, _Part(f"pos{run.first}", index, True), stage, chain)
        stage += 1
        lines += [f"begin{stage} = goal{chain} + 0", f"count{stage} = counts[{chain} * chunks + t]"]
        for at in run.levels:
            lines += _copy(builder, _Part(f"crd{at}", index, False), stage, chain)
    lines += _copy(builder, _Part("vals", plan.scalar, False), stage, chain)
    builder.top.run("for t in range(lo, hi):\n" + "\n".join(f"    {line}" for line in lines))
    return builder.kernel()


def _copy(builder: Builder, part: _Part, stage: int, chain: int) -> list[str]:
    """Lines that copy one buffer; pos of the first chain is in place already, and only grows."""
    out = f"out_{part.name}"
    builder.buffer(out, part.scalar, mutable=True, wide=part.is_pos)
    source = f"own_{out}[1 + e]"
    if part.is_pos and chain == 0:
        source = f"{out}[begin{stage} + 1 + e]"
    else:
        builder.buffer(f"own_{out}", part.scalar, wide=part.is_pos)
    if part.is_pos:
        return [f"for e in range(0, count{stage}):", f"    {out}[begin{stage} + 1 + e] = {source} + goal{chain}"]
    return [f"for e in range(0, count{stage}):", f"    {out}[begin{stage} + e] = own_{out}[e]"]
