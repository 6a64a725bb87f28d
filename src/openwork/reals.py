"""Real arguments: what a caller gave -> Python floats, or an error that names the operation and the argument.

Every public parameter that is a real number goes through here: what has `__float__` is one (Python's and NumPy's
numbers, fractions, arrays and tensors of rank 0), text, complex numbers, sequences and None are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import DTypeError

__all__ = ["real"]


def real(value: Any, operation: str, name: str, *, boolean: bool = True) -> float:
    """`value` as a Python float; True and False are 1 and 0 where `boolean` says so, as in `integers.integer`.

    Raises DTypeError, a TypeError, for what is no real number.
    """
    if type(value) is float:
        return value
    try:
        no_number = isinstance(value, str | bytes | bytearray) or (not boolean and isinstance(value, bool | np.bool_))
        if no_number or getattr(value, "ndim", None):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise DTypeError(f"{operation}: {name} is a real number; got: {value!r}\n  help: give a float") from None
