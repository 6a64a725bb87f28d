"""Gradient rules of statements with one sparse operand: each gradient is a statement with one sparse operand again.

A product of a sparse operand with dense ones, summed into a dense array or at the sparse operand's own elements, is
one family that is closed under differentiation::

    y[o] += A[a] * D[d] * E[e]          dA[a] += pattern(A[a]) * D[d] * E[e] * dy[o]      at the elements of A
                                        dD[d] += A[a] * E[e] * dy[o]
    C[a] += A[a] * D[d] * E[e]          dA[a] += dC[a] * D[d] * E[e]                      at the elements of A
                                        dD[d] += (dC * A)[a] * E[e]

So the gradient of `A @ x` for A is a sampled product, never a dense one, and has gradients itself. Any other
elementwise expression is taken apart: dense operands are sampled at the elements of A, torch computes with the values,
and the sum of these is a product of the family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from ...errors import UnsupportedError
from ...ir.index import Access, Apply, Assignment, Expression
from ...ir.index import accesses as accesses_of
from ...runtime import contract as statements
from ...runtime.coiterate.types import typed
from ...runtime.gradient_hook import tracked
from ...runtime.strided import Strided, strided
from ...storage.buffers import PLAIN_TENSORS, Array, as_array, is_torch, scalar_of
from ...storage.recorded import bare, is_recorded, is_transformed, outside
from ...storage.storage import Storage, structure_of
from .function import Rule, apply_rule
from .permutation import detached_storage, element_mask
from .pointwise import DIFFERENTIABLE, evaluate

__all__ = [
    "Product", "contract", "factors_of", "gradient_terms", "gradients_of", "product", "run", "sample", "statement_of",
]  # fmt: skip

Indices = tuple[str, ...]
_current_level = torch._C._functorch.maybe_current_level


class Product(NamedTuple):
    """A product of a sparse operand, indexed by `at`, with dense ones, indexed by `dense`.

    `out` indexes a dense result; None stands for one at the elements of the sparse operand.
    """

    structure: Storage
    at: Indices
    dense: tuple[Indices, ...]
    out: Indices | None
    scalar: str

    def __call__(self, values: torch.Tensor | None, dense: Sequence[torch.Tensor]) -> torch.Tensor:
        """The product, with the values of the sparse operand; without, its pattern takes part."""
        return product(self, values, dense)

    def other(self, dense: tuple[Indices, ...], out: Indices | None, scalar: str) -> Product:
        """Another product of the same sparse operand."""
        return Product(self.structure, self.at, dense, out, scalar)


@lru_cache(maxsize=1024)
def statement_of(at: Indices, dense: tuple[Indices, ...], out: Indices | None, valued: bool) -> Assignment:
    """The statement of a product of A, or of its pattern, with D0, D1, ...; `out` None is at the elements of A."""
    sparse = Access("A", at)
    rhs: Expression = sparse if valued else Apply("pattern", (sparse,))
    for k, indices in enumerate(dense):
        rhs = Apply("mul", (rhs, Access(f"D{k}", indices)))
    summed = any(i not in at for indices in dense for i in indices)
    return Assignment(Access("y", at if out is None else out), "+=" if out is not None or summed else "=", rhs)


def product(spec: Product, values: torch.Tensor | None, dense: Sequence[torch.Tensor]) -> torch.Tensor:
    """The product, with the values of the sparse operand; without, its pattern takes part."""
    if tracked(dense if values is None else (values, *dense)):
        result: torch.Tensor = apply_rule(_ProductRule(spec), values, *dense)
        return result
    return run(spec, values, dense)


def run(spec: Product, values: torch.Tensor | None, dense: Sequence[torch.Tensor]) -> torch.Tensor:
    """The product of what torch does not record."""
    if _current_level() is not None:
        with outside():
            return _run(spec, values, dense)
    return _run(spec, values, dense)


def _run(spec: Product, values: torch.Tensor | None, dense: Sequence[torch.Tensor]) -> torch.Tensor:
    s = spec.structure
    if values is not None and values is not s.values:
        s = s.with_values(values.detach())
    views: dict[str, Any] = {"A": s}
    for k, x in enumerate(dense):
        views[f"D{k}"] = strided(x)
    stmt = statement_of(spec.at, spec.dense, spec.out, values is not None)
    result: torch.Tensor
    if spec.out is None:
        result = statements.sample(stmt, views, spec.scalar).values
    else:
        result = statements.contract(stmt, views, spec.scalar, s.values)
    return result


class _ProductRule(Rule):
    """The rule of a product."""

    __slots__ = ("spec",)

    def __init__(self, spec: Product) -> None:
        self.spec = spec

    def forward(self, values: torch.Tensor | None, *dense: torch.Tensor) -> torch.Tensor:
        result = run(self.spec, values, dense)
        return result.data if result._is_view() else result  # torch takes no tangents of views, and no in-place forms

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        first, others = gradients_of(self.spec, saved[0], saved[1:], grad, needed)
        return first, *others

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> torch.Tensor:
        values, *dense = saved
        parts = [] if tangents[0] is None else [product(self.spec, tangents[0], dense)]
        for k, t in enumerate(tangents[1:]):
            if t is not None:
                parts.append(product(self.spec, values, [*dense[:k], t, *dense[k + 1 :]]))
        return torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]

    def batch(self, size: int, dims: Sequence[Any], tensors: Sequence[Any]) -> torch.Tensor:
        """Batches of dense operands are one more index; of values, and of results at elements, each is a product."""
        (values, *dense), spec = tensors, self.spec
        if (values is not None and dims[0] is not None) or spec.out is None:
            return super().batch(size, dims, tensors)
        batched = [d is not None for d in dims[1:]]
        index = f"v{len({*spec.at, *spec.out, *(i for d in spec.dense for i in d)})}"
        batch_first = [x.movedim(d, 0) if b else x for x, d, b in zip(dense, dims[1:], batched, strict=True)]
        indices = tuple((index, *i) if b else i for i, b in zip(spec.dense, batched, strict=True))
        return product(spec.other(indices, (index, *spec.out), spec.scalar), values, batch_first)


def gradients_of(
    spec: Product, values: Any, dense: Sequence[torch.Tensor], grad: torch.Tensor, needed: Sequence[bool]
) -> tuple[torch.Tensor | None, list[torch.Tensor | None]]:
    """The gradients of the values and of each dense operand, where needed: each a product of the family."""
    operands = [None if values is None else _conjugate(values), *[_conjugate(d) for d in dense], grad]
    values_gradient = None
    if needed[0] and values is not None:
        values_gradient = _like(_gradient(spec, 0, operands), values)
    dense_gradients: list[torch.Tensor | None] = [None] * len(dense)
    for k, x in enumerate(dense):
        if needed[1 + k]:
            dense_gradients[k] = _like(_expanded(_gradient(spec, 1 + k, operands), spec, k, x), x)
    return values_gradient, dense_gradients


def _gradient(spec: Product, wrt: int, operands: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """The gradient of an operand, 0 the values, 1 the first dense one: of values, dense operands and the gradient."""
    values, grad = operands[0], operands[-1]
    assert grad is not None
    dense, out, sparse, others = gradient_terms(spec.at, spec.dense, spec.out, values is not None, wrt)
    factor = None if sparse is None else operands[sparse]
    if wrt and spec.out is None and values is not None:
        factor = grad * values
    product_of = spec.other(dense, out, scalar_of(grad))
    return product_of(factor, [x for k in others if (x := operands[k]) is not None])


@lru_cache(maxsize=1024)
def gradient_terms(
    at: Indices, dense: tuple[Indices, ...], out: Indices | None, valued: bool, wrt: int
) -> tuple[tuple[Indices, ...], Indices | None, int | None, tuple[int, ...]]:
    """The gradient of operand `wrt` as a product: the indices of its dense operands and of its result, and which
    operands they are, the sparse one (None for the pattern) and the dense ones.

    The operands are the values, the dense ones and the gradient of the result. That of a result at the elements is the
    sparse operand; where there are values, it is multiplied by them first.
    """
    last = len(dense) + 1
    others = tuple(1 + k for k in range(len(dense)) if 1 + k != wrt)
    indices = tuple(dense[k - 1] for k in others)
    sparse = (0 if valued and wrt else None) if out is not None else last
    if out is not None:
        indices, others = (*indices, out), (*others, last)
    if not wrt:
        return indices, None, sparse, others
    bound_indices = {*at, *(i for d in indices for i in d)}
    return indices, tuple(i for i in dense[wrt - 1] if i in bound_indices), sparse, others


def _expanded(gradient: torch.Tensor, spec: Product, k: int, x: torch.Tensor) -> torch.Tensor:
    """The gradient of a dense operand with the dimensions that the product sums over this operand alone."""
    bound_indices = {*spec.at, *(i for j, d in enumerate(spec.dense) if j != k for i in d), *(spec.out or ())}
    unbound = [n for n, i in enumerate(spec.dense[k]) if i not in bound_indices]
    for n in unbound:
        gradient = gradient.unsqueeze(n)
    return gradient.expand(x.shape) if unbound else gradient


def _conjugate(x: torch.Tensor) -> torch.Tensor:
    return x.conj().resolve_conj() if x.is_complex() else x


def _like(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A gradient in the dtype of its operand: the real part for a real operand."""
    if grad.is_complex() and not x.is_complex():
        grad = grad.real
    return grad.to(x.dtype)


def contract(stmt: Assignment, values: Mapping[str, Any], out_scalar: str, like: Array) -> Array:
    """The rule of `runtime.contract.contract`."""
    found = _as_product(stmt, values, out_scalar, stmt.lhs.indices)
    if found is not None:
        result: Array = apply_rule(*found)
        return result
    is_recorded_operand = _uses_recorded_values(stmt, values)
    if out_scalar not in DIFFERENTIABLE or not is_recorded_operand:
        operands = {n: _detached_operand(v, is_recorded_operand) for n, v in values.items()}
        with outside():
            return statements.contract(stmt, operands, out_scalar, bare(like) if is_torch(like) else like)
    return _evaluate(stmt, values, out_scalar, stmt.lhs.indices)


def sample(stmt: Assignment, values: Mapping[str, Any], out_scalar: str) -> Storage:
    """The rule of `runtime.contract.sample`."""
    found = _as_product(stmt, values, out_scalar, None)
    if found is not None:
        return statements.sparse_operand(values).with_values(apply_rule(*found), 0)
    is_recorded_operand = _uses_recorded_values(stmt, values)
    if out_scalar not in DIFFERENTIABLE or not is_recorded_operand:
        operands = {n: _detached_operand(v, is_recorded_operand) for n, v in values.items()}
        with outside():
            return statements.sample(stmt, operands, out_scalar)
    s = structure_of(statements.sparse_operand(values))
    result = _evaluate(stmt, values, out_scalar, None)
    return s.mapped(lambda b: as_array(b, like=result)).with_values(result, 0)


def _detached_operand(v: Any, recorded: bool) -> Any:
    if isinstance(v, Storage):
        return detached_storage(v) if recorded else structure_of(v)
    return strided(bare(v.owner)) if isinstance(v, Strided) and isinstance(v.owner, torch.Tensor) else v


def _uses_recorded_values(stmt: Assignment, values: Mapping[str, Any]) -> bool:
    """Whether a recorded operand is used for its values."""
    for name in _names_read(stmt):
        buffer = _buffer(values[name])
        if isinstance(buffer, torch.Tensor) and is_recorded(buffer):
            return True
    return False


@lru_cache(maxsize=1024)
def _names_read(stmt: Assignment) -> frozenset[str]:
    """The operands that a statement uses for their values."""

    def of(e: Expression) -> set[str]:
        if isinstance(e, Access):
            return {e.tensor}
        if not isinstance(e, Apply) or e.op == "pattern":
            return set()
        return set().union(*map(of, e.args))

    return frozenset(of(stmt.rhs))


def factors_of(e: Expression) -> list[tuple[Access, bool]] | None:
    """The accesses of a product, and whether for their values; None for any other expression."""
    match e:
        case Access():
            return [(e, True)]
        case Apply("pattern", (Access() as access,)):
            return [(access, False)]
        case Apply("mul", args):
            parts = [factors_of(a) for a in args]
            return None if None in parts else [f for part in parts for f in part or ()]
    return None


class _Recipe(NamedTuple):
    """A statement as a product of its sparse operand, indexed by `at`, and of others; whether its values are read.

    others : the name, the indices of each, and whether it is read for its values; None where it is no such product
    """

    at: Indices
    is_valued: bool
    others: tuple[tuple[str, Indices, bool], ...] | None


@lru_cache(maxsize=1024)
def _recipe(stmt: Assignment, name: str) -> _Recipe:
    """The recipe of a statement whose operand `name` is sparse."""
    at = next(a.indices for a in accesses_of(stmt.rhs) if a.tensor == name)
    factors = factors_of(stmt.rhs)
    uses = [] if factors is None else [valued for access, valued in factors if access.tensor == name]
    if factors is None or stmt.op not in ("+=", "=") or not uses or uses.count(True) > 1:
        return _Recipe(at, False, None)
    read = {access for access, valued in factors if valued}
    others = tuple((a.tensor, a.indices, a in read) for a, _ in factors if a.tensor != name)
    return _Recipe(at, True in uses, others)


def _as_product(stmt: Assignment, values: Mapping[str, Any], scalar: str, out: Indices | None) -> list[Any] | None:
    """A statement as the rule of a product and its tensors; None of another statement, or of other operands."""
    if scalar not in DIFFERENTIABLE:
        return None
    for name, v in values.items():
        if type(v) is Storage:
            s, driver = v, name
    at, is_valued, others = _recipe(stmt, driver)
    if others is None or type(s.values) not in PLAIN_TENSORS or s.values.is_conj() or s.values.is_neg():
        return None
    tensors, indices = [s.values if is_valued else None], []
    for name, of_name, is_read in others:
        x = values[name].owner
        if not is_read or type(x) not in PLAIN_TENSORS:
            return None
        tensors.append(x)
        indices.append(of_name)
    structure = structure_of(s) if _current_level() is not None or is_transformed(s.values) else s
    return [_ProductRule(Product(structure, at, tuple(indices), out, scalar)), *tensors]


def _evaluate(stmt: Assignment, values: Mapping[str, Any], scalar: str, out: Indices | None) -> torch.Tensor:
    name = next(n for n, v in values.items() if type(v) is Storage)
    s: Storage = values[name]
    at, is_valued, others = _recipe(stmt, name)
    like = next(b for v in values.values() for b in [_buffer(v)] if isinstance(b, torch.Tensor) and is_recorded(b))
    s_torch = structure_of(s)
    s_torch = s_torch.mapped(lambda b: as_array(b, like=like.new_zeros(0))) if s.library == "numpy" else s_torch
    values_torch: torch.Tensor = as_array(s.values, like=like)
    dense = {n: _operand(v, like) for n, v in values.items() if n != name}
    if others is not None:
        spec = Product(s_torch, at, tuple([indices for _, indices, _ in others]), out, scalar)
        operands = [dense[n] if is_read else torch.ones_like(dense[n]) for n, _, is_read in others]
        return product(spec, values_torch if is_valued else None, operands)
    if stmt.op not in ("+=", "="):
        raise UnsupportedError(
            f"{stmt} has no gradient: it reduces by {stmt.op}\n  supported: sums\n  help: detach() the operands"
        )
    sampled = _evaluate_at_elements(stmt, name, s_torch, at, values_torch, dense)
    return sampled if out is None else product(Product(s_torch, at, (), out, scalar), sampled, [])


def _evaluate_at_elements(
    stmt: Assignment, name: str, s: Storage, at: Indices, values_torch: torch.Tensor, dense: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    """The values of any expression at the elements of the sparse operand, by torch's operations."""
    elements = element_mask(s)
    operands = {name: values_torch if elements is None else values_torch.masked_fill(~elements, 1)}
    for access in accesses_of(stmt.rhs):
        if access.tensor == name:
            continue
        if not set(access.indices) <= set(at):
            raise UnsupportedError(f"{stmt} has no gradient\n  supported: products, and expressions at single elements")
        x = dense[access.tensor]
        sampled = product(Product(s, at, (access.indices,), None, scalar_of(x)), None, [x])
        operands[access.tensor] = sampled if elements is None else sampled.masked_fill(~elements, 1)
    e = typed(stmt.rhs, {n: scalar_of(v) for n, v in operands.items()}, "torch")
    result: torch.Tensor = evaluate(e, operands)
    return result if elements is None else result.masked_fill(~elements, 0)


def _buffer(v: Any) -> Any:
    return v.values if isinstance(v, Storage) else v.owner if isinstance(v, Strided) else None


def _operand(v: Any, like: torch.Tensor) -> torch.Tensor:
    array = v.owner if isinstance(v, Strided) else v
    result: torch.Tensor = as_array(array, like=like)
    return result
