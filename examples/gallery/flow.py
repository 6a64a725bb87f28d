"""
The cheapest flows through a landscape, by an interior point method
===================================================================

Goods go from four places to four others over a grid of roads whose costs a landscape gives. The cheapest way is a linear
program. An interior point method solves a dozen systems with it, all of one structure: the factorisation finds its
order and its elements once, and computes the numbers again.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from scipy.optimize import linprog

import openwork as ow
from openwork import linalg

# %%
# Roads both ways between neighbours of a grid; a smooth landscape of costs.
n = 64
y, x = np.mgrid[:n, :n] / n
hills = ((0.3, 0.35, 0.14), (0.65, 0.6, 0.18), (0.75, 0.2, 0.12), (0.25, 0.8, 0.12))
height = sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / s**2) for a, b, s in hills)
node = np.arange(n * n).reshape(n, n)
tail = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
head = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
tail, head = np.concatenate([tail, head]), np.concatenate([head, tail])
rng = np.random.default_rng(0)
cost = 1 + 2.5 * (height.ravel()[tail] + height.ravel()[head]) + rng.random(len(tail))

# %%
# What arrives at each node minus what leaves it: an incidence matrix, without its last row, which follows from the others.
road = np.arange(len(tail))
A = ow.sparse_coo_tensor(
    np.stack([np.concatenate([head, tail]), np.tile(road, 2)]),
    np.repeat([1.0, -1.0], len(road)),
    (n * n, len(road)),
)
A = A.asformat("csr")[: n * n - 1]
need = np.zeros(n * n)
sources, sinks = node[[6, 25, 40, 58], 2], node[[10, 30, 45, 60], n - 3]
need[sources], need[sinks] = -1.0, 1.0
b = need[:-1]

# %%
# Mehrotra's predictor and corrector. Each step solves with A D A', whose values alone change.
start = time.perf_counter()
F, spent = None, []


def solver(d):
    global F
    begin = time.perf_counter()
    K = (A * d) @ A.T
    F = linalg.factorized(K, kind="cholesky") if F is None else F.update(K)
    spent.append(1e3 * (time.perf_counter() - begin))

    def direction(primal, dual, product):
        """dx, dy, ds with A dx = primal, A' dy + ds = dual, s dx + x ds = product."""
        dy = F(primal + A @ (d * (dual - product / v)))
        ds = dual - A.T @ dy
        return (product - v * ds) / s, dy, ds

    return direction


def longest(z, dz):
    down = dz < 0
    return min(1.0, 0.995 * np.min(-z[down] / dz[down], initial=np.inf))


v, s, p = np.ones(len(cost)), cost.copy(), np.zeros(len(b))
iterations = 0
while True:
    primal, dual, gap = b - A @ v, cost - A.T @ p - s, v @ s / len(v)
    if max(abs(primal).max(), abs(dual).max(), gap) < 1e-8:
        break
    direction = solver(v / s)
    dv, dp, ds = direction(primal, dual, -v * s)
    after = (v + longest(v, dv) * dv) @ (s + longest(s, ds) * ds) / len(v)
    center = (after / gap) ** 3 * gap
    dv, dp, ds = direction(primal, dual, center - v * s - dv * ds)
    t, u = longest(v, dv), longest(s, ds)
    v, p, s = v + t * dv, p + u * dp, s + u * ds
    iterations += 1
ours = 1e3 * (time.perf_counter() - start)
print(f"{iterations} iterations, cost {cost @ v:.4f}, {len(b)} rows, {len(v)} columns")
print(f"first factorisation {spent[0]:.1f} ms, the others {np.median(spent[1:]):.1f}")

# %%
# SciPy's solvers, HiGHS by the simplex and by an interior point method, find the same cost.
print(f"  {'openwork':28} {ours:8.0f} ms")
for method in ("highs-ds", "highs-ipm"):
    start = time.perf_counter()
    theirs = linprog(cost, A_eq=A.to_scipy(), b_eq=b, method=method)
    print(f"  {'SciPy, ' + method:28} {1e3 * (time.perf_counter() - start):8.0f} ms")
    assert np.isclose(theirs.fun, cost @ v, rtol=1e-6)

# %%
figure, ax = plt.subplots(figsize=(5.4, 4.6))
figure.colorbar(ax.imshow(height, cmap="terrain", alpha=0.8), label="height")
used = np.flatnonzero(v > 1e-4)
place = np.stack([np.arange(n * n) % n, np.arange(n * n) // n], 1)
lines = np.stack([place[tail[used]], place[head[used]]], 1)
ax.add_collection(LineCollection(lines, colors="#b02020", lw=1.2 + 1.6 * v[used]))
ax.plot(*place[sources].T, "o", color="#202020", ms=7)
ax.plot(*place[sinks].T, "s", color="#202020", ms=7)
ax.set_axis_off()
plt.show()
