"""`clip` and `where`: elements limited by others, and elements chosen among two by a condition."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.index import Access, Apply, Literal
from ...provided import provided
from ...runtime.gradient_hook import rule, tracked
from ...runtime.operation import operation
from ...storage.buffers import as_array, buffer_of, is_torch
from ...storage.scalars import given_number
from ...tensor.dtypes import iinfo, isdtype, result_type
from ...tensor.lazy import defer, is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from .blocks import as_operand, as_tensor
from .maps import elementwise
from .pointwise import pointwise

select = provided("masked select", __name__)
nonzero = provided("nonzero", __name__)

__all__ = ["clip", "where"]


@operation(
    method=True,
    torch=("clamp(min = None, max = None)", "clip(min = None, max = None)"),
    masked=provided("masked clip"),
    lazy=True,
    shape="broadcast",
    fill="f(fill)",
)
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """`x` limited to between `min` and `max`, each a scalar, an array that broadcasts, or None for no limit.

    The dtype is that of `x` where the limits are of its kind, as the standard says, else the one that `x` and the
    limits promote to, as NumPy's: integers between floats are floats. An integer beyond those of the dtype of `x`
    limits nothing.

    Parameters
    ----------
    min : the lower limit, None for none
    max : the upper limit, None for none

    Cost: O(nse).
    See also: maximum, minimum.

    Examples
    --------
    >>> ow.clip(ow.asarray([0, 5, -3], format="coo"), -1, 2).to_numpy()
    array([ 0,  2, -1])
    """
    if min is None and max is None:
        return x if is_lazy(x) else as_tensor(x).clone()
    out: Any
    out, *limits = one_library(as_tensor(x), *(None if limit is None else as_operand(limit) for limit in (min, max)))
    limits = [limit if limit is None else _bound_operand(out, limit) for limit in limits]
    out = out.astype(result_type(out, *(limit for limit in limits if limit is not None)), copy=False)
    if not is_lazy(out) and tracked((buffer_of(out),)):
        return rule("clamp")(out, *(limit if limit is None else _limit(limit, out) for limit in limits))
    for op, limit in zip(("max", "min"), limits, strict=True):
        if limit is not None:
            out = elementwise(op, out, _limit(limit, out))
    return out


_PYTHON = (bool, int, float, complex)


def _bound_operand(x: Any, limit: Any) -> Any:
    """A bound of `clip` of rank 0 in the library of the tensor that it bounds, unless torch records it."""
    if is_lazy(x) or type(limit) in _PYTHON or limit.ndim or tracked((buffer_of(limit),)):
        return limit
    if isinstance(limit, np.ndarray | np.generic) and is_torch(x.values):
        return limit.item()
    number = limit.to_dense() if isinstance(limit, Tensor) else limit if is_torch(limit) else np.asarray(limit)
    return as_array(number, like=x.values)


def _limit(limit: Any, x: Tensor) -> Any:
    """A bound of `clip` in the dtype of the tensor that it bounds."""
    if type(limit) is int and isdtype(x.dtype, "integral"):
        bounds = iinfo(x.dtype)
        return builtins.min(builtins.max(limit, bounds.min), bounds.max)
    if isinstance(limit, bool | int | float | complex) and not isinstance(limit, np.generic):
        return limit
    return limit.astype(x.dtype) if isinstance(limit, Tensor | np.ndarray | np.generic) else limit.to(x.dtype)


def _no_choices(x1: Any, x2: Any) -> bool:
    """Whether `where` asks for coordinates. Raises ShapeError where one of two choices is missing."""
    if (x1 is None) is not (x2 is None):
        raise ShapeError("where: either both or neither of x1 and x2 are given\n  help: where(condition, x1, x2)")
    return x1 is None


def _masked_where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    if _no_choices(x1, x2):
        return condition.nonzero()
    return select(condition, x1, x2)


@operation(torch="where", masked=_masked_where, lazy=True, shape="broadcast", fill="f(fill)")
def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """`x1` where `condition` is true, else `x2`, with broadcasting; either may be a Python scalar.

    Without both, where it is true: the coordinates of the elements that are not zero, as `nonzero` gives them.

    Parameters
    ----------
    condition : what decides; an element that is not zero counts as true

    Returns
    -------
    Tensor, dense where all operands are; else by co-iteration, in the format that `pointwise` finds, its
    fill value the choice of the fill values

    Raises ShapeError if the shapes do not broadcast, or one of `x1` and `x2` alone is given.

    Cost: O(nse of all operands); dense O(size).
    See also: clip, nonzero, masked.select.

    Examples
    --------
    >>> A = ow.asarray([0, 5, -3], format="coo")
    >>> ow.where(A > 0, A, 0).to_numpy()
    array([0, 5, 0])
    """
    if _no_choices(x1, x2):
        return nonzero(condition.compute() if is_lazy(condition) else condition)
    if any(map(is_lazy, (condition, x1, x2))):
        return defer("select", "where", where, (condition, x1, x2))
    test = as_tensor(condition)
    choices = [x if isinstance(x, int | float | complex) else as_tensor(x) for x in (x1, x2)]
    if not any(isinstance(x, Tensor) for x in choices):
        choices[0] = as_tensor(choices[0])
    test, *choices = one_library(test, *choices)
    dtype = result_type(*choices)
    if isdtype(dtype, "integral"):
        for x in choices:
            if isinstance(x, int):
                given_number(x, "i64" if x < 0 else "u64", "where", "astype('float64') first")
    choices = [x.astype(dtype, copy=False) if isinstance(x, Tensor) else x for x in choices]
    if all(not isinstance(x, Tensor) or x.format.is_dense for x in (test, *choices)):
        dense = (x.to_dense() if isinstance(x, Tensor) else x for x in (test, *choices))
        return Tensor._from_dense(_select(*dense))

    operands = {"C": test if test._storage.scalar == "bool" else test != 0}
    shown = []
    for name, x in zip("AB", choices, strict=True):
        shown.append(Access(name) if isinstance(x, Tensor) else Literal(x))
        operands |= {name: x} if isinstance(x, Tensor) else {}
    return pointwise(Apply("select", (Access("C"), *shown)), operands)


def _select(condition: Any, x1: Any, x2: Any) -> Any:
    if is_torch(condition):
        import torch

        return torch.where(condition.bool(), x1, x2)
    return np.where(condition, x1, x2)
