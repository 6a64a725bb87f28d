"""Gradients of solutions of linear systems: one more solution, and its product with the first at the matrix's elements.

A x = b        db = A^-H dx        dA = -db x^H at A
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UnsupportedError
from ..linalg import direct, triangular
from ..ops.shaping import reshape
from ..ops.tensor import Tensor
from ..storage.buffers import as_array, bare, scalar_of
from ..storage.storage import Storage
from .batched import each
from .drive import Product, _conjugate, _like, product
from .positions import structure as structure_of
from .positions import unique

__all__ = ["solve", "solve_triangular"]

Solver = Callable[[Tensor, torch.Tensor, bool], Any]
"""A matrix, right sides, and whether the matrix is the conjugate transpose of the one that was given."""


class _Solution(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(solver: Solver, s: Storage, turned: bool, values: Any, right: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = solver(Tensor._from_storage(s.with_values(values.detach())), right.detach(), turned)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.solver, ctx.structure, ctx.turned, values, right = inputs
        ctx.save_for_backward(values, right, output)
        ctx.save_for_forward(values, right, output)

    @staticmethod
    def vmap(info: Any, dims: Any, solver: Solver, s: Storage, turned: bool, values: Any, right: torch.Tensor) -> Any:
        return each(info.batch_size, dims[3:], (values, right), lambda v, r: _solution(solver, s, turned, v, r)), 0

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, ___: None, tangent: Any, right: Any) -> torch.Tensor:
        values, _right, found = ctx.saved_tensors
        parts = [] if right is None else [right]
        if tangent is not None:
            columns = () if found.ndim == 1 else ("k",)
            spec = Product(ctx.structure, ("i", "j"), (("j", *columns),), ("i", *columns), scalar_of(found))
            parts.append(-product(spec, tangent, [found]))
        return _solution(ctx.solver, ctx.structure, ctx.turned, values, sum(parts[1:], parts[0]))

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        values, right, found = ctx.saved_tensors
        s: Storage = ctx.structure
        back = _solution(ctx.solver, s.permute((1, 0)), not ctx.turned, _conjugate(values), grads[0])
        at = None
        if ctx.needs_input_grad[3]:
            columns = () if found.ndim == 1 else ("k",)
            spec = Product(s, ("i", "j"), (("i", *columns), ("j", *columns)), None, scalar_of(back))
            at = _like(-product(spec, None, [back, _conjugate(found)]), values)
        return None, None, None, at, _like(back, right)


def _solution(solver: Solver, s: Storage, turned: bool, values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = _Solution.apply(solver, s, turned, values, right)
    return found


def _stacked(solver: Solver, a: Tensor, b: Any, operation: str) -> Any:
    """The solutions of a stack, one matrix at a time."""
    sides = b.to_dense() if isinstance(b, Tensor) else b
    vector = sides.ndim == 1
    sides = sides[:, None] if vector else sides
    batch = torch.broadcast_shapes(a.shape[:-2], sides.shape[:-2])
    sides = sides.expand(*batch, *sides.shape[-2:])
    numbers = torch.arange(math.prod(a.shape[:-2])).reshape(a.shape[:-2]).expand(batch).flatten().tolist()
    matrices = [reshape(a, (math.prod(a.shape[:-2]), *a.shape[-2:]))[k] for k in numbers]
    flat = sides.reshape(len(numbers), *sides.shape[-2:])
    found = [_solve(solver, m, x, operation) for m, x in zip(matrices, flat, strict=True)]
    made = torch.stack(found) if found else flat
    made = made.reshape(*batch, *sides.shape[-2:])
    made = made[..., 0] if vector else made
    return Tensor._from_dense(made) if isinstance(b, Tensor) else made


def _solve(solver: Solver, a: Any, b: Any, operation: str) -> Any:
    if isinstance(a, Tensor) and a.ndim > 2:
        return _stacked(solver, a, b, operation)
    if not isinstance(a, Tensor):
        raise UnsupportedError(f"{operation} of a dense matrix with a Tensor\n  help: torch.linalg.solve")
    s = unique(a._storage)
    given = b.to_dense() if isinstance(b, Tensor) else b
    like = next(x for x in (s.values, given) if isinstance(x, torch.Tensor))
    right, values = as_array(given, like=like), as_array(s.values, like=like)
    scalar = torch.result_type(values[:0], right)
    structure = structure_of(s).mapped(lambda x: as_array(x, like=bare(like, any_of_batch=True)))
    found = _solution(solver, structure, False, values.to(scalar), right.to(scalar))
    return Tensor._from_dense(found) if isinstance(b, Tensor) else found


def solve(a: Any, b: Any) -> Any:
    """The rule of `linalg.solve`."""
    return _solve(lambda t, right, _: direct.solve(t, right), a, b, "solve")


def solve_triangular(a: Any, b: Any, *, lower: bool = True, unit_diagonal: bool = False) -> Any:
    """The rule of `linalg.solve_triangular`: the elements that it does not read have no gradient."""

    def solver(t: Tensor, right: torch.Tensor, turned: bool) -> Any:
        return triangular.solve_triangular(t, right, lower=lower != turned, unit_diagonal=unit_diagonal)

    read = _read(a, lower, unit_diagonal)
    return _solve(solver, read, b, "solve_triangular")


def _read(a: Any, lower: bool, unit_diagonal: bool) -> Any:
    from ..ops.triangles import tril, triu

    if not isinstance(a, Tensor):
        return a
    return tril(a, k=-int(unit_diagonal)) if lower else triu(a, k=int(unit_diagonal))
