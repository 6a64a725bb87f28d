"""PyTorch Geometric's layers that take a Tensor as `adj_t`: the same classes, parameters and results.

    conv = pyg.GCNConv(16, 4)
    conv(x, A)            # A a Tensor (n, n) of any format: row i has the weights of what node i takes from others

Sums, means, minima and maxima over neighbours are products of openwork, the attention of GATConv and GATv2Conv is a
softmax along rows. A layer that computes messages for each edge is given the edges instead.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
import torch_geometric.nn as layers

from .. import ShapeError, Tensor, UnsupportedError, asarray, matmul
from .graphs import normalized_adjacency
from .pyg_attention import edges_of, messages, weights, weights_of_pairs

__all__ = ["GATConv", "GATv2Conv", "GCNConv", "GINConv", "SAGEConv", "takes_tensors"]

_REDUCTIONS = {"max": "amax", "min": "amin"}


class _TakesTensors:
    """A layer of PyTorch Geometric before which a Tensor is made what the layer takes."""

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        """The layer of node features and edges, which may be a Tensor: as the layer without one."""
        given = dict(zip(_parameters(self), args, strict=False)) | kwargs
        edge_index = given.get("edge_index")
        if not isinstance(edge_index, Tensor):
            if "edge_index" not in _parameters(self):  # whatever the edges are called there
                args = (*args[:1], *map(_torchs_own, args[1:]))
                kwargs = {name: _torchs_own(v) if name != "x" else v for name, v in kwargs.items()}
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        _check_flow(self)
        t = asarray(edge_index, like="torch")
        x = given["x"]
        source = x[0] if isinstance(x, tuple | list) else x
        if t.ndim != 2 or source.shape[self.node_dim] != t.shape[1]:
            raise ShapeError(
                f"{type(self).__name__}: adjacency {t.shape}, features {tuple(source.shape)}"
                "\n  expected: (targets, sources) and the features of as many sources"
            )
        dtype = source.dtype
        t = t if t.values.dtype == dtype else t.astype(dtype)
        if _is_attention(self, given) and t.device == "cpu":
            return super().forward(**given | {"edge_index": edges_of(t, self.add_self_loops)})  # type: ignore[misc]
        own_end = _has_steps_of_product(self, _PER_EDGE) and not _has_steps_of_product(self, _STEPS)
        if own_end or _weighs_messages(self):
            return super().forward(**given | {"edge_index": _torchs_own(t)})  # type: ignore[misc]
        if not (self.fuse and _is_product(self)):
            return super().forward(**_with_edges(self, t, given))  # type: ignore[misc]
        if getattr(self, "normalize", False) and hasattr(self, "improved"):
            t = self._normalized(t)
        return super().forward(**given | {"edge_index": t})  # type: ignore[misc]

    def _normalized(self: Any, t: Tensor) -> Tensor:
        """What GCNConv makes of an adjacency matrix; once, where it is told to."""
        kept: Tensor | None = self._cached_adj_t
        if kept is None:
            kept = normalized_adjacency(t, (2.0 if self.improved else 1.0) if self.add_self_loops else False)
            self._cached_adj_t = kept if self.cached else None
        return kept

    def edge_updater(self: Any, edge_index: Any, size: Any = None, **kwargs: Any) -> Any:
        """What the layer computes for each edge: of a Tensor, which has passed `forward`, the weights of attention."""
        if not isinstance(edge_index, Tensor):
            return super().edge_updater(edge_index, size=size, **kwargs)  # type: ignore[misc]
        dropout = self.dropout if self.training else 0.0
        if "x" in kwargs:
            sources, targets = kwargs["x"]
            return weights_of_pairs(edge_index, sources, targets, self.att[0], self.negative_slope, dropout)
        sources, targets = kwargs["alpha"]
        return weights(edge_index, sources, targets, self.negative_slope, dropout)

    def propagate(self: Any, edge_index: Any, size: Any = None, **kwargs: Any) -> Any:
        """The messages of all neighbours: of a Tensor its product with the features."""
        if not isinstance(edge_index, Tensor):
            return super().propagate(edge_index, size=size, **kwargs)  # type: ignore[misc]
        _check_flow(self)
        if isinstance(kwargs.get("alpha"), tuple):
            return messages(kwargs["alpha"], kwargs["x"][0])
        if not _is_product(self):
            return super().propagate(_torchs_own(edge_index), size=size, **kwargs)  # type: ignore[misc]
        x = kwargs["x"]
        return _aggregate(self, edge_index, x[0] if isinstance(x, tuple) else x)


_PER_EDGE = ("message", "aggregate")
_STEPS = (*_PER_EDGE, "propagate", "message_and_aggregate", "update")
"""The methods that say what a layer computes of its edges."""


def _has_steps_of_product(layer: Any, steps: tuple[str, ...]) -> bool:
    """Whether these steps are those of a layer whose neighbours' sums, means and extremes are products."""
    base = next((c for c in (layers.GCNConv, layers.SAGEConv, layers.GINConv) if isinstance(layer, c)), None)
    own: Any = type(layer).__mro__[2]
    return base is not None and all(getattr(own, step) is getattr(base, step) for step in steps)


def _is_product(layer: Any) -> bool:
    """Whether a layer sums, averages or takes extremes of its neighbours' features times the edges' weights.

    A class derived from one that does, with a step of its own, does not.
    """
    known = layer.aggr in ("add", "sum", "mean", *_REDUCTIONS) and not layer.explain
    return known and _has_steps_of_product(layer, _STEPS)


def _is_attention(layer: Any, given: dict[str, Any]) -> bool:
    """Whether a layer is GATConv or GATv2Conv without steps of its own, and is asked for new features of nodes alone.

    Its forward knows neither torch's tensors nor PyTorch Geometric's in a Tensor, so that it adds no loops.
    """
    own: Any = type(layer).__mro__[2]
    steps = (*_STEPS, "forward", "edge_update", "edge_updater")
    base: Any = next((c for c in (layers.GATConv, layers.GATv2Conv) if isinstance(layer, c)), None)
    if base is None or any(getattr(own, step) is not getattr(base, step) for step in steps):
        return False
    asked = any(given.get(name) is not None for name in ("edge_attr", "size", "return_attention_weights"))
    return not asked and layer.aggr in ("add", "sum") and not layer.explain


def _weighs_messages(layer: Any) -> bool:
    """Whether a layer's messages take weights of edges that its forward is not given: of a sparse tensor its own."""
    in_messages = "edge_weight" in inspect.signature(layer.message).parameters
    return in_messages and not {"edge_weight", "edge_attr"} & {*_parameters(layer)}


def _check_flow(layer: Any) -> None:
    if layer.flow != "source_to_target":
        raise UnsupportedError(
            f"{type(layer).__name__}: a Tensor with flow={layer.flow!r}\n  help: give A.T and the other"
        )


def _torchs_own(x: Any) -> Any:
    """A Tensor as torch's sparse tensor, which PyTorch Geometric takes wherever it takes edges; else what is given."""
    return asarray(x, like="torch").asformat("csr").to_torch() if isinstance(x, Tensor) and x.ndim == 2 else x


def _aggregate(layer: Any, t: Tensor, x: torch.Tensor) -> torch.Tensor:
    if layer.aggr in _REDUCTIONS:
        result: torch.Tensor = torch.sparse.mm(t, x, _REDUCTIONS[layer.aggr])
        return result
    out: torch.Tensor = matmul(t, x)
    if layer.aggr != "mean":
        return out
    count = t.with_values(torch.ones_like(t.values.detach())) @ x.new_ones(t.shape[1])
    return out / count.clamp(min=1)[:, None]


def _parameters(layer: Any) -> list[str]:
    """The names of what a layer's own forward takes, in their order."""
    base: Any = type(layer).__mro__[2]
    return list(inspect.signature(base.forward).parameters)[1:]


def _with_edges(layer: Any, t: Tensor, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, with the edges of an adjacency matrix as PyTorch Geometric lists them, (2, edges), in its place.

    Their weights are given too, and how many nodes there are, where the layer takes these and was given none.
    """
    coo = t.to_torch().to_sparse_coo().coalesce()
    names = _parameters(layer)
    weighted = next((name for name in ("edge_weight", "edge_attr") if name in names), None)
    counts_edges = isinstance(layer, layers.FAConv) and layer.normalize  # it refuses weights then
    takes = (weighted == "edge_weight" and not counts_edges) or getattr(layer, "edge_dim", None) is not None
    own: dict[str, Any] = {weighted: coo.values()} if weighted is not None and takes else {}
    if "size" in names:
        own["size"] = (t.shape[1], t.shape[0])
    own = {name: value for name, value in own.items() if given.get(name) is None}
    return given | own | {"edge_index": coo.indices().flip(0)}


def takes_tensors(layer: type) -> type:
    """The subclass of a layer of PyTorch Geometric whose `edge_index` may be a Tensor, (targets, sources).

    Whatever else a layer takes for each edge (`edge_type`, `edge_attr`) is in the order of the Tensor's rows. Raises
    TypeError for a class that takes no edges.
    """
    if not (isinstance(layer, type) and issubclass(layer, layers.MessagePassing)):
        raise TypeError(f"takes_tensors: {layer!r}\n  expected: a layer of PyTorch Geometric, a MessagePassing")
    return type(layer.__name__, (_TakesTensors, layer), {"__module__": __name__, "__doc__": layer.__doc__})


GCNConv: Any = takes_tensors(layers.GCNConv)
SAGEConv: Any = takes_tensors(layers.SAGEConv)
GATConv: Any = takes_tensors(layers.GATConv)
GATv2Conv: Any = takes_tensors(layers.GATv2Conv)
GINConv: Any = takes_tensors(layers.GINConv)
