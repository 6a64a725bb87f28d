"""Expressions to be computed later, some of whose operands are masked -> their values.

    compute(lazy(m) * n + 1)      one kernel over the elements, where m and n are strided with equal masks

Arithmetic of strided operands with one structure is computed as the program of their Tensors, whose result has it too;
its fill value is left out. Costly functions are not: the array library takes all values in vectors, missing ones too,
in less time than a loop that asks for each whether it is there. Of other formats a program would assemble the structure
again, which takes longer than one operation after the other on the values. These, and all other operations, are run as
those of masked tensors; parts without masked operands are programs of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..fusion.program import compute
from ..ir.operations import with_trait
from ..ir.ops import arity
from ..runtime.gradient_hook import tracked
from ..runtime.operation import namespace
from ..storage.storage import Storage
from ..tables import SPOKEN
from ..tensor.lazy import ELEMENTWISE, MATMUL, REDUCE, SELECT, TRANSPOSE, Lazy, is_lazy, leaf
from ..tensor.tensor import Tensor
from . import forms, products
from .elementwise import binary, remade, select, unary
from .structure import same
from .tensor import MaskedTensor, zero

__all__ = ["evaluate"]

_COSTLY = frozenset(with_trait("costly"))


def evaluate(roots: Sequence[Lazy]) -> tuple[Any, ...]:
    """The values of expressions; what they share is computed once."""
    values: dict[int, Any] = {}
    return tuple(_value(root, values) for root in roots)


def _value(x: Any, values: dict[int, Any]) -> Any:
    """The value of a node or an operand."""
    if not is_lazy(x):
        return x
    if x.known:
        return x.compute()
    if id(x) not in values:
        nodes, leaves = _parts(x)
        masked = [v for v in leaves if isinstance(v, MaskedTensor)]
        if not masked:
            values[id(x)] = compute(x)
            return values[id(x)]
        alike = len(nodes) > 1 and len(masked) == len(leaves) and all(map(_is_elementwise, nodes)) and _alike(masked)
        fused = _fused(x, masked[0]) if alike else None
        values[id(x)] = _applied(x, [_value(a, values) for a in x.args]) if fused is None else fused
    return values[id(x)]


def _parts(root: Lazy) -> tuple[list[Lazy], list[Any]]:
    """The operations of an expression, and its operands but for numbers, each once."""
    nodes, leaves, seen, rest = [], [], set[int](), [root]
    while rest:
        x: Any = rest.pop()
        x = x.compute() if is_lazy(x) and x.known else x
        if id(x) in seen:
            continue
        seen.add(id(x))
        if is_lazy(x):
            nodes.append(x)
            rest += x.args
        elif hasattr(x, "shape"):
            leaves.append(x)
    return nodes, leaves


def _alike(masked: Sequence[MaskedTensor]) -> bool:
    """Whether all are strided, of one structure, with values that nothing records."""
    first = masked[0]
    if not forms.is_strided(first.format):
        return False
    stored = [m._tensor._storage for m in masked]
    if tracked(s.values for s in stored) or any(m._scalar != first._scalar for m in masked):
        return False
    return all(s is stored[0] or same(stored[0], s) for s in stored)


def _is_elementwise(x: Lazy) -> bool:
    """Whether an operation is a compiled one of single elements, which takes little time."""
    return x.kind == ELEMENTWISE and arity(x.name) is not None and x.name not in _COSTLY


def _fused(x: Lazy, first: MaskedTensor) -> MaskedTensor | None:
    """An elementwise expression of one structure: the program of the Tensors; None where that gives another one."""
    s: Storage = first._tensor._storage
    result = compute(_of_tensors(x, s, {}))
    if not isinstance(result, Tensor) or not same(s, result._storage):
        return None
    return remade(s, result.values, first._scalar)


def _of_tensors(x: Any, s: Storage, made: dict[int, Any]) -> Any:
    """The expression with the values of each masked operand, in the structure of one of them, in its place."""
    value = x.compute() if is_lazy(x) and x.known else x
    if id(value) not in made:
        if isinstance(value, MaskedTensor):
            held = value._tensor._storage
            made[id(value)] = leaf(Tensor._from_storage(s.with_values(value.values, zero(held.scalar))))
        elif is_lazy(value):
            args = tuple(_of_tensors(a, s, made) for a in value.args)
            made[id(value)] = Lazy(value.kind, value.name, args, value.call, value.options)
        else:
            return value
    return made[id(value)]


def _applied(x: Lazy, args: list[Any]) -> Any:
    """One operation, of masked tensors and others."""
    if not any(isinstance(a, MaskedTensor) for a in args):
        return x.call(*args)
    if x.kind == ELEMENTWISE:
        if arity(x.name) is None:
            return getattr(namespace(), SPOKEN.get(x.name, x.name))(*args)
        return unary(x.name, args[0]) if len(args) == 1 else binary(x.name, *args)
    if x.kind == SELECT:
        return select(*args)
    if x.kind == MATMUL:
        return products.matmul(*args)
    if x.kind == REDUCE:
        _, axis, keepdims, dtype = x.options
        options = {} if dtype is None else {"dtype": dtype}
        return getattr(namespace(), x.name)(args[0], axis=axis, keepdims=keepdims, **options)
    assert x.kind == TRANSPOSE
    return getattr(args[0], x.name) if x.name in ("T", "mT") else args[0].transpose(tuple(x.options) or None)
