"""`scipy.sparse.csgraph` over arrays of ours, whose buffers it takes as they are."""

from __future__ import annotations

import scipy.sparse.csgraph as scipys

from ...namespaces import listing
from .module import bridged, names

__all__ = names(scipys)
__dir__ = listing(__name__, __all__)

for _name in __all__:
    _found = getattr(scipys, _name)
    globals()[_name] = bridged(_found) if callable(_found) and not isinstance(_found, type) else _found
