"""One or two sparse tensors and index letters -> a sparse sum of products over a semiring.

Two terms are matricized: letters of both that stay are rows of both, letters of both that are summed are contracted,
the others are the free rows and columns::

    bij, bjk -> bik        rows (b, i), contracted (b, j), columns k

Of a term alone, diagonals are taken, and letters that no other term has are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...classes import frozen
from ...compiler.semiring import Semiring
from ...errors import UnsupportedError
from ...format import Format, coo
from ...format import format as parse
from ...interruptible import LONG, whole
from ...storage.buffers import as_array, cast, length, scalar_of, to_numpy
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ..conversion.convert import convert
from ..gradient_hook import differentiable
from ..promote import promote
from .matricize import CSR, SPARE, align_columns, align_mask, as_csr, fold, matricize, scalar_storage
from .spgemm import Rows, multiply

__all__ = ["Term", "absent", "alone", "in_format", "masked", "pair", "result_format"]

CSC = parse("csc")


@frozen
class Term:
    """A sparse operand and its letters, one for each dimension."""

    letters: str
    storage: Storage

    @property
    def extents(self) -> dict[str, int]:
        return dict(zip(self.letters, self.storage.shape, strict=True))


def absent(s: Storage, semiring: Semiring, scalar: str, what: str) -> Storage:
    """The storage with the semiring's zero as fill value, so that unspecified elements take no part.

    scalar: the scalar type of the result. Raises UnsupportedError for a fill value that is neither 0 nor that zero.
    """
    zero = python_scalar(semiring.add.identity_of(scalar), scalar)
    if s.format.is_dense and s.format.ndim:
        return s.with_values(cast(s.values, scalar), zero) if zero else s
    if s.fill_value and s.fill_value != zero:
        raise UnsupportedError(
            f"{what} of a tensor with fill value {s.fill_value!r}\n  supported: fill value 0 or {zero!r}, the"
            f" identity of {semiring.add.name}; such elements take no part\n  help: subtract the fill value first"
        )
    return s


@differentiable(lambda term, *_: (term.storage.values,))
def alone(term: Term, letters_kept: str, semiring: Semiring) -> Term:
    """The term with each letter once, of those in `letters_kept`, the others summed."""
    term = _diagonal(term)
    summed = [d for d, c in enumerate(term.letters) if c not in letters_kept]
    if not summed:
        return term
    s = term.storage
    rows = [d for d, c in enumerate(term.letters) if c in letters_kept]
    m = matricize(s, rows, summed)
    left = replace(m, crd=np.zeros(m.nse, np.int32), columns=1)
    one = np.ones(1, to_numpy(m.values).dtype)
    right = Rows(np.array([0, 1], np.int32), np.zeros(1, np.int32), one, 1)
    adding = semiring.reducing()
    out = multiply(left, right, adding, library=s.library)
    return Term("".join(term.letters[d] for d in rows), _as_tensor(out, [s.shape[d] for d in rows], [], adding, s))


def _diagonal(term: Term) -> Term:
    """The term with each letter once: the elements at which the dimensions of a repeated letter agree."""
    letters = "".join(dict.fromkeys(term.letters))
    if letters == term.letters:
        return term
    s = convert(term.storage, coo(len(term.letters)))
    crd = [to_numpy(c) for c in s.crd]
    first = {c: term.letters.index(c) for c in letters}
    on_diagonal = np.ones(len(crd[0]), np.bool_)
    for d, c in enumerate(term.letters):
        if d != first[c]:
            on_diagonal &= crd[d] == crd[first[c]]
    shape = tuple(s.shape[first[c]] for c in letters)
    arrays = tuple(as_array(crd[first[c]][on_diagonal], like=s.values) for c in letters)
    ends = as_array(np.array([0, int(on_diagonal.sum())], crd[0].dtype), like=s.values)
    values = as_array(to_numpy(s.values)[on_diagonal], like=s.values)
    pos = (ends, *(None,) * (len(letters) - 1))
    return Term(letters, Storage(shape, coo(len(letters)), s.scalar, s.fill_value, pos, arrays, values))


@differentiable(lambda x, y, *_: (x.storage.values, y.storage.values))
def pair(x: Term, y: Term, out: str, semiring: Semiring, mask: Term | None = None) -> Term:
    """The contraction of two terms, of whose letters those of `out` stay.

    A letter that is not in `out` is contracted where both terms have it; where one has it, it is summed before if
    products distribute over sums, and after if not. The result's letters are in the order of `out` where that costs
    nothing: the rows' letters before the columns'. With a mask, whose letters are those of `out`, only the elements
    that it specifies are computed.
    """
    letters = out + "".join(c for c in dict.fromkeys(x.letters + y.letters) if c not in out)
    unshared = set(x.letters) ^ set(y.letters)
    if any(c in unshared and c not in out for c in letters):
        if not semiring.distributes:
            return alone(pair(x, y, "".join(c for c in letters if c in out or c in unshared), semiring), out, semiring)
        x, y = (alone(t, out + other.letters, semiring) for t, other in ((x, y), (y, x)))
    swap = _is_transposed_cheaper(x, y, out)
    if swap:
        x, y, semiring = y, x, semiring.swapped()
    shared = [c for c in y.letters if c in x.letters]
    batch = sorted((c for c in shared if c in out), key=out.index)
    contracted = [c for c in shared if c not in out]
    rows = sorted((c for c in x.letters if c in out), key=out.index)
    columns = sorted((c for c in y.letters if c in out and c not in shared), key=out.index)
    inner = [*batch, *contracted]
    a = matricize(x.storage, [x.letters.index(c) for c in rows], [x.letters.index(c) for c in inner], ordered=False)
    b = matricize(y.storage, [y.letters.index(c) for c in inner], [y.letters.index(c) for c in columns])
    a, b = align_columns(a, b)
    m = None
    if mask is not None:
        at = [[mask.letters.index(c) for c in group] for group in (rows, columns)]
        m = align_mask(a, matricize(mask.storage, *at))
    product = multiply(a, b, semiring, library=x.storage.library, mask=m)
    extents = {**x.extents, **y.extents}
    sides = [[extents[c] for c in group] for group in (rows, columns)]
    return Term("".join((*rows, *columns)), _as_tensor(product, sides[0], sides[1], semiring, x.storage, y.storage))


@differentiable(lambda x, y, *_: (x.storage.values, y.storage.values))
def masked(x: Term, y: Term, mask: Term, semiring: Semiring, complement: bool) -> Term:
    """The matrix product of "ij" and "jk" at the elements of a mask "ik", or at all others."""
    if _is_transposed_cheaper(x, y, "ik"):
        left, right, m = (t.storage.permute((1, 0)) for t in (y, x, mask))
        return Term("ki", _masked(left, right, m, semiring.swapped(), complement))
    return Term("ik", _masked(x.storage, y.storage, mask.storage, semiring, complement))


def _masked(x: Storage, y: Storage, mask: Storage, semiring: Semiring, complement: bool) -> Storage:
    a, b = align_columns(matricize(x, [0], [1]), matricize(y, [0], [1]))
    m = align_mask(a, matricize(mask, [0], [1]))
    product = multiply(a, b, semiring, library=x.library, mask=m, complement=complement)
    return _as_tensor(product, [x.shape[0]], [y.shape[1]], semiring, x, y)


def _is_transposed_cheaper(x: Term, y: Term, out: str) -> bool:
    """Whether the transposed product, with the second term's rows as the result's, sorts less."""
    if len(x.letters) == len(y.letters) == 2 == len(out) and len(set(x.letters) & set(y.letters)) == 1:
        (j,) = set(x.letters) & set(y.letters)
        formats = [_compressed_by(t, j) for t in (x, y)]
        direct = (formats[0] == "free") + (formats[1] == "shared")
        other = (formats[0] == "shared") + (formats[1] == "free")
        if direct != other:
            return other > direct
    free = [c for c in out if (c in x.letters) != (c in y.letters)]
    return bool(free) and free[0] in y.letters


def _compressed_by(t: Term, shared: str) -> str:
    """Which letter of a matrix is its compressed dimension: "shared", "free", or "" for other formats."""
    if t.storage.format == CSR:
        return "shared" if t.letters[0] == shared else "free"
    if t.storage.format == CSC:
        return "shared" if t.letters[1] == shared else "free"
    return ""


def _as_tensor(m: Rows, rows: Sequence[int], columns: Sequence[int], semiring: Semiring, *operands: Storage) -> Storage:
    """A matricized result -> the tensor, in the dtype that its operands promote to."""
    if type(m.values) is np.ndarray and type(operands[0].values) is np.ndarray and len(m.values) >= LONG:
        return whole(_fold, (m, rows, columns, semiring, *operands), {})
    return _fold(m, rows, columns, semiring, *operands)


def _fold(m: Rows, rows: Sequence[int], columns: Sequence[int], semiring: Semiring, *operands: Storage) -> Storage:
    like = operands[0].values
    scalar = semiring.result(promote(tuple(s.scalar for s in operands), operands[0].library))
    zero = python_scalar(semiring.add.identity_of(scalar), scalar)
    if scalar_of(to_numpy(m.values)) != scalar:
        m = replace(m, values=to_numpy(cast(as_array(m.values, like=like), scalar)))
    if len(rows) == len(columns) == 1:
        plain = as_csr(m, (rows[0], columns[0]), scalar, zero, like)
        if plain is not None:
            return plain
    return fold(m, rows, columns, scalar, zero, like)


def result_format(operands: Sequence[Storage], shape: Sequence[int]) -> Format:
    """The operands' format where all have the same and it can store any tensor; else CSR, or COO by rank.

    COO too where rows are so many more than elements that a position for each would be most of the memory.
    """
    ndim = len(shape)
    if ndim == 0:
        return parse("dense", 0)
    first = operands[0].format
    if first.ndim == ndim and all(s.format == first for s in operands) and _holds_all(first):
        return first
    is_hypersparse = ndim == 2 and shape[0] > 4 * max(length(s.values) for s in operands) + SPARE
    return CSR if ndim == 2 and not is_hypersparse else coo(ndim)


def _holds_all(f: Format) -> bool:
    """Whether a tensor of any structure fits the format, in canonical order."""
    fixed = any(level.format.slots is not None or level.format.batched for level in f.levels)
    return f.is_unique and f.is_ordered and not f.is_dense and not fixed


def in_format(term: Term, out: str, format: Format) -> Storage:
    """The term with its letters in the order of `out`, in a format; one of rank 0 is dense."""
    s = term.storage
    if not out:
        return scalar_storage(s.values, s.scalar, s.fill_value, s.values)
    return convert(s if out == term.letters else s.permute([term.letters.index(c) for c in out]), format)
