"""Stand-ins for calls of Tensors where torch.compile traces: function, method or attribute -> the operator of `calls`.

The tracer reads `_torchdynamo_inline` of a function in the function's place. What a stand-in cannot put into the graph
breaks it there, and the call is made as it is: results that are no tensors, random numbers, in-place forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch

from ...masked.tensor import MaskedTensor
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .call_text import describe, format_of
from .sampled_results import sample_result

__all__ = [
    "MEMBERS",
    "SCALARS",
    "call",
    "function",
    "getattr_of",
    "node_of",
    "of_torch",
    "tensor",
    "tensor_of",
    "with_values",
]

Buffers = list[torch.Tensor]

SCALARS = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64",
    torch.complex128: "c128",
}  # fmt: skip
"""The dtypes that have gradients, by the names of their scalar types."""


def _described(name: str, arguments: Any, recorded: Sequence[int]) -> tuple[str, Any, Any]:
    """The call's text and what it gives, or why it is not for a graph."""
    try:
        text = describe(name, arguments)
        return text, sample_result(text, recorded), ""
    except Exception as error:  # whatever a call of a user's raises: it raises that again outside of the graph
        return "", None, f"{name}: {type(error).__name__}: {error}"


def _format(text: str) -> Any:
    return format_of(text)


def _node(x: Any, buffers: Buffers, recorded: list[int]) -> Any:
    """An argument as a node of `calls`, its buffers added."""
    if type(x) is Tensor:
        return _node_of_tensor(x, buffers, recorded)
    if type(x) is MaskedTensor:
        return "masked", x._scalar, _node_of_tensor(x._tensor, buffers, recorded)
    if isinstance(x, torch.Tensor):
        return "array", x.dtype, tuple(x.shape), _place(x, buffers, recorded)
    if type(x) is tuple:
        return "tuple", tuple([_node(part, buffers, recorded) for part in x])
    if type(x) is list:
        return "list", tuple([_node(part, buffers, recorded) for part in x])
    return "constant", x


def node_of(t: Any) -> tuple[Buffers, Any]:
    """The buffers of a Tensor or masked tensor, and its node."""
    buffers: Buffers = []
    node = _node(t, buffers, [])
    return buffers, node


def tensor_of(buffers: Buffers, node: Any) -> Any:
    """The reverse of `node_of`."""
    return _result(node, buffers, [])


def _place(b: torch.Tensor, buffers: Buffers, recorded: list[int]) -> int:
    if b.requires_grad and torch.is_grad_enabled():
        recorded.append(len(buffers))
    buffers.append(b)
    return len(buffers) - 1


def _node_of_tensor(t: Tensor, buffers: Buffers, recorded: list[int]) -> Any:
    s = t._raw_storage
    each = [b for pair in zip(s.pos, s.crd, strict=True) for b in pair]
    held = "".join(["-" if b is None else "+" for b in each])
    own = [b for b in each if b is not None] + [s.values]
    places = tuple([_place(b, buffers, recorded) for b in own])
    dtypes = tuple([b.dtype for b in own])
    return "tensor", s.format.text, s.scalar, s.fill_value, tuple(s.shape), held, dtypes, places


def tensor(s: tuple[Any, ...], scalar: str, fill: Any, values: torch.Tensor) -> Tensor:
    """The Tensor of a format, shape, pos and crd, over values."""
    format, shape, pos, crd = s
    storage = object.__new__(Storage)
    storage.format, storage.shape, storage.pos, storage.crd = format, shape, tuple(pos), tuple(crd)
    storage.scalar, storage.fill_value, storage.values = scalar, fill, values
    storage._structure = storage._facts = storage._addresses = storage._signature = storage._kind = None
    storage._seen = storage._transposes = None
    result: Tensor = object.__new__(Tensor)
    result._raw_storage = storage
    return result


def _result(node: Any, buffers: Buffers, new: Buffers) -> Any:
    """The result that a node says."""
    kind = node[0]
    if kind == "constant":
        return node[1]
    if kind == "array":
        place = node[1]
        return buffers[place] if place >= 0 else new[-1 - place]
    if kind == "masked":
        m = object.__new__(MaskedTensor)
        m._tensor, m._scalar = _result(node[2], buffers, new), node[1]
        return m
    if kind == "tensor":
        _, text, scalar, fill, shape, held, _, places = node
        own = [buffers[place] if place >= 0 else new[-1 - place] for place in places]
        each, k = [], 0
        for x in held:
            each.append(None if x == "-" else own[k])
            k += x != "-"
        return tensor((_format(text), shape, each[::2], each[1::2]), scalar, fill, own[-1])
    parts = [_result(n, buffers, new) for n in node[-1]]
    if kind == "list":
        return parts
    if kind == "tuple":
        return tuple(parts)
    return node[1](*parts) if kind == "named" else node[1](parts)


def call(name: str, args: Any, kwargs: Any) -> Any:
    """The result of a call by its name in `calls`, as one operator of the graph."""
    buffers: Buffers = []
    recorded: list[int] = []
    keys = tuple(kwargs)
    options = "dict", keys, tuple([_node(kwargs[key], buffers, recorded) for key in keys])
    arguments = "tuple", (_node(tuple(args), buffers, recorded), options)
    text, result, refused = _described(name, arguments, tuple(recorded))
    if result is None:
        torch._dynamo.graph_break(msg=refused)
    node, outputs, detached = result
    new = [] if outputs == "" else torch.ops.openwork.call(buffers, text, outputs)
    buffers = [b.detach() if k in detached else b for k, b in enumerate(buffers)]
    return _result(node, buffers, [b.detach() if -1 - k in detached else b for k, b in enumerate(new)])


def _stand_in(*args: Any, **kwargs: Any) -> Any:
    return call("NAME", args, kwargs)


def function(name: str) -> Callable[..., Any]:
    """The stand-in of a function of the namespace, "openwork.sum", or ".sum" of a method, ":T" of an attribute."""
    return _named(_stand_in, name)


def _named(function: Any, name: str) -> Callable[..., Any]:
    """The function with a name in the place of NAME: a constant of its code, as the tracer guards closures and defaults
    as those of the function it replaces."""
    code = function.__code__
    constants = tuple([x.replace("NAME", name) if isinstance(x, str) else x for x in code.co_consts])
    return FunctionType(code.replace(co_consts=constants), globals())


def with_values(t: Any, values: Any, /, **kwargs: Any) -> Any:
    """The stand-in of `with_values`: as many values as there are, which no graph knows more of."""
    s = t._raw_storage if type(t) is Tensor else None
    if s is None or not isinstance(values, torch.Tensor) or values.dtype not in SCALARS or kwargs:
        return call("openwork.with_values", (t, values), kwargs)
    torch._check(values.shape[0] == s.values.shape[0])
    return tensor((s.format, s.shape, s.pos, s.crd), SCALARS[values.dtype], s.fill_value, values)


def _shape(t: Any) -> Any:
    if type(t) is MaskedTensor:
        return () if t._scalar else t._tensor._raw_storage.shape
    return t._raw_storage.shape


def _storage(t: Any) -> Storage:
    return t._tensor._raw_storage if type(t) is MaskedTensor else t._raw_storage


MEMBERS: dict[str, Callable[..., Any]] = {
    "shape": _shape,
    "ndim": lambda t: len(_shape(t)),
    "dim": lambda t: len(_shape(t)),
    "ndimension": lambda t: len(_shape(t)),
    "numel": lambda t: math.prod(_shape(t)),
    "nelement": lambda t: math.prod(_shape(t)),
    "dtype": lambda t: _storage(t).values.dtype,
    "format": lambda t: _storage(t).format,
    "fill_value": lambda t: _storage(t).fill_value,
    "requires_grad": lambda t: _storage(t).values.requires_grad,
    "with_values": with_values,
}
"""Stand-ins of their own: of members that follow from shapes, formats and types alone."""


def getattr_of(self: Any, name: str) -> Any:
    """The stand-in of `__getattr__`: torch's methods, by name."""
    if name[0] == "_" or name[-1] == "_":
        raise AttributeError(name)

    def method(*args: Any, **kwargs: Any) -> Any:
        return call("." + name, (self, *args), kwargs)

    return method


def of_torch(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The stand-in of masked tensors' `__torch_function__`, and of Tensors' where a call is no product of the operator.

    The tracer makes the method matmul of (x, A) of both `A @ x` and `x @ A`: the graph breaks there, and Python, which
    tells them apart, makes the call.
    """
    if func is torch.Tensor.matmul:
        torch._dynamo.graph_break(
            msg="`A @ x` and `x @ A` are one here\n  help: write ow.matmul(A, x), or torch.matmul"
        )
    return call(_name_of(func), args, kwargs or {})


def _name_of(func: Any) -> str:
    return torch.overrides.resolve_name(func) or f"operator.{func.__name__}"  # what torch.export says of operators


for _constant in (_described, _format, _name_of):  # as torch.compiler.assume_constant_result, which loads the tracer
    _constant.__dict__["_dynamo_marked_constant"] = True
