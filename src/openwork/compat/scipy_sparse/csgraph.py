"""`scipy.sparse.csgraph` over arrays of ours, whose buffers it takes as they are."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import Any

import scipy.sparse.csgraph as scipys

from ...namespaces import listing
from .array import Array, wrapped
from .module import bridged, names

__all__ = names(scipys)
__dir__ = listing(__name__, __all__)

for _name in __all__:
    _found = getattr(scipys, _name)
    globals()[_name] = bridged(_found) if callable(_found) and not isinstance(_found, type) else _found


@wraps(scipys.laplacian)
def laplacian(csgraph: Any, *args: Any, **kwargs: Any) -> Any:
    bound = signature(scipys.laplacian).bind(csgraph, *args, **kwargs).arguments
    if bound.get("copy", True) or not isinstance(csgraph, Array):
        return bridged(scipys.laplacian)(csgraph, *args, **kwargs)
    view = csgraph._buffers.own()
    found = scipys.laplacian(view, *args, **kwargs)  # which may overwrite it
    csgraph._buffers.replace(view)
    parts = found if isinstance(found, tuple) else (found,)
    parts = tuple(csgraph if x is view else wrapped(x) for x in parts)
    return parts if isinstance(found, tuple) else parts[0]


@wraps(scipys.maximum_flow)
def maximum_flow(*args: Any, **kwargs: Any) -> Any:
    found = bridged(scipys.maximum_flow)(*args, **kwargs)
    found.flow = wrapped(found.flow)
    return found
