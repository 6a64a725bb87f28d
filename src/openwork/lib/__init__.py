"""NumPy's `lib` of this namespace: the modules whose functions libraries ask of an array namespace, as xarray does."""

from . import stride_tricks

__all__ = ["stride_tricks"]
