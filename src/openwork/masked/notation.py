"""Statements of index notation over masked tensors: an element is missing where an operand's is, reductions skip it."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError
from ..fusion.notation import check_statement, program_of, read_by
from ..fusion.terms import Term, product_of
from ..interop.operands import adopt_foreign
from ..interop.sources import asarray
from ..ir.index import Access, Assignment, Expression, accesses
from ..ops.elementwise.pointwise import pointwise
from ..tensor.tensor import Tensor
from . import namespace, products
from .tensor import MaskedTensor

__all__ = ["evaluate"]

_REDUCTIONS = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax", "or": "any", "and": "all"}


def evaluate(statements: str, /, *, format: object = None, semiring: Any = None, **tensors: Any) -> Any:
    """`ow.evaluate` of masked tensors, other tensors, arrays and numbers.

    Returns
    -------
    MaskedTensor where an operand of the last statement is one; elements are missing where they are in an operand, or
    where nothing was reduced

    Raises UnsupportedError for semirings, masks, assignments to what was there and dimensions that repeat.
    """
    known = {n: x if isinstance(x, MaskedTensor) else asarray(adopt_foreign(x)) for n, x in tensors.items()}
    unused = set(tensors)
    program = program_of(statements)
    for text, parts in program:
        for part in parts:
            keeps = part.lhs.tensor in known and part.op != "="
            check_statement(text, part, known, keeps)
            _refuse(text, semiring is not None and "a semiring", part.mask and "a mask", keeps and "what was there")
            unused -= {a.tensor for a in read_by(part, keeps)}
            known[part.lhs.tensor] = result = _run(text, part, known)
    if unused:
        raise TypeError(f"evaluate: no statement uses {', '.join(sorted(unused))}\n  help: leave it out")
    return result if format is None else result.asformat(format)


def _refuse(text: str, *found: Any) -> None:
    """UnsupportedError for the first thing that is there."""
    for what in filter(None, found):
        raise UnsupportedError(
            f"evaluate: {text}: {what} with masked tensors\n  supported: statements without\n  help: filled(value)"
        )


def _run(text: str, stmt: Assignment, known: dict[str, Any]) -> Any:
    e, free, reduced = stmt.rhs, stmt.lhs.indices, stmt.reduction_indices
    _refuse(text, any(len(set(a.indices)) != len(a.indices) for a in accesses(e)) and "a repeated index")
    term = product_of(e) if stmt.reduction == "add" and reduced else None
    if term is not None and _is_contraction(term, free, known):
        letter = dict(zip((*free, *reduced), "abcdefghijklmnopqrstuvwxyz", strict=False))
        inputs = ",".join("".join(letter[i] for i in a.indices) for a in term.factors)
        operands = (known[a.tensor] for a in term.factors)
        return products.einsum(f"{inputs}->{''.join(letter[i] for i in free)}", *operands)
    whole = _elementwise(e, (*free, *reduced), known)
    if not reduced:
        return whole
    return getattr(whole, _REDUCTIONS[stmt.reduction])(axis=tuple(range(len(free), len(free) + len(reduced))))


def _is_contraction(term: Term, free: tuple[str, ...], known: dict[str, Any]) -> bool:
    whole = type(term.scale) is int and term.scale == 1 and set(free) <= term.indices
    return whole and len(term.factors) > 1 and any(isinstance(known[a.tensor], MaskedTensor) for a in term.factors)


def _elementwise(e: Expression, order: tuple[str, ...], known: dict[str, Any]) -> Any:
    """The expression over all indices; a Tensor where no operand is masked."""
    tensors = {a.tensor: known[a.tensor] for a in accesses(e)}
    stmt = Assignment(Access("out", order), "=", e)
    if any(isinstance(x, MaskedTensor) for x in tensors.values()):
        return namespace.pointwise(stmt, tensors)
    return pointwise(stmt, {n: x for n, x in tensors.items() if isinstance(x, Tensor)})
