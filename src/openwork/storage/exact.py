"""The 5.x invariants by plain NumPy, level by level: exact, with the first offending position and value.

5.1 pos[0] == 0                               5.2 pos[last] == number of stored coordinates
5.3 0 <= pos[i + 1] - pos[i] <= extent        (loose: 0 <= lo <= hi <= len(crd); the extent bounds unique levels)
5.4 0 <= crd     5.5 crd < extent             (from the level's lowest coordinate; ell: or -1; bitmap: 0 or 1)
5.6 sorted where ordered and distinct where unique, inside each parent; ell: no coordinate after a sentinel

Compiled kernels find *whether* something is wrong in large tensors; this tells what.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .buffers import length, to_numpy
from .invariants import violation
from .specified import Ints, children, root
from .storage import Storage

__all__ = ["check_indices"]


def check_indices(storage: Storage) -> None:
    """Check the 5.x invariants of a storage whose O(1) invariants hold.

    Raises InvariantError with the number, the first offending position and its value.
    """
    format, slices = storage.format, storage.batches
    stored = [at for at, level in enumerate(format.levels) if level.format.buffers]
    if not stored or not slices:
        return
    state, chain = root(storage), _Chain()
    for at in range(format.batch_ndim, stored[-1] + 1):
        level = format.levels[at].format
        if "pos" in level.buffers:
            _check_pos(storage, at, slices)
        if level.is_bitmap:
            _check_bits(storage, at)
        if level.has_sentinel:
            _check_tails(storage, at)
        before, (state, row, raw) = state, children(state, storage, at)
        if level.stores_coordinates:
            _check_range(storage, at, state.coordinates[-1], raw)
        chain = chain.below(row, level.functions.branchless, before.coordinates[-1] if before.coordinates else None)
        if level.stores_coordinates:
            _check_order(storage, at, chain, state.coordinates[-1], raw)


def _subject(storage: Storage, at: int) -> str:
    return f'level {at} ({storage.format.levels[at].format}) of "{storage.format}"'


def _first(bad: np.ndarray[Any, Any]) -> int | None:
    """The first true element, None where all are false."""
    at = int(bad.argmax()) if len(bad) else 0
    return at if len(bad) and bad[at] else None


def _check_pos(storage: Storage, at: int, slices: int) -> None:
    level, (lo, hi) = storage.format.levels[at].format, storage.format.level_intervals(storage.shape)[at]
    pos = to_numpy(storage.pos[at]).astype(np.int64).reshape(slices, -1)
    count, where, width = length(storage.crd[at]) // slices, _subject(storage, at), pos.shape[1]
    fix = "rebuild pos as the cumulative sum of the counts per parent"
    if level.is_loose:
        begin, end = pos[:, 0::2], pos[:, 1::2]
        bad = _first(((begin < 0) | (end < begin) | (end > count)).reshape(-1))
        if bad is not None:
            got = f"pos[{at}][{2 * bad}:{2 * bad + 2}] == {begin.flat[bad]}, {end.flat[bad]}"
            raise violation("5.3", f"{where}: bounds of parent {bad}", f"0 <= lo <= hi <= {count}", got, fix)
        sizes = end - begin
    else:
        bad = _first(pos[:, 0] != 0)
        if bad is not None:
            raise violation("5.1", f"{where}: first position", "0", f"pos[{at}][{bad * width}] == {pos[bad, 0]}", fix)
        bad = _first(pos[:, -1] != count)
        if bad is not None:
            got = f"pos[{at}][{bad * width + width - 1}] == {pos[bad, -1]}"
            raise violation("5.2", f"{where}: last position is the number of coordinates", str(count), got, fix)
        bad = _first(((pos[:, 1:] < pos[:, :-1]) | (pos[:, 1:] > count) | (pos[:, 1:] < 0)).reshape(-1))
        if bad is not None:
            i = bad // (width - 1) * width + bad % (width - 1)
            got = f"pos[{at}][{i + 1}] == {pos.flat[i + 1]} after {pos.flat[i]}"
            raise violation("5.3", f"{where}: positions never fall", f"from {pos.flat[i]} to {count}", got, fix)
        sizes = np.diff(pos, axis=1)
    bad = _first((sizes > hi - lo).reshape(-1)) if level.unique else None
    if bad is not None:
        first = 2 * bad if level.is_loose else bad // (width - 1) * width + bad % (width - 1)
        got = f"{sizes.flat[bad]}: pos[{at}][{first}:{first + 2}] == {pos.flat[first]}, {pos.flat[first + 1]}"
        raise violation(
            "5.3", f"{where}: a unique level has at most as many children as its extent", f"at most {hi - lo}",
            got, "say compressed(nonunique), or merge the duplicates",
        )  # fmt: skip


def _check_bits(storage: Storage, at: int) -> None:
    bits = to_numpy(storage.crd[at]).view(np.uint8)
    bad = _first(bits > 1)
    if bad is not None:
        got = f"crd[{at}][{bad}] == {bits[bad]}"
        raise violation("5.5", f"{_subject(storage, at)}: bytes of a bitmap", "0 or 1", got, "build it as a bool array")


def _check_tails(storage: Storage, at: int) -> None:
    (k,) = storage.format.levels[at].format.arguments
    crd = to_numpy(storage.crd[at])
    groups = crd.reshape(-1, k)
    late = np.zeros(groups.shape, np.bool_)
    late[:, 1:] = (groups[:, 1:] >= 0) & (groups[:, :-1] == -1)
    for number, bad in (("5.4", _first(crd < -1)), ("5.6", _first(late.reshape(-1)))):
        if bad is not None:
            got = f"crd[{at}][{bad}] == {crd[bad]}" + (" after -1" if number == "5.6" else "")
            what = f"{_subject(storage, at)}: unused slots are -1, at the end of each group of {k}"
            raise violation(number, what, "coordinates, then -1", got, "move the sentinels to the end")


def _check_range(storage: Storage, at: int, c: Ints, raw: Ints) -> None:
    lo, hi = storage.format.level_intervals(storage.shape)[at]
    for number, bad in (("5.4", _first(c < lo)), ("5.5", _first(c >= hi))):
        if bad is not None:
            got = f"crd[{at}][{raw[bad]}] == {c[bad]}"
            expected = f"{lo} <= crd < {hi}"
            raise violation(
                number, f"{_subject(storage, at)}: coordinates", expected, got, "check the shape, or the coordinates"
            )


class _Chain:
    """Which stored elements a level compares: those of one parent, through singletons of equal coordinates."""

    def __init__(self, same: np.ndarray[Any, Any] | None = None, keys: list[Ints] | None = None) -> None:
        self.same = same
        """whether an element is to be compared with the one before it"""
        self.keys = keys or []

    def below(self, row: Ints, branchless: bool, above: Ints | None) -> _Chain:
        if branchless and self.same is not None and above is not None and len(row) == len(above):
            same = self.same.copy()
            same[1:] &= above[1:] == above[:-1]
            return _Chain(same, [*self.keys, above])
        same = np.zeros(len(row), np.bool_)
        same[1:] = row[1:] == row[:-1]
        return _Chain(same, [row])


def _check_order(storage: Storage, at: int, chain: _Chain, c: Ints, raw: Ints) -> None:
    level, same = storage.format.levels[at].format, chain.same
    assert same is not None
    if level.ordered:
        falls = np.zeros(len(c), np.bool_)
        falls[1:] = same[1:] & ((c[1:] <= c[:-1]) if level.unique else (c[1:] < c[:-1]))
        bad, before = _first(falls), -1
    elif level.unique and len(c):
        order = np.lexsort((c, *chain.keys[::-1]))
        equal = np.ones(len(c) - 1, np.bool_)
        for key in (c, *chain.keys):
            equal &= key[order[1:]] == key[order[:-1]]
        pairs = np.flatnonzero(equal)
        later = order[pairs + 1]
        bad = int(later.min()) if len(pairs) else None
        before = int(order[pairs[later.argmin()]]) if len(pairs) else -1
    else:
        return
    if bad is None:
        return
    kind = "sorted and distinct" if level.ordered and level.unique else "sorted" if level.ordered else "distinct"
    before = bad - 1 if before < 0 else before
    got = f"crd[{at}][{raw[bad]}] == {c[bad]} after crd[{at}][{raw[before]}] == {c[before]}"
    weaker = "nonunique" if c[bad] == c[before] else "nonunique, unordered" if level.unique else "unordered"
    raise violation(
        "5.6", f"{_subject(storage, at)}: coordinates inside each parent", kind, got,
        f"say {level.name}({weaker}) in the format and asformat() to the one wanted",
    )  # fmt: skip
