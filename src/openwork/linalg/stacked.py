"""A stack of sparse matrices of one structure -> their factorisations, side by side, as one object."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ShapeError, Tensor, reshape
from ..integers import common_shape
from ..runtime.gradient_hook import rule
from ..storage.buffers import as_array, cast, is_torch
from ..storage.equal_coordinates import same_structure
from .direct_solver.symbolic import Symbolic
from .factorization import Factorization, factorise_all
from .inverse import check_transposition
from .operands import check_rows, matrices, right_side, solve_scalar

__all__ = ["FactorizationStack", "broadcast_stacks", "solve_each", "solve_stack"]

Array = np.ndarray[Any, Any]


class FactorizationStack:
    """Factorisations of a stack (..., n, n) of matrices of one structure: one symbolic phase, numeric ones in parallel.

    `solve(b)` or a call of it takes a vector (n,) or right sides (..., n, k); `update(values)` keeps the symbolic
    phase; `parts` are the factorisations of the matrices, in row-major order. Gradients are those of `Factorization`.

    Examples
    --------
    >>> A = ow.stack([ow.asarray([[4.0, 1.0], [0, 2.0]], format="csr") * s for s in (1.0, 2.0)])
    >>> F = ow.linalg.factorized(A)
    >>> F(np.array([6.0, 4.0]))
    array([[1. , 2. ],
           [0.5, 1. ]])
    """

    __slots__ = ("_scalar", "_stack", "dtype", "parts", "shape")

    def __init__(
        self, stack: Tensor, scalar: str, kind: str, ordering: Any, refine: int | None, single: bool,
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        self.shape, self._stack, self._scalar = tuple(stack.shape), stack, scalar
        self.parts: list[Factorization] = []
        for t in self._matrices(stack):
            first = self.parts[0]._tensor if self.parts else t
            if not same_structure(first._storage, t._storage):
                raise ShapeError(
                    f"factorized: matrix {len(self.parts)} of the stack {stack.shape[:-2]} has another structure than "
                    "the first\n  help: solve() takes any stack; structures are one where all store the same places"
                )
            same = first if t is first else first.with_values(t.values)
            self.parts.append(Factorization(same, scalar, kind, ordering, refine, single, options, waits=True))
        if not self.parts:
            raise ShapeError(f"factorized: the stack {stack.shape[:-2]} has no matrix\n  help: solve() takes it")
        self.dtype = self.parts[0].dtype
        if self.shape[-1]:
            factorise_all(self.parts)

    def __repr__(self) -> str:
        return f"<FactorizationStack of shape {self.shape}, {self.dtype}>"

    @property
    def kind(self) -> str:
        """What was computed, of all matrices: "cholesky", "ldl", "lu" or "superlu"."""
        return self.parts[0].kind

    @property
    def symbolic(self) -> Symbolic | None:
        """The symbolic phase that all share; see `Factorization`."""
        return self.parts[0].symbolic

    @property
    def nse(self) -> int:
        """Elements of the factors of all matrices."""
        return sum(part.nse for part in self.parts)

    def _matrices(self, stack: Tensor) -> list[Tensor]:
        flat = reshape(stack, (math.prod(stack.shape[:-2]), *stack.shape[-2:]))
        return [flat[k] for k in range(flat.shape[0])]

    def update(self, values: Any) -> FactorizationStack:
        """Factor the matrices of the same structure with other values; this object.

        values : a Tensor of the same structure, or an array (..., nse) of the stored elements of each matrix in their
        order. Raises ShapeError, DTypeError, LinAlgError as `Factorization.update` does.
        """
        many = len(self.parts)
        if isinstance(values, Tensor):
            if values.shape != self.shape:
                raise ShapeError(f"update: the stack has shape {self.shape}; got {values.shape}")
            new: list[Any] = self._matrices(values)
        else:
            array = as_array(values)
            expected = (*self.shape[:-2], len(self.parts[0]._tensor.values))
            if tuple(array.shape) != expected:
                raise ShapeError(f"update: expected values of shape {expected}; got {tuple(array.shape)}")
            new = list(array.reshape(many, -1))
        checked = [part._checked(v) for part, v in zip(self.parts, new, strict=True)]
        for part, (t, rows) in zip(self.parts, checked, strict=True):
            part._take(t, rows)
        if self.shape[-1]:
            factorise_all(self.parts)
        return self

    def solve(self, b: Any, trans: str = "N") -> Any:
        """x with `A @ x = b` of each matrix, with `A.T` for trans="T", with `A.H` for "H"; of the kind of `b`.

        b : a vector (n,), or right sides (..., n, k) whose batch dimensions broadcast with those of the matrices
        Returns an array of shape (..., n) for a vector, (..., n, k) else.
        """
        trans = check_transposition(trans, "solve")
        if any(part._recorded(b) for part in self.parts):
            return rule("factorization_solve")(self.parts, self._stack, b, trans)
        right, to_result = right_side(b, None)
        check_rows("solve", self._stack, right)
        solvers = [lambda x, part=part: part.apply(x, trans) for part in self.parts]
        scalar = (
            {"f32": "c64", "f64": "c128"}.get(self._scalar, self._scalar) if np.iscomplexobj(right) else self._scalar
        )
        return to_result(solve_each(solvers, self.shape[:-2], right, scalar))

    def __call__(self, b: Any) -> Any:
        return self.solve(b)

    def slogdet(self) -> tuple[Any, Any]:
        """(sign, logarithm of the absolute value) of the determinants, arrays of the batch dimensions."""
        return self._each(lambda part: part.slogdet()[0]), self._each(lambda part: part.slogdet()[1])

    def logdet(self) -> Any:
        """The logarithms of the determinants; nan where one is negative."""
        return self._each(lambda part: part.logdet())

    def inverse_diagonal(self) -> Any:
        """The diagonals of the inverses, (..., n)."""
        return self._each(lambda part: part.inverse_diagonal())

    def _each(self, call: Callable[[Factorization], Any]) -> Any:
        """What a call gives of each, stacked."""
        found = [call(part) for part in self.parts]
        if is_torch(found[0]):
            import torch

            return torch.stack(found).reshape(*self.shape[:-2], *found[0].shape)
        return np.stack(found).reshape(*self.shape[:-2], *np.shape(found[0]))


def broadcast_stacks(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The batch dimensions of matrices and right sides together."""
    try:
        return common_shape("solve", (left, right))
    except ValueError as error:
        raise ShapeError(
            f"solve: stacks {tuple(left)} and {tuple(right)} do not broadcast\n  help: extents agree, or are 1"
        ) from error


def solve_stack(
    t: Tensor,
    right: Array,
    solve_one: Callable[[Tensor, Array, str], Array],
) -> Array:
    """Solve with every matrix of a stack: `solve_one(matrix, right side (n, k), scalar)`."""
    scalar = solve_scalar(t, right)
    solvers = [lambda x, m=m: solve_one(m, x, scalar) for m in matrices(t, scalar)]
    return solve_each(solvers, t.shape[:-2], right, scalar)


def solve_each(solvers: Sequence[Callable[[Any], Any]], batch: tuple[int, ...], right: Array, scalar: str) -> Array:
    """Solve with every matrix of a stack, in `scalar`: a solver of right sides (n, k) for each."""
    vector = right.ndim == 1
    sides = cast(right[:, None] if vector else right, scalar)
    if not batch and sides.ndim == 2:
        x: Array = solvers[0](sides)
        return x[:, 0] if vector else x
    n, k = sides.shape[-2:]
    shape = broadcast_stacks(batch, sides.shape[:-2])
    solver_of = np.broadcast_to(np.arange(len(solvers)).reshape(batch), shape).reshape(-1)
    stacked = np.broadcast_to(sides, (*shape, n, k)).reshape(math.prod(shape), n, k)
    out = np.empty(stacked.shape, stacked.dtype)
    for number, solver in enumerate(solvers):
        items = np.flatnonzero(solver_of == number)
        if len(items):
            columns = np.moveaxis(stacked[items], 0, 1).reshape(n, len(items) * k)
            try:
                x = solver(columns)
            except np.linalg.LinAlgError as error:
                if not batch:
                    raise
                raise np.linalg.LinAlgError(f"matrix {number} of the stack {batch}: {error}") from error
            out[items] = np.moveaxis(x.reshape(n, len(items), k), 1, 0)
    out = out.reshape(*shape, n, k)
    return out[..., 0] if vector else out
