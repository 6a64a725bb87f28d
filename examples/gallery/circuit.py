"""
A plate of resistors with a crack
=================================

A plate is a grid of resistors. Current goes in on the left and out on the right; a crack stands in the way.
The voltages solve Kirchhoff's law, one sparse system with the conductances in it. The power that each
resistor turns into heat shows where the current has to crowd.
"""

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork import linalg

# %%
# An incidence matrix says which resistor joins which nodes.
n = 60
node = np.arange(n * n).reshape(n, n)
start = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
end = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
edge = np.arange(len(start))
ends = np.stack([np.tile(edge, 2), np.concatenate([start, end])])
B = ow.sparse_coo_tensor(
    ends, np.repeat([1.0, -1.0], len(edge)), (len(edge), n * n)
).asformat("csr")

# %%
# The crack: along a line, the resistors across it conduct a ten-thousandth.
row, column = start // n, start % n
conductance = np.where((column == 30) & (row > 10) & (edge < n * (n - 1)), 1e-4, 1.0)
G = B.T @ (B * conductance[:, None])
print(f"{n * n} nodes, {len(edge)} resistors; the matrix has {G.nse} elements")

# %%
# One ampere in, one out; the last node is ground.
current = np.zeros(n * n)
current[node[:, 0]] += 1 / n
current[node[:, -1]] -= 1 / n
free = np.arange(n * n - 1)
voltage = np.append(linalg.solve(G[free][:, free].asformat("csc"), current[free]), 0.0)
assert np.allclose(G @ voltage, current)
print(f"resistance {current @ voltage:.2f} ohm; without the crack {(n - 1) / n:.2f}")

# %%
# The power in each resistor, half of it at either end.
flow = conductance * (B @ voltage)
power = np.zeros(n * n)
for nodes in (start, end):
    np.add.at(power, nodes, flow**2 / conductance / 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
for ax, title, picture, map_ in zip(
    axes,
    ("voltage, V", "power, log10 of W"),
    (voltage, np.log10(power + 1e-7)),
    ("RdBu_r", "inferno"),
    strict=True,
):
    figure.colorbar(ax.imshow(picture.reshape(n, n), cmap=map_), ax=ax)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/circuit.png"
