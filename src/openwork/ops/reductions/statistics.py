"""Reductions and cumulative functions of the array API standard, 2024.12, by their standard names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...interop.sources import asarray
from ...provided import provided
from ...runtime.operation import operation
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from .explicit import explicit_arg_extreme, explicit_extreme
from .folds import reduce
from .moments import correction_of
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
    fill="reduced",
)
def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum over `axis`, all dimensions without; integers and bool are summed in 64 bits.

    Cost: O(nse).
    See also: mean, prod, cumulative_sum, nansum.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 3]], format="csr")
    >>> int(ow.sum(A)), ow.sum(A, axis=0).to_numpy()
    (6, array([1, 5]))
    """
    return reduce("sum", x if type(x) is Tensor else _operand(x), axis, keepdims, dtype)


@operation(
    method=True,
    places="axis",
    lazy=True,
    numpy="multiply.reduce",
    torch="prod(dim: axis = None, keepdim: keepdims = False, *, dtype = None)",
    masked="reduces",
    shape="reduced",
    dtype="accumulated",
    fill="reduced",
)
def prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product over `axis`; integers and bool are multiplied in 64 bits.

    Cost: O(nse).
    See also: sum, cumulative_prod, nanprod.

    Examples
    --------
    >>> int(ow.prod(ow.asarray([2, 3, 4])))
    24
    """
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
    fill="reduced",
)
def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """The least element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0.

    explicit : of the stored elements only; the fill value where none is

    Cost: O(nse).
    See also: argmin, minimum, nanmin, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, 5], [-7, 0]], format="csr")
    >>> ow.min(A, axis=0).to_numpy()
    array([-7,  0])
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
    fill="reduced",
)
def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """The largest element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0.

    explicit : of the stored elements only; the fill value where none is

    Cost: O(nse).
    See also: argmax, maximum, nanmax, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, 5], [-7, 0]], format="csr")
    >>> ow.max(A, axis=0).to_numpy()
    array([0, 5])
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
    fill="reduced",
)
def mean(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean over `axis`; that of integers is float64 unless `dtype=` is given, that over an extent of 0 is NaN.

    Cost: O(nse).
    See also: sum, nanmean, median, std.

    Examples
    --------
    >>> float(ow.mean(ow.asarray([0, 4.0, 0, 0], format="coo")))
    1.0
    """
    return reduce("mean", _operand(x), axis, keepdims, dtype)


@operation(
    method=True,
    places="axis",
    otherwise="unbiased",
    masked="reduces",
    shape="reduced",
    fill="reduced",
    dtype="real float",
)
def var(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The variance over `axis`: squared distances from the mean, summed and divided by count - `correction`.

    ddof, dtype : NumPy's: `correction` by another name, and what the elements are cast to first

    Cost: O(nse).
    See also: std, mean, nanvar.

    Examples
    --------
    >>> float(ow.var(ow.asarray([0, 4.0], format="coo")))
    4.0
    """
    t = _tensor(x) if dtype is None else _tensor(x).astype(dtype)
    return variance(t, axis, correction_of("var", correction, ddof), keepdims)


@operation(
    method=True,
    places="axis",
    otherwise="unbiased",
    masked="reduces",
    shape="reduced",
    fill="reduced",
    dtype="real float",
)
def std(
    x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation over `axis`: the square root of `var`; `ddof` and `dtype` as there.

    Cost: O(nse).
    See also: var, mean, nanstd.

    Examples
    --------
    >>> float(ow.std(ow.asarray([0, 4.0], format="coo")))
    2.0
    """
    t = _tensor(x) if dtype is None else _tensor(x).astype(dtype)
    return deviation(t, axis, correction_of("std", correction, ddof), keepdims)


@operation(
    method=True,
    places="axis",
    lazy=True,
    numpy="logical_or.reduce",
    torch="any(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="bool",
    fill="reduced",
)
def any(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether any element over `axis` is true; NaN is.

    Cost: O(nse).
    See also: all, count_nonzero.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [0, 0]], format="csr")
    >>> ow.any(A, axis=1).to_numpy()
    array([ True, False])
    """
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
    fill="reduced",
)
def all(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Whether all elements over `axis` are true.

    Cost: O(nse).
    See also: any, count_nonzero.

    Examples
    --------
    >>> A = ow.asarray([[1, 2], [0, 3]], format="csr")
    >>> ow.all(A, axis=1).to_numpy()
    array([ True, False])
    """
    return reduce("all", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    lazy=True,
    masked=provided("masked count_nonzero"),
    shape="reduced",
    dtype="int64",
    fill="reduced",
)
def count_nonzero(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """How many elements over `axis` are not zero, int64.

    Cost: O(nse).
    See also: nonzero, sum.

    Examples
    --------
    >>> int(ow.count_nonzero(ow.asarray([[0, 2], [1, 0]], format="csr")))
    2
    """
    return reduce("count_nonzero", _operand(x), axis, keepdims)


@operation(
    method=True,
    places="axis",
    torch="argmin(dim: axis = None, keepdim: keepdims = False)",
    masked="reduces",
    shape="reduced",
    dtype="int64",
    fill="reduced",
)
def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """Where the least element over `axis` is first, int64; row-major over all elements without an axis.

    explicit : of the stored elements only; 0 where none is

    Cost: O(nse).
    See also: min, argmax, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, -5], [-7, 0]], format="csr")
    >>> int(ow.argmin(A)), ow.argmin(A, axis=1).to_numpy()
    (2, array([1, 0]))
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
    fill="reduced",
)
def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False, explicit: bool = False) -> Any:
    """Where the largest element over `axis` is first, int64; row-major over all elements without an axis.

    explicit : of the stored elements only; 0 where none is

    Cost: O(nse).
    See also: max, argmin, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, 5], [7, 0]], format="csr")
    >>> int(ow.argmax(A)), ow.argmax(A, axis=1).to_numpy()
    (2, array([1, 0]))
    """
    if explicit:
        return explicit_arg_extreme("max", _tensor(x), axis, keepdims)
    return arg_reduce("max", _operand(x), axis, keepdims)


@operation(
    numpy=("cumsum", "add.accumulate"),
    torch="cumsum(dim: axis, *, dtype = None)",
    masked=provided("masked cumulative_sum"),
    dtype="accumulated",
    fill="dense",
)
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running sum along `axis`: a dense tensor; `include_initial` puts a 0 in front.

    Cost: O(size): the result is dense.
    See also: cumulative_prod, diff, sum.

    Examples
    --------
    >>> ow.cumulative_sum(ow.asarray([0, 2, 0, 3], format="coo")).to_numpy()
    array([0, 2, 2, 5])
    """

    return cumulative("sum", _tensor(x), axis, dtype, include_initial)


@operation(
    numpy=("cumprod", "multiply.accumulate"),
    torch="cumprod(dim: axis, *, dtype = None)",
    masked=provided("masked cumulative_prod"),
    dtype="accumulated",
    fill="dense",
)
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running product along `axis`: a dense tensor; `include_initial` puts a 1 in front.

    Cost: O(size): the result is dense.
    See also: cumulative_sum, prod.

    Examples
    --------
    >>> ow.cumulative_prod(ow.asarray([2, 3, 4])).to_numpy()
    array([ 2,  6, 24])
    """

    return cumulative("prod", _tensor(x), axis, dtype, include_initial)
