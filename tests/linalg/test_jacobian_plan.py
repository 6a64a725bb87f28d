"""Colourings: every element is read from an evaluation in which it stands alone; differences against derivatives."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, InvariantError, ShapeError, UnsupportedError
from openwork.linalg import colouring, hessian_plan, jacobian_plan


def read(plan: Any, M: Any) -> Any:
    """The matrix as the plan reads it from its products."""
    columns, rows = plan.seeds(float)
    flat = np.concatenate([(M @ columns.T).T.ravel(), (rows @ M).ravel(), [0]])
    return ow.with_values(plan.pattern, flat[plan.places], fill_value=0).to_numpy()


def banded(n: int) -> Any:
    return ow.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])


def arrow(n: int) -> Any:
    M = np.eye(n)
    M[3], M[:, 3] = 1, 1
    return M


@pytest.mark.thin(18)
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense", "bsr(2, 2)"])
def test_jacobians_are_read_exactly(mode: str, format: str) -> None:
    rng = np.random.default_rng(0)
    for density in (0.0, 0.05, 0.1, 0.3, 1.0):
        for _ in range(12):
            m, n = rng.integers(1, 25, 2)
            M = (rng.random((m, n)) < density) * rng.standard_normal((m, n))
            plan = jacobian_plan(ow.asarray(M, format="csr"), mode, format=format)
            assert np.allclose(read(plan, M), M)
            assert plan.evaluations <= (m + n if mode == "both" else {"forward": n, "reverse": m}.get(mode, min(m, n)))


def test_hessians_are_read_exactly() -> None:
    rng = np.random.default_rng(1)
    for density in (0.0, 0.02, 0.05, 0.1, 0.3, 1.0):
        for n in (1, 2, 7, 20, 40, 60):
            half = np.tril((rng.random((n, n)) < density) * rng.standard_normal((n, n)))
            M = half + np.tril(half, -1).T
            plan = hessian_plan(ow.asarray(half, format="csr"))
            assert np.allclose(read(plan, M), M)
            assert plan.evaluations <= n


@pytest.mark.ci
def test_colours_that_rows_have_as_bits_or_found_again_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    patterns = [rng.random((n, n)) < density for n, density in ((40, 0.1), (200, 0.05), (200, 0.4), (300, 0.9))]
    patterns.append(arrow(150) != 0)
    plans = [jacobian_plan(ow.asarray(P, format="csr"), mode) for P in patterns for mode in ("forward", "auto")]
    assert max(plan.evaluations for plan in plans) > 128  # more than two words
    monkeypatch.setattr(colouring, "MOST_WORDS", 0)
    again = [jacobian_plan(ow.asarray(P, format="csr"), mode) for P in patterns for mode in ("forward", "auto")]
    for a, b in zip(plans, again, strict=True):
        assert np.array_equal(a.colours.columns, b.colours.columns)
        assert np.array_equal(a.colours.rows, b.colours.rows)


def test_hessians_of_meshes_by_the_colours_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ow.asarray(banded(12).to_numpy(), format="csr")
    nine, five = ow.kron(line, line), ow.kronsum(line, line, format="csr")
    for M, before in ((nine, 12), (five, 5)):
        plan = hessian_plan(M)
        assert plan.evaluations <= before
        assert np.allclose(read(plan, M.to_numpy()), M.to_numpy())
        monkeypatch.setattr(colouring, "SMALL", 0)
        large = hessian_plan(M)
        assert large.evaluations == plan.evaluations
        assert np.allclose(read(large, M.to_numpy()), M.to_numpy())
        monkeypatch.undo()
    assert hessian_plan(nine).evaluations == 9


def test_few_evaluations() -> None:
    assert repr(jacobian_plan(banded(10000))) == "<JacobianPlan: 3 evaluations instead of 10000>"
    assert repr(jacobian_plan(np.eye(5)[:, :4])) == "<JacobianPlan: 1 evaluation instead of 4>"
    assert jacobian_plan(arrow(50)).evaluations == 3  # both: the dense row by itself
    assert jacobian_plan(arrow(50), "forward").evaluations == 50
    assert hessian_plan(arrow(500)).evaluations == 2
    row = np.ones((1, 40))
    assert (jacobian_plan(row).reverse, jacobian_plan(row.T).forward) == (1, 1)
    n = 30
    grid = ow.kron(banded(n), ow.eye(n)) + ow.kron(ow.eye(n), banded(n))
    assert jacobian_plan(grid).evaluations <= 8
    assert hessian_plan(grid).evaluations <= 6


def test_plans_are_pickled() -> None:
    plan = jacobian_plan(arrow(12))
    copy = pickle.loads(pickle.dumps(plan))
    assert repr(copy) == repr(plan)
    assert np.allclose(read(copy, arrow(12)), arrow(12))


def brusselator(x: Any) -> Any:
    y = x * x * 0.5
    y[1:] += np.sin(x[:-1])
    y[:-1] += x[1:] * x[:-1]
    return y


@pytest.mark.parametrize(("method", "tolerance"), [("2-point", 1e-6), ("3-point", 1e-8), ("cs", 1e-14)])
@pytest.mark.parametrize("mode", ["auto", "reverse", "both"])
def test_differences(method: str, tolerance: float, mode: str) -> None:
    x = np.linspace(-2, 2, 40)
    J = jacobian_plan(banded(40), mode).differences(brusselator, x, method)
    exact = np.diag(x + np.append(x[1:], 0)) + np.diag(np.cos(x[:-1]), -1) + np.diag(x[:-1], 1)
    assert J.format == ow.format("csr")
    assert np.allclose(J.to_numpy(), exact, atol=tolerance)


def test_dtypes_and_padding_of_differences() -> None:
    plan = jacobian_plan(banded(7), format="bsr(2, 2)")
    x = np.linspace(1, 2, 7, dtype=np.float32)
    J = plan.differences(lambda v: v**2, x)
    assert J.dtype == np.float32
    assert np.allclose(J.to_numpy(), np.diag(2 * x), atol=2e-2)
    assert np.allclose(
        plan.differences(lambda v: v**2, np.arange(7)).to_numpy(), np.diag(2.0 * np.arange(7)), atol=1e-6
    )


def test_a_missing_element_is_found_by_the_first_use() -> None:
    plan = jacobian_plan(np.eye(40))
    with pytest.raises(InvariantError, match="differs from the derivative along v"):
        plan.differences(brusselator, np.linspace(-2, 2, 40))


def test_what_scipy_takes() -> None:
    optimize, integrate = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.integrate")
    n = 30
    plan = jacobian_plan(banded(n))

    def f(x: Any) -> Any:
        y = (3 - 2 * x) * x + 1
        y[1:] -= x[:-1]
        y[:-1] -= 2 * x[1:]
        return y

    start = -np.ones(n)
    ours = optimize.least_squares(f, start, jac=plan.jac(f, "cs"))
    theirs = optimize.least_squares(f, start, jac_sparsity=plan.jac_sparsity)
    assert np.allclose(ours.x, theirs.x, atol=1e-6)
    assert np.allclose(
        optimize.root(f, start, jac=jacobian_plan(banded(n), format="dense").jac(f)).x, ours.x, atol=1e-6
    )

    def heat(t: float, u: Any) -> Any:
        y = -2 * u * (n + 1) ** 2
        y[1:] += u[:-1] * (n + 1) ** 2
        y[:-1] += u[1:] * (n + 1) ** 2
        return y

    u = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    options = {"method": "BDF", "rtol": 1e-7, "atol": 1e-9}
    ours = integrate.solve_ivp(heat, (0, 0.1), u, jac=plan.jac(heat), **options)
    theirs = integrate.solve_ivp(heat, (0, 0.1), u, jac_sparsity=plan.jac_sparsity, **options)
    assert np.allclose(ours.y[:, -1], theirs.y[:, -1], atol=1e-6)


def test_what_is_refused() -> None:
    plan = jacobian_plan(banded(4))
    with pytest.raises(UnsupportedError, match="no mode 'up'"):
        jacobian_plan(banded(4), "up")
    with pytest.raises(ShapeError, match="a Hessian is square"):
        hessian_plan(np.ones((2, 3)))
    with pytest.raises(UnsupportedError, match="no method '4-point'"):
        plan.differences(np.sin, np.zeros(4), "4-point")
    with pytest.raises(ShapeError, match=r"x has shape \(3,\)"):
        plan.differences(np.sin, np.zeros(3))
    with pytest.raises(ShapeError, match=r"f gave shape \(2,\)"):
        plan.differences(lambda x: x[:2], np.zeros(4))
    with pytest.raises(DTypeError, match="f of complex numbers is real"):
        plan.differences(lambda x: x.real.copy(), np.zeros(4), "cs")
    with pytest.raises(DTypeError, match="x is complex128"):
        plan.differences(np.sin, np.zeros(4) * 1j)
    for step in (0, -1e-8):
        with pytest.raises(ValueError, match="rel_step is a positive number"):
            plan.differences(np.sin, np.zeros(4), rel_step=step)
    with pytest.raises(DTypeError, match="args a tuple"):
        plan.differences(np.sin, np.zeros(4), args=2.0)
