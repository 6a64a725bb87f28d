"""A sparse tensor whose buffers are in a device's memory: the same formats and levels as a Tensor's, and no host copy.

Shape, format, dtype, fill value and the numbers of positions are known to the host; buffers are not read by it but by
`to("cpu")`, `to_numpy()`, `item()`, and one number where the size of a result depends on coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..format.format import Format
from ..provided import provided
from ..storage import sizes
from ..storage.buffers import is_torch, itemsize, numpy_dtype, scalar_of, to_numpy, torch_module
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .adapter import Adapter, Memory
from .protocols import Protocols

__all__ = ["DeviceTensor", "upload"]

call = provided("device call", __name__)
method = provided("device method", __name__)
of_torch = provided("device of_torch", __name__)
checked = provided("device check", __name__)
convert = provided("device convert", __name__)
index = provided("device index", __name__)
named = provided("device named", __name__)
move = provided("device move", __name__)
Buffers = tuple[Memory | None, ...]


class DeviceTensor(Protocols):
    """A tensor on a device other than the CPU; made by `asarray(..., device="opencl")` and `A.to("opencl")`.

    It has the operators, functions and methods that docs/devices.md lists; all others are UnsupportedError by name.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr", device="interpreter")
    >>> x = ow.asarray([10.0, 20.0], device="interpreter")
    >>> (A @ x).to_numpy()
    array([40., 10.])
    """

    __slots__ = (
        "__weakref__", "adapter", "crd_buffers", "facts", "fill_value", "format", "graph", "memory", "outer",
        "pos_buffers", "positions", "scalar", "shape", "stored",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], format: Format, fill_value: Any, pos: Buffers, crd: Buffers, memory: Memory,
        outer: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Nothing is checked.

        pos, crd : a vector or None for each level; memory : the values
        outer : first and last + 1 of what the outermost level walks, where these are not all of its positions
        """
        self.adapter, self.scalar = memory.device, memory.scalar
        self.shape, self.format, self.fill_value = shape, format, python_scalar(fill_value, memory.scalar)
        self.pos_buffers, self.crd_buffers, self.memory = pos, crd, memory
        lengths: list[Any] = [None if c is None else np.broadcast_to(np.int8(0), (c.length,)) for c in crd]
        self.positions = sizes.positions(format, shape, lengths)
        self.outer = outer
        self.graph: Any = None
        """the values as torch records them, where it does"""
        self.stored: int | None = None
        """the number of specified elements, once counted"""
        self.facts: dict[Any, Any] = {}
        """what follows from the structure and was computed, shared by tensors of it"""

    @property
    def is_recorded(self) -> bool:
        """Whether torch records what is computed with the values."""
        return self.graph is not None and bool(torch_module().is_grad_enabled())

    @property
    def device(self) -> str:
        """The device's name."""
        return self.adapter.name

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, specified or not."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the values."""
        return numpy_dtype(self.scalar)

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        buffers = (*self.pos_buffers, *self.crd_buffers, self.memory)
        return sum(b.length * itemsize(b.scalar) for b in buffers if b is not None)

    @property
    def nse(self) -> int:
        """The number of specified elements; counted on the device where slots may be empty."""
        if self.stored is None:
            self.stored = _count(self)
        return self.stored

    @property
    def values(self) -> Any:
        """The values, a vector of the device's library over the same memory."""
        return self.graph if self.graph is not None else self.adapter.wrapped(self.memory, (self.memory.length,))

    def pos(self, level: int) -> Any:
        """The position buffer of a level as the device's library has vectors, None where it stores none."""
        return self._wrapped(self.pos_buffers[level])

    def crd(self, level: int) -> Any:
        """The coordinate buffer of a level as the device's library has vectors, None where it stores none."""
        return self._wrapped(self.crd_buffers[level])

    def astype(self, dtype: object, *, copy: bool = True) -> DeviceTensor:
        """The tensor with values of another dtype."""
        found: DeviceTensor = call("astype", (self, dtype), {})
        return found

    def _wrapped(self, memory: Memory | None) -> Any:
        return None if memory is None else self.adapter.wrapped(memory, (memory.length,))

    # -- between devices, formats and libraries ----------------------------------------------------------------------

    def to(self, device: object) -> Any:
        """The tensor on another device: "cpu" gives a Tensor over NumPy's buffers."""
        return move(self, device)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The dense array, on the host."""
        array: np.ndarray[Any, Any] = self.to("cpu").to_numpy()
        return array

    def to_dense(self) -> Any:
        """The dense array of the device's library; of the interpreter, which has none, a dense tensor."""
        dense = self.asformat("dense")
        if dense.graph is not None:
            return dense.graph.reshape(self.shape)
        array = self.adapter.wrapped(dense.memory, self.shape)
        return dense if isinstance(array, Memory) else array

    def item(self) -> Any:
        """The one element, read by the host as a number."""
        if self.size != 1:
            raise ValueError(f"item: a tensor of shape {self.shape} has {self.size} elements\n  help: to_numpy()")
        return self.to_numpy().item()

    __float__ = __int__ = __complex__ = None  # numbers are read by `item()`

    def asformat(self, format: object) -> DeviceTensor:
        """The tensor in another format, assembled on the device."""
        with named("asformat", (self,)):
            found: DeviceTensor = convert(self, format)
        return found

    def detach(self) -> DeviceTensor:
        """The tensor over the same memory, which torch does not record."""
        return self.with_values(self.memory, self.fill_value)

    def check(self) -> DeviceTensor:
        """The tensor itself, once its buffers were checked on the device. Raises InvariantError."""
        found: DeviceTensor = checked(self)
        return found

    def coalesce(self) -> DeviceTensor:
        """The tensor in the unique, ordered COO format of its rank; duplicates are summed."""
        return self.asformat("coo")

    def with_values(self, memory: Memory, fill_value: Any) -> DeviceTensor:
        """The tensor of the same structure over other values."""
        out = DeviceTensor(
            self.shape, self.format, fill_value, self.pos_buffers, self.crd_buffers, memory, self.outer
        )  # fmt: skip
        out.stored, out.facts = self.stored, self.facts
        return out

    def transpose(self, axes: Sequence[int] | None = None) -> DeviceTensor:
        """The dimensions in another order, reversed without axes, over the same buffers."""
        order = tuple(range(self.ndim)[::-1] if axes is None else axes)
        shape = tuple(self.shape[a] for a in order)
        format = self.format.permute(order)
        out = DeviceTensor(
            shape, format, self.fill_value, self.pos_buffers, self.crd_buffers, self.memory, self.outer
        )  # fmt: skip
        out.stored, out.graph = self.stored, self.graph
        return out

    @property
    def T(self) -> DeviceTensor:
        """The transpose, over the same buffers."""
        return self.transpose()

    # -- operations --------------------------------------------------------------------------------------------------

    def __openwork_run__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Iterative methods whose operator is a tensor of a device."""
        return call(function.__name__, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise UnsupportedError(
            f"a NumPy array of a tensor on {self.device}, format {self.format}\n  help: to_numpy() moves it to the host"
        )

    def __getitem__(self, key: Any) -> Any:
        with named("indexing", (self,)):
            return index(self, key)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        text = self.format.name or str(self.format)
        return f"DeviceTensor({shape}, {self.dtype}, {text}, device={self.device!r}, {self.nbytes} bytes)"


def _count(t: DeviceTensor) -> int:
    if not t.format.is_padded and not t.format.ragged(t.shape):
        return t.memory.length
    number: int = provided("device count")(t)
    return number


def upload(t: Tensor, device: Adapter) -> DeviceTensor:
    """A copy of a tensor in a device's memory."""
    s: Storage = t._storage
    pos, crd = (tuple(None if b is None else _of(device, b) for b in group) for group in (s.pos, s.crd))
    outer = None
    if s.pos and s.pos[0] is not None:
        first, last = s.pos[0][:2].tolist()
        outer = (first, last)
    graph = device.recorded(s.values) if is_torch(s.values) and s.values.requires_grad else None
    memory = _of(device, s.values if graph is None else graph.detach())
    out = DeviceTensor(s.shape, s.format, s.fill_value, pos, crd, memory, outer)
    out.graph = graph
    return out


def _of(device: Adapter, buffer: Any) -> Memory:
    """A copy of a buffer of either library."""
    return device.given(buffer) or device.of(to_numpy(buffer), scalar_of(buffer))
