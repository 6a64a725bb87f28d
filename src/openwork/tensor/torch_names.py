"""torch's names for what a Tensor does: layouts, selections and the in-place forms, for buffers of any library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..errors import FormatError, ShapeError
from ..format import coo
from ..format import format as parse
from ..integers import AxisError, ExtentError, extents, integer
from ..namespaces import NoAttribute
from ..provided import provided
from ..runtime.gradient_hook import rule
from ..storage.buffers import host_values, is_torch, length
from ..storage.storage import Storage
from .inplace import assign_result, make_writable
from .numpy_names import array_method

if TYPE_CHECKING:
    from .tensor import Tensor

axis_of: Callable[..., int] = provided("axis_of", __name__)
unary = provided("unary", __name__)
take: Callable[..., Tensor] = provided("take", __name__)
swapped_axes: Callable[..., list[int]] = provided("swapped_axes", __name__)
zeros = provided("zeros", __name__)


__all__ = ["LAYOUTS", "CallableBool", "CallableInt", "CallableSize", "TorchNames"]

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")


def _me(t: TorchNames) -> Tensor:
    return cast("Tensor", t)


def _axis(dim: int, ndim: int, operation: str) -> int:

    return axis_of(dim, ndim, operation, "dim")


def _index_along(t: Tensor, dim: int, key: Any, operation: str) -> Any:
    d = _axis(dim, t.ndim, operation)
    return t[(*(slice(None),) * d, key)]


class CallableInt(int):
    """An int that gives itself when called: an attribute here, a method in torch."""

    def __call__(self) -> int:
        return int(self)


class CallableBool(int):
    """A bool that gives itself when called: an attribute of torch's tensors, a method of its masked ones once."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return bool, (bool(self),)


class CallableSize(int):
    """`t.size`: an int, the number of elements; called, as torch's method, the extents."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        n, dim = len(self.shape), integer(dim, "size", "dim")
        if not -n <= dim < n:
            raise AxisError(f"size: dimension {dim} of shape {self.shape}\n  help: they are {-n} to {n - 1}")
        return self.shape[dim]

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


_SCIPYS = {
    "data": "values is the buffer of values; asarray(t, like=torch) has torch's data",
    "indptr": "pos(level) has the positions of a level, pos(1) of CSR and CSC",
    **dict.fromkeys(("coords", "row", "col"), "asformat('coo').indices() has the coordinates"),
    **dict.fromkeys(("A", "A1"), "to_numpy() gives the dense array"),
    **dict.fromkeys(("getrow", "get_row"), "A[i] is a row, A[[i]] a matrix of one row"),
    **dict.fromkeys(("getcol", "get_col"), "A[:, j] is a column, A[:, [j]] a matrix of one column"),
    **dict.fromkeys(("save", "to_file"), "openwork.write(path, A) writes a file"),
    **dict.fromkeys(("plot", "spy"), "openwork.plot.spy(A) draws where elements are; plot.rows, plot.levels"),
}
"""What is written here for attributes of SciPy's, and for those that people try."""


class TorchNames:
    """The mixin of `Tensor` that holds torch's names."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "__qualname__":  # what torch calls it where it asks for a tensor: torch.optim.SGD([t])
                return f"{type(self).__qualname__} t, whose leaf is t.values"
            if not name.startswith("_") and is_torch(self._storage.values):
                method = rule("torch_method")(self, name)
                if method is not None:
                    return method
            method = None if name.startswith("_") else array_method(self, name)
            if method is not None:
                return method
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _SCIPYS:
                raise AttributeError(f"{text}\n  help: {_SCIPYS[name]}", name=name, obj=self)
            if hasattr(type(self), name):
                text += " over NumPy buffers\n  help: asarray(t, like=torch) is over torch's"
                raise AttributeError(text, name=name, obj=self)
            raise NoAttribute(text, name=name, obj=self)

    @property
    def mH(self) -> Tensor:
        """The transpose of the last two dimensions, conjugated."""

        me = _me(self).mT
        return unary("conj", me) if me._storage.scalar in ("c64", "c128") else me

    @property
    def H(self) -> Tensor:
        """The conjugated transpose of a matrix."""
        if _me(self).ndim != 2:
            raise ShapeError(f"H: expected a matrix; got shape {_me(self).shape}\n  help: use mH")
        return self.mH

    def dim(self) -> int:
        """The number of dimensions."""
        return _me(self).ndim

    def numel(self) -> int:
        """The number of elements, specified or not."""
        return _me(self).size

    def t(self) -> Tensor:
        """The transpose of a matrix, over the same buffers; a vector itself."""
        me = _me(self)
        if me.ndim > 2:
            raise ShapeError(f"t: expected one or two dimensions; got shape {me.shape}\n  help: use transpose or mT")
        return me.T

    def cpu(self) -> Tensor:
        """The tensor in the host's memory."""
        return _me(self).to("cpu")

    def type_as(self, other: Any) -> Tensor:
        """The tensor with values of the dtype of another one."""
        return _me(self).astype(other.dtype, copy=False)

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return host_values(_me(self).to_dense()).tolist()

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """`length` coordinates of a dimension from `start` on."""
        me = _me(self)
        extent = me.shape[_axis(dim, me.ndim, "narrow")]
        start, length = integer(start, "narrow", "start"), integer(length, "narrow", "length")
        start = start + extent if start < 0 else start
        if not 0 <= start <= start + length <= extent:
            raise ShapeError(f"narrow: {start} to {start + length} of an extent of {extent}\n  help: stay inside")
        result: Tensor = _index_along(me, dim, slice(start, start + length), "narrow")
        return result

    def select(self, dim: int, index: int) -> Tensor:
        """One coordinate of a dimension, which goes."""
        result: Tensor = _index_along(_me(self), dim, integer(index, "select", "index"), "select")
        return result

    def index_select(self, dim: int, index: Any) -> Tensor:
        """The coordinates of a dimension that `index` names, in that order."""

        if getattr(index, "ndim", 1) > 1:
            raise ShapeError(
                f"index_select: an index of shape {tuple(index.shape)}\n  expected: a vector\n  help: take"
            )
        me, vector = _me(self), index.reshape(-1) if hasattr(index, "reshape") else index
        d = _axis(dim, max(me.ndim, 1), "index_select")
        if me.ndim:
            return take(me, vector, axis=d)
        if len(vector) != 1:
            raise ShapeError(f"index_select: {len(vector)} coordinates of a tensor of rank 0\n  expected: one, 0")
        one: Tensor = take(me.reshape((1,)), vector, axis=0).reshape(())
        return one

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Sequence[int] | None = None,
        dense_dim: int | None = None,
    ) -> Tensor:  # fmt: skip
        """The tensor in one of torch's sparse layouts.

        Parameters
        ----------
        sparse_dim : dimensions that are not dense, of COO; all without
        layout : torch's layout or its name, "csr"; COO without
        blocksize : of "bsr" and "bsc"
        dense_dim : dimensions at the end that are stored dense
        """
        me = _me(self)
        name = "coo" if layout is None else str(layout).removeprefix("torch.").removeprefix("sparse_")
        if name not in LAYOUTS:
            raise FormatError(f"to_sparse: torch has no sparse layout {layout!r}\n  help: {', '.join(LAYOUTS)}")
        if sparse_dim is not None:
            dense_dim = me.ndim - integer(sparse_dim, "to_sparse", "sparse_dim")
        dense_dim = None if dense_dim is None else integer(dense_dim, "to_sparse", "dense_dim")
        if dense_dim is not None and not 0 <= dense_dim <= me.ndim:
            raise ShapeError(
                f"to_sparse: {me.ndim - dense_dim} sparse and {dense_dim} dense dimensions of {me.ndim}"
                "\n  help: they are as many in all, each 0 or more"
            )
        return me.asformat(_format(me, name, blocksize, dense_dim))

    def to_sparse_coo(self) -> Tensor:
        """The tensor in coordinates."""
        return self.to_sparse(layout="coo", dense_dim=None)

    def to_sparse_csr(self, dense_dim: int | None = None) -> Tensor:
        """The tensor in compressed rows; dimensions in front of the last two sparse ones are a batch."""
        return self.to_sparse(layout="csr", dense_dim=dense_dim)

    def to_sparse_csc(self, dense_dim: int | None = None) -> Tensor:
        """The tensor in compressed columns."""
        return self.to_sparse(layout="csc", dense_dim=dense_dim)

    def to_sparse_bsr(self, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
        """The tensor in compressed rows of blocks."""
        return self.to_sparse(layout="bsr", blocksize=blocksize, dense_dim=dense_dim)

    def to_sparse_bsc(self, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
        """The tensor in compressed columns of blocks."""
        return self.to_sparse(layout="bsc", blocksize=blocksize, dense_dim=dense_dim)

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Add `alpha * other` in place: the tensor gets a new structure where it needs one, and keeps its format."""
        make_writable(_me(self), "add_")
        return self._assign_result("add_", _me(self) + (other if alpha == 1 else other * alpha))

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Subtract `alpha * other` in place."""
        make_writable(_me(self), "sub_")
        return self._assign_result("sub_", _me(self) - (other if alpha == 1 else other * alpha))

    def mul_(self, other: Any) -> Tensor:
        """Multiply by `other` in place."""
        make_writable(_me(self), "mul_")
        return self._assign_result("mul_", _me(self) * other)

    def div_(self, other: Any) -> Tensor:
        """Divide by `other` in place."""
        make_writable(_me(self), "div_")
        return self._assign_result("div_", _me(self) / other)

    def transpose_(self, dim0: int, dim1: int) -> Tensor:
        """Exchange two dimensions in place; the buffers stay."""
        me = _me(self)
        me._storage = me._storage.permute(self._swapped_axes(dim0, dim1, "transpose_"))
        return me

    def _swapped_axes(self, dim0: int, dim1: int, operation: str) -> list[int]:
        """The order of the dimensions, two of them exchanged."""

        return swapped_axes(_me(self).ndim, dim0, dim1, operation)

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
        """Change the shape of a COO tensor in place; its elements keep their coordinates.

        Raises ShapeError where an element would lie outside, or the dense dimensions change and there are elements.
        """
        me = _me(self)
        me._layout("sparse_resize_", "coo")
        size = extents(size, "sparse_resize_", negative=True)
        sparse_dim = integer(sparse_dim, "sparse_resize_", "sparse_dim")
        dense_dim = integer(dense_dim, "sparse_resize_", "dense_dim")
        s = me._storage
        if len(size) != sparse_dim + dense_dim or min(size, default=0) < 0:
            raise ShapeError(f"sparse_resize_: shape {size} has not {sparse_dim} + {dense_dim} extents of 0 or more")
        same_dims = (sparse_dim, dense_dim) == (me.sparse_dim, me.dense_dim) and size[sparse_dim:] == s.shape[
            sparse_dim:
        ]
        too_large = [d for d, c in enumerate(s.crd) if c is not None and length(c) and int(c.max()) >= size[d]]
        if length(s.values) and (not same_dims or too_large):
            raise ShapeError(
                f"sparse_resize_: {length(s.values)} elements of shape {s.shape} do not fit shape {size}"
                "\n  help: narrow it first, or make a new tensor"
            )
        if same_dims:
            me._storage = Storage(size, s.format, s.scalar, s.fill_value, s.pos, s.crd, s.values)
        else:
            empty = zeros(size, dtype=me.dtype, format=coo(len(size), dense=dense_dim))
            me._storage = empty._storage
        return me

    def _assign_result(self, operation: str, result: Any) -> Tensor:
        return assign_result(_me(self), operation, result)


def _format(t: Tensor, name: str, blocksize: Sequence[int] | None, dense: int | None) -> Any:

    dense = (0 if t.format.is_dense else t.dense_dim) if dense is None else dense
    if name == "coo":
        return coo(t.ndim, dense=dense)
    batch = t.ndim - 2 - dense
    if batch < 0:
        raise ShapeError(f"to_sparse: {name} of {t.ndim} dimensions, {dense} of them dense\n  help: two are sparse")
    if name in ("bsr", "bsc"):
        block = () if blocksize is None else extents(blocksize, "to_sparse", "blocksize", negative=True)
        if len(block) != 2:
            error = ExtentError if blocksize is None else ShapeError
            got = f"got: blocksize={blocksize}\n  help: blocksize=(2, 2)"
            raise error(f"to_sparse: {name} needs the two extents of a block\n  {got}")
        name = f"{name}({block[0]}, {block[1]})"
    return parse(name, t.ndim, batch=batch, dense=dense)
