"""`factorized`: a sparse matrix and a kind of factors -> its factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ShapeError, UnsupportedError
from ..errors import suggestion
from ..integers import integer
from ..progress import Passes, Progress, reporting
from ..storage.buffers import to_numpy
from .direct_solver.ordering import METHODS
from .factorization import Factorization
from .least_squares import LeastSquares
from .operands import matrix, solve_scalar, square
from .stacked import FactorizationStack

__all__ = ["factorized"]

Array = np.ndarray[Any, Any]

KINDS = ("auto", "cholesky", "ldl", "lu", "qr", "superlu", "pardiso", "mumps")
ORDERINGS = ("auto", "colamd", *METHODS)


def factorized(
    a: Any, kind: str = "auto", *, ordering: Any = "auto", refine: int | None = None, precision: str = "same",
    tolerance: float | None = None, permc_spec: str | None = None, diag_pivot_thresh: float | None = None,
    relax: int | None = None, panel_size: int | None = None, options: dict[str, Any] | None = None,
    progress: Progress = None,
) -> Any:  # fmt: skip
    """The factorisation of a matrix of any format, to solve with again and again, and with new values.

    Parameters
    ----------
    a : Tensor, shape (n, n), any format; of "qr" (m, n); a stack (..., n, n) of matrices that store the same places is
        factored side by side
    kind : "cholesky" of a Hermitian positive definite matrix and "ldl" of an indefinite one: the lower triangle is
        read; "lu"; "qr", for least squares and the rank; "superlu", SciPy's; "pardiso", MKL's by pypardiso, float64
        alone; "mumps", by python-mumps; "auto" finds out: a matrix that is Hermitian but for rounding is tried by
        "cholesky" and "ldl", others by "lu"; small ones go to SuperLU, and so do structures far from symmetric
    ordering : "auto", the name of a method of `ordering`, or an order, of "qr" one of the columns, or rows if fewer
    refine : steps of iterative refinement of each solution at most; by default 3 of "ldl" and "lu", 0 else
    precision : "single" computes factors of half the size, and refines solutions with residuals of full precision
    tolerance : of "qr": a column depends on others if its remainder is not above this share of the largest column
    permc_spec, diag_pivot_thresh, relax, panel_size, options : those of `scipy.sparse.linalg.splu`, which say
        kind="superlu"
    progress : True for bars on stderr, one for each phase, or a function of (operations, all of them) of the numeric
        phase; SuperLU's and MKL's tell nothing before their end

    Returns
    -------
    Factorization : solve(b, trans), update(values), slogdet(), logdet(), kind, nse, symbolic
    FactorizationStack, of a stack : the same, and parts, the Factorization of each matrix
    LeastSquares, of "qr" : solve(b, trans), update(values), rank, kind, nse, symbolic

    Cost: one factorisation by dense blocks on all threads; a solution O(nse of the factors). The symbolic phase is kept
    with the structure, which tensors that differ in values alone share, and by `update`.
    Raises numpy.linalg.LinAlgError, with the row, for a matrix that is singular or not definite, or has elements that
    are nan or inf; UnsupportedError for an unknown kind.

    See also: ordering, splu, solve, cholesky.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> F = ow.linalg.factorized(L, kind="cholesky")
    >>> np.allclose(L @ F(b), b)
    True
    >>> np.allclose(F.update(2 * L.values)(b), F.update(L)(b) / 2)
    True
    """
    if kind == "qr":
        others = (refine, permc_spec, diag_pivot_thresh, relax, panel_size, options, None if precision == "same" else 1)
        with reporting(progress, "factorized") as passes:
            return _least_squares(a, ordering, tolerance, others, passes)
    given = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size}
    asked = {name: x for name, x in {**given, "options": options}.items() if x is not None}
    if asked:
        kind = "superlu" if kind == "auto" else kind
    if kind not in KINDS:
        raise UnsupportedError(
            f"factorized: no kind {kind!r}; there are {', '.join(KINDS)}{suggestion(kind, KINDS)}"
        )  # fmt: skip
    if asked and kind != "superlu":
        raise TypeError(f"factorized() got options of SuperLU with kind={kind!r}: {', '.join(asked)}")
    if tolerance is not None:
        raise TypeError(f"factorized() got a tolerance with kind={kind!r}\n  help: kind='qr' finds the rank")
    if precision not in ("same", "single"):
        raise UnsupportedError(f"factorized: precision is 'same' or 'single'; got {precision!r}")
    steps = None if refine is None else integer(refine, "factorized", "refine", boolean=False)
    t = square(a, "factorized")
    order = _order(ordering, t.shape[-1])
    if t.ndim > 2:
        return FactorizationStack(t, solve_scalar(t), kind, order, steps, precision == "single", asked)
    with reporting(progress, "factorized") as passes:
        return Factorization(t, solve_scalar(t), kind, order, steps, precision == "single", asked, passes)


def _least_squares(
    a: Any, ordering: Any, tolerance: float | None, others: tuple[Any, ...], passes: Passes
) -> LeastSquares:
    if any(x is not None for x in others):
        raise TypeError("factorized() with kind='qr' takes an ordering and a tolerance alone")
    t = matrix(a, "factorized")
    if t.ndim != 2:
        raise ShapeError(f"factorized: expected one matrix; got shape {t.shape}")
    return LeastSquares(t, _order(ordering, min(t.shape)), tolerance, passes)


def _order(ordering: Any, n: int) -> Any:
    """The name of a method, or an order of n rows. Raises UnsupportedError, ShapeError for others."""
    if isinstance(ordering, str):
        if ordering not in ORDERINGS:
            raise UnsupportedError(
                f"factorized: no ordering {ordering!r}; there are {', '.join(ORDERINGS)}"
                f"{suggestion(ordering, ORDERINGS)}"
            )
        return ordering
    order = np.asarray(to_numpy(ordering) if not isinstance(ordering, list | tuple) else ordering)
    if order.shape != (n,) or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n)):
        raise ShapeError(f"factorized: expected an order of {n} rows, each once; got shape {order.shape}")
    return order
