"""
A rubber beam that bends far
============================

A beam of rubber, clamped at the left, carries its weight. It bends so far that the equations are nonlinear: Newton's
method assembles the stiffness matrix again and again, of one structure, and solves with it. The plan of assembly, the
rows of blocks and the levels of the multigrid preconditioner are made once.
"""

import time
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

import openwork as ow
from openwork import linalg

# %%
# A mesh of 32 x 8 x 8 bricks: the nodes of each, and the derivatives of their eight shape functions at eight points of
# Gauss, on a cube of edge `size`. (scikit-fem has these for any element: `dofs = basis.element_dofs.T` are the rows and
# columns that `ow.assembler` takes, `form.coo_data(basis).tolocal()` the values.)
shape, size = (32, 8, 8), 1 / 8
points = np.stack(np.meshgrid(*(np.arange(k + 1) for k in shape), indexing="ij"), -1)
points = points.reshape(-1, 3) * size
number = np.arange(len(points)).reshape([k + 1 for k in shape])
corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
bricks = np.stack(
    [
        number[i : shape[0] + i, j : shape[1] + j, k : shape[2] + k].ravel()
        for i, j, k in corners
    ],
    1,
)
slopes = []
for at in 0.5 + (corners - 0.5) / np.sqrt(3):
    value = np.where(corners, at, 1 - at)
    sign = np.where(corners, 1, -1) / size
    slopes.append(sign * (value.prod(1)[:, None] / value))

# %%
# Neo-Hookean rubber: the forces at the nodes of each brick, and its stiffness, 8 x 8 blocks of 3 x 3.
mu, lame, volume = 1.0, 4.0, size**3 / 8


def brick(u):
    force = np.zeros((len(bricks), 8, 3))
    stiff = np.zeros((len(bricks), 8, 8, 3, 3))
    for slope in slopes:
        F = np.eye(3) + np.einsum("eai,aj->eij", u[bricks], slope)
        h = np.einsum("eji,aj->eai", np.linalg.inv(F), slope)
        log_j = np.log(np.linalg.det(F))[:, None, None]
        force += volume * (
            mu * (np.einsum("eij,aj->eai", F, slope) - h) + lame * log_j * h
        )
        pairs = np.einsum("eai,ebk->eabik", h, h)
        stiff += volume * (
            mu * np.einsum("ab,ik->abik", slope @ slope.T, np.eye(3))
            + lame * pairs
            + (mu - lame * log_j[..., None, None]) * pairs.swapaxes(3, 4)
        )
    return force, stiff


# %%
# The plans: of the matrix in blocks without the clamped rows, and of the forces.
clamped = np.flatnonzero(points[:, 0] == 0)
rows = (3 * clamped[:, None] + np.arange(3)).ravel()
free = np.setdiff1d(np.arange(len(points)), clamped)
n = 3 * len(points)
assemble = ow.assembler((n, n), bricks, bricks, blocks=(3, 3)).without(rows)
loads = ow.assembler((n,), (3 * bricks[:, :, None] + np.arange(3)).reshape(-1, 24))
weight = np.zeros((len(bricks), 8, 3))
weight[..., 2] = -(size**3) / 8
weight = loads(weight.reshape(-1, 24)).to_dense()

# %%
# Newton's method in four steps of the weight. The preconditioner keeps its aggregates, which know the rigid motions of
# the body; it and the matrix get new values. One iteration is also done as people do it: triplets to CSR, SuperLU.
u, M, spent = np.zeros((len(points), 3)), None, {}


def timed(name, call, *args, **options):
    start = time.process_time()
    result = call(*args, **options)
    spent.setdefault(name, []).append(1e3 * (time.process_time() - start))
    return result


motions = linalg.rigid_motions(points[free])
for step in range(1, 5):
    systems = 0
    while True:
        force, stiff = brick(u)
        rest = 0.004 * step * weight - loads(force.reshape(-1, 24)).to_dense()
        rest = rest.reshape(-1, 3)[free].ravel()
        if np.linalg.norm(rest) < 1e-8:
            break
        K = timed("assembly", assemble, stiff)
        if M is None:
            M = linalg.amg(K, block=3, near_nullspace=motions)
        timed("update", M.update, K)
        seen = []
        du, info = timed("cg", linalg.cg, K, rest, M=M, rtol=1e-8, callback=seen.append)
        assert info == 0
        u[free] += du.reshape(-1, 3)
        systems += 1
    print(
        f"step {step}: {systems} systems, {len(seen)} iterations of cg, end at {u[-1, 2]:.3f}"
    )

# %%
# The same matrix and solution by SciPy and, where it is installed, PyAMG, for the table.
dofs = (3 * bricks[:, :, None] + np.arange(3)).reshape(-1, 24)
i, j = np.repeat(dofs, 24, 1).ravel(), np.tile(dofs, (1, 24)).ravel()
kept = np.setdiff1d(np.arange(n), rows)
values = stiff.swapaxes(2, 3).ravel()


def converted():
    return coo_array((values, (i, j)), (n, n)).tocsr()[kept][:, kept]


for _ in range(3):
    timed("set-up", linalg.amg, K, block=3, near_nullspace=motions)
    theirs = timed("SciPy, coo to csr", converted)
    timed("SciPy, spsolve", spsolve, theirs, rest)
    if find_spec("pyamg"):
        from pyamg import smoothed_aggregation_solver

        solver = timed(
            "PyAMG, set-up",
            smoothed_aggregation_solver,
            theirs.tobsr((3, 3)),
            B=motions,
        )
        timed("PyAMG, cg", solver.solve, rest, tol=1e-8, accel="cg")
assert np.allclose((theirs @ du - K @ du), 0, atol=1e-6)
print(
    f"{K.shape[0]} unknowns, {K.nse} elements; milliseconds of the processor, the least"
)
for name, times in spent.items():
    print(f"  {name:18} {min(times):8.1f}")

# %%
# The side of the beam, before and after; colours are the stretch along it.
side = number[:, 0]
quads = np.stack([side[:-1, :-1], side[1:, :-1], side[1:, 1:], side[:-1, 1:]], -1)
quads = quads.reshape(-1, 4)
figure, ax = plt.subplots(figsize=(7.2, 4.4))
ax.add_collection(
    PolyCollection(points[quads][..., [0, 2]], fc="none", ec="#80838860", lw=0.5)
)
moved = points + u
length = np.linalg.norm(moved[quads[:, 1]] - moved[quads[:, 0]], axis=1) / size
drawn = PolyCollection(
    moved[quads][..., [0, 2]], array=length, cmap="RdBu_r", ec="#808388", lw=0.3
)
limit = np.abs(length - 1).max()
drawn.set_clim(1 - limit, 1 + limit)
ax.add_collection(drawn)
ax.set(xlim=(-0.1, 4.2), ylim=(moved[:, 2].min() - 0.1, 1.15), aspect="equal")
ax.set_axis_off()
figure.colorbar(drawn, label="stretch", shrink=0.7)
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/elasticity.png"
