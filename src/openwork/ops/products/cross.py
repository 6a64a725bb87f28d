"""Two tensors of three-dimensional vectors -> their cross products."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...tensor.tensor import Tensor
from ..axes import as_tensor, axis_of
from ..indexing.index import index
from ..manipulation.joining import stack

__all__ = ["cross"]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross products of the vectors along `axis`, which has extent 3 in both operands; the others broadcast.

    Parameters
    ----------
    x1, x2 : tensors of any format and fill value
    axis : counted in the operand with more dimensions, from the end where negative

    Returns
    -------
    Tensor, sparse where a product of the operands is

    Cost: O(nse). Raises ShapeError where an extent along `axis` is not 3.

    See also: outer, vecdot.

    Examples
    --------
    >>> ow.linalg.cross(ow.asarray([1, 0, 0], format="coo"), ow.asarray([0, 1, 0], format="coo")).to_numpy()
    array([0, 0, 1])
    """
    a, b = as_tensor(x1), as_tensor(x2)
    ndim = max(a.ndim, b.ndim)
    d = axis_of(axis, ndim, "cross") - ndim
    for t in (a, b):
        if t.ndim < -d or t.shape[d] != 3:
            raise ShapeError(f"cross: shapes {a.shape} and {b.shape}\n  expected: extent 3 along axis {axis} in both")
    left, right = ([index(t, (*(slice(None),) * (t.ndim + d), k)) for k in range(3)] for t in (a, b))
    parts = [left[k - 2] * right[k - 1] - left[k - 1] * right[k - 2] for k in range(3)]
    return stack(parts, axis=d + ndim)
