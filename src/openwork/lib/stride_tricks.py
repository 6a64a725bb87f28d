"""An array -> its windows: NumPy's module of that name."""

from ..namespaces import listing as _listing
from ..ops.numpy_names.windows import sliding_window_view
from ..runtime.documentation import document_all

__all__ = ["sliding_window_view"]

__dir__ = _listing(__name__, __all__)

document_all(globals(), __all__)
