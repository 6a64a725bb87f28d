"""A message, or a call of NumPy that may warn -> a warning of the line that called the package, however deep it is.

warn("All-NaN slice encountered", RuntimeWarning)
values = telling("divide", partial(np.divide, x, y))     # NumPy by itself would name the line that calls it: ours
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

__all__ = ["telling", "warn"]

T = TypeVar("T")
_PACKAGE = f"{__name__.partition('.')[0]}."
_ELSEWHERE = frozenset(("call", "log"))
"""Ways of `np.errstate` that have a function of the user's."""


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn of the line that called the package; a text is of a category, a warning is of its own."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


def telling(name: str, function: Callable[[], T]) -> T:
    """What `function` makes by NumPy under `np.errstate`; warnings that this asks for are of operation `name`."""
    asked = np.geterr()
    kinds = {kind: "call" for kind, how in asked.items() if how == "warn"}
    if not kinds or _ELSEWHERE.intersection(asked.values()):
        return function()
    told: list[str] = []
    with np.errstate(call=lambda kind, _: told.append(kind), **cast("Any", kinds)):
        found = function()
    for kind in dict.fromkeys(told):
        warn(f"{kind} encountered in {name}", RuntimeWarning)
    return found
