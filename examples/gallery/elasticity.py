"""
A rubber beam that bends far, with scikit-fem
=============================================

A beam of rubber, clamped at the left, carries its weight. It bends so far that the equations are nonlinear: Newton's
method assembles the stiffness matrix again and again, of one structure, and solves with it. scikit-fem has the mesh,
the elements and the forms; the plan of assembly, the rows of blocks and the levels of the multigrid preconditioner are
made once.
"""

import time
from dataclasses import replace
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
import skfem
from matplotlib.collections import PolyCollection
from scipy.sparse.linalg import spsolve
from skfem.helpers import ddot, det, grad, identity, inv, mul, trace, transpose

import openwork as ow
from openwork import linalg

# %%
# A mesh of 32 x 8 x 8 bricks. `mesh.t` has the nodes of each.
edges = np.linspace(0, 4, 33), np.linspace(0, 1, 9), np.linspace(0, 1, 9)
mesh = skfem.MeshHex.init_tensor(*edges)
element = skfem.ElementVector(skfem.ElementHex1())
mu, lame = 1.0, 4.0

# %%
# Neo-Hookean rubber: its forces and its stiffness as forms on the mesh where it now is. `elemental` has the numbers of
# each brick, the form before it becomes a matrix.


def rubber(u):
    moved = replace(mesh, doflocs=mesh.p + u.T)
    basis = skfem.Basis(moved, element, intorder=2)
    slope = grad(basis.interpolate(u.ravel()))
    F = inv(identity(slope) - slope)
    b, J = mul(F, transpose(F)), det(F)

    @skfem.LinearForm
    def force(v, w):
        stress = mu * (b - identity(b)) + lame * np.log(J) * identity(b)
        return ddot(stress, grad(v)) / J

    @skfem.BilinearForm
    def stiffness(u, v, w):
        u, v = grad(u), grad(v)
        turned = (mu - lame * np.log(J)) * ddot(transpose(u), v)
        return (mu * ddot(mul(u, b), v) + lame * trace(u) * trace(v) + turned) / J

    return force.assemble(basis), stiffness.elemental(basis)


# %%
# The plan, for the numbers in the order of scikit-fem: rows and columns as it has them, without those that are clamped.
basis = skfem.Basis(mesh, element, intorder=2)
weight = -skfem.LinearForm(lambda v, w: v[2]).assemble(basis)
u = np.zeros((mesh.nvertices, 3))
clamped = basis.get_dofs(lambda x: x[0] == 0).all()
places = rubber(u)[1].indices
plan = ow.assembler((basis.N, basis.N), *places, format="bsr(3, 3)").without(clamped)
free = np.setdiff1d(np.arange(basis.N), clamped)

# %%
# Newton's method in four steps of the weight. The preconditioner keeps its aggregates, which know the rigid motions of
# the body; it and the matrix get new values.
M, K, spent = None, None, {}


def timed(name, call, *args, **options):
    start = time.process_time()
    result = call(*args, **options)
    spent.setdefault(name, []).append(1e3 * (time.process_time() - start))
    return result


motions = linalg.rigid_motions(mesh.p.T[free[::3] // 3])
for step in range(1, 5):
    systems = 0
    while True:
        force, stiffness = timed("scikit-fem, forms", rubber, u)
        rest = (0.004 * step * weight - force)[free]
        if np.linalg.norm(rest) < 1e-8:
            break
        K = timed("assembly", plan, stiffness.data, out=K)
        if M is None:
            M = linalg.amg(K, block=3, near_nullspace=motions)
        timed("update", M.update, K)
        seen = []
        du, info = timed("cg", linalg.cg, K, rest, M=M, rtol=1e-8, callback=seen.append)
        assert info == 0
        u.ravel()[free] += du
        systems += 1
    print(
        f"step {step}: {systems} systems, {len(seen)} iterations of cg, end at {u[-1, 2]:.3f}"
    )

# %%
# The same matrix and solution as people do it, for the table: scikit-fem's own assembly, SciPy's SuperLU and, where it
# is installed, PyAMG.


def condensed():
    return skfem.condense(stiffness.tocsr(), D=clamped, expand=False)


for _ in range(3):
    timed("set-up", linalg.amg, K, block=3, near_nullspace=motions)
    theirs = timed("scikit-fem, assembly", condensed)
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
plan(stiffness.data, out=K)
assert np.allclose(theirs @ du, K @ du)
print(
    f"{K.shape[0]} unknowns, {K.nse} elements; milliseconds of the processor, the least"
)
for name, times in spent.items():
    print(f"  {name:20} {min(times):8.1f}")

# %%
# The side of the beam, before and after; colours are the stretch along it.
side = mesh.facets[:, mesh.facets_satisfying(lambda x: x[1] == 0)]
corners, moved = mesh.p[::2, side], (mesh.p + u.T)[::2, side]
stretch = np.linalg.norm(moved[:, 1] - moved[:, 0], axis=0) * 8
figure, ax = plt.subplots(figsize=(7.2, 4.4))
ax.add_collection(PolyCollection(corners.T, fc="none", ec="#80838860", lw=0.5))
drawn = PolyCollection(moved.T, array=stretch, cmap="RdBu_r", ec="#808388", lw=0.3)
limit = np.abs(stretch - 1).max()
drawn.set_clim(1 - limit, 1 + limit)
ax.add_collection(drawn)
ax.set(xlim=(-0.1, 4.2), ylim=(moved[1].min() - 0.1, 1.15), aspect="equal")
ax.set_axis_off()
figure.colorbar(drawn, label="stretch", shrink=0.7)
plt.show()

# sphinx_gallery_thumbnail_path = "../examples/gallery/pictures/elasticity.png"
