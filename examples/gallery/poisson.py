"""
A heat equation on a plate with a hole
======================================

The Laplace operator on a grid, restricted to an L-shaped plate with a round hole. The boundary is held at 0,
the plate is heated evenly. The system is solved by conjugate gradients with an incomplete factor.
"""

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow
from openwork import linalg

# %%
# The operator of the whole square is a Kronecker sum of the operator of a line.
n = 120
line = ow.diags_array(
    [-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]
)
square = ow.kronsum(line, line, format="csr")

# %%
# The plate is a part of it: rows and columns of the points inside.
y, x = np.mgrid[:n, :n] / n
inside = ~((x > 0.55) & (y > 0.55)) & ((x - 0.3) ** 2 + (y - 0.3) ** 2 > 0.13**2)
points = np.flatnonzero(inside)
A = square[points][:, points]
b = np.full(len(points), 1 / n**2)

# %%
# Three preconditioners, and how many iterations each takes. The diagonal is constant, so dividing by it
# (jacobi) changes nothing.
for name in (None, "jacobi", "ic0"):
    steps = []
    heat, info = linalg.cg(
        A, b, M=name, rtol=1e-8, callback=lambda _, steps=steps: steps.append(0)
    )
    assert info == 0
    print(f"{name or 'nothing':8} {len(steps):4} iterations")
print(f"residual {np.linalg.norm(A @ heat - b) / np.linalg.norm(b):.0e}")

# %%
picture = np.full((n, n), np.nan)
picture[inside] = heat
figure, ax = plt.subplots(figsize=(5.2, 4.4))
figure.colorbar(ax.imshow(picture, cmap="inferno", origin="lower"), label="temperature")
ax.set_axis_off()
plt.show()
