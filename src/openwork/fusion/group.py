"""An operation of a graph -> its fusion group: the operations that one kernel computes with it, as a statement.

A group is built from its last operation down: elementwise operations and transposes are inlined as long as one pass
gives what the operations give one by one; a product or a sum over an index is inlined where the rest of the group
distributes over it. What is not inlined is an operand: a leaf, or the result of another group.

    elementwise     A * B + C              one merge, sparse result
    reduction       sum(A * B, axis=1)     one merge, every element combined as it is formed; (A + B) @ x likewise
    sampled         M * (X @ Y)            one walk of M, whose structure is the result's
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .. import tuning
from ..classes import define
from ..compiler.scalar_arguments import number_name
from ..errors import DTypeError
from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..ir.ops import arity
from ..ops.reductions.folds import axes_of
from ..runtime.coiterate.types import typed
from ..tensor.expression_graph import ELEMENTWISE, MATMUL, REDUCE, SELECT, TRANSPOSE, Graph, Node, without_operands
from .infer import Meta, transposed

__all__ = ["FusionGroup", "group_of"]

_SMALL = ("f16", "bf16")


@define
class FusionGroup:
    """A statement of an operation and those inlined in it: `expression` over accesses of `operands`, each a number of
    the graph with its dimensions' indices; over `reduced` indices it is summed. `kind` is "elementwise", "sum" or
    "sampled"."""

    root: Node
    """the last operation, without its operands"""
    kind: str
    kept: tuple[str, ...]
    extents: dict[str, int]
    expression: Expression
    operands: dict[str, tuple[int, tuple[str, ...]]]
    reduced: tuple[str, ...]
    inlined: tuple[int, ...]
    inlined_nodes: tuple[Node, ...]
    """the operations inlined, without their operands"""
    metas: dict[str, Meta]
    numbers: dict[str, int]
    """those that the kernel is passed, by the names that the expression has for them"""

    @property
    def sparse(self) -> tuple[str, ...]:
        """The operands that are sparse."""
        return tuple(n for n, m in self.metas.items() if m.is_sparse)

    @property
    def inputs(self) -> tuple[int, ...]:
        """What the kernel is called with: operands, then numbers."""
        return (*(k for k, _ in self.operands.values()), *self.numbers.values())


def group_of(
    k: int, graph: Graph, materialized: Collection[int], metas: Sequence[Meta | None], passed: Collection[int]
) -> FusionGroup | str:
    """The group of operation k, or the reason why it is run by itself; `materialized` operations are not inlined, the
    numbers in `passed` are kernel arguments."""
    meta, node = metas[k], graph.nodes[k]
    if meta is None:
        return "its result is known only when it is run"
    builder = _GroupBuilder(graph, materialized, metas, passed)
    if node.kind in (ELEMENTWISE, SELECT):
        group = builder.elementwise(k, meta)
    elif node.kind == MATMUL:
        group = builder.matmul(k, meta)
    elif node.kind == REDUCE:
        group = builder.reduction(k)
    else:
        return "no elements are computed"
    if isinstance(group, FusionGroup):
        if 0 in group.extents.values():
            return "there are no elements"
        if len(group.extents) > tuning.LOOP_DIMENSIONS:
            return f"more than {tuning.LOOP_DIMENSIONS} dimensions"
        if len(group.operands) > tuning.FUSED_OPERANDS:
            return f"more than {tuning.FUSED_OPERANDS} operands"
        try:
            expr = typed(group.expression, {n: m.scalar for n, m in group.metas.items()}, meta.library)
        except DTypeError:
            return "the operation refuses these types"
        if group.kind != "sum" and expr.type.scalar != meta.scalar:
            return "types"
    return group


class _GroupBuilder:
    """A group under construction: operands, numbers and inlined operations so far."""

    def __init__(
        self, graph: Graph, materialized: Collection[int], metas_of: Sequence[Meta | None], passed: Collection[int]
    ) -> None:
        self.graph, self.materialized, self.metas_of, self.passed = graph, materialized, metas_of, passed
        self.numbers: dict[int, str] = {}
        self.names: dict[tuple[int, tuple[str, ...]], str] = {}
        self.operands: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.metas: dict[str, Meta] = {}
        self.inlined: list[int] = []
        self.summed: dict[str, int] = {}
        self.products = False
        """whether everything is multiplied into a sum"""

    # -- the three kinds -------------------------------------------------------------------------------------------

    def elementwise(self, k: int, meta: Meta) -> FusionGroup | str:
        if not meta.is_sparse:
            return (
                "the result is dense, and the array library's to compute"
                if self._has_dense_operands(k)
                else "the result is dense"
            )
        indices = tuple(f"i{d}" for d in range(len(meta.shape)))
        self.inlined.append(k)
        e = self.operation(k, meta, indices, True)
        if e is None:
            return "an operand is a value of rank 0"
        kind = "sampled" if self.summed else "elementwise"
        if len(self.inlined) == 1 and kind == "elementwise":
            return "one operation"
        if kind == "sampled" and not self._has_result_structure(meta, indices):
            return "no operand has the structure of the result"
        return self.group(k, kind, indices, dict(zip(indices, meta.shape, strict=True)), e)

    def matmul(self, k: int, meta: Meta) -> FusionGroup | str:
        left, right = (self.meta(a) for a in self.graph.args[k])
        if meta.is_sparse or not (left.is_sparse or right.is_sparse):
            return "both operands are sparse" if meta.is_sparse else "both operands are dense"
        if meta.scalar in _SMALL:
            return "half precision is summed in single"
        sparse = left if left.is_sparse else right
        assert sparse.storage is not None
        if sparse.storage.fill_value:
            return f"the fill value {sparse.storage.fill_value!r} takes part"
        indices = tuple(f"i{d}" for d in range(len(meta.shape)))
        self.inlined.append(k)
        self.products = True
        e = self.product(k, left, right, indices)
        if len(self.inlined) == 1:
            return "one operation"
        return self.group(k, "sum", indices, dict(zip(indices, meta.shape, strict=True)), e)

    def reduction(self, k: int) -> FusionGroup | str:
        node, (operand,) = self.graph.nodes[k], self.graph.args[k]
        meta = self.meta(operand)
        if not meta.is_sparse:
            return "the operand is dense"
        if meta.scalar[0] == "c" and node.name in ("min", "max"):
            return "complex numbers are not ordered"
        indices = tuple(f"i{d}" for d in range(len(meta.shape)))
        axes = axes_of(node.options[1], len(indices), lists=meta.library == "torch")
        e = self.absorb(operand, indices, node.name == "sum" and meta.scalar not in _SMALL)
        if not self.inlined:
            return "one operation"
        self.inlined.append(k)
        extents = dict(zip(indices, meta.shape, strict=True))
        kept_indices = tuple(i for d, i in enumerate(indices) if d not in axes)
        return self.group(k, "sum", kept_indices, extents, e)

    def group(
        self, k: int, kind: str, kept_indices: tuple[str, ...], extents: dict[str, int], e: Expression
    ) -> FusionGroup:
        extents |= self.summed
        reduced = tuple(i for i in extents if i not in kept_indices)
        accessed = {a.tensor for a in accesses(e)}
        numbers = {name: x for x, name in self.numbers.items() if name in accessed}
        inlined = tuple(dict.fromkeys(self.inlined))
        nodes = tuple(map(without_operands, (self.graph.nodes[x] for x in inlined)))
        root = without_operands(self.graph.nodes[k])
        return FusionGroup(
            root, kind, kept_indices, extents, e, self.operands, reduced, inlined, nodes, self.metas, numbers
        )

    # -- growing ---------------------------------------------------------------------------------------------------

    def meta(self, x: int) -> Meta:
        meta = self.metas_of[x]
        assert meta is not None
        return meta

    def absorb(self, x: int, indices: tuple[str, ...], linear: bool) -> Expression:
        """The element of `x` at `indices`; `linear` where the sum of terms may stand for it."""
        meta = self.meta(x)
        if meta.number is not None:
            return self.number(x, meta.number)
        if x < 0 or x in self.materialized:
            return self.access(x, indices)
        node, args = self.graph.nodes[x], self.graph.args[x]
        if node.kind == TRANSPOSE:
            axes = transposed(node, len(indices))
            assert axes is not None
            permuted = list(indices)
            for k, axis in enumerate(axes):
                permuted[axis] = indices[k]
            return self.absorb(args[0], tuple(permuted), linear)
        if node.kind == MATMUL and linear and not self.summed and not self.products:
            left, right = (self.meta(a) for a in args)
            filled = any(m.storage is not None and m.storage.fill_value for m in (left, right))
            if not meta.is_sparse and not filled and meta.scalar not in _SMALL:
                self.inlined.append(x)
                return self.product(x, left, right, indices)
        if node.kind in (ELEMENTWISE, SELECT) and self._may_inline(x, meta):
            before = len(self.inlined)
            self.inlined.append(x)
            e = self.operation(x, meta, indices, linear)
            if e is not None:
                return e
            del self.inlined[before:]
        return self.access(x, indices)

    def operation(self, x: int, meta: Meta, indices: tuple[str, ...], linear: bool) -> Expression | None:
        """An elementwise operation of elements; None for one whose kernel would differ."""
        if not self._kernel_agrees(x):
            return None
        args, node = [], self.graph.nodes[x]
        for k, a in enumerate(self.graph.args[x]):
            n = len(self.meta(a).shape)
            stays_linear = linear and (
                node.name in ("mul", "neg") or (node.name == "div" and k == 0 and meta.scalar[0] in "fc")
            )
            args.append(self.absorb(a, indices[len(indices) - n :], stays_linear))
        return Apply("select" if node.kind == SELECT else node.name, tuple(args))

    def product(self, x: int, left: Meta, right: Meta, indices: tuple[str, ...]) -> Expression:
        """The term of a matrix product, over an index of its own."""
        k = f"k{len(self.summed)}"
        self.summed[k] = left.shape[-1]
        split = len(left.shape) - 1
        rows, columns = indices[:split], indices[split:]
        self.products = True
        first, second = self.graph.args[x]
        a = self.absorb(first, (*rows, k), False)
        b = self.absorb(second, (k, *columns), False)
        return Apply("mul", (a, b))

    def number(self, x: int, value: Any) -> Expression:
        """A number: an access to a kernel argument where it is in `passed`, else a literal."""
        if x not in self.passed:
            return Literal(value)
        return Access(self.numbers.setdefault(x, number_name(len(self.numbers), value)))

    def access(self, x: int, indices: tuple[str, ...]) -> Expression:
        name = self.names.get((x, indices))
        if name is None:
            name = self.names[x, indices] = f"A{len(self.names)}"
            self.operands[name] = (x, indices)
            self.metas[name] = self.meta(x)
        return Access(name, indices)

    # -- what may be inlined ---------------------------------------------------------------------------------------

    def _may_inline(self, x: int, meta: Meta) -> bool:
        """Whether an operation is inlined: sparse ones, and dense ones that have a sparse operand.

        Below a product a dense operand is read once for every element: it is computed before."""
        return self._kernel_agrees(x) and (meta.is_sparse or (not self.products and not self._has_dense_operands(x)))

    def _kernel_agrees(self, x: int) -> bool:
        """Whether one pass computes what the operation computes."""
        metas, node = [self.metas_of[a] for a in self.graph.args[x]], self.graph.nodes[x]
        if any(m is None for m in metas) or (node.kind == ELEMENTWISE and arity(node.name) != len(metas)):
            return False
        if node.name == "pow" and all(m.scalar == "bool" or m.scalar[0] in "iu" for m in metas):  # type: ignore[union-attr]
            return metas[1].number is not None  # type: ignore[union-attr]
        if node.name in ("div", "floordiv", "mod") and len(metas) == 2:
            left, right = metas
            if left.is_sparse and not right.is_sparse and right.number is None:  # type: ignore[union-attr]
                return False  # what is not stored is divided by nothing
        return True

    def _has_dense_operands(self, x: int) -> bool:
        return not any(self.meta(a).is_sparse for a in self.graph.args[x])

    def _has_result_structure(self, meta: Meta, indices: tuple[str, ...]) -> bool:
        assert meta.storage is not None
        return any(
            m.is_sparse and self.operands[n][1] == indices and m.shape == meta.shape and m.storage is not None
            and m.storage.format == meta.storage.format and not m.storage.format.batch_ndim
            for n, m in self.metas.items()
        )  # fmt: skip
