"""Reductions of a sparse tensor with a sparse result: what is stored is combined, and the fill value taken in as often
as an element is missing.

    max over j of T[i, k, j], fill 0        stored where T stores an element; 0 takes part unless all j are stored
"""

from __future__ import annotations

import math

from ..compiler.semiring import MONOIDS, Semiring
from ..errors import DTypeError, UnsupportedError
from ..ir.types import COMPLEX
from ..ops.reductions.folds import add_fill
from ..runtime.contraction.sparse import Term, alone, in_format, result_format
from ..runtime.conversion.assembly import full
from ..runtime.promote import accumulator
from ..storage.buffers import cast, length
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor

__all__ = ["reduce_sparse"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MONOIDS = {"sum": "plus", "prod": "times", "min": "min", "max": "max", "any": "lor", "all": "land"}


def reduce_sparse(t: Tensor, kept: int, name: str) -> Tensor:
    """A tensor reduced over all dimensions but the first ones, stored where it stores an element.

    name : "sum", "prod", "min", "max", "any" or "all"; the last two of truth values

    Raises DTypeError for the least or the largest of complex numbers.
    """
    s = t._storage
    scalar = accumulator(s.scalar, s.library) if name in ("sum", "prod") else s.scalar
    if scalar in COMPLEX and name in ("min", "max"):
        raise DTypeError(f"{name}= of complex numbers, which are not ordered\n  help: take abs() first")
    if name in ("any", "all") and scalar != "bool":
        raise UnsupportedError(
            f"`|=` and `&=` combine truth values; got {t.dtype}\n  help: {name}= asks which are not 0"
        )
    count = math.prod(s.shape[kept:])
    if not count or t.format.is_dense:
        raise UnsupportedError(f'{name}: no sparse result\n  help: format="dense"')
    letters = _LETTERS[: len(s.shape)]
    stay = letters[:kept]
    fill = python_scalar(s.fill_value, scalar)
    combined = _folded(s.with_values(cast(s.values, scalar), fill), letters, stay, _MONOIDS[name])
    stored = _folded(s.with_values(full(length(s.values), "i64", 1, s.values), 0), letters, stay, "plus")
    op = {"any": "max", "all": "min"}.get(name, name)
    values = add_fill(op, combined.values, count - stored.values, fill, scalar)
    whole = {"sum": lambda: fill * count, "prod": lambda: fill**count}.get(name, lambda: fill)()
    result = combined.with_values(values, python_scalar(whole, scalar))
    return Tensor._from_storage(in_format(Term(stay, result), stay, result_format([s], result.shape)))


def _folded(s: Storage, letters: str, stay: str, monoid: str) -> Storage:
    adding = Semiring(f"{monoid}_first", MONOIDS[monoid], "x")
    found = alone(Term(letters, s), stay, adding)
    return found.storage if found.letters == stay else found.storage.permute([found.letters.index(c) for c in stay])
