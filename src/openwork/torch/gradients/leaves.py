"""Gradients given by a caller: any tensor of the right shape -> values on the structure of the leaf, or a dense tensor.

Elements are matched by coordinates, whatever structure either side has. What lies outside the leaf's structure has no
place there and is dropped, as the gradients of unspecified elements are wherever `grad="sparse"` holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...interop.constructors import asarray
from ...storage.buffers import as_array, is_array, scalar_of
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .permutation import (
    detached_storage,
    element_mask,
    gather_by_numbers,
    value_numbers_at,
    without_duplicates,
)
from .pointwise import DIFFERENTIABLE

__all__ = ["as_dense", "backward", "check_backward", "leaf_of", "on_structure"]


def on_structure(t: Tensor, gradient: Any, operation: str, exact: bool = False) -> torch.Tensor:
    """A gradient as values, one for each stored value of `t`: 0 in padding, the element's own for each duplicate.

    gradient : Tensor, torch tensor or array of the shape of `t`, any format and layout; or a vector of values
    exact : whether its dtype must be that of `t`, as torch asks of what is assigned to `grad`

    Raises ShapeError, DTypeError, UnsupportedError for another device or kind of object.
    """
    s = t._storage
    values = s.values
    vector = isinstance(gradient, torch.Tensor) and gradient.ndim == 1 and not s.format.is_dense
    if vector and gradient.layout == torch.strided and t.ndim > 1 and gradient.shape == values.shape:
        result = _check_gradient(gradient, values, tuple(values.shape), operation, exact)._storage.values
    else:
        g = _check_gradient(gradient, values, s.shape, operation, exact)._storage
        if not s.shape:
            result = as_array(g.values, like=values).reshape(values.shape)
        elif _same_structure(g, s):
            result = as_array(g.values, like=values)
        else:
            g = without_duplicates(g)
            result = gather_by_numbers(
                as_array(g.values, like=values), value_numbers_at(g, detached_storage(s)), [g.fill_value]
            )
        elements = element_mask(s)
        result = result if elements is None else torch.where(elements, result, 0)
    return result.to(values.dtype)


def _same_structure(a: Storage, b: Storage) -> bool:
    """Whether two storages share their structure's buffers, without duplicates."""
    if a.format != b.format or not a.format.is_unique or a.values.shape != b.values.shape:
        return False
    pairs = zip((*a.pos, *a.crd), (*b.pos, *b.crd), strict=True)
    return all(x is y for x, y in pairs)


def as_dense(gradient: Any, like: torch.Tensor, operation: str, exact: bool = False) -> torch.Tensor:
    """A gradient as a dense tensor of the shape of `like`, of any structure; see `on_structure`."""
    host = _check_gradient(gradient, like, tuple(like.shape), operation, exact).to_dense()
    dense: torch.Tensor = as_array(host, like=like).to(like.dtype)
    return dense


def _check_gradient(gradient: Any, like: torch.Tensor, shape: tuple[int, ...], operation: str, exact: bool) -> Tensor:
    """The gradient as a Tensor, where it has this shape and goes with the dtype and device of `like`."""
    if not isinstance(gradient, Tensor) and not is_array(gradient):
        hint = "filled(0) gives 0 to missing elements" if hasattr(gradient, "filled") else "torch.as_tensor(gradient)"
        raise UnsupportedError(
            f"{operation}: a gradient of type {type(gradient).__name__}\n  expected: a Tensor, a torch tensor or an"
            f" array of shape {shape}\n  help: {hint}"
        )
    if tuple(gradient.shape) != shape:
        raise ShapeError(
            f"{operation}: a gradient of shape {tuple(gradient.shape)}\n  expected: {shape}, the tensor's own"
            "\n  help: reshape or broadcast it first"
        )
    device = str(getattr(gradient, "device", "cpu"))
    if device != str(like.device):
        raise UnsupportedError(
            f"{operation}: a gradient on device {device}\n  expected: {like.device}, the tensor's own"
            "\n  help: to(...) first"
        )
    scalar = gradient._storage.scalar if isinstance(gradient, Tensor) else scalar_of(gradient)
    fits = scalar in DIFFERENTIABLE and (scalar[0] == "c") == like.is_complex()
    if scalar != scalar_of(like) if exact else not fits:
        raise DTypeError(
            f"{operation}: a gradient of dtype {gradient.dtype}\n  expected: {like.dtype}, the tensor's own"
            "\n  help: astype() first"
        )
    t: Tensor = gradient if isinstance(gradient, Tensor) else asarray(gradient)
    return t


def backward(
    t: Tensor, gradient: Any, retain_graph: bool | None, create_graph: bool, inputs: Iterable[Any] | None
) -> None:
    """The rule of `Tensor.backward`: accumulate gradients of everything that the values of `t` depend on.

    Raises ShapeError where no gradient is given and there is more than one element, UnsupportedError where the values
    are on no graph.
    """
    values = t._storage.values
    check_backward(t.requires_grad, gradient, t.shape)
    incoming = torch.ones_like(values) if gradient is None else on_structure(t, gradient, "backward")
    leaves = None if inputs is None else [leaf_of(x) for x in inputs]
    values.backward(incoming, retain_graph=retain_graph, create_graph=create_graph, inputs=leaves)


def check_backward(recorded: bool, gradient: Any, shape: tuple[int, ...]) -> None:
    """Raise UnsupportedError where the tensor is on no graph, ShapeError where `backward` needs a gradient."""
    if not recorded:
        raise UnsupportedError(
            "backward: the tensor depends on nothing that requires a gradient\n  help: requires_grad_() before the"
            " operations, outside of torch.no_grad()"
        )
    if gradient is None and torch.Size(shape).numel() != 1:
        raise ShapeError(
            f"backward: a tensor of shape {shape} needs a gradient\n  expected: one element\n  help: backward(gradient)"
            " of that shape, or sum() first"
        )


def leaf_of(x: Any) -> Any:
    """The torch tensor whose gradient is accumulated: the values of a Tensor or masked tensor."""
    x = getattr(x, "specified", x)
    proxy = getattr(x, "_proxy", None)
    return proxy if proxy is not None else x.values if isinstance(x, Tensor) else x
