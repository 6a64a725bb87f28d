"""A Tensor and a library -> the Tensor over that library's buffers; operands of two libraries -> all over torch's.

The rule of mixed operands: torch's library is the result's. So a torch operand that is recorded makes the result
recorded, whatever stands beside it. Memory on the CPU is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..provided import provides
from ..storage.buffers import (
    PLAIN_TENSORS,
    as_array,
    buffer_of,
    is_array,
    is_torch,
    of_torch,
    refuse_stand_in,
    torch_module,
)
from ..storage.storage import Storage
from ..storage.structure import keep
from .tensor import Tensor

__all__ = ["in_library", "one_library", "over_torch", "storage_over_torch", "tensor_over_torch", "typed_like"]


def one_library(*operands: Any) -> Sequence[Any]:
    """Tensors and arrays over buffers of one library: torch's where one of them is. Others, numbers say, stay.

    Raises UnsupportedError for a torch tensor without memory.
    """
    first: Any = None
    numpy = False
    for x in operands:
        values = x._raw_storage.values if type(x) is Tensor else x
        if values is x and (s := getattr(x, "_storage", None)) is not None:
            values = s.values
        if type(values) is np.ndarray:
            numpy = True
        elif type(values) in PLAIN_TENSORS or is_torch(values):
            if values is x and type(x) not in PLAIN_TENSORS:
                refuse_stand_in(x)
            first = values if first is None else first
    return [_moved(x, first) for x in operands] if numpy and first is not None else operands


def _moved(x: Any, like: Any) -> Any:
    if isinstance(x, Tensor):
        return tensor_over_torch(x, like)
    return as_array(x, like=like) if isinstance(x, np.ndarray) and x.ndim else x


def tensor_over_torch(t: Tensor, like: Any) -> Tensor:
    """The Tensor over torch buffers, on the device of `like`; itself where it is over torch buffers already."""
    s = t._storage
    return t if is_torch(s.values) else Tensor._from_storage(storage_over_torch(s, like))


def storage_over_torch(s: Storage, like: Any) -> Storage:
    """The storage over torch buffers, on the device of `like`; its structure is made once and kept with that of `s`."""
    if is_torch(s.values):
        return s
    if not like.is_cpu:
        return s.mapped(lambda b: as_array(b, like=like))
    facts = s.facts
    made: Storage | None = facts.get("over torch")
    if made is None:
        made = s.mapped(lambda b: as_array(b, like=like))
        keep(facts, "over torch", made.with_values(made.values[:0]))
        return made
    return made.with_values(as_array(s.values, like=like))


@provides("over_torch")
def over_torch(t: Tensor, device: Any = None) -> Tensor:
    """The Tensor over torch buffers, of that device where one is given; see `in_library`."""
    return tensor_over_torch(t, _torch_array(device))


def typed_like(t: Tensor, dtype: Any) -> Tensor:
    """The Tensor over buffers of torch where the dtype asked of a result is torch's own."""
    return tensor_over_torch(t, _torch_array(None)) if of_torch(dtype) else t


def in_library(t: Tensor, like: Any, operation: str, copy: bool | None = None) -> Tensor:
    """The Tensor over buffers of a library: the module or its name, or whatever has such buffers, an array or a Tensor.

    copy : False raises ValueError where memory cannot be shared, from or to another device

    Raises UnsupportedError for another library, and for torch values that are recorded where NumPy's are wanted.
    """
    name = like.__name__ if isinstance(like, ModuleType) else like
    buffer = buffer_of(like)
    if name == "torch":
        target: Any = _torch_array(None)
    elif name == "numpy":
        target = np.empty(0)
    elif is_array(buffer):
        target = buffer
    else:
        raise UnsupportedError(
            f"{operation}: like={like!r}\n  supported: numpy, torch, their names, an array or a Tensor"
            '\n  help: like="torch"'
        )
    s = t._storage
    if isinstance(s.values, np.ndarray) is isinstance(target, np.ndarray):
        return t
    if copy is False and (s.device != "cpu" or (is_torch(target) and not target.is_cpu)):
        raise ValueError(f"{operation}: copy=False, but another device's memory is copied\n  help: leave copy out")
    if is_torch(target):
        return tensor_over_torch(t, target)
    return Tensor._from_storage(s.mapped(lambda b: as_array(b, like=target)))


def _torch_array(device: Any) -> Any:
    """An empty torch tensor on a device, the CPU's without."""
    torch = torch_module()
    try:
        return torch.empty(0, device="cpu" if device is None else device)
    except (RuntimeError, AssertionError, ImportError, TypeError) as error:
        raise UnsupportedError(f"device {str(device)!r} is not available{_reason(error)}\n  help: use 'cpu'") from error


def _reason(error: Exception) -> str:
    """The first sentence of torch's error, without what is torch's own business."""
    text = str(error).partition("\n")[0].partition(". ")[0]
    return f": {text}" if len(text) <= 200 and "INTERNAL ASSERT" not in text and "'aten::" not in text else ""
