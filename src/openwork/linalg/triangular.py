"""A triangular matrix and right sides -> solutions, by compiled forward and backward substitution over CSR and CSC."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .. import Tensor, conj
from ..runtime.gradient_hook import differentiable
from ..runtime.layouts import layout_of
from ..storage.buffers import to_numpy
from .compiled import numpy_dtype, run
from .inverse import check_transposition
from .kernels import ROW, of_triangle
from .level_sets import substitute, trial_of
from .operands import check_rows, right_side, square, value_buffers
from .stacked import solve_stack

__all__ = ["solve_triangular", "spsolve_triangular"]

_HEAD = """
def solve_KIND(pos: P[const], crd: C[const], A: S[const], x: T[mut], n: i64, m: i64):
    for s in range(0, n):
        i = ROW
"""
_CSC = """
        d: T = START
        for p in range(pos[i], pos[i + 1]):
            j = i64(crd[p])
            DIAGONAL
        if d == T(0.0):
            return i + 2
        for c in range(0, m):
            x[i * m + c] = x[i * m + c] / d
        for p in range(pos[i], pos[i + 1]):
            j = i64(crd[p])
            if i BEFORE j:
                a = T(A[p])
                for c in range(0, m):
                    x[j * m + c] = x[j * m + c] - a * x[i * m + c]
"""
_TEXTS = {
    "csr": _HEAD.replace("KIND", "csr") + ROW.replace("SINGULAR", "return i + 2"),
    "csc": _HEAD.replace("KIND", "csc") + _CSC,
}


@differentiable(lambda a, b: value_buffers(a, b))
def _solve_triangular(a: Any, b: Any, *, lower: bool, unit_diagonal: bool) -> Any:
    t = square(a, "solve_triangular")
    right, to_result = right_side(b, a)
    check_rows("solve_triangular", t, right)
    return to_result(solve_stack(t, right, lambda m, r, scalar: _substitute(m, r, scalar, lower, unit_diagonal)))


def solve_triangular(a: Any, b: Any, /, *, lower: bool = True, unit_diagonal: bool = False, trans: str = "N") -> Any:
    """The solution x of `tril(a) @ x = b`, or of `triu(a) @ x = b`.

    Parameters
    ----------
    a : Tensor, shape (..., n, n), any format; the other triangle is not read. CSR and CSC are solved as they are,
        sorted or not, duplicates summed; other formats are converted to CSC once
    b : a vector (n,), or right sides (..., n, k) whose batch dimensions broadcast with those of `a`
    lower : the triangle of `a`
    unit_diagonal : take the diagonal as ones; what is stored there is not read
    trans : "T" solves with the transpose of that triangle, "H" with its conjugate transpose; nothing is converted

    Returns
    -------
    of the kind of `b`: an array of its library, or a dense Tensor

    Cost: O(nse * k). Rows that depend on none of each other are a level set; where these are wide, and it was
    faster when tried, they are solved in parallel from the third call on, and the schedule is kept with the structure.
    Raises numpy.linalg.LinAlgError, with the row, where an element of the diagonal is 0.

    See also: solve, ilu0.

    Examples
    --------
    >>> A = ow.asarray([[2.0, 0], [1.0, 4.0]], format="csr")
    >>> ow.linalg.solve_triangular(A, np.array([2.0, 9.0]))
    array([1., 2.])
    """
    if check_transposition(trans, "solve_triangular") != "N":
        t, lower = square(a, "solve_triangular"), not lower
        a = t.mT if trans == "T" else conj(t).mT
    return _solve_triangular(a, b, lower=lower, unit_diagonal=unit_diagonal)


def spsolve_triangular(
    A: Any, b: Any, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """`solve_triangular`, by SciPy's name and signature; nothing is overwritten.

    Returns
    -------
    array or Tensor of the kind of `b`

    Cost: O(nse).
    See also: solve_triangular.

    Examples
    --------
    >>> A = ow.asarray([[2.0, 0], [1.0, 4.0]], format="csr")
    >>> ow.linalg.spsolve_triangular(A, np.array([2.0, 9.0]))
    array([1., 2.])
    """
    return solve_triangular(A, b, lower=lower, unit_diagonal=unit_diagonal)


def _substitute(
    t: Tensor, right: np.ndarray[Any, Any], scalar: str, lower: bool, unit: bool
) -> np.ndarray[Any, Any]:  # fmt: skip
    layout = layout_of(t.format)
    if layout is None or layout.batch or layout.kind not in ("csr", "csc") or t.dense_dim:
        t = t.asformat("csc")
    kind = "csr" if stored_rows(t) else "csc"
    x = np.array(right, numpy_dtype(scalar), order="C")
    m = x.shape[1]
    known_trial = trial_of(t, lower, m) if x.size else None
    levels = known_trial.levels(t, kind, lower, m) if known_trial is not None else None
    start = time.perf_counter()
    if levels is None:
        _substitute_rows(t, kind, x, scalar, lower, unit)
    elif not substitute(levels, np.ascontiguousarray(to_numpy(t.values)), x, scalar, lower, unit):
        return _substitute_rows(t, kind, np.array(right, numpy_dtype(scalar), order="C"), scalar, lower, unit)
    if known_trial is not None:
        known_trial.record_time(time.perf_counter() - start)
    return x


def _substitute_rows(
    t: Tensor, kind: str, x: np.ndarray[Any, Any], scalar: str, lower: bool, unit: bool
) -> np.ndarray[Any, Any]:
    """Substitution in place in the order of the rows."""
    n, m = x.shape
    pos, crd, values = (np.ascontiguousarray(to_numpy(x)) for x in (t.pos(1), t.crd(1), t.values))
    text, args = of_triangle(_TEXTS[kind], lower, unit), [pos, crd, values, x, n, m]
    work = len(crd) * m
    if x.size and (status := run(text, work, args, m == 1, status=True, P=pos, C=crd, S=values, T=scalar)):
        raise np.linalg.LinAlgError(
            f"solve_triangular: element ({status - 2}, {status - 2}) of the diagonal is 0: the matrix is singular"
            "\n  help: unit_diagonal=True takes the diagonal as ones"
        )
    return x


def stored_rows(t: Tensor) -> bool:
    """Whether a CSR or CSC tensor is stored by rows."""
    layout = layout_of(t.format)
    return layout is not None and layout.kind == "csr"
