"""Stand-ins that the tracer of torch.compile reads in place of this package's functions, which it does not trace.

A product of one sparse operand becomes the operator of `products`; any other call goes to the function itself, where
the tracer breaks the graph.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from ...format.format import Format
from ...tensor.tensor import Tensor
from ..rules import RULES
from . import traced_calls
from .traced_calls import SCALARS

__all__ = [
    "SCALARS",
    "columns",
    "linear",
    "matmul",
    "matmul_of_namespace",
    "rule",
    "sparse_linear",
    "statement",
    "torch_function",
]

Indices = tuple[str, ...]
Structure = tuple[Format, Any, Sequence[Any], Sequence[Any]]
"""Format, shape, pos and crd of a tensor."""


def statement(at: Indices, dense: Sequence[Indices], out: Indices | None) -> str:
    """The indices of a product as text."""
    return f"{','.join(at)}|{';'.join([','.join(d) for d in dense])}|{'-' if out is None else ','.join(out)}"


def product(
    s: Structure, values: torch.Tensor, at: Indices, dense: Sequence[torch.Tensor], indices: Sequence[Indices], out: Any
) -> torch.Tensor:
    """The product of a sparse operand with dense ones; `out` None is at its elements."""
    format, shape, pos, crd = s
    pairs = [(p, c) for p, c in zip(pos, crd, strict=True)]
    structure = [b for pair in pairs for b in pair if b is not None]
    buffer_kinds = "".join([("-" if p is None else "p") + ("-" if c is None else "c") for p, c in pairs])
    dtype = values.dtype
    for x in dense:
        dtype = torch.promote_types(dtype, x.dtype)
    result: torch.Tensor = torch.ops.openwork.product(
        values, structure, list(dense), format.text, buffer_kinds, shape, values.shape[0],
        statement(at, indices, out), SCALARS[dtype],
    )  # fmt: skip
    return result


def _is_product_operand(t: Any, x: Any) -> bool:
    """Whether a product is one of the operator's family: a Tensor of fill value 0 and a torch tensor."""
    if type(t) is not Tensor or not isinstance(x, torch.Tensor):
        return False
    s = t._raw_storage
    if not isinstance(s.values, torch.Tensor) or s.values.dtype not in SCALARS or x.dtype not in SCALARS:
        return False
    stacks = len(s.shape) - 2
    same_stack = stacks == 0 or (len(x.shape) == len(s.shape) and x.shape[:stacks] == s.shape[:stacks])
    return s.fill_value == 0 and stacks >= 0 and len(x.shape) > 0 and same_stack


def _product_of(t: Tensor, x: torch.Tensor, left: bool) -> torch.Tensor:
    """`t @ x`, or `x @ t`."""
    s = t._raw_storage
    stack = tuple([f"b{k}" for k in range(max(len(x.shape), len(s.shape)) - 2)])
    at = (*stack, "i", "j") if len(s.shape) > 2 else ("i", "j")
    indices: Indices
    out: Indices
    if len(x.shape) == 1:
        indices, out = (("j",), ("i",)) if left else (("i",), ("j",))
    elif left:
        indices, out = (*stack, "j", "k"), (*stack, "i", "k")
    else:
        indices, out = (*stack, "k", "i"), (*stack, "k", "j")
    return product((s.format, s.shape, s.pos, s.crd), s.values, at, [x], [indices], out)


def matmul(a: Any, b: Any, /) -> Any:
    """The stand-in of `ops.products.matmul.matmul`."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a @ b
    if _is_product_operand(a, b):
        return _product_of(a, b, True)
    if _is_product_operand(b, a):
        return _product_of(b, a, False)
    return traced_calls.call("openwork.matmul", (a, b), {})


def matmul_of_namespace(a: Any, b: Any, /, *, grad: Any = None) -> Any:
    """The stand-in of `openwork.matmul`."""
    return matmul(a, b) if grad is None else traced_calls.call("openwork.matmul", (a, b), {"grad": grad})


def linear(s: Structure, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """`x @ weight.T` for a weight of this structure and these values.

    Rows go to the product as columns, whose transposition torch's compiler fuses with what stands before and behind.
    """
    if len(x.shape) == 1:
        return product(s, values, ("i", "j"), [x], [("j",)], ("i",))
    columns = x.reshape(-1, x.shape[-1]).T.contiguous()
    out = product(s, values, ("i", "j"), [columns], [("j", "b")], ("i", "b"))
    return out.T.reshape(*x.shape[:-1], out.shape[0])


def sparse_linear(s: Structure, values: torch.Tensor, x: Tensor) -> torch.Tensor:
    """`x @ weight.T` of a sparse x, dense."""
    weight = traced_calls.tensor(s, SCALARS[values.dtype], 0, values)
    product = traced_calls.call("torch.nn.functional.linear", (x, weight), {})
    result: torch.Tensor = traced_calls.call(".to_dense", (product,), {})
    return result


def columns(s: Structure, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """`weight @ x` for a weight of this structure and these values, and columns (batch, in, n)."""
    return product(s, values, ("i", "j"), [x], [("b", "j", "k")], ("b", "i", "k"))


def torch_function(function: Any, args: Any, kwargs: Any) -> Any:
    """The stand-in of the rule of torch's functions."""
    if len(args) == 2 and not kwargs:
        a, b = args
        if function in (torch.matmul, torch.mm, torch.mv, operator.matmul):
            return matmul(a, b)
    if (
        function is torch.nn.functional.linear
        and 2 <= len(args) <= 3
        and not kwargs
        and _is_product_operand(args[1], args[0])
    ):
        s = args[1]._raw_storage
        if len(s.shape) == 2:
            out = linear((s.format, s.shape, s.pos, s.crd), s.values, args[0])
            return out + args[2] if len(args) == 3 and args[2] is not None else out
    if function is torch.addmm and len(args) == 3 and not kwargs and isinstance(args[0], torch.Tensor):
        return args[0] + matmul(args[1], args[2])
    return traced_calls.of_torch(None, function, (), args, kwargs)


def rule(name: str) -> Any:
    """The stand-in of `runtime.gradient_hook.rule`."""
    return torch_function if name == "torch_function" else RULES[name]
