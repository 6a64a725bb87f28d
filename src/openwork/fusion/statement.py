"""Runs one statement on tensors by name, the shortest of these ways:

    C[i,j] = A[i,j] - B[j,i]               merge        no index is reduced: one co-iteration
    C[i,k] += A[i,j] * B[j,k] + 2          products     a sum of products: each contracted, then added
    C[i,k] min= A[i,j] + B[j,k]            semiring     where unspecified elements annihilate: one contraction
    s max= abs(A[i,j] - B[i,j])            reduction    anything else: a fused expression over all indices, reduced

A mask is an operand: of a product of sparse matrices, or of dense factors sampled where it specifies elements; else of
the choice between what was computed and what was there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..compiler.schedule.product import prefers_sparse
from ..compiler.semiring import SEMIRINGS, Semiring
from ..errors import UnsupportedError
from ..format.format import Format
from ..interop.operands import plain
from ..interop.sources import asarray
from ..ir.index import Access, Apply, Assignment, Expression, Literal, accesses
from ..ops.elementwise.functions import where
from ..ops.elementwise.maps import elementwise
from ..ops.elementwise.pointwise import pointwise
from ..ops.indexing.taking import prune
from ..ops.products.product import product, sampled
from ..ops.products.spgemm import spgemm
from ..ops.reductions import statistics
from ..runtime.contraction.sparse import Term as Contracted
from ..runtime.formats import resolve_format
from ..storage.buffers import is_array, length
from ..tensor.lazy import lazy
from ..tensor.tensor import Tensor
from .operands import check_exponents, laid, lazily, plain_accesses, renamed, swapped
from .program import compute
from .sparse_reduction import reduce_product, reduce_sparse
from .terms import Term, addition_of, product_of, semiring_in, summands, vanishing_factors

__all__ = ["run"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REDUCTIONS = {"add": "sum", "mul": "prod", "min": "min", "max": "max", "or": "any", "and": "all"}


def run(stmt: Assignment, known: Mapping[str, Any], old: Any, format: object, ring: Semiring | None) -> Any:
    """What the statement assigns; `old` is what its left side holds, where that plays a part."""
    e, known = plain_accesses(stmt.rhs, known)
    check_exponents(e, known)
    if stmt.mask is not None:
        found = _masked(stmt, e, known, old, format, ring)
    else:
        found = _value(stmt, e, known, format if old is None else None, ring)
        if old is not None:
            own = {i for a in accesses(e) for i in a.indices}
            found = _combined(stmt, old, _spread(found, own, stmt.lhs.indices), ring)
    operands = [known[a.tensor] for a in accesses(e)] + ([] if old is None else [old])
    if any(isinstance(x, Tensor) for x in operands) and not isinstance(found, Tensor):
        mixed = any(is_array(x) for x in operands)
        found = found if mixed and format is None else asarray(found)
    return found if format is None else asarray(found).asformat(resolve_format(format, np.ndim(found)))


def _value(stmt: Assignment, e: Expression, known: Mapping[str, Any], format: object, ring: Semiring | None) -> Any:
    """The right side over those of the left side's indices that it has, the others reduced."""
    own = dict.fromkeys(i for a in accesses(e) for i in a.indices)
    free = tuple(i for i in stmt.lhs.indices if i in own)
    reduced = tuple(i for i in own if i not in free)
    if ring is not None:
        return _over(stmt, e, free, known, ring, format)
    if not own and not list(accesses(e)):
        return _constant(e)
    if not reduced and any(isinstance(known[a.tensor], Tensor) for a in accesses(e)):
        return _pointwise(free, e, known, format)
    if stmt.reduction == "add" and reduced:
        e, known = _with_factors(e, known)
        terms = _terms(e, free, reduced, known)
        if terms is not None:
            return _sum(terms, free, reduced, known, format)
    spelled = semiring_in(stmt.reduction, e, known)
    if spelled is not None and reduced:
        return _contracted(spelled[1], free, known, SEMIRINGS[spelled[0]], format)
    return _reduced(e, free, reduced, _REDUCTIONS[stmt.reduction], known, format)


def _constant(e: Expression) -> Any:
    """The number that an expression without tensors is."""
    return compute(lazy(np.asarray(lazily(e, (), {}))))


# -- what was there, and masks -----------------------------------------------------------------------------------------


def _combined(stmt: Assignment, old: Any, new: Any, ring: Semiring | None) -> Any:
    """`old op new`, by the operator of the assignment or the semiring's sum."""
    op = stmt.reduction if ring is None else addition_of(ring)
    if op is None:
        raise UnsupportedError(f"evaluate: {stmt}: no elementwise sum of {ring}\n  help: assign with = to a new name")
    return new if stmt.op == "=" else elementwise(op, old, new)


def _spread(value: Any, own: Any, order: tuple[str, ...]) -> Any:
    """A value over some of the indices of `order`, of extent 1 along the others."""
    indices = tuple(i for i in order if i in own)
    return value if len(indices) == len(order) else laid(_array(value), indices, order)


def _array(value: Any) -> Any:
    return value if hasattr(value, "ndim") else np.asarray(value)


def _masked(
    stmt: Assignment, e: Expression, known: Mapping[str, Any], old: Any, format: object, ring: Semiring | None
) -> Any:
    """The right side at the elements of the mask, what was there at the others; 0 where nothing was."""
    assert stmt.mask is not None
    order = stmt.lhs.indices
    mask = _pattern(known[stmt.mask.tensor]).transpose(tuple(stmt.mask.indices.index(i) for i in order))
    if old is None:
        found = _product_at(stmt, e, known, mask, ring)
        if found is not None:
            return found
    new = _value(stmt, e, known, None, ring)
    new = _spread(new, {i for a in accesses(e) for i in a.indices}, order)
    scalar = asarray(new)._storage.scalar
    zero: Any = scalar != "bool" and 0 if ring is None else ring.add.identity_of(scalar)
    other = zero if old is None else old
    new = new if old is None else _combined(stmt, old, new, ring)
    return where(mask, other, new) if stmt.complement else where(mask, new, other)


def _pattern(mask: Any) -> Tensor:
    """Truth where an element of a mask is not 0: nothing else is stored, whatever the format."""
    t = asarray(mask)
    truth = t if t._storage.scalar == "bool" else asarray(t != 0)
    if truth.fill_value:
        return truth
    found = prune(truth.asformat("coo") if truth.format.is_dense else truth)
    return found if bool(found.values.all()) else prune(found.asformat("coo"))


def _product_at(stmt: Assignment, e: Expression, known: Mapping[str, Any], mask: Tensor, ring: Semiring | None) -> Any:
    """A product formed at the elements of a mask only: of two sparse matrices, or of dense factors; None of others."""
    term = product_of(e)
    if term is None or mask.fill_value or stmt.op not in ("=", "+=") or type(term.scale) is not int or term.scale != 1:
        return None
    free, values = stmt.lhs.indices, [known[a.tensor] for a in term.factors]
    if len(values) == 2 == len(free) and all(_is_sparse(x) and x.ndim == 2 for x in values):
        return _matrices_at(term, free, values, mask, stmt.complement, ring)
    if ring is None and not stmt.complement and not any(map(_is_sparse, values)):
        rhs: Expression = Apply("pattern", (Access("T0", free),))
        for k, a in enumerate(term.factors, 1):
            rhs = Apply("mul", (rhs, Access(f"T{k}", a.indices)))
        arrays = {f"T{k}": plain(x) for k, x in enumerate(values, 1)}
        return sampled(Assignment(Access("out", free), "+=", rhs), {"T0": mask._storage, **arrays})
    return None


def _matrices_at(
    term: Term, free: tuple[str, ...], values: list[Any], mask: Tensor, complement: bool, ring: Semiring | None
) -> Any:
    a, b = term.factors
    inner = set(a.indices) & set(b.indices) - set(free)
    if len(inner) != 1 or set(a.indices) | set(b.indices) != {*inner, *free} or (ring is None and _has_fill(values)):
        return None
    (j,) = inner
    if free[0] not in a.indices:
        a, b, values = b, a, values[::-1]
        ring = None if ring is None else ring.swapped()
    left = values[0] if a.indices[1] == j else values[0].T
    right = values[1] if b.indices[0] == j else values[1].T
    return spgemm(left, right, semiring=ring or "plus_times", mask=mask, complement=complement)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and not x.format.is_dense


def _has_fill(values: list[Any]) -> bool:
    return any(x.fill_value != 0 for x in values)


def _pointwise(free: tuple[str, ...], e: Expression, known: Mapping[str, Any], format: object) -> Tensor:
    names = dict.fromkeys(a.tensor for a in accesses(e))
    short = {name: f"A{k}" for k, name in enumerate(names)}
    tensors = {short[n]: x if isinstance(x := known[n], Tensor) else asarray(x) for n in names}
    return pointwise(Assignment(Access("out", free), "=", renamed(e, short)), tensors, format)


# -- sums of products --------------------------------------------------------------------------------------------------


def _with_factors(e: Expression, known: Mapping[str, Any]) -> tuple[Expression, Mapping[str, Any]]:
    """Functions that are factors of products computed first, as tensors of their own."""
    values = dict(known)
    for part in vanishing_factors(e, known):
        own = tuple(dict.fromkeys(i for a in accesses(part) for i in a.indices))
        name = str(part)
        values[name] = _pointwise(own, part, known, None)
        e = swapped(e, part, Access(name, own))
    return e, values


def _terms(
    e: Expression, free: tuple[str, ...], reduced: tuple[str, ...], known: Mapping[str, Any]
) -> list[Term] | None:
    """The products that `e` is the sum of; None where it is something else, or a contraction gains nothing."""
    found = summands(e)
    if found is None or not any(len(t.factors) > 1 for t in found):
        return None
    for term in found:
        if any(isinstance(x := known[a.tensor], Tensor) and x.fill_value != 0 for a in term.factors):
            return None
        if not term.factors or not term.indices or not set(free) <= term.indices:
            return None
    return found


def _contracted(
    factors: tuple[Access, ...], free: tuple[str, ...], known: Mapping[str, Any], ring: Semiring, format: object
) -> Any:
    """A product of tensors, in the format of a sparse factor over just the free indices where none is asked for."""
    values = [known[a.tensor] for a in factors]
    letter = dict(zip(dict.fromkeys(i for a in factors for i in a.indices), _LETTERS, strict=False))
    inputs = tuple("".join(letter[i] for i in a.indices) for a in factors)
    wanted = resolve_format(format, len(free)) if format is not None else _structure(factors, free, known)
    shown = f"evaluate: {' * '.join(map(str, factors))}"
    return product(inputs, "".join(letter[i] for i in free), [plain(x) for x in values], ring, wanted, shown)


def _structure(factors: tuple[Access, ...], free: tuple[str, ...], known: Mapping[str, Any]) -> Format | None:
    """The format of a sparse factor over just the free indices: no other element of the product can be there."""
    for a in factors if len(factors) > 1 else ():
        if _is_sparse(x := known[a.tensor]) and sorted(a.indices) == sorted(free):
            found: Format = x.format.permute([a.indices.index(i) for i in free])
            return found
    return None


def _sum(
    terms: list[Term], free: tuple[str, ...], reduced: tuple[str, ...], known: Mapping[str, Any], format: object
) -> Any:
    """Each product contracted, times the extents of the indices that it lacks."""
    sizes = _sizes([a for t in terms for a in t.factors], known)
    total = None
    for term in terms:
        scale = term.scale
        for i in reduced:
            scale = scale if i in term.indices else scale * sizes[i]
        part = _contracted(term.factors, free, known, SEMIRINGS["plus_times"], format)
        part = part if type(scale) is int and scale == 1 else part * scale
        total = part if total is None else total + part
    return total


def _sizes(found: list[Access], known: Mapping[str, Any]) -> dict[str, int]:
    return {i: int(n) for a in found for i, n in zip(a.indices, known[a.tensor].shape, strict=True)}


def _over(
    stmt: Assignment, e: Expression, free: tuple[str, ...], known: Mapping[str, Any], ring: Semiring, format: object
) -> Any:
    """A product over a semiring."""
    product = product_of(e)
    if product is None or stmt.op not in ("=", "+=") or product.scale != 1 or not product.factors:
        raise UnsupportedError(
            f"evaluate: {stmt}: a semiring says what the sum and the product of `+=` and `*` are"
            "\n  expected: a product of tensors\n  help: C[i, k] += A[i, j] * B[j, k], with semiring=..."
        )
    return _contracted(product.factors, free, known, ring, format)


# -- anything else -----------------------------------------------------------------------------------------------------


def _reduced(
    e: Expression,
    free: tuple[str, ...],
    reduced: tuple[str, ...],
    name: str,
    known: Mapping[str, Any],
    format: object,
) -> Any:
    """`e` over all indices as one fused expression, reduced over the last ones; sparse where that is far less."""
    order = (*free, *reduced)
    if reduced and free and _is_wide(e, free, known, format):
        found = _pair_reduced(e, free, name, known)
        if found is not None:
            return found
        return reduce_sparse(_pointwise(order, e, known, None), len(free), name)
    whole = lazily(e, order, known)
    if reduced:
        if name in ("any", "all") and "bool" not in str(whole.dtype):
            raise UnsupportedError(
                f"evaluate: {e}: `|=` and `&=` combine truth values; got {whole.dtype}"
                f"\n  help: {name}= asks which are not 0"
            )
        whole = getattr(statistics, name)(whole, axis=tuple(range(len(free), len(order))))
    return compute(whole)


def _pair_reduced(e: Expression, free: tuple[str, ...], name: str, known: Mapping[str, Any]) -> Tensor | None:
    """Products of two sparse tensors reduced as a contraction over a semiring; None of anything else."""
    if name == "any" and isinstance(e, Apply) and e.op == "ne" and e.args[1] == Literal(0):
        e = e.args[0]
    elif name not in ("min", "max", "prod"):
        return None
    term = product_of(e)
    if term is None or len(term.factors) != 2 or type(term.scale) is not int or term.scale != 1:
        return None
    values = [known[a.tensor] for a in term.factors]
    if not all(map(_is_sparse, values)):
        return None
    letter = dict(zip(dict.fromkeys(i for a in term.factors for i in a.indices), _LETTERS, strict=False))
    sides = ["".join(letter[i] for i in a.indices) for a in term.factors]
    x, y = (Contracted(side, v._storage) for side, v in zip(sides, values, strict=True))
    return reduce_product(x, y, "".join(letter[i] for i in free), name)


def _is_wide(e: Expression, free: tuple[str, ...], known: Mapping[str, Any], format: object) -> bool:
    """Whether a dense result would be much larger than the sparse operands, or none was asked for."""
    values = [known[a.tensor] for a in accesses(e)]
    stored = sum(length(x._storage.values) for x in values if _is_sparse(x))
    sizes = _sizes(list(accesses(e)), known)
    if not any(map(_is_sparse, values)):
        return False
    if format is not None and resolve_format(format, len(free)).is_dense:
        return False
    return prefers_sparse(math.prod(sizes[i] for i in free), stored)
