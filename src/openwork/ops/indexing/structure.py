"""A tensor -> its pattern, True at every specified element; a tensor and other values -> these in its structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...runtime.operation import operation
from ...storage.buffers import as_array, flat, is_array, is_torch, length, scalar_of, zeros
from ...storage.scalars import python_scalar
from ...tensor.tensor import Tensor
from ..axes import as_tensor

__all__ = ["pattern", "with_values"]


@operation(
    method=True, masked=lambda m, /: m.get_mask(), grad=False, shape="same", dtype="bool", fill="zero", format="same"
)
def pattern(x: Any, /) -> Tensor:
    """True at every specified element, whatever its value, False elsewhere: a bool tensor over the same pos and crd.

    Returns
    -------
    Tensor of bool with fill value False, in the format of `x`; a dense format specifies every element

    Guarantees: pattern(x).nse == x.nse; pattern(prune(x)) is True where `x` is not its fill value.

    Examples
    --------
    >>> import openwork as ow
    >>> A = ow.sparse_coo_tensor([[0, 1], [1, 1]], [0.0, 2.0], (2, 2))
    >>> ow.pattern(A).to_numpy().tolist()
    [[False, True], [False, True]]
    """
    s = as_tensor(x)._storage
    values = zeros(length(s.values), "bool", s.values)
    values[...] = True
    return Tensor._from_storage(s.with_values(values, False))


@operation(method=True, shape="same", format="same")
def with_values(x: Any, values: Any, /, *, fill_value: Any = None) -> Tensor:
    """Other values in the structure of `x`, over the same pos and crd.

    Parameters
    ----------
    x : Tensor, any format
    values : as many as `x.values` has, in its order, padding of blocks and diagonals included, or one number
    fill_value : of the result; that of `x`, converted, without

    Returns
    -------
    Tensor with the dtype of `values` and buffers of the library of `x`; values that torch records stay on the graph

    Raises ShapeError for another number of values.
    """
    s = as_tensor(x)._storage
    count = length(s.values)
    array: Any = values if is_array(values) else values.to_dense() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim == 0:
        array = array.expand(count) if is_torch(array) else np.broadcast_to(array, count)
    if (array.numel() if is_torch(array) else array.size) != count:
        raise ShapeError(
            f"with_values: expected {count} values, as `values` of the tensor has; got shape {tuple(array.shape)}"
            "\n  help: sparse_mask takes the elements of another tensor at these places"
        )
    buffer = flat(as_array(array.reshape(-1), like=array if is_torch(array) else s.values))
    if is_torch(buffer) != is_torch(s.values):
        s = s.mapped(lambda b: as_array(b, like=buffer))
    fill = s.fill_value if fill_value is None else fill_value
    return Tensor._from_storage(s.with_values(buffer, python_scalar(fill, scalar_of(buffer))))
