"""Softmax, logsumexp and variances on a device: numbers of each row by statements, and these at its elements.

    m[i] max= A[i, j];  E = exp(A - m at the elements);  s[i] += E[i, j];  softmax = E / s at the elements

The elements of a row are those along the axes, and a number of a row is at its elements by `C[i, j] = pattern(A[i, j])
* m[i]`, a kernel like that of any other statement.
"""

from __future__ import annotations

import math
from typing import Any

from ..compiler.schedule.kept_format import kept_format
from ..ir.index import Access, Apply, Assignment
from ..ir.types import COMPLEX, FLOATS
from ..ops.reductions.folds import axes_of, check_extents, reduced_shape
from ..ops.reductions.moments import correction_of
from ..provided import provided
from ..storage.buffers import numpy_dtype
from .adapter import Memory
from .conversion import summed
from .coordinates import coordinates, has_gaps
from .elementwise import astype, mapped
from .kernels import Number, each
from .operations import on_device, refused
from .reductions import reduce
from .statements import View, contract, sample
from .tensor import DeviceTensor
from .transfer import over
from .vector import cast

__all__ = ["Rows", "log_softmax", "logsumexp", "softmax", "std", "var"]

recorded_softmax = provided("device recorded_softmax", __name__)


class Rows:
    """A floating-point tensor without duplicates, whose rows are its elements along axes."""

    def __init__(self, name: str, t: DeviceTensor, axis: Any) -> None:
        if t.scalar in COMPLEX:
            raise refused(name, (t,), "complex numbers")
        self.axes = axes_of(axis, t.ndim, lists=False)
        self.t = summed(t if t.scalar in FLOATS else astype(t, "float64"))
        self.names = tuple(f"i{d}" for d in range(t.ndim))
        self.kept = tuple(d for d in range(t.ndim) if d not in self.axes)
        self.count = math.prod(t.shape[d] for d in self.axes)

    def reduced(self, op: str, values: Memory | None = None, scalar: str | None = None) -> Memory:
        """A number of each row, row-major. values : of the elements, instead of the tensor's own"""
        source = self.t if values is None else self.t.with_values(values, 0)
        stmt = Assignment(Access("s", self.left), op, Access("A", self.names))
        return contract(stmt, {"A": source}, scalar or self.t.scalar)

    @property
    def left(self) -> tuple[str, ...]:
        """The names of the dimensions that stay."""
        return tuple(self.names[d] for d in self.kept)

    def at_elements(self, numbers: Memory) -> Memory:
        """The number of its row at each element; 0 in padding."""
        return self.gathered(self.t, numbers, self.names)

    def gathered(self, t: DeviceTensor, numbers: Memory, names: tuple[str, ...]) -> Memory:
        shape = tuple(self.t.shape[d] for d in self.kept)
        strides = tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
        ones = Apply("pattern", (Access("A", names),))
        stmt = Assignment(Access("C", names), "+=", Apply("mul", (ones, Access("D", self.left))))
        return sample(stmt, {"A": t, "D": View(numbers, shape, strides)}, numbers.scalar)

    def missing(self) -> Memory | None:
        """How many elements of each row are not stored; None where all are."""
        if self.t.format.is_dense:
            return None
        stmt = Assignment(Access("s", self.left), "+=", Apply("pattern", (Access("A", self.names),)))
        stored = contract(stmt, {"A": self.t}, "i64")
        out = stored.device.memory(stored.length, "i64")
        each(stored.device, stored.length, "y[t] = count - x[t]", {"y": out}, x=stored, count=self.count)
        return out

    def largest(self) -> Memory:
        """The largest element of each row that is stored; 0 where that is not finite."""
        x = self.reduced("max=")
        out = x.device.memory(x.length, x.scalar)
        each(x.device, x.length, "y[t] = x[t] if isfinite(x[t]) else T_y(0.0)", {"y": out}, x=x)
        return out

    def on_structure(self, values: Memory) -> DeviceTensor:
        """The tensor with other values, and 0 in padding and elsewhere."""
        if has_gaps(self.t):
            at, out = coordinates(self.t, 0), values.device.memory(values.length, values.scalar)
            body = "y[t] = x[t] if at[t] >= 0 else T_y(0.0)"
            each(values.device, values.length, body, {"y": out}, x=values, at=at)
            values = out
        return self.t.with_values(values, 0)

    def result(self, numbers: Memory, keepdims: bool, fill_value: float) -> DeviceTensor:
        """A tensor of a number of each row, in the format of a reduction; of rows without elements the fill value."""
        all_dims = tuple(range(self.t.ndim))
        kept, own = (all_dims, self.axes) if keepdims else (self.kept, ())
        if kept_format(self.t.format, kept, 0, own) is None:
            return over(numbers, reduced_shape(self.t, self.axes, keepdims))  # type: ignore[arg-type]
        structure = reduce("sum", self.t, self.axes, keepdims)
        names = self.names if keepdims else self.left
        fill_value = numpy_dtype(self.t.scalar).type(fill_value).item()
        return structure.with_values(self.gathered(structure, numbers, names), fill_value)


def _exponentials(rows: Rows) -> tuple[Memory, Memory, Memory]:
    """The elements less the largest of their rows, exponentials of these, and their sums at the elements."""
    shifted = mapped("sub", [rows.t.memory, rows.at_elements(rows.largest())], rows.t.scalar)
    e = mapped("exp", [shifted], rows.t.scalar)
    return shifted, e, rows.at_elements(rows.reduced("+=", e))


@on_device("softmax")
def softmax(t: DeviceTensor, axis: int = -1) -> DeviceTensor:
    """Exponentials of the elements along an axis, divided by their sum; only specified elements take part."""
    if t.is_recorded:
        return recorded_softmax(t, axis)  # type: ignore[no-any-return]
    rows = Rows("softmax", t, axis)
    _, e, total = _exponentials(rows)
    return rows.on_structure(mapped("div", [e, total], e.scalar))


@on_device("log_softmax")
def log_softmax(t: DeviceTensor, axis: int = -1) -> DeviceTensor:
    """The logarithm of the softmax, at the specified elements."""
    rows = Rows("log_softmax", t, axis)
    shifted, e, total = _exponentials(rows)
    return rows.on_structure(mapped("sub", [shifted, mapped("log", [total], e.scalar)], e.scalar))


@on_device("logsumexp")
def logsumexp(t: DeviceTensor, axis: Any = None, *, keepdims: bool = False) -> DeviceTensor:
    """The logarithm of the sum of exponentials over axes, unspecified elements included."""
    rows = Rows("logsumexp", t, axis)
    check_extents("logsumexp", t, rows.axes)  # type: ignore[arg-type]
    largest = rows.largest()
    shifted = mapped("sub", [rows.t.memory, rows.at_elements(largest)], largest.scalar)
    total = rows.reduced("+=", rows.on_structure(mapped("exp", [shifted], largest.scalar)).memory)
    out, missing = total.device.memory(total.length, total.scalar), rows.missing()
    reads: dict[str, Any] = {"s": total, "m": largest}
    body = "y[t] = log(s[t]) + m[t]"
    if missing is not None:
        reads |= {"c": missing, "f": Number(t.fill_value, total.scalar)}
        body = "v = s[t] + T_y(c[t]) * exp(f - m[t]) if c[t] > 0 else s[t]\ny[t] = log(v) + m[t]"
    each(total.device, total.length, body, {"y": out}, **reads)
    return rows.result(out, keepdims, float(t.fill_value) + math.log(rows.count) if rows.count else -math.inf)


@on_device("var")
def var(
    t: DeviceTensor, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> DeviceTensor:  # fmt: skip
    """Squared distances from the mean, summed and divided by their number less the correction."""
    return _variance("var", t if dtype is None else astype(t, dtype), axis, correction, keepdims, ddof)


@on_device("std")
def std(
    t: DeviceTensor, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None,
    dtype: Any = None,
) -> DeviceTensor:  # fmt: skip
    """The square root of the variance."""
    found = _variance("std", t if dtype is None else astype(t, dtype), axis, correction, keepdims, ddof)
    return found.with_values(mapped("sqrt", [found.memory], found.scalar), found.fill_value)


def _variance(name: str, t: DeviceTensor, axis: Any, correction: float, keepdims: bool, ddof: Any) -> DeviceTensor:
    rows, correction = Rows(name, t, axis), correction_of(name, correction, ddof)
    check_extents(name, t, rows.axes)  # type: ignore[arg-type]
    scalar, missing, device = rows.t.scalar, rows.missing(), t.adapter
    total = rows.reduced("+=", scalar="f64")
    fill, n = Number(t.fill_value, "f64"), Number(rows.count or math.nan, "f64")
    reads: dict[str, Any] = {} if missing is None else {"c": missing, "f": fill}
    mean, out = device.memory(total.length, "f64"), device.memory(total.length, "f64")
    text = "x[t]" if missing is None else "(x[t] + T_y(c[t]) * f)"
    each(device, total.length, f"y[t] = {text} / whole", {"y": mean}, x=total, whole=n, **reads)
    at, squares = rows.at_elements(mean), device.memory(rows.t.memory.length, "f64")
    each(device, squares.length, "d = T_y(x[t]) - m[t]\ny[t] = d * d", {"y": squares}, x=rows.t.memory, m=at)
    sums = rows.reduced("+=", squares, "f64")
    text = "x[t]" if missing is None else "(x[t] + T_y(c[t]) * (f - m[t]) * (f - m[t]))"
    divisor = max(0.0, rows.count - correction)
    reads |= {} if missing is None else {"m": mean}
    each(device, sums.length, f"y[t] = {text} / d", {"y": out}, x=sums, d=Number(divisor, "f64"), **reads)
    return rows.result(cast(out, scalar), keepdims, 0.0 if divisor else math.nan)
