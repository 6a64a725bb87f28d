"""A function of torch tensors -> its Jacobian or Hessian as a sparse Tensor, by coloured products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import openwork as ow

from ..errors import DTypeError, ShapeError, UnsupportedError
from ..format.format import Format
from ..linalg.jacobian_plan import JacobianPlan, hessian_plan, jacobian_plan
from ..tensor.tensor import Tensor
from .dependence import jacobian_pattern

__all__ = ["JacobianPlan", "hessian", "hessian_plan", "jacobian", "jacobian_plan"]

CHUNK = 1 << 24
"""Elements of directions and products that are computed together."""


def jacobian(
    f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, format: str | Format = "csr", *, pattern: Any = None,
    mode: str = "auto", plan: JacobianPlan | None = None,
) -> Tensor:  # fmt: skip
    """The Jacobian of a function at x as a sparse Tensor, from a few products with it and its transpose.

    Parameters
    ----------
    f : of a tensor of the shape of x, to one tensor; sums, moves, products with constant matrices (Tensors too), ...
    x : torch tensor of n real numbers, of any shape
    format : of the result
    pattern : matrix (m, n), whose stored elements are where the Jacobian may differ from 0; without it f runs once on
        tensors that note which element depends on which
    mode : "forward" (JVPs), "reverse" (VJPs), "both"; "auto" for whichever needs the fewest
    plan : by `jacobian_plan`, which is then not made again; of `hessian_plan` the result is the Hessian

    Returns
    -------
    Tensor, shape (m, n), rows and columns in row-major order of f(x) and x. Its values stay on the graph of x and of
    what f closes over

    Raises UnsupportedError that names the operation where the pattern cannot be followed, as in `if x.sum() > 0`;
    InvariantError where the first Jacobian of a plan, times a vector, is not the derivative along it.

    Cost: as many runs of f as the columns have colours, together under torch.vmap where f allows it.
    Source: Gebremedhin, Manne, Pothen (2005).
    See also: hessian, jacobian_plan.

    Examples
    --------
    >>> import torch
    >>> u = torch.linspace(0, 1, 5)
    >>> ow.torch.jacobian(lambda u: u[1:] * u[:-1], u).to_dense()
    tensor([[0.2500, 0.0000, 0.0000, 0.0000, 0.0000],
            [0.0000, 0.5000, 0.2500, 0.0000, 0.0000],
            [0.0000, 0.0000, 0.7500, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000, 1.0000, 0.7500]])
    """
    _check(x, "jacobian", plan)
    if plan is None:
        found = jacobian_pattern(f, x) if pattern is None else pattern
        plan = jacobian_plan(found, mode, format=format)
    if plan.symmetric:
        return hessian(f, x, plan=plan)
    return _evaluated(plan, _flat(f, x), x)


def hessian(
    f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, format: str | Format = "csr", *, pattern: Any = None,
    plan: JacobianPlan | None = None,
) -> Tensor:  # fmt: skip
    """The Hessian of a function at x as a sparse Tensor, from a few products with it by a star colouring.

    Parameters
    ----------
    f : of a tensor of the shape of x, to one number
    x, format, pattern : as of `jacobian`; of the pattern one half suffices
    plan : by `hessian_plan`

    Returns
    -------
    Tensor, shape (n, n), symmetric; its values stay on the graph

    Raises as `jacobian` does, ShapeError where f gives more than one number.

    Cost: as many gradients and their derivatives as the columns have colours.
    Source: Gebremedhin, Tarafdar, Manne, Pothen (2007).
    See also: jacobian, hessian_plan.

    Examples
    --------
    >>> import torch
    >>> ow.torch.hessian(lambda u: (u[1:] * u[:-1] ** 2).sum(), torch.ones(3)).to_dense()
    tensor([[2., 2., 0.],
            [2., 2., 2.],
            [0., 2., 0.]])
    """
    _check(x, "hessian", plan)
    scalar = _flat(f, x)

    def one(v: torch.Tensor) -> torch.Tensor:
        y = scalar(v)
        if y.numel() != 1:
            raise ShapeError(f"hessian: f gave {y.numel()} numbers\n  expected: one")
        return y.sum()

    if plan is None:
        found = jacobian_pattern(lambda v: f(v).sum(), x, gradient=True) if pattern is None else pattern
        plan = hessian_plan(found, format=format)
    return _evaluated(plan, torch.func.grad(one), x)


def _check(x: Any, name: str, plan: Any) -> None:
    if not isinstance(x, torch.Tensor):
        raise DTypeError(f"{name}: x is a {type(x).__name__}\n  help: jacobian_plan(P).differences(f, x) of arrays")
    if plan is not None and not isinstance(plan, JacobianPlan):
        raise DTypeError(f"{name}: plan is a {type(plan).__name__}\n  help: plan=jacobian_plan(P), pattern=P")
    if not x.is_floating_point() or x.layout is not torch.strided:
        raise DTypeError(f"{name}: x is {x.dtype}, {x.layout}\n  expected: a strided tensor of real numbers")


def _flat(f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """f as a function of a vector, to a vector."""

    def flat(v: torch.Tensor) -> torch.Tensor:
        y = f(v.reshape(x.shape))
        if not isinstance(y, torch.Tensor) or not y.is_floating_point():
            raise DTypeError("jacobian: f gave no tensor of real numbers\n  expected: one tensor of real numbers")
        return y.reshape(-1)

    return flat


def _evaluated(plan: JacobianPlan, flat: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Tensor:
    """The Jacobian of a function of vectors by the plan's products."""
    at = x.reshape(-1)
    if plan.shape[1] != len(at):
        raise ShapeError(f"jacobian: x has {len(at)} elements\n  expected: {plan.shape[1]}, as the pattern has columns")
    columns, rows = (torch.from_numpy(s).to(at) for s in plan.seeds("float32"))
    parts = [at.new_zeros(1)]
    if plan.reverse:
        pull = _pull(plan, flat, at)
        parts.insert(0, _products(pull, rows).reshape(-1))
    if plan.forward:
        parts.insert(0, _products(_push(plan, flat, at), columns).reshape(-1))
    places = torch.from_numpy(plan.places).to(at.device)
    values = torch.cat(parts).index_select(0, places)
    pattern = ow.asarray(plan.pattern, like="torch")
    J = ow.with_values(pattern if at.device.type == "cpu" else pattern.to(at.device), values, fill_value=0)
    if not plan.checked:
        _compare(plan, flat, at.detach(), J.detach())
    return J


def _push(plan: JacobianPlan, flat: Callable[..., Any], at: torch.Tensor) -> Callable[..., Any]:
    def push(v: torch.Tensor) -> torch.Tensor:
        y = torch.func.jvp(flat, (at,), (v,))[1]
        _check_rows(plan, y)
        return y

    return push


def _pull(plan: JacobianPlan, flat: Callable[..., Any], at: torch.Tensor) -> Callable[..., Any]:
    y, back = torch.func.vjp(flat, at)
    _check_rows(plan, y)
    return lambda u: back(u.to(y.dtype))[0]


def _check_rows(plan: JacobianPlan, y: torch.Tensor) -> None:
    if len(y) != plan.shape[0]:
        raise ShapeError(f"jacobian: f gave {len(y)} elements\n  expected: {plan.shape[0]}, as the pattern has rows")


def _products(product: Callable[..., Any], seeds: torch.Tensor) -> torch.Tensor:
    """The products of all directions: together where torch.vmap follows f, else one after the other."""
    if len(seeds) > 1:
        chunk = max(1, CHUNK // max(1, seeds.shape[1]))
        try:
            return torch.func.vmap(product, chunk_size=chunk)(seeds)
        except (RuntimeError, UnsupportedError):  # what f itself raises, it raises below
            pass
    return torch.stack([product(s) for s in seeds])


def _compare(plan: JacobianPlan, flat: Callable[..., Any], at: torch.Tensor, J: Tensor) -> None:
    """Compare J @ v with a derivative along v, or J.T @ u with the other one where the plan has these alone."""
    chosen = torch.Generator().manual_seed(0)
    forward = bool(plan.forward) or not plan.reverse
    v = torch.randn(plan.shape[1] if forward else plan.shape[0], generator=chosen).to(at)
    expected = (_push if forward else _pull)(plan, flat, at)(v).detach()
    product = (J if forward else J.T) @ v.to(expected.dtype)
    tolerance = 16 * float(torch.finfo(expected.dtype).eps ** 0.5)
    plan.compare(product.cpu().double().numpy(), expected.cpu().double().numpy(), tolerance)
