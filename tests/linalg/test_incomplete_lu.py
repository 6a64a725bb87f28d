"""ILU(k) and ILUT against their definitions on dense matrices; preconditioners of other values against those made anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import linalg
from openwork.errors import DTypeError, ShapeError

Array = np.ndarray[Any, Any]


def general(n: int = 30, dtype: str = "float64", seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < 0.12, rng.integers(-3, 4, (n, n)), 0) + 12 * np.eye(n)
    return np.asarray(a * (1 + 0.5j) if dtype.startswith("complex") else a).astype(dtype)


def definite(n: int = 30) -> Array:
    a = general(n, seed=2)
    return np.asarray((a + a.T) / 2 + 6 * np.eye(n))


def levels(there: Array, most: int) -> Array:
    """The levels of fill as textbooks define them: the least over k of level(i, k) + level(k, j) + 1."""
    n = len(there)
    level = np.where(there | np.eye(n, dtype=bool), 0, 10**6)
    for i in range(n):
        for k in range(i):
            if level[i, k] <= most:
                level[i, k + 1 :] = np.minimum(level[i, k + 1 :], level[i, k] + level[k, k + 1 :] + 1)
        level[i, level[i] > most] = 10**6
    return np.asarray(level <= most)


def eliminated(a: Array, inside: Array) -> Array:
    """Gaussian elimination at some elements alone, L below the diagonal."""
    f = np.where(inside, a, 0).astype(np.result_type(a, np.float32))
    for i in range(len(a)):
        for k in np.flatnonzero(inside[i, :i]):
            f[i, k] /= f[k, k]
            f[i, k + 1 :] -= np.where(inside[i, k + 1 :], f[i, k] * f[k, k + 1 :], 0)
    return f


def factors(m: Any) -> Array:
    lower, upper = m.L.to_numpy(), m.U.to_numpy()
    return np.asarray(lower + upper - np.eye(len(lower)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
@pytest.mark.parametrize("level", [0, 1, 2, 5])
def test_levels_of_fill(level: int, dtype: str) -> None:
    a = general(dtype=dtype)
    inside = levels(a != 0, level)
    m = linalg.iluk(ow.asarray(a, format="csr"), level)
    assert m.nse == inside.sum()
    want = eliminated(a, inside)
    np.testing.assert_allclose(factors(m), want, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-6)
    b = np.arange(1.0, 31)
    lower, upper = np.tril(want, -1) + np.eye(30), np.triu(want)
    for trans, dense in (("N", lower @ upper), ("T", (lower @ upper).T), ("H", (lower @ upper).conj().T)):
        np.testing.assert_allclose(m.solve(b, trans), np.linalg.solve(dense, b), rtol=1e-3)
    if level == 5:
        assert np.abs(a @ m.solve(b) - b).max() < 1


def test_a_missing_diagonal_is_filled_in() -> None:
    a = np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]])
    np.testing.assert_allclose(
        linalg.iluk(ow.asarray(a, format="csr"), 3).solve(np.ones(3)), np.linalg.solve(a, np.ones(3))
    )
    np.testing.assert_allclose(
        linalg.ilut(ow.asarray(a, format="csr"), 0.0).solve(np.ones(3)), np.linalg.solve(a, np.ones(3))
    )
    for make in (linalg.iluk, linalg.ilut):
        with pytest.raises(np.linalg.LinAlgError, match=r"ilu\w: pivot 0 is 0\n  help: spilu"):
            make(ow.asarray([[0.0, 1], [1, 0]], format="csr"))


def thresholded(a: Array, tolerance: float, fill: int) -> Array:
    """ILUT by rows of a dense matrix."""
    n = len(a)
    f = np.zeros(a.shape, np.result_type(a, np.float32))
    for i in range(n):
        w, limit = f.dtype.type(1) * a[i], tolerance * np.linalg.norm(a[i])
        for k in range(i):
            if w[k] != 0:
                w[k] /= f[k, k]
                if abs(w[k]) <= limit:
                    w[k] = 0
                else:
                    w[k + 1 :] -= w[k] * f[k, k + 1 :]
        for part, most in (
            (np.arange(i), fill + np.count_nonzero(a[i, :i])),
            (np.arange(i + 1, n), fill + np.count_nonzero(a[i, i:])),
        ):
            size = np.abs(w[part])
            least = max(limit, np.sort(size)[::-1][most] if most < len(part) else 0)
            f[i, part[size > least]] = w[part[size > least]]
        f[i, i] = w[i]
    return f


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("tolerance", "fill"), [(0.0, 100), (1e-2, 100), (0.1, 3), (0.0, 2), (1e-3, 0)])
def test_thresholds(tolerance: float, fill: int, dtype: str) -> None:
    a = general(dtype=dtype) * (1 + 1e-3 * np.random.default_rng(0).random((30, 30)))  # no two of one size
    m = linalg.ilut(ow.asarray(a, format="csr"), tolerance, fill)
    want = thresholded(a, tolerance, fill)
    np.testing.assert_allclose(factors(m), want, atol=1e-12)
    if not tolerance and fill == 100:
        np.testing.assert_allclose(m @ a[:, 0], np.eye(30)[0], atol=1e-12)


MAKE: dict[str, tuple[Callable[[Any], Any], Array]] = {
    "jacobi": (linalg.jacobi, general()),
    "ssor": (lambda a: linalg.ssor(a, 1.2), general()),
    "ic0": (lambda a: linalg.ic0(a, shift=0.1), definite()),
    "ilu0": (linalg.ilu0, general()),
    "iluk": (lambda a: linalg.iluk(a, 2), general()),
    "block_jacobi": (lambda a: linalg.block_jacobi(a, 4), general()),
    "chebyshev": (linalg.chebyshev, definite()),
    "amg": (lambda a: linalg.amg(a, coarse=5), definite()),
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo(nonunique, unordered)", "bsr(2, 3)", "dense"])
@pytest.mark.parametrize("name", MAKE)
def test_other_values_of_the_same_structure(name: str, spec: str) -> None:
    make, a = MAKE[name]
    t = ow.asarray(a, format=spec)
    m, b = make(t), np.arange(30.0)
    before = m @ b
    scaled = np.diag(1 + np.arange(30.0) / 60)
    other = ow.asarray(scaled @ a @ scaled + 0, format=spec)
    assert m.update(t.with_values(other.values)) is m
    tolerance = 0.3 if name == "amg" else 1e-12  # its prolongations are those of the first values
    fresh = make(other) @ b
    assert np.linalg.norm(m @ b - fresh) <= tolerance * np.linalg.norm(fresh)
    np.testing.assert_allclose(m.update(t.values) @ b, before, rtol=1e-9)


def test_ilut_keeps_its_places() -> None:
    a = general()
    t = ow.asarray(a, format="csr")
    m = linalg.ilut(t, 1e-2)
    places = factors(m) != 0
    m.update(t.with_values(2 * t.values + 0.01))
    np.testing.assert_allclose(factors(m), eliminated(np.where(a != 0, 2 * a + 0.01, 0), places), atol=1e-10)


def test_zeros_of_blocks_may_move() -> None:
    a = general()
    t = ow.asarray(a, format="bsr(2, 3)")
    m = linalg.ilu0(t)
    values = t.values.copy()
    values[values == 0] = 0.125  # every place of the blocks
    full = t.with_values(values)
    np.testing.assert_allclose(m.update(full) @ np.ones(30), linalg.ilu0(full) @ np.ones(30))


def test_what_update_refuses() -> None:
    t = ow.asarray(general(), format="csr")
    m = linalg.ilu0(t)
    with pytest.raises(ShapeError, match=r"another structure\n  help: ilu0\(A\)"):
        m.update(ow.asarray(definite(), format="csr"))
    with pytest.raises(DTypeError, match="the values were float64; got complex128"):
        m.update(t * 1j)
    with pytest.raises(np.linalg.LinAlgError, match="nan or inf"):
        m.update(t.values * np.inf)
    np.testing.assert_allclose(m @ np.ones(30), linalg.ilu0(t) @ np.ones(30))  # it stands for what it stood for
    with pytest.raises(ValueError, match="a level of 0 or more"):
        linalg.iluk(t, -1)
    with pytest.raises(ValueError, match="drop_tol and fill of 0 or more"):
        linalg.ilut(t, -1.0)
    with pytest.raises(ValueError, match="a ratio above 1"):
        linalg.chebyshev(t, 3, 1.0)


def test_blocks_of_rows() -> None:
    a = general(dtype="complex128")
    t = ow.asarray(a, format="csr")
    label = np.random.default_rng(0).integers(0, 6, 30) * 7
    for blocks, same in ((label, label[:, None] == label), (7, np.arange(30)[:, None] // 7 == np.arange(30) // 7)):
        m, inside = linalg.block_jacobi(t, blocks), np.where(same, a, 0)
        for trans, dense in (("N", inside), ("T", inside.T), ("H", inside.conj().T)):
            b = np.stack([np.arange(30.0), np.ones(30)], 1)
            np.testing.assert_allclose(m.solve(b, trans), np.linalg.solve(dense, b))
    np.testing.assert_allclose(
        linalg.block_jacobi(t.asformat("bsr(3, 3)")) @ np.ones(30), linalg.block_jacobi(t, 3) @ np.ones(30)
    )
    with pytest.raises(ShapeError, match="which rows belong together"):
        linalg.block_jacobi(t)
    with pytest.raises(ShapeError, match="for each of 30 rows"):
        linalg.block_jacobi(t, [0, 1])
    with pytest.raises(DTypeError, match="blocks are integers"):
        linalg.block_jacobi(t, 1.5)
    singular = general()
    singular[3] = singular[4] = 1
    with pytest.raises(np.linalg.LinAlgError, match="rows 3, 4, 5 is singular"):
        linalg.block_jacobi(ow.asarray(np.where(np.arange(30)[:, None] // 3 == 1, 1.0, singular), format="csr"), 3)


def test_chebyshev_is_hermitian_and_small_at_its_interval() -> None:
    a = definite()
    m = linalg.chebyshev(ow.asarray(a, format="csr"), degree=6, ratio=8)
    inverse = m @ np.eye(30)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    scale = np.sqrt(np.diag(a))
    w = np.linalg.eigvalsh(a / scale / scale[:, None])
    _, high = m.interval
    assert 0.9 * w[-1] < high < 1.2 * w[-1]
    left = np.linalg.eigvalsh(scale[:, None] * inverse * scale)
    assert left[0] > 0
    hermitian = a + 1j * (np.tril(a, -1) - np.tril(a, -1).T)
    inverse = linalg.chebyshev(ow.asarray(hermitian, format="csr")) @ np.eye(30)
    np.testing.assert_allclose(inverse, inverse.conj().T, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="chebyshev: expected a symmetric matrix"):
        linalg.chebyshev(ow.asarray(general(), format="csr"))
