"""Any call of Tensors as an operator of torch.library: buffers and a text that says the rest -> buffers of the result.

    openwork::call(buffers, text, outputs) -> buffers of the result that are new
    openwork::call_backward(buffers, needed, gradients, text, outputs) -> gradients of the needed buffers

`text` is the function's name and its arguments with places for buffers, `outputs` types and lengths of what is new:
both are found once, when torch.compile traces, by running the call on a few elements of the same formats and shapes
(`sampled_results.py`). Lengths that follow from elements are sizes that torch knows no more of, so that another number
of elements is no other graph. The gradient runs the call again, recorded.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch

from ...errors import CompilerBug, UnsupportedError
from ...masked.tensor import MaskedTensor, wrap
from ...storage.buffers import same_memory, scalar_of, strided_address
from ...storage.invariants import check_layout
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .call_text import Node, decoded, format_of, parsed

__all__ = ["run_call"]


_library = torch.library.Library("openwork", "FRAGMENT")
_library.define("call(Tensor[] buffers, str text, str outputs) -> Tensor[]")
_library.define(
    "call_backward(Tensor[] buffers, bool[] needed, Tensor?[] gradients, str text, str outputs) -> Tensor[]"
)


# -- a call ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _function(name: str) -> Callable[..., Any]:
    """A function by its name: "torch.sum", "openwork.sum", ".sum" a method, ":T" an attribute."""
    if name[0] in ".:":
        member = name[1:]
        return operator.attrgetter(member) if name[0] == ":" else lambda t, *args, **k: getattr(t, member)(*args, **k)
    module, path = name.split(".", 1)
    function: Callable[..., Any] = operator.attrgetter(path)(sys.modules[module])
    return function if module != "torch" else lambda *args, **kwargs: _of_torch(function, args, kwargs)


def _of_torch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__torch_function__` of the operands gives: torch asks no operand while it traces."""
    is_masked = any(isinstance(x, MaskedTensor) for x in _operands((args, kwargs)))
    return (MaskedTensor if is_masked else Tensor).__torch_function__(function, (), args, kwargs)


def _operands(x: Any) -> Iterator[Any]:
    if isinstance(x, tuple | list | dict):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _operands(part)
    else:
        yield x


def run_call(text: str, buffers: Sequence[torch.Tensor]) -> Any:
    """The call's result."""
    name, node = parsed(text)
    args, kwargs = _argument(node, buffers)
    with torch._C._DisableAutocast():  # casts are not in the graph, and its results have the dtypes found without them
        return _function(name)(*args, **kwargs)


def _argument(node: Node, buffers: Sequence[torch.Tensor]) -> Any:
    """The argument that a node says, over these buffers."""
    kind, *rest = node
    if kind == "array":
        return buffers[rest[2]]
    if kind == "constant":
        return decoded(rest[0])
    if kind == "masked":
        return wrap(_argument(rest[1], buffers), rest[0])
    if kind == "dict":
        return {key: _argument(n, buffers) for key, n in zip(*rest, strict=True)}
    if kind == "tensor":
        text, _, fill, shape, held, _, places = rest
        return Tensor._from_storage(_storage(text, decoded(fill), shape, held, [buffers[k] for k in places]))
    parts = [_argument(n, buffers) for n in rest[0]]
    return tuple(parts) if kind == "tuple" else parts


def _storage(text: str, fill: Any, shape: tuple[int, ...], held: str, buffers: Sequence[torch.Tensor]) -> Storage:
    """A storage over buffers, whose structure is kept with the last of them: its prepared calls are found again."""
    *structure, values = buffers
    cached = structure[-1].__dict__.setdefault("_openwork_calls", {}) if structure else {}
    key = (text, shape, values.dtype, *[(strided_address(b), len(b)) for b in structure])
    first: Storage | None = cached.get(key)
    if first is None:
        each = iter(structure)
        pairs = [None if x == "-" else next(each) for x in held]
        like = values.detach()
        first = Storage(shape, format_of(text), scalar_of(like), fill, tuple(pairs[::2]), tuple(pairs[1::2]), like)
        check_layout(first)
        cached.clear()
        cached[key] = Storage.over(first.structure, first.scalar, fill, like.new_empty(0))
    return Storage.over(first.structure, first.scalar, fill, values.contiguous())


def _leaves(x: Any) -> Iterator[torch.Tensor]:
    """The buffers of a result, in order."""
    if isinstance(x, Tensor):
        yield from x._raw_storage.buffers
    elif isinstance(x, MaskedTensor):
        yield from _leaves(x._tensor)
    elif isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, tuple | list):
        for part in x:
            yield from _leaves(part)


def _as_declared(x: Any, node: Node) -> Any:
    """A result in the format that it had when it was traced. Raises UnsupportedError for another fill value."""
    kind, *rest = node
    if kind == "masked":
        return wrap(_as_declared(x._tensor, rest[1]), x._scalar)
    if kind in ("tuple", "list", "named", "sequence"):
        return [_as_declared(part, n) for part, n in zip(x, rest[-1], strict=True)]
    if kind != "tensor":
        return x
    text, _, fill, shape, *_ = rest
    out = x.asformat(format_of(text))
    s = out._raw_storage
    expected = decoded(fill)
    same = s.fill_value == expected or (s.fill_value != s.fill_value and expected != expected)
    if not same or tuple(s.shape) != tuple(shape):
        got = f"fill value {s.fill_value!r}, shape {s.shape}"
        raise UnsupportedError(
            f"torch.compile: a result whose fill value or shape depends on data\n  traced: {expected!r}, {shape};"
            f" got: {got}\n  help: leave this call out of the compiled function: torch.compiler.disable"
        )
    return out


# -- the operators -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _declared(outputs: str) -> tuple[Node, tuple[int, ...], tuple[Node, ...]]:
    """The result's node, the place of each of its buffers, and types and lengths of the new ones."""
    node, lengths = ast.literal_eval(outputs)
    return node, tuple(_places(node)), lengths


def _places(node: Node) -> Iterator[int]:
    kind, *rest = node
    if kind == "tensor":
        yield from rest[-1]
    elif kind == "array":
        yield rest[-1]
    elif kind != "constant":
        for n in [rest[1]] if kind == "masked" else rest[-1]:
            yield from _places(n)


def _new(text: str, outputs: str, buffers: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The new buffers of a call's result, of the types that it was traced with."""
    node, places, lengths = _declared(outputs)
    result = _as_declared(run_call(text, buffers), node)
    new: dict[int, torch.Tensor] = {}
    for place, leaf in zip(places, _leaves(result), strict=True):
        if place < 0:
            new[-1 - place] = leaf.to(decoded(lengths[-1 - place][0]))
        elif not same_memory(leaf, buffers[place]) and not torch.equal(leaf, buffers[place]):
            raise CompilerBug(f"a result of {text} has another structure than its operand\n  help: please report this")
    return [new[k] for k in range(len(lengths))]


@torch.library.impl(_library, "call", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _call(buffers: Sequence[torch.Tensor], text: str, outputs: str) -> list[torch.Tensor]:
    given = {b.untyped_storage().data_ptr() for b in buffers}
    with torch.no_grad():
        new = _new(text, outputs, [b.detach() if b.requires_grad else b for b in buffers])
    unshared = []
    for b in new:
        memory = b.untyped_storage().data_ptr()
        unshared.append(b.clone() if memory in given or not b.is_contiguous() else b)
        given.add(memory)
    return unshared


@torch.library.register_fake("openwork::call", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake(buffers: Sequence[torch.Tensor], text: str, outputs: str) -> list[torch.Tensor]:
    _, _, lengths = _declared(outputs)
    unknown: dict[int, Any] = {}

    def size(n: Any) -> Any:
        if type(n) is int:
            return n
        symbol, factor, offset = n
        if symbol not in unknown:
            known = symbol < 0
            unknown[symbol] = buffers[-1 - symbol].shape[0] if known else torch.library.get_ctx().new_dynamic_size()
        return factor * unknown[symbol] + offset

    return [torch.empty([size(n) for n in shape], dtype=decoded(dtype)) for dtype, shape in lengths]


@torch.library.impl(_library, "call_backward", "CPU")  # type: ignore[untyped-decorator,unused-ignore]
def _call_backward(
    buffers: Sequence[torch.Tensor], needed: Sequence[bool], gradients: Sequence[torch.Tensor | None], text: str,
    outputs: str,
) -> list[torch.Tensor]:  # fmt: skip
    with torch.enable_grad():
        operands = [b.detach().requires_grad_(n) for b, n in zip(buffers, needed, strict=True)]
        new = _new(text, outputs, operands)
        pairs = [(y, g) for y, g in zip(new, gradients, strict=True) if g is not None and y.requires_grad]
        inputs = [b for b, n in zip(operands, needed, strict=True) if n]
        outs, grads = [y for y, _ in pairs], [g for _, g in pairs]
        found = torch.autograd.grad(outs, inputs, grads, allow_unused=True) if outs else [None] * len(inputs)
    return [torch.zeros_like(b) if g is None else _own(g) for b, g in zip(inputs, found, strict=True)]


def _own(gradient: torch.Tensor) -> torch.Tensor:
    """A gradient as contiguous memory of its own, which an operator has to return."""
    dense = gradient.to_dense() if gradient.layout != torch.strided else gradient
    return dense.clone(memory_format=torch.contiguous_format)


@torch.library.register_fake("openwork::call_backward", lib=_library)  # type: ignore[untyped-decorator,unused-ignore]
def _fake_backward(buffers: Sequence[torch.Tensor], needed: Sequence[bool], *_: Any) -> list[torch.Tensor]:
    contiguous = torch.contiguous_format
    return [torch.empty_like(b, memory_format=contiguous) for b, n in zip(buffers, needed, strict=True) if n]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    buffers, ctx.text, ctx.outputs = inputs
    ctx.needed = [b.requires_grad for b in buffers]
    ctx.save_for_backward(*buffers)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, gradients: Sequence[torch.Tensor | None]) -> Any:
    found = iter(
        torch.ops.openwork.call_backward(list(ctx.saved_tensors), ctx.needed, list(gradients), ctx.text, ctx.outputs)
    )
    return [next(found) if n else None for n in ctx.needed], None, None


torch.library.register_autograd("openwork::call", _backward, setup_context=_setup, lib=_library)
