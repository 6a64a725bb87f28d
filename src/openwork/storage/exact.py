"""A storage -> the first violation of the 5.x invariants, by plain NumPy, level by level, with position and value.

5.1 pos[0] == 0                               5.2 pos[last] == number of stored coordinates
5.3 0 <= pos[i + 1] - pos[i] <= extent        (loose: 0 <= lo <= hi <= len(crd); the extent bounds unique levels)
5.4 0 <= crd     5.5 crd < extent             (from the level's lowest coordinate; ell: or -1; bitmap: 0 or 1)
5.6 sorted where ordered and distinct where unique, inside each parent; ell: no coordinate after a sentinel

Compiled kernels find *whether* an invariant is broken in large tensors; this module finds which, and where.
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


def _first(flags: np.ndarray[Any, Any]) -> int | None:
    """The first true element, None where all are false."""
    at = int(flags.argmax()) if len(flags) else 0
    return at if len(flags) and flags[at] else None


def _check_pos(storage: Storage, at: int, slices: int) -> None:
    level, (lo, hi) = storage.format.levels[at].format, storage.format.level_intervals(storage.shape)[at]
    pos = to_numpy(storage.pos[at]).astype(np.int64).reshape(slices, -1)
    count, subject, width = length(storage.crd[at]) // slices, _subject(storage, at), pos.shape[1]
    remedy = "rebuild pos as the cumulative sum of the counts per parent"
    if level.is_loose:
        begin, end = pos[:, 0::2], pos[:, 1::2]
        at_fault = _first(((begin < 0) | (end < begin) | (end > count)).reshape(-1))
        if at_fault is not None:
            got = f"pos[{at}][{2 * at_fault}:{2 * at_fault + 2}] == {begin.flat[at_fault]}, {end.flat[at_fault]}"
            raise violation("5.3", f"{subject}: bounds of parent {at_fault}", f"0 <= lo <= hi <= {count}", got, remedy)
        sizes = end - begin
    else:
        at_fault = _first(pos[:, 0] != 0)
        if at_fault is not None:
            raise violation(
                "5.1", f"{subject}: first position", "0", f"pos[{at}][{at_fault * width}] == {pos[at_fault, 0]}", remedy
            )
        at_fault = _first(pos[:, -1] != count)
        if at_fault is not None:
            got = f"pos[{at}][{at_fault * width + width - 1}] == {pos[at_fault, -1]}"
            raise violation("5.2", f"{subject}: last position is the number of coordinates", str(count), got, remedy)
        at_fault = _first(((pos[:, 1:] < pos[:, :-1]) | (pos[:, 1:] > count) | (pos[:, 1:] < 0)).reshape(-1))
        if at_fault is not None:
            i = at_fault // (width - 1) * width + at_fault % (width - 1)
            got = f"pos[{at}][{i + 1}] == {pos.flat[i + 1]} after {pos.flat[i]}"
            raise violation("5.3", f"{subject}: positions never fall", f"from {pos.flat[i]} to {count}", got, remedy)
        sizes = np.diff(pos, axis=1)
    at_fault = _first((sizes > hi - lo).reshape(-1)) if level.unique else None
    if at_fault is not None:
        first = 2 * at_fault if level.is_loose else at_fault // (width - 1) * width + at_fault % (width - 1)
        got = f"{sizes.flat[at_fault]}: pos[{at}][{first}:{first + 2}] == {pos.flat[first]}, {pos.flat[first + 1]}"
        raise violation(
            "5.3", f"{subject}: a unique level has at most as many children as its extent", f"at most {hi - lo}",
            got, "say compressed(nonunique), or merge the duplicates",
        )  # fmt: skip


def _check_bits(storage: Storage, at: int) -> None:
    bits = to_numpy(storage.crd[at]).view(np.uint8)
    at_fault = _first(bits > 1)
    if at_fault is not None:
        got = f"crd[{at}][{at_fault}] == {bits[at_fault]}"
        raise violation("5.5", f"{_subject(storage, at)}: bytes of a bitmap", "0 or 1", got, "build it as a bool array")


def _check_tails(storage: Storage, at: int) -> None:
    (k,) = storage.format.levels[at].format.arguments
    crd = to_numpy(storage.crd[at])
    groups = crd.reshape(-1, k)
    after_sentinel = np.zeros(groups.shape, np.bool_)
    after_sentinel[:, 1:] = (groups[:, 1:] >= 0) & (groups[:, :-1] == -1)
    for number, at_fault in (("5.4", _first(crd < -1)), ("5.6", _first(after_sentinel.reshape(-1)))):
        if at_fault is not None:
            got = f"crd[{at}][{at_fault}] == {crd[at_fault]}" + (" after -1" if number == "5.6" else "")
            rule = f"{_subject(storage, at)}: unused slots are -1, at the end of each group of {k}"
            raise violation(number, rule, "coordinates, then -1", got, "move the sentinels to the end")


def _check_range(storage: Storage, at: int, c: Ints, raw: Ints) -> None:
    lo, hi = storage.format.level_intervals(storage.shape)[at]
    for number, at_fault in (("5.4", _first(c < lo)), ("5.5", _first(c >= hi))):
        if at_fault is not None:
            got = f"crd[{at}][{raw[at_fault]}] == {c[at_fault]}"
            expected = f"{lo} <= crd < {hi}"
            raise violation(
                number, f"{_subject(storage, at)}: coordinates", expected, got, "check the shape, or the coordinates"
            )


class _Chain:
    """The pairs of elements that a level compares: those of one parent, through singletons of equal coordinates."""

    def __init__(self, comparable: np.ndarray[Any, Any] | None = None, keys: list[Ints] | None = None) -> None:
        self.comparable = comparable
        """whether an element is to be compared with the one before it"""
        self.keys = keys or []

    def below(self, row: Ints, branchless: bool, above: Ints | None) -> _Chain:
        if branchless and self.comparable is not None and above is not None and len(row) == len(above):
            comparable = self.comparable.copy()
            comparable[1:] &= above[1:] == above[:-1]
            return _Chain(comparable, [*self.keys, above])
        comparable = np.zeros(len(row), np.bool_)
        comparable[1:] = row[1:] == row[:-1]
        return _Chain(comparable, [row])


def _check_order(storage: Storage, at: int, chain: _Chain, c: Ints, raw: Ints) -> None:
    level, comparable = storage.format.levels[at].format, chain.comparable
    assert comparable is not None
    if level.ordered:
        breaks = np.zeros(len(c), np.bool_)
        breaks[1:] = comparable[1:] & ((c[1:] <= c[:-1]) if level.unique else (c[1:] < c[:-1]))
        at_fault, before = _first(breaks), -1
    elif level.unique and len(c):
        order = np.lexsort((c, *chain.keys[::-1]))
        equal = np.ones(len(c) - 1, np.bool_)
        for key in (c, *chain.keys):
            equal &= key[order[1:]] == key[order[:-1]]
        pairs = np.flatnonzero(equal)
        later = order[pairs + 1]
        at_fault = int(later.min()) if len(pairs) else None
        before = int(order[pairs[later.argmin()]]) if len(pairs) else -1
    else:
        return
    if at_fault is None:
        return
    kind = "sorted and distinct" if level.ordered and level.unique else "sorted" if level.ordered else "distinct"
    before = at_fault - 1 if before < 0 else before
    got = f"crd[{at}][{raw[at_fault]}] == {c[at_fault]} after crd[{at}][{raw[before]}] == {c[before]}"
    property_that_fits = (
        "nonunique" if c[at_fault] == c[before] else "nonunique, unordered" if level.unique else "unordered"
    )
    raise violation(
        "5.6", f"{_subject(storage, at)}: coordinates inside each parent", kind, got,
        f"say {level.name}({property_that_fits}) in the format and asformat() to the one wanted",
    )  # fmt: skip
