"""Elements by coordinates -> a tensor in any format, assembled on the device: sort, then level by level.

Elements are sorted by level coordinates. From the root to the leaf each has a position: where a level has a place for
every coordinate, it is computed; where it stores coordinates, elements that differ from the one before get the next
place, by a scan of these marks. The host reads one number for each level that stores coordinates.
"""

from __future__ import annotations

from typing import Any

from ..errors import FormatError, UnsupportedError
from ..format.expression import render
from ..format.format import Format
from ..ir.index_text import parse
from ..provided import provides
from ..runtime.conversion.remap import canonical
from ..runtime.formats import promises_less, resolve_format
from ..storage.sizes import positions
from .adapter import Memory
from .coordinates import Elements, elements_of
from .kernels import Number, each
from .statements import contract
from .tensor import DeviceTensor
from .vector import cast, chosen, fill, gather, heads, index_type, iota, lower_bound, order_of, scan

__all__ = ["assembled", "convert", "ordered", "reduced_runs", "summed"]

KEY = 62
"""Bits that coordinates may have together to be one key of a sort."""


@provides("device convert")
def convert(t: DeviceTensor, format: object) -> DeviceTensor:
    """A tensor in another format. Raises UnsupportedError for formats that are not assembled on devices."""
    target = resolve_format(format, t.ndim, t.format)
    if target == t.format:
        return t
    if promises_less(target, t.format):
        out = DeviceTensor(
            t.shape, target, t.fill_value, t.pos_buffers, t.crd_buffers, t.memory, t.outer
        )  # fmt: skip
        out.stored, out.graph = t.stored, t.graph
        return out
    _refuse(target, t)
    if t.is_recorded:
        raise UnsupportedError(
            f"asformat to {target} on {t.device}: torch records the values, and this has no gradient there"
            f"\n  got: a tensor in format {t.format}\n  help: asformat before to({t.device!r}), or A.detach()"
        )
    e = elements_of(t)
    if t.format.is_dense and not target.is_dense:
        e = e.at(chosen(_differs(e.values, t.fill_value)))
    return assembled(e, target, t.fill_value, t.format.is_unique)


def _differs(x: Memory, value: Any) -> Memory:
    """1 where an element is not this one, in i64; NaN is itself."""
    out = x.device.memory(x.length, "i64")
    text = "1 - i64(isnan(x[t]))" if value != value else "i64(x[t] != v)"
    each(
        x.device,
        x.length,
        f"y[t] = {text}",
        {"y": out},
        x=x,
        **({} if value != value else {"v": Number(value, x.scalar)}),
    )
    return out


def summed(t: DeviceTensor) -> DeviceTensor:
    """A tensor without duplicates: their sums."""
    return t if t.format.is_unique else convert(t, canonical(t.format))


def _refuse(target: Format, t: DeviceTensor) -> None:
    for level in target.levels:
        f = level.format
        if f.batched:
            raise UnsupportedError(
                f"asformat to {target} on {t.device}: levels {f.name!r} are not assembled there"
                f"\n  got: a tensor in format {t.format}\n  help: to('cpu') first, or another format"
            )


def ordered(e: Elements, levels: list[Memory], bounds: list[int]) -> tuple[Elements, list[Memory], Memory]:
    """Elements in the order of level coordinates, these, and marks of the first of each run of equal ones."""
    keys = _keys(levels, bounds)
    if keys:
        order = order_of(keys)
        e, levels = e.at(order), [gather(c, order) for c in levels]
        marks = heads([gather(k, order) for k, _ in keys])
    else:
        marks = fill(e.values.device, e.values.length, 0, "i64")
        if e.values.length:
            each(e.values.device, 1, "y[0] = 1", {"y": marks})
    return e, levels, marks


def _keys(levels: list[Memory], bounds: list[int]) -> list[tuple[Memory, int]]:
    """Coordinates as keys of a sort, as few as hold them: c0 * n1 + c1 where the product is small."""
    keys: list[tuple[Memory, int]] = []
    for c, n in zip(levels, bounds, strict=True):
        if n <= 1:
            continue
        if keys and (keys[-1][1] * n).bit_length() <= KEY:
            key, bound = keys.pop()
            out = c.device.memory(c.length, "i64")
            each(c.device, c.length, "y[t] = x[t] * n_c + c[t]", {"y": out}, x=key, c=c, n_c=n)
            keys.append((out, bound * n))
        else:
            keys.append((c, n))
    return keys


def reduced_runs(values: Memory, starts: Memory, op: str, scalar: str) -> Memory:
    """The reduction of each run of values. starts : where runs begin, and the number of values; op : of a statement"""
    device, n = values.device, starts.length - 1
    unread = Memory(device, "i64", values.length, starts.handle)  # a sum of rows asks for no coordinates
    rows = DeviceTensor((n, max(1, values.length)), resolve_format("csr", 2), 0, (None, starts), (None, unread), values)
    return contract(parse(f"y[i] {op} A[i,j]"), {"A": rows}, scalar) if n else device.memory(0, scalar)


def starts_of(marks: Memory) -> tuple[Memory, Memory, int]:
    """Of marks of the first of each run: each element's run; where runs begin, and the end of all; their number."""
    device, n = marks.device, marks.length
    before, count = scan(marks)
    run, starts = device.memory(n, "i64"), device.memory(count + 1, "i64")
    each(device, n, "y[t] = before[t] + m[t] - 1", {"y": run}, before=before, m=marks)
    each(device, n, "if m[t] != 0:\n    y[before[t]] = t", {"y": starts}, before=before, m=marks)
    each(device, 1, "y[count] = length", {"y": starts}, count=count, length=n)
    return run, starts, count


def assembled(e: Elements, target: Format, fill_value: Any, unique: bool) -> DeviceTensor:
    """A tensor of elements. unique : whether no two are at one coordinate; else they are summed where the target is
    unique, or ends in levels that have one place for them."""
    device = e.values.device
    intervals = target.level_intervals(e.shape)
    levels = [_level_coordinate(e, target, k, lo) for k, (lo, _) in enumerate(intervals)]
    bounds = [max(0, hi - lo) for lo, hi in intervals]
    e, levels, marks = ordered(e, levels, bounds)
    one_place = target.is_unique or not target.levels or target.levels[-1].format.is_located
    if not unique and one_place:
        _, starts, n = starts_of(marks)
        if n < e.values.length:
            sums = reduced_runs(e.values, starts, "|=" if e.values.scalar == "bool" else "+=", e.values.scalar)
            firsts = Memory(device, "i64", n, starts.handle)
            e = Elements(e.shape, [gather(c, firsts) for c in e.coordinates], sums)
            levels, unique = [gather(c, firsts) for c in levels], True
    return _Assembly(e, target, levels, bounds, unique or one_place).tensor(fill_value)


def _level_coordinate(e: Elements, target: Format, k: int, lo: int) -> Memory:
    """Each element's coordinate at a level, from 0."""
    out = e.values.device.memory(e.values.length, "i64")
    text = render(target.levels[k].expression, [f"x{d}[t]" for d in range(len(e.shape))])
    reads = {f"x{d}": c for d, c in enumerate(e.coordinates) if f"x{d}[t]" in text}
    each(e.values.device, out.length, f"y[t] = {text} - low", {"y": out}, low=lo, **reads)
    return out


_CHILDREN = """
for q in range(edges[t], edges[t + 1]):
    place[q] = t * slots + q - edges[t]
    crd[t * slots + q - edges[t]] = T_crd(c[q] + low)
""".strip("\n")
_ALL_IN_USE = """
q: i64 = edges[t]
slot: i64 = 0
spare: i64 = slots - (edges[t + 1] - edges[t])
for r in range(0, extent):
    stored: i64 = 0
    if q < edges[t + 1]:
        if c[q] == r:
            stored = 1
    if stored + spare > 0:
        crd[t * slots + slot] = T_crd(r + low)
        if stored > 0:
            place[q] = t * slots + slot
            q += 1
        else:
            spare -= 1
        slot += 1
""".strip("\n")


class _Assembly:
    """Positions level by level. parent : the position of each element, of so many."""

    def __init__(self, e: Elements, target: Format, levels: list[Memory], bounds: list[int], distinct: bool) -> None:
        self.e, self.target, self.levels, self.bounds, self.distinct = e, target, levels, bounds, distinct
        self.device, self.n = e.values.device, e.values.length
        self.parent, self.parents = fill(self.device, self.n, 0, "i64"), 1
        self.pos: list[Memory | None] = [None] * len(levels)
        self.crd: list[Memory | None] = [None] * len(levels)
        self.index = index_type(self.n, *e.shape, *(abs(b) for i in target.level_intervals(e.shape) for b in i))

    def tensor(self, fill_value: Any) -> DeviceTensor:
        k = 0
        while k < len(self.levels):
            f = self.target.levels[k].format
            if f.is_compressed or f.is_loose:
                k = self.chain(k)
                continue
            (self.located if f.slots is None else self.in_slots)(k)
            k += 1
        values = fill(self.device, self.parents, fill_value, self.e.values.scalar)
        each(self.device, self.n, "y[p[t]] = x[t]", {"y": values}, x=self.e.values, p=self.parent)
        out = DeviceTensor(self.e.shape, self.target, fill_value, tuple(self.pos), tuple(self.crd), values)
        assert positions(self.target, self.e.shape, [
            None if c is None else _Length(c.length) for c in self.crd
        ])[-1:] in ((), (values.length,))  # fmt: skip
        return out

    def located(self, k: int) -> None:
        """A level with a place for every coordinate."""
        place = self.device.memory(self.n, "i64")
        body = "y[t] = p[t] * extent + c[t]"
        each(self.device, self.n, body, {"y": place}, p=self.parent, c=self.levels[k], extent=self.bounds[k])
        self.parent, self.parents = place, self.parents * self.bounds[k]
        if self.target.levels[k].format.is_bitmap:
            marks = fill(self.device, self.parents, False, "bool")
            body = "if m[t] != 0:\n    y[p[t]] = T_y(1)"
            each(self.device, self.n, body, {"y": marks}, p=place, m=heads([place]))
            self.crd[k] = marks

    def in_slots(self, k: int) -> None:
        """A level with so many places for each parent: children from the first place on; all in use where the level
        says so, by coordinates that no child has, the least first."""
        f, device = self.target.levels[k].format, self.device
        assert f.slots is not None
        run, starts, count = starts_of(heads([self.parent, self.levels[k]]))
        first = Memory(device, "i64", count, starts.handle)
        edges, c = lower_bound(gather(self.parent, first), 0, self.parents + 1), gather(self.levels[k], first)
        over = device.memory(self.parents, "i64")
        each(device, self.parents, "y[t] = i64(x[t + 1] - x[t] > slots)", {"y": over}, x=edges, slots=f.slots)
        if full := scan(over)[1]:
            raise FormatError(
                f"asformat to {self.target}: {full} of {self.parents} parents have more than {f.slots} elements"
                f"\n  expected: at most {f.slots}, as level {k} is {f}\n  help: take a format with more places"
            )
        crd = fill(device, self.parents * f.slots, -1, self.index)
        place = device.memory(count, "i64")
        body = _CHILDREN if f.has_sentinel else _ALL_IN_USE
        reads: dict[str, Memory | Number | int] = {
            "edges": edges,
            "c": c,
            "slots": f.slots,
            "low": self.target.level_intervals(self.e.shape)[k][0],
        }
        if not f.has_sentinel:
            reads["extent"] = self.bounds[k]
        each(device, self.parents, body, {"crd": crd, "place": place}, **reads)
        self.crd[k] = crd
        self.parent, self.parents = gather(place, run), self.parents * f.slots

    def chain(self, k: int) -> int:
        """A level that stores coordinates, and the singletons below it; the number of the level behind them."""
        levels, end = self.target.levels, k + 1
        while end < len(levels) and levels[end].format.is_singleton:
            end += 1
        f = levels[end - 1].format
        if end == len(levels) and not f.unique and not self.distinct:
            run, first, count = iota(self.device, self.n), iota(self.device, self.n), self.n
        elif end == k + 1 or end == len(levels) or self.distinct or f.unique:
            marks = heads([self.parent, *self.levels[k:end]])
            run, starts, count = starts_of(marks)
            first = Memory(self.device, "i64", count, starts.handle)
        else:
            raise UnsupportedError(f"asformat to {self.target} on {self.device.name}: duplicates above dense levels")
        parent = gather(self.parent, first)
        lows = [lo for lo, _ in self.target.level_intervals(self.e.shape)]
        for at in range(k, end):
            crd = self.device.memory(count, self.index)
            body = "y[t] = T_y(c[first[t]] + low)"
            each(self.device, count, body, {"y": crd}, c=self.levels[at], first=first, low=lows[at])
            self.crd[at] = crd
        edges = lower_bound(parent, 0, self.parents + 1)
        if levels[k].format.is_loose:
            loose = self.device.memory(2 * self.parents, self.index)
            body = "y[2 * t] = T_y(x[t])\ny[2 * t + 1] = T_y(x[t + 1])"
            each(self.device, self.parents, body, {"y": loose}, x=edges)
            self.pos[k] = loose
        else:
            self.pos[k] = cast(edges, self.index)
        self.parent, self.parents = run, count
        return end


class _Length:
    """Stands for a vector of which its length is asked."""

    def __init__(self, n: int) -> None:
        self.shape = (n,)
