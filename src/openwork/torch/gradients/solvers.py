"""Gradient rules of linear solvers and determinants: one adjoint solve, and a product sampled at the matrix's elements.

A x = b        db = A^-H dx        dA = -db x^H at A
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...errors import UnsupportedError
from ...integers import common_shape
from ...linalg import direct, triangular
from ...linalg.factorization import Factorization, factorized
from ...linalg.tridiagonal import is_tridiagonal
from ...ops.elementwise.functions import conj
from ...ops.manipulation.shaping import reshape
from ...ops.manipulation.triangles import tril, triu
from ...runtime.gradient_hook import tracked
from ...storage.buffers import as_array, length, scalar_of
from ...storage.recorded import bare, structure_of
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .batched import map_batch
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


class _Solution(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(solver: Solver, s: Storage, transposed: bool, values: Any, right: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = solver(Tensor._from_storage(s.with_values(values.detach())), right.detach(), transposed)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.solver, ctx.structure, ctx.turned, values, right = inputs
        ctx.save_for_backward(values, right, output)
        ctx.save_for_forward(values, right, output)

    @staticmethod
    def vmap(
        info: Any, dims: Any, solver: Solver, s: Storage, transposed: bool, values: Any, right: torch.Tensor
    ) -> Any:
        return map_batch(
            info.batch_size, dims[3:], (values, right), lambda v, r: _solution(solver, s, transposed, v, r)
        ), 0

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, ___: None, tangent: Any, right: Any) -> torch.Tensor:
        values, _right, solution = ctx.saved_tensors
        parts = [] if right is None else [right]
        if tangent is not None:
            columns = () if solution.ndim == 1 else ("k",)
            spec = Product(ctx.structure, ("i", "j"), (("j", *columns),), ("i", *columns), scalar_of(solution))
            parts.append(-product(spec, tangent, [solution]))
        return _solution(ctx.solver, ctx.structure, ctx.turned, values, sum(parts[1:], parts[0]))

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        values, right, solution = ctx.saved_tensors
        s: Storage = ctx.structure
        adjoint = _solution(ctx.solver, s.permute((1, 0)), not ctx.turned, _conjugate(values), grads[0])
        values_gradient = None
        if ctx.needs_input_grad[3]:
            columns = () if solution.ndim == 1 else ("k",)
            spec = Product(s, ("i", "j"), (("i", *columns), ("j", *columns)), None, scalar_of(adjoint))
            values_gradient = _like(-product(spec, None, [adjoint, _conjugate(solution)]), values)
        return None, None, None, values_gradient, _like(adjoint, right)


def _solution(solver: Solver, s: Storage, transposed: bool, values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = _Solution.apply(solver, s, transposed, values, right)
    return result


def _solve_stack(solver: Solver, a: Tensor, b: Any, operation: str) -> Any:
    """The solutions of a stack of systems, one matrix at a time."""
    sides = b.to_dense() if isinstance(b, Tensor) else b
    vector = sides.ndim == 1
    sides = sides[:, None] if vector else sides
    batch = common_shape("solve", (a.shape[:-2], sides.shape[:-2]))
    sides = sides.expand(*batch, *sides.shape[-2:])
    matrix_of = torch.arange(math.prod(a.shape[:-2])).reshape(a.shape[:-2]).expand(batch).flatten().tolist()
    matrices = [reshape(a, (math.prod(a.shape[:-2]), *a.shape[-2:]))[k] for k in matrix_of]
    flat = sides.reshape(len(matrix_of), *sides.shape[-2:])
    solutions = [_solve(solver, m, x, operation) for m, x in zip(matrices, flat, strict=True)]
    stacked = torch.stack(solutions) if solutions else flat
    stacked = stacked.reshape(*batch, *sides.shape[-2:])
    stacked = stacked[..., 0] if vector else stacked
    return Tensor._from_dense(stacked) if isinstance(b, Tensor) else stacked


def _solve(solver: Solver, a: Any, b: Any, operation: str) -> Any:
    if isinstance(a, Tensor) and a.ndim > 2:
        return _solve_stack(solver, a, b, operation)
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


class _LogDet(torch.autograd.Function):  # type: ignore[misc]
    """d log|det A| = trace(A^-1 dA)"""

    @staticmethod
    def forward(s: Storage, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sign, log = direct.slogdet(Tensor._from_storage(s.with_values(values.detach())))
        sign_value, log_value = (torch.as_tensor(x.to_numpy(), dtype=values.dtype).reshape(()) for x in (sign, log))
        return sign_value, log_value

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        ctx.structure, values = inputs
        ctx.save_for_backward(values)
        ctx.save_for_forward(values)
        ctx.mark_non_differentiable(output[0])

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: torch.Tensor) -> tuple[None, torch.Tensor]:
        (values,) = ctx.saved_tensors
        return None, (_inverse_at(ctx.structure, values) * tangent).sum()

    @staticmethod
    def vmap(info: Any, dims: Any, s: Storage, values: torch.Tensor) -> Any:
        rows = [_LogDet.apply(s, values.select(dims[1], k)) for k in range(info.batch_size)]
        return tuple(torch.stack(column) for column in zip(*rows, strict=True)), (0, 0)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (values,) = ctx.saved_tensors
        return None, grads[1] * _inverse_at(ctx.structure, values)


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
    return _LogDet.apply(structure_of(s), s.values)


def det(a: Any) -> Tensor:
    """The rule of `linalg.det`; see `slogdet`."""
    sign, log = slogdet(a)
    return Tensor._from_dense(sign.to_dense() * log.to_dense().exp())


def solve(a: Any, b: Any) -> Any:
    """The rule of `linalg.solve`."""
    return _solve(_Factored(), a, b, "solve")


def factorization_solve(factors: Factorization, a: Tensor, b: Any, trans: str) -> Any:
    """The rule of `Factorization.solve`: the adjoint is solved with the same factors."""
    turned = a if trans == "N" else a.mT if trans == "T" else conj(a).mT
    return _solve(_Factored(factors, trans), turned, b, "solve")


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
