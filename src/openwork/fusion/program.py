"""`compute`: expressions become parts, parts become kernels, and both are kept by the structure of the expression."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.plan_cache import PlanCache
from ..compiler.scalar_arguments import passes
from ..runtime import gradient_hook as gradients
from ..runtime import trace
from ..runtime.overrides import takes_over
from ..tensor.lazy import LEAF, TRANSPOSE, Lazy, Shown, is_lazy, lazy, leaf
from .infer import Meta, meta_of
from .kernels import Part, masked_product, part_of
from .numbers import fixed_numbers, with_numbers
from .partition import Cut, cut_of

__all__ = ["compute", "fused"]

NUMBERS = frozenset((bool, int, float, complex))

LIMIT = 512
"""Programs kept."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One part: the slots that it takes, and the one that it fills. A slot below zero is a constant's."""

    part: Part
    inputs: tuple[int, ...]
    out: int
    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Program:
    """What computes expressions of one structure from the values of their leaves; it holds none of them."""

    steps: tuple[_Step, ...]
    constants: tuple[Any, ...]
    slots: int
    results: tuple[int, ...]


_programs: PlanCache[Any, _Program | frozenset[int]] = PlanCache("programs", LIMIT)
"""By key; where numbers take part in the plan, which they are."""


def compute(*expressions: Any) -> Any:
    """The values of expressions, each part of them in one kernel.

    Parameters
    ----------
    expressions : what `ow.lazy` gives and operations make of it; anything else is returned as it is

    Returns
    -------
    the value of one expression, a tuple of those of several: Tensors and arrays as the operations one by one give them

    Guarantees: shapes, types, formats, fill values and errors are those of the operations one by one; floating-point
    numbers may be summed in another order. What several expressions share is computed once. Elementwise operations,
    reductions of them, `(A + B) @ x` and `M * (X @ Y)` run in one loop nest, without temporaries; `ow.explain` says
    which parts there are.
    Cost: that of the loop nests, and some microseconds for each operation. Kernels and plans are kept by structure.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A, B = (ow.asarray(k * np.eye(3), format="csr") for k in (1, 2))
    >>> S = ow.lazy(A) * B
    >>> product, total = ow.compute(S, ow.sum(S + A))
    >>> float(total)
    9.0
    """
    roots = [e for e in expressions if is_lazy(e) and not e.known]
    if roots:
        for root, value in zip(roots, _run(roots), strict=True):
            root._value = value
    found = tuple(e.compute() if is_lazy(e) else e for e in expressions)
    return found[0] if len(found) == 1 else found


def fused(function: Callable[..., Any], /) -> Callable[..., Any]:
    """A function whose operations on its arguments run as few kernels as they can be.

    Parameters
    ----------
    function : of Tensors, arrays and anything else; it is called with Tensors and arrays as expressions, and gives an
        expression, or a tuple or list of them

    Returns
    -------
    the function of the same arguments, which gives what `ow.compute` gives

    Guarantees: equal to the function itself, as `ow.compute` says; with masked tensors it is the function itself (whose
    masks have to agree at every operation; `ow.pointwise` is one pass over them). The function is called every time, so
    that what it reads beside its arguments is never out of date; plans and kernels are kept.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> @ow.fused
    ... def residual(A, B, x):
    ...     return (A - B) @ x
    >>> A, B = (ow.asarray(k * np.eye(3), format="csr") for k in (3, 1))
    >>> residual(A, B, np.ones(3))
    array([2., 2., 2.])
    """

    if not callable(function):
        raise TypeError(f"fused: expected a function, got {type(function).__name__}\n  help: ow.fused(lambda A: ...)")

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if gradients.any_full(args):
            return gradients.rule("full")(wrapper, "fused", None, args, kwargs)
        if any(map(takes_over, args)):
            return function(*args, **kwargs)
        taken = [_taken(a) for a in args]
        named = {k: _taken(v) for k, v in kwargs.items()} if kwargs else kwargs
        result = function(*taken, **named)
        if type(result) in (tuple, list):
            values = compute(*result) if len(result) > 1 else tuple(map(compute, result))
            return type(result)(values)
        return compute(result)

    return wrapper


def _taken(x: Any) -> Any:
    """An argument: Tensors and arrays as leaves."""
    if type(x) is np.ndarray:
        return leaf(x) if x.ndim else x
    if getattr(x, "_storage", None) is not None:
        return leaf(x)
    return lazy(x) if hasattr(x, "shape") and x.shape and not is_lazy(x) else x


# -- running -----------------------------------------------------------------------------------------------------------


def _run(roots: Sequence[Lazy]) -> tuple[Any, ...]:
    leaves, numbers, key = _walk(roots)
    program = None if key is None else _programs.get(key)
    if isinstance(program, frozenset):
        program = _programs.get(_with(key, numbers, program))
    if program is None or isinstance(program, frozenset):
        program = _planned(roots, leaves, numbers, key)
    values = [*leaves, *numbers, *program.constants, *[None] * program.slots]
    tracing = trace.active()
    for step in program.steps:
        if tracing:
            facts = tuple((name, with_numbers(text, numbers)) for name, text in step.facts)
            trace.note(trace.Step(with_numbers(step.title, numbers), facts, heads=True))
        values[step.out] = step.part(*[values[k] for k in step.inputs])
    return tuple([values[k] for k in program.results])


def _planned(roots: Sequence[Lazy], leaves: Sequence[Any], numbers: Sequence[float], key: Any) -> _Program:
    """A new program, which is kept. Where it depends on numbers, the key leads to which they are, and they to it."""
    nodes = _unified(roots)
    known: dict[int, Meta | None] = {}
    slots = {x: k for k, x in enumerate(numbers)}
    fixed = fixed_numbers(nodes, slots, known)
    program = _plan(nodes, leaves, numbers, {x: k for x, k in slots.items() if k not in fixed}, known)
    if key is not None:
        if fixed:
            _programs.keep(key, fixed)
            key = _with(key, numbers, fixed)
        _programs.keep(key, program)
    return program


def _with(key: Any, numbers: Sequence[float], fixed: frozenset[int]) -> Any:
    """The key with the numbers that the plan depends on."""
    return (key, *[numbers[k] for k in sorted(fixed)])


def _walk(roots: Sequence[Lazy]) -> tuple[list[Any], list[float], Any]:
    """The leaves' values, the numbers that kernels may be passed, and what decides the plan: None where that has no
    key."""
    walk = _Walk()
    marks = tuple([walk.visit(r) for r in roots])
    try:
        whole = (marks, *walk.key)
        hash(whole)
    except TypeError:
        return walk.values, list(walk.numbers), None
    return walk.values, list(walk.numbers), whole


class _Walk:
    """What is met on the way through expressions: values of leaves, numbers, and the key of the plan."""

    def __init__(self) -> None:
        self.order: dict[int, int] = {}
        self.leaves: dict[int, int] = {}
        self.values: list[Any] = []
        self.numbers: dict[float, int] = {}
        self.key: list[Any] = []

    def visit(self, x: Any) -> Any:
        """What stands for an operand in the key."""
        value = x
        if type(x) is Lazy:
            if not x.known:
                at = self.order.get(id(x))
                if at is None:
                    inner = tuple([self.visit(a) for a in x.args])
                    at = self.order[id(x)] = len(self.order)
                    self.key.append((x.kind, x.name, x.options, inner, getattr(x.call, "__qualname__", None)))
                return at
            value = x._value
        if passes(value):
            return ("number", self.numbers.setdefault(value, len(self.numbers)), value > 0)
        if type(value) in NUMBERS:
            return (type(value), repr(value))
        storage = getattr(value, "_storage", None)
        slot = self.leaves.get(id(value))
        if slot is None:
            slot = self.leaves[id(value)] = len(self.values)
            self.values.append(value)
            self.key.append(_leaf_key(value, storage))
        return -1 - slot


def _unified(roots: Sequence[Lazy]) -> list[Lazy]:
    """The expressions with one node for all that compute the same."""
    seen: dict[Any, Lazy] = {}
    found: dict[int, Any] = {}

    def visit(x: Any) -> Any:
        if not is_lazy(x):
            return x
        if id(x) not in found:
            found[id(x)] = x if x.known else unify(x)
        return found[id(x)]

    def unify(x: Lazy) -> Lazy:
        args = tuple(map(visit, x.args))
        marks = tuple(map(_mark, args))
        key = (x.kind, x.name, x.options, marks, getattr(x.call, "__qualname__", None))
        node = Lazy(x.kind, x.name, args, x.call, x.options)
        try:
            return seen.setdefault(key, node)
        except TypeError:
            return node

    return [visit(r) for r in roots]


def _mark(x: Any) -> Any:
    """What two operands share that are the same one."""
    if type(x) in NUMBERS:
        return (type(x), repr(x))
    return id(x._value) if is_lazy(x) and x.known else id(x)


def _leaf_key(value: Any, storage: Any) -> Any:
    if storage is not None:
        fill = storage.fill_value
        return (storage.signature, storage.shape, fill if fill == fill and fill else repr(fill))
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.flags.c_contiguous, value.flags.f_contiguous)
    return (str(getattr(value, "dtype", type(value))), tuple(value.shape), str(getattr(value, "device", "")))


# -- planning ----------------------------------------------------------------------------------------------------------


def _plan(
    roots: Sequence[Lazy], leaves: Sequence[Any], numbers: Sequence[float], passed: Mapping[float, int],
    known: dict[int, Meta | None],
) -> _Program:  # fmt: skip
    parts = _parts(roots, known, passed)
    slots: dict[int, int] = {id(v): k for k, v in enumerate(leaves)}
    constants: list[Any] = []
    given = len(leaves) + len(numbers)

    def slot(x: Any) -> int:
        value = x._value if is_lazy(x) and x.known else x
        if type(value) is float and value in passed:
            return len(leaves) + passed[value]
        if not is_lazy(value) and id(value) not in slots:
            slots[id(value)] = given + len(constants)
            constants.append(value)
        return slots[id(value)]

    for cut in parts:
        for x in cut.inputs:
            if not is_lazy(x) or x.known:
                slot(x)
    names: dict[int, str] = {}
    first = given + len(constants)
    steps: list[_Step] = []
    for number, cut in enumerate(parts):
        slots[id(cut.node)] = first + number
        inputs = tuple(map(slot, cut.inputs))
        part, why = _made(cut, meta_of(cut.node, known))
        shown = Shown(names, passed)
        title = f"part {number + 1} of {len(parts)}: {shown.text(cut.node)}"
        facts = _facts(cut, shown, why)
        names = {**shown.names, id(cut.node): f"part{number + 1}"}
        steps.append(_Step(part, inputs, first + number, title, facts))
    results = tuple(slots[id(r)] for r in roots)
    return _Program(tuple(steps), tuple(constants), len(parts), results)


def _made(cut: Cut, meta: Meta | None) -> tuple[Part, str]:
    if cut.masked is not None:
        return masked_product, cut.why
    if cut.region is None:
        return cut.node.call, cut.why
    assert meta is not None
    return part_of(cut.region, meta), ""


def _facts(cut: Cut, shown: Shown, why: str) -> tuple[tuple[str, str], ...]:
    """What `explain` says of a part."""
    if cut.region is None:
        return (("not fused", why),)
    operands = ", ".join(f"{n} = {shown.text(x)}" for n, (x, _) in cut.region.operands.items())
    text = str(cut.region.expression)
    for name, value in cut.region.numbers.items():
        text = text.replace(name, shown.text(value))
    return (("fused", f"{text}, one loop nest"), ("operands", operands))


def _parts(roots: Sequence[Lazy], known: dict[int, Meta | None], passed: Mapping[float, int]) -> list[Cut]:
    """The parts in the order in which they run. What two parts would compute, or is a result, is a part."""
    cuts = {id(r) for r in roots}
    while True:
        found: dict[int, Cut] = {}
        order: list[Cut] = []

        for root in roots:
            _visit(root, cuts, known, passed, found, order)
        again = _shared(order, cuts)
        if not again:
            return order
        cuts |= again


def _visit(
    node: Any, cuts: set[int], known: dict[int, Meta | None], passed: Mapping[float, int], found: dict[int, Cut],
    order: list[Cut],
) -> None:  # fmt: skip
    """Add the part of a node behind the parts that it needs."""
    if not is_lazy(node) or node.known or id(node) in found:
        return
    cut = found[id(node)] = cut_of(node, cuts - {id(node)}, known, passed)
    for x in cut.inputs:
        _visit(x, cuts, known, passed, found, order)
    order.append(cut)


def _shared(parts: Sequence[Cut], cuts: set[int]) -> set[int]:
    """The nodes that more than one part computes, less what is below one of them."""
    uses: dict[int, int] = {}
    kinds: dict[int, Lazy] = {}
    for cut in parts:
        nodes = cut.region.inlined if cut.region is not None else [cut.node]
        for x, n in {id(n): n for n in nodes if n.kind not in (TRANSPOSE, LEAF)}.items():
            uses[x] = uses.get(x, 0) + 1
            kinds[x] = n
    shared = {x: kinds[x] for x, n in uses.items() if n > 1 and x not in cuts}
    below: set[int] = set()
    for node in shared.values():
        _descend(node, below)
    return set(shared) - below


def _descend(node: Lazy, found: set[int]) -> None:
    """Add the nodes below one."""
    for x in node.args:
        if is_lazy(x) and id(x) not in found:
            found.add(id(x))
            _descend(x, found)
