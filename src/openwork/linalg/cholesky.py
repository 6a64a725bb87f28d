"""A Hermitian positive definite matrix -> its Cholesky factor: LAPACK's of dense format, a sparse one in an order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import Tensor, UnsupportedError, reshape, sparse_csc_tensor, stack
from ..errors import suggestion
from ..ops.result_format import to_result_format
from ..progress import Passes, Progress, reporting
from ..storage.buffers import as_array, cast, is_torch
from .dense_format import linear_algebra
from .direct_solver.graph import adjacency
from .direct_solver.ordering import METHODS
from .direct_solver.solvers import Multifrontal
from .direct_solver.symbolic import Symbolic, analyse
from .direct_solver.systems import Rows, completed, rows_of
from .operands import dense_array, matrices, solve_scalar, square

__all__ = ["CholeskyResult", "cholesky"]

Array = np.ndarray[Any, Any]


class CholeskyResult(NamedTuple):
    """The result of `cholesky` of a sparse matrix: the factor of `x[order][:, order]`, and the order."""

    factor: Tensor
    order: Any


def cholesky(x: Any, /, *, upper: bool = False, ordering: str | None = "auto", progress: Progress = None) -> Any:
    """The factors of Hermitian positive definite matrices: x = L @ L^H, or U^H @ U where `upper`.

    Parameters
    ----------
    x : Tensor, shape (..., n, n), any format; only its lower triangle is read
    upper : give U, the conjugate transpose of L
    ordering : of a sparse matrix, which stays sparse by it: a method of `ordering`, "auto" for the one with the fewest
        elements of "amd" and "natural"; None keeps rows and columns in their order, and gives the factor alone
    progress : True for bars on stderr, or a function of (operations, all of them), of a sparse matrix

    Returns
    -------
    of dense format, and of ordering=None: Tensor, shape (..., n, n), dense where `x` is, else in its format where that
    suits; else (factor, order) with `x[order][:, order] = factor @ factor^H`, order of shape (..., n)

    Cost: one factorisation by dense blocks. `factorized(x, kind="cholesky")` solves with it, and takes new values. Of a
    dense tensor over torch values torch's, with gradients.
    Raises numpy.linalg.LinAlgError where a matrix is not positive definite, with the row of a sparse one.

    See also: factorized, ordering, solve, ic0, det.

    Examples
    --------
    >>> A = ow.asarray([[4.0, 2.0], [2.0, 2.0]])
    >>> ow.linalg.cholesky(A).to_numpy()
    array([[2., 0.],
           [1., 1.]])
    >>> arrow = ow.asarray([[4.0, 1, 1], [1, 4, 0], [1, 0, 4]], format="csr")
    >>> L, order = ow.linalg.cholesky(arrow)
    >>> L.nse, ow.linalg.cholesky(arrow, ordering=None).nse
    (5, 6)
    >>> np.allclose((L @ L.T).to_numpy(), arrow.to_numpy()[np.ix_(order, order)])
    True
    """
    t = square(x, "cholesky")
    known = ("auto", *METHODS)
    if ordering is not None and ordering not in known:
        raise UnsupportedError(
            f"cholesky: no ordering {ordering!r}; there are {', '.join(known)}{suggestion(str(ordering), known)}"
        )
    if t.format.is_dense:
        return _dense(dense_array(t), t.shape, upper)
    scalar = solve_scalar(t)
    if not t.size:
        nothing = Tensor._from_storage(t._storage.with_values(cast(t.values, scalar)))
        none = as_array(np.zeros(t.shape[:-1], np.int64), like=t.values)
        return nothing if ordering is None else CholeskyResult(nothing, none)
    with reporting(progress, "cholesky") as passes:
        found = [_factor(m, scalar, upper, ordering, passes) for m in matrices(t, scalar)]
    factors = [factor for factor, _ in found]
    whole = factors[0] if t.ndim == 2 else reshape(stack(factors), t.shape)
    factor = to_result_format(whole._storage, t.format)
    if ordering is None:
        return factor
    order = np.stack([order for _, order in found]).reshape(t.shape[:-1])
    return CholeskyResult(factor, as_array(order.astype(np.int64), like=t.values))


def _dense(array: Any, shape: tuple[int, ...], upper: bool) -> Tensor:
    try:
        lower = linear_algebra("cholesky", array)
    except np.linalg.LinAlgError as error:
        raise _indefinite_error(shape) from error
    if upper:
        lower = lower.mH if is_torch(lower) else np.conjugate(np.swapaxes(lower, -1, -2))
    return Tensor._from_dense(lower)


def _factor(
    m: Tensor, scalar: str, upper: bool, ordering: str | None, passes: Passes
) -> tuple[Tensor, Array]:  # fmt: skip
    """The factor of one sparse matrix, and its order."""
    rows = completed(rows_of(m, scalar))
    if np.iscomplexobj(rows.values) and rows.turned:  # rows of the transpose, which is the conjugate
        rows = rows._replace(values=np.conj(rows.values))
    symbolic = _symbolic(rows, ordering)
    try:
        solver = Multifrontal(rows, "cholesky", scalar, lambda match: symbolic, passes)
        solver.factor(rows, passes)
    except np.linalg.LinAlgError as error:
        raise _indefinite_error(m.shape, str(error).partition("\n")[0]) from error
    pos, crd, values = _columns(symbolic, solver.factors.layout.panel_at, solver.factors.values)
    order = symbolic.order
    if ordering is None:
        pos, crd, values = _in_rows_order(order, pos, crd, values)
    factor = sparse_csc_tensor(*_compressed(pos, crd, values, m), m.shape)
    return (factor.mT.conj() if upper else factor), order


def _symbolic(rows: Rows, ordering: str | None) -> Symbolic:
    """The symbolic phase without zeros that panels store beside the factor's elements."""
    graph = adjacency(rows.pos, rows.crd)
    names = ("amd", "natural") if ordering == "auto" else (ordering or "natural",)
    found = [analyse(graph, METHODS[name](graph), name, relaxed=False) for name in names]
    return min(found, key=lambda s: s.nse)


def _columns(symbolic: Symbolic, panel_at: Array, panels: Array) -> tuple[Array, Array, Array]:
    """The compressed columns of the factor, from its panels."""
    first, n = symbolic.nodes.first.astype(np.int64), symbolic.n
    width = np.diff(first)
    owner = symbolic.owner
    inside = np.arange(n) - first[owner]  # the place of each column in its panel
    height = (width + symbolic.nodes.below)[owner]
    length = height - inside
    pos = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
    within = np.arange(pos[-1]) - np.repeat(pos[:-1], length)  # below the diagonal
    column = np.repeat(np.arange(n), length)
    panel = owner[column]
    place = within + inside[column]
    rest = place - width[panel]
    below = rest >= 0
    crd = first[panel] + place
    crd[below] = symbolic.rows[symbolic.row_pos[panel[below]] + rest[below]]
    at = panel_at[panel] + inside[column] * height[column] + place
    return pos, crd, panels[at]


def _in_rows_order(order: Array, pos: Array, crd: Array, values: Array) -> tuple[Array, Array, Array]:
    """The columns with rows and columns numbered as before an order that leaves children before parents: triangular."""
    column, row = order[np.repeat(np.arange(len(order)), np.diff(pos))], order[crd]
    sorting = np.lexsort((row, column))
    counts = np.bincount(column, minlength=len(order))
    return np.concatenate([[0], np.cumsum(counts)]), row[sorting], values[sorting]


def _compressed(pos: Array, crd: Array, values: Array, m: Tensor) -> tuple[Any, Any, Any]:
    kind = np.int32 if len(crd) < 2**31 - 1 else np.int64
    return tuple(as_array(a, like=m.values) for a in (pos.astype(kind), crd.astype(kind), values))


def _indefinite_error(shape: tuple[int, ...], reason: str = "") -> Exception:
    pivot = reason.partition(": ")[2]
    return np.linalg.LinAlgError(
        f"cholesky: a matrix of shape {shape} is not positive definite{': ' if pivot else ''}{pivot}"
        "\n  help: factorized(A) takes indefinite matrices too"
    )
