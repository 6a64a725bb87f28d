"""A graph convolutional network of two layers that classifies the nodes of a graph, twenty labels of each class known.

Run it with the path of an .npz file that holds a graph in compressed rows (`adj_data`, `adj_indices`, `adj_indptr`,
`adj_shape`), features of its nodes (`attr_...`) and `labels`, as the files of the GNN benchmark of Shchur and others do
(data/npz/cora.npz there). Without a path the graph is generated: communities like Cora's in size, edges and words.

The protocol is theirs (Pitfalls of graph neural network evaluation, 2018): the largest component, random splits with 20
nodes of each class to train on and 30 to stop by, all others to test on. The dense counterpart has the same seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
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
        values = F.dropout(X.values, 0.8, self.training)
        X = ow.sparse_csr_tensor(X.pos(1), X.crd(1), values, X.shape, check_invariants=False)
        hidden = torch.relu(convolution(self.first, A, X))
        return convolution(self.second, A, F.dropout(hidden, 0.8, self.training))


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


def largest_component(data: Data) -> Data:
    """The part of a graph that hangs together and has the most nodes."""
    A, X, labels = data
    _, component = ow.graph.components(A)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    return A[nodes][:, nodes].asformat("csr"), X[nodes], labels[nodes]


def split(labels: torch.Tensor, seed: int, seen: int = 20, stopping: int = 30) -> tuple[torch.Tensor, ...]:
    """Nodes to train on, to stop by, and to test on: so many of each class, and all others."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    classes = [order[labels[order] == c] for c in labels.unique()]
    parts = (slice(0, seen), slice(seen, seen + stopping), slice(seen + stopping, None))
    return tuple(torch.cat([nodes[part] for nodes in classes]) for part in parts)


def train(data: Data, seed: int, epochs: int, patience: int = 50, dense: bool = False) -> tuple[float, int]:
    """The accuracy on unseen nodes, of the epoch that is the best by others, and how many epochs there were."""
    A, X, labels = data
    A = normalized_adjacency(A)
    A = A.to_dense() if dense else A
    seen, stopping, tested = split(labels, seed)
    torch.manual_seed(seed)
    model = GCN(X.shape[1], 64, int(labels.max()) + 1)
    others = [model.first.bias, *model.second.parameters()]
    optimizer = torch.optim.Adam([{"params": [model.first.weight], "weight_decay": 1e-3}, {"params": others}], lr=0.01)
    best, found, since, epoch = float("inf"), 0.0, 0, 0
    while epoch < epochs and since < patience:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(A, X)[seen], labels[seen]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model(A, X)
            loss = F.cross_entropy(scores[stopping], labels[stopping]).item()
        epoch, since = epoch + 1, since + 1
        if loss < best:
            best, since = loss, 0
            found = (scores.argmax(1) == labels)[tested].float().mean().item()
    return found, epoch


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train sparse and dense, print both accuracies, and return them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="an .npz file; without, a graph is generated")
    parser.add_argument("--quick", action="store_true", help="one split, few epochs, a small graph")
    parser.add_argument("--splits", type=int, default=5, help="how many random splits")
    given = parser.parse_args(arguments)
    data = largest_component(read(given.path) if given.path else communities(600 if given.quick else 2708))
    name = Path(given.path).name if given.path else "generated communities"
    print(f"data       {name}: {data[0].shape[0]} nodes, {data[0].nse // 2} edges")
    splits, epochs = (1, 15) if given.quick else (given.splits, 1000)
    accuracy = {}
    for name, dense in (("sparse", False), ("dense ", True)):
        start = time.perf_counter()
        runs = [train(data, seed, epochs, dense=dense) for seed in range(splits)]
        seconds, total = time.perf_counter() - start, sum(n for _, n in runs)
        accuracy[dense] = sum(a for a, _ in runs) / splits
        said = f"accuracy {accuracy[dense]:.1%} on unseen nodes, mean of {splits} splits"
        print(f"{name}     {said}; {seconds:.1f} s, {1e3 * seconds / total:.1f} ms an epoch")
    if given.path and Path(given.path).name == "cora.npz":
        print("published  81.5 +- 1.3 % (GCN; Shchur and others, 2018, table 1)")
    return accuracy[False], accuracy[True]


if __name__ == "__main__":
    main()
