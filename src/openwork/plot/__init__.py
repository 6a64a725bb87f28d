"""Tensors -> pictures by matplotlib: where elements are (`spy`), the tree of levels (`levels`), row lengths (`rows`).

Each draws on the axes that it is given, else on new ones, and returns them. matplotlib is imported when a picture is
asked for.
"""

from __future__ import annotations

from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from .pictures import rows, spy
from .tree import levels

__all__ = ["levels", "rows", "spy"]

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_document_all(globals(), __all__)
