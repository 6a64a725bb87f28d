"""Reductions with NumPy's `where=`, `initial=`, `out=` and `ddof=`: operands and these -> the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...interop.sources import asarray
from ...runtime.operation import namespace
from ...tables import NUMPY
from ...tensor.dtypes import isdtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..axes import axes_of
from ..reductions.roots import root_of

__all__ = ["reduce_by_name", "reduce_masked"]


def reduce_masked(name: str, ufunc: np.ufunc, x: Any, options: dict[str, Any]) -> Any:
    """The reduction `name` of the elements where `where` is true, and of `initial`.

    Raises ShapeError where nothing is left and the operation has no identity, as NumPy does.
    """
    ow = namespace()
    where, initial = options.pop("where", True), options.pop("initial", np._NoValue)
    if initial is np._NoValue and where is True:
        return getattr(ow, name)(x, **options)
    t = x.compute() if is_lazy(x) else asarray(x)
    ufunc_identity = ufunc.identity
    if where is not True:
        if ufunc_identity is None and initial is np._NoValue:
            raise ShapeError(
                f"{name}: where= of an operation without identity\n  help: give initial=, for where nothing is left"
            )
        identity = initial if ufunc_identity is None else ufunc_identity
        t = ow.where(
            where, t, _identity_of_dtype(identity, t) if ufunc_identity is not None else _checked_initial(identity, t)
        )
    if initial is np._NoValue:
        return getattr(ow, name)(t, **options)
    axes = range(t.ndim) if options["axis"] is None else axes_of(options["axis"], t.ndim, name)
    if ufunc_identity is None and any(t.shape[d] == 0 for d in axes):
        keepdims = bool(options.get("keepdims"))
        shape = tuple(1 if d in axes else n for d, n in enumerate(t.shape) if keepdims or d not in axes)
        return ow.full(shape, initial, dtype=t.dtype, format="dense" if shape else None)
    reduced = getattr(ow, name)(t, **options)
    result = getattr(ow, NUMPY.get(ufunc.__name__, ufunc.__name__))(reduced, initial)
    return result if result.dtype == reduced.dtype or ufunc.identity is not None else result.astype(reduced.dtype)


def _identity_of_dtype(value: Any, t: Tensor) -> Any:
    """An identity as a scalar of the tensor's kind: that of sums of bool is False."""
    return bool(value) if t._storage.scalar == "bool" else value


def _checked_initial(value: Any, t: Tensor) -> Any:
    """`initial` in the dtype of the tensor where it fits."""
    value = value.item() if hasattr(value, "item") else value
    if isdtype(t.dtype, "integral") and isinstance(value, float):
        raise DTypeError(f"initial={value} of a tensor of {t.dtype}\n  help: give an integer")
    return value


def is_reduction(name: str) -> bool:
    """Whether an operation of the namespace is a reduction, to which `where=` says what takes part."""
    return name.removeprefix("nan") in _MOMENTS or any(v == name for k, v in NUMPY.items() if k.endswith(".reduce"))


_MOMENTS = ("mean", "var", "std", "sum", "prod", "max", "min")


def reduce_by_name(name: str, x: Any, options: dict[str, Any]) -> Any:
    """NumPy's reduction with `where=` or `initial=`, by its name in the namespace."""
    key = next((key for key, value in NUMPY.items() if value == name and key.endswith(".reduce")), None)
    if key is not None:
        return reduce_masked(name, getattr(np, key.removesuffix(".reduce")), x, options)
    ow, t = namespace(), asarray(x.compute() if is_lazy(x) else x)
    where, initial = options.pop("where", True), options.pop("initial", np._NoValue)
    if name.startswith("nan"):
        base_name = name.removeprefix("nan")
        if not isdtype(t.dtype, ("real floating", "complex floating")):
            return reduce_by_name(base_name, t, options | {"where": where, "initial": initial})
        reduced = getattr(ow, name)(t if where is True else ow.where(where, t, float("nan")), **options)
        if initial is np._NoValue:
            return reduced
        combine = (
            np.fmax
            if base_name == "max"
            else np.fmin
            if base_name == "min"
            else np.add
            if base_name == "sum"
            else np.multiply
        )
        return combine(reduced, initial)
    return _moment(name, t, where, options)


def _moment(name: str, t: Tensor, where: Any, options: dict[str, Any]) -> Any:
    """Mean, variance or standard deviation of the elements where `where` is true; NaN where none is."""
    ow = namespace()
    mask, axis, keepdims = asarray(where), options.get("axis"), options.get("keepdims", False)
    dtype = options.get("dtype", None if isdtype(t.dtype, ("real floating", "complex floating")) else "float64")
    t = t if dtype is None else t.astype(dtype, copy=False)
    count = ow.sum(ow.broadcast_to(mask, t.shape), axis=axis, keepdims=True).astype(t.real.dtype)
    moment = ow.sum(ow.where(mask, t, 0), axis=axis, keepdims=True) / count
    if name != "mean":
        distance = ow.abs(t - moment)
        squares = ow.sum(ow.where(mask, distance * distance, 0), axis=axis, keepdims=True)
        divisor = count - options.get("ddof", options.get("correction", 0))
        moment = squares / ow.where(divisor > 0, divisor, 0.0)
        moment = moment if name == "var" else root_of(moment)
    if keepdims:
        return moment
    return ow.squeeze(moment, axis=tuple(range(t.ndim)) if axis is None else axis)
