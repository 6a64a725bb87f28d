"""Joins stored elements with index arrays: steps of an index map that find which places of a key name an element."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ...classes import frozen
from ...errors import UnsupportedError
from ...runtime.conversion.radix_sort import distinct, radix
from ...runtime.conversion.remap import IndexMap
from .keys import Ints

__all__ = ["Table", "keys_of", "look_up", "sorted_places", "test_member"]

LARGEST = 2**62
BISECT = """
low{n}: i64 = 0
high{n}: i64 = {size}
while low{n} < high{n}:
    mid{n} = (low{n} + high{n}) >> 1
    if {keys}[mid{n}] < {key}:
        low{n} = mid{n} + 1
    else:
        high{n} = mid{n}
""".strip()


@frozen
class Table:
    """The places of each key: places[start[g] : start[g + 1]], g the key itself, or its rank in `keys`."""

    keys: Ints | None
    start: Ints
    places: Ints


def keys_of(arrays: Mapping[int, Ints], shape: Sequence[int]) -> Ints:
    """One number for every place of the index arrays: its coordinates in row-major order."""
    total: Ints | None = None
    for d in sorted(arrays):
        total = arrays[d] if total is None else total * shape[d] + arrays[d]
    assert total is not None
    return total


def sorted_places(keys: Ints) -> tuple[Ints, Ints]:
    """Keys -> the sorted keys and the permutation that sorts them, stably."""
    if len(keys) < 2 or bool(np.all(keys[:-1] <= keys[1:])):
        return keys, np.arange(len(keys), dtype=np.int64)
    sorted_keys, order = radix(
        keys.astype(np.uint64), np.arange(len(keys), dtype=np.int64), 0, int(keys.max()).bit_length()
    )
    return sorted_keys.astype(np.int64), order


def table(keys: Ints, extent: int, direct: bool) -> Table:
    """Keys -> their Table: direct-addressed over the whole extent, or by rank among the distinct keys."""
    in_order, places = sorted_places(keys)
    if direct:
        start = np.zeros(extent + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=extent), out=start[1:])
        return Table(None, start, places)
    first = np.flatnonzero(np.diff(in_order, prepend=-1))
    return Table(np.ascontiguousarray(in_order[first]), np.append(first, len(keys)).astype(np.int64), places)


def _key(index_map: IndexMap, arrays: Mapping[int, Ints], shape: Sequence[int]) -> str:
    """The text of an element's key, in the numbering of `keys_of`."""
    text = ""
    for d in sorted(arrays):
        text = f"x{d}" if not text else f"({text}) * {index_map.number(shape[d])} + x{d}"
    return index_map.bind(text, "key")


def _replace_by_ranks(
    index_map: IndexMap, arrays: Mapping[int, Ints], shape: Sequence[int]
) -> tuple[Mapping[int, Ints], Sequence[int], Mapping[int, str]]:
    """Index arrays -> ranks among their distinct coordinates, where the product of extents has no 64-bit number."""
    ranks: dict[int, Ints] = {}
    extents = list(shape)
    names: dict[int, str] = {}
    for d in sorted(arrays):
        distinct_crd, ranks[d] = np.unique(arrays[d], return_inverse=True)
        extents[d] = len(distinct_crd)
        names[d] = _search(index_map, distinct_crd, f"x{d}")
    if math.prod(extents[d] for d in arrays) >= LARGEST:
        raise UnsupportedError(
            f"indexing with {len(arrays)} arrays of {len(next(iter(arrays.values())))} places over extents"
            f" {tuple(shape)}\n  help: index with fewer arrays at a time"
        )
    return ranks, extents, names


def _search(index_map: IndexMap, keys: Ints, key: str) -> str:
    """Add a binary search of `key` among sorted keys, which drops elements without one; gives the name of the rank."""
    n = len(index_map.steps)
    buffer, size = index_map.array(keys), index_map.number(len(keys))
    index_map.steps.append(BISECT.format(n=n, size=size, keys=buffer, key=key))
    index_map.test(f"low{n} < {size}")
    index_map.test(f"{buffer}[low{n}] == {key}")
    return index_map.bind(f"low{n}", "rank")


def _group_of_key(
    index_map: IndexMap, arrays: Mapping[int, Ints], shape: Sequence[int], elements: int
) -> tuple[Table, str]:
    """The table of the index arrays, and the name of an element's group in it."""
    if math.prod(shape[d] for d in arrays) >= LARGEST:
        arrays, shape, names = _replace_by_ranks(index_map, arrays, shape)
        text = ""
        for d in sorted(arrays):
            text = names[d] if not text else f"({text}) * {index_map.number(shape[d])} + {names[d]}"
        key = index_map.bind(text, "key")
    else:
        key = _key(index_map, arrays, shape)
    direct_keys, extent = _direct_keys(arrays, shape, elements)
    groups = table(keys_of(arrays, shape), extent, direct_keys is not None)
    return groups, key if groups.keys is None else _search(index_map, groups.keys, key)


def look_up(index_map: IndexMap, arrays: Mapping[int, Ints], shape: Sequence[int], elements: int) -> str:
    """Add the steps that visit all places naming the element; gives the name of the place."""
    keys, extent = _direct_keys(arrays, shape, elements)
    if keys is not None:
        direct: Ints = np.full(extent, -1, np.int64)
        direct[keys] = np.arange(len(keys), dtype=np.int64)
        if int(np.count_nonzero(direct != -1)) == len(keys):
            place = index_map.bind(f"{index_map.array(direct)}[{_key(index_map, arrays, shape)}]", "place")
            index_map.test(f"{place} >= 0")
            return place
    groups, group = _group_of_key(index_map, arrays, shape, elements)
    start, places = index_map.array(groups.start), index_map.array(groups.places)
    p = index_map.loop(f"{start}[{group}]", f"{start}[{group} + 1]")
    index_map.copies, index_map.most = None, int(np.diff(groups.start).max(initial=1))
    return index_map.bind(f"{places}[{p}]", "place")


def _direct_keys(arrays: Mapping[int, Ints], shape: Sequence[int], elements: int) -> tuple[Ints | None, int]:
    """The keys, None where a table over all possible ones is much longer than what is looked up; and the extent."""
    extent = math.prod(shape[d] for d in arrays)
    if extent > 4 * (len(next(iter(arrays.values()))) + elements) + 1024:
        return None, extent
    return keys_of(arrays, shape), extent


def test_member(index_map: IndexMap, arrays: Mapping[int, Ints], shape: Sequence[int], elements: int) -> str:
    """Add the steps that test whether some place of the key names an element; gives the name of the flag, 1 or 0."""
    direct_keys, extent = _direct_keys(arrays, shape, elements)
    if direct_keys is not None:
        flags = np.zeros(extent, np.bool_)
        flags[direct_keys] = True
        key = _key(index_map, arrays, shape)
        return index_map.bind(f"i64({index_map.array(flags)}[{key}])", "named")
    if extent >= LARGEST:
        raise UnsupportedError(
            f"setting elements by arrays over extents {tuple(shape)}\n  help: set them by slices and integers"
        )
    key, keys = _key(index_map, arrays, shape), distinct(keys_of(arrays, shape))
    n = len(index_map.steps)
    buffer, size = index_map.array(keys), index_map.number(len(keys))
    index_map.steps.append(BISECT.format(n=n, size=size, keys=buffer, key=key))
    return index_map.bind(f"i64(low{n} < {size} and {buffer}[min(low{n}, {size} - 1)] == {key})", "named")
