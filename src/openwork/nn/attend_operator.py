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
from ..storage.recorded import is_recorded
from ..tensor.tensor import Tensor
from .attend_kernels import GROUP, kernel, tile_kernel
from .attend_structure import Groups, columns_of, cuts_of, elements_of, groups_of
from .attend_tiles import LANES, lanes_of_a_group

__all__ = ["attention"]

PARALLEL_WORK = 1 << 16
"""Multiplications from which on threads share the rows, as products do."""
VECTOR = 8
"""Multiplications that take about as long as an element of other work."""
PARTS = 8
"""Ranges for each thread, as rows of masks differ in length."""

TILE_BYTES = (1 << 14, 1 << 18)
"""Keys or values of a tile of columns, which fit the first cache, or the second."""
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
    arguments = (pos, crd, block, q, k, v, keep, scale)
    if not torch.compiler.is_compiling() and not torch._C._len_torch_dispatch_stack() and _is_plain(q, k, v):
        return _attend(*arguments)[0]
    result: torch.Tensor = torch.ops.openwork.attend(*arguments)[0]
    return result


def _is_plain(*operands: torch.Tensor) -> bool:
    """Whether nothing records the operation, so that no dispatcher need see it: that takes 0.1 ms."""
    return all(type(x) is torch.Tensor and x.device.type == "cpu" and not is_recorded(x) for x in operands)


@torch.library.impl(_library, "attend", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _attend(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v = (x.contiguous() for x in (q, k, v))
    out, lse = q.new_empty(*q.shape[:2], v.shape[2]), q.new_empty(q.shape[:2])
    groups = None if keep is not None else _groups(pos, crd, block, (q, k))
    if groups is not None:
        _launch_tiles("forward", groups, [q, k, v, out, lse], scale, (q, k, v))
        if not (groups.is_partial and _is_nonfinite(out)):
            return out, lse
    pos, crd = elements_of(pos, crd, block)
    kept = [] if keep is None else [keep]
    _launch("forward", [pos, crd, q, k, v, *kept, out, lse], scale, (q, k, v))
    return out, lse


def _is_nonfinite(*results: torch.Tensor) -> bool:
    """Whether results may have infinity or NaN, which may come of keys that a query does not see: 0 * NaN is NaN."""
    return not all(bool(x.sum().isfinite()) for x in results)


@torch.library.impl(_library, "attend_backward", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _attend_backward(
    grad: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, pos: torch.Tensor, crd: torch.Tensor,
    block: Sequence[int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, keep: torch.Tensor | None, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v, grad = (x.contiguous() for x in (q, k, v, grad))
    delta = (grad * out).sum(-1)
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    groups = None if keep is not None else _groups(pos, crd, block, (q, k))
    pos, crd = elements_of(pos, crd, block)
    of_columns, rows_of, order = columns_of(pos, crd, q.shape[1], k.shape[1])
    if groups is not None:
        transposed = _groups(of_columns, rows_of, (1, 1), (k, q))
        given = [q, k, v, lse, grad, delta]
        if transposed is not None:
            _launch_tiles("rows", groups, [*given, dq], scale, (q, k, v))
            _launch_tiles("columns", transposed, [*given, dk, dv], scale, (k, q, v))
            is_partial = groups.is_partial or transposed.is_partial
            if not (is_partial and _is_nonfinite(dq, dk, dv)):
                return dq, dk, dv
    kept = [] if keep is None else [keep]
    _launch("rows", [pos, crd, q, k, v, *kept, lse, grad, delta, dq], scale, (q, k, v))
    kept = [] if keep is None else [keep, order]
    _launch("columns", [of_columns, rows_of, q, k, v, *kept, lse, grad, delta, dk, dv], scale, (k, q, v))
    return dq, dk, dv


def _groups(
    pos: torch.Tensor, crd: torch.Tensor, block: Sequence[int], sides: tuple[torch.Tensor, torch.Tensor]
) -> Groups | None:
    """The unions that the kernels in tiles read, of the mask of these queries and keys."""
    shape = (sides[0].shape[1], sides[1].shape[1])
    return groups_of(pos, crd, block, shape, lanes_of_a_group(scalar_of(sides[0])))


def _launch_tiles(
    kind: str, groups: Groups, arrays: list[torch.Tensor], scale: float,
    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:  # fmt: skip
    """Run a kernel in register tiles for all groups of rows; `operands` are rows, columns, values."""
    of_rows, other, values = operands
    (places, n, d), m, e = of_rows.shape, other.shape[1], values.shape[2]
    scalar, rows = scalar_of(values), len(groups.pos) - 1
    size = lanes_of_a_group(scalar)
    of_place = -(-n // size)
    made = tile_kernel(kind, scalar)
    numbers = [n, m, rows, groups.longest, of_place, d, e, scale]
    words = made.pack([groups.pos, groups.crd, groups.bits, *arrays, *numbers])
    _run(made, words, places * of_place, len(groups.crd) * size * places * of_place // rows * (d + e))


def _launch(
    kind: str, arrays: list[torch.Tensor], scale: float, operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
) -> None:
    """Run a kernel for all groups of rows; `arrays` begin with pos and crd, `operands` are rows, columns, values."""
    (pos, crd), (of_rows, other, values) = arrays[:2], operands
    (places, n, d), m, e = of_rows.shape, other.shape[1], values.shape[2]
    rows, stored = len(pos) - 1, len(crd)
    is_shared = rows == n
    scalar, index = scalar_of(values), "i32" if crd.dtype == torch.int32 else "i64"
    has_keep = len(arrays) > {"forward": 7, "rows": 9, "columns": 10}[kind]
    made: Executable = kernel(kind, scalar, index, d, e, has_keep)
    tile = _columns_of_a_tile(stored / max(rows * m, 1), m, max(d, e) * values.element_size())
    cuts, tiles, longest = cuts_of(pos, crd, m, tile)
    numbers = [n, m, rows, stored if is_shared else 0, longest + LANES[scalar], -(-n // GROUP), tiles, scale]
    words = made.pack([pos, crd, cuts, *arrays[2:], *numbers])
    _run(made, words, places * -(-n // GROUP), stored * (places if is_shared else 1) * (d + e))


def _run(made: Executable, words: list[int], count: int, work: int) -> None:
    """Run a kernel for `count` groups, in parallel where that is worth it; `work` is multiplications."""
    threads = pool.get_num_threads() if work >= PARALLEL_WORK else 1
    if threads == 1:
        made.run_sized(work // VECTOR, words, 0, count)
    else:
        pool.parallel(made, words, even_bounds(0, count, min(count, PARTS * threads)), work // VECTOR)


def _columns_of_a_tile(density: float, m: int, width: int) -> int:
    """Columns whose keys fit a cache; all where a query has too few of these to gain by that."""
    for size in TILE_BYTES:
        fitting = size // max(width, 1)
        if density * fitting >= TILE_ELEMENTS:
            return min(fitting, max(m, 1))
    return max(m, 1)


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
            composed = _composed(*elements_of(pos, crd, ctx.block), q, k, v, keep, ctx.scale)
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
