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

from ..compiler.schedule.product import is_wide
from ..compiler.semiring import SEMIRINGS, Semiring
from ..errors import UnsupportedError
from ..format.format import Format
from ..interop.operands import plain
from ..interop.sources import asarray
from ..ir.index import Access, Apply, Assignment, Expression, Literal, accesses
from ..ops.elementwise.functions import where
from ..ops.elementwise.maps import check_powers, elementwise, unary
from ..ops.elementwise.pointwise import pointwise
from ..ops.indexing.index import insert_dims
from ..ops.indexing.taking import prune
from ..ops.manipulation.triangles import diagonal
from ..ops.products.product import product, sampled
from ..ops.products.spgemm import spgemm
from ..ops.reductions import statistics
from ..runtime.formats import resolve_format
from ..runtime.values import negative_power
from ..storage.buffers import is_array, is_torch, length
from ..tensor.dtypes import isdtype
from ..tensor.lazy import lazy
from ..tensor.tensor import Tensor
from .program import compute
from .sparse_reduction import reduce_sparse
from .terms import Term, addition_of, product_of, semiring_in, summands, vanishing_factors

__all__ = ["run"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REDUCTIONS = {"add": "sum", "mul": "prod", "min": "min", "max": "max", "or": "any", "and": "all"}


def run(stmt: Assignment, known: Mapping[str, Any], old: Any, format: object, ring: Semiring | None) -> Any:
    """What the statement assigns; `old` is what its left side holds, where that plays a part."""
    e, known = _plain(stmt.rhs, known)
    _check_powers(e, known)
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
    return compute(lazy(np.asarray(_lazy(e, (), {}))))


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
    return value if len(indices) == len(order) else _laid(_array(value), indices, order)


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


def _check_powers(e: Expression, known: Mapping[str, Any]) -> None:
    """PowerError for integers to the power of a tensor with negative ones; an exponent that is computed is refused."""
    if not isinstance(e, Apply):
        return
    for arg in e.args:
        _check_powers(arg, known)
    if e.op != "pow" or not all(_is_integer(arg, known) for arg in e.args):
        return
    base, exponent = e.args
    if isinstance(exponent, Access):
        check_powers(next((known[a.tensor] for a in accesses(base)), known[exponent.tensor]), known[exponent.tensor])
    elif isinstance(exponent, Literal):
        if isinstance(exponent.value, int) and exponent.value < 0:
            raise negative_power(f"{exponent.value}")
    else:
        raise UnsupportedError(
            f"evaluate: {e}: whether an integer exponent is negative is asked of a tensor; got an expression"
            "\n  help: assign the exponent to a tensor in a statement of its own, or take floating-point numbers"
        )


def _is_integer(e: Expression, known: Mapping[str, Any]) -> bool:
    """Whether the expression is of integers or truths alone, of NumPy's."""
    values = [known[a.tensor] for a in accesses(e)]
    if isinstance(e, Literal):
        return isinstance(e.value, int)
    return all(not is_torch(getattr(x, "values", x)) and isdtype(x.dtype, ("bool", "integral")) for x in values)


def _plain(e: Expression, known: Mapping[str, Any]) -> tuple[Expression, dict[str, Any]]:
    """`A[i, i]` becomes an access of the diagonal of A, and a number's name the number."""
    values = dict(known)
    return _plainly(e, values), values


def _plainly(x: Expression, values: dict[str, Any]) -> Expression:
    """The expression without indices that an access repeats, whose diagonals are added to the values."""
    if isinstance(x, Apply):
        return Apply(x.op, tuple(_plainly(a, values) for a in x.args))
    if not isinstance(x, Access):
        return x
    value, indices = values[x.tensor], list(x.indices)
    if not hasattr(value, "ndim"):
        return Literal(value)
    while (again := next((i for i in indices if indices.count(i) > 1), None)) is not None:
        first, second = (k for k, i in enumerate(indices) if i == again and indices[:k].count(again) < 2)
        value = diagonal(asarray(value), axis1=first, axis2=second)
        indices = [i for k, i in enumerate(indices) if k not in (first, second)] + [again]
    if len(indices) == len(x.indices):
        return x
    name = f"{x.tensor} at {', '.join(x.indices)}"
    values[name] = value
    return Access(name, tuple(indices))


def _pointwise(free: tuple[str, ...], e: Expression, known: Mapping[str, Any], format: object) -> Tensor:
    names = dict.fromkeys(a.tensor for a in accesses(e))
    short = {name: f"A{k}" for k, name in enumerate(names)}
    tensors = {short[n]: x if isinstance(x := known[n], Tensor) else asarray(x) for n in names}
    return pointwise(Assignment(Access("out", free), "=", _renamed(e, short)), tensors, format)


def _renamed(e: Expression, names: Mapping[str, str]) -> Expression:
    match e:
        case Access(tensor, indices):
            return Access(names[tensor], indices)
        case Apply(op, args):
            return Apply(op, tuple(_renamed(a, names) for a in args))
    return e


# -- sums of products --------------------------------------------------------------------------------------------------


def _with_factors(e: Expression, known: Mapping[str, Any]) -> tuple[Expression, Mapping[str, Any]]:
    """Functions that are factors of products computed first, as tensors of their own."""
    values = dict(known)
    for part in vanishing_factors(e, known):
        own = tuple(dict.fromkeys(i for a in accesses(part) for i in a.indices))
        name = str(part)
        values[name] = _pointwise(own, part, known, None)
        e = _swapped(e, part, Access(name, own))
    return e, values


def _swapped(e: Expression, old: Expression, new: Expression) -> Expression:
    if e == old:
        return new
    return Apply(e.op, tuple(_swapped(a, old, new) for a in e.args)) if isinstance(e, Apply) else e


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
        return reduce_sparse(_pointwise(order, e, known, None), len(free), name)
    whole = _lazy(e, order, known)
    if reduced:
        if name in ("any", "all") and "bool" not in str(whole.dtype):
            raise UnsupportedError(
                f"evaluate: {e}: `|=` and `&=` combine truth values; got {whole.dtype}"
                f"\n  help: {name}= asks which are not 0"
            )
        whole = getattr(statistics, name)(whole, axis=tuple(range(len(free), len(order))))
    return compute(whole)


def _is_wide(e: Expression, free: tuple[str, ...], known: Mapping[str, Any], format: object) -> bool:
    """Whether a dense result would be much larger than the sparse operands, or none was asked for."""
    values = [known[a.tensor] for a in accesses(e)]
    stored = sum(length(x._storage.values) for x in values if _is_sparse(x))
    sizes = _sizes(list(accesses(e)), known)
    if not any(map(_is_sparse, values)):
        return False
    if format is not None and resolve_format(format, len(free)).is_dense:
        return False
    return is_wide(math.prod(sizes[i] for i in free), stored)


def _lazy(e: Expression, order: tuple[str, ...], known: Mapping[str, Any]) -> Any:
    match e:
        case Literal(value):
            return value
        case Access(tensor, indices):
            return lazy(_laid(known[tensor], indices, order))
        case Apply("select", args):
            return where(*(_lazy(a, order, known) for a in args))
        case Apply(op, (arg,)):
            return unary(op, _lazy(arg, order, known))
        case Apply(op, (left, right)):
            return elementwise(op, _lazy(left, order, known), _lazy(right, order, known))
    raise UnsupportedError(f"evaluate: {e} cannot be reduced\n  help: assign it to a name first, then reduce that")


def _laid(value: Any, indices: tuple[str, ...], order: tuple[str, ...]) -> Any:
    """A view with the dimensions of `order`, of extent 1 where it has none."""
    place = sorted(range(len(indices)), key=lambda k: order.index(indices[k]))
    new = tuple(k for k, i in enumerate(order) if i not in indices)
    if isinstance(value, Tensor):
        turned = value._storage.permute(place) if place != list(range(len(place))) else value._storage
        return Tensor._from_storage(insert_dims(turned, new) if new else turned)
    array = value.transpose(place) if isinstance(value, np.ndarray) else value.permute(*place)
    sizes = iter(array.shape)
    return array.reshape(tuple(1 if k in new else next(sizes) for k in range(len(order))))
