"""Tensors between the host and devices, and arrays of a device's library as tensors."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import UnsupportedError
from ..interop.buffer_policy import BufferPolicy
from ..interop.from_torch import from_torch
from ..provided import provides
from ..runtime.formats import dense_format
from ..storage.buffers import is_torch, torch_module
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .adapter import Memory, adapter_of, is_device_name, register
from .cuda import cuda_of
from .interpreter import Interpreter
from .opencl import default_opencl, opencl_of
from .tensor import DeviceTensor, upload

__all__ = ["adopted", "array_of", "move", "over", "sent", "to_host"]

register("interpreter", lambda _: Interpreter())
register("opencl", default_opencl)
register("cuda", cuda_of)


@provides("device sent")
def sent(t: Tensor, device: str) -> DeviceTensor:
    """A Tensor's copy on a device of this name."""
    return upload(t, adapter_of(device))


@provides("device move")
def move(t: DeviceTensor, device: object) -> Any:
    """A device's tensor on the host, or on another device by way of it."""
    if device is None or (is_device_name(device) and adapter_of(str(device)) is t.adapter):
        return t
    return to_host(t).to(device)


def to_host(t: DeviceTensor) -> Tensor:
    """A copy of a tensor in NumPy's buffers. Raises UnsupportedError where torch records its values."""
    if t.graph is not None:
        raise UnsupportedError(f"to 'cpu': torch records the values on {t.device}\n  help: detach(), or A.values.cpu()")
    pos, crd = (tuple(None if b is None else b.to_numpy() for b in g) for g in (t.pos_buffers, t.crd_buffers))
    return Tensor._from_storage(Storage(t.shape, t.format, t.scalar, t.fill_value, pos, crd, t.memory.to_numpy()))


def array_of(x: Any) -> DeviceTensor | None:
    """The dense tensor over an array of a device's library, which keeps its memory; None of anything else."""
    if isinstance(x, DeviceTensor):
        return x
    if is_torch(x) and x.is_cuda:
        if x.layout is not torch_module().strided:
            return sent(from_torch(x, BufferPolicy(None), 0), str(x.device))
        memory = adapter_of(str(x.device)).given(x.detach())
        assert memory is not None
        dense = over(memory, tuple(x.shape))
        dense.graph = x.reshape(-1) if x.requires_grad else None
        return dense
    opencl: Any = sys.modules.get("pyopencl.array")
    if opencl is None or not isinstance(x, opencl.Array):
        return None
    memory = opencl_of(x.queue or x.allocator.queue).given(x)
    assert memory is not None
    return over(memory, tuple(x.shape))


def over(memory: Memory, shape: tuple[int, ...]) -> DeviceTensor:
    """The dense tensor of row-major memory."""
    none = (None,) * len(shape)
    return DeviceTensor(shape, dense_format(len(shape)), 0, none, none, memory)


@provides("device adopted")
def adopted(obj: Any, dtype: object, format: object, fill_value: Any, device: object) -> Any:
    """`asarray` of a tensor on a device, or of an array of its library."""
    t = array_of(obj)
    assert t is not None
    if fill_value not in (0, t.fill_value):
        if not t.format.is_dense:
            raise UnsupportedError(
                f"asarray: unspecified elements are {t.fill_value}, fill_value={fill_value} would change them"
                "\n  help: leave fill_value out, or make it dense first"
            )
        t = t.with_values(t.memory, python_scalar(fill_value, t.scalar))
    t = t if dtype is None else t.astype(dtype)
    t = t if format is None else t.asformat(format)
    return move(t, device)
