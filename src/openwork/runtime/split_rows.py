"""A launch with rows that are work for several threads -> launches on pieces of these rows, and the sums of the pieces.

The pieces of a row are rows of a matrix that shares its buffers but for pos; of a dense operand each reads the same
elements, at a stride of 0. So the kernel is the one that runs on all the other rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .. import tuning
from ..classes import frozen
from ..codegen import pool
from ..codegen.executable import Executable
from ..compiler.single.factors import identity
from ..format.expression import Dim, dimensions
from ..ir.index import Access
from ..storage.buffers import Array, address, itemsize, numpy_dtype, to_numpy
from ..storage.storage import Storage
from .plan import Bound, Plan, words_of
from .private_accumulators import PIECES, combine, split_threshold
from .strided import Strided

__all__ = ["LongRows", "with_short_rows"]

WAVE = tuning.SPLIT_WAVE
MOST = tuning.SPLIT_ROWS


def long_rows(s: Storage, threads: int) -> list[int]:
    """The rows to be split, numbered as the positions of the outermost level."""
    pos = _positions(s)
    if pos is None:
        return []
    total = int(pos[-1])
    least = split_threshold(total, threads)
    if total < least:
        return []
    samples = np.arange(0, total, least // 2)  # no such row lies between two
    rows = np.unique(np.searchsorted(pos, samples, side="right") - 1)
    long_ones = rows[pos[rows + 1] - pos[rows] >= least]
    return long_ones.tolist() if len(long_ones) <= MOST else []


def with_short_rows(bound: Bound, threads: int) -> Bound:
    """The operands with long rows as `PIECES` rows each, where no operand or result is indexed by the row."""
    plan, s = bound.plan, bound.storage
    rows = [] if plan.schedule.parallel else long_rows(s, threads)
    if not rows:
        return bound
    dim = s.format.levels[0].expression.index  # type: ignore[union-attr]
    name = plan.form.at[dim]
    if any(name in a.indices for a in (plan.stmt.lhs, *plan.form.accesses)):
        return bound
    pos = to_numpy(s.pos[1])
    cuts = [np.linspace(int(pos[r]), int(pos[r + 1]), PIECES + 1)[1:-1].astype(pos.dtype) for r in rows]
    short = _rows(s, dim, np.sort(np.concatenate([pos, *cuts])))
    return replace(bound, storage=short, extents={**bound.extents, name: short.shape[dim]})


def _positions(s: Storage) -> Any:
    """pos of the level below the outermost, if that is one level of rows, whose segments can be split; else None."""
    levels = s.format.levels
    if len(levels) < 2 or s.format.batch_ndim or s.pos[1] is None or not levels[1].format.is_compressed:
        return None
    first = levels[0]
    if not isinstance(first.expression, Dim) or not (first.format.is_dense or first.format.is_compressed):
        return None
    if not first.format.unique or any(first.expression.index in dimensions(e.expression) for e in levels[1:]):
        return None
    return to_numpy(s.pos[1])


@frozen
class RowPieces:
    """The launches on one row's pieces: arguments in which only the addresses of dense operands are left to fill in.

    words: the arguments; values: number of the one that is the stored values' address, -1 where the kernel reads none;
    shifts: (number, byte offset of the row's elements) of the dense operands; slot: number of the result's address;
    out: byte offset of the result's row; size: its elements (0: the result has the operand's structure, and every piece
    its own elements).
    """

    words: tuple[int, ...]
    values: int
    shifts: tuple[tuple[int, int], ...]
    slot: int
    out: int
    size: int
    scalar: str
    op: str
    owners: tuple[Any, ...]

    def tasks(self, row_arguments: Sequence[int], out: int) -> tuple[Array, list[list[int]], list[tuple[int, int]]]:
        """Buffers for the sums of the pieces, and their launches; `row_arguments` are those of the other rows.

        The first piece writes to the row of the result, which begins at `out`.
        """
        results = np.full(PIECES * self.size, identity(self.op, self.scalar).value, numpy_dtype(self.scalar))
        piece_arguments = list(self.words)
        if self.values >= 0:
            piece_arguments[self.values] = row_arguments[self.values]
        for slot, shift in self.shifts:
            piece_arguments[slot] = row_arguments[slot] + shift
        first = piece_arguments.copy()
        first[self.slot], piece_arguments[self.slot] = out + self.out, address(results) if self.size else out
        return results, [first] + [piece_arguments] * (PIECES - 1), list(pairwise(range(PIECES + 1)))

    def join(self, results: Array, out: int) -> None:
        """The pieces' sums, combined in order, into the row of the result."""
        second = address(results) + self.size * itemsize(self.scalar)
        if self.size:
            combine(self.op, self.scalar, self.size, PIECES - 1, self.size, second, out + self.out)


def split_row(bound: Bound, row: int, out: Strided | Storage) -> RowPieces | None:
    """The launches of one row in pieces; None where the result's elements of a row are not contiguous, or where an
    operand's elements are contiguous across rows."""
    plan, driver = bound.plan, bound.storage
    stmt, name = plan.stmt, plan.form.driver
    dim = driver.format.levels[0].expression.index  # type: ignore[union-attr]
    index = plan.form.at[dim]
    pos = to_numpy(driver.pos[1])
    piece_rows = _rows(driver, dim, np.linspace(int(pos[row]), int(pos[row + 1]), PIECES + 1).astype(pos.dtype))
    piece_results = _piece_results(stmt.lhs.indices, index, out, piece_rows)
    dense = plan.form.accesses
    if (
        piece_results is None
        or any(_unit(plan, a) == index for a in dense)
        or _is_innermost(plan, index, piece_results)
    ):
        return None
    views = [_repeated(view, a, index) for a, view in zip(dense, bound.views, strict=True)]
    pieces = replace(bound, storage=piece_rows, views=views, extents={**bound.extents, index: PIECES})
    words = words_of(pieces, piece_results)
    places = {(r.kind, r.tensor): at for at, r in enumerate(plan.refs)}
    coordinate = row if driver.crd[0] is None else int(to_numpy(driver.crd[0])[row])
    shifts = tuple(
        (places["data", a.tensor], coordinate * _byte_stride(view, a, index))
        for a, view in zip(dense, bound.views, strict=True)
        if ("data", a.tensor) in places
    )
    shared = isinstance(piece_results, Storage)
    size = 0 if isinstance(piece_results, Storage) else math.prod(piece_results.shape) // PIECES
    scalar = plan.output.scalar
    slot = places["vals" if shared else "data", stmt.lhs.tensor]
    return RowPieces(
        tuple(words),
        places.get(("vals", name), -1),
        shifts,
        slot,
        coordinate * size * itemsize(scalar),
        size,
        scalar,
        stmt.reduction,
        (piece_rows.pos, piece_rows.crd),
    )


def _piece_results(
    lhs: tuple[str, ...], index: str, out: Strided | Storage, piece_rows: Storage
) -> Strided | Storage | None:
    """The results of the pieces, contiguous: an array whose address is not known yet, or the shared structure."""
    if isinstance(out, Storage):
        return piece_rows.with_values(out.values)
    size = math.prod(n for i, n in zip(lhs, out.shape, strict=True) if i != index)
    if lhs.count(index) != 1 or (out.strides[lhs.index(index)] != size and out.shape[lhs.index(index)] > 1):
        return None
    shape = tuple(PIECES if i == index else n for i, n in zip(lhs, out.shape, strict=True))
    return out._replace(
        shape=shape, strides=tuple(size if i == index else s for i, s in zip(lhs, out.strides, strict=True))
    )


def _is_innermost(plan: Plan, index: str, piece_results: Strided | Storage) -> bool:
    """Whether the kernel takes a result of several dimensions to be contiguous along the index, as pieces are not."""
    unit = plan.output.unit
    if isinstance(piece_results, Storage) or unit is None or len(piece_results.shape) < 2:
        return False
    return plan.form.out[unit] == index


def _repeated(view: Strided, access: Access, index: str) -> Strided:
    """A view with the same elements at every coordinate of the index: stride 0."""
    return view._replace(
        strides=tuple(0 if i == index else s for i, s in zip(access.indices, view.strides, strict=True))
    )


def _byte_stride(view: Strided, access: Access, index: str) -> int:
    """The stride of the index, in bytes."""
    steps = (s for i, s in zip(access.indices, view.strides, strict=True) if i == index)
    return sum(steps) * itemsize(view.scalar)


def _unit(plan: Plan, access: Access) -> str | None:
    """The index along which an operand is known to be contiguous."""
    unit = plan.operands[access.tensor].unit
    return None if unit is None or not access.indices else access.indices[unit]


def _rows(s: Storage, dim: int, ends: Any) -> Storage:
    """Rows that end at these positions, over the same coordinates and values."""
    n = len(ends) - 1
    shape = tuple(n if d == dim else extent for d, extent in enumerate(s.shape))
    first = None if s.pos[0] is None else np.array([0, n], to_numpy(s.pos[0]).dtype)
    crd = None if s.crd[0] is None else np.arange(n, dtype=to_numpy(s.crd[0]).dtype)
    pos, crds = (first, ends, *s.pos[2:]), (crd, *s.crd[1:])
    return Storage(shape, s.format, s.scalar, s.fill_value, pos, crds, s.values)


class LongRows:
    """A launch on ranges of short rows, and on the pieces of long ones."""

    __slots__ = ("pieces", "ranges")

    def __init__(self, pieces: Sequence[RowPieces], ranges: Sequence[tuple[int, int]]) -> None:
        self.pieces, self.ranges = pieces, ranges

    @staticmethod
    def of(
        bound: Bound, out: Any, bounds: Sequence[int], threads: int
    ) -> LongRows | None:  # fmt: skip
        """The launch on the rows between the bounds; None where none of them is long, or one cannot be split."""
        schedule = bound.plan.schedule
        form = bound.plan.form
        sums_nothing = not bound.plan.output.shared and set(form.at) <= set(form.out)
        if not schedule.parallel or schedule.sliced is not None or sums_nothing:
            return None
        rows = long_rows(bound.storage, threads)
        split = [split_row(bound, row, out) for row in rows]
        pieces = [p for p in split if p is not None]
        if not rows or len(pieces) < len(rows):
            return None
        ends = sorted({*bounds, *(bounds[0] + r for r in rows), *(bounds[0] + r + 1 for r in rows)})
        split_at = {bounds[0] + r for r in rows}
        return LongRows(pieces, [(lo, hi) for lo, hi in pairwise(ends) if lo not in split_at])

    @property
    def count(self) -> int:
        """The number of launches."""
        return len(self.ranges) + PIECES * len(self.pieces)

    def run(self, executable: Executable, words: list[int], out: int) -> None:
        """Write the result to the address `out`; `words` are the arguments of the launches on short rows."""
        buffers = []
        arguments = [words] * len(self.ranges)
        ranges = list(self.ranges)
        for row in self.pieces:
            buffer, piece_arguments, pieces = row.tasks(words, out)
            buffers.append(buffer)
            arguments += piece_arguments
            ranges += pieces
        wave = WAVE * pool.get_num_threads()
        for at in range(0, len(ranges), wave):
            pool.parallel_private(executable, arguments[at : at + wave], ranges[at : at + wave])
        for row, buffer in zip(self.pieces, buffers, strict=True):
            row.join(buffer, out)
