"""The buffers of a mask -> what attention's kernels read in their place, computed once and kept with them.

`elements_of` are compressed rows of elements, `packed_of` these in whole blocks by tiles of columns, and `groups_of`
the unions of the keys of neighbouring queries, for masks whose neighbours see much the same keys: blocks, bands, causal
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from .attend_packed import Keys, Packed, by_keys, packed
from .attend_tiles import KEYS, ROWS

__all__ = ["Groups", "by_keys_of", "elements_of", "groups_of", "packed_of", "version"]

T = TypeVar("T")
FILLED = 0.5
"""The part of a group's (query, key) that the mask must have: one of them takes 4 ns in a register tile, an element 8
by rows (AMD EPYC, float32 of 64 features)."""
SAMPLES = 8
"""Groups that are looked at first."""
SURELY = 0.75
"""The part of `FILLED` below which these show that the others have less than that too."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The united keys of each group of queries.

    pos, crd : where they begin, and the keys, padded to a multiple of `KEYS` by the last one
    bits : which of the group's queries see a key, none that pads
    counts : how many keys there are, of each group
    first_new, new : where the keys begin that no group before it in the place has, and these keys
    spans : of every `ROWS` queries of a group the first key that any of them sees, and behind the last one
    seers : of every `KEYS` keys of a group the first query that sees any of them, and behind the last one
    longest : the most keys of a group, padded
    is_partial : whether some query does not see some key of its group
    """

    pos: torch.Tensor
    crd: torch.Tensor
    bits: torch.Tensor
    counts: torch.Tensor
    first_new: torch.Tensor
    new: torch.Tensor
    spans: torch.Tensor
    seers: torch.Tensor
    longest: int
    is_partial: bool


def _cached(pos: torch.Tensor, crd: torch.Tensor, name: str, key: Any, build: Callable[[], T]) -> T:
    """What is computed of a mask, kept with its last buffer until one of them is written to."""
    kept = crd.__dict__.setdefault("_openwork_attention", {})
    key = (key, pos.data_ptr(), version(pos), version(crd))
    entry = kept.get(name)
    if entry is None or entry[0] != key:
        entry = kept[name] = (key, build())
    result: T = entry[1]
    return result


def version(buffer: torch.Tensor) -> int:
    """How often torch wrote to a buffer; it does not count for tensors of inference mode."""
    return 0 if buffer.is_inference() else buffer._version


def elements_of(pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The compressed rows of elements of compressed rows of blocks."""
    if tuple(block) == (1, 1):
        return pos, crd
    return _cached(pos, crd, "elements", tuple(block), lambda: _elements(pos, crd, *block))


def _elements(pos: torch.Tensor, crd: torch.Tensor, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    counts = (pos.diff() * width).repeat_interleave(height)
    wide = torch.cat([pos.new_zeros(1), counts.cumsum(0).to(pos.dtype)])
    columns = (crd[:, None] * width + torch.arange(width, dtype=crd.dtype)).reshape(-1)
    first = (pos[:-1].to(torch.int64) * width).repeat_interleave(height)
    of_row = torch.arange(len(counts)).repeat_interleave(counts.to(torch.int64))
    at = torch.arange(len(of_row)) - wide.to(torch.int64)[of_row] + first[of_row]
    return wide, columns[at]


def packed_of(
    pos: torch.Tensor, crd: torch.Tensor, shape: tuple[int, int], tile: int, group: int, spare: int
) -> Packed:  # fmt: skip
    """`packed`, kept."""
    key = (*shape, tile, group, spare)
    return _cached(pos, crd, "packed", key, lambda: packed(pos, crd, shape, tile, group, spare))


def by_keys_of(pos: torch.Tensor, crd: torch.Tensor, rows: Packed, m: int, group: int) -> Keys:
    """`by_keys` of the packed rows of a mask, kept."""
    return _cached(pos, crd, "keys", (m, group, rows.longest, rows.tiles), lambda: by_keys(rows, m, group))


def groups_of(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], shape: tuple[int, int], size: int
) -> Groups | None:
    """The united keys of each `size` neighbouring queries; None where most of these do not see most of them.

    pos, crd, block : compressed rows of blocks of one mask (n, m) = `shape`, or of several one after the other
    """
    key = (*block, *shape, size)
    return _cached(pos, crd, "groups", key, lambda: _groups(pos, crd, block, shape, size))


def _groups(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], shape: tuple[int, int], size: int
) -> Groups | None:
    height, width = block
    if not len(crd):
        return None
    if height % size == 0 and width % KEYS == 0:
        pos, crd = elements_of(pos, crd, (height // size, width))
        bits = torch.full((len(crd),), (1 << size) - 1, dtype=torch.int32)
        counts = pos.diff().to(torch.int64)
        new = _new(torch.arange(len(counts)).repeat_interleave(counts), crd.to(torch.int64), shape, size, len(counts))
        all_of = torch.tensor([0, 1], dtype=torch.int32)
        spans = counts.to(torch.int32).repeat_interleave(size // ROWS)[:, None] * all_of
        seers = (size * all_of).expand(len(crd) // KEYS, 2).contiguous()
        pos, crd, longest = pos.to(torch.int64), crd.to(torch.int32), int(counts.max())
        return Groups(pos, crd, bits, counts, *new, spans, seers, longest, False)
    pos, crd = elements_of(pos, crd, block)
    if _is_scattered(pos, crd, shape, size):
        return None
    return _united(pos, crd, shape, size)


def _is_scattered(pos: torch.Tensor, crd: torch.Tensor, shape: tuple[int, int], size: int) -> bool:
    """Whether a few groups show that the queries of a group see different keys."""
    count = (len(pos) - 1) // size
    stored = united = 0
    for g in range(0, count, max(1, count // SAMPLES)):
        keys = crd[int(pos[g * size]) : int(pos[(g + 1) * size])]
        stored += len(keys)
        united += size * int(torch.bincount(keys, minlength=1).count_nonzero())
    return stored < SURELY * FILLED * united


def _united(pos: torch.Tensor, crd: torch.Tensor, shape: tuple[int, int], size: int) -> Groups | None:
    n, m = shape
    groups = -(-n // size)
    row = torch.arange(len(pos) - 1).repeat_interleave(pos.diff().to(torch.int64))
    group = row // n * groups + row % n // size
    at, bits = _bits(group * m + crd, (1 << (row % n % size)).to(torch.int32), (len(pos) - 1) // n * groups * m)
    counts = torch.bincount(at // m, minlength=(len(pos) - 1) // n * groups)
    padded = (counts + KEYS - 1) // KEYS * KEYS
    if len(crd) < FILLED * size * int(padded.sum()):
        return None
    first, wide = (torch.cat([x.new_zeros(1), x.cumsum(0)]) for x in (counts, padded))
    of_group = torch.arange(len(padded)).repeat_interleave(padded)
    place = torch.arange(len(of_group)) - wide[of_group]
    source = first[of_group] + place.minimum(counts[of_group] - 1)
    bits = torch.where(place < counts[of_group], bits[source], 0)
    is_partial = bool((bits != (1 << size) - 1).any())
    new = _new(at // m, at % m, shape, size, len(counts))
    seen = (bits.reshape(-1, KEYS, 1) >> torch.arange(size)) & 1 != 0
    united = (at % m)[source].to(torch.int32)
    spans = _spans(seen.reshape(len(bits), -1, ROWS).any(2), of_group, place, len(counts))
    return Groups(wide, united, bits, counts, *new, spans, _seers(seen.any(1)), int(padded.max()), is_partial)


def _spans(seen: torch.Tensor, of_group: torch.Tensor, place: torch.Tensor, groups: int) -> torch.Tensor:
    """The first place in each group that each column of `seen` has, and behind the last one."""
    first = torch.full((groups, seen.shape[1]), len(seen))
    last = torch.zeros_like(first)
    group, place = (x[:, None].expand_as(seen) for x in (of_group, place))
    first.scatter_reduce_(0, group, torch.where(seen, place, len(seen)), "amin")
    last.scatter_reduce_(0, group, torch.where(seen, place + 1, 0), "amax")
    return torch.stack([first, last], 2).to(torch.int32)


def _seers(seen: torch.Tensor) -> torch.Tensor:
    """The first place in each row of `seen`, and behind the last one."""
    places = torch.arange(seen.shape[1])
    first = torch.where(seen, places, seen.shape[1]).amin(1)
    return torch.stack([first, torch.where(seen, places + 1, 0).amax(1)], 1).to(torch.int32)


def _new(
    group: torch.Tensor, key: torch.Tensor, shape: tuple[int, int], size: int, groups: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where each group's keys begin, and the keys, that no group before it in its place has; `group` ascends."""
    n, m = shape
    of_place = group // -(-n // size) * m + key
    first = torch.full((groups // -(-n // size) * m,), len(key))
    first.scatter_reduce_(0, of_place, torch.arange(len(key)), "amin")
    is_first = torch.zeros(len(key) + 1, dtype=torch.bool)
    is_first[first] = True
    at = is_first[:-1].nonzero()[:, 0]
    counts = torch.bincount(group[at], minlength=groups)
    new = torch.cat([key[at], key.new_zeros(1)]).to(torch.int32)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), new


def _bits(keys: torch.Tensor, bits: torch.Tensor, extent: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The different keys, ascending, and the sum of each one's bits."""
    if extent <= 16 * len(keys):
        table = torch.zeros(extent, dtype=torch.int32).index_add_(0, keys, bits)
        at = table.nonzero()[:, 0]
        return at, table[at]
    at, inverse = keys.unique(return_inverse=True)
    return at, torch.zeros(len(at), dtype=torch.int32).index_add_(0, inverse, bits)
