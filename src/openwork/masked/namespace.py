"""Functions of the namespace on masked tensors, each as the block of its operation says: `__openwork_function__`.

"elements" maps the specified ones, "moves" is called on the one Tensor, "reduces" combines the specified ones over
axes. The functions below are others, which blocks name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any

from .. import Format, Tensor, UnsupportedError
from ..interop.operands import adopt_foreign
from ..ir.index import Assignment, Expression
from ..ops import mask_formats as forms
from ..ops.axes import axis_of
from ..ops.elementwise import pointwise as merge
from ..ops.manipulation.padding import pad as padded
from ..provided import provides, resolved
from ..runtime.formats import resolve_format
from ..runtime.operation import OPERATIONS, block
from ..storage.buffers import is_array
from ..tables import TORCH
from ..tensor import dtypes
from . import products, shaping
from .elementwise import binary, unary
from .reductions import reduce
from .structure import settled
from .tensor import MaskedTensor, require_masked, wrap

__all__ = [
    "astype", "call", "can_cast", "count_nonzero", "diff", "moved", "nonzero", "outer", "pad", "pointwise",
    "result_type", "spelled", "unstack", "vecdot",
]  # fmt: skip


@provides("masked call")
def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A function of the namespace with these arguments, of which one is masked, as its block says.

    Raises UnsupportedError where the block does not take masked tensors.
    """
    name = function.__name__
    args = tuple(_adopted(x) for x in args)
    if kwargs.get("ddof") is not None:  # NumPy's word for it
        kwargs = {**{k: v for k, v in kwargs.items() if k != "ddof"}, "correction": kwargs["ddof"]}
    operation = OPERATIONS.get(name)
    rule = None if operation is None else operation.masked
    if operation is None or rule is None:
        raise UnsupportedError(
            f"openwork.{name} does not take these masked tensors"
            "\n  help: their methods, m.map(function), or filled(value)"
        )
    op, whole = operation.op, len(args) == operation.arity or not callable(rule)
    if op is not None and whole and not kwargs.keys() - {"how"}:
        return unary(op, *args) if len(args) == 1 else binary(op, *args, **kwargs)
    if callable(rule):
        return rule(*args, **_known(operation.function, rule, kwargs))
    require_masked(name, args[0])
    return (moved if rule == "moves" else _reduced)(function, *args, **kwargs)


@provides("masked spelled")
def spelled(name: str, *args: Any, **kwargs: Any) -> Any:
    """torch's function `name`, which a block spells, of arguments of which one is masked; results are ours."""
    operation = block(TORCH[name])

    def function(*args: Any, **kwargs: Any) -> Any:
        return call(operation.function, args, kwargs)

    return operation.spelled("torch", name).call(function, args, kwargs)


def _adopted(x: Any) -> Any:
    """An operand of SciPy or pandas as a Tensor, also inside of a list or tuple."""
    return type(x)(map(_adopted, x)) if type(x) in (list, tuple) else x if is_array(x) else adopt_foreign(x)


def moved(function: Callable[..., Any], m: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """A function that only moves elements, called on the one Tensor; each of its results is masked."""
    if m._scalar:
        t = function(Tensor._from_dense(m.values.reshape(())), *args, **kwargs)
        return tuple(_of_number(m, x) for x in t) if isinstance(t, tuple) else _of_number(m, t)
    t = function(m._tensor, *args, **kwargs)
    return tuple(_wrapped(x, m) for x in t) if isinstance(t, tuple) else _wrapped(t, m)


def _wrapped(t: Tensor, m: MaskedTensor) -> MaskedTensor:
    if t.ndim:
        return wrap(settled(t, m.format))
    if m.size == 1:
        return shaping.reshape(m, ())
    raise UnsupportedError(f"one element of a masked tensor of shape {m.shape}\n  help: index it: m[i, j]")


def _of_number(m: MaskedTensor, t: Tensor) -> MaskedTensor:
    shape = tuple(t.shape)
    return shaping.reshape(m, (1,) * len(shape)) if shape == (1,) * len(shape) else _wide(m, shape)


def _wide(m: MaskedTensor, shape: tuple[int, ...]) -> MaskedTensor:
    return shaping.reshape(m, (1,) * len(shape)).broadcast_to(shape)


def _reduced(function: Callable[..., Any], m: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    """The reduction of the function's name, with its arguments; what they accumulate in is cast to first."""
    name, defaults = function.__name__, _defaults(OPERATIONS[function.__name__].function)
    options = _known(function, reduce, {**dict(zip(defaults, args, strict=False)), **kwargs})
    if options.get("dtype") is not None and name not in ("sum", "prod"):
        m = m.astype(options.pop("dtype"))
    return reduce(name, m, options.pop("axis", None), options.pop("keepdims", False), **options)


def _known(function: Callable[..., Any], rule: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name of an operation without those that its rule has not, which are left at their defaults.

    Raises UnsupportedError for another value of such an argument.
    """
    taken, defaults = _defaults(resolved(rule)), _defaults(function)
    known = {key: value for key, value in kwargs.items() if key in taken or _REST in taken}
    for key in kwargs.keys() - known.keys():
        value, default = kwargs[key], defaults.get(key)
        if value is not default and (hasattr(value, "shape") or value != default):
            raise UnsupportedError(f"{function.__name__}: {key}= of a masked tensor\n  help: leave it out")
    return known


_REST = "**"
"""Stands for arguments by any name."""


@cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a function after its operand, and their defaults."""
    parameters = list(signature(function).parameters.values())[1:]
    return {_REST if p.kind is p.VAR_KEYWORD else p.name: p.default for p in parameters}


@provides("masked count_nonzero")
def count_nonzero(m: MaskedTensor, /, *, axis: Any = None, keepdims: bool = False) -> MaskedTensor:
    """How many specified elements are not zero, int64; missing where none is specified."""
    return binary("ne", m, 0).sum(axis, dtype="int64", keepdims=keepdims)


@provides("masked diff")
def diff(m: MaskedTensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> MaskedTensor:
    """Differences of neighbours along an axis; missing where either is."""
    parts = [x for x in (prepend, m, append) if x is not None]
    out = m if len(parts) == 1 else shaping.concat(parts, axis)
    before = (slice(None),) * axis_of(axis, max(m.ndim, 1), "diff")
    for _ in range(n):
        out = binary("sub", out[(*before, slice(1, None))], out[(*before, slice(None, -1))], "intersection")
    return out


@provides("masked pad")
def pad(m: MaskedTensor, pad_width: Any, /, mode: str = "constant", **options: Any) -> MaskedTensor:
    """Elements in front and behind: missing ones, or those of other places with their masks."""
    if mode == "constant" and not options:
        options = {"constant_values": m._tensor.fill_value}
    elif mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise UnsupportedError(f"pad: mode={mode!r}, constant_values= of a masked tensor\n  help: leave them out")
    found: MaskedTensor = moved(padded, m, pad_width, mode, **options)
    return found


@provides("masked pointwise")
def pointwise(
    expression: str | Expression | Assignment,
    tensors: Mapping[str, Any],
    format: str | Format | None = None,
    *,
    zero_annihilates: bool = False,
    missing: Sequence[str] = (),
) -> MaskedTensor:
    """`ow.pointwise` of masked and other tensors; the result is masked, in the format of the first masked operand."""
    masked = {name: x for name, x in tensors.items() if isinstance(x, MaskedTensor)}
    names, first = {*masked, *missing}, max(masked.values(), key=lambda m: m.ndim)
    number = not any(x.ndim for x in tensors.values())
    held = {name: x.reshape(1) if number and name not in masked else _plain(x) for name, x in tensors.items()}
    if number:
        return wrap(merge.pointwise(expression, held, None, missing=names), True)
    expression, rank = merge.read(expression, held)
    related = forms.related(first.format, rank) if rank != first.ndim else first.format
    wanted = forms.fitting(resolve_format(format, rank) if format is not None else related)
    return wrap(merge.pointwise(expression, held, wanted, zero_annihilates=zero_annihilates, missing=names))


@provides("masked unstack")
def unstack(m: MaskedTensor, /, *, axis: int = 0) -> tuple[MaskedTensor, ...]:
    """The parts along an axis, one for each place, without it."""
    d = axis_of(axis, m.ndim, "unstack")
    return tuple(m[(*(slice(None),) * d, k)] for k in range(m.shape[d]))


@provides("masked vecdot")
def vecdot(a: Any, b: Any, /, *, axis: int = -1) -> MaskedTensor:
    """Sums over `axis` of products of the elements that both specify."""
    return products.einsum("...i,...i->...", _last(a, axis), _last(b, axis))


def _last(x: Any, axis: int) -> Any:
    """With an axis moved behind the others."""
    if axis == -1:
        return x
    last = axis_of(axis, x.ndim, "vecdot")
    return x.transpose((*(d for d in range(x.ndim) if d != last), last))


@provides("masked outer")
def outer(a: Any, b: Any, /) -> MaskedTensor:
    """The products of all elements of one vector with all of another, where both are specified."""
    return products.einsum("i,j->ij", a, b)


@provides("masked nonzero")
def nonzero(m: MaskedTensor, /) -> tuple[Tensor, ...]:
    """The coordinates of the specified elements that are not zero, one vector for each dimension."""
    return tuple(Tensor._from_dense(c) for c in m.nonzero())


@provides("masked astype")
def astype(m: MaskedTensor, dtype: Any, /, *, copy: Any = True, device: Any = None) -> MaskedTensor:
    """The elements in another dtype, over the same structure."""
    return m.astype(dtype)


@provides("masked result_type")
def result_type(*operands: Any) -> Any:
    """The dtype of an operation on these operands, of which some are masked."""
    return dtypes.result_type(*map(_plain, operands))


@provides("masked can_cast")
def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether promotion turns the dtype of a masked tensor into the dtype `to`."""
    return dtypes.can_cast(_plain(from_), to)


def _plain(x: Any) -> Any:
    return x._tensor if isinstance(x, MaskedTensor) else x
