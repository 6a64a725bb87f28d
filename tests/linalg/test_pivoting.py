"""Delayed pivots: matrices whose fronts hold no pivot, by one thread and by all, against NumPy; ranks that are short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork import linalg
from openwork.linalg.direct_solver import solvers, symbolic
from openwork.linalg.direct_solver.systems import rows_of


def grid(*extents: int) -> Any:
    total = sp.csr_array((1, 1))
    for n in extents:
        line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
        total = sp.kron(total, sp.eye_array(n)) + sp.kron(sp.eye_array(total.shape[0]), line)
    return sp.csr_array(total)


def mesh(n: int) -> Any:
    """The edges of a triangular mesh: an indefinite matrix of ones without a diagonal."""
    line = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])
    shift = sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n))
    whole = sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)
    return whole + sp.kron(shift, shift) + sp.kron(shift.T, shift.T)


def stokes(n: int) -> Any:
    """Velocities and pressures on a grid."""
    D = sp.diags_array([-np.ones(n - 1), np.ones(n)], offsets=[-1, 0])
    B = sp.hstack([sp.kron(D, sp.eye_array(n)), sp.kron(sp.eye_array(n), D)], format="csr")[1:]
    return sp.block_array([[sp.block_diag([grid(n, n), grid(n, n)]), B.T], [B, None]])


def program(n: int, m: int, dtype: str) -> Any:
    """Random constraints."""
    rng = np.random.default_rng(0)
    H = sp.diags_array(rng.random(n) + 0.1)
    J = sp.random_array((m, n), density=4 / n, rng=rng) + sp.eye_array(m, n)
    if dtype[0] == "c":
        J = J + 1j * sp.random_array((m, n), density=4 / n, rng=rng)
    return sp.block_array([[H, J.conj().T], [J, None]])


def without_diagonal(n: int) -> Any:
    S = sp.random_array((n, n), density=6 / n, rng=np.random.default_rng(4))
    S = sp.lil_array(S + S.T)
    S.setdiag(0)
    return S


MATRICES = {
    "mesh": lambda dtype: mesh(30),
    "stokes": lambda dtype: stokes(14),
    "program": lambda dtype: program(160, 60, dtype),
    "without a diagonal": lambda dtype: without_diagonal(300),
}


def nonzero(A: Any) -> Any:
    A = sp.csr_array(A)
    A.eliminate_zeros()
    return A


@pytest.mark.thin(77)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("kind", ["ldl", "lu"])
@pytest.mark.parametrize("name", MATRICES)
def test_columns_without_pivots_are_delayed(
    name: str, kind: str, dtype: str, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = nonzero(MATRICES[name](dtype)).astype(dtype)
    before = ow.get_num_threads()
    ow.set_num_threads(3 if wide else 1)
    if wide:
        monkeypatch.setattr(symbolic, "WIDE", 0.0)  # all fronts above the subtrees by all threads
    F = linalg.factorized(ow.asarray(A), kind, refine=0)
    ow.set_num_threads(before)
    dense, x = A.toarray(), np.cos(np.arange(2.0 * A.shape[0])).reshape(-1, 2)
    if dtype[0] == "c":
        x = x + 1j * x[::-1]
    for trans, M in (("N", A), ("T", A.T), ("H", A.conj().T)):
        np.testing.assert_allclose(M @ F.solve(M @ x, trans), M @ x, atol=1e-9)
    want = np.linalg.slogdet(dense)
    np.testing.assert_allclose(F.slogdet()[0], want.sign, atol=1e-8)
    np.testing.assert_allclose(F.slogdet()[1], want.logabsdet, rtol=1e-9)
    if (name, kind) in (("mesh", "ldl"), ("stokes", "ldl"), ("without a diagonal", "ldl"), ("mesh", "lu")):
        assert F._factors.factors.delayed > 0
    assert F._factors.replaced == 0
    if kind == "ldl":
        inverse = np.linalg.inv(dense)
        atol = 1e-9 * np.abs(inverse).max()
        np.testing.assert_allclose(F.inverse_diagonal(), inverse.diagonal(), atol=atol)
        np.testing.assert_allclose(F.selected_inverse().to_numpy(), np.where(dense != 0, inverse, 0), atol=atol)
    F.update(2 * A.data)
    np.testing.assert_allclose(F(A @ x), x / 2, atol=1e-7)


def test_a_constraint_that_is_said_twice_is_named() -> None:
    dense = stokes(8).toarray()
    n = len(dense)
    dense[n - 1] = dense[n - 2]
    dense[:, n - 1] = dense[:, n - 2]
    A = nonzero(dense)
    for kind in ("ldl", "lu"):
        with pytest.raises(np.linalg.LinAlgError, match=rf"singular, or nearly.* of row ({n - 1}|{n - 2}) among them"):
            linalg.factorized(ow.asarray(A), kind)


@pytest.mark.parametrize("kind", ["ldl", "lu"])
def test_many_equal_rows_are_not_delayed(kind: str) -> None:
    pattern = np.kron((mesh(12).toarray() != 0) | np.eye(144, dtype=bool), np.ones((3, 3)))
    A = nonzero(pattern.astype(float))
    rows = rows_of(ow.asarray(A), "f64")
    solver = solvers.Multifrontal(rows, kind, "f64", lambda match: solvers.symbolic_phase(rows, match, "auto"))
    solver.factor(rows)
    assert solver.replaced >= 144
    assert solver.factors.delayed < 288
    with pytest.raises(np.linalg.LinAlgError, match=f"for factors of kind '{kind}': [0-9]+ pivots are too small"):
        linalg.factorized(ow.asarray(A), kind)


def test_ones_of_a_mesh_are_factored_by_our_own() -> None:
    A = nonzero(mesh(45))
    F = linalg.factorized(ow.asarray(A))
    assert F.kind == "ldl"
    b = A @ np.cos(np.arange(45 * 45))
    assert np.abs(A @ F(b) - b).max() < 1e-9
