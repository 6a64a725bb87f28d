"""Reductions of large tensors, walked in ranges of the outermost dimension: NumPy's results, in little memory."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.runtime.outer_ranges import ranges_of

RNG = np.random.default_rng(3)


def elements(shape: tuple[int, ...], dtype: str, with_nan: bool) -> np.ndarray[Any, Any]:
    x = (RNG.integers(-4, 5, shape) * (RNG.random(shape) < 0.4)).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * RNG.integers(-3, 4, shape) * (x != 0)
    if with_nan:
        x[RNG.random(shape) < 0.1] = np.nan
        x[:, 1] = np.nan
    return x


def check(t: ow.Tensor, x: np.ndarray[Any, Any], names: tuple[str, ...], axes: tuple[Any, ...]) -> None:
    """Against NumPy, and the format and dtype of what is not walked."""
    assert ranges_of(t._storage) is not None
    for name in names:
        for axis in axes:
            if "arg" in name and isinstance(axis, tuple):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    expected = getattr(np, name)(x, axis=axis)
                except ValueError:  # nanargmax of a row of NaN
                    with pytest.raises(ow.ShapeError, match="All-NaN"):
                        getattr(ow, name)(t, axis=axis)
                    continue
                got, kept = (getattr(ow, name)(t, axis=axis, keepdims=keep) for keep in (False, True))
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("openwork.runtime.outer_ranges.STEP", 1 << 40)
                    whole = getattr(ow, name)(ow.Tensor._from_storage(t._storage), axis=axis)
                    wide = whole if name != names[0] else getattr(ow, name)(t.copy(), axis=axis, keepdims=True)
            assert (got.format, got.dtype) == (whole.format, whole.dtype), (name, axis, t.format)
            assert name != names[0] or kept.format == wide.format
            np.testing.assert_allclose(got.to_numpy(), expected, rtol=1e-9, atol=1e-12, err_msg=f"{name} {axis}")
            np.testing.assert_array_equal(kept.to_numpy().reshape(expected.shape), got.to_numpy())


SLOW = pytest.mark.slow


@pytest.mark.ci
@pytest.mark.parametrize("spec", ["csr", "dia", *(pytest.param(f, marks=SLOW) for f in ("csc", "dia.T", "bsr(2, 3)"))])
def test_matrices(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 20)
    for dtype, with_nan in (("float64", True), ("complex128", False)):
        x = elements((16, 17), dtype, with_nan)
        t = ow.asarray(x.T, format="dia").T if spec == "dia.T" else ow.asarray(x, format=spec)
        real = ("nanargmax", "nanargmin", "argmax", "nanmax") if dtype == "float64" else ()
        check(t, x, ("nanvar", *(("nanstd", "nansum", *real) if real else ())), (None, 0, 1))
        x[:, 1] = 0
        check(ow.asarray(x, format=spec.removesuffix(".T")), x, real[:2], (None, 0, 1))
        if spec == "csr" and real:
            for few in (np.where(x == 0, np.nan, x), np.where(x > 0, x, np.nan), np.where(x < 0, x, np.nan)):
                few[:, 0] = np.where(np.arange(16) % 2, np.inf, -np.inf)  # the last that there are
                check(ow.asarray(few, format=spec, fill_value=np.nan), few, real[:2], (None, 0, 1))


def test_places_beside_nan_of_dense_and_deep_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 20)
    x = elements((4, 8, 7), "float64", True)
    x[:, 1] = x[:, 2]
    cube = np.where(np.isnan(x).all(1, keepdims=True) | np.isnan(x).all(0), -np.inf, x)
    for t, name in ((ow.asarray(cube, format="coo"), "nanargmax"), (ow.asarray(cube[0]), "nanargmin")):
        check(t, t.to_numpy(), (name,), (1,))


FOLDED = ("sum", "mean", "max", "any", "var", "std", "argmax", "count_nonzero")


@pytest.mark.ci
@pytest.mark.parametrize(
    "spec",
    [
        "csf",
        *(
            pytest.param(f, marks=SLOW)
            for f in ("coo", "bitmap", "(i, j, k) -> (k : compressed, i : compressed, j : compressed)")
        ),
    ],
)
def test_sparse_results(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 40)
    x = elements((9, 8, 7), "float64", False)
    check(ow.asarray(x, format=spec), x, FOLDED, (0, 1, 2, (0, 1)))
    if spec in ("csf", "coo"):
        filled = np.where(x == 0, 2.0, x)
        check(ow.asarray(filled, format=spec, fill_value=2), filled, ("sum", "prod", "var", "argmax"), (0, 1))
        with_nan = elements((9, 8, 7), "float64", True)
        check(ow.asarray(with_nan, format=spec), with_nan, ("nanvar", "nansum", "argmax"), (0, 1, (1, 2)))
        complex_ = elements((9, 8, 7), "complex128", False)
        check(ow.asarray(complex_, format=spec), complex_, ("var", "mean"), (0, 2))


def test_sums_of_exponentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 40)
    x = elements((9, 8, 7), "float64", False)
    for t, axes in ((ow.asarray(x, format="csf"), (0, 1, None)), (ow.asarray(x[0], format="csr"), (0,))):
        for axis in axes:
            got = ow.logsumexp(t, axis=axis).to_numpy()
            np.testing.assert_allclose(got, np.log(np.exp(t.to_numpy()).sum(axis)), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["csr", "csc", "dia", "csf", "coo", "bitmap"])
def test_mapped_tensors_take_memory_for_ranges(tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = spec in ("csr", "csc", "dia")
    monkeypatch.setattr("openwork.runtime.outer_ranges.STEP", 2000 if matrix else 20000)
    shape = (800, 800) if matrix else (400, 100, 50)
    x = RNG.random(shape) * (RNG.random(shape) < 0.4)
    if spec == "dia":
        x *= abs(np.subtract.outer(np.arange(800), np.arange(800))) < 150
    ow.write(tmp_path / "t.ow", ow.asarray(x, format=spec))
    t = ow.open(tmp_path / "t.ow")
    names = ["nanvar", "nanargmax", "nanmax", "argmax", "logsumexp"] + ["sum", "mean", "var", "any"] * (t.ndim > 2)
    for name in names:
        for axis in (0, 1):
            getattr(ow, name)(t, axis=axis)
            tracemalloc.start()
            result = getattr(ow, name)(t, axis=axis)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < t.nbytes / 3 + 8 * result.nbytes, (name, axis, peak, t.nbytes, result.nbytes)
