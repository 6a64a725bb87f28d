"""Index notation as a function: evaluate a statement with one sparse operand on given operands."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError, UnsupportedError
from ...interop.operands import adopted, plain
from ...ir.index import Access, Apply, Assignment, Expression, Literal, accesses
from ...ir.operations import with_trait
from ...runtime.contract import contract
from ...runtime.promote import promote
from ...runtime.strided import Strided, strided
from ...storage.buffers import library_of
from ...tensor.tensor import Tensor

__all__ = ["evaluate", "linear", "vanishes"]


_ODD = with_trait("zero-at-zero") | {"pattern"}
"""Functions of one element that are 0 at 0."""
_SUMS = with_trait("zero-at-zeros")
"""Operations that are 0 where both operands are."""


def evaluate(stmt: Assignment, operands: tuple[Any, ...]) -> Any:
    """The left side of `stmt`, a dense array, from its right side's operands in order of appearance.

    Raises UnsupportedError where unspecified elements would take part: the sparse operand must have fill value 0,
    the right side be 0 where it is, and the reduction a sum.
    """

    if len(operands) != len(stmt.tensors):
        raise ShapeError(f"{stmt} has operands {', '.join(stmt.tensors)}; got {len(operands)} values")
    values: dict[str, Any] = {}
    like: Any = None
    for name, x in zip(stmt.tensors, map(adopted, operands), strict=True):
        if isinstance(x, Tensor) and not x.format.is_dense:
            sparse = x if x.format.is_unique or linear(stmt.rhs, name) else x.coalesce()
            values[name] = sparse._storage
            _require_drive(stmt, name, x.fill_value)
        else:
            dense = plain(x)
            values[name] = strided(dense)
            like = dense if like is None else like
    if len(values) == sum(isinstance(v, Strided) for v in values.values()):
        raise UnsupportedError(f"{stmt}: no operand is sparse\n  help: use einsum, or asformat() on one of them")
    if like is None:
        like = next(iter(values.values())).values
    scalar = promote(tuple(v.scalar for v in values.values()), library_of(like))
    return contract(stmt, values, scalar, like)


def _require_drive(stmt: Assignment, name: str, fill: Any) -> None:
    """UnsupportedError where the sum over the stored elements alone is not the statement's meaning."""
    if fill:
        why = f"{name} has fill value {fill!r}; supported: 0"
    elif stmt.reduction not in ("add", "or"):
        why = f"{stmt.op} would have to see the unspecified elements of {name}; supported: = and +="
    elif not vanishes(stmt.rhs, name):
        why = f"the right side is not 0 where {name} is unspecified; supported: products with {name}"
    else:
        return
    raise UnsupportedError(f"{stmt}: {why}\n  help: make {name} dense with .to_dense()")


def vanishes(e: Expression, name: str) -> bool:
    """Whether the expression is 0 where the operand `name` is."""
    match e:
        case Access(tensor):
            return tensor == name
        case Literal(value):
            return not value
        case Apply("mul" | "and" | "band", args):
            return any(vanishes(a, name) for a in args)
        case Apply("div" | "floordiv" | "mod" | "shl" | "shr", (left, _)):
            return vanishes(left, name)
        case Apply("select", (_, *arms)):
            return all(vanishes(a, name) for a in arms)
        case Apply(op, args) if op in _ODD or op in _SUMS:
            return all(vanishes(a, name) for a in args)
    return False


def linear(e: Expression, name: str) -> bool:
    """Whether the expression of a sum of two values of `name` is the sum of those of each."""
    having = [_has(a, name) for a in e.args] if isinstance(e, Apply) else []
    match e:
        case Access(tensor):
            return tensor == name
        case Apply("neg" | "real" | "imag" | "conj", (arg,)):
            return linear(arg, name)
        case Apply("add" | "sub", (left, right)):
            return linear(left, name) and linear(right, name)
        case Apply("mul", (left, right)) if sum(having) == 1:
            return linear(left if having[0] else right, name)
        case Apply("div", (left, _)) if having == [True, False]:
            return linear(left, name)
    return False


def _has(e: Expression, name: str) -> bool:
    return any(a.tensor == name for a in accesses(e))
