"""Completion of a knowledge graph by factorization: triples (head, relation, tail) are elements of a tensor that is
approximated as sum_k E[head, k] R[relation, k] E[tail, k] (DistMult, Yang and others, ICLR 2015).

Each step reads the vectors of a few entities, and their gradient has these rows only. Run it with the path of a .tns
file with three indices; FB15K237 stands in the data folder. Without it triples are generated from vectors.
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


class Factors(torch.nn.Module):
    """The vectors of entities and relations."""

    def __init__(self, entities: int, relations: int, rank: int, dense: bool = False) -> None:
        super().__init__()
        tables = [0.3 * torch.randn(n, rank) for n in (entities, relations)]
        if dense:
            self.entity, self.relation = (torch.nn.Embedding.from_pretrained(t, freeze=False) for t in tables)
        else:
            self.entity, self.relation = (SparseEmbedding(*t.shape, weight=t) for t in tables)

    def forward(self, triples: torch.Tensor, wrong: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores of triples (n, 3), and of triples whose tails are wrong, (k, n)."""
        ends = self.entity(torch.cat([triples[:, [0, 2]].T, wrong]))
        asked = ends[0] * self.relation(triples[:, 1])
        return (asked * ends[1]).sum(-1), (asked * ends[2:]).sum(-1)


def generated(entities: int = 600, relations: int = 8, groups: int = 8, facts: int = 30000) -> ow.Tensor:
    """Entities in groups; a relation leads from each group to another one, and back."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, groups, entities)
    members = [np.flatnonzero(group == g) for g in range(groups)]
    leads = (np.arange(relations)[:, None] - np.arange(groups)) % groups
    head, relation = rng.integers(0, entities, facts), rng.integers(0, relations, facts)
    tail = np.array([rng.choice(members[leads[r, g]]) for r, g in zip(relation, group[head], strict=True)])
    return ow.sparse_coo_tensor(np.stack([head, relation, tail]), np.ones(facts), (entities, relations, entities))


def train(model: Factors, known: torch.Tensor, epochs: int, batch: int = 1024, negatives: int = 4) -> None:
    """Known triples against ones with random tails."""
    library = optim if isinstance(model.entity, SparseEmbedding) else torch.optim
    optimizer = library.Adagrad(model.parameters(), lr=0.1)
    entities = model.entity.num_embeddings
    for _ in range(epochs):
        for k in torch.randperm(len(known)).split(batch):
            optimizer.zero_grad()
            right, wrong = model(known[k], torch.randint(0, entities, (negatives, len(k))))
            loss = F.softplus(-right).mean() + F.softplus(wrong).mean()
            loss.backward()
            optim.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def evaluate(model: Factors, unseen: torch.Tensor) -> tuple[float, float]:
    """How often an unseen triple scores above one with a random tail, and its tail is among the ten of the highest."""
    with torch.no_grad():
        right, wrong = model(unseen, torch.randint(0, model.entity.num_embeddings, (10, len(unseen))))
        some = unseen[:1000]
        scores = (model.entity(some[:, 0]) * model.relation(some[:, 1])) @ model.entity.weight.T
        above = (scores > scores.gather(1, some[:, 2:])).sum(1)
    return (right > wrong).float().mean().item(), (above < 10).float().mean().item()


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, and print accuracy and time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="a .tns file with three indices")
    parser.add_argument("--quick", action="store_true", help="fewer triples and epochs, a smaller rank")
    parser.add_argument("--dense", action="store_true", help="the same by torch's Embedding and Adagrad")
    given = parser.parse_args(arguments)
    path = given.path or (str(DATA) if DATA.exists() else None)
    t = (ow.read(path) if path else generated()).coalesce()
    triples = torch.as_tensor(np.array(t.indices()), dtype=torch.int64).T
    print(f"data      {Path(path).name if path else 'generated triples'}: {t.nse:,}, shape {t.shape}")
    torch.manual_seed(0)
    triples = triples[torch.randperm(len(triples))]
    if given.quick:
        triples = triples[:100000]
    cut = len(triples) // 20
    model = Factors(max(t.shape[0], t.shape[2]), t.shape[1], 16 if given.quick else 64, given.dense)
    start = time.perf_counter()
    train(model, triples[cut:], 4 if given.quick else 6)
    seconds = time.perf_counter() - start
    accuracy, hits = evaluate(model, triples[:cut])
    print(f"accuracy  {accuracy:.1%} of unseen triples score above a random one; tail among the first ten: {hits:.1%}")
    print(f"time      {seconds:.1f} s")
    return accuracy


if __name__ == "__main__":
    main()
