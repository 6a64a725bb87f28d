"""The name and operation of an elementwise function, of the loop IR or the array library -> its block, documented."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...interop.sources import asarray
from ...runtime.operation import operation
from ...runtime.result_rules import result_scalar
from ...runtime.values import apply
from ...storage.buffers import buffer_of, cast, is_array, is_torch, scalar_name, torch_dtype
from ...tensor.lazy import defer, is_lazy
from ...tensor.one_library import one_library
from ...tensor.tensor import Tensor
from .by_elements import by_elements
from .documentation import ANNIHILATES, documented
from .maps import elementwise, unary
from .pointwise import pointwise

__all__ = ["NOT_COMPILED", "annihilating_function", "as_operand", "as_tensor", "binary_function", "unary_function"]


def as_operand(x: Any) -> Any:
    """`x` as an operand: Tensors and arrays as they are, anything else as a dense Tensor."""
    if isinstance(x, Tensor) or is_array(x) or isinstance(x, np.generic | int | float | complex):
        return x

    return asarray(x)


def as_tensor(x: Any) -> Any:
    """`x` as a Tensor; an expression to be computed later itself."""

    return x if is_lazy(x) else asarray(x)


Names = str | tuple[str, ...]


def unary_function(name: str, op: str, doc: str, **names: Any) -> Callable[[Any], Any]:
    """The block of a function of one operand: its operation of the loop IR; its names elsewhere, see `_register`."""

    def function(x: Any, /) -> Any:

        if is_lazy(x):
            return defer("elementwise", op, function, (x,))

        return unary(op, x if isinstance(x, Tensor) else asarray(x))

    return _register(function, 1, name, op, doc, **names)


def binary_function(name: str, op: str, doc: str, **names: Any) -> Callable[[Any, Any], Any]:
    """The block of a function of two operands; `op` may be one of the array library that the loop IR has not."""

    def function(x1: Any, x2: Any, /) -> Any:
        if is_lazy(x1) or is_lazy(x2):
            return defer("elementwise", op, function, (x1, x2))
        a, b = as_operand(x1), as_operand(x2)
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            a, b = asarray(a), asarray(b) if is_array(b) else b
        if op in NOT_COMPILED:
            return _by_array_library(op, a, b)
        return elementwise(op, a, b)

    return _register(function, 2, name, op, doc, **names)


def annihilating_function(name: str, op: str, doc: str, **names: Any) -> Callable[..., Any]:
    """The block of a binary function in which a zero that is not stored may be asked to annihilate."""

    def function(x1: Any, x2: Any, /, *, zero_annihilates: bool = False) -> Any:
        if is_lazy(x1) or is_lazy(x2):
            call = partial(function, zero_annihilates=True) if zero_annihilates else function
            return defer("elementwise", op, call, (x1, x2), (True,) if zero_annihilates else ())
        a, b = as_operand(x1), as_operand(x2)
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            a, b = asarray(a), asarray(b) if is_array(b) else b
        return elementwise(op, a, b, zero_annihilates)

    return _register(function, 2, name, op, doc + ANNIHILATES, **names)


def _register(
    function: Callable[..., Any], arity: int, name: str, op: str, doc: str, *, see: str, numpy: Names = (),
    torch: Names = (), attribute: bool = False, operator: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`op`, the operation of the loop IR or the array library, is kept for operands that take the call over.

    doc, see : the first line of its documentation, and names of what is related
    numpy, torch, attribute, operator : of the block, see `runtime.operation`
    """
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"{__package__}.functions"
    function.__doc__ = documented(name, arity, doc, see)
    function.op = op  # type: ignore[attr-defined]
    block = operation(
        method=not attribute, attribute=attribute, operator=operator, numpy=numpy, torch=torch, masked="elements",
        lazy=True, op=op, arity=arity, returns="mixed" if arity == 2 else None,
    )  # fmt: skip
    return block(function)


NOT_COMPILED = ("logaddexp", "nextafter")
"""Operations that the loop IR has not."""

_LOGADDEXP = "select(A == B, A + log(2.0), max(A, B) + log1p(exp(-abs(A - B))))"
"""Equal operands by themselves: of two infinite ones the difference is NaN."""


def _by_array_library(op: str, a: Any, b: Any) -> Any:
    """The array library's operation: a sparse operand meets a scalar, or a dense one with which the result is dense."""
    a, b = _in_torch_dtype(*one_library(a, b))
    sparse = [isinstance(x, Tensor) and not x.format.is_dense for x in (a, b)]
    if all(sparse) and op == "logaddexp":
        floating = apply(op, a.values[:0], b.values[:0]).dtype
        return pointwise(_LOGADDEXP, {"A": a.astype(floating, copy=False), "B": b.astype(floating, copy=False)})
    if all(sparse):
        return by_elements(partial(apply, op), (a, b), op)
    if any(sparse) and all(getattr(x, "ndim", 0) for x in (a, b)):
        a, b = (x.asformat("dense") if isinstance(x, Tensor) else x for x in (a, b))
    return elementwise(op, a, b)


def _in_torch_dtype(a: Any, b: Any) -> tuple[Any, Any]:
    """Operands over torch's buffers in the floating dtype of their result: NumPy computes integers in another."""
    buffers = [buffer_of(x) for x in (a, b)]
    if not all(map(is_torch, buffers)):
        return a, b
    import torch

    empty = (buffer.new_empty((0,) if x.ndim else ()) for x, buffer in zip((a, b), buffers, strict=True))
    scalar = result_scalar("floating", scalar_name(torch.result_type(*empty)), "torch")
    a, b = (x.astype(torch_dtype(scalar), copy=False) if isinstance(x, Tensor) else cast(x, scalar) for x in (a, b))
    return a, b
