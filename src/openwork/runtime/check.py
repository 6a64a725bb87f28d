"""A storage -> whether its invariants hold: O(1) ones always, O(nse) ones by compiled kernels; faults are located."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import tuning
from ..codegen import cache
from ..codegen.launcher import bound
from ..codegen.plan_cache import PlanCache
from ..compiler.invariant_checks import Chain, ChainLevel, kernel
from ..errors import InvariantError, UnsupportedError
from ..storage.buffers import address, is_contiguous, is_torch, length, scalar_of
from ..storage.exact import check_indices
from ..storage.invariants import check_layout
from ..storage.recorded import is_transformed
from ..storage.scalars import python_scalar
from ..storage.storage import Storage

if TYPE_CHECKING:
    from ..codegen.executable import Executable
    from ..format.level import LevelFormat

__all__ = ["PreparedCheck", "check", "holds", "passes", "prepared_check", "renewed"]

SHORT = tuning.SHORT_CALL

SMALL = tuning.CHECK_IN_NUMPY
PATIENCE = tuning.CHECK_PATIENCE

_DENSE = "parents * N"
"""Positions of a level that has one for each coordinate of each parent."""
_kernels: PlanCache[Chain, Executable] = PlanCache("kernels of checks")
_prepared: PlanCache[Any, PreparedCheck] = PlanCache("checks", 256)
"""by format, shape and types of the buffers"""
_requests: Counter[Chain] = Counter()


def check(storage: Storage, indices: bool = True) -> None:
    """Check every invariant; without `indices`, those that cost O(1).

    Raises InvariantError with number, buffer, first offending position and value.
    Cost: O(1), and with `indices` O(nse): two passes over pos and one over crd, nothing allocated.
    """
    if indices and passes(storage):
        return
    check_layout(storage)
    if indices and _by_kernels(storage) is not True:
        check_indices(storage)


def passes(storage: Storage) -> bool:
    """Whether every invariant holds, by a check that was prepared for this format, shape and these types; False where
    there is none, or an invariant is broken: `check` reports which.

    Cost: one kernel. 3 microseconds for a small tensor, where all stages of `check` take 30.
    """
    edges = prepared_check(storage)
    return edges is not None and edges.hold(storage)


def prepared_check(storage: Storage) -> PreparedCheck | None:
    """The check that was prepared for this format, shape and these types; None where there is none."""
    key = _key(storage)
    return None if key is None else _prepared.get(key)


def renewed(storage: Storage) -> Storage:
    """A storage over buffers that have changed since they were checked, checked again.

    Raises InvariantError where memory is gone, or what the buffers hold now breaks an invariant.
    """
    names = storage.changed()
    scalar = scalar_of(storage.values)
    storage_now = Storage(
        storage.shape, storage.format, scalar, python_scalar(storage.fill_value, scalar), storage.pos, storage.crd,
        storage.values,
    )  # fmt: skip
    try:
        check(storage_now, any(name != "values" for name in names))
    except InvariantError as error:
        text = f"{error}\n  note: {', '.join(names)} changed after the tensor was made; make it anew, or of clones"
        raise InvariantError(text) from None
    return storage_now


def holds(storage: Storage) -> bool:
    """Whether the 5.x invariants hold of a storage whose O(1) invariants do."""
    passed = _by_kernels(storage)
    if passed is not None:
        return passed
    try:
        check_indices(storage)
    except InvariantError:
        return False
    return True


class _Launch(NamedTuple):
    chain: Chain
    words: list[int]


class PreparedCheck(NamedTuple):
    """A prepared check of a format with one chain of index buffers: compressed, then singletons, then dense levels."""

    at: int
    """the chain's first level"""
    parents: int
    limit: int | None
    """children of one parent at most; None: all"""
    ends: tuple[int, ...]
    """lowest and highest + 1 coordinate of each level of the chain"""
    factor: int
    """values of each stored coordinate"""
    kernel: Executable
    start: Callable[..., int] | None
    """the kernel as a function of pos, crd of each level, coordinates, children of one parent and result"""

    def hold(self, storage: Storage) -> bool:
        """Whether every invariant holds of a storage of this format and shape over arrays of these types."""
        pos, crds = storage.pos[self.at], storage.crd[self.at : self.at + len(self.ends) // 2]
        n = crds[0].shape[0]  # type: ignore[union-attr]
        if not (_is_flat(pos, self.parents + 1) and _is_flat(storage.values, n * self.factor)):
            return False
        for crd in crds:
            if not _is_flat(crd, n):
                return False
        return self.pass_at(address(pos), list(map(address, crds)), n)

    def pass_at(self, pos: Any, crds: Sequence[Any], n: int) -> bool:
        """Whether every invariant holds of index buffers, NumPy's or at addresses, with n coordinates on each level."""
        out = np.zeros(1, np.int64)
        limit = n if self.limit is None else self.limit
        if self.start is not None and n * (self.factor + 1) < SHORT:
            if code := self.start(pos, *crds, n, limit, out):
                self.kernel.fail(code)
            return not out[0]
        pos, *crds = (x if isinstance(x, int) else address(x) for x in (pos, *crds))
        arguments = (pos, *crds, 1, self.parents, n, limit, 0, *self.ends, address(out))
        self.kernel.run_sized(self.parents + n + n * self.factor, arguments)
        return not out[0]


def _is_flat(buffer: Any, size: int) -> bool:
    """Whether an array has one dimension of this extent, without gaps."""
    return bool(buffer.shape == (size,) and is_contiguous(buffer))


def _key(storage: Storage) -> tuple[Any, ...] | None:
    """The key of a prepared check; None for buffers that are no plain arrays in memory."""
    key: list[Any] = [storage.format, storage.shape, storage.scalar]
    for buffer in (*storage.pos, *storage.crd, storage.values):
        if type(buffer) is np.ndarray:
            key.append(buffer.dtype)
        elif buffer is None:
            key.append(None)
        elif is_torch(buffer) and buffer.is_cpu and not is_transformed(buffer):
            key.append(buffer.dtype)
        else:
            return None
    for n in storage.shape:
        if type(n) is not int:
            return None
    return tuple(key)


def _prepare(storage: Storage, launches: Sequence[_Launch]) -> None:
    """Keep a prepared check for storages like this one, which has passed, if its indices are a single chain."""
    key = _key(storage)
    if key is None or len(launches) != 1 or launches[0].chain.kind != "edges" or storage.format.batch_ndim:
        return
    (chain, _), levels = launches[0], storage.format.levels
    at = next(k for k, crd in enumerate(storage.crd) if crd is not None)
    chain_end = at + len(chain.levels)
    spans = storage.format.level_intervals(storage.shape)
    is_dense = all(levels[k].format.functions.positions == _DENSE for k in (*range(at), *range(chain_end, len(levels))))
    if not is_dense or any(
        b is not None for b in (*storage.pos[:at], *storage.pos[at + 1 :], *storage.crd[chain_end:])
    ):
        return
    parents = math.prod(hi - lo for lo, hi in spans[:at])
    limit = spans[at][1] - spans[at][0] if levels[at].format.unique else None
    factor = math.prod(hi - lo for lo, hi in spans[chain_end:])
    ends = tuple(end for span in spans[at:chain_end] for end in span)
    executable = _kernel(chain)
    buffers = 1 + len(chain.levels)
    fixed = [*[0] * buffers, 1, parents, 0, 0, 0, *ends, 0]
    slots = [*range(buffers), buffers + 2, buffers + 3, len(fixed) - 1]
    start = bound(executable, fixed, slots) if parents < SHORT else None
    _prepared.keep(key, PreparedCheck(at, parents, limit, ends, factor, executable, start))


def _by_kernels(storage: Storage) -> bool | None:
    """Whether compiled kernels find no fault; None where none are used: small tensors, CUDA, below padded levels."""
    if storage.device != "cpu":
        return None
    launches = list(_launches(storage))
    if any(_needs_search(x.chain) for x in launches):
        return None
    small = sum(length(b) for b in (*storage.pos, *storage.crd) if b is not None) <= SMALL
    if small and not all(_is_wanted(x.chain) for x in launches):
        return None
    work, out = sum(storage.positions) + length(storage.values), np.zeros(1, np.int64)
    for chain, words in launches:
        _kernel(chain).run_sized(work, [*words, address(out)])
        if out[0]:
            padded = any(level.format.functions.padded for level in storage.format.levels)
            return None if padded else False
    _prepare(storage, launches)
    return True


def _is_wanted(chain: Chain) -> bool:
    """Whether a small tensor is checked by a kernel: it is at hand, or was requested often.

    The disk is asked at the second request: many a structure is checked once in a program.
    """
    if chain in _kernels:
        return True
    _requests[chain] += 1
    if _requests[chain] == 2 and (found := cache.at_hand(chain.key, lambda: kernel(chain))) is not None:
        _kernels.keep(chain, found)
        return True
    return _requests[chain] > PATIENCE


def _kernel(chain: Chain) -> Executable:
    executable = _kernels.get(chain)
    if executable is None:
        executable = _kernels.keep(chain, cache.get(chain.key, lambda: kernel(chain)))
    return executable


def _needs_search(chain: Chain) -> bool:
    """Whether distinctness has to be checked where no order shows it."""
    if chain.kind in ("bits", "one"):
        return False
    return any(x.unique and not all(y.ordered for y in chain.levels[: k + 1]) for k, x in enumerate(chain.levels))


def _launches(storage: Storage) -> Iterator[_Launch]:
    """One launch per chain, from the root down."""
    format, slices = storage.format, storage.batches
    intervals, levels = format.level_intervals(storage.shape), format.levels
    counts = [n // slices if slices else 0 for n in storage.positions]
    at = format.batch_ndim
    while at < len(levels):
        level, crd, begin = levels[at].format, storage.crd[at], at
        at += 1
        if crd is None:
            continue
        pos = storage.pos[begin]
        kind = _kind(level)
        while at < len(levels) and levels[at].format.is_singleton and kind not in ("sentinel", "bits"):
            at += 1
        chain = tuple(
            ChainLevel("u8" if kind == "bits" else scalar_of(storage.crd[k]), x.format.unique, x.format.ordered)
            for k, x in enumerate(levels[begin:at], begin)
        )
        parents = counts[begin - 1] if begin > format.batch_ndim else 1
        lo, hi = intervals[begin]
        limit = hi - lo if level.unique else counts[begin]
        width = counts[begin] // parents if kind in ("slots", "sentinel") and parents else 0
        words = [] if pos is None else [address(pos)]
        words += [address(storage.crd[k]) for k in range(begin, at)]
        words += [slices, parents, counts[begin], limit, width]
        words += [end for k in range(begin, at) for end in intervals[k]]
        yield _Launch(Chain(kind, chain, None if pos is None else scalar_of(pos)), words)


def _kind(level: LevelFormat) -> str:
    if level.is_bitmap:
        return "bits"
    if level.slots is not None:
        return "sentinel" if level.has_sentinel else "slots"
    if level.is_singleton:
        return "one"
    if level.is_compressed or level.is_loose:
        return "edges" if level.is_compressed else "pairs"
    raise UnsupportedError(
        f"no check of the coordinates of {level}\n  expected: bits, slots, one child, or children that pos bounds"
        "\n  help: check=False where the buffers are known to be right"
    )
