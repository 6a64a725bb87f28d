"""An expression -> the products whose sum it is, each to be contracted by itself; and the semiring that it spells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..classes import frozen
from ..compiler.semiring import SEMIRINGS, Semiring
from ..compiler.vanishing import vanishes
from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..tensor.tensor import Tensor

__all__ = ["Term", "addition_of", "product_of", "semiring_in", "summands", "vanishing_factors"]


@frozen
class Term:
    """`scale` times the product of accesses."""

    factors: tuple[Access, ...]
    scale: Any = 1

    @property
    def indices(self) -> frozenset[str]:
        return frozenset(i for a in self.factors for i in a.indices)


def summands(e: Expression, scale: Any = 1) -> list[Term] | None:
    """The products that `e` is the sum of; None where it is something else."""
    match e:
        case Apply("add" | "sub" as op, (left, right)):
            first = summands(left, scale)
            second = summands(right, scale if op == "add" else -scale)
            return None if first is None or second is None else first + second
        case Apply("neg", (inner,)):
            return summands(inner, -scale)
    product = product_of(e)
    return None if product is None else [Term(product.factors, scale * product.scale)]


def product_of(e: Expression) -> Term | None:
    """The accesses that `e` is the product of; None where it is something else."""
    match e:
        case Access():
            return Term((e,))
        case Literal(value):
            return Term((), value)
        case Apply("mul", (left, right)):
            a, b = product_of(left), product_of(right)
            return None if a is None or b is None else Term(a.factors + b.factors, a.scale * b.scale)
    return None


def vanishing_factors(e: Expression, tensors: Mapping[str, Any]) -> list[Expression]:
    """The functions of tensors that are factors of products and 0 wherever a sparse operand is: `abs(A[i, j])`."""
    factors: list[Expression] = []
    _collect_vanishing(e, False, tensors, factors)
    return list(dict.fromkeys(factors))


def _collect_vanishing(e: Expression, in_product: bool, tensors: Mapping[str, Any], factors: list[Expression]) -> None:
    match e:
        case Apply("add" | "sub" | "neg", args) if not in_product:
            for arg in args:
                _collect_vanishing(arg, False, tensors, factors)
        case Apply("mul", args):
            for arg in args:
                _collect_vanishing(arg, True, tensors, factors)
        case Apply() if in_product:
            sparse = {a.tensor for a in accesses(e) if _is_sparse(tensors[a.tensor])}
            if any(tensors[n].fill_value == 0 and vanishes(e, n) for n in sparse):
                factors.append(e)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and not x.format.is_dense


_SEMIRING_OF = {
    ("min", "add"): "min_plus",
    ("max", "add"): "max_plus",
    ("min", "max"): "min_max",
    ("max", "min"): "max_min",
    ("or", "and"): "lor_land",
    ("or", "band"): "lor_land",
}
"""Semirings by the operations of a statement; the identity of each sum annihilates."""


def semiring_in(reduction: str, e: Expression, tensors: Mapping[str, Any]) -> tuple[str, tuple[Access, ...]] | None:
    """The semiring that a statement such as `min= A[i, j] + B[j, k]` spells, and its factors.

    None unless unspecified elements of all operands are what annihilates.
    """
    if not isinstance(e, Apply):
        return None
    name = _SEMIRING_OF.get((reduction, e.op))
    factors = _operands_of_chain(e, e.op)
    if name is None or factors is None:
        return None
    for value in (tensors[a.tensor] for a in factors):
        scalar = value._storage.scalar if isinstance(value, Tensor) else None
        if scalar is None or value.format.is_dense or value.fill_value != _identity(name, scalar):
            return None
        if name == "lor_land" and scalar != "bool":
            return None
    return name, factors


def _identity(name: str, scalar: str) -> Any:
    return SEMIRINGS[name].add.identity_of(scalar)


def _operands_of_chain(e: Expression, op: str) -> tuple[Access, ...] | None:
    """The accesses in a chain of one binary operation, None where something else is in it."""
    if isinstance(e, Access):
        return (e,)
    if not isinstance(e, Apply) or e.op != op:
        return None
    parts = [_operands_of_chain(a, op) for a in e.args]
    return None if None in parts else tuple(a for p in parts if p is not None for a in p)


_ELEMENTWISE = {
    "x + y": "add", "x * y": "mul", "min(x, y)": "min", "max(x, y)": "max", "x | y": "bor", "x & y": "band",
    "x ^ y": "bxor",
}  # fmt: skip


def addition_of(ring: Semiring) -> str | None:
    """The elementwise operation that a semiring adds by; None where there is none of that name."""
    return _ELEMENTWISE.get(ring.add.operation)
