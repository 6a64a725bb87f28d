"""A torch function and its arguments -> the error that torch gives of dense tensors of these shapes and dtypes.

torch checks arguments on its meta device as it does anywhere, with tensors that have no elements. What it refuses there
is refused of Tensors, in its words. Beyond torch go dtypes alone: operands of several dtypes are promoted, and whole
numbers are taken where torch wants real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from ...errors import DTypeError, ShapeError
from ...integers import AxisError
from ...tensor.tensor import Tensor

__all__ = ["refusal", "refused"]

_PLAIN = (int, float, bool, complex, str, type(None), slice, torch.dtype, torch.device, torch.memory_format)
_UNANSWERED = ("meta ", "Meta ", "on meta", "sparse", "layout", "overflow")
"""What torch says where the meta device has no answer: elements, a layout, or a tensor that is too large."""


def refused(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """What torch raises of dense tensors like these; None where it takes them, or elements decide."""
    try:
        key = (_key(args), tuple([(k, _key(v)) for k, v in kwargs.items()]) if kwargs else ())
        found = refusal(function, key)
    except TypeError:  # an argument that torch alone knows about
        return None
    return None if found is None else found[0](found[1])


def _key(x: Any) -> Any:
    """An argument as what its meta counterpart depends on; TypeError for one of another kind."""
    kind = type(x)
    if kind is Tensor or isinstance(x, torch.Tensor):
        return _Like(tuple(x.shape), x.dtype)
    if kind in (tuple, list, torch.Size):
        return (list if kind is list else tuple, *map(_key, x))
    if kind in _PLAIN:
        return kind, x
    raise TypeError


class _Like(tuple[Any, ...]):
    """The shape and dtype of a tensor."""

    __slots__ = ()

    def __new__(cls, *parts: Any) -> _Like:
        return super().__new__(cls, parts)


@lru_cache(maxsize=4096)
def refusal(function: Callable[..., Any], key: tuple[Any, Any]) -> tuple[type[Exception], str] | None:
    """The type and text of the error that a call is to raise; None where torch takes it in some dtypes."""
    dtypes = [like[1] for like in _likes(key)]
    promoted = dtypes[0] if dtypes else torch.float64
    for dtype in dtypes:
        promoted = torch.promote_types(promoted, dtype)
    real = [d for d in dtypes if d.is_floating_point or d.is_complex]
    real_promoted = real[0] if real else torch.float64
    for dtype in real:
        real_promoted = torch.promote_types(real_promoted, dtype)
    first: Exception | None = None
    attempts: tuple[Callable[[int, torch.dtype], torch.dtype], ...] = (
        lambda k, d: d,
        lambda k, d: real_promoted if d in real else d,
        lambda k, d: promoted,
        lambda k, d: real_promoted if not k else d,
    )
    for dtype_of in attempts:
        try:
            args, kwargs = _made(key, dtype_of)
            with torch.no_grad():
                function(*args, **kwargs)
        except (TypeError, ValueError, IndexError, RuntimeError, AssertionError) as error:
            text = str(error)
            if isinstance(error, NotImplementedError) or any(word in text for word in _UNANSWERED):
                return None
            first = error if first is None else first
            continue
        except Exception:
            return None
        return None
    return _kind(first), f"{getattr(function, '__name__', function)}: {first}"


def _kind(error: Exception | None) -> type[Exception]:
    if isinstance(error, TypeError):
        return DTypeError
    return AxisError if isinstance(error, IndexError) else ShapeError


def _likes(key: Any) -> list[_Like]:
    if type(key) is _Like:
        return [key]
    return [like for part in key for like in _likes(part)] if type(key) is tuple else []


def _made(key: tuple[Any, Any], dtype_of: Callable[[int, torch.dtype], torch.dtype]) -> tuple[Any, dict[str, Any]]:
    """The arguments on the meta device, the k-th tensor of them in a dtype that depends on its own."""
    count = 0

    def made(part: Any) -> Any:
        nonlocal count
        if type(part) is _Like:
            shape, dtype = part
            tensor = torch.empty(shape, dtype=dtype_of(count, dtype), device="meta")
            count += 1
            return tensor
        kind, *rest = part
        return kind(map(made, rest)) if kind in (tuple, list) else rest[0]

    args, kwargs = key
    return made(args), {k: made(v) for k, v in kwargs}
