"""`einsum` of sparse and dense operands over any semiring, and the tensor products that are instances of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import tuning
from ...compiler.semiring import Semiring
from ...errors import ShapeError, UnsupportedError
from ...format import coo
from ...interop.operands import adopted
from ...ir.index import Access, Apply, Assignment, Expression
from ...late import late
from ...runtime import trace
from ...runtime.contract import contract
from ...runtime.contraction.path import Size, Step, find_path
from ...runtime.contraction.sparse import Term, absent, alone, in_format, pair, result_format
from ...runtime.formats import resolve_format
from ...runtime.operation import operation
from ...runtime.promote import promote
from ...runtime.semirings import semiring as semiring_of
from ...runtime.strided import strided
from ...storage.buffers import Array, as_array, cast, is_array, is_torch, length, library_of, scalar_of
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..axes import axis_of
from ..elementwise.maps import elementwise
from .subscripts import parse_subscripts, subscripts_of

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["einsum", "mttkrp", "ttm", "ttv"]


@operation(masked=late("masked.products", "einsum"), returns="product")
def einsum(subscripts: Any, /, *operands: Any, format: object = None, semiring: str | Semiring = "plus_times") -> Any:
    """Sums of products by index letters, of any number of sparse and dense operands.

    Parameters
    ----------
    subscripts : "ijk,jr,kr->ir"; without an arrow the letters that occur once make up the result, sorted. Or, as in
        NumPy, operands and lists of numbers in turn: `einsum(A, [0, 1], B, [1, 2], [0, 2])`
    operands : Tensors and dense arrays, one for each term
    format : the result's format; without, that of the sparse operands where it is the same for all and has the
        result's rank, else "csr" or "coo" of its rank
    semiring : what sums and products are, a name or a Semiring; unspecified elements take no part

    Returns
    -------
    a sparse Tensor where all operands are sparse and there are several; with dense operands an array of their
    library; a dense Tensor where all operands are Tensors, and one of them dense or all but one

    Guarantees: equal to `numpy.einsum` on the dense arrays up to the order of floating-point sums; a sparse result is
    sorted and without duplicates, and the same for any number of threads.
    Cost: two operands at a time, in the order that is cheapest by estimates from numbers of elements; one sparse
    operand with dense ones is one kernel, O(nse * extents of the letters that it lacks).
    Raises ShapeError if extents disagree, UnsupportedError for fill values that are not the semiring's zero.
    Source: numpy.einsum's notation; Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.einsum("ij,j->i", A, np.array([10., 20.]))
    array([40., 10.])
    >>> ow.einsum("ij,jk->ik", A, A, semiring="min_plus").to_numpy()
    array([[ 3., inf],
           [inf,  3.]])
    """

    ring = semiring_of(semiring)
    if not isinstance(subscripts, str):
        subscripts, operands = subscripts_of((subscripts, *operands))
    given = [x.compute() if is_lazy(x) else x for x in operands]
    every = [x if isinstance(x, Tensor) else _array(x) for x in map(adopted, given)]
    inputs, output, stretched = parse_subscripts(subscripts, tuple(x.ndim for x in every))
    plain = all(isinstance(x, Tensor) for x in every)
    values = [x.to_dense() if isinstance(x, Tensor) and x.format.is_dense else x for x in every]
    inputs, values = _broadcast(subscripts, inputs, values, stretched)
    sparse = [x for x in values if isinstance(x, Tensor)]
    reduction = _DRIVES.get((ring.add.operation, ring.multiply)) if ring.dtype in ("promote", "bool") else None
    if (
        format is not None
        and len(sparse) == 1
        and _is_wide(inputs, output, values, resolve_format(format, len(output)))
    ):
        values = [x if isinstance(x, Tensor) else Tensor._from_dense(x).asformat(coo(x.ndim)) for x in values]
        sparse = values
    whole = len(sparse) == 1 and (len(values) > 1 or (format is None and _sums(inputs[0], output)))
    result: Any
    if not sparse and ring.name == "plus_times":
        result = _dense_einsum(f"{','.join(inputs)}->{output}", values)
    elif whole and reduction:
        result = _single(inputs, output, values, subscripts, ring, reduction)
    else:
        result = _many(inputs, output, values, subscripts, ring, format)
    if isinstance(result, Tensor):
        return result if format is None else result.asformat(resolve_format(format, result.ndim))
    if format is not None:
        return Tensor._from_dense(result).asformat(resolve_format(format, result.ndim))
    return Tensor._from_dense(result) if plain else result


_DRIVES = {
    ("x + y", "x * y"): ("+=", "mul"),
    ("min(x, y)", "x + y"): ("min=", "add"),
    ("max(x, y)", "x + y"): ("max=", "add"),
    ("min(x, y)", "x * y"): ("min=", "mul"),
    ("max(x, y)", "x * y"): ("max=", "mul"),
    ("min(x, y)", "max(x, y)"): ("min=", "max"),
    ("max(x, y)", "min(x, y)"): ("max=", "min"),
    ("x | y", "x & y"): ("|=", "and"),
}
"""Semirings that index notation has words for: the assignment and the product."""


def _is_wide(inputs: tuple[str, ...], output: str, values: list[Any], format: object) -> bool:
    """Whether a sparse result may be much smaller than the dense array of its shape."""
    extents = {c: n for term, x in zip(inputs, values, strict=True) for c, n in zip(term, x.shape, strict=True)}
    free = {c for term, x in zip(inputs, values, strict=True) if is_array(x) for c in term} & set(output)
    stored = next(length(x.values) for x in values if not is_array(x))
    sparse = any(level.format.buffers for level in resolve_format(format, len(output)).levels)
    found = stored * math.prod(extents[c] for c in free)
    return sparse and math.prod(extents[c] for c in output) > DENSE_ROOM + DENSE_SHARE * found


DENSE_ROOM, DENSE_SHARE = tuning.EINSUM_DENSE_ROOM, tuning.EINSUM_DENSE_SHARE


def _sums(term: str, output: str) -> bool:
    return any(c not in output for c in term)


def _array(x: Any) -> Any:
    return x if is_array(x) else np.asarray(x)


def _broadcast(
    text: str, inputs: tuple[str, ...], values: list[Any], stretched: str
) -> tuple[tuple[str, ...], list[Any]]:
    """Dimensions of extent one that an ellipsis stretches are left out; ShapeError where extents disagree."""
    extents: dict[str, int] = {}
    for term, x in zip(inputs, values, strict=True):
        for c, n in zip(term, x.shape, strict=True):
            known = extents.setdefault(c, n)
            if known != n and not (1 in (known, n) and c in stretched):
                listed = "; ".join(f"{t} has shape {tuple(v.shape)}" for t, v in zip(inputs, values, strict=True))
                raise ShapeError(
                    f"einsum {text!r}: index {c} has extents {known} and {n}\n  got: {listed}"
                    "\n  help: make these dimensions equal, by slicing or transposing an operand"
                )
            extents[c] = max(known, n) if known != 0 and n != 0 else 0
    terms, out = [], []
    for term, x in zip(inputs, values, strict=True):
        ones = [d for d, c in enumerate(term) if x.shape[d] != extents[c]]
        terms.append("".join(c for d, c in enumerate(term) if d not in ones))
        out.append(_without(x, ones) if ones else x)
    return tuple(terms), out


def _without(x: Any, ones: Sequence[int]) -> Any:
    """The operand without dimensions of extent one."""

    letters = "abcdefghijklmnopqrstuvwxyz"[: x.ndim]
    kept = "".join(c for d, c in enumerate(letters) if d not in ones)
    if not isinstance(x, Tensor):
        return x.reshape(tuple(n for d, n in enumerate(x.shape) if d not in ones))
    return Tensor._from_storage(alone(Term(letters, x._storage), kept, semiring_of("any_first")).storage)


def _single(
    inputs: tuple[str, ...], output: str, operands: list[Any], text: str, ring: Semiring, words: tuple[str, str]
) -> Any:
    """One sparse operand with dense ones: one kernel, whose result is dense."""

    terms = list(inputs)
    values: dict[str, Any] = {}
    like: Any = None
    scalars = []
    for k, x in enumerate(operands):
        if isinstance(x, Tensor):
            values[f"T{k}"] = x._storage
            sparse = x._storage
            scalars.append(sparse.scalar)
        else:
            terms[k], x = _dense_diagonal(terms[k], x)
            view = strided(x)
            values[f"T{k}"], like = view, view.owner
            scalars.append(view.scalar)
    like = sparse.values if like is None else like
    scalar = ring.result(promote(tuple(scalars), library_of(like)))
    name = next(n for n, v in values.items() if v is sparse)
    at = int(name[1:])
    term = alone(Term(terms[at], absent(sparse, ring, scalar, f"einsum {text!r}")), terms[at], ring)
    terms[at], values[name] = term.letters, term.storage
    try:
        return contract(_statement(tuple(terms), output, *words), values, scalar, like)
    except MemoryError as error:
        raise MemoryError(
            f'einsum {text!r}: {error}\n  help: einsum(..., format="coo") gives a sparse result'
        ) from None


def _dense_diagonal(term: str, x: Any) -> tuple[str, Any]:
    """A dense operand with every letter once: a view."""
    letters = "".join(dict.fromkeys(term))
    if letters == term:
        return term, x
    return letters, _dense_einsum(f"{term}->{letters}", [x])


def _dense_einsum(subscripts: str, values: Sequence[Any]) -> Array:
    """Of dense arrays only: torch's where one is torch's."""
    like = next((x for x in values if is_torch(x)), None)
    if like is None:
        return np.asarray(np.einsum(subscripts, *values))
    import torch

    given = [as_array(x, like=like) for x in values]
    scalar = promote(tuple(scalar_of(x) for x in given), "torch")
    return torch.einsum(subscripts, *(cast(x, scalar) for x in given))


@lru_cache(maxsize=256)
def _statement(inputs: tuple[str, ...], output: str, assign: str, times: str) -> Assignment:
    rhs: Expression | None = None
    for k, term in enumerate(inputs):
        access = Access(f"T{k}", tuple(term))
        rhs = access if rhs is None else Apply(times, (rhs, access))
    assert rhs is not None
    return Assignment(Access("out", tuple(output)), assign, rhs)


def _many(inputs: tuple[str, ...], output: str, operands: list[Any], text: str, ring: Semiring, format: object) -> Any:
    """Two operands at a time; a Tensor where the result is sparse."""

    if len(operands) > 2 and not ring.distributes:
        raise UnsupportedError(
            f"einsum {text!r} of {len(operands)} operands over {ring.name}, whose products do not distribute over sums"
            "\n  supported: two operands\n  help: contract two at a time"
        )
    like = next((x for x in operands if not isinstance(x, Tensor)), None)
    stored = [x._storage for x in operands if isinstance(x, Tensor)]
    all_scalars = tuple(x._storage.scalar if isinstance(x, Tensor) else strided(x).scalar for x in operands)
    library = library_of(stored[0].values if like is None else like)
    scalar = ring.result(promote(all_scalars, library))
    dense_stays = ring.name == "plus_times"
    terms: list[Term | tuple[str, Array]] = []
    for k, (term, x) in enumerate(zip(inputs, operands, strict=True)):
        if isinstance(x, Tensor) or not dense_stays:
            s = x._storage if isinstance(x, Tensor) else Tensor._from_dense(x)._storage
            s = absent(s, ring, scalar, f"einsum {text!r}")
            others = output + "".join(t for j, t in enumerate(inputs) if j != k)
            early = ring.distributes or len(operands) == 1
            several = len(operands) > 2 or (early and _sums(term, others))
            if several and ring.dtype == "promote" and s.scalar != scalar:
                s = s.with_values(cast(s.values, scalar), python_scalar(s.fill_value, scalar))
            terms.append(alone(Term(term, s), others if early else term, ring))
        else:
            terms.append(_dense_diagonal(term, cast(x, scalar) if len(operands) > 2 else x))
    result = _contracted(terms, output, ring)
    if isinstance(result, Term):
        shape = [result.extents[c] for c in output]
        target = result_format(stored or [result.storage], shape)
        wanted = target if format is None else resolve_format(format, len(output))
        return Tensor._from_storage(in_format(result, output, wanted))
    letters, array = result
    order = [letters.index(c) for c in output]
    return array.transpose(order) if isinstance(array, np.ndarray) else array.permute(order)


def _contracted(terms: list[Term | tuple[str, Array]], output: str, ring: Semiring) -> Term | tuple[str, Array]:
    """All terms contracted along the cheapest path."""
    if len(terms) == 1:
        return terms[0]
    extents: dict[str, int] = {}
    sizes = []
    for t in terms:
        letters, shape = (t.letters, t.storage.shape) if isinstance(t, Term) else (t[0], tuple(t[1].shape))
        extents |= dict(zip(letters, shape, strict=True))
        nse = t.storage.nse if isinstance(t, Term) else float(np.prod(shape))
        sizes.append(Size(frozenset(letters), float(nse), not isinstance(t, Term)))
    steps = find_path(sizes, output, extents) if len(terms) > 2 else [Step(0, 1, 0.0, sizes[0])]
    terms = list(terms)
    for number, step in enumerate(steps):
        y, x = terms.pop(step.right), terms.pop(step.left)
        rest = {c for t in terms for c in (t.letters if isinstance(t, Term) else t[0])}
        mine = [t.letters if isinstance(t, Term) else t[0] for t in (x, y)]
        last = number == len(steps) - 1
        kept = output if last else "".join(c for c in dict.fromkeys("".join(mine)) if c in output or c in rest)
        if trace.active() and len(steps) > 1:
            facts = (("terms", f"{mine[0]}, {mine[1]} -> {kept}"), ("estimate", f"{step.result.nse:,.0f} elements"))
            trace.note(trace.Step(f"step {number + 1} of {len(steps)} by the cheapest path", facts))
        terms.append(_two(x, y, kept, ring))
    return terms[0]


def _two(x: Term | tuple[str, Array], y: Term | tuple[str, Array], kept: str, ring: Semiring) -> Any:
    if isinstance(x, Term) and isinstance(y, Term):
        if ring.name == "plus_times" and set(x.letters) == set(y.letters) == set(kept):
            return _elementwise(x, y)
        return pair(x, y, kept, ring)
    letters = [t.letters if isinstance(t, Term) else t[0] for t in (x, y)]
    values = [_tensor(t.storage) if isinstance(t, Term) else t[1] for t in (x, y)]
    if isinstance(x, tuple) and isinstance(y, tuple):
        return kept, _dense_einsum(f"{','.join(letters)}->{kept}", values)
    return kept, _single(tuple(letters), kept, values, ",".join(letters), ring, ("+=", "mul"))


def _elementwise(x: Term, y: Term) -> Term:
    """The product of two terms of the same letters, none of which goes."""

    other = y.storage.permute([y.letters.index(c) for c in x.letters])
    return Term(x.letters, elementwise("mul", _tensor(x.storage), _tensor(other), zero_annihilates=True)._storage)


def _tensor(s: Storage) -> Tensor:

    return Tensor._from_storage(s)


@operation(returns="any")
def mttkrp(t: Any, factors: list[Any], dim: int) -> Any:
    """Matricised tensor times Khatri-Rao product: the kernel of alternating least squares for CP decompositions.

    Parameters
    ----------
    t : Tensor, shape (n_0, ..., n_{d-1})
    factors : one array (n_k, r) for each dimension; that of `dim` is not read and may be None
    dim : the dimension that stays

    Returns
    -------
    array (n_dim, r): out[i, r] = sum of t[..., i, ...] times the product over k != dim of factors[k][i_k, r]

    Cost: O(nse * r), less where factors are shared by a fibre.
    Source: Bader and Kolda, Efficient MATLAB computations with sparse and factored tensors, SISC 2007.
    """
    letters, dim = "abcdefghijklmnop"[: t.ndim], axis_of(dim, t.ndim, "mttkrp", "dim")
    others = [k for k in range(t.ndim) if k != dim]
    terms = ",".join(letters[k] + "r" for k in others).replace("rr", "r")
    text = f"{letters},{terms}->{letters[dim]}r"
    return einsum(text, t, *(factors[k] for k in others))


@operation(returns="product")
def ttv(t: Any, v: Any, dim: int) -> Any:
    """Tensor times vector: the sum over dimension `dim` of t times v, shape without that dimension."""
    letters, d = "abcdefghijklmnop"[: t.ndim], axis_of(dim, t.ndim, "ttv", "dim")
    return einsum(f"{letters},{letters[d]}->{letters[:d]}{letters[d + 1 :]}", t, v)


@operation(returns="product")
def ttm(t: Any, m: Any, dim: int) -> Any:
    """Tensor times matrix (n_dim, r): dimension `dim` is replaced by one of extent r."""
    letters, d = "abcdefghijklmnop"[: t.ndim], axis_of(dim, t.ndim, "ttm", "dim")
    return einsum(f"{letters},{letters[d]}z->{letters[:d]}z{letters[d + 1 :]}", t, m)
