"""Reductions and cumulative functions of the array API standard, 2024.12, by their standard names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...interop.sources import asarray
from ...late import late
from ...runtime.operation import operation
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from .explicit import explicit_arg_extreme, explicit_extreme
from .folds import reduce
from .moments import std as deviation
from .moments import var as variance
from .search import arg_reduce, cumulative

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "max", "mean", "min",
    "prod", "std", "sum", "var",
]  # fmt: skip

Axis = int | Sequence[int] | None


def _operand(x: Any) -> Any:
    """What `reduce` takes: it defers expressions."""
    return x if type(x) is Tensor or is_lazy(x) else asarray(x)


def _tensor(x: Any) -> Tensor:
    return x if type(x) is Tensor else asarray(x)


@operation(
    method=True,
    places="axis",
    lazy=True,
    numpy="add.reduce",
    torch="sum(dim: axis = None, keepdim: keepdims = False, *, dtype = None)",
    masked="reduces",
    shape="reduced",
    dtype="accumulated",
    fill="dense",
)
def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum over `axis`, all dimensions without; integers and bool are summed in 64 bits. See `Tensor.sum`."""
    return reduce("sum", _operand(x), axis, keepdims, dtype)


@operation(
    method=True,
    places="axis",
    lazy=True,
    numpy="multiply.reduce",
    torch="prod(dim: axis = None, keepdim: keepdims = False, *, dtype = None)",
    masked="reduces",
    shape="reduced",
    dtype="accumulated",
    fill="dense",
)
def prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product over `axis`; integers and bool are multiplied in 64 bits."""
    return reduce("prod", _operand(x), axis, keepdims, dtype)


@operation(
    method=True,
    places="axis",
    otherwise="pair",
    numpy=("amin", "minimum.reduce"),
    torch="amin(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    lazy=True,
    shape="reduced",
    dtype="same",
    fill="dense",
)
def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """The least element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0.

    explicit : of the stored elements only; the fill value where none is
    """
    if explicit:
        return explicit_extreme("min", _tensor(x), axis, keepdims)
    return reduce("min", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    otherwise="pair",
    numpy=("amax", "maximum.reduce"),
    torch="amax(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    lazy=True,
    shape="reduced",
    dtype="same",
    fill="dense",
)
def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """The largest element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0.

    explicit : of the stored elements only; the fill value where none is
    """
    if explicit:
        return explicit_extreme("max", _tensor(x), axis, keepdims)
    return reduce("max", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    lazy=True,
    torch="mean(dim: axis = None, keepdim: keepdims = False, *, dtype = None)",
    masked="reduces",
    shape="reduced",
    dtype="float",
    fill="dense",
)
def mean(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean over `axis`; that of integers is float64 unless `dtype=` is given, that over an extent of 0 is NaN."""
    return reduce("mean", _operand(x), axis, keepdims, dtype)


@operation(
    method=True,
    places="axis",
    otherwise="unbiased",
    masked="reduces",
    shape="reduced",
    fill="dense",
    dtype="real float",
)
def var(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The variance over `axis`: squared distances from the mean, summed and divided by count - `correction`.

    ddof, dtype : NumPy's: `correction` by another name, and what the elements are cast to first
    """
    t = _tensor(x) if dtype is None else _tensor(x).astype(dtype)
    return variance(t, axis, correction if ddof is None else ddof, keepdims)


@operation(
    method=True,
    places="axis",
    otherwise="unbiased",
    masked="reduces",
    shape="reduced",
    fill="dense",
    dtype="real float",
)
def std(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation over `axis`: the square root of `var`; `ddof` and `dtype` as there."""
    t = _tensor(x) if dtype is None else _tensor(x).astype(dtype)
    return deviation(t, axis, correction if ddof is None else ddof, keepdims)


@operation(
    method=True,
    places="axis",
    lazy=True,
    numpy="logical_or.reduce",
    torch="any(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="bool",
    fill="dense",
)
def any(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether any element over `axis` is true; NaN is."""
    return reduce("any", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    lazy=True,
    numpy="logical_and.reduce",
    torch="all(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="bool",
    fill="dense",
)
def all(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether all elements over `axis` are true."""
    return reduce("all", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    lazy=True,
    masked=late("masked.namespace", "count_nonzero"),
    shape="reduced",
    dtype="int64",
    fill="dense",
)
def count_nonzero(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """How many elements over `axis` are not zero, int64."""
    return reduce("count_nonzero", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    torch="argmin(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="int64",
    fill="dense",
)
def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """Where the least element over `axis` is first, int64; row-major over all elements without an axis.

    explicit : of the stored elements only; 0 where none is
    """
    if explicit:
        return explicit_arg_extreme("min", _tensor(x), axis, keepdims)
    return arg_reduce("min", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    torch="argmax(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="int64",
    fill="dense",
)
def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """Where the largest element over `axis` is first, int64; row-major over all elements without an axis.

    explicit : of the stored elements only; 0 where none is
    """
    if explicit:
        return explicit_arg_extreme("max", _tensor(x), axis, keepdims)
    return arg_reduce("max", _operand(x), axis, keepdims)


@operation(
    numpy=("cumsum", "add.accumulate"),
    torch="cumsum(dim: axis, *, dtype = None)",
    masked=late("masked.order", "cumulative_sum"),
    dtype="accumulated",
    fill="dense",
)
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running sum along `axis`: a dense tensor; `include_initial` puts a 0 in front."""

    return cumulative("sum", _tensor(x), axis, dtype, include_initial)


@operation(
    numpy=("cumprod", "multiply.accumulate"),
    torch="cumprod(dim: axis, *, dtype = None)",
    masked=late("masked.order", "cumulative_prod"),
    dtype="accumulated",
    fill="dense",
)
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running product along `axis`: a dense tensor; `include_initial` puts a 1 in front."""

    return cumulative("prod", _tensor(x), axis, dtype, include_initial)
