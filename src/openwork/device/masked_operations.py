"""Functions of masked tensors on devices: how they are made, functions of elements, moves, products, softmax.

Functions of elements map the values of one structure; where masks differ, sorted coordinates of both are joined.
Products go by the elements' joins, or where operands are dense by the statement, and by that of the pattern.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DTypeError, FormatError, ShapeError, UnsupportedError
from ..format.format import Format
from ..integers import common_shape
from ..ir.index import Access, Apply, Assignment
from ..ops import mask_formats as forms
from ..ops.products.subscripts import parse_subscripts, subscripts_of
from ..ops.result_format import named_family
from ..provided import provided, provides
from ..runtime.formats import dense_format, resolve_format
from ..runtime.operation import block
from ..runtime.semirings import semiring as semiring_of
from ..storage.scalars import python_scalar
from .adapter import Memory
from .conversion import assembled, summed
from .coordinates import Elements, elements_of, stretched
from .elementwise import at_structure, mapped, merged, number
from .indexing import selected
from .joins import key_of, within
from .kernels import Number, each
from .masked import MaskedDeviceTensor, on_masked
from .operations import refused
from .products import product, sparse_product
from .row_statistics import log_softmax, softmax
from .rules import result_of
from .statements import contract
from .tensor import DeviceTensor
from .transfer import array_of
from .vector import chosen, fill, gather, order_of, scan, strided

__all__ = ["elements", "made", "moved", "settled"]

reduce = provided("device reduce", __name__)
HOW = ("equal", "intersection", "union")


# -- structures -----------------------------------------------------------------------------------------------------


def settled(e: Elements, like: Format) -> MaskedDeviceTensor:
    """The masked tensor of elements in the format that suits that of an operand."""
    if not e.shape:
        zero = fill(e.values.device, e.values.length, 0, "i64")
        return MaskedDeviceTensor(assembled(Elements((1,), [zero], e.values), forms.strided(0), 0, True), True)
    rank = len(e.shape)
    try:
        return MaskedDeviceTensor(assembled(e, forms.related(like, rank), 0, True))
    except (FormatError, ShapeError):
        return MaskedDeviceTensor(assembled(e, forms.fitting(named_family(forms.plain(like), rank)), 0, True))


def _elements(m: MaskedDeviceTensor, shape: tuple[int, ...]) -> Elements:
    """The specified elements, stretched to a shape."""
    e = elements_of(m.specified)
    return stretched(Elements((), [], e.values) if m.is_number else e, shape)


def _wide(m: MaskedDeviceTensor, shape: tuple[int, ...]) -> MaskedDeviceTensor:
    return m if m.shape == shape else settled(_elements(m, shape), m.format)


def _strided(values: Memory, bits: Memory, shape: tuple[int, ...]) -> MaskedDeviceTensor:
    """A dense array with its mask."""
    format = forms.strided(len(shape))
    none = (None,) * len(format.levels)
    return MaskedDeviceTensor(
        DeviceTensor(shape or (1,), format, python_scalar(0, values.scalar), none, (*none[1:], bits), values), not shape
    )


@provides("device made")
def made(data: Any, mask: Any) -> MaskedDeviceTensor:
    """The masked tensor of data and mask on a device, both dense or both sparse; of sparse data what it stores."""
    if isinstance(data, MaskedDeviceTensor) and mask is None:
        return data
    there, known = array_of(data), None if mask is None else array_of(mask)
    if there is None or isinstance(mask, MaskedDeviceTensor) or (known is None and mask is not None):
        raise refused("masked_tensor", (data, mask), "data and mask are tensors on one device there")
    if there.is_recorded:
        raise refused("masked_tensor", (there,), "torch records the values, and masked tensors have no gradient there")
    if known is None:
        if there.format.is_dense:
            raise refused("masked_tensor", (there,), "dense data needs a mask")
        whole = summed(there)
        whole = whole.asformat(forms.fitting(whole.format))
        return MaskedDeviceTensor(whole.with_values(whole.memory, 0))
    if known.scalar != "bool":
        raise DTypeError(f"masked_tensor: expected a mask of dtype bool; got {known.dtype}\n  help: mask != 0")
    if there.shape != known.shape:
        raise ShapeError(
            f"masked_tensor: data of shape {there.shape}, mask of shape {known.shape}\n  help: broadcast the mask first"
        )
    if there.format.is_dense and known.format.is_dense:
        dense = dense_format(there.ndim)
        return _strided(there.asformat(dense).memory, known.asformat(dense).memory, there.shape)
    if there.format != known.format:
        raise FormatError(
            f"masked_tensor: data and mask have one format; got {there.format} and {known.format}"
            "\n  help: asformat() on one of them"
        )
    e, given = elements_of(summed(known)), summed(there)
    e = e.at(chosen(e.values))
    held = e.values.device
    keys = [key_of(x.coordinates, x.shape, x.values.length, x.values, "masked_tensor") for x in (e, elements_of(given))]
    stored = gather(keys[1], order_of([(keys[1], given.size)]))
    lacking = scan(within(keys[0], stored, complement=True))[1]
    if lacking:
        raise ValueError(
            f"masked_tensor: the mask specifies elements which the data does not store ({lacking} such)"
            "\n  help: store them in the data, or leave them out of the mask"
        )
    truth = Elements(e.shape, e.coordinates, fill(held, e.values.length, True, "bool"))
    places = assembled(truth, forms.fitting(given.format), False, True)
    return MaskedDeviceTensor(places.with_values(at_structure(places, given), 0))


# -- functions of elements ------------------------------------------------------------------------------------------


@provides("device elements")
def elements(name: str, *operands: Any, how: str = "equal") -> MaskedDeviceTensor:
    """A function of the namespace that is an operation of elements, of masked and other tensors and numbers."""
    op = block(name).op
    if how not in HOW:
        raise UnsupportedError(f"{name}: how={how!r}\n  supported: {', '.join(HOW)}")
    assert op is not None
    rule = result_of(name, *operands)
    shape = common_shape(name, [tuple(getattr(x, "shape", ())) for x in operands])
    masked = [x for x in operands if isinstance(x, MaskedDeviceTensor)]
    if len(masked) > 1 and how != "equal":
        both = [_elements(m, shape) for m in masked]
        return settled(merged(op, (both[0], both[1]), (0, 0), rule.scalar, how), masked[0].format)
    wide = [_wide(x, shape) if isinstance(x, MaskedDeviceTensor) else x for x in operands]
    at = next(k for k, x in enumerate(wide) if isinstance(x, MaskedDeviceTensor))
    if len(masked) > 1:
        wide[0], wide[1] = _alike(name, wide[0], wide[1])
    first = wide[at].specified
    values: list[Memory | Number] = []
    for x in wide:
        if isinstance(x, MaskedDeviceTensor):
            values.append(x.specified.memory)
        elif isinstance(x, DeviceTensor):
            values.append(at_structure(first, x))
        else:
            values.append(number(x, first.scalar))
    return MaskedDeviceTensor(first.with_values(mapped(op, values, rule.scalar), 0), not shape)


def _alike(
    name: str, a: MaskedDeviceTensor, b: MaskedDeviceTensor
) -> tuple[MaskedDeviceTensor, MaskedDeviceTensor]:  # fmt: skip
    """Two masked tensors of one shape over one structure. Raises ShapeError where their masks differ."""
    if _same(a.specified, b.specified):
        return a, b
    a, b = (m.compact() if forms.loose(m.format) else m for m in (a, b))
    b = b if a.format == b.format else MaskedDeviceTensor(b.specified.asformat(a.format), b.is_number)
    if _same(a.specified, b.specified):
        return a, b
    keys = []
    for m in (a, b):
        e = elements_of(m.specified)
        key = key_of(e.coordinates, e.shape, e.values.length, e.values, name)
        keys.append(gather(key, order_of([(key, math.prod(e.shape))])))
    only = [gather(x, chosen(within(x, y, complement=True))) for x, y in (keys, keys[::-1])]
    place, which = min((x.at(0), k) for k, x in enumerate(only) if x.length)
    where = tuple(int(c) for c in np.unravel_index(place, a.specified.shape))
    raise ShapeError(
        f"{name}: the masks differ: element {where} is specified in the {('first', 'second')[which]} operand only"
        '\n  help: how="intersection" or how="union", as in a.add(b, how="union"), or filled(value)'
    )


def _same(a: DeviceTensor, b: DeviceTensor) -> bool:
    """Whether both store their elements in the same places, as far as their buffers tell."""
    if a.shape != b.shape or a.format != b.format or a.memory.length != b.memory.length:
        return False
    for x, y in zip((*a.pos_buffers, *a.crd_buffers), (*b.pos_buffers, *b.crd_buffers), strict=True):
        if x is y or x is None or y is None or x.handle is y.handle:
            continue
        differ = a.adapter.memory(x.length, "i64")
        if x.length != y.length:
            return False
        each(a.adapter, x.length, "d[t] = i64(i64(x[t]) != i64(y[t]))", {"d": differ}, x=x, y=y)
        if scan(differ)[1]:
            return False
    return True


@on_masked("clip")
def clip(m: MaskedDeviceTensor, min: Any = None, max: Any = None) -> MaskedDeviceTensor:
    """The elements, no less than `min` and no more than `max`; None is no limit."""
    out = m if min is None else elements("maximum", m, min)
    return out if max is None else elements("minimum", out, max)


@on_masked("astype")
def astype_of(m: MaskedDeviceTensor, dtype: object, *, copy: bool = True) -> MaskedDeviceTensor:
    """The elements in another dtype."""
    return m.astype(dtype)


# -- moves, products and rows ---------------------------------------------------------------------------------------


@on_masked("permute_dims")
def permuted(m: MaskedDeviceTensor, axes: Any) -> MaskedDeviceTensor:
    """The dimensions in another order, in the same format."""
    return MaskedDeviceTensor(m.specified.transpose(axes).asformat(forms.related(m.format, m.ndim)))


@on_masked("matrix_transpose")
def transposed(m: MaskedDeviceTensor) -> MaskedDeviceTensor:
    """The last two dimensions exchanged."""
    n = m.ndim
    return permuted(m, (*range(n - 2), n - 1, n - 2))


@provides("device moved")
def moved(name: str, m: MaskedDeviceTensor, key: Any) -> MaskedDeviceTensor:
    """`m[key]` with NumPy's keys."""
    if m.is_number:
        raise refused(name, (m,), "a masked tensor of rank 0")
    return settled(selected(m.specified, key)[0], m.format)


@on_masked("softmax")
def softmax_of(m: MaskedDeviceTensor, axis: int = -1) -> MaskedDeviceTensor:
    """Exponentials along an axis, divided by their sum, of specified elements."""
    return MaskedDeviceTensor(softmax(m.specified, axis), m.is_number)


@on_masked("log_softmax")
def log_softmax_of(m: MaskedDeviceTensor, axis: int = -1) -> MaskedDeviceTensor:
    """The logarithm of the softmax."""
    return MaskedDeviceTensor(log_softmax(m.specified, axis), m.is_number)


@on_masked("matmul")
def matmul(a: Any, b: Any) -> MaskedDeviceTensor:
    """The matrix product: sums over pairs that are both specified; stacks where both have the same ones."""
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul: an operand of rank 0\n  help: use *")
    left, right = "j" if a.ndim == 1 else "ij", "j" if b.ndim == 1 else "jk"
    stacks = "abcdefgh"[: max(a.ndim, b.ndim, 2) - 2]
    left = stacks[len(stacks) - max(0, a.ndim - 2) :] + left
    right = stacks[len(stacks) - max(0, b.ndim - 2) :] + right
    output = stacks + ("i" if a.ndim > 1 else "") + ("k" if b.ndim > 1 else "")
    return einsum(f"{left},{right}->{output}", a, b)


@on_masked("einsum")
def einsum(subscripts: Any, *operands: Any, format: object = None, semiring: Any = "plus_times") -> MaskedDeviceTensor:
    """The sums of products that index letters name, of specified elements; missing where none was summed."""
    if not isinstance(subscripts, str):
        subscripts, operands = subscripts_of((subscripts, *operands))
    inputs, output, _ = parse_subscripts(subscripts, tuple(x.ndim for x in operands))
    name, ring = f"einsum {subscripts!r}", semiring_of(semiring)
    masked = [k for k, x in enumerate(operands) if isinstance(x, MaskedDeviceTensor)]
    others = [x for x in operands if not isinstance(x, MaskedDeviceTensor)]
    plain = [x.specified if isinstance(x, MaskedDeviceTensor) else x for x in operands]
    if not all(isinstance(x, DeviceTensor) and x.format.is_dense for x in others) or not all(inputs):
        raise refused(name, operands, "sparse tensors that are not masked, and numbers, beside masked ones")
    like = plain[masked[0]].format
    if len(operands) == 1:
        found = _summed(name, operands[0], inputs[0], output, ring)
        return found if format is None else found.asformat(format)
    if len(masked) == 1 and ring.name == "plus_times":
        found = _beside_dense(name, inputs, output, plain, masked[0])
        if format is None and output and not forms.is_strided(like):
            format = forms.related(like, len(output))
        return found if format is None else found.asformat(format)
    every = [
        x if k in masked else assembled(elements_of(x), resolve_format("coo", x.ndim), 0, True)
        for k, x in enumerate(plain)
    ]
    target = resolve_format("coo", len(output))
    found = settled(elements_of(sparse_product(name, inputs, output, every, target, ring)), like)
    return found if format is None else found.asformat(format)


def _summed(name: str, m: MaskedDeviceTensor, term: str, output: str, ring: Any) -> MaskedDeviceTensor:
    if ring.name != "plus_times" or len(set(term)) < len(term):
        raise refused(name, (m,), "a semiring, or a letter twice, of one operand")
    axes = tuple(k for k, c in enumerate(term) if c not in output)
    found: MaskedDeviceTensor = reduce("sum", m, axes, False, m.dtype) if axes else m
    kept = [c for c in term if c in output]
    order = [kept.index(c) for c in output]
    found = found if order == sorted(order) else found.transpose(order)
    return found.asformat(forms.related(m.format, len(order))) if order else found


def _beside_dense(
    name: str, inputs: tuple[str, ...], output: str, operands: list[DeviceTensor], driver: int
) -> MaskedDeviceTensor:  # fmt: skip
    """The product of one masked tensor and dense ones, and where it has an element of the masked one."""
    t, term = operands[driver], inputs[driver]
    found = product(name, inputs, output, operands)
    found = found if found.format.is_dense else found.asformat("dense")
    kept = "".join(c for c in output if c in term)
    stmt = Assignment(Access("n", tuple(kept)), "+=", Apply("pattern", (Access("A", tuple(term)),)))
    counts = contract(stmt, {"A": t}, "i64")
    extents = dict(zip(term, t.shape, strict=True))
    steps, step = {}, 1
    for c in reversed(kept):
        steps[c], step = step, step * extents[c]
    wide = strided(counts, found.shape, [steps.get(c, 0) for c in output])
    bits = wide.device.memory(wide.length, "bool")
    each(wide.device, wide.length, "y[t] = x[t] > 0", {"y": bits}, x=wide)
    return _strided(found.memory, bits, found.shape)
