"""`numpy.lib.stride_tricks` on Tensors: an array and the extents of a window -> all its windows, as a sparse copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...integers import extents
from ..axes import as_tensor, axis_of
from ..manipulation.joining import stack
from .registry import numpy_function

__all__ = ["sliding_window_view"]


@numpy_function("lib.stride_tricks.sliding_window_view", "lib._stride_tricks_impl.sliding_window_view")
def sliding_window_view(
    x: Any, window_shape: int | Sequence[int], axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:  # fmt: skip
    """Every window of the extents `window_shape` along the axes, the window's dimensions last: NumPy's values.

    Memory of its own: an element is stored once for each window that has it.
    """
    t = as_tensor(x)
    window = extents(window_shape, "sliding_window_view", "window_shape")
    named_axes = range(t.ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    axes = [axis_of(a, t.ndim, "sliding_window_view") for a in named_axes]
    if len(axes) != len(window):
        raise ShapeError(f"sliding_window_view: {len(window)} extents for {len(axes)} axes\n  help: one for each axis")
    windows = t
    for a, n in zip(axes, window, strict=True):
        count = windows.shape[a] - n + 1
        if n < 1 or count < 1:
            raise ShapeError(
                f"sliding_window_view: a window of {n} along axis {a} of extent {windows.shape[a]}"
                "\n  help: a window has from 1 to that many elements"
            )
        key = [slice(None)] * windows.ndim
        parts = []
        for k in range(n):
            key[a] = slice(k, k + count)
            parts.append(windows[tuple(key)])
        windows = stack(parts, axis=-1)
    return windows
