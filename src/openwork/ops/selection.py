"""A tensor and an axis -> its fibres along it as rows, and elements of rows by their order, found in linear time."""

from __future__ import annotations

import math
from functools import lru_cache
from string import ascii_letters
from typing import Any

import numpy as np

from .. import tuning
from ..classes import frozen
from ..codegen import cache as kernels
from ..codegen import pool
from ..codegen.executable import Executable
from ..codegen.plan_cache import planned
from ..compiler.schedule.kept_format import DENSE
from ..compiler.selection import MORE, TAKEN, first_kernel, order_kernel, place_kernel, rank_kernel
from ..format import format as parse
from ..format.expression import Dim
from ..format.format import Format, Level
from ..runtime.conversion.assembly import full
from ..runtime.conversion.remap import on_host
from ..storage.buffers import as_array, flat, is_torch, length, scalar_of, to_numpy
from ..storage.iso import contiguous
from ..storage.recorded import bare, outside
from ..storage.storage import Storage
from ..tensor.dtypes import isdtype
from ..tensor.tensor import Tensor

__all__ = ["Rows", "has_rows", "row_format", "rows_of", "stored_rows"]

Ints = np.ndarray[Any, np.dtype[Any]]
_KERNELS = {"first": first_kernel, "ranks": rank_kernel, "order": order_kernel, "places": place_kernel}


@planned("kernels of selection")
def _kernel(kind: str, scalar: str, index: str, crd: str, dense: bool, missing: bool, long: bool) -> Executable:
    key = f"select {kind} {scalar} {index} {crd} dense {dense} missing {missing} long {long}"
    return kernels.get(key, lambda: _KERNELS[kind](scalar, index, crd, dense, missing, long))


@frozen
class Rows:
    """Rows of stored elements: values[pos[i] : pos[i + 1]] at coordinates crd, which ascend; all n where pos is None.

    crd : None where nothing but `order` of all is asked for
    missing : unspecified elements are no elements; else they are `fill`
    """

    values: Any
    pos: Ints | None
    crd: Ints | None
    count: int
    n: int
    fill: Any
    missing: bool = False

    def first(self, k: int, descending: bool) -> tuple[Ints, Ints]:
        """Coordinates and positions of the first k <= n elements of each row in order, NaN the largest.

        Where nothing is stored the position is -1; so are both where there is no such element. Equal elements are in
        the order of their coordinates. Cost: O(nse + rows * k log k).
        """
        places, found = (np.empty((self.count, k), np.int64) for _ in range(2))
        if k:
            room = min(2 * k + MORE, self._longest()) + 2
            self._run("first", [places, found, k, self.n, -int(descending), room])
        return places, found

    def at(self, ranks: Any) -> tuple[Ints, Ints, Ints]:
        """Coordinates and positions of the elements at ranks of the rows in ascending order, NaN the largest; and how
        many elements of each row are NaN.

        ranks : (m,), the same for all rows, or (rows, m); negative for none
        Cost: O(nse * distinct ranks), and O(log of ranks) of it is usual.
        """
        ranks = np.asarray(ranks, np.int64)
        by = np.argsort(ranks, axis=-1, kind="stable")
        ascending = np.ascontiguousarray(np.take_along_axis(ranks, by, -1))
        m = ranks.shape[-1]
        places, found = (np.empty((self.count, m), np.int64) for _ in range(2))
        nans = np.zeros(self.count, np.int64)
        step = m if ranks.ndim == 2 else 0
        self._run("ranks", [ascending, places, found, nans, m, step, self.n, 0, self._longest() + TAKEN + 1])
        if self.fill != self.fill and self.pos is not None:
            nans += self.n - (self.pos[1:] - self.pos[:-1])
        if (by[..., 1:] > by[..., :-1]).all():
            return places, found, nans
        back = np.broadcast_to(np.argsort(by, axis=-1), places.shape)
        return np.take_along_axis(places, back, -1), np.take_along_axis(found, back, -1), nans

    def order(self, descending: bool, ranks: Any = ()) -> tuple[Ints, Ints]:
        """Each row's positions in the order of its elements, and the coordinates that these come to; with ranks, only
        these elements are in their places, and those before and behind them on their sides."""
        order = np.empty(length(self.values), np.int64)
        moved = np.empty(len(order), np.int64 if self.crd is None else self.crd.dtype)
        ranks = np.unique(np.asarray(ranks, np.int64))
        if len(order):
            pivots = self.at(ranks)[1] if len(ranks) else ranks
            words = [ranks, pivots, order, moved, len(ranks), self.n, -int(descending), self._longest() + 1]
            self._run("order", words)
        return order, moved

    def places(self, descending: bool, ranks: Any = ()) -> Ints:
        """The coordinates of all n elements of each row in the order of `order`, (rows, n)."""
        order, _ = self.order(descending, ranks)
        out = np.empty((self.count, self.n), np.int64)
        self._run("places", [order, out, self.n, -int(descending)])
        return out

    def gathered(self, found: Ints) -> Any:
        """The elements at positions, the fill value at -1; recorded where the values are."""
        absent: Any = found < 0
        if not is_torch(self.values):
            if not absent.any():
                return self.values.take(found)
            out = np.full(found.shape, self.fill, self.values.dtype)
            out[~absent] = self.values[found[~absent]]
            return out
        import torch

        if not length(self.values):
            return self.values.new_full(found.shape, self.fill)
        at = torch.from_numpy(np.maximum(found, 0).reshape(-1)).to(self.values.device)
        out = self.values.index_select(0, at).reshape(found.shape)
        return torch.where(torch.from_numpy(absent), out.new_full((), self.fill), out) if absent.any() else out

    def _longest(self) -> int:
        if self.pos is None:
            return self.n
        return int((self.pos[1:] - self.pos[:-1]).max(initial=0))

    @outside()
    def _run(self, kind: str, arguments: list[Any]) -> None:
        """Run a kernel over the rows, in ranges of about equal numbers of elements."""
        values = bare(self.values) if is_torch(self.values) else self.values
        scalar = scalar_of(values)
        with outside():
            fill = full(1, scalar, self.fill, values)
        dense, nothing = self.pos is None, np.zeros(1, np.int64)
        pos, crd = (nothing if x is None else x for x in (self.pos, self.crd))
        long = self._longest() >= 1 << 32
        kernel = _kernel(kind, scalar, scalar_of(pos), scalar_of(crd), dense, self.missing, long)
        values = contiguous(values)
        words = kernel.pack([pos, crd, values, values, fill, fill, *arguments])
        pool.parallel(kernel, words, self._bounds(tuning.SELECTION_PARTS * pool.get_num_threads()), length(values))

    def _bounds(self, parts: int) -> list[int]:
        shares = np.arange(parts + 1)
        if self.pos is None:
            return (self.count * shares // parts).tolist()
        # A row costs its elements, and something of its own.
        work = int(self.pos[-1]) + self.count
        starts = self.pos + np.arange(self.count + 1)
        return [0, *np.searchsorted(starts, work * shares[1:-1] // parts).tolist(), self.count]


def has_rows(t: Tensor, axes: tuple[int, ...]) -> bool:
    """Whether the fibres along the axes, one, are floating-point rows that `rows_of` reads where they are."""
    return axes == (t.ndim - 1,) and t.format == row_format(t.ndim) and isdtype(t.dtype, "real floating")


def rows_of(t: Tensor, axis: int, missing: bool = False) -> tuple[Rows, list[int]]:
    """The fibres of a tensor along an axis as rows, in row-major order of the other dimensions, and the order in which
    the dimensions stand, `axis` last. Compressed rows are read where they are, all else is converted."""
    order = [*(d for d in range(t.ndim) if d != axis), axis]
    on_host(t._storage, "selection")
    moved = t.transpose(order)
    n, count = t.shape[axis], math.prod(t.shape[d] for d in order[:-1])
    if t.format.is_dense:
        values = flat(moved.asformat(parse("dense", t.ndim))._storage.values)
        return Rows(values, None, None, count, n, t.fill_value, missing), order
    s = moved.asformat(row_format(t.ndim))._storage
    return Rows(s.values, to_numpy(s.pos[-1]), to_numpy(s.crd[-1]), count, n, s.fill_value, missing), order


@lru_cache(maxsize=64)
def row_format(ndim: int) -> Format:
    """(i, j, k) -> (i : dense, j : dense, k : compressed)."""
    last = parse("csr", 2).levels[-1].format
    levels = [*(Level(Dim(d), DENSE) for d in range(ndim - 1)), Level(Dim(ndim - 1), last)]
    return Format(tuple(ascii_letters[:ndim]), tuple(levels))


def stored_rows(rows: Rows, found: Ints, shape: tuple[int, ...]) -> Storage:
    """The elements at positions as a tensor of the rows' dimensions, which stores those that are not -1."""
    assert rows.pos is not None
    assert rows.crd is not None
    k, columns = found.shape[1], np.arange(found.shape[1], dtype=rows.crd.dtype)
    if found.min(initial=0) >= 0:
        pos, crd, found = np.arange(len(found) + 1) * k, np.tile(columns, len(found)), found.reshape(-1)
    else:
        stored = found >= 0
        pos = np.zeros(len(found) + 1, np.int64)
        np.cumsum(np.count_nonzero(stored, axis=1), out=pos[1:])
        crd, found = np.broadcast_to(columns, found.shape)[stored], found[stored]
    index = np.int64 if pos[-1] >= 1 << 31 else rows.pos.dtype
    values = rows.gathered(found)
    ends = as_array(pos.astype(index, copy=False), like=values)
    format, levels = row_format(len(shape)), len(shape) - 1
    all_crd = (*(None,) * levels, as_array(np.ascontiguousarray(crd), like=values))
    return Storage(shape, format, scalar_of(values), rows.fill, (*(None,) * levels, ends), all_crd, values)
