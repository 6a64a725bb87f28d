"""Graph convolution and attention along edges: equal to the dense formulas, with gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import openwork as ow
from openwork.nn import GraphAttention, GraphConv, SparseLinear, attend, normalized_adjacency
from openwork.torch.functions.autocast_traced import autocast

FORMATS = ["csr", "csc", "coo", "dcsr"]


def edges(format: str = "csr") -> ow.Tensor:
    """Five nodes; node 3 takes from nobody, node 1 gives to itself."""
    dense = torch.zeros(5, 5, dtype=torch.float64)
    for i, j, w in ((0, 1, 1.0), (1, 0, 2.0), (1, 1, 0.5), (2, 4, 1.0), (4, 2, 3.0), (4, 0, 1.0)):
        dense[i, j] = w
    return ow.asarray(dense).asformat(format)


def features(columns: int = 3) -> torch.Tensor:
    return torch.linspace(-1, 1, 5 * columns, dtype=torch.float64).reshape(5, columns)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("self_loops", [True, False])
def test_normalized_adjacency(format: str, self_loops: bool) -> None:
    t = edges(format)
    dense = t.to_dense() + (torch.eye(5) if self_loops else 0)
    scale = torch.where(dense.sum(1) == 0, 0, dense.sum(1).clamp(min=0.1).rsqrt())
    got = normalized_adjacency(t, self_loops)
    assert got.format == t.format
    torch.testing.assert_close(got.to_dense(), scale[:, None] * dense * scale[None, :])


def test_normalized_adjacency_of_other_values_and_its_gradient() -> None:
    turned = ow.asarray(np.array([[0, 2 + 1j], [2 - 1j, 0]]), format="csr")
    scale = np.diag(turned.to_numpy().sum(1) ** -0.5)
    np.testing.assert_allclose(
        normalized_adjacency(turned, False).to_dense().numpy(), scale @ turned.to_numpy() @ scale
    )
    pattern = ow.sparse_coo_tensor(np.array([[0, 1], [1, 0]]), np.ones(2, np.int64), (2, 2)).asformat("csr")
    torch.testing.assert_close(normalized_adjacency(pattern).to_dense(), torch.full((2, 2), 0.5))
    t = edges().detach()

    def run(values: torch.Tensor) -> torch.Tensor:
        return normalized_adjacency(ow.Tensor._from_storage(t._storage.with_values(values))).to_dense()

    assert torch.autograd.gradcheck(run, (t.values.clone().requires_grad_(),))


@pytest.mark.parametrize("format", FORMATS)
def test_convolution(format: str) -> None:
    torch.manual_seed(0)
    layer, t, x = GraphConv(3, 2).double(), edges(format), features().requires_grad_()
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([1.0, 2.0]))
    got = layer(t, x)
    torch.testing.assert_close(got, t.to_dense() @ x @ layer.weight + layer.bias)
    wanted = torch.autograd.grad((t.to_dense() @ x @ layer.weight).square().sum(), [x, layer.weight])
    with torch.no_grad():
        layer.bias.zero_()
    found = torch.autograd.grad(layer(t, x).square().sum(), [x, layer.weight])
    torch.testing.assert_close(found, wanted)
    sparse = ow.asarray(x.detach()).asformat("csr")
    torch.testing.assert_close(layer(t, sparse), layer(t, x))
    assert repr(GraphConv(3, 2, bias=False)) == "GraphConv(in_features=3, out_features=2, bias=False)"


def test_autocast() -> None:
    """Products in the dtype that is asked for, of real floating-point operands; whole numbers stay."""
    layer, t, x = GraphConv(3, 2), edges("csr").astype(torch.float32), features().float()
    linear = SparseLinear(ow.asarray(torch.tensor([[1.0, 0, 2], [0, 3, 0]]), format="csr"), torch.ones(2))
    found = []
    with torch.autocast("cpu", torch.bfloat16):
        for got in (layer(t, x), linear(x), layer(t.astype(torch.bfloat16), x.bfloat16())):
            assert got.dtype == torch.bfloat16
            found.append(got.float())
        whole = torch.arange(4)
        assert autocast(whole, None)[0] is whole
        cast = autocast(whole, None, t, x, t.astype(torch.int64), t.astype(torch.bfloat16))
        assert [None if y is None else y.dtype for y in cast] == [
            torch.int64, None, torch.bfloat16, torch.bfloat16, torch.int64, torch.bfloat16
        ]  # fmt: skip
    assert all(a is b for a, b in zip(autocast(t, x), (t, x), strict=True))
    for a, b in zip(found, (layer(t, x), linear(x), layer(t, x)), strict=True):
        torch.testing.assert_close(a, b, rtol=0.03, atol=0.03)


def dense_attention(t: ow.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(t.to_dense() == 0, float("-inf"))
    return torch.nan_to_num(scores.softmax(1)) @ v


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", FORMATS)
def test_attention(format: str) -> None:
    t = edges(format)
    given = [features().requires_grad_(), features().flip(0).requires_grad_(), features(2).requires_grad_()]
    torch.testing.assert_close(attend(t, *given), dense_attention(t, *given))
    assert torch.equal(attend(t, *given)[3], torch.zeros(2).double())
    assert torch.autograd.gradcheck(lambda q, k, v: attend(t, q, k, v), given)


def test_heads_stand_side_by_side_and_train() -> None:
    torch.manual_seed(0)
    layer, t, x = GraphAttention(3, 4, heads=2).double(), edges(), features()
    q, k, v = (x @ w for w in layer.weight)
    want = torch.cat([dense_attention(t, q[:, s], k[:, s], v[:, s]) for s in (slice(0, 2), slice(2, 4))], 1)
    torch.testing.assert_close(layer(t, x), want)
    target = torch.tensor([[0.5, -0.5, 0.2, 0.1]]).double() * (t.to_dense().sum(1) > 0)[:, None]
    optimizer = torch.optim.Adam(layer.parameters(), 0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (layer(t, x) - target).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_refusals() -> None:
    with pytest.raises(ow.ShapeError, match=r"normalized_adjacency: shape \(2, 5\)"):
        normalized_adjacency(edges()[:2])
    with pytest.raises(ow.ShapeError, match=r"GraphConv: adjacency \(5, 5\), features \(5, 4\)"):
        GraphConv(3, 2)(edges(), features(4))
    with pytest.raises(ow.ShapeError, match="4 features in 3 heads"):
        GraphAttention(3, 4, heads=3)


@pytest.mark.parametrize("layer", [GraphConv(3, 2).double(), GraphAttention(3, 2).double()], ids=["conv", "attention"])
def test_the_adjacency_may_be_what_asarray_takes(layer: torch.nn.Module) -> None:
    t, x = edges(), features()
    want = layer(t, x)
    graph = ow.asarray(t, like=np)
    for given in (graph, graph.to_scipy(), t.to_torch().to_sparse_coo()):
        torch.testing.assert_close(layer(given, x), want)
        torch.testing.assert_close(normalized_adjacency(given).to_dense(), normalized_adjacency(t).to_dense())
    torch.testing.assert_close(layer(graph, ow.asarray(x.numpy(), format="csr")), want)


def test_layers_say_what_they_are() -> None:
    assert repr(GraphAttention(4, 6, heads=2)) == "GraphAttention(in_features=4, out_features=6, heads=2)"
    pruned = ow.nn.prune(torch.nn.ModuleList([torch.nn.RNN(3, 5), torch.nn.Conv1d(2, 4, 3)]), 0.5)
    assert "RNN_TANH, 3, 5, num_layers=1" in repr(pruned)
    assert "kernel_size=(3,), stride=(1,), padding=(0,), groups=1" in repr(pruned)
