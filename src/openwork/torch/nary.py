"""A torch function of single elements and its operands, sparse and dense -> its result, in their united structure.

Where every tensor operand is sparse, the result has elements wherever one of them has: their structures are united by
the kernels that merge, each operand's values are taken there, and torch's function does the rest, gradients included.
Where one is dense the result is dense. Its fill value is the function of the fill values; where that depends on a
number that is recorded, the result is dense too, so that no gradient is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

from ..errors import DTypeError, ShapeError
from ..ops.elementwise.maps import cached_fill
from ..ops.elementwise.pointwise import merge
from ..ops.manipulation.shaping import broadcast_to
from ..runtime.conversion.remap import has_gaps
from ..runtime.values import apply
from ..storage.buffers import as_array, is_recorded, is_torch, length, scalar_of
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .permutation_gradient import gathered, located, plain, present, unique

__all__ = ["densely", "extents", "over_torch", "several", "torch_storage", "with_number"]


def several(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`function` of every element of these operands, broadcast, whatever it is; options may be operands too.

    Returns
    -------
    A Tensor in the united structure of the Tensors, its fill value the function of theirs; where a torch tensor with
    dimensions takes part, a torch tensor; a tuple of these where the function gives several.

    Guarantees: equal to the function of the dense tensors, and so are gradients at specified elements.
    Raises ShapeError where the shapes do not broadcast.
    """
    alone = _of_one(function, args) if not options else None
    if alone is not None:
        return alone
    call = _Call(function, args, options)
    sparse = [x for x in call.operands if isinstance(x, Tensor) and not x.format.is_dense]
    full = [x for x in call.operands if not _is_sparse(x) and x.ndim]
    if not sparse or full:
        return densely(function, *args, **options)
    shape = extents(function, [x.shape for x in sparse])
    storages = [unique(torch_storage(broadcast_to(x, shape) if x.shape != shape else x)) for x in sparse]
    numbers = [x for x in call.operands if not _is_sparse(x)]
    fills = _fills(call, storages, numbers)
    if fills is None:
        return densely(function, *args, **options)
    united = _united(storages)
    values = _values(call, united, storages, numbers)
    single = isinstance(values, torch.Tensor)
    results = [
        Tensor._from_storage(united.with_values(v, fill))
        for v, fill in zip([values] if single else values, fills, strict=True)
    ]
    return results[0] if single else tuple(results)


def _of_one(function: Callable[..., Any], args: tuple[Any, ...]) -> Tensor | None:
    """The same of one Tensor whose values are elements, each one, and of numbers; None where there is more to do."""
    t = args[0]
    if type(t) is not Tensor or any(type(x) not in _NUMBERS for x in args[1:]) or not _is_torchs(function):
        return None
    s = t._storage
    x = s.values
    if s.format.is_dense or not s.format.is_unique or has_gaps(s) or not isinstance(x, torch.Tensor):
        return None

    def fill() -> Any:
        found = function(torch.tensor([s.fill_value], dtype=x.dtype), *args[1:])
        single = isinstance(found, torch.Tensor) and found.shape == (1,)
        return (found[0].item(),) if single else None

    key = (function, *[(type(a), repr(a)) for a in args[1:]])
    try:
        boxed = cached_fill(s, key, fill)
        values = None if boxed is None else function(x, *args[1:])
        if values is None or values.shape != x.shape or values.is_conj() or not scalar_of(values):
            return None
    except (TypeError, RuntimeError, ValueError):
        return None
    return Tensor._from_storage(s.with_values(values.contiguous(), boxed[0]))


def _is_torchs(function: Any) -> bool:
    """Whether a function is one of torch's own, and so may be part of a key."""
    return type(function) in _OF_C or (getattr(function, "__module__", None) or "").startswith("torch.")


_OF_C = (type(torch.sin), type(torch.Tensor.sin))
_NUMBERS = (int, float, bool, str, type(None))


def with_number(op: str, a: Any, b: Any) -> Any:
    """The rule of an operation of a Tensor and a number that is recorded."""
    return several(partial(apply, op), a, b)


class _Call:
    """A call, apart from those of its arguments that are tensors."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> None:
        self.function, self.args, self.options = function, args, options
        self.operands = [x for x in (*args, *options.values()) if isinstance(x, Tensor | torch.Tensor)]

    def __call__(self, operands: Sequence[Any]) -> Any:
        """The call with other operands."""
        given = iter(operands)

        def other(x: Any) -> Any:
            return next(given) if isinstance(x, Tensor | torch.Tensor) else x

        args = [other(x) for x in self.args]
        try:
            found = self.function(*args, **{k: other(x) for k, x in self.options.items()})
        except (TypeError, RuntimeError, ValueError) as error:
            name = getattr(self.function, "__name__", "this function")
            raise DTypeError(
                f"{name} does not take these operands: {error}\n  help: give what torch takes for dense tensors"
            ) from error
        return found.resolve_conj() if isinstance(found, torch.Tensor) else found


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and not x.format.is_dense


def densely(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The function of the dense tensors: a Tensor where no operand is a torch tensor with dimensions."""
    call = _Call(function, args, options)
    result = call([x.to_dense() if isinstance(x, Tensor) else x for x in call.operands])
    if any(isinstance(x, torch.Tensor) and x.ndim for x in call.operands):
        return result
    return Tensor._from_dense(result) if isinstance(result, torch.Tensor) else tuple(map(Tensor._from_dense, result))


def extents(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(str(tuple(s)) for s in shapes)
        name = getattr(function, "__name__", "the function")
        raise ShapeError(f"{name}: shapes {listed} do not broadcast\n  help: extents agree, or are 1") from None


def torch_storage(t: Tensor) -> Storage:
    """The storage of a Tensor, over torch buffers."""
    s = t._storage
    return s if is_torch(s.values) else s.mapped(lambda b: as_array(b, like=torch.empty(0)))


def over_torch(x: Any) -> Any:
    """An argument or result, Tensors over NumPy buffers over torch tensors of the same memory."""
    if isinstance(x, Tensor):
        return x if is_torch(x._storage.values) else Tensor._from_storage(torch_storage(x))
    return type(x)(map(over_torch, x)) if type(x) in (tuple, list) else x


def _fills(call: _Call, storages: Sequence[Storage], numbers: Sequence[Any]) -> list[Any] | None:
    """The fill values of the results; None where one depends on a number that is recorded."""
    boxes = iter([torch.tensor([s.fill_value], dtype=s.values.dtype) for s in storages])
    tensors = [x.to_dense() if isinstance(x, Tensor) else x for x in numbers]
    recorded = [x for x in tensors if is_recorded(x)]
    rest = iter(tensors)
    found = call([next(boxes) if _is_sparse(x) else next(rest) for x in call.operands])
    found = [found] if isinstance(found, torch.Tensor) else list(found)
    for fill in found:
        if recorded and fill.requires_grad:
            total = (torch.view_as_real(fill) if fill.is_complex() else fill).sum()
            try:
                slopes = torch.autograd.grad(total, recorded, allow_unused=True, retain_graph=True)
            except RuntimeError:  # a function that torch has no derivative of
                continue
            if any(g is not None and not bool((g == 0).all()) for g in slopes):
                return None
    return [fill[0].item() for fill in found]


def _united(storages: Sequence[Storage]) -> Storage:
    """The structure of everything that one of the storages, of one shape and without duplicates, specifies."""
    patterns = []
    for s in storages:
        ones = torch.ones(length(s.values), dtype=torch.bool, device=s.values.device)
        patterns.append(Tensor._from_storage(plain(s).with_values(ones, False)))
    result: Storage = reduce(lambda a, b: merge("or", a, b), patterns)._storage
    return result


def _values(call: _Call, made: Storage, storages: Sequence[Storage], numbers: Sequence[Any]) -> Any:
    """The function at the elements of the united structure; padding has none, and no gradient."""
    here = present(made)
    taken = []
    for s in storages:
        alone = s.pos is made.pos and s.crd is made.crd and s.format == made.format
        values = s.values if alone else gathered(s.values, located(s, made), [s.fill_value])
        taken.append(values if here is None else values.masked_fill(~here, 1))
    boxes, rest = iter(taken), iter(x.to_dense() if isinstance(x, Tensor) else x for x in numbers)

    def clean(v: torch.Tensor) -> torch.Tensor:
        return (v if here is None else v.masked_fill(~here, 0)).contiguous()

    result = call([next(boxes) if _is_sparse(x) else next(rest) for x in call.operands])
    return clean(result) if isinstance(result, torch.Tensor) else [clean(v) for v in result]
