"""A graph autoencoder that finds edges it has not seen: two graph convolutions give each node a vector, and an edge is
as likely as the product of its nodes' vectors says (Kipf and Welling, Variational graph auto-encoders, 2016).

Run it with the paths of two files of Matrix Market: a graph's edges, and features of its nodes. Cora's citations stand
in the data folder; without it a graph of communities is generated. One edge in ten is hidden to test on, one in twenty
is left out as the paper's validation edges are. The dense counterpart has the same seeds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import openwork as ow
from openwork.nn import GraphConv, normalized_adjacency

FOLDER = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "gnn"
DATA = FOLDER / "cora_adj_shchur.mtx.gz", FOLDER / "cora_attr_shchur.mtx.gz"


class Encoder(torch.nn.Module):
    """Two convolutions, of an adjacency and features that are sparse, or dense both."""

    def __init__(self, features: int, hidden: int = 32, size: int = 16) -> None:
        super().__init__()
        self.first, self.second = GraphConv(features, hidden), GraphConv(hidden, size)

    def forward(self, A: ow.Tensor | torch.Tensor, X: ow.Tensor | torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(convolution(self.first, A, X))
        return convolution(self.second, A, hidden)


def convolution(layer: GraphConv, A: ow.Tensor | torch.Tensor, x: ow.Tensor | torch.Tensor) -> torch.Tensor:
    """The layer; of a dense adjacency what it computes, by torch's dense products."""
    if isinstance(A, ow.Tensor):
        return layer(A, x)
    return A @ (x @ layer.weight) + layer.bias


def generated(nodes: int = 2000, classes: int = 10, words: int = 500, seed: int = 0) -> tuple[ow.Tensor, ow.Tensor]:
    """Communities of nodes: nine edges in ten stay inside, one word in two is of the community's own."""
    rng = np.random.default_rng(seed)
    group = np.arange(nodes) % classes
    source = rng.integers(0, nodes, 2 * nodes)
    inside = (source + classes * rng.integers(1, nodes // classes, len(source))) % nodes
    target = np.where(rng.random(len(source)) < 0.9, inside, rng.integers(0, nodes, len(source)))
    who = np.repeat(np.arange(nodes), 10)
    own = words // classes * group[who] + rng.integers(0, words // classes, len(who))
    what = np.where(rng.random(len(who)) < 0.5, own, rng.integers(0, words, len(who)))
    shapes = (nodes, nodes), (nodes, words)
    pairs = (np.unique(np.stack(p), axis=1) for p in ((source, target), (who, what)))
    A, X = (ow.sparse_coo_tensor(p, np.ones(p.shape[1]), s) for p, s in zip(pairs, shapes, strict=True))
    return A, X


def ones(pairs: torch.Tensor, shape: tuple[int, ...]) -> ow.Tensor:
    """A matrix of ones in compressed rows."""
    return ow.sparse_coo_tensor(pairs, torch.ones(pairs.shape[1]), shape).asformat("csr")


def hide(A: ow.Tensor, seed: int) -> tuple[ow.Tensor, torch.Tensor, torch.Tensor]:
    """The graph without some of its edges, those to test on (2, k), and as many pairs of nodes that are none."""
    n, generator = A.shape[0], torch.Generator().manual_seed(seed)
    pairs = torch.as_tensor(np.stack(np.nonzero(A))).sort(0).values
    pairs = torch.unique(pairs[:, pairs[0] < pairs[1]], dim=1)
    pairs = pairs[:, torch.randperm(pairs.shape[1], generator=generator)]
    tested, left_out = pairs.shape[1] // 10, pairs.shape[1] // 20
    known = pairs[:, tested + left_out :]
    others = torch.randint(0, n, (2, 2 * tested), generator=generator).sort(0).values
    is_edge = torch.isin(others[0] * n + others[1], pairs[0] * n + pairs[1])
    others = others[:, ~is_edge & (others[0] < others[1])][:, :tested]
    return ones(torch.cat([known, known.flip(0)], 1), (n, n)), pairs[:, :tested], others


def loss_of(z: torch.Tensor, target: ow.Tensor | torch.Tensor) -> torch.Tensor:
    """The cross entropy of all pairs of nodes, edges weighing as much as all others together.

    A pair that is no edge costs softplus(z_i . z_j), for which no matrix of targets is needed; edges are put right
    by a sampled product.
    """
    n, scores = len(z), z @ z.T
    edges = target.nse if isinstance(target, ow.Tensor) else int(target.count_nonzero())
    weight = (n * n - edges) / edges
    scale = 1 / (2 * (n * n - edges))
    if isinstance(target, torch.Tensor):
        weights = torch.tensor(weight)
        return scale * F.binary_cross_entropy_with_logits(scores, target, pos_weight=weights, reduction="sum")
    s = ow.sddmm(target, z, z.T).values
    return scale * (F.softplus(scores).sum() + (weight * F.softplus(-s) - F.softplus(s)).sum())


def ranked(edges: torch.Tensor, others: torch.Tensor) -> float:
    """How often an edge scores above a pair that is none: the area under the ROC curve."""
    above = edges[:, None] - others
    return ((above > 0).double().mean() + (above == 0).double().mean() / 2).item()


def train(A: ow.Tensor, X: ow.Tensor, seed: int, epochs: int, dense: bool = False) -> float:
    """The area under the ROC curve of edges that were hidden."""
    known, edges, others = hide(A, seed)
    target = known + ones(torch.arange(len(known)).expand(2, -1), known.shape)
    scaled = normalized_adjacency(known)
    given = (scaled, X, target)
    if dense:
        given = tuple(t.to_dense() for t in given)
    torch.manual_seed(seed)
    model = Encoder(X.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss_of(model(*given[:2]), given[2]).backward()
        optimizer.step()
    with torch.no_grad():
        z = model(*given[:2])
        return ranked(*((z[i] * z[j]).sum(1) for i, j in (edges, others)))


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train sparse and dense, print both areas under the ROC curve, and return them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", help="edges and features, in Matrix Market")
    parser.add_argument("--quick", action="store_true", help="one split, few epochs")
    parser.add_argument("--splits", type=int, default=2, help="how many random splits")
    options = parser.parse_args(arguments)
    paths = [Path(p) for p in options.paths] or ([*DATA] if all(p.exists() for p in DATA) else [])
    if len(paths) not in (0, 2):
        parser.error("two files: edges and features")
    A, X = (ow.read(p) for p in paths) if paths else generated(400 if options.quick else 2000)
    pairs = torch.as_tensor(np.stack(np.nonzero(X)))
    X = ones(pairs, X.shape)
    print(f"data       {paths[0].name if paths else 'generated communities'}: {A.shape[0]} nodes, {A.nse} edges")
    splits, epochs = (1, 25) if options.quick else (options.splits, 200)
    area = {}
    for dense, name in ((False, "sparse"), (True, "dense ")):
        start = time.perf_counter()
        area[dense] = sum(train(A, X, seed, epochs, dense) for seed in range(splits)) / splits
        seconds = time.perf_counter() - start
        print(f"{name}     area under the ROC curve {area[dense]:.1%}, mean of {splits} splits; {seconds:.1f} s")
    if paths == [*DATA]:
        print("published  91.0 % (GAE on Cora with features; Kipf and Welling, 2016, table 1)")
    return area[False], area[True]


if __name__ == "__main__":
    main()
