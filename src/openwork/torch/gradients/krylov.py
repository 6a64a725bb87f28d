"""Gradient rules of iterative solvers: the adjoint system is solved by the same method, to the same tolerance.

    A x = b        db = A^-H dx        dA = -db x^H at A

Least squares, with a damping d, where x = (A^H A + d^2)^-1 A^H b, r = b - A x::

    y = (A^+)^H dx      z = A^+ y, or (dx - A^H y) / d^2      w = (A^+)^H x, 0 with damping

    db = y        dA = r z^H - y x^H + w (dx - A^H y)^H at A

The last term is that of matrices whose rows are fewer than their columns, or whose rank is less.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...errors import ConvergenceWarning, UnsupportedError
from ...linalg import iterative
from ...linalg.inverse import InverseOperator
from ...linalg.least_squares import LeastSquares
from ...linalg.named import preconditioner_by_name
from ...linalg.operator import aslinearoperator, is_operator
from ...ops.elementwise.functions import conj
from ...reals import real
from ...runtime.gradient_hook import tracked
from ...storage.buffers import as_array, scalar_of
from ...storage.recorded import bare
from ...storage.storage import Storage, structure_of
from ...tensor.tensor import Tensor
from .function import Rule, apply_rule
from .permutation import without_duplicates
from .single_operand import Product, _conjugate, _like, product
from .solvers import _solve

__all__ = ["SOLVERS", "factored_least_squares", "least_squares_rule", "solver_rule"]

SOLVERS: tuple[str, ...] = ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
_ONCE = ("callback", "progress")
"""Options that are of the solution alone, not of adjoint ones."""
_BREAK_DOWN = ("bicg", "bicgstab", "cgs", "qmr", "tfqmr")
"""Methods that break down for right sides of few elements, as gradients often are: these go by GMRES then."""
_RESTART = 50


class _Solver:
    """A call of an iterative solver with other matrices and right sides; what it tells beside its first solution."""

    def __init__(self, name: str, a: Any, x0: Any, options: dict[str, Any]) -> None:
        self.name, self.options = name, dict(options)
        self.told: int | None = None
        given = self.options.get("M")
        if isinstance(given, str):
            self.options["M"] = preconditioner_by_name(given, a.detach() if isinstance(a, Tensor) else a)
        for key, value in (("x0", x0), *self.options.items()):
            if tracked([value.values if isinstance(value, Tensor) else value]):
                raise UnsupportedError(f"{name}: {key} has no gradient\n  help: {key}.detach()")
        self.start = x0

    def __call__(self, t: Any, right: Any, turned: bool) -> Any:
        if self.told is None:
            x, self.told = getattr(iterative, self.name)(t, right, self.start, **self.options)
            return x
        options = {k: v for k, v in self.options.items() if k not in _ONCE}
        if turned:
            options = {k: _adjoint(v) if k == "M" else v for k, v in options.items() if k not in ("M1", "M2")}
        if self.name not in _BREAK_DOWN:
            return getattr(iterative, self.name)(t, right, **options)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            x, info = getattr(iterative, self.name)(t, right, **options)
        if info:
            options = {k: v for k, v in options.items() if k in ("rtol", "tol", "atol", "M", "dtype")}
            x = iterative.gmres(t, right, restart=_RESTART, **options)[0]
        return x


def _adjoint(m: Any) -> Any:
    """The adjoint of a preconditioner; none for a function, which the adjoint solution then does without."""
    if m is None or (callable(m) and not is_operator(m) and not isinstance(m, Tensor)):
        return None
    if isinstance(m, InverseOperator):
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(m.shape, matvec=m.rmatvec, matmat=m.rmatmat, rmatvec=m.matvec, dtype=m.dtype)
    return aslinearoperator(m).H


def solver_rule(name: str) -> Callable[..., Any]:
    """The rule of `linalg`'s solver of this name: (x, info), x on the graph of the matrix and the right side."""

    def rule(a: Any, b: Any, x0: Any = None, **options: Any) -> Any:
        solver = _Solver(name, a, x0, options)
        if isinstance(a, Tensor) or (isinstance(a, torch.Tensor) and a.ndim == 2):
            t = a if isinstance(a, Tensor) else Tensor._from_dense(a)
            return _solve(solver, t, b, name), solver.told
        hermitian = name in ("cg", "minres")
        sides = b.to_dense() if isinstance(b, Tensor) else b
        x = apply_rule(_OperatorSolution(solver, a, hermitian, False), sides)
        return (Tensor._from_dense(x) if isinstance(b, Tensor) else x), solver.told

    return rule


class _OperatorSolution(Rule):
    """The solution with an operator, as a function of the right side."""

    __slots__ = ("hermitian", "operator", "solver", "turned")

    def __init__(self, solver: _Solver, operator: Any, hermitian: bool, turned: bool) -> None:
        self.solver, self.operator, self.hermitian, self.turned = solver, operator, hermitian, turned

    def forward(self, right: torch.Tensor) -> Any:
        turned = self.turned and not self.hermitian
        operator = _adjoint_operator(self.operator, self.solver.name) if turned else self.operator
        return self.solver(operator, right.detach(), turned)

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        return (apply_rule(_OperatorSolution(self.solver, self.operator, self.hermitian, not self.turned), grad),)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> Any:
        return apply_rule(self, *tangents)


def _adjoint_operator(a: Any, name: str) -> Any:
    if not is_operator(a):
        raise UnsupportedError(
            f"{name}: a function has no adjoint, which the gradient takes\n  help: a LinearOperator with rmatvec"
        )
    return aslinearoperator(a).H


class _LeastSquares(Rule):
    """The least-squares solution, as a function of the matrix's values and the right side.

    turned : whether the matrix is the conjugate transpose of the one that was given
    """

    __slots__ = ("call", "structure", "turned")

    def __init__(self, call: _Call | _Factors, s: Storage, turned: bool = False) -> None:
        self.call, self.structure, self.turned = call, s, turned

    def forward(self, values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return self.call.solution(self.structure, values.detach(), right.detach(), self.turned)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return *tensors, output

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        (values, right, x), damp, s = saved, self.call.damp, self.structure
        adjoint, turned, conjugate = self._adjoint(), s.permute((1, 0)), _conjugate(values)
        y = apply_rule(adjoint, conjugate, grad)
        of_values = None
        if needed[0]:
            rest = grad - _times(turned, conjugate, y)
            z = rest / damp**2 if damp else apply_rule(self, values, y)
            pairs = [(right - _times(s, values, x), z), (-y, x)]
            if not damp:
                pairs.append((apply_rule(adjoint, conjugate, x), rest))
            left = torch.cat([p.reshape(len(p), -1) for p, _ in pairs], 1)
            other = torch.cat([_conjugate(q).reshape(len(q), -1) for _, q in pairs], 1)
            spec = Product(s, ("i", "j"), (("i", "k"), ("j", "k")), None, scalar_of(left))
            of_values = _like(product(spec, None, [left, other]), values)
        return of_values, _like(y, right)

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> Any:
        (values, right, x), (change, moved), s = saved, tangents, self.structure
        moved = torch.zeros_like(right) if moved is None else moved
        if change is None:
            return apply_rule(self, values, moved)
        adjoint, turned, conjugate = self._adjoint(), s.permute((1, 0)), _conjugate(values)
        dx = apply_rule(self, values, moved - _times(s, change, x))
        pulled = _times(turned, _conjugate(change), right - _times(s, values, x))
        y = apply_rule(adjoint, conjugate, pulled)
        if self.call.damp:
            return dx + (pulled - _times(turned, conjugate, y)) / self.call.damp**2
        w = _times(turned, _conjugate(change), apply_rule(adjoint, conjugate, x))
        outside = w - _times(turned, conjugate, apply_rule(adjoint, conjugate, w))
        return dx + apply_rule(self, values, y) + outside

    def _adjoint(self) -> _LeastSquares:
        return _LeastSquares(self.call, self.structure.permute((1, 0)), not self.turned)


def _times(s: Storage, values: torch.Tensor, x: torch.Tensor) -> Any:
    """The matrix of these values times a vector, on the graph of both."""
    return Tensor._from_storage(s.with_values(values)) @ x


class _Call:
    """A least-squares method with its options; what it told of its first solution."""

    def __init__(self, name: str, damp: float, options: dict[str, Any]) -> None:
        self.name, self.damp, self.options = name, damp, options
        self.told: tuple[Any, ...] | None = None

    def solution(self, s: Storage, values: torch.Tensor, right: torch.Tensor, turned: bool) -> torch.Tensor:
        """The solution for a matrix."""
        options = self.options
        if self.told is not None:
            options = {k: v for k, v in options.items() if k not in (*_ONCE, "x0", "show", "calc_var")}
        x, *told = getattr(iterative, self.name)(
            Tensor._from_storage(s.with_values(values)), right, self.damp, **options
        )
        self.told = tuple(told) if self.told is None else self.told
        result: torch.Tensor = x
        return result


class _Factors:
    """Least-squares solutions by QR, with the factors that are there where the matrix is theirs, or its adjoint."""

    damp = 0.0

    def __init__(self, factors: LeastSquares, trans: str) -> None:
        self.factors, self.trans, self.version = factors, trans, factors._updates
        self.values: Any = None

    def solution(self, s: Storage, values: torch.Tensor, right: torch.Tensor, turned: bool) -> torch.Tensor:
        """The solution for a matrix."""
        if self.values is None:
            self.values = values
        given, factors = self.values.conj().resolve_conj() if turned else self.values, self.factors
        is_theirs = factors._updates == self.version and torch.equal(values, given)
        if not is_theirs:
            factors = LeastSquares(Tensor._from_storage(s.with_values(values)))
        if factors.rank < min(s.shape):
            raise UnsupportedError("solve: a basic solution, of a matrix of lower rank, has no gradient\n  help: lsqr")
        found: torch.Tensor
        if turned and is_theirs and self.trans == "T":
            return factors.solve(right.conj().resolve_conj()).conj().resolve_conj()
        if not is_theirs:
            found = factors.solve(right)
        else:
            found = factors.solve(right, self.trans if not turned else "H" if self.trans == "N" else "N")
        return found


def factored_least_squares(factors: LeastSquares, a: Tensor, b: Any, trans: str) -> Any:
    """The rule of `LeastSquares.solve`: the adjoint problem is solved with the same factors."""
    turned = a if trans == "N" else a.mT if trans == "T" else conj(a).mT
    return _least_squares(_Factors(factors, trans), turned, b)


def least_squares_rule(name: str) -> Callable[..., Any]:
    """The rule of `lsqr` or `lsmr`: what these give, x on the graph of the matrix and the right side."""

    def rule(a: Any, b: Any, damp: Any = 0.0, **options: Any) -> Any:
        if not isinstance(a, Tensor):
            if not isinstance(a, torch.Tensor):
                raise UnsupportedError(f"{name} of an operator has no gradient\n  help: a matrix; detach()")
            a = Tensor._from_dense(a)
        if tracked([damp, options.get("x0")]):
            raise UnsupportedError(f"{name}: damp and x0 have no gradient\n  help: detach()")
        call = _Call(name, real(damp, name, "damp"), options)
        return (_least_squares(call, a, b), *(call.told or ()))

    return rule


def _least_squares(call: _Call | _Factors, a: Tensor, b: Any) -> Any:
    s = without_duplicates(a._storage)
    sides = b.to_dense() if isinstance(b, Tensor) else b
    like = next(x for x in (s.values, sides) if isinstance(x, torch.Tensor))
    right, values = as_array(sides, like=like), as_array(s.values, like=like)
    scalar = torch.result_type(values[:0], right)
    structure = structure_of(s).mapped(lambda x: as_array(x, like=bare(like, any_of_batch=True)))
    x = apply_rule(_LeastSquares(call, structure), values.to(scalar), right.to(scalar))
    return Tensor._from_dense(x) if isinstance(b, Tensor) else x
