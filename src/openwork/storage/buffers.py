"""A NumPy array or torch tensor -> its scalar type, address, device, copies and casts, by one set of functions.

torch is imported only when a torch buffer is made; a tensor is recognised through `sys.modules`. A scalar type is named
as in the loop IR: "bool", "i32", "f64", "bf16", "c128", ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ..caller import telling
from ..checked import bounded
from ..errors import DTypeError, ShapeError, UnsupportedError, suggestion
from ..faults import reach
from .memory import reserve
from .recorded import (
    bare,
    has_memory,
    is_recorded,
    of_recording,
    outside,
    refuse_recorded,
    refuse_tracer,
    with_memory,
)

__all__ = [
    "PLAIN_TENSORS",
    "SCALARS",
    "Array",
    "address",
    "as_array",
    "buffer_of",
    "cast",
    "copied",
    "device_of",
    "dtype_of",
    "empty",
    "flat",
    "host_dtype",
    "host_values",
    "is_array",
    "is_contiguous",
    "is_dtype",
    "is_torch",
    "is_unrecorded",
    "itemsize",
    "length",
    "library_of",
    "numpy_dtype",
    "of_torch",
    "elsewhere",
    "one_device",
    "refuse_stand_in",
    "same_memory",
    "scalar_by_dtype",
    "scalar_name",
    "scalar_of",
    "strided_address",
    "to_numpy",
    "torch_dtype",
    "torch_module",
    "zeros",
]

Array: TypeAlias = Any
"""A NumPy array or a torch tensor."""

_NAMES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
SCALARS = tuple(_NAMES)
_BY_NAME = {name: scalar for scalar, name in _NAMES.items()}
_SIZES = {"bool": 1, "f16": 2, "bf16": 2, "c64": 8, "c128": 16}

_numpy: dict[str, np.dtype[Any]] = {s: np.dtype(name) for s, name in _NAMES.items() if s != "bf16"}


def itemsize(scalar: str) -> int:
    """Bytes of one element."""
    return _SIZES.get(scalar) or int(scalar[1:]) // 8


def torch_module() -> ModuleType:
    """torch; UnsupportedError that says how to install it where it is not there."""
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError("torch is not installed\n  help: pip install torch, or use NumPy's arrays") from error
    return torch  # type: ignore[no-any-return,unused-ignore]


def is_torch(x: object) -> bool:
    """Whether `x` is a torch tensor; never imports torch."""
    kind = type(x)
    if kind in PLAIN_TENSORS:
        return True
    return kind is not np.ndarray and _is_tensor(x)


PLAIN_TENSORS: set[type] = set()
"""torch's types of tensors whose functions are torch's own, from the first tensor on: its tensors and parameters."""


def _is_tensor(x: object) -> bool:
    """Whether `x` is a torch tensor of whatever type."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return False
    if type(x) is torch.Tensor:
        PLAIN_TENSORS.update((torch.Tensor, torch.nn.Parameter))
    return isinstance(x, torch.Tensor)


def is_array(x: object) -> bool:
    """Whether `x` is a NumPy array or a torch tensor."""
    return isinstance(x, np.ndarray) or is_torch(x)


def buffer_of(x: Any) -> Any:
    """The values of a Tensor; anything else, arrays say, itself."""
    s = getattr(x, "_storage", None)
    return x if s is None else s.values


def library_of(x: Array) -> str:
    """ "numpy" or "torch"."""
    return "numpy" if isinstance(x, np.ndarray) else "torch"


def device_of(x: Array) -> str:
    """ "cpu", or torch's name of the device."""
    return "cpu" if isinstance(x, np.ndarray) else str(x.device)


@cache
def numpy_dtype(scalar: str) -> np.dtype[Any]:
    """NumPy's dtype of a scalar type; bfloat16 comes from ml_dtypes."""
    if scalar != "bf16":
        return _numpy[scalar]
    try:
        import ml_dtypes
    except ImportError as error:
        raise DTypeError("NumPy has no bfloat16\n  help: pip install ml_dtypes, or use torch buffers") from error
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


@cache
def _bf16_bits() -> np.dtype[Any]:
    """ml_dtypes' bfloat16; without it a type of its bits, which NumPy moves as they are and refuses to compute with."""
    try:
        return numpy_dtype("bf16")
    except DTypeError:
        bits: np.dtype[Any] = np.dtype("V2")
        scalar_by_dtype[bits] = "bf16"
        return bits


def host_values(x: Array) -> np.ndarray[Any, Any]:
    """`x` as a NumPy array to compute with, detached: its memory, of bfloat16 without ml_dtypes a copy in float32,
    of torch's lazy conjugates and negatives a copy."""
    if is_torch(x) and (x.is_conj() or x.is_neg()):
        x = x.resolve_conj().resolve_neg()
    if is_torch(x) and scalar_of(x) == "bf16" and _bf16_bits().kind == "V":
        x = bare(x, all_of_batch=True).float()
    return to_numpy(x, detach=True)


def host_dtype(scalar: str) -> np.dtype[Any]:
    """The dtype that `host_values` has of a scalar type."""
    return numpy_dtype("f32" if scalar == "bf16" and _bf16_bits().kind == "V" else scalar)


@cache
@cache
def torch_dtype(scalar: str) -> Any:
    """torch's dtype of a scalar type."""
    return getattr(torch_module(), _NAMES[scalar])


def of_torch(x: object) -> bool:
    """Whether a dtype or device is one of torch's own objects."""
    return type(x).__module__ == "torch"


def one_device(operation: str, *buffers: Array) -> None:
    """Raise UnsupportedError for buffers on different devices, or on one that has no memory."""
    devices = list(dict.fromkeys(map(device_of, buffers)))
    if len(devices) > 1 or devices[0] == "meta":
        raise UnsupportedError(f"{operation}: {elsewhere(devices)}")


def elsewhere(devices: list[str]) -> str:
    """The message about operands on these devices."""
    return f"operands on {' and '.join(devices)}\n  expected: one device, with memory\n  help: to('cpu')"


def dtype_of(scalar: str, like: Array) -> Any:
    """The dtype of `scalar` in the library of `like`."""
    return numpy_dtype(scalar) if isinstance(like, np.ndarray) else torch_dtype(scalar)


def scalar_name(dtype: object) -> str:
    """The scalar type of anything that names a dtype: NumPy's, torch's, a Python type or a string.

    Raises DTypeError where there is none.
    """
    scalar_known = scalar_by_dtype.get(dtype) if isinstance(dtype, np.dtype) else None
    if scalar_known is not None:
        return scalar_known
    if isinstance(dtype, str) and dtype in _NAMES:
        return dtype
    if isinstance(dtype, type) and dtype in _scalar_by_type:
        return _scalar_by_type[dtype]
    name = str(dtype)
    if name.startswith("torch."):
        scalar = _BY_NAME.get(name[6:])
    elif name in _BY_NAME:
        scalar = _BY_NAME[name]
    else:
        try:
            scalar = _BY_NAME.get(np.dtype(dtype).name)  # type: ignore[call-overload]
        except TypeError:
            scalar = None
    if scalar is None:
        hint = suggestion(name, _NAMES.values())
        raise DTypeError(f"dtype {name} is not supported\n  supported: {', '.join(_NAMES.values())}{hint}")
    if isinstance(dtype, np.dtype):
        scalar_by_dtype[dtype] = scalar
    return scalar


def is_dtype(x: object) -> bool:
    """Whether `x` names a dtype; None does not."""
    if x is None:
        return False
    try:
        scalar_name(x)
    except DTypeError:
        return False
    return True


def scalar_of(x: Array) -> str:
    """The scalar type of a buffer's elements."""
    return scalar_by_dtype[x.dtype]


class _ScalarByDtype(dict[Any, str]):
    """A dtype of NumPy or torch -> its scalar type; those that are met for the first time are looked up by name."""

    def __missing__(self, dtype: Any) -> str:
        scalar = self[dtype] = scalar_name(dtype)
        if of_torch(dtype):
            for run in at_first_tensor:
                run()
            at_first_tensor.clear()
        return scalar


scalar_by_dtype = _ScalarByDtype({dtype: scalar for scalar, dtype in _numpy.items()})
_scalar_by_type: dict[type, str] = {dtype.type: scalar for scalar, dtype in _numpy.items()} | {float: "f64"}


at_first_tensor: list[Callable[[], None]] = []
"""What is to be done once, when the first of torch's tensors is met."""


def _address_by_interface(x: Any, flags: int) -> int:
    """The address of an array's first element, by NumPy's array interface. Raises ValueError as the protocol does."""
    if flags == PACKED and not x.flags.forc:
        raise ValueError("ndarray is not contiguous")
    return int(x.__array_interface__["data"][0])


PACKED, STRIDED = 0x98, 0x18
"""What is asked of the buffer protocol: memory without gaps (PyBUF_ANY_CONTIGUOUS), or any (PyBUF_STRIDES)."""
array_address: Callable[[Any, int], int] = _address_by_interface
"""The address of an array; by the buffer protocol, in a fifth of the time, once the launcher of kernels is loaded."""


@bounded
def address(x: Array) -> int:
    """The address of the first element of an array without gaps, for a kernel that is given no strides.

    Raises ValueError for an array with gaps, and of stride 0, as the values of iso tensors are; UnsupportedError for a
    torch tensor that is recorded, as the kernel's work would be lost to its gradient, and for one on another device,
    whose memory the kernel cannot reach.
    """
    if isinstance(x, np.ndarray):
        return array_address(x, PACKED)
    begin = _address(x)
    if x.stride() == (0,) and x.numel() > 1:
        raise ValueError("torch tensor is not contiguous")
    return begin


@bounded
def strided_address(x: Array) -> int:
    """The address of the first element, for a kernel that is given the array's strides. Raises as `address` does."""
    return array_address(x, STRIDED) if isinstance(x, np.ndarray) else _address(x)


def _address(x: Array) -> int:
    """The address of a torch tensor's first element."""
    if not x.is_cpu:
        if x.is_meta:
            raise UnsupportedError(f"a torch tensor without memory, on device {x.device}\n  help: give one with memory")
        raise UnsupportedError(
            f"a torch tensor on device {x.device}\n  supported: cpu, where kernels run"
            "\n  help: move it with .to('cpu') first"
        )
    refuse_stand_in(x)
    refuse_tracer()
    if is_recorded(x):
        refuse_recorded(x)
        x = bare(x)
    try:
        return int(x.data_ptr())
    except RuntimeError as error:
        raise _without_memory(x) from error


def refuse_stand_in(x: Array) -> None:
    """Raise for a torch tensor that has no memory: FakeTensor, FunctionalTensor, wrappers of others."""
    if type(x) is not np.ndarray and not has_memory(x):
        raise _without_memory(x)


def _without_memory(x: Array) -> UnsupportedError:
    return UnsupportedError(
        f"a torch tensor without memory, {type(x).__name__}"
        "\n  help: torch.compile, and torch.export.export(..., strict=True), take calls of Tensors"
    )


def same_memory(x: Array, y: Array) -> bool:
    """Whether two arrays begin at the same address."""
    first, second = (b if isinstance(b, np.ndarray) else with_memory(b.detach()) for b in (x, y))
    return strided_address(first) == strided_address(second)


def length(x: Array) -> int:
    """Elements along the first axis."""
    return int(x.shape[0])


def is_contiguous(x: Array) -> bool:
    """Whether elements lie in row-major order without gaps."""
    return bool(x.flags.c_contiguous) if isinstance(x, np.ndarray) else bool(x.is_contiguous())


def empty(n: int, scalar: str, like: Array) -> Array:
    """A fresh 1-D buffer of the library and device of `like`, uninitialised."""
    if isinstance(like, np.ndarray):
        return reserve(n, numpy_dtype(scalar))
    return _of_torch(lambda: torch_module().empty(n, dtype=torch_dtype(scalar), device=like.device))


def zeros(n: int, scalar: str, like: Array) -> Array:
    """A fresh 1-D buffer of the library and device of `like`, zero."""
    if isinstance(like, np.ndarray):
        reach("allocate")
        return np.zeros(n, numpy_dtype(scalar))
    return _of_torch(lambda: torch_module().zeros(n, dtype=torch_dtype(scalar), device=like.device))


def _of_torch(make: Callable[[], Array]) -> Array:
    """A tensor that torch makes; torch's own errors of no memory as MemoryError."""
    reach("allocate")
    try:
        return make()
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError" and "can't allocate memory" not in str(error):
            raise
        raise MemoryError(f"no memory for a torch tensor: {error}") from error


def cast(x: Array, scalar: str) -> Array:
    """`x` with elements of type `scalar`; itself when they are so already."""
    if scalar_of(x) == scalar:
        return x
    if isinstance(x, np.ndarray):
        return telling("cast", lambda: x.astype(numpy_dtype(scalar)))
    return _of_torch(lambda: x.to(torch_dtype(scalar)))


def flat(x: Array) -> Array:
    """`x` in one dimension: a view where it is contiguous, a contiguous copy where it is not; see `of_recording`."""
    x = with_memory(x)
    if isinstance(x, np.ndarray):
        return x if x.ndim == 1 and is_contiguous(x) else np.ascontiguousarray(x).reshape(-1)
    return of_recording(x if x.ndim == 1 and is_contiguous(x) else x.contiguous().view(-1))


def as_array(obj: object, scalar: str | None = None, like: Array | None = None) -> Array:
    """`obj` as an array of the library and device of `like` (its own library without), elements of type `scalar`.

    Arrays of the right kind are returned as they are; CPU memory is shared between the two libraries.
    Raises DTypeError for elements that are no numbers.
    """
    x: Array
    if is_torch(obj):
        x = obj
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        x = with_memory(x)
    else:
        try:
            x = np.asarray(obj)
        except ValueError as error:
            raise ShapeError(f"nested lists are not an array: {error}\n  help: give lists of equal length") from error
        if not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        scalar_name(x.dtype)
        if not x.flags.aligned:
            x = x.copy()
    if like is not None and library_of(like) != library_of(x):
        x = to_numpy(x) if isinstance(like, np.ndarray) else _from_numpy(x, like)
        if type(x) is np.ndarray and x.dtype.kind == "V":
            numpy_dtype("bf16")  # the error of a buffer of NumPy's that would be one of bits
    return x if scalar is None else cast(x, scalar)


def is_unrecorded(x: Array) -> bool:
    """Whether a tensor is a plain torch tensor in CPU memory, without graph, tangent or transform.

    Most are, and this check takes less time than `bare`.
    """
    kind: Any = type(x)
    if kind not in PLAIN_TENSORS or x.requires_grad or not x.is_cpu or x._is_zerotensor():
        return False
    torch = sys.modules["torch"]
    transforms = torch._C._functorch
    if torch.autograd.forward_ad._current_level >= 0 or transforms.maybe_current_level() is not None:
        return False
    return not transforms.is_functorch_wrapped_tensor(x)


def to_numpy(x: Array, *, detach: bool = False) -> np.ndarray[Any, Any]:
    """`x` as a NumPy array, sharing its memory.

    Raises UnsupportedError for a torch tensor that is recorded, unless `detach` drops its graph, or has no memory.
    """
    if isinstance(x, np.ndarray):
        return x
    if is_unrecorded(x) and scalar_of(x) in _numpy:
        return _shared(x)
    if x.device.type != "cpu":
        raise UnsupportedError(
            f"a buffer on {x.device} is no NumPy array\n  help: move the tensor with .to('cpu') first"
        )
    if not detach:
        refuse_recorded(x)
    x = bare(x)
    if str(x.dtype) == "torch.bfloat16":
        return _shared(x.view(torch_module().int16)).view(_bf16_bits())
    with outside():
        return _shared(x)


def _shared(x: Array) -> np.ndarray[Any, Any]:
    """torch's array of a tensor's memory."""
    refuse_stand_in(x)
    refuse_tracer()
    return x.numpy()  # type: ignore[no-any-return]


def _from_numpy(x: np.ndarray[Any, Any], like: Array) -> Array:
    torch = torch_module()
    if scalar_name(x.dtype) == "bf16":
        return torch.from_numpy(_writable(x).view(np.int16)).view(torch.bfloat16).to(like.device)
    out = torch.from_numpy(_writable(x))
    return out if like.is_cpu else out.to(like.device)


def _writable(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    is_usable = x.flags.writeable and all(s >= 0 for s in x.strides)
    return x if is_usable else x.copy()


def copied(x: Array) -> Array:
    """A copy with memory of its own."""
    return x.copy() if isinstance(x, np.ndarray) else _of_torch(x.clone)
