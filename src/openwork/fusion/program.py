"""`compute`: lazy expressions -> their values, by a program of fused parts, cached by the expressions' structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.plan_cache import PlanCache
from ..compiler.scalar_arguments import passes
from ..late import late
from ..runtime import gradient_hook, trace
from ..runtime.library_errors import FAILURES, explain
from ..runtime.overrides import takes_over
from ..tensor.lazy import LEAF, TRANSPOSE, ExpressionText, Lazy, is_lazy, lazy, leaf
from .infer import Meta, meta_of
from .kernels import Part, masked_product, part_of
from .numbers import fixed_numbers, with_numbers
from .partition import PlannedPart, plan_part

__all__ = ["compute", "fused"]

evaluate_masked = late("masked.expressions", "evaluate")
"""The values of expressions with masked operands."""

NUMBERS = frozenset((bool, int, float, complex))

LIMIT = 512
"""Programs kept."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One part: the slots that it reads, and the one that it fills. A slot below zero is a constant's."""

    part: Part
    inputs: tuple[int, ...]
    out: int
    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Program:
    """The compiled form of expressions of one structure: leaves' values -> results; it holds no value of a leaf."""

    steps: tuple[_Step, ...]
    constants: tuple[Any, ...]
    slots: int
    results: tuple[int, ...]


_programs: PlanCache[Any, _Program | frozenset[int]] = PlanCache("programs", LIMIT)
"""By key; where the plan depends on numbers, the key leads to their slots."""


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

    See also: lazy, fused, explain.

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
    values = tuple(e.compute() if is_lazy(e) else e for e in expressions)
    return values[0] if len(values) == 1 else values


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

    Cost: the first call with operands of new kinds compiles; later ones run.
    See also: lazy, compute, explain.

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
        if gradient_hook.any_dense_gradient(args):
            return gradient_hook.rule("dense_gradient")(wrapper, "fused", None, args, kwargs)
        leaves = [_as_leaf(a) for a in args]
        leaf_kwargs = {k: _as_leaf(v) for k, v in kwargs.items()} if kwargs else kwargs
        result = function(*leaves, **leaf_kwargs)
        if type(result) in (tuple, list):
            values = compute(*result) if len(result) > 1 else tuple(map(compute, result))
            return type(result)(values)
        return compute(result)

    return wrapper


def _as_leaf(x: Any) -> Any:
    """An argument of a fused function: Tensors and arrays as leaf nodes."""
    if type(x) is np.ndarray:
        return leaf(x) if x.ndim else x
    if getattr(x, "_storage", None) is not None:
        return leaf(x)
    return lazy(x) if hasattr(x, "shape") and x.shape and not is_lazy(x) else x


# -- running -----------------------------------------------------------------------------------------------------------


def _run(roots: Sequence[Lazy]) -> tuple[Any, ...]:
    leaves, numbers, key = _walk(roots)
    program = _programs.get(key)
    if isinstance(program, frozenset):
        program = _programs.get(_with_fixed_numbers(key, numbers, program))
    if program is None or isinstance(program, frozenset):
        if any(map(takes_over, leaves)):
            masked_values: tuple[Any, ...] = evaluate_masked(roots)
            return masked_values
        program = _new_program(roots, leaves, numbers, key)
    values = [*leaves, *numbers, *program.constants, *[None] * program.slots]
    tracing = trace.active()
    for step in program.steps:
        if tracing:
            facts = tuple((name, with_numbers(text, numbers)) for name, text in step.facts)
            trace.note(trace.Step(with_numbers(step.title, numbers), facts, heads=True))
        inputs = [values[k] for k in step.inputs]
        try:
            values[step.out] = step.part(*inputs)
        except FAILURES as error:
            explain(with_numbers(step.title, numbers), error, inputs)
            raise
    return tuple([values[k] for k in program.results])


def _new_program(roots: Sequence[Lazy], leaves: Sequence[Any], numbers: Sequence[float], key: Any) -> _Program:
    """Compile a program and cache it. Where it depends on numbers, the key leads to their slots, which extend it."""
    nodes = _unify_common(roots)
    metas: dict[int, Meta | None] = {}
    slots = {x: k for k, x in enumerate(numbers)}
    fixed = fixed_numbers(nodes, slots, metas)
    program = _compile(nodes, leaves, numbers, {x: k for x, k in slots.items() if k not in fixed}, metas)
    if fixed:
        _programs.keep(key, fixed)
        key = _with_fixed_numbers(key, numbers, fixed)
    _programs.keep(key, program)
    return program


def _with_fixed_numbers(key: Any, numbers: Sequence[float], fixed: frozenset[int]) -> Any:
    """The key with the numbers that the plan depends on."""
    return (key, *[numbers[k] for k in sorted(fixed)])


def _walk(roots: Sequence[Lazy]) -> tuple[list[Any], list[float], Any]:
    """The leaves' values, the numbers that may be kernel arguments, and the plan's key."""
    walk = _Walk()
    marks = tuple([walk.visit(r) for r in roots])
    return walk.values, list(walk.numbers), (marks, *walk.key)


class _Walk:
    """A traversal of expressions: collects leaves' values, numbers, and the key of the plan."""

    def __init__(self) -> None:
        self.order: dict[int, int] = {}
        self.leaves: dict[int, int] = {}
        self.values: list[Any] = []
        self.numbers: dict[float, int] = {}
        self.key: list[Any] = []

    def visit(self, x: Any) -> Any:
        """Visit an operand -> what stands for it in the key."""
        value = x
        if type(x) is Lazy:
            if not x.known:
                number = self.order.get(id(x))
                if number is None:
                    inner = tuple([self.visit(a) for a in x.args])
                    number = self.order[id(x)] = len(self.order)
                    self.key.append((x.kind, x.name, _marked(x.options), inner, getattr(x.call, "__qualname__", None)))
                return number
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


def _unify_common(roots: Sequence[Lazy]) -> list[Lazy]:
    """Common subexpression elimination: expressions -> the same with one node for all equal ones."""
    nodes: dict[Any, Lazy] = {}
    unified: dict[int, Any] = {}

    def visit(x: Any) -> Any:
        if not is_lazy(x):
            return x
        if id(x) not in unified:
            unified[id(x)] = x if x.known else unify(x)
        return unified[id(x)]

    def unify(x: Lazy) -> Lazy:
        args = tuple(map(visit, x.args))
        marks = tuple(map(_identity, args))
        key = (x.kind, x.name, _marked(x.options), marks, getattr(x.call, "__qualname__", None))
        return nodes.setdefault(key, Lazy(x.kind, x.name, args, x.call, x.options))

    return [visit(r) for r in roots]


def _marked(options: tuple[Any, ...]) -> Any:
    """Options as part of a key: 1, 1.0 and True are three, and a list is one too."""
    return options and repr(options)


def _identity(x: Any) -> Any:
    """A key that two operands share exactly where they are the same."""
    if type(x) in NUMBERS:
        return (type(x), repr(x))
    return id(x._value) if is_lazy(x) and x.known else id(x)


def _leaf_key(value: Any, storage: Any) -> Any:
    if storage is not None:
        fill = storage.fill_value
        return (storage.signature, storage.shape, fill if fill == fill and fill else repr(fill))
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.flags.c_contiguous, value.flags.f_contiguous)
    return (type(value), str(getattr(value, "dtype", "")), tuple(value.shape), str(getattr(value, "device", "")))


# -- planning ----------------------------------------------------------------------------------------------------------


def _compile(
    roots: Sequence[Lazy], leaves: Sequence[Any], numbers: Sequence[float], passed: Mapping[float, int],
    metas: dict[int, Meta | None],
) -> _Program:  # fmt: skip
    ordered = _ordered_parts(roots, metas, passed)
    slots: dict[int, int] = {id(v): k for k, v in enumerate(leaves)}
    constants: list[Any] = []
    constants_at = len(leaves) + len(numbers)

    def slot(x: Any) -> int:
        value = x._value if is_lazy(x) and x.known else x
        if type(value) is float and value in passed:
            return len(leaves) + passed[value]
        if not is_lazy(value) and id(value) not in slots:
            slots[id(value)] = constants_at + len(constants)
            constants.append(value)
        return slots[id(value)]

    for part in ordered:
        for x in part.inputs:
            if not is_lazy(x) or x.known:
                slot(x)
    names: dict[int, str] = {}
    first = constants_at + len(constants)
    steps: list[_Step] = []
    for number, part in enumerate(ordered):
        slots[id(part.node)] = first + number
        inputs = tuple(map(slot, part.inputs))
        run, why = _callable_part(part, meta_of(part.node, metas))
        shown = ExpressionText(names, passed)
        title = f"part {number + 1} of {len(ordered)}: {shown.text(part.node)}"
        facts = _trace_facts(part, shown, why)
        names = {**shown.names, id(part.node): f"part{number + 1}"}
        steps.append(_Step(run, inputs, first + number, title, facts))
    results = tuple(slots[id(r)] for r in roots)
    return _Program(tuple(steps), tuple(constants), len(ordered), results)


def _callable_part(part: PlannedPart, meta: Meta | None) -> tuple[Part, str]:
    if part.masked is not None:
        return masked_product, part.why
    if part.region is None:
        return part.node.call, part.why
    assert meta is not None
    return part_of(part.region, meta), ""


def _trace_facts(part: PlannedPart, shown: ExpressionText, why: str) -> tuple[tuple[str, str], ...]:
    """The lines of `explain` for a part."""
    if part.region is None:
        return (("not fused", why),)
    operands = ", ".join(f"{n} = {shown.text(x)}" for n, (x, _) in part.region.operands.items())
    text = str(part.region.expression)
    for name, value in part.region.numbers.items():
        text = text.replace(name, shown.text(value))
    return (("fused", f"{text}, one loop nest"), ("operands", operands))


def _ordered_parts(
    roots: Sequence[Lazy], metas: dict[int, Meta | None], passed: Mapping[float, int]
) -> list[PlannedPart]:
    """The parts in execution order: what two parts would compute, or is a result, is a part of its own."""
    materialized = {id(r) for r in roots}
    while True:
        parts: dict[int, PlannedPart] = {}
        order: list[PlannedPart] = []

        for root in roots:
            _add_part(root, materialized, metas, passed, parts, order)
        shared = _shared_nodes(order, materialized)
        if not shared:
            return order
        materialized |= shared


def _add_part(
    node: Any, materialized: set[int], metas: dict[int, Meta | None], passed: Mapping[float, int],
    parts: dict[int, PlannedPart], order: list[PlannedPart],
) -> None:  # fmt: skip
    """Append the part of a node after the parts of its inputs."""
    if not is_lazy(node) or node.known or id(node) in parts:
        return
    part = parts[id(node)] = plan_part(node, materialized - {id(node)}, metas, passed)
    for x in part.inputs:
        _add_part(x, materialized, metas, passed, parts, order)
    order.append(part)


def _shared_nodes(parts: Sequence[PlannedPart], materialized: set[int]) -> set[int]:
    """The nodes that more than one part computes, without descendants of such nodes."""
    uses: dict[int, int] = {}
    kinds: dict[int, Lazy] = {}
    for part in parts:
        nodes = part.region.inlined if part.region is not None else [part.node]
        for x, n in {id(n): n for n in nodes if n.kind not in (TRANSPOSE, LEAF)}.items():
            uses[x] = uses.get(x, 0) + 1
            kinds[x] = n
    shared = {x: kinds[x] for x, n in uses.items() if n > 1 and x not in materialized}
    descendants: set[int] = set()
    for node in shared.values():
        _add_descendants(node, descendants)
    return set(shared) - descendants


def _add_descendants(node: Lazy, nodes: set[int]) -> None:
    """Add the descendants of a node."""
    for x in node.args:
        if is_lazy(x) and id(x) not in nodes:
            nodes.add(id(x))
            _add_descendants(x, nodes)
