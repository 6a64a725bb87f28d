"""Eigenvalues, singular values and the exponential of a matrix by SciPy's methods, with products by our kernels."""

from __future__ import annotations

from typing import Any

from ..integers import integer
from .operands import counts, dense, matrix, right_side, scipy_matrix, square
from .operator import aslinearoperator, preconditioner

__all__ = ["eigs", "eigsh", "expm_multiply", "lobpcg", "svds"]


def _eigenvalues(name: str, a: Any, k: int, options: dict[str, Any]) -> Any:
    import scipy.sparse.linalg as scipys

    t, k = square(a, name), integer(k, name, "k")
    counts(name, options)
    for matrix_option in ("M", "Minv", "OPinv"):
        if options.get(matrix_option) is not None:
            options[matrix_option] = aslinearoperator(options[matrix_option])
    # Shift and invert factorises the matrix; else its products are enough.
    operator = aslinearoperator(t) if options.get("sigma") is None else scipy_matrix(t, "csc")
    return getattr(scipys, name)(operator, k=k, **options)


def eigsh(a: Any, k: int = 6, **options: Any) -> Any:
    """`k` eigenvalues (and eigenvectors) of a Hermitian matrix of any format, by ARPACK.

    `options` and the result are those of `scipy.sparse.linalg.eigsh` (which, sigma, v0, tol, ...): (w, v), or w alone
    with `return_eigenvectors=False`, as NumPy arrays.
    """
    return _eigenvalues("eigsh", a, k, options)


def eigs(a: Any, k: int = 6, **options: Any) -> Any:
    """`k` eigenvalues (and eigenvectors) of a square matrix of any format, by ARPACK; see `eigsh`."""
    return _eigenvalues("eigs", a, k, options)


def svds(a: Any, k: int = 6, **options: Any) -> Any:
    """`k` singular values (and vectors) of a matrix of any format: (u, s, vh), as `scipy.sparse.linalg.svds`."""
    import scipy.sparse.linalg as scipys

    counts("svds", options)
    return scipys.svds(aslinearoperator(matrix(a, "svds")), k=integer(k, "svds", "k"), **options)


def lobpcg(a: Any, x: Any, **options: Any) -> Any:
    """Extreme eigenvalues of a Hermitian matrix of any format from the block of vectors `x`; as SciPy's `lobpcg`."""
    import scipy.sparse.linalg as scipys

    counts("lobpcg", options)
    for name in ("B", "M"):
        if options.get(name) is not None:
            options[name] = preconditioner(options[name])
    return scipys.lobpcg(aslinearoperator(square(a, "lobpcg")), dense(x), **options)


def expm_multiply(a: Any, b: Any, **options: Any) -> Any:
    """`expm(a) @ b` without the exponential, for a square matrix of any format; `b` a vector or a matrix.

    `options` are those of `scipy.sparse.linalg.expm_multiply` (start, stop, num, endpoint).
    """
    import scipy.sparse.linalg as scipys

    counts("expm_multiply", options)
    right, back = right_side(b, a)
    matrix = square(a, "expm_multiply")
    return back(scipys.expm_multiply(scipy_matrix(matrix, "csr"), right, **options))
