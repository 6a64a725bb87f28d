"""Operands of solvers: matrices of any format -> SciPy's, right sides of any library -> NumPy arrays and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from .. import ShapeError, Tensor, UnsupportedError, asarray, sparse_coo_tensor
from ..integers import integer
from ..interop.sources import refuse_device
from ..reals import real
from ..runtime.layouts import layout_of
from ..runtime.promote import promote
from ..storage.buffers import as_array, cast, is_torch, numpy_dtype, scalar_of, to_numpy
from ..storage.recorded import refuse_recorded
from ..storage.structure import keep

__all__ = [
    "check_rows",
    "counts",
    "dense",
    "dense_array",
    "matrices",
    "matrix",
    "kept",
    "kept_with_structure",
    "narrow_indices",
    "numbers",
    "options_of",
    "real",
    "right_side",
    "scipy_matrix",
    "solve_scalar",
    "square",
    "stored_as",
    "stores_whole_fibres",
    "value_buffers",
]

_FLOATING = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "c64": "c64", "c128": "c128"}


_COUNTS = (
    "inner_m", "iter_lim", "k", "m", "maxiter", "ncv", "num", "outer_k", "panel_size", "relax", "restart",
    "restartControl", "verbosityLevel",
)  # fmt: skip
"""SciPy's options that are integers or None."""


def counts(operation: str, options: dict[str, Any]) -> None:
    """Make Python ints of the options that SciPy counts with. Raises DTypeError for floats, text and the like."""
    for name in _COUNTS:
        if options.get(name) is not None:
            options[name] = integer(options[name], operation, name)


_NUMBERS = (
    "atol", "btol", "conlim", "damp", "diag_pivot_thresh", "drop_tol", "fill_factor", "rtol", "shift", "tol",
)  # fmt: skip
"""SciPy's options that are real numbers or None."""


def numbers(operation: str, options: dict[str, Any]) -> None:
    """Make Python floats of the options that SciPy measures with. Raises DTypeError for what is no number."""
    for name in _NUMBERS:
        if options.get(name) is not None:
            options[name] = real(options[name], operation, name)


@cache
def _parameters(name: str) -> tuple[str, ...]:
    import scipy.sparse.linalg as scipys

    return tuple(inspect.signature(getattr(scipys, name)).parameters)


def options_of(name: str, options: dict[str, Any], operands: int = 2) -> dict[str, Any]:
    """Options under the names that SciPy's function of this name has: `rtol` was `tol` once. None is its default.

    Those that an older SciPy does not have are left out where they say nothing. Raises UnsupportedError for others.
    """
    import scipy

    parameters = _parameters(name)[operands:]
    out = {}
    for key, value in options.items():
        if value is None:
            continue
        known = {"rtol": "tol", "rng": "random_state"}.get(key, key) if key not in parameters else key
        if known in parameters:
            out[known] = value
        elif value is not False:
            raise UnsupportedError(
                f"{name}: SciPy {scipy.__version__} has no {key!r}\n  help: leave it out, or take a later SciPy"
            )
    return out


def matrix(a: Any, operation: str) -> Tensor:
    """`a` as a Tensor of rank 2 or more, its unspecified elements zero."""
    refuse_device(operation, a)
    t = a if isinstance(a, Tensor) else asarray(a)
    if t.ndim < 2:
        raise ShapeError(f"{operation}: expected a matrix; got shape {t.shape}\n  help: a vector is v[None, :] as one")
    if t.fill_value and not t.format.is_dense:
        raise UnsupportedError(
            f"{operation}: unspecified elements are {t.fill_value}, so the matrix is dense\n  help: asformat('dense')"
        )
    return t


def square(a: Any, operation: str) -> Tensor:
    """`a` as a Tensor of square matrices."""
    t = matrix(a, operation)
    if t.shape[-1] != t.shape[-2]:
        raise ShapeError(f"{operation}: expected square matrices; got shape {t.shape}\n  help: lsqr solves others")
    return t


def dense_array(t: Tensor) -> Any:
    """The array of a tensor of dense format, or of one without elements, in a floating-point type; None of others."""
    return cast(t.to_dense(), solve_scalar(t)) if t.format.is_dense or not t.size else None


def solve_scalar(*operands: Tensor | np.ndarray[Any, Any]) -> str:
    """The floating-point scalar type to solve in."""
    scalar = promote(tuple(x._storage.scalar if isinstance(x, Tensor) else scalar_of(x) for x in operands))
    return _FLOATING.get(scalar, "f64")


def dense(x: Any) -> np.ndarray[Any, Any]:
    """A right side as a NumPy array."""
    return to_numpy(x.to_dense() if isinstance(x, Tensor) else as_array(x))


def right_side(b: Any, a: Any) -> tuple[np.ndarray[Any, Any], Callable[[np.ndarray[Any, Any]], Any]]:
    """`b` as a NumPy array, and what makes a result of its kind: a Tensor, torch's or NumPy's array, SciPy's CSC."""
    if isinstance(b, Tensor):
        torch_like = is_torch(b.values)
        return dense(b), lambda x: Tensor._from_dense(_to_torch(x) if torch_like else np.ascontiguousarray(x))
    if is_torch(b):
        return to_numpy(as_array(b)), _to_torch
    if getattr(b, "format", None) == "csc" and hasattr(b, "toarray"):
        return b.toarray(), type(b)
    if hasattr(b, "tocsc"):
        return right_side(b.tocsc(), a)
    return np.asarray(b), lambda x: x


def _to_torch(x: np.ndarray[Any, Any]) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(x))


def scipy_matrix(t: Tensor, kind: str, scalar: str | None = None) -> Any:
    """A matrix as SciPy's "csr" or "csc", see `compressed_matrix`."""
    return compressed_matrix(t, kind, scalar).to_scipy(kind)


def compressed_matrix(t: Tensor, kind: str, scalar: str | None = None) -> Tensor:
    """A matrix as "csr" or "csc", over the same buffers where it is stored so, elements of a scalar type.

    Of formats that store whole blocks, rows or diagonals, zeros are left out.
    """
    if scalar is not None and t._storage.scalar != scalar:
        t = t.astype(numpy_dtype(scalar))
    if t._storage.scalar in ("f16", "bf16"):
        t = t.astype("float32")
    refuse_recorded(t.values)
    if t.fill_value and t.format.is_dense:
        t = t.with_values(t.values, fill_value=0)
    if not t.format.is_unique:
        t = t.coalesce()
    converted: Tensor = t.asformat(kind)
    return converted.prune() if stores_whole_fibres(t) else converted


def stores_whole_fibres(t: Tensor) -> bool:
    """Whether its format stores whole blocks, rows or diagonals, zeros among them."""
    last = t.format.levels[-1].format
    return last.is_dense or last.is_range or last.is_structured


def kept_with_structure(t: Tensor, key: Hashable, graph: tuple[Any, Any], make: Callable[[], Any]) -> Any:
    """What `make` gives for compressed rows (pos, crd, ...) of a matrix, kept with its structure for the same rows.

    Formats that store whole blocks leave zeros out, so that rows depend on values; some kinds read a triangle.
    """
    known, found = kept(t, key, lambda: (graph[:2], make()))
    if not all(map(np.array_equal, known, graph[:2])):
        found = make()
        keep(t._storage.facts, key, (graph[:2], found))
    return found


def kept(t: Tensor, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` gives, kept with the structure of a matrix."""
    facts = t._storage.facts
    found = facts.get(key)
    if found is None:
        found = make()
        keep(facts, key, found)
    return found


def narrow_indices(compressed: Any) -> Any:
    """A SciPy matrix with 32-bit indices, which SuperLU takes; UnsupportedError beyond 2**31 elements."""
    if compressed.indices.dtype != np.int32:
        if compressed.nnz >= 2**31:
            raise UnsupportedError(
                f"SuperLU counts in 32 bits; got {compressed.nnz} elements\n  help: use an iterative solver"
            )
        compressed.indices, compressed.indptr = compressed.indices.astype(np.int32), compressed.indptr.astype(np.int32)
    return compressed


def stored_as(t: Tensor) -> str:
    """ "csr" or "csc": the one that the matrix has, else csc."""
    layout = layout_of(t.format)
    return "csr" if layout is not None and layout.kind == "csr" and not layout.batch else "csc"


def matrices(t: Tensor, scalar: str) -> list[Tensor]:
    """The matrices of a stack, in row-major order of the batch dimensions; a matrix alone is its own."""
    if t.ndim == 2:
        return [t]
    values = cast(t.values, scalar)
    coo = Tensor._from_storage(t._storage.with_values(values)).asformat("coo")
    crd = [to_numpy(c) for c in coo._storage.crd if c is not None]
    batch, (rows, cols) = t.shape[:-2], t.shape[-2:]
    batch_index = np.zeros(len(crd[0]), np.int64)
    for c, n in zip(crd[: len(batch)], batch, strict=True):
        batch_index = batch_index * n + c
    bounds = np.searchsorted(batch_index, np.arange(int(np.prod(batch)) + 1))

    data = to_numpy(coo.values)
    return [
        sparse_coo_tensor(np.stack([crd[-2][lo:hi], crd[-1][lo:hi]]), data[lo:hi], (rows, cols), is_coalesced=True)
        for lo, hi in pairwise(bounds)
    ]


def value_buffers(*operands: Any) -> list[Any]:
    """The value buffers of operands, which torch may record."""
    return [x.values if isinstance(x, Tensor) else x for x in operands]


def check_rows(operation: str, a: Tensor, b: np.ndarray[Any, Any]) -> None:
    """Raise ShapeError where the right side has not the matrix's rows."""
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2] if b.ndim else 0
    if rows != a.shape[-2]:
        raise ShapeError(
            f"{operation}: the matrix has shape {a.shape}, the right side {b.shape}"
            f"\n  expected {a.shape[-2]} rows; got {rows}"
        )
