"""Reductions on a device: dense results by a walk, sparse ones over runs of elements sorted by what is kept."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ..compiler.schedule.kept_format import kept_format
from ..errors import DTypeError
from ..format import coo
from ..format.format import Format
from ..ir.index import Access, Apply, Assignment
from ..ir.types import COMPLEX, FLOATS
from ..ops.reductions.folds import accumulation_type, axes_of, check_extents, reduced_shape
from ..ops.result_format import fits
from ..provided import provided
from ..runtime.promote import accumulator, compute_scalar
from ..storage.buffers import scalar_name
from ..storage.scalars import python_scalar
from .adapter import Memory
from .conversion import assembled, ordered, reduced_runs, starts_of, summed
from .coordinates import Elements, elements_of
from .elementwise import apply, mapped
from .kernels import Number, each
from .operations import on_device, refused
from .statements import contract
from .tensor import DeviceTensor
from .transfer import over
from .vector import cast, fill, gather

__all__ = ["reduce"]

recorded_product = provided("device recorded_product", __name__)
with_graph = provided("device with_graph", __name__)

_OPERATORS = {"sum": "+=", "prod": "*=", "min": "min=", "max": "max="}
_NEUTRAL = {"sum": 0, "prod": 1}


def _named(op: str) -> None:
    @on_device(op)
    def run(t: DeviceTensor, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> DeviceTensor:
        return reduce(op, t, axis, keepdims, dtype)


for _name in (*_OPERATORS, "any", "all", "count_nonzero", "mean"):
    _named(_name)


def reduce(op: str, t: DeviceTensor, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> DeviceTensor:
    """A reduction over axes, as the host's `reduce`."""
    axes = axes_of(axis, t.ndim, lists=False)
    check_extents(op, t, axes)  # type: ignore[arg-type]
    if t.is_recorded and op in ("sum", "mean") and t.fill_value == 0:
        return _recorded_sum(op, t, axes, keepdims)
    t = summed(t)
    if op in ("any", "all", "count_nonzero"):
        t = t if t.scalar == "bool" else _nonzero(t)
        scalar = "i64" if op == "count_nonzero" else "bool"
        base = {"any": "max", "all": "min", "count_nonzero": "sum"}[op]
        return _cast(_reduced(base, t, axes, keepdims, scalar), dtype)
    if op == "mean":
        wide = accumulation_type(t.scalar)
        total = _reduced("sum", t, axes, keepdims, wide)
        count = math.prod(t.shape[a] for a in axes) or math.nan
        scaled = mapped("div", [total.memory, Number(count, "f64")], wide)
        scalar = t.scalar if t.scalar in (*FLOATS, *COMPLEX) else "f64"
        mean = total.with_values(cast(scaled, scalar), python_scalar(total.fill_value / count, scalar))
        return _cast(mean, dtype)
    if t.scalar in COMPLEX and op in ("min", "max"):
        raise DTypeError(f"{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    scalar = accumulator(t.scalar, "numpy") if op in ("sum", "prod") else t.scalar
    if dtype is not None:
        scalar = scalar_name(dtype)
    if t.scalar in COMPLEX and scalar not in COMPLEX:
        raise DTypeError(f"{op}: complex numbers are no {dtype}\n  help: take the real part first")
    return _reduced(op, t, axes, keepdims, scalar)


def _recorded_sum(op: str, t: DeviceTensor, axes: tuple[int, ...], keepdims: bool) -> DeviceTensor:
    """The sum or the mean, a dense result, of a tensor that torch records."""
    letters = "abcdefgh"[: t.ndim]
    kept = tuple(d for d in range(t.ndim) if d not in axes)
    if kept_format(t.format, kept) is not None:
        raise refused(f"gradient of {op}", (t,), "a sparse result")
    total = recorded_product(op, [letters], "".join(letters[d] for d in kept), [t])
    out = over(total.memory, reduced_shape(t, axes, keepdims))  # type: ignore[arg-type]
    scale = 1.0 if op == "sum" else 1.0 / (math.prod(t.shape[a] for a in axes) or math.nan)
    return with_graph(out, total.values * scale)  # type: ignore[no-any-return]


def _cast(t: DeviceTensor, dtype: Any) -> DeviceTensor:
    if dtype is None:
        return t
    scalar = scalar_name(dtype)
    return t.with_values(cast(t.memory, scalar), python_scalar(t.fill_value, scalar))


def _nonzero(t: DeviceTensor) -> DeviceTensor:
    truth = apply("ne", t, "bool", 0)
    return truth.with_values(truth.memory, bool(t.fill_value != 0))


def _reduced(op: str, t: DeviceTensor, axes: tuple[int, ...], keepdims: bool, scalar: str) -> DeviceTensor:
    """A reduction of a tensor without duplicates, by one of the four operators."""
    kept = tuple(d for d in range(t.ndim) if d not in axes)
    target = kept_format(t.format, tuple(range(t.ndim)) if keepdims else kept, 0, axes if keepdims else ())
    shape = reduced_shape(t, axes, keepdims)  # type: ignore[arg-type]
    if target is not None:
        return _by_runs(op, t, axes, target, shape, scalar)
    in_f64 = op == "sum" and not kept and scalar in ("f32", "f16", "bf16")
    wide = "f64" if in_f64 else compute_scalar(scalar)
    out = contract(_statement(_OPERATORS[op], t.ndim, axes, False), {"A": t}, wide)
    n = math.prod(t.shape[a] for a in axes)
    if t.fill_value != _NEUTRAL.get(op) and not t.format.is_dense and n:
        counts = contract(_statement("+=", t.ndim, axes, True), {"A": t}, "i64")
        out = _with_fill(op, out, counts, n, python_scalar(t.fill_value, wide), wide)
    return over(cast(out, scalar), shape)


@lru_cache(maxsize=256)
def _statement(op: str, ndim: int, axes: tuple[int, ...], count: bool) -> Assignment:
    names = tuple(f"i{k}" for k in range(ndim))
    source = Access("A", names)
    kept = tuple(n for k, n in enumerate(names) if k not in axes)
    return Assignment(Access("s", kept), op, Apply("pattern", (source,)) if count else source)


def _with_fill(op: str, x: Memory, counts: Memory, n: int, fill_value: Any, scalar: str) -> Memory:
    """Reductions of stored elements, `counts` of n, with the others, which are the fill value."""
    out = x.device.memory(x.length, scalar)
    part = {"sum": "T_y(n_all - c[t]) * f", "prod": "f", "min": "f", "max": "f"}[op]
    joined = {"sum": "x[t] + {}", "prod": "x[t] * {}", "min": "min(x[t], {})", "max": "max(x[t], {})"}[op].format(part)
    if op == "prod":
        body = "v: T_y = x[t]\nif c[t] < n_all:\n    for k in range(0, n_all - c[t]):\n        v = v * f\ny[t] = v"
        if fill_value == 0:
            body = "y[t] = x[t] * f if c[t] < n_all else x[t]"
    else:
        body = f"y[t] = {joined} if c[t] < n_all else x[t]"
    each(x.device, x.length, body, {"y": out}, x=x, c=counts, n_all=n, f=Number(fill_value, scalar))
    return out


def _by_runs(
    op: str, t: DeviceTensor, axes: tuple[int, ...], target: Format, shape: tuple[int, ...], scalar: str
) -> DeviceTensor:
    """A sparse result: the fibres of which something is stored."""
    e, wide = elements_of(t), compute_scalar(scalar)
    kept = [d for d in range(t.ndim) if d not in axes]
    e, _, marks = ordered(e, [e.coordinates[d] for d in kept], [t.shape[d] for d in kept])
    _, starts, count = starts_of(marks)
    values = reduced_runs(e.values, starts, _OPERATORS[op], wide)
    n = math.prod(t.shape[a] for a in axes)
    stored = t.adapter.memory(count, "i64")
    each(t.adapter, count, "y[t] = s[t + 1] - s[t]", {"y": stored}, s=starts)
    filled = python_scalar(t.fill_value, wide)
    if t.fill_value != _NEUTRAL.get(op):
        values = _with_fill(op, values, stored, n, filled, wide)
    firsts = Memory(t.adapter, "i64", count, starts.handle)
    coordinates = [gather(e.coordinates[d], firsts) for d in kept]
    if len(shape) == t.ndim:
        zero = fill(t.adapter, count, 0, "i64")
        at = dict(zip(kept, coordinates, strict=True))
        coordinates = [at.get(d, zero) for d in range(t.ndim)]
    if not fits(target, shape, count):
        target = coo(len(shape))
    filled = filled if n or op not in ("min", "max") else op == "min"  # `all` and `any` of no elements
    whole: Any = {"sum": filled * n, "prod": filled**n}.get(op, filled)
    return assembled(Elements(shape, coordinates, cast(values, scalar)), target, python_scalar(whole, scalar), True)
