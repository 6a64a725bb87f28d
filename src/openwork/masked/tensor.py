"""The masked tensor: one Tensor whose specified elements are those that the mask names."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import DTypeError, FormatError, InvariantError, ShapeError, Tensor, UnsupportedError
from ..integers import extents
from ..ops import mask_formats as forms
from ..provided import provided, provides
from ..runtime.formats import resolve_format
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.documentation import document_class, one_class
from ..tensor.methods import MaskedMethods
from ..tensor.torch_names import LAYOUTS, CallableBool, CallableSize
from .arithmetic import Arithmetic
from .methods import Methods
from .protocols import Protocols

if TYPE_CHECKING:
    from ..format.format import Format

there = provided("device MaskedDeviceTensor", __name__)

text: Callable[..., str] = provided("masked text", __name__)
html: Callable[..., str] = provided("masked html", __name__)


__all__ = ["MaskedTensor", "bits_of", "require_masked", "unpickled", "wrap"]


@one_class
class MaskedTensor(Arithmetic, Methods, Protocols, MaskedMethods):
    """A tensor some of whose elements are missing: no value at all, not zero and not NaN.

    Made by `masked_tensor` and `as_masked_tensor`. It holds one Tensor, `specified`, whose stored elements are those
    that have a value; operations are operations on that Tensor which leave its fill value out.

    Examples
    --------
    >>> ratings = ow.masked_tensor(np.array([[5.0, 0], [4.0, 1.0]]), np.array([[True, False], [True, True]]))
    >>> ratings.mean(axis=0).to_numpy(-1).tolist()
    [4.5, 1.0]
    """

    __slots__ = ("_scalar", "_tensor")
    _tensor: Tensor
    _scalar: bool
    """rank 0: kept as the only element of one dimension, so that it can be missing"""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(
            "a MaskedTensor is made by functions, not by its class\n  help: openwork.masked_tensor(data, mask)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (self._tensor, self._scalar)

    @property
    def specified(self) -> Tensor:
        """The Tensor whose stored elements are the specified ones, over the same buffers; rank 1 for rank 0."""
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions."""
        return () if self._scalar else self._tensor.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> CallableSize:
        """The number of elements, missing ones included; called, the extents, as in torch."""
        size = CallableSize(math.prod(self.shape))
        size.shape = self.shape
        return size

    def numel(self) -> int:
        """The number of elements, missing ones included."""
        return math.prod(self.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    nelement, ndimension = numel, dim

    @property
    def dtype(self) -> Any:
        """The dtype of the elements: NumPy's or torch's."""
        return self._tensor.dtype

    @property
    def device(self) -> str:
        """ "cpu", or torch's name of the device."""
        return self._tensor.device

    @property
    def format(self) -> Format:
        """The format of the one Tensor: its specified elements are the mask."""
        return self._tensor.format

    @property
    def layout(self) -> Any:
        """The layout of data and mask: torch's, `torch.sparse_csr` say, over torch buffers, None where it has none.

        Over NumPy buffers its name: "strided", "sparse_coo", ...; else the format's text.
        """
        name = forms.layout_name(self.format)
        return getattr(sys.modules["torch"], name, None) if buffers.is_torch(self._tensor._raw_storage.values) else name

    @property
    def nse(self) -> int:
        """The number of specified elements."""
        bits = bits_of(self._tensor._storage)
        if bits is not None and len(bits) == self.size:
            return int(bits.sum())
        return self._tensor.nse

    @property
    def values(self) -> Array:
        """The buffer of values, 1-D; positions of missing elements hold anything."""
        return self._tensor.values

    @property
    def is_sparse(self) -> CallableBool:
        """Whether data and mask are not dense arrays: an attribute, and a method, as torch has had both."""
        return CallableBool(not forms.is_strided(self.format))

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are COO."""
        return forms.layout_name(self.format) == "sparse_coo"

    def is_sparse_csr(self) -> bool:
        """Whether data and mask are CSR."""
        return forms.layout_name(self.format) == "sparse_csr"

    def is_sparse_csc(self) -> bool:
        """Whether data and mask are CSC."""
        return forms.layout_name(self.format) == "sparse_csc"

    def get_data(self) -> Tensor:
        """The data: a Tensor over the same values, with anything in the places of missing elements."""
        return self._apart(self._tensor._storage.values)

    def get_mask(self) -> Tensor:
        """The mask: a bool Tensor of the structure of `get_data()`, True where an element is specified."""
        s = self._tensor._storage
        bits = bits_of(s)
        if bits is None:
            bits = buffers.as_array(np.ones(len(s.values), np.bool_), like=s.values)
        return self._apart(bits)

    data, mask = get_data, get_mask

    def _apart(self, values: Array) -> Tensor:
        s = self._tensor._storage
        plain = forms.plain(s.format)
        if self._scalar:
            return Tensor._from_dense(values.reshape(()))
        n = len(plain.levels)
        pos, crd = s.pos[:n], s.crd[:n]
        if forms.has_bits(s.format) and not forms.loose(s.format):
            crd = (*crd[:-1], None)
        fill = python_value(0, s.with_values(values))
        return Tensor._from_storage(Storage(s.shape, plain, buffers.scalar_of(values), fill, pos, crd, values))

    def asformat(self, format: str | Format | None) -> MaskedTensor:
        """The same elements in another format.

        Parameters
        ----------
        format : Format, its text, or its name; one whose last level stores all children gets a bitmap there

        Guarantees: `m.to_dense().asformat(m.format)` has the elements of `m`; an element that is stored and masked out
        is dropped.
        """
        if self._scalar:
            resolve_format("dense", 0)
            return self
        target = forms.fitting(resolve_format(format, self.ndim, self.format))
        return self if target == self.format else wrap(self._tensor.asformat(target))

    def to_dense(self) -> MaskedTensor:
        """Data and mask as dense arrays: the bitmap format."""
        return self if self._scalar else wrap(self._tensor.asformat(forms.strided(self.ndim)))

    def to_sparse(self, *, layout: Any = None, blocksize: tuple[int, int] | None = None) -> MaskedTensor:
        """The same elements in one of torch's sparse layouts, COO without; only specified elements are stored."""
        name = "coo" if layout is None else str(layout).removeprefix("torch.").removeprefix("sparse_")
        if name not in LAYOUTS:
            raise FormatError(f"to_sparse: torch has no sparse layout {layout!r}\n  help: {', '.join(LAYOUTS)}")
        if name not in ("bsr", "bsc"):
            return self.asformat(name)
        sizes = extents(() if blocksize is None else blocksize, "to_sparse", "blocksize")
        if len(sizes) != 2:
            raise ShapeError(f"to_sparse: {name} needs blocksize=(rows, columns); got {blocksize}\n  help: (2, 2)")
        return self.asformat(f"{name}({sizes[0]}, {sizes[1]})")

    def to_sparse_coo(self) -> MaskedTensor:
        """The same elements in COO; only specified elements are stored."""
        return self.asformat("coo")

    def to_sparse_csr(self) -> MaskedTensor:
        """The same elements in CSR. Raises FormatError for a tensor that is no matrix."""
        return self.asformat("csr")

    def to_sparse_csc(self) -> MaskedTensor:
        """The same elements in CSC. Raises FormatError for a tensor that is no matrix."""
        return self.asformat("csc")

    def to_sparse_bsr(self, blocksize: tuple[int, int]) -> MaskedTensor:
        """The same elements in BSR, with a bit for each element of a block."""
        return self.asformat(f"bsr({int(blocksize[0])}, {int(blocksize[1])})")

    def filled(self, value: Any) -> Tensor:
        """A Tensor with `value` for missing elements: dense for dense data, else `value` is its fill value."""
        s = self._tensor._storage
        bits = bits_of(s)
        if bits is not None and forms.is_strided(s.format):
            return self._apart(_where(bits, s.values, python_value(value, s)))
        fitting = self._tensor if forms.fitting(s.format) == s.format else self.compact()._tensor
        fill = python_value(value, fitting._storage)
        return Tensor._from_storage(fitting._storage.with_values(fitting.values, fill))

    def to_tensor(self, value: Any) -> Array:
        """The dense array of the tensor's own library, with `value` for every missing element."""
        return self.to_dense().filled(value).to_dense()

    def to_numpy(self, value: Any = None) -> np.ndarray[Any, Any]:
        """The dense NumPy array, with `value` for every missing element; without it an UnsupportedError."""
        if value is None:
            raise UnsupportedError(
                "to_numpy: missing elements have no value\n  help: to_numpy(0), or to_masked_array() for numpy.ma"
            )
        return self.to_dense().filled(value).to_numpy()

    def compressed(self) -> Array:
        """The specified elements as a 1-D array of the tensor's own library, in row-major order."""

        if self._scalar:
            return self.values[bits_of(self._tensor._storage)]
        return self._tensor.asformat("coo").values

    def compact(self) -> MaskedTensor:
        """The same elements without those that are stored and masked out, as far as the format can."""
        target = forms.fitting(forms.plain(self.format))
        return wrap(self._tensor.asformat(target), self._scalar)

    def astype(self, dtype: object, /) -> MaskedTensor:
        """The elements in another dtype, over the same structure."""
        return wrap(self._tensor.astype(dtype), self._scalar)

    def to(self, device: object = None, dtype: object = None) -> MaskedTensor:
        """The elements on another device, or in another dtype."""
        moved = self._tensor.to(device, dtype)
        if hasattr(type(moved), "__openwork_device__"):
            return there(moved, self._scalar)  # type: ignore[no-any-return]
        return wrap(moved, self._scalar)

    def clone(self) -> MaskedTensor:
        """A copy with buffers of its own."""
        return wrap(self._tensor.clone(), self._scalar)

    def item(self) -> Any:
        """The value of the only element as a Python scalar.

        Raises ShapeError where there are more elements, ValueError where it is missing.
        """
        if self.size != 1:
            raise ShapeError(f"item: expected one element; got shape {self.shape}\n  help: index it first")
        elements = self.compressed()
        if not len(elements):
            raise ValueError("item: the element is missing\n  help: filled(value) gives it a value")
        return elements[0].item()

    def __len__(self) -> int:
        if self._scalar:
            raise TypeError("len() of a masked tensor of rank 0")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the values are recorded."""
        return self._tensor.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        """Record operations on the values from now on. Raises UnsupportedError for NumPy buffers."""
        self._tensor.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> MaskedTensor | None:
        """The gradient: missing where the element is missing; None before `backward`."""
        gradient = self._tensor.grad
        return None if gradient is None else wrap(gradient, self._scalar)

    @grad.setter
    def grad(self, grad: Any) -> None:
        self._tensor.grad = self._incoming(grad, "grad")

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate gradients of everything that the values depend on; see `Tensor.backward`.

        A masked `gradient` is 0 where it is missing; what it has where this tensor is missing is dropped.
        """
        incoming = self._incoming(gradient, "backward")
        if incoming is None and self.size == 1:
            incoming = self.values.new_ones(self._tensor.shape)
        self._tensor.backward(incoming, retain_graph, create_graph, inputs)

    def _incoming(self, gradient: Any, operation: str) -> Any:
        """A gradient that is handed in, for the one Tensor: of its rank, 0 where it is missing."""
        plain = gradient.filled(0) if isinstance(gradient, MaskedTensor) else gradient
        shape = self.shape if plain is None else tuple(getattr(plain, "shape", self.shape))
        if shape != self.shape:
            raise ShapeError(
                f"{operation}: a gradient of shape {shape}\n  expected: {self.shape}\n  help: reshape or broadcast it"
            )
        return plain[None] if self._scalar and hasattr(plain, "shape") else plain

    def detach(self) -> MaskedTensor:
        """The same elements without a graph."""
        return wrap(self._tensor.detach(), self._scalar)

    def __repr__(self) -> str:

        return text(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:

        return html(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise UnsupportedError(
            "a masked tensor is not an array: missing elements have no value"
            "\n  help: filled(value), to_numpy(value), compressed(), or to_masked_array() for numpy.ma;"
            " openwork.asarray(S) @ m and so on, where a SciPy array S stands on the left of an operator"
        )

    def to_masked_array(self) -> Any:
        """The tensor as a `numpy.ma.MaskedArray`; shares the values of a dense NumPy one."""
        import numpy as np

        dense = self.to_dense().detach()
        bits = bits_of(dense._tensor._storage)
        shape = self.shape
        return np.ma.MaskedArray(
            buffers.to_numpy(dense.values).reshape(shape), mask=~buffers.to_numpy(bits).reshape(shape)
        )

    def to_torch_masked(self) -> Any:
        """The tensor as a `torch.masked.MaskedTensor`: strided, COO or CSR data and mask as they are."""
        from torch.masked import as_masked_tensor

        if forms.layout_name(self.format) in ("strided", "sparse_coo", "sparse_csr"):
            return as_masked_tensor(self.get_data().to_torch(), self.get_mask().to_torch())
        return self.to_dense().to_torch_masked()


@provides("masked wrap")
def wrap(tensor: Tensor, scalar: bool = False) -> MaskedTensor:
    """The masked tensor of a Tensor whose specified elements are the mask."""
    self = object.__new__(MaskedTensor)
    self._tensor, self._scalar = tensor, scalar
    return self


def require_masked(operation: str, m: Any) -> None:
    """Raise UnsupportedError where the operand that an operation is of is not the one that is masked."""
    if not isinstance(m, MaskedTensor):
        raise UnsupportedError(
            f"{operation}: the first operand is not a masked tensor\n  help: as_masked_tensor(x, mask)"
        )


def unpickled(tensor: Tensor, scalar: bool) -> MaskedTensor:
    """The masked tensor of a pickle, which may hold anything. Raises InvariantError where it is none."""
    if not isinstance(tensor, Tensor) or type(scalar) is not bool or (scalar and tensor.shape != (1,)):
        raise InvariantError(f"unpickling: no masked tensor of {tensor!r}\n  help: save it anew")
    return wrap(tensor, scalar)


def bits_of(s: Storage) -> Any:
    """The bits of the last level, None where it stores none."""
    return s.crd[-1] if forms.has_bits(s.format) else None


@cache
def zero(scalar: str) -> Any:
    """The fill value that stands where nothing is specified: nobody sees it."""

    return python_scalar(0, scalar)


def python_value(value: Any, s: Storage) -> Any:
    """A value as a Python scalar of the storage's type."""

    if isinstance(value, complex) and s.scalar[0] != "c":
        raise DTypeError(f"filled: {value!r} is not a value of dtype {s.scalar}\n  help: astype() first")
    return python_scalar(value, s.scalar)


def _where(bits: Array, values: Array, value: Any) -> Array:
    if buffers.is_torch(values):
        return values.masked_fill(~bits, value)
    import numpy as np

    return np.where(bits, values, np.asarray(value, values.dtype))


document_class(
    MaskedTensor,
    provided("masked method texts"),
    "m = ow.masked_tensor(np.array([1.0, 4.0, 9.0]), np.array([True, True, False]))",
)
