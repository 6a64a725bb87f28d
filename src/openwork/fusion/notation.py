"""Index notation to tensors: `evaluate("C[i,k] += A[i,j] * B[j,k]", A=A, B=B)`, and statements after one another.

A statement goes the shortest of three ways, each an operation that users can call themselves:

    C[i,j] = A[i,j] - B[j,i]            pointwise    no index is reduced: one merge
    C[i,k] += A[i,j] * B[j,k] + 2       einsum       a sum of products: each product contracted, then added
    s max= abs(A[i,j] - B[i,j])         reduction    anything else: a fused expression over all indices, reduced
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.semiring import Semiring
from ..errors import FormatError, ShapeError, UnsupportedError
from ..interop.operands import adopted
from ..interop.sources import asarray
from ..ir.index import Access, Apply, Assignment, Expression, Literal, accesses
from ..ir.index_text import parse
from ..ops.elementwise.functions import where
from ..ops.elementwise.maps import check_powers, elementwise, unary
from ..ops.elementwise.pointwise import pointwise
from ..ops.indexing.index import insert_dims
from ..ops.manipulation.triangles import diagonal
from ..ops.products.einsum import einsum
from ..ops.reductions import statistics
from ..runtime.operation import operation
from ..runtime.values import negative_power
from ..storage.buffers import is_array, is_torch
from ..tensor.dtypes import isdtype
from ..tensor.lazy import lazy
from ..tensor.tensor import Tensor
from .program import compute

__all__ = ["evaluate"]

_LOGICAL = re.compile(r"(?<=[\s\])])(any|all)=(?!=)")
_SIGNS = {"any": "  |=", "all": "  &="}
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REDUCTIONS = {"add": "sum", "mul": "prod", "min": "min", "max": "max", "or": "any", "and": "all"}


@operation(returns="product")
def evaluate(
    statements: str, /, *, format: object = None, semiring: str | Semiring | None = None, **tensors: Any
) -> Any:
    """What statements in index notation assign: products, elementwise expressions, reductions, in any mixture.

    Parameters
    ----------
    statements : one, or several separated by `;` or line ends, `#` begins a comment. `C[i, k] += A[i, j] * B[j, k]`,
        with parentheses too: `C(i, k) += A(i, j) * B(j, k)`. An index that the left side lacks is reduced by the
        assignment's operator, over the whole right side: `=` and `+=` sum, `*=` `min=` `max=` `|=` `&=` combine so,
        `any=` and `all=` ask for elements that are not 0. Later statements may use what earlier ones assign
    format : of the last statement's result
    semiring : of products, a name or a Semiring; unspecified elements take no part. Without one they are fill values
    tensors : by the names that the statements use: Tensors, dense arrays, SciPy's and torch's, numbers

    Returns
    -------
    what the last statement assigns: a Tensor where all operands are Tensors or numbers, else as `einsum` and the
    reductions give it; of rank 0 for a left side without indices

    Guarantees: equal to the statement on the dense arrays up to the order of floating-point sums. Without an index to
    reduce as `pointwise`; for sums of products as `einsum`, term by term.
    Cost: that of `pointwise`, `einsum`, or of one fused reduction.
    Raises FormatError with a mark under what cannot be read, ShapeError where extents disagree, UnsupportedError for
    what a semiring cannot say, TypeError for tensors that no statement uses.
    Source: index notation as in Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=np.array([10., 20.]))
    array([40., 10.])
    >>> ow.evaluate("T(i, j) = A(i, j) + A(j, i); s max= T(i, j)", A=A)
    Tensor(shape=(), dtype=float64, format="dense", nse=1, nbytes=8)
    values = ( 3 )
    """
    known = {name: _operand(name, value) for name, value in tensors.items()}
    unused = set(tensors)
    program = _program(statements)
    for at, (stmt, logical) in enumerate(program):
        _expect(stmt, known)
        unused -= {a.tensor for a in accesses(stmt.rhs)}
        wanted = format if at == len(program) - 1 else None
        known[stmt.lhs.tensor] = result = _run(stmt, logical, known, wanted, semiring)
    if unused:
        raise TypeError(f"evaluate: no statement uses {', '.join(sorted(unused))}\n  help: leave it out")
    return result


def _program(text: str) -> list[tuple[Assignment, str | None]]:
    """The statements, and for each whether it asks `any` or `all`."""
    if not isinstance(text, str):
        raise TypeError(
            f"evaluate: expected statements as a str; got {type(text).__name__}\n  help: ow.evaluate(text, A=A)"
        )
    lines = [part for line in text.split("\n") for part in line.partition("#")[0].split(";")]
    found = []
    for line in filter(str.strip, lines):
        asked = _LOGICAL.search(line)
        found.append((parse(_LOGICAL.sub(lambda m: _SIGNS[m[1]], line, count=1).strip()), asked and asked[1]))
    if not found:
        raise FormatError("evaluate: there is no statement\n  help: ow.evaluate('y[i] += A[i, j] * x[j]', A=A, x=x)")
    return found


def _operand(name: str, value: Any) -> Any:
    """A Tensor, an array or a number."""
    value = adopted(value)
    if isinstance(value, Tensor) or is_array(value) or isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.generic):
        return value.item()
    try:
        return asarray(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"evaluate: operand {name}: {error}") from None


def _rank(value: Any) -> int:
    return int(getattr(value, "ndim", 0))


def _expect(stmt: Assignment, known: Mapping[str, Any]) -> None:
    """Names that are given, with as many indices as dimensions, extents that agree."""
    sizes: dict[str, tuple[int, Access]] = {}
    for access in accesses(stmt.rhs):
        if access.tensor not in known:
            close = difflib.get_close_matches(access.tensor, known, 1)
            meant = f"did you mean {close[0]}?" if close else f"evaluate(text, {access.tensor}=...)"
            listed = ", ".join(known) or "nothing"
            raise ShapeError(f"evaluate: {stmt}: no tensor {access.tensor}\n  given: {listed}\n  help: {meant}")
        value = known[access.tensor]
        if len(access.indices) != _rank(value):
            what = f"{access.tensor} has {_rank(value)} dimensions, {access} has {len(access.indices)} indices"
            raise ShapeError(f"evaluate: {stmt}: {what}\n  help: one index for each dimension")
        for i, n in zip(access.indices, getattr(value, "shape", ()), strict=True):
            size, first = sizes.setdefault(i, (int(n), access))
            if size != n:
                what = f"index {i} is {size} in {first} and {n} in {access}"
                raise ShapeError(f"evaluate: {stmt}: {what}\n  help: slice or pad one of them")
    for i in stmt.lhs.indices:
        if i not in sizes:
            raise ShapeError(
                f"evaluate: {stmt}: the extent of index {i} does not follow from the right side"
                f"\n  help: multiply by a tensor of ones with index {i}"
            )


def _run(stmt: Assignment, logical: str | None, known: Mapping[str, Any], format: object, semiring: Any) -> Any:
    e, known = _plain(stmt.rhs, known)
    _check_powers(e, known)
    if logical is not None:
        e = Apply("ne", (e, Literal(0)))
    free = stmt.lhs.indices
    reduced = tuple(dict.fromkeys(i for a in accesses(e) for i in a.indices if i not in free))
    if semiring is not None:
        found = _semiring(stmt, e, free, known, semiring)
    elif not reduced and any(isinstance(known[a.tensor], Tensor) for a in accesses(e)):
        return _pointwise(stmt.lhs, e, known, format)
    elif stmt.reduction == "add" and (terms := _terms(e, free, reduced, known)) is not None:
        found = _sum(terms, free, reduced, known, format)
    else:
        found = _reduced(e, free, reduced, _REDUCTIONS[stmt.reduction], known)
    if any(isinstance(known[a.tensor], Tensor) for a in accesses(e)) and not isinstance(found, Tensor):
        plain = any(is_array(known[a.tensor]) for a in accesses(e))
        found = found if plain and format is None else asarray(found)
    return found if format is None else asarray(found).asformat(format)


def _check_powers(e: Expression, known: Mapping[str, Any]) -> None:
    """PowerError for integers to the power of a tensor with negative ones; an exponent that is computed is refused."""
    if not isinstance(e, Apply):
        return
    for arg in e.args:
        _check_powers(arg, known)
    if e.op != "pow" or not all(_is_integer(arg, known) for arg in e.args):
        return
    base, exponent = e.args
    if isinstance(exponent, Access):
        check_powers(next((known[a.tensor] for a in accesses(base)), known[exponent.tensor]), known[exponent.tensor])
    elif isinstance(exponent, Literal):
        if isinstance(exponent.value, int) and exponent.value < 0:
            raise negative_power(f"{exponent.value}")
    else:
        raise UnsupportedError(
            f"evaluate: {e}: whether an integer exponent is negative is asked of a tensor; got an expression"
            "\n  help: assign the exponent to a tensor in a statement of its own, or take floating-point numbers"
        )


def _is_integer(e: Expression, known: Mapping[str, Any]) -> bool:
    """Whether the expression is of integers or truths alone, of NumPy's."""
    values = [known[a.tensor] for a in accesses(e)]
    if isinstance(e, Literal):
        return isinstance(e.value, int)
    return all(not is_torch(getattr(x, "values", x)) and isdtype(x.dtype, ("bool", "integral")) for x in values)


def _plain(e: Expression, known: Mapping[str, Any]) -> tuple[Expression, dict[str, Any]]:
    """`A[i, i]` becomes an access of the diagonal of A, and a number's name the number."""
    values = dict(known)
    return _plainly(e, values), values


def _plainly(x: Expression, values: dict[str, Any]) -> Expression:
    """The expression without indices that an access repeats, whose diagonals are added to the values."""
    if isinstance(x, Apply):
        return Apply(x.op, tuple(_plainly(a, values) for a in x.args))
    if not isinstance(x, Access):
        return x
    value, indices = values[x.tensor], list(x.indices)
    if not hasattr(value, "ndim"):
        return Literal(value)
    while (again := next((i for i in indices if indices.count(i) > 1), None)) is not None:
        first, second = (k for k, i in enumerate(indices) if i == again and indices[:k].count(again) < 2)
        value = diagonal(asarray(value), axis1=first, axis2=second)
        indices = [i for k, i in enumerate(indices) if k not in (first, second)] + [again]
    if len(indices) == len(x.indices):
        return x
    name = f"{x.tensor} at {', '.join(x.indices)}"
    values[name] = value
    return Access(name, tuple(indices))


def _pointwise(lhs: Access, e: Expression, known: Mapping[str, Any], format: object) -> Tensor:
    names = dict.fromkeys(a.tensor for a in accesses(e))
    short = {name: f"A{k}" for k, name in enumerate(names)}
    tensors = {short[n]: x if isinstance(x := known[n], Tensor) else asarray(x) for n in names}
    return pointwise(Assignment(Access("out", lhs.indices), "=", _renamed(e, short)), tensors, format)


def _renamed(e: Expression, names: Mapping[str, str]) -> Expression:
    match e:
        case Access(tensor, indices):
            return Access(names[tensor], indices)
        case Apply(op, args):
            return Apply(op, tuple(_renamed(a, names) for a in args))
    return e


# -- sums of products --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """`scale` times the product of accesses."""

    factors: tuple[Access, ...]
    scale: Any = 1


def _terms(
    e: Expression, free: tuple[str, ...], reduced: tuple[str, ...], known: Mapping[str, Any]
) -> list[_Term] | None:
    """The products that `e` is the sum of; None where it is something else, or a contraction gains nothing."""
    found = _summands(e, 1)
    if found is None or not any(len(t.factors) > 1 for t in found):
        return None
    for term in found:
        if any(isinstance(x := known[a.tensor], Tensor) and x.fill_value != 0 for a in term.factors):
            return None
        if not term.factors or {i for a in term.factors for i in a.indices}.isdisjoint((*free, *reduced)):
            return None
        if not set(free) <= {i for a in term.factors for i in a.indices}:
            return None
    return found


def _summands(e: Expression, scale: Any) -> list[_Term] | None:
    match e:
        case Apply("add" | "sub" as op, (left, right)):
            first = _summands(left, scale)
            second = _summands(right, scale if op == "add" else -scale)
            return None if first is None or second is None else first + second
        case Apply("neg", (inner,)):
            return _summands(inner, -scale)
    product = _product(e)
    return None if product is None else [_Term(product.factors, scale * product.scale)]


def _product(e: Expression) -> _Term | None:
    match e:
        case Access():
            return _Term((e,))
        case Literal(value):
            return _Term((), value)
        case Apply("mul", (left, right)):
            a, b = _product(left), _product(right)
            return None if a is None or b is None else _Term(a.factors + b.factors, a.scale * b.scale)
    return None


def _sampled(factors: tuple[Access, ...], free: tuple[str, ...], known: Mapping[str, Any]) -> object:
    """The format of a sparse factor over just the free indices: no other element of the product can be there."""
    found = (known[a.tensor] for a in factors if a.indices == free)
    return next((x.format for x in found if isinstance(x, Tensor) and not x.format.is_dense), None)


def _contracted(
    factors: tuple[Access, ...], free: tuple[str, ...], known: Mapping[str, Any], semiring: Any, format: object = None
) -> Any:
    every = dict.fromkeys(i for a in factors for i in a.indices)
    letter = dict(zip(every, _LETTERS, strict=False))
    inputs = ",".join("".join(letter[i] for i in a.indices) for a in factors)
    output = "".join(letter[i] for i in free)
    return einsum(f"{inputs}->{output}", *(known[a.tensor] for a in factors), semiring=semiring, format=format)


def _sum(
    terms: list[_Term], free: tuple[str, ...], reduced: tuple[str, ...], known: Mapping[str, Any], format: object
) -> Any:
    """Each product contracted, times the extents of the indices that it lacks."""
    sizes = _sizes([a for t in terms for a in t.factors], known)
    total = None
    for term in terms:
        own = {i for a in term.factors for i in a.indices}
        scale = term.scale
        for i in reduced:
            scale = scale if i in own else scale * sizes[i]
        part = _contracted(term.factors, free, known, "plus_times", format or _sampled(term.factors, free, known))
        part = part if type(scale) is int and scale == 1 else part * scale
        total = part if total is None else total + part
    return total


def _sizes(found: list[Access], known: Mapping[str, Any]) -> dict[str, int]:
    return {i: int(n) for a in found for i, n in zip(a.indices, known[a.tensor].shape, strict=True)}


def _semiring(stmt: Assignment, e: Expression, free: tuple[str, ...], known: Mapping[str, Any], semiring: Any) -> Any:
    product = _product(e)
    if product is None or stmt.op not in ("=", "+=") or product.scale != 1 or not product.factors:
        raise UnsupportedError(
            f"evaluate: {stmt}: a semiring says what the sum and the product of `+=` and `*` are"
            "\n  expected: a product of tensors\n  help: C[i, k] += A[i, j] * B[j, k], with semiring=..."
        )
    return _contracted(product.factors, free, known, semiring)


# -- anything else -----------------------------------------------------------------------------------------------------


def _reduced(
    e: Expression, free: tuple[str, ...], reduced: tuple[str, ...], name: str, known: Mapping[str, Any]
) -> Any:
    """`e` over all indices as one fused expression, reduced over the last ones."""
    order = (*free, *reduced)
    whole = _lazy(e, order, known)
    if reduced:
        if name in ("any", "all") and "bool" not in str(whole.dtype):
            raise UnsupportedError(
                f"evaluate: {e}: `|=` and `&=` combine truth values; got {whole.dtype}"
                f"\n  help: {name}= asks which are not 0"
            )
        whole = getattr(statistics, name)(whole, axis=tuple(range(len(free), len(order))))
    return compute(whole)


def _lazy(e: Expression, order: tuple[str, ...], known: Mapping[str, Any]) -> Any:
    match e:
        case Literal(value):
            return value
        case Access(tensor, indices):
            return lazy(_laid(known[tensor], indices, order))
        case Apply("select", args):
            return where(*(_lazy(a, order, known) for a in args))
        case Apply(op, (arg,)):
            return unary(op, _lazy(arg, order, known))
        case Apply(op, (left, right)):
            return elementwise(op, _lazy(left, order, known), _lazy(right, order, known))
    raise UnsupportedError(f"evaluate: {e} cannot be reduced\n  help: assign it to a name first, then reduce that")


def _laid(value: Any, indices: tuple[str, ...], order: tuple[str, ...]) -> Any:
    """A view with the dimensions of `order`, of extent 1 where it has none."""
    place = sorted(range(len(indices)), key=lambda k: order.index(indices[k]))
    new = tuple(k for k, i in enumerate(order) if i not in indices)
    if isinstance(value, Tensor):
        turned = value._storage.permute(place) if place != list(range(len(place))) else value._storage
        return Tensor._from_storage(insert_dims(turned, new) if new else turned)
    array = value.transpose(place) if isinstance(value, np.ndarray) else value.permute(*place)
    sizes = iter(array.shape)
    return array.reshape(tuple(1 if k in new else next(sizes) for k in range(len(order))))
