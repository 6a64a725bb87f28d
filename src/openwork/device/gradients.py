"""Gradients on a device over torch's memory: of products they are products again, so that there are those of any order.

y[out] = A[a] B[b] ...          dB[b] = sum of A[a] ... dy[out];  dA at A's elements, a sampled product
C[a] = A[a] B[b] ... sampled    dB[b] = sum of (A dC)[a] ...;     dA = dC times the others at A's elements
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..format.expression import Dim
from ..ir.types import FLOATS
from ..provided import provides
from ..storage.buffers import torch_dtype, torch_module
from ..torch.gradients.function import Rule, apply_rule
from .operations import refused
from .products import product
from .row_statistics import softmax
from .tensor import DeviceTensor
from .transfer import over
from .vector import fill

__all__ = ["recorded_elements", "recorded_product", "recorded_softmax", "with_graph"]


@provides("device with_graph")
def with_graph(t: DeviceTensor, values: Any) -> DeviceTensor:
    """The tensor with values of torch's, which torch records where it records these."""
    memory = t.adapter.given(values.detach().reshape(-1))
    assert memory is not None
    out = t.with_values(memory, t.fill_value)
    out.scalar = memory.scalar
    out.graph = values if values.requires_grad else None
    return out


class _Product(Rule):
    """The sum of products by letters of operands, whose values are the tensors."""

    def __init__(self, name: str, inputs: Sequence[str], output: str, operands: Sequence[DeviceTensor]) -> None:
        self.name, self.inputs, self.output = name, inputs, output
        self.operands = [x.detach() for x in operands]
        self.result: DeviceTensor | None = None

    def forward(self, *tensors: Any) -> Any:
        operands = [with_graph(x, v.detach()) for x, v in zip(self.operands, tensors, strict=True)]
        self.result = product(self.name, self.inputs, self.output, operands)
        return self.result.values

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> list[Any]:
        assert self.result is not None
        operands = [with_graph(x, v) for x, v in zip(self.operands, saved, strict=True)]
        grad = with_graph(self.result, grad.contiguous())
        return [self.of(k, operands, grad).values if asked else None for k, asked in enumerate(needed)]

    def of(self, k: int, operands: list[DeviceTensor], grad: DeviceTensor) -> DeviceTensor:
        """The gradient of one operand."""
        others = [n for n in range(len(operands)) if n != k]
        letters, rest = [self.inputs[n] for n in others], [operands[n] for n in others]
        x, sampled = operands[k], not grad.format.is_dense
        if sampled and not x.format.is_dense:
            letters, rest = [self.inputs[k], *letters], [with_graph(x, grad.values), *rest]
        elif sampled:
            at = next(n for n, y in enumerate(rest) if not y.format.is_dense)
            rest[at] = with_graph(rest[at], rest[at].values * grad.values)
        elif not x.format.is_dense or set(self.inputs[k]).difference(self.output, *letters):
            ones = x.detach().with_values(fill(x.adapter, x.memory.length, 1, x.scalar), 0)
            letters, rest = [self.inputs[k], *letters, self.output], [ones, *rest, grad]
        else:
            letters, rest = [*letters, self.output], [*rest, grad]
        order = self.inputs[k]
        if x.format.is_dense:
            dims = [e.index for level in x.format.levels if isinstance(e := level.expression, Dim)]
            if len(dims) < x.format.nlevels:
                raise refused(f"gradient of {self.name}", operands, "a dense operand in blocks or diagonals")
            order = "".join(order[d] for d in dims)  # as it lies in memory
        return product(f"gradient of {self.name}", letters, order, rest)


class _Softmax(Rule):
    """Exponentials of a tensor's values along an axis divided by their sum: dx = y (dy - sum of y dy in the row)."""

    def __init__(self, t: DeviceTensor, axis: int) -> None:
        self.t, self.axis = t.detach(), axis

    def forward(self, *tensors: Any) -> Any:
        return softmax(with_graph(self.t, tensors[0].detach()), self.axis).values

    def gradients(self, saved: Sequence[Any], grad: Any, needed: Sequence[bool]) -> list[Any]:
        y = softmax(with_graph(self.t, saved[0]), self.axis).values
        letters = "abcdefgh"[: self.t.ndim]
        kept = "".join(c for k, c in enumerate(letters) if k not in (self.axis, self.axis + self.t.ndim))
        sums = product("gradient of softmax", [letters], kept, [with_graph(self.t, y * grad)])
        ones = self.t.with_values(fill(self.t.adapter, self.t.memory.length, 1, self.t.scalar), 0)
        at = product("gradient of softmax", [letters, kept], letters, [ones, sums])
        return [y * (grad - at.values)]


@provides("device recorded_softmax")
def recorded_softmax(t: DeviceTensor, axis: int) -> DeviceTensor:
    """The softmax along an axis of a floating-point tensor that torch records."""
    if not t.format.is_unique or t.scalar not in FLOATS or axis not in range(-t.ndim, t.ndim):
        raise refused("gradient of softmax", (t,), "duplicates, or numbers that are not floating-point")
    return with_graph(t.with_values(t.memory, 0), apply_rule(_Softmax(t, axis), t.values))


@provides("device recorded_elements")
def recorded_elements(name: str, rule: Any, operands: Sequence[Any]) -> DeviceTensor:
    """A function of elements, of tensors of one structure and numbers, by torch's function of values of that name."""
    t = next(x for x in operands if isinstance(x, DeviceTensor))
    torch = torch_module()
    if not t.format.is_unique or rule.format != t.format or not hasattr(torch, name):
        raise refused(f"gradient of {name}", [x for x in operands if isinstance(x, DeviceTensor)])
    values = getattr(torch, name)(*(x.values if isinstance(x, DeviceTensor) else x for x in operands))
    return with_graph(t.with_values(t.memory, rule.fill_value), values.to(torch_dtype(rule.scalar)))


@provides("device recorded_product")
def recorded_product(
    name: str, inputs: Sequence[str], output: str, operands: Sequence[DeviceTensor]
) -> DeviceTensor:  # fmt: skip
    """A product of operands of which torch records some: a tensor that it records."""
    if any(not x.format.is_unique for x in operands) or len({x.scalar for x in operands}) > 1:
        raise refused(f"gradient of {name}", operands, "duplicates, or values of several dtypes; coalesce, astype")
    rule = _Product(name, inputs, output, operands)
    values = apply_rule(rule, *(x.values for x in operands))
    assert rule.result is not None
    if rule.result.format.is_dense:
        return with_graph(over(rule.result.memory, rule.result.shape), values)
    return with_graph(rule.result, values)
