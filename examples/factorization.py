"""Completion of a knowledge graph by factorization: triples (head, relation, tail) are elements of a tensor that is
approximated as sum_k E[head, k] R[relation, k] E[tail, k] (DistMult, Yang and others, ICLR 2015).

Each step reads the vectors of a few entities, and their gradient has these rows only; the dense counterpart is torch's
Embedding and Adagrad, whose steps write the whole tables, with the same seeds. Unseen triples are ranked among all that
differ from them in the tail, or in the head, leaving out those that are known to be true ("filtered").

Run it with the path of a .tns file with three indices, of which one triple in twenty is hidden, or of a folder with
train2id.txt and test2id.txt, as the benchmarks of OpenKE have them (benchmarks/FB15K237 there). FB15K237's triples to
train on stand in the data folder. Without it triples are generated from groups of entities.
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
from openwork.nn import SparseEmbedding
from openwork.torch import optim

FOLDER = Path(os.environ.get("OPENWORK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DATA = FOLDER / "tensors/FB15K237_train.tns.gz"

Data = tuple[torch.Tensor, torch.Tensor, int, int]
"""Triples to train on (n, 3), unseen ones (m, 3), the numbers of entities and of relations."""


class Factors(torch.nn.Module):
    """The vectors of entities, and of relations from head to tail and from tail to head."""

    def __init__(self, entities: int, relations: int, rank: int, dense: bool = False) -> None:
        super().__init__()
        tables = [0.1 * torch.randn(n, rank) for n in (entities, 2 * relations)]
        if dense:
            self.entity, self.relation = (torch.nn.Embedding.from_pretrained(t, freeze=False) for t in tables)
        else:
            self.entity, self.relation = (SparseEmbedding(*t.shape, weight=t) for t in tables)

    def loss(self, triples: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """The cross entropy of the right tails, and heads, among other entities, and the norms of what was read."""
        (head, relation, tail), n, relations = triples.T, len(triples), len(self.relation.weight) // 2
        heads, tails, wrong = self.entity(torch.cat([head, tail, others])).split([n, n, len(others)])
        there, back = self.relation(torch.cat([relation, relation + relations])).split(n)
        first = torch.zeros(n, dtype=torch.int64)
        total = 0.01 * sum(v.abs().pow(3).sum() for v in (heads, tails, there, back)) / n
        for asked, answer in ((heads * there, tails), (tails * back, heads)):
            right = (asked * answer).sum(1, keepdim=True)
            total = total + F.cross_entropy(torch.cat([right, asked @ wrong.T], 1), first)
        return total


def read(path: Path) -> Data:
    """The triples of a tensor's file, or of a folder of OpenKE's, whose lines are head, tail, relation."""
    if path.is_dir():
        seen, unseen = (
            torch.as_tensor(np.loadtxt(path / f"{part}2id.txt", np.int64, skiprows=1)[:, [0, 2, 1]])
            for part in ("train", "test")
        )
        size = torch.cat([seen, unseen]).amax(0) + 1
        return seen, unseen, int(size[[0, 2]].max()), int(size[1])
    return hidden(ow.read(path))


def hidden(t: ow.Tensor) -> Data:
    """The triples of a tensor, one in twenty of which is not to be trained on."""
    t = t.coalesce()
    triples = torch.as_tensor(np.array(t.indices()), dtype=torch.int64).T
    triples = triples[torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))]
    cut = len(triples) // 20
    return triples[cut:], triples[:cut], max(t.shape[0], t.shape[2]), t.shape[1]


def generated(entities: int = 600, relations: int = 8, groups: int = 8, facts: int = 30000) -> ow.Tensor:
    """Entities in groups; a relation leads from each group to another one, and back."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, groups, entities)
    members = [np.flatnonzero(group == g) for g in range(groups)]
    leads = (np.arange(relations)[:, None] - np.arange(groups)) % groups
    head, relation = rng.integers(0, entities, facts), rng.integers(0, relations, facts)
    tail = np.array([rng.choice(members[leads[r, g]]) for r, g in zip(relation, group[head], strict=True)])
    return ow.sparse_coo_tensor(np.stack([head, relation, tail]), np.ones(facts), (entities, relations, entities))


def train(data: Data, rank: int, epochs: int, dense: bool = False, batch: int = 1024, others: int = 256) -> Factors:
    """The factors after epochs of Adagrad; the entities that answers compete with are drawn for each batch."""
    seen, _, entities, relations = data
    torch.manual_seed(0)
    model = Factors(entities, relations, rank, dense)
    optimizer = (torch.optim if dense else optim).Adagrad(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for k in torch.randperm(len(seen)).split(batch):
            optimizer.zero_grad()
            model.loss(seen[k], torch.randint(0, entities, (others,))).backward()
            optimizer.step()
    return model


def ranks(model: Factors, data: Data) -> torch.Tensor:
    """The rank of each unseen triple among those of other tails, and of other heads: from 1."""
    seen, unseen, entities, relations = data
    known = torch.cat([seen, unseen]).numpy()
    E, R = (table.weight.detach() for table in (model.entity, model.relation))
    found = []
    for asked, answer, first in ((0, 2, 0), (2, 0, relations)):
        shape = (entities * relations, entities)  # a row for each question: the answers that are known to be right
        pairs = np.stack([known[:, asked] * relations + known[:, 1], known[:, answer]])
        answers = ow.sparse_coo_tensor(pairs, np.ones(len(known)), shape).asformat("dcsr")
        for part in unseen.split(1000):
            scores = (E[part[:, asked]] * R[part[:, 1] + first]) @ E.T
            right = scores.gather(1, part[:, [answer]])
            rows = answers[(part[:, asked] * relations + part[:, 1]).numpy()]
            scores[np.nonzero(rows)] = -torch.inf
            found.append(1 + (scores > right).sum(1))
    return torch.cat(found)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train sparse and dense, print how unseen triples rank, and return both mean reciprocal ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="a .tns file with three indices, or a folder of OpenKE's")
    parser.add_argument("--quick", action="store_true", help="fewer triples and epochs, a smaller rank")
    given = parser.parse_args(arguments)
    path = Path(given.path) if given.path else DATA if DATA.exists() else None
    data = read(path) if path else hidden(generated(facts=6000 if given.quick else 30000))
    rank, epochs = (16, 3) if given.quick else (64, 5)
    if given.quick:
        data = data[0][:30000], data[1][:500], *data[2:]
    name = path.name if path else "generated triples"
    print(f"data       {name}: {len(data[0]):,} triples, {len(data[1]):,} unseen, of {data[2]:,} entities")
    reciprocal = []
    for name, dense in (("sparse", False), ("dense ", True)):
        start = time.perf_counter()
        model = train(data, rank, epochs, dense)
        seconds = time.perf_counter() - start
        found = ranks(model, data)
        reciprocal.append((1 / found).mean().item())
        hits = (found <= 10).float().mean().item()
        print(f"{name}     mean reciprocal rank {reciprocal[-1]:.3f}, among the first ten {hits:.1%}; {seconds:.1f} s")
    if path and path.is_dir() and path.name == "FB15K237":
        print("published  0.241, 41.9 % (DistMult on FB15k-237; Dettmers and others, AAAI 2018, table 4)")
    return reciprocal[0], reciprocal[1]


if __name__ == "__main__":
    main()
