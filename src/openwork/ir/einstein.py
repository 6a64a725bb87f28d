"""A statement with `=` -> statements that each reduce their whole right side, by Einstein's convention.

An index that the left side lacks is summed in each term of the right side that has it, as TACO does and as one writes::

    y[i] = b[i] - A[i, j] * x[j]        y'1[i] += A[i, j] * x[j]
                                        y[i] = b[i] - y'1[i]

`+=` and the other operators are read as loops over all indices instead: their whole right side is combined.
"""

from __future__ import annotations

from .index import Access, Apply, Assignment, Expression, accesses

__all__ = ["separated"]


def separated(stmt: Assignment, prefix: str, each: bool = False) -> tuple[Assignment, ...] | None:
    """The sums of a statement with `=` and what is left of it; None where its meaning depends on how it is expanded.

    Statements with other operators, and those all of whose terms have the same reduced indices, stay as they are.
    prefix: that the names of the sums begin with.
    each: whether several terms of the same reduced indices are summed apart too, as matters where elements are missing.
    """
    reduced, terms = frozenset(stmt.reduction_indices), _terms(stmt.rhs)
    if stmt.op != "=" or not reduced or (all(_indices(t) >= reduced for t in terms) and not (each and len(terms) > 1)):
        return (stmt,)
    sums = _Sums(stmt.lhs.indices, reduced, prefix)
    rest = sums.visit(stmt.rhs)
    if sums.ambiguous:
        return None
    return (*sums.found, Assignment(stmt.lhs, "=", rest, stmt.mask, stmt.complement))


def _indices(e: Expression) -> frozenset[str]:
    return frozenset(i for a in accesses(e) for i in a.indices)


def _terms(e: Expression) -> list[Expression]:
    """The terms of a sum, through signs and products."""
    match e:
        case Apply("add" | "sub", (left, right)):
            return _terms(left) + _terms(right)
        case Apply("neg", (arg,)):
            return _terms(arg)
        case Apply("mul", (left, right)):
            return [Apply("mul", (a, b)) for a in _terms(left) for b in _terms(right)]
        case Apply("div", (left, right)):
            return [Apply("div", (a, right)) for a in _terms(left)]
    return [e]


class _Sums:
    """The expression with an access of a sum in the place of every term that has reduced indices."""

    def __init__(self, free: tuple[str, ...], reduced: frozenset[str], prefix: str) -> None:
        self.free, self.reduced, self.prefix = free, reduced, prefix
        self.found: list[Assignment] = []
        self.ambiguous = False

    def visit(self, e: Expression) -> Expression:
        own = _indices(e) & self.reduced
        if not own:
            return e
        match e:
            case Apply("add" | "sub" | "neg" as op, args):
                return Apply(op, tuple(map(self.visit, args)))
            case Apply("mul" | "div" as op, (left, right)):
                in_left, in_right = (_indices(x) & self.reduced for x in (left, right))
                if not in_right or (op == "mul" and not in_left & in_right):
                    return Apply(op, (self.visit(left), self.visit(right)))
                self.ambiguous |= any(not _indices(t) & self.reduced for t in _terms(e))
        return self.sum(e)

    def sum(self, e: Expression) -> Access:
        own = _indices(e)
        target = Access(f"{self.prefix}{len(self.found) + 1}", tuple(i for i in self.free if i in own))
        self.found.append(Assignment(target, "+=", e))
        return target
