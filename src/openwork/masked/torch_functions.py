"""A torch function and its arguments, one of them masked -> its result: `__torch_function__` of masked tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from .. import Tensor, UnsupportedError
from ..namespaces import entering
from ..provided import provides
from ..storage.buffers import as_array, is_torch
from ..tables import MASKED, TORCH
from ..torch.functions.call import condition_first, table_names
from ..torch.functions.elementwise import ANY_ELEMENTWISE, BINARY
from ..torch.functions.methods import DTYPES, NOT_METHODS, RESHAPING
from ..torch.functions.registry import FUNCTIONS as OF_TENSORS
from ..torch.functions.registry import MOVES
from ..torch.gradients.nary import torch_storage
from . import namespace, order, products
from .elementwise import lift
from .multihead import multi_head_attention_forward
from .reductions import reduce
from .structure import restricted
from .tensor import MaskedTensor, bits_of, wrap

__all__ = ["bound", "call"]

_MORE = frozenset(("rsub", "dropout"))
_PAIRS = frozenset(("frexp",))
"""Elementwise functions of two results."""

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""torch's functions by name that are no operations, or have other arguments and results than these."""
_torchs = entering(FUNCTIONS)


@provides("masked torch call")
def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch's `function` of these arguments, of which one is masked; the result is over torch buffers.

    Raises UnsupportedError for a function that is not in the table, and for `out=`.
    """
    if kwargs.get("out") is not None:
        raise UnsupportedError(f"torch.{function.__name__}: out= of a masked tensor\n  help: m.copy_(result)")
    if function is torch.Tensor.where:
        args, kwargs = condition_first(*args, **kwargs), {}
    names, kwargs = table_names(function), {key: x for key, x in kwargs.items() if key != "out"}
    base = names[0].removesuffix("_")
    if base != names[0] and isinstance(args[0], MaskedTensor):
        method = bound(args[0], names[0])
        if method is not None:
            return method(*args[1:], **kwargs)
    args, kwargs = tuple(map(_over_torch, args)), {key: _over_torch(x) for key, x in kwargs.items()}
    for name in names:
        own = _function(name, function)
        if own is not None:
            return own(*args, **kwargs)
    raise UnsupportedError(
        f"torch.{names[0]} does not take a masked tensor\n  help: its methods, m.map(function), or filled(value) first"
    )


@provides("masked torch method")
def bound(m: MaskedTensor, name: str) -> Callable[..., Any] | None:
    """torch's method of this name, or its in-place form, of a masked tensor; None where torch has none, or we."""
    if name in DTYPES:
        return lambda **_: m.astype(DTYPES[name])
    if not hasattr(torch.Tensor, name) or name in NOT_METHODS:
        return None
    base = name.removesuffix("_")
    function = _function(base, getattr(torch.Tensor, base, None))
    if function is None:
        return None
    if base == name:
        return lambda *args, **kwargs: function(*map(_over_torch, (m, *args)), **kwargs)

    def in_place(*args: Any, **kwargs: Any) -> MaskedTensor:
        result = function(*map(_over_torch, (m, *args)), **kwargs)
        if base not in RESHAPING:
            return m._take_over(result, name)
        m._tensor, m._scalar = result._tensor, result._scalar
        return m

    return in_place


@cache
def _function(name: str, function: Any) -> Callable[..., Any] | None:
    """What torch's `function` of this name does with masked tensors over torch buffers."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if (name in ANY_ELEMENTWISE or name in _MORE) and name not in _PAIRS and function is not None:
        return partial(_lifted, name, function)
    if name[:1] == "r" and name[1:] in BINARY and function is not None:
        return partial(_lifted, name, function)
    if name in MOVES:
        return partial(_moved, OF_TENSORS[name])
    return partial(namespace.spelled, name) if TORCH.get(name) in MASKED else None


def _lifted(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> MaskedTensor:
    """An elementwise function: tensors among its arguments are operands, numbers stay where they are."""
    arguments: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    places = [key for key, x in arguments.items() if isinstance(x, MaskedTensor | Tensor | torch.Tensor)]

    def of_values(*values: Any) -> Any:
        given = {**arguments, **dict(zip(places, values, strict=True))}
        by_place = [given.pop(k) for k in range(len(args))]
        return function(*by_place, **given)

    return lift(of_values, tuple(arguments[key] for key in places), name)


def _moved(function: Callable[..., Any], m: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """A function that only moves elements, on the one Tensor; several results are masked tensors each."""
    return namespace.moved(function, m, *args, **kwargs)


def _over_torch(x: Any) -> Any:
    """An argument, masked and other Tensors and arrays of NumPy over torch tensors of the same memory."""
    if isinstance(x, MaskedTensor):
        return x if is_torch(x.values) else wrap(_over_torch(x._tensor), x._scalar)
    if isinstance(x, Tensor):
        return x if is_torch(x.values) else Tensor._from_storage(torch_storage(x))
    if isinstance(x, np.ndarray):
        return as_array(x, like=torch.empty(0))
    return type(x)(map(_over_torch, x)) if type(x) in (tuple, list) else x


def _spread(name: str) -> Callable[..., Any]:
    def function(
        m: MaskedTensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        left = float(unbiased) if correction is None else correction
        return reduce(name, m, dim, keepdim, correction=left)

    return function


def _extreme(name: str) -> Callable[..., Any]:
    elementwise, pair = getattr(torch, f"{name}imum"), getattr(torch.return_types, name)

    def function(m: MaskedTensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        dim = dim if other is None else other
        if isinstance(dim, MaskedTensor | Tensor | torch.Tensor):
            return _lifted(name, elementwise, m, dim)
        if dim is None:
            return reduce(name, m)
        return pair([reduce(name, m, dim, keepdim), reduce(f"arg{name}", m, dim, keepdim)])

    return function


@_torchs("aminmax")
def aminmax(m: MaskedTensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The least and the largest specified elements."""
    kind: Any = torch.return_types.aminmax
    return kind([reduce(op, m, dim, keepdim) for op in ("min", "max")])


def _softmax(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_torch(m: MaskedTensor, dim: int = -1, dtype: Any = None, _stacklevel: int = 3) -> Any:
        return function(m if dtype is None else m.astype(dtype), dim)

    return of_torch


@_torchs("norm", "vector_norm")
def norm(m: MaskedTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None, **_: Any) -> Any:
    """The vector norm; torch's order of arguments."""
    return m.norm(p, dim, keepdim, dtype=dtype)


@_torchs("sort")
def sort(m: MaskedTensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sorted, and where the elements stood."""
    kind: Any = torch.return_types.sort
    return kind([f(m, dim, descending) for f in (order.sort, order.argsort)])


@_torchs("msort")
def msort(m: MaskedTensor) -> Any:
    """Sorted along the first dimension."""
    return order.sort(m, 0)


@_torchs("conj")
def conj(m: MaskedTensor) -> Any:
    """The complex conjugates, of real elements these."""
    return _lifted("conj_physical", torch.conj_physical, m)


@_torchs("topk")
def topk(m: MaskedTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest or least specified elements, and where they stand."""
    kind: Any = torch.return_types.topk
    return kind(list(order.topk(m, k, dim, largest)))


@_torchs("median")
def median(m: MaskedTensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the two specified elements in the middle; along a dimension with its place."""
    if dim is None:
        return order.lower_median(m.reshape(-1), 0)[0]
    kind: Any = torch.return_types.median
    return kind(list(order.lower_median(m, dim, keepdim)))


@_torchs("nanmedian")
def nanmedian(m: MaskedTensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the specified elements that are not NaN."""
    found = median(m.mask_nan(), dim, keepdim)
    kind: Any = torch.return_types.nanmedian
    return found if dim is None else kind(list(found))


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


FUNCTIONS["multi_head_attention_forward"] = multi_head_attention_forward
FUNCTIONS.update({name: _spread(name) for name in ("var", "std")})
FUNCTIONS.update({name: _extreme(name) for name in ("min", "max")})
FUNCTIONS.update({name: getattr(MaskedTensor, name) for name in ("reshape", "permute", "flatten", "unique")})
FUNCTIONS.update({
    "softmax": _softmax(products.softmax),
    "log_softmax": _softmax(products.log_softmax),
    "normalize": products.normalize,
    "mse_loss": lambda a, b, *_, reduction="mean", **__: products.mse_loss(a, b, reduction),
    "rmatmul": lambda m, other: products.matmul(other, m),
    "linear": products.linear,
    "clone": lambda m, **_: m.clone(),
    "detach": lambda m: m.detach(),
    "contiguous": lambda m, **_: m,
    "t": lambda m: m.T,
    "numel": lambda m: m.size,
    "type_as": lambda m, other: m.astype(other.dtype),
    "copy": lambda m, other, non_blocking=False: other,
    "masked_fill": partial(_lifted, "masked_fill", torch.masked_fill),
    "zero": lambda m: m * 0,
    "fill": lambda m, value: m.map(lambda v: torch.full_like(v, value)),
})  # fmt: skip
