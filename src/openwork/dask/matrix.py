"""A sparse matrix -> a LinearOperator whose blocks stay on Dask's workers, which SciPy's and our methods take."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ..errors import ShapeError, UnsupportedError
from ..tensor.tensor import Tensor
from . import block as blocks
from .kept import BlockTensor
from .partition import Array, Partition

__all__ = ["BlockMatrix"]


class BlockMatrix(LinearOperator):  # type: ignore[misc]
    """A sparse matrix in blocks that stay on the workers of Dask; vectors are the client's.

    Parameters
    ----------
    source, cut, client, timeout : as of `BlockTensor`

    `A @ X`, `A.T @ X`, `A.H @ X` are products with arrays. SciPy's iterative methods take it, those of
    `openwork.linalg` too, `graph.pagerank`, `graph.components`, and `nn.GraphConv` without gradients.
    `A.blocks` is the BlockTensor: `A.blocks.sent`, `A.blocks.predicted(columns)`.

    Examples
    --------
        A = ow.dask.BlockMatrix(t)
        x, info = ow.linalg.cg(A, b)
    """

    def __init__(
        self, source: Any, cut: Partition | int | None = None, *, client: Any = None, timeout: float | None = None
    ) -> None:
        self.blocks = BlockTensor(source, cut, client=client, timeout=timeout)
        if self.blocks.ndim != 2:
            raise ShapeError(f"BlockMatrix: expected a matrix; got shape {self.blocks.shape}\n  help: BlockTensor")
        dtype = self.blocks.dtype if self.blocks.dtype.kind in "fc" else np.dtype(np.float64)
        super().__init__(dtype, self.blocks.shape)

    def _matmat(self, x: Array) -> Array:
        return self.blocks.mttkrp([None, x], 0)

    def _matvec(self, x: Array) -> Array:
        return self.blocks.mttkrp([None, x.reshape(-1)], 0)

    def _rmatmat(self, y: Array) -> Array:
        return self.blocks.mttkrp([y.conj(), None], 1).conj()

    def _rmatvec(self, y: Array) -> Array:
        return self._rmatmat(y.reshape(-1))

    def gram(self) -> Tensor:
        """A.T @ A, sparse, of which each worker computes its part. Columns may not be cut."""
        self._rows_only("gram")
        parts: list[Tensor] = self.blocks.map(blocks.gram, [(self.shape[1],)] * len(self.blocks.futures))
        return reduce(add, parts)

    def normal_matmat(self, x: Any) -> Array:
        """A.H @ (A @ x) in one step: rows of x go out and come back, nothing of the size of A's rows is sent."""
        self._rows_only("normal_matmat")
        x = np.asarray(x)
        if x.shape[:1] != self.shape[1:] or x.ndim > 2:
            raise ShapeError(
                f"normal_matmat: the matrix has shape {self.shape}, x {x.shape}\n  expected ({self.shape[1]}, k)"
            )
        arguments = [(x[places[1]],) for places in self.blocks.places]
        return self.blocks.assembled(self.blocks.map(blocks.normal_product, arguments), 1)

    def forest(self) -> tuple[Array, Array]:
        """Edges of a graph with the same weak components, at most one for each node and block: `graph.components`."""
        pairs = self.blocks.map(blocks.forest, [()] * len(self.blocks.futures))
        nodes, first = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        return nodes, first

    def _rows_only(self, operation: str) -> None:
        if self.blocks._grid[1] > 1:
            raise UnsupportedError(
                f"{operation}: the columns are cut in {self.blocks._grid[1]}\n  help: partition by='nse'"
            )

    def __repr__(self) -> str:
        return repr(self.blocks).replace("BlockTensor", "BlockMatrix")
