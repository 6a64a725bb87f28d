"""The namespace's capabilities, devices and dtypes: the array API standard's inspection functions."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import DTypeError
from ..ir.types import COMPLEX, FLOATS, INTEGERS
from ..runtime.operation import operation
from ..storage.buffers import numpy_dtype
from ..tensor import dtypes

__all__ = ["NamespaceInfo", "__array_namespace_info__"]

_STANDARD_DTYPES = {s: str(numpy_dtype(s)) for s in ("bool", *INTEGERS, *FLOATS, *COMPLEX) if s not in ("f16", "bf16")}
"""The standard's dtypes: half precision is none of them."""


class NamespaceInfo:
    """Capabilities, devices and dtypes of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Data-dependent shapes are there; rank is limited by NumPy's 64 for dense results."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of a tensor that is made without one."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of tensors that are made without one."""
        return {
            "real floating": dtypes.float64,
            "complex floating": dtypes.complex128,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def devices(self) -> list[str]:
        """The CPU, and CUDA devices where torch is loaded and has some."""
        torch: Any = sys.modules.get("torch")
        count = 0 if torch is None else torch.cuda.device_count()
        return ["cpu", *(f"cuda:{k}" for k in range(count))]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes by name, of one kind or several where `kind` says so."""
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k is not None and k not in dtypes.KINDS:
                raise DTypeError(f"dtypes: {k!r} is not a kind of dtypes\n  supported: {', '.join(dtypes.KINDS)}")
        scalars = {s for k in kinds for s in (dtypes.KINDS[k] if k is not None else _STANDARD_DTYPES)}
        return {name: numpy_dtype(s) for s, name in _STANDARD_DTYPES.items() if s in scalars}


@operation(operands=False)
def __array_namespace_info__() -> NamespaceInfo:
    """Capabilities, devices and dtypes of this namespace, as the standard asks."""
    return NamespaceInfo()
