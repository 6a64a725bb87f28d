"""Sparse layers for torch.nn: linear, convolutional, recurrent and attention layers over Tensors of any format, and
pruning of dense ones to them; tables with sparse gradients; layers over the edges of a graph."""

from __future__ import annotations

from .. import needs_torch as _needs_torch  # noqa: F401

# isort: split
from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..runtime.documentation import document_all as _document_all
from .attend import attend
from .attention import SparseAttention, SparseMultiheadAttention
from .convolution import SparseConv
from .embedding import SparseEmbedding, SparseEmbeddingBag
from .graphs import GraphAttention, GraphConv, normalized_adjacency
from .linear import SparseLinear
from .neighbors import NeighborBatch, neighbor_batches
from .pruning import densify, from_state_dict, prune
from .recurrent import SparseRNN

__all__ = [
    "GraphAttention", "GraphConv", "NeighborBatch", "SparseAttention", "SparseConv", "SparseEmbedding",
    "SparseEmbeddingBag", "SparseLinear", "SparseMultiheadAttention", "SparseRNN", "attend", "densify",
    "from_state_dict", "neighbor_batches", "normalized_adjacency", "prune",
]  # fmt: skip

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_document_all(globals(), __all__)
