"""Poisson's equation on the unit square by linear finite elements: assembly, boundary, solution, lowest modes."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

N = 12


def mesh(n):
    side = np.linspace(0, 1, n + 1)
    x, y = np.meshgrid(side, side, indexing="ij")
    points = np.column_stack([x.ravel(), y.ravel()])
    at = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = (v.ravel() for v in (at[:-1, :-1], at[1:, :-1], at[:-1, 1:], at[1:, 1:]))
    return points, np.vstack([np.column_stack([a, b, d]), np.column_stack([a, d, c])])


def assemble(points, triangles):
    corners = points[triangles]
    edges = corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]
    area = 0.5 * np.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
    stiff = np.einsum("tid,tjd->tij", edges, edges) / (4 * area)[:, None, None]
    mass = area[:, None, None] / 12 * (np.ones((3, 3)) + np.eye(3))
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, 3).ravel()
    shape = (len(points), len(points))
    K = sp.coo_array((stiff.ravel(), (rows, columns)), shape=shape).tocsr()
    M = sp.coo_array((mass.ravel(), (rows, columns)), shape=shape).tocsr()
    return K, M


points, triangles = mesh(N)
K, M = assemble(points, triangles)
assert sp.issparse(K)
K.sum_duplicates()
K.eliminate_zeros()
symmetric = abs(K - K.T).max()
constant = np.abs(K @ np.ones(K.shape[0])).max()

inner = np.flatnonzero(((points > 0) & (points < 1)).all(axis=1))
A, B = K[inner][:, inner], M[inner, :][:, inner]
load = (M @ np.ones(K.shape[0]))[inner]
u = spl.spsolve(A.tocsc(), load)
D = sp.diags_array(1 / A.diagonal(), offsets=0)
x, info = spl.cg(A, load, rtol=1e-12, M=D)
lu = spl.splu(A.tocsc())
heat = sp.eye_array(len(inner), format="csr") + 0.1 * (sp.diags_array(1 / B.sum(axis=1)) @ A)
modes = np.sort(spl.eigsh(A, k=3, M=B, sigma=0, return_eigenvectors=False))
largest = spl.eigsh(A, k=1, return_eigenvectors=False, v0=np.ones(len(inner)))

A2 = A.tolil()
A2[0, :] = 0
A2[0, 0] = 1
pinned = spl.spsolve(A2.tocsc(), np.r_[1.0, load[1:]])
blocks = sp.block_array([[A, None], [None, B]], format="csr")
results = [symmetric, constant, u.max(), x.max(), info, lu.solve(load).max(), heat.sum(), modes, largest, pinned[:5],
           blocks.nnz, (A > 0).sum(), A.max(), A.min(), A[3:6, ::2].toarray(), A.trace(), sp.kron(A, D).shape]  # fmt: skip
