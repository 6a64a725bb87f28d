"""Reductions of masked tensors on devices: elements sorted by what is kept, each run of them one specified element.

Nothing is stored of what has no run, so it is missing; the number of elements of a run is its length.
"""

from __future__ import annotations

import math
from typing import Any

from ..compiler.schedule.kept_format import kept_format
from ..errors import DTypeError
from ..format import coo
from ..format.format import Format
from ..ir.types import COMPLEX, FLOATS
from ..ops import mask_formats as forms
from ..ops.reductions.folds import accumulation_type, axes_of
from ..provided import provides
from ..runtime.promote import accumulator, compute_scalar
from ..storage.buffers import scalar_name
from .adapter import Memory
from .conversion import assembled, ordered, reduced_runs, starts_of
from .coordinates import Elements, elements_of
from .elementwise import mapped
from .joins import key_of
from .kernels import Number, each
from .masked import MaskedDeviceTensor, on_masked
from .masked_operations import elements, settled
from .operations import refused
from .tensor import DeviceTensor
from .vector import cast, fill, gather

__all__ = ["reduce"]

_OPERATORS = {"sum": "+=", "prod": "*=", "min": "min=", "max": "max="}
_TRUTHS = {"any": "max", "all": "min"}
"""What combines truths."""
_PLACES = {"argmin": "<", "argmax": ">"}
"""How an element compares with the one whose place is kept."""


class Runs:
    """Elements in runs of equal kept coordinates. starts : of each run, and the end of the last"""

    def __init__(self, values: Memory, run: Memory, starts: Memory, count: int) -> None:
        self.values, self.run, self.starts, self.count = values, run, starts, count

    def over(self, values: Memory) -> Runs:
        """The same runs of other values."""
        return Runs(values, self.run, self.starts, self.count)

    def reduced(self, op: str, scalar: str) -> Memory:
        """A number of each run."""
        return cast(reduced_runs(self.values, self.starts, _OPERATORS[op], compute_scalar(scalar)), scalar)

    def lengths(self) -> Memory:
        """The number of elements of each run."""
        out = self.values.device.memory(self.count, "i64")
        each(out.device, self.count, "y[t] = s[t + 1] - s[t]", {"y": out}, s=self.starts)
        return out

    def mean(self, scalar: str) -> Memory:
        """The mean of each run."""
        return mapped("div", [self.reduced("sum", scalar), cast(self.lengths(), scalar)], scalar)

    def less(self, numbers: Memory) -> Runs:
        """The values less a number of each run."""
        return self.over(mapped("sub", [cast(self.values, numbers.scalar), gather(numbers, self.run)], numbers.scalar))


@provides("device reduce")
def reduce(
    op: str, m: MaskedDeviceTensor, axis: Any = None, keepdims: bool = False, dtype: Any = None,
    correction: float = 0.0, ord: float = 2,
) -> MaskedDeviceTensor:  # fmt: skip
    """A reduction of the specified elements over axes, as the host's `masked.reductions.reduce`."""
    t, axes = m.specified, axes_of(axis, m.ndim)
    if t.scalar in COMPLEX and op in ("var", "std"):
        raise refused(op, (m,), "masked complex numbers")
    over = (0,) if m.is_number else axes
    e, kept = elements_of(t), [d for d in range(t.ndim) if d not in over]
    inner = key_of([e.coordinates[d] for d in over], [t.shape[d] for d in over], e.values.length, e.values, op)
    place = [(inner, math.prod(t.shape[d] for d in over))] if op.startswith("arg") else []
    levels = [*(e.coordinates[d] for d in kept), *(key for key, _ in place)]
    e, found, marks = ordered(e, levels, [*(t.shape[d] for d in kept), *(n for _, n in place)])
    if place:
        inner, runs_of = found[-1], Elements(e.shape, e.coordinates, e.values)
        _, _, marks = ordered(runs_of, found[:-1], [t.shape[d] for d in kept])
    run, starts, count = starts_of(marks)
    runs = Runs(e.values, run, starts, count)
    values = _reduced(op, runs, dtype, correction, ord, inner)
    firsts = Memory(t.adapter, "i64", count, starts.handle)
    coordinates = {d: gather(e.coordinates[d], firsts) for d in kept}
    shape = tuple(1 if d in axes else n for d, n in enumerate(m.shape) if keepdims or d not in axes)
    dims = range(m.ndim) if keepdims else kept
    zero = fill(t.adapter, count, 0, "i64")
    out = Elements(shape, [coordinates.get(d, zero) for d in dims] if shape else [], values)
    if not shape:
        result = settled(out, m.format)
    else:
        result = MaskedDeviceTensor(assembled(out, _format(op, t, tuple(dims), axes if keepdims else ()), 0, True))
    return _everywhere(result) if op == "count" else result


def _format(op: str, t: DeviceTensor, kept: tuple[int, ...], unit: tuple[int, ...]) -> Format:
    """The format of a result: sparse, in levels of the tensor, where the reduction of a Tensor is."""
    target = None if op == "count" or forms.has_bits(t.format) else kept_format(t.format, kept, 0, unit)
    if target is None:
        return forms.strided(len(kept))
    return coo(len(kept)) if target.levels[-1].format.is_dense else target


def _everywhere(m: MaskedDeviceTensor) -> MaskedDeviceTensor:
    """A strided result of which nothing is missing."""
    t = m.specified
    bits = fill(t.adapter, t.memory.length, True, "bool")
    return MaskedDeviceTensor(
        DeviceTensor(t.shape, t.format, 0, t.pos_buffers, (*t.crd_buffers[:-1], bits), t.memory), m.is_number
    )


def _own(scalar: str) -> str:
    """The floating-point type of a result."""
    return scalar if scalar in (*FLOATS, *COMPLEX) else "f64"


def _reduced(op: str, runs: Runs, dtype: Any, correction: float, ord: float, inner: Memory) -> Memory:
    """A number of each run."""
    scalar = runs.values.scalar
    if scalar in COMPLEX and op in ("min", "max", "argmin", "argmax", "logsumexp"):
        raise DTypeError(f"{op} of a complex tensor: complex numbers are not ordered\n  help: take abs() first")
    match op:
        case "count":
            return runs.lengths()
        case "sum" | "prod" | "min" | "max":
            wide = accumulator(scalar, "numpy") if op in ("sum", "prod") else scalar
            return runs.reduced(op, wide if dtype is None else scalar_name(dtype))
        case "any" | "all":
            truth = mapped("ne", [runs.values, Number(0, scalar)], "bool")
            return runs.over(truth).reduced(_TRUTHS[op], "bool")
        case "mean":
            return cast(runs.mean(accumulation_type(scalar)), _own(scalar))
        case "var" | "std":
            away = runs.less(runs.mean("f64"))
            squares = away.over(mapped("mul", [away.values, away.values], "f64")).reduced("sum", "f64")
            out = squares.device.memory(squares.length, "f64")
            body, c = "y[t] = x[t] / max(f64(m[t]) - c, 0.0)", Number(float(correction), "f64")
            each(out.device, out.length, body, {"y": out}, x=squares, m=runs.lengths(), c=c)
            return cast(out if op == "var" else mapped("sqrt", [out], "f64"), _own(scalar))
        case "norm":
            return _norm(runs, scalar, ord)
        case "logsumexp":
            return _logsumexp(runs, _own(scalar))
        case "argmin" | "argmax":
            return _first(runs, inner, _PLACES[op])
    raise refused(f"masked {op}", ())


def _norm(runs: Runs, scalar: str, ord: float) -> Memory:
    real = {"c64": "f32", "c128": "f64"}.get(scalar, scalar)
    own = _own(real)
    sizes = runs.over(mapped("abs", [runs.values], real) if scalar != "bool" else cast(runs.values, "f64"))
    if math.isinf(ord):
        return cast(sizes.reduced("max" if ord > 0 else "min", sizes.values.scalar), own)
    if ord == 0:
        return cast(runs.over(mapped("ne", [runs.values, Number(0, scalar)], "bool")).reduced("sum", "i64"), own)
    wide, power = cast(sizes.values, "f64"), Number(float(ord), "f64")
    powers = (
        wide if ord == 1 else mapped("mul", [wide, wide], "f64") if ord == 2 else mapped("pow", [wide, power], "f64")
    )
    total = sizes.over(powers).reduced("sum", "f64")
    if ord != 1:
        root = Number(1 / ord, "f64")
        total = mapped("sqrt", [total], "f64") if ord == 2 else mapped("pow", [total, root], "f64")
    return cast(total, own)


def _logsumexp(runs: Runs, scalar: str) -> Memory:
    most = runs.over(cast(runs.values, scalar)).reduced("max", scalar)
    each(most.device, most.length, "y[t] = y[t] if isfinite(y[t]) else T_y(0.0)", {"y": most})
    shifted = runs.less(most)
    total = shifted.over(mapped("exp", [shifted.values], scalar)).reduced("sum", scalar)
    return mapped("add", [mapped("log", [total], scalar), most], scalar)


def _first(runs: Runs, inner: Memory, less: str) -> Memory:
    """The place, among the axes, of the first least or largest element of each run."""
    out = runs.values.device.memory(runs.count, "i64")
    body = f"""
at: i64 = s[t]
for q in range(s[t] + 1, s[t + 1]):
    if x[q] {less} x[at]:
        at = q
y[t] = inner[at]
""".strip("\n")
    each(out.device, runs.count, body, {"y": out}, s=runs.starts, x=runs.values, inner=inner)
    return out


def _named(op: str) -> None:
    @on_masked(op)
    def run(m: MaskedDeviceTensor, axis: Any = None, keepdims: bool = False, **options: Any) -> MaskedDeviceTensor:
        if op not in ("sum", "prod") and options.get("dtype") is not None:
            m = m.astype(options.pop("dtype"))
        known = {k: v for k, v in options.items() if v is not None}
        for word in ("ddof", "correction"):
            if word in known and op not in ("var", "std"):
                raise refused(op, (m,), f"{word}=")
        known["correction"] = known.pop("ddof", known.get("correction", 0.0))
        return reduce(op, m, axis, keepdims, **known)


for _name in (*_OPERATORS, *_TRUTHS, *_PLACES, "mean", "var", "std", "logsumexp"):
    _named(_name)


@on_masked("count_nonzero")
def count_nonzero(m: MaskedDeviceTensor, axis: Any = None, keepdims: bool = False) -> MaskedDeviceTensor:
    """How many specified elements are not zero, int64; missing where none is specified."""
    return reduce("sum", elements("not_equal", m, 0), axis, keepdims, "int64")
