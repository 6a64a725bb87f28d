"""A square matrix and blocks of its rows -> the inverse of its diagonal blocks, as a preconditioner."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import DTypeError, ShapeError, Tensor
from ..runtime.layouts import layout_of
from ..storage.buffers import is_torch, to_numpy
from .operands import square
from .preconditioner import Preconditioner, Rows

__all__ = ["BlockJacobi", "block_jacobi", "block_of_format"]

Array = np.ndarray[Any, Any]


class BlockJacobi(Preconditioner):
    """The inverses of the diagonal blocks of a matrix, dense; blocks of one size are kept together."""

    __slots__ = ("_groups", "_inverses", "_label", "_places")
    operation = "block_jacobi"

    def __init__(self, a: Any, label: Array) -> None:
        self._label = label
        super().__init__(a)

    def _analyse(self, r: Rows) -> None:
        """The rows of the blocks of each size, and where the elements of the matrix stand in these blocks."""
        label = self._label
        order = np.argsort(label, kind="stable")
        sizes = np.bincount(label)
        starts = np.cumsum(sizes) - sizes
        within = np.empty(r.n, np.int64)
        within[order] = np.arange(r.n) - np.repeat(starts, sizes)
        row = r.row
        inside = np.flatnonzero(label[row] == label[r.crd])
        row, col = row[inside], r.crd[inside]
        self._groups, self._places = [], []
        for size in np.unique(sizes[sizes > 0]):
            blocks = np.flatnonzero(sizes == size)
            number = np.full(len(sizes), -1)
            number[blocks] = np.arange(len(blocks))
            of = number[label[row]]
            mine = of >= 0
            flat = (of * size + within[row]) * size + within[col]
            self._groups.append(order[starts[blocks][:, None] + np.arange(size)])
            self._places.append((inside[mine], flat[mine]))

    def _compute(self, r: Rows) -> None:
        inverses = []
        for members, (source, flat) in zip(self._groups, self._places, strict=True):
            count, size = members.shape
            blocks = np.zeros(count * size * size, r.values.dtype)
            blocks[flat] = r.values[source]
            inverses.append(_inverted(blocks.reshape(count, size, size), members))
        self._inverses = inverses

    def _solve(self, right: Array, trans: str) -> Array:
        out = np.empty_like(right)
        for members, inverse in zip(self._groups, self._inverses, strict=True):
            turned = inverse if trans == "N" else inverse.swapaxes(1, 2)
            out[members] = (np.conj(turned) if trans == "H" else turned) @ right[members]
        return out


def _inverted(blocks: Array, members: Array) -> Array:
    """The inverses. Raises LinAlgError with the rows of a block that has none."""
    try:
        inverse = np.linalg.inv(blocks)
    except np.linalg.LinAlgError:
        inverse = np.full_like(blocks, np.nan)
    if not np.isfinite(inverse).all():
        bad = next(k for k in range(len(blocks)) if np.linalg.matrix_rank(blocks[k]) < blocks.shape[1])
        names = ", ".join(map(str, members[bad][:6])) + (", ..." if members.shape[1] > 6 else "")
        raise np.linalg.LinAlgError(f"block_jacobi: the block of rows {names} is singular\n  help: other blocks, ilu0")
    return inverse


def block_of_format(t: Any) -> int | None:
    """The rows of the blocks of a tensor's format where these are square, as those of bsr(3, 3)."""
    layout = layout_of(t.format) if isinstance(t, Tensor) and t.ndim == 2 else None
    if layout is None or layout.kind not in ("bsr", "bsc") or layout.block[0] != layout.block[1]:
        return None
    return int(layout.block[0])


def block_jacobi(a: Any, /, blocks: Any = None) -> BlockJacobi:
    """The block Jacobi preconditioner: the inverses of the diagonal blocks of a square matrix of any format.

    Parameters
    ----------
    a : Tensor, shape (n, n)
    blocks : the rows of each block, a number; or an array (n,) with the number of the block of each row, which need not
        lie together; that of the format where this is bsr or bsc

    Returns
    -------
    an operator; `update(values)` inverts the blocks anew

    Cost: of blocks of b rows O(n b^2) once, O(n b) for each application, and as many elements.
    Raises numpy.linalg.LinAlgError, with the rows, for a block that is singular.

    See also: jacobi, amg, ilu0.

    Examples
    --------
    >>> A = ow.asarray([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 0, 4, 1], [0, 1, 0, 1]], format="bsr(2, 2)")
    >>> np.allclose(ow.linalg.block_jacobi(A) @ np.array([3.0, 3, 5, 1]), 1)
    True
    """
    t = square(a, "block_jacobi")
    n = t.shape[-1]
    size = block_of_format(t) if blocks is None else blocks
    if size is None:
        raise ShapeError("block_jacobi: which rows belong together\n  help: blocks=3, or an array of their numbers")
    label = to_numpy(size) if is_torch(size) else np.asarray(size)
    if label.dtype.kind not in "iu":
        raise DTypeError(f"block_jacobi: blocks are integers; got: {blocks!r}")
    if not label.ndim:
        if label < 1:
            raise ValueError(f"block_jacobi: expected blocks of 1 row or more; got {size}")
        label = np.arange(n) // int(label)
    if label.shape != (n,) or (n and label.min() < 0):
        raise ShapeError(f"block_jacobi: expected a number of 0 or more for each of {n} rows; got shape {label.shape}")
    return BlockJacobi(t, np.unique(label, return_inverse=True)[1].reshape(-1))
