"""The namespace with every array that a caller makes in one sparse format: what array-api-tests is given to test.

OPENWORK_INPUTS names the format; COO stands in where it has no such rank, and "mixed" takes one of six by turns.
"""

from __future__ import annotations

import os
import sys
import types
from functools import wraps
from itertools import cycle
from typing import Any

import openwork as ow

FORMAT = os.environ.get("OPENWORK_INPUTS", "coo")
_MIXED = cycle(("coo", "csr", "csf", "dense", "bitmap", "dcsr"))

__array_api_version__ = ow.__array_api_version__


def chosen(t: ow.Tensor) -> ow.Tensor:
    """The tensor in the format."""
    for name in (next(_MIXED) if FORMAT == "mixed" else FORMAT, "coo"):
        try:
            return t.asformat(name) if t.ndim else t
        except (ow.FormatError, ow.UnsupportedError):
            continue
    return t


@wraps(ow.asarray)
def asarray(obj: Any, /, **options: Any) -> ow.Tensor:
    out = ow.asarray(obj, **options)
    return out if isinstance(obj, ow.Tensor) or options.get("copy") is False else chosen(out)


@wraps(ow.arange)
def arange(*args: Any, **options: Any) -> ow.Tensor:
    return chosen(ow.arange(*args, **options))


@wraps(ow.linspace)
def linspace(*args: Any, **options: Any) -> ow.Tensor:
    return chosen(ow.linspace(*args, **options))


class _Namespace(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(ow, name)

    def __dir__(self) -> list[str]:
        return dir(ow)


sys.modules[__name__].__class__ = _Namespace
