"""A chunk of a tensor and its place in the whole -> a block that a worker keeps, and its part of products.

The coordinates of a block are renumbered to those that have elements, so that a product is sent the rows of the other
factors that the block reads, and gives back the rows that it writes, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed.protocol.serialize import dask_deserialize, dask_serialize, deserialize, serialize

from .. import ShapeError, Tensor, UnsupportedError, asarray, matmul, mttkrp, sparse_coo_tensor
from ..decomposition.operands import host
from ..graph.traversal import first_nodes, first_nodes_of_rows
from ..interop.frames import joined, opened, sealed, split
from .partition import Array, Indices, length, rows_sent

__all__ = [
    "Block", "block", "cut", "forest", "gram", "merged_forests", "normal_product", "places", "product", "square_sum",
]  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Elements of a tensor: element [i, j] is that at [places[0][i], places[1][j]] of the whole."""

    name: str
    places: tuple[Indices, ...]
    tensor: Tensor


def block(name: str, sets: tuple[Indices, ...], chunk: Any) -> Block:
    """The block of a chunk whose coordinates are those of the index sets. Raises errors that name it."""
    t = asarray(chunk)
    if t.shape != tuple(map(length, sets)):
        raise ShapeError(f"{name}: a chunk of shape {t.shape}\n  expected: {tuple(map(length, sets))}")
    if t.format.is_dense:
        return Block(name, sets, t)
    if t.fill_value:
        raise UnsupportedError(
            f"{name}: unspecified elements of the chunk are {t.fill_value}\n  help: subtract that first"
        )
    coo = asarray(t.asformat("coo"), like="numpy")
    crd = [c for c in coo._storage.crd if c is not None]
    kept, numbered = zip(*(_used(c, n) for c, n in zip(crd, t.shape, strict=True)), strict=True)
    if all(k is None for k in kept):
        return Block(name, sets, t)
    shape = tuple(n if k is None else len(k) for k, n in zip(kept, t.shape, strict=True))
    renumbered = sparse_coo_tensor(np.stack(numbered), coo.values, shape, is_coalesced=True).asformat(t.format)
    return Block(name, tuple(map(_composed, sets, kept)), renumbered)


def _used(crd: Array, extent: int) -> tuple[Array | None, Array]:
    """The coordinates that occur, None where nearly all do, and the number of each element's among them."""
    mark = np.zeros(extent, np.bool_)
    mark[crd] = True
    if rows_sent(int(np.count_nonzero(mark)), extent) == extent:
        return None, crd
    return np.flatnonzero(mark), (np.cumsum(mark) - 1)[crd]


def _composed(indices: Indices, kept: Array | None) -> Indices:
    if kept is None:
        return indices
    return kept + indices.start if isinstance(indices, slice) else indices[kept]


def cut(t: Tensor, sets: tuple[Indices, ...]) -> Tensor:
    """The elements of a tensor at the index sets, in the tensor's own format."""
    for d, indices in enumerate(sets):
        if not (isinstance(indices, slice) and length(indices) == t.shape[d]):
            t = t[(slice(None),) * d + (indices,)]
    return t


def places(b: Block) -> tuple[Indices, ...]:
    """The index sets of a block, which its client asks for once."""
    return b.places


def product(b: Block, dim: int, factors: Sequence[Array | None]) -> Array:
    """The block's part of `mttkrp`: rows at `places[dim]`. Of a matrix that is the product with the other factor."""
    if b.tensor.ndim == 2:
        return host(matmul(b.tensor if dim == 0 else b.tensor.T, factors[1 - dim]))
    return host(mttkrp(b.tensor, list(factors), dim))


def normal_product(b: Block, x: Array) -> Array:
    """B.H @ (B @ x), for rows of x at the columns of B: nothing of the size of the rows is sent."""
    inner = host(matmul(b.tensor, x))
    found: Array = host(matmul(b.tensor.T, inner.conj())).conj()
    return found


def gram(b: Block, columns: int) -> Tensor:
    """B.T @ B at its places in the matrix of all columns."""
    coo = asarray(asarray(b.tensor.T @ b.tensor).asformat("coo"), like="numpy")
    names = np.arange(columns)[b.places[1]]
    crd = np.stack([names[c] for c in coo._storage.crd if c is not None])
    return sparse_coo_tensor(crd, coo.values, (columns, columns), is_coalesced=True).asformat("csr")


def square_sum(b: Block) -> float:
    """The sum of the squares of all elements, of complex ones of their absolute values."""
    t = b.tensor
    return float(((abs(t) if np.dtype(str(t.dtype)).kind == "c" else t).astype(np.float64) ** 2).sum())


def forest(b: Block) -> tuple[Array, Array]:
    """Nodes that are not the first of their component in the block, sorted, and for each that first node.

    The pairs are edges of a graph with the same components as the block's.
    """
    rows, columns = b.places
    if isinstance(rows, slice) and isinstance(columns, slice):
        return _forest_of_rows(b.tensor.asformat("csr"), rows, columns)
    coo = b.tensor.asformat("coo")
    u, v = (np.asarray(c) for c in coo._storage.crd if c is not None)
    ends = [p.start + c if isinstance(p, slice) else p[c] for p, c in zip(b.places, (u, v), strict=True)]
    return _forest(ends[0], ends[1])


def _forest_of_rows(t: Tensor, rows: slice, columns: slice) -> tuple[Array, Array]:
    """The forest of a block of rows, whose edges are neither sorted nor numbered anew."""
    n = max(rows.stop, columns.stop)
    inner, crd = (np.asarray(x) for x in (t._storage.pos[1], t._storage.crd[1]) if x is not None)
    pos = np.zeros(n + 1, inner.dtype)
    pos[rows.start : rows.stop + 1] = inner
    pos[rows.stop + 1 :] = inner[-1]
    crd = crd + crd.dtype.type(columns.start) if columns.start else crd
    first = first_nodes_of_rows(pos, crd, n)
    nodes = np.flatnonzero(first != np.arange(n))
    return nodes, first[nodes]


def merged_forests(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """The forest of two together."""
    return _forest(*(np.concatenate(ends) for ends in zip(one, other, strict=True)))


def _forest(u: Array, v: Array) -> tuple[Array, Array]:
    """The same of edges; memory for the nodes up to the last."""
    mark = np.zeros(1 + max((int(e.max()) for e in (u, v) if len(e)), default=-1), np.bool_)
    for e in (u, v):
        mark[e] = True
    nodes, number = np.flatnonzero(mark), np.cumsum(mark) - 1
    first = first_nodes(number[u], number[v], len(nodes))
    later = np.flatnonzero(first != np.arange(len(nodes)))
    return nodes[later], nodes[first[later]]


def _serialize(b: Block) -> tuple[dict[str, Any], list[Any]]:
    """One checksum of everything: the tensor, the index sets, and what says which frames are whose."""
    try:
        tensor, frames = split(b.tensor, serialize)
        pickled = False
    except NotImplementedError:
        tensor, frames = serialize(b.tensor)
        pickled = True
    sets, more = serialize([p for p in b.places if not isinstance(p, slice)], iterate_collection=True)
    ranges = [p if isinstance(p, slice) else None for p in b.places]
    facts = b.name, ranges, pickled, tensor, len(frames), sets
    frames = [*frames, *more]
    return sealed(b.name, facts, frames), frames


def _deserialize(header: dict[str, Any], frames: list[Any]) -> Block:
    name, ranges, pickled, tensor, count, sets = opened(header, frames)
    t = (deserialize if pickled else _joined)(tensor, frames[:count])
    rest = iter(deserialize(sets, frames[count:]))
    return Block(name, tuple(next(rest) if r is None else r for r in ranges), t)


def _joined(facts: Any, frames: list[Any]) -> Tensor:
    return joined(facts, frames, deserialize)


dask_serialize.register(Block, _serialize)
dask_deserialize.register(Block, _deserialize)
