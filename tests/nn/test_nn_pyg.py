"""PyTorch Geometric's layers over Tensors: the outputs and gradients of torch's sparse CSR."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import openwork as ow

geometric = pytest.importorskip("torch_geometric.nn")
from openwork.nn import pyg  # noqa: E402  (it imports what may not be there)

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("GCNConv", (4, 3), {}),
    ("GCNConv", (4, 3), {"improved": True, "cached": True, "bias": False}),
    ("GCNConv", (4, 3), {"normalize": False}),
    ("SAGEConv", (4, 3), {}),
    ("SAGEConv", (4, 3), {"aggr": "max", "project": True}),
    ("GINConv", (torch.nn.Linear(4, 3),), {"train_eps": True}),
    ("GATConv", (4, 3), {"heads": 2}),
]


def adjacency() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.rand(8, 8, dtype=torch.float64).sub_(0.6).relu_().fill_diagonal_(0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_layers_are_theirs() -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64, requires_grad=True)
    for (name, arguments, options), format in zip(
        CASES, ("csr", "coo", "csc", "dcsr", "csr", "csr", "coo"), strict=True
    ):
        mine = getattr(pyg, name)(*copy.deepcopy(arguments), **options).double()
        theirs = getattr(geometric, name)(*copy.deepcopy(arguments), **options).double()
        theirs.load_state_dict(mine.state_dict())
        results = [mine(x, ow.asarray(dense, format=format)), theirs(x, dense.to_sparse_csr())]
        torch.testing.assert_close(*results)
        pairs = zip((mine, theirs), results, strict=True)
        torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), [x, *f.parameters()]) for f, y in pairs))
        edges = dense.T.nonzero().T
        if "cached" not in options:  # theirs has kept what it made of the matrix
            torch.testing.assert_close(mine(x, edges), theirs(x, edges))
    again = pickle.loads(pickle.dumps(mine))
    torch.testing.assert_close(again(x, edges), mine(x, edges))


def test_weights_have_gradients_and_others_are_given_edges() -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64)
    weights = ow.asarray(dense, format="csr").requires_grad_()
    layer = pyg.GCNConv(4, 3).double()
    layer(x, weights).square().sum().backward()
    assert weights.grad.nse == weights.nse
    other = pyg.takes_tensors(geometric.GraphConv)(4, 3).double()
    edges = dense.T.nonzero().T
    want = geometric.GraphConv.forward(other, x, edges, dense.T[*edges])
    torch.testing.assert_close(other(x, weights.detach()), want)
    with pytest.raises(ow.UnsupportedError, match="target_to_source"):
        pyg.GATConv(4, 3, flow="target_to_source").double()(x, weights.detach())
