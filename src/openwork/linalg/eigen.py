"""A matrix -> eigenvalues, singular values, exponential and norm, by SciPy's methods with products by our kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import ConvergenceWarning, ShapeError, Tensor, asarray, caller, reshape, sparse_coo_tensor, stack
from ..integers import integer
from ..ops.result_format import to_result_format
from ..progress import Progress, reporting
from ..runtime.at_operand import at_operand
from ..runtime.gradient_hook import differentiable
from ..runtime.library_errors import check_memory
from ..storage.buffers import as_array, is_torch, to_numpy
from ..storage.recorded import refuse_recorded
from .named import preconditioner_by_name
from .operands import (
    counts,
    dense,
    dense_array,
    matrices,
    matrix,
    numbers,
    options_of,
    right_side,
    scipy_matrix,
    solve_scalar,
    square,
    value_buffers,
)
from .operator import aslinearoperator, counted, is_operator, preconditioner
from .preconditioner import finite

__all__ = ["eigs", "eigsh", "expm", "expm_multiply", "lobpcg", "onenormest", "svds"]


def _eigenvalues(name: str, a: Any, k: int, progress: Progress = None, **options: Any) -> Any:
    import scipy.sparse.linalg as scipys

    t, k = a if is_operator(a) else square(a, name), integer(k, name, "k")
    options = options_of(name, options)
    counts(name, options)
    numbers(name, options)
    all_of_them, most = ("eigh", t.shape[0] - 1) if name == "eigsh" else ("eig", t.shape[0] - 2)
    if not 0 < k <= most:
        raise ShapeError(
            f"{name}: k = {k} of shape {tuple(t.shape)}\n  expected: 1 or more, at most {most}"
            f"\n  help: {all_of_them}(A.asformat('dense')) gives all"
        )
    for matrix_option in ("M", "Minv", "OPinv"):
        if options.get(matrix_option) is not None:
            options[matrix_option] = aslinearoperator(options[matrix_option])
    # Shift and invert factorises the matrix; else its products are enough.
    operator = aslinearoperator(t) if options.get("sigma") is None or is_operator(t) else scipy_matrix(t, "csc")
    with reporting(progress, name) as passes:
        if step := passes.begin(name, "products"):
            operator = counted(scipys.aslinearoperator(operator), step)
        return getattr(scipys, name)(operator, k=k, **options)


def _values_of(a: Any = None, *_: Any) -> list[Any]:
    """The value buffer of a matrix, where it has one that torch may record."""
    return value_buffers(a)


def _in_library(result: Any, a: Any) -> Any:
    """NumPy arrays of a result as torch tensors where the matrix is over torch buffers."""
    (like,) = value_buffers(a)
    if not is_torch(like):
        return result
    if isinstance(result, tuple):
        return tuple(None if x is None else as_array(x, like=like) for x in result)
    return as_array(result, like=like)


@at_operand
@differentiable(_values_of)
def eigsh(
    a: Any, k: int = 6, *, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None,
    ncv: int | None = None, maxiter: int | None = None, tol: float | None = 0.0, return_eigenvectors: bool = True,
    Minv: Any = None, OPinv: Any = None, mode: str = "normal", rng: Any = None,
    progress: Progress = None,
) -> Any:  # fmt: skip
    """`k` eigenvalues (and eigenvectors) of a Hermitian matrix of any format, or of a LinearOperator, by ARPACK.

    Gradients of a real matrix are at its elements; those of vectors take the solution of a system for each, of
    eigenvalues that are apart.

    Parameters
    ----------
    k : how many eigenvalues
    M : the matrix of the generalised problem `a @ x = w * M @ x`, positive definite
    progress : True for a bar on stderr, or a function of (products, None)

    Returns
    -------
    tuple (w, v) of arrays of the library of `a`: k eigenvalues, and their vectors as columns; w alone for
    `return_eigenvectors=False`

    Raises ShapeError for a matrix that is not square, or a `k` that is not between 1 and n - 1: `eigh` gives all.
    Cost: products, some tens for each eigenvalue.
    See also: eigs, lobpcg, eigh.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> values, vectors = ow.linalg.eigsh(L, k=2, v0=b)
    >>> values.round(3)
    array([2.618, 3.618])
    """
    found = _eigenvalues(
        "eigsh", a, k, M=M, sigma=sigma, which=which, v0=v0, ncv=ncv, maxiter=maxiter, tol=tol,
        return_eigenvectors=return_eigenvectors, Minv=Minv, OPinv=OPinv, mode=mode, rng=rng, progress=progress,
    )  # fmt: skip
    return _in_library(found, a)


@at_operand
@differentiable(_values_of)
def eigs(
    a: Any, k: int = 6, *, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None,
    ncv: int | None = None, maxiter: int | None = None, tol: float | None = 0.0, return_eigenvectors: bool = True,
    Minv: Any = None, OPinv: Any = None, OPpart: str | None = None, rng: Any = None,
    progress: Progress = None,
) -> Any:  # fmt: skip
    """`k` eigenvalues (and eigenvectors) of a square matrix of any format, by ARPACK; see `eigsh`.

    Gradients are those of simple eigenvalues, and of what does not depend on the phase of their vectors.

    Parameters
    ----------
    k : how many eigenvalues
    M : the matrix of the generalised problem `a @ x = w * M @ x`, positive definite
    progress : True for a bar on stderr, or a function of (products, None)

    Returns
    -------
    tuple (w, v) of arrays of the library of `a`, or w alone, as of `eigsh`

    Raises ShapeError for a matrix that is not square, or a `k` that is not between 1 and n - 2: `eig` gives all.
    Cost: products, some tens for each eigenvalue.
    See also: eigsh, eig, svds.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> values, vectors = ow.linalg.eigs(L, k=1, v0=b)
    >>> values.real.round(3)
    array([3.618])
    """
    found = _eigenvalues(
        "eigs", a, k, M=M, sigma=sigma, which=which, v0=v0, ncv=ncv, maxiter=maxiter, tol=tol,
        return_eigenvectors=return_eigenvectors, Minv=Minv, OPinv=OPinv, OPpart=OPpart, rng=rng, progress=progress,
    )  # fmt: skip
    return _in_library(found, a)


@at_operand
@differentiable(_values_of)
def svds(
    a: Any, k: int = 6, *, ncv: int | None = None, tol: float | None = 0.0, which: str = "LM", v0: Any = None,
    maxiter: int | None = None, return_singular_vectors: bool | str = True, solver: str = "arpack", rng: Any = None,
    options: dict[str, Any] | None = None, progress: Progress = None,
) -> Any:  # fmt: skip
    """`k` singular values (and vectors) of a matrix of any format, or of a LinearOperator: (u, s, vh), as SciPy's.

    Arrays of the library of `a`; gradients as of `eigsh`.

    Parameters
    ----------
    k : how many singular values

    Returns
    -------
    tuple (u, s, vh) of arrays of the library of `a`; s alone without vectors

    Raises ValueError for a `k` that is not between 1 and the smaller extent less one: `svd` gives all; SizeError where
    the vectors of the longer side are more than there is memory for.
    Cost: products with the matrix and its adjoint, some tens for each value.
    See also: pca, svd, eigsh.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> b = np.array([1.0, 2.0, 3.0, 4.0])
    >>> u, s, vh = ow.linalg.svds(L, k=1, v0=b)
    >>> s.round(3)
    array([3.618])
    """
    found = _singular_values(
        a, k, ncv=ncv, tol=tol, which=which, v0=v0, maxiter=maxiter, return_singular_vectors=return_singular_vectors,
        solver=solver, rng=rng, options=options, progress=progress,
    )  # fmt: skip
    return _in_library(found, a)


def _singular_values(a: Any, k: int, progress: Progress = None, **given: Any) -> Any:
    import scipy.sparse.linalg as scipys

    options = options_of("svds", given, 1)
    counts("svds", options)
    numbers("svds", options)
    t = a if is_operator(a) else matrix(a, "svds")
    shape, axis = t.shape, int(t.shape[1] > t.shape[0])
    t, kept = (t, None) if is_operator(a) else _without_empty(t, axis)
    operator, k = aslinearoperator(t), integer(k, "svds", "k")
    # The k vectors of the longer side, their copy in the last, dense decomposition, and a vector on either side.
    count, itemsize = (2 * max(k, 0) + 2) * max(operator.shape), np.dtype(operator.dtype or np.float64).itemsize
    if kept is not None and options.get("return_singular_vectors", True) in (True, ("u", "vh")[axis]):
        count += k * shape[axis]
    check_memory("svds", count * itemsize, f"vectors of {max(shape)} elements")
    with reporting(progress, "svds") as passes:
        found = scipys.svds(counted(operator, passes.begin("svds", "products")), k=k, **options)
    if kept is None or not isinstance(found, tuple) or found[2 * axis] is None:
        return found
    vectors = np.zeros((shape[0], k) if axis == 0 else (k, shape[1]), found[2 * axis].dtype)
    vectors[(slice(None),) * axis + (kept,)] = found[2 * axis]
    return (*found[: 2 * axis], vectors, *found[2 * axis + 1 :])


def _without_empty(t: Tensor, axis: int) -> tuple[Tensor, np.ndarray[Any, Any] | None]:
    """A matrix far longer along `axis` than it has elements, without most empty rows or columns, and the numbers
    of those that it keeps; any other matrix, and None."""
    short = t.shape[1 - axis]
    if t.fill_value != 0 or t.shape[axis] <= 4 * (t.nse + short):
        return t, None
    s = t.asformat("coo")._raw_storage
    index = [to_numpy(x) for x in s.crd]
    kept = np.union1d(index[axis], np.arange(short))
    index[axis] = np.searchsorted(kept, index[axis])
    shape = (len(kept), short) if axis == 0 else (short, len(kept))
    return sparse_coo_tensor(np.stack(index), s.values, shape), kept


@at_operand
@differentiable(_values_of)
def lobpcg(
    a: Any, x: Any, *, B: Any = None, M: Any = None, Y: Any = None, tol: float | None = None,
    maxiter: int | None = None, largest: bool = True, verbosityLevel: int | None = 0, retLambdaHistory: bool = False,
    retResidualNormsHistory: bool = False, restartControl: int | None = 20, progress: Progress = None,
) -> Any:  # fmt: skip
    """Extreme eigenvalues of a Hermitian matrix of any format from the block of vectors `x`; as SciPy's `lobpcg`.

    Arrays of the library of `a`; gradients as of `eigsh`, without B and Y.

    Parameters
    ----------
    x : the block of vectors (n, k) to start from
    M : a preconditioner, or the name of one, "amg" say, as `cg` takes it
    progress : True for a bar on stderr, or a function of (products, None)

    Returns
    -------
    tuple (w, v): eigenvalues, and vectors as columns; then the histories that were asked for

    Raises ValueError for a name that is no preconditioner's.

    Cost: one product with the block for each iteration.
    See also: eigsh, amg.

    Examples
    --------
    >>> A = ow.diags_array([np.arange(1.0, 31.0)], format="csr")
    >>> values, vectors = ow.linalg.lobpcg(A, np.eye(30)[:, :2] + 0.01, largest=False, maxiter=100, tol=1e-6)
    >>> np.sort(values).round(2)
    array([1., 2.])
    """
    import scipy.sparse.linalg as scipys

    options = options_of("lobpcg", {
        "B": B, "M": M, "Y": Y, "tol": tol, "maxiter": maxiter, "largest": largest, "verbosityLevel": verbosityLevel,
        "retLambdaHistory": retLambdaHistory, "retResidualNormsHistory": retResidualNormsHistory,
        "restartControl": restartControl,
    })  # fmt: skip
    counts("lobpcg", options)
    numbers("lobpcg", options)
    if isinstance(M, str):
        options["M"] = preconditioner_by_name(M, a)
    for name in ("B", "M"):
        if options.get(name) is not None:
            options[name] = preconditioner(options[name])
    operator, start = aslinearoperator(a if is_operator(a) else square(a, "lobpcg")), dense(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with reporting(progress, "lobpcg") as passes:
            result = scipys.lobpcg(counted(operator, passes.begin("lobpcg", "products")), start, **options)
    unrelated = [w for w in caught if "not reaching the requested tolerance" not in str(w.message)]
    for other in unrelated:
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if len(unrelated) < len(caught):
        _warn_lobpcg(operator, result, options)
    return (*_in_library(result[:2], a), *result[2:])


def _warn_lobpcg(operator: Any, result: Any, options: dict[str, Any]) -> None:
    """Warn the caller of `lobpcg` that its pairs are not what was asked for."""
    values, vectors = np.asarray(result[0]), np.asarray(result[1])
    right = vectors * values
    if options.get("B") is not None:
        right = options["B"].matmat(right)
    residual = float(np.linalg.norm(operator.matmat(vectors) - right, axis=0).max())
    iterations = options.get("maxiter") or 20
    message = (
        f"lobpcg: no convergence after {iterations} iterations: a pair has a residual of norm {residual:.3g}"
        "\n  help: more iterations (maxiter=), a preconditioner M, or eigsh"
    )
    caller.warn(ConvergenceWarning(message, "lobpcg", iterations, residual))


def expm_multiply(
    a: Any, b: Any, start: Any = None, stop: Any = None, num: Any = None, endpoint: Any = None, traceA: Any = None
) -> Any:
    """`expm(a) @ b` without the exponential, for a square matrix of any format; `b` a vector or a matrix.

    `start`, `stop`, `num`, `endpoint` and `traceA` are those of `scipy.sparse.linalg.expm_multiply`: several times `a`.

    Parameters
    ----------
    b : a vector (n,) or matrix (n, k)

    Returns
    -------
    array of the shape of `b`, of several times with one more dimension in front

    Cost: O(norm) products with vectors.
    See also: expm.

    Examples
    --------
    >>> ow.linalg.expm_multiply(ow.asarray([[0, 1.0], [0, 0]], format="csr"), np.array([1.0, 2.0]))
    array([3., 2.])
    """
    import scipy.sparse.linalg as scipys

    options = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "traceA": traceA}
    options = {name: value for name, value in options.items() if value is not None}
    counts("expm_multiply", options)
    right, to_result = right_side(b, a)
    matrix = square(a, "expm_multiply")
    if matrix.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != matrix.shape[1]:
        raise ShapeError(
            f"expm_multiply: the matrix has shape {matrix.shape}, the right side {right.shape}"
            f"\n  expected ({matrix.shape[1]},) or ({matrix.shape[1]}, k)"
        )
    finite(to_numpy(matrix.values), "expm_multiply")
    return to_result(scipys.expm_multiply(scipy_matrix(matrix, "csr"), right, **options))


def expm(a: Any, /) -> Tensor:
    """The exponential of square matrices, by scaling, squaring and Pade approximation.

    Parameters
    ----------
    a : Tensor, shape (..., n, n), any format

    Returns
    -------
    Tensor, shape (..., n, n), dense where `a` is, by torch over torch values, with gradients; else sparse, in the
    format of `a` where that suits. Where every row reaches every other it has no zeros: see `expm_multiply`

    Raises UnsupportedError where torch records a sparse matrix: it has no gradient.

    Cost: O(log norm) products of matrices that fill up.
    See also: expm_multiply.

    Examples
    --------
    >>> ow.linalg.expm(ow.asarray([[0, 1.0], [0, 0]], format="csr")).to_numpy()
    array([[1., 1.],
           [0., 1.]])
    """
    t = square(a, "expm")
    array = dense_array(t)
    if array is not None:
        return Tensor._from_dense(_dense_exponential(array))
    refuse_recorded(t.values)
    from scipy.sparse.linalg import expm as scipys

    finite(to_numpy(t.values), "expm")
    scalar = solve_scalar(t)
    exponentials = [scipys(scipy_matrix(m, "csc", scalar)).tocsc() for m in matrices(t, scalar)]
    parts = [_in_library_of(asarray(x), t.values) for x in exponentials]
    return to_result_format((parts[0] if t.ndim == 2 else reshape(stack(parts), t.shape))._storage, t.format)


def _dense_exponential(array: Any) -> Any:
    if is_torch(array):
        import torch

        return torch.linalg.matrix_exp(array)
    from scipy.linalg import expm as scipys

    finite(array, "expm")
    return scipys(array) if array.size else array.copy()


def _in_library_of(t: Tensor, values: Any) -> Tensor:
    """A tensor over buffers of the library of `values`."""
    return Tensor._from_storage(t._storage.mapped(lambda b: as_array(b, like=values))) if is_torch(values) else t


def onenormest(a: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False) -> Any:
    """A lower bound of the 1-norm of a matrix or LinearOperator (n, n), as `scipy.sparse.linalg.onenormest`.

    Returns
    -------
    float, the bound; then v and w where they were asked for

    Cost: some ten products with few columns.
    See also: norm.

    Examples
    --------
    >>> L = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(4, 4), format="csr")
    >>> float(ow.linalg.onenormest(L))
    4.0
    """
    import scipy.sparse.linalg as scipys

    operator = aslinearoperator(a if is_operator(a) else square(a, "onenormest"))
    if operator.shape[0] != operator.shape[1]:
        raise ShapeError(f"onenormest: expected a square matrix; got shape {operator.shape}\n  help: norm(A, 1)")
    t, itmax = integer(t, "onenormest", "t"), integer(itmax, "onenormest", "itmax")
    if t < 1 or itmax < 2:
        raise ValueError(f"onenormest: expected t >= 1 and itmax >= 2; got {t} and {itmax}")
    if operator.shape[0] <= t:
        return _exact_one_norm(operator, compute_v, compute_w)
    return scipys.onenormest(operator, t, itmax, compute_v, compute_w)


def _exact_one_norm(operator: Any, compute_v: bool, compute_w: bool) -> Any:
    """The exact norm, of a matrix with as few columns as the estimate would take products."""
    n = operator.shape[1]
    columns = operator.matmat(np.eye(n, dtype=operator.dtype))
    sums = np.abs(columns).sum(0)
    column = int(sums.argmax()) if n else 0
    out: list[Any] = [float(sums[column]) if n else 0.0]
    out += [np.eye(n)[:, column]] if compute_v else []
    out += [columns[:, column]] if compute_w else []
    return tuple(out) if len(out) > 1 else out[0]
