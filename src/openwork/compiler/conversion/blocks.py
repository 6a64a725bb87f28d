"""Two formats that end in the same dense levels -> the conversion of their heads, and the kernel that moves blocks.

    (i // 4 : dense, j // 4 : compressed, i % 4 : dense, j % 4 : dense)    head (I : dense, J : compressed)
    (j // 4 : dense, i // 4 : compressed, i % 4 : dense, j % 4 : dense)    head (J : dense, I : compressed)

The head is converted as a tensor of its own whose values are the numbers of the blocks; each block is then copied,
its levels in the target's order.
"""

from __future__ import annotations

from ...classes import frozen
from ...format.expression import Dim, Div, Expression, Mod
from ...format.format import Format, Level
from ...ir.loop import Kernel
from ..build import Builder

__all__ = ["Blocks", "blocks_of", "copy_blocks_kernel", "transpose_blocks"]


@frozen
class Blocks:
    """The decomposition of two formats into heads and common dense tails.

    dims : the expressions that are the dimensions of the heads
    source, target : the heads
    order : the target's tail, as places in the source's tail
    sizes : of the source's tail levels, None where it is the extent
    """

    dims: tuple[Expression, ...]
    source: Format
    target: Format
    order: tuple[int, ...]
    sizes: tuple[int | None, ...]


def blocks_of(source: Format, target: Format) -> Blocks | None:
    """The heads of two formats with the same dense levels at the end; None where they have none in common."""
    if source.batch_ndim or target.batch_ndim:
        return None
    source_tail, target_tail = _tail(source), _tail(target)
    split, cut = source.nlevels - len(source_tail), target.nlevels - len(target_tail)
    tail = [level.expression for level in source.levels[split:]]
    if not tail or set(tail) != set(target_tail) or len(tail) != len(target_tail):
        return None
    dims = tuple(dict.fromkeys(level.expression for level in source.levels[:split]))
    target_dims = {level.expression for level in target.levels[:cut]}
    if (
        set(dims) != target_dims
        or len(dims) != split
        or not all(_is_dense_number(e) for e in dims)
        or not _is_element(target, cut)
    ):
        return None
    sizes = tuple(e.divisor if isinstance(e, Mod) else None for e in tail)
    order = tuple(tail.index(e) for e in target_tail)
    return Blocks(dims, _head(source.levels[:split], dims), _head(target.levels[:cut], dims), order, sizes)


def transpose_blocks(source: Format) -> Format | None:
    """A blocked matrix format with its two levels of blocks exchanged; None for other formats."""
    tail = _tail(source)
    levels = source.levels
    if source.ndim != 2 or len(tail) != 2 or source.nlevels != 4 or source.batch_ndim:
        return None
    if not (levels[0].format.is_dense and levels[1].format.is_compressed):
        return None
    if not all(isinstance(e, Mod) for e in tail):
        return None
    first, second = levels[0], levels[1]
    swapped = (Level(second.expression, first.format), Level(first.expression, second.format))
    return Format(source.dims, (*swapped, *levels[2:]))


def copy_blocks_kernel(scalar: str, index: str, blocks: Blocks) -> Kernel:
    """`out` takes block at[p] of `x` for every p of a range; `extent{l}` are the sizes that the format does not say."""
    builder = Builder("copy_blocks", ranged=True)
    builder.buffer("at", index, wide=True)
    builder.buffer("x", scalar)
    builder.buffer("out", scalar, mutable=True)
    sizes = [f"extent{k}" if n is None else str(n) for k, n in enumerate(blocks.sizes)]
    for k, n in enumerate(blocks.sizes):
        if n is None:
            builder.scalar(f"extent{k}")
    steps = [" * ".join(sizes[k + 1 :]) or "1" for k in range(len(sizes))]
    lines = [f"size = {' * '.join(sizes)}", "for p in range(lo, hi):", "    first = at[p] * size", "    to = p * size"]
    depth = 1
    place = "0"
    for k in blocks.order:
        lines.append(f"{'    ' * depth}for t{k} in range(0, {sizes[k]}):")
        place = f"({place}) * ({sizes[k]}) + t{k}"
        depth += 1
    read = " + ".join(f"t{k} * ({step})" for k, step in enumerate(steps))
    lines.append(f"{'    ' * depth}out[to + {place}] = x[first + {read}]")
    builder.top.run("\n".join(lines))
    return builder.kernel()


def _tail(format: Format) -> list[Expression]:
    """The dense levels at the end, as far as each is a dimension or the remainder of a level of the head."""
    tail: list[Expression] = []
    for level in reversed(format.levels):
        if not level.format.is_dense:
            break
        tail.insert(0, level.expression)
    above = {level.expression for level in format.levels[: format.nlevels - len(tail)]}
    return tail if all(isinstance(e, Dim) or _base(e) in above for e in tail) else []


def _base(e: Expression) -> Expression | None:
    """`i % c -> i // c`: what the blocks of these remainders are numbered by."""
    return Div(e.base, e.divisor) if isinstance(e, Mod) else None


def _is_dense_number(e: Expression) -> bool:
    """Whether coordinates begin at 0 and each stands for itself."""
    return isinstance(e, Dim) or (isinstance(e, Div) and isinstance(e.base, Dim))


def _is_element(format: Format, cut: int) -> bool:
    """Whether every position of the head's last level is an element."""
    return cut > 0 and (format.levels[cut - 1].format.is_compressed or format.levels[cut - 1].format.is_singleton)


def _head(levels: tuple[Level, ...], dims: tuple[Expression, ...]) -> Format:
    names = tuple(f"d{k}" for k in range(len(dims)))
    return Format(names, tuple(Level(Dim(dims.index(level.expression)), level.format) for level in levels))
