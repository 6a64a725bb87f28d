"""An elementwise expression over sparse tensors -> a sparse Tensor, by co-iteration.

`merge` is the binary case; `pointwise` takes any expression. Both run the program of the operands' structures.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import tuning
from ...classes import frozen
from ...errors import ShapeError, UnsupportedError, broadcast_error
from ...format import coo
from ...interop.sources import asarray
from ...ir.index import Access, Apply, Assignment, Expression
from ...ir.index import accesses as accesses_of
from ...ir.index_text import parse, parse_expression
from ...provided import provided
from ...runtime.coiterate.plan import MergePlan, plan_merge
from ...runtime.coiterate.program import Program, program_of
from ...runtime.coiterate.run import run_merge
from ...runtime.conversion.convert import convert
from ...runtime.conversion.unit_dims import is_long, with_unit_dims, without_unit_dims
from ...runtime.float_errors import WarningSource, report
from ...runtime.formats import resolve_format
from ...runtime.gradient_hook import tracked
from ...runtime.operation import operation
from ...runtime.values import apply, apply_with_warnings, user_name
from ...runtime.zero_annihilation import bounded
from ...storage.buffers import library_of, torch_module, zeros
from ...storage.scalars import python_scalar
from ...storage.storage import Storage
from ...tensor.lazy import is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from ..indexing.taking import prune

if TYPE_CHECKING:
    from ...format.format import Format
    from ...tensor.tensor import Tensor

__all__ = ["merge", "merge_equal", "pointwise", "read"]

MAX_MERGED = tuning.MERGE_OPERANDS

THIN_RATIO = tuning.SIEVE_RATIO

MAX_MASKED = tuning.MERGE_CASES_TOLD_APART
"""The same where elements may be missing: every set of operands has code of its own."""


def merge(op: str, a: Tensor, b: Tensor, zero_annihilates: bool = False) -> Tensor:
    """`a op b` of two sparse tensors, elementwise with broadcasting.

    Parameters
    ----------
    op : name of a binary operation of the loop IR
    a, b : Tensors of any formats, shapes that broadcast
    zero_annihilates : an unspecified zero makes a product zero even where it meets infinity or NaN

    Returns
    -------
    Tensor of the broadcast shape, NumPy's dtype; its fill value is `op` of the two. Of two equal formats the result
    has that format, else that of the first operand that has all dimensions. Sorted, without duplicates; `ell` and
    `structured` levels become compressed ones, whose width a result has no need to fit.

    Guarantees: equal to NumPy's result on the dense arrays, but with `zero_annihilates`. Structure is shared with an
    operand where it is the same.
    Cost: O(nse(a) + nse(b)); large operands whose coordinates are equal are not merged; operands whose order of levels
    disagrees are converted once. Products ask first whether the values are finite, which takes some hundredths of their
    time and which `zero_annihilates` saves; where they are not, all elements of both are walked.
    """
    s, t = a._storage, b._storage
    if s.shape == t.shape:
        return a._from_storage(merge_equal(op, s, t, zero_annihilates))
    n = max(len(s.shape), len(t.shape))
    names = tuple(f"i{d}" for d in range(n))
    e = Apply(op, (Access("A", names[n - len(s.shape) :]), Access("B", names[n - len(t.shape) :])))
    return pointwise(e, {"A": a, "B": b}, zero_annihilates=zero_annihilates)


def merge_equal(op: str, s: Storage, t: Storage, zero_annihilates: bool = False) -> Storage:
    """`merge` of storages of one shape."""
    if len(s.shape) > tuning.LOOP_DIMENSIONS and is_long(s.shape):
        return _merge_long(op, s, t, zero_annihilates)
    program = _pair(op, s, t, True)
    if program.one_structure:
        result, no_warning = _on_one_structure(op, s, t, program.plan)
    elif (
        zero_annihilates
        or program.plan.schedule.nonfinite_guard is None
        or _are_bounded(program.plan.schedule.nonfinite_guard, (s, t))
    ):
        result, no_warning = run_merge(program, (s, t))
    else:
        result, no_warning = _run_exact(program, _pair(op, s, t, False), (s, t))
    if not no_warning:
        report(_pair_expression(op), program.plan.schedule.dims, {"A": s, "B": t}, result)
    return result


def _merge_long(op: str, s: Storage, t: Storage, zero_annihilates: bool) -> Storage:
    """`merge` of storages of one shape of many dimensions, without those of extent 1, in COO."""
    n = len(s.shape)
    dims, long_coo = tuple(range(n)), coo(n)
    target = plan_merge(_expression(op, n), {"A": s, "B": t}, {"A": dims, "B": dims}, n, None).schedule.format
    x, y = (without_unit_dims(x if x.format == long_coo else convert(x, long_coo)) for x in (s, t))
    merged = with_unit_dims(merge_equal(op, x, y, zero_annihilates), s.shape)
    return merged if target == long_coo else convert(merged, target)


def _pair(op: str, s: Storage, t: Storage, annihilate: bool) -> Program:
    """The program of an operation of two operands of one shape."""

    def plan() -> MergePlan:
        ndim = len(s.shape)
        dims = tuple(range(ndim))
        return plan_merge(_expression(op, ndim), {"A": s, "B": t}, {"A": dims, "B": dims}, ndim, None, annihilate)

    return program_of((op, annihilate), (s, t), s.shape, plan)


def _are_bounded(limit: float, storages: tuple[Storage, ...]) -> bool:
    """Whether an unspecified zero meets neither infinity nor NaN, so that the merge is NumPy's result."""
    return all(bounded(s.values, limit) for s in storages)


def _on_one_structure(op: str, s: Storage, t: Storage, plan: MergePlan) -> tuple[Storage, bool]:
    """`merge` of operands that share their structure, and whether it is certain that NumPy would not warn.

    NumPy itself warns where each value is an element.
    """
    warned = plan.operands_warn
    values = apply_with_warnings(op, s.values, t.values) if warned else apply(op, s.values, t.values)
    no_warning = warned or plan.warnings is WarningSource.NEVER
    if plan.keeps_kind and values.dtype is s.values.dtype:
        return s.with_own_values(values), no_warning
    return s.with_values(values, plan.schedule.fill), no_warning


@lru_cache(maxsize=256)
def _expression(op: str, ndim: int) -> Apply:
    """The operation of two operands of so many dimensions."""
    names = tuple(f"i{d}" for d in range(ndim))
    return Apply(op, (Access("A", names), Access("B", names)))


@lru_cache(maxsize=256)
def _pair_expression(op: str) -> Apply:
    """The operation of two operands, wherever their dimensions are."""
    return Apply(op, (Access("A", ()), Access("B", ())))


def _run_exact(program: Program, exact: Program, storages: tuple[Storage, ...]) -> tuple[Storage, bool]:
    """NumPy's result where an unspecified zero may meet infinity or NaN, by the merge in which no zero annihilates; the
    fill value is stored nowhere. Whether NumPy would certainly warn of nothing."""
    result = prune(Tensor._from_storage(run_merge(exact, storages)[0]))._storage
    return result, program.plan.warnings is WarningSource.NEVER


@operation(masked=provided("masked pointwise"))
def pointwise(
    expression: str | Expression | Assignment,
    tensors: Mapping[str, Tensor],
    format: str | Format | None = None,
    *,
    zero_annihilates: bool = False,
    missing: Collection[str] = (),
) -> Tensor:
    """Any elementwise expression over sparse tensors, in one pass; products that leave few elements go first.

    Parameters
    ----------
    expression : index notation, such as "A[i, j] * B[i, j] + C[j]" or "D[i, j] = A[i, j] - B[j, i]"; accesses without
        indices are aligned at the last dimension, as NumPy broadcasts
    tensors : by name; those of rank 0 too
    format : of the result; without, that of the operands (see `merge`)
    zero_annihilates : an unspecified zero makes a product zero even where it meets infinity or NaN. Without, the
        result is NumPy's, at the cost of asking whether values are finite; a product with a function that has no bound,
        as in "A * exp(B)", is then computed wherever any operand is specified
    missing : tensors whose unspecified elements have no value, as those of masked tensors. An operation on one has
        none either, but for `either(A, B)`, which is B where A is missing, `given(A, B)`, which is A where both are
        there, and `where(C, A, B)`, which asks the branch that it takes

    Returns
    -------
    Tensor; the result's dimensions are those of the left side, or the indices in order of appearance. With `missing` it
    specifies the elements that have a value

    Guarantees: equal to NumPy's result on the dense arrays, see `merge`.
    Raises ShapeError where shapes do not agree, UnsupportedError for reductions.

    Cost: O(nse of all operands).
    See also: lazy, evaluate.

    Examples
    --------
    >>> A = ow.asarray([0, 2.0], format="coo")
    >>> ow.pointwise("A + 2 * B", {"A": A, "B": A}).to_numpy()
    array([0., 6.])
    """

    operands = [x if isinstance(x, Tensor) else asarray(x.compute() if is_lazy(x) else x) for x in tensors.values()]
    tensors = dict(zip(tensors, one_library(*operands), strict=True))
    e, free = _parse(expression)
    indexed = _with_indices(e, tensors)
    indices = free if free is not None else _index_order(indexed)
    storages = {name: t._storage for name, t in tensors.items() if any(a.tensor == name for a in accesses_of(e))}
    unknown = sorted({*missing} - {*tensors})
    if unknown:
        raise ShapeError(
            f"pointwise: missing={missing!r}: no tensor {unknown[0]}\n  help: given are {', '.join(tensors)}"
        )
    how = _Semantics(zero_annihilates, frozenset(missing))
    return Tensor._from_storage(_evaluate(indexed, storages, indices, format, how))


def read(
    expression: str | Expression | Assignment, tensors: Mapping[str, Tensor]
) -> tuple[Expression | Assignment, int]:
    """The expression or assignment that `pointwise` reads, and how many dimensions the result has."""
    e, free = _parse(expression)
    if free is not None:
        return Assignment(Access("out", free), "=", e), len(free)
    if not any(a.indices for a in accesses_of(e)):
        return e, max((t.ndim for t in tensors.values()), default=0)
    return e, len(_index_order(_with_indices(e, tensors)))


def _parse(expression: str | Expression | Assignment) -> tuple[Expression, tuple[str, ...] | None]:
    if isinstance(expression, str):
        text = expression
        try:
            expression = parse_expression(text)
        except Exception:
            expression = parse(text)
    if isinstance(expression, Assignment):
        if expression.mask is not None:
            raise UnsupportedError(f"pointwise: {expression} has a mask\n  help: ow.evaluate takes masks")
        if expression.reduction_indices or expression.op not in ("=", "+="):
            raise UnsupportedError(
                f"pointwise: {expression} reduces\n  help: ow.evaluate, einsum, or a reduction of the result"
            )
        return expression.rhs, expression.lhs.indices
    return expression, None


def _map(e: Expression, visit: Any) -> Expression:
    match e:
        case Access():
            mapped: Expression = visit(e)
            return mapped
        case Apply(op, args):
            return Apply(op, tuple(_map(a, visit) for a in args))
    return e


def _with_indices(e: Expression, tensors: Mapping[str, Tensor]) -> Expression:
    """The expression with indices for accesses that have none: those of the last dimensions."""
    for access in accesses_of(e):
        if access.tensor not in tensors:
            raise ShapeError(f"pointwise: no tensor {access.tensor}\n  help: given are {', '.join(tensors)}")
    ndim = max((tensors[a.tensor].ndim for a in accesses_of(e)), default=0)

    def visit(a: Access) -> Expression:
        t = tensors[a.tensor]
        if a.indices or not t.ndim:
            return a
        return Access(a.tensor, tuple(f"i{d}" for d in range(ndim - t.ndim, ndim)))

    return _map(e, visit)


def _index_order(e: Expression) -> tuple[str, ...]:
    """The indices of the result: those of the access with most, then the others."""
    by_rank = sorted(accesses_of(e), key=lambda a: -len(a.indices))
    indices = dict.fromkeys(i for a in by_rank for i in a.indices)
    if all(i[0] == "i" and i[1:].isdigit() for i in indices):
        return tuple(sorted(indices, key=lambda i: int(i[1:])))
    return tuple(indices)


def _extents(e: Expression, storages: Mapping[str, Storage], indices: tuple[str, ...]) -> dict[str, int]:
    sizes = dict.fromkeys(indices, 1)
    for access in accesses_of(e):
        shape = storages[access.tensor].shape
        if len(shape) != len(access.indices) or len(set(access.indices)) != len(access.indices):
            raise ShapeError(f"pointwise: {access} does not suit a tensor of shape {shape}")
        for i, n in zip(access.indices, shape, strict=True):
            if i not in sizes:
                raise UnsupportedError(f"pointwise: index {i} of {access} is not one of the result's {indices}")
            if n != 1 and sizes[i] not in (1, n):
                shapes = [storages[a.tensor].shape for a in accesses_of(e)]
                raise broadcast_error(user_name(e.op) if isinstance(e, Apply) else "pointwise", shapes)
            sizes[i] = n if n != 1 else sizes[i]
    return sizes


@frozen
class _Semantics:
    """What an unspecified element means: whether a zero annihilates, and which operands' have no value."""

    zero_annihilates: bool = False
    missing: frozenset[str] = frozenset()


def _evaluate(
    e: Expression, storages: dict[str, Storage], indices: tuple[str, ...], format: object, how: _Semantics
) -> Storage:
    """Run an expression whose accesses have their indices."""
    sizes = _extents(e, storages, indices)
    while not how.missing and (part := _find_thin_part(e, storages, sizes)) is not None:
        e, storages, how = _split_off(e, part, storages, indices, how)
    e, storages, how = _limit_operands(e, storages, indices, how)
    e, operands, dims, lacking = _distinct_operands(e, storages, indices, sizes, how)
    ndim = len(indices)
    target: Format | None = None if format is None else resolve_format(format, ndim)
    shape = tuple(sizes[i] for i in indices)
    inputs, key = tuple(operands.values()), (str(e), tuple(dims.values()), ndim, target, lacking)

    def program_for(annihilate: bool) -> Program:
        def plan() -> MergePlan:
            return plan_merge(e, operands, dims, ndim, target, annihilate, lacking)

        return program_of((*key, annihilate), inputs, shape, plan)

    program = program_for(True)
    limit = program.plan.schedule.nonfinite_guard
    if how.zero_annihilates or limit is None or _are_bounded(limit, inputs):
        result, no_warning = run_merge(program, inputs)
    else:
        result, no_warning = _run_exact(program, program_for(False), inputs)
    if not no_warning:
        report(e, dims, operands, result)
    return result


def _operand_count(e: Expression) -> int:
    return len(set(accesses_of(e)))


def _find_thin_part(e: Expression, storages: Mapping[str, Storage], sizes: Mapping[str, int]) -> Expression | None:
    """An innermost subexpression whose result has far fewer elements than its operands, None where there is none.

    What is joined with it then meets few elements, where a walk of all operands at once would step through all of them.
    """
    if _operand_count(e) < 3 or not isinstance(e, Apply) or 0 in sizes.values():
        return None
    for part in e.args:
        inner = _find_thin_part(part, storages, sizes)
        if inner is not None:
            return inner
        parts_accesses = set(accesses_of(part))
        if len(parts_accesses) < 2 or any(storages[a.tensor].format.is_dense or not a.indices for a in parts_accesses):
            continue
        nse = sum(storages[a.tensor].values.shape[0] for a in parts_accesses)
        if THIN_RATIO * _expected_nse(part, storages, sizes) <= nse:
            return part
    return None


def _expected_nse(e: Expression, storages: Mapping[str, Storage], sizes: Mapping[str, int]) -> float:
    """The expected nse of an expression, at least 1, if its operands' elements are uniformly distributed."""
    if isinstance(e, Access):
        return max(1.0, float(storages[e.tensor].values.shape[0]))
    if not isinstance(e, Apply):
        return 1.0
    counts = [_expected_nse(a, storages, sizes) for a in e.args]
    zero = all(not storages[a.tensor].fill_value for a in accesses_of(e))
    if e.op != "mul" or not zero:
        return sum(counts)
    size = float(math.prod(sizes[i] for i in {i for a in accesses_of(e) for i in a.indices}))
    broadcast_counts = [
        c * size / math.prod(sizes[i] for i in {i for a in accesses_of(arg) for i in a.indices})
        for c, arg in zip(counts, e.args, strict=True)
    ]
    return max(1.0, math.prod(broadcast_counts) / max(size, 1.0) ** (len(broadcast_counts) - 1))


def _split_off(
    e: Expression, part: Expression, storages: dict[str, Storage], indices: tuple[str, ...], how: _Semantics
) -> tuple[Expression, dict[str, Storage], _Semantics]:
    """The expression with a subexpression computed into a temporary."""
    used = {i for a in accesses_of(part) for i in a.indices}
    part_indices = tuple(i for i in indices if i in used)
    name = f"part{len(storages)}"
    missing = how.missing & {a.tensor for a in accesses_of(part)}
    temporary = _evaluate(part, storages, part_indices, None, _Semantics(how.zero_annihilates, missing))
    how = _Semantics(how.zero_annihilates, how.missing | {name} if missing else how.missing)
    return _substitute(e, part, Access(name, part_indices)), {**storages, name: temporary}, how


def _substitute(e: Expression, old: Expression, new: Expression) -> Expression:
    if e == old:
        return new
    return Apply(e.op, tuple(_substitute(a, old, new) for a in e.args)) if isinstance(e, Apply) else e


def _limit_operands(
    e: Expression, storages: dict[str, Storage], indices: tuple[str, ...], how: _Semantics
) -> tuple[Expression, dict[str, Storage], _Semantics]:
    """The expression over at most MAX_MERGED operands: its largest parts are computed into temporaries."""
    while _operand_count(e) > (MAX_MASKED if how.missing else MAX_MERGED):
        assert isinstance(e, Apply)
        part = max(e.args, key=_operand_count)
        small, storages, how = _limit_operands(part, storages, indices, how)
        e, storages, how = _split_off(_substitute(e, part, small), small, storages, indices, how)
    return e, storages, how


@cache
def _nothing(library: str) -> Storage:
    """A vector of extent 1 that stores nothing."""
    like = np.empty(0) if library == "numpy" else torch_module().empty(0)
    pos, crd = zeros(2, "i64", like), zeros(0, "i64", like)
    return Storage((1,), resolve_format("coo", 1), "f64", 0, (pos,), (crd,), zeros(0, "f64", like))


def _constant(s: Storage) -> Storage:
    """A value of rank 0 as the fill value of a vector that broadcasts: specified nowhere, as a number is."""
    structure = _nothing(library_of(s.values)).structure
    return Storage.over(structure, s.scalar, python_scalar(s.values[0].item(), s.scalar), s.values[:0])


def _distinct_operands(
    e: Expression, storages: Mapping[str, Storage], indices: tuple[str, ...], sizes: Mapping[str, int], how: _Semantics
) -> tuple[Expression, dict[str, Storage], dict[str, tuple[int | None, ...]], frozenset[str]]:
    """One operand for each distinct access, called A0, A1, ...; where each of its dimensions is in the result; those
    whose unspecified elements are missing."""
    names: dict[Access, str] = {}
    operands: dict[str, Storage] = {}
    dims: dict[str, tuple[int | None, ...]] = {}
    for access in dict.fromkeys(accesses_of(e)):
        name = names[access] = f"A{len(names)}"
        s = operands[name] = storages[access.tensor]
        dims[name] = tuple(
            None if n == 1 != sizes[i] else indices.index(i) for i, n in zip(access.indices, s.shape, strict=True)
        )
        if indices and not s.shape and access.tensor not in how.missing and not tracked((s.values,)):
            operands[name], dims[name] = _constant(s), (None,)
    missing = frozenset(name for access, name in names.items() if access.tensor in how.missing)
    return _map(e, lambda a: Access(names[a])), operands, dims, missing
