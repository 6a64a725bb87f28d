"""Layers pruned by magnitude to any sparse format, rebuilt from state dicts, and made dense again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch

from .. import (
    DTypeError,
    Format,
    FormatError,
    InvariantError,
    ShapeError,
    Tensor,
    UnsupportedError,
    asarray,
    sparse_mask,
)
from ..reals import real
from ..runtime.formats import resolve_format
from ..storage.storage import Storage
from .attention import SparseMultiheadAttention
from .convolution import SparseConv
from .linear import SparseLinear
from .recurrent import SparseRNN
from .structure_state import STATE, is_sparse_state

__all__ = ["densify", "from_state_dict", "prune"]

Sparsify = Callable[[torch.Tensor], Tensor]

_SPARSE: dict[type, Any] = {
    torch.nn.Linear: SparseLinear,
    torch.nn.MultiheadAttention: SparseMultiheadAttention,
    torch.nn.Conv1d: SparseConv,
    torch.nn.Conv2d: SparseConv,
    torch.nn.Conv3d: SparseConv,
    torch.nn.RNN: SparseRNN,
    torch.nn.GRU: SparseRNN,
    torch.nn.LSTM: SparseRNN,
}
"""torch's layers -> what takes their place. Of no subclass: those have a forward of their own, and one that torch has,
the `out_proj` of MultiheadAttention, is there because its weight is read past it."""

_PRUNED = tuple(set(_SPARSE.values()))


def _name_of(kind: object) -> str:
    return f"torch.nn.{kind.__name__}" if kind in _SPARSE else repr(kind)


def prune(
    module: torch.nn.Module,
    amount: float = 0.5,
    format: str | Format = "csr",
    *,
    types: type | Iterable[type] | None = None,
) -> torch.nn.Module:
    """Replace every layer of a module that has weights by one with its largest weights alone.

    Parameters
    ----------
    module : changed in place, but for a layer itself
    amount : the part of the weights that goes, 0 to 1; not read for n:m formats, which say it themselves. Of a layer
        that was pruned before too it is the part of all weights: what is gone stays so
    format : of the weights. In a blocked format the blocks of the largest 2-norm stay, in "nm(n, m)" the n largest of
        each m along the inputs, in any other the largest elements of the layer. A convolution's weight is the matrix
        (out_channels, in_channels * kernel sizes)
    types : the layers that are replaced, torch.nn.Linear say; Linear, MultiheadAttention, Conv1d, Conv2d, Conv3d, RNN,
        GRU and LSTM without, and what `prune` made of these. Subclasses stay as they are

    Returns
    -------
    the module, or the layer that takes a layer's place; it trains as before (frozen parameters stay so), its weights'
    structure is constant. A layer that stands in two places is one layer in both. Parameters are new: so is the
    optimizer to be. Pruned again and again, a little more each time, layers lose less than at once.

    Raises ShapeError for an amount outside 0 to 1, and for inputs that m does not divide; FormatError where a layer's
    largest weights do not fit the format; both name the layer. TypeError for what is no module, UnsupportedError for
    `types` that have no sparse form.

    Cost: O(size of the weights).
    Source: the schedule of amounts of Zhu and Gupta, To prune, or not to prune, 2017.
    See also: densify, from_state_dict, SparseLinear.

    Examples
    --------
    >>> layer = ow.nn.prune(torch.nn.Linear(8, 4), 0.75, "csr")
    >>> layer.weight.nse
    8
    >>> ow.nn.prune(layer, 0.875).weight.nse
    4
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"prune: expected a torch.nn.Module; got {type(module).__name__}"
            "\n  help: ow.prune(t, x) leaves out what is no further than x from the fill value of a tensor"
        )
    amount = real(amount, "prune", "amount")
    if not 0 <= amount <= 1:
        raise ShapeError(f"prune: amount {amount}\n  expected: the part of the weights that goes, 0 to 1")
    chosen = {types} if isinstance(types, type | str) else set(_SPARSE if types is None else types)
    if others := chosen - _SPARSE.keys():
        raise UnsupportedError(
            f"prune: types with {', '.join(sorted(map(_name_of, others)))}"
            f"\n  supported: {', '.join(_name_of(kind) for kind in _SPARSE)}, no subclasses"
        )
    layout = resolve_format(format, 2)

    def replaced(layer: torch.nn.Module, prefix: str) -> Any:
        is_pruned = isinstance(layer, _PRUNED)
        dense: Any = layer.to_dense() if is_pruned else layer
        if type(dense) not in chosen:
            return None
        sparsify = partial(_largest, amount=amount, format=layout, is_pruned=is_pruned)
        try:
            return _SPARSE[type(dense)].from_dense(dense, sparsify)
        except (ShapeError, FormatError) as error:
            kind = type(layer).__name__
            place = f"layer {prefix[:-1]!r}, a {kind}," if prefix else f"the {kind}"
            text = f"{error}\n  help: types= says which layers are replaced, torch.nn.Linear say"
            raise type(error)(f"prune: {place} does not fit the format\n  {text}") from None

    return _replace(module, replaced)


def from_state_dict(module: torch.nn.Module, state: Mapping[str, Any]) -> torch.nn.Module:
    """Rebuild a pruned module from its state dict and the dense module that it was made from, with any weights.

    Parameters
    ----------
    module : changed in place, but for a layer itself: the layers of which `state` has sparse weights are replaced
    state : the state dict of what `prune` gave, of torch.load or of safetensors say

    Returns
    -------
    the module, or the layer that takes a layer's place, with the state's weights, structures and formats

    Raises InvariantError for buffers that make no weight, or a state without sparse weights; what
    `module.load_state_dict` raises for entries that are missing or too many.

    Cost: O(nse of the weights).
    See also: prune, densify.

    Examples
    --------
    >>> pruned = ow.nn.prune(torch.nn.Linear(8, 4), 0.5)
    >>> again = ow.nn.from_state_dict(torch.nn.Linear(8, 4), pruned.state_dict())
    >>> again.weight.nse
    16
    """
    places = {
        k.removesuffix(STATE) for k in state if k.endswith(STATE) and is_sparse_state(state, k.removesuffix(STATE))
    }
    if not places:
        raise InvariantError("from_state_dict: no sparse weights\n  help: module.load_state_dict(state)")

    def replaced(layer: torch.nn.Module, prefix: str) -> torch.nn.Module | None:
        is_sparse = type(layer) in _SPARSE and any(place.startswith(prefix) for place in places)
        return _SPARSE[type(layer)].from_dense(layer, _empty) if is_sparse else None

    result = _replace(module, replaced)
    result.load_state_dict(state)
    return result


def densify(module: torch.nn.Module) -> torch.nn.Module:
    """Replace every sparse layer that `prune` makes by torch's of the same weights: its state dict is torch's.

    Parameters
    ----------
    module : a module or layer, which is changed in place, but for a layer itself

    Returns
    -------
    torch.nn.Module: the module, or the layer that takes a layer's place

    Cost: O(size of the weights).
    See also: prune, from_state_dict.

    Examples
    --------
    >>> layer = ow.nn.prune(torch.nn.Linear(8, 4), 0.5)
    >>> type(ow.nn.densify(layer)).__name__
    'Linear'
    """
    return _replace(module, lambda layer, prefix: layer.to_dense() if isinstance(layer, _PRUNED) else None)


def _replace(module: torch.nn.Module, replaced: Callable[[torch.nn.Module, str], torch.nn.Module | None]) -> Any:
    """A module with what `replaced` gives in the place of each layer for which it is not None."""
    if not isinstance(module, torch.nn.Module):
        raise DTypeError(f"{type(module).__name__} is not a module\n  expected: a torch.nn.Module")
    done: dict[int, tuple[torch.nn.Module, torch.nn.Module]] = {}

    def visit(layer: torch.nn.Module, prefix: str) -> torch.nn.Module:
        if id(layer) in done:
            return done[id(layer)][1]
        new = replaced(layer, prefix)
        done[id(layer)] = (layer, layer if new is None else new)
        if new is not None:
            return new.train(layer.training)
        for name, child in list(layer._modules.items()):
            if child is not None and not isinstance(layer, _PRUNED):  # whose parts are no layers of their own
                layer._modules[name] = visit(child, f"{prefix}{name}.")
        return layer

    return visit(module, "")


def _empty(weight: torch.Tensor) -> Tensor:
    return asarray(torch.zeros_like(weight), format="csr")


def _largest(weight: torch.Tensor, amount: float, format: Format, is_pruned: bool) -> Tensor:
    """The largest weights of a matrix, in a format; of one that was pruned before no zeros, which are what is gone."""
    last = format.levels[-1].format
    if last.is_structured:
        n, m = last.arguments
        keep = _largest_of_each(weight, n, m)
    else:
        block = format.blocksize or (1, 1)
        keep = _largest_blocks(weight, amount, (block[0], block[1]), is_pruned)
    return _with_short_indices(sparse_mask(weight, asarray(keep).asformat(format)))


def _with_short_indices(t: Tensor) -> Tensor:
    """The tensor with index buffers of the fewest bytes that hold them, as products read one for each weight."""
    s = t._storage
    is_small = max(len(s.values), *s.shape) <= torch.iinfo(torch.int32).max
    dtypes = [_DTYPES[level.format.index_scalars[0]] for level in s.format.levels]
    if not is_small:
        dtypes = [dtype if dtype == torch.uint8 else torch.int64 for dtype in dtypes]
    pos = tuple([_short(b, torch.int32 if is_small else torch.int64) for b in s.pos])
    crd = tuple([_short(b, dtype) for b, dtype in zip(s.crd, dtypes, strict=True)])
    return Tensor._from_storage(Storage(s.shape, s.format, s.scalar, s.fill_value, pos, crd, s.values))


_DTYPES = {"u8": torch.uint8, "i32": torch.int32}


def _short(buffer: Any, dtype: torch.dtype) -> Any:
    """A buffer of indices of this type; the truth values of a bitmap are none."""
    return buffer.to(dtype) if buffer is not None and buffer.dtype != torch.bool else buffer


def _largest_of_each(weight: torch.Tensor, n: int, m: int) -> torch.Tensor:
    if weight.shape[1] % m:
        raise ShapeError(f"{weight.shape[1]} inputs in groups of {m}\n  help: take a format that divides them")
    groups = weight.abs().reshape(weight.shape[0], -1, m)
    keep = torch.zeros_like(groups, dtype=torch.bool).scatter_(2, groups.topk(n, 2).indices, True)
    return keep.reshape(weight.shape)


def _largest_blocks(weight: torch.Tensor, amount: float, block: tuple[int, int], is_pruned: bool) -> torch.Tensor:
    rows, columns = (-(-n // b) for n, b in zip(weight.shape, block, strict=True))
    # squares of small numbers are 0 in narrower dtypes, and no weight that is there may be taken for one that is gone
    padded: Any = weight.new_zeros(rows * block[0], columns * block[1], dtype=torch.float64)
    padded[: weight.shape[0], : weight.shape[1]] = weight.abs()
    norms = padded.reshape(rows, block[0], columns, block[1]).square().sum((1, 3)).reshape(-1)
    largest = norms.topk(round(norms.numel() * (1 - amount))).indices
    largest = largest[norms[largest] != 0] if is_pruned else largest
    blocks = torch.zeros_like(norms, dtype=torch.bool).index_fill_(0, largest, True).reshape(rows, 1, columns, 1)
    every = blocks.expand(rows, block[0], columns, block[1]).reshape(padded.shape)
    return every[: weight.shape[0], : weight.shape[1]].contiguous()
