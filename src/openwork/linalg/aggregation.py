"""A matrix and vectors that it nearly sends to 0 -> aggregates of its rows, and a prolongation that keeps the vectors.

    strong connections -> aggregates -> T, orthonormal columns for each    P = (I - w inv(D) A_F) @ T

Rows come in nodes of `block` rows, as the displacements of a point in elasticity, which stay together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, Tensor, matmul, sparse_csr_tensor
from ..classes import frozen
from ..storage.buffers import as_array, to_numpy
from .chebyshev import largest_eigenvalue
from .compiled import run
from .kernels import AGGREGATE
from .operands import dense
from .preconditioner import Rows

__all__ = ["Transfer", "nullspace_of", "rigid_motions", "transfer"]

Array = np.ndarray[Any, Any]


@frozen
class Transfer:
    """From the rows of a level to the columns of the next: prolongation, restriction, the next one's vectors.

    empty : columns without elements, of aggregates that have fewer rows than there are vectors
    """

    prolong: Tensor
    restrict: Tensor
    nullspace: Array
    empty: Array


def transfer(r: Rows, matrix: Tensor, nullspace: Array, block: int, strength: float) -> Transfer | None:
    """The transfer to a coarser level; None where nothing aggregates."""
    nodes = _nodes(r, block)
    strong = _strong(nodes, strength)
    group, count = _aggregates(nodes, strong)
    columns = nullspace.shape[1]
    if not 0 < count * columns < 0.9 * r.n:
        return None
    tentative, coarse = _tentative(np.repeat(group, block), count, nullspace, r)
    diagonal = r.diagonal()
    weight = 4 / (3 * largest_eigenvalue(matrix, diagonal))
    kept = strong if block == 1 else np.ones(len(r.crd), bool)  # lumped weak elements would bend rigid motions
    prolong = matmul(_smoothing(r, kept, diagonal, weight), tentative).asformat("csr")
    empty = np.flatnonzero(
        np.bincount(to_numpy(tentative.crd(1)), tentative.values != 0, minlength=count * columns) == 0
    )
    return Transfer(prolong, prolong.T.asformat("csr"), coarse, empty)


def _nodes(r: Rows, block: int) -> Rows:
    """The matrix of the norms of blocks; of one row the matrix itself."""
    if block == 1:
        return r
    from scipy.sparse import coo_array

    n = -(-r.n // block)
    squares = coo_array((r.values**2, (r.row // block, r.crd // block)), (n, n)).tocsr()
    row = np.repeat(np.arange(n), np.diff(squares.indptr))
    diag = np.zeros(n, r.crd.dtype)
    on = np.flatnonzero(row == squares.indices)
    diag[row[on]] = on
    kind = r.crd.dtype
    return r._replace(
        pos=squares.indptr.astype(kind), crd=squares.indices.astype(kind), values=np.sqrt(squares.data), diag=diag
    )


def _strong(r: Rows, strength: float) -> Array:
    """Which elements connect strongly: `strength` of the largest beside the diagonal, of row and column in the mean."""
    row = r.row
    size = np.where(row == r.crd, 0, np.abs(r.values))
    scale = np.sqrt(np.maximum.reduceat(np.append(size, 0), r.pos[:-1]))
    scale[np.diff(r.pos) == 0] = 0
    strong: Array = (size >= strength * scale[row] * scale[r.crd]) & (size > 0)
    return strong


def _aggregates(r: Rows, strong: Array) -> tuple[Array, int]:
    """The number of the aggregate of each node, -1 for those without strong connections, and how many there are."""
    crd = r.crd[strong]
    ends = np.concatenate([[0], np.cumsum(strong)])
    pos = ends[r.pos].astype(r.crd.dtype)
    group, joined = np.full((2, r.n), -1, r.crd.dtype)
    count = np.zeros(1, np.int64)
    run(AGGREGATE, r.work, [pos, crd, group, joined, count, r.n], I=crd)
    return joined, int(count[0])


def _tentative(group: Array, count: int, nullspace: Array, r: Rows) -> tuple[Tensor, Array]:
    """The tentative prolongation, the vectors by aggregates made orthonormal, and what they are of these."""
    columns = nullspace.shape[1]
    inside = np.flatnonzero(group >= 0)
    basis = np.zeros_like(nullspace)
    coarse = np.zeros((count * columns, columns), nullspace.dtype)
    if columns == 1:
        squares = np.bincount(group[inside], nullspace[inside, 0] ** 2, minlength=count)
        coarse[:, 0] = np.where(squares > 0, np.sqrt(squares), 1)
        basis[inside, 0] = nullspace[inside, 0] / coarse[group[inside], 0]
    else:
        order = inside[np.argsort(group[inside], kind="stable")]
        sizes = np.bincount(group[inside], minlength=count)
        starts = np.cumsum(sizes) - sizes
        for size in np.unique(sizes[sizes > 0]):
            number = np.flatnonzero(sizes == size)
            members = order[starts[number][:, None] + np.arange(size)]
            q, upper = np.linalg.qr(nullspace[members])
            rank = q.shape[2]
            full = np.zeros((len(number), size, columns), nullspace.dtype)
            full[:, :, :rank] = q
            basis[members] = full
            at = number[:, None] * columns + np.arange(rank)
            coarse[at] = upper
    pos = np.concatenate([[0], np.cumsum(np.where(group >= 0, columns, 0))]).astype(r.crd.dtype)
    crd = (group[inside, None].astype(r.crd.dtype) * columns + np.arange(columns, dtype=r.crd.dtype)).reshape(-1)
    return sparse_csr_tensor(pos, crd, basis[inside].reshape(-1), (r.n, count * columns)), coarse


def _smoothing(r: Rows, strong: Array, diagonal: Array, weight: float) -> Tensor:
    """`I - weight * inv(D) @ A_F`, where A_F has its weak elements added to the diagonal instead."""
    row = r.row
    kept = strong | (row == r.crd)
    weak = np.bincount(row[~kept], r.values[~kept], minlength=r.n)
    filtered = diagonal + weak
    filtered = np.where(filtered > diagonal / 10, filtered, diagonal)
    values = np.where(row == r.crd, filtered[row], r.values)[kept]
    rows, crd = row[kept], r.crd[kept]
    values = (rows == crd) - weight * values / filtered[rows]
    pos = np.concatenate([[0], np.cumsum(kept)])[r.pos].astype(r.crd.dtype)
    return sparse_csr_tensor(pos, crd, values.astype(r.values.dtype), (r.n, r.n))


def nullspace_of(given: Any, n: int, block: int, dtype: np.dtype[Any]) -> Array:
    """The near-nullspace as columns; without one a constant for each row of a node. Raises ShapeError."""
    if given is None:
        return np.tile(np.eye(block, dtype=dtype), (n // block, 1))
    vectors = np.asarray(dense(given), dtype)
    columns = vectors[:, None] if vectors.ndim == 1 else vectors
    if columns.ndim != 2 or columns.shape[0] != n or not columns.shape[1]:
        raise ShapeError(
            f"amg: expected near_nullspace of shape ({n},) or ({n}, k); got {vectors.shape}"
            "\n  help: rigid_motions(points), for elasticity"
        )
    return np.ascontiguousarray(columns)


def rigid_motions(points: Any, /) -> Any:
    """The translations and rotations of points: what the stiffness matrix of an elastic body nearly sends to 0.

    Parameters
    ----------
    points : array (nodes, d) of coordinates in d = 1, 2 or 3 dimensions

    Returns
    -------
    array of its library, shape (nodes * d, m), m = 1, 3 or 6: displacements of node 0, of node 1, ...; columns are
    orthonormal

    Raises ShapeError for other shapes.

    Cost: O(nodes).
    See also: amg.

    Examples
    --------
    >>> B = ow.linalg.rigid_motions(np.array([[0.0, 0], [1, 0], [0, 1]]))
    >>> B.shape, np.allclose(B.T @ B, np.eye(3))
    ((6, 3), True)
    """
    x = np.asarray(dense(points), np.float64)
    if x.ndim != 2 or x.shape[1] not in (1, 2, 3):
        raise ShapeError(f"rigid_motions: expected points of shape (nodes, 1), (nodes, 2) or (nodes, 3); got {x.shape}")
    n, d = x.shape
    x = x - x.mean(0) if n else x
    motions = np.zeros((n, d, {1: 1, 2: 3, 3: 6}[d]))
    for k in range(d):
        motions[:, k, k] = 1
    for k, (i, j) in enumerate([(0, 1), (1, 2), (2, 0)][: {1: 0, 2: 1, 3: 3}[d]]):
        motions[:, i, d + k], motions[:, j, d + k] = -x[:, j], x[:, i]
    flat = motions.reshape(n * d, -1)
    return as_array(np.linalg.qr(flat)[0] if n * d >= flat.shape[1] else flat, like=points)
