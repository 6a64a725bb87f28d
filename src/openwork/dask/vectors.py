"""An array of Dask with sparse chunks -> PageRank and solutions whose vectors stay on the workers, as arrays of Dask.

Of each iteration the client sees one number. What is sent goes from worker to worker: parts of vectors, at the edges of
chunks. Chunks in a grid send least: each product reads the columns of a chunk and adds along rows.
"""

from __future__ import annotations

import math
from typing import Any

import dask
import dask.array as da

from .. import ShapeError
from ..integers import integer
from ..linalg.convergence import warn
from ..reals import real

__all__ = ["cg", "pagerank"]


def _square(a: Any, operation: str) -> Any:
    """The array, its chunks computed and kept. Raises ShapeError where it is no square matrix."""
    if not isinstance(a, da.Array):
        raise ShapeError(f"{operation}: expected an array of Dask; got: {type(a).__name__}\n  help: da.from_array(A)")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{operation}: expected a square matrix; got shape {a.shape}")
    return a.persist()


def pagerank(
    a: Any, *, damping: float = 0.85, personalization: Any = None, tolerance: float = 1e-10, max_iterations: int = 1000
) -> Any:
    """The share of time that a random walk spends at each node: `openwork.graph.pagerank` of an array of Dask.

    Parameters
    ----------
    a : array of Dask, (n, n), of weights from 0, of which only sums of rows are known not to be negative
    personalization, damping, tolerance, max_iterations : as of `graph.pagerank`; the first may be an array of Dask

    Returns
    -------
    array of Dask (n,), computed, on the workers. Raises ValueError where it does not converge or a sum is negative.

    Cost per iteration: O(nse), a task for each chunk; of vectors the parts at the edges of chunks are sent.
    See also: cg, BlockMatrix, graph.pagerank.

    Examples
    --------
    >>> import dask.array as da
    >>> A = ow.asarray(np.array([[0, 1.0], [1, 0]]), format="csr")
    >>> ow.dask.pagerank(da.from_array(A, chunks=1)).compute()
    array([0.5, 0.5])
    """
    damping, tolerance = real(damping, "pagerank", "damping"), real(tolerance, "pagerank", "tolerance")
    if not 0 <= damping < 1:
        raise ValueError(f"pagerank: damping is at least 0 and less than 1; got {damping!r}")
    max_iterations = integer(max_iterations, "pagerank", "max_iterations", boolean=False)
    a = _square(a, "pagerank")
    n, rows = a.shape[0], a.chunks[0]
    out = (a @ da.ones(n, chunks=(a.chunks[1],))).rechunk((rows,)).persist()
    if n and not float(out.min().compute()) >= 0:
        raise ValueError("pagerank: a weight is negative or NaN\n  help: abs(a)")
    jump = da.full(n, 1 / max(n, 1), chunks=(rows,)) if personalization is None else _shares(personalization, n, rows)
    scale, jump, rank = dask.persist(damping / da.where(out == 0, 1, out), jump, jump)
    for _ in range(max_iterations):
        moved = (a.T @ (rank * scale)).rechunk((rows,))
        fresh = moved + (1 - moved.sum()) * jump
        rank, change = dask.persist(fresh, abs(fresh - rank).sum())
        if float(change.compute()) <= n * tolerance:
            return rank
    raise ValueError(f"pagerank: no convergence in {max_iterations} iterations\n  help: max_iterations=, tolerance=")


def _shares(given: Any, n: int, rows: Any) -> Any:
    jump = da.asarray(given).astype("f8")
    if jump.shape != (n,):
        raise ShapeError(f"pagerank: personalization has shape {jump.shape}; expected ({n},)")
    least, total = dask.compute(jump.min(), jump.sum())
    if not least >= 0 or not 0 < total < math.inf:
        raise ValueError("pagerank: personalization has shares from 0, of which one is more")
    return (jump / total).rechunk((rows,))


def cg(
    a: Any, b: Any, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None
) -> tuple[Any, int]:  # fmt: skip
    """Conjugate gradients for a Hermitian positive definite array of Dask, with vectors on the workers.

    Parameters
    ----------
    a : array of Dask (n, n)
    b : array of Dask, or of NumPy, (n,)
    rtol, atol : it ends where the residual's norm is at most max(rtol * norm(b), atol)
    maxiter : 10 n by default

    Returns
    -------
    (x, info): x an array of Dask, computed, on the workers; info 0 where it converged, else the number of iterations

    Warns with ConvergenceWarning where it did not. Source: Hestenes and Stiefel, 1952.
    Cost per iteration: O(nse), a task for each chunk; the client sees one number.
    See also: pagerank, BlockMatrix, linalg.cg.

    Examples
    --------
    >>> import dask.array as da
    >>> A = ow.asarray(np.diag([1.0, 2.0, 4.0]), format="csr")
    >>> x, info = ow.dask.cg(da.from_array(A, chunks=2), np.ones(3))
    >>> info, x.compute().round(3)
    (0, array([1.  , 0.5 , 0.25]))
    """
    a = _square(a, "cg")
    n, rows = a.shape[0], a.chunks[0]
    b = da.asarray(b)
    if b.shape != (n,):
        raise ShapeError(f"cg: the matrix has shape {a.shape}, the right side {b.shape}\n  expected ({n},)")
    maxiter = 10 * n if maxiter is None else integer(maxiter, "cg", "maxiter", boolean=False)
    r = b.rechunk((rows,)).astype(da.result_type(a.dtype, b.dtype, "f4"))
    x, r, square = dask.persist(da.zeros_like(r), r, (r.conj() * r).sum().real)
    p, left = r, float(square.compute())
    goal = max(rtol * math.sqrt(left), atol)
    for step in range(maxiter + 1):
        if math.sqrt(left) <= goal:
            return x, 0
        if step == maxiter or not math.isfinite(left):
            break
        q = (a @ p.rechunk((a.chunks[1],))).rechunk((rows,))
        alpha = square / (p.conj() * q).sum()
        rest = r - alpha * q
        fresh = (rest.conj() * rest).sum().real
        x, r, p, square = dask.persist(x + alpha * p, rest, rest + fresh / square * p, fresh)
        left = float(square.compute())
    warn("cg", step, math.sqrt(left) if left >= 0 else math.nan, goal)
    return x, step
