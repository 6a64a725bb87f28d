"""Attention over compressed rows or blocks as operators of torch.library, which torch.compile puts into its graphs.

`openwork::attend` is one kernel for all batches and heads; it keeps the logarithm of each row's sum, from which
`openwork::attend_backward` computes the weights again. A second gradient goes by operations that have gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..codegen import pool
from ..codegen.executable import Executable
from ..interop.constructors import assemble
from ..ops.products.matmul import matmul
from ..ops.products.sddmm import sddmm
from ..ops.reductions.softmax import softmax
from ..runtime.launch import even_bounds
from ..storage.buffers import scalar_of
from ..tensor.tensor import Tensor
from .attend_kernels import GROUP, LANES, ROWS, kernel, suits_tiles

__all__ = ["attention"]

PARALLEL_WORK = 1 << 16
"""Multiplications from which on threads share the rows, as products do."""
PARTS = 8
"""Ranges for each thread, as rows of masks differ in length."""

TILE_BYTES = 1 << 19
"""Keys and values of a tile of columns, which fit the second cache. Of 1 << 14, for the first cache, twice as many
positions were mispredicted as were read faster: 12.8 ns for an element of a random mask of density 0.3, 9.3 without."""
TILE_ELEMENTS = 16
"""Elements of a row in a tile, on average, from which on a tile pays for reading and writing the row's sums."""

_library = torch.library.Library("openwork", "FRAGMENT")
_library.define(
    "attend(Tensor pos, Tensor crd, int[] block, Tensor q, Tensor k, Tensor v, Tensor? keep, float scale)"
    " -> (Tensor, Tensor)"
)
_library.define(
    "attend_backward(Tensor grad, Tensor out, Tensor lse, Tensor pos, Tensor crd, int[] block, Tensor q, Tensor k,"
    " Tensor v, Tensor? keep, float scale) -> (Tensor, Tensor, Tensor)"
)


def attention(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> torch.Tensor:  # fmt: skip
    """Attention of stacks of matrices, (places, n, d), (places, m, d) and (places, m, e), at the elements of a mask.

    pos, crd : compressed rows of blocks of size `block`: of one mask (n, m), or of as many as there are places, one
        after the other, with columns of their own
    keep : what each element's weight is multiplied with, (places, nse) or, of many masks, (1, nse); None for 1
    """
    result: torch.Tensor = torch.ops.openwork.attend(pos, crd, block, q, k, v, keep, scale)[0]
    return result


@torch.library.impl(_library, "attend", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _attend(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v = (x.contiguous() for x in (q, k, v))
    out, lse = q.new_empty(*q.shape[:2], v.shape[2]), q.new_empty(q.shape[:2])
    is_tiled = (block[0], block[1]) != (1, 1) and keep is None and suits_tiles(block, scalar_of(q))
    if not is_tiled:
        pos, crd = _elements(pos, crd, block)
        block = (1, 1)
    kept = [] if keep is None else [keep]
    keys = k.reshape(len(k), -1, block[1], k.shape[2]).mT.contiguous() if is_tiled else k
    _launch("forward", [pos, crd, q, keys, v, *kept, out, lse], (pos, crd, block), scale, (q, k, v))
    return out, lse


@torch.library.impl(_library, "attend_backward", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _attend_backward(
    grad: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, pos: torch.Tensor, crd: torch.Tensor,
    block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v, grad = (x.contiguous() for x in (q, k, v, grad))
    delta = (grad * out).sum(-1)
    pos, crd = _elements(pos, crd, block)
    kept = [] if keep is None else [keep]
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    rows = [pos, crd, q, k, v, *kept, lse, grad, delta, dq]
    _launch("rows", rows, (pos, crd, (1, 1)), scale, (q, k, v))
    of_columns, rows_of, order = _transposed(pos, crd, q.shape[1], k.shape[1])
    kept = [] if keep is None else [keep, order]
    columns = [of_columns, rows_of, q, k, v, *kept, lse, grad, delta, dk, dv]
    _launch("columns", columns, (of_columns, rows_of, (1, 1)), scale, (k, q, v))
    return dq, dk, dv


def _launch(
    kind: str, arrays: list[torch.Tensor], mask: tuple[torch.Tensor, torch.Tensor, Sequence[int]], scale: float,
    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:  # fmt: skip
    """Run a kernel for all groups of rows, in parallel where that is worth it; `operands` are rows, columns, values."""
    pos, crd, block = mask
    of_rows, other, values = operands
    (places, n, d), m, e = of_rows.shape, other.shape[1], values.shape[2]
    rows, stored = len(pos) - 1, len(crd) * block[0] * block[1]
    is_shared, is_tiled = rows * block[0] == n, block[0] * block[1] > 1
    scalar, index = scalar_of(values), "i32" if crd.dtype == torch.int32 else "i64"
    has_keep = len(arrays) > {"forward": 7, "rows": 9, "columns": 10}[kind]
    made: Executable = kernel(kind, scalar, index, d, e, has_keep, (block[0], block[1]))
    longest = (int(pos.diff().max()) if rows else 0) * block[1] + LANES[scalar]
    groups = -(-n // GROUP)
    count = places * n // ROWS if is_tiled else places * groups
    tile = _columns_of_a_tile(stored / max(rows, 1) / max(m, 1), m, (d + e) * values.element_size())
    numbers = [n, m, rows, stored if is_shared else 0, longest, groups, tile, scale]
    words = made.pack([*arrays, *numbers])
    work = stored * (places if is_shared else 1) * (d + e)
    threads = pool.get_num_threads() if work >= PARALLEL_WORK else 1
    if threads == 1:
        made.run_sized(work, words, 0, count)
    else:
        pool.parallel(made, words, even_bounds(0, count, min(count, PARTS * threads)), work)


def _columns_of_a_tile(density: float, m: int, width: int) -> int:
    """Columns whose keys and values fill the first cache; all where a query has too few of these to gain by that."""
    fitting = max(1, TILE_BYTES // width)
    return fitting if density * fitting >= TILE_ELEMENTS else m


def _cached(crd: torch.Tensor, name: str, key: Any, build: Any) -> Any:
    """What is computed of a mask, kept with its last buffer."""
    kept = crd.__dict__.setdefault("_openwork_attention", {})
    entry = kept.get(name)
    if entry is None or entry[0] != key:
        entry = kept[name] = (key, build())
    return entry[1]


def _elements(pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The compressed rows of elements of compressed rows of blocks."""
    height, width = block
    if (height, width) == (1, 1):
        return pos, crd

    def build() -> tuple[torch.Tensor, torch.Tensor]:
        counts = (pos.diff() * width).repeat_interleave(height)
        wide = torch.cat([pos.new_zeros(1), counts.cumsum(0).to(pos.dtype)])
        columns = (crd[:, None] * width + torch.arange(width, dtype=crd.dtype)).reshape(-1)
        first = (pos[:-1].to(torch.int64) * width).repeat_interleave(height)
        of_row = torch.arange(len(counts)).repeat_interleave(counts.to(torch.int64))
        at = torch.arange(len(of_row)) - wide.to(torch.int64)[of_row] + first[of_row]
        return wide, columns[at]

    result: tuple[torch.Tensor, torch.Tensor] = _cached(crd, "elements", (pos.data_ptr(), height, width), build)
    return result


def _transposed(
    pos: torch.Tensor, crd: torch.Tensor, n: int, m: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compressed columns: pos, rows, and each element's number in the compressed rows; of each mask on its own."""

    def build() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        masks = (len(pos) - 1) // max(n, 1)
        row = torch.arange(len(pos) - 1).repeat_interleave(pos.diff().to(torch.int64))
        column = row // max(n, 1) * m + crd
        order = column.argsort(stable=True)
        of_columns = torch.zeros(masks * m + 1, dtype=torch.int64)
        of_columns[1:] = torch.bincount(column, minlength=masks * m).cumsum(0)
        return of_columns.to(pos.dtype), (row % max(n, 1))[order].to(crd.dtype), order

    result: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = _cached(crd, "columns", (pos.data_ptr(), n, m), build)
    return result


@torch.library.register_fake("openwork::attend", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    return q.new_empty((*q.shape[:2], v.shape[2])), q.new_empty(q.shape[:2])


@torch.library.register_fake("openwork::attend_backward", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake_backward(
    grad: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, pos: torch.Tensor, crd: torch.Tensor,
    block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    return q, k, v


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    pos, crd, ctx.block, q, k, v, keep, ctx.scale = inputs
    ctx.save_for_backward(pos, crd, q, k, v, keep, *output)
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, grad: torch.Tensor, _: Any) -> Any:
    pos, crd, q, k, v, keep, out, lse = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        with torch.enable_grad():
            composed = _composed(*_elements(pos, crd, ctx.block), q, k, v, keep, ctx.scale)
            needed = [x for x in (q, k, v) if x.requires_grad]
            found = iter(torch.autograd.grad(composed, needed, grad, create_graph=True))
        gradients = [next(found) if x.requires_grad else None for x in (q, k, v)]
    else:
        arguments = (pos, crd, ctx.block, q, k, v, keep, ctx.scale)
        gradients = list(torch.ops.openwork.attend_backward(grad, out, lse, *arguments))
    return None, None, None, *gradients, None, None


torch.library.register_autograd("openwork::attend", _backward, setup_context=_setup, lib=_library)


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
