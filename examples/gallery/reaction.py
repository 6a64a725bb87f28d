"""
Spots that a reaction makes, in implicit steps
==============================================

Two chemicals diffuse and react (Gray and Scott's equations), and spots divide until they fill the plate. Steps that are
long need the Jacobian, which nobody writes down: it is found from the function, a few products for all its columns.
"""

import time

import matplotlib.pyplot as plt
import torch
from scipy.optimize._numdiff import approx_derivative, group_columns

import openwork as ow
from openwork import linalg

# %%
# The reaction on a grid of n x n points that joins at its edges, written with torch.
n, feed, kill = 64, 0.035, 0.065


def spread(c):
    return sum(torch.roll(c, s, d) for s in (1, -1) for d in (0, 1)) - 4 * c


def rate(x):
    a, b = x[0], x[1]
    made = a * b**2
    return torch.stack(
        [
            0.16 * spread(a) - made + feed * (1 - a),
            0.08 * spread(b) + made - (feed + kill) * b,
        ]
    )


x = torch.stack([torch.ones(n, n), torch.zeros(n, n)]).double()
generator = torch.Generator().manual_seed(3)
for _ in range(6):
    i, j = torch.randint(6, n - 6, (2,), generator=generator).tolist()
    x[0, i - 3 : i + 3, j - 3 : j + 3] = 0.5
    x[1, i - 3 : i + 3, j - 3 : j + 3] = 0.25

# %%
# The first Jacobian runs the function once on numbers that note what they depend on; the plan keeps the colours.
step = 15.0
start = time.perf_counter()
pattern = ow.torch.jacobian(lambda y: y - step * rate(y), x, mode="reverse")
plan = linalg.jacobian_plan(pattern, "reverse")
print(plan, f"in {1e3 * (time.perf_counter() - start):.0f} ms")

# %%
# Backward Euler: x' - step * rate(x') = x by Newton's method. The factors keep their order and places.
F, count, frames = None, 0, {}
for number in range(1, 161):
    y = x.clone()
    for _ in range(10):
        rest = x - y + step * rate(y)
        if rest.abs().max() < 1e-6:
            break
        J = plan(lambda y: y - step * rate(y), y)
        F = linalg.factorized(J, kind="lu") if F is None else F.update(J)
        y = y + F(rest.ravel()).reshape(y.shape)
        count += 1
    x = y
    if number in (4, 40, 160):
        frames[number] = x[1].numpy()
print(f"160 steps, {count} Jacobians of {J.nse} elements")

# %%
# What one Jacobian takes: ours, dense by torch.func on a grid of 24 x 24 (it grows with n^4), and SciPy's differences
# with the pattern, as its solvers make them.


def least(call):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def flat(v):
    y = torch.from_numpy(v).reshape(x.shape)
    return (y - step * rate(y)).numpy().ravel()


structure = plan.jac_sparsity
groups = group_columns(structure)
small = x[:, :24, :24].clone()
table = {
    "openwork, 64 x 64": lambda: plan(lambda y: y - step * rate(y), x),
    "SciPy, 64 x 64": lambda: approx_derivative(
        flat, x.numpy().ravel(), method="2-point", sparsity=(structure, groups)
    ),
    "openwork, with pattern, 24 x 24": lambda: ow.torch.jacobian(
        rate, small, mode="reverse"
    ),
    "torch.func.jacrev, 24 x 24": lambda: torch.func.jacrev(rate)(small),
}
for name, call in table.items():
    print(f"  {name:32} {least(call):8.1f} ms")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2))
for ax, (number, frame) in zip(axes, frames.items(), strict=True):
    ax.imshow(frame, cmap="magma", vmin=0, vmax=0.35)
    ax.set_title(f"time {number * step:.0f}")
    ax.set_axis_off()
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/reaction.png"
