"""Attributes of torch's tensors that say how a Tensor is stored: layout and its buffers, device, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..errors import UnsupportedError
from ..format import coo
from ..integers import integer
from ..provided import provided
from ..runtime.check import check
from ..runtime.layouts import Layout, layout_of
from ..storage import buffers
from ..storage.buffers import Array, is_torch
from ..storage.watch import read_only

if TYPE_CHECKING:
    from .tensor import Tensor

axis_of = provided("axis_of", __name__)
axes_of_values = provided("axes_of_values", __name__)
stacked_coordinates = provided("stacked_coordinates", __name__)
torch_layout = provided("torch_layout", __name__)

__all__ = ["TorchAttributes"]


def _of_torch(t: TorchAttributes, name: str) -> Tensor:
    """The Tensor, where its values are torch's; an attribute that it has not, else."""
    me = cast("Tensor", t)
    if not is_torch(me._storage.values):
        raise AttributeError(name, name=name, obj=t)
    return me


class TorchAttributes:
    """The mixin of `Tensor` that holds torch's attributes; those of layouts and devices for torch buffers only."""

    __slots__ = ()

    # -- the layout ----------------------------------------------------------------------------------------------------

    @property
    def layout(self) -> Any:
        """torch's layout: `torch.strided` of dense formats, `torch.sparse_csr` and the others where the format is it.

        None where torch has no layout that is this format, or that leaves out elements of this fill value.
        """
        return torch_layout(_of_torch(self, "layout"))

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is torch's COO."""
        return str(_of_torch(self, "is_sparse").layout) == "torch.sparse_coo"

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is torch's CSR."""
        return str(_of_torch(self, "is_sparse_csr").layout) == "torch.sparse_csr"

    def stride(self, dim: int | None = None) -> Any:
        """The elements from one to the next along each dimension, or one, of a dense format; sparse ones have none."""
        me = cast("Tensor", self)
        if not me.format.is_dense:
            raise UnsupportedError(f"stride: format {me.format} has no strides\n  help: to_dense()")
        dense: Any = me.to_dense()
        steps = [int(n) for n in (dense.stride() if is_torch(dense) else [n // dense.itemsize for n in dense.strides])]
        return tuple(steps) if dim is None else steps[axis_of(dim, me.ndim, "stride", "dim")]

    # -- the buffers of a layout --------------------------------------------------------------------------------------

    def _layout(self, operation: str, *kinds: str) -> Layout:
        me = cast("Tensor", self)
        layout = layout_of(me.format)
        if layout is None or layout.kind not in kinds:
            block = me.format.blocksize
            blocked = next((k for k in kinds if k.startswith("bs")), None) if block is not None else None
            name = f"{blocked}({', '.join(map(str, block))})" if blocked and block else kinds[0]
            remedy = f'help: asformat("{name}") first, or take pos(level) and crd(level)'
            raise UnsupportedError(f"{operation}: format {me.format} has no such buffer\n  {remedy}")
        return layout

    def _batched(self, buffer: Array | None, layout: Layout) -> Array:
        me = cast("Tensor", self)
        slices = me._storage.batches
        n = buffers.length(buffer) // slices if slices else 0
        return buffer.reshape(*me.shape[: layout.batch], n) if layout.batch else buffer  # type: ignore[union-attr]

    def indices(self) -> Array:
        """All coordinates of a COO format, shape (sparse_dim, nse): a view where they lie one after the other.

        Raises UnsupportedError over torch's buffers where the tensor is not coalesced, as torch has it; a RuntimeError.
        """
        me = cast("Tensor", self)
        self._layout("indices", "coo")
        if is_torch(me._storage.values) and not me.is_coalesced():
            raise UnsupportedError(
                "indices: the tensor is not coalesced\n  help: coalesce() first, or _indices() of what is stored"
            )
        return self._indices()

    def crow_indices(self) -> Array:
        """Row positions of a CSR or BSR format, shape (*batch, rows + 1)."""
        layout = self._layout("crow_indices", "csr", "bsr")
        return self._batched(cast("Tensor", self).pos(layout.level), layout)

    def col_indices(self) -> Array:
        """Column coordinates of a CSR or BSR format, shape (*batch, nse or blocks)."""
        layout = self._layout("col_indices", "csr", "bsr")
        return self._batched(cast("Tensor", self).crd(layout.level), layout)

    def ccol_indices(self) -> Array:
        """Column positions of a CSC or BSC format, shape (*batch, columns + 1)."""
        layout = self._layout("ccol_indices", "csc", "bsc")
        return self._batched(cast("Tensor", self).pos(layout.level), layout)

    def row_indices(self) -> Array:
        """Row coordinates of a CSC or BSC format, shape (*batch, nse or blocks)."""
        layout = self._layout("row_indices", "csc", "bsc")
        return self._batched(cast("Tensor", self).crd(layout.level), layout)

    # -- counts --------------------------------------------------------------------------------------------------------

    def nelement(self) -> int:
        """The number of elements, specified or not."""
        return int(cast("Tensor", self).size)

    def ndimension(self) -> int:
        """The number of dimensions."""
        return cast("Tensor", self).ndim

    def element_size(self) -> int:
        """The bytes of one element."""
        return buffers.itemsize(cast("Tensor", self)._storage.scalar)

    def _nnz(self) -> int:
        """What torch counts: blocks of blocked layouts, rows of values of hybrid ones, of one batch; else `nse`."""
        me = cast("Tensor", self)
        layout = _stored_layout(me)
        return me.nse if layout is None else int(self.block_values.shape[layout.batch])

    def _dimI(self) -> int:
        """The number of sparse dimensions."""
        return int(cast("Tensor", self).sparse_dim)

    def _dimV(self) -> int:
        """The number of dense dimensions."""
        return int(cast("Tensor", self).dense_dim)

    # -- buffers -------------------------------------------------------------------------------------------------------

    @property
    def block_values(self) -> Array:
        """The values as torch has them, shape (*batch, stored, *blocksize, *dense): a view.

        Raises UnsupportedError for formats other than COO, CSR, CSC, BSR, BSC and dense.
        """
        me = cast("Tensor", self)
        layout = layout_of(me.format)
        if layout is None or layout.kind == "dia":
            raise UnsupportedError(
                f"block_values: format {me.format} keeps values of no such shape\n  help: values, or asformat() first"
            )
        return axes_of_values(me, layout)

    def _indices(self) -> Array:
        """The coordinates of a COO format, coalesced or not; see `indices`."""
        self._layout("_indices", "coo")
        return read_only(stacked_coordinates(cast("Tensor", self)._storage))

    def _coalesced_(self, coalesced: bool) -> Tensor:
        """Say in place whether the coordinates of a COO tensor are sorted and distinct.

        Raises InvariantError where they are said to be so and are not.
        """
        me = cast("Tensor", self)
        self._layout("_coalesced_", "coo")
        format = coo(me.ndim, unique=coalesced, ordered=coalesced, dense=me.dense_dim)
        storage = me._storage.with_format(format)
        if coalesced:
            check(storage)
        me._storage = storage
        return me

    def _values(self) -> Array:
        """The values of a COO format, shape (nse, *dense): a view."""
        cast("Tensor", self)._layout("_values", "coo")
        return self.block_values

    @property
    def data(self) -> Tensor:
        """The same elements without a graph, over the same buffers."""
        return _of_torch(self, "data").detach()

    # -- the device ----------------------------------------------------------------------------------------------------

    @property
    def is_cuda(self) -> bool:
        """Whether the buffers are in a GPU's memory."""
        return _of_torch(self, "is_cuda").device.startswith("cuda")

    @property
    def is_cpu(self) -> bool:
        """Whether the buffers are in the host's memory."""
        return _of_torch(self, "is_cpu").device == "cpu"

    @property
    def is_meta(self) -> bool:
        """Whether the buffers are without memory: never."""
        return _of_torch(self, "is_meta").device == "meta"

    @property
    def is_quantized(self) -> bool:
        """Whether the values are quantized: never."""
        return bool(_of_torch(self, "is_quantized").values.is_quantized)

    @property
    def is_nested(self) -> bool:
        """Whether this is one of torch's nested tensors: never."""
        return bool(_of_torch(self, "is_nested").values.is_nested)

    @property
    def is_mkldnn(self) -> bool:
        """Whether the layout is MKL-DNN's: never."""
        return bool(_of_torch(self, "is_mkldnn").values.is_mkldnn)

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return buffers.itemsize(_of_torch(self, "itemsize")._storage.scalar)

    @property
    def retains_grad(self) -> bool:
        """Whether the gradient of a tensor that is no leaf is kept."""
        return bool(_of_torch(self, "retains_grad").values.retains_grad)

    def is_inference(self) -> bool:
        """Whether the values were made in `torch.inference_mode`."""
        return bool(_of_torch(self, "is_inference").values.is_inference())

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return bool(_of_torch(self, "is_signed").values.is_signed())

    def is_conj(self) -> bool:
        """Whether a conjugation is pending: never."""
        return bool(_of_torch(self, "is_conj").values.is_conj())

    def is_neg(self) -> bool:
        """Whether a negation is pending: never."""
        return bool(_of_torch(self, "is_neg").values.is_neg())

    def get_device(self) -> int:
        """The number of the GPU, -1 for the host."""
        return int(_of_torch(self, "get_device").values.get_device())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Tensor:
        """The tensor in a GPU's memory."""
        number = integer(device, "cuda", "device") if isinstance(device, int) else None
        return cast("Tensor", self).to("cuda" if device is None else device if number is None else f"cuda:{number}")

    def is_pinned(self) -> bool:
        """Whether the values are in pinned memory."""
        return bool(_of_torch(self, "is_pinned").values.is_pinned())

    def pin_memory(self) -> Tensor:
        """The tensor in pinned memory, from which copies to a GPU run beside the host's work.

        Raises UnsupportedError where torch has no device to pin memory for.
        """
        me = _of_torch(self, "pin_memory")
        try:
            return me._from_storage(me._storage.mapped(lambda b: b.pin_memory()))
        except RuntimeError as error:
            raise UnsupportedError(f"pin_memory: {error}\n  help: leave it out where there is no GPU") from error


def _stored_layout(t: Tensor) -> Layout | None:
    """The layout of a format whose values have torch's axes and that is not dense."""
    layout = layout_of(t.format)
    return None if layout is None or layout.kind in ("dia", "dense") else layout
