"""Two dtypes of either library and NumPy's casting rule -> nothing, or DTypeError where the rule forbids it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError
from ..storage.buffers import numpy_dtype, scalar_name

__all__ = ["may_cast", "plain_dtype"]

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def plain_dtype(x: Any) -> np.dtype[Any]:
    """NumPy's dtype of an operand or of a dtype of either library."""
    dtype: np.dtype[Any] = numpy_dtype(scalar_name(x if isinstance(x, type) else getattr(x, "dtype", x)))
    return dtype


def may_cast(source: Any, target: Any, casting: str, name: str) -> None:
    """Raise DTypeError where NumPy's rule `casting` does not allow the conversion."""
    if casting not in _CASTINGS:
        raise DTypeError(f"{name}: casting={casting!r}\n  supported: {', '.join(_CASTINGS)}")
    a, b = plain_dtype(source), plain_dtype(target)
    if not np.can_cast(a, b, casting=casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"{name}: {a} to {b} is not allowed by casting={casting!r}\n  help: casting='unsafe', or astype first"
        )
