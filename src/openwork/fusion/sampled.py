"""A product of dense factors at the elements of a sparse one, over the indices that stay: the structure of that one.

C[i, j] += S[i, j] * A[i, k] * B[k, j]        O(nse of S * k), nothing of the extents of C
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..interop.operands import plain
from ..ir.index import Access, Apply, Assignment, Expression
from ..runtime.contract import shared
from ..runtime.promote import promote
from ..runtime.strided import strided
from ..storage.buffers import library_of
from ..tensor.tensor import Tensor

__all__ = ["sampled"]


def sampled(
    factors: tuple[Access, ...], free: tuple[str, ...], known: Mapping[str, Any], mask: str | None = None
) -> Tensor | None:
    """The sum of the product, in the format of its sparse factor; None unless there is one, over the free indices.

    mask: the name of a factor whose values play no part.
    """
    sparse = [a for a in factors if isinstance(x := known[a.tensor], Tensor) and not x.format.is_dense]
    if len(sparse) != 1 or len(factors) < 2 or sorted(sparse[0].indices) != sorted(free) or not free:
        return None
    (driver,) = sparse
    t: Tensor = known[driver.tensor]
    if not t.format.is_unique or t.fill_value:
        return None
    names = {a: f"T{k}" for k, a in enumerate(dict.fromkeys(factors))}
    views = {names[a]: strided(plain(known[a.tensor])) for a in names if a is not driver and a != driver}
    if any(len(set(a.indices)) != len(a.indices) for a in factors):
        return None
    rhs: Expression | None = None
    for a in factors:
        access: Expression = Access(names[a], a.indices)
        access = Apply("pattern", (access,)) if a.tensor == mask else access
        rhs = access if rhs is None else Apply("mul", (rhs, access))
    assert rhs is not None
    scalars = tuple(v.scalar for v in views.values())
    own = () if mask is not None else (t._storage.scalar,)
    like = next(iter(views.values())).owner
    stmt = Assignment(Access("out", driver.indices), "+=", rhs)
    result = shared(stmt, {**views, names[driver]: t._storage}, promote((*own, *scalars), library_of(like)))
    return Tensor._from_storage(result).transpose(tuple(driver.indices.index(i) for i in free))
