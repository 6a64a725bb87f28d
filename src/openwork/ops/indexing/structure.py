"""A tensor -> its pattern, True at every specified element; a tensor and other values, or one value -> these in its
structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.conversion.order import traversal
from ...errors import ShapeError
from ...format.expression import Dim
from ...format.format import Format
from ...runtime.conversion.assembly import full
from ...runtime.conversion.iso import own_value
from ...runtime.operation import operation
from ...storage.buffers import (
    Array,
    as_array,
    flat,
    is_array,
    is_torch,
    length,
    of_torch,
    refuse_stand_in,
    scalar_name,
    scalar_of,
    zeros,
)
from ...storage.origin import origin_of
from ...storage.recorded import refuse_recorded
from ...storage.scalars import given_number, python_scalar
from ...storage.specified import coordinates
from ...storage.storage import Storage
from ...tensor.one_library import over_torch
from ...tensor.tensor import Tensor
from ..axes import as_tensor

__all__ = ["iso", "pattern", "with_values"]


@operation(
    method=True, masked=lambda m, /: m.get_mask(), grad=False, shape="same", dtype="bool", fill="zero", format="same"
)
def pattern(x: Any, /) -> Tensor:
    """True at every specified element, whatever its value, False elsewhere: a bool tensor over the same pos and crd.

    Returns
    -------
    Tensor of bool with fill value False, in the format of `x`; a dense format specifies every element

    Guarantees: pattern(x).nse == x.nse; pattern(prune(x)) is True where `x` is not its fill value.

    Cost: O(nse).
    See also: with_values, prune, ones_like.

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


@operation(method=True, grad=False, shape="same", format="same")
def iso(x: Any, value: Any = None, /, *, dtype: Any = None) -> Tensor:
    """One value at every specified element, which takes no memory for each: an iso tensor, as GraphBLAS calls it.

    Parameters
    ----------
    x : Tensor, any format
    value : a number; without one, the value that all elements have already
    dtype : of the result; that of `x` without

    Returns
    -------
    Tensor in the structure of `x`, over the same pos and crd. `values` is as long as that of `x`: over NumPy buffers a
    read-only array of stride 0, over torch's, which can be written to, the values that the tensor has from then on.
    Every operation takes it; transposes, selections, reshapes, conversions to formats without padding, functions of it
    and with a number (over NumPy buffers), pickles and binsparse files are iso too; in-place forms, `clone()`, merges
    and joins give values of their own.

    Guarantees: iso(x, v).nbytes is that of the indices and one value; equal to x.with_values(v) for a v of its dtype.
    Raises InvariantError where no value is given and the elements have several, UnsupportedError for recorded values.
    Cost: O(1) with a value; without one O(nse), to see that all are the same.
    See also: pattern, with_values.

    Examples
    --------
    >>> import openwork as ow
    >>> A = ow.iso(ow.sparse_coo_tensor([[0, 1], [1, 1]], [3.0, 2.0], (2, 2)), 1)
    >>> A.is_iso, (A * 2).is_iso, A.to_numpy().tolist()
    (True, True, [[0.0, 1.0], [0.0, 1.0]])
    """
    s = as_tensor(x)._storage
    if value is None:
        shared = Tensor._from_storage(own_value(s, "iso"))
        return shared if dtype is None else shared.astype(dtype, copy=False).iso()
    scalar = s.scalar if dtype is None else scalar_name(dtype)
    if of_torch(dtype) and s.library == "numpy":
        s = over_torch(Tensor._from_storage(s))._storage
    if is_torch(value):
        refuse_recorded(value)
    number = given_number(value, scalar, "iso", "dtype= gives the result another one, with_values takes an array")
    return Tensor._from_storage(s.with_one_value(full(1, scalar, number, s.values), s.fill_value))


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

    Raises ShapeError for another number of values, and for the values of a tensor that is stored in another order than
    `x`, of which one is unordered or has duplicates: with_values(K, f(K).values) where f sorts.

    Cost: O(1): the structure is shared.
    See also: pattern, Tensor.clone.

    Examples
    --------
    >>> A = ow.eye(2)
    >>> ow.with_values(A, [5.0, 6.0]).to_numpy()
    array([[5., 0.],
           [0., 6.]])
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
    _check_order(s, array)
    buffer = flat(as_array(array.reshape(-1), like=array if is_torch(array) else s.values))
    refuse_stand_in(buffer)
    if is_torch(buffer) != is_torch(s.values):
        s = s.mapped(lambda b: as_array(b, like=buffer))
    fill = s.fill_value if fill_value is None else fill_value
    return Tensor._from_storage(s.with_values(buffer, python_scalar(fill, scalar_of(buffer))))


def _check_order(s: Storage, values: Array) -> None:
    """Raise ShapeError for values of a tensor whose elements are known to be stored in another order than those of `s`;
    of tensors that are both ordered and unique nobody asks."""
    origin = origin_of(values)
    if origin is None or (_is_canonical(s.format) and _is_canonical(origin.format)):
        return
    structure = origin.structure()
    if structure is not None:
        pairs = zip((*structure.pos, *structure.crd), (*s.pos, *s.crd), strict=False)
        if all(a is b for a, b in pairs):  # of transposes too
            return
        theirs = coordinates(Storage.over(structure, s.scalar, s.fill_value, s.values))[0]
        fits = np.array_equal(theirs, coordinates(s)[0])
    else:
        fits = not _is_canonical(origin.format) or _is_sorted(s, origin.format)
    if not fits:
        raise ShapeError(
            f"with_values: the values belong to a tensor that is stored in another order, in format {origin.format};"
            f" expected: values in the order of {s.format}"
            "\n  help: sort the tensor first, K = K.asformat(f(K).format), or take f(K) itself, which has the values"
        )


def _is_canonical(format: Format) -> bool:
    return format.is_ordered and format.is_unique


def _is_sorted(s: Storage, format: Format) -> bool:
    """Whether no element of `s` comes before the one before it in the order of a format, or at its place; True where
    the format has blocks or diagonals, so that this is not known."""
    order = traversal(format)
    if not all(isinstance(e, Dim) for e in order) or len(order) != len(s.shape):
        return True
    crd = coordinates(s)[0]
    keys = [crd[e.index] for e in order if isinstance(e, Dim)]
    rises = np.zeros(max(crd.shape[1] - 1, 0), np.bool_)
    for key in reversed(keys):
        step = np.diff(key)
        rises = (step > 0) | ((step == 0) & rises)
    return bool(rises.all())
