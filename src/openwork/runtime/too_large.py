"""An array library's error about an array that is too large -> a SizeError that names the operation and the bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import SizeError
from ..storage.storage import LARGEST

__all__ = ["FAILURES", "check_room", "size_error", "sized"]

F = TypeVar("F", bound=Callable[..., Any])

FAILURES = (MemoryError, ValueError, OverflowError, RuntimeError)
"""What may be about an array that is too large."""
_WORDS = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "negative dimensions are not allowed",
    "too large to convert",
    "Storage size calculation overflowed",
    "can't allocate memory",
    "numel: integer multiplication overflow",
)


def size_error(operation: str, error: BaseException, operands: Iterable[Any]) -> SizeError | None:
    """The error of an operation on these operands, where what the library raised is about an array's size."""
    if isinstance(error, SizeError):
        return None
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if isinstance(error, MemoryError) and isinstance(shape, tuple) and dtype is not None:
        extents, itemsize = shape, np.dtype(dtype).itemsize
    elif type(error).__module__ == "builtins" and any(words in str(error) for words in _WORDS):
        found = [(x.size, tuple(x.shape), x.dtype) for x in operands if hasattr(x, "_storage")]
        if not found:
            expected = "expected: no more than there is memory for"
            return SizeError(f"{operation}: {error}\n  {expected}\n  help: ask for less")
        _, extents, kind = max(found, key=lambda f: f[0], default=(0, (), np.dtype(np.float64)))
        itemsize = getattr(kind, "itemsize", 8)
    elif isinstance(error, MemoryError) and str(error).startswith("no memory for "):
        return SizeError(f"{operation}: {error}\n  help: take a part of the tensor")
    else:
        return None
    return SizeError(
        f"{operation}: an array of shape {tuple(map(int, extents))} has {math.prod(extents) * itemsize:,} bytes"
        "\n  expected: no more than there is memory for"
        "\n  help: take a part of the tensor, or an operation of its stored elements only"
    )


def check_room(operation: str, count: int, itemsize: int = 8) -> None:
    """Raise SizeError for so many elements where no memory could have that many bytes."""
    if count * itemsize > LARGEST:
        raise SizeError(
            f"{operation}: {count:,} elements have {count * itemsize:,} bytes\n  expected: at most {LARGEST:,}"
            "\n  help: ask for fewer"
        )


def sized(function: F) -> F:
    """The function or method, which raises SizeError where an array library has no room for a dense array."""
    name = function.__name__.strip("_")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except FAILURES as error:
            refused = size_error(name, error, args)
            if refused is None:
                raise
            raise refused from None

    return cast("F", call)
