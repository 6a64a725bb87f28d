"""Attention over compressed rows or blocks as an operation of torch, recorded, and transformed by torch.func.

It is one kernel for all batches and heads, and keeps the logarithm of each row's sum, from which its gradient computes
the weights again. A second gradient, and one in forward mode, go by operations that have gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from .. import Tensor, UnsupportedError, assemble, matmul, sddmm, softmax
from ..checked import bounded
from ..codegen import pool
from ..codegen.executable import Executable
from ..runtime.launch import bits, even_bounds
from ..storage.buffers import scalar_of
from ..storage.recorded import is_transformed
from ..torch.gradients.function import Rule, apply_rule
from .attend_kernels import kernel, tile_kernel
from .attend_packed import biases
from .attend_structure import Groups, by_keys_of, elements_of, groups_of, packed_of
from .attend_vectors import lanes_of, size_of_a_group

__all__ = ["attend_backward", "attend_forward", "attention", "is_eager"]

PARALLEL_WORK = 1 << 16
"""Multiplications from which on threads share the rows, as products do."""
VECTOR = 8
"""Multiplications that take about as long as an element of other work."""
GROUP = 64
"""Queries whose scores stand in the workspace."""
PARTS = 8
"""Ranges for each thread, as rows of masks differ in length."""

TILE_BYTES = 3 << 14
"""Keys or values of a tile of columns, which fit the first cache."""
TILE_ELEMENTS = 48
"""Elements of a row in a tile, on average, from which on a tile pays for reading and writing the row's sums."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_address = bounded(torch.Tensor.data_ptr)


def attention(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> torch.Tensor:  # fmt: skip
    """Attention of stacks of matrices, (places, n, d), (places, m, d) and (places, m, e), at the elements of a mask.

    pos, crd : compressed rows of blocks of size `block`: of one mask (n, m), or of as many as there are places, one
        after the other, with columns of their own
    keep : what each element's weight is multiplied with, (places, nse or more) or, of many masks, (1, nse); None for 1
    """
    result: torch.Tensor
    if torch.autograd.forward_ad._current_level >= 0:
        return _composed(*elements_of(pos, crd, block), q, k, v, keep, scale)
    if not is_eager(q, k, v) or (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)):
        result = apply_rule(_Attention(_Mask(pos, crd, block, scale)), q, k, v, keep)[0]
    else:
        result = attend_forward(pos, crd, block, q, k, v, keep, scale)[0]
    return result


def is_eager(*operands: torch.Tensor) -> bool:
    """Whether these are plain tensors in memory, of no transform: no dispatcher need see the operation, which takes
    0.1 ms."""
    return all(type(x) in _PLAIN and x.is_cpu and not is_transformed(x) for x in operands)


def attend_forward(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v = (x.contiguous() for x in (q, k, v))
    keep = None if keep is None else keep.contiguous()
    out, lse = q.new_empty(*q.shape[:2], v.shape[2]), q.new_empty(q.shape[:2])
    groups = None if keep is not None else _groups(pos, crd, block, q, k)
    if groups is not None:
        launch, flags = _tiles("forward", groups, [out, lse], scale, (q, k, v))
        _run(launch)
        if not (groups.is_partial and flags.any()):
            return out, lse
    pos, crd = elements_of(pos, crd, block)
    _run(_by_rows("forward", pos, crd, keep, [out, lse], scale, (q, k, v)))
    return out, lse


def attend_backward(
    grad: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, pos: torch.Tensor, crd: torch.Tensor,
    block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v, grad, out, lse = (x.contiguous() for x in (q, k, v, grad, out, lse))
    keep = None if keep is None else keep.contiguous()
    dq = torch.empty_like(q)
    groups = None if keep is not None else _groups(pos, crd, block, q, k)
    if groups is not None:
        launch, flags = _tiles("backward", groups, [lse, grad, out, dq], scale, (q, k, v))
        dk, dv = _accumulated(launch, k, v)
        if not (groups.is_partial and flags.any()):
            return dq, dk, dv
    pos, crd = elements_of(pos, crd, block)
    dk, dv = _accumulated(_by_rows("backward", pos, crd, keep, [lse, grad, out, dq], scale, (q, k, v)), k, v)
    return dq, dk, dv


def _groups(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor
) -> Groups | None:
    """The unions that the kernels in tiles read, of the mask of these queries and keys."""
    return groups_of(pos, crd, block, (q.shape[1], k.shape[1]), size_of_a_group(scalar_of(q)))


@dataclass(frozen=True, slots=True)
class _Launch:
    """A kernel and its arguments, all but those of dk and dv; groups of a place, places, and all multiplications."""

    kernel: Executable
    arrays: list[torch.Tensor]
    numbers: list[int]
    scale: int
    groups: int
    places: int
    work: int

    def words(self, *more: torch.Tensor) -> list[int]:
        """The kernel's arguments: the addresses of arrays, and numbers."""
        return [*map(_address, self.arrays), *map(_address, more), *self.numbers, self.scale]


def _tiles(
    kind: str, groups: Groups, arrays: list[torch.Tensor], scale: float,
    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[_Launch, torch.Tensor]:  # fmt: skip
    """The launch of a kernel in register tiles, and where it writes which groups met what is not finite: infinities and
    NaN of keys that a query does not see count too. `operands` are queries, keys, values."""
    q, k, v = operands
    (places, n, d), m, e = q.shape, k.shape[1], v.shape[2]
    scalar, rows = scalar_of(v), len(groups.pos) - 1
    size = size_of_a_group(scalar)
    of_place = -(-n // size)
    more = [groups.counts] if kind == "backward" else []
    numbers = [n, m, rows, groups.longest, of_place]
    work = len(groups.crd) * size * places * of_place // rows * (d + e)
    flags = v.new_empty(places * of_place)
    structure = [groups.pos, groups.crd, groups.bits, groups.first_new, groups.new, groups.spans, groups.seers]
    arrays = [*structure, *operands, flags, *more, *arrays]
    return _Launch(
        tile_kernel(kind, scalar, lanes_of(scalar), d, e), arrays, numbers, bits(scale, scalar), of_place, places, work
    ), flags


def _by_rows(
    kind: str, pos: torch.Tensor, crd: torch.Tensor, keep: torch.Tensor | None, arrays: list[torch.Tensor],
    scale: float, operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> _Launch:  # fmt: skip
    """The launch of a kernel by rows; `operands` are queries, keys, values."""
    q, k, v = operands
    (places, n, d), m, e = q.shape, k.shape[1], v.shape[2]
    rows, stored = len(pos) - 1, len(crd)
    is_shared = rows == n
    tile = _columns_of_a_tile(stored / max(rows * m, 1), m, max(d, e) * v.element_size())
    scalar = scalar_of(v)
    lanes = lanes_of(scalar)
    packed = packed_of(pos, crd, (n, m), tile, GROUP, lanes)
    by_keys = []
    if kind == "backward":
        keys = by_keys_of(pos, crd, packed, m, GROUP)
        by_keys = [keys.first, keys.columns, keys.starts, keys.at, keys.of_row]
    of_place = -(-n // GROUP)
    dropped = [] if keep is None else [keep.index_select(1, packed.source)]
    numbers = [n, m, rows, len(packed.source), packed.longest, of_place, GROUP, packed.tiles]
    structure = [packed.crd, packed.cuts, packed.offsets, packed.copies, packed.counts, biases(v.dtype), *by_keys]
    arrays = [*structure, *operands, *dropped, *arrays]
    work = stored * (places if is_shared else 1) * (d + e)
    made = kernel(kind, scalar, lanes, d, e, keep is not None)
    return _Launch(made, arrays, numbers, bits(scale, scalar), of_place, places, work)


def _run(launch: _Launch) -> None:
    """Run a kernel for all groups, in parallel where that is worth it."""
    threads = pool.get_num_threads() if launch.work >= PARALLEL_WORK else 1
    words, count = launch.words(), launch.groups * launch.places
    if threads == 1:
        launch.kernel.run_sized(launch.work // VECTOR, words, 0, count)
    else:
        pool.parallel(launch.kernel, words, even_bounds(0, count, min(count, PARTS * threads)), launch.work // VECTOR)


def _accumulated(launch: _Launch, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Run a kernel for all groups, and what it adds to dk and dv: a place on one thread, or in copies of these."""
    threads = pool.get_num_threads() if launch.work >= PARALLEL_WORK else 1
    groups, places = launch.groups, launch.places
    if not groups:
        return torch.zeros_like(k), torch.zeros_like(v)
    if threads == 1 or places % threads == 0 or places >= PARTS * threads:
        dk, dv = torch.empty_like(k), torch.empty_like(v)
        words = launch.words(dk, dv)
        if threads == 1:
            launch.kernel.run_sized(launch.work // VECTOR, words, 0, groups * places)
        else:
            bounds = [groups * at for at in even_bounds(0, places, min(places, PARTS * threads))]
            pool.parallel(launch.kernel, words, bounds, launch.work // VECTOR)
        return dk, dv
    copies = [(torch.zeros_like(k), torch.zeros_like(v)) for _ in range(threads)]
    ends = even_bounds(0, groups * places, threads)
    pool.parallel_private(launch.kernel, [launch.words(*copy) for copy in copies], list(pairwise(ends)))
    for dk, dv in copies[1:]:
        copies[0][0].add_(dk)
        copies[0][1].add_(dv)
    return copies[0]


def _columns_of_a_tile(density: float, m: int, width: int) -> int:
    """Columns whose keys fit a cache; more where a query has too few of these to gain by that."""
    tile = max(1, TILE_BYTES // max(width, 1))
    while density * tile < TILE_ELEMENTS and tile < m:
        tile *= 2
    return min(tile, max(m, 1))


@dataclass(frozen=True, slots=True)
class _Mask:
    """What a rule of attention holds: the mask's structure, and what scores are multiplied with."""

    pos: torch.Tensor
    crd: torch.Tensor
    block: Sequence[int]
    scale: float


class _Attention(Rule):
    """The operation of queries, keys, values and what weights are multiplied with; `torch.vmap` is more places."""

    __slots__ = ("mask",)

    def __init__(self, mask: _Mask) -> None:
        self.mask = mask

    def forward(self, q: Any, k: Any, v: Any, keep: Any) -> tuple[torch.Tensor, torch.Tensor]:
        m = self.mask
        return attend_forward(m.pos, m.crd, m.block, q, k, v, keep, m.scale)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return *tensors, *output

    def constant(self, output: Any) -> Sequence[torch.Tensor]:
        return (output[1],)

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        q, k, v, keep, out, lse = saved
        m, g = self.mask, grad[0]
        gradients: Sequence[torch.Tensor | None]
        if not is_eager(g, q, k, v):
            gradients = apply_rule(_Gradients(m), g, out, lse, q, k, v, keep)
        elif torch.is_grad_enabled():
            gradients = _composed_gradients(g, m.pos, m.crd, m.block, q, k, v, keep, m.scale)
        else:
            gradients = attend_backward(g, out, lse, m.pos, m.crd, m.block, q, k, v, keep, m.scale)
        return *gradients, None

    def batch(self, size: int, dims: Sequence[Any], tensors: Sequence[Any]) -> Any:
        return _in_more_places(self, size, dims, tensors)


class _Gradients(Rule):
    """The gradients as transforms take them; their own go by `_composed`, in eager code alone."""

    __slots__ = ("mask",)

    def __init__(self, mask: _Mask) -> None:
        self.mask = mask

    def forward(self, grad: Any, out: Any, lse: Any, q: Any, k: Any, v: Any, keep: Any) -> Any:
        m = self.mask
        return attend_backward(grad, out, lse, m.pos, m.crd, m.block, q, k, v, keep, m.scale)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return ()

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        raise UnsupportedError(
            "attend: a second derivative by transforms of torch.func"
            "\n  help: torch.autograd.grad(..., create_graph=True)"
        )

    def batch(self, size: int, dims: Sequence[Any], tensors: Sequence[Any]) -> Any:
        return _in_more_places(self, size, dims, tensors)


def _in_more_places(rule: Rule, size: int, dims: Sequence[Any], tensors: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The values of `size` calls as those of one: the places of each, one after the other."""
    flat = []
    for x, dim in zip(tensors, dims, strict=True):
        if x is not None:
            stacked = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            x = stacked.reshape(-1, *stacked.shape[2:])
        flat.append(x)
    return tuple([x.reshape(size, x.shape[0] // size, *x.shape[1:]) for x in apply_rule(rule, *flat)])


def _composed_gradients(
    grad: torch.Tensor, pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor,
    v: torch.Tensor, keep: torch.Tensor | None, scale: float,
) -> list[torch.Tensor | None]:  # fmt: skip
    with torch.enable_grad():
        composed = _composed(*elements_of(pos, crd, block), q, k, v, keep, scale)
        needed = [x for x in (q, k, v) if x.requires_grad]
        found = iter(torch.autograd.grad(composed, needed, grad, create_graph=True))
    return [next(found) if x.requires_grad else None for x in (q, k, v)]


def _composed(
    pos: torch.Tensor, crd: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> torch.Tensor:  # fmt: skip
    """The same by operations that have gradients of any order, one place after another."""
    results = []
    for place in range(len(q)):
        mask, first = _mask_of(pos, crd, place, q.shape[1], k.shape[1])
        weights = softmax(sddmm(mask, q[place] * scale, k[place].T), -1)
        if keep is not None:
            of_mask = keep[place % len(keep)][first : first + weights.nse]
            weights = weights.with_values(weights.values * of_mask)
        results.append(matmul(weights, v[place]))
    return torch.stack(results)


def _mask_of(pos: torch.Tensor, crd: torch.Tensor, place: int, n: int, m: int) -> tuple[Tensor, int]:
    """The mask of a place, and the number of its first element."""
    at = place * n if len(pos) - 1 > n else 0
    first, last = int(pos[at]), int(pos[at + n])
    values = torch.ones(last - first, dtype=torch.bool)
    rows, columns = {1: pos[at : at + n + 1] - first}, {1: crd[first:last]}
    mask: Tensor = assemble("csr", (n, m), pos=rows, crd=columns, values=values, check=False)
    return mask, first
