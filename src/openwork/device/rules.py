"""The rules of a result on a device: those of the host's operation, asked of tensors of the same types, but tiny.

What a function makes of dtypes, fill values and formats, and which of them it refuses, is the same on all devices.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..format.format import Format
from ..masked.tensor import MaskedTensor, wrap
from ..runtime.operation import namespace
from ..storage.buffers import numpy_dtype, scalar_of
from ..tensor.tensor import Tensor
from .tensor import DeviceTensor

__all__ = ["Result", "result_of"]

SMALL = 8


class Result(NamedTuple):
    """What is known of a result beforehand."""

    format: Format
    scalar: str
    fill_value: Any


def result_of(name: str, *operands: Any) -> Result:
    """The rule of a function of tensors, and of numbers. Raises what it raises on the host."""
    return _result(name, tuple(map(_kind, operands)))


def _kind(x: Any) -> Any:
    """A hashable description of an operand."""
    if hasattr(x, "specified"):
        return ("masked", _kind(x.specified), x.is_number)
    if not isinstance(x, DeviceTensor):
        return ("number", type(x), repr(x), _Value(x))
    multiple = max([SMALL, *(level.format.arguments[1] for level in x.format.levels if level.format.is_structured)])
    shape = tuple(n if n <= 1 else multiple for n in x.shape)
    return ("tensor", x.format, x.scalar, repr(x.fill_value), _Value(x.fill_value), shape)


class _Value:
    """A number in a key, equal to all: its text is in the key too."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4096)
def _result(name: str, kinds: tuple[Any, ...]) -> Result:
    operands: list[Any] = []
    for kind in kinds:
        operands.append(wrap(_tensor(kind[1]), kind[2]) if kind[0] == "masked" else _tensor(kind))
    with np.errstate(all="ignore"):
        result = getattr(namespace(), name)(*operands)
    if isinstance(result, MaskedTensor):
        result = result.specified
    if not isinstance(result, Tensor):
        result = Tensor._from_dense(np.asarray(result))
    s = result._storage
    return Result(s.format, scalar_of(s.values), s.fill_value)


def _tensor(kind: tuple[Any, ...]) -> Any:
    """A number, or a tensor of a kind."""
    if kind[0] == "number":
        return kind[3].value
    _, format, scalar, _, fill, shape = kind
    dense = Tensor._from_dense(np.full(shape, fill.value, numpy_dtype(scalar)))
    return dense if format.is_dense else _sparse(dense, format, fill.value)


def _sparse(dense: Tensor, format: Format, fill: Any) -> Tensor:
    return dense.with_values(dense._storage.values, fill_value=fill).asformat(format)
