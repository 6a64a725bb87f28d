"""An elementwise expression and scalar types -> typed loop IR, promoted as the array library does on dense arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...classes import frozen
from ...compiler.scalar_arguments import is_number, representative
from ...errors import DTypeError
from ...ir.arithmetic import of_numbers
from ...ir.index import PRESENCE, Access, Apply, Expression, Literal
from ...ir.loop import Cast, Expr, Op, Var
from ...ir.operations import with_trait
from ...ir.ops import COMPARISONS, LOGICAL, cast, const, op
from ...ir.types import Type
from ...storage.buffers import numpy_dtype, scalar_of, torch_dtype
from ..values import apply

__all__ = ["typed"]

_KEEP = with_trait("own-type")
"""Operations of one operand that are computed in its own type, whatever the result's."""


def typed(e: Expression, scalars: Mapping[str, str], library: str = "numpy") -> Expr:
    """The expression in loop IR, over variables named as its tensors, promoted operation by operation.

    Numbers are weak, as Python scalars are for the array libraries. Half precision is rounded after every operation.
    Raises DTypeError where the library refuses an operation.
    """
    value = _typed(e, scalars, library)
    if isinstance(value, Expr):
        return value
    return const(value, _scalar_of_number(value))


def _scalar_of_number(value: Any) -> str:
    return {bool: "bool", int: "i64", float: "f64", complex: "c128"}[type(value)]


def _typed(e: Expression, scalars: Mapping[str, str], library: str) -> Any:
    match e:
        case Access(tensor, _):
            return _PassedNumber(tensor) if is_number(tensor) else Var(tensor, Type(scalars[tensor]))
        case Literal(value):
            return value
        case Apply(name, args):
            values = [_typed(a, scalars, library) for a in args]
            if not any(isinstance(v, Expr) for v in values):
                if name in PRESENCE:
                    return values[0]
                return of_numbers(name, values)
            return _apply(name, values, library)
    raise DTypeError(f"{e} is not an expression")


def _apply(name: str, args: list[Any], library: str) -> Expr:
    kinds = tuple(a.type.scalar if isinstance(a, Expr) else a.weak if isinstance(a, _PassedNumber) else a for a in args)
    if name in PRESENCE:
        first = args[0] if isinstance(args[0], Expr) else _cast_to(args[0], _own_type(args[0]))
        return Op(name, (first, _cast_to(args[1], first.type.scalar)), first.type)
    out, computed = _signature(name, kinds, library)
    if name == "abs" and _own_type(args[0]) == "bool":
        return _cast_to(args[0], out)
    if name == "select":
        cond = _cast_to(args[0], "bool")
        return op("select", cond, _cast_to(args[1], out), _cast_to(args[2], out))
    result = op(name, *(_cast_to(a, computed or _own_type(a)) for a in args))
    result = cast(result, out)
    if out in ("f16", "bf16") and not isinstance(result, Cast):
        return Cast(result, result.type)
    return result


@frozen
class _PassedNumber:
    """A number that the kernel is passed, weak as a Python scalar."""

    name: str

    @property
    def weak(self) -> float:
        return representative(self.name)


def _own_type(a: Any) -> str:
    if isinstance(a, _PassedNumber):
        return "f64"
    return a.type.scalar if isinstance(a, Expr) else _scalar_of_number(a)


def _cast_to(a: Any, scalar: str) -> Expr:
    if isinstance(a, _PassedNumber):
        a = Var(a.name, Type("f64"))
    return cast(a, scalar) if isinstance(a, Expr) else const(a, scalar)


@lru_cache(maxsize=4096)
def _types_of(name: str, kinds: tuple[Any, ...], weak: tuple[str, ...], library: str) -> tuple[str, str | None]:
    samples = [_sample(k, library) if isinstance(k, str) else k for k in kinds]
    if name == "select":
        return scalar_of(_common(samples[1:], library)), None
    if name in LOGICAL or name == "not":
        return "bool", "bool"
    if name in COMPARISONS:
        apply(name, *samples)
        return "bool", scalar_of(_common(samples, library))
    out = scalar_of(apply(name, *samples))
    return out, None if name in _KEEP else out


def _signature(name: str, kinds: tuple[Any, ...], library: str) -> tuple[str, str | None]:
    """The type of the result, and that in which operands are taken (None: their own)."""
    return _types_of(name, kinds, tuple(type(k).__name__ for k in kinds), library)


def _sample(scalar: str, library: str) -> Any:
    if library == "torch":
        import torch

        return torch.empty(0, dtype=torch_dtype(scalar))
    return np.empty(0, numpy_dtype(scalar))


def _common(samples: list[Any], library: str) -> Any:
    """An array of the type that operands promote to."""
    if library == "torch":
        import torch

        return torch.empty(0, dtype=torch.result_type(*samples))
    return np.empty(0, np.result_type(*samples))
