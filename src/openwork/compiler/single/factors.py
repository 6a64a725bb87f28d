"""A statement's right side -> the factors of its product, each with the level of the nest at which it is known."""

from __future__ import annotations

from dataclasses import replace

from ...classes import frozen
from ...format.format import Format
from ...ir.index import Access, Apply, Assignment, Expression
from ...ir.loop import Const
from ...ir.ops import const

__all__ = ["Factor", "combine_name", "factors_of", "identity"]

_DISTRIBUTES = {("add", "mul"), ("or", "and"), ("min", "add"), ("max", "add"), ("mul", "pow")}


@frozen
class Factor:
    """One factor of the product; `depth` levels of the driver must be entered before it can be multiplied in."""

    expr: Expression
    depth: int
    vector: bool


def factors_of(
    stmt: Assignment, driver: Access, fmt: Format, unrolled: int, vector: str | None, compute: str
) -> tuple[Factor, ...]:
    """The factors of the right side; a right side that is not a product is one factor.

    The least and greatest integers are no infinities: what is added to them wraps, so that over integers min and max
    are not taken apart.
    """
    reduce = stmt.reduction
    times = "and" if reduce == "or" else "add" if reduce in ("min", "max") else "mul"
    wraps = reduce in ("min", "max") and compute[0] in "iu"
    parts = _flatten(stmt.rhs, times) if (reduce, times) in _DISTRIBUTES and not wraps else (stmt.rhs,)
    bottom = min(unrolled, fmt.nlevels)
    factors = [Factor(e, _depth(e, driver, fmt, bottom), _has(e, vector)) for e in parts]
    if vector not in stmt.lhs.indices:  # summed over the vector index, its factors are one
        deepest = max((f.depth for f in factors if f.vector), default=0)
        factors = [replace(f, depth=deepest) if f.vector else f for f in factors]
    return tuple(factors)


def _flatten(e: Expression, times: str) -> tuple[Expression, ...]:
    if isinstance(e, Apply) and e.op == times and len(e.args) == 2:
        return (*_flatten(e.args[0], times), *_flatten(e.args[1], times))
    return (e,)


def _accesses(e: Expression) -> tuple[Access, ...]:
    match e:
        case Access():
            return (e,)
        case Apply(_, args):
            return tuple(a for x in args for a in _accesses(x))
    return ()


def _has(e: Expression, index: str | None) -> bool:
    return any(index in a.indices for a in _accesses(e))


def _depth(e: Expression, driver: Access, fmt: Format, bottom: int) -> int:
    depth = 0
    for a in _accesses(e):
        if a == driver:
            return bottom
        for i in a.indices:
            if i in driver.indices:
                form = fmt.inverse[driver.indices.index(i)]
                depth = max(depth, min(bottom, 1 + max(k for k, _ in form)))
    return depth


def combine_name(reduce: str) -> str:
    """The operation that combines the factors under a reduction: the multiplication of its semiring."""
    return {"or": "and", "min": "add", "max": "add"}.get(reduce, "mul")


def identity(reduce: str, scalar: str) -> Const:
    """The value that the reduction begins with."""
    if reduce in ("add", "or", "bor", "bxor"):
        return const(0, scalar)
    if reduce in ("mul", "and", "band"):
        return const(1, scalar)
    if scalar in ("f16", "bf16", "f32", "f64"):
        return const(float("inf") if reduce == "min" else float("-inf"), scalar)
    if scalar == "bool":
        return const(reduce == "min", scalar)
    bits = int(scalar[1:])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if scalar[0] == "i" else (0, 2**bits - 1)
    return const(high if reduce == "min" else low, scalar)
