"""The creation functions of the array API standard, 2024.12.

What holds one value everywhere is sparse: `zeros`, `ones`, `full`, `empty` and their `_like` forms give a COO tensor
without stored elements whose fill value is that value, and `eye` a COO tensor of its diagonal, unless `format=` says
otherwise. `arange`, `linspace` and `meshgrid` are dense.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, UnsupportedError
from ..format import format as parse
from ..format.format import Format
from ..integers import extents, integer, integers
from ..interop.sources import asarray
from ..reals import real
from ..runtime.formats import resolve_format
from ..runtime.library_errors import check_room, sized
from ..runtime.operation import namespace, operation
from ..storage import buffers
from ..storage.scalars import python_scalar
from ..storage.storage import Storage, check_extents
from ..tensor.tensor import Tensor

__all__ = [
    "arange", "empty", "empty_like", "eye", "eye_array", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


@operation(operands=False)
@sized
def full(
    shape: int | Sequence[int],
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    format: str | Format | None = None,
) -> Tensor:
    """A tensor of one value everywhere.

    Parameters
    ----------
    shape : extents, or one extent
    fill_value : a Python scalar
    dtype : default bool, int64, float64 or complex128, by the kind of `fill_value`
    format : default COO, which stores nothing: the value is the tensor's fill value

    Returns
    -------
    Tensor of the shape `shape` whose elements are all `fill_value`

    Raises ShapeError for a negative extent, DTypeError for a value that the dtype has not.

    Cost: O(1); dense O(size).
    See also: full_like, zeros, ones.

    Examples
    --------
    >>> ow.full((3, 4), 2.5).nse
    0
    """
    shape = extents(shape, "full")
    check_extents(shape)
    fill_value = buffers.host_values(fill_value) if buffers.is_torch(fill_value) else fill_value
    if dtype is None:
        dtype = np.asarray(fill_value).dtype
    scalar = buffers.scalar_name(dtype)
    if isinstance(fill_value, complex) and scalar not in ("c64", "c128"):
        raise DTypeError(f"full: {fill_value} is no {dtype}\n  help: give dtype='complex128'")
    target = resolve_format("coo" if format is None else format, len(shape)) if shape or format else parse("()->()")
    like = buffers.empty(0, scalar, _like(dtype))
    out = _constant(target, shape, scalar, python_scalar(fill_value, scalar), like)
    return out if device is None else out.to(device)


def _like(dtype: Any) -> Any:
    """An empty buffer of the library that the dtype belongs to."""
    if str(dtype).startswith("torch."):
        import torch

        return torch.empty(0)
    return np.empty(0)


def _constant(target: Format, shape: tuple[int, ...], scalar: str, fill: Any, like: Any) -> Tensor:
    """A tensor of one value: without stored elements, or with all of them where the format is dense."""
    if target.is_dense:
        n = math.prod(hi - lo for lo, hi in target.level_intervals(shape))
        check_room("full", n, buffers.itemsize(scalar))
        values = buffers.zeros(n, scalar, like)
        if fill:
            values[...] = fill
        no_buffers = (None,) * len(target.levels)
        return Tensor._from_storage(Storage(shape, target, scalar, fill, no_buffers, no_buffers, values))
    ndim = len(shape)
    empty_coo = parse("coo", ndim)
    index = [buffers.zeros(0, "i64", like) for _ in range(ndim)]
    pos = (buffers.zeros(2, "i64", like), *[None] * (ndim - 1))
    out = Tensor._from_storage(Storage(shape, empty_coo, scalar, fill, pos, tuple(index), like))
    return out if target == empty_coo else out.asformat(target)


@operation(operands=False)
def zeros(
    shape: int | Sequence[int], *, dtype: Any = None, device: Any = None, format: str | Format | None = None
) -> Tensor:
    """A tensor of zeros: COO without stored elements unless `format=` is given; float64 unless `dtype=` is.

    Returns
    -------
    Tensor of zeros, in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: zeros_like, full, eye.

    Examples
    --------
    >>> ow.zeros((1000, 1000)).nse
    0
    """
    return full(shape, 0, dtype=np.float64 if dtype is None else dtype, device=device, format=format)


@operation(operands=False)
def ones(
    shape: int | Sequence[int], *, dtype: Any = None, device: Any = None, format: str | Format | None = None
) -> Tensor:
    """A tensor of ones: COO of fill value 1 without stored elements unless `format=` is given.

    Returns
    -------
    Tensor of ones, in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: ones_like, full, pattern.

    Examples
    --------
    >>> A = ow.ones((1000, 1000))
    >>> A.nse, A.fill_value
    (0, 1.0)
    """
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device, format=format)


@operation(operands=False)
def empty(
    shape: int | Sequence[int], *, dtype: Any = None, device: Any = None, format: str | Format | None = None
) -> Tensor:
    """A tensor of zeros, as `zeros` makes it: one that stores nothing has nothing to leave uninitialised.

    Returns
    -------
    Tensor of zeros, in COO unless `format` says otherwise

    Cost: O(1).
    See also: zeros.

    Examples
    --------
    >>> ow.empty((2, 3)).nse
    0
    """
    return zeros(shape, dtype=dtype, device=device, format=format)


@operation(operands=False)
def full_like(
    x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None, format: str | Format | None = None,
    shape: Any = None, order: str = "K",
) -> Tensor:  # fmt: skip
    """A tensor of one value everywhere, with the shape, dtype and device of `x` unless others are given.

    A dense `x` gives a dense tensor, column-major for `order="F"`, any other a COO tensor without stored elements.
    fill_value : a number, or an array that broadcasts to the shape: then a dense tensor, in `format` where one is given

    Returns
    -------
    Tensor of the shape of `x` whose elements are all `fill_value`

    Raises ShapeError for an array that does not broadcast.

    Cost: O(1); dense O(size).
    See also: full.

    Examples
    --------
    >>> ow.full_like(ow.eye(2), 7.0).to_numpy()
    array([[7., 7.],
           [7., 7.]])
    """
    t = x if isinstance(x, Tensor) else asarray(x)
    if order not in ("K", "C", "A", "F"):
        raise UnsupportedError(f"full_like: order={order!r}\n  supported: 'K', 'C', 'A', 'F'")
    result_shape = t.shape if shape is None else extents(shape, "full_like")
    result_format = format
    if format is None and t.format.is_dense and result_shape and t.ndim:
        result_format = "dense_f" if order == "F" and len(result_shape) > 1 else "dense"
    result_device = device if device is not None else None if t.device == "cpu" else t.device
    result_dtype = t.dtype if dtype is None else dtype
    if np.ndim(fill_value):
        values: Tensor = (
            namespace().broadcast_to(asarray(fill_value).asformat("dense"), result_shape).astype(result_dtype)
        )
        values = values if result_format is None else values.asformat(result_format)
        return values if result_device is None else values.to(result_device)
    return full(result_shape, fill_value, dtype=result_dtype, device=result_device, format=result_format)


@operation(operands=False)
def zeros_like(
    x: Any,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    format: str | Format | None = None,
    shape: Any = None,
    order: str = "K",
) -> Tensor:
    """A tensor of zeros with the shape, dtype and device of `x` unless others are given, as `full_like` makes it.

    Returns
    -------
    Tensor of zeros, dense where `x` is, else in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: zeros, full_like.

    Examples
    --------
    >>> ow.zeros_like(ow.eye(2)).to_numpy()
    array([[0., 0.],
           [0., 0.]])
    """
    return full_like(x, 0, dtype=dtype, device=device, format=format, shape=shape, order=order)


@operation(operands=False)
def ones_like(
    x: Any,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    format: str | Format | None = None,
    shape: Any = None,
    order: str = "K",
) -> Tensor:
    """A tensor of ones with the shape, dtype and device of `x` unless others are given, as `full_like` makes it.

    Returns
    -------
    Tensor of ones, dense where `x` is, else in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: full_like, pattern.

    Examples
    --------
    >>> ow.ones_like(ow.eye(2)).to_numpy()
    array([[1., 1.],
           [1., 1.]])
    """
    return full_like(x, 1, dtype=dtype, device=device, format=format, shape=shape, order=order)


@operation(operands=False)
def empty_like(
    x: Any,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    format: str | Format | None = None,
    shape: Any = None,
    order: str = "K",
) -> Tensor:
    """A tensor of zeros with the shape, dtype and device of `x`, as `zeros_like` makes it.

    Returns
    -------
    Tensor of zeros, dense where `x` is, else in COO unless `format` says otherwise

    Cost: O(1).
    See also: zeros_like.

    Examples
    --------
    >>> ow.empty_like(ow.eye(3)).shape
    (3, 3)
    """
    return full_like(x, 0, dtype=dtype, device=device, format=format, shape=shape, order=order)


@operation(operands=False)
@sized
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
    format: str | Format | None = None,
) -> Tensor:
    """A matrix with ones on the diagonal `k` and zeros elsewhere: COO unless `format=` is given.

    It is of float64 unless `dtype=` is given.

    Parameters
    ----------
    n_rows : how many rows
    n_cols : how many columns; as many as rows if left out

    Returns
    -------
    Tensor of shape (n_rows, n_cols)

    Cost: O(n).
    See also: eye_array, diags_array, zeros.

    Examples
    --------
    >>> ow.eye(2, 3, k=1).to_numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    sizes = (n_rows, n_rows if n_cols is None else n_cols)
    rows, cols = extents(integers(sizes, "eye", "an extent", boolean=False), "eye")
    check_extents((rows, cols))
    check_room("eye", min(rows, cols))
    k = integer(k, "eye", "k")
    scalar = buffers.scalar_name(np.float64 if dtype is None else dtype)
    like = _like(dtype)
    k = max(-rows, min(k, cols))
    row_indices = np.arange(max(0, -k), max(max(0, -k), min(rows, cols - k)))
    crd = tuple(buffers.as_array(c, like=like) for c in (row_indices, row_indices + k))
    pos = (buffers.as_array(np.array([0, len(row_indices)]), like=like), None)
    values = buffers.as_array(np.ones(len(row_indices)), scalar, like=like)
    fill = python_scalar(0, scalar)
    out = Tensor._from_storage(Storage((rows, cols), parse("coo", 2), scalar, fill, pos, crd, values))
    out = out if format is None else out.asformat(format)
    return out if device is None else out.to(device)


@operation(operands=False)
def eye_array(
    m: int,
    n: int | None = None,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
    format: str | Format | None = None,
) -> Tensor:
    """`eye` in SciPy's format of it: DIA unless `format=` is given.

    Parameters
    ----------
    m : how many rows
    n : how many columns; as many as rows if left out

    Returns
    -------
    Tensor of shape (m, n)

    Cost: O(n).
    See also: eye, diags_array.

    Examples
    --------
    >>> ow.eye_array(3).format == ow.format("dia")
    True
    """
    return eye(m, n, k=k, dtype=dtype, device=device, format="dia" if format is None else format)


def _dense(array: np.ndarray[Any, Any], dtype: Any, device: Any, format: Any) -> Tensor:
    like = _like(dtype)
    out = Tensor._from_dense(buffers.as_array(array, None if dtype is None else buffers.scalar_name(dtype), like=like))
    out = out if format is None else out.asformat(format)
    return out if device is None else out.to(device)


def _number(x: Any, name: str) -> Any:
    """A number, or an array or tensor of rank 0 -> a Python int or float."""
    try:
        return operator.index(x)
    except TypeError:
        return real(x, "arange", name)


@operation(operands=False)
@sized
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None,
    format: str | Format | None = None,
) -> Tensor:  # fmt: skip
    """`start`, `start + step`, ... up to but not including `stop`: dense unless `format=` is given.

    Parameters
    ----------
    start : the first number, or the end where `stop` is left out: then they begin at 0
    stop : the end, which is not included
    step : the distance between neighbours, which may be negative

    Returns
    -------
    Tensor of rank 1, dense by default

    Cost: O(size).
    See also: linspace, zeros.

    Examples
    --------
    >>> ow.arange(2, 8, 2).to_numpy()
    array([2, 4, 6])
    """
    start, step = _number(start, "start"), _number(step, "step")
    stop = None if stop is None else _number(stop, "stop")
    if stop is None:
        start, stop = 0, start
    integral = all(isinstance(x, int) for x in (start, stop, step))
    n = max(0, -((start - stop) // step) if integral else math.ceil((stop - start) / step))
    check_room("arange", int(n))
    array = start + step * np.arange(n, dtype=np.int64) if integral else start + step * np.arange(n, dtype=np.float64)
    return _dense(array, dtype, device, format)


@operation(operands=False)
@sized
def linspace(
    start: Any, stop: Any, /, num: int = 50, *, dtype: Any = None, device: Any = None, endpoint: bool = True,
    format: str | Format | None = None,
) -> Tensor:  # fmt: skip
    """`num` numbers from `start` to `stop`, evenly spaced: dense unless `format=` is given.

    start, stop : numbers, those of a tensor of rank 0 among them, or arrays, between whose elements the numbers lie

    Parameters
    ----------
    num : how many numbers
    endpoint : whether `stop` is the last one

    Returns
    -------
    Tensor with `num` numbers, of rank 1 for numbers, along a new first dimension for arrays

    Cost: O(size).
    See also: arange.

    Examples
    --------
    >>> ow.linspace(0, 1, 3).to_numpy()
    array([0. , 0.5, 1. ])
    """
    start, stop = (x.to_numpy() if isinstance(x, Tensor) else x for x in (start, stop))
    (num,) = extents((integer(num, "linspace", "num"),), "linspace")
    check_room("linspace", num)
    return _dense(np.linspace(start, stop, num, endpoint=endpoint), dtype, device, format)


@operation(operands=False)
def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """The dense coordinate tensors of the grid that vectors span, one for each vector.

    Parameters
    ----------
    indexing : "xy" for the first two dimensions exchanged, as in plots; "ij" for dimensions in the order of the vectors

    Returns
    -------
    list of Tensors, dense, one for each vector

    Cost: O(size).
    See also: broadcast_arrays.

    Examples
    --------
    >>> x, y = ow.meshgrid(ow.arange(3), ow.arange(2))
    >>> x.to_numpy()
    array([[0, 1, 2],
           [0, 1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise UnsupportedError(f"meshgrid: indexing={indexing!r}\n  supported: 'xy', 'ij'")
    vectors = [x.to_numpy() if isinstance(x, Tensor) else np.asarray(x) for x in arrays]
    return [Tensor._from_dense(np.ascontiguousarray(g)) for g in np.meshgrid(*vectors, indexing=indexing)]  # type: ignore[call-overload]


@operation(operands=False)
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A dense Tensor over the memory of an object that has `__dlpack__`, copied only where `copy=True`.

    Returns
    -------
    Tensor in dense format, over the memory of `x`

    Cost: nothing is copied.
    See also: asarray.

    Examples
    --------
    >>> ow.from_dlpack(np.array([1.0, 2.0])).to_numpy()
    array([1., 2.])
    """
    return asarray(x, copy=copy, device=device)
