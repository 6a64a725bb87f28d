"""A matrix, function or operator -> a SciPy LinearOperator whose products run openwork's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import ShapeError, Tensor, matmul
from ..progress import Step
from ..provided import provides
from ..storage.buffers import as_array, cast, numpy_dtype
from ..storage.recorded import refuse_recorded
from .operands import dense, matrix, solve_scalar

__all__ = ["aslinearoperator", "compose", "counted", "from_callable", "identity", "is_operator", "preconditioner"]


def is_operator(a: Any) -> bool:
    """Whether `a` has `matvec` and `shape` and is no Tensor, as SciPy's LinearOperators."""
    return hasattr(a, "matvec") and hasattr(a, "shape") and not isinstance(a, Tensor)


def aslinearoperator(a: Any, dtype: Any = None) -> Any:
    """A `scipy.sparse.linalg.LinearOperator` over a matrix of any format.

    Its products, those with the adjoint too, are openwork's compiled kernels over the tensor's own buffers; nothing
    is converted. An object that is no Tensor or array is left to SciPy's function.

    Parameters
    ----------
    dtype : of the operator; that of the matrix if left out

    Returns
    -------
    scipy.sparse.linalg.LinearOperator of shape (m, n)

    Cost: O(1); a product is ours.
    See also: cg, eigsh.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> ow.linalg.aslinearoperator(L).shape
    (4, 4)
    """
    from scipy.sparse.linalg import LinearOperator
    from scipy.sparse.linalg import aslinearoperator as scipys

    if is_operator(a):
        return scipys(a)
    t = matrix(a, "aslinearoperator")
    refuse_recorded(t.values)
    if t.ndim != 2:
        raise ShapeError(f"aslinearoperator: expected one matrix; got shape {t.shape}\n  help: one operator for each")
    scalar = solve_scalar(t)
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


def counted(operator: Any, step: Step | None, limit: int | None = None) -> Any:
    """The operator, of which `step(products, limit)` is told of each product; itself where nobody is told."""
    from scipy.sparse.linalg import LinearOperator

    if step is None:
        return operator
    products = 0

    def product(apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def told(x: Any) -> Any:
            nonlocal products
            result = apply(x)
            products += 1
            step(products, limit)
            return result

        return told

    return LinearOperator(
        operator.shape, matvec=product(operator.matvec), rmatvec=product(operator.rmatvec),
        matmat=product(operator.matmat), rmatmat=product(operator.rmatmat), dtype=operator.dtype,
    )  # fmt: skip


@provides("linalg compose")
def compose(a: Any, b: Any) -> Any:
    """`a @ b` for a LinearOperator b: the operator that applies both; NotImplemented for strangers.

    Nothing is multiplied before it is applied.
    """
    if not is_operator(b):
        return NotImplemented
    first, second = aslinearoperator(a), aslinearoperator(b)
    if first.shape[1] != second.shape[0]:
        raise ShapeError(
            f"matmul: the operands have shapes {first.shape} and {second.shape}"
            f"\n  expected {first.shape[1]} rows on the right; got {second.shape[0]}"
        )
    return first @ second


def _product(t: Tensor, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return dense(matmul(t, cast(x, "f64") if x.dtype.kind in "biu" else x))


def from_callable(function: Any, n: int, like: Any, dtype: Any) -> Any:
    """A function of a vector (n,) as an operator; it is given, and may give, arrays of the library of `like`."""
    from scipy.sparse.linalg import LinearOperator

    def product(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        result = dense(function(as_array(np.ascontiguousarray(x).reshape(-1), like=like)))
        if result.shape not in ((n,), (n, 1)):
            raise ShapeError(f"an operator of shape {(n, n)} gave a result of shape {result.shape}; expected ({n},)")
        return result

    return LinearOperator((n, n), matvec=product, dtype=dtype)


def identity(n: int, dtype: Any) -> Any:
    """The operator of shape (n, n) that gives what it is given."""
    from scipy.sparse.linalg import LinearOperator

    def same(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x

    return LinearOperator((n, n), matvec=same, rmatvec=same, dtype=dtype)


def preconditioner(
    m: Any, n: int | None = None, operation: str = "preconditioner", like: Any = None, dtype: Any = None
) -> Any:
    """`m`, an approximate inverse, as SciPy's solvers take it.

    A function of a vector is one of shape (n, n) and of this dtype, see `from_callable`.
    Raises ShapeError where the shape is not (n, n).
    """
    if callable(m) and not is_operator(m) and not isinstance(m, Tensor) and n is not None:
        return from_callable(m, n, like, dtype)
    operator = aslinearoperator(m)
    if n is not None and operator.shape != (n, n):
        raise ShapeError(
            f"{operation}: the preconditioner has shape {operator.shape}, the matrix {(n, n)}"
            "\n  help: M approximates the matrix's inverse"
        )
    return operator
