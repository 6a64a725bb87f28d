"""Operations of torch -> the sets of their results' elements: what they unite, move, or mix along dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map

import openwork as ow

from .dependence_sets import Sets, grouped, product_sets, taken, united

__all__ = ["OF_SHAPE", "OF_VALUES", "Call", "NotFollowed", "is_view", "rule_of"]

Array = np.ndarray[Any, Any]
_Rule = Callable[[Any], Any]


class NotFollowed(Exception):
    """An operation whose operands are such that it is not followed, with the reason."""


class Call(NamedTuple):
    """An operation on followed tensors: its operands, how to ask for their sets, and the value of its result."""

    func: Any
    name: str
    args: Any
    kwargs: Any
    sets_of: Callable[[Any], Sets]
    varies: Callable[[Any], bool]
    result: Any

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument by its name in the schema."""
        for k, a in enumerate(self.func._schema.arguments):
            if a.name == name:
                return self.args[k] if k < len(self.args) else self.kwargs.get(name, a.default_value)
        return default

    def tensors(self) -> list[Any]:
        """All operands that are tensors, those of lists too."""
        flat = [x for a in (*self.args, *self.kwargs.values()) for x in (a if isinstance(a, list | tuple) else [a])]
        return [t for t in flat if isinstance(t, torch.Tensor)]


OF_SHAPE = {
    "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "new_empty_strided", "is_same_size",
}  # fmt: skip
"""Operations that read no value."""
OF_VALUES = {"_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "masked_select", "_unique2", "allclose"}
"""Operations whose result, or its shape, is a matter of values."""
_FLAT = {
    "floor", "ceil", "round", "trunc", "sign", "sgn", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite",
    "signbit", "heaviside", "logical_and", "logical_or", "logical_not", "logical_xor", "floor_divide",
}  # fmt: skip
"""Functions of derivative 0 wherever they have one."""
_POINTWISE = {
    "where", "masked_fill", "lerp", "addcmul", "addcdiv", "clamp", "clamp_min", "clamp_max", "native_dropout", "gelu",
    "gelu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward", "leaky_relu_backward", "elu_backward",
    "silu_backward", "hardtanh_backward", "softplus_backward", "mish_backward", "log_sigmoid_backward", "copy",
    "logit_backward", "hardswish_backward", "hardsigmoid_backward", "relu", "prelu", "_prelu_kernel", "huber_loss",
    "complex", "view_as_complex", "polar",
}  # fmt: skip
_MOVES: dict[str, tuple[int, ...]] = {
    "cat": (0,), "stack": (0,), "clone": (0,), "flip": (0,), "roll": (0,), "repeat": (0,), "tril": (0,), "triu": (0,),
    "gather": (0,), "index_select": (0,), "index": (0,), "_unsafe_index": (0,), "take": (0,), "constant_pad_nd": (0,),
    "slice_scatter": (0, 1), "select_scatter": (0, 1), "diagonal_scatter": (0, 1), "scatter": (0, 3),
    "index_copy": (0, 3), "_to_copy": (0,), "contiguous": (0,), "reflection_pad1d": (0,), "reflection_pad2d": (0,),
    "reflection_pad3d": (0,), "replication_pad1d": (0,), "replication_pad2d": (0,), "replication_pad3d": (0,),
    "embedding": (0,), "pixel_shuffle": (0,), "pixel_unshuffle": (0,), "diag_embed": (0,), "lift_fresh": (0,),
    "lift_fresh_copy": (0,), "_reshape_copy": (0,), "upsample_nearest1d": (0,), "upsample_nearest2d": (0,),
    "upsample_nearest3d": (0,), "rot90": (0,), "repeat_interleave": (0,), "im2col": (0,), "unfold_copy": (0,),
    "view_copy": (0,), "expand_copy": (0,), "slice_copy": (0,), "select_copy": (0,), "permute_copy": (0,),
    "transpose_copy": (0,), "t_copy": (0,), "unsqueeze_copy": (0,), "squeeze_copy": (0,), "diagonal_copy": (0,),
}  # fmt: skip
"""Operations whose result has elements of operands, or constants, and the places of these operands."""
_DROPPED = {"_to_copy", "clone", "contiguous", "lift_fresh", "lift_fresh_copy"}
"""Moves that move nothing."""
_MIXED = {
    "sum", "mean", "prod", "amax", "amin", "max", "min", "var", "std", "var_mean", "std_mean", "logsumexp",
    "linalg_vector_norm", "norm", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "_softmax", "_log_softmax",
    "sort", "topk", "median", "nanmedian", "kthvalue", "aminmax", "_softmax_backward_data", "nansum", "argmax",
    "argmin", "_log_softmax_backward_data", "any", "all", "argsort", "mode", "_cummax_helper",
}  # fmt: skip
"""Operations along dimensions: an element depends on all with which it shares the others."""
_BATCHED = (
    "_linalg_check_errors", "linalg_inv_ex", "_linalg_solve_ex", "_linalg_det", "_linalg_slogdet",
    "linalg_cholesky_ex", "linalg_lu_factor_ex",
    "linalg_solve_triangular", "_linalg_eigh", "linalg_qr", "_linalg_svd", "cholesky_solve", "linalg_lu_solve",
)  # fmt: skip
"""Functions of matrices: all of a matrix depends on all of its operands."""
_VIEWS = {"detach", "alias", "_reshape_alias"}


def is_view(func: Any) -> bool:
    """Whether the result is a view of the first operand."""
    if func._schema.is_mutable:
        return False
    return bool(func.is_view) or func.overloadpacket.__name__ in _VIEWS


def rule_of(func: Any, name: str) -> _Rule | None:
    """The rule of an operation: a call -> its sets, or a function from a result to its sets."""
    if name in _RULES:
        return _RULES[name]
    if name in _MOVES:
        return _moved
    if name in _MIXED:
        return _mixed
    if name in _FLAT:
        return lambda call: None
    if name in _POINTWISE or torch.Tag.pointwise in func.tags:
        return _pointwise
    return None


def _result(call: Call) -> Any:
    return call.result[0] if isinstance(call.result, tuple | list) else call.result


def _spread(call: Call, t: Any, shape: Any) -> Sets:
    """The sets of an operand that is broadcast."""
    sets = call.sets_of(t)
    if sets is None or tuple(t.shape) == tuple(shape):
        return sets
    return taken(sets, torch.arange(t.numel()).reshape(t.shape).expand(shape).reshape(-1).numpy())


def _pointwise(call: Call) -> Sets:
    found: Sets = None
    operands = call.tensors()[1:] if call.name == "copy" else call.tensors()
    for t in operands:
        found = united(found, _spread(call, t, _result(call).shape))
    return found


def _moved(call: Call) -> Sets:
    """The operation on numbers of elements instead of values says which element went where."""
    places = _MOVES[call.name]
    others = tree_flatten([a for k, a in enumerate(call.args) if k not in places])[0]
    if any(call.varies(t) for t in others):
        raise NotFollowed("elements go where values of x say")
    if call.name in _DROPPED:
        return call.sets_of(call.args[0])
    sets: list[Sets] = []
    count = 0

    def numbers(t: Any) -> Any:
        nonlocal count
        known = call.sets_of(t) if isinstance(t, torch.Tensor) else None
        if known is None:
            return torch.zeros(t.shape, dtype=torch.float64) if isinstance(t, torch.Tensor) else 0.0
        sets.append(known)
        count += t.numel()
        return torch.arange(count - t.numel() + 1, count + 1, dtype=torch.float64).reshape(t.shape)

    args = [tree_map(numbers if k in places else real, a) for k, a in enumerate(call.args)]
    if call.name == "constant_pad_nd":
        args = [*args[:2], 0]
    moved = call.func(*args).reshape(-1).numpy().astype(np.int64) - 1
    return taken(_stacked(sets), moved)


def real(t: Any) -> Any:
    """The value of a followed tensor, and what is none."""
    return getattr(t, "value", t) if isinstance(t, torch.Tensor) else t


def _stacked(sets: list[Sets]) -> Sets:
    known = [s for s in sets if s is not None]
    return None if not known else known[0] if len(known) == 1 else ow.concat(known, axis=0).asformat("csr")


def _dims(call: Call, ndim: int) -> tuple[int, ...]:
    dim = call.argument("dim")
    if dim is None or dim == [] or dim == ():
        return tuple(range(ndim))
    return tuple(d % max(ndim, 1) for d in (dim if isinstance(dim, list | tuple) else (dim,)))


def _mixed(call: Call) -> Any:
    first = next(t for t in call.tensors() if call.sets_of(t) is not None or call.varies(t))
    found: Sets = None
    for t in call.tensors():
        found = united(found, _spread(call, t, first.shape))
    if found is None:
        return None
    dims = _dims(call, first.ndim)
    kept = tuple(1 if d in dims else n for d, n in enumerate(first.shape))
    count = int(np.prod(kept, dtype=np.int64))
    groups = torch.arange(count).reshape(kept)
    mixed = grouped(found, groups.expand(first.shape).reshape(-1).numpy(), count)

    def of(result: Any) -> Sets:
        if result.numel() == count:
            return mixed
        return taken(mixed, groups.expand(result.shape).reshape(-1).numpy())

    return of


def _last(call: Call, t: Any, axis: int) -> Sets:
    """The sets of rows of a matrix (axis -1), or of columns (axis -2)."""
    sets = call.sets_of(t)
    if sets is None:
        return None
    kept = tuple(1 if d == axis % t.ndim else n for d, n in enumerate(t.shape))
    count = int(np.prod(kept, dtype=np.int64))
    return grouped(sets, torch.arange(count).reshape(kept).expand(t.shape).reshape(-1).numpy(), count)


def _multiplied(call: Call) -> Sets:
    """Products of matrices and vectors, and what is added to them."""
    added = "add" in call.name
    operands = [t for t in call.args if isinstance(t, torch.Tensor)]
    a, b = operands[1:3] if added else operands[:2]
    shape = tuple(_result(call).shape)
    found = _spread(call, operands[0], shape) if added else None
    left, right = a.ndim - 1, b.ndim - 1
    for t, other, first in ((a, b, True), (b, a, False)):
        if call.sets_of(t) is None:
            continue
        if other.layout is not torch.strided:
            found = united(found, _sparse(call, t, other, first))
            continue
        sets = _last(call, t, -1 if first or t.ndim == 1 else -2)
        if first:
            ids = torch.arange(int(np.prod(t.shape[:-1], dtype=np.int64))).reshape(t.shape[:-1] + (1,) * (right > 0))
        else:
            kept = t.shape[:-2] + t.shape[-1:] if t.ndim > 1 else ()
            ids = torch.arange(int(np.prod(kept, dtype=np.int64))).reshape(kept)
            ids = ids.unsqueeze(-2) if left > 0 and t.ndim > 1 else ids
        found = united(found, taken(sets, ids.expand(shape).reshape(-1).numpy()))
    return found


def _sparse(call: Call, t: Any, other: Any, first: bool) -> Sets:
    """The product with one of torch's sparse matrices."""
    if first:
        raise NotFollowed("a product with a sparse matrix on the right\n  help: (A.T @ x.T).T")
    return product_sets(ow.asarray(other), call.sets_of(t), t.shape[1] if t.ndim > 1 else 1)


def _convolved(call: Call) -> Sets:
    """A convolution with one weight that is 1 says which element goes where, for each weight."""
    x, weight, bias, *rest = call.args
    if call.varies(weight) or call.varies(bias):
        raise NotFollowed("the weights depend on x")
    sets = call.sets_of(x)
    numbers = torch.arange(1, x.numel() + 1, dtype=torch.float64).reshape(x.shape)
    shape = tuple(weight.shape)
    found: Sets = None
    transposed = bool(rest[3])
    for tap in itertools.product(*(range(n) for n in (shape[0:1] if transposed else shape[1:2]) + shape[2:])):
        one = torch.zeros(shape, dtype=torch.float64)
        one[(tap[0], slice(None), *tap[1:]) if transposed else (slice(None), *tap)] = 1
        moved = call.func(numbers, one, None, *rest).reshape(-1).round().numpy().astype(np.int64) - 1
        found = united(found, taken(sets, moved))
    return found


def _accumulated(call: Call) -> Sets:
    """Elements that are added to others at places: index_add, scatter_add, index_put."""
    target = call.args[0]
    named = {"index_add": (2, 3), "scatter_add": (2, 3), "index_put": (1, 2), "_index_put_impl": (1, 2)}[call.name]
    where, source = call.args[named[0]], call.args[named[1]]
    flat = where if isinstance(where, list | tuple) else [where]
    if any(call.varies(t) for t in flat):
        raise NotFollowed("elements go where values of x say")
    ids = torch.arange(target.numel()).reshape(target.shape)
    values = [real(t) for t in flat]
    if call.name == "index_add":
        at = ids.index_select(call.args[1], values[0])
    elif call.name == "scatter_add":
        at = ids.gather(call.args[1], values[0])
        cut = tuple(slice(n) for n in at.shape)
        numbers = torch.arange(source.numel()).reshape(source.shape)[cut].reshape(-1).numpy()
    else:
        at = ids[tuple(slice(None) if v is None else v for v in values)]
    sets = _spread(call, source, at.shape) if call.name != "scatter_add" else taken(call.sets_of(source), numbers)
    added = grouped(sets, at.reshape(-1).numpy(), target.numel())
    kept = call.sets_of(target)
    if (
        call.name.endswith(("index_put", "index_put_impl"))
        and not call.argument("accumulate", False)
        and kept is not None
    ):
        whose = np.arange(target.numel())
        whose[at.reshape(-1).numpy()] = -1
        kept = taken(kept, whose)
    return united(kept, added)


def _batched(call: Call) -> Any:
    operands = call.tensors()
    batch = operands[0].shape[:-2]
    groups = torch.arange(int(np.prod(batch, dtype=np.int64))).reshape(batch)
    found: Sets = None
    for t in operands:
        if t.shape[: len(batch)] != batch:
            raise NotFollowed("operands whose batches differ")
        spread = groups.reshape(batch + (1,) * (t.ndim - len(batch))).expand(t.shape)
        found = united(found, grouped(call.sets_of(t), spread.reshape(-1).numpy(), groups.numel()))

    def of(result: Any) -> Sets:
        spread = groups.reshape(batch + (1,) * (result.ndim - len(batch))).expand(result.shape)
        return taken(found, spread.reshape(-1).numpy())

    return of


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(
        ("mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv", "baddbmm", "_sparse_mm", "_sparse_addmm"), _multiplied
    ),
    **dict.fromkeys(_BATCHED, _batched),
    **dict.fromkeys(("index_add", "scatter_add", "index_put", "_index_put_impl"), _accumulated),
    "convolution": _convolved,
    "scatter_value": _moved,
}
