"""
Who is asked most: PageRank of votes
====================================

In the elections of Wikipedia's administrators some 7,000 users voted about each other. For PageRank a vote
counts more where it comes from a user who has many votes. Without the file of the votes, a graph of the same kind
is generated.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork import graph

# %%
# An edge from each voter to whom the vote is about.
file = Path(os.environ.get("OPENWORK_DATA", "")) / "networkit" / "wiki-Vote.mtx.gz"
if file.exists():
    A = ow.read(file).asformat("csr").with_values(1.0)
else:
    rng = np.random.default_rng(0)
    ends = np.unique((rng.random((2, 40_000)) ** 3 * 4000).astype(int), axis=1)
    A = ow.sparse_coo_tensor(ends, np.ones(ends.shape[1]), (4000, 4000)).asformat("csr")
print("wiki-Vote" if file.exists() else "generated", A.shape, A.nse)

# %%
# The ranks by hand, a few lines over a product, and from the library.
out = A.sum(axis=1).to_numpy()
share = np.divide(1, out, out=np.zeros_like(out), where=out > 0)
rank = np.full(len(out), 1 / len(out))
for _ in range(100):
    loose = rank[out == 0].sum()
    rank = 0.15 / len(out) + 0.85 * (A.T @ (rank * share) + loose / len(out))
assert np.allclose(rank, graph.pagerank(A), atol=1e-6)

# %%
# Votes against ranks. Steps are counted from the user of the highest rank, edges taken backwards; -1
# where there is no way.
votes = A.sum(axis=0).to_numpy()
steps = graph.bfs(A.T, rank.argmax())
reached, users = np.unique(steps, return_counts=True)
print("reached in steps:", dict(zip(reached.tolist(), users.tolist(), strict=True)))
figure, ax = plt.subplots(figsize=(6, 4))
far = steps < 0
ax.scatter(votes[far] + 1, rank[far], c="#80838860", s=7)
points = ax.scatter(votes[~far] + 1, rank[~far], c=steps[~far], s=7, cmap="summer")
ax.set(xscale="log", yscale="log", xlabel="votes + 1", ylabel="PageRank")
figure.colorbar(points, label="steps to the first")
plt.show()
