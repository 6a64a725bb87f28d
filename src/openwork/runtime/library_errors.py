"""An array library's error about an array's size, or a dtype without a kernel -> one that names the operation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import DTypeError, SizeError, UnsupportedError
from ..integers import AxisError
from ..storage.buffers import device_of, elsewhere, is_torch
from ..storage.storage import LARGEST

__all__ = ["FAILURES", "check_memory", "check_room", "explain", "library_error", "sized"]

F = TypeVar("F", bound=Callable[..., Any])

FAILURES = (MemoryError, ValueError, OverflowError, RuntimeError)
"""Types of errors that array libraries raise for an array that is too large, and for a dtype without a kernel."""
_PHRASES = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "negative dimensions are not allowed",
    "too large to convert",
    "Storage size calculation overflowed",
    "can't allocate memory",
    "numel: integer multiplication overflow",
)


_NO_KERNEL = ("not implemented for '", "Overflow when unpacking long")
"""torch's words where it has no kernel for a dtype: of unsigned integers beyond uint8 for most operations."""


_BELOW = ("asarray", "full")
"""Functions that others call on what they are given: a refusal says the name of the other."""


def library_error(operation: str, error: BaseException, operands: Iterable[Any]) -> Exception | None:
    """The error of an operation on these operands, where the library's is about an array's size or dtype; else None.

    An error of our own about an axis or an operand gets the operation's name, and one about a tensor whose memory no
    kernel reaches says where the other operands are.
    """
    text = str(error)
    if isinstance(error, UnsupportedError) and text.startswith("a torch tensor "):
        buffers = [x._storage.values if hasattr(x, "_storage") else x for x in operands]
        devices = list(dict.fromkeys(device_of(x) for x in buffers if isinstance(x, np.ndarray) or is_torch(x)))
        if len(devices) > 1:
            return UnsupportedError(f"{operation}: {elsewhere(devices)}")
    if isinstance(error, AxisError | DTypeError | UnsupportedError) and operation not in _BELOW:
        below = next((name for name in _BELOW if text.startswith(f"{name}: ")), "")
        if below or text.startswith("axis "):
            return type(error)(f"{operation}: {text.removeprefix(below).removeprefix(': ')}")
    if isinstance(error, SizeError):
        inner = getattr(error, "operation", None)
        return None if inner is None else _size_error(operation, str(error).removeprefix(inner))
    if type(error) in (NotImplementedError, ValueError) and any(phrase in str(error) for phrase in _NO_KERNEL):
        dtypes = ", ".join(dict.fromkeys(str(x.dtype) for x in operands if hasattr(x, "dtype")))
        return DTypeError(
            f"{operation}: torch does not compute with {dtypes or 'this dtype'}: {error}"
            '\n  help: astype("int64"), or asarray(A, like="numpy")'
        )
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if isinstance(error, MemoryError) and isinstance(shape, tuple) and dtype is not None:
        extents, itemsize = shape, np.dtype(dtype).itemsize
    elif type(error).__module__ == "builtins" and any(phrase in str(error) for phrase in _PHRASES):
        tensors = [(x.size, tuple(x.shape), x.dtype) for x in operands if hasattr(x, "_storage")]
        if not tensors:
            expected = "expected: no more than there is memory for"
            return _size_error(operation, f": {error}\n  {expected}\n  help: ask for less")
        _, extents, kind = max(tensors, key=lambda f: f[0], default=(0, (), np.dtype(np.float64)))
        itemsize = getattr(kind, "itemsize", 8)
    elif isinstance(error, MemoryError) and str(error).startswith("no memory for "):
        return _size_error(operation, f": {error}\n  help: take a part of the tensor")
    else:
        return None
    count = math.prod(extents)
    of_tensor = (x.shape for x in operands if hasattr(x, "_storage") and x.size == count)
    shape = tuple(map(int, next(of_tensor, extents)))  # rather than the flat array's
    return _size_error(
        operation,
        f": an array of shape {shape} has {count * itemsize:,} bytes\n  expected: no more than there is memory for"
        f"\n  help: {_REMEDY}",
    )


_REMEDY = "take a part of the tensor, A[rows], or an operation of its stored elements only; to_scipy() stays sparse"


def _size_error(operation: str, text: str) -> SizeError:
    """The error of an operation, which one that called it says under its own name."""
    error = SizeError(f"{operation}{text}")
    error.operation = operation  # type: ignore[attr-defined]
    return error


def explain(operation: str, error: BaseException, operands: Iterable[Any]) -> None:
    """Raise the error of an operation on these operands that says what the library's means, where there is one."""
    explained = library_error(operation, error, operands)
    if explained is not None:
        raise explained from None


def check_room(operation: str, count: int, itemsize: int = 8) -> None:
    """Raise SizeError for more elements than any memory could hold."""
    if count * itemsize > LARGEST:
        raise SizeError(
            f"{operation}: {count:,} elements have {count * itemsize:,} bytes\n  expected: at most {LARGEST:,}"
            "\n  help: ask for fewer"
        )


def check_memory(operation: str, nbytes: int, what: str) -> None:
    """Raise SizeError where dense arrays of so many bytes are more than the memory of the machine, or of its group.

    A library that fills them a page at a time would be ended by the system instead.
    """
    memory = _memory()
    if memory is not None and nbytes > memory:
        raise SizeError(
            f"{operation}: {what} have about {nbytes:,} bytes\n  expected: at most the memory, {memory:,} bytes"
            "\n  help: ask for fewer, or take a part of the tensor"
        )


def _memory() -> int | None:
    """The bytes of memory that this process may have at most; None where the system does not say."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        return None
    with suppress(OSError, ValueError):  # no such file, or "max"
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(limits)


def sized(function: F) -> F:
    """The function or method, which raises SizeError where an array library has no room for a dense array."""
    name = function.__name__.strip("_")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except FAILURES as error:
            explain(name, error, args)
            raise

    return cast("F", call)
