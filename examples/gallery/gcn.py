"""
A graph network that learns from a few labels
=============================================

A network of papers that cite each other: four citations in five stay within a field. Of each field twenty
papers are labelled. A graph convolutional network learns to name the field of the others, and is compared
with one that does not see the citations. The papers are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import openwork as ow
from openwork.nn import GraphConv, normalized_adjacency

# %%
# Papers, citations, and words: one word in six is of the field.
papers, fields, words = 1500, 5, 400
rng = np.random.default_rng(0)
field = rng.integers(0, fields, papers)
cites = rng.integers(0, papers, (2, 12 * papers))
stays = field[cites[0]] == field[cites[1]]
cites = cites[:, (cites[0] != cites[1]) & (stays | (rng.random(cites.shape[1]) < 0.06))]
edges = np.unique(np.concatenate([cites, cites[::-1]], axis=1), axis=1)
A = ow.sparse_coo_tensor(
    torch.as_tensor(edges), torch.ones(edges.shape[1]), (papers, papers)
).asformat("csr")
who = np.repeat(np.arange(papers), 12)
own = field[who] * (words // fields) + rng.integers(0, words // fields, len(who))
of_field = rng.random(len(who)) < 1 / 6
word = np.where(of_field, own, rng.integers(0, words, len(who)))
has = np.unique(np.stack([who, word]), axis=1)
X = ow.sparse_coo_tensor(
    torch.as_tensor(has), torch.ones(has.shape[1]), (papers, words)
).asformat("csr")
labels = torch.as_tensor(field)
train = torch.as_tensor(
    np.concatenate([np.flatnonzero(field == f)[:20] for f in range(fields)])
)
print(f"{papers} papers, {A.nse // 2} citations, {len(train)} labels")


# %%
# Two layers. The same network without citations has the identity as its graph.
def learn(graph):
    torch.manual_seed(0)
    first, second = GraphConv(words, 16), GraphConv(16, fields)
    optimizer = torch.optim.Adam(
        [*first.parameters(), *second.parameters()], lr=0.02, weight_decay=5e-4
    )
    curve = []
    for _ in range(40):
        out = second(graph, torch.relu(first(graph, X)))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(out[train], labels[train]).backward()
        optimizer.step()
        curve.append((out.argmax(1) == labels).float().mean().item())
    return curve


curves = {
    "with citations": learn(normalized_adjacency(A)),
    "words alone": learn(
        ow.asarray(ow.eye_array(papers, dtype=np.float32, format="csr"), like=torch)
    ),
}
for name, curve in curves.items():
    print(f"{name:15} {curve[-1]:.0%} right")
assert curves["with citations"][-1] > curves["words alone"][-1] + 0.1

# %%
figure, ax = plt.subplots(figsize=(6, 3.6))
for name, curve in curves.items():
    ax.plot(curve, label=name)
ax.set(xlabel="epoch", ylabel="share named correctly", ylim=(0, 1))
ax.legend()
plt.show()
