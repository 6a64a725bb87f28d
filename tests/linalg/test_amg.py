"""Smoothed aggregation: iterations that do not grow with the grid, symmetry, its pieces, and wrong operands."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as scipys
from matrix import tensor

import openwork as ow
from openwork import linalg
from openwork.linalg.preconditioner import rows


def poisson(n: int, across: float = 1.0) -> Any:
    """The Laplacian of an n by n grid, whose second direction conducts less."""
    line = sparse.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    eye = sparse.eye_array(n)
    return sparse.csr_array(sparse.kron(line, eye) + across * sparse.kron(eye, line))


def iterations(a: Any, m: Any, b: np.ndarray[Any, Any]) -> int:
    count = 0

    def callback(_: Any) -> None:
        nonlocal count
        count += 1

    x, info = linalg.cg(a, b, M=m, rtol=1e-10, callback=callback)
    assert info == 0
    np.testing.assert_allclose(a @ x, b, atol=1e-6)
    return count


@pytest.mark.thin(6)
@pytest.mark.parametrize("smoother", ["gauss_seidel", "jacobi"])
@pytest.mark.parametrize("across", [1.0, 0.01])
def test_iterations_do_not_grow_with_the_grid(smoother: str, across: float) -> None:
    counts = []
    for n in (24, 72):
        a = ow.asarray(poisson(n, across))
        m = linalg.amg(a, smoother=smoother, coarse=20)
        assert len(m.sizes) >= 3
        assert m.sizes[0] == (n * n, a.nse)
        assert m.operator_complexity < 2.5
        counts.append(iterations(a, m, np.random.default_rng(0).standard_normal(n * n)))
    assert counts[1] <= 1.5 * counts[0] + 2
    assert counts[1] <= 30


def test_a_cycle_is_symmetric_and_positive_definite() -> None:
    a = ow.asarray(poisson(12))
    for options in (
        {},
        {"smoother": "jacobi"},
        {"sweeps": 2},
        {"strength": 0.0},
        {"near_nullspace": np.arange(1.0, 145)},
    ):
        m = linalg.amg(a, coarse=10, **options)
        dense = m @ np.eye(144)
        np.testing.assert_allclose(dense, dense.T, atol=1e-12)
        assert np.linalg.eigvalsh(dense)[0] > 0
        np.testing.assert_array_equal(m.solve(np.ones(144), "T"), m @ np.ones(144))
        np.testing.assert_allclose(m @ np.ones((144, 2)), np.stack([m @ np.ones(144)] * 2, 1), atol=1e-12)


def test_small_levels_are_solved_directly() -> None:
    a = ow.asarray(poisson(6))
    m = linalg.amg(a)
    assert m.sizes == [(36, a.nse)]
    np.testing.assert_allclose(m @ np.ones(36), np.linalg.solve(a.to_numpy(), np.ones(36)))
    assert linalg.amg(ow.zeros((0, 0), format="csr")) @ np.zeros(0) == pytest.approx([])
    np.testing.assert_allclose(linalg.amg(ow.asarray(np.array([[4.0]]))) @ np.ones(1), [0.25])
    diagonal = linalg.amg(ow.asarray(sparse.diags_array(np.arange(1.0, 501)).tocsr()))
    np.testing.assert_allclose(diagonal @ np.ones(500), 1 / np.arange(1.0, 501))


def test_a_singular_laplacian() -> None:
    edges = abs(poisson(20))
    edges.setdiag(0)
    edges.eliminate_zeros()
    a = ow.asarray(sparse.csr_array(sparse.diags_array(edges.sum(1)) - edges))
    b = np.random.default_rng(1).standard_normal(400)
    b -= b.mean()
    assert iterations(a, linalg.amg(a, coarse=20), b) < 40


@pytest.mark.parametrize("spec", ["dense", "csc", "bsr(2, 2)"])
def test_every_format_and_scipys_solvers(spec: str) -> None:
    held = poisson(10)
    want = linalg.amg(ow.asarray(held), coarse=10) @ np.ones(100)
    for dtype in ("float64", "int64", "float32"):
        t = tensor(held.toarray().astype(dtype), spec)
        m = linalg.amg(t, coarse=10)
        np.testing.assert_allclose(m @ np.ones(100), want, rtol=1e-3 if dtype == "float32" else 1e-10)
    x, info = scipys.cg(held, np.ones(100), M=m, rtol=1e-6)
    assert info == 0
    x, info = linalg.cg(t, np.ones(100), M="amg", rtol=1e-6)
    assert info == 0
    np.testing.assert_allclose(held @ x, 1, atol=1e-3)


def test_torch_buffers() -> None:
    torch = pytest.importorskip("torch")
    a = ow.asarray(torch.from_numpy(poisson(10).toarray())).asformat("csr")
    x = linalg.amg(a, coarse=10) @ torch.ones(100, dtype=torch.float64)
    assert isinstance(x, torch.Tensor)
    with pytest.raises(ow.UnsupportedError, match="no gradient"):
        linalg.amg(a.with_values(a.values.clone().requires_grad_()))


def test_wrong_operands() -> None:
    held = poisson(6)
    t = ow.asarray(held)
    indefinite = ow.asarray(held - 3 * sparse.eye_array(36))
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: linalg.amg(t[:3]), ow.ShapeError, "amg: expected square matrices"),
        (lambda: linalg.amg(t * (1 + 1j)), ow.UnsupportedError, "amg: expected a real matrix"),
        (lambda: linalg.amg(-t), np.linalg.LinAlgError, r"amg: element \(0, 0\) of the diagonal is -4.0"),
        (lambda: linalg.amg(indefinite), np.linalg.LinAlgError, "amg: expected a positive definite matrix"),
        (lambda: linalg.amg(t, block=5), ow.ShapeError, "amg: 36 rows are not nodes of 5 rows"),
        (lambda: linalg.amg(ow.triu(t)), np.linalg.LinAlgError, "amg: expected a symmetric matrix; A - A.T has"),
        (lambda: linalg.amg(t * np.nan), ow.UnsupportedError, "amg: unspecified elements are nan"),
        (lambda: linalg.amg(t.with_values(t.values * np.inf)), np.linalg.LinAlgError, "amg: the matrix has elements that"),
        (lambda: linalg.amg(t, smoother="sor"), ValueError, "amg: smoother='sor'\n  supported: 'gauss_seidel'"),
        (lambda: linalg.amg(t, strength="x"), ow.DTypeError, "amg: strength is a real number"),
        (lambda: linalg.amg(t, sweeps=0), ValueError, "amg: expected strength >= 0 and counts of 1 or more"),
        (lambda: linalg.amg(t, coarse=1.5), ow.DTypeError, "amg: coarse is an integer; got: 1.5"),
        (lambda: linalg.amg(t, near_nullspace=np.ones(3)), ow.ShapeError, r"amg: expected near_nullspace of shape \(36,\)"),
    ]  # fmt: skip
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


def test_they_pickle() -> None:
    a = ow.asarray(poisson(12))
    for m in (linalg.amg(a, coarse=10), linalg.ic0(a), linalg.ilu0(a), linalg.ssor(a), linalg.jacobi(a)):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(m)) @ np.ones(144), m @ np.ones(144))


def test_a_hierarchy_says_its_shape_and_elements() -> None:
    m = linalg.amg(tensor(np.diag(np.full(20, 2.0)) - np.eye(20, k=1) - np.eye(20, k=-1), "csr"))
    assert repr(m) == "<AMG of shape (20, 20), float64>"
    assert m.nse == sum(nse for _, nse in m.sizes) >= 58


def test_levels_are_at_most_those_that_are_asked_for() -> None:
    a = ow.asarray(poisson(12))
    assert [len(linalg.amg(a, coarse=4, max_levels=n).sizes) for n in (1, 2, 3)] == [1, 2, 3]


def test_columns_of_a_tentative_prolongation_are_orthonormal() -> None:
    module = sys.modules["openwork.linalg.aggregation"]
    group, nullspace = np.array([0, 2, -1, 0, 1]), np.array([[3.0], [5.0], [7.0], [-4.0], [0.0]])
    p, norms = module._tentative(group, 3, nullspace, rows(ow.eye(5, format="csr"), "amg"))
    want = np.zeros((5, 3))
    want[[0, 3, 1], [0, 0, 2]] = [0.6, -0.8, 1]
    np.testing.assert_allclose(p.to_numpy(), want)
    np.testing.assert_array_equal(norms[:, 0], [5, 1, 5])
    rng = np.random.default_rng(0)
    group, nullspace = np.array([0, 1, -1, 0, 1, 0, 0, 2]), rng.standard_normal((8, 3))
    p, coarse = module._tentative(group, 3, nullspace, rows(ow.eye(8, format="csr"), "amg"))
    dense = p.to_numpy()
    np.testing.assert_allclose((dense @ coarse)[group >= 0], nullspace[group >= 0])  # the vectors are kept
    np.testing.assert_allclose(dense.T @ dense, np.diag([1, 1, 1, 1, 1, 0, 1, 0, 0]), atol=1e-14)


def elasticity(n: int, format: str = "csr") -> tuple[Any, Any]:
    """The stiffness of a plate of n x n squares, clamped at one side, by bilinear elements, and its free points."""
    gauss, corner = np.array([-1, 1]) / np.sqrt(3), np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    stress = np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 0.35]]) / (1 - 0.3**2)
    local = np.zeros((8, 8))
    for x in gauss:
        for y in gauss:
            slope = np.stack([corner[:, 0] * (1 + corner[:, 1] * y), corner[:, 1] * (1 + corner[:, 0] * x)]) / 2
            strain = np.zeros((3, 8))
            strain[0, ::2], strain[1, 1::2], strain[2, ::2], strain[2, 1::2] = slope[0], slope[1], slope[1], slope[0]
            local += strain.T @ stress @ strain / 4
    first = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    nodes = first[:, None] + [0, 1, n + 1, n + 2]
    dofs = (2 * nodes[:, :, None] + [0, 1]).reshape(-1, 8)
    clamped = np.arange(2 * (n + 1))
    asm = ow.assembler((2 * (n + 1) ** 2,) * 2, dofs, dofs, format=format).without(clamped)
    points = np.stack(np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0), indexing="ij"), -1).reshape(-1, 2)[n + 1 :]
    return asm(np.broadcast_to(local, (n * n, 8, 8))), points


def test_rigid_motions_are_sent_to_zero() -> None:
    rng = np.random.default_rng(0)
    for d, count in ((1, 1), (2, 3), (3, 6)):
        points = rng.standard_normal((7, d))
        motions = linalg.rigid_motions(points)
        assert motions.shape == (7 * d, count)
        np.testing.assert_allclose(motions.T @ motions, np.eye(count), atol=1e-14)
        u = (motions @ rng.standard_normal(count)).reshape(7, d)
        x, y = points[:, None] - points, u[:, None] - u
        np.testing.assert_allclose((x * y).sum(-1), 0, atol=1e-12)  # no distance changes
    with pytest.raises(ow.ShapeError, match=r"rigid_motions: expected points of shape"):
        linalg.rigid_motions(np.zeros((3, 4)))


@pytest.mark.thin(2)
@pytest.mark.parametrize("smoother", ["gauss_seidel", "chebyshev"])
def test_elasticity_takes_as_many_iterations_on_every_grid(smoother: str) -> None:
    counts = []
    for n in (12, 36):
        a, points = elasticity(n)
        b = np.zeros(a.shape[0])
        b[1::2] = 1e-4
        motions = linalg.rigid_motions(points)
        m = linalg.amg(a, block=2, near_nullspace=motions, coarse=40, smoother=smoother)
        assert len(m.sizes) >= 3
        assert all(rows % 3 == 0 for rows, _ in m.sizes[1:])
        counts.append(iterations(a, m, b))
    assert counts[1] <= 1.5 * counts[0] + 2
    assert counts[1] < 0.6 * iterations(a, linalg.amg(a, coarse=40), b)
    inverse = m @ np.eye(len(b))[:, :40]
    np.testing.assert_allclose(inverse[:40], inverse[:40].T, atol=1e-8 * np.abs(inverse).max())
    m.update(1000 * a.values)
    assert abs(iterations(1000 * a, m, b) - counts[1]) <= 1
    blocked, _ = elasticity(36, "bsr(2, 2)")
    _, info = linalg.cg(blocked, b, M=linalg.amg(blocked, block=2, near_nullspace=motions), rtol=1e-8, maxiter=60)
    assert info == 0


def test_aggregates_of_fewer_rows_than_vectors() -> None:
    a = ow.asarray(poisson(12))
    x = np.arange(144.0)
    several = np.stack([np.ones(144), x, x**2, x % 12, x // 12, np.sin(x)], 1)
    m = linalg.amg(a, near_nullspace=several, coarse=10)
    assert iterations(a, m, np.ones(144)) < 40


def test_a_large_last_level_is_factored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["openwork.linalg.amg"], "_MAX_DENSE", 30)
    a, b = poisson(6), np.arange(36.0)
    m = linalg.amg(ow.asarray(a), max_levels=1)
    np.testing.assert_allclose(m.solve(b), scipys.spsolve(a.tocsc(), b))
    loops = ow.asarray(np.kron(np.eye(18), [[1.0, -1], [-1, 1]])).asformat("csr")
    with pytest.raises(np.linalg.LinAlgError, match="amg: the last level, of 36 rows, is singular"):
        linalg.amg(loops, max_levels=1)


def test_stored_zeros_are_no_connections() -> None:
    n = 400
    a = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    for k in range(5, n - 1, 9):
        a[k, k + 1] = a[k + 1, k] = 0
    at = np.stack(np.nonzero(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2))
    stored = ow.sparse_coo_tensor(at, a[tuple(at)], (n, n)).asformat("csr")
    assert stored.nse > np.count_nonzero(a)
    b = np.arange(float(n))
    want = linalg.amg(ow.asarray(a, format="csr"), strength=0.0) @ b
    np.testing.assert_allclose(linalg.amg(stored, strength=0.0) @ b, want)
