"""pydata/sparse's functions of arrays: arguments as Tensors to openwork's operation of that name, results as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import openwork as ow

from ...tables import NAMES, NUMPY
from .base import SparseArray, class_of, elemwise, is_sparse, store, unwrapped, wrapped
from .buffers import axes_of, equivalent
from .coo import COO, as_coo
from .products import zero_fill
from .registry import FUNCTIONS, own

__all__ = ["named", "namespace_info"]


def _arrays(args: Any) -> list[Any]:
    """The arrays among arguments, and in their lists."""
    return [y for x in args for y in (_arrays(x) if type(x) in (list, tuple) else [x])]


def operation(name: str) -> Callable[..., Any]:
    """openwork's operation over arrays; where none of them is sparse, NumPy's function."""
    ours = NUMPY.get(name, name)

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        given = _arrays([*args, *kwargs.values()])
        if not any(is_sparse(x) for x in given):
            return getattr(np, name)(*args, **kwargs)
        if "ddof" in kwargs:
            kwargs["correction"] = kwargs.pop("ddof")
        like = next((x for x in given if isinstance(x, SparseArray)), None)
        plain = {key: unwrapped(value) for key, value in kwargs.items()}
        found = wrapped(getattr(ow, ours)(*map(unwrapped, args), **plain), class_of(given), like)
        return found if out is None else store(found, out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{ours}` of sparse arrays: `openwork.{ours}` over their Tensors."
    return call


def named(name: str) -> Any:
    """What pydata/sparse has under a name: its own function, NumPy's ufunc, dtype or constant, or an operation."""
    theirs = getattr(np, name, None)
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in NAMES and not isinstance(theirs, np.ufunc):
        return operation(name)
    return theirs if theirs is not None else getattr(ow, name)


def _sparse_only(x: Any, name: str) -> None:
    if not is_sparse(x):
        raise TypeError(f"{name}: `a` must be a SparseArray, got {type(x).__name__}")


@own
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition holds, else `y`; without them the places where it holds."""
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    if x is None:
        return nonzero(condition) if is_sparse(condition) else as_coo_or_error(condition)
    return elemwise(np.where, condition, x, y)


def as_coo_or_error(x: Any) -> Any:
    """Refuse a dense array where pydata/sparse does."""
    raise ValueError(f"performing this operation would produce a dense result: {type(x).__name__}")


@own
def nonzero(x: Any, /) -> Any:
    """The coordinates of the elements that are not 0, a NumPy array for each dimension."""
    x = as_coo(x)
    zero_fill(x)
    if not x.ndim:
        raise ValueError("`nonzero` is undefined for `self.ndim == 0`.")
    return tuple(x._pruned().coords)


@own
def argwhere(a: Any) -> Any:
    """The coordinates of the elements that are not 0, a row for each."""
    return np.transpose(nonzero(a))


@own
def clip(a: Any, min: Any = None, max: Any = None, out: Any = None) -> Any:
    """The elements moved into an interval."""
    if min is None and max is None and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        raise ValueError("One of max or min must be given.")
    found = a if min is None else elemwise(np.maximum, a, min)
    found = found if max is None else elemwise(np.minimum, found, max)
    return found if out is None else store(found, out)


@own
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved along axes, around the ends."""
    a = as_coo(a)
    for x in (shift, axis):
        if x is not None and np.ndim(x) > 1:
            raise ValueError("'shift' and 'axis' must be integers or 1D sequences.")
    if np.iterable(shift) and not np.iterable(axis):
        raise ValueError("If 'shift' is a 1D sequence, 'axis' must have equal length.")
    if np.issubdtype(a.coords.dtype, np.integer) and a.coords.dtype.itemsize < 4:
        limits = np.iinfo(a.coords.dtype)
        if any(not limits.min <= int(s) <= limits.max for s in np.atleast_1d(shift)):
            raise ValueError(f"roll: shift {shift} does not fit coordinates of {a.coords.dtype}")
    return wrapped(ow.roll(a.tensor, shift, axis=axis), COO)


@own
def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """Fill values around the array."""
    if mode != "constant":
        raise NotImplementedError(f"Mode '{mode}' is not yet supported.")
    values = kwargs.pop("constant_values", array.fill_value)
    if not np.all(equivalent(np.asarray(values).astype(array.dtype), array.fill_value)):
        raise ValueError(f"`constant_values` can only be the fill value {array.fill_value}, got {values}")
    return wrapped(ow.pad(array.tensor, pad_width, constant_values=array.fill_value.item()), type(array), array)


@own
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The elements (i, i + offset) of two dimensions, in a last one."""
    if a.ndim < 2:
        raise ValueError("diagonal: array must be at least 2-d")
    if axes_of(axis1, a.ndim) == axes_of(axis2, a.ndim):
        raise ValueError("axis1 and axis2 cannot be the same")
    found = np.diagonal(unwrapped(a), offset=offset, axis1=axis1, axis2=axis2)
    return wrapped(found, class_of((a,)))


@own
def diagonalize(a: Any, axis: int = 0) -> Any:
    """A dimension twice, the elements on the diagonal of both."""
    a = as_coo(a)
    coords = np.concatenate([a.coords, a.coords[axis][None]])
    return COO(coords, a.data, shape=(*a.shape, a.shape[axis]), fill_value=a.fill_value)


@own
def triu(x: Any, k: int = 0) -> Any:
    """The elements on and above a diagonal."""
    return wrapped(ow.triu(unwrapped(x), k=k), class_of((x,)), x)


@own
def tril(x: Any, k: int = 0) -> Any:
    """The elements on and below a diagonal."""
    return wrapped(ow.tril(unwrapped(x), k=k), class_of((x,)), x)


@own
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements in order along an axis, NaN last."""
    falls = descending and x.dtype.kind == "f"
    t = -unwrapped(x) if falls else unwrapped(x)
    found = ow.sort(t, axis=axis, descending=descending and not falls)
    return wrapped(-found if falls else found, class_of((x,)), x)


@own
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """The piecewise linear function through (xp, fp), of every element."""
    xp, fp = (y.todense() if isinstance(y, SparseArray) else np.asarray(y) for y in (xp, fp))
    if not isinstance(x, SparseArray):
        return np.interp(x, xp, fp, left, right, period)
    return wrapped(np.interp(x.tensor, xp, fp, left, right, period), type(x), x)


@own
def isposinf(x: Any, out: Any = None) -> Any:
    """Which elements are the positive infinity."""
    found = elemwise(np.equal, x, np.inf)
    return found if out is None else store(found, out)


@own
def isneginf(x: Any, out: Any = None) -> Any:
    """Which elements are the negative infinity."""
    found = elemwise(np.equal, x, -np.inf)
    return found if out is None else store(found, out)


@own
def nanreduce(x: Any, method: Any, identity: Any = None, axis: Any = None, keepdims: bool = False, **kw: Any) -> Any:
    """A ufunc's reduction with NaN taken for its identity."""
    identity = method.identity if identity is None else identity
    held = elemwise(lambda t: np.where(np.isnan(t), np.asarray(identity, x.dtype), t), x)
    return held.reduce(method, axis=axis, keepdims=keepdims, **kw)


@own
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of a result of arrays and dtypes."""
    return np.result_type(*(x.dtype if isinstance(x, SparseArray) else x for x in arrays_and_dtypes))


@own
def can_cast(from_: Any, to: Any, /, *, casting: Any = "safe") -> bool:
    """Whether a dtype, or an array's, may be cast."""
    given = from_.dtype if isinstance(from_, SparseArray | np.ndarray) else from_
    return bool(np.can_cast(given, to, casting=casting))


@own
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The elements in another dtype."""
    return x.astype(dtype, copy=copy)


@own
def reshape(x: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    """The elements, in row-major order, in another shape."""
    return x.reshape(shape, order=order)


@own
def permute_dims(x: Any, /, axes: Any = None) -> Any:
    """The dimensions in another order, reversed where none is given."""
    return x.transpose(axes)


FUNCTIONS["transpose"] = permute_dims


@own
def matrix_transpose(x: Any, /) -> Any:
    """The transpose of the last two dimensions."""
    if getattr(x, "ndim", 0) < 2:
        raise ValueError("`x` must be at least 2-dimensional for `matrix_transpose`.")
    return x.mT


@own
def squeeze(x: Any, /, axis: Any = None) -> Any:
    """The array without dimensions of extent 1."""
    if axis is not None and not all(isinstance(a, int | np.integer) for a in np.atleast_1d(axis).tolist()):
        raise ValueError(f"Invalid axis parameter: `{axis}`.")
    axes = axis if axis is None else axes_of(axis, x.ndim)
    for a in () if axes is None else np.atleast_1d(axes).tolist():
        if x.shape[a] != 1:
            raise ValueError(f"Specified axis `{a}` has a size greater than one: {x.shape[a]}")
    if axes is None:
        axes = tuple(k for k, n in enumerate(x.shape) if n == 1)
    return wrapped(ow.squeeze(x.tensor, axes), type(x))


@own
def repeat(a: Any, repeats: int, axis: Any = None) -> Any:
    """Every element so many times."""
    _sparse_only(a, "repeat")
    if not isinstance(repeats, int | np.integer):
        raise ValueError("`repeats` must be an integer")
    return wrapped(ow.repeat(unwrapped(a), repeats, axis=axis), class_of((a,)))


@own
def tile(a: Any, reps: Any) -> Any:
    """The array so many times along each axis."""
    return wrapped(ow.tile(as_coo(a).tensor, tuple(np.atleast_1d(reps).tolist())), class_of((a,)))


@own
def unstack(x: Any, axis: int = 0) -> Any:
    """The array's parts along an axis."""
    _sparse_only(x, "unstack")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis must be in range [-{x.ndim}, {x.ndim}), got {axis}")
    return wrapped(tuple(ow.unstack(unwrapped(x), axis=axis)), class_of((x,)))


@own
def diff(x: Any, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis."""
    _sparse_only(x, "diff")
    more = {k: unwrapped(v) for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return wrapped(ow.diff(unwrapped(x), axis=axis, n=n, **more), class_of((x,)))


def _searched(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"`axis={axis}` is out of bounds for array of dimension {x.ndim}.")
    return wrapped(getattr(ow, name)(unwrapped(x), axis=axis, keepdims=keepdims), class_of((x,)))


@own
def argmax(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The place of the largest element along an axis."""
    return _searched("argmax", x, axis, keepdims)


@own
def argmin(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The place of the smallest element along an axis."""
    return _searched("argmin", x, axis, keepdims)


def _dense(found: Any) -> Any:
    if isinstance(found, ow.Tensor):
        return found.to_numpy()
    return type(found)(*map(_dense, found)) if isinstance(found, tuple) else found


@own
def unique_values(x: Any, /) -> Any:
    """The distinct elements, a NumPy array."""
    if not isinstance(x, SparseArray):
        raise ValueError("Input must be an instance of SparseArray.")
    return _dense(ow.unique_values(x.tensor))


@own
def unique_counts(x: Any, /) -> Any:
    """The distinct elements and how often each is there, NumPy arrays."""
    if not isinstance(x, SparseArray):
        raise ValueError("Input must be an instance of SparseArray.")
    return _dense(ow.unique_counts(x.tensor))


@own
def asnumpy(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """The dense array of a sparse one; a dense one itself."""
    return np.asarray(a.todense() if isinstance(a, SparseArray) else a, dtype=dtype, order=order)


@own
def asCOO(x: Any, name: str = "asCOO", check: bool = True) -> Any:
    """The COO array; with `check` of a sparse array only."""
    if check and not is_sparse(x):
        raise ValueError(f"Performing this operation would produce a dense result: {name}")
    return as_coo(x)


def namespace_info() -> Any:
    """What the array API says of devices and dtypes: openwork's."""
    return ow.__array_namespace_info__()
