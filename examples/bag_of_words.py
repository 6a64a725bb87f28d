"""Logistic regression on bags of words: documents are rows of a sparse matrix, and each step reads and writes the rows
of the weight whose words occur in its documents.

Run it with the path of a file in svmlight's format, labels of two kinds; a8a, the adult census as bags of
properties, stands in the data folder. Without it documents are generated. The dense counterpart is a product with rows
made dense, and torch's Adam, with the same seeds; SparseAdam leaves the moments of words alone that a batch has not.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import openwork as ow
from openwork.nn import SparseEmbeddingBag
from openwork.torch import optim

DATA = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "libsvm/a8a.gz"

Data = tuple[ow.Tensor, torch.Tensor]
"""Documents by words, and the class of each document, 0 or 1."""


def read(path: str) -> Data:
    """The documents and labels of a file in svmlight's format."""
    opened = {".gz": gzip.open, ".bz2": bz2.open}.get(Path(path).suffix, open)
    with opened(path, "rt") as file:
        labels = [float(line.split(None, 1)[0]) for line in file if line.strip() and not line.startswith("#")]
    X = ow.read(path)
    values = torch.as_tensor(np.asarray(X.values), dtype=torch.float32)
    pos, crd = (torch.as_tensor(np.array(x)) for x in (X.pos(1), X.crd(1)))
    y = torch.tensor(labels)
    return ow.sparse_csr_tensor(pos, crd, values, X.shape), (y == y.max()).float()


def generated(documents: int = 20000, words: int = 5000, length: int = 30, seed: int = 0) -> Data:
    """Documents whose words, frequent and rare ones, lean to one class or the other."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, words + 1)
    lean = rng.normal(0, 0.5, words)
    y = rng.integers(0, 2, documents)
    crd = np.empty((documents, length), np.int64)
    for c in (0, 1):
        p = frequency * np.exp(lean if c else -lean)
        crd[y == c] = rng.choice(words, (int((y == c).sum()), length), p=p / p.sum())
    pairs = np.unique(np.stack([np.repeat(np.arange(documents), length), crd.reshape(-1)]), axis=1)
    X = ow.sparse_coo_tensor(torch.as_tensor(pairs), torch.ones(pairs.shape[1]), (documents, words))
    return X.asformat("csr"), torch.as_tensor(y, dtype=torch.float32)


def train(data: Data, epochs: int, batch: int = 256, dense: bool = False) -> tuple[float, float, float]:
    """Accuracy on a fifth of the documents, the part of the more frequent class there, the seconds of training."""
    X, y = data
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    cut = len(y) // 5
    X, y = X[order], y[order]
    seen, known, unseen, wanted = X[cut:], y[cut:], X[:cut], y[:cut]
    torch.manual_seed(0)
    table = SparseEmbeddingBag(X.shape[1], 1, mode="sum", weight=torch.zeros(X.shape[1], 1))
    bias = torch.nn.Parameter(torch.zeros(1))
    if dense:
        table.forward = lambda bags: bags.to_dense() @ table.weight
    kind = torch.optim.Adam if dense else optim.SparseAdam
    optimizer = kind([table.weight, bias], lr=0.02, weight_decay=1e-5)
    start = time.perf_counter()
    for _ in range(epochs):
        for k in range(0, len(known), batch):
            optimizer.zero_grad()
            score = table(seen[k : k + batch])[:, 0] + bias
            F.binary_cross_entropy_with_logits(score, known[k : k + batch]).backward()
            optim.clip_grad_norm_([table.weight, bias], 1.0)
            optimizer.step()
    seconds = time.perf_counter() - start
    with torch.no_grad():
        right = (table(unseen)[:, 0] + bias > 0) == (wanted > 0)
    share = wanted.mean().item()
    return right.float().mean().item(), max(share, 1 - share), seconds


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train sparse and dense, print both accuracies, and return them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="a file in svmlight's format")
    parser.add_argument("--quick", action="store_true", help="few documents, few epochs")
    given = parser.parse_args(arguments)
    path = Path(given.path) if given.path else DATA if DATA.exists() else None
    X, y = read(str(path)) if path else generated()
    if given.quick:
        X, y = X[:4000], y[:4000]
    name = path.name if path else "generated documents"
    print(f"data       {name}: {X.shape[0]} of {X.shape[1]} words, nse {X.nse}")
    found = []
    for name, dense in (("sparse", False), ("dense ", True)):
        accuracy, guess, seconds = train((X, y), 2 if given.quick else 5, dense=dense)
        found.append(accuracy)
        print(f"{name}     accuracy {accuracy:.1%} on unseen documents; {seconds:.1f} s")
    print(f"guess      the more frequent class is {guess:.1%}")
    if path and path.name == "a8a.gz":
        print("published  84.46 +- 0.30 % (C4.5), 85.90 +- 0.28 % (NBTree): Kohavi, KDD 1996, random thirds of adult")
    return found[0], found[1]


if __name__ == "__main__":
    main()
