"""A matrix or tensor and a number of parts -> the rows and columns of each block, and the bytes that products send.

A block has an index set along each dimension: a range, or the sorted indices that a graph partitioner chose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np

from .. import ShapeError, Tensor, UnsupportedError, asarray
from ..advice.units import bytes_text
from ..graph.adjacency import adjacency
from ..integers import integer

__all__ = ["Array", "Indices", "Partition", "length", "partition", "rows_sent", "sent_bytes"]

Array: TypeAlias = np.ndarray[Any, Any]
Indices: TypeAlias = slice | Array
"""A range of coordinates, or sorted ones."""

_NEARLY_ALL = 0.9
"""The part of a block's coordinates from which they are sent without being picked out."""


@dataclass(frozen=True)
class Partition:
    """How a tensor is cut: the product of its parts along each dimension are the blocks.

    shape : of the tensor
    parts : for each dimension the index sets it is cut into
    nse : of each block, in row-major order of the parts
    used : for each block and dimension how many of its coordinates are sent: those with elements, or nearly all
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[Indices, ...], ...]
    nse: tuple[int, ...]
    used: tuple[tuple[int, ...], ...]

    @property
    def blocks(self) -> list[tuple[Indices, ...]]:
        """The index sets of each block."""
        return list(product(*self.parts))

    @property
    def imbalance(self) -> float:
        """The largest block's elements, in those of the mean: 1 is even."""
        return max(self.nse) * len(self.nse) / max(sum(self.nse), 1)

    def sent(self, columns: int = 1, itemsize: int = 8) -> int:
        """The bytes of arrays that `A @ X`, `A.T @ X` or `mttkrp` sends to the blocks and back, X of these columns."""
        return sent_bytes(self.used, columns, itemsize)

    def __str__(self) -> str:
        """A table: elements and what `A @ x` sends, by block."""
        lines = ["block  nse  coordinates sent  by A @ x"]
        for k, (nse, used) in enumerate(zip(self.nse, self.used, strict=True)):
            counts = " x ".join(map(str, used))
            lines.append(f"{k}  {nse}  {counts}  {bytes_text(sent_bytes([used], 1, 8))}")
        lines.append(f"all  {sum(self.nse)}  imbalance {self.imbalance:.2f}  {bytes_text(self.sent())}")
        return "\n".join(lines)


def length(indices: Indices) -> int:
    """How many coordinates there are."""
    return indices.stop - indices.start if isinstance(indices, slice) else len(indices)


def rows_sent(count: int, extent: int) -> int:
    """How many rows of a factor a block is sent, of which it reads `count`: all where that is nearly all of them."""
    return extent if count >= _NEARLY_ALL * extent else count


def sent_bytes(used: Sequence[Sequence[int]], columns: int, itemsize: int) -> int:
    """A block is sent the rows that it reads of the factors, and gives back those of the dimension that stays."""
    return sum(map(sum, used)) * columns * itemsize


def partition(a: Any, parts: int, *, by: str = "nse") -> Partition:
    """Cut a matrix or tensor into blocks, so that each has about as many elements.

    Parameters
    ----------
    a : Tensor of two dimensions or more, or what `asarray` takes
    parts : how many blocks
    by : "nse", ranges of rows; "grid", ranges of rows by ranges of columns, as near to a square as `parts` has
        divisors; "graph", sets of rows that METIS chose so that few columns are in more than one part, for square
        matrices, taken as graphs whose edges go both ways

    Returns
    -------
    Partition: index sets, elements of each block, and `sent`, the bytes that a product sends. `print` shows them.

    Cost: O(nse). Raises ShapeError for more parts than rows, UnsupportedError where pymetis is not installed
    (`pip install pymetis`).
    Source: Karypis and Kumar, A fast and high quality multilevel scheme for partitioning irregular graphs, SISC 1998.
    See also: BlockMatrix, BlockTensor.

    Examples
    --------
    >>> cut = ow.dask.partition(ow.eye_array(4, format="csr"), 2)
    >>> print(cut)
    block  nse  coordinates sent  by A @ x
    0  2  2 x 2  32 B
    1  2  2 x 2  32 B
    all  4  imbalance 1.00  64 B
    """
    t = a if isinstance(a, Tensor) else asarray(a)
    parts = integer(parts, "partition", "parts", boolean=False)
    if t.ndim < 2:
        raise ShapeError(f"partition: expected two dimensions or more; got shape {t.shape}")
    if not 1 <= parts <= max(t.shape[0], 1):
        raise ShapeError(f"partition: parts={parts} of {t.shape[0]} rows\n  expected: 1 or more, at most the rows")
    coordinates = _coordinates(t)
    rest = tuple((slice(0, n),) for n in t.shape[1:])
    if by == "nse":
        cut: tuple[tuple[Indices, ...], ...] = (_ranges(coordinates[0], t.shape[0], parts), *rest)
    elif by == "grid":
        across = max(k for k in range(1, math.isqrt(parts) + 1) if parts % k == 0 and k <= max(t.shape[1], 1))
        cut = (
            _ranges(coordinates[0], t.shape[0], parts // across), _ranges(coordinates[1], t.shape[1], across), *rest[1:]
        )  # fmt: skip
    elif by == "graph":
        cut = (_graph_parts(t, parts), *rest)
    else:
        raise UnsupportedError(f"partition: by={by!r}\n  supported: 'nse', 'grid', 'graph'")
    return Partition(t.shape, cut, *_counts(t.shape, cut, coordinates))


def _coordinates(t: Tensor) -> list[Array]:
    """The coordinates of all elements along each dimension."""
    return [np.asarray(c) for c in t.asformat("coo")._storage.crd if c is not None]


def _ranges(crd: Array, extent: int, parts: int) -> tuple[slice, ...]:
    """Ranges of coordinates with about as many elements each; elements count as one more than coordinates do."""
    weight = np.cumsum(np.bincount(crd, minlength=extent) + 1)
    goals = np.arange(1, parts) * (weight[-1] / parts) if extent else np.zeros(parts - 1)
    inner = np.searchsorted(weight, goals) + 1
    ends = np.clip(inner, np.arange(1, parts), extent - parts + np.arange(1, parts)).tolist()
    return tuple(slice(lo, hi) for lo, hi in pairwise([0, *np.maximum.accumulate(ends).tolist(), extent]))


def _graph_parts(t: Tensor, parts: int) -> tuple[Array, ...]:
    """METIS's sets of rows, each sorted, weighted by the elements of the rows."""
    try:
        import pymetis
    except ImportError as error:
        raise UnsupportedError(
            "partition: by='graph' needs pymetis\n  help: pip install pymetis, or by='nse'"
        ) from error
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise ShapeError(f"partition: by='graph' takes a square matrix; got shape {t.shape}\n  help: by='nse'")
    edges = adjacency(t, "partition")
    both = np.concatenate([np.repeat(np.arange(edges.n), np.diff(edges.pos)), edges.crd])
    ends = np.concatenate([edges.crd, np.repeat(np.arange(edges.n), np.diff(edges.pos))])
    both, ends = np.unique(np.stack([both, ends])[:, both != ends], axis=1)
    start = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=edges.n))])
    weights = (np.diff(edges.pos) + 1).tolist()
    graph = pymetis.CSRAdjacency(start.tolist(), ends.tolist())
    _, member = pymetis.part_graph(parts, graph, vweights=weights)
    chosen = np.asarray(member)
    return tuple(found for k in range(parts) if len(found := np.flatnonzero(chosen == k)))


def _counts(
    shape: tuple[int, ...], cut: tuple[tuple[Indices, ...], ...], coordinates: list[Array]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Elements of each block, and how many of its coordinates have some along each dimension."""
    grid = [len(sets) for sets in cut]
    place = np.zeros(len(coordinates[0]), np.int64)
    for crd, sets, extent in zip(coordinates, cut, shape, strict=True):
        member = np.zeros(extent, np.int64)
        for k, indices in enumerate(sets):
            member[indices] = k
        place = place * len(sets) + member[crd]
    blocks = math.prod(grid)
    nse = np.bincount(place, minlength=blocks)
    order = np.argsort(place, kind="stable")
    groups = [[crd[part] for crd in coordinates] for part in np.split(order, np.cumsum(nse)[:-1])]
    used = tuple(
        tuple(rows_sent(len(np.unique(crd)), length(s)) for crd, s in zip(group, sets, strict=True))
        for group, sets in zip(groups, product(*cut), strict=True)
    )
    return tuple(nse.tolist()), used
