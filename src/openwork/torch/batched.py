"""`torch.func` transforms of functions of Tensors: `grad` and `jvp` by the gradient rules, `vmap` one item at a time.

Kernels run on addresses, and a sparse operand has one structure and one set of values. So a batch of dense operands is
one more index (`drive`), and a batch of values as many runs, whose results have one structure, or are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import torch

from ..errors import UnsupportedError
from ..runtime import gradient_hook as gradients
from ..runtime.strided import Strided, strided
from ..storage.buffers import is_batched
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .pointwise import DIFFERENTIABLE

__all__ = ["each", "transformed"]

NATIVE = frozenset(("on_values", "total"))
"""Operations that are torch's own on values, and so take batches as they are."""


def each(
    size: int, dims: Sequence[Any], operands: Sequence[Any], function: Callable[..., torch.Tensor]
) -> torch.Tensor:
    """`function` of each of a batch, as a stack; `dims` says where an operand's batch is, None without."""
    rows = [[x if d is None else x.select(d, k) for x, d in zip(operands, dims, strict=True)] for k in range(size)]
    return torch.stack([function(*row) for row in rows])


def transformed(
    function: Callable[..., Any], name: str, buffers: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An operation some of whose operands belong to a transform."""
    if name == "torch_values":
        raise UnsupportedError("a sparse torch tensor inside a transform of torch.func\n  help: transform its values")
    levels = torch._C._functorch
    top = max(levels.maybe_get_level(b) for b in buffers if isinstance(b, torch.Tensor))
    batches = [b for b in buffers if isinstance(b, torch.Tensor) and is_batched(b) and levels.maybe_get_level(b) == top]
    if not batches or name in NATIVE or _linear(name, args):
        return gradients.rule(name)(*args, **kwargs)
    size = levels.get_unwrapped(batches[0]).shape[levels.maybe_get_bdim(batches[0])]
    results = [function(*_replaced(args, partial(_one, level=top, k=k)), **kwargs) for k in range(size)]
    return _stacked(name, results, top)


def _linear(name: str, args: tuple[Any, ...]) -> bool:
    """Whether only dense operands of a product are batches."""
    if name not in ("contract", "shared"):
        return False

    stored = [v.values for v in args[1].values() if isinstance(v, Storage)]
    return args[2] in DIFFERENTIABLE and not any(is_batched(v) for v in stored if isinstance(v, torch.Tensor))


def _one(x: torch.Tensor, level: int, k: int) -> torch.Tensor:
    """One of a batch of this level; any other tensor as it is."""
    levels = torch._C._functorch
    if not is_batched(x) or levels.maybe_get_level(x) != level:
        return x
    result: torch.Tensor = levels.get_unwrapped(x).select(levels.maybe_get_bdim(x), k)
    return result


def _replaced(x: Any, visit: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Arguments of an operation with other tensors as values and dense operands."""
    match x:
        case torch.Tensor():
            return visit(x)
        case Storage():
            values = x.values
            result = visit(values) if isinstance(values, torch.Tensor) else values
            return x if result is values else x.with_values(result)
        case Tensor():
            return Tensor._from_storage(_replaced(x._storage, visit))
        case Strided():
            return strided(visit(x.owner)) if isinstance(x.owner, torch.Tensor) else x
        case dict():
            return {k: _replaced(v, visit) for k, v in x.items()}
        case tuple() | list():
            return type(x)([_replaced(v, visit) for v in x])
    if is_dataclass(x) and not isinstance(x, type) and any(isinstance(getattr(x, f.name), Storage) for f in fields(x)):
        return replace(x, **{f.name: _replaced(getattr(x, f.name), visit) for f in fields(x) if f.init})
    return x


def _stacked(name: str, results: list[Any], level: int) -> Any:
    """The results of a batch as one."""
    first = results[0]
    match first:
        case torch.Tensor():
            return torch._C._functorch._add_batch_dim(torch.stack(results), 0, level)
        case Storage():
            if not all(_same(first, s) for s in results[1:]):
                raise UnsupportedError(
                    f"{name} inside torch.func.vmap: the structure of the result depends on the values"
                    "\n  help: a loop over the batch, or a structure that all share, sparse_mask say"
                )
            return first.with_values(_stacked(name, [s.values for s in results], level))
        case Tensor():
            return Tensor._from_storage(_stacked(name, [t._storage for t in results], level))
        case tuple() | list():
            return type(first)([_stacked(name, list(column), level) for column in zip(*results, strict=True)])
    if is_dataclass(first) and not isinstance(first, type):
        columns = {f.name: [getattr(r, f.name) for r in results] for f in fields(first)}
        return replace(first, **{n: _stacked(name, c, level) for n, c in columns.items() if isinstance(c[0], Storage)})
    return first


def _same(s: Storage, t: Storage) -> bool:
    pairs = zip((*s.pos, *s.crd), (*t.pos, *t.crd), strict=True)
    equal = all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)
    return equal and s.shape == t.shape and s.format == t.format and s.fill_value == t.fill_value
