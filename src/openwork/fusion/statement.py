"""Runs one statement of index notation on tensors by name, by the first of these routes that applies:

    C[i,j] = A[i,j] - B[j,i]               merge        no index is reduced: one co-iteration
    C[i,k] += A[i,j] * B[j,k] + 2          products     a sum of products: each contracted, then added
    C[i,k] min= A[i,j] + B[j,k]            semiring     where unspecified elements annihilate: one contraction
    s max= abs(A[i,j] - B[i,j])            reduction    anything else: a fused expression over all indices, reduced

A mask is an operand: of a masked product of sparse matrices, or of a sampled product of dense factors; else `where`
chooses by it between the right side and the old value.
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
from ..interop.operands import sparse_or_array
from ..interop.sources import asarray
from ..ir.index import REDUCED_BY, Access, Apply, Assignment, Expression, Literal, accesses
from ..ops.elementwise.maps import elementwise
from ..ops.elementwise.pointwise import pointwise
from ..ops.elementwise.selection import where
from ..ops.indexing.taking import prune
from ..ops.products.product import product, sampled
from ..ops.products.spgemm import spgemm
from ..ops.reductions import statistics
from ..runtime.contraction.sparse import Term as Contracted
from ..runtime.formats import resolve_format
from ..storage.buffers import is_array, length
from ..tensor.lazy import lazy
from ..tensor.tensor import Tensor
from .operands import align_dims, check_exponents, rename_tensors, replace_diagonals, substitute, to_lazy
from .program import compute
from .sparse_reduction import reduce_product, reduce_sparse
from .terms import Term, addition_of, product_of, semiring_in, summands, vanishing_factors

__all__ = ["operation_of", "product_at", "right_side", "ring_factors", "run", "true_elements"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def run(stmt: Assignment, tensors: Mapping[str, Any], old: Any, format: Any, ring: Semiring | None) -> Any:
    """The value that the statement assigns; `old` is the value of its left side, None where it is not read."""
    e, tensors = replace_diagonals(stmt.rhs, tensors)
    check_exponents(e, tensors)
    if stmt.mask is not None:
        result = _run_masked(stmt, e, tensors, old, format, ring)
    else:
        result = right_side(stmt, e, tensors, format if old is None else None, ring)
        if old is not None:
            indices_of = {i for a in accesses(e) for i in a.indices}
            result = _combine_with_old(stmt, old, _expand_dims(result, indices_of, stmt.lhs.indices), ring)
    operands = [tensors[a.tensor] for a in accesses(e)] + ([] if old is None else [old])
    if any(isinstance(x, Tensor) for x in operands) and not isinstance(result, Tensor):
        has_array = any(is_array(x) for x in operands)
        result = result if has_array and format is None else asarray(result)
    return result if format is None else asarray(result).asformat(resolve_format(format, np.ndim(result)))


def right_side(stmt: Assignment, e: Expression, tensors: Mapping[str, Any], format: Any, ring: Semiring | None) -> Any:
    """The value of the right side over the left side's indices that it has, its other indices reduced."""
    indices = dict.fromkeys(i for a in accesses(e) for i in a.indices)
    free = tuple(i for i in stmt.lhs.indices if i in indices)
    reduced = tuple(i for i in indices if i not in free)
    if ring is not None:
        return _contract_over_semiring(stmt, e, free, tensors, ring, format)
    if not indices and not list(accesses(e)):
        return _constant(e)
    if not reduced and any(isinstance(tensors[a.tensor], Tensor) for a in accesses(e)):
        return _pointwise(free, e, tensors, format)
    if stmt.reduction == "add" and reduced:
        e, tensors = _with_factors(e, tensors)
        terms = _contractible_terms(e, free, reduced, tensors)
        if terms is not None:
            return _contract_terms(terms, free, reduced, tensors, format)
    spelled = semiring_in(stmt.reduction, e, tensors)
    if spelled is not None and reduced:
        return _contract(spelled[1], free, tensors, SEMIRINGS[spelled[0]], format)
    return _reduce_fused(e, free, reduced, REDUCED_BY[stmt.reduction], tensors, format)


def _constant(e: Expression) -> Any:
    """The value of an expression without tensors, of rank 0."""
    return compute(lazy(np.asarray(to_lazy(e, (), {}))))


# -- old values and masks ----------------------------------------------------------------------------------------------


def _combine_with_old(stmt: Assignment, old: Any, new: Any, ring: Semiring | None) -> Any:
    """`old op new`, by the operator of the assignment or the semiring's sum."""
    return new if stmt.op == "=" else elementwise(operation_of(stmt, ring), old, new)


def operation_of(stmt: Assignment, ring: Semiring | None) -> str:
    """The elementwise operation by which a statement combines. Raises UnsupportedError where the semiring has none."""
    op = stmt.reduction if ring is None else addition_of(ring)
    if op is None:
        raise UnsupportedError(f"evaluate: {stmt}: no elementwise sum of {ring}\n  help: assign with = to a new name")
    return op


def _expand_dims(value: Any, present: Any, order: tuple[str, ...]) -> Any:
    """A value over some of the indices of `order` -> one of their rank, of extent 1 along the others."""
    indices = tuple(i for i in order if i in present)
    return value if len(indices) == len(order) else align_dims(_array(value), indices, order)


def _array(value: Any) -> Any:
    return value if hasattr(value, "ndim") else np.asarray(value)


def _run_masked(
    stmt: Assignment, e: Expression, tensors: Mapping[str, Any], old: Any, format: Any, ring: Semiring | None
) -> Any:
    """The right side where the mask is true, the old value elsewhere, or zero without one."""
    assert stmt.mask is not None
    order = stmt.lhs.indices
    mask = true_elements(tensors[stmt.mask.tensor]).transpose(tuple(stmt.mask.indices.index(i) for i in order))
    if old is None:
        result = product_at(stmt, e, tensors, mask, ring)
        if result is not None:
            return result
    new = right_side(stmt, e, tensors, None, ring)
    new = _expand_dims(new, {i for a in accesses(e) for i in a.indices}, order)
    scalar = asarray(new)._storage.scalar
    zero: Any = scalar != "bool" and 0 if ring is None else ring.add.identity_of(scalar)
    otherwise = zero if old is None else old
    new = new if old is None else _combine_with_old(stmt, old, new, ring)
    return where(mask, otherwise, new) if stmt.complement else where(mask, new, otherwise)


def true_elements(mask: Any) -> Tensor:
    """A mask -> a bool Tensor that stores exactly its elements that are not 0."""
    t = asarray(mask)
    truth = t if t._storage.scalar == "bool" else asarray(t != 0)
    if truth.fill_value:
        return truth
    pattern = prune(truth.asformat("coo") if truth.format.is_dense else truth)
    return pattern if bool(pattern.values.all()) else prune(pattern.asformat("coo"))


def product_at(stmt: Assignment, e: Expression, tensors: Mapping[str, Any], mask: Tensor, ring: Semiring | None) -> Any:
    """A product formed at the elements of a mask only: of two sparse matrices, or of dense factors; None of others."""
    term = product_of(e)
    if term is None or not term.factors or mask.fill_value or stmt.op not in ("=", "+="):
        return None
    if type(term.scale) is not int or term.scale != 1:
        return None
    free, values = stmt.lhs.indices, [tensors[a.tensor] for a in term.factors]
    if len(values) == 2 == len(free) and all(_is_sparse(x) and x.ndim == 2 for x in values):
        return _matrices_at(term, free, values, mask, stmt.complement, ring)
    if ring is None and not stmt.complement and not any(map(_is_sparse, values)):
        rhs: Expression = Apply("pattern", (Access("T0", free),))
        for k, a in enumerate(term.factors, 1):
            rhs = Apply("mul", (rhs, Access(f"T{k}", a.indices)))
        arrays = {f"T{k}": sparse_or_array(x) for k, x in enumerate(values, 1)}
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


def _pointwise(free: tuple[str, ...], e: Expression, tensors: Mapping[str, Any], format: Any) -> Tensor:
    names = dict.fromkeys(a.tensor for a in accesses(e))
    short = {name: f"A{k}" for k, name in enumerate(names)}
    operands = {short[n]: x if isinstance(x := tensors[n], Tensor) else asarray(x) for n in names}
    return pointwise(Assignment(Access("out", free), "=", rename_tensors(e, short)), operands, format)


# -- sums of products --------------------------------------------------------------------------------------------------


def _with_factors(e: Expression, tensors: Mapping[str, Any]) -> tuple[Expression, Mapping[str, Any]]:
    """The expression with factors of products that are functions computed into temporaries, and the tensors."""
    values = dict(tensors)
    for part in vanishing_factors(e, tensors):
        part_indices = tuple(dict.fromkeys(i for a in accesses(part) for i in a.indices))
        name = str(part)
        values[name] = _pointwise(part_indices, part, tensors, None)
        e = substitute(e, part, Access(name, part_indices))
    return e, values


def _contractible_terms(
    e: Expression, free: tuple[str, ...], reduced: tuple[str, ...], tensors: Mapping[str, Any]
) -> list[Term] | None:
    """The products that `e` is the sum of; None where it is something else, or a contraction gains nothing."""
    terms = summands(e)
    if terms is None or not any(len(t.factors) > 1 for t in terms):
        return None
    for term in terms:
        if any(isinstance(x := tensors[a.tensor], Tensor) and x.fill_value != 0 for a in term.factors):
            return None
        if not term.factors or not term.indices or not set(free) <= term.indices:
            return None
    return terms


def _contract(
    factors: tuple[Access, ...], free: tuple[str, ...], tensors: Mapping[str, Any], ring: Semiring, format: Any
) -> Any:
    """A product of tensors, in the format of a sparse factor over just the free indices where none is asked for."""
    values = [tensors[a.tensor] for a in factors]
    letter = _letters(factors)
    inputs = tuple("".join(letter[i] for i in a.indices) for a in factors)
    target = resolve_format(format, len(free)) if format is not None else _structure_of_factor(factors, free, tensors)
    description = f"evaluate: {' * '.join(map(str, factors))}"
    return product(
        inputs, "".join(letter[i] for i in free), [sparse_or_array(x) for x in values], ring, target, description
    )


def _letters(factors: tuple[Access, ...]) -> dict[str, str]:
    """A letter for each index of a product. Raises UnsupportedError for more indices than there are letters."""
    names = list(dict.fromkeys(i for a in factors for i in a.indices))
    if len(names) > len(_LETTERS):
        raise UnsupportedError(
            f"evaluate: a product over {len(names)} indices, {names[0]}, {names[1]}, ...\n  supported: {len(_LETTERS)}"
            "\n  help: assign parts of the product to tensors of their own first"
        )
    return dict(zip(names, _LETTERS, strict=False))


def _structure_of_factor(
    factors: tuple[Access, ...], free: tuple[str, ...], tensors: Mapping[str, Any]
) -> Format | None:
    """The format of a sparse factor over just the free indices: no other element of the product can be there."""
    for a in factors if len(factors) > 1 else ():
        if _is_sparse(x := tensors[a.tensor]) and sorted(a.indices) == sorted(free):
            structure: Format = x.format.permute([a.indices.index(i) for i in free])
            return structure
    return None


def _contract_terms(
    terms: list[Term], free: tuple[str, ...], reduced: tuple[str, ...], tensors: Mapping[str, Any], format: Any
) -> Any:
    """The sum of contracted products, each times the extents of the reduced indices that it lacks."""
    sizes = _sizes([a for t in terms for a in t.factors], tensors)
    total = None
    for term in terms:
        scale = term.scale
        for i in reduced:
            scale = scale if i in term.indices else scale * sizes[i]
        part = _contract(term.factors, free, tensors, SEMIRINGS["plus_times"], format)
        part = part if type(scale) is int and scale == 1 else part * scale
        total = part if total is None else total + part
    return total


def _sizes(accessed: list[Access], tensors: Mapping[str, Any]) -> dict[str, int]:
    return {i: int(n) for a in accessed for i, n in zip(a.indices, tensors[a.tensor].shape, strict=True)}


def _contract_over_semiring(
    stmt: Assignment, e: Expression, free: tuple[str, ...], tensors: Mapping[str, Any], ring: Semiring, format: Any
) -> Any:
    """A product over a semiring."""
    return _contract(ring_factors(stmt, e), free, tensors, ring, format)


def ring_factors(stmt: Assignment, e: Expression) -> tuple[Access, ...]:
    """The factors of a product over a semiring. Raises UnsupportedError for anything else."""
    product = product_of(e)
    if product is None or stmt.op not in ("=", "+=") or product.scale != 1 or not product.factors:
        raise UnsupportedError(
            f"evaluate: {stmt}: a semiring says what the sum and the product of `+=` and `*` are"
            "\n  expected: a product of tensors\n  help: C[i, k] += A[i, j] * B[j, k], with semiring=..."
        )
    return product.factors


# -- fused reductions --------------------------------------------------------------------------------------------------


def _reduce_fused(
    e: Expression,
    free: tuple[str, ...],
    reduced: tuple[str, ...],
    name: str,
    tensors: Mapping[str, Any],
    format: Any,
) -> Any:
    """`e` over all indices as one fused expression, reduced over the last ones; sparse where that is far less."""
    order = (*free, *reduced)
    if reduced and free and _prefers_sparse(e, free, tensors, format):
        result = _pair_reduced(e, free, name, tensors)
        if result is not None:
            return result
        return reduce_sparse(_pointwise(order, e, tensors, None), len(free), name)
    expression = to_lazy(e, order, tensors)
    if reduced:
        if name in ("any", "all") and "bool" not in str(expression.dtype):
            raise UnsupportedError(
                f"evaluate: {e}: `|=` and `&=` combine truth values; got {expression.dtype}"
                f"\n  help: {name}= asks which are not 0"
            )
        expression = getattr(statistics, name)(expression, axis=tuple(range(len(free), len(order))))
    return compute(expression)


def _pair_reduced(e: Expression, free: tuple[str, ...], name: str, tensors: Mapping[str, Any]) -> Tensor | None:
    """Products of two sparse tensors reduced as a contraction over a semiring; None of anything else."""
    if name == "any" and isinstance(e, Apply) and e.op == "ne" and e.args[1] == Literal(0):
        e = e.args[0]
    elif name not in ("min", "max", "prod"):
        return None
    term = product_of(e)
    if term is None or len(term.factors) != 2 or type(term.scale) is not int or term.scale != 1:
        return None
    values = [tensors[a.tensor] for a in term.factors]
    if not all(map(_is_sparse, values)):
        return None
    letter = _letters(term.factors)
    sides = ["".join(letter[i] for i in a.indices) for a in term.factors]
    x, y = (Contracted(side, v._storage) for side, v in zip(sides, values, strict=True))
    return reduce_product(x, y, "".join(letter[i] for i in free), name)


def _prefers_sparse(e: Expression, free: tuple[str, ...], tensors: Mapping[str, Any], format: Any) -> bool:
    """Whether a dense result would be much larger than the sparse operands, or none was asked for."""
    values = [tensors[a.tensor] for a in accesses(e)]
    stored = sum(length(x._storage.values) for x in values if _is_sparse(x))
    sizes = _sizes(list(accesses(e)), tensors)
    if not any(map(_is_sparse, values)):
        return False
    if format is not None and resolve_format(format, len(free)).is_dense:
        return False
    return prefers_sparse(math.prod(sizes[i] for i in free), stored)
