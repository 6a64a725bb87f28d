"""Decompositions of sparse tensors of any rank: a tensor and ranks -> factors, by alternating least squares.

Source: Kolda and Bader, Tensor Decompositions and Applications, SIAM Review 51(3), 2009.
"""

from __future__ import annotations

from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from .cp import CP, cp_als
from .tucker import Tucker, tucker

__all__ = ["CP", "Tucker", "cp_als", "tucker"]

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_document_all(globals(), __all__)
