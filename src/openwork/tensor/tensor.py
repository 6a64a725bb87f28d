"""The Tensor: a storage with the attributes, accessors and conversions that users see."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, InvariantError, ShapeError, UnsupportedError
from ..format import coo
from ..format.format import Format
from ..integers import integer, integers
from ..provided import provided
from ..runtime.check import check, renewed
from ..runtime.conversion.convert import convert
from ..runtime.conversion.iso import own_value
from ..runtime.duplicates import summed_as
from ..runtime.formats import dense_format, promises_less, resolve_format
from ..runtime.library_errors import sized
from ..storage import buffers
from ..storage.buffers import PLAIN_TENSORS, Array, is_torch
from ..storage.iso import is_iso, lent
from ..storage.origin import note_origin
from ..storage.recorded import is_recorded, of_recording, refuse_tracer
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..storage.watch import read_only
from .autograd_mixin import AutogradMixin
from .casting import may_cast
from .display import html, line, text
from .documentation import document_class, one_class
from .exports import Exports
from .inplace import make_writable, refuse_dense_gradient, replace_storage
from .methods import Methods
from .operators import Operators
from .scipy_names import ScipyNames
from .torch_attributes import TorchAttributes
from .torch_names import CallableInt, CallableSize, TorchNames

if TYPE_CHECKING:
    from ..format.format import Level

over_torch: Callable[..., Tensor] = provided("over_torch", __name__)
to_device: Callable[..., Tensor] = provided("to_device", __name__)
asarray = provided("asarray", __name__)
sent: Callable[..., Tensor] = provided("device sent", __name__)
reduced = provided("reduced", __name__)


__all__ = ["Tensor", "python_scalar", "resolve_format", "unpickled"]


DEVICES = ("opencl", "cuda", "interpreter")
"""Devices whose tensors are `DeviceTensor`s."""


@one_class
class Tensor(Operators, TorchNames, TorchAttributes, ScipyNames, AutogradMixin, Exports, Methods):
    """A tensor whose storage format is a value.

    Made by `asarray`, `assemble`, the `sparse_*_tensor` constructors, `random` and `read`. Values may be changed in
    place, for all tensors over the same buffers; what has to store other elements, as `A[i, j] = v` and `A.setdiag(v)`
    may have to, gives this tensor buffers of its own.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> A.shape, A.nse, A.format.name
    ((2, 2), 2, 'csr')
    >>> (A @ A).to_numpy()
    array([[2., 0.],
           [0., 2.]])
    """

    __slots__ = ("__weakref__", "_raw_storage")
    _raw_storage: Storage

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(
            "a Tensor is made by functions, not by its class"
            "\n  help: openwork.asarray(obj), or openwork.assemble(format, shape, ...)"
        )

    @classmethod
    def _from_storage(cls, storage: Storage) -> Tensor:
        self = object.__new__(cls)
        self._raw_storage = storage
        return self

    @property
    def _storage(self) -> Storage:
        """The storage. Raises InvariantError where buffers were changed so that it breaks an invariant."""
        storage = self._raw_storage
        if type(storage.values) is np.ndarray:
            return storage
        refuse_tracer()
        if not storage.holds():
            self._raw_storage = storage = renewed(storage)
            storage.holds()  # from now on
        return storage

    @_storage.setter
    def _storage(self, storage: Storage) -> None:
        self._raw_storage = storage

    @classmethod
    def _from_dense(cls, array: Any) -> Tensor:
        """A dense tensor over the memory of an array, copied only where it is not row-major."""
        if type(array) is np.ndarray and array.flags.carray and array.dtype.isnative:
            values = array if array.ndim == 1 else array.reshape(-1)
        elif type(array) in PLAIN_TENSORS and array.is_contiguous() and not array.is_conj():
            values = array if array.ndim == 1 else array.reshape(-1)
            values = buffers.as_array(values) if values.is_neg() or values._is_zerotensor() else values
            values = of_recording(values) if values.requires_grad else values
        else:
            values = buffers.flat(buffers.as_array(array))
        shape = tuple(array.shape)
        no_buffers = (None,) * len(shape)
        return cls._from_storage(
            Storage(
                shape,
                dense_format(len(shape)),
                buffers.scalar_by_dtype[values.dtype],
                0,
                no_buffers,
                no_buffers,
                values,
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (self._storage,)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What is pickled: by protocol 5 with checksums of the buffers, which a reader may take out of band."""
        is_plain = type(self).__reduce__ is Tensor.__reduce__
        return reduced(self) if protocol >= 5 and is_plain else self.__reduce__()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace that has the array API's functions for this type."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ValueError(f"array API version {api_version!r} is not supported; supported: up to 2025.12")
        return sys.modules[__name__.partition(".")[0]]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions."""
        return self._raw_storage.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._raw_storage.shape)

    @property
    def size(self) -> int:
        """The number of elements, specified or not; called as torch's method, `size(d)`, the extents or one of them."""
        shape = self._raw_storage.shape
        size = CallableSize(math.prod(shape))
        size.shape = shape
        return size

    @property
    def dtype(self) -> Any:
        """The dtype of the values: NumPy's or torch's."""
        return buffers.dtype_of(self._storage.scalar, self._storage.values)

    @property
    def device(self) -> str:
        """ "cpu", or torch's name of the device."""
        return self._storage.device

    @property
    def format(self) -> Format:
        """The storage format."""
        return self._raw_storage.format

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels of the format."""
        return tuple(self._raw_storage.format.levels)

    @property
    def fill_value(self) -> Any:
        """The value of every unspecified element, a Python scalar."""
        return self._storage.fill_value

    @property
    def nse(self) -> int:
        """The number of specified elements, explicit zeros included, padding not."""
        return self._storage.nse

    @property
    def nnz(self) -> int:
        """`nse`, by SciPy's and torch's name."""
        return self._storage.nse

    @property
    def density(self) -> float:
        """`nse / size`; 0 for a tensor without elements."""
        return self.nse / self.size if self.size else 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return self._storage.nbytes

    @property
    def is_iso(self) -> bool:
        """Whether the stored elements are one value that takes no memory for each: `ow.iso` makes such a tensor."""
        return self._storage.is_iso

    @property
    def values(self) -> Array:
        """The values, the 1-D buffer itself; of an iso tensor over NumPy a read-only array as long as that."""
        storage = self._storage
        values = lent(storage.values)
        if is_iso(values) and is_torch(values):  # they can be written to
            self._storage = storage = storage.with_values(values)
            values = storage.values
        note_origin(values, storage.structure)
        return values

    def pos(self, level: int) -> Array | None:
        """The position buffer of a level, None where it stores none."""
        return read_only(self._storage.pos[self._level(level)])

    def crd(self, level: int) -> Array | None:
        """The coordinate buffer of a level, None where it stores none."""
        return read_only(self._storage.crd[self._level(level)])

    def _level(self, level: int) -> int:
        n, level = len(self._storage.pos), integer(level, "level", "a level")
        if not -n <= level < n:
            raise IndexError(f"level {level} of a tensor with {n} levels\n  format: {self.format}")
        return level

    @property
    def batch_dim(self) -> int:
        """How many dimensions in front are stored as batch levels."""
        return self.format.batch_ndim

    @property
    def dense_dim(self) -> int:
        """How many dimensions at the end are stored dense."""
        return CallableInt(self.format.dense_ndim)

    @property
    def sparse_dim(self) -> int:
        """How many dimensions are neither batch nor dense."""
        return CallableInt(max(self.ndim - self.batch_dim - self.dense_dim, 0))

    def is_coalesced(self) -> bool:
        """Whether the format says: no duplicates, coordinates in order."""
        return bool(self.format.is_unique and self.format.is_ordered)

    def coalesce(self) -> Tensor:
        """The tensor in the unique, ordered COO format of its rank; duplicates are summed."""

        return self.asformat(coo(self.ndim, dense=0 if self.format.is_dense else self.dense_dim))

    @sized
    def asformat(self, format: str | Format | None, copy: bool | None = None) -> Tensor:
        """The tensor in another format.

        Parameters
        ----------
        format : Format, its text, or its name; with an encoding's `explicitVal` the result is iso, InvariantError
            where a stored element has another value
        copy : True always copies; False raises ValueError where data would have to move; None copies where needed

        Returns
        -------
        Tensor, same shape, dtype, device and fill value. Explicit zeros are kept; duplicates are summed where
        the format is unique, and may be where it ends in dense levels (blocks). Buffers that stay as they are
        are shared unless `copy` is True: all of them where the format only promises less (nonunique, unordered),
        columns and values between CSR and sorted COO.
        """
        target = resolve_format(format, self.ndim, self.format, explicit=True)
        if target.explicit is not None:
            plain = self.asformat(Format(target.dims, target.levels), copy)
            return Tensor._from_storage(own_value(plain._storage, "asformat", target.explicit))
        storage = self._storage
        if target == storage.format or promises_less(target, storage.format):
            shared = storage.with_format(target)
            if copy:
                return Tensor._from_storage(shared.copied())
            return self if target == storage.format else Tensor._from_storage(shared)
        if copy is False:
            raise ValueError(f"asformat: {storage.format} to {target} moves data\n  help: leave copy=False out")

        return Tensor._from_storage(convert(storage, target, share=copy is None))

    def astype(
        self, dtype: object, /, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True, *,
        device: object = None,
    ) -> Tensor:  # fmt: skip
        """The tensor with values of another dtype, sharing pos and crd.

        casting : NumPy's rule, "safe", "same_kind", ...; DTypeError where it forbids the conversion
        copy : False gives the tensor itself where it has that dtype
        order, subok : NumPy's, which mean nothing here

        A dtype of torch's gives a tensor over torch buffers, those of NumPy taken over; a name, or NumPy's, stays in
        the library of the buffers.
        """
        storage = self._storage
        scalar = buffers.scalar_name(dtype)
        if storage.library == "numpy" and (buffers.of_torch(dtype) or buffers.of_torch(device)):
            return over_torch(self).astype(dtype, casting=casting, copy=copy, device=device)
        if casting != "unsafe":
            may_cast(self, dtype, casting, "astype")
        if scalar == storage.scalar:
            if not copy and device is None:
                return self
            values = storage.values if not copy or storage.is_iso else buffers.copied(storage.values)
        else:
            if storage.scalar in ("c64", "c128") and scalar not in ("c64", "c128", "bool"):
                raise DTypeError(
                    f"astype: {self.dtype} to {dtype} would drop the imaginary part\n  help: take the real part first"
                )
            storage = summed_as(storage, scalar)
            values = buffers.cast(storage.values[:1] if storage.is_iso else storage.values, scalar)
        change = storage.with_one_value if storage.is_iso else storage.with_values
        result = Tensor._from_storage(change(values, python_scalar(storage.fill_value, scalar)))
        return result if device is None else result.to(device)

    def to(
        self, device: object = None, dtype: object = None, non_blocking: bool = False, copy: bool = False,
        memory_format: object = None,
    ) -> Tensor:  # fmt: skip
        """The tensor on device "cpu", "opencl" or torch's "cuda", or of another dtype; either, or a tensor, first.

        A device or dtype of torch's, or a tensor that has them, gives a tensor over torch buffers, as `asarray(like=)`.
        On "opencl" and "cuda" it is a `DeviceTensor`, whose buffers are copies there: see docs/devices.md.
        """
        if copy:
            return self.clone().to(device, dtype)
        if isinstance(device, Tensor) or buffers.is_array(device):
            device, dtype = getattr(device, "device", None), getattr(device, "dtype", None)
        if buffers.is_dtype(device):
            device, dtype = None, device
        if dtype is not None:
            typed = self.astype(dtype, copy=False)
            return typed if device is None else typed.to(device)
        name, storage = str(device), self._storage
        if name.partition(":")[0] in DEVICES:
            return sent(self, name)
        if buffers.of_torch(device) and storage.library == "numpy" and name == "cpu":
            return over_torch(self)
        if name == "meta":
            raise UnsupportedError("to: device 'meta' has no memory\n  supported: cpu, cuda\n  help: leave it there")
        if device is None or name == storage.device or (storage.library == "numpy" and name == "cpu"):
            return self
        moved = over_torch(self, name)._storage
        return Tensor._from_storage(moved.mapped(lambda b: b.to(name)))

    def to_device(self, device: object, /, *, stream: Any = None) -> Tensor:
        """`to(device)`, by the array API's name; see `interop.to_device`."""

        return to_device(self, device, stream)

    def transpose(self, *axes: Any) -> Tensor:
        """The dimensions in another order (reversed without axes), over the same buffers.

        axes : a sequence that names every dimension once, or its entries, three or more; two integers are exchanged, as
            torch has it, whatever library the buffers are of: say `transpose((0, 1))` for that order
        """
        if len(axes) == 2 and (axes[0] != axes[1] or buffers.is_torch(self._storage.values)):
            axes = (self._swapped_axes(*axes, "transpose"),)
        ndim = self.ndim
        if not axes or (len(axes) == 1 and axes[0] is None):
            return Tensor._from_storage(self._storage.permute(range(ndim)[::-1]))
        order = integers(axes[0] if len(axes) == 1 else axes, "transpose", "axes", boolean=False)
        permutation = [a + ndim * (a < 0) for a in order]
        if sorted(permutation) != list(range(ndim)):
            raise ShapeError(
                f"transpose: axes {order} are not a permutation of {ndim} dimensions\n  help: name each once"
            )
        return Tensor._from_storage(self._storage.permute(permutation))

    @property
    def T(self) -> Tensor:
        """The transpose, over the same buffers."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:
        """The transpose of the last two dimensions, over the same buffers."""
        if self.ndim < 2:
            raise ShapeError(f"mT: expected two dimensions or more; got shape {self.shape}\n  help: use T")
        order = list(range(self.ndim))
        order[-2:] = order[:-3:-1]
        return self.transpose(order)

    def check(self) -> Tensor:
        """The tensor itself, once its buffers were checked."""
        check(self._storage)
        return self

    def clone(self) -> Tensor:
        """A copy with buffers of its own."""
        return Tensor._from_storage(self._storage.copied())

    def zero_(self) -> Tensor:
        """Set every element to zero in place; the structure stays. Raises ReadOnlyError where values are read-only."""
        make_writable(self, "zero_")
        s = self._storage
        if s.fill_value or (is_torch(s.values) and is_recorded(s.values)):
            self._storage = s.with_values(
                buffers.zeros(buffers.length(s.values), s.scalar, s.values), python_scalar(0, s.scalar)
            )
        else:
            s.values[...] = 0
        return self

    def copy_(self, other: Any) -> Tensor:
        """Take the elements of `other`, converted to this tensor's format and dtype."""

        source = asarray(other)
        if source.shape != self.shape:
            raise ShapeError(f"copy_: expected shape {self.shape}; got {source.shape}\n  help: reshape it first")
        refuse_dense_gradient("copy_", other)
        make_writable(self, "copy_")
        source, like = source.to(self.device), self._storage.values
        converted = source.asformat(self.format).astype(self.dtype, copy=False)._storage
        replace_storage(self, converted.mapped(lambda b: buffers.as_array(b, like=like)).copied())
        return self

    def __sizeof__(self) -> int:
        """Bytes of the object and of all buffers, what it shares with others included."""
        return object.__sizeof__(self) + self.nbytes

    def __repr__(self) -> str:

        return line(self)

    def __str__(self) -> str:

        return text(self)

    def _repr_html_(self) -> str:

        return html(self)


def unpickled(storage: Storage) -> Tensor:
    """The tensor of a storage that was copied or unpickled, which may hold anything.

    Raises InvariantError where it breaks an invariant of the storage, those that cost O(nse) included.
    """
    if type(storage) is not Storage:
        raise InvariantError(f"unpickling: expected a Storage; got: {type(storage).__name__}\n  help: save it anew")
    make, parts = storage.__reduce__()  # of a shallow copy, or by another hand than Storage's own
    restored: Storage = make(*parts)
    check(restored)
    return Tensor._from_storage(restored)


document_class(Tensor, provided("method texts"), 'A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")')
