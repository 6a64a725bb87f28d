"""
Drawing a mesh by its eigenvectors
==================================

Where do the nodes of a graph belong on paper? Two eigenvectors of its Laplacian know: nodes that are joined
get coordinates that are near. Here the graph is the mesh around the wing of an aeroplane; without its file, a
grid with a hole.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork import linalg

# %%
# The mesh, as an adjacency matrix.
file = Path(os.environ.get("OPENWORK_DATA", "")) / "networkit" / "airfoil1.mtx.gz"
if file.exists():
    A = ow.read(file).asformat("csr")
else:
    line = ow.diags_array([np.ones(59), np.ones(59)], offsets=[-1, 1])
    grid = ow.kronsum(line, line, format="csr")
    keep = np.flatnonzero(np.hypot(*(np.mgrid[:60, :60] - 25)).ravel() > 9)
    A = grid[keep][:, keep]
A = A.with_values(1.0)
print("airfoil1" if file.exists() else "generated grid", A.shape, A.nse)

# %%
# The Laplacian, normalised by the degrees. Its smallest eigenvectors are the largest of the matrix that
# it takes from the identity.
degrees = A.sum(axis=1).to_numpy()
scale = ow.diags_array([1 / np.sqrt(degrees)], offsets=[0], format="csr")
P = scale @ A @ scale
values, vectors = linalg.eigsh(
    P + ow.eye_array(len(degrees), format="csr"), k=4, which="LA"
)
place = (vectors / np.sqrt(degrees)[:, None])[:, np.argsort(-values)][:, 1:3]

# %%
# Every edge as a line.
rows, columns = ow.triu(A, k=1).asformat("coo").indices()
figure, ax = plt.subplots(figsize=(6, 4.6))
ends = np.stack(
    [place[rows], place[columns], np.full((len(rows), 2), np.nan)], axis=1
).reshape(-1, 2)
ax.plot(*ends.T, linewidth=0.25)
ax.set_axis_off()
plt.show()
