"""Structures of masked tensors -> whether they are equal, their intersection, their union."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import FormatError, ShapeError, Tensor, sparse_mask
from ..ops import mask_formats as forms
from ..ops.elementwise.pointwise import pointwise
from ..ops.indexing.taking import values_at
from ..ops.reductions.softmax import _gather
from ..runtime.gradient_hook import tracked
from ..storage.buffers import Array, as_array, cast, is_torch, scalar_of
from ..storage.equal_coordinates import same_structure
from ..storage.specified import coordinates
from ..storage.storage import Storage
from ..tensor import one_library
from .tensor import MaskedTensor, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..format.format import Format
    from ..ir.index import Assignment, Expression
    from .tensor import MaskedTensor

__all__ = [
    "first_difference",
    "in_one_library",
    "merged",
    "pattern",
    "require_equal",
    "restricted",
    "sampled",
    "settled",
    "values_on",
]


def in_one_library(*operands: Any) -> Sequence[Any]:
    """Masked tensors, Tensors and arrays over buffers of one library: torch's where one of them is. Others stay."""
    plain = [x._tensor if isinstance(x, MaskedTensor) else x for x in operands]
    moved = one_library.one_library(*plain)
    if all(x is y for x, y in zip(plain, moved, strict=True)):
        return operands
    pairs = zip(operands, moved, strict=True)
    return [wrap(y, x._scalar) if isinstance(x, MaskedTensor) else y for x, y in pairs]


def pattern(s: Storage) -> Tensor:
    """A bool Tensor that is True where the storage has an element."""
    values = as_array(np.ones(len(s.values), np.bool_), like=s.values)
    return Tensor._from_storage(s.with_values(values, False))


def require_equal(operation: str, a: MaskedTensor, b: MaskedTensor) -> Array:
    """The values of `b` in the places of those of `a`.

    Raises ShapeError that names the first coordinate where only one of the two is specified.
    """
    s, t = a._tensor._storage, b._tensor._storage
    if same_structure(s, t):
        return b.values
    if s.format != t.format and forms.plain(s.format) != forms.plain(t.format):
        t = t if t.format == s.format else b._tensor.asformat(forms.fitting(s.format))._storage
        if same_structure(s, t):
            return t.values
    place = first_difference(s, t)
    if place is not None:
        where, only = place
        raise ShapeError(
            f"{operation}: the masks differ: element {where} is specified in the {only} operand only"
            '\n  help: how="intersection" or how="union", as in a.add(b, how="union"), or filled(value)'
        )
    if s.format == t.format and not forms.loose(s.format):
        return values_on(s, wrap(Tensor._from_storage(t)))
    raise ShapeError(
        f"{operation}: the masks agree, but what is stored does not: {len(s.values)} elements and "
        f"{len(t.values)}, some of them stored and masked out\n  formats: {s.format} and {t.format}"
        "\n  help: compact() drops elements that are stored and masked out"
    )


def first_difference(s: Storage, t: Storage) -> tuple[tuple[int, ...], str] | None:
    """The first coordinate, row-major, that only one of the storages has, and which it is; None where there is none."""
    places = []
    for x in (s, t):
        at, _ = coordinates(x)
        total = np.zeros(at.shape[1], np.int64)
        for c, n in zip(at, x.shape, strict=True):
            total = total * n + c
        places.append(total)
    apart = np.setxor1d(places[0], places[1])
    if not len(apart):
        return None
    where = tuple(int(c) for c in np.unravel_index(apart[0], s.shape))
    return where, "first" if apart[0] in places[0] else "second"


def merged(
    e: Expression | Assignment, operands: Mapping[str, Any], like: Format, shape: tuple[int, ...]
) -> MaskedTensor:
    """An expression of masked tensors, Tensors and dense arrays, broadcast to a shape, in one pass over them all.

    What an operation makes of missing elements, the fill algebra says: they beat everything but `either`, `given` and
    the branch that `select` does not take. The result has a format that fits that of an operand, `like`.
    """

    operands = dict(zip(operands, in_one_library(*operands.values()), strict=True))
    lacking = [name for name, x in operands.items() if isinstance(x, MaskedTensor)]
    array = operands[lacking[0]].values
    tensors = {name: _tensor(x, array) for name, x in operands.items()}
    target = forms.merged(like, len(shape))
    return wrap(settled(pointwise(e, tensors, target, missing=lacking), like), not shape)


def _tensor(x: Any, like: Array) -> Tensor:

    if isinstance(x, MaskedTensor):
        return x._tensor
    return x if isinstance(x, Tensor) else Tensor._from_dense(as_array(x, like=like))


def _bits(s: Storage) -> Any:
    return s.crd[-1] if forms.has_bits(s.format) else None


def _only_bits(s: Storage) -> bool:
    """Whether nothing but the bits of the last level is stored: equal formats have equal places."""
    return forms.has_bits(s.format) and all(b is None for b in (*s.pos, *s.crd[:-1]))


def values_on(s: Storage, m: MaskedTensor) -> Array:
    """The values of a masked tensor in the places of a structure; zero where it is missing."""
    t = m._tensor._storage
    if t is s or (t.format == s.format and _only_bits(s)):
        return t.values
    if tracked((t.values,)):
        return sparse_mask(m._tensor, Tensor._from_storage(s)).values
    return values_at(m._tensor, s)


def settled(t: Tensor, like: Format) -> Tensor:
    """A result in the format that suits that of an operand; levels of fixed width may not hold it, then compressed."""
    try:
        return t.asformat(forms.related(like, t.ndim))
    except FormatError:
        return t.asformat(forms.compressed(like, t.ndim))


def sampled(s: Storage, array: Array, shape: tuple[int, ...]) -> Array:
    """The elements of a dense array, broadcast, in the places of a structure of this shape."""
    array = as_array(array, like=s.values)
    if s.format == forms.strided(len(shape)):
        if tuple(array.shape) == shape:
            return array.reshape(-1)
        if is_torch(array):
            return array.expand(shape).reshape(-1)
        return np.broadcast_to(array, shape).reshape(-1)
    lead = len(shape) - array.ndim
    dims = tuple(lead + d for d in range(array.ndim) if array.shape[d] != 1)
    narrow = array.reshape(tuple(n for n in array.shape if n != 1))
    if not dims:
        return narrow
    if tracked((narrow,)):
        names = tuple(f"i{d}" for d in range(len(shape)))
        like = s.with_values(cast(s.values.detach(), scalar_of(narrow)))
        return _gather(like, names, tuple(names[d] for d in dims), narrow)
    return values_at(Tensor._from_dense(narrow), s, dims)


def restricted(m: MaskedTensor, keep: Array) -> Tensor:
    """The Tensor of the elements for which `keep`, a bool for each value, is True."""
    s = m._tensor._storage
    format = forms.keeping(s.format)
    bits = _bits(s)
    extra = () if bits is not None or forms.stores_all(s.format) else (None,)
    crd = (*s.crd[:-1], keep & bits) if bits is not None else (*s.crd, keep) if extra else (*s.crd[:-1], keep)
    storage = Storage(s.shape, format, s.scalar, s.fill_value, (*s.pos, *extra), crd, s.values)
    return Tensor._from_storage(storage).asformat(forms.fitting(forms.plain(format)))
