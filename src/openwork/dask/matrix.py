"""A sparse matrix -> a LinearOperator whose blocks stay on Dask's workers, which SciPy's and our methods take."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .. import ShapeError, Tensor, UnsupportedError
from . import block as blocks
from .kept import BlockTensor
from .partition import Array, Partition
from .products import BlockProducts

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
    >>> from distributed import Client
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    >>> A = ow.dask.BlockMatrix(ow.eye_array(4, format="csr") * 2, 2)
    >>> x, info = ow.linalg.cg(A, np.ones(4))
    >>> x
    array([0.5, 0.5, 0.5, 0.5])
    >>> A.gram().nse
    4
    >>> client.close()
    """

    def __init__(
        self, source: Any, cut: Partition | int | None = None, *, client: Any = None, timeout: float | None = None
    ) -> None:
        self._of(BlockTensor(source, cut, client=client, timeout=timeout))

    def _of(self, found: BlockProducts) -> None:
        self.blocks = found
        if self.blocks.ndim != 2:
            raise ShapeError(f"BlockMatrix: expected a matrix; got shape {self.blocks.shape}\n  help: BlockTensor")
        dtype = self.blocks.dtype if self.blocks.dtype.kind in "fc" else np.dtype(np.float64)
        super().__init__(dtype, self.blocks.shape)

    @classmethod
    def over(cls, found: BlockProducts) -> BlockMatrix:
        """The matrix of blocks that are in this process."""
        matrix: BlockMatrix = cls.__new__(cls)
        matrix._of(found)
        return matrix

    def __openwork_run__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.blocks.run(self, function, args[1:], kwargs)

    def _matmat(self, x: Array) -> Array:
        return self.blocks.mttkrp([None, x], 0)

    def _matvec(self, x: Array) -> Array:
        return self.blocks.mttkrp([None, x.reshape(-1)], 0)

    def _rmatmat(self, y: Array) -> Array:
        return self.blocks.mttkrp([y.conj(), None], 1).conj()

    def _rmatvec(self, y: Array) -> Array:
        return self._rmatmat(y.reshape(-1))

    def gram(self) -> Tensor:
        """A.T @ A, sparse; the blocks' parts are added on the workers, as a tree. Columns may not be cut."""
        self._rows_only("gram")
        found: Tensor = self.blocks.reduced(blocks.gram, (self.shape[1],), add)
        return found

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
        """Edges of a graph with the same weak components, less than one for each node: `graph.components`.

        The blocks' forests are merged on the workers, as a tree.
        """
        found: tuple[Array, Array] = self.blocks.reduced(blocks.forest, (), blocks.merged_forests)
        return found

    def _rows_only(self, operation: str) -> None:
        if self.blocks._grid[1] > 1:
            raise UnsupportedError(
                f"{operation}: the columns are cut in {self.blocks._grid[1]}\n  help: partition by='nse'"
            )

    def __repr__(self) -> str:
        return repr(self.blocks).replace("BlockTensor", "BlockMatrix")
