"""Products as operators of torch.library, which torch.compile puts into its graphs.

`openwork::product` is the family of `single_operand`: one sparse operand, by its buffers and the text of its format,
with dense ones. The family is closed under differentiation, so that the gradient of the operator is the operator again.
The tracer of torch.compile does not look into this package; for the functions named here it takes those of `traced`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch

from ... import masked as masked_functions
from ...classes import frozen
from ...errors import ShapeError
from ...format import format as parse
from ...masked import torch_nodes
from ...masked.methods import Methods as MethodsOfMasked
from ...masked.protocols import Protocols
from ...masked.tensor import MaskedTensor
from ...ops.products import matmul as products
from ...provided import provides
from ...runtime import gradient_hook
from ...runtime.operation import block
from ...storage.buffers import torch_dtype
from ...storage.invariants import check_layout
from ...storage.storage import Storage
from ...tables import ATTRIBUTES, GRADIENTS, OPERANDS, OPERATORS
from ...tensor.tensor import Tensor
from ...tensor.torch_names import TorchNames
from ..gradients.single_operand import Product, gradients_of, run
from . import traced, traced_calls, traced_pytree
from .traced_calls import MEMBERS

__all__ = ["substitute"]

Indices = tuple[str, ...]

_library = torch.library.Library("openwork", "DEF")
_library.define(
    "product(Tensor? values, Tensor[] structure, Tensor[] dense, str format, str held, SymInt[] shape, SymInt count,"
    " str statement, str scalar) -> Tensor"
)


@lru_cache(maxsize=1024)
def _indices(statement: str) -> tuple[Indices, tuple[Indices, ...], Indices | None]:
    """The indices of the sparse operand, of the dense ones and of the result: "i,j|j,k;k|i,k", or "-" for the last."""
    sparse, dense, out = statement.split("|")
    split = [tuple(x.split(",")) if x else () for x in (dense.split(";") if dense else [])]
    return _split(sparse), tuple(split), None if out == "-" else _split(out)


def _split(text: str) -> Indices:
    return tuple(text.split(",")) if text else ()


@frozen
class _Call:
    """A product of the family as a call of the operator; see `single_operand.Product`."""

    structure: tuple[torch.Tensor, ...]
    format: str
    held: str
    shape: tuple[int, ...]
    count: int
    at: Indices
    dense: tuple[Indices, ...]
    out: Indices | None
    scalar: str

    def __call__(self, values: torch.Tensor | None, dense: Sequence[torch.Tensor]) -> torch.Tensor:
        statement = traced.statement(self.at, self.dense, self.out)
        result: torch.Tensor = torch.ops.openwork.product(
            values, self.structure, dense, self.format, self.held, self.shape, self.count, statement, self.scalar
        )
        return result

    def other(self, dense: tuple[Indices, ...], out: Indices | None, scalar: str) -> _Call:
        """Another product of the same sparse operand."""
        return replace(self, dense=dense, out=out, scalar=scalar)


def _storage(
    values: torch.Tensor | None, structure: Sequence[torch.Tensor], text: str, buffer_kinds: str,
    shape: tuple[int, ...],
    count: int, scalar: str,
) -> Storage:  # fmt: skip
    """The storage over these buffers; cached with the last of them, so that its prepared calls are found again."""
    cached = structure[-1].__dict__.setdefault("_openwork", {}) if structure else {}
    key = (text, shape, values is None, *(b.data_ptr() for b in structure))
    result: Storage | None = cached.get(key)
    if result is not None and (values is None or result.values.data_ptr() == values.data_ptr()):
        return result
    buffers_given = iter(structure)
    buffers = [None if x == "-" else next(buffers_given) for x in buffer_kinds]
    data = torch.empty(count, dtype=torch_dtype(scalar)) if values is None else values.detach().contiguous()
    values_scalar = scalar if values is None else traced.SCALARS[values.dtype]
    result = Storage(shape, parse(text), values_scalar, 0, tuple(buffers[::2]), tuple(buffers[1::2]), data)
    check_layout(result)
    cached[key] = result
    return result


@torch.library.impl(_library, "product", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _product(
    values: torch.Tensor | None, structure: Sequence[torch.Tensor], dense: Sequence[torch.Tensor], format: str,
    held: str, shape: Sequence[int], count: int, statement: str, scalar: str,
) -> torch.Tensor:  # fmt: skip
    s = _storage(values, structure, format, held, tuple(shape), count, scalar)
    at, indices, out = _indices(statement)
    return run(Product(s, at, indices, out, scalar), values, dense).contiguous()


@torch.library.register_fake("openwork::product", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake(
    values: torch.Tensor | None, structure: Sequence[torch.Tensor], dense: Sequence[torch.Tensor], format: str,
    buffer_kinds: str, shape: Sequence[Any], count: Any, statement: str, scalar: str,
) -> torch.Tensor:  # fmt: skip
    sparse_indices, indices, out = _indices(statement)
    extents = dict(zip(sparse_indices, shape, strict=True))
    for x, names in zip(dense, indices, strict=True):
        for i, n in zip(names, x.shape, strict=True):
            if extents.setdefault(i, n) != n:
                raise ShapeError(f"product {statement}: index {i} has extents {extents[i]} and {n}")
    sizes = (count,) if out is None else tuple(extents[i] for i in out)
    like = structure[0] if values is None and structure else dense[0] if values is None else values
    return like.new_empty(sizes, dtype=torch_dtype(scalar))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    values, structure, dense, *ctx.rest = inputs
    ctx.sizes = (len(structure), len(dense))
    ctx.save_for_backward(values, *structure, *dense)


def _backward(ctx: Any, grad: torch.Tensor) -> Any:
    values, *saved = ctx.saved_tensors
    structures, count = ctx.sizes
    structure, dense = saved[:structures], saved[structures:]
    format, buffer_kinds, shape, stored, statement, scalar = ctx.rest
    spec: Any = _Call(tuple(structure), format, buffer_kinds, tuple(shape), stored, *_indices(statement), scalar)
    needed = [values is not None and ctx.needs_input_grad[0]]
    needed += [x.is_floating_point() or x.is_complex() for x in dense]
    first, dense_gradients = gradients_of(spec, values, dense, grad, needed)
    return first, [None] * structures, dense_gradients if count else [], *[None] * 6


torch.library.register_autograd("openwork::product", _backward, setup_context=_setup, lib=_library)


@provides("torch substitute")
def substitute(matmul: Any) -> None:
    """Register the functions of `traced` with the tracer of torch.compile; `matmul` is the namespace's."""
    register = getattr(torch.compiler, "substitute_in_graph", None)
    if register is None:
        return
    for function, stand_in in (
        (gradient_hook.rule, traced.rule),
        (products.matmul, traced.matmul),
        (matmul, traced.matmul_of_namespace),
    ):
        register(function, skip_signature_check=True)(stand_in)
    _stand_in(register)


def _stand_in(register: Any) -> None:
    """Give functions, methods and attributes their stand-ins, which the tracer reads in their place."""
    attributes: dict[Any, Any] = {}
    package = __name__.partition(".")[0]
    namespace: Any = sys.modules[package]
    for name in (OPERANDS | GRADIENTS | {"as_masked_tensor", "asarray", "masked_tensor"}) - {"matmul"}:
        _set(getattr(namespace, name), MEMBERS.get(name) or traced_calls.function(f"{package}.{name}"))
    for name in masked_functions.__all__:
        _set(getattr(masked_functions, name), traced_calls.function(f"{package}.masked.{name}"))
    for name in ATTRIBUTES:
        attributes[block(name).function] = traced_calls.function(f":{name}")
    for cls in (*Tensor.__mro__, *MaskedTensor.__mro__):
        if cls.__module__.partition(".")[0] == package:
            for name, member in vars(cls).items():
                if isinstance(member, property):
                    attribute = MEMBERS.get(name) or traced_calls.function(f":{name}")
                    attributes.setdefault(member.fget, attribute)
                elif isinstance(member, FunctionType) and _is_pure(name):
                    _set(member, MEMBERS.get(name) or traced_calls.function(f".{name}"))
    for getter, attribute in attributes.items():
        _set(getter, attribute)
        register(getter, skip_signature_check=True)(attribute)  # what it reads of attributes of a graph's own tensors
    for names in (TorchNames, MethodsOfMasked):
        _set(vars(names)["__getattr__"], traced_calls.getattr_of)
    _set(vars(Protocols)["__torch_function__"].__func__, traced_calls.of_torch)
    _set(torch_nodes.flatten, traced_pytree.traced_node)
    _set(torch_nodes.unflatten, traced_pytree.traced_whole)


def _set(function: Any, stand_in: Any) -> None:
    if isinstance(function, FunctionType):
        function.__dict__["_torchdynamo_inline"] = stand_in


def _is_pure(name: str) -> bool:
    """Whether a method of this name leaves its tensor as it is: not an in-place form."""
    if name.startswith("__"):
        operator_name = name.strip("_")
        return not {operator_name, operator_name.removeprefix("r")}.isdisjoint(PURE)
    return not name.endswith("_") and not name.startswith("_")


PURE = frozenset((*OPERATORS, "matmul", "getitem", "pos", "divmod", "round"))
"""Operators that leave their operands as they are."""
