"""Triangular systems by level sets and with transposes, against dense answers."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as scipys
from matrix import tensor

import openwork as ow
from openwork import linalg
from openwork.linalg import level_sets, triangular
from openwork.linalg.level_sets import Schedule, Trial, level_of_rows

N = 60


@pytest.fixture
def _wide_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads, every level of a few elements is wide enough for them, and no way takes longer than another."""
    threads = ow.get_num_threads()
    ow.set_num_threads(2)
    monkeypatch.setattr(level_sets, "WIDE", 4)
    monkeypatch.setattr(triangular, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    yield
    ow.set_num_threads(threads)


def matrix(dtype: str = "float64") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(3)
    a = np.where(rng.random((N, N)) < 0.05, rng.integers(1, 4, (N, N)), 0) + 4 * np.eye(N)
    return np.asarray(a * (1 - 0.5j) if dtype.startswith("complex") else a).astype(dtype)


def schedules(t: ow.Tensor) -> list[Schedule]:
    trials = [x for x in t._storage.facts.values() if isinstance(x, Trial)]
    return [x.schedule for x in trials if x.schedule is not None]


def dense_answer(a: np.ndarray[Any, Any], b: Any, lower: bool, unit: bool, trans: str) -> np.ndarray[Any, Any]:
    part = np.tril(a) if lower else np.triu(a)
    if unit:
        part = part - np.diag(np.diag(part)) + np.eye(len(a))
    part = {"N": part, "T": part.T, "H": part.conj().T}[trans]
    return np.linalg.solve(part, b)


@pytest.mark.thin(15)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dia", "dense"])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_triangles_and_transposes(spec: str, trans: str) -> None:
    for dtype in ("float64", "complex128", "int64"):
        a = matrix(dtype)
        t, b = tensor(a, spec), np.arange(1.0, N + 1)
        for lower in (True, False):
            for unit in (True, False):
                for right in (b, np.stack([b, b[::-1]], 1)):
                    got = linalg.solve_triangular(t, right, lower=lower, unit_diagonal=unit, trans=trans)
                    np.testing.assert_allclose(got, dense_answer(a, right, lower, unit, trans), rtol=1e-9, atol=1e-9)


@pytest.mark.thin(6)
@pytest.mark.usefixtures("_wide_at_once")
@pytest.mark.parametrize("spec", ["csr", "csc"])
@pytest.mark.parametrize("lower", [True, False])
def test_level_sets_give_what_the_plain_loop_gives(spec: str, lower: bool) -> None:
    for dtype in ("float64", "float32", "complex128", "int64"):
        a = matrix(dtype)
        t, b = tensor(a, spec), np.arange(1.0, N + 1)
        for unit in (True, False):
            for right in (b, np.stack([b, b[::-1]], 1)):
                first, *others = [linalg.solve_triangular(t, right, lower=lower, unit_diagonal=unit) for _ in range(4)]
                for other in others:
                    np.testing.assert_allclose(other, first, rtol=1e-3 if dtype == "float32" else 1e-12)
                assert schedules(t)
        kept = schedules(t)
        assert len(kept) == 2
        twice = t.with_values(2 * t.values)
        np.testing.assert_allclose(
            linalg.solve_triangular(twice, b, lower=lower), dense_answer(2 * a, b, lower, False, "N"), rtol=1e-9
        )


def test_the_faster_way_is_kept() -> None:
    t = tensor(matrix(), "csr")
    schedule = Schedule(np.zeros(1), np.zeros(1), None, np.zeros(1), ())
    for seconds, kept in ((0.1, True), (0.3, False)):
        trial = Trial(schedule, 3, (0.2, 0.0))
        assert trial.levels(t, "csr", True, 1) is schedule
        trial.record_time(seconds)
        for _ in range(3):
            assert (trial.levels(t, "csr", True, 1) is schedule) is kept
            trial.record_time(1.0)
    first = Trial()
    for _ in range(2):
        assert first.levels(t, "csr", True, 1) is None
        first.record_time(0.5)
    assert first.seconds == (0.5, 0.0)


@pytest.mark.usefixtures("_wide_at_once")
def test_a_zero_on_the_diagonal_is_found_by_every_way() -> None:
    a = matrix()
    a[7, 7] = a[40, 40] = 0
    t = tensor(a, "csr")
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match=r"element \(7, 7\) of the diagonal is 0"):
            linalg.solve_triangular(t, np.ones(N))
        assert np.isfinite(linalg.solve_triangular(t, np.ones(N), unit_diagonal=True)).all()


def test_levels() -> None:
    a = np.eye(5)
    a[1, 0] = a[2, 1] = a[4, 0] = 1
    for lower, want in ((True, [0, 1, 2, 0, 1]), (False, [0, 0, 0, 0, 0])):
        t = ow.asarray(a).asformat("csr")
        pos, crd = np.asarray(t.pos(1)), np.asarray(t.crd(1))
        np.testing.assert_array_equal(level_of_rows(pos.astype(crd.dtype), crd, lower), want)
        t = ow.asarray(np.ascontiguousarray(a.T)).asformat("csr")
        pos, crd = np.asarray(t.pos(1)), np.asarray(t.crd(1))
        mirrored = [2, 1, 0, 0, 0] if lower is False else [0] * 5
        np.testing.assert_array_equal(level_of_rows(pos.astype(crd.dtype), crd, lower), mirrored)


@pytest.mark.usefixtures("_wide_at_once")
def test_narrow_levels_are_run_in_order() -> None:
    chain = tensor(np.eye(N) + np.eye(N, k=-1), "csr")
    for _ in range(3):
        np.testing.assert_allclose(linalg.solve_triangular(chain, np.ones(N)), np.arange(N) % 2 == 0)
    assert schedules(chain) == []


def test_scipys_name() -> None:
    a, b = matrix(), np.ones((N, 2))
    t = tensor(a, "csr")
    for lower in (True, False):
        held = t.to_scipy("csr")
        part = (np.tril(a) if lower else np.triu(a)) != 0
        want = scipys.spsolve_triangular(held.multiply(part).tocsr(), b, lower)
        np.testing.assert_allclose(linalg.spsolve_triangular(t, b, lower), want)
        np.testing.assert_allclose(linalg.spsolve_triangular(t, b, lower, True, True), want)
    with pytest.raises(ow.DTypeError, match="solve_triangular: trans is 'N', 'T' or 'H'; got: 'C'"):
        linalg.solve_triangular(t, b, trans="C")
    with pytest.raises(ow.ShapeError, match="solve_triangular: expected square matrices"):
        linalg.solve_triangular(t[:3], b, trans="T")


def test_gradients_through_transposes() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(matrix())[:8, :8].contiguous(), torch.arange(1.0, 9, dtype=torch.float64)
    for trans in ("N", "T"):
        values = a.clone().requires_grad_()
        x = torch.linalg.solve_triangular(
            torch.tril(values).T if trans == "T" else torch.tril(values), b[:, None], upper=trans == "T"
        )
        x.sum().backward()
        t = ow.asarray(a).asformat("csr")
        leaf = t.values.clone().requires_grad_()
        linalg.solve_triangular(t.with_values(leaf), b, trans=trans).sum().backward()
        got = t.with_values(leaf.grad).to_numpy()
        np.testing.assert_allclose(got, np.where(a.numpy() != 0, values.grad.numpy(), 0), atol=1e-12)
