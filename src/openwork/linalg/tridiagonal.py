"""Tridiagonal matrices and right sides -> solutions, by compiled elimination with partial pivoting; stacks by threads.

Source: the elimination of LAPACK's xGTSV (Thomas's, with row exchanges and a second superdiagonal).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import openwork as ow

from .. import ShapeError, Tensor, UnsupportedError
from ..integers import common_shape
from ..storage.buffers import cast, to_numpy
from .compiled import compiled, numpy_dtype, parallel
from .operands import check_rows, right_side, solve_scalar, square

__all__ = ["is_tridiagonal", "solve_tridiagonal"]

_TEXT = """
def tridiagonal(lo: i64, hi: i64, low: T[mut], mid: T[mut], up: T[mut], x: T[mut], info: i64[mut], n: i64, m: i64):
    for b in range(lo, hi):
        o = b * n
        bad: i64 = 0
        for i in range(o, o + n - 1):
            below = low[i + 1]
            pivot = mid[i]
            right = up[i]
            if abs(pivot) >= abs(below):
                if pivot == T(0.0) and bad == 0:
                    bad = i - o + 1
                f = below / pivot
                mid[i + 1] = mid[i + 1] - f * right
                low[i] = T(0.0)
                for c in range(0, m):
                    x[(i + 1) * m + c] = x[(i + 1) * m + c] - f * x[i * m + c]
            else:
                g = pivot / below
                next = mid[i + 1]
                mid[i] = below
                mid[i + 1] = right - g * next
                up[i] = next
                if i < o + n - 2:
                    low[i] = up[i + 1]
                    up[i + 1] = T(0.0) - g * low[i]
                else:
                    low[i] = T(0.0)
                for c in range(0, m):
                    swapped = x[i * m + c]
                    x[i * m + c] = x[(i + 1) * m + c]
                    x[(i + 1) * m + c] = swapped - g * x[(i + 1) * m + c]
        if mid[o + n - 1] == T(0.0) and bad == 0:
            bad = n
        info[b] = bad
        for s in range(0, n):
            r = o + n - 1 - s
            for c in range(0, m):
                v: T = x[r * m + c]
                if s > 0:
                    v = v - up[r] * x[(r + 1) * m + c]
                if s > 1:
                    v = v - low[r] * x[(r + 2) * m + c]
                x[r * m + c] = v / mid[r]
"""


def _diagonal_format(ndim: int) -> Any:
    """Diagonals outermost, then the stack, then rows."""
    names = [f"b{k}" for k in range(ndim - 2)]
    levels = ", ".join(("j - i : compressed", *(f"{b} : dense" for b in names), "i : range"))
    return ow.format(f"({', '.join((*names, 'i', 'j'))}) -> ({levels})", ndim)


def is_tridiagonal(t: Tensor) -> bool:
    """Whether the tensor is stored by diagonals, and these are the three middle ones or some of them."""
    if t.ndim < 2 or t.format != _diagonal_format(t.ndim):
        return False
    return bool(np.isin(to_numpy(t.crd(0)), (-1, 0, 1)).all())


def solve_tridiagonal(a: Any, b: Any, /) -> Any:
    """The solution x of `a @ x = b` for tridiagonal matrices.

    Parameters
    ----------
    a : Tensor, shape (..., n, n), any format, nothing but zeros outside the three middle diagonals. Those that are
        stored by diagonals, `(b, i, j) -> (j - i : compressed, b : dense, i : range)`, are solved as they are
    b : a vector (n,), or right sides (..., n, k) whose batch dimensions broadcast with those of `a`

    Returns
    -------
    of the kind of `b`: an array of its library, or a dense Tensor

    Guarantees: rows are exchanged where that keeps the elimination stable.
    Cost: O(stack * n * k); a stack runs in parallel.
    Raises numpy.linalg.LinAlgError for a singular matrix, UnsupportedError for a matrix with other diagonals.

    See also: solve.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> x = ow.linalg.solve_tridiagonal(L, b)
    >>> np.allclose(L @ x, b)
    True
    """
    t = square(a, "solve_tridiagonal")
    right, to_result = right_side(b, a)
    check_rows("solve_tridiagonal", t, right)
    scalar = solve_scalar(t, right)
    vector = right.ndim == 1
    sides = right[:, None] if vector else right
    n, k = sides.shape[-2:]
    try:
        batch = common_shape("solve_tridiagonal", (t.shape[:-2], sides.shape[:-2]))
    except ValueError as error:
        raise ShapeError(
            f"solve_tridiagonal: stacks {t.shape[:-2]} and {sides.shape[:-2]} do not broadcast"
            "\n  help: extents agree, or are 1"
        ) from error
    low, mid, up = (np.array(np.broadcast_to(d, (*batch, n)), order="C") for d in _diagonals(t, scalar))
    x = np.array(np.broadcast_to(sides, (*batch, n, k)), numpy_dtype(scalar), order="C")
    info = np.zeros(int(np.prod(batch)), np.int64)
    if x.size:
        executable = compiled(_TEXT, one=k == 1, T=scalar)
        parts = min(ow.get_num_threads(), len(info)) if x.size > 1 << 14 else 1
        bounds = [len(info) * p // parts for p in range(parts + 1)]
        parallel(executable, executable.pack([low, mid, up, x, info, n, k]), bounds, x.size)
    singular = np.flatnonzero(info)
    if len(singular):
        where = f"matrix {singular[0]} of the stack {batch}: " if batch else ""
        raise np.linalg.LinAlgError(
            f"{where}the tridiagonal matrix of shape {(n, n)} is singular: pivot {info[singular[0]] - 1} is 0"
            "\n  help: lsqr(A, b) gives the least-squares solution"
        )
    return to_result(x[..., 0] if vector else x)


def _diagonals(t: Tensor, scalar: str) -> list[np.ndarray[Any, Any]]:
    """A[i, i - 1], A[i, i] and A[i, i + 1] by row i, shape (*batch, n)."""
    diagonals = t.asformat(_diagonal_format(t.ndim))
    offsets = to_numpy(diagonals.crd(0)).tolist()
    n = t.shape[-1]
    values = to_numpy(diagonals.values).reshape(len(offsets), *t.shape[:-2], n)
    out = [np.zeros((*t.shape[:-2], n), numpy_dtype(scalar)) for _ in range(3)]
    for offset, diagonal in zip(offsets, values, strict=True):
        first, last = max(0, -offset), min(n, n - offset)
        if -1 <= offset <= 1:
            out[offset + 1][..., first:last] = cast(diagonal[..., first:last], scalar)
        elif np.any(diagonal[..., first:last]):
            raise UnsupportedError(
                f"solve_tridiagonal: the matrix has elements on diagonal {offset}\n  supported: diagonals -1, 0 and 1"
                "\n  help: solve() takes any matrix"
            )
    return out
