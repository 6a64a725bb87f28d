"""A graph convolutional network of two layers that classifies the nodes of a graph, twenty labels of each class known.

Run it with the path of an .npz file that holds a graph in compressed rows (`adj_data`, `adj_indices`, `adj_indptr`,
`adj_shape`), features of its nodes (`attr_...`) and `labels`, as the file of Cora in the GNN benchmarks of Shchur and
others does. Without a path the graph is generated: communities like Cora's in size, edges and words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import openwork as ow
from openwork.nn import GraphConv, normalized_adjacency

PARTS = ("indptr", "indices", "data", "shape")
Data = tuple[ow.Tensor, ow.Tensor, torch.Tensor]
"""Adjacency, features, labels."""


class GCN(torch.nn.Module):
    """Two convolutions with dropout before each; the features are sparse."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GraphConv(features, hidden), GraphConv(hidden, classes)

    def forward(self, A: ow.Tensor | torch.Tensor, X: ow.Tensor) -> torch.Tensor:
        values = F.dropout(X.values, 0.5, self.training)
        X = ow.sparse_csr_tensor(X.pos(1), X.crd(1), values, X.shape, check_invariants=False)
        hidden = torch.relu(convolution(self.first, A, X))
        return convolution(self.second, A, F.dropout(hidden, 0.5, self.training))


def convolution(layer: GraphConv, A: ow.Tensor | torch.Tensor, x: ow.Tensor | torch.Tensor) -> torch.Tensor:
    """The layer; of a dense adjacency what it computes, by torch's dense products."""
    if isinstance(A, ow.Tensor):
        return layer(A, x)
    return A @ ((x.to_dense() if isinstance(x, ow.Tensor) else x) @ layer.weight) + layer.bias


def read(path: str) -> Data:
    """A graph with features and labels, from an .npz file; its edges go both ways."""
    with np.load(path) as file:
        A, X = (csr(*(file[f"{name}_{part}"] for part in PARTS)) for name in ("adj", "attr"))
        labels = torch.as_tensor(file["labels"], dtype=torch.int64)
    return ow.astype(ow.logical_or(A != 0, A.T != 0), torch.float32).asformat("csr"), X, labels


def csr(pos: Any, crd: Any, values: Any, shape: Any) -> ow.Tensor:
    """A matrix in compressed rows over torch buffers; the file's rows need not be sorted."""
    rows = np.repeat(np.arange(len(pos) - 1), np.diff(pos))
    indices = torch.as_tensor(np.stack([rows, crd]))
    t = ow.sparse_coo_tensor(indices, torch.as_tensor(values, dtype=torch.float32), tuple(int(n) for n in shape))
    return t.asformat("csr")


def communities(nodes: int = 2708, classes: int = 7, words: int = 1433, seed: int = 0) -> Data:
    """Communities of nodes: four edges in five stay inside, one word in four is of the community's own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, nodes)
    members = [np.flatnonzero(labels == c) for c in range(classes)]
    source = rng.integers(0, nodes, 2 * nodes)
    inside = np.array([rng.choice(members[labels[s]]) for s in source])
    target = np.where(rng.random(len(source)) < 0.8, inside, rng.integers(0, nodes, len(source)))
    linked = source != target
    pairs = np.unique(np.sort([source[linked], target[linked]], axis=0), axis=1)
    A = coo(np.concatenate([pairs, pairs[::-1]], axis=1), (nodes, nodes))
    who = np.repeat(np.arange(nodes), 18)
    own = words // classes * labels[who] + rng.integers(0, words // classes, len(who))
    what = np.where(rng.random(len(who)) < 0.25, own, rng.integers(0, words, len(who)))
    X = coo(np.unique(np.stack([who, what]), axis=1), (nodes, words))
    return A, X, torch.as_tensor(labels)


def coo(indices: Any, shape: tuple[int, int]) -> ow.Tensor:
    """A matrix of ones in compressed rows."""
    return ow.sparse_coo_tensor(torch.as_tensor(indices), torch.ones(indices.shape[1]), shape).asformat("csr")


def split(labels: torch.Tensor, per_class: int = 20, tested: int = 1000) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes to train on, as many of each class, and others to test on."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train = torch.cat([order[labels[order] == c][:per_class] for c in labels.unique()])
    rest = order[~torch.isin(order, train)]
    return train, rest[:tested]


def train(data: Data, epochs: int, hidden: int = 16, dense: bool = False) -> tuple[float, float]:
    """The accuracy on nodes whose labels were not seen, and the seconds that training took."""
    A, X, labels = data
    A = normalized_adjacency(A)
    A = A.to_dense() if dense else A
    count = (X @ torch.ones(X.shape[1])).clamp(min=1)
    X = (X / count[:, None]).asformat("csr")
    seen, tested = split(labels)
    torch.manual_seed(0)
    model = GCN(X.shape[1], hidden, int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    start = time.perf_counter()
    for _ in range(epochs):
        optimizer.zero_grad()
        F.cross_entropy(model(A, X)[seen], labels[seen]).backward()
        optimizer.step()
    seconds = time.perf_counter() - start
    model.eval()
    with torch.no_grad():
        found = model(A, X).argmax(1)
    return (found == labels)[tested].float().mean().item(), seconds


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, and print accuracy and time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="an .npz file; without, a graph is generated")
    parser.add_argument("--quick", action="store_true", help="few epochs")
    parser.add_argument("--dense", action="store_true", help="the same by torch's dense products")
    given = parser.parse_args(arguments)
    data = read(given.path) if given.path else communities()
    print(f"data      {given.path or 'generated communities'}: {data[0].shape[0]} nodes, {data[0].nse // 2} edges")
    epochs = 30 if given.quick else 200
    accuracy, seconds = train(data, epochs, dense=given.dense)
    print(f"accuracy  {accuracy:.1%} on nodes with unseen labels")
    print(f"time      {seconds:.1f} s, {1e3 * seconds / epochs:.1f} ms an epoch")
    return accuracy


if __name__ == "__main__":
    main()
