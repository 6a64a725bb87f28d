"""A tensor and pad widths -> the tensor with elements in front and behind along each dimension, as NumPy's `pad`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...integers import integers
from ...interop.sources import asarray
from ...provided import provided
from ...runtime.conversion.remap import IndexMap
from ...runtime.operation import operation
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from ..indexing.assign import assign
from ..indexing.taking import take
from ..result_format import remap_one

__all__ = ["pad"]

_INDEX_MODES = ("edge", "reflect", "symmetric", "wrap")
"""Modes whose padding consists of elements of the same fibre: an index array for each dimension."""


def _pairs(value: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """(before, after) for each dimension: one number, one pair, or a pair for each."""
    host = value.to_numpy() if isinstance(value, Tensor) else value
    if isinstance(host, dict):
        widths = {d: (host[k], host[k]) if np.ndim(host[k]) == 0 else tuple(host[k]) for k in host for d in [k % ndim]}
        return [widths.get(d, (0, 0)) for d in range(ndim)]
    try:
        table = np.broadcast_to(np.asarray(host, dtype=object), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: {name}={value!r} of {ndim} dimensions\n  expected: a number, (before, after), or that for each"
        ) from None
    return [(row[0], row[1]) for row in table]


def _source_coordinates(shape: tuple[int, ...], pad_width: Any, mode: str, options: dict[str, Any]) -> list[Any]:
    """For each dimension the coordinates that the padded elements are gathered from, None where nothing is added."""
    out = []
    for n, (before, after) in zip(shape, _widths(pad_width, len(shape)), strict=True):
        if not n and (before or after):
            raise ShapeError(f"pad: an extent of 0 has nothing for mode={mode!r}\n  help: mode='constant'")
        crd = np.arange(n)
        out.append(np.pad(crd, (before, after), mode=mode, **options) if before or after else None)  # type: ignore[call-overload]
    return out


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    widths = []
    for pair in _pairs(pad_width, ndim, "pad_width"):
        before, after = integers(pair, "pad", "pad_width")
        if before < 0 or after < 0:
            raise ShapeError(f"pad: pad_width={pad_width} is negative\n  help: slice the tensor")
        widths.append((before, after))
    return widths


@operation(method=True, masked=provided("masked pad"), shape="moved", dtype="same", fill="same", format="like")
def pad(
    x: Any, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0, reflect_type: str = "even"
) -> Any:
    """`x` with elements in front of and behind those along each dimension.

    Parameters
    ----------
    pad_width : how many: a number, (before, after), that for each dimension, or for some by {dimension: ...}
    mode : "constant", missing in masked tensors; "edge" repeats the last element, "reflect" and "symmetric" mirror,
        "wrap" begins again
    constant_values : as `pad_width`; what is the fill value is not stored
    reflect_type : "even", or "odd" where mirrored elements are subtracted from twice that at the edge

    Returns
    -------
    Tensor, dtype and fill value of `x`, in its format where that suits

    Cost: O(nse of the result). Raises ShapeError for widths that are no such numbers, UnsupportedError for modes whose
    elements depend on values.

    See also: concat, roll.

    Examples
    --------
    >>> ow.pad(ow.asarray([0, 2], format="coo"), 1).to_numpy()
    array([0, 0, 2, 0])
    """
    t = asarray(x.compute() if is_lazy(x) else x)
    if mode in _INDEX_MODES:
        options = {"reflect_type": reflect_type} if reflect_type != "even" else {}
        if options:
            raise UnsupportedError(f"pad: reflect_type={reflect_type!r}\n  supported: 'even'")
        for d, index in enumerate(_source_coordinates(t.shape, pad_width, mode, {})):
            t = t if index is None else take(t, index, axis=d)
        return t
    if mode not in ("constant", "empty"):
        raise UnsupportedError(f"pad: mode={mode!r}\n  supported: constant, empty, {', '.join(_INDEX_MODES)}")
    widths = _widths(pad_width, t.ndim)
    if not any(map(any, widths)):
        return t.clone()
    out = _pad_structure(t, widths)
    values = _pairs(constant_values if mode == "constant" else t.fill_value, t.ndim, "constant_values")
    for d, ((before, after), numbers) in enumerate(zip(widths, values, strict=True)):
        extent = out.shape[d]
        for side, number in zip((slice(0, before), slice(extent - after, extent)), numbers, strict=True):
            if side.start < side.stop and not _is_fill(number, out):
                out = assign(out, (*(slice(None),) * d, side), number)
    return out


def _pad_structure(t: Tensor, widths: list[tuple[int, int]]) -> Tensor:
    """The elements shifted by the first widths in the padded shape; the added ones are the fill value."""
    shape = tuple(n + before + after for n, (before, after) in zip(t.shape, widths, strict=True))

    def write(index_map: IndexMap) -> None:
        for d, (before, _) in enumerate(widths):
            if before:
                index_map.rises[d] = d
                index_map.coordinates.append(f"x{d} + {index_map.number(before)}")
            else:
                index_map.keep(d)

    return remap_one(t, shape, "pad", write, lambda a: np.pad(a, widths, constant_values=t.fill_value))


def _is_fill(value: Any, t: Tensor) -> bool:
    fill = t.fill_value
    return bool(value == fill or (value != value and fill != fill))
