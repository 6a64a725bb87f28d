"""NumPy's functions whose arguments or defaults differ from the array API's, and its comparisons of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...integers import common_shape, integer
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...storage.buffers import numpy_dtype
from ...tensor.dtypes import isdtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from .. import sorting
from ..axes import axes_of
from .registry import numpy_function
from .results import store

__all__: list[str] = []


def _operand_and_axis(a: Any, axis: Any) -> tuple[Tensor, Any]:
    """The operand and the axis; of `axis=None` all elements in row-major order."""
    t = asarray(a)
    if axis is None or not t.ndim:
        return namespace().reshape(t, (-1,)), 0
    return t, axis


@numpy_function("sort")
def sort(a: Any, axis: Any = -1) -> Any:
    """A sorted copy along an axis, of all elements for None."""
    t, axis = _operand_and_axis(a, axis)
    return namespace().sort(t, axis=axis)


@numpy_function("argsort")
def argsort(a: Any, axis: Any = -1) -> Any:
    """The indices that sort along an axis, all elements for None."""
    t, axis = _operand_and_axis(a, axis)
    return namespace().argsort(t, axis=axis)


@numpy_function("partition")
def partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    """A copy with the elements of the places `kth` where sorting puts them, those before and behind on their sides."""
    t, axis = _operand_and_axis(a, axis)
    return sorting.partition(t, _ranks(kth, t, axis), axis=axis)


@numpy_function("argpartition")
def argpartition(a: Any, kth: Any, axis: Any = -1) -> Any:
    """The indices that `partition` moves elements by."""
    t, axis = _operand_and_axis(a, axis)
    return sorting.argpartition(t, _ranks(kth, t, axis), axis=axis)


def _ranks(kth: Any, t: Tensor, axis: Any) -> list[int]:
    """Places along an axis, negative ones counted from its end. Raises ValueError beyond it, as NumPy does."""
    n = t.shape[axes_of(axis, t.ndim, "partition")[0]]
    ranks = [integer(k, "partition", "kth") for k in np.asarray(kth).reshape(-1).tolist()]
    if any(not -n <= k < n for k in ranks):
        raise ValueError(f"partition: kth={kth} of an extent of {n}\n  help: give places below it")
    return [k % n for k in ranks]


@numpy_function("cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The running sum along an axis, of all elements without."""
    t, axis = _operand_and_axis(a, axis)
    return namespace().cumulative_sum(t, axis=axis, dtype=dtype)


@numpy_function("cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The running product along an axis, of all elements without."""
    t, axis = _operand_and_axis(a, axis)
    return namespace().cumulative_prod(t, axis=axis, dtype=dtype)


@numpy_function("can_cast")
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether values of a dtype may be those of another by NumPy's rule; a Tensor stands for its dtype."""
    given, target = (numpy_dtype(x._storage.scalar) if isinstance(x, Tensor) else x for x in (from_, to))
    return np.can_cast(given, target, casting)  # type: ignore[arg-type]


@numpy_function("einsum")
def einsum(*operands: Any, optimize: Any = False, dtype: Any = None, casting: str = "safe", **options: Any) -> Any:
    """NumPy's `einsum`; the order of contraction is found here, whatever `optimize` says."""
    options.pop("order", None)
    result = namespace().einsum(*operands, **options)
    return result if dtype is None else result.astype(dtype)


@numpy_function("rint")
def rint(x: Any) -> Any:
    """The nearest integer, in a floating dtype."""
    ow = namespace()
    if isinstance(x, Tensor) and not isdtype(x.dtype, ("real floating", "complex floating")):
        x = x.astype(np.result_type(np.rint(np.zeros(1, x.dtype))))
    return ow.round(x)


@numpy_function("shape")
def shape(a: Any) -> tuple[int, ...]:
    """The extents."""
    return tuple(a.shape)


@numpy_function("ndim")
def ndim(a: Any) -> int:
    """The number of dimensions."""
    return len(a.shape)


@numpy_function("size")
def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along axes."""
    if axis is None:
        return int(a.size)
    return int(np.prod([a.shape[d] for d in axes_of(axis, len(a.shape), "size")], dtype=np.int64))


@numpy_function("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether shapes and elements are the same."""
    ow = namespace()
    a, b = asarray(a1), asarray(a2)
    if a.shape != b.shape:
        return False
    same = a == b
    return bool((same | (ow.isnan(a) & ow.isnan(b)) if equal_nan else same).all())


@numpy_function("array_equiv")
def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether the elements are the same once the shapes are broadcast."""
    a, b = asarray(a1), asarray(a2)
    try:
        common_shape("array_equiv", (a.shape, b.shape))
    except ValueError:
        return False
    return bool((a == b).all())


@numpy_function("allclose")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(namespace().isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan).all())


@numpy_function("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return bool(isdtype(asarray(x).dtype, "complex floating"))


@numpy_function("isrealobj")
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


@numpy_function("copyto")
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """The elements of `src` in `dst`, in place; the two share no values."""
    shared = hasattr(src, "dtype") and not is_lazy(src) and not isinstance(dst, np.ndarray)
    store("copyto", asarray(src, copy=True) if shared else src, dst, casting, where)
