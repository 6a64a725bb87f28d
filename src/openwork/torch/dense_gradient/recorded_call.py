"""A call of sparse operands and its results -> results with the gradient that the call has on dense operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...storage.recorded import is_recorded
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from ..gradients.function import Rule, apply_rule
from ..gradients.permutation import detached_storage, every_element_stored
from ..gradients.pointwise import DIFFERENTIABLE, known
from .proxy import (
    proxy_of_stored,
    stored_values,
    to_dense_tensor,
)
from .rules import DENSE_RULES, RANDOM, STRUCTURE_OPERANDS, SUMS

__all__ = ["RecordedCall", "is_differentiated", "proxy_of", "recorded_results", "results_of", "without_proxy"]


class _Operand:
    """A differentiated operand of a recorded call, as forward and backward take it.

    `source` is the tensor that its gradient goes to: a proxy, or the operand itself where that is a torch tensor.
    """

    __slots__ = ("needs_structure", "source", "structure", "value")

    def __init__(self, operand: Any, needs_structure: bool) -> None:
        self.needs_structure = needs_structure
        self.structure: Storage | None = None
        if isinstance(operand, Tensor):
            self.structure = detached_storage(operand._storage)
            self.value: Any = Tensor._from_storage(self.structure)
            self.source = proxy_of(operand)
        else:
            self.value, self.source = operand.detach(), operand

    def for_backward(self, source: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """A source -> the variable that backward differentiates by, and the operand made of it: dense, or sparse."""
        s = self.structure
        if s is None:
            return source, source
        elements = known(to_dense_tensor(s, s.values), source)
        if not self.needs_structure:
            return elements, Tensor._from_dense(elements)
        return elements, Tensor._from_storage(s.with_values(stored_values(s, elements)))


class RecordedCall:
    """A function with its arguments, of which the differentiated ones may be replaced."""

    def __init__(self, function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.name = DENSE_RULES.get(name, function), name
        self.parts: list[_Operand] = []
        self.kept: list[torch.Tensor] = []
        """what backward reads besides: torch raises there where it was changed"""
        self.random_state = torch.get_rng_state() if name in RANDOM else None
        full_places = STRUCTURE_OPERANDS.get(name, ())
        self.args = tuple(self._mark(a, k in full_places or -1 in full_places) for k, a in enumerate(args))
        self.kwargs = {k: self._mark(a, False) for k, a in kwargs.items()}
        if name.strip("_") in SUMS:
            self.kept.clear()

    def _mark(self, x: Any, needs_structure: bool) -> Any:
        if isinstance(x, tuple | list) and any(isinstance(v, Tensor | torch.Tensor) for v in x):
            return type(x)(self._mark(v, needs_structure) for v in x)
        if is_differentiated(x):
            self.parts.append(_Operand(x, needs_structure))
            if isinstance(x, Tensor):
                self.kept.append(self.parts[-1].value.values)
            return self.parts[-1]
        x = without_proxy(x)
        values = x._storage.values if isinstance(x, Tensor) else x
        if isinstance(values, torch.Tensor):
            self.kept.append(values.detach())
        return x

    def without_graph(self, function: Callable[..., Any]) -> Any:
        """The call's result without a graph."""
        with torch.no_grad():
            return function(
                *_map_operands(self.args, _value), **{k: _map_operands(a, _value) for k, a in self.kwargs.items()}
            )

    def with_graph(self, operands: Sequence[Any]) -> list[torch.Tensor]:
        """The call's results on the graph of other operands, as dense tensors."""
        operand_of = dict(zip(map(id, self.parts), operands, strict=True))
        args = _map_operands(self.args, lambda p: operand_of[id(p)])
        kwargs = {k: _map_operands(a, lambda p: operand_of[id(p)]) for k, a in self.kwargs.items()}
        with torch.random.fork_rng(devices=(), enabled=self.random_state is not None), every_element_stored():
            if self.random_state is not None:
                torch.set_rng_state(self.random_state)
            results = results_of(self.function(*args, **kwargs))
            return [r.to_dense() if isinstance(r, Tensor) else r for r in results]


def _value(part: _Operand) -> Any:
    return part.value


def _map_operands(x: Any, visit: Callable[[_Operand], Any]) -> Any:
    if isinstance(x, _Operand):
        return visit(x)
    return type(x)(_map_operands(v, visit) for v in x) if type(x) in (tuple, list) else x


def results_of(x: Any) -> list[Any]:
    """The tensors of a result that may have gradients, in order."""
    if isinstance(x, tuple | list):
        return [r for v in x for r in results_of(v)]
    if isinstance(x, Tensor):
        return [x] if x._storage.scalar in DIFFERENTIABLE else []
    return [x] if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()) else []


class _RecordedResults(Rule):
    """Known results of a call, with the gradient of the call on dense tensors."""

    __slots__ = ("call", "results")

    def __init__(self, call: RecordedCall, results: Sequence[torch.Tensor]) -> None:
        self.call, self.results = call, results

    def forward(self, *sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results, self.results = self.results, ()
        return tuple(results)

    def saved(self, tensors: Sequence[Any], output: Any, needed: Sequence[bool]) -> Sequence[Any]:
        return *tensors, *self.call.kept

    def tangent(self, saved: Sequence[Any], tangents: Sequence[torch.Tensor | None]) -> Any:
        """The results' tangents: the gradient of the operands is linear in a weight `u`; its own gradient by `u`."""
        given = [k for k, t in enumerate(tangents) if t is not None]
        with torch.enable_grad():
            kept = saved[: len(self.call.parts)]
            sources = [s.detach().requires_grad_(k in given) for k, s in enumerate(kept)]
            pairs = [p.for_backward(s) for p, s in zip(self.call.parts, sources, strict=True)]
            results = self.call.with_graph([operand for _, operand in pairs])
            on_graph = [k for k, r in enumerate(results) if r.requires_grad]
            weights = [torch.zeros_like(results[k], requires_grad=True) for k in on_graph]
            found: dict[int, torch.Tensor | None] = {}
            if on_graph:
                inputs, outs = [pairs[k][0] for k in given], [results[k] for k in on_graph]
                gradients = torch.autograd.grad(outs, inputs, weights, create_graph=True, allow_unused=True)
                used = [(g, tangents[k]) for g, k in zip(gradients, given, strict=True) if g is not None]
                linear = torch.autograd.grad([g for g, _ in used], weights, [t for _, t in used], allow_unused=True)
                found = dict(zip(on_graph, linear, strict=True))
        return tuple([torch.zeros_like(r) if (t := found.get(k)) is None else t for k, r in enumerate(results)])

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        create_graph, grads = torch.is_grad_enabled(), grad if type(grad) is tuple else (grad,)
        sources = saved[: len(self.call.parts)]
        if not create_graph:
            sources = tuple(s.detach().requires_grad_(s.requires_grad) for s in sources)
        with torch.enable_grad():
            pairs = [p.for_backward(s) for p, s in zip(self.call.parts, sources, strict=True)]
            results_on = self.call.with_graph([operand for _, operand in pairs])
            differentiable = [
                (r, g) for r, g in zip(results_on, grads, strict=True) if r.requires_grad and g is not None
            ]
            input_numbers = [k for k, is_needed in enumerate(needed) if is_needed]
            gradients: Any = (None,) * len(input_numbers)
            if differentiable and input_numbers:
                inputs = [pairs[k][0] for k in input_numbers]
                results, weights = zip(*differentiable, strict=True)
                gradients = torch.autograd.grad(results, inputs, weights, create_graph=create_graph, allow_unused=True)
        out: list[Any] = [None] * len(sources)
        for k, g in zip(input_numbers, gradients, strict=True):
            out[k] = g
        return out


def recorded_results(call: RecordedCall, results: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Known results of a call, on torch's graph as those of the call on dense tensors."""
    found: Sequence[torch.Tensor] = apply_rule(_RecordedResults(call, results), *[p.source for p in call.parts])
    return found


def is_differentiated(x: Any) -> bool:
    """Whether an operand has a gradient."""
    if hasattr(type(x), "_proxy"):
        return bool(is_recorded(x._proxy))
    if isinstance(x, Tensor):
        x = x._storage.values
    return isinstance(x, torch.Tensor) and x.layout == torch.strided and is_recorded(x)


def proxy_of(t: Tensor) -> torch.Tensor:
    """The torch tensor of the shape of `t` that the gradients of all its elements go to."""
    if hasattr(type(t), "_proxy"):
        return t._proxy  # type: ignore[attr-defined]
    s = t._storage
    result: torch.Tensor = t.to_dense() if s.format.is_dense else proxy_of_stored(detached_storage(s), s.values)
    return result


def without_proxy(x: Any) -> Any:
    """An argument with gradients of stored elements only."""
    if hasattr(type(x), "_proxy"):
        return Tensor._from_storage(x._storage)
    return type(x)(map(without_proxy, x)) if type(x) in (tuple, list) else x
