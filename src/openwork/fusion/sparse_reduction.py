"""Reductions of a sparse tensor, or of a product of two, with a sparse result, unspecified elements included.

max over j of T[i, k, j], fill 0             stored where T stores an element; 0 takes part unless all j are stored
max over j of A[i, j] * B[j, k], fills 0     Gustavson's product over (max, *), and one that counts the products
"""

from __future__ import annotations

import math
from functools import partial

from ..compiler.semiring import MONOIDS, SEMIRINGS, Semiring
from ..errors import DTypeError, UnsupportedError
from ..format import coo
from ..ir.types import COMPLEX
from ..ops.reductions.folds import add_fill, reduce
from ..ops.stored_fibres import reduced_fibres
from ..runtime.contraction.sparse import Term, alone, in_format, pair, result_format
from ..runtime.conversion.assembly import full
from ..runtime.conversion.convert import convert
from ..runtime.promote import accumulator, promote
from ..runtime.zero_annihilation import FINITE, bounded
from ..storage.buffers import Array, cast, length
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor

__all__ = ["fold_stored", "reduce_product", "reduce_sparse"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MONOIDS = {"sum": "plus", "prod": "times", "min": "min", "max": "max", "any": "lor", "all": "land"}


def reduce_sparse(t: Tensor, kept_ndim: int, name: str) -> Tensor:
    """A tensor reduced over all but its first `kept_ndim` dimensions, specified where the tensor stores an element.

    name : "sum", "prod", "min", "max", "any" or "all"; the last two of truth values

    Raises DTypeError for the least or the largest of complex numbers.
    """
    s = t._storage
    if s.scalar in COMPLEX and name in ("min", "max"):
        raise DTypeError(f"{name}= of complex numbers, which are not ordered\n  help: take abs() first")
    if name in ("any", "all") and s.scalar != "bool":
        raise UnsupportedError(
            f"`|=` and `&=` combine truth values; got {t.dtype}\n  help: {name}= asks which are not 0"
        )
    axes = tuple(range(kept_ndim, t.ndim))
    target = result_format([s], t.shape[:kept_ndim])
    result = reduced_fibres(t, axes, False, lambda rows, over: reduce(name, rows, over), target=target)
    if result is None:
        raise UnsupportedError(f'{name}: no sparse result\n  help: format="dense"')
    return result


def fold_stored(t: Tensor, kept_ndim: int, name: str) -> Tensor:
    """The stored elements of a tensor alone, reduced over all dimensions but the first ones, stored where there are
    some; see `reduce_sparse`."""
    s = t._storage
    scalar = accumulator(s.scalar, s.library) if name in ("sum", "prod") else s.scalar
    letters = _LETTERS[: len(s.shape)]
    kept = letters[:kept_ndim]
    term = Term(kept, _reduce_term(_zero_fill(s, cast(s.values, scalar)), letters, kept, _MONOIDS[name]))
    return Tensor._from_storage(in_format(term, kept, result_format([s], term.storage.shape)))


def reduce_product(x: Term, y: Term, kept_letters: str, name: str) -> Tensor | None:
    """The products of elements of two terms, reduced over all letters but `kept_letters`; None unless there are some,
    and both have fill value 0 and finite elements, so that all other products are 0.

    name : "min", "max", "prod", or "any" of products that are not 0
    """
    monoid = {"any": "max"}.get(name, _MONOIDS[name])
    terms = [
        Term(t.letters, t.storage if t.storage.format.is_unique else convert(t.storage, coo(len(t.letters))))
        for t in (x, y)
    ]
    storages = [t.storage for t in terms]
    scalar = promote(tuple(s.scalar for s in storages), storages[0].library)
    scalar = accumulator(scalar, storages[0].library) if name == "prod" else scalar
    count = math.prod(n for c, n in (terms[0].extents | terms[1].extents).items() if c not in kept_letters)
    if scalar in COMPLEX or not count or any(s.fill_value or not bounded(s.values, FINITE) for s in storages):
        return None
    ring = Semiring(f"{monoid}_product", MONOIDS[monoid], "abs(x * y)" if name == "any" else "x * y")
    left, right = (Term(t.letters, _zero_fill(t.storage, cast(t.storage.values, scalar))) for t in terms)
    reduced = pair(left, right, kept_letters, ring)
    values = reduced.storage.values
    if name == "any":
        values, scalar = values != 0, "bool"
    else:
        left, right = (Term(t.letters, _zero_fill(t.storage, _ones(t.storage))) for t in terms)
        stored_counts = pair(left, right, kept_letters, SEMIRINGS["plus_pair"]).storage.values
        products = values
        zeros = partial(full, length(products), scalar, 0, products)
        values = add_fill(name, products, count - stored_counts, 0, scalar, zeros)
    result = Term(reduced.letters, reduced.storage.with_values(values, python_scalar(0, scalar)))
    shape = [result.extents[c] for c in kept_letters]
    return Tensor._from_storage(in_format(result, kept_letters, result_format(storages, shape)))


def _ones(s: Storage) -> Array:
    return full(length(s.values), "i64", 1, s.values)


def _zero_fill(s: Storage, values: Array) -> Storage:
    return s.with_values(values, 0)


def _reduce_term(s: Storage, letters: str, kept_letters: str, monoid: str) -> Storage:
    ring = Semiring(f"{monoid}_first", MONOIDS[monoid], "x")
    term = alone(Term(letters, s), kept_letters, ring)
    return (
        term.storage
        if term.letters == kept_letters
        else term.storage.permute([term.letters.index(c) for c in kept_letters])
    )
