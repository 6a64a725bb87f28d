"""A tensor on a device -> whether its index buffers hold what its format says, checked there element by element.

The host reads one number for each buffer, how many places break an invariant, and where there are some the first. The
conditions are those of the host's kernels (`compiler.invariant_checks`).
"""

from __future__ import annotations

from textwrap import indent

from ..compiler.invariant_checks import Chain, ChainLevel, out_of_order, out_of_range, values_of
from ..errors import InvariantError
from ..provided import provides
from ..storage.invariants import violation
from .adapter import Memory
from .kernels import Number, each
from .operations import refused
from .tensor import DeviceTensor
from .vector import chosen, fill

__all__ = ["check"]

_EDGES = """
bad[t] = i64(pos[t] < 0) | i64(pos[t + 1] < pos[t]) | i64(pos[t + 1] > count)
if t == 0:
    bad[t] = bad[t] | i64(pos[t] != 0)
if t == parents - 1:
    bad[t] = bad[t] | i64(pos[t + 1] != count)
""".strip("\n")
_PAIRS = "bad[t] = i64(pos[2 * t] < 0) | i64(pos[2 * t + 1] < pos[2 * t]) | i64(pos[2 * t + 1] > count)"


@provides("device check")
def check(t: DeviceTensor) -> DeviceTensor:
    """The tensor itself, once its buffers were checked. Raises InvariantError with buffer and first place."""
    if t.format.batch_ndim:
        raise refused("check", (t,), "batches")
    parents, k, levels = 1, 0, t.format.levels
    while k < len(levels):
        f, end = levels[k].format, k + 1
        while end < len(levels) and levels[end].format.is_singleton:
            end += 1
        end = end if f.is_compressed or f.is_loose else k + 1
        if f.is_compressed or f.is_loose or f.slots is not None:
            _check_chain(t, k, end, parents)
        parents, k = t.positions[end - 1], end
    if t.memory.length != parents:
        what = "length of values: one per position of the last level"
        raise violation("3.10", what, str(parents), t.memory.length, "check the shape, or the buffers")
    return t


def _check_chain(t: DeviceTensor, k: int, end: int, parents: int) -> None:
    """Check a level and the singletons below it, whose coordinates are compared as tuples."""
    f, device, pos = t.format.levels[k].format, t.adapter, t.pos_buffers[k]
    crds = [m for m in t.crd_buffers[k:end] if m is not None]
    kind = "edges" if f.is_compressed else "pairs" if f.is_loose else "sentinel" if f.has_sentinel else "slots"
    of = [level.format for level in t.format.levels[k:end]]
    chain = Chain(kind, tuple(ChainLevel(c.scalar, x.unique, x.ordered) for c, x in zip(crds, of, strict=True)))
    count, starts = crds[0].length, fill(device, crds[0].length, 0, "i64")
    if pos is not None:
        length = parents + 1 if kind == "edges" else 2 * parents
        if pos.length != length:
            raise violation("3.8", f"length of pos[{k}]", str(length), pos.length, "check the shape, or the buffer")
        bad = device.memory(parents, "i64")
        numbers = {"count": count, "parents": parents} if kind == "edges" else {"count": count}
        each(device, parents, _EDGES if kind == "edges" else _PAIRS, {"bad": bad}, pos=pos, **numbers)
        _raise(bad, t, f"pos[{k}]", f"positions from 0 to {count} that do not fall")
        if kind == "edges":
            each(device, parents, "if pos[t] < pos[t + 1]:\n    s[pos[t]] = 1", {"s": starts}, pos=pos)
    else:
        assert f.slots is not None
        each(device, count, "s[t] = i64(t % slots == 0)", {"s": starts}, slots=f.slots)
    intervals = t.format.level_intervals(t.shape)[k:end]
    bounds = {f"{name}{n}": x for n, pair in enumerate(intervals) for name, x in zip(("lo", "hi"), pair, strict=True)}
    reads: dict[str, Memory | Number | int] = {**{f"crd{n}": c for n, c in enumerate(crds)}, **bounds}
    low = f"from {intervals[0][0]} to {intervals[0][1] - 1}"
    expected = f"coordinates {low}, in the order of a level {f}"
    order = out_of_order(chain) if chain.ordered else ""
    if kind == "pairs":
        rows = f"for q in range(pos[2 * t], pos[2 * t + 1]):\n{indent(values_of(chain, 'q', 'v'), '    ')}"
        rows += indent(out_of_range(chain), "    ")
        if order:
            before = indent(values_of(chain, "q - 1", "u"), "        ")
            rows += f"    if q > pos[2 * t]:\n{before}        if {order}:\n            bad = -1\n"
        broken = device.memory(parents, "i64")
        each(device, parents, f"bad: i64 = 0\n{rows}y[t] = i64(bad < 0)", {"y": broken}, pos=pos, **reads)  # type: ignore[arg-type]
        _raise(broken, t, f"crd[{k}] of a parent", expected)
        return
    body = f"bad: i64 = 0\n{values_of(chain, 't', 'v')}{out_of_range(chain)}"
    if order:
        before = indent(values_of(chain, "t - 1", "u"), "    ")
        body += f"if t > 0 and s[t] == 0:\n{before}    if {order}:\n        bad = -1\n"
        reads["s"] = starts
    broken = device.memory(count, "i64")
    each(device, count, f"{body}y[t] = i64(bad < 0)", {"y": broken}, **reads)
    _raise(broken, t, f"crd[{k}]", expected)


def _raise(bad: Memory, t: DeviceTensor, what: str, expected: str) -> None:
    """Raise InvariantError where a place is marked."""
    found = chosen(bad)
    if found.length:
        raise InvariantError(
            f"{what} on {t.device}, place {found.at(0)}: {found.length} places break an invariant of {t.format}"
            f"\n  expected: {expected}\n  help: to('cpu').check() says which one"
        )
