"""`asarray`: an array, list, graph or sparse tensor of any library -> a Tensor, without a copy where possible."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, UnsupportedError
from ..format.format import Format
from ..provided import provided
from ..runtime.operation import operation
from ..storage import buffers
from ..storage.buffers import Array
from ..tensor.lazy import is_lazy
from ..tensor.one_library import in_library
from ..tensor.tensor import Tensor, resolve_format
from .arrow import from_arrow, is_arrow
from .binsparse import from_binsparse, speaks_binsparse
from .buffer_policy import BufferPolicy, dense_tensor
from .from_torch import from_torch
from .networkx import from_networkx, is_networkx
from .pandas import from_pandas
from .pydata import from_pydata
from .scipy import from_scipy

adopted = provided("device adopted", __name__)

__all__ = [
    "asarray",
    "is_on_device",
    "is_sparse_source",
    "refuse_device",
    "refuse_masked",
]


@operation(operands=False, grad=True)
def asarray(
    obj: object,
    /,
    *,
    dtype: object = None,
    format: str | Format | None = None,
    fill_value: Any = 0,
    copy: bool | None = None,
    device: object = None,
    like: object = None,
) -> Tensor:
    """A Tensor of what `obj` holds.

    Parameters
    ----------
    obj : Tensor, nested lists, scalar, NumPy array, SciPy sparse array or matrix, torch tensor of any layout,
        pydata COO or GCXS, sparse frame, series or array of pandas, graph of networkx (its adjacency), sparse tensor
        of Arrow, anything with `__binsparse__`, `__dlpack__` or `__array__`
    dtype : of the result; default that of `obj`
    format : of the result; default the one that `obj` has, "dense" for dense arrays
    fill_value : elements of a dense `obj` that a sparse `format` leaves out
    copy : True always copies, False raises ValueError where a copy is needed, None copies where needed
    device : "cpu", "opencl", or torch's name of one; on "opencl", and of pyopencl's arrays, a `DeviceTensor`
    like : the library of the result's buffers, `torch`, `numpy` or a tensor over them; default that of `obj`. Memory on
        the CPU is shared. A `dtype` or `device` that is torch's own, torch.float32 say, asks for torch too

    Returns
    -------
    Tensor over the buffers of `obj` where they are contiguous. Duplicate or unsorted coordinates give a format
    that says so; what the buffers hold decides, not a flag.

    Raises DTypeError for elements that are no numbers, UnsupportedError for objects that are no arrays.

    Cost: nothing is copied where the format stays; else O(nse log nse).
    See also: assemble, read, Tensor.asformat.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1, 0]], format="csr")
    >>> A.pos(1), A.crd(1), A.values
    (array([0, 1, 2], dtype=int32), array([1, 0], dtype=int32), array([2., 1.]))
    """
    if format is None and copy is dtype is device is like is None and type(fill_value) is int and not fill_value:
        t = _source(obj)
        if t is not None:
            return t
    if is_lazy(obj):
        obj = obj.compute()  # type: ignore[attr-defined]
    if is_on_device(obj):
        return adopted(obj, dtype, format, fill_value, device)  # type: ignore[no-any-return]
    t = obj if isinstance(obj, Tensor) else _tensor_of(obj, copy, fill_value, format)
    if isinstance(obj, Tensor) and copy:
        t = t.clone()
    if fill_value not in (0, t._raw_storage.fill_value):
        if not t.format.is_dense:
            raise UnsupportedError(
                f"asarray: unspecified elements are {t.fill_value}, fill_value={fill_value} would change them"
                "\n  help: leave fill_value out, or make it dense first"
            )
        t = t.with_values(t._storage.values, fill_value=fill_value)
    if like is not None:
        t = in_library(t, like, "asarray", copy)
    if buffers.of_torch(dtype) or buffers.of_torch(device):
        t = in_library(t, "torch", "asarray", copy)
    if dtype is not None and buffers.scalar_name(dtype) != t._storage.scalar:
        if copy is False:
            raise ValueError(f"asarray: copy=False, but {t.dtype} to {dtype} needs a copy\n  help: leave copy out")
        t = t.astype(dtype)
    if format is not None:
        target = resolve_format(format, t.ndim, t.format, explicit=True)
        is_there = target == t.format and target.explicit is None
        t = t if is_there else t.asformat(target, copy=False if copy is False else None)
    return t if device is None else t.to(device)


def refuse_device(operation: str, *operands: Any) -> None:
    """Raise UnsupportedError, by name, for a tensor on a device that has an adapter: what reads buffers on the host."""
    for x in operands:
        if is_on_device(x):
            device, format = getattr(x, "device", "opencl"), getattr(x, "format", "an array of pyopencl")
            raise UnsupportedError(
                f"{operation} on {device}\n  got: {format}"
                "\n  supported: what docs/devices.md lists\n  help: to('cpu') moves a tensor to the host"
            )


def is_on_device(obj: Any) -> bool:
    """Whether `obj` is a tensor or array on a device that has an adapter, see `device`."""
    opencl: Any = sys.modules.get("pyopencl.array")
    if buffers.is_torch(obj):
        return bool(obj.is_cuda)
    return hasattr(type(obj), "__openwork_device__") or (opencl is not None and isinstance(obj, opencl.Array))


def _source(obj: Any) -> Tensor | None:
    """The tensor of a sparse matrix of SciPy's or of torch's on the host, which nothing else is asked of; else None."""
    kind = type(obj)
    if kind in _SCIPY:
        return from_scipy(obj, _AS_IT_IS)
    torch: Any = sys.modules.get("torch")
    if torch is None or kind is not getattr(torch, "Tensor", None) or obj.layout is torch.strided or obj.is_cuda:
        return None
    return from_torch(obj, _AS_IT_IS, 0)


def _tensor_of(obj: object, copy: bool | None, fill: Any, format: object) -> Tensor:
    policy = BufferPolicy(copy)
    if type(obj) is np.ndarray:
        return dense_tensor(_check_numbers(obj), policy, fill, obj, format)
    if buffers.is_torch(obj):
        return from_torch(obj, policy, fill)
    if _is_scipy(obj):
        return from_scipy(obj, policy)
    if _is_pydata(obj):
        return from_pydata(obj, policy)
    if is_sparse_pandas(obj):
        return from_pandas(obj, policy)
    if is_networkx(obj):
        return from_networkx(obj, policy)
    if is_arrow(obj):
        return from_arrow(obj, policy)
    if speaks_binsparse(obj):
        return from_binsparse(obj, copy)
    inner = _wrapped_sparse(obj)
    if inner is not None:
        return inner if isinstance(inner, Tensor) else _tensor_of(inner, copy, fill, format)
    return dense_tensor(_dense_array_of(obj), policy, fill, obj, format)


def is_sparse_source(obj: object) -> bool:
    """Whether `obj` is a sparse tensor of SciPy, pydata or pandas, or a labelled or lazy array around one."""
    return _is_scipy(obj) or _is_pydata(obj) or is_sparse_pandas(obj) or _wrapped_sparse(obj) is not None


def is_sparse_pandas(obj: object) -> bool:
    """Whether `obj` is a sparse array, series, index or frame of pandas, which is not imported for it."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None or type(obj).__module__.partition(".")[0] != "pandas":
        return False
    if isinstance(obj, pandas.DataFrame):
        return any(isinstance(d, pandas.SparseDtype) for d in obj.dtypes)
    return isinstance(getattr(obj, "dtype", None), pandas.SparseDtype)


def _wrapped_sparse(obj: Any) -> Any:
    """The sparse array wrapped in another library's object: its `data`, or what its `tocoo()`, `compute()` or
    `to_memory()` gives.

    None where there is none. `__array__` of such an object would be dense.
    """
    cls = type(obj)
    if cls in _NOT_WRAPPERS or isinstance(obj, np.ndarray | np.generic | Sequence) or buffers.is_torch(obj):
        return None
    if hasattr(cls, "__dask_graph__") and _is_sparse(getattr(obj, "_meta", None)):
        return obj.compute()
    if hasattr(cls, "__tensor__"):
        return obj.__tensor__()
    if hasattr(cls, "to_memory") and hasattr(cls, "format"):  # AnnData's datasets that stay in their file
        wrapped = obj.to_memory()
    elif hasattr(cls, "tocoo"):
        wrapped = obj.tocoo()
    else:
        wrapped = getattr(obj, "data", None) if hasattr(cls, "__array__") else None
    return wrapped if wrapped is not obj and _is_sparse(wrapped) else None


_NOT_WRAPPERS = (int, float, complex, bool, list, tuple, Tensor, type(None))


def _is_sparse(obj: object) -> bool:
    return (isinstance(obj, Tensor) and not obj.format.is_dense) or (obj is not None and is_sparse_source(obj))


def _is_pydata(obj: object) -> bool:
    return type(obj).__module__.split(".")[0] == "sparse" and hasattr(obj, "fill_value")


def _is_scipy(obj: object) -> bool:
    module = sys.modules.get("scipy.sparse")
    if module is None or not module.issparse(obj) or hasattr(type(obj), "__tensor__"):
        return False
    if type(obj).__module__.startswith("scipy."):
        _SCIPY.add(type(obj))
    return True


_AS_IT_IS = BufferPolicy(None)
_SCIPY: set[type] = set()
"""SciPy's own types of sparse arrays and matrices met so far."""


def _dense_array_of(obj: Any) -> Array:
    if isinstance(obj, np.ma.MaskedArray):
        refuse_masked(obj)
        return np.asarray(obj)
    if isinstance(obj, np.ndarray):
        return _check_numbers(np.asarray(obj))
    if isinstance(obj, Sequence) and not isinstance(obj, str | bytes):
        _refuse_sparse_items(obj)
    if isinstance(obj, np.generic | int | float | complex | Sequence):
        return _check_numbers(_array_of_lists(obj))
    if hasattr(type(obj), "__dlpack__"):
        if obj.__dlpack_device__()[0] == 1:
            return np.from_dlpack(obj)
        import torch

        return torch.from_dlpack(obj)
    if any(hasattr(type(obj), name) for name in ("__array__", "__array_interface__", "__array_struct__", "__buffer__")):
        return _check_numbers(np.asarray(obj))
    raise UnsupportedError(
        f"asarray: {type(obj).__name__} is not an array\n  supported: lists, numbers, NumPy, SciPy sparse, torch,"
        " pydata COO and GCXS, pandas, objects with __dlpack__ or __array__"
        + ("\n  help: list() of it first" if isinstance(obj, Iterable) else "")
    )


def refuse_masked(obj: Any) -> None:
    """Raise UnsupportedError for a masked array of NumPy's with a masked element: it has no value."""
    if np.ma.is_masked(obj):
        raise UnsupportedError(
            "asarray: a masked array has elements without a value\n  help: give obj.filled(value), or see masked_tensor"
        )


def _array_of_lists(obj: Any) -> np.ndarray[Any, Any]:
    """Nested lists as an array. Raises ShapeError where their lengths differ."""
    try:
        return np.asarray(obj)
    except ValueError as error:
        raise ShapeError(
            f"asarray: nested lists are not an array: {error}\n  help: give lists of equal length"
        ) from error


def _check_numbers(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself; DTypeError for one of objects, text, dates or records."""
    if x.dtype.kind in "OSUMmV" and "bfloat16" not in x.dtype.name:
        what = "objects" if x.dtype == object else f"elements of dtype {x.dtype}"
        is_path = not x.ndim and x.dtype.kind in "SU"
        remedy = "ow.read(path) reads a file" if is_path else "give numbers of one dtype that 64 bits hold"
        raise DTypeError(f"asarray: {what} are not numbers\n  help: {remedy}")
    return x


def _refuse_sparse_items(items: Sequence[Any]) -> None:
    """Raise UnsupportedError for a list of sparse arrays, which NumPy would make dense, or objects of."""
    if not len(items) or isinstance(items[0], int | float | complex | np.generic):
        return
    for x in items if isinstance(items, list | tuple) else ():
        if _is_sparse(x):
            raise UnsupportedError(
                f"asarray: a list of sparse arrays ({type(x).__name__})\n  help: openwork.stack(list) joins them"
            )
        if isinstance(x, list | tuple):
            _refuse_sparse_items(x)
