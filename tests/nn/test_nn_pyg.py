"""PyTorch Geometric's layers over Tensors: the outputs and gradients of torch's sparse CSR."""

from __future__ import annotations

import copy
import inspect
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
    ("GATv2Conv", (4, 3), {"heads": 2, "concat": False}),
    ("GATv2Conv", (4, 3), {"share_weights": True, "add_self_loops": False}),
]


def adjacency() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.rand(8, 8, dtype=torch.float64).sub_(0.6).relu_().fill_diagonal_(0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_layers_are_theirs() -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64, requires_grad=True)
    for (name, arguments, options), format in zip(
        CASES, ("csr", "coo", "csc", "dcsr", "csr", "csr", "coo", "csr", "csc"), strict=True
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


OTHERS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("GATv2Conv", (4, 3), {"heads": 2}),
    ("TransformerConv", (4, 3), {}),
    ("APPNP", (3, 0.1), {}),
    ("SGConv", (4, 3), {"K": 2}),
    ("TAGConv", (4, 3), {}),
    ("ChebConv", (4, 3), {"K": 3}),
    ("GraphConv", (4, 3), {}),
    ("ARMAConv", (4, 3), {}),
    ("PNAConv", (4, 3), {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": torch.ones(9).long()}),
    ("RGCNConv", (4, 3, 2), {}),
    ("FAConv", (4,), {}),
    ("GCN2Conv", (4, 0.1), {}),
]


@pytest.mark.parametrize(("name", "arguments", "options"), OTHERS, ids=[name for name, *_ in OTHERS])
def test_other_layers_are_given_the_edges(name: str, arguments: Any, options: Any) -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64, requires_grad=True)
    layer = pyg.takes_tensors(getattr(geometric, name))(*arguments, **options).double().eval()
    rows, sources = dense.nonzero().T
    edges, weights, kinds = torch.stack([sources, rows]), dense[rows, sources], torch.arange(len(rows)) % 2
    takes = inspect.signature(getattr(geometric, name).forward).parameters
    first = (x, x) if "x_0" in takes else (x,)
    more = {"edge_type": kinds} if "edge_type" in takes else {}
    own = {"edge_weight": weights} if "edge_weight" in takes and name != "FAConv" else {}
    results = [layer(*first, ow.asarray(dense, format="csr"), **more), layer(*first, edges, **more, **own)]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x) for y in results))


def test_graphs_of_two_kinds_of_nodes_and_batches_of_neighbours() -> None:
    dense = adjacency()[:5]
    sources, targets = torch.rand(8, 4).double(), torch.rand(5, 2).double()
    A = ow.asarray(dense, format="csr")
    for layer, x in (
        (pyg.SAGEConv((4, 2), 3), (sources, targets)),
        (pyg.GINConv(torch.nn.Linear(4, 3)), (sources, sources[:5])),
        (pyg.GATConv((4, 2), 3, add_self_loops=False), (sources, targets)),
        (pyg.GATv2Conv((4, 2), 3, add_self_loops=False), (sources, targets)),
    ):
        layer = layer.double()
        theirs = type(layer).__mro__[2].forward(layer, x, dense.to_sparse_csr())
        torch.testing.assert_close(layer(x, A), theirs)
    assert pyg.GATConv(4, 3, add_self_loops=False).double()((sources, None), A).shape == (5, 3)
    graph, x = ow.asarray(adjacency(), format="csr"), torch.rand(8, 4).double()
    layers = [pyg.SAGEConv(4, 6).double(), pyg.GATConv(6, 3, add_self_loops=False).double()]
    whole = layers[1](layers[0](x, graph), graph)
    for batch in ow.nn.neighbor_batches(graph, torch.arange(8), [-1, -1], batch_size=3, rng=0):
        hidden = x[batch.nodes]
        for layer, block in zip(layers, batch.blocks, strict=True):
            hidden = layer((hidden, hidden[: block.shape[0]]), block)
        torch.testing.assert_close(hidden, whole[batch.seeds])
    single = pyg.GCNConv(4, 3)(x.float(), graph)
    assert single.dtype == torch.float32
    for wrong in (torch.nn.Linear, geometric.DenseGCNConv):
        with pytest.raises(TypeError, match="MessagePassing"):
            pyg.takes_tensors(wrong)
    for kind in (pyg.GCNConv, pyg.GATConv):
        with pytest.raises(ow.ShapeError, match="as many sources"):
            kind(4, 3).double()(x[:5], graph)


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


class Doubled(geometric.MessagePassing):  # type: ignore[misc]
    """A layer of one's own: its messages are twice the weighted features; its edges have any name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(aggr="add", **options)

    def forward(self, x: Any, adj: Any) -> Any:
        return self.propagate(adj, x=x, edge_weight=None)

    def message(self, x_j: Any, edge_weight: Any = None) -> Any:
        return 2 * x_j if edge_weight is None else 2 * edge_weight[:, None] * x_j


class Named(Doubled):
    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.propagate(edge_index, x=x, edge_weight=None)


class Unweighted(Doubled):
    def message(self, x_j: Any) -> Any:
        return x_j + 1


class WithMessages(geometric.GCNConv):  # type: ignore[misc]
    def message(self, x_j: Any, edge_weight: Any) -> Any:
        return x_j.square() if edge_weight is None else edge_weight[:, None] * x_j.square()


class WithUpdate(geometric.SAGEConv):  # type: ignore[misc]
    def update(self, inputs: Any) -> Any:
        return inputs * 3


class Renamed(geometric.GCNConv):  # type: ignore[misc]
    def forward(self, x: Any, graph: Any) -> Any:
        return super().forward(x, graph)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("format", ["csr", "coo", "csc"])
@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(Doubled, ()), (Named, ()), (Unweighted, ()), (WithMessages, (4, 3)), (WithUpdate, (4, 3)), (Renamed, (4, 3))],
)
def test_layers_of_ones_own_compute_their_messages(kind: Any, arguments: Any, format: str) -> None:
    """As of torch's sparse tensor: whatever their argument is called, and whichever step is theirs."""
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64, requires_grad=True)
    layer = pyg.takes_tensors(kind)(*arguments).double()
    theirs = kind(*arguments).double()
    theirs.load_state_dict(layer.state_dict())
    graph = ow.asarray(dense.to_sparse_csr()).asformat(format)
    edges = dense.T.nonzero().T
    given = (edges, dense.T[*edges]) if kind is WithMessages else (dense.to_sparse_csr(),)  # there theirs forgets them
    results = [layer(x, graph), theirs(x, *given)]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x) for y in results))


@pytest.mark.parametrize("kind", [geometric.GCNConv, geometric.SAGEConv, Renamed, geometric.GraphConv])
def test_the_other_flow_is_refused(kind: Any) -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64)
    layer = pyg.takes_tensors(kind)(4, 3, flow="target_to_source").double()
    with pytest.raises((ow.UnsupportedError, ValueError), match="target_to_source"):
        layer(x, ow.asarray(dense, format="csr"))


def test_weights_of_a_renamed_argument_have_gradients() -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64)
    weights = ow.asarray(dense, format="csr").requires_grad_()
    pyg.takes_tensors(Doubled)()(x, weights).square().sum().backward()
    values = dense.clone().requires_grad_()
    (2 * values @ x).square().sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(weights.grad.to_dense(), values.grad * (dense != 0))


@pytest.mark.parametrize("format", ["csr", "coo", "csc", "dcsr"])
@pytest.mark.parametrize(
    "options",
    [{"heads": 3}, {"heads": 2, "concat": False}, {"add_self_loops": False}, {"residual": True, "negative_slope": 0.5}],
)
def test_attention_is_computed_by_rows(options: Any, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyg, "_with_edges", None)  # nobody asks for the edges
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64, requires_grad=True)
    dense[3], dense[2, 2] = 0, 1  # a node without neighbours, a loop
    mine = pyg.GATConv(4, 3, **options).double()
    edges = dense.T.nonzero().T
    results = [mine(x, ow.asarray(dense, format=format)), mine(x, edges)]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), [x, *mine.parameters()]) for y in results))
    mine.dropout = 1.0
    left = torch.zeros_like(results[0]) + mine.bias + (mine.res(x) if options.get("residual") else 0)
    torch.testing.assert_close(mine(x, ow.asarray(dense, format=format)), left)
    torch.testing.assert_close(mine.eval()(x, ow.asarray(dense, format=format)), results[1])


class OwnWeights(geometric.GATConv):  # type: ignore[misc]
    def edge_update(self, alpha_j: Any, alpha_i: Any, edge_attr: Any, index: Any, ptr: Any, dim_size: Any) -> Any:
        return alpha_j


def test_attention_of_other_kinds_is_given_the_edges() -> None:
    dense, x = adjacency(), torch.rand(8, 4, dtype=torch.float64)
    A, edges = ow.asarray(dense, format="csr"), dense.nonzero().T.flip(0)
    layer = pyg.takes_tensors(OwnWeights)(4, 3, add_self_loops=False).double()
    torch.testing.assert_close(layer(x, A), layer(x, edges))
    features = torch.rand(edges.shape[1], 2, dtype=torch.float64)
    layer = pyg.GATConv(4, 3, edge_dim=2).double()
    torch.testing.assert_close(layer(x, A, features), layer(x, edges, features))
    layer = pyg.GATConv(4, 3, add_self_loops=False).double()
    torch.testing.assert_close(
        layer(x, A, return_attention_weights=True)[1][1], layer(x, edges, return_attention_weights=True)[1][1]
    )
