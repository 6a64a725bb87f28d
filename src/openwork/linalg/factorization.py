"""A square sparse matrix -> its factorisation, as an object that solves with it, and takes other values."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .. import DTypeError, ShapeError, Tensor, sparse_csc_tensor, sparse_csr_tensor
from ..progress import Passes
from ..reals import real
from ..runtime.gradient_hook import rule, tracked
from ..storage.buffers import as_array, numpy_dtype
from ..storage.equal_coordinates import same_structure
from .direct_solver.graph import adjacency
from .direct_solver.solvers import Multifrontal, factor_all, symbolic_phase
from .direct_solver.symbolic import Symbolic
from .direct_solver.systems import Mirror, Rows, completed, coordinates, equilibrated, mirror, rows_of
from .inverse import InverseOperator, check_transposition
from .operands import kept_with_structure, solve_scalar, stores_whole_fibres, value_buffers
from .other_libraries import Mumps, Pardiso
from .outer_products import add_outer
from .preconditioner import finite
from .superlu import SuperLU

__all__ = ["Factorization", "factorise_all"]

Array = np.ndarray[Any, Any]

COLUMNS = 64
"""Columns of an inverse that are computed at a time."""
SMALL = 1500
"""Rows below which SuperLU, which has no symbolic phase of its own, takes less time."""
ROUNDING = 64.0
"""Rounding errors by which a matrix may differ from its adjoint, as one that is assembled does, to be Hermitian."""
OTHERS = ("superlu", "pardiso", "mumps")
"""Kinds that are other libraries'."""
REFINEMENTS = {"cholesky": 0, "ldl": 3, "lu": 3, "superlu": 0, "pardiso": 1, "mumps": 1}
SINGLE_REFINEMENTS = 20


class Solver(Protocol):
    """What factorises: rows again with `factor`, right sides (n, c) with `solve`."""

    kind: str

    @property
    def nse(self) -> int: ...
    def factor(self, rows: Rows) -> None: ...
    def solve(self, right: Array, trans: str) -> Array: ...
    def slogdet(self) -> tuple[Any, Any]: ...


class Factorization(InverseOperator):
    """A factorisation of a square matrix, to solve with again and again, and again with other values.

    `solve(b)` or a call of it takes a vector (n,) or right sides (n, k); `update(values)` keeps the symbolic phase.
    Where torch records the matrix's values or a right side, solutions and determinants have gradients.
    `kind` is what was computed, `nse` the number of elements of the factors, `symbolic` the symbolic phase.

    Examples
    --------
    >>> solve = ow.linalg.factorized(ow.asarray([[4.0, 1.0], [0, 2.0]], format="csr"))
    >>> solve(np.array([6.0, 4.0]))
    array([1., 2.])
    """

    __slots__ = ("_asked", "_factors", "_options", "_rounded", "_rows", "_sizes", "_tensor", "_updates", "refine")

    def __init__(
        self, a: Tensor, scalar: str, kind: str = "auto", ordering: Any = "auto", refine: int | None = None,
        single: bool = False, options: dict[str, Any] | None = None, passes: Passes | None = None, waits: bool = False,
    ) -> None:  # fmt: skip
        """`waits`: until `factorise_all` computes the factors beside those of other matrices."""
        super().__init__(a.shape, scalar)
        self._tensor, self._asked = a, (kind, ordering, refine, single)
        self._options = options or {}
        self._factors: Solver | None = None
        self._rounded = False
        self.refine = refine or 0
        self._sizes: Rows | None = None
        self._updates = 0
        self._rows = self._read(a)
        if self._rows.n and not waits:
            self._factorise(passes)

    @property
    def kind(self) -> str:
        """What was computed: "cholesky", "ldl", "lu" or "superlu"; "auto" of a matrix without rows."""
        return self._asked[0] if self._factors is None else self._factors.kind

    @property
    def nse(self) -> int:
        """Elements of the factors."""
        return 0 if self._factors is None else self._factors.nse

    @property
    def symbolic(self) -> Symbolic | None:
        """The symbolic phase: order, elements, operations, `memory()`; None of SuperLU's."""
        return self._factors.symbolic if isinstance(self._factors, Multifrontal) else None

    def update(self, values: Any) -> Factorization:
        """Factor the matrix of the same structure with other values; this object, which then solves with that one.

        values : a Tensor of the same structure, or an array of the stored elements in their order. Raises ShapeError
        for another structure, LinAlgError as `factorized` does; after an error the object solves with what it had
        only where the values were refused before the numeric phase.
        """
        moved = stores_whole_fibres(self._tensor)  # zeros of whole blocks are left out, and may move
        t, rows = self._checked(values, moved)
        same = self._same(rows)
        self._take(t, rows)
        if self._factors is None:
            return self
        auto = self._asked[0] == "auto"
        if not same or (auto and self._factors.kind in ("cholesky", "ldl") and not self._is_hermitian()):
            self._factorise()
            return self
        try:
            self._factors.factor(rows)
            self._accept(self._factors)
        except np.linalg.LinAlgError:
            if not auto:
                raise
            self._factorise()
        return self

    def _same(self, rows: Rows) -> bool:
        """Whether rows are of the structure that was analysed."""
        old = self._rows
        return rows.turned == old.turned and np.array_equal(rows.pos, old.pos) and np.array_equal(rows.crd, old.crd)

    def _checked(self, values: Any, moved: bool = False) -> tuple[Tensor, Rows]:
        """Another matrix of the structure, and its rows. Raises ShapeError, DTypeError for one that is not.

        moved : whether zeros that the tensor stores may be elsewhere
        """
        t = values if isinstance(values, Tensor) else self._tensor.with_values(values)
        if solve_scalar(t)[0] == "c" and self.scalar[0] != "c":
            raise DTypeError(f"update: the factors are {self.dtype}; got {t.dtype}\n  help: factorized(A)")
        if t.shape != self.shape:
            raise ShapeError(f"update: the matrix has shape {self.shape}; got {t.shape}")
        rows = self._read(t)
        if not self._same(rows) and not (moved and same_structure(t._storage, self._tensor._storage)):
            raise ShapeError("update: the values are of another structure\n  help: factorized(A) analyses that one")
        finite(rows.values, "update")
        return t, rows

    def _take(self, t: Tensor, rows: Rows | None = None) -> None:
        """Stand for another matrix of the same structure."""
        self._tensor, self._rows, self._sizes = t, self._read(t) if rows is None else rows, None
        self._updates += 1

    def add_outer(self, w: Any, alpha: float = 1.0) -> Factorization:
        """Factors of A + alpha w w^H, of "cholesky", by a change of the columns that it reaches; this object.

        w : a vector (n,), dense or a Tensor; the matrix stores the elements of w w^H
        alpha : a real number, negative for a downdate
        Raises ShapeError where the matrix has not these elements, LinAlgError, with the row, where the sum is not
        positive definite: the factors are then as before.
        """
        add_outer(self, w, real(alpha, "add_outer", "alpha"))
        return self

    def solve(self, b: Any, trans: str = "N", *, transposed: bool = False) -> Any:
        """x with `A @ x = b`, with `A.T` for trans="T" or `transposed`, with `A.H` for "H"; of the kind of `b`."""
        trans = "T" if transposed else check_transposition(trans, "solve")
        if self._recorded(b):
            return rule("factorization_solve")(self, self._tensor, b, trans)
        return super().solve(b, trans)

    def _recorded(self, *operands: Any) -> bool:
        """Whether torch records the matrix or one of these."""
        return "torch" in sys.modules and tracked(value_buffers(self._tensor, *operands))

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinant."""
        dtype = numpy_dtype(self.scalar)
        if self._recorded():
            recorded: tuple[Any, Any] = rule("factorization_slogdet")(self._tensor)
            return recorded
        if self._factors is None:
            return dtype.type(1), np.zeros((), dtype).real[()]
        sign, size = self._factors.slogdet()
        if self._rows.turned and self.kind in ("cholesky", "ldl"):
            sign = np.conj(sign)
        return dtype.type(sign), dtype.type(size).real

    def logdet(self) -> Any:
        """The logarithm of the determinant; nan where it is negative."""
        sign, size = self.slogdet()
        return size if sign.real > 0 and complex(sign).imag == 0 else size * np.nan

    def inverse_diagonal(self) -> Any:
        """The diagonal of the inverse, an array of the library of the matrix.

        By the selected inverse of "cholesky" and "ldl", which computes what is in the structure of the factor; of other
        kinds a solution for each column.
        """
        return as_array(self._inverse()[0], like=self._tensor.values)

    def selected_inverse(self) -> Tensor:
        """The elements of the inverse where the matrix stores some, as a CSR or CSC Tensor; see `inverse_diagonal`.

        It is the gradient of `logdet`, transposed.
        """
        rows = self._rows
        parts = [as_array(x, like=self._tensor.values) for x in (rows.pos, rows.crd, self._inverse()[1])]
        make = sparse_csc_tensor if rows.turned else sparse_csr_tensor
        return make(parts[0], parts[1], parts[2], self.shape)

    def inverse_at(self, row: Array, col: Array, trans: str = "N") -> Array:
        """The elements of the inverse, or of its transpose, at coordinates that the matrix stores."""
        from scipy.sparse import csr_array

        rows = self._rows
        found = csr_array((self._inverse(trans)[1], rows.crd, rows.pos), self.shape)
        return np.asarray(found[(col, row) if rows.turned else (row, col)])

    def _inverse(self, trans: str = "N") -> tuple[Array, Array]:
        """The diagonal of the inverse, or of its transpose, and the elements where the rows have some."""
        rows = self._rows
        if self._factors is None:
            return np.zeros(0, self.dtype), np.zeros(0, self.dtype)
        if isinstance(self._factors, Multifrontal) and self.kind != "lu" and self._factors.scalar == self.scalar:
            diagonal, elements = self._factors.inverse()
            return diagonal, elements if trans == "N" else np.conj(elements)
        row, col = coordinates(rows)
        row, col = (col, row) if rows.turned else (row, col)
        diagonal, elements = np.empty(rows.n, self.dtype), np.empty(len(row), self.dtype)
        order = np.argsort(col, kind="stable")
        ends = np.searchsorted(col[order], np.arange(0, rows.n + COLUMNS, COLUMNS))
        for number, lo in enumerate(range(0, rows.n, COLUMNS)):
            hi = min(lo + COLUMNS, rows.n)
            unit = np.zeros((rows.n, hi - lo), self.dtype)
            unit[np.arange(lo, hi), np.arange(hi - lo)] = 1
            x = self._solve(unit, trans)
            diagonal[lo:hi] = x[np.arange(lo, hi), np.arange(hi - lo)]
            chosen = order[ends[number] : ends[number + 1]]
            elements[chosen] = x[row[chosen], col[chosen] - lo]
        return diagonal, elements

    def _read(self, t: Tensor) -> Rows:
        """The compressed rows of the matrix; of kinds that read a triangle the Hermitian matrix that it stands for."""
        rows = rows_of(t.detach(), self.scalar)
        return completed(rows) if self._asked[0] in ("cholesky", "ldl") else rows

    def _mirror(self) -> Mirror | None:
        """The places of mirror images, kept with the structure of the tensor; None where it is not symmetric."""
        rows = self._rows
        found: Mirror | None = kept_with_structure(
            self._tensor, ("mirror images", rows.turned), rows.graph, lambda: mirror(rows)
        )
        return found

    def _is_hermitian(self) -> bool:
        """Whether the matrix is its own adjoint but for rounding, which is noted."""
        mirrored = self._mirror()
        asymmetry = np.inf if mirrored is None else mirrored.asymmetry(self._rows)
        self._rounded = asymmetry > 0
        return asymmetry <= ROUNDING

    def _factorise(self, passes: Passes | None = None) -> None:
        kind, _, _, _ = self._asked
        finite(self._rows.values, "factorized")
        candidates = [kind] if kind != "auto" else _candidates(self)
        for number, candidate in enumerate(candidates):
            try:
                self._accept(self._factored(candidate, passes or Passes()))
            except (np.linalg.LinAlgError, MemoryError):  # columns may be delayed without end
                if number + 1 == len(candidates):
                    raise
            else:
                return

    def _solver(self, kind: str, passes: Passes) -> Solver:
        _, ordering, _, single = self._asked
        if kind in OTHERS:
            passes.begin(kind)
        if kind == "superlu":
            return SuperLU(self._rows, self.scalar, self._options)
        if kind == "pardiso":
            return Pardiso(self._rows, self.scalar)
        if kind == "mumps":
            return Mumps(self._rows)
        scalar = {"f64": "f32", "c128": "c64"}.get(self.scalar, self.scalar) if single else self.scalar
        return Multifrontal(self._rows, kind, scalar, lambda match: self._symbolic(match, ordering), passes)

    def _factored(self, kind: str, passes: Passes) -> Solver:
        solver = self._solver(kind, passes)
        if isinstance(solver, Multifrontal):
            solver.factor(self._rows, passes)
        return solver

    def _symbolic(self, match: Array | None, ordering: Any) -> Symbolic:
        """The symbolic phase, kept with the structure of the tensor where rows are not exchanged."""
        rows, key = self._rows, ("symbolic phase", self._rows.turned, ordering)
        if match is not None or not isinstance(ordering, str):
            return symbolic_phase(rows, match, ordering)
        found: Symbolic = kept_with_structure(
            self._tensor, key, rows.graph, lambda: symbolic_phase(rows, None, ordering)
        )
        return found

    def _accept(self, solver: Solver) -> None:
        """Take a solver, if it solves. Raises LinAlgError, with a row, where the matrix is singular for it."""
        _, _, refine, single = self._asked
        default = SINGLE_REFINEMENTS if single else max(REFINEMENTS[solver.kind], int(self._rounded))
        self._factors, self._sizes = solver, None
        if default:
            self.refine = default
            error = self._probe()
            if not error <= np.finfo(self.dtype).eps ** 0.75:
                small = ""
                if isinstance(solver, Multifrontal):
                    small = f"{solver.replaced} pivots are too small, the one of row {solver.suspect()} among them; "
                raise np.linalg.LinAlgError(
                    f"the matrix is singular, or nearly, for factors of kind {solver.kind!r}: {small}the error is "
                    f"{error:.1e}"
                    "\n  help: kind='superlu' exchanges rows freely; lsqr(A, b) gives the least-squares solution"
                )
        self.refine = default if refine is None else refine

    def _probe(self) -> float:
        """The backward error of a solution whose right side has the sizes of the rows; inf where it is beyond all size.

        In scales in which the matrix's elements are at most 1, a solution that is larger than its right side by the
        inverse of the rounding error is one of a singular matrix.
        """
        scales = getattr(self._factors, "scales", None) or equilibrated(self._rows, False)
        row, col = (scales[1], scales[0]) if self._rows.turned else scales[:2]
        b = (np.cos(np.arange(float(self._rows.n))) / row)[:, None].astype(self.dtype)
        with np.errstate(all="ignore"):
            x, error = self._refined(b, "N")
            growth = np.max(np.abs(x[:, 0]) / col)
            return error if growth < 0.1 / np.finfo(self.dtype).eps else np.inf

    def _error(self, right: Array, x: Array, trans: str) -> float:
        """The componentwise backward error of a solution, the largest of all columns.

        Source: M. Arioli, J. W. Demmel, I. S. Duff, "Solving sparse linear systems with sparse backward error", SIAM J.
        Matrix Anal. Appl. 10 (1989), with their bound where a row has next to no size.
        """
        if self._sizes is None:
            self._sizes = self._rows._replace(values=np.abs(self._rows.values))
        left = np.abs(right - self._rows.product(x, trans))
        scale = self._sizes.product(np.abs(x), trans) + np.abs(right)
        least = np.finfo(self.dtype).eps * self._rows.n * scale.max(axis=0)
        return float(np.max(left / np.maximum(np.maximum(scale, least), np.finfo(self.dtype).tiny), initial=0.0))

    def _solve(self, right: Array, trans: str) -> Array:
        return self._refined(right, trans)[0]

    def _refined(self, right: Array, trans: str) -> tuple[Array, float]:
        """Solutions, and their backward error where they are refined, else 0."""
        assert self._factors is not None
        inner = {"N": "T", "T": "N"}.get(trans, "conj") if self._rows.turned else trans
        x = self._direct(right, inner).astype(self.dtype, copy=False)
        error = self._error(right, x, trans) if self.refine else 0.0
        for _ in range(self.refine):
            if not error > np.finfo(self.dtype).eps:
                break
            better = x + self._direct(right - self._rows.product(x, trans), inner)
            smaller, before = self._error(right, better, trans), error
            if smaller < before:
                x, error = better, smaller
            if not 2 * smaller < before:
                break
        return x, error

    def _direct(self, right: Array, inner: str) -> Array:
        assert self._factors is not None
        if inner == "conj":
            return np.conj(self._factors.solve(np.conj(right), "N"))
        return self._factors.solve(right, inner)


def factorise_all(parts: Sequence[Factorization]) -> None:
    """Compute the factors of matrices of one structure, which wait or were updated, side by side; of one kind all.

    Raises LinAlgError, with the number of the matrix.
    """
    kind = parts[0]._asked[0]
    for part in parts:
        finite(part._rows.values, "factorized")
    candidates = [kind]
    if kind == "auto":
        each = [_candidates(part, SMALL // len(parts)) for part in parts]
        candidates = max(each, key=lambda kinds: ("cholesky", "ldl", "lu", "superlu").index(kinds[0]))
        if candidates[0] != "cholesky":  # which is the only one that is ahead of SuperLU where matrices are small
            candidates = _candidates(parts[0]) if parts[0]._rows.n < SMALL else candidates
    for number, candidate in enumerate(candidates):
        try:
            _factorise_all(parts, candidate)
        except np.linalg.LinAlgError:
            if number + 1 == len(candidates):
                raise
        else:
            return


def _factorise_all(parts: Sequence[Factorization], kind: str) -> None:
    solvers: list[Any] = [None] * len(parts)
    if kind not in OTHERS:
        held = [f if isinstance(f := part._factors, Multifrontal) and f.kind == kind else None for part in parts]
        first: Any = held[0] or parts[0]._solver(kind, Passes())
        solvers = [first, *(solver or first.another() for solver in held[1:])]
        factor_all(solvers, [part._rows for part in parts])
    for number, (part, solver) in enumerate(zip(parts, solvers, strict=True)):
        try:
            if solver is not None:
                solver.check()
            part._accept(solver or part._factored(kind, Passes()))
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(f"matrix {number} of the stack: {error}") from error


def _candidates(part: Factorization, small: int = SMALL) -> list[str]:
    """The kinds to try for a matrix, one after the other."""
    rows = part._rows
    if rows.n < small:
        return ["superlu"]
    if part._mirror() is None and _symmetry(rows) < 0.3:
        return ["superlu", "lu"]
    if not part._is_hermitian():
        part._rounded = False
        return ["lu", "superlu"]
    row = np.repeat(np.arange(rows.n, dtype=rows.crd.dtype), np.diff(rows.pos))
    diagonal = np.zeros(rows.n, rows.values.real.dtype)
    on = row == rows.crd
    diagonal[row[on]] = rows.values.real[on]
    return ["cholesky", "ldl", "superlu"] if _may_be_definite(rows, on, diagonal) else ["ldl", "superlu"]


def _may_be_definite(rows: Rows, on: Array, diagonal: Array) -> bool:
    """Whether a Hermitian matrix has minors of one and two rows that are positive but for rounding.

    on : what is on the diagonal
    """
    if not bool(np.all(diagonal > 0)):
        return False
    root = np.sqrt(diagonal) * (1 - 2 * np.finfo(diagonal.dtype).eps)
    return bool(np.all((np.abs(rows.values) < np.repeat(root, np.diff(rows.pos)) * root[rows.crd]) | on))


def _symmetry(rows: Rows) -> float:
    """The share of the elements beside the diagonal whose mirror images are stored too."""
    row, col = coordinates(rows)
    beside = int(np.count_nonzero(row != col))
    pairs = len(adjacency(rows.pos, rows.crd).crd) // 2
    return 2 * (beside - pairs) / max(beside, 1)
