"""A torch function and its arguments, one of them masked -> its result: `__torch_function__` of masked tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from ..errors import UnsupportedError
from ..runtime.operation import block
from ..storage.buffers import as_array, is_torch
from ..tables import MASKED, TORCH
from ..tensor.tensor import Tensor
from ..torch.nary import torch_storage
from ..torch.pointwise_functions import BINARY, UNARY
from . import namespace, products
from .elementwise import lift
from .structure import restricted
from .tensor import MaskedTensor, bits_of, wrap

__all__ = ["call", "method"]

_MORE = frozenset(("logaddexp", "lerp", "fmod", "addcmul", "addcdiv", "rsub", "xlogy", "isclose", "dropout"))


FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""torch's functions by name that are no operations, or have other arguments and results than these."""
F = TypeVar("F", bound=Callable[..., Any])


def _torchs(*names: str) -> Callable[[F], F]:
    def register(function: F) -> F:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch's `function` of these arguments, of which one is masked; the result is over torch buffers.

    Raises UnsupportedError for a function that is not in the table.
    """
    name = _name(function)
    args, kwargs = tuple(map(_over_torch, args)), {key: _over_torch(x) for key, x in kwargs.items()}
    if name in FUNCTIONS:
        return FUNCTIONS[name](*args, **kwargs)
    elementwise = name in UNARY or name in BINARY or name in _MORE or name.removeprefix("r") in BINARY
    if elementwise and kwargs.get("out") is None:
        count = 1 if name in UNARY else sum(isinstance(a, MaskedTensor | torch.Tensor | float | int) for a in args)
        return lift(lambda *v: function(*v, *args[count:], **kwargs), args[:count], name)
    if name in TORCH and TORCH[name] in MASKED:
        return method(name)(*args, **kwargs)
    raise UnsupportedError(
        f"torch.{name} does not take a masked tensor\n  help: its methods, m.map(function), or filled(value) first"
    )


def method(name: str) -> Callable[..., Any]:
    """torch's method of this name: a function below, or an operation whose block spells it."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    operation = block(TORCH[name])
    spelled = operation.spelled("torch", name)

    def function(*args: Any, **kwargs: Any) -> Any:
        return namespace.call(operation.function, args, kwargs)

    return lambda *args, **kwargs: spelled.call(function, args, kwargs)


def _over_torch(x: Any) -> Any:
    """An argument, masked and other Tensors and arrays of NumPy over torch tensors of the same memory."""
    if isinstance(x, MaskedTensor):
        return x if is_torch(x.values) else wrap(_over_torch(x._tensor), x._scalar)
    if isinstance(x, Tensor):
        return x if is_torch(x.values) else Tensor._from_storage(torch_storage(x))
    if isinstance(x, np.ndarray):
        return as_array(x, like=torch.empty(0))
    return type(x)(map(_over_torch, x)) if type(x) in (tuple, list) else x


def _name(function: Any) -> str:
    name: str = getattr(function, "__name__", str(function))
    return name.strip("_").removeprefix("linalg_")


def _spread(name: str) -> Callable[..., Any]:
    def function(
        m: MaskedTensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        left = float(unbiased) if correction is None else correction
        return getattr(m, name)(dim, correction=left, keepdims=keepdim)

    return function


def _extreme(name: str) -> Callable[..., Any]:
    def function(m: MaskedTensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, MaskedTensor | torch.Tensor):
            return lift(torch.minimum if name == "amin" else torch.maximum, (m, dim), name)
        if dim is None:
            return getattr(m, name)()
        places = m.argmin(dim, keepdims=keepdim) if name == "amin" else m.argmax(dim, keepdims=keepdim)
        return getattr(m, name)(dim, keepdims=keepdim), places

    return function


def _method(name: str) -> Callable[..., Any]:
    return lambda m, *args, **kwargs: getattr(m, name)(*args, **kwargs)


def _softmax(name: str) -> Callable[..., Any]:
    def function(m: MaskedTensor, dim: int = -1, dtype: Any = None, _stacklevel: int = 3) -> Any:
        return getattr(m if dtype is None else m.astype(dtype), name)(dim)

    return function


@_torchs("norm", "vector_norm")
def norm(m: MaskedTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None, **_: Any) -> Any:
    """The vector norm; torch's order of arguments."""
    return (m if dtype is None else m.astype(dtype)).norm(2 if p in (None, "fro") else p, axis=dim, keepdims=keepdim)


@_torchs("sort")
def sort(m: MaskedTensor, dim: int = -1, descending: bool = False, stable: bool = True) -> tuple[Any, Any]:
    """Sorted, and where the elements stood."""
    return m.sort(dim, descending=descending), m.argsort(dim, descending=descending)


@_torchs("transpose", "swapaxes")
def transpose(m: MaskedTensor, dim0: int, dim1: int) -> MaskedTensor:
    """Two dimensions exchanged."""
    order = list(range(m.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return m.transpose(order)


@_torchs("einsum")
def einsum(text: str, *operands: Any) -> MaskedTensor:
    """`masked.einsum`, operands one by one or in a list."""
    factors: Sequence[Any] = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return products.einsum(text, *factors)


@_torchs("grad")
def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, **kwargs: Any) -> tuple[Any, ...]:
    """`torch.autograd.grad`; the gradient of a masked tensor is missing where it is, and where no output depends on it.

    A gradient of exactly 0 may be one that was never asked for. Where there is one, the graph is run once more, with
    NaN for what arrives: it reaches all that the outputs depend on, through every derivative, and nothing else.
    """
    outs, ins, weights = (_listed(x) for x in (outputs, inputs, grad_outputs))
    ways, leaves = [_values(x) for x in outs], [_values(x) for x in ins]
    masked = [k for k, x in enumerate(ins) if isinstance(x, MaskedTensor)]
    keep = {**kwargs, "retain_graph": True} if masked else kwargs
    gradients = torch.autograd.grad(ways, leaves, [_values(x) for x in weights] or None, **keep)
    unsure = [k for k in masked if _has_zeros(gradients[k], ins[k])]
    reached: dict[int, torch.Tensor] = {}
    if unsure:
        nan = [torch.full_like(w, float("nan")) for w in ways]
        again = torch.autograd.grad(ways, [leaves[k] for k in unsure], nan, retain_graph=True, allow_unused=True)
        reached = {k: torch.isnan(g) for k, g in zip(unsure, again, strict=True) if g is not None}
    return tuple(_like(g, x, reached.get(k)) for k, (g, x) in enumerate(zip(gradients, ins, strict=True)))


def _has_zeros(g: Any, m: MaskedTensor) -> bool:
    """Whether a gradient is exactly 0 at a specified element."""
    if g is None:
        return False
    bits = bits_of(m._tensor._storage)
    zeros = g.detach() == 0
    return bool((zeros if bits is None else zeros & bits).any())


def _listed(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, list | tuple) else [x]


def _values(x: Any) -> Any:
    return x.values if isinstance(x, MaskedTensor | Tensor) else x


def _like(g: Any, x: Any, reached: Any = None) -> Any:
    """A gradient in the structure of its tensor, without the elements that were not reached."""
    if g is None or not isinstance(x, MaskedTensor):
        return g
    result = wrap(Tensor._from_storage(x._tensor._storage.with_values(g)), x._scalar)
    if reached is None or bool(reached.all()):
        return result
    return wrap(restricted(result, reached), x._scalar)


FUNCTIONS.update({
    "var": _spread("var"),
    "std": _spread("std"),
    "min": _extreme("amin"),
    "max": _extreme("amax"),
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "normalize": products.normalize,
    "mse_loss": lambda a, b, *_, reduction="mean", **__: products.mse_loss(a, b, reduction),
    "rmatmul": lambda m, other: products.matmul(other, m),
    "linear": products.linear,
    "t": lambda m: m.T,
    "numel": lambda m: m.size,
    "topk": lambda m, k, dim=-1, largest=True, sorted=True: m.topk(k, dim, largest=largest),
    **{name: _method(name) for name in (
        "reshape", "permute", "flatten", "gather", "split", "unique", "clone", "median",
    )},
})  # fmt: skip
