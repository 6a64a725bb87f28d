"""A Tensor -> a torch tensor of one of its six layouts, over the same buffers where the format is that layout."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError
from ..format import coo
from ..format import format as parse
from ..provided import provides
from ..runtime.layouts import Layout, layout_of
from ..storage import buffers
from ..storage.buffers import Array
from ..tensor.tensor import Tensor
from .export import _blocks, _zero_fill, stacked_coordinates, to_dense, with_own_indices

__all__ = ["to_torch", "torch_layout"]

_NAMES = {
    **{name: name for name in ("dense", "coo", "csr", "csc", "bsr", "bsc")},
    **{f"sparse_{name}": name for name in ("coo", "csr", "csc", "bsr", "bsc")},
    "strided": "dense",
    "sparse": "coo",
}


@provides("to_torch")
def to_torch(t: Tensor, layout: Any = None) -> Any:
    """The tensor as a torch tensor.

    Parameters
    ----------
    t : Tensor; batch and dense dimensions become torch's
    layout : torch.strided, torch.sparse_coo, torch.sparse_csr, ... or their names; None takes the one that the
        tensor's format is, else CSR for two sparse dimensions, else COO

    Returns
    -------
    torch tensor over the same buffers where the layout is the format's; torch's COO takes int64 coordinates only

    Raises UnsupportedError for a non-zero fill value.
    """
    kind = None
    if layout is not None:
        kind = _NAMES.get(str(layout).removeprefix("torch."))
        if kind is None:
            raise UnsupportedError(f"to_torch: torch has no layout {layout!r}\n  supported: {', '.join(_NAMES)}")
    current = _torch_layout(t)
    kind = kind or (
        current.kind if current else "dense" if t.format.is_dense else "csr" if t.sparse_dim == 2 else "coo"
    )
    if kind == "dense":
        return _tensor(to_dense(t))
    _zero_fill(t, "to_torch")
    if current is None or current.kind != kind:
        t = t.asformat(_target_format(t, kind))
        current = layout_of(t.format)
    assert current is not None
    t = with_own_indices(t)
    return _coordinates(t, current) if kind == "coo" else _compressed(t, current)


@provides("torch_layout")
def torch_layout(t: Tensor) -> Any:
    """torch's layout that the format of `t` is, `torch.strided` for dense formats; None where it is none of torch's."""
    torch = buffers.torch_module()
    if t.format.is_dense:
        return torch.strided
    layout = _torch_layout(t)
    return None if layout is None or t.fill_value else getattr(torch, f"sparse_{layout.kind}")


def _torch_layout(t: Tensor) -> Layout | None:
    """The layout of `t` when torch has it as it is."""
    layout = layout_of(t.format)
    if layout is None or layout.kind == "dia":
        return None
    if layout.kind in ("bsr", "bsc") and t.format.ragged(t.shape):
        return None
    return layout if layout.exact or layout.kind == "coo" else None


def _target_format(t: Tensor, kind: str) -> Any:
    dense = 0 if t.format.is_dense else t.dense_dim
    if kind == "coo":
        return coo(t.ndim, dense=dense)
    if t.ndim < 2:
        raise UnsupportedError(f"to_torch: {kind} of rank {t.ndim}\n  supported: rank 2 and more, or 'coo'")
    batch = min(t.batch_dim, t.ndim - 2)
    dense = t.ndim - 2 - batch
    if kind in ("csr", "csc"):
        return parse(kind, t.ndim, batch=batch, dense=dense)
    block = t.format.blocksize or (1, 1)
    if len(block) != 2 or any(n % b for n, b in zip(t.shape[batch:], block, strict=False)):
        block = (1, 1)
    return parse(f"{kind}({block[0]}, {block[1]})", t.ndim, batch=batch, dense=dense)


def _tensor(x: Array) -> Any:
    torch = buffers.torch_module()
    if buffers.is_torch(x):
        return x
    return buffers.as_array(x, like=torch.empty(0))


def _coordinates(t: Tensor, layout: Layout) -> Any:
    torch = buffers.torch_module()
    indices = _tensor(stacked_coordinates(t._storage)).to(torch.int64)
    dense = t.shape[layout.sparse :]
    values = _tensor(t.values).reshape(indices.shape[1], *dense)
    return torch.sparse_coo_tensor(indices, values, t.shape, check_invariants=False, is_coalesced=layout.exact)


def _compressed(t: Tensor, layout: Layout) -> Any:
    torch = buffers.torch_module()
    s = t._storage
    batch, dense = t.shape[: layout.batch], t.shape[t.ndim - layout.dense :] if layout.dense else ()
    pos, crd = _tensor(s.pos[layout.level]), _tensor(s.crd[layout.level])
    if pos.dtype != crd.dtype:
        pos, crd = pos.to(torch.int64), crd.to(torch.int64)
    slices = s.batches
    element_axes = (*batch, len(crd) // slices if slices else 0)
    outer = t.shape[layout.batch + (layout.kind in ("csc", "bsc"))]
    pos_length = -(-outer // layout.block[layout.kind == "bsc"]) + 1
    pos, crd = pos.reshape(*batch, pos_length), crd.reshape(element_axes)
    values = _tensor(s.values)
    values = (
        values.reshape(*element_axes, *dense)
        if layout.kind in ("csr", "csc")
        else _blocks(values, element_axes, layout, dense)
    )
    make = getattr(torch, f"sparse_{layout.kind}_tensor")
    return make(pos, crd, values, t.shape, check_invariants=False)
