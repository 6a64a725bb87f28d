"""A lazy expression -> parts, each one kernel: a part is a statement over operands that are computed before it.

A part is builder from its last operation down: elementwise operations and transposes are inlined as long as one pass
gives what the operations give one by one; a product or a sum over an index is inlined where the rest of the part
distributes over it. What is not inlined is an operand: a leaf, or the result of another part.

    elementwise     A * B + C              one merge, sparse result
    reduction       sum(A * B, axis=1)     one merge, every element combined as it is formed; (A + B) @ x likewise
    sampled         M * (X @ Y)            one walk of M, whose structure is the result's
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from ..compiler.scalar_arguments import number_name
from ..errors import DTypeError
from ..ir.index import Access, Apply, Expression, Literal, accesses
from ..ir.ops import arity
from ..ops.reductions.folds import axes_of
from ..runtime.coiterate.types import typed
from ..tensor.lazy import ELEMENTWISE, LEAF, MATMUL, REDUCE, SELECT, TRANSPOSE, Lazy
from .infer import Meta, meta_of, transposed

__all__ = ["PlannedPart", "Region", "plan_part", "region_of"]

LARGEST = 10
"""Operands of a part."""
_SMALL = ("f16", "bf16")


@dataclass(slots=True)
class Region:
    """A fused part as a statement: `expression` over accesses of `operands`, each a node with its dimensions' indices;
    over `reduced` indices it is summed. `kind` is "elementwise", "sum" or "sampled"."""

    root: Lazy
    kind: str
    kept: tuple[str, ...]
    extents: dict[str, int]
    expression: Expression
    operands: dict[str, tuple[Any, tuple[str, ...]]]
    reduced: tuple[str, ...]
    inlined: list[Lazy]
    metas: dict[str, Meta]
    numbers: dict[str, float]
    """those that the kernel is passed, by the names that the expression has for them"""

    @property
    def sparse(self) -> tuple[str, ...]:
        """The operands that are sparse."""
        return tuple(n for n, m in self.metas.items() if m.is_sparse)

    def without_values(self) -> Region:
        """The statement without nodes and values, which a cached program may hold."""
        root = Lazy(self.root.kind, self.root.name, (), self.root.call, self.root.options)
        operands = {name: (None, indices) for name, (_, indices) in self.operands.items()}
        metas = {name: meta.without_values() for name, meta in self.metas.items()}
        return replace(self, root=root, operands=operands, inlined=[], metas=metas)


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """How a node is computed: by a fused region, or by its own operation on its arguments, and why it is not fused.

    `masked` are a mask, two sparse matrices, and whether their product, which is formed where the mask has elements,
    stands left of it.
    """

    node: Lazy
    region: Region | None
    why: str = ""
    masked: tuple[Any, ...] | None = None

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The nodes and values that must be computed before."""
        if self.masked is not None:
            return self.masked
        if self.region is None:
            return tuple(self.node.args)
        return (*(node for node, _ in self.region.operands.values()), *self.region.numbers.values())


def plan_part(
    node: Lazy, materialized: set[int], metas: dict[int, Meta | None], passed: Collection[float]
) -> PlannedPart:
    """How to compute `node`, those of `materialized` being computed; numbers in `passed` are kernel arguments."""
    masked_operands = _masked_product(node, materialized, metas)
    if masked_operands is not None:
        return PlannedPart(
            node, None, "a product of sparse matrices, formed where the factor has elements", masked_operands
        )
    region = region_of(node, materialized, metas, passed)
    return PlannedPart(node, None, region) if isinstance(region, str) else PlannedPart(node, region)


def _masked_product(node: Lazy, materialized: set[int], cached_metas: dict[int, Meta | None]) -> tuple[Any, ...] | None:
    """The operands of `M * (A @ B)`, all of them sparse matrices, or of `(A @ B) * M`."""
    if node.kind != ELEMENTWISE or node.name != "mul" or meta_of(node, cached_metas) is None:
        return None
    for mask, matmul in (node.args, node.args[::-1]):
        if not isinstance(matmul, Lazy) or matmul.kind != MATMUL or matmul.known or id(matmul) in materialized:
            continue
        metas = [meta_of(x, cached_metas) for x in (mask, matmul, *matmul.args)]
        zero = all(m is not None and m.storage is not None and m.is_sparse and not m.storage.fill_value for m in metas)
        if zero and len({m.shape for m in metas[:2]}) == 1:  # type: ignore[union-attr]
            return (mask, *matmul.args, matmul is node.args[0])
    return None


def region_of(
    node: Lazy, materialized: set[int], metas: dict[int, Meta | None], passed: Collection[float]
) -> Region | str:
    """The region that ends in `node`, or the reason why the node is run by itself."""
    meta = meta_of(node, metas)
    if meta is None:
        return "its result is known only when it is run"
    builder = _RegionBuilder(materialized, metas, passed)
    if node.kind in (ELEMENTWISE, SELECT):
        region = builder.elementwise(node, meta)
    elif node.kind == MATMUL:
        region = builder.matmul(node, meta)
    elif node.kind == REDUCE:
        region = builder.reduction(node)
    else:
        return "no elements are computed"
    if isinstance(region, Region):
        if 0 in region.extents.values():
            return "there are no elements"
        if len(region.operands) > LARGEST:
            return f"more than {LARGEST} operands"
        library = meta.library
        try:
            expr = typed(region.expression, {n: m.scalar for n, m in region.metas.items()}, library)
        except DTypeError:
            return "the operation refuses these types"
        if region.kind != "sum" and expr.type.scalar != meta.scalar:
            return "types"
    return region


class _RegionBuilder:
    """A region under construction: operands, numbers and inlined nodes so far."""

    def __init__(self, materialized: set[int], metas_of: dict[int, Meta | None], passed: Collection[float]) -> None:
        self.materialized, self.metas_of, self.passed = materialized, metas_of, passed
        self.numbers: dict[float, str] = {}
        self.operands: dict[tuple[int, tuple[str, ...]], str] = {}
        self.nodes: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self.metas: dict[str, Meta] = {}
        self.inlined: list[Lazy] = []
        self.summed: dict[str, int] = {}
        self.products = False
        """whether everything is multiplied into a sum"""

    # -- the three kinds -------------------------------------------------------------------------------------------

    def elementwise(self, node: Lazy, meta: Meta) -> Region | str:
        if not meta.is_sparse:
            return (
                "the result is dense, and the array library's to compute"
                if self._has_dense_operands(node)
                else "the result is dense"
            )
        indices = tuple(f"i{d}" for d in range(len(meta.shape)))
        self.inlined.append(node)
        e = self.operation(node, meta, indices, True)
        if e is None:
            return "an operand is a value of rank 0"
        kind = "sampled" if self.summed else "elementwise"
        if len(self.inlined) == 1 and kind == "elementwise":
            return "one operation"
        if kind == "sampled" and not self._has_result_structure(meta, indices):
            return "no operand has the structure of the result"
        return self.region(node, kind, indices, dict(zip(indices, meta.shape, strict=True)), e)

    def matmul(self, node: Lazy, meta: Meta) -> Region | str:
        left, right = (self.meta(a) for a in node.args)
        if meta.is_sparse or not (left.is_sparse or right.is_sparse):
            return "both operands are sparse" if meta.is_sparse else "both operands are dense"
        if meta.scalar in _SMALL:
            return "half precision is summed in single"
        sparse = left if left.is_sparse else right
        assert sparse.storage is not None
        if sparse.storage.fill_value:
            return f"the fill value {sparse.storage.fill_value!r} takes part"
        indices = tuple(f"i{d}" for d in range(len(meta.shape)))
        self.inlined.append(node)
        self.products = True
        e = self.product(node, left, right, indices)
        if len(self.inlined) == 1:
            return "one operation"
        return self.region(node, "sum", indices, dict(zip(indices, meta.shape, strict=True)), e)

    def reduction(self, node: Lazy) -> Region | str:

        meta = self.meta(node.args[0])
        if not meta.is_sparse:
            return "the operand is dense"
        if meta.scalar[0] == "c" and node.name in ("min", "max"):
            return "complex numbers are not ordered"
        indices = tuple(f"i{d}" for d in range(len(meta.shape)))
        axes = axes_of(node.options[1], len(indices), lists=meta.library == "torch")
        e = self.absorb(node.args[0], indices, node.name == "sum" and meta.scalar not in _SMALL)
        if not self.inlined:
            return "one operation"
        self.inlined.append(node)
        extents = dict(zip(indices, meta.shape, strict=True))
        kept_indices = tuple(i for d, i in enumerate(indices) if d not in axes)
        return self.region(node, "sum", kept_indices, extents, e)

    def region(
        self, node: Lazy, kind: str, kept_indices: tuple[str, ...], extents: dict[str, int], e: Expression
    ) -> Region:
        extents |= self.summed
        reduced = tuple(i for i in extents if i not in kept_indices)
        numbers = {name: value for value, name in self.numbers.items() if any(a.tensor == name for a in accesses(e))}
        return Region(
            node, kind, kept_indices, extents, e, dict(self.nodes), reduced, self.inlined, self.metas, numbers
        )

    # -- growing ---------------------------------------------------------------------------------------------------

    def meta(self, x: Any) -> Meta:
        meta = meta_of(x, self.metas_of)
        assert meta is not None
        return meta

    def absorb(self, x: Any, indices: tuple[str, ...], linear: bool) -> Expression:
        """The element of `x` at `indices`; `linear` where the sum of terms may stand for it."""
        meta = self.meta(x)
        if meta.number is not None:
            return self.number(meta.number)
        if not isinstance(x, Lazy) or x.kind == LEAF or x.known or id(x) in self.materialized:
            return self.access(x, indices)
        if x.kind == TRANSPOSE:
            axes = transposed(x, len(indices))
            assert axes is not None
            permuted = list(indices)
            for k, axis in enumerate(axes):
                permuted[axis] = indices[k]
            return self.absorb(x.args[0], tuple(permuted), linear)
        if x.kind == MATMUL and linear and not self.summed and not self.products:
            left, right = (self.meta(a) for a in x.args)
            filled = any(m.storage is not None and m.storage.fill_value for m in (left, right))
            if not meta.is_sparse and not filled and meta.scalar not in _SMALL:
                self.inlined.append(x)
                return self.product(x, left, right, indices)
        if x.kind in (ELEMENTWISE, SELECT) and self._may_inline(x, meta):
            before = len(self.inlined)
            self.inlined.append(x)
            e = self.operation(x, meta, indices, linear)
            if e is not None:
                return e
            del self.inlined[before:]
        return self.access(x, indices)

    def operation(self, x: Lazy, meta: Meta, indices: tuple[str, ...], linear: bool) -> Expression | None:
        """An elementwise operation of elements; None for one whose kernel would differ."""
        if not self._kernel_agrees(x):
            return None
        args = []
        for k, a in enumerate(x.args):
            n = len(self.meta(a).shape)
            stays_linear = linear and (
                x.name in ("mul", "neg") or (x.name == "div" and k == 0 and meta.scalar[0] in "fc")
            )
            args.append(self.absorb(a, indices[len(indices) - n :], stays_linear))
        return Apply("select" if x.kind == SELECT else x.name, tuple(args))

    def product(self, x: Lazy, left: Meta, right: Meta, indices: tuple[str, ...]) -> Expression:
        """The term of a matrix product, over an index of its own."""
        k = f"k{len(self.summed)}"
        self.summed[k] = left.shape[-1]
        split = len(left.shape) - 1
        rows, columns = indices[:split], indices[split:]
        self.products = True
        a = self.absorb(x.args[0], (*rows, k), False)
        b = self.absorb(x.args[1], (k, *columns), False)
        return Apply("mul", (a, b))

    def number(self, value: Any) -> Expression:
        """A number: an access to a kernel argument where it is in `passed`, else a literal."""
        if type(value) is not float or value not in self.passed:
            return Literal(value)
        return Access(self.numbers.setdefault(value, number_name(len(self.numbers), value)))

    def access(self, x: Any, indices: tuple[str, ...]) -> Expression:
        value = x.args[0] if isinstance(x, Lazy) and x.kind == LEAF else x
        key = (id(value), indices)
        name = self.operands.get(key)
        if name is None:
            name = self.operands[key] = f"A{len(self.operands)}"
            self.nodes[name] = (x, indices)
            self.metas[name] = self.meta(x)
        return Access(name, indices)

    # -- what may be inlined ---------------------------------------------------------------------------------------

    def _may_inline(self, x: Lazy, meta: Meta) -> bool:
        """Whether an operation is inlined: sparse ones, and dense ones that have a sparse operand.

        Below a product a dense operand is read once for every element: it is computed before."""
        return self._kernel_agrees(x) and (meta.is_sparse or (not self.products and not self._has_dense_operands(x)))

    def _kernel_agrees(self, x: Lazy) -> bool:
        """Whether one pass computes what the operation computes."""
        metas = [meta_of(a, self.metas_of) for a in x.args]
        if any(m is None for m in metas) or (x.kind == ELEMENTWISE and arity(x.name) != len(metas)):
            return False
        if x.name == "pow" and all(m.scalar == "bool" or m.scalar[0] in "iu" for m in metas):  # type: ignore[union-attr]
            return metas[1].number is not None  # type: ignore[union-attr]
        if x.name in ("div", "floordiv", "mod") and len(metas) == 2:
            left, right = metas
            if left.is_sparse and not right.is_sparse and right.number is None:  # type: ignore[union-attr]
                return False  # what is not stored is divided by nothing
        return True

    def _has_dense_operands(self, x: Lazy) -> bool:
        return not any(self.meta(a).is_sparse for a in x.args)

    def _has_result_structure(self, meta: Meta, indices: tuple[str, ...]) -> bool:
        assert meta.storage is not None
        return any(
            m.is_sparse and self.nodes[n][1] == indices and m.shape == meta.shape and m.storage is not None
            and m.storage.format == meta.storage.format and not m.storage.format.batch_ndim
            for n, m in self.metas.items()
        )  # fmt: skip
