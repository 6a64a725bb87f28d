"""What users of other libraries asked for, each by the example of its thread: plans of assembly, coloured Jacobians."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import ShapeError, UnsupportedError
from openwork.linalg import jacobian_plan


def triangles(n: int) -> Any:
    """The triangles of a square of n x n vertices."""
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    return np.concatenate([corner[:, None] + [0, 1, n], corner[:, None] + [1, n, n + 1]])


def test_forms_of_one_basis_share_the_map_from_triplets_to_csr() -> None:
    """scikit-fem #1197 and PR 1219: the map does not come from values, and is there for every form."""
    sparse = pytest.importorskip("scipy.sparse")
    mesh, n = triangles(8), 64
    rng = np.random.default_rng(0)
    asm = ow.assembler((n, n), mesh, mesh)
    first = asm(np.zeros((len(mesh), 3, 3)))  # zeros of the first form do not shrink the structure
    rows, cols = np.repeat(mesh, 3, 1).ravel(), np.tile(mesh, (1, 3)).ravel()
    for dtype in ("float64", "complex128"):
        values = rng.standard_normal((len(mesh), 3, 3)).astype(dtype) * (1 + (2j if dtype == "complex128" else 0))
        expected = sparse.coo_array((values.ravel(), (rows, cols)), (n, n)).tocsr()
        K = asm(values)
        theirs = K.to_scipy()
        assert np.array_equal(theirs.indptr, expected.indptr)
        assert np.array_equal(theirs.indices, expected.indices)
        assert np.allclose(theirs.data, expected.data, rtol=1e-14)
        assert np.shares_memory(K.crd(1), first.crd(1))
        assert not np.shares_memory(K.values, asm(values).values)  # each result is its own
    midpoints = np.arange(len(mesh))[:, None]
    B = ow.assembler((len(mesh), n), midpoints, mesh)(rng.standard_normal((len(mesh), 1, 3)) * 1j)
    assert (B.shape, B.nse) == ((len(mesh), n), 3 * len(mesh))


def test_matrices_of_newton_and_time_steps_are_assembled_again_in_place() -> None:
    """Gridap #1000: assembling again is one pass over the values: no search, and no memory beside the values."""
    mesh, n = triangles(60), 3600
    values = np.random.default_rng(1).standard_normal((len(mesh), 3, 3))
    asm = ow.assembler((n, n), mesh, mesh)
    K = asm(values)
    asm(values, out=K)
    gc.collect()
    tracemalloc.start()
    asm(values, out=K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * K.values.nbytes
    tangent = asm(np.eye(3) + 0 * values)
    F = ow.linalg.factorized(tangent, kind="cholesky")
    u = np.zeros(n)
    for _ in range(12):  # K(u) = M (1 + u^2), by Newton
        scale = (1 + 3 * u[mesh] ** 2)[:, :, None] * np.eye(3)
        F.update(asm(scale, out=tangent))
        u -= F(asm((1 + u[mesh] ** 2)[:, :, None] * np.eye(3)) @ u - 1.0)
    assert np.allclose(asm((1 + u[mesh] ** 2)[:, :, None] * np.eye(3)) @ u, 1.0)


def test_triplets_in_the_order_of_generated_code_become_csc() -> None:
    """Solverz #160: the pattern is analysed once; duplicates are summed as SciPy does, the result is the same matrix."""
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(2)
    rows, cols = rng.integers(0, 300, (2, 4000))
    convert = ow.assembler((300, 300), rows, cols, format="csc")
    for _ in range(3):
        data = rng.standard_normal(4000)
        expected = sparse.coo_array((data, (rows, cols)), (300, 300)).tocsc()
        J = convert(data).to_scipy()
        assert (J.indptr.tolist(), J.indices.tolist()) == (expected.indptr.tolist(), expected.indices.tolist())
        assert np.allclose(J.data, expected.data, rtol=1e-12)


def test_coordinates_of_petsc() -> None:
    """MatSetPreallocationCOO, MatSetValuesCOO: repeated entries, negative indices that are ignored, ADD_VALUES."""
    rows = [7, 6, 2, 0, 4, 1, 1, 0, 2, 2, 1, -1, -1]
    cols = [1, 4, 3, 5, 3, 3, 4, 5, 0, 3, 1, -1, 2]
    values = np.append(np.arange(1.0, 12), [np.inf, np.nan])
    asm = ow.assembler((8, 6), rows, cols, ignore_negative=True)
    expected = np.zeros((8, 6))
    np.add.at(expected, (rows[:-2], cols[:-2]), values[:-2])
    A = asm(values)
    assert np.array_equal(A.to_numpy(), expected)
    assert asm(values, out=A, add=True) is A
    assert np.array_equal(A.to_numpy(), 2 * expected)
    assert asm.gather(A)[-2:].tolist() == [0, 0]
    with pytest.raises(ShapeError, match="ignore_negative=True"):
        ow.assembler((8, 6), rows, cols)
    with pytest.raises(ValueError, match="add=True adds"):
        asm(values, add=True)
    nodes = np.array([[0, -1], [1, 0]])  # -1: a boundary node
    part = np.arange(32.0).reshape(2, 2, 2, 2, 2)
    K = ow.assembler((4, 4), nodes, nodes, blocks=(2, 2), ignore_negative=True)(part)
    assert np.array_equal(K.to_numpy()[:2, :2], part[0, 0, 0] + part[1, 1, 1])
    assert np.array_equal(K.to_numpy()[2:, :2], part[1, 0, 1])
    half = ow.assembler((3, 3), [1, -1, 2], [0, 1, 2], symmetric=True, ignore_negative=True)([1.0, 2, 3]).to_numpy()
    assert np.array_equal(half, [[0, 1, 0], [1, 0, 0], [0, 0, 3]])


def test_sparse_jacobians_and_hessians_whose_pattern_nobody_gave() -> None:
    """jax #1032: found reliably, or refused; forward and reverse; a total variation, and its Hessian."""
    torch = pytest.importorskip("torch")

    def differences(image: Any) -> Any:
        return torch.cat([(image[1:] - image[:-1]).ravel(), (image[:, 1:] - image[:, :-1]).ravel()])

    image = torch.rand(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    J = ow.torch.jacobian(differences, image)
    assert J.nse == 2 * (4 * 6 + 5 * 5)
    assert torch.equal(J.to_dense(), torch.func.jacrev(differences)(image).reshape(49, 30))

    def energy(x: Any) -> Any:
        return torch.sqrt(1e-2 + differences(x) ** 2).sum()

    H = ow.torch.hessian(energy, image)
    assert torch.allclose(H.to_dense(), torch.func.hessian(energy)(image).reshape(30, 30))
    assert H.nse == 30 + 2 * 49
    with pytest.raises(UnsupportedError, match="depends on values of x"):
        ow.torch.jacobian(lambda x: x if x.sum() > 0 else x.flip(0), image)


def test_the_jacobian_of_a_large_system_of_equations_is_never_dense() -> None:
    """pytensor #1499: equations of an economy over time, each of which has few unknowns, solved by Newton."""
    torch = pytest.importorskip("torch")
    n = 20_000

    def residual(x: Any) -> Any:
        capital, consumption = x[0], x[1]
        before = torch.cat([capital.new_full((1,), 2.0), capital[:-1]])
        later = torch.cat([consumption[1:], consumption.new_ones(1)])
        growth = before**0.3 + 0.9 * before - consumption - capital
        return torch.stack([growth, later - 0.95 * consumption * (0.3 * capital**-0.7 + 0.9)])

    x = torch.ones(2, n, dtype=torch.float64)
    J = ow.torch.jacobian(residual, x)
    assert J.shape == (2 * n, 2 * n)
    assert J.nse < 8 * n
    v = torch.rand(2 * n, dtype=torch.float64)
    along = torch.func.jvp(residual, (x,), (v.reshape(2, n),))[1]
    assert torch.allclose(J @ v, along.ravel())


def test_the_side_that_needs_fewer_products_is_taken() -> None:
    """OpenMDAO #3437 (and #1285): as few JVPs or VJPs as there are, of a pattern of 400 rows that all share columns."""
    m, n = 400, 898
    P = np.zeros((m, n))
    P[np.arange(m), np.arange(m)] = P[np.arange(m), m + np.arange(m)] = 1
    P[np.arange(m), 800 + np.arange(m) % 7] = 1  # shared by many rows
    forward, reverse, best = (jacobian_plan(P, mode).evaluations for mode in ("forward", "reverse", "auto"))
    assert (forward, best <= 3) == (3, True)
    assert reverse == 58
    turned = jacobian_plan(P.T)
    assert turned.evaluations == best
    P[5] = 1
    assert jacobian_plan(P).evaluations <= 4 < jacobian_plan(P, "forward").evaluations
