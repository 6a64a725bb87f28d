"""Products on a device: statements of one sparse tensor and dense ones, joins of the elements of sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.schedule.kept_format import kept_format
from ..compiler.semiring import Semiring
from ..errors import ShapeError
from ..format.format import Format
from ..ir.index import Access, Apply, Assignment, Expression
from ..ops.products.subscripts import parse_subscripts, subscripts_of
from ..ops.products.tensor_times import mttkrp_subscripts, ttm_letters, ttv_letters
from ..provided import provided
from ..runtime.formats import resolve_format
from ..runtime.promote import promote
from ..runtime.semirings import semiring as semiring_of
from ..storage.scalars import python_scalar
from .adapter import Memory
from .conversion import assembled, ordered, starts_of, summed
from .coordinates import Elements, elements_of
from .hashed_products import hashed_product, takes
from .joins import Labelled, combined, key_of
from .kernels import each
from .operations import on_device, refused
from .reductions import reduce
from .rules import result_of
from .statements import View, contract, numbers_of, sample, view_of
from .tensor import DeviceTensor
from .transfer import over
from .vector import fill, gather, order_of

__all__ = ["einsum", "matmul", "product"]

recorded_product = provided("device recorded_product", __name__)


def product(name: str, inputs: Sequence[str], output: str, operands: Sequence[DeviceTensor]) -> DeviceTensor:
    """The sum of products by letters, of one sparse tensor at most and dense ones."""
    _check(name, inputs, operands)
    sparse = [k for k, x in enumerate(operands) if not x.format.is_dense]
    if any(len(set(term)) < len(term) for term in inputs):
        raise refused(name, operands, "a letter twice in a term")
    if len(sparse) > 1:
        raise refused(name, operands, "several sparse operands beside dense ones")
    driver = sparse[0] if sparse else 0
    t = operands[driver]
    if t.fill_value != 0:
        raise refused(name, operands, f"a fill value of {t.fill_value}")
    if any(x.is_recorded for x in operands):
        return recorded_product(name, inputs, output, operands)  # type: ignore[no-any-return]
    scalar = promote(tuple(x.scalar for x in operands))
    t = summed(t) if scalar == "bool" or t.scalar != scalar else t
    values: dict[str, DeviceTensor | View] = {}
    factors: list[Expression] = []
    for k, (term, x) in enumerate(zip(inputs, operands, strict=True)):
        values[f"T{k}"] = t if k == driver else numbers_of(view_of(x), scalar)
        factors.append(Access(f"T{k}", tuple(term)))
    expression = factors[0]
    for factor in factors[1:]:
        expression = Apply("mul", (expression, factor))
    if sparse and len(operands) > 1 and sorted(output) == sorted(inputs[driver]):
        sampled = Assignment(Access("C", tuple(inputs[driver])), "+=", expression)
        out = summed(t).with_values(sample(sampled, {**values, f"T{driver}": summed(t)}, scalar), 0)
        return out.transpose([inputs[driver].index(c) for c in output])
    stmt = Assignment(Access("y", tuple(output)), "+=", expression)
    extents = {c: n for term, x in zip(inputs, operands, strict=True) for c, n in zip(term, x.shape, strict=True)}
    return over(contract(stmt, values, scalar), tuple(extents[c] for c in output))


def _check(name: str, inputs: Sequence[str], operands: Sequence[DeviceTensor]) -> None:
    """Raise ShapeError where extents disagree."""
    extents: dict[str, int] = {}
    for term, x in zip(inputs, operands, strict=True):
        if not isinstance(x, DeviceTensor):
            tensors = [y for y in operands if isinstance(y, DeviceTensor)]
            raise refused(name, tensors, f"an operand of type {type(x).__name__}, not on the device")
        if len(term) != x.ndim:
            raise ShapeError(f"{name}: {term!r} has {len(term)} letters, its operand {x.ndim} dimensions")
        for c, n in zip(term, x.shape, strict=True):
            if extents.setdefault(c, n) != n:
                shapes = " and ".join(str(x.shape) for x in operands)
                raise ShapeError(
                    f"{name}: index {c} has extents {extents[c]} and {n}, in shapes {shapes}"
                    "\n  help: make these dimensions equal, by slicing or transposing an operand"
                )


def sparse_product(
    name: str, inputs: Sequence[str], output: str, operands: Sequence[DeviceTensor], target: Format,
    ring: Semiring, mask: DeviceTensor | None = None, complement: bool = False,
) -> DeviceTensor:  # fmt: skip
    """The sum of products of two sparse tensors or more over a semiring, two at a time in their order."""
    _check(name, inputs, operands)
    scalar = ring.result(promote(tuple(x.scalar for x in operands)))
    for x in operands:
        if x.fill_value != 0 and x.fill_value != ring.add.identity_of(scalar):
            raise refused(name, operands, f"a fill value of {x.fill_value}")
    if any(len(set(term)) < len(term) for term in inputs):
        raise refused(name, operands, "a letter twice in a term")
    by_rows = (*inputs, output) == ("ij", "jk", "ik") and takes(ring, scalar)
    if by_rows and operands[0].shape[0] and operands[1].size:
        a, b = (summed(x).asformat("csr") for x in operands)
        wanted = None if mask is None else _ordered(mask)
        found = hashed_product(a, b, ring, scalar, wanted, complement)
        return assembled(found, target, python_scalar(ring.add.identity_of(scalar), scalar), True)
    first, *others = (Labelled(term, elements_of(summed(x))) for term, x in zip(inputs, operands, strict=True))
    for k, other in enumerate(others, 1):
        later = set(output).union(*inputs[k + 1 :])
        kept = output
        if k < len(others):
            kept = "".join(c for c in dict.fromkeys(first.letters + other.letters) if c in later)
        last = k == len(others)
        wanted_keys = None if mask is None or not last else (_keys_of(mask, name), complement)
        first = Labelled(kept, combined(first, other, kept, ring, scalar, wanted_keys, name))
    return assembled(first.elements, target, python_scalar(ring.add.identity_of(scalar), scalar), True)


def _ordered(mask: DeviceTensor) -> DeviceTensor:
    """The elements that a mask specifies, whatever their values, in CSR."""
    mask, target = summed(mask.detach()), resolve_format("csr", 2)
    return mask if mask.format == target else assembled(elements_of(mask), target, 0, True)


def _keys_of(mask: DeviceTensor, name: str) -> Memory:
    """The coordinates that a mask specifies as numbers, in order."""
    e, (m, n) = elements_of(mask), mask.shape
    key = key_of(e.coordinates, mask.shape, e.values.length, e.values, name)
    return gather(key, order_of([(key, m * n)]))


@on_device("spgemm")
def spgemm(
    a: DeviceTensor, b: DeviceTensor, *, semiring: str | Semiring = "plus_times", mask: DeviceTensor | None = None,
    complement: bool = False, format: object = None,
) -> DeviceTensor:  # fmt: skip
    """The product of two sparse matrices over a semiring, at the elements of a mask where there is one."""
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(f"spgemm: matrices of shapes {a.shape} and {b.shape}\n  expected: (m, k) and (k, n)")
    _check("spgemm", ("ij", "jk"), (a, b))
    target = result_of("spgemm", a, b).format if format is None else resolve_format(format, 2)
    if mask is not None and mask.shape != (a.shape[0], b.shape[1]):
        shape = (a.shape[0], b.shape[1])
        raise ShapeError(f"spgemm: expected a mask of shape {shape}, got {mask.shape}\n  help: slice it")
    return sparse_product("spgemm", ("ij", "jk"), "ik", (a, b), target, semiring_of(semiring), mask, complement)


@on_device("matmul")
def matmul(a: DeviceTensor, b: DeviceTensor) -> DeviceTensor:
    """The matrix product; stacks where both have the same ones."""
    if not isinstance(a, DeviceTensor) or not isinstance(b, DeviceTensor):
        raise refused("matmul", [x for x in (a, b) if isinstance(x, DeviceTensor)], "a number has no matrix product")
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul: a scalar has no matrix product\n  help: multiply with *")
    left, right = "j" if a.ndim == 1 else "ij", "j" if b.ndim == 1 else "jk"
    stacks = "abcdefgh"[: max(a.ndim, b.ndim, 2) - 2]
    left = stacks[len(stacks) - max(0, a.ndim - 2) :] + left
    right = stacks[len(stacks) - max(0, b.ndim - 2) :] + right
    output = stacks + ("i" if a.ndim > 1 else "") + ("k" if b.ndim > 1 else "")
    if not a.format.is_dense and not b.format.is_dense:
        target = result_of("matmul", a, b).format
        return sparse_product("matmul", (left, right), output, (a, b), target, semiring_of("plus_times"))
    return product("matmul", (left, right), output, (a, b))


@on_device("einsum")
def einsum(
    subscripts: Any, *operands: Any, format: object = None, semiring: str | Semiring = "plus_times"
) -> DeviceTensor:
    """Sums of products by index letters: of one sparse tensor and dense ones, or of sparse ones over a semiring."""
    if not isinstance(subscripts, str):
        subscripts, operands = subscripts_of((subscripts, *operands))
    inputs, output, _ = parse_subscripts(subscripts, tuple(x.ndim for x in operands))
    ring = semiring_of(semiring)
    if len(operands) > 1 and not any(x.format.is_dense for x in operands):
        text = f"{','.join(inputs)}->{output}"
        target = result_of("einsum", text, *operands).format if format is None else resolve_format(format, len(output))
        return sparse_product(f"einsum {subscripts!r}", inputs, output, operands, target, ring)
    if ring.name != "plus_times" or format is not None:
        raise refused(f"einsum {subscripts!r}", operands, "a semiring, or format=, beside dense operands")
    is_sparse = len(operands) == 1 and not operands[0].format.is_dense and len(set(inputs[0])) == len(inputs[0])
    if is_sparse and sorted(output) == sorted(inputs[0]) and not operands[0].fill_value:
        moved: DeviceTensor = operands[0].transpose([inputs[0].index(c) for c in output])
        return moved.asformat(result_of("einsum", f"{inputs[0]}->{output}", *operands).format)
    if is_sparse and set(output) < set(inputs[0]):
        t = operands[0]
        reduced = reduce("sum", t, tuple(k for k, c in enumerate(inputs[0]) if c not in output), dtype=t.dtype)
        kept = [c for c in inputs[0] if c in output]
        return reduced.transpose([kept.index(c) for c in output])
    return product(f"einsum {subscripts!r}", inputs, output, operands)


@on_device("sddmm")
def sddmm(mask: DeviceTensor, a: DeviceTensor, b: DeviceTensor) -> DeviceTensor:
    """`a @ b` at the elements that a mask specifies."""
    _check("sddmm", ("ij", "ik", "kj"), (mask, a, b))
    if not (a.format.is_dense and b.format.is_dense):
        raise refused("sddmm", (mask, a, b), "dense factors run there")
    mask = mask.detach() if mask.format.is_unique else mask.detach().coalesce()
    if a.is_recorded or b.is_recorded:
        ones = mask.with_values(fill(mask.adapter, mask.memory.length, 1, a.scalar), 0)
        return product("sddmm", ("ij", "ik", "kj"), "ij", (ones, a, b))
    pattern = Apply("pattern", (Access("M", ("i", "j")),))
    factors = Apply("mul", (Access("A", ("i", "k")), Access("B", ("k", "j"))))
    stmt = Assignment(Access("C", ("i", "j")), "+=", Apply("mul", (pattern, factors)))
    values = sample(stmt, {"M": mask, "A": view_of(a), "B": view_of(b)}, promote((a.scalar, b.scalar)))
    return mask.with_values(values, 0)


@on_device("mttkrp")
def mttkrp(t: DeviceTensor, factors: list[Any], dim: int) -> DeviceTensor:
    """Matricised tensor times Khatri-Rao product."""
    text, others = mttkrp_subscripts(t.ndim, dim)
    left, _, output = text.partition("->")
    return product("mttkrp", left.split(","), output, (t, *(factors[k] for k in others)))


@on_device("ttv")
def ttv(t: DeviceTensor, v: DeviceTensor, dim: int) -> DeviceTensor:
    """Tensor times vector over a dimension."""
    letters, letter, output = ttv_letters(t.ndim, dim)
    kept = tuple(letters.index(c) for c in output)
    if t.format.is_dense or kept_format(t.format, kept) is None:
        return product("ttv", (letters, letter), output, (t, v))
    scaled = product("ttv", (letters, letter), letters, (t, v))
    return reduce("sum", scaled, letters.index(letter), dtype=scaled.dtype)


@on_device("ttm")
def ttm(t: DeviceTensor, m: DeviceTensor, dim: int) -> DeviceTensor:
    """Tensor times matrix over a dimension, which the matrix's columns replace."""
    letters, pair, output = ttm_letters(t.ndim, dim)
    _check("ttm", (letters, pair), (t, m))
    d = letters.index(pair[0])
    kept = [k for k in range(t.ndim) if k != d]
    target = kept_format(t.format, tuple(kept), 1)
    if t.format.is_dense or target is None:
        return product("ttm", (letters, pair), output, (t, m))
    if t.fill_value != 0:
        raise refused("ttm", (t, m), f"a fill value of {t.fill_value}")
    e = elements_of(t)
    e, _, marks = ordered(e, [e.coordinates[k] for k in kept], [t.shape[k] for k in kept])
    _, starts, count = starts_of(marks)
    scalar, width, device = promote((t.scalar, m.scalar)), m.shape[1], t.adapter
    crd, values = e.coordinates[d], e.values
    by_rows = resolve_format("csr(unordered)", 2)
    rows = DeviceTensor((count, t.shape[d]), by_rows, 0, (None, starts), (None, crd), values)
    dense = product("ttm", ("ij", "jz"), "iz", (rows, m)) if count else None
    at, z = device.memory(count * width, "i64"), device.memory(count * width, "i64")
    body = "at[t] = starts[t // width]\nz[t] = t % width"
    each(device, count * width, body, {"at": at, "z": z}, starts=starts, width=width)
    flat = device.memory(0, scalar) if dense is None else dense.memory
    shape = (*(t.shape[k] for k in kept), width)
    elements = Elements(shape, [*(gather(e.coordinates[k], at) for k in kept), z], flat)
    out = assembled(elements, target, 0, True)
    order = list(range(t.ndim - 1))
    order.insert(d, t.ndim - 1)
    return out.transpose(order)
