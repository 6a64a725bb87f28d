"""
One matrix, four formats
========================

What a format stores, and what it leaves out, is easiest to see in a picture. `ow.plot.levels` draws the
levels of a small tensor as a tree: one row of nodes for each level, the values below.
"""

import matplotlib.pyplot as plt
import numpy as np

import openwork as ow

# %%
# A matrix of five elements.
A = ow.asarray(
    np.array([[0.0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 0, 0], [0, 4, 5, 0]]), format="csr"
)

# %%
# CSR has a node for each row, also for the empty one; DCSR leaves it out. COO has one pair of
# coordinates for each element. Blocks of 2 by 2 store zeros where a block is not full.
figure, axes = plt.subplots(2, 2, figsize=(11, 7.6), layout="constrained")
for ax, name in zip(axes.flat, ("csr", "dcsr", "coo", "bsr(2, 2)"), strict=True):
    B = A.asformat(name)
    ow.plot.levels(B, ax=ax)
    ax.set_title(f"{name}, {B.nbytes} bytes")
    print(f"{name:10} {B.format}")
plt.show()
