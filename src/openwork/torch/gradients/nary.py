"""An elementwise torch function and its operands, sparse and dense -> its result, in the union of their structures.

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

from ...errors import DTypeError
from ...integers import common_shape
from ...ops.elementwise.map_plans import keep_function
from ...ops.elementwise.maps import cached_fill
from ...ops.elementwise.pointwise import merge
from ...ops.manipulation.repetition import broadcast_to
from ...runtime.conversion.remap import has_gaps
from ...runtime.values import apply
from ...storage.buffers import as_array, is_torch, length, one_device, scalar_of
from ...storage.recorded import bare, is_recorded
from ...storage.storage import Storage
from ...tensor.one_library import storage_over_torch, tensor_over_torch
from ...tensor.tensor import Tensor
from .permutation import (
    detached_storage,
    element_mask,
    gather_by_numbers,
    value_numbers_at,
    without_duplicates,
)

__all__ = [
    "apply_dense",
    "apply_nary",
    "clamp",
    "extents",
    "operands_over_torch",
    "over_torch",
    "torch_storage",
    "with_number",
]


def clamp(x: Tensor, low: Any, high: Any) -> Any:
    """`x` within the limits, which pass the gradient of what is equal to them, as torch's clamp does.

    torch takes two numbers or two tensors: a number beside a tensor is one of rank 0.
    """
    if any(isinstance(limit, Tensor | torch.Tensor) for limit in (low, high)):
        low, high = (torch.as_tensor(limit) if isinstance(limit, int | float) else limit for limit in (low, high))
    return apply_nary(torch.clamp, x, min=low, max=high)


def apply_nary(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """An elementwise `function` of these operands, broadcast; options may be operands too.

    Returns
    -------
    A Tensor in the united structure of the Tensors, its fill value the function of theirs; where a torch tensor with
    dimensions takes part, a torch tensor; a tuple of these where the function gives several.

    Guarantees: equal to the function of the dense tensors, and so are gradients at specified elements.
    Raises ShapeError where the shapes do not broadcast.
    """
    unary_result = _apply_unary(function, args) if not options else None
    if unary_result is not None:
        return unary_result
    call = _NaryCall(function, args, options)
    sparse = [x for x in call.operands if isinstance(x, Tensor) and not x.format.is_dense]
    dense = [x for x in call.operands if not _is_sparse(x) and x.ndim]
    if not sparse or dense:
        return apply_dense(function, *args, **options)
    shape = extents(function, [x.shape for x in sparse])
    storages = [without_duplicates(torch_storage(broadcast_to(x, shape) if x.shape != shape else x)) for x in sparse]
    numbers = [x for x in call.operands if not _is_sparse(x)]
    fills = _fill_values(call, storages, numbers)
    if fills is None:
        return apply_dense(function, *args, **options)
    union_storage = _union_structure(storages)
    values = _values(call, union_storage, storages, numbers)
    single = isinstance(values, torch.Tensor)
    results = [
        Tensor._from_storage(union_storage.with_values(v, fill))
        for v, fill in zip([values] if single else values, fills, strict=True)
    ]
    return results[0] if single else _of_kind(values, results)


def _apply_unary(function: Callable[..., Any], args: tuple[Any, ...]) -> Tensor | None:
    """`apply_nary` of one Tensor without padding or duplicates and of constants; None for other operands."""
    t = args[0]
    if type(t) is not Tensor or any(type(x) not in _NUMBERS for x in args[1:]) or not _is_torch_function(function):
        return None
    s = t._storage
    x = s.values
    if s.format.is_dense or not s.format.is_unique or has_gaps(s) or not isinstance(x, torch.Tensor):
        return None

    def fill() -> Any:
        result = function(torch.tensor([s.fill_value], dtype=x.dtype), *args[1:])
        single = isinstance(result, torch.Tensor) and result.shape == (1,)
        return (result[0].item(),) if single else None

    key = (function, *[(type(a), repr(a)) for a in args[1:]])
    try:
        cached = cached_fill(s, key, fill)
        values = None if cached is None else function(x, *args[1:])
        if values is None or values.shape != x.shape or values.is_conj() or not scalar_of(values):
            return None
    except (TypeError, RuntimeError, ValueError):
        return None
    if len(args) == 1:
        keep_function(function, s, values, cached[0])
    return Tensor._from_storage(s.with_values(values.contiguous(), cached[0]))


def _is_torch_function(function: Any) -> bool:
    """Whether a function is one of torch's own, and so may be part of a key."""
    return type(function) in _BUILTIN_TYPES or (getattr(function, "__module__", None) or "").startswith("torch.")


_BUILTIN_TYPES = (type(torch.sin), type(torch.Tensor.sin))
_NUMBERS = (int, float, bool, str, type(None))


def with_number(op: str, a: Any, b: Any) -> Any:
    """The rule of an operation of a Tensor and a number that is recorded."""
    return apply_nary(partial(apply, op), a, b)


class _NaryCall:
    """A call whose tensor arguments can be replaced."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> None:
        self.function, self.args, self.options = function, args, options
        self.operands = [x for x in (*args, *options.values()) if isinstance(x, Tensor | torch.Tensor)]

    def __call__(self, operands: Sequence[Any]) -> Any:
        """The call with other operands."""
        remaining = iter(operands)

        def other(x: Any) -> Any:
            return next(remaining) if isinstance(x, Tensor | torch.Tensor) else x

        args = [other(x) for x in self.args]
        try:
            result = self.function(*args, **{k: other(x) for k, x in self.options.items()})
        except (TypeError, RuntimeError, ValueError) as error:
            name = getattr(self.function, "__name__", "this function")
            one_device(name, *filter(is_torch, operands))
            raise DTypeError(
                f"{name} does not take these operands: {error}\n  help: give what torch takes for dense tensors"
            ) from error
        return result.resolve_conj() if isinstance(result, torch.Tensor) else result


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and not x.format.is_dense


def apply_dense(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The function of the operands as dense tensors; a Tensor where no operand is a torch tensor with dimensions."""
    call = _NaryCall(function, args, options)
    result = call([x.to_dense() if isinstance(x, Tensor) else x for x in call.operands])
    if any(isinstance(x, torch.Tensor) and x.ndim for x in call.operands):
        return result
    if isinstance(result, torch.Tensor):
        return Tensor._from_dense(result)
    return _of_kind(result, list(map(Tensor._from_dense, result)))


def _of_kind(result: Any, parts: list[Any]) -> tuple[Any, ...]:
    """Several results as torch gives them: with its names where these have names."""
    kind: Any = type(result) if hasattr(result, "n_sequence_fields") else tuple
    named: tuple[Any, ...] = kind(parts)
    return named


def extents(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return common_shape(getattr(function, "__name__", "the function"), shapes)


def torch_storage(t: Tensor) -> Storage:
    """The storage of a Tensor, over torch buffers."""
    return storage_over_torch(t._storage, _CPU)


_CPU = torch.empty(0)


def over_torch(x: Any) -> Any:
    """An argument or result with torch tensors of the same memory in the place of NumPy buffers."""
    if isinstance(x, Tensor):
        return x if is_torch(x._raw_storage.values) else tensor_over_torch(x, _CPU)
    return type(x)(map(over_torch, x)) if type(x) in (tuple, list) else x


def operands_over_torch(args: Sequence[Any]) -> list[Any]:
    """The arguments of a gradient rule, storages and arrays among them over torch buffers."""
    found = []
    for x in args:
        if isinstance(x, Storage):
            found.append(storage_over_torch(x, _CPU))
        elif isinstance(x, np.ndarray) and x.dtype.kind in "fc":  # not a key
            found.append(as_array(x, like=_CPU))
        elif type(x) in (tuple, list) and any(isinstance(v, Storage | Tensor) for v in x):
            found.append(type(x)(operands_over_torch(x)))
        else:
            found.append(over_torch(x) if isinstance(x, Tensor) else x)
    return found


def _fill_values(call: _NaryCall, storages: Sequence[Storage], numbers: Sequence[Any]) -> list[Any] | None:
    """The fill values of the results; None where one depends on a number that is recorded."""
    fill_operands = iter([torch.tensor([s.fill_value], dtype=s.values.dtype) for s in storages])
    tensors = [x.to_dense() if isinstance(x, Tensor) else x for x in numbers]
    differentiated = [x for x in tensors if is_recorded(x)]
    numbers_left = iter(tensors)
    results = call([next(fill_operands) if _is_sparse(x) else next(numbers_left) for x in call.operands])
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    for fill in results:
        if differentiated and fill.requires_grad:
            total = (torch.view_as_real(fill) if fill.is_complex() else fill).sum()
            try:
                slopes = torch.autograd.grad(total, differentiated, allow_unused=True, retain_graph=True)
            except RuntimeError:  # a function that torch has no derivative of
                continue
            if any(g is not None and not bool((g == 0).all()) for g in slopes):
                return None
    bare_fills = [bare(fill, all_of_batch=True) for fill in results]
    if any(not bool(((f == f[0]) | (f != f) & (f[0] != f[0])).all()) for f in bare_fills):
        return None  # the numbers are a batch
    return [f[0].item() for f in bare_fills]


def _union_structure(storages: Sequence[Storage]) -> Storage:
    """The union of the structures of storages of one shape without duplicates."""
    patterns = []
    for s in storages:
        ones = torch.ones(length(s.values), dtype=torch.bool, device=s.values.device)
        patterns.append(Tensor._from_storage(detached_storage(s).with_values(ones, False)))
    result: Storage = reduce(lambda a, b: merge("or", a, b), patterns)._storage
    return result


def _values(call: _NaryCall, union_storage: Storage, storages: Sequence[Storage], numbers: Sequence[Any]) -> Any:
    """The function at the elements of the union of structures; padding is 0 and has no gradient."""
    elements = element_mask(union_storage)
    operands = []
    for s in storages:
        same_structure = s.pos is union_storage.pos and s.crd is union_storage.crd and s.format == union_storage.format
        values = (
            s.values
            if same_structure
            else gather_by_numbers(s.values, value_numbers_at(s, union_storage), [s.fill_value])
        )
        operands.append(values if elements is None else values.masked_fill(~elements, 1))
    sparse_operands, numbers_left = iter(operands), iter(x.to_dense() if isinstance(x, Tensor) else x for x in numbers)

    def clean(v: torch.Tensor) -> torch.Tensor:
        return (v if elements is None else v.masked_fill(~elements, 0)).contiguous()

    result = call([next(sparse_operands) if _is_sparse(x) else next(numbers_left) for x in call.operands])
    return clean(result) if isinstance(result, torch.Tensor) else _of_kind(result, [clean(v) for v in result])
