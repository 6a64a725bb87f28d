"""
Facts as a tensor: what is missing from a table of medicine
===========================================================

A fact is a triple, such as (a virus, causes, a disease). All facts make a tensor of three dimensions with a 1
for each. A decomposition of low rank fills in facts that are not in the table. The facts are the relations between
kinds of terms of the Unified Medical Language System; without their file they are generated.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork.decomposition import cp_als

# %%
# The triples, and a tenth of them hidden.
file = Path(os.environ.get("OPENWORK_DATA", "")) / "tensors" / "UMLS_train.tns.gz"
if file.exists():
    facts = ow.read(file, format="coo").indices()
else:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 6, 100)
    allowed = rng.random((6, 8, 6)) < 0.12
    facts = np.stack(np.nonzero(allowed[groups][:, :, groups]))
sizes = tuple(int(m) + 1 for m in facts.max(axis=1))
order = np.random.default_rng(1).permutation(facts.shape[1])
hidden, known = np.split(facts[:, order], [facts.shape[1] // 10], axis=1)
X = ow.sparse_coo_tensor(known, np.ones(known.shape[1]), sizes).coalesce()
print(
    "UMLS" if file.exists() else "generated",
    f"{X.shape}, {X.nse} known facts, {hidden.shape[1]} hidden ones",
)

# %%
# How well does a model of each rank tell hidden facts from triples that are none? 50% is a guess. The
# score of a triple is a sum of products of three numbers for each component, so only the triples asked for
# are computed.
rng = np.random.default_rng(2)
none = np.stack([rng.integers(0, n, 4000) for n in sizes])
ranks, told, fits = (2, 5, 10, 20, 40), [], []


def score(model, triples):
    return np.einsum(
        "r,nr,nr,nr->n",
        model.weights,
        *(f[k] for f, k in zip(model.factors, triples, strict=True)),
    )


for rank in ranks:
    model = cp_als(X, rank, rng=0, maxiter=30)
    told.append((score(model, hidden)[:, None] > score(model, none)[None, :]).mean())
    fits.append(model.fit)
    print(
        f"rank {rank:3}: fit {model.fit:.2f}, hidden facts above others {told[-1]:.1%}"
    )
assert max(told) > 0.8

# %%
figure, ax = plt.subplots(figsize=(6, 3.6))
ax.plot(ranks, told, "o-", label="hidden facts told from others")
ax.plot(ranks, fits, "s--", label="fit of the known ones")
ax.set(xlabel="rank", xticks=ranks, ylim=(0, 1))
ax.legend()
plt.show()
