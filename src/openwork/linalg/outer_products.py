"""A factorisation by Cholesky and a vector -> that of the matrix plus a multiple of the vector's outer product."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, UnsupportedError
from ..storage.buffers import as_array
from ..storage.recorded import refuse_recorded
from ..storage.specified import coordinates
from .direct_solver import rank_one
from .direct_solver.solvers import Multifrontal
from .direct_solver.systems import coordinates as places
from .operands import dense

__all__ = ["add_outer"]


def add_outer(factorization: Any, w: Any, alpha: float) -> None:
    """`Factorization.add_outer`."""
    solver, t, n = factorization._factors, factorization._tensor, factorization.shape[0]
    if not isinstance(solver, Multifrontal) or solver.kind != "cholesky" or solver.scalar != factorization.scalar:
        raise UnsupportedError("add_outer: the factors are not Cholesky's\n  help: factorized(A, 'cholesky')")
    refuse_recorded(t.values)
    vector = dense(w)
    if vector.shape != (n,) or (np.iscomplexobj(vector) and factorization.scalar[0] != "c"):
        raise ShapeError(f"add_outer: expected a vector ({n},) of {factorization.dtype}; got {vector.shape}")
    vector = vector.astype(factorization.dtype)
    used = vector != 0
    row, col = places(factorization._rows)
    if np.count_nonzero(used[row] & used[col]) < np.count_nonzero(used) ** 2:
        raise ShapeError(
            "add_outer: the matrix does not store all elements of w w^H\n  help: store them, zeros, or update(values)"
        )
    scaled = vector * np.sqrt(abs(alpha))
    ordered = scaled[solver.symbolic.order]
    ordered = np.conj(ordered) if factorization._rows.turned else ordered
    failed = rank_one.add_outer(solver.factors, ordered, 1.0 if alpha >= 0 else -1.0)
    if failed is not None:
        raise np.linalg.LinAlgError(
            f"add_outer: the sum is not positive definite: the pivot of row {int(solver.symbolic.order[failed])} is not"
            " positive\n  help: the factors are as before"
        )
    crd, positions = coordinates(t._storage)
    values = np.array(as_array(t.values, like=vector), dtype=np.result_type(t.values, vector))
    np.add.at(values.reshape(-1), positions, alpha * vector[crd[0]] * np.conj(vector[crd[1]]))
    factorization._take(t.with_values(as_array(values, like=t.values)))
