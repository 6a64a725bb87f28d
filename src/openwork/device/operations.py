"""Names of the namespace's functions -> what computes them on a device; all others are refused by name.

Operands are on one device: tensors, numbers, and arrays of the device's library, which make a dense result one too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ..errors import UnsupportedError
from ..interop.operands import is_operand
from ..provided import provided, provides
from ..runtime.operation import block
from ..storage.buffers import is_torch, torch_module
from ..tables import NAMES, PLACES
from ..tensor.numpy_names import standard_arguments
from .tensor import DeviceTensor
from .transfer import array_of

__all__ = ["DEVICE_OPERATIONS", "call", "method", "named", "on_device", "refused"]

call_masked = provided("device call_masked", __name__)
of_torch = provided("device of_torch", __name__)
placed = provided("placed", __name__)

F = TypeVar("F", bound=Callable[..., Any])
DEVICE_OPERATIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the namespace that run on devices, by name."""
_elementwise: list[Callable[..., Any]] = []


def on_device(*names: str) -> Callable[[F], F]:
    """Register a function as what computes these functions of the namespace."""

    def register(function: F) -> F:
        DEVICE_OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register


def by_elements(function: F) -> F:
    """Register what computes all functions of elements: it takes the name of an operation and its operands."""
    _elementwise.append(function)
    return function


def refused(name: str, operands: Any, why: str = "") -> UnsupportedError:
    """The error of an operation that does not run on a device, with the formats of its operands."""
    tensors = [getattr(x, "specified", x) for x in operands]
    tensors = [x for x in tensors if isinstance(x, DeviceTensor)]
    device = tensors[0].device if tensors else "a device"
    formats = "; ".join(str(t.format) for t in tensors)
    return UnsupportedError(
        f"{name} on {device}{f': {why}' if why else ''}\n  got: {formats or 'no tensor'}"
        "\n  supported: what docs/devices.md lists\n  help: to('cpu') moves a tensor to the host"
    )


@provides("device named")
@contextmanager
def named(name: str, operands: Any) -> Iterator[None]:
    """Where a kernel is refused, by what compiles or launches it, the error names the operation and formats too."""
    try:
        yield
    except UnsupportedError as error:
        if "\n  got:" in str(error):
            raise
        raise refused(name, operands, str(error).partition("\n")[0]) from error


def call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A function of the namespace with these arguments, of which one is on a device.

    Raises UnsupportedError, by name, for what does not run there, and for operands of several devices.
    """
    found = [_adopted(x) for x in args]
    options = {k: _adopted(v) for k, v in kwargs.items() if not (k == "out" and v is None)}
    held = [getattr(x, "specified", x) for x in _flat((*found, *options.values()))]
    _check_devices(name, _tensors(held), held)
    with named(name, held):
        result = _result(name, found, options)
    if getattr(result, "graph", None) is None and any(t.is_recorded for t in _tensors(found)):
        raise refused(name, _tensors(found), "torch records an operand, and this has no gradient there; detach()")
    has_array = any(not isinstance(x, DeviceTensor) and _is_array(x) for x in _flat(args))
    if has_array and isinstance(result, DeviceTensor) and result.format.is_dense:
        return result.to_dense()
    return result


def _result(name: str, args: list[Any], options: Mapping[str, Any]) -> Any:
    """What computes a function, called with operands of one device."""
    if any(hasattr(x, "specified") for x in _flat(args)):
        return call_masked(name, tuple(args), options)
    if name in DEVICE_OPERATIONS:
        return DEVICE_OPERATIONS[name](*args, **options)
    if _op_of(name) is not None and not options:
        return _elementwise[0](name, *args)
    raise refused(name, _tensors(args), f"with {', '.join(options)}" if options and _op_of(name) else "")


def method(t: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a tensor on a device: the function of that name, and its arguments by place or by torch's names; over
    torch's memory torch's method, unless an argument is ours."""
    of_ours = "axis" in kwargs or "keepdims" in kwargs
    if getattr(t, "specified", t).adapter.library == "torch" and not of_ours:
        function = getattr(torch_module().Tensor, name, None)
        if function is not None:
            return of_torch(function, (t, *args), kwargs)
    if name in PLACES:
        return placed(t, name, args, standard_arguments(kwargs))
    return call(name, (t, *args), standard_arguments(kwargs))


def _op_of(name: str) -> str | None:
    """The elementwise operation that a function is."""
    return block(name).op if name in NAMES else None


def _flat(args: Any) -> list[Any]:
    return [y for x in args for y in (x if isinstance(x, list | tuple) else (x,))]


def _tensors(args: Any) -> list[DeviceTensor]:
    return [x for x in _flat(args) if isinstance(x, DeviceTensor)]


def _is_array(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "pyopencl" or is_torch(x)


def _adopted(x: Any) -> Any:
    """An operand as a tensor of its device, where it is an array of a device's library; a number of NumPy's as one."""
    if isinstance(x, list | tuple):
        return type(x)(map(_adopted, x))
    if isinstance(x, np.generic):
        return x.item()
    tensor = array_of(x)
    return x if tensor is None else tensor


def _check_devices(name: str, tensors: Any, args: list[Any]) -> None:
    adapters = {id(t.adapter): t.adapter for t in tensors}
    if len(adapters) > 1:
        names = " and ".join(a.name for a in adapters.values())
        raise UnsupportedError(f"{name}: operands on {names}, or two contexts\n  help: move one by to(device)")
    strangers = [x for x in _flat(args) if not isinstance(x, DeviceTensor | int | float | complex) and is_operand(x)]
    if strangers and adapters:
        device = next(iter(adapters.values())).name
        raise UnsupportedError(
            f"{name}: operands on {device} and cpu ({type(strangers[0]).__name__})"
            f"\n  help: asarray(x, device={device!r}) moves one there"
        )
