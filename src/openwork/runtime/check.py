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
    from ..format.format import Format
    from ..format.level import LevelFormat

__all__ = ["CheckPlan", "check", "check_plan", "holds", "passes", "renewed"]

SHORT = tuning.SHORT_CALL

SMALL = tuning.CHECK_IN_NUMPY
PATIENCE = tuning.CHECK_PATIENCE

_DENSE = "parents * N"
"""Positions of a level that has one for each coordinate of each parent."""
_kernels: PlanCache[Chain, Executable] = PlanCache("kernels of checks")
_WIDE = 2**31
"""The largest extent of which the ends of all levels, which may add two, are sure to be 64 bits wide."""
_plans: PlanCache[Any, CheckPlan] = PlanCache("checks", 256)
"""by format and types of the buffers"""
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
    """Whether every invariant holds, by the plan for this format and these types; False where there is none, or an
    invariant is broken: `check` reports which.

    Cost: one kernel. 3 microseconds for a small tensor, where all stages of `check` take 30.
    """
    plan = check_plan(storage)
    return plan is not None and plan.hold(storage)


def check_plan(storage: Storage) -> CheckPlan | None:
    """The check of all storages of this format and these types; None where there is none."""
    key = _key(storage)
    return None if key is None else _plans.get(key)


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


class CheckPlan(NamedTuple):
    """A check of all storages of one format and types, whose indices are one chain: a compressed level, then
    singletons; all other levels store each coordinate."""

    format: Format
    at: int
    """the chain's first level"""
    end: int
    """the level behind the chain's last"""
    unique: bool
    """whether the chain's first level has at most one child for each coordinate"""
    kernel: Executable
    start: Callable[..., int] | None
    """the kernel as a function of pos, crd of each level, parents, coordinates, children of one parent, ends, result"""

    def hold(self, storage: Storage) -> bool:
        """Whether every invariant holds of a storage of this format over arrays of these types.

        False of a shape or lengths that are no tensor's: `check` says what is wrong with them.
        """
        shape, at, end = storage.shape, self.at, self.end
        if len(shape) != len(self.format.dims):
            return False
        for n in shape:
            if type(n) is not int or not 0 <= n <= _WIDE:
                return False
        spans = self.format.level_intervals(shape)
        extents = [hi - lo for lo, hi in spans]
        parents, factor = math.prod(extents[:at]), math.prod(extents[end:])
        buffers: list[Any] = [storage.pos[at], *storage.crd[at:end]]
        first = buffers[1].shape
        n = first[0] if first else -1
        for buffer, size in zip((*buffers, storage.values), (parents + 1, *[n] * (end - at), n * factor), strict=True):
            if buffer.shape != (size,) or not is_contiguous(buffer):
                return False
        if type(buffers[0]) is not np.ndarray:
            buffers = [address(x) for x in buffers]
        out = np.zeros(1, np.int64)
        limit, ends = extents[at] if self.unique else n, sum(spans[at:end], ())
        if self.start is not None and parents + n * (factor + 1) < SHORT:
            if code := self.start(*buffers, parents, n, limit, *ends, out):
                self.kernel.fail(code)
        else:
            words = (*map(_word, buffers), 1, parents, n, limit, 0, *ends, address(out))
            self.kernel.run_sized(parents + n + n * factor, words)
        return not out[0]


def _word(buffer: Any) -> int:
    return buffer if isinstance(buffer, int) else address(buffer)


def _key(storage: Storage) -> tuple[Any, ...] | None:
    """Format and types of the buffers, by which a plan is kept; None for buffers that are no plain arrays in memory."""
    key: list[Any] = [storage.format.number, storage.scalar]
    for buffer in (*storage.pos, *storage.crd, storage.values):
        if type(buffer) is np.ndarray:
            key.append(buffer.dtype)
        elif buffer is None:
            key.append(None)
        elif is_torch(buffer) and buffer.is_cpu and not is_transformed(buffer):
            key.append(buffer.dtype)
        else:
            return None
    return tuple(key)


def _keep_plan(storage: Storage, launches: Sequence[_Launch]) -> None:
    """Keep the plan for storages like this one, which has passed, if its indices are a single chain."""
    key, format = _key(storage), storage.format
    if key is None or len(launches) != 1 or launches[0].chain.kind != "edges" or format.batch_ndim:
        return
    chain, levels = launches[0].chain, format.levels
    at = next(k for k, crd in enumerate(storage.crd) if crd is not None)
    end = at + len(chain.levels)
    is_dense = all(levels[k].format.functions.positions == _DENSE for k in (*range(at), *range(end, len(levels))))
    if not is_dense or any(b is not None for b in (*storage.pos[:at], *storage.pos[at + 1 :], *storage.crd[end:])):
        return
    executable, buffers, ends = _kernel(chain), 1 + len(chain.levels), 2 * len(chain.levels)
    words = [*[0] * buffers, 1, *[0] * (4 + ends), 0]
    slots = [*range(buffers), *range(buffers + 1, buffers + 4), *range(buffers + 5, len(words))]
    start = bound(executable, words, slots)
    _plans.keep(key, CheckPlan(format, at, end, levels[at].format.unique, executable, start))


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
    _keep_plan(storage, launches)
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
