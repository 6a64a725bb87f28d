"""The functions of the openwork namespace on masked tensors: what `__openwork_function__` looks up.

An elementwise function says itself which operation it is. One that moves elements, and computes nothing, is called on
the one Tensor. The others are methods and functions of masked tensors by their standard names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import UnsupportedError
from ..ir.index import Expression
from ..ops.elementwise import pointwise as merge
from ..runtime.formats import resolve_format
from ..runtime.operation import OPERATIONS
from ..tensor import dtypes
from ..tensor.tensor import Tensor
from . import forms, products, shaping
from .elementwise import binary, select, unary
from .structure import settled
from .tensor import MaskedTensor, wrap

__all__ = ["FUNCTIONS", "call"]


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A function of the namespace with these arguments, of which one is masked.

    Raises UnsupportedError for a function that is not in the table.
    """
    name = function.__name__
    found = FUNCTIONS.get(name)
    if found is not None:
        return found(*args, **kwargs)
    op = getattr(function, "op", None)
    if op is not None:
        return unary(op, *args) if len(args) == 1 else binary(op, *args)
    block = OPERATIONS.get(name)
    if block is not None and isinstance(args[0], MaskedTensor):
        if block.masked == "moves":
            return _moved(function, *args, **kwargs)
        if callable(block.masked):
            return block.masked(*args, **kwargs)
    raise UnsupportedError(
        f"openwork.{name} does not take these masked tensors\n  help: their methods, m.map(function), or filled(value)"
    )


def _moved(function: Callable[..., Any], m: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    if m._scalar:
        shape = tuple(function(Tensor._from_dense(m.values.reshape(())), *args, **kwargs).shape)
        return shaping.reshape(m, (1,) * len(shape)) if shape == (1,) * len(shape) else _wide(m, shape)
    t = function(m._tensor, *args, **kwargs)
    return wrap(settled(t, m.format)) if t.ndim else shaping.reshape(m, ())


def _wide(m: MaskedTensor, shape: tuple[int, ...]) -> MaskedTensor:
    return shaping.reshape(m, (1,) * len(shape)).broadcast_to(shape)


_AXES = frozenset(("max", "min", "var", "std"))
"""Methods that are torch's over torch buffers where no axis is named."""


def _method(name: str, *given: str) -> Callable[..., Any]:
    """A method by its standard name; `given` are its keywords that have a place in the standard's order."""

    def function(m: MaskedTensor, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(m, MaskedTensor):
            raise UnsupportedError(f"{name}: the first operand is no masked tensor\n  help: as_masked_tensor(x, mask)")
        named = dict(zip(given, args, strict=False)) | kwargs
        if name in _AXES:
            named.setdefault("axis", None)
        return getattr(m, name)(**named)

    return function


def _sorting(name: str) -> Callable[..., Any]:
    def function(m: MaskedTensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
        return getattr(m, name)(axis, descending=descending)

    return function


def _running(name: str) -> Callable[..., Any]:
    def function(
        m: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> MaskedTensor:
        if include_initial:
            raise UnsupportedError(f"{name} with include_initial of a masked tensor\n  help: concat a 0 before it")
        found: MaskedTensor = getattr(m if dtype is None else m.astype(dtype), name)(axis)
        return found

    return function


def count_nonzero(m: MaskedTensor, /, *, axis: Any = None, keepdims: bool = False) -> MaskedTensor:
    """How many specified elements are not zero, int64; missing where none is specified."""
    return binary("ne", m, 0).sum(axis, dtype="int64", keepdims=keepdims)


def diff(m: MaskedTensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> MaskedTensor:
    """Differences of neighbours along an axis; missing where either is."""
    parts = [x for x in (prepend, m, append) if x is not None]
    out = m if len(parts) == 1 else shaping.concat(parts, axis)
    for _ in range(n):
        before = (slice(None),) * (axis % max(m.ndim, 1))
        out = binary("sub", out[(*before, slice(1, None))], out[(*before, slice(None, -1))], "intersection")
    return out


def pointwise(
    expression: str | Expression,
    tensors: Mapping[str, Any],
    format: object = None,
    *,
    zero_annihilates: bool = False,
    missing: Sequence[str] = (),
) -> MaskedTensor:
    """`ow.pointwise` of masked and other tensors; the result is masked, in the format of the first masked operand."""
    masked = {name: x for name, x in tensors.items() if isinstance(x, MaskedTensor)}
    first = max(masked.values(), key=lambda m: m.ndim)
    if any(m._scalar for m in masked.values()):
        raise UnsupportedError("pointwise: a masked tensor of rank 0\n  help: item(), or reshape(1)")
    wanted = forms.fitting(resolve_format(format, first.ndim) if format is not None else first.format)
    held = {name: x._tensor if isinstance(x, MaskedTensor) else x for name, x in tensors.items()}
    names = {*masked, *missing}
    return wrap(merge.pointwise(expression, held, wanted, zero_annihilates=zero_annihilates, missing=names))


def unstack(m: MaskedTensor, /, *, axis: int = 0) -> tuple[MaskedTensor, ...]:
    """The parts along an axis, one for each place, without it."""
    d = axis % max(m.ndim, 1)
    return tuple(m[(*(slice(None),) * d, k)] for k in range(m.shape[axis]))


def _types(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:

        plain = (x._tensor if isinstance(x, MaskedTensor) else x for x in args)
        return getattr(dtypes, name)(*plain, **kwargs)

    return function


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _method(name) for name in ("sum", "prod", "mean", "min", "max", "var", "std", "any", "all")},
    "argmin": _method("argmin"),
    "argmax": _method("argmax"),
    "logsumexp": _method("logsumexp", "axis"),
    "softmax": _method("softmax", "axis"),
    "log_softmax": _method("log_softmax", "axis"),
    "cumulative_sum": _running("cumsum"),
    "cumulative_prod": _running("cumprod"),
    "count_nonzero": count_nonzero,
    "sort": _sorting("sort"),
    "argsort": _sorting("argsort"),
    "unique_values": _method("unique"),
    "nonzero": lambda m, /: tuple(Tensor._from_dense(c) for c in m.nonzero()),
    "astype": lambda m, dtype, /, *, copy=True, device=None: m.astype(dtype),
    "result_type": _types("result_type"),
    "can_cast": _types("can_cast"),
    "clip": lambda m, /, min=None, max=None: m.clamp(min, max),
    "where": select,
    "concat": lambda parts, /, *, axis=0: shaping.concat(parts, axis),
    "concatenate": lambda parts, /, *, axis=0: shaping.concat(parts, axis),
    "stack": lambda parts, /, *, axis=0: shaping.stack(parts, axis),
    "unstack": unstack,
    "diff": diff,
    "matmul": products.matmul,
    "einsum": products.einsum,
    "vecdot": lambda a, b, /, *, axis=-1: products.einsum("...i,...i->...", _last(a, axis), _last(b, axis)),
    "outer": lambda a, b, /: products.einsum("i,j->ij", a, b),
    "pointwise": pointwise,
}
"""The functions by the standard's name."""


def _last(x: Any, axis: int) -> Any:
    """With an axis moved behind the others."""
    if axis == -1:
        return x
    order = [d for d in range(x.ndim) if d != axis % x.ndim]
    return x.transpose((*order, axis % x.ndim))
