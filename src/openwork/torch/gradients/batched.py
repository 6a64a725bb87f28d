"""`torch.func` transforms of functions of Tensors: `grad` and `jvp` by the gradient rules, `vmap` one item at a time.

Kernels run on addresses, and a sparse operand has one structure and one set of values. So a batch of dense operands is
one more index (`single_operand`), and a batch of values as many runs, whose results have one structure, or are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import torch

from ...errors import UnsupportedError
from ...runtime import gradient_hook
from ...runtime.strided import Strided, strided
from ...storage.recorded import is_batched
from ...storage.storage import Storage
from ...tensor.tensor import Tensor
from .pointwise import DIFFERENTIABLE

__all__ = ["transformed"]

NATIVE = frozenset(("on_values", "total"))
"""Operations that are torch's own on values, and so take batches as they are."""


def transformed(
    function: Callable[..., Any], name: str, buffers: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The rule of an operation some of whose operands belong to a transform of `torch.func`."""
    if name == "torch_values":
        raise UnsupportedError("a sparse torch tensor inside a transform of torch.func\n  help: transform its values")
    levels = torch._C._functorch
    innermost = max(levels.maybe_get_level(b) for b in buffers if isinstance(b, torch.Tensor))
    batches = [
        b for b in buffers if isinstance(b, torch.Tensor) and is_batched(b) and levels.maybe_get_level(b) == innermost
    ]
    if not batches or name in NATIVE or _has_dense_batches_only(name, args):
        return gradient_hook.rule(name)(*args, **kwargs)
    size = levels.get_unwrapped(batches[0]).shape[levels.maybe_get_bdim(batches[0])]
    results = [function(*_map_tensors(args, partial(_unbatch, level=innermost, k=k)), **kwargs) for k in range(size)]
    return _stack_results(name, results, innermost)


def _has_dense_batches_only(name: str, args: tuple[Any, ...]) -> bool:
    """Whether only dense operands of a product are batches."""
    if name not in ("contract", "sample"):
        return False

    stored = [v.values for v in args[1].values() if isinstance(v, Storage)]
    return args[2] in DIFFERENTIABLE and not any(is_batched(v) for v in stored if isinstance(v, torch.Tensor))


def _unbatch(x: torch.Tensor, level: int, k: int) -> torch.Tensor:
    """Item k of a batch of this level; any other tensor as it is."""
    levels = torch._C._functorch
    if not is_batched(x) or levels.maybe_get_level(x) != level:
        return x
    result: torch.Tensor = levels.get_unwrapped(x).select(levels.maybe_get_bdim(x), k)
    return result


def _map_tensors(x: Any, visit: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Arguments with `visit` applied to every torch tensor in them: values of Tensors and storages, dense operands."""
    match x:
        case torch.Tensor():
            return visit(x)
        case Storage():
            values = x.values
            result = visit(values) if isinstance(values, torch.Tensor) else values
            return x if result is values else x.with_values(result)
        case Tensor():
            return Tensor._from_storage(_map_tensors(x._storage, visit))
        case Strided():
            return strided(visit(x.owner)) if isinstance(x.owner, torch.Tensor) else x
        case dict():
            return {k: _map_tensors(v, visit) for k, v in x.items()}
        case tuple() | list():
            return type(x)([_map_tensors(v, visit) for v in x])
    if is_dataclass(x) and not isinstance(x, type) and any(isinstance(getattr(x, f.name), Storage) for f in fields(x)):
        return replace(x, **{f.name: _map_tensors(getattr(x, f.name), visit) for f in fields(x) if f.init})
    return x


def _stack_results(name: str, results: list[Any], level: int) -> Any:
    """The results of a batch's items -> one result over a batch."""
    example = results[0]
    match example:
        case torch.Tensor():
            return torch._C._functorch._add_batch_dim(torch.stack(results), 0, level)
        case Storage():
            if not all(_same_structure(example, s) for s in results[1:]):
                raise UnsupportedError(
                    f"{name} inside torch.func.vmap: the structure of the result depends on the values"
                    "\n  help: a loop over the batch, or a structure that all share, sparse_mask say"
                )
            return example.with_values(_stack_results(name, [s.values for s in results], level))
        case Tensor():
            return Tensor._from_storage(_stack_results(name, [t._storage for t in results], level))
        case tuple() | list():
            kind = getattr(type(example), "_make", type(example))  # a named tuple's constructor takes no sequence
            return kind([_stack_results(name, list(column), level) for column in zip(*results, strict=True)])
    if is_dataclass(example) and not isinstance(example, type):
        columns = {f.name: [getattr(r, f.name) for r in results] for f in fields(example)}
        return replace(
            example, **{n: _stack_results(name, c, level) for n, c in columns.items() if isinstance(c[0], Storage)}
        )
    return example


def _same_structure(s: Storage, t: Storage) -> bool:
    pairs = zip((*s.pos, *s.crd), (*t.pos, *t.crd), strict=True)
    equal = all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)
    return equal and s.shape == t.shape and s.format == t.format and s.fill_value == t.fill_value
