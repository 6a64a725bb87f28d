"""Masked tensors on devices: one DeviceTensor whose specified elements are those of the mask, as on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..errors import UnsupportedError
from ..format.format import Format
from ..ir.operations import OPERATIONS
from ..masked.tensor import wrap
from ..ops import mask_formats as forms
from ..ops.axes import swapped_axes
from ..provided import provided, provides
from ..runtime.formats import resolve_format
from ..runtime.operation import block
from ..storage.scalars import python_scalar
from ..tables import NAMES
from .adapter import Memory, adapter_of, is_device_name
from .elementwise import astype
from .kernels import each
from .operations import refused
from .protocols import Protocols
from .tensor import DeviceTensor
from .transfer import over, to_host
from .vector import fill, strided

__all__ = ["MASKED_OPERATIONS", "MaskedDeviceTensor", "bits_of", "call_masked", "on_masked"]

F = TypeVar("F", bound=Callable[..., Any])
call = provided("device call", __name__)
method = provided("device method", __name__)
of_torch = provided("device of_torch", __name__)
elements = provided("device elements", __name__)
moved = provided("device moved", __name__)
reduce = provided("device reduce", __name__)

MASKED_OPERATIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the namespace that take masked tensors on devices, beside those of elements, by name."""


class _NotHere(UnsupportedError, AttributeError):
    """What a function of the host's masked tensors meets: to those who only ask, an attribute that is not there."""


@provides("device MaskedDeviceTensor")
class MaskedDeviceTensor(Protocols):
    """A masked tensor on a device; made by `m.to("opencl")`, and by `masked_tensor` of tensors there.

    It has the operators, functions and methods that docs/devices.md lists; all others are UnsupportedError by name.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0, 3.0]), np.array([True, True, False])).to("interpreter")
    >>> (m + m).sum().item()
    6.0
    """

    __slots__ = ("__weakref__", "is_number", "specified")
    _kind = "masked tensor on a device"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, specified: DeviceTensor, is_number: bool = False) -> None:
        """Nothing is checked. is_number : rank 0, kept as the only element of one dimension, which may be missing"""
        self.specified, self.is_number = specified, is_number

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions."""
        return () if self.is_number else self.specified.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, missing ones included."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements."""
        return self.specified.dtype

    @property
    def device(self) -> str:
        """The device's name."""
        return self.specified.device

    @property
    def format(self) -> Format:
        """The format of the one tensor: its specified elements are the mask."""
        return self.specified.format

    @property
    def nse(self) -> int:
        """The number of specified elements, counted on the device."""
        return self.specified.nse

    @property
    def values(self) -> Any:
        """The values, a vector of the device's library; positions of missing elements hold anything."""
        return self.specified.values

    # -- data and mask, and other devices ------------------------------------------------------------------------------

    def to(self, device: object) -> Any:
        """The elements on another device: "cpu" gives a MaskedTensor."""
        if device is None or (is_device_name(device) and adapter_of(str(device)) is self.specified.adapter):
            return self
        return wrap(to_host(self.specified), self.is_number).to(device)

    def to_numpy(self, value: Any) -> np.ndarray[Any, Any]:
        """The dense NumPy array, with `value` for every missing element."""
        array: np.ndarray[Any, Any] = self.to("cpu").to_numpy(value)
        return array

    def to_tensor(self, value: Any) -> Any:
        """The dense array of the device's library, with `value` for every missing element."""
        return self.to_dense().filled(value).to_dense()

    def item(self) -> Any:
        """The only element, read by the host. Raises ValueError where it is missing."""
        return self.to("cpu").item()

    def get_data(self) -> DeviceTensor:
        """The data over the same values, with anything in the places of missing elements."""
        return self._apart(self.specified.memory)

    def get_mask(self) -> DeviceTensor:
        """The mask in the structure of `get_data()`: True where an element is specified."""
        return self._apart(bits_of(self.specified))

    data, mask = get_data, get_mask

    def _apart(self, values: Memory) -> DeviceTensor:
        t = self.specified
        plain = forms.plain(t.format)
        if self.is_number:
            return over(values, ())
        n = len(plain.levels)
        crd = t.crd_buffers[:n]
        if forms.has_bits(t.format) and not forms.loose(t.format):
            crd = (*crd[:-1], None)
        return DeviceTensor(t.shape, plain, python_scalar(0, values.scalar), t.pos_buffers[:n], crd, values)

    def filled(self, value: Any) -> DeviceTensor:
        """A tensor with `value` for missing elements: dense for dense data, else it is the fill value."""
        t, value = self.specified, python_scalar(value, self.specified.scalar)
        if not forms.is_strided(t.format):
            compact = self if forms.fitting(t.format) == t.format else self.compact()
            return compact.specified.with_values(compact.specified.memory, value)
        out, bits = fill(t.adapter, t.memory.length, value, t.scalar), bits_of(t)
        each(t.adapter, out.length, "if i64(b[t]) != 0:\n    y[t] = x[t]", {"y": out}, x=t.memory, b=bits)
        return self._apart(out)

    def asformat(self, format: object) -> MaskedDeviceTensor:
        """The same elements in another format; one whose last level stores all children gets a bitmap there."""
        if self.is_number:
            return self
        target = forms.fitting(resolve_format(format, self.ndim, self.format))
        return self if target == self.format else MaskedDeviceTensor(self.specified.asformat(target))

    def to_dense(self) -> MaskedDeviceTensor:
        """Data and mask as dense arrays: the bitmap format."""
        return self if self.is_number else MaskedDeviceTensor(self.specified.asformat(forms.strided(self.ndim)))

    def copy(self) -> MaskedDeviceTensor:
        """The same elements, with values of their own."""
        memory = self.specified.memory
        own = strided(memory, (memory.length,), (1,))
        return MaskedDeviceTensor(self.specified.with_values(own, 0), self.is_number)

    def compact(self) -> MaskedDeviceTensor:
        """The same elements without those that are stored and masked out, as far as the format can."""
        return MaskedDeviceTensor(self.specified.asformat(forms.fitting(forms.plain(self.format))), self.is_number)

    def compressed(self) -> Any:
        """The specified elements, a vector of the device's library, in row-major order."""
        return self.specified.asformat("coo").values

    def astype(self, dtype: object) -> MaskedDeviceTensor:
        """The elements in another dtype, over the same structure."""
        return MaskedDeviceTensor(astype(self.specified, dtype), self.is_number)

    # -- operations ----------------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise refused("a NumPy array of a masked tensor", (self,), "to_numpy(value) moves it to the host")

    def transpose(self, *axes: Any) -> MaskedDeviceTensor:
        """The dimensions in another order, reversed without one; two integers are exchanged."""
        if len(axes) == 2:
            axes = tuple(swapped_axes(self.ndim, *axes, "transpose"))
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        t = self.specified.transpose(order)
        return MaskedDeviceTensor(t.asformat(forms.fitting(forms.plain(t.format))))

    @property
    def T(self) -> MaskedDeviceTensor:
        """The transpose."""
        return self.transpose()

    def norm(self, ord: float | None = 2, axis: Any = None, keepdims: bool = False) -> MaskedDeviceTensor:
        """The vector norm of the specified elements."""
        found: MaskedDeviceTensor = reduce("norm", self, axis, keepdims, ord=2 if ord is None else ord)
        return found

    def count(self, axis: Any = None, keepdims: bool = False) -> MaskedDeviceTensor:
        """How many elements are specified, int64; never missing."""
        found: MaskedDeviceTensor = reduce("count", self, axis, keepdims)
        return found

    def add(self, other: Any, how: str = "equal") -> MaskedDeviceTensor:
        """`self + other`; how masks are combined as `openwork.masked.binary` says."""
        found: MaskedDeviceTensor = call("add", (self, other), {"how": how})
        return found

    def __getitem__(self, key: Any) -> MaskedDeviceTensor:
        found: MaskedDeviceTensor = moved("indexing", self, key)
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "_tensor":
            raise _NotHere(str(refused("a function of the host's masked tensors", (self,))))
        return super().__getattr__(name)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        text = forms.layout_name(self.format)
        return f"MaskedDeviceTensor({shape}, {self.dtype}, {text}, device={self.device!r})"


@provides("device call_masked")
def call_masked(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> MaskedDeviceTensor:
    """A function of the namespace of which an operand is masked. Raises UnsupportedError, by name, for others."""
    if any(x.specified.is_recorded for x in args if isinstance(x, MaskedDeviceTensor)):
        raise refused(name, args, "torch records the values, and masked tensors have no gradient there; detach()")
    found: MaskedDeviceTensor
    if name in MASKED_OPERATIONS:
        found = MASKED_OPERATIONS[name](*args, **kwargs)
        return found
    if name in NAMES and block(name).op in OPERATIONS and not kwargs.keys() - {"how"}:
        found = elements(name, *args, **kwargs)
        return found
    raise refused(name, args, f"with {', '.join(kwargs)}" if kwargs else "masked tensors")


def on_masked(*names: str) -> Callable[[F], F]:
    """Register a function as what computes these functions of masked tensors."""

    def register(function: F) -> F:
        MASKED_OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register


def bits_of(t: DeviceTensor) -> Memory:
    """A bool for each position: whether its element is specified."""
    bits = t.crd_buffers[-1] if forms.has_bits(t.format) else None
    return fill(t.adapter, t.memory.length, True, "bool") if bits is None else bits
