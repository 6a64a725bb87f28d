"""NumPy's `lib` of this namespace: the modules whose functions libraries ask of an array namespace, as xarray does."""

from ..namespaces import listing as _listing
from . import stride_tricks

__all__ = ["stride_tricks"]

__dir__ = _listing(__name__, __all__)
