"""Gradients of solutions of linear systems: one more solution, and its product with the first at the matrix's elements.

A x = b        db = A^-H dx        dA = -db x^H at A
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import UnsupportedError
from ..linalg import direct, triangular
from ..ops.tensor import Tensor
from ..storage.buffers import as_array, scalar_of
from ..storage.storage import Storage
from .drive import Product, _conjugate, _like, product
from .positions import plain, unique

__all__ = ["solve", "solve_triangular"]

Solver = Callable[[Tensor, torch.Tensor, bool], Any]
"""A matrix, right sides, and whether the matrix is the conjugate transpose of the one that was given."""


class _Solution(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, solver: Solver, s: Storage, turned: bool, values: Any, right: torch.Tensor) -> torch.Tensor:
        ctx.solver, ctx.structure, ctx.turned = solver, s, turned
        found: torch.Tensor = solver(Tensor._from_storage(s.with_values(values.detach())), right.detach(), turned)
        ctx.save_for_backward(values, right, found)
        return found

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


def _solve(solver: Solver, a: Any, b: Any, operation: str) -> Any:
    if not isinstance(a, Tensor) or a.ndim != 2:
        raise UnsupportedError(f"{operation} of a stack has no gradient\n  help: solve one matrix at a time")
    s = unique(a._storage)
    given = b.to_dense() if isinstance(b, Tensor) else b
    like = next(x for x in (s.values, given) if isinstance(x, torch.Tensor))
    right, values = as_array(given, like=like), as_array(s.values, like=like)
    scalar = torch.result_type(values[:0], right)
    structure = plain(s).mapped(lambda x: as_array(x, like=like.detach()))
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

    if not isinstance(a, Tensor) or a.ndim != 2:
        return a
    return tril(a, k=-int(unit_diagonal)) if lower else triu(a, k=int(unit_diagonal))
