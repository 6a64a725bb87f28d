"""Index letters and sizes of the operands of an einsum -> the contraction path: pairs, in the order of least cost.

The cost of a step is the products it forms and the elements it touches, estimated from the numbers of specified
elements as if these lay at random; a dense operand has all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from ... import tuning
from ...classes import frozen

__all__ = ["Size", "Step", "contraction_cost", "find_path"]

OPTIMAL = tuning.EINSUM_OPTIMAL

DENSE_RATE = tuning.EINSUM_DENSE_RATE


@frozen
class Size:
    """A term of the path: its letters, an estimate of its elements, and whether it is dense."""

    letters: frozenset[str]
    nse: float
    dense: bool = False


@frozen
class Step:
    """Contract the terms at positions `left` < `right` of the list; the result goes to its end."""

    left: int
    right: int
    cost: float
    result: Size


def contraction_cost(x: Size, y: Size, live: frozenset[str], extents: Mapping[str, int]) -> tuple[float, Size]:
    """Cost and size of the contraction of two terms; letters that are not `live` afterwards are summed."""
    letters = (x.letters | y.letters) & live
    space = _space(letters, extents)
    if x.dense and y.dense:
        work = _space(x.letters | y.letters, extents)
        return work / DENSE_RATE + space, Size(letters, space, True)
    if x.dense or y.dense:
        sparse, dense = (y, x) if x.dense else (x, y)
        if dense.letters <= sparse.letters == letters:  # elements are scaled
            return 2 * sparse.nse, Size(letters, sparse.nse)
        work = sparse.nse * _space(dense.letters - sparse.letters, extents)
        return work + space + dense.nse, Size(letters, space, True)
    products = x.nse * y.nse / max(1.0, _space(x.letters & y.letters, extents))
    filled = space * -math.expm1(-products / space) if space else 0.0
    return 2 * products + x.nse + y.nse + filled, Size(letters, filled)


def _space(letters: frozenset[str], extents: Mapping[str, int]) -> float:
    return math.prod(float(extents[c]) for c in sorted(letters))


def find_path(terms: Sequence[Size], out: str, extents: Mapping[str, int]) -> list[Step]:
    """The steps that contract all terms.

    Up to 8 terms: the cheapest order of all. Above: opt_einsum's greedy search where it is installed, else the
    cheapest next step again and again.
    """
    if len(terms) <= OPTIMAL:
        return _optimal(terms, out, extents)
    pairs = _opt_einsum(terms, out, extents)
    return _greedy(terms, out, extents) if pairs is None else _costed(terms, pairs, out, extents)


def _live_letters(rest: Sequence[Size], out: str) -> frozenset[str]:
    return frozenset(out).union(*(t.letters for t in rest))


def _optimal(terms: Sequence[Size], out: str, extents: Mapping[str, int]) -> list[Step]:
    """Dynamic programming over subsets of the terms."""
    everything = (1 << len(terms)) - 1

    @cache
    def best(subset: int) -> tuple[float, Size, int]:
        """Cost and result of the cheapest order of a subset, and the subset that is the last step's left operand."""
        if subset & (subset - 1) == 0:
            return 0.0, terms[subset.bit_length() - 1], 0
        live = _live_letters([t for k, t in enumerate(terms) if not subset >> k & 1], out)
        lowest = subset & -subset
        cheapest: tuple[float, Size, int] | None = None
        part = (subset - 1) & subset
        while part:
            if part & lowest:
                left, right = best(part), best(subset ^ part)
                cost, size = contraction_cost(left[1], right[1], live, extents)
                cost += left[0] + right[0]
                if cheapest is None or cost < cheapest[0]:
                    cheapest = cost, size, part
            part = (part - 1) & subset
        assert cheapest is not None
        return cheapest

    steps: list[Step] = []
    order = [1 << k for k in range(len(terms))]

    def emit(subset: int) -> None:
        cost, size, part = best(subset)
        if not part:
            return
        emit(part)
        emit(subset ^ part)
        left, right = sorted((order.index(part), order.index(subset ^ part)))
        step_cost = cost - best(part)[0] - best(subset ^ part)[0]
        steps.append(Step(left, right, step_cost, size))
        del order[right], order[left]
        order.append(subset)

    emit(everything)
    return steps


def _greedy(terms: Sequence[Size], out: str, extents: Mapping[str, int]) -> list[Step]:
    current, steps = list(terms), []
    while len(current) > 1:
        cheapest: Step | None = None
        for left in range(len(current)):
            for right in range(left + 1, len(current)):
                rest = [t for k, t in enumerate(current) if k not in (left, right)]
                cost, size = contraction_cost(current[left], current[right], _live_letters(rest, out), extents)
                if cheapest is None or cost < cheapest.cost:
                    cheapest = Step(left, right, cost, size)
        assert cheapest is not None
        steps.append(cheapest)
        del current[cheapest.right], current[cheapest.left]
        current.append(cheapest.result)
    return steps


def _costed(
    terms: Sequence[Size], pairs: Sequence[tuple[int, int]], out: str, extents: Mapping[str, int]
) -> list[Step]:
    current, steps = list(terms), []
    for left, right in pairs:
        rest = [t for k, t in enumerate(current) if k not in (left, right)]
        cost, size = contraction_cost(current[left], current[right], _live_letters(rest, out), extents)
        steps.append(Step(left, right, cost, size))
        del current[right], current[left]
        current.append(size)
    return steps


def _opt_einsum(terms: Sequence[Size], out: str, extents: Mapping[str, int]) -> list[tuple[int, int]] | None:
    """The pairs that opt_einsum's greedy search finds, or None without it."""
    try:
        search = import_module("opt_einsum.paths")
    except ImportError:
        return None
    path = search.greedy([t.letters for t in terms], frozenset(out), dict(extents))
    if any(len(p) != 2 for p in path):
        return None
    return [(min(p), max(p)) for p in path]
