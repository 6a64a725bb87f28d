"""Functions of elements on a device: of one tensor on its values, of two by joining their sorted coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.index import Access, Apply, Assignment, Expression
from ..ir.operations import INFIX, OPERATIONS
from ..ir.types import INTEGERS
from ..ir.values import int_range
from ..provided import provided
from ..runtime.operation import block
from ..runtime.promote import compute_scalar, promote, weak
from ..storage.buffers import scalar_name, torch_dtype
from ..storage.scalars import python_scalar
from .adapter import Memory
from .conversion import assembled, ordered, starts_of, summed
from .coordinates import Elements, coordinates, elements_of, stretched
from .joins import bisected, key_of
from .kernels import Number, each
from .operations import by_elements, on_device, refused
from .rules import result_of
from .statements import numbers_of, sample, view_of
from .tensor import DeviceTensor
from .transfer import over
from .vector import cast, chosen, fill, gather, joined, order_of, strided

__all__ = ["apply", "astype", "at_structure", "elementwise", "mapped", "merged", "number"]

recorded_elements = provided("device recorded_elements", __name__)
recorded_product = provided("device recorded_product", __name__)
with_graph = provided("device with_graph", __name__)


def mapped(op: str, operands: list[Memory | Number], scalar: str) -> Memory:
    """An operation of the loop IR on vectors and numbers, element by element, in this type."""
    first = next(x for x in operands if isinstance(x, Memory))
    out = first.device.memory(first.length, scalar)
    compute = _computed_in(op, [x.scalar for x in operands], scalar)
    names = [f"x{k}" for k in range(len(operands))]
    terms = [f"C({n}[t])" if isinstance(x, Memory) else f"C({n})" for n, x in zip(names, operands, strict=True)]
    text = f"{terms[0]} {INFIX[op][0]} {terms[1]}" if op in INFIX else f"{op}({', '.join(terms)})"
    body = f"y[t] = T_y({text})".replace("C(", f"{compute}(")
    each(first.device, first.length, body, {"y": out}, **dict(zip(names, operands, strict=True)))
    return out


def _computed_in(op: str, scalars: list[str], result: str) -> str:
    """The type in which an operation with operands of these types is computed."""
    own = OPERATIONS[op].result != "same" or "own-type" in OPERATIONS[op].traits
    return compute_scalar(promote(tuple(scalars)) if own else result)


def number(x: Any, scalar: str) -> Number:
    """A number of Python's beside values of a type."""
    kind = weak(scalar, x.__class__)
    return Number(python_scalar(x, kind), kind)


@by_elements
def elementwise(name: str, *operands: Any) -> DeviceTensor:
    """A function of the namespace that is an operation of elements, of tensors and numbers."""
    op = block(name).op
    tensors = [x for x in operands if isinstance(x, DeviceTensor)]
    if op not in OPERATIONS or len(operands) != OPERATIONS[op].arity:
        raise refused(name, tensors)
    shapes = {t.shape for t in tensors}
    if len(shapes) > 1:
        return _broadcast(name, op, tensors)
    rule = result_of(name, *operands)
    if any(t.is_recorded for t in tensors) and (len(tensors) == 1 or _same_structure(*tensors)):
        return recorded_elements(name, rule, operands)  # type: ignore[no-any-return]
    if len(tensors) == 1:
        t = tensors[0]
        t = t if rule.format == t.format else summed(t)  # sums are kept by what is linear
        numbers = [t.memory if x is tensors[0] else number(x, t.scalar) for x in operands]
        return t.with_values(mapped(op, numbers, rule.scalar), rule.fill_value)
    if len(tensors) != len(operands):
        raise refused(name, tensors)
    a, b = map(summed, tensors)
    if a.format == b.format and (a.format.is_dense or _same_structure(a, b)):
        return a.with_values(mapped(op, [a.memory, b.memory], rule.scalar), rule.fill_value).asformat(rule.format)
    found = merged(op, (elements_of(a), elements_of(b)), (a.fill_value, b.fill_value), rule.scalar)
    return assembled(found, rule.format, rule.fill_value, True)


@on_device("clip")
def clip(t: DeviceTensor, min: Any = None, max: Any = None) -> DeviceTensor:
    """The elements, no less than `min` and no more than `max`; None is no limit."""
    out = t if min is None else elementwise("maximum", t, _limit(t, min))
    return out if max is None else elementwise("minimum", out, _limit(t, max))


def _limit(t: DeviceTensor, x: Any) -> Any:
    """A limit, a number of Python's as one that the tensor's integers have."""
    if type(x) is not int or t.scalar not in INTEGERS:
        return x
    low, high = int_range(t.scalar)
    return low if x < low else high if x > high else x


def _same_structure(a: DeviceTensor, b: DeviceTensor) -> bool:
    """Whether two tensors share their index buffers."""
    pairs = zip((*a.pos_buffers, *a.crd_buffers), (*b.pos_buffers, *b.crd_buffers), strict=True)
    return a.shape == b.shape and all(x is y or (x and y and x.handle is y.handle) for x, y in pairs)


def _broadcast(name: str, op: str, tensors: list[DeviceTensor]) -> DeviceTensor:
    """A sparse tensor times a dense one that stretches, as sparse; what has a dense result, at all its elements."""
    try:
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
    except ValueError as error:
        shapes = " and ".join(str(t.shape) for t in tensors)
        raise ShapeError(f"{name}: shapes {shapes} do not broadcast\n  help: reshape one of them") from error
    recorded = any(t.is_recorded for t in tensors)
    sparse = [t for t in tensors if not t.format.is_dense or (recorded and t.shape == shape)][:2]
    if op != "mul" or len(sparse) != 1 or sparse[0].shape != shape or sparse[0].fill_value != 0:
        rule = result_of(name, *tensors)
        if not rule.format.is_dense or len(tensors) != 2 or recorded:
            raise refused(name, tensors, f"shapes {' and '.join(str(t.shape) for t in tensors)}")
        return over(mapped(op, [_stretched(t, shape) for t in tensors], rule.scalar), shape)
    t, d = sparse[0], next(x for x in tensors if x is not sparse[0])
    if recorded:
        letters = "abcdefgh"[: t.ndim]
        return recorded_product(name, [letters, letters[t.ndim - d.ndim :]], letters, (t, d))  # type: ignore[no-any-return]
    rule = result_of(name, *tensors)
    return t.with_values(_sampled(t, d, rule.scalar, False), 0).asformat(rule.format)


def _sampled(t: DeviceTensor, d: DeviceTensor, scalar: str, pattern: bool) -> Memory:
    """The elements of a dense tensor that is stretched, at those of another, times these or not."""
    names = tuple(f"i{k}" for k in range(t.ndim))
    view, lead = view_of(d), t.ndim - d.ndim
    own = [k for k in range(d.ndim) if d.shape[k] > 1 or t.shape[lead + k] == 1]
    view = view._replace(shape=tuple(d.shape[k] for k in own), strides=tuple(view.strides[k] for k in own))
    view = view if pattern else numbers_of(view, scalar)
    left: Expression = Access("A", names)
    product = Apply(
        "mul", (Apply("pattern", (left,)) if pattern else left, Access("B", tuple(names[lead + k] for k in own)))
    )
    return sample(Assignment(Access("C", names), "+=", product), {"A": t, "B": view}, scalar)


def at_structure(t: DeviceTensor, d: DeviceTensor) -> Memory:
    """The elements of a tensor, stretched to a shape, in the places of another that has it."""
    if d.format.is_dense:
        return _sampled(t, d, d.scalar, True)
    e, device = stretched(elements_of(summed(d)), t.shape), t.adapter
    key = key_of(e.coordinates, t.shape, e.values.length, e.values, "values")
    order = order_of([(key, math.prod(t.shape))])
    keys, length = gather(key, order), t.memory.length
    wanted = key_of([coordinates(t, k) for k in range(t.ndim)], t.shape, length, e.values, "values")
    out, at = fill(device, length, d.fill_value, d.scalar), bisected(keys, wanted)
    body = "if at[t] < n_keys:\n    if k[at[t]] == w[t]:\n        y[t] = x[order[at[t]]]"
    each(device, length, body, {"y": out}, at=at, k=keys, w=wanted, x=e.values, order=order, n_keys=keys.length)
    return out


def _stretched(t: DeviceTensor, shape: tuple[int, ...]) -> Memory:
    """The elements of a tensor that is stretched to a shape, row-major."""
    view = view_of(t if t.format.is_dense else t.asformat("dense"))
    own = [step if n > 1 else 0 for n, step in zip(view.shape, view.strides, strict=True)]
    return strided(view.memory, shape, [0] * (len(shape) - len(own)) + own)


def merged(
    op: str, both: tuple[Elements, Elements], fills: tuple[Any, Any], scalar: str, how: str | None = None
) -> Elements:  # fmt: skip
    """An operation of two tensors' elements, at those that either has; at those of both where it is 0 elsewhere.

    how : "intersection" of masks: at those of both; "union": what only one has as it is
    """
    left, right = both
    device, n = left.values.device, left.values.length
    places = joined([_numbered(left.values, 0), _numbered(right.values, n)])
    coordinates = [joined([x, y]) for x, y in zip(left.coordinates, right.coordinates, strict=True)]
    every = Elements(left.shape, coordinates, places)
    every, _, marks = ordered(every, every.coordinates, list(left.shape))
    _, starts, count = starts_of(marks)
    x, y = (fill(device, count, value, e.values.scalar) for e, value in zip(both, fills, strict=True))
    ab = {side: fill(device, count, 0, "i64") for side in ("in_a", "in_b")}
    body = """
for q in range(starts[t], starts[t + 1]):
    if place[q] < n_a:
        x[t] = va[place[q]]
        in_a[t] = 1
    else:
        y[t] = vb[place[q] - n_a]
        in_b[t] = 1
""".strip("\n")
    writes = {"x": x, "y": y, **ab}
    each(device, count, body, writes, starts=starts, place=every.values, va=left.values, vb=right.values, n_a=n)
    values = mapped(op, [x, y], scalar)
    if how == "union":
        body = "if in_a[t] + in_b[t] < 2:\n    z[t] = T_z(x[t]) if in_a[t] > 0 else T_z(y[t])"
        each(device, count, body, {"z": values}, x=x, y=y, **ab)
    out = Elements(
        left.shape, [gather(c, Memory(device, "i64", count, starts.handle)) for c in every.coordinates], values
    )  # fmt: skip
    if how == "intersection" or (how is None and op in ("mul", "and", "band")):
        for value, side in zip(fills, ("in_a", "in_b"), strict=True):
            if how == "intersection" or value == 0:
                kept = chosen(ab[side])
                out = out.at(kept)
                ab = {k: gather(v, kept) for k, v in ab.items()}
    return out


def _numbered(x: Memory, first: int) -> Memory:
    out = x.device.memory(x.length, "i64")
    each(x.device, x.length, "y[t] = first + t", {"y": out}, first=first)
    return out


@on_device("astype")
def astype(t: DeviceTensor, dtype: object, *, copy: bool = True) -> DeviceTensor:
    """The tensor with values of another dtype."""
    scalar = scalar_name(dtype)
    if scalar == t.scalar and t.format.is_unique:
        return t
    if t.is_recorded:
        return with_graph(t, t.values.to(torch_dtype(scalar)))  # type: ignore[no-any-return]
    t = t if t.format.is_unique else summed(t)
    return t.with_values(cast(t.memory, scalar), python_scalar(t.fill_value, scalar))


def apply(op: str, t: DeviceTensor, scalar: str, *numbers: int | float) -> DeviceTensor:
    """An operation of the loop IR on a tensor without duplicates; the fill value stays 0."""
    operands: list[Memory | Number] = [t.memory, *(number(x, t.scalar) for x in numbers)]
    return t.with_values(mapped(op, operands, scalar), python_scalar(0, scalar))


@on_device("positive")
def positive(t: DeviceTensor) -> DeviceTensor:
    """The tensor itself."""
    return t


@on_device("conj")
def conj(t: DeviceTensor) -> DeviceTensor:
    """The complex conjugate; a real tensor itself."""
    return t if t.scalar not in ("c64", "c128") else elementwise("conj", t)
