"""Layers over the edges of a graph, whose adjacency matrix is a sparse Tensor: convolution and attention."""

from __future__ import annotations

from typing import Any

import torch

from .. import ShapeError, Tensor, UnsupportedError, asarray, astype, matmul, sparse_coo_tensor
from ..integers import integer
from ..torch.functions.autocast_traced import autocast
from .attend import attend

__all__ = ["GraphAttention", "GraphConv", "normalized_adjacency"]


def normalized_adjacency(adjacency: Any, self_loops: bool | float = True) -> Tensor:
    """D^-1/2 (A + I) D^-1/2, where D has the sums of the rows of A + I.

    Parameters
    ----------
    adjacency : shape (n, n), a Tensor or what `asarray` takes, such as SciPy's arrays and networkx's graphs;
        element (i, j) weighs what node i takes from node j
    self_loops : whether to add I, or the number of I that are added

    Returns
    -------
    Tensor, shape (n, n), over torch values of the default dtype where `adjacency` has no floating one; differentiable.
    A node without edges has a row and a column of zeros.

    Cost: O(nse + n). Raises ShapeError for a matrix that is not square.
    Source: Kipf and Welling, Semi-supervised classification with graph convolutional networks, ICLR 2017.

    See also: GraphConv.

    Examples
    --------
    >>> ow.nn.normalized_adjacency(ow.asarray([[0, 1.0], [1.0, 0]], format="csr")).to_numpy().round(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    t = _over_torch(adjacency)
    n = t.shape[0] if t.ndim else 0
    if t.shape != (n, n):
        raise ShapeError(f"normalized_adjacency: shape {t.shape}\n  expected: (n, n)")
    if not (t.values.is_floating_point() or t.values.is_complex()):
        t = astype(t, torch.get_default_dtype())
    if self_loops:
        loops = torch.arange(n, device=t.values.device)
        t = t + sparse_coo_tensor(torch.stack([loops, loops]), t.values.new_full((n,), self_loops), (n, n)).asformat(
            t.format
        )
    degree = t @ t.values.new_ones(n)
    scale = torch.where(degree == 0, 0, torch.where(degree == 0, 1, degree).rsqrt())
    result: Tensor = t * scale[:, None] * scale[None, :]
    return result


class GraphConv(torch.nn.Module):  # type: ignore[misc]
    """`adjacency @ x @ weight + bias`: each node's features are mixed with its neighbours'.

    Parameters
    ----------
    in_features, out_features : how many features a node has before and after
    bias : whether to add one

    The adjacency is taken as it is given: `normalized_adjacency` makes the usual one, once for all layers and epochs.
    The weight is a parameter of shape (in_features, out_features), started as Glorot and Bengio do; the bias as zeros.

    Examples
    --------
    >>> import torch, openwork as ow
    >>> from openwork.nn import GraphConv, normalized_adjacency
    >>> A = normalized_adjacency(ow.asarray(torch.eye(3).flip(0).to_sparse_csr()))
    >>> GraphConv(4, 2)(A, torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        in_features = integer(in_features, "GraphConv", "in_features")
        out_features = integer(out_features, "GraphConv", "out_features")
        self.in_features, self.out_features = in_features, out_features
        self.weight = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(in_features, out_features)))
        self.bias = torch.nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, adjacency: Any, x: Any) -> torch.Tensor:
        """The new features (n, out_features), for features (m, in_features), dense or sparse, and edges (n, m).

        Either may be what `asarray` takes. The adjacency may be a LinearOperator, such as `openwork.dask.BlockMatrix`,
        where torch records nothing.
        """
        adjacency, x = _operands(self, adjacency, x)
        if not isinstance(adjacency, Tensor):
            return _of_operator(adjacency, matmul(x, self.weight), self.bias)
        adjacency, x, weight, bias = autocast(adjacency, x, self.weight, self.bias)
        out: torch.Tensor = matmul(adjacency, matmul(x, weight))
        if torch.is_autocast_enabled(weight.device.type):
            out = out.to(weight.dtype)  # a compiled product is of the adjacency's own type
        return out if bias is None else out + bias

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class GraphAttention(torch.nn.Module):  # type: ignore[misc]
    """Each node attends to its neighbours (`attend`), with several heads whose results stand side by side.

    Parameters
    ----------
    in_features, out_features : how many features a node has before and after; heads divides out_features
    heads : how many attentions, each of out_features / heads features

    The weight of queries, keys and values is one parameter, of shape (3, in_features, out_features). Scores are scaled
    products of queries and keys, as of Vaswani et al. 2017; what the field calls GAT (Velickovic et al. 2018, additive
    scores behind a leaky ReLU) is `openwork.nn.pyg.GATConv`.

    Raises ShapeError where heads does not divide out_features.

    Examples
    --------
    >>> import torch, openwork as ow
    >>> A = ow.asarray(torch.eye(3).flip(0).to_sparse_csr())
    >>> ow.nn.GraphAttention(4, 6, heads=2)(A, torch.ones(3, 4)).shape
    torch.Size([3, 6])
    """

    def __init__(self, in_features: int, out_features: int, heads: int = 1) -> None:
        super().__init__()
        in_features = integer(in_features, "GraphAttention", "in_features")
        out_features = integer(out_features, "GraphAttention", "out_features")
        heads = integer(heads, "GraphAttention", "heads")
        if heads < 1 or out_features % heads:
            raise ShapeError(
                f"GraphAttention: {out_features} features in {heads} heads\n  expected: heads of equal size"
            )
        self.in_features, self.out_features, self.heads = in_features, out_features, heads
        weight = torch.stack([torch.nn.init.xavier_uniform_(torch.empty(in_features, out_features)) for _ in range(3)])
        self.weight = torch.nn.Parameter(weight)

    def forward(self, adjacency: Any, x: Any) -> torch.Tensor:
        """The new features (n, out_features), for features (n, in_features), dense or sparse, and edges (n, n)."""
        adjacency, x = _operands(self, adjacency, x)
        parts = [matmul(x, w).unflatten(1, (self.heads, -1)).transpose(0, 1) for w in self.weight]
        return attend(adjacency, *parts).transpose(0, 1).flatten(1)

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        return f"in_features={self.in_features}, out_features={self.out_features}, heads={self.heads}"


def _of_operator(adjacency: Any, inner: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """`adjacency @ inner + bias` by the operator's own product. Raises UnsupportedError where torch would record it."""
    if inner.requires_grad:
        raise UnsupportedError("GraphConv: an operator has no gradients\n  help: with torch.no_grad(), or a Tensor")
    out = torch.from_numpy(adjacency.matmat(inner.numpy())).to(inner.dtype)
    return out if bias is None else out + bias


def _operands(layer: Any, adjacency: Any, x: Any) -> tuple[Any, Any]:
    """The adjacency, a Tensor of torch's buffers or an operator, and the features; ShapeError where they misfit."""
    is_operator = hasattr(adjacency, "matmat") and not isinstance(adjacency, Tensor)
    adjacency = adjacency if is_operator else _over_torch(adjacency)
    x = x if isinstance(x, torch.Tensor) else _over_torch(x)
    shape = adjacency._raw_storage.shape if isinstance(adjacency, Tensor) else tuple(adjacency.shape)
    given = tuple(x._raw_storage.shape if isinstance(x, Tensor) else x.shape)
    if len(shape) != 2 or given != (shape[1], layer.in_features):
        raise ShapeError(
            f"{type(layer).__name__}: adjacency {shape}, features {given}"
            f"\n  expected: (n, m) and (m, {layer.in_features})"
        )
    return adjacency, x


def _over_torch(x: Any) -> Tensor:
    """A Tensor, or whatever `asarray` takes, as a Tensor over torch's buffers."""
    if isinstance(x, Tensor) and isinstance(x._raw_storage.values, torch.Tensor):
        return x
    return asarray(x, like=torch)
