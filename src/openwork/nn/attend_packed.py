"""Compressed rows -> the elements as attention's kernels by rows read them: in whole blocks, by tiles of columns.

segment (group of rows, tile of columns, row):  crd[cuts[s]] ... crd[cuts[s + 1]], a multiple of 8
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch

from ..checked import bounded
from ..codegen import cache as kernels
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from ..storage.buffers import scalar_of

__all__ = ["BLOCK", "Keys", "Packed", "biases", "by_keys", "packed"]

BLOCK = 8
"""Elements of a row and a tile of columns, of which there is a multiple."""

_SEGMENT = """place = row // n
    i = row - place * n
    segment = (place * groups + i // group) * tiles * group + i % group
    p: i64 = i64(pos[row])
    end = i64(pos[row + 1])
"""
_COUNT = f"""def count(lo: i64, hi: i64, pos: P[const], crd: C[const], counts: i64[mut], of_row: i64[mut], n: i64,
          tile: i64, tiles: i64, group: i64, groups: i64):
  for row in range(lo, hi):
    {_SEGMENT}
    total: i64 = 0
    for t in range(0, tiles):
        first = p
        if tiles == 1:
            p = end
        else:
            while p < end and i64(crd[min(p, end - 1)]) < (t + 1) * tile:
                p = p + 1
        counts[segment + t * group] = p - first
        total = total + (p - first + {BLOCK - 1}) // {BLOCK} * {BLOCK}
    of_row[row] = total
"""
_FILL = f"""def fill(lo: i64, hi: i64, pos: P[const], crd: C[const], counts: i64[const], cuts: i64[const],
         columns: i32[mut], source: i64[mut], offsets: i32[mut], copies: i32[mut], n: i64, tiles: i64,
         group: i64, groups: i64, longest: i64):
  for row in range(lo, hi):
    {_SEGMENT}
    offset: i64 = i % group * longest
    for t in range(0, tiles):
        s = segment + t * group
        first = cuts[s]
        last = counts[s] - 1
        for x in range(first, cuts[s + 1]):
            y = p + min(x - first, last)
            columns[x] = i32(crd[y])
            source[x] = y
        p = p + last + 1
        offsets[s] = i32(offset)
        copies[s] = i32((cuts[s + 1] - first - last - 1) * {BLOCK})
        offset = offset + cuts[s + 1] - first
"""
_KEYS = """def keys(lo: i64, hi: i64, crd: i32[const], cuts: i64[const], offsets: i32[const], firsts: i64[mut],
         columns: i32[mut], starts: i64[mut], at: i32[mut], of_row: i32[mut], m: i64, group: i64, segments: i64):
  slots: i64[m] = empty
  ends: i64[m] = empty
  for c in range(0, m):
    slots[c] = -1
  count: i64 = 0
  for g in range(lo, hi):
    base = count
    firsts[g] = base
    first = cuts[g * segments]
    for p in range(first, cuts[(g + 1) * segments]):
        c = i64(crd[p])
        if slots[c] < base:
            slots[c] = count
            columns[count] = crd[p]
            ends[count - base] = 0
            count = count + 1
        y = slots[c] - base
        ends[y] = ends[y] + 1
    total: i64 = first
    for y in range(0, count - base):
        starts[base + y] = total
        elements = ends[y]
        ends[y] = total
        total = total + elements
    for s in range(g * segments, (g + 1) * segments):
        for p in range(cuts[s], cuts[s + 1]):
            y = slots[i64(crd[p])] - base
            x = ends[y]
            at[x] = offsets[s] + i32(p - cuts[s])
            of_row[x] = i32(s % group)
            ends[y] = x + 1
  firsts[hi] = count
  starts[count] = cuts[hi * segments]
"""
_address = bounded(torch.Tensor.data_ptr)


@planned("kernels of attention's structure")
def _kernel(text: str, pos: str, crd: str) -> Executable:
    return kernels.of_text(text, P=pos, C=crd)


def _run(text: str, pos: str, crd: str, arrays: list[torch.Tensor], numbers: list[int], count: int, work: int) -> None:
    _kernel(text, pos, crd).run_sized(work, [*map(_address, arrays), *numbers], 0, count)


@dataclass(frozen=True, slots=True)
class Packed:
    """The elements of a mask by segments, the last element of each of which is there several times.

    crd : the columns
    cuts : where each segment begins
    offsets : of each segment, in the workspace of its group, where a row has `longest` numbers
    copies : of each segment's last element, less 1, times `BLOCK`
    counts : the elements of each row, which are together in a workspace
    source : the number of each element in the mask
    """

    crd: torch.Tensor
    cuts: torch.Tensor
    offsets: torch.Tensor
    copies: torch.Tensor
    counts: torch.Tensor
    source: torch.Tensor
    tiles: int
    longest: int


@dataclass(frozen=True, slots=True)
class Keys:
    """The elements of groups of rows by columns: where each group's columns begin, the columns, where the elements of
    each begin, and of each element the place in the group's workspace and the row in the group."""

    first: torch.Tensor
    columns: torch.Tensor
    starts: torch.Tensor
    at: torch.Tensor
    of_row: torch.Tensor


def packed(
    pos: torch.Tensor, crd: torch.Tensor, shape: tuple[int, int], tile: int, group: int, spare: int
) -> Packed:  # fmt: skip
    """The elements of compressed rows in whole blocks, for groups of rows and each `tile` columns.

    pos, crd : compressed rows of one mask (n, m) = `shape`, or of several one after the other
    spare : numbers of a workspace's row behind the elements of the longest
    """
    (n, m), rows, types = shape, len(pos) - 1, (scalar_of(pos), scalar_of(crd))
    tiles, groups = max(1, -(-m // tile)), -(-n // group)
    counts = torch.zeros(rows // max(n, 1) * groups * tiles * group, dtype=torch.int64)
    of_row = torch.empty(rows, dtype=torch.int64)
    numbers = [n, tile, tiles, group, groups]
    _run(_COUNT, *types, [pos, crd, counts, of_row], numbers, rows, len(crd))
    longest = (int(of_row.max()) if rows else 0) + spare
    cuts = torch.zeros(len(counts) + 1, dtype=torch.int64)
    torch.cumsum((counts + BLOCK - 1) // BLOCK * BLOCK, 0, out=cuts[1:])
    columns, offsets, copies = (torch.zeros(k, dtype=torch.int32) for k in (int(cuts[-1]), *[len(counts)] * 2))
    source = torch.empty(len(columns), dtype=torch.int64)
    arrays = [pos, crd, counts, cuts, columns, source, offsets, copies]
    _run(_FILL, *types, arrays, [n, tiles, group, groups, longest], rows, len(columns))
    return Packed(columns, cuts, offsets, copies, of_row, source, tiles, longest)


def by_keys(packed: Packed, m: int, group: int) -> Keys:
    """The elements of each `group` rows of a mask with m columns, by these in the order in which they are met."""
    segments = packed.tiles * group
    groups, elements = (len(packed.cuts) - 1) // segments, len(packed.crd)
    different = min(groups * m, elements)
    first, starts = torch.empty(groups + 1, dtype=torch.int64), torch.empty(different + 1, dtype=torch.int64)
    columns, at, of_row = (torch.empty(k, dtype=torch.int32) for k in (different, elements, elements))
    arrays = [packed.crd, packed.cuts, packed.offsets, first, columns, starts, at, of_row]
    _run(_KEYS, "i64", "i32", arrays, [m, group, segments], groups, 2 * elements)
    return Keys(first, columns, starts, at, of_row)


@cache
def biases(dtype: torch.dtype) -> torch.Tensor:
    """What is added to the scores of a block whose last element is there c times: row c - 1 has c times -log(c)."""
    rows = [[0.0] * (BLOCK - c) + [-math.log(c) if c > 1 else 0.0] * c for c in range(1, BLOCK + 1)]
    return torch.tensor(rows, dtype=dtype)
