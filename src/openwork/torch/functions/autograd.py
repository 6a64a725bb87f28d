"""`torch.autograd.grad`, `backward`, `gradcheck` and `gradgradcheck` with Tensors among inputs and outputs.

A Tensor stands for its values, or for its proxy where gradients are of every element. Gradients come back as Tensors,
in the structure of the input or dense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...errors import UnsupportedError
from ...masked.tensor import MaskedTensor, wrap
from ...tensor.tensor import Tensor
from ..gradients.leaves import as_dense, check_backward, leaf_of, on_structure
from .registry import torch_function

__all__ = ["gradcheck", "gradgradcheck", "gradient_of_input"]


def _sequence(x: Any) -> tuple[Any, ...]:
    """One tensor, or several, as a tuple."""
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def _gradients_of_outputs(outputs: tuple[Any, ...], gradients: Any, operation: str) -> list[Any]:
    """What is handed in for each output, as torch takes it for the output's leaf; see `leaf_of`."""
    handed = (None,) * len(outputs) if gradients is None else _sequence(gradients)
    if len(handed) != len(outputs):
        raise UnsupportedError(
            f"{operation}: {len(outputs)} outputs and {len(handed)} gradients\n  help: give one for each, None for 1"
        )
    return [_gradient_of_output(x, g, operation) for x, g in zip(outputs, handed, strict=True)]


def _gradient_of_output(x: Any, gradient: Any, operation: str) -> Any:
    t = getattr(x, "specified", x)
    if not isinstance(t, Tensor):
        return gradient
    check_backward(t.requires_grad, gradient, t.shape)
    proxy = getattr(t, "_proxy", None)
    if proxy is not None:
        return None if gradient is None else as_dense(gradient, proxy, operation)
    if gradient is None:
        return torch.ones_like(t._storage.values)
    return on_structure(t, gradient, operation)


@torch_function("grad")
def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """`torch.autograd.grad`: the gradient for each input, a Tensor in the structure of one that is a Tensor."""
    if is_grads_batched:
        raise UnsupportedError("grad: is_grads_batched with a Tensor\n  supported: one gradient\n  help: a loop")
    outputs, inputs = _sequence(outputs), _sequence(inputs)
    found = torch.autograd.grad(
        [leaf_of(x) for x in outputs], [leaf_of(x) for x in inputs],
        _gradients_of_outputs(outputs, grad_outputs, "grad"), retain_graph, create_graph,
        allow_unused=allow_unused, materialize_grads=materialize_grads,
    )  # fmt: skip
    return tuple(gradient_of_input(x, g) for x, g in zip(inputs, found, strict=True))


def gradient_of_input(x: Any, gradient: torch.Tensor | None) -> Any:
    """The gradient for an input's leaf -> that of the input."""
    if gradient is None or not isinstance(x, Tensor):
        return gradient
    if getattr(x, "_proxy", None) is not None:
        return Tensor._from_dense(gradient)
    return Tensor._from_storage(x._storage.with_values(gradient, 0))


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Any = None,
) -> None:  # fmt: skip
    """`torch.autograd.backward`: gradients of all leaves, or of `inputs`, are accumulated."""
    tensors = _sequence(tensors)
    torch.autograd.backward(
        [leaf_of(x) for x in tensors], _gradients_of_outputs(tensors, grad_tensors, "backward"),
        retain_graph, create_graph, inputs=None if inputs is None else [leaf_of(x) for x in _sequence(inputs)],
    )  # fmt: skip


@torch_function("backward")
def _backward(tensors: Any, *args: Any, **options: Any) -> None:
    """`torch.autograd.backward` and `torch.Tensor.backward`, which differ in the names of their arguments alone."""
    if "gradient" in options:
        options["grad_tensors"] = options.pop("gradient")
    backward(tensors, *args, **options)


@torch_function("make_dual")
def make_dual(t: Any, tangent: Any, *, level: int) -> Any:
    """`torch.autograd.forward_ad.make_dual`: a tensor with a tangent of its shape, of any format."""
    dual: Callable[..., torch.Tensor] = torch._VF._make_dual
    if not isinstance(t, Tensor):
        return dual(t, as_dense(tangent, t, "make_dual", True), level=level)
    proxy = getattr(t, "_proxy", None)
    if proxy is None:
        return Tensor._from_storage(
            t._storage.with_values(dual(t._storage.values, on_structure(t, tangent, "make_dual", True), level=level))
        )
    zeros = torch.zeros(t.shape, dtype=proxy.dtype, device=proxy.device)
    kind: Any = type(t)
    return kind._from_proxy(t.detach()._storage, dual(zeros, as_dense(tangent, zeros, "make_dual", True), level=level))


@torch_function("unpack_dual")
def unpack_dual(t: Tensor, *, level: int) -> tuple[Tensor, Tensor | None]:
    """`torch.autograd.forward_ad.unpack_dual`: a tensor without its tangent, and the tangent, in the structure of the
    tensor, dense of one of `grad="dense"`; None where there is none."""
    proxy, s = getattr(t, "_proxy", None), t._storage
    primal, tangent = torch._VF._unpack_dual(s.values if proxy is None else proxy, level=level)
    if proxy is not None:
        return t.detach(), None if tangent is None else Tensor._from_dense(tangent)
    parts = (Tensor._from_storage(s.with_values(x, f)) for x, f in ((primal, None), (tangent, 0)) if x is not None)
    return next(parts), next(parts, None)


def gradcheck(
    function: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """`torch.autograd.gradcheck` of a function that takes and gives Tensors: at their stored elements.

    inputs : Tensors, masked tensors, torch tensors and whatever else the function takes, in a tuple
    eps, atol, rtol : of `torch.autograd.gradcheck`

    Structures are constant, so the derivatives of a sparse tensor are those by its values.

    Returns
    -------
    bool, True where derivatives agree

    Raises torch's GradcheckError where derivatives differ, unless `raise_exception=False` gives False.

    Cost: two calls for each stored element.
    See also: gradgradcheck.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2, dtype=torch.float64), format="csr").requires_grad_()
    >>> ow.torch.gradcheck(lambda t: (t * t).sum(), (S,))
    True
    """
    inner, values = _of_values(function, _sequence(inputs))
    return bool(torch.autograd.gradcheck(
        inner, values, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad, fast_mode=fast_mode, masked=masked,
    ))  # fmt: skip


def gradgradcheck(
    function: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """`torch.autograd.gradgradcheck` of a function that takes and gives Tensors; see `gradcheck`.

    Returns
    -------
    bool, True where second derivatives agree

    Cost: two gradients for each stored element.
    See also: gradcheck.

    Examples
    --------
    >>> S = ow.asarray(torch.eye(2, dtype=torch.float64), format="csr").requires_grad_()
    >>> ow.torch.gradgradcheck(lambda t: (t * t).sum(), (S,))
    True
    """
    inner, values = _of_values(function, _sequence(inputs))
    handed = None if grad_outputs is None else tuple(map(_values, _sequence(grad_outputs)))
    return bool(torch.autograd.gradgradcheck(
        inner, values, handed, eps=eps, atol=atol, rtol=rtol, gen_non_contig_grad_outputs=gen_non_contig_grad_outputs,
        raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_fwd_over_rev=check_fwd_over_rev, check_rev_over_rev=check_rev_over_rev, fast_mode=fast_mode,
        masked=masked,
    ))  # fmt: skip


def _of_values(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of Tensors and its inputs -> the function of values, and their values."""

    def inner(*values: Any) -> Any:
        result = function(*map(_over_values, inputs, values))
        return tuple(map(_values, result)) if isinstance(result, list | tuple) else _values(result)

    return inner, tuple(map(_values, inputs))


def _over_values(x: Any, values: Any) -> Any:
    """An input over other values: a Tensor or masked tensor of its structure, or the values themselves."""
    if isinstance(x, MaskedTensor):
        return wrap(_over_values(x.specified, values), x._scalar)
    return Tensor._from_storage(x._storage.with_values(values)) if isinstance(x, Tensor) else values


def _values(x: Any) -> Any:
    t = getattr(x, "specified", x)
    return t._storage.values if isinstance(t, Tensor) else x
