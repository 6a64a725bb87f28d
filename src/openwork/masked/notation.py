"""Statements of index notation over masked tensors -> what they assign, by these rules:

    C[i,j] = A[i,j] + B[i,j]        an element is missing where an operand's is: one merge
    y[i] += A[i,j] * x[j]           reductions skip what is missing; missing where nothing was there
    C[i,j] += A[i,j]                what is there already is one more term: either(C + A, either(C, A))
    C<M>[i,j] = A[i,j]              given(A, M): what a mask leaves out is missing, where(M, A, C) where C was there
    y[i] += A[i,j]                  onto a y that is not masked: what is missing is the identity, and y stays plain

Where a mask is missing it says neither that an element is computed nor that it is kept: the element is missing.
Statements without a masked operand are those of `fusion.statement`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .. import Semiring, Tensor, UnsupportedError, asarray, zeros_like
from ..classes import frozen
from ..compiler.schedule.product import prefers_sparse
from ..compiler.semiring import MONOIDS
from ..compiler.single.factors import identity
from ..fusion import statement
from ..fusion.notation import read_by, run_program
from ..fusion.operands import align_dims, check_exponents, replace_diagonals, substitute
from ..fusion.sparse_reduction import fold_stored
from ..fusion.terms import product_of
from ..ir.einstein import separated
from ..ir.index import REDUCED_BY, Access, Apply, Assignment, Expression, Literal, accesses
from ..ops import mask_formats as forms
from ..ops.elementwise.maps import elementwise
from ..provided import provides
from ..runtime.promote import promote
from ..storage.buffers import as_array, is_array, scalar_of
from ..storage.scalars import python_scalar
from . import contraction
from .construct import as_masked_tensor, strided_tensor
from .elementwise import binary
from .reductions import reduce
from .structure import merged, settled
from .tensor import MaskedTensor, wrap

__all__ = ["evaluate"]

_PAIRS = {"add": "x + y", "sub": "x - y", "mul": "x * y", "min": "min(x, y)", "max": "max(x, y)"}
"""Operations of two masked tensors whose least or largest results are those of a contraction over a semiring."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ONE, _NEW, _OLD, _MASK, _NONE = "'one", "'new", "'old", "'mask", "'none"
"""Names that no statement can have."""


@provides("masked evaluate")
def evaluate(statements: str, /, *, format: Any = None, semiring: Any = None, **tensors: Any) -> Any:
    """`ow.evaluate` of masked tensors, other tensors, arrays and numbers.

    Returns
    -------
    MaskedTensor where an operand of the last statement is one, but for what `op=` combines with a left side that is
    not masked: that is no more masked than it was

    Raises as `ow.evaluate`.
    """
    return run_program(statements, tensors, format, semiring, _run)


def _run(stmt: Assignment, known: Mapping[str, Any], old: Any, format: Any, ring: Semiring | None) -> Any:
    """What a statement assigns; `old` is what its left side holds, where that plays a part."""
    if not any(_is_masked(known[a.tensor]) for a in read_by(stmt, old is not None)):
        return statement.run(stmt, known, old, format, ring)
    *sums, last = (separated(stmt, f"{stmt.lhs.tensor}''", each=True) if ring is None else None) or (stmt,)
    for part in sums:
        known = {**known, part.lhs.tensor: _run(part, known, None, None, None)}
    e, known = replace_diagonals(last.rhs, known)
    check_exponents(e, {n: x._tensor if _is_masked(x) else x for n, x in known.items()})
    found = _masked_product(last, e, known, ring) if last.mask is not None and old is None else None
    if found is None:
        found = _assigned(last, *_value(last, e, known, ring), old, ring)
    return found if format is None else (found if _is_masked(found) else asarray(found)).asformat(format)


def _is_masked(x: Any) -> bool:
    return isinstance(x, MaskedTensor)


@frozen
class _Named:
    """An expression and its tensors by name."""

    e: Expression
    known: Mapping[str, Any]

    @property
    def masked(self) -> list[MaskedTensor]:
        return [x for a in accesses(self.e) if _is_masked(x := self.known[a.tensor])]


# -- the right side ----------------------------------------------------------------------------------------------------


def _value(
    stmt: Assignment, e: Expression, known: Mapping[str, Any], ring: Semiring | None
) -> tuple[Expression, Mapping[str, Any]]:
    """The right side as an elementwise expression over indices of the left side, its reductions computed."""
    own = dict.fromkeys(i for a in accesses(e) for i in a.indices)
    free = tuple(i for i in stmt.lhs.indices if i in own)
    reduced = tuple(i for i in own if i not in free)
    if not any(_is_masked(known[a.tensor]) for a in accesses(e)):
        found = statement.right_side(stmt, e, known, None, ring)
        if not own:
            return Literal(np.asarray(found).item() if not isinstance(found, Tensor) else found.item()), known
    elif not reduced and (ring is None or isinstance(e, Access)):
        return e, known
    else:
        found = _reduced(stmt, e, free, reduced, known, ring)
    return Access(_NEW, free), {**known, _NEW: found}


def _reduced(
    stmt: Assignment,
    e: Expression,
    free: tuple[str, ...],
    reduced: tuple[str, ...],
    known: Mapping[str, Any],
    ring: Semiring | None,
) -> MaskedTensor:
    """The right side, reduced over indices: a product as a contraction, else by the reduction of a merge."""
    if ring is not None:
        return _contracted(statement.ring_factors(stmt, e), free, known, ring)
    term = product_of(e) if stmt.reduction == "add" else None
    if term is not None and len(term.factors) > 1 and not any(_has_fill(known[a.tensor]) for a in term.factors):
        found = _contracted(term.factors, free, known)
        return found if type(term.scale) is int and term.scale == 1 else binary("mul", found, term.scale)
    pair = _pair(stmt.reduction, e, known)
    if pair is not None:
        return _contracted(pair[0], free, known, pair[1])
    order, name = (*free, *reduced), REDUCED_BY[stmt.reduction]
    whole = _laid(e, order, known)
    if name in ("any", "all") and "bool" not in str(whole.dtype):
        raise UnsupportedError(
            f"evaluate: {e}: `|=` and `&=` combine truth values; got {whole.dtype}"
            f"\n  help: {name}= asks which are not 0"
        )
    if free and not forms.is_strided(whole.format) and prefers_sparse(math.prod(whole.shape[: len(free)]), whole.nse):
        return wrap(fold_stored(contraction.stored(whole), len(free), name))
    return reduce(name, whole, tuple(range(len(free), len(order))))


def _has_fill(x: Any) -> bool:
    """Whether unspecified elements of a Tensor are not 0: they take part in every product."""
    return isinstance(x, Tensor) and bool(x.fill_value)


def _laid(e: Expression, order: tuple[str, ...], known: Mapping[str, Any]) -> MaskedTensor:
    """The expression over all indices, in this order."""
    if isinstance(e, Access) and _is_masked(known[e.tensor]):
        m: MaskedTensor = known[e.tensor]
        return m.transpose(tuple(e.indices.index(i) for i in order))
    return _merged(_Named(e, known), order)


def _contracted(
    factors: tuple[Access, ...], free: tuple[str, ...], known: Mapping[str, Any], ring: Any = "plus_times"
) -> MaskedTensor:
    letter = dict(zip(dict.fromkeys(i for a in factors for i in a.indices), _LETTERS, strict=False))
    inputs = ",".join("".join(letter[i] for i in a.indices) for a in factors)
    text = f"{inputs}->{''.join(letter[i] for i in free)}"
    return contraction.einsum(text, *(known[a.tensor] for a in factors), semiring=ring)


def _pair(reduction: str, e: Expression, known: Mapping[str, Any]) -> tuple[tuple[Access, Access], Semiring] | None:
    """The factors and the semiring of the least or largest of an operation of two masked tensors of other indices."""
    match e:
        case Apply(op, (Access() as a, Access() as b)) if op in _PAIRS and reduction in ("min", "max"):
            pass
        case _:
            return None
    values = [known[x.tensor] for x in (a, b)]
    if not all(_is_masked(x) and x.ndim and scalar_of(x.values) != "bool" for x in values):
        return None
    if set(a.indices) == set(b.indices):
        return None
    return (a, b), Semiring(f"{reduction}_{op}", MONOIDS[reduction], _PAIRS[op])


# -- the left side -----------------------------------------------------------------------------------------------------


def _assigned(stmt: Assignment, e: Expression, known: Mapping[str, Any], old: Any, ring: Semiring | None) -> Any:
    """The value where the mask has it computed, combined with what was there or in its place."""
    order, value = stmt.lhs.indices, _Named(e, known)
    if stmt.mask is not None:
        value = _chosen(stmt, value, old if stmt.op == "=" else None)
    if old is not None and stmt.op != "=":
        return _accumulated(stmt, value, old, ring)
    if not stmt.mask and isinstance(e, Access) and set(e.indices) == set(order):
        return _laid(e, order, known)
    return _merged(value, order)


def _chosen(stmt: Assignment, value: _Named, old: Any) -> _Named:
    """The value at the elements of the mask; at the others what was there, or nothing."""
    order, mask = stmt.lhs.indices, stmt.mask
    assert mask is not None
    m = value.known[mask.tensor]
    condition, truth = _truth(m), _true_elements(m)
    here = Access(_MASK, mask.indices)
    if old is None and order and not stmt.complement and not truth.fill_value and not isinstance(value.e, Literal):
        there = wrap(settled(truth, m.format)) if _is_masked(m) else as_masked_tensor(truth)
        return _Named(Apply("given", (value.e, here)), {**value.known, _MASK: there})
    known = {**value.known, _MASK: condition if _is_masked(m) else truth}
    if old is None:
        sizes = {
            i: n for a in (*accesses(value.e), here) for i, n in zip(a.indices, known[a.tensor].shape, strict=True)
        }
        known[_NONE] = _nothing(tuple(sizes[i] for i in order), truth)
    other = Access(_OLD if old is not None else _NONE, order)
    known[_OLD] = old
    arms = (other, value.e) if stmt.complement else (value.e, other)
    return _Named(Apply("select", (here, *arms)), known)


def _truth(m: Any) -> Any:
    """A masked mask as truth values; another as it is."""
    return m if not _is_masked(m) or scalar_of(m.values) == "bool" else binary("ne", m, 0)


def _true_elements(m: Any) -> Tensor:
    """Truth where an element of a mask is specified and not 0."""
    return statement.true_elements(contraction.stored(_truth(m).compact()) if _is_masked(m) else m)


def _nothing(shape: tuple[int, ...], like: Tensor) -> MaskedTensor:
    """A masked tensor all of whose elements are missing."""
    if not shape:
        return strided_tensor(empty_array := as_array(np.zeros((), np.bool_), like=like.values), empty_array)
    return as_masked_tensor(zeros_like(like, dtype="bool", format="coo", shape=shape))


def _accumulated(stmt: Assignment, value: _Named, old: Any, ring: Semiring | None) -> Any:
    """What was there and the value, combined where both are there; the one that is there elsewhere."""
    op, order = statement.operation_of(stmt, ring), stmt.lhs.indices
    e, known = value.e, {**value.known, _OLD: old}
    own = {i for a in accesses(e) for i in a.indices}
    indices = tuple(i for i in order if i in own)
    if not _is_masked(old):
        return _onto(op, old, _merged(value, indices), indices, order, ring)
    if not isinstance(e, Access | Literal):
        e, known[_NEW] = Access(_NEW, indices), _merged(value, indices)
    before: Expression = Access(_OLD, order)
    if op in ("or", "and"):
        before = Apply("ne", (before, Literal(0)))
    both = Apply(op, (before, e))
    return _merged(_Named(Apply("either", (both, Apply("either", (before, e)))), known), order)


def _onto(op: str, old: Any, new: MaskedTensor, own: tuple[str, ...], order: tuple[str, ...], ring: Any) -> Any:
    """`old op new` where `old` is not masked: what is missing is the identity of the operation."""
    like = getattr(old, "values", old) if not is_array(old) else old
    scalars = (scalar_of(new.values), scalar_of(as_array(like)))
    scalar = promote(scalars, new._tensor._storage.library)
    start = identity(op, scalar).value if ring is None else ring.add.identity_of(scalar)
    filled = new.astype(scalar).filled(python_scalar(start, scalar))
    found = elementwise(op, old, filled if len(own) == len(order) else align_dims(filled, own, order))
    return found.to_dense() if is_array(old) and isinstance(found, Tensor) else found


# -- both at once ------------------------------------------------------------------------------------------------------


def _masked_product(
    stmt: Assignment, e: Expression, known: Mapping[str, Any], ring: Semiring | None
) -> MaskedTensor | None:
    """A product formed at the elements of a mask only, where that says which are specified; None of others."""
    assert stmt.mask is not None
    m, values = known[stmt.mask.tensor], [known[a.tensor] for a in accesses(e)]
    sparse = [x for x in values if _is_masked(x) or (isinstance(x, Tensor) and not x.format.is_dense)]
    if (
        not stmt.lhs.indices
        or (_is_masked(m) and stmt.complement)
        or any(ring is None and not _is_masked(x) for x in sparse)
    ):
        return None
    like = next(x for x in (*values, m) if _is_masked(x)).format
    turned = _true_elements(m).transpose(tuple(stmt.mask.indices.index(i) for i in stmt.lhs.indices))
    plain = {n: contraction.stored(x) if _is_masked(x) else x for n, x in known.items()}
    found = statement.product_at(stmt, e, plain, turned, ring)
    return None if found is None else wrap(settled(found, like))


def _merged(value: _Named, order: tuple[str, ...]) -> MaskedTensor:
    """An elementwise expression over these indices, in one pass; strided where a branch is specified everywhere."""
    named = {a.tensor: value.known[a.tensor] for a in accesses(value.e)}
    whole = _is_whole(value.e, {n for n, x in named.items() if _is_masked(x)})
    first = max(value.masked, key=lambda m: m.ndim)
    like = forms.strided(len(order)) if whole else first.format
    numbers = {n for n, x in named.items() if _is_masked(x) and x._scalar}
    at = order or (_ONE,)
    for n in numbers:
        value = replace(value, e=substitute(value.e, Access(n), Access(n, at[-1:])))
    tensors = {n: x if hasattr(x, "ndim") else np.asarray(x) for n, x in named.items()}
    return merged(Assignment(Access("out", at), "=", value.e), tensors, like, (1,) * len(order))


def _is_whole(e: Expression, masked: set[str]) -> bool:
    """Whether a choice specifies elements everywhere, or nearly: it has an arm that does, of what is not masked."""
    match e:
        case Apply("either", arms):
            return not all(_may_lack(a, masked) for a in arms)
        case Apply("select", (test, *arms)):
            return not _may_lack(test, masked) and not all(_may_lack(a, masked) for a in arms)
    return False


def _may_lack(e: Expression, masked: set[str]) -> bool:
    """Whether an expression may be missing somewhere."""
    if isinstance(e, Apply) and e.op in ("either", "select"):
        return not _is_whole(e, masked)
    return any(a.tensor in masked for a in accesses(e))
