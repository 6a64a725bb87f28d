"""The name of an elementwise operation, and arrays -> the result by NumPy's ufunc or torch's function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

from .. import tuning
from ..caller import telling
from ..errors import DTypeError, ShapeError, UnsupportedError, broadcast_error
from ..integers import common_shape
from ..interruptible import whole
from ..ir.arithmetic import expm1
from ..ir.operations import OPERATIONS, with_trait
from ..storage.buffers import Array, is_torch, one_device
from ..storage.scalars import IntegerRangeError
from ..tables import SPOKEN
from .overrides import is_long
from .zero_annihilation import vdot

__all__ = ["BINARY", "LIMITS", "UNARY", "apply", "apply_scalar", "apply_with_warnings", "function_of", "user_name"]

UNARY = {name: o.numpy for name, o in OPERATIONS.items() if o.numpy is not None and o.arity == 1}
"""Operation names of the loop IR, and NumPy's."""

BINARY = {
    **{name: o.numpy for name, o in OPERATIONS.items() if o.numpy is not None and o.arity == 2},
    "logaddexp": "logaddexp",
    "nextafter": "nextafter",
}
"""The same of two operands, with those that only the array libraries have."""

_NEVER_TORCH = frozenset((np.ndarray, float, int, bool, complex))


def user_name(op: str) -> str:
    """An operation as users know it, for messages: the namespace's name of what the loop IR calls `op`."""
    return "where" if op == "select" else SPOKEN.get(op, op)


_TORCH = {"min": "minimum", "max": "maximum", "conj": "conj_physical", "bnot": "bitwise_not",
          "shl": "bitwise_left_shift", "shr": "bitwise_right_shift"}  # fmt: skip
"""torch's names where they are neither those of the loop IR, which torch computes by itself, nor NumPy's."""


def _erf(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """SciPy's error function, in float64 of integers and bool; half precision is computed in single."""
    from scipy.special import erf

    if x.dtype.kind in "biu":
        return erf(x.astype(np.float64))  # type: ignore[no-any-return]
    half = x.dtype == np.float16
    result: np.ndarray[Any, Any] = erf(x.astype(np.float32) if half else x)
    return result.astype(np.float16) if half else result


_STANDARD: dict[str, Callable[..., Any]] = {
    "erf": _erf,
    "expm1": expm1,
    "round": lambda x: x.copy() if x.dtype.kind in "iu" else np.rint(x),
}
"""Functions of which NumPy's differ from the standard's, for arrays of NumPy."""
_SCALED = frozenset(("mul", "div"))
_EXACT = 2**53
"""Integers below are exact in float64."""
_VIEWS = ("real", "imag")
"""Operations that give every second element of a complex array."""


@cache
def function_of(name: str, torch_like: bool) -> Callable[..., Any]:
    """The function of an elementwise operation, NumPy's or torch's."""
    numpy_name = UNARY.get(name) or BINARY.get(name)
    if numpy_name is None:
        raise UnsupportedError(
            f"there is no elementwise operation {name!r}\n  supported: {', '.join((*UNARY, *BINARY))}"
        )
    if torch_like:
        import torch

        torch_name = _TORCH.get(name) or (name if hasattr(torch, name) else numpy_name)
        function: Callable[..., Any] = getattr(torch, torch_name)
        return function
    return _STANDARD.get(name) or cast("Callable[..., Any]", getattr(np, numpy_name))


def apply(name: str, *args: Any) -> Any:
    """The operation on arrays of one library and Python scalars; floating-point warnings are not raised."""
    if type(args[0]) not in _NEVER_TORCH and is_torch(args[0]):
        return _torch_apply(name, function_of(name, True), args)
    with np.errstate(all="ignore"):
        return apply_with_warnings(name, *args)


_SILENT = with_trait("silent")
_BOUNDED = frozenset(("add", "sub", "mul", "square"))
_FEW = tuning.DOT_IN_NUMPY
_LARGEST = 1e18
LIMITS = {np.dtype(np.float64): 1e300, np.dtype(np.float32): 1e36}
"""Squares of sizes up to which a sum or product of two numbers of the type does not overflow."""


def _is_quiet(name: str, args: tuple[Any, ...]) -> bool:
    """Whether NumPy warns of nothing in an operation on few floats: it cannot overflow, nor is it invalid.

    The dot products that decide it take a tenth of the time of `np.errstate`.
    """
    bounded = name in _BOUNDED or (name == "pow" and type(args[1]) in (int, float) and args[1] == 2)
    if not bounded and name not in _SILENT:
        return False
    for a in args:
        if type(a) is np.ndarray:
            limit = LIMITS.get(a.dtype)
            if limit is None or a.ndim != 1 or len(a) > _FEW or (bounded and not vdot(a, a) <= limit):
                return False
        elif (type(a) is not float and type(a) is not int) or not abs(a) <= _LARGEST:
            return False
    return True


def apply_with_warnings(name: str, *args: Any) -> Any:
    """The operation with NumPy's warnings as `np.errstate` asks, attributed to the line that called the package."""
    for a in args:
        if type(a) not in _NEVER_TORCH and is_torch(a):
            return _torch_apply(name, function_of(name, True), args)
    function = function_of(name, False)
    try:
        if name not in _VIEWS and _is_quiet(name, args):
            return function(*args)
        result = telling(function.__name__, lambda: whole(function, args, {}) if is_long(args) else function(*args))
        return np.array(result) if name in _VIEWS else result
    except ValueError as error:
        if name == "pow" and "negative integer power" in str(error):
            raise negative_power("a negative exponent") from None
        if _do_broadcast(args):
            raise
        raise _broadcast_error(name, args) from error
    except TypeError as error:
        kinds = ", ".join(str(getattr(a, "dtype", type(a).__name__)) for a in args)
        raise DTypeError(f"{user_name(name)} does not take {kinds}\n  help: convert with .astype(...)") from error
    except OverflowError as error:
        raise IntegerRangeError(f"{user_name(name)}: {error}\n  help: convert with .astype(...)") from error


class PowerError(DTypeError, ValueError):
    """An integer to the power of a negative integer, which is no integer; a ValueError as NumPy's."""


def negative_power(got: str) -> PowerError:
    """The error of an integer power whose exponent is `got`."""
    return PowerError(
        f"pow: integers to negative integer powers are not integers; got {got}\n  help: astype(float64) first"
    )


def _shapes(args: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return [tuple(getattr(a, "shape", ())) for a in args]


def _do_broadcast(args: tuple[Any, ...]) -> bool:
    """Whether the operands' shapes broadcast."""
    try:
        common_shape("", _shapes(args))
    except ValueError:
        return False
    return True


def _broadcast_error(name: str, args: tuple[Any, ...]) -> ShapeError:
    return broadcast_error(user_name(name), _shapes(args))


def _torch_apply(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if name in _COMMUTATIVE and type(args[1]) is type(args[0]):
        return _call(name, function, args)
    if name in _COMMUTATIVE and not is_torch(args[0]):
        args = args[::-1]
    if name in _SCALED and type(args[1]) is int and abs(args[1]) < _EXACT and args[0].is_floating_point():
        return function(args[0], float(args[1]))  # an integer that torch has to convert takes a microsecond more
    import torch

    if name == "imag" and not args[0].is_complex():
        return torch.zeros_like(args[0])
    if name == "sign" and (args[0].is_complex() or args[0].is_floating_point()):
        return _torch_sign(args[0])
    boxed = args if is_torch(args[0]) else (_boxed(args[0], args[1]), *args[1:])
    if len(boxed) == 2 and name in _TENSORS_ONLY and not is_torch(boxed[1]):
        boxed = (boxed[0], _call(name, _number_beside, boxed))
    if name == "pow" and is_torch(boxed[1]) and (boxed[0].is_complex() or boxed[1].is_complex()):
        ones = boxed[1] == 0  # torch's 0j ** 0j and inf ** 0j are NaN, NumPy's and those of kernels are 1
        base = boxed[0].to(torch.result_type(*boxed))  # whose rank, which decides about the dtype, may be another below
        boxed = (_call("where", torch.where, (ones, 1, base)), boxed[1])
    return _call(name, function, boxed)


def _call(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """torch's function of tensors, whose errors are DTypeError or ShapeError."""
    try:
        return function(*args).contiguous() if name in _VIEWS else function(*args)
    except (RuntimeError, TypeError) as error:
        if not _do_broadcast(args):
            raise _broadcast_error(name, args) from error
        one_device(user_name(name), *filter(is_torch, args))
        kinds = ", ".join(str(getattr(a, "dtype", type(a).__name__)) for a in args)
        raise DTypeError(
            f"{user_name(name)} does not take {kinds}: {error}\n  help: convert with .astype(...)"
        ) from error


def _torch_sign(x: Any) -> Any:
    """NaN of NaN, as NumPy's, where torch's is 0; of a complex number with one infinite part the direction of that."""
    import torch

    if not x.is_complex():
        return torch.where(torch.isnan(x), x.detach(), torch.sign(x))
    parts = torch.view_as_real(x.detach().resolve_conj())
    infinite = torch.isinf(parts)
    one = infinite.sum(-1, keepdim=True) == 1
    directions = torch.where(one, torch.where(infinite, torch.sign(parts), 0), torch.nan)
    return torch.where(torch.isfinite(x), torch.sgn(x), torch.view_as_complex(directions))


_COMMUTATIVE = frozenset(("add", "mul"))


def _boxed(number: Any, x: Any) -> Any:
    """A number as a tensor of rank 0 beside x: not in torch's default type, where that would round it."""
    import torch

    wide = type(number) in (float, complex) and x.dtype in (torch.float64, torch.complex128)
    return torch.as_tensor(number, dtype=torch.result_type(x, number) if wide else None)


def _number_beside(x: Any, number: Any) -> Any:
    """A number as a tensor of rank 0, of the dtype that torch gives the result of both."""
    import torch

    return torch.as_tensor(number, dtype=torch.result_type(x, number))


_TENSORS_ONLY = with_trait("tensors-only") | {"logaddexp", "nextafter"}


def apply_scalar(name: str, like: Array, *args: Any, loud: bool = False) -> Any:
    """The operation on elements of the dtype of `like` and Python scalars: a Python scalar; `loud`: with warnings.

    An argument that is a tuple (value,) is a value of the dtype, any other a weak scalar.
    """
    boxed: list[Any] = []
    for a in args:
        if isinstance(a, tuple):
            if is_torch(like):
                import torch

                boxed.append(torch.tensor([a[0]], dtype=like.dtype))
            else:
                boxed.append(np.array([a[0]], dtype=like.dtype))
        else:
            boxed.append(a)
    return (apply_with_warnings if loud else apply)(name, *boxed)[0].item()
