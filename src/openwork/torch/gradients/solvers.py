"""Gradient rules of linear solvers and determinants: one adjoint solve, and a product sampled at the matrix's elements.

A x = b        db = A^-H dx        dA = -db x^H at A
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...errors import UnsupportedError
from ...integers import common_shape
from ...linalg import direct, triangular
from ...linalg.factoring import factorized
from ...linalg.factorization import Factorization
from ...linalg.tridiagonal import is_tridiagonal
from ...ops.elementwise.functions import conj
from ...ops.manipulation.shaping import reshape
from ...ops.manipulation.triangles import tril, triu
from ...runtime.gradient_hook import tracked
from ...storage.buffers import as_array, length, scalar_of
from ...storage.recorded import bare
from ...storage.specified import coordinates
from ...storage.storage import Storage, structure_of
from ...tensor.tensor import Tensor
from .function import Rule, apply_rule
from .permutation import without_duplicates
from .single_operand import Product, _conjugate, _like, product

__all__ = ["det", "factorization_slogdet", "factorization_solve", "slogdet", "solve", "solve_triangular"]

BLOCK = 64
"""Columns of an inverse that are computed at a time and sampled at a structure's elements."""

Solver = Callable[[Tensor, torch.Tensor, bool], Any]
"""A matrix, right sides, and whether the matrix is the conjugate transpose of the one that was given."""


class _Factored:
    """A solver that factorises a matrix once, for it and its adjoint: the adjoint solve takes the same factors.

    Other values are factored anew: those of another sample, or of a Factorization that was updated since.
    """

    def __init__(self, factors: Factorization | None = None, trans: str = "N") -> None:
        self.factors, self.trans = factors, trans
        self.values: Any = None
        self.turned = False
        self.version = 0 if factors is None else factors._updates

    def __call__(self, t: Tensor, right: torch.Tensor, turned: bool) -> Any:
        if t.format.is_dense or right.ndim > 2 or tracked([t.values, right]) or is_tridiagonal(t):
            return direct.solve(t, right)
        values = t.values.detach()
        if self.values is None and self.factors is not None:
            self.values = values.conj().resolve_conj() if turned else values
        if not self._is_same(values, turned):
            self.factors, self.trans, self.turned = factorized(t), "N", turned
            self.values, self.version = values.clone(), 0
        assert self.factors is not None
        if turned == self.turned:
            return self.factors.solve(right, self.trans)
        if self.trans == "T":
            return self.factors.solve(right.conj().resolve_conj()).conj().resolve_conj()
        return self.factors.solve(right, "H" if self.trans == "N" else "N")

    def _is_same(self, values: torch.Tensor, turned: bool) -> bool:
        if self.factors is None or self.factors._updates != self.version:
            return False
        return bool(torch.equal(self.values, values if turned == self.turned else values.conj().resolve_conj()))


class _Solution(Rule):
    """The solution of a system. turned : whether the matrix is the conjugate transpose of the solver's"""

    __slots__ = ("solver", "structure", "turned")

    def __init__(self, solver: Solver, s: Storage, turned: bool) -> None:
        self.solver, self.structure, self.turned = solver, s, turned

    def forward(self, values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        a = Tensor._from_storage(self.structure.with_values(values.detach()))
        result: torch.Tensor = self.solver(a, right.detach(), self.turned)
        return result

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return *tensors, output

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        (values, right, solution), s = saved, self.structure
        adjoint = _solution(self.solver, s.permute((1, 0)), not self.turned, _conjugate(values), grad)
        values_gradient = None
        if needed[0]:
            columns = () if solution.ndim == 1 else ("k",)
            spec = Product(s, ("i", "j"), (("i", *columns), ("j", *columns)), None, scalar_of(adjoint))
            values_gradient = _like(-product(spec, None, [adjoint, _conjugate(solution)]), values)
        return values_gradient, _like(adjoint, right)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> torch.Tensor:
        (values, _, solution), (tangent, right) = saved, tangents
        parts = [] if right is None else [right]
        if tangent is not None:
            columns = () if solution.ndim == 1 else ("k",)
            spec = Product(self.structure, ("i", "j"), (("j", *columns),), ("i", *columns), scalar_of(solution))
            parts.append(-product(spec, tangent, [solution]))
        return _solution(self.solver, self.structure, self.turned, values, sum(parts[1:], parts[0]))


def _solution(solver: Solver, s: Storage, turned: bool, values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = apply_rule(_Solution(solver, s, turned), values, right)
    return result


def _solve_stack(solvers: Sequence[Solver], matrices: Sequence[Tensor], shape: Sequence[int], b: Any) -> Any:
    """The solutions of a stack of systems of this shape, one matrix at a time, each by its solver."""
    sides = b.to_dense() if isinstance(b, Tensor) else b
    vector = sides.ndim == 1
    sides = sides[:, None] if vector else sides
    batch = common_shape("solve", (shape[:-2], sides.shape[:-2]))
    sides = sides.expand(*batch, *sides.shape[-2:])
    matrix_of = torch.arange(len(matrices)).reshape(shape[:-2]).expand(batch).flatten().tolist()
    flat = sides.reshape(len(matrix_of), *sides.shape[-2:])
    solutions = [_solve(solvers[k], matrices[k], x, "solve") for k, x in zip(matrix_of, flat, strict=True)]
    stacked = torch.stack(solutions) if solutions else flat
    stacked = stacked.reshape(*batch, *sides.shape[-2:])
    stacked = stacked[..., 0] if vector else stacked
    return Tensor._from_dense(stacked) if isinstance(b, Tensor) else stacked


def _solve(solver: Solver, a: Any, b: Any, operation: str) -> Any:
    if isinstance(a, Tensor) and a.ndim > 2:
        count = math.prod(a.shape[:-2])
        flat = reshape(a, (count, *a.shape[-2:]))
        return _solve_stack([solver] * count, [flat[k] for k in range(count)], a.shape, b)
    if not isinstance(a, Tensor):
        raise UnsupportedError(f"{operation} of a dense matrix with a Tensor\n  help: torch.linalg.solve")
    s = without_duplicates(a._storage)
    sides = b.to_dense() if isinstance(b, Tensor) else b
    like = next(x for x in (s.values, sides) if isinstance(x, torch.Tensor))
    right, values = as_array(sides, like=like), as_array(s.values, like=like)
    scalar = torch.result_type(values[:0], right)
    structure = structure_of(s).mapped(lambda x: as_array(x, like=bare(like, any_of_batch=True)))
    solution = _solution(solver, structure, False, values.to(scalar), right.to(scalar))
    return Tensor._from_dense(solution) if isinstance(b, Tensor) else solution


class _LogDet(Rule):
    """Sign and logarithm of a determinant: d log|det A| = trace(A^-1 dA)."""

    __slots__ = ("structure",)

    def __init__(self, s: Storage) -> None:
        self.structure = s

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sign, log = direct.slogdet(Tensor._from_storage(self.structure.with_values(values.detach())))
        sign_value, log_value = (torch.as_tensor(x.to_numpy(), dtype=values.dtype).reshape(()) for x in (sign, log))
        return sign_value, log_value

    def constant(self, output: Any) -> Sequence[torch.Tensor]:
        return (output[0],)

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return (grad[1] * _inverse_at(self.structure, saved[0]),)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> Any:
        return None, (_inverse_at(self.structure, saved[0]) * tangents[0]).sum()

    def batch(self, size: int, dims: Sequence[Any], tensors: Sequence[Any]) -> Any:
        rows = [apply_rule(self, tensors[0].select(dims[0], k)) for k in range(size)]
        return tuple(torch.stack(column) for column in zip(*rows, strict=True))


def _inverse_at(s: Storage, values: torch.Tensor) -> torch.Tensor:
    """The elements of the transposed inverse at a matrix's stored coordinates, computed by blocks of columns."""
    n = s.shape[0]
    crd, positions = coordinates(s)
    out = values.new_zeros(length(values))
    if not torch.is_grad_enabled():
        factors = factorized(Tensor._from_storage(s.with_values(values.detach())))
        found = torch.from_numpy(factors.inverse_at(crd[0], crd[1], "T"))
        return out.index_add(0, torch.from_numpy(positions).to(torch.int64), found.to(values.dtype))
    solver = _Factored()
    for start in range(0, n, BLOCK):
        in_block = (crd[1] >= start) & (crd[1] < start + BLOCK)
        rows, columns, values_at_element = (
            torch.from_numpy(x[in_block]).to(torch.int64) for x in (crd[0], crd[1] - start, positions)
        )
        unit = torch.eye(n, dtype=values.dtype)[:, start : start + BLOCK]
        block = _solution(solver, s.permute((1, 0)), True, values, unit)
        out = out.index_add(0, values_at_element, block[rows, columns])
    return out


def slogdet(a: Any) -> Any:
    """The rule of `linalg.slogdet`: of real matrices, of dense formats complex ones too; of a stack one at a time."""
    if isinstance(a, Tensor) and a.format.is_dense:
        parts = torch.linalg.slogdet(a.to_dense())
    elif not isinstance(a, Tensor) or a._storage.scalar not in ("f32", "f64"):
        raise UnsupportedError("slogdet of complex numbers has no gradient\n  help: a dense format, or a real matrix")
    elif a.ndim > 2:
        batch = a.shape[:-2]
        count = math.prod(batch)
        matrices = reshape(a, (count, *a.shape[-2:]))
        pairs = [_slogdet_of_one(matrices[k]) for k in range(count)]
        empty = a.values.new_empty(batch)
        parts = [torch.stack(x).reshape(batch) for x in zip(*pairs, strict=True)] or (empty, empty)
    else:
        parts = _slogdet_of_one(a)
    return direct.SlogdetResult(*(Tensor._from_dense(p) for p in parts))


def _slogdet_of_one(a: Tensor) -> Any:
    """Sign and logarithm of the determinant of one real matrix."""
    s = without_duplicates(a._storage)
    return apply_rule(_LogDet(structure_of(s)), s.values)


def det(a: Any) -> Tensor:
    """The rule of `linalg.det`; see `slogdet`."""
    sign, log = slogdet(a)
    return Tensor._from_dense(sign.to_dense() * log.to_dense().exp())


def solve(a: Any, b: Any) -> Any:
    """The rule of `linalg.solve`."""
    return _solve(_Factored(), a, b, "solve")


def factorization_solve(factors: Any, a: Tensor, b: Any, trans: str) -> Any:
    """The rule of `Factorization.solve`, and of those of a stack: the adjoint is solved with the same factors."""
    if a.ndim > 2:
        solvers = [_Factored(f, trans) for f in factors]
        return _solve_stack(solvers, [_turned(f._tensor, trans) for f in factors], a.shape, b)
    return _solve(_Factored(factors, trans), _turned(a, trans), b, "solve")


def _turned(a: Tensor, trans: str) -> Tensor:
    return a if trans == "N" else a.mT if trans == "T" else conj(a).mT


def factorization_slogdet(a: Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rule of `Factorization.slogdet`."""
    sign, log = slogdet(a)
    return sign.to_dense(), log.to_dense()


def solve_triangular(a: Any, b: Any, *, lower: bool = True, unit_diagonal: bool = False) -> Any:
    """The rule of `linalg.solve_triangular`: the elements that it does not read have no gradient."""

    def solver(t: Tensor, right: torch.Tensor, transposed: bool) -> Any:
        return triangular.solve_triangular(t, right, lower=lower != transposed, unit_diagonal=unit_diagonal)

    operand = _read_triangle(a, lower, unit_diagonal)
    return _solve(solver, operand, b, "solve_triangular")


def _read_triangle(a: Any, lower: bool, unit_diagonal: bool) -> Any:

    if not isinstance(a, Tensor):
        return a
    return tril(a, k=-int(unit_diagonal)) if lower else triu(a, k=int(unit_diagonal))
