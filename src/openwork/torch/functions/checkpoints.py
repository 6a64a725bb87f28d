"""torch's functions that look into the graph of tensors -> the same, of the values of Tensors.

Checkpoints that run a function again inside of backward (`use_reentrant=True`) detach the tensors among its arguments
and record those that it gives: of Tensors, the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils import _pytree as pytree

from ...errors import UnsupportedError
from ...namespaces import entering
from ..gradients.leaves import leaf_of
from .autograd import gradient_of_input
from .transforms import FUNCTIONS, apart, is_ours, whole

__all__ = ["checkpoint"]

Function = Callable[..., Any]
_enter = entering(FUNCTIONS)


@_enter("torch.utils.checkpoint.checkpoint")
def checkpoint(
    theirs: Function, function: Function, *args: Any, use_reentrant: bool | None = None, **options: Any
) -> Any:
    """`torch.utils.checkpoint.checkpoint`: a reentrant one sees the values of Tensors, of arguments and results."""
    if use_reentrant is False:
        return theirs(function, *args, use_reentrant=False, **options)
    call = object()
    parts = [apart(x, call) if is_ours(x) else x for x in args]
    results: list[Any] = []

    def of_values(*values: Any) -> Any:
        given = [v if p is x else p.origin.tensor(v) for p, x, v in zip(parts, args, values, strict=True)]
        result = function(*given)
        leaves, spec = pytree.tree_flatten(apart(result, call))
        results[:] = [spec]
        return tuple(leaves) if any(map(is_ours, pytree.tree_leaves(result, is_leaf=is_ours))) else result

    values = [x if p is x else p.values for p, x in zip(parts, args, strict=True)]
    result = theirs(of_values, *values, use_reentrant=use_reentrant, **options)
    (spec,) = results
    is_apart = isinstance(result, tuple) and len(result) == spec.num_leaves
    return whole(pytree.tree_unflatten(list(result), spec), call) if is_apart else result


@_enter("torch.autograd.graph.get_gradient_edge")
def _gradient_edge(theirs: Function, tensor: Any) -> Any:
    """`torch.autograd.graph.get_gradient_edge`, of the values of a Tensor."""
    return theirs(leaf_of(tensor))


@_enter("torch.autograd.graph.register_multi_grad_hook")
def _multi_grad_hook(theirs: Function, tensors: Sequence[Any], fn: Function, *, mode: str = "all") -> Any:
    """`torch.autograd.graph.register_multi_grad_hook`: gradients of Tensors are Tensors, where all are there."""

    def of_tensors(gradients: Any) -> None:
        fn([gradient_of_input(x, g) for x, g in zip(tensors, gradients, strict=True)])

    is_list = mode == "all" and any(map(is_ours, tensors))
    return theirs([leaf_of(x) for x in tensors], of_tensors if is_list else fn, mode=mode)


def _refused(name: str, instead: str) -> Function:
    def function(theirs: Function, func: Function, inputs: Any, *args: Any, **options: Any) -> Any:
        if any(map(is_ours, pytree.tree_leaves((inputs, args), is_leaf=is_ours))):
            raise UnsupportedError(
                f"torch.autograd.functional.{name} of a Tensor\n  help: {instead}, or a function of A.values"
            )
        return theirs(func, inputs, *args, **options)

    return function


for _name, _instead in {
    "hessian": "torch.func.hessian", "hvp": "torch.func.jvp of torch.func.grad", "jacobian": "torch.func.jacrev",
    "jvp": "torch.func.jvp", "vhp": "torch.func.vjp of torch.func.grad", "vjp": "torch.func.vjp",
}.items():  # fmt: skip
    FUNCTIONS[f"torch.autograd.functional.{_name}"] = _refused(_name, _instead)
