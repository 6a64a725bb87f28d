"""`evaluate`: statements of index notation and tensors by name -> the value that the last one assigns.

    ow.evaluate("C[i, k] += A[i, j] * B[j, k]", A=A, B=B)

The text is read by `ir.index_text`, names and extents are checked here, `fusion.statement` runs one statement.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..compiler.semiring import Semiring
from ..errors import FormatError, ShapeError
from ..format.format import Format
from ..interop.operands import adopt_foreign
from ..interop.sources import asarray
from ..ir.index import Access, Assignment, accesses
from ..ir.index_text import parse_program, pointed
from ..provided import provided
from ..runtime import trace
from ..runtime.operation import operation
from ..runtime.overrides import takes_over
from ..runtime.semirings import semiring as semiring_of
from ..storage.buffers import is_array
from ..tensor.lazy import is_lazy
from ..tensor.tensor import Tensor
from .accumulate import accumulated_in
from .statement import run

__all__ = ["check_statement", "evaluate", "program_of", "read_by", "run_program"]

Run = Callable[[Assignment, Mapping[str, Any], Any, object, Semiring | None], Any]
"""From a statement, tensors by name, what its left side holds, a format and a semiring to what is assigned."""


@operation(masked=provided("masked evaluate"), returns="product")
def evaluate(
    statements: str, /, *, format: str | Format | None = None, semiring: str | Semiring | None = None, **tensors: Any
) -> Any:
    """What statements in index notation assign: products, elementwise expressions, reductions, in any mixture.

    Parameters
    ----------
    statements : one, or several separated by `;` or line ends, `#` begins a comment. `C[i, k] += A[i, j] * B[j, k]`,
        with parentheses too: `C(i, k) = A(i, j) * B(j, k)`. An index that the left side lacks is reduced: by `+=`
        `*=` `min=` `max=` `|=` `&=` over the whole right side, as loops over all indices would; by `any=` and `all=`,
        which ask for elements that are not 0; by `=` as a sum in each term that has it, so that
        `y(i) = b(i) - A(i, j) * x(j)` is a residual. `sum(j, A[i, j])` reduces where it stands; `prod`, `min`, `max`,
        `any`, `all` too. `C<M>[i, j] = ...` computes the elements at which M is not 0, `C<~M>[i, j]` the others. Later
        statements may use what earlier ones assign. Onto a tensor that is given or was assigned, operators combine,
        in its dtype where that is wider than the operands', and a mask keeps the elements that it leaves out
    format : of the last statement's result
    semiring : what `+`, `+=` and `*` are, a name or a Semiring; unspecified elements take no part. Without one they are
        fill values
    tensors : by the names that the statements use: Tensors, dense arrays, SciPy's and torch's, numbers; masked tensors,
        of which missing elements contribute nothing

    Returns
    -------
    what the last statement assigns: a Tensor where all operands are Tensors or numbers, else as `einsum` and the
    reductions give it; of rank 0 for a left side without indices; sparse under a mask, and where a dense result would
    need far more memory than the operands; masked where an operand is, unless the left side, which was not, is combined
    with it

    Guarantees: equal to the statement on the dense arrays up to the order of floating-point sums. Without an index to
    reduce as `pointwise`; for sums of products as `einsum`, term by term.
    Cost: that of `pointwise`, `einsum`, or of one fused reduction.
    Raises FormatError for what cannot be read, ShapeError where names, numbers of indices or extents do not fit, both
    with a caret under the place, UnsupportedError for what a semiring cannot say, TypeError for tensors that no
    statement uses.
    Source: index notation as in Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    See also: einsum, lazy, explain.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=np.array([10., 20.]))
    array([40., 10.])
    >>> ow.evaluate("C<A>[i, k] = A[i, j] * A[j, k]", A=A).nse
    0
    >>> ow.evaluate("T(i, j) = A(i, j) + A(j, i); s max= T(i, j)", A=A)
    Tensor(shape=(), dtype=float64, format="dense", nse=1, nbytes=8)
    """
    for value in tensors.values():
        if takes_over(value):
            options = {"format": format, "semiring": semiring, **tensors}
            return type(value).__openwork_function__(evaluate, (statements,), options)
    return run_program(statements, tensors, format, semiring, run)


def run_program(
    statements: str, tensors: Mapping[str, Any], format: str | Format | None, semiring: str | Semiring | None, run: Run
) -> Any:
    """Statements and tensors by name -> what the last statement assigns, each run by `run`; see `evaluate`."""
    values = {name: _operand(name, value) for name, value in tensors.items()}
    unused = set(tensors)
    ring = None if semiring is None else semiring_of(semiring)
    program = program_of(statements)
    for number, (text, parts) in enumerate(program, 1):
        for part in parts:
            target = part.lhs.tensor
            combines = target in values and (part.op != "=" or part.mask is not None)
            check_statement(text, part, values, combines)
            unused -= {a.tensor for a in read_by(part, combines)}
            if trace.active():
                trace.note(trace.Step(f"statement {part}", heads=True))
            last = number == len(program) and part is parts[-1]
            old = values[target] if combines else None
            operands = accumulated_in(old, part.rhs, values) if combines and part.op != "=" else values
            values[target] = result = run(part, operands, old, format if last else None, ring)
    if unused:
        raise TypeError(f"evaluate: no statement uses {', '.join(sorted(unused))}\n  help: leave it out")
    return result


def program_of(text: str) -> tuple[tuple[str, tuple[Assignment, ...]], ...]:
    """Each statement's text, and what it consists of."""
    if not isinstance(text, str):
        raise TypeError(
            f"evaluate: expected statements as a str; got {type(text).__name__}\n  help: ow.evaluate(text, A=A)"
        )
    program = parse_program(text)
    if not program:
        raise FormatError("evaluate: there is no statement\n  help: ow.evaluate('y[i] += A[i, j] * x[j]', A=A, x=x)")
    return program


def _operand(name: str, value: Any) -> Any:
    """A Tensor, an array or a number; a tensor that takes calls over, as it is."""
    if takes_over(value):
        return value
    value = adopt_foreign(value.compute() if is_lazy(value) else value)
    if isinstance(value, Tensor) or is_array(value) or isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    try:
        return asarray(value)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise type(error)(f"evaluate: operand {name}: {error}") from None


def _rank(value: Any) -> int:
    return int(getattr(value, "ndim", 0))


def read_by(stmt: Assignment, combines: bool) -> Iterator[Access]:
    """The accesses that a statement reads; `combines` where it reads its left side too."""
    yield from accesses(stmt.rhs)
    if stmt.mask is not None:
        yield stmt.mask
    if combines:
        yield stmt.lhs


def check_statement(text: str, stmt: Assignment, values: Mapping[str, Any], keeps: bool) -> None:
    """ShapeError with a caret unless names are given, have as many indices as dimensions, and extents agree."""

    def wrong(access: Access | str, what: str, remedy: str) -> ShapeError:
        return ShapeError(f"evaluate:\n{pointed(text, access)}\n  {what}\n  help: {remedy}")

    sizes: dict[str, tuple[int, Access]] = {}
    for access in read_by(stmt, keeps):
        name = access.tensor
        if name not in values:
            names = ", ".join(n for n in values if n.isidentifier())
            matches = difflib.get_close_matches(name, values, 1)
            suggested = f"did you mean {matches[0]}?" if matches else f"evaluate(text, {name}=...)"
            raise wrong(access, f"no tensor {name}\n  given: {names or 'nothing'}", suggested)
        rank, count = _rank(values[name]), len(access.indices)
        if count != rank:
            what = f"{name} has {rank} dimensions, {access} has {count} indices"
            raise wrong(access, what, "one index for each dimension")
        for i, n in zip(access.indices, getattr(values[name], "shape", ()), strict=True):
            size, first = sizes.setdefault(i, (int(n), access))
            if size != n:
                what = f"index {i} is {size} in {first} and {n} in {access}"
                raise wrong(access, what, "slice or pad one of them")
    for i in stmt.lhs.indices:
        if i not in sizes:
            what = f"the extent of index {i} does not follow from the right side"
            raise wrong(i, what, f"multiply by a tensor of ones with index {i}")
