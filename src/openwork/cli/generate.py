"""Matrices made by code, of the kinds that occur: a finite-element grid, a power-law graph, uniform, blocked.

All are SciPy COO arrays of float64 with int32 coordinates, unique and sorted by row, and depend on the seed only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "blocked", "rmat", "stencil", "uniform"]

Ints = NDArray[np.int64]


def unique_coo(rows: Ints, cols: Ints, values: NDArray[np.float64], shape: tuple[int, int]) -> Any:
    """Sort by row and column; of several elements at one coordinate the first stays."""
    from scipy.sparse import coo_array

    _, first = np.unique(rows * shape[1] + cols, return_index=True)
    i, j = rows[first].astype(np.int32), cols[first].astype(np.int32)
    return coo_array((values[first], (i, j)), shape=shape)


def stencil(side: int, dofs: int = 2, seed: int = 0) -> Any:
    """The matrix of a `side` x `side` grid with `dofs` unknowns per point, each coupled to its nine neighbours.

    Shape (side * side * dofs,) squared. The structure is symmetric, in dofs x dofs blocks and on a few diagonals;
    values are those of a Laplacian, each perturbed by up to ten per cent, and the diagonal dominates.
    """
    rng = np.random.default_rng(seed)
    y, x = np.divmod(np.arange(side * side), side)
    rows, cols = [], []
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            inside = (y + dy >= 0) & (y + dy < side) & (x + dx >= 0) & (x + dx < side)
            point = np.flatnonzero(inside)
            for a in range(dofs):
                for b in range(dofs):
                    rows.append(point * dofs + a)
                    cols.append((point + dy * side + dx) * dofs + b)
    i, j = np.concatenate(rows), np.concatenate(cols)
    values = np.where(i == j, 11.0 * dofs, -1.0) * (1 + 0.1 * rng.uniform(-1, 1, len(i)))
    n = side * side * dofs
    return unique_coo(i, j, values, (n, n))


def rmat(scale: int, edges: int, seed: int = 0) -> Any:
    """A directed R-MAT graph of 2**scale nodes: at most `edges` edges, degrees by a power law.

    Source: Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", 2004, with the
    Graph500 probabilities 0.57, 0.19, 0.19, 0.05.
    """
    rng = np.random.default_rng(seed)
    i, j = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for _ in range(scale):
        quadrant = np.searchsorted([0.57, 0.76, 0.95], rng.random(edges), side="right")
        i, j = 2 * i + quadrant // 2, 2 * j + quadrant % 2
    n = 1 << scale
    return unique_coo(i, j, rng.random(edges), (n, n))


def uniform(rows: int, cols: int, nse: int, seed: int = 0) -> Any:
    """About `nse` elements at uniformly random coordinates."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, rows, nse), rng.integers(0, cols, nse)
    return unique_coo(i, j, rng.random(nse), (rows, cols))


def blocked(side: int, blocks: int, size: int = 4, seed: int = 0) -> Any:
    """A `side` x `side` grid of size x size blocks, about `blocks` of them full, the others empty."""
    rng = np.random.default_rng(seed)
    corners = np.unique(rng.integers(0, side, blocks) * side + rng.integers(0, side, blocks))
    bi, bj = np.divmod(corners, side)
    a, b = np.divmod(np.arange(size * size), size)
    i, j = (bi[:, None] * size + a).ravel(), (bj[:, None] * size + b).ravel()
    return unique_coo(i, j, rng.random(len(i)), (side * size, side * size))


def by_nse(nse: int) -> dict[str, Callable[[], Any]]:
    """One matrix of each kind with about `nse` elements."""
    scale = max(4, (nse // 10).bit_length() - 1)
    return {
        "uniform": lambda: uniform(max(1, nse // 10), max(1, nse // 10), nse),
        "power-law": lambda: rmat(scale, nse),
        "stencil": lambda: stencil(max(2, round((nse / 36) ** 0.5))),
        "blocked": lambda: blocked(max(1, nse // 160), max(1, nse // 16)),
    }


KINDS = ("uniform", "power-law", "stencil", "blocked")
