"""
Cells by their genes: principal components of a sparse matrix
=============================================================

A matrix of counts, cells by genes, of which most are 0. Each cell is scaled to the same sum, logarithms are
taken, and the principal components are found without making the matrix dense: its mean is subtracted inside
the products. The counts are of 10,000 cells, published by 10x; without their file, counts of four kinds of cells
are generated.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork import linalg

# %%
# The counts.
file = Path(os.environ.get("OPENWORK_DATA", "")) / "singlecell" / "10x-10k-subset_X.npz"
if file.exists():
    X = ow.read(file).asformat("csr").astype(np.float64)
else:
    rng = np.random.default_rng(0)
    profile = rng.gamma(0.15, 3, (4, 1200))
    X = ow.asarray(
        rng.poisson(profile[rng.integers(0, 4, 900)]).astype(float), format="csr"
    )
print(
    "10x" if file.exists() else "generated",
    f"{X.shape[0]} cells, {X.shape[1]} genes, {X.density:.1%} are not 0",
)

# %%
# Genes that fewer than three cells have are left out, and cells without any; sums are scaled, logarithms
# taken. Zeros stay zeros, and are never stored.
X = X[:, np.flatnonzero((X > 0).sum(axis=0).to_numpy() >= 3)]
X = X[np.flatnonzero(X.sum(axis=1).to_numpy() > 0)]
X = np.log1p(X / X.sum(axis=1).to_numpy()[:, None] * 1e4)

# %%
# The centred matrix would be dense. `pca` never makes it.
found = linalg.pca(X, 6)
assert np.allclose(found.mean, X.mean(axis=0).to_numpy())
print("share of the variance:", np.round(found.explained_variance_ratio, 3).tolist())

# %%
# Every third cell, coloured by one gene.
figure, ax = plt.subplots(figsize=(6, 4.4))
marker = int(abs(found.components[1]).argmax())
points = ax.scatter(
    *found.scores[::3, :2].T, c=X[::3, marker].to_numpy(), s=6, cmap="summer"
)
figure.colorbar(points, label="the gene of most weight in the second")
ax.set(xlabel="first component", ylabel="second component", xticks=[], yticks=[])
plt.show()
