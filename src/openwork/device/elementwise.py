"""Functions of elements on a device: of one tensor on its values, of two by joining their sorted coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.index import Access, Apply, Assignment
from ..ir.operations import INFIX, OPERATIONS
from ..late import late
from ..runtime.operation import block
from ..runtime.promote import compute_scalar, promote, weak
from ..storage.buffers import scalar_name, torch_dtype
from ..storage.scalars import python_scalar
from .adapter import Memory
from .conversion import assembled, ordered, starts_of, summed
from .coordinates import Elements, elements_of
from .kernels import Number, each
from .operations import by_elements, on_device, refused
from .rules import Result, result_of
from .statements import sample, view_of
from .tensor import DeviceTensor
from .transfer import over
from .vector import cast, chosen, fill, gather, joined, strided

__all__ = ["apply", "astype", "elementwise", "mapped"]

recorded_elements = late("device.gradients", "recorded_elements")
recorded_product = late("device.gradients", "recorded_product")
with_graph = late("device.gradients", "with_graph")


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


def _number(x: Any, scalar: str) -> Number:
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
        numbers = [t.memory if x is tensors[0] else _number(x, t.scalar) for x in operands]
        return t.with_values(mapped(op, numbers, rule.scalar), rule.fill_value)
    if len(tensors) != len(operands):
        raise refused(name, tensors)
    a, b = map(summed, tensors)
    if a.format == b.format and (a.format.is_dense or _same_structure(a, b)):
        return a.with_values(mapped(op, [a.memory, b.memory], rule.scalar), rule.fill_value).asformat(rule.format)
    return _merged(op, a, b, rule)


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
    names = tuple(f"i{k}" for k in range(t.ndim))
    view = view_of(d)
    own = [k for k in range(d.ndim) if d.shape[k] > 1 or shape[t.ndim - d.ndim + k] == 1]
    dims = tuple(names[t.ndim - d.ndim + k] for k in own)
    view = view._replace(shape=tuple(d.shape[k] for k in own), strides=tuple(view.strides[k] for k in own))
    product = Apply("mul", (Access("A", names), Access("B", dims)))
    values = sample(Assignment(Access("C", names), "+=", product), {"A": t, "B": view}, rule.scalar)
    return t.with_values(values, 0).asformat(rule.format)


def _stretched(t: DeviceTensor, shape: tuple[int, ...]) -> Memory:
    """The elements of a tensor that is stretched to a shape, row-major."""
    view = view_of(t if t.format.is_dense else t.asformat("dense"))
    own = [step if n > 1 else 0 for n, step in zip(view.shape, view.strides, strict=True)]
    return strided(view.memory, shape, [0] * (len(shape) - len(own)) + own)


def _merged(op: str, a: DeviceTensor, b: DeviceTensor, rule: Result) -> DeviceTensor:
    """An operation of two tensors, at the elements that either stores; at those of both where it is 0 elsewhere."""
    left, right = elements_of(a), elements_of(b)
    device, n = a.adapter, left.values.length
    places = joined([_numbered(left.values, 0), _numbered(right.values, n)])
    coordinates = [joined([x, y]) for x, y in zip(left.coordinates, right.coordinates, strict=True)]
    both = Elements(a.shape, coordinates, places)
    both, _, marks = ordered(both, both.coordinates, list(a.shape))
    _, starts, count = starts_of(marks)
    x, y = fill(device, count, a.fill_value, a.scalar), fill(device, count, b.fill_value, b.scalar)
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
    each(device, count, body, writes, starts=starts, place=both.values, va=left.values, vb=right.values, n_a=n)
    out = Elements(
        a.shape, [gather(c, Memory(device, "i64", count, starts.handle)) for c in both.coordinates],
        mapped(op, [x, y], rule.scalar),
    )  # fmt: skip
    if op in ("mul", "and", "band"):
        for t, side in ((a, "in_a"), (b, "in_b")):
            if t.fill_value == 0:
                kept = chosen(ab["in_a"]) if side == "in_a" else chosen(ab["in_b"])
                out = out.at(kept)
                ab = {k: gather(v, kept) for k, v in ab.items()}
    return assembled(out, rule.format, rule.fill_value, True)


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
    operands: list[Memory | Number] = [t.memory, *(_number(x, t.scalar) for x in numbers)]
    return t.with_values(mapped(op, operands, scalar), python_scalar(0, scalar))


@on_device("positive")
def positive(t: DeviceTensor) -> DeviceTensor:
    """The tensor itself."""
    return t


@on_device("conj")
def conj(t: DeviceTensor) -> DeviceTensor:
    """The complex conjugate; a real tensor itself."""
    return t if t.scalar not in ("c64", "c128") else elementwise("conj", t)
