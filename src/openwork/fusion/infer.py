"""Shape inference: a lazy node -> the Meta of its result (shape, dtype, format, fill value), None where not known.

A Meta is not known where it depends on stored elements, or where the operation will refuse its operands: such a node
is run by itself, and raises its own errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.schedule.kept_format import kept_format
from ..errors import DTypeError, ShapeError, UnsupportedError
from ..format import coo
from ..format import format as parse
from ..format.format import Format
from ..integers import common_shape
from ..ir.index import Access, Apply, Expression, Literal
from ..ir.ops import arity
from ..ops.reductions.folds import axes_of
from ..runtime.coiterate.plan import plan_merge
from ..runtime.contraction.sparse import result_format
from ..runtime.operation import block
from ..runtime.promote import promote
from ..runtime.result_rules import result_scalar
from ..runtime.values import apply, apply_scalar
from ..storage.buffers import dtype_of, empty, is_array, is_torch, library_of, scalar_name, scalar_of
from ..storage.storage import Storage
from ..tensor.lazy import ELEMENTWISE, LEAF, MATMUL, REDUCE, SELECT, TRANSPOSE, Lazy

__all__ = ["Meta", "meta_of", "of_value"]

_EMPTY = {"numpy": np.empty(0)}


@dataclass(frozen=True, slots=True, eq=False)
class Meta:
    """A node's abstract value: a Tensor where there is a storage (maybe without values), else an array or a number."""

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

    def without_values(self) -> Meta:
        """The same, without a reference to an operand's buffers."""
        s = self.storage
        return self if s is None else _meta_without_values(s.shape, s.format, s.scalar, s.fill_value, self.library)

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


def meta_of(x: Any, metas: dict[int, Meta | None] | None = None) -> Meta | None:
    """The Meta of a node or an operand; `metas` caches them by node, and may hold some beforehand."""
    metas = {} if metas is None else metas
    if not isinstance(x, Lazy):
        return of_value(x)
    if id(x) not in metas:
        metas[id(x)] = _meta_of_node(x, metas)
    return metas[id(x)]


def of_value(x: Any) -> Meta | None:
    """The Meta of a Tensor, array or number."""
    storage = getattr(x, "_storage", None)
    if storage is not None:
        return Meta(storage.shape, storage.scalar, storage.library, storage)
    if type(x) in (bool, int, float, complex):
        return Meta((), {bool: "bool", int: "i64", float: "f64", complex: "c128"}[type(x)], "numpy", None, x)
    if is_array(x) and x.ndim and (not is_torch(x) or x.device.type == "cpu"):
        try:
            return Meta(tuple(x.shape), scalar_of(x), library_of(x))
        except DTypeError:
            return None
    return None


def _meta_of_node(node: Lazy, metas: dict[int, Meta | None]) -> Meta | None:
    if node.kind == LEAF or node.known:
        return of_value(node.compute())
    args = [meta_of(a, metas) for a in node.args]
    rule = _RULES.get(node.kind)
    if rule is None or any(a is None for a in args):
        return None
    try:
        return rule(node, *args)
    except (DTypeError, ShapeError, UnsupportedError, OverflowError, ValueError):
        return None


def _meta_without_values(shape: tuple[int, ...], format: Format, scalar: str, fill: Any, library: str) -> Meta:
    no_buffers = (None,) * format.nlevels
    values = empty(0, scalar, _like(library))
    return Meta(shape, scalar, library, Storage(shape, format, scalar, fill, no_buffers, no_buffers, values))


def _dense_meta(shape: tuple[int, ...], scalar: str, library: str, tensor: bool) -> Meta:
    return (
        _meta_without_values(shape, parse("dense", len(shape)), scalar, 0, library)
        if tensor
        else Meta(shape, scalar, library)
    )


def _map_meta(m: Meta, linear: bool, visit: Callable[[Any], Any], scalar: str) -> Meta:
    """The Meta of a map of stored elements and fill value; duplicates are summed first unless it is linear."""
    s = m.storage
    assert s is not None
    format = s.format if linear or s.format.is_unique else coo(s.format.ndim, dense=s.format.dense_ndim)
    return _meta_without_values(m.shape, format, scalar, visit((s.fill_value,)), m.library)


# -- elementwise -------------------------------------------------------------------------------------------------------


def _elementwise_meta(node: Lazy, *args: Meta) -> Meta | None:
    op = node.name
    if arity(op) != len(args):
        return None
    return _unary_meta(op, args[0]) if len(args) == 1 else _binary_meta(op, *args)


def _unary_meta(op: str, m: Meta) -> Meta | None:
    scalar = scalar_of(apply(op, m.like))
    s = m.storage
    if s is None:
        return Meta(m.shape, scalar, m.library)
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
        return Meta(m.shape, scalar, m.library)
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
    plan = plan_merge(e, storages, dims, len(shape), None).schedule
    return _meta_without_values(shape, plan.format, plan.scalar, plan.fill, next(iter(operands.values())).library)


def _select_meta(node: Lazy, *args: Meta) -> Meta | None:
    operands = {n: m for n, m in zip("CAB", args, strict=True) if m.number is None}
    if not all(m.is_sparse for m in operands.values()) or "C" not in operands or operands["C"].scalar != "bool":
        return None
    if len({m.scalar for n, m in operands.items() if n != "C"}) != 1 or len({m.library for m in operands.values()}) > 1:
        return None
    arms = [Access(n) if m.number is None else Literal(m.number) for n, m in zip("AB", args[1:], strict=True)]
    return _merge_meta(Apply("select", (Access("C"), *arms)), operands)


# -- products, reductions, transposes ----------------------------------------------------------------------------------


def _matmul_meta(node: Lazy, a: Meta, b: Meta) -> Meta | None:
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
    return (
        _meta_without_values(shape, expected_format, scalar, 0, a.library)
        if expected_format == a.storage.format
        else None
    )


def _reduce_meta(node: Lazy, m: Meta) -> Meta | None:

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


def transposed(node: Lazy, ndim: int) -> tuple[int, ...] | None:
    """The axes of a transpose of so many dimensions; None where it refuses."""
    axes = list(range(ndim))
    if node.name == "mT":
        if ndim < 2:
            return None
        return (*axes[:-2], ndim - 1, ndim - 2)
    order = [int(a) + ndim * (int(a) < 0) for a in node.options] or axes[::-1]
    return tuple(order) if sorted(order) == axes else None


def _transpose_meta(node: Lazy, m: Meta) -> Meta | None:
    axes = transposed(node, len(m.shape))
    if axes is None or m.number is not None:
        return None
    shape = tuple(m.shape[a] for a in axes)
    if m.storage is None:
        return Meta(shape, m.scalar, m.library)
    return Meta(shape, m.scalar, m.library, m.storage.permute(axes))


_RULES: dict[str, Callable[..., Meta | None]] = {
    ELEMENTWISE: _elementwise_meta,
    SELECT: _select_meta,
    MATMUL: _matmul_meta,
    REDUCE: _reduce_meta,
    TRANSPOSE: _transpose_meta,
}
