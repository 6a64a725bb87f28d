"""SciPy's view of a tensor: a LinearOperator whose products run openwork's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ops.products.matmul import matmul
from ..storage.buffers import cast, numpy_dtype, refuse_recorded
from ..tensor.tensor import Tensor
from .operands import common, dense, matrix

__all__ = ["aslinearoperator", "preconditioner"]


def aslinearoperator(a: Any, dtype: Any = None) -> Any:
    """A `scipy.sparse.linalg.LinearOperator` over a matrix of any format.

    Its products, those with the adjoint too, are openwork's compiled kernels over the tensor's own buffers; nothing
    is converted. An object that is no Tensor or array is left to SciPy's function.
    """
    from scipy.sparse.linalg import LinearOperator
    from scipy.sparse.linalg import aslinearoperator as scipys

    if isinstance(a, LinearOperator) or (callable(a) and not isinstance(a, Tensor)):
        return scipys(a)
    t = matrix(a, "aslinearoperator")
    refuse_recorded(t.values)
    if t.ndim != 2:
        raise ShapeError(f"aslinearoperator: expected one matrix; got shape {t.shape}\n  help: one operator for each")
    scalar = common(t)
    if t.device != "cpu" or not isinstance(t.values, np.ndarray):
        t = Tensor._from_storage(t._storage.mapped(lambda b: np.asarray(b.detach().cpu())))
    if t._storage.scalar != scalar:
        t = t.astype(numpy_dtype(scalar))
    adjoint = t.T
    if scalar in ("c64", "c128"):
        adjoint = Tensor._from_storage(t._storage.with_values(np.conj(t.values))).T

    def forward(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return _product(t, x)

    def backward(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return _product(adjoint, x)

    return LinearOperator(
        t.shape, matvec=forward, rmatvec=backward, matmat=forward, rmatmat=backward, dtype=numpy_dtype(scalar)
    )


def _product(t: Tensor, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return dense(matmul(t, cast(x, "f64") if x.dtype.kind in "biu" else x))


def preconditioner(m: Any) -> Any:
    """`m`, a Tensor, LinearOperator, or None, as SciPy's solvers take it."""
    return None if m is None else aslinearoperator(m)
