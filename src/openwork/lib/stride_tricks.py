"""An array -> its windows: NumPy's module of that name."""

from ..ops.numpy_names.windows import sliding_window_view

__all__ = ["sliding_window_view"]
