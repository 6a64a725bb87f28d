"""Index letters and facts of operands -> the plan of a sum of products: its steps, each with its route.

ikl,jk,kl->ij        T3[i, j, l] += T0[i, k, l] * T1[j, k]     in the order of `path`, by the route that its
                     out[i, j] += T3[i, j, l] * T2[k, l]       operands allow
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ... import tuning
from ...errors import UnsupportedError
from ...format.format import Format
from ...ir.index import Access, Apply, Assignment, Expression
from ..semiring import Semiring
from .kept_format import kept_format
from .path import Size, find_path
from .path import Step as Pair
from .plan import OperandFacts, Plan, Route, Step

__all__ = ["index_notation_of", "keeps_any", "plan_product", "prefers_sparse", "product_statement", "sum_format"]

_ASSIGNMENTS = {
    "x + y": "+=", "x * y": "*=", "min(x, y)": "min=", "max(x, y)": "max=", "x | y": "|=", "x & y": "&=",
}  # fmt: skip
"""The sums of semirings -> how a statement reduces by them; the sum that keeps any of its terms has none."""
_PRODUCTS = {
    "x * y": "mul", "x + y": "add", "min(x, y)": "min", "max(x, y)": "max", "x & y": "and", "x | y": "or",
    "x": "first", "y": "second", "1": "pair", "True": "pair",
}  # fmt: skip

DENSE_ROOM, DENSE_SHARE = tuning.EINSUM_DENSE_ROOM, tuning.EINSUM_DENSE_SHARE


def index_notation_of(ring: Semiring) -> tuple[str, str] | None:
    """The assignment and the product of a semiring in index notation; None where it cannot be written in it.

    A sum that keeps any of its terms keeps the largest; where there is none, its result is not that of the notation.
    """
    times = _PRODUCTS.get(ring.multiply)
    assign = _ASSIGNMENTS.get(ring.add.operation)
    if keeps_any(ring):
        assign = "|=" if ring.dtype == "bool" else "max="
    if assign is None or times is None or (ring.dtype not in ("promote", "bool") and times != "pair"):
        return None
    return assign, times


def keeps_any(ring: Semiring) -> bool:
    """Whether a semiring's sum keeps any of its terms."""
    return ring.add.operation == "y"


def prefers_sparse(space: float, stored: float) -> bool:
    """Whether a dense array of `space` elements is too large for a result of `stored` elements."""
    return space > DENSE_ROOM + DENSE_SHARE * stored


@lru_cache(maxsize=1024)
def product_statement(inputs: tuple[str, ...], output: str, assign: str = "+=", times: str = "mul") -> Assignment:
    """`out[i, k] += T0[i, j] * T1[j, k]`, from letters."""
    return Assignment(Access("out", tuple(output)), assign, _product(inputs, range(len(inputs)), times))


def _product(inputs: Sequence[str], names: Sequence[int], times: str) -> Expression:
    """The operands multiplied: of `first`, `second` and `pair` those that play no part are there by their pattern."""
    rhs: Expression | None = None
    for k, term in zip(names, inputs, strict=True):
        factor: Expression = Access(f"T{k}", tuple(term))
        if len(inputs) > 1 and (times == "pair" or (times == "first" and rhs) or (times == "second" and rhs is None)):
            factor = Apply("pattern", (factor,))
        rhs = factor if rhs is None else Apply("mul" if times in _BY_PATTERN else times, (rhs, factor))
    assert rhs is not None
    return rhs


_BY_PATTERN = ("first", "second", "pair")


@lru_cache(maxsize=1024)
def plan_product(
    inputs: tuple[str, ...], output: str, operands: tuple[OperandFacts, ...], ring: Semiring, format: Format | None,
    walks: bool = True,
) -> Plan:  # fmt: skip
    """The steps of `inputs -> output` over a semiring, for a result in `format`; None: that of the last step.

    walks : whether a statement may be run whose sum and product are those of the semiring
    The operands are T0, T1, ...; results of steps that others use get the numbers behind them.
    Raises UnsupportedError where more than two operands cannot be contracted in pairs.
    """
    sparse = [k for k, x in enumerate(operands) if x.format is not None]
    notation = index_notation_of(ring) if walks else None
    if not sparse and ring.name == "plus_times":
        return Plan((Step(product_statement(inputs, output), Route.DENSE),))
    steps = _Steps(inputs, output, operands, ring)
    if len(sparse) == 1 < len(operands):
        if ring.name == "plus_times" and _samples(inputs, output, operands[sparse[0]], sparse[0], format):
            return steps.single_walk(sparse[0], Route.SAMPLE, "+=", "mul")
        if format is not None and _scatters(inputs, output, operands, format):
            return steps.by_pairs(stored=True)
    is_dense = _sums_densely(inputs[0], output, operands[0].format, format)
    in_pairs = len(operands) < 3 or (notation and notation[1] not in _BY_PATTERN)
    one_walk = notation and in_pairs and len(sparse) == 1 and (len(operands) > 1 or is_dense)
    if one_walk and not (ring.name == "plus_times" and steps.pairs_are_cheaper(sparse[0])):
        assert notation is not None
        return steps.single_walk(sparse[0], Route.WALK, *notation)
    return steps.by_pairs(stored=ring.name != "plus_times")


def sum_format(letters: str, output: str, format: Format) -> Format | None:
    """The format of the sum of one sparse operand over the letters that `output` lacks; None where it is dense."""
    return kept_format(format, tuple(letters.index(c) for c in output if c in letters))


def _sums_densely(letters: str, output: str, stored: Format | None, wanted: Format | None) -> bool:
    """Whether one sparse operand is summed into a dense array: one that is wanted, or where nothing else is said."""
    if stored is None or all(c in output for c in letters):
        return False
    return wanted.is_dense if wanted is not None else sum_format(letters, output, stored) is None


def _samples(inputs: tuple[str, ...], output: str, driver: OperandFacts, at: int, format: Format | None) -> bool:
    """Whether the structure of the sparse operand is the result's, in `format` if one is asked for: no other element
    of the product can be there."""
    term, fmt = inputs[at], driver.format
    if fmt is None or not output or sorted(term) != sorted(output) or not fmt.is_unique:
        return False
    if any(len(set(t)) != len(t) for t in inputs):
        return False
    return format is None or fmt.permute(tuple(term.index(c) for c in output)) == format


def _scatters(inputs: tuple[str, ...], output: str, operands: tuple[OperandFacts, ...], format: Format) -> bool:
    """Whether a sparse result may be much smaller than the dense array of its shape, through which a walk would go."""
    extents = _extents(inputs, operands)
    free = {c for term, x in zip(inputs, operands, strict=True) if x.format is None for c in term} & set(output)
    stored = next(x.nse for x in operands if x.format is not None)
    sparse = any(level.format.buffers for level in format.levels)
    return sparse and prefers_sparse(
        math.prod(extents[c] for c in output), stored * math.prod(extents[c] for c in free)
    )


def _extents(inputs: tuple[str, ...], operands: tuple[OperandFacts, ...]) -> dict[str, int]:
    return {c: n for term, x in zip(inputs, operands, strict=True) for c, n in zip(term, x.shape, strict=True)}


class _Steps:
    """A plan under construction: the letters of each operand and result by number, and the steps so far."""

    def __init__(
        self, inputs: tuple[str, ...], output: str, operands: tuple[OperandFacts, ...], ring: Semiring
    ) -> None:
        self.letters = list(inputs)
        self.dense = [x.format is None for x in operands]
        self.inputs, self.output, self.operands, self.ring = inputs, output, operands, ring
        self.steps: list[Step] = []
        self.sums_first = ring.name == "plus_times" and len(inputs) > 1
        """whether dense operands may be summed by themselves, as `Route.DENSE` does"""

    def add(
        self,
        used: Sequence[int],
        letters: str,
        route: Route,
        notation: tuple[str, str] = ("+=", "mul"),
        *,
        last: bool = False,
        estimate: float | None = None,
    ) -> int:
        """A step over some operands; gives the number of its result."""
        number = len(self.letters)
        rhs = _product([self.letters[k] for k in used], used, notation[1])
        target = Access("out" if last else f"T{number}", tuple(letters))
        self.steps.append(Step(Assignment(target, notation[0], rhs), route, estimate))
        self.letters.append(letters)
        self.dense.append(route in (Route.DENSE, Route.WALK))
        return number

    def single_walk(self, driver: int, route: Route, *notation: str) -> Plan:
        """One kernel, after diagonals of operands that repeat a letter, and sums over letters of one operand alone.

        The driver keeps all its letters where the loops over its elements have no others inside.
        """
        used = []
        for k, term in enumerate(self.inputs):
            others = self.output + "".join(t for j, t in enumerate(self.inputs) if j != k)
            keeps_all = k == driver and (set(others) <= set(term) or not set(term) & set(others))
            used.append(self.distinct_letters(k, term if keeps_all or not self.sums_first else others))
        self.add(used, self.output, route, (notation[0], notation[1]), last=True)
        return Plan(tuple(self.steps))

    def pairs_are_cheaper(self, driver: int) -> bool:
        """Whether the products of three operands or more, of which one is sparse, are far fewer in pairs than in one
        walk of it, which forms them for all other letters together."""
        if len(self.inputs) < 3 or any(len(set(t)) != len(t) for t in self.inputs):
            return False
        extents, letters = _extents(self.inputs, self.operands), set(self.inputs[driver])
        inner = math.prod(n for c, n in extents.items() if c not in letters)
        at_once = self.operands[driver].nse * inner + math.prod(extents[c] for c in self.output)
        return 2 * sum(step.cost for step in self.path(list(range(len(self.inputs))))) < at_once

    def distinct_letters(self, k: int, keep: str) -> int:
        """The operand with every letter once and only those of `keep`, the others summed."""
        keeps_all = self.dense[k] and not self.sums_first
        letters = "".join(c for c in dict.fromkeys(self.letters[k]) if keeps_all or c in keep)
        if letters == self.letters[k]:
            return k
        return self.add([k], letters, Route.DENSE if self.dense[k] else Route.FOLD)

    def by_pairs(self, stored: bool) -> Plan:
        """Two operands at a time, in the cheapest order. stored: dense operands are stored as sparse ones first."""
        ring = self.ring
        if len(self.inputs) > 2 and not ring.distributes:
            raise UnsupportedError(
                f"a product of {len(self.inputs)} operands over {ring.name}, whose products do not distribute over sums"
                "\n  supported: two operands\n  help: contract two at a time"
            )
        sums_first = ring.distributes or len(self.inputs) == 1
        terms = []
        for k, term in enumerate(self.inputs):
            others = self.output + "".join(t for j, t in enumerate(self.inputs) if j != k)
            n = self.add([k], term, Route.STORE, ("=", "mul")) if stored and self.dense[k] else k
            terms.append(self.distinct_letters(n, others if sums_first else term))
        for pair in self.path(terms):
            y, x = terms.pop(pair.right), terms.pop(pair.left)
            terms.append(self.pair(x, y, terms, pair))
        return Plan(tuple(self.steps))

    def path(self, terms: list[int]) -> list[Pair]:
        if len(terms) < 3:
            return [Pair(0, 1, 0.0, Size(frozenset(self.output), 0.0))] if len(terms) == 2 else []
        extents = _extents(self.inputs, self.operands)
        sizes = []
        for k, n in enumerate(terms):
            space = math.prod(extents[c] for c in self.letters[n])
            stored = space if self.operands[k].format is None else self.operands[k].nse
            sizes.append(Size(frozenset(self.letters[n]), float(min(stored, space)), self.dense[n]))
        return find_path(sizes, self.output, extents)

    def scales(self, x: int, y: int, live: str) -> bool:
        """Whether one of the two, a dense operand, scales the elements of the other, a sparse one."""
        dense, sparse = (x, y) if self.dense[x] else (y, x)
        return set(self.letters[dense]) <= set(self.letters[sparse]) == set(live)

    def pair(self, x: int, y: int, rest: list[int], pair: Pair) -> int:
        """The contraction of two operands, of whose letters those stay that the result or another one has."""
        others = {c for k in rest for c in self.letters[k]}
        letters = self.letters[x], self.letters[y]
        live = "".join(c for c in dict.fromkeys("".join(letters)) if c in self.output or c in others)
        last = not rest
        live = self.output if last else live
        if self.dense[x] and self.dense[y]:
            route = Route.DENSE
        elif self.dense[x] != self.dense[y] and self.ring.name == "plus_times" and self.scales(x, y, live):
            route = Route.MERGE
        elif self.dense[x] or self.dense[y]:
            route = Route.WALK
        else:
            is_elementwise = self.ring.name == "plus_times" and set(letters[0]) == set(letters[1]) >= set(live)
            route = Route.MERGE if is_elementwise else Route.CONTRACT
        notation = index_notation_of(self.ring) or ("+=", "mul")
        estimate = pair.result.nse if len(self.inputs) > 2 else None
        if route is Route.MERGE and len(live) < max(map(len, letters)):  # elements that both have, then their sums
            return self.distinct_letters(self.add([x, y], letters[0], route, notation, estimate=estimate), live)
        return self.add([x, y], live, route, notation, last=last, estimate=estimate)
