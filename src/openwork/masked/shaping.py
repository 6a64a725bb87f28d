"""Structural operations on masked tensors: each is the operation on the one Tensor, in a format that fits any mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import openwork as ow

from .. import DTypeError, ShapeError, Tensor, UnsupportedError
from ..integers import integers
from ..ops import mask_formats as forms
from ..ops.axes import axis_of
from ..ops.indexing.assign import assign
from ..ops.indexing.taking import values_at
from ..provided import provides
from ..runtime.operation import block
from ..storage.buffers import as_array, cast, is_array, to_numpy
from .construct import strided_tensor
from .structure import in_one_library, pattern, settled
from .tensor import MaskedTensor, wrap

if TYPE_CHECKING:
    from .tensor import MaskedTensor

__all__ = ["concat", "item_at", "moved", "pad", "put", "shaped", "split", "stack"]


def shaped(function: Callable[..., Tensor], m: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    """A structural function of the one Tensor, its result in a format that fits any mask."""
    return _settled(function(m._tensor, *args, **kwargs), m)


@provides("masked moved")
def moved(name: str, m: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    """The operation of this name, which only moves elements, of the one Tensor."""
    return shaped(block(name).function, m, *args, **kwargs)


def _settled(t: Tensor, like: MaskedTensor) -> MaskedTensor:

    return wrap(settled(t, like.format))


@provides("masked item_at")
def item_at(m: MaskedTensor, key: Any) -> MaskedTensor:
    """`m[key]`, with every key that a Tensor takes; a bool masked tensor asks for what is specified and True."""

    parts = key if isinstance(key, tuple) else (key,)
    parts = tuple(_host(p) if isinstance(p, MaskedTensor) else p for p in parts)
    if m._scalar:
        if all(p is Ellipsis for p in parts):
            return m
        if any(p is not None and p is not Ellipsis for p in parts):
            raise IndexError("too many indices for a masked tensor of rank 0")
        return reshape(m, (1,) * parts.count(None))
    numbers = [p for p in parts if _is_number(p)]
    if len(numbers) == m.ndim and all(_is_number(p) or p is Ellipsis for p in parts):
        places = tuple(_place(int(p), n) for p, n in zip(numbers, m.shape, strict=True))
        return reshape(_settled(m._tensor[tuple(slice(p, p + 1) for p in places)], m), ())
    return _settled(m._tensor[parts], m)


def _is_number(p: Any) -> bool:
    return isinstance(p, int | np.integer) and not isinstance(p, bool | np.bool_)


def _place(p: int, n: int) -> int:
    if not -n <= p < n:
        raise IndexError(f"index {p} is out of bounds for an extent of {n}")
    return p % n


def _host(m: MaskedTensor) -> np.ndarray[Any, Any]:
    return m.to_numpy(False if str(m.dtype).endswith("bool") else 0)


@provides("masked put")
def put(m: MaskedTensor, key: Any, value: Any) -> MaskedTensor:
    """The masked tensor with `value` at a key: what it specifies is specified, what it misses is missing.

    value : scalar or array, specified everywhere; masked tensor; None makes the elements missing
    """

    t, marks = m._tensor, pattern(m._tensor._storage)
    if value is None:
        values, here = t, np.asarray(False)
    elif isinstance(value, MaskedTensor):
        values, here = assign(t, key, _plain(value.to_tensor(0))), to_numpy(value.to_dense().get_mask().to_dense())
    else:
        values, here = assign(t, key, _plain(value) if is_array(value) else value), np.asarray(True)
    marks = assign(marks, key, here).prune().asformat(forms.fitting(m.format))
    s = marks._storage
    storage = s.with_values(values_at(values, s), values.fill_value)
    return wrap(Tensor._from_storage(storage), m._scalar)


def _plain(x: Any) -> Any:
    return to_numpy(x)


@provides("masked concat")
def concat(parts: Sequence[MaskedTensor], axis: int | None = 0) -> MaskedTensor:
    """The masked tensors one behind the other along an axis, flattened first for None; in the format of the first.

    Cost: O(nse).
    See also: stack, pad.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.concat([m, m]))
    MaskedTensor(
      [  1.0000,   2.0000,       --,   1.0000,   2.0000,       --]
    )
    """
    return _settled(ow.concat(_alike(parts), axis=axis), parts[0])


@provides("masked stack")
def stack(parts: Sequence[MaskedTensor], axis: int = 0) -> MaskedTensor:
    """The masked tensors side by side along a new axis, in the format that the first has with one more.

    Cost: O(nse).
    See also: concat.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> ow.masked.stack([m, m]).shape
    (2, 3)
    """
    if parts and parts[0]._scalar:
        return concat(parts)
    return _settled(ow.stack(_alike(parts), axis=axis), parts[0])


def _alike(parts: Sequence[MaskedTensor]) -> list[Tensor]:
    if not parts:
        raise ShapeError("concat: no tensors\n  help: give one or more")
    for p in parts:
        if not hasattr(p, "_tensor"):
            raise UnsupportedError(
                f"concat: masked tensors with {type(p).__name__}"
                "\n  help: as_masked_tensor(x, mask) says what is specified"
            )
    tensors = [p._tensor for p in in_one_library(*parts)]
    return [t.asformat(forms.related(parts[0].format, p.ndim)) for t, p in zip(tensors, parts, strict=True)]


def pad(m: MaskedTensor, widths: Sequence[tuple[int, int]], value: Any = None) -> MaskedTensor:
    """With `widths[d]` elements before and behind in dimension d: missing ones, or all of `value`.

    Cost: O(nse).
    See also: concat.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    >>> print(ow.masked.pad(m, [(1, 0)]))
    MaskedTensor(
      [      --,   1.0000,   2.0000,       --]
    )
    """

    widths = to_numpy(widths).tolist() if is_array(widths) else widths
    if not isinstance(widths, list | tuple):
        raise DTypeError(f"pad: widths are pairs of integers; got: {widths!r}\n  help: give [(before, behind), ...]")
    if len(widths) != m.ndim:
        raise ShapeError(f"pad: {len(widths)} pairs of widths for {m.ndim} dimensions\n  help: give one for each")
    out = m
    for d, pair in enumerate(widths):
        parts = []
        for n in integers(pair, "pad", "a width"):
            shape = (*out.shape[:d], n, *out.shape[d + 1 :])
            data = np.full(shape, 0 if value is None else value)
            edge = cast(as_array(data, like=m.values), m._tensor._storage.scalar)
            bits = as_array(np.full(shape, value is not None), like=m.values)
            parts.append(strided_tensor(edge, bits).asformat(forms.related(m.format, m.ndim)))
        out = concat([parts[0], out, parts[1]], d)
    return out


@provides("masked split")
def split(m: MaskedTensor, sizes: int | Sequence[int], axis: int = 0) -> tuple[MaskedTensor, ...]:
    """Parts along an axis, of one size or of the sizes given."""
    d = axis_of(axis, m.ndim, "split")
    n = m.shape[d]
    cuts = list(sizes) if not isinstance(sizes, int) else [min(sizes, n - k) for k in range(0, n, sizes)]
    ends = np.cumsum(cuts).tolist()
    begins = [end - size for end, size in zip(ends, cuts, strict=True)]
    return tuple(item_at(m, (*(slice(None),) * d, slice(b, e))) for b, e in zip(begins, ends, strict=True))


@provides("masked reshape")
def reshape(m: MaskedTensor, shape: int | Sequence[int]) -> MaskedTensor:
    """The elements in another shape, row-major; -1 stands for what is left."""

    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    if wanted == ():
        if m.size != 1:
            raise ShapeError(f"reshape: {m.size} elements do not fit shape ()\n  help: index it, or reduce it")
        if m._scalar:
            return m
        return _one_element(m, ())
    if m.size == 1 and set(wanted) <= {1, -1} and wanted.count(-1) < 2:  # a Tensor's is dense and has no mask
        return _settled(_one_element(m, (1,) * len(wanted))._tensor, m)
    return shaped(ow.reshape, m, wanted)


def _one_element(m: MaskedTensor, shape: Sequence[int]) -> MaskedTensor:
    """The dense masked tensor of a shape of ones that holds the one element of `m`, missing or not."""
    value, held = (t.to_dense() for t in (m._tensor, pattern(m._tensor._storage)))
    return strided_tensor(value.reshape(tuple(shape)), held.reshape(tuple(shape)))


@provides("masked transpose")
def transpose(m: MaskedTensor, axes: Sequence[int] | None = None) -> MaskedTensor:
    """The dimensions in another order, reversed without one, over the same buffers."""

    if m._scalar:
        return m
    return wrap(m._tensor.transpose(tuple(axes)) if axes is not None else m._tensor.transpose())
