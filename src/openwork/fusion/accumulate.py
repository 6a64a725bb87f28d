"""A statement that combines with what its left side holds, and its operands -> operands in the dtype of that.

`y[i] += A[i, j] * x[j]` of int8 into int32 is computed as in int32: products and sums of int8 would wrap before they
are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..ir.index import Access, Apply, Expression
from ..runtime.promote import promote
from ..storage.buffers import cast, is_array, is_torch, numpy_dtype, of_torch, scalar_name, torch_dtype

__all__ = ["accumulated_in"]


def accumulated_in(old: Any, e: Expression, operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """The operands of a right side, those of its sums and products promoted with what the left side holds."""
    scalar = _scalar(old)
    promoted = dict(operands)
    for name in set(_summed(e, operands)) if scalar else ():
        x, own = operands[name], _scalar(operands[name])
        if not own:
            continue
        torch_like = of_torch(x.dtype)
        wide = promote((scalar, own), "torch" if torch_like else "numpy")
        if wide != own:
            dtype = torch_dtype(wide) if torch_like else numpy_dtype(wide)
            promoted[name] = cast(x, wide) if is_array(x) else x.astype(dtype)
    return promoted


def _scalar(x: Any) -> str:
    """The scalar type of a tensor or array; "" of a number."""
    return scalar_name(x.dtype) if hasattr(x, "dtype") else ""


def _summed(e: Expression, operands: Mapping[str, Any]) -> Iterator[str]:
    """The tensors that sums and products begin with; of a product of two the smaller one, which decides for both."""
    match e:
        case Access(name):
            yield name
        case Apply("mul", (Access(a), Access(b))):
            yield min(a, b, key=lambda name: _size(operands[name]))
        case Apply("add" | "sub" | "mul" | "neg", args):
            for arg in args:
                yield from _summed(arg, operands)


def _size(x: Any) -> int:
    """The number of stored elements."""
    nse = getattr(x, "nse", None)
    return int(x.numel() if is_torch(x) else getattr(x, "size", 1)) if nse is None else int(nse)
