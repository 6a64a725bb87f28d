"""A tensor -> the n-th differences of neighbouring elements along a dimension."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...integers import integer
from ...provided import provided
from ...runtime.operation import operation
from ..axes import as_tensor, axis_of
from ..elementwise.maps import elementwise
from ..indexing.index import index
from .joining import concat

__all__ = ["diff"]


@operation(method=True, masked=provided("masked diff"), shape="moved", fill="zero", format="like")
def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """The n-th differences of neighbours along `axis`: element k + 1 minus element k, n times.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format and fill value
    axis : the dimension, which loses n elements (all of them, where it has fewer)
    prepend, append : tensors that are joined to `x` along `axis` before, of its fill value
    n : how often differences are taken

    Returns
    -------
    Tensor, sparse where `x` is, with fill value 0 (NaN, where that of `x` is not finite); of bool, whether neighbours
    differ

    Cost: O(n * nse).
    Raises AxisError for an axis that is not there, ShapeError for a negative n.

    See also: cumulative_sum.

    Examples
    --------
    >>> ow.diff(ow.asarray([0, 2, 2, 7], format="coo")).to_numpy()
    array([2, 0, 5])
    """
    t, n = as_tensor(x), integer(n, "diff", "n")
    d = axis_of(axis, t.ndim, "diff")
    if n < 0:
        raise ShapeError(f"diff: n={n} differences\n  expected: 0 or more")
    if n == 0:
        return t
    ends = [as_tensor(e) for e in (prepend, x, append) if e is not None]
    t = concat(ends, axis=d) if len(ends) > 1 else t
    op = "ne" if t._storage.scalar == "bool" else "sub"
    before = (slice(None),) * d
    for _ in range(n):
        t = elementwise(op, index(t, (*before, slice(1, None))), index(t, (*before, slice(None, -1))))
    return t
