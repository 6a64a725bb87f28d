"""A lazy node -> the Meta of its result (shape, dtype, format, fill value), None where not known: shape inference.

A Meta is not known where it depends on stored elements, or where the operation will refuse its operands: such a node
is run by itself, and raises its own errors. A Meta follows from types: there is one of each, and it holds no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..classes import frozen
from ..codegen.plan_cache import PlanCache
from ..compiler.schedule.kept_format import kept_format
from ..errors import DTypeError, ShapeError, UnsupportedError
from ..format import coo
from ..format import format as parse
from ..format.format import Format
from ..integers import common_shape
from ..ir.index import Access, Apply, Expression, Literal
from ..ir.ops import arity
from ..ops.reductions.folds import axes_of
from ..provided import provides
from ..runtime.coiterate.plan import kept_plan, plan_merge
from ..runtime.contraction.sparse import result_format
from ..runtime.operation import block
from ..runtime.promote import promote
from ..runtime.result_rules import result_scalar
from ..runtime.values import apply, apply_scalar
from ..storage.buffers import dtype_of, empty, is_array, is_torch, library_of, scalar_name, scalar_of
from ..storage.storage import Storage
from ..tensor.expression_graph import ELEMENTWISE, MATMUL, REDUCE, SELECT, TRANSPOSE, Graph, Node

__all__ = ["Meta", "meta_of", "metas_of", "of_value"]

_TYPES: PlanCache[Any, Meta] = PlanCache("types of lazy operands")
"""By shape, format, scalar type, fill value and library."""
_RESULTS: PlanCache[Any, Any] = PlanCache("types of lazy results")
"""By operation and types of its operands; of operations with numbers there would be one for each number."""

_EMPTY = {"numpy": np.empty(0)}


@frozen(eq=False)
class Meta:
    """A node's abstract value: a Tensor where there is a storage, without buffers, else an array or a number."""

    shape: tuple[int, ...]
    scalar: str
    library: str
    storage: Storage | None = None
    number: Any = None

    @property
    def is_sparse(self) -> bool:
        """Whether a Tensor of a format that is not dense."""
        return self.storage is not None and not self.storage.format.is_dense

    @property
    def is_tensor(self) -> bool:
        return self.storage is not None

    @property
    def kind(self) -> tuple[Any, ...]:
        """All but the shape, the key of plans; -0.0 and NaN are distinct fill values."""
        s = self.storage
        return self.scalar, self.library, None if s is None else (s.format.number, repr(s.fill_value))

    @property
    def like(self) -> Any:
        """An empty array of this type."""
        return empty(0, self.scalar, _like(self.library))

    @property
    def dtype(self) -> Any:
        return dtype_of(self.scalar, _like(self.library))


def _like(library: str) -> Any:
    if library == "numpy":
        return _EMPTY["numpy"]
    import torch

    return torch.empty(0)


@provides("meta_of")
def meta_of(x: Any) -> Meta | None:
    """The Meta of a node or an operand; nodes keep theirs."""
    if not isinstance(x, Node) or x.known:
        return of_value(x._value if isinstance(x, Node) else x)
    stack = [x]
    while stack:
        node = stack[-1]
        waiting = [a for a in node.args if isinstance(a, Node) and not a.known and a._type is None]
        if node._type is None and waiting:
            stack += waiting
            continue
        stack.pop()
        if node._type is None:
            node._type = _of_operation(node, [_kept(a) for a in node.args]) or _UNKNOWN
    return _kept(x)


_UNKNOWN = object()


def _kept(x: Any) -> Meta | None:
    """The Meta of an operand, that a node keeps."""
    if isinstance(x, Node) and not x.known:
        return None if x._type is _UNKNOWN else x._type
    return of_value(x._value if isinstance(x, Node) else x)


def metas_of(graph: Graph) -> list[Meta | None]:
    """The Meta of every operation and operand, at its number."""
    operands = [of_value(x) for x in graph.operands]
    metas: list[Meta | None] = []
    for node, args in zip(graph.nodes, graph.args, strict=True):
        metas.append(_of_operation(node, [metas[k] if k >= 0 else operands[-1 - k] for k in args]))
    return metas + operands[::-1]


def of_value(x: Any) -> Meta | None:
    """The Meta of a Tensor, array or number."""
    s = getattr(x, "_storage", None)
    if s is not None:
        return _tensor_meta(s.shape, s.format, s.scalar, s.fill_value, s.library)
    if type(x) in (bool, int, float, complex):
        return Meta((), {bool: "bool", int: "i64", float: "f64", complex: "c128"}[type(x)], "numpy", None, x)
    if is_array(x) and x.ndim and (not is_torch(x) or x.device.type == "cpu"):
        try:
            return _array_meta(tuple(x.shape), scalar_of(x), library_of(x))
        except DTypeError:
            return None
    return None


def _of_operation(node: Node, args: list[Meta | None]) -> Meta | None:
    """The Meta of an operation on operands of these."""
    rule = _RULES.get(node.kind)
    if rule is None or any(a is None for a in args):
        return None
    key = (node.kind, node.name, node.options and repr(node.options), *args)
    meta = _RESULTS.get(key)
    if meta is None:
        try:
            meta = rule(node, *args)
        except (DTypeError, ShapeError, UnsupportedError, OverflowError, ValueError):
            meta = None
        if all(a is not None and a.number is None for a in args):
            _RESULTS.keep(key, _UNKNOWN if meta is None else meta)
    return None if meta is _UNKNOWN else meta


def _tensor_meta(shape: tuple[int, ...], format: Format, scalar: str, fill: Any, library: str) -> Meta:
    key = (shape, format, scalar, fill if fill and fill == fill else repr(fill), library)
    meta = _TYPES.get(key)
    if meta is None:
        no_buffers = (None,) * format.nlevels
        storage = Storage(shape, format, scalar, fill, no_buffers, no_buffers, empty(0, scalar, _like(library)))
        meta = _TYPES.keep(key, Meta(shape, scalar, library, storage))
    return meta


def _array_meta(shape: tuple[int, ...], scalar: str, library: str) -> Meta:
    key = (shape, scalar, library)
    return _TYPES.get(key) or _TYPES.keep(key, Meta(shape, scalar, library))


def _dense_meta(shape: tuple[int, ...], scalar: str, library: str, tensor: bool) -> Meta:
    return (
        _tensor_meta(shape, parse("dense", len(shape)), scalar, 0, library)
        if tensor
        else _array_meta(shape, scalar, library)
    )


def _map_meta(m: Meta, linear: bool, visit: Callable[[Any], Any], scalar: str) -> Meta:
    """The Meta of a map of stored elements and fill value; duplicates are summed first unless it is linear."""
    s = m.storage
    assert s is not None
    format = s.format if linear or s.format.is_unique else coo(s.format.ndim, dense=s.format.dense_ndim)
    return _tensor_meta(m.shape, format, scalar, visit((s.fill_value,)), m.library)


# -- elementwise -------------------------------------------------------------------------------------------------------


def _elementwise_meta(node: Node, *args: Meta) -> Meta | None:
    op = node.name
    if arity(op) != len(args):
        return None
    return _unary_meta(op, args[0]) if len(args) == 1 else _binary_meta(op, *args)


def _unary_meta(op: str, m: Meta) -> Meta | None:
    scalar = scalar_of(apply(op, m.like))
    s = m.storage
    if s is None:
        return _array_meta(m.shape, scalar, m.library)
    linear = op in ("neg", "real", "imag", "conj") and not s.fill_value
    return _map_meta(m, linear, lambda fill: apply_scalar(op, m.like, fill), scalar)


def _binary_meta(op: str, a: Meta, b: Meta) -> Meta | None:
    if a.number is not None and b.number is not None:
        return None
    if a.number is not None or b.number is not None:
        return _scalar_meta(op, a, b)
    if a.library != b.library:
        return None
    if a.is_sparse and b.is_sparse:
        return _merge_meta(Apply(op, (Access("A"), Access("B"))), {"A": a, "B": b})
    shape = common_shape(op, (a.shape, b.shape))
    scalar = scalar_of(apply(op, a.like, b.like))
    dense = _dense_meta(shape, scalar, a.library, a.is_tensor and b.is_tensor)
    if not a.is_sparse and not b.is_sparse:
        return dense
    m = a if a.is_sparse else b
    assert m.storage is not None
    if shape != m.shape:
        return None
    if m.storage.fill_value or not (op == "mul" or (op in ("div", "floordiv", "mod") and m is a)):
        return dense
    return _map_meta(m, op in ("mul", "div") and m is a, lambda _: 0, scalar)


def _scalar_meta(op: str, a: Meta, b: Meta) -> Meta:
    m, left = (a, True) if b.number is not None else (b, False)
    args = (m.like, b.number) if left else (a.number, m.like)
    scalar = scalar_of(apply(op, *args))
    if m.storage is None:
        return _array_meta(m.shape, scalar, m.library)
    linear = not m.storage.fill_value and (op == "mul" or (op == "div" and left))
    number = b.number if left else a.number

    def visit(fill: Any) -> Any:
        return apply_scalar(op, m.like, *((fill, number) if left else (number, fill)))

    return _map_meta(m, linear, visit, scalar)


def _merge_meta(e: Expression, operands: dict[str, Meta]) -> Meta:
    """The Meta of a merge, from its plan."""
    shape = common_shape("merge", [m.shape for m in operands.values()])
    dims = {
        n: tuple(None if size == 1 != shape[d] else d for d, size in enumerate(m.shape, len(shape) - len(m.shape)))
        for n, m in operands.items()
    }
    storages = {n: m.storage for n, m in operands.items() if m.storage is not None}
    key = ("meta", e, *dims.items(), *[m.kind for m in operands.values()])
    plan = kept_plan(key, lambda: plan_merge(e, storages, dims, len(shape), None)).schedule
    return _tensor_meta(shape, plan.format, plan.scalar, plan.fill, next(iter(operands.values())).library)


def _select_meta(node: Node, *args: Meta) -> Meta | None:
    operands = {n: m for n, m in zip("CAB", args, strict=True) if m.number is None}
    if not all(m.is_sparse for m in operands.values()) or "C" not in operands or operands["C"].scalar != "bool":
        return None
    if len({m.scalar for n, m in operands.items() if n != "C"}) != 1 or len({m.library for m in operands.values()}) > 1:
        return None
    arms = [Access(n) if m.number is None else Literal(m.number) for n, m in zip("AB", args[1:], strict=True)]
    return _merge_meta(Apply("select", (Access("C"), *arms)), operands)


# -- products, reductions, transposes ----------------------------------------------------------------------------------


def _matmul_meta(node: Node, a: Meta, b: Meta) -> Meta | None:
    if a.number is not None or b.number is not None or a.library != b.library or max(len(a.shape), len(b.shape)) >= 3:
        return None
    if not a.shape or not b.shape or a.shape[-1] != b.shape[0]:
        return None
    shape = (*a.shape[:-1], *b.shape[1:])
    scalar = promote((a.scalar, b.scalar), a.library)
    if not (a.is_sparse and b.is_sparse):
        return _dense_meta(shape, scalar, a.library, a.is_tensor and b.is_tensor)
    assert a.storage is not None
    assert b.storage is not None
    if len(shape) != 2 or a.storage.format != b.storage.format or a.storage.fill_value or b.storage.fill_value:
        return None
    expected_format = result_format((a.storage, b.storage), shape)
    return _tensor_meta(shape, expected_format, scalar, 0, a.library) if expected_format == a.storage.format else None


def _reduce_meta(node: Node, m: Meta) -> Meta | None:

    _, axis, keepdims, dtype = node.options
    if m.storage is None and node.options[0]:
        return None
    axes = axes_of(axis, len(m.shape), lists=m.library == "torch")
    kept = tuple(d for d in range(len(m.shape)) if d not in axes)
    if m.storage is not None and m.is_sparse and kept_format(m.storage.format, kept) is not None:
        return None
    shape = tuple(1 if d in axes else n for d, n in enumerate(m.shape) if keepdims or d not in axes)
    rule = block(node.name).dtype
    assert rule is not None
    scalar = scalar_name(dtype) if dtype is not None else result_scalar(rule, m.scalar, m.library)
    return _dense_meta(shape, scalar, m.library, True)


def transposed(node: Node, ndim: int) -> tuple[int, ...] | None:
    """The axes of a transpose of so many dimensions; None where it refuses."""
    axes = list(range(ndim))
    if node.name == "mT":
        if ndim < 2:
            return None
        return (*axes[:-2], ndim - 1, ndim - 2)
    order = [int(a) + ndim * (int(a) < 0) for a in node.options] or axes[::-1]
    return tuple(order) if sorted(order) == axes else None


def _transpose_meta(node: Node, m: Meta) -> Meta | None:
    axes = transposed(node, len(m.shape))
    if axes is None or m.number is not None:
        return None
    shape = tuple(m.shape[a] for a in axes)
    if m.storage is None:
        return _array_meta(shape, m.scalar, m.library)
    s = m.storage
    return _tensor_meta(shape, s.format.permute(axes), s.scalar, s.fill_value, m.library)


_RULES: dict[str, Callable[..., Meta | None]] = {
    ELEMENTWISE: _elementwise_meta,
    SELECT: _select_meta,
    MATMUL: _matmul_meta,
    REDUCE: _reduce_meta,
    TRANSPOSE: _transpose_meta,
}
