"""`compute`: lazy expressions -> their values, by a program of fusion groups, cached by the expressions' structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..classes import frozen
from ..codegen.plan_cache import PlanCache
from ..compiler.scalar_arguments import passes
from ..provided import provided, provides
from ..runtime import gradient_hook, trace
from ..runtime.library_errors import FAILURES, explain
from ..runtime.overrides import takes_over
from ..tensor.expression_graph import Graph
from ..tensor.expression_text import ExpressionText
from ..tensor.lazy import Lazy, is_lazy, lazy, leaf
from .infer import Meta, metas_of
from .kernels import Run, masked_product, run_of
from .numbers import fixed_numbers, with_numbers
from .partition import PlannedStep, partition

__all__ = ["compute", "fused"]

evaluate_masked = provided("masked program", __name__)
"""The values of expressions with masked operands."""

LIMIT = 512
"""Programs kept."""


@frozen
class _Step:
    """A fusion group or an operation by itself: the values that it reads, and the one that it computes, by number."""

    run: Run
    inputs: tuple[int, ...]
    number: int
    title: str
    facts: tuple[tuple[str, str], ...]
    last_read: tuple[int, ...]
    """results of earlier steps that no later one reads"""


@frozen
class _Program:
    """The compiled form of expressions of one structure: operands -> results; it holds no operand."""

    steps: tuple[_Step, ...]
    operations: int
    results: tuple[int, ...]


_programs: PlanCache[Any, _Program | frozenset[int]] = PlanCache("programs", LIMIT)
"""By key; where the plan depends on numbers, the key leads to their places among the operands."""


@provides("compute")
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
    graph = Graph(roots)
    key = graph.key
    program = _programs.get(key)
    if isinstance(program, frozenset):
        program = _programs.get(_with_fixed_numbers(key, graph, program))
    if program is None or isinstance(program, frozenset):
        if any(map(takes_over, graph.operands)):
            masked_values: tuple[Any, ...] = evaluate_masked(roots)
            return masked_values
        program = _new_program(graph, key)
    operands = graph.operands
    values: list[Any] = [*[None] * program.operations, *operands[::-1]]
    tracing = trace.active()
    for step in program.steps:
        if tracing:
            facts = tuple((name, with_numbers(text, operands)) for name, text in step.facts)
            trace.note(trace.Step(with_numbers(step.title, operands), facts, heads=True))
        inputs = [values[k] for k in step.inputs]
        try:
            values[step.number] = step.run(*inputs)
        except FAILURES as error:
            explain(with_numbers(step.title, operands), error, inputs)
            raise
        for k in step.last_read:
            values[k] = None
    return tuple([values[k] for k in program.results])


def _new_program(graph: Graph, key: Any) -> _Program:
    """Compile a program and cache it. Where it depends on numbers, the key leads to their places, which extend it."""
    metas = metas_of(graph)
    fixed = fixed_numbers(graph, metas)
    passed = {-1 - k for k, x in enumerate(graph.operands) if passes(x) and k not in fixed}
    program = _compile(graph, metas, passed)
    if fixed:
        _programs.keep(key, fixed)
        key = _with_fixed_numbers(key, graph, fixed)
    _programs.keep(key, program)
    return program


def _with_fixed_numbers(key: Any, graph: Graph, fixed: frozenset[int]) -> Any:
    """The key with the numbers that the plan depends on."""
    return (key, *[graph.operands[k] for k in sorted(fixed)])


# -- planning ----------------------------------------------------------------------------------------------------------


def _compile(graph: Graph, metas: Sequence[Meta | None], passed: Collection[int]) -> _Program:
    planned = partition(graph, metas, passed)
    last_reader = {k: step.number for step in planned for k in step.operands if k >= 0}
    shown = ExpressionText(graph, passed)
    steps: list[_Step] = []
    for count, step in enumerate(planned, 1):
        run, why = _run_of_step(step, graph, metas)
        title = f"part {count} of {len(planned)}: {shown.text(step.number)}"
        facts = _trace_facts(step, shown, why)
        shown.names[step.number] = f"part{count}"
        last_read = tuple(
            k for k in dict.fromkeys(step.operands) if last_reader.get(k) == step.number and k not in graph.results
        )
        steps.append(_Step(run, step.operands, step.number, title, facts, last_read))
    return _Program(tuple(steps), len(graph), graph.results)


def _run_of_step(step: PlannedStep, graph: Graph, metas: Sequence[Meta | None]) -> tuple[Run, str]:
    if step.product_left is not None:
        return functools.partial(masked_product, product_left=step.product_left), step.why
    if step.group is None:
        return graph.nodes[step.number].call, step.why
    meta = metas[step.number]
    assert meta is not None
    return run_of(step.group, graph, step.number, meta), ""


def _trace_facts(step: PlannedStep, shown: ExpressionText, why: str) -> tuple[tuple[str, str], ...]:
    """The lines of `explain` for a step."""
    group = step.group
    if group is None:
        return (("not fused", why),)
    operands = ", ".join(f"{n} = {shown.text(k)}" for n, (k, _) in group.operands.items())
    text = str(group.expression)
    for name, k in group.numbers.items():
        text = text.replace(name, shown.text(k))
    return (("fused", f"{text}, one loop nest"), ("operands", operands))
