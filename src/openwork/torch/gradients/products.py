"""Gradient rules of products of two sparse operands: each operand's gradient is a product with the result's gradient.

The structure of the result is found once; a product *at* a given structure is then a family that is closed under
differentiation, and never has more elements than that structure::

    C = A B at C          dA = dC B^T at A          dB = A^T dC at B
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...classes import frozen
from ...codegen import cache as kernels
from ...compiler.semiring import Semiring
from ...errors import UnsupportedError
from ...format.named import coo
from ...ops.indexing.taking import values_at
from ...runtime.contraction import sparse as contraction
from ...runtime.contraction.matricize import CSR
from ...runtime.contraction.small_product import small_product as unrecorded_product
from ...runtime.contraction.sparse import Term
from ...runtime.conversion.convert import convert as convert_bare
from ...runtime.moves import LITTLE
from ...runtime.program import memory_of
from ...runtime.semirings import semiring as semiring_of
from ...storage.buffers import as_array, length, scalar_of
from ...storage.iso import contiguous
from ...storage.recorded import is_dual, is_recorded, is_transformed, outside
from ...storage.storage import Storage, structure_of
from ...tensor.tensor import Tensor
from .function import Rule, apply_rule
from .permutation import (
    convert,
    detached_storage,
    every_element_stored,
    gather_by_numbers,
    value_numbers_at,
    with_value_numbers,
    without_duplicates,
)
from .pointwise import DIFFERENTIABLE, with_gradient_of
from .semirings import by_products
from .single_operand import _conjugate, _like

__all__ = ["alone", "masked", "pair", "small_product"]


@frozen
class _Structures:
    """The structures of two operands and of the result, by letters."""

    x: Term
    y: Term
    out: Term


class _Product(Rule):
    """A product of two sparse operands at the elements of a structure. known : its values, where they are known"""

    __slots__ = ("at", "known")

    def __init__(self, at: _Structures, known: torch.Tensor | None) -> None:
        self.at, self.known = at, known

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        known, self.known = self.known, None
        return _run(self.at, x, y) if known is None else known.data

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        at, (x, y) = self.at, saved
        first = second = None
        if needed[0]:
            first = _like(_product(_Structures(at.out, at.y, at.x), grad, _conjugate(y)), x)
        if needed[1]:
            second = _like(_product(_Structures(at.x, at.out, at.y), _conjugate(x), grad), y)
        return first, second

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> torch.Tensor:
        (x, y), (first, second) = saved, tangents
        parts = [] if first is None else [_product(self.at, first, y)]
        parts += [] if second is None else [_product(self.at, x, second)]
        return torch.stack(parts).sum(0)


LONG_TERMS = 8
"""Terms of a product for each of its elements, about, which say whether a walk of them may be interrupted."""
_GRADIENTS = """
def gradients(
    apos: P[const], acrd: P[const], a: T[const], bpos: P[const], bcrd: P[const], b: T[const],
    cpos: Q[const], ccrd: Q[const], g: T[const], da: T[mut], db: T[mut], rows: i64, columns: i64,
):
    place: i64[columns] = empty
    for i in range(0, rows):
        for p in range(cpos[i], cpos[i + 1]):
            place[ccrd[p]] = p
        for q in range(apos[i], apos[i + 1]):
            j = acrd[q]
            x = a[q]
            total: T = 0
            for r in range(bpos[j], bpos[j + 1]):
                y = g[place[bcrd[r]]]
                total += y * b[r]
                db[r] += y * x
            da[q] = total
"""


class _MatrixProduct(_Product):
    """A product of two CSR matrices of one type, at every element that it has: both gradients by one walk of its terms.

    That is on one thread, since terms of several rows are added to one gradient.
    """

    __slots__ = ()

    @classmethod
    def suits(cls, at: _Structures) -> bool:
        """Whether a product is of such matrices."""
        x, y, out = at.x, at.y, at.out
        if len(out.letters) != 2 or (x.letters, y.letters[1:]) != (out.letters[0] + y.letters[:1], out.letters[1]):
            return False
        terms = [t.storage for t in (x, y, out)]
        if any(s.format != CSR or s.scalar != terms[0].scalar for s in terms):
            return False
        return len({scalar_of(b) for s in terms[:2] for b in (s.pos[1], s.crd[1]) if b is not None}) == 1

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        x, y = saved
        if any(is_recorded(v) for v in (x, y, grad)):
            return super().gradients(saved, grad, needed)
        a, b, c = (t.storage for t in (self.at.x, self.at.y, self.at.out))
        x, y = contiguous(x), contiguous(y)
        first, second = torch.empty_like(x), torch.zeros_like(y)
        buffers = (
            a.pos[1], a.crd[1], _conjugate(x), b.pos[1], b.crd[1], _conjugate(y), c.pos[1], c.crd[1],
            grad.contiguous(), first, second,
        )  # fmt: skip
        edges, result_edges = scalar_of(b.crd[1]), scalar_of(c.crd[1])
        kernel = kernels.of_text(_GRADIENTS, P=edges, Q=result_edges, T=a.scalar)
        kernel.run_sized(LONG_TERMS * length(c.values), kernel.pack([*memory_of(buffers), *c.shape]))
        return first if needed[0] else None, second if needed[1] else None


def small_product(s: Storage, t: Storage) -> Storage | None:
    """The rule of `runtime.contraction.small_product`."""
    values = s.values, t.values
    if s.library != t.library or any(is_dual(v) or is_transformed(v) for v in values):
        return None
    with outside():
        x, y = (_as_rows(structure_of(u)) for u in (s, t))
        result = unrecorded_product(x, y)
    if result is None or result.scalar not in DIFFERENTIABLE:
        return None
    at = _Structures(Term("ij", x), Term("jk", y), Term("ik", result))
    rule = _MatrixProduct if _MatrixProduct.suits(at) else _Product
    recorded = result.with_values(apply_rule(rule(at, result.values), *values))
    if x.format == s.format and y.format == t.format:
        return recorded
    return convert(recorded, contraction.result_format((s, t), result.shape), share=True)


def _as_rows(s: Storage) -> Storage:
    """A matrix in CSR where its values stay in their places, as those of sorted COO do; else as it is."""
    if s.format == CSR or length(s.values) > LITTLE or s.format.is_dense:
        return s
    rows = convert_bare(s, CSR, share=True)
    return rows if rows.values is s.values else s


def _product(
    at: _Structures, x: torch.Tensor, y: torch.Tensor, values: torch.Tensor | None = None, is_whole: bool = False
) -> torch.Tensor:
    """The values of a product at the elements of a structure. is_whole : whether these are all that it has"""
    if is_recorded(x) or is_recorded(y):
        rule = _MatrixProduct if is_whole and _MatrixProduct.suits(at) else _Product
        result: torch.Tensor = apply_rule(rule(at, values), x, y)
        return result
    return _run(at, x, y)


@outside()
def _run(at: _Structures, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The values of the product at the elements of the result's structure."""
    first, second = (Term(t.letters, t.storage.with_values(v.detach())) for t, v in ((at.x, x), (at.y, y)))
    mask = None if at.out.storage.format.is_dense else at.out
    product_term = contraction.pair(first, second, at.out.letters, semiring_of("plus_times"), mask)
    order = [product_term.letters.index(c) for c in at.out.letters]
    result: torch.Tensor = values_at(Tensor._from_storage(product_term.storage.permute(order)), at.out.storage)
    return result


def _structure_term(t: Term) -> Term:
    s = t.storage
    return Term(t.letters, structure_of(s) if s.scalar in DIFFERENTIABLE else detached_storage(s))


def _of_torch(x: Term, y: Term) -> tuple[Term, Term]:
    """Both terms over torch buffers, of which one has some."""
    like = next(t.storage.values for t in (x, y) if t.storage.library == "torch").detach()
    first, second = (
        t if t.storage.library == "torch" else Term(t.letters, t.storage.mapped(lambda b: as_array(b, like=like)))
        for t in (x, y)
    )
    return first, second


def _all_stored(t: Term) -> Term:
    """A dense term that is recorded, as coordinates of all its elements: those that are 0 have gradients too."""
    s = t.storage
    if not s.format.is_dense or not s.shape or not is_recorded(s.values):
        return t
    with every_element_stored():
        return Term(t.letters, convert(s, coo(len(s.shape))))


def _with_gradient(x: Term, y: Term, result: Term, is_whole: bool = False) -> Term:
    s = result.storage
    values = [x.storage.values, y.storage.values]
    value = None if any(is_dual(v) or is_transformed(v) for v in values) else s.values
    at = _Structures(_structure_term(x), _structure_term(y), result)
    values_recorded = _product(at, values[0], values[1], value, is_whole)
    return Term(result.letters, s.with_values(values_recorded))


def _check_plus_times(semiring: Semiring) -> None:
    if semiring.name != "plus_times":
        raise UnsupportedError(
            f"a product over {semiring.name} has no gradient\n  supported: plus_times\n  help: detach() the operands"
        )


def _over_semiring(x: Term, y: Term, result: Term, semiring: Semiring) -> Term:
    """The result of a product over a semiring, on torch's graph; letters of one term alone must stay in the result."""
    if result.storage.scalar not in DIFFERENTIABLE:
        return result
    if (set(x.letters) ^ set(y.letters)) - set(result.letters) or len({*x.letters}) < len(x.letters):
        raise UnsupportedError(
            f"a contraction over {semiring.name} that sums over one operand alone has no gradient"
            "\n  supported: products of matrices and stacks of them\n  help: detach() the operands"
        )
    x, y = (Term(t.letters, without_duplicates(t.storage)) for t in (x, y))
    values = by_products(x, y, result, semiring)
    return Term(result.letters, result.storage.with_values(with_gradient_of(result.storage.values, values)))


_pair, _masked = outside()(contraction.pair), outside()(contraction.masked)
_alone, _diagonal = outside()(contraction.alone), outside()(contraction._diagonal)


def pair(x: Term, y: Term, out: str, semiring: Semiring, mask: Term | None = None) -> Term:
    """The rule of `runtime.contraction.sparse.pair`."""
    x, y = (_all_stored(t) for t in _of_torch(x, y))
    if semiring.name != "plus_times":
        return _over_semiring(x, y, _pair(_structure_term(x), _structure_term(y), out, semiring, mask), semiring)
    x, y = (contraction.alone(t, out + other.letters, semiring) for t, other in ((x, y), (y, x)))
    return _with_gradient(x, y, _pair(_structure_term(x), _structure_term(y), out, semiring, mask), mask is None)


def masked(x: Term, y: Term, mask: Term, semiring: Semiring, complement: bool) -> Term:
    """The rule of `runtime.contraction.sparse.masked`."""
    x, y = _of_torch(x, y)
    if semiring.name != "plus_times":
        result = _masked(_structure_term(x), _structure_term(y), _structure_term(mask), semiring, complement)
        return _over_semiring(x, y, result, semiring)
    return _with_gradient(
        x, y, _masked(_structure_term(x), _structure_term(y), _structure_term(mask), semiring, complement)
    )


def alone(term: Term, kept: str, semiring: Semiring) -> Term:
    """The rule of `runtime.contraction.sparse.alone`: diagonals are taken, then letters not in `kept` summed."""
    letters = "".join(dict.fromkeys(term.letters))
    if letters != term.letters:
        s_unique = without_duplicates(term.storage)
        diagonal = _diagonal(Term(term.letters, with_value_numbers(s_unique)))
        values = gather_by_numbers(s_unique.values, diagonal.storage.values, [s_unique.fill_value])
        term = Term(diagonal.letters, diagonal.storage.with_values(values, term.storage.fill_value))
    if set(letters) <= set(kept):
        return term
    s: Storage = term.storage
    if semiring.name == "any_first":
        diagonal = _alone(Term(term.letters, with_value_numbers(s)), kept, semiring)
        return Term(
            diagonal.letters,
            diagonal.storage.with_values(gather_by_numbers(s.values, diagonal.storage.values), s.fill_value),
        )
    _check_plus_times(semiring)
    reduced = _alone(_structure_term(term), kept, semiring)
    dims = [term.letters.index(c) for c in reduced.letters]
    positions = value_numbers_at(reduced.storage, s, dims).clamp(min=0)
    start = s.values.new_zeros(1 + length(reduced.storage.values))
    return Term(reduced.letters, reduced.storage.with_values(start.index_add(0, positions, s.values)[1:]))
