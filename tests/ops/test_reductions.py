"""Reductions on every format, fill value and axis, against NumPy on the dense array."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, SHAPES, dense_array, same, tensor

import openwork as ow

SIMPLE = ("sum", "prod", "min", "max", "mean", "any", "all", "count_nonzero", "var", "std")
PLACES = ("argmin", "argmax")
SOME = ("dense", "coo", "csr", "csc", "bsr(2, 3)", "dia", "ell(12)")


def agree(name: str, t: ow.Tensor, array: np.ndarray[Any, Any], axis: Any, **options: Any) -> None:
    """The same value, or an error on both sides."""
    oracle = {k if k != "correction" else "ddof": v for k, v in options.items()}
    try:
        with np.errstate(all="ignore"):
            want = np.asarray(getattr(np, name)(array, axis=axis, **oracle))
    except ValueError:
        with pytest.raises(ow.ShapeError, match="of extent 0 has no value"):
            getattr(ow, name)(t, axis=axis, **options)
        return
    got = getattr(ow, name)(t, axis=axis, **options)
    axes = {a % t.ndim for a in (range(t.ndim) if axis is None else np.atleast_1d(axis).tolist())}
    is_coordinate = any("crd" in level.format.buffers for level in t.format.levels)
    assert got.format.is_dense or (len(axes) <= t.ndim - 2 and is_coordinate)
    got = got.to_numpy()
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    rtol = {"f": 2e-6, "e": 2e-3, "F": 2e-6}.get(want.dtype.char, 1e-12)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.thin(85)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("spec", SOME)
@pytest.mark.parametrize("shape", [(8, 12), (0, 4), (4, 0)], ids=str)
def test_values(spec: str, shape: tuple[int, int]) -> None:
    if spec == "ell(12)" and 0 in shape:
        return
    array = dense_array(shape) - 2 * (dense_array(shape, 5) > 2)
    for fill, hole in itertools.product((0.0, 1.5, np.nan), (False, True)):
        stored = np.where(dense_array(shape, 3) > 3, np.nan, array) if hole else array
        t, a = tensor(stored, spec), stored
        if fill:
            t, a = t + fill, a + fill
        for name, axis in itertools.product((*SIMPLE, *PLACES), (None, 0, 1)):
            agree(name, t, a, axis)


@pytest.mark.thin(5)
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("spec", FORMATS[2])
def test_every_matrix_format(spec: str) -> None:
    array = dense_array((7, 12))
    for t, a in ((tensor(array, spec), array), (tensor(array, spec) + 1.0, array + 1)):
        for name in ("sum", "min", "var", "argmax"):
            agree(name, t, a, 1)
        for name in ("prod", "mean"):
            agree(name, t, a, 0)


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", [*FORMATS[1], *FORMATS[3]])
def test_other_ranks(spec: str) -> None:
    ndim = 1 if spec in FORMATS[1] and spec not in ("dense", "coo", "csf", "bitmap") else 3
    for shape in SHAPES[ndim][:1]:
        array = dense_array(shape)
        t = tensor(array, spec)
        for axis in (None, 0, -1) if ndim == 1 else (None, 1, (0, 2)):
            for name in ("sum", "min", "std"):
                agree(name, t, array, axis, keepdims=name == "min")
            if not isinstance(axis, tuple):
                agree("argmax", t, array, axis)


@pytest.mark.thin(10)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("spec", ["csr", "coo", "bsr(2, 3)"])
def test_dtypes(dtype: str, spec: str) -> None:
    array = dense_array((8, 12), dtype=dtype)
    t = tensor(array, spec)
    for name in SIMPLE:
        if dtype == "complex64" and name in ("min", "max"):
            with pytest.raises(ow.DTypeError, match="complex numbers are not ordered"):
                getattr(ow, name)(t)
        elif not (dtype == "float16" and name == "prod"):
            for axis in (None, 0):
                agree(name, t, array, axis)
    if dtype != "complex64":
        for name in PLACES:
            agree(name, t, array, 1)
    agree("sum", t, array, 1, dtype="complex128")


@pytest.mark.parametrize("spec", ["csr", "dia", "bitmap"])
def test_correction_and_keepdims(spec: str) -> None:
    array = dense_array((8, 12))
    for name, axis in itertools.product(("var", "std"), (None, 0, 1)):
        agree(name, tensor(array, spec), array, axis, correction=1, keepdims=True)
    agree("argmin", tensor(array, spec), array, 0, keepdims=True)


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3)), st.integers(0, 10**6), st.sampled_from(PLACES),
    st.sampled_from([None, 0, 1, 2]), st.sampled_from([0.0, -1.0, 1.0, np.nan]), st.sampled_from(["coo", "csf"]),
)  # fmt: skip
@settings(max_examples=80)
def test_places_at_random(
    shape: tuple[int, ...], seed: int, name: str, axis: int | None, fill: float, spec: str
) -> None:
    rng = np.random.default_rng(seed)
    array = np.where(rng.random(shape) < 0.5, rng.integers(-1, 2, shape), 0).astype(float)
    t = tensor(np.where(rng.random(shape) < 0.1, np.nan, array), spec)
    agree(name, t + fill if fill else t, t.to_numpy() + fill, axis)


def test_duplicates_are_summed_first() -> None:
    t = ow.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [2.0, 3.0, -1.0], (2, 2))
    for name in (*SIMPLE, *PLACES):
        agree(name, t, t.to_numpy(), None)
        agree(name, t, t.to_numpy(), 0)


def test_full_sums_are_as_exact_as_numpys() -> None:
    rng = np.random.default_rng(0)
    array = rng.random((64, 4096)).astype("float32")
    exact = array.astype("float64").sum()
    allowed = 4 * abs(float(array.sum()) - exact) + 1e-6 * exact
    for spec in ("dense", "csr", "bsr(4, 4)", "ell(4096)", "dia"):
        assert abs(float(tensor(array, spec).sum()) - exact) <= allowed
        assert abs(float(ow.mean(tensor(array, spec))) - exact / array.size) <= 1e-7


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "complex64", "bool"])
@pytest.mark.parametrize("extra", [0, 1, 700])
def test_full_sums_of_many_rows(dtype: str, extra: int) -> None:
    rng = np.random.default_rng(extra)
    values = rng.random((1 << 18) + extra) * (0.1 if dtype == "float16" else 90)
    values = (values - 30 * (dtype in ("float32", "float64", "int8"))).astype(dtype)
    want = values.sum(dtype=np.float64 if dtype[0] == "f" else None)
    tolerance = {"float16": 1e-3, "float32": 1e-6, "complex64": 1e-5}.get(dtype, 1e-14)
    threads = ow.get_num_threads()
    sums = []
    for count in (1, 2, 5):
        ow.set_num_threads(count)
        try:
            sums.append(ow.asarray(values).sum().to_numpy())
        finally:
            ow.set_num_threads(threads)
    assert sums[0] == sums[1] == sums[2]
    np.testing.assert_allclose(sums[0], want, rtol=tolerance)


@pytest.mark.parametrize("spec", ["dense", "csr", "coo"])
def test_cumulative(spec: str) -> None:
    array = dense_array((5, 6))
    t = tensor(array, spec)
    same(ow.cumulative_sum(t, axis=0), array.cumsum(0))
    same(ow.cumulative_prod(t, axis=1), array.cumprod(1))
    same(ow.cumulative_sum(t, axis=1, include_initial=True), np.pad(array.cumsum(1), ((0, 0), (1, 0))))
    same(ow.cumulative_sum(tensor(array[0].astype("int8"), "coo")), array[0].astype("int8").cumsum())


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    array = dense_array((8, 12))
    t = ow.asarray(torch.from_numpy(array).to_sparse_coo())
    for name in ("sum", "min", "mean", "var", "argmax", "any"):
        got = getattr(ow, name)(t, axis=1)
        assert isinstance(got.values, torch.Tensor)
        np.testing.assert_allclose(got.to_numpy(), getattr(np, name)(array, axis=1))
    np.testing.assert_allclose(ow.prod(t + 1.0).to_numpy(), (array + 1).prod())


def test_errors() -> None:
    t = ow.eye(3)
    with pytest.raises(ow.ShapeError, match="axis 2 of a tensor of rank 2\n  help: axes are -2 to 1"):
        ow.sum(t, axis=2)
    with pytest.raises(ow.ShapeError, match=r"axis \(0, -2\) names a dimension twice"):
        ow.sum(t, axis=(0, -2))
    with pytest.raises(ow.ShapeError, match=r"min over axes \(0,\) of extent 0 has no value"):
        ow.min(ow.zeros((0, 3)), axis=0)
    with pytest.raises(ow.ShapeError, match=r"cumulative_sum of a tensor of shape \(3, 3\) needs an axis"):
        ow.cumulative_sum(t)
    with pytest.raises(ow.DTypeError, match="argmax of a complex tensor"):
        ow.argmax(ow.eye(3, dtype="complex128"))
    with pytest.raises(ow.DTypeError, match="sum: complex numbers are no float64"):
        ow.sum(ow.eye(3, dtype="complex128"), axis=0, dtype="float64")


def test_slots_without_a_value_count_for_nothing() -> None:
    """Six values of `i % 6` lie in two times four slots: two of them are no elements, whatever they hold."""
    x = np.arange(1.0, 18.0)
    rows = np.arange(1.0, 35.0).reshape(17, 2)
    for levels in ("i % 6 // 4 : dense, i % 6 % 4 : dense", "i % 6 % 4 : dense, i % 6 // 4 : compressed"):
        a = ow.asarray(x).asformat(f"(i) -> (i // 6 : dense, {levels})")
        shifted = a + 1  # another fill value, which is what unused slots hold
        assert float(ow.min(a)) == 1.0
        assert float(ow.sum(shifted)) == (x + 1).sum()
        assert float(ow.prod(shifted)) == (x + 1).prod()
        b = ow.asarray(rows).asformat(f"(i, j) -> (i // 6 : dense, j : dense, {levels})") + 1
        np.testing.assert_array_equal(np.asarray(b @ np.ones(2)), (rows + 1).sum(1))
        np.testing.assert_array_equal(np.asarray(np.ones(17) @ b), (rows + 1).sum(0))
        np.testing.assert_array_equal(np.asarray(ow.min(b, axis=0)), (rows + 1).min(0))
        other = (
            ow.asarray(x[::-1].copy()).asformat("(i) -> (i // 6 : dense, i % 6 % 4 : dense, i % 6 // 4 : bitmap)") + 2
        )
        total = ow.evaluate("s += A[i] * B[i] + A[i]", A=shifted, B=other)
        assert float(total) == ((x + 1) * (x[::-1] + 2) + x + 1).sum()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_products_beside_zeros_do_not_overflow(library: str) -> None:
    """0 where an element is an unspecified zero and all are finite, whatever the product of the others is."""
    x = np.zeros((5, 6))
    x[0, 2:4], x[1], x[2, 1:3], x[3, 2:5] = 1e200, 1e50, (np.inf, 2), (1e200, np.nan, 1e200)
    rows = [0.0, 1e300, np.nan, np.nan, 0.0]
    values = x if library == "numpy" else pytest.importorskip("torch").tensor(x)
    a = ow.asarray(values, format="csr")
    for t in (a, a.asformat("coo"), a.astype("complex128") if library == "numpy" else a):
        for _ in range(3):  # the second and third are kept calls
            np.testing.assert_allclose(ow.prod(t, axis=1).to_numpy().real, rows)
            np.testing.assert_allclose(ow.prod(t[:2], axis=0).to_numpy().real, [0, 0, 1e250, 1e250, 0, 0])
        assert np.isnan(ow.prod(t).to_numpy())
        assert ow.prod(t[:1]).item() == ow.nanprod(t[3:], axis=None).item() == 0
    for product in (
        ow.prod(ow.lazy(a) * -1, axis=1), ow.prod(ow.lazy(a) - 2 * ow.lazy(a), axis=1), ow.evaluate("y[i] *= A[i,j]", A=a),
        ow.prod(ow.lazy(a) * (a != 0), axis=1),
    ):  # fmt: skip
        np.testing.assert_allclose(ow.asarray(product).to_numpy(), rows)
    finite = a[:2]
    np.testing.assert_allclose(ow.asarray(ow.prod(ow.lazy(finite) * (finite != 0), axis=1)).to_numpy(), rows[:2])
    if library == "torch":
        leaf = ow.asarray(values[:1], format="csr").requires_grad_()
        ow.prod(leaf, axis=1).sum().backward()
        assert leaf.grad.values.tolist() == [0, 0]


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "csf", "bsr(1, 1)", "dense"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp", "nanmax", "nanargmin"])
def test_an_extreme_over_an_extent_of_zero_is_refused_where_numpy_does(name: str, spec: str) -> None:
    """Where the result has no elements, too; over another extent an empty result is one."""
    for shape, axes in (((0, 0), (0, 1, None)), ((0, 3), (0, None)), ((3, 0), (1, None))):
        t = ow.asarray(np.zeros(shape), format=spec)
        for axis in axes:
            with pytest.raises(ValueError):
                getattr(np, name)(np.zeros(shape), axis=axis)
            for call in (
                lambda t=t, axis=axis: getattr(np, name)(t, axis=axis),
                lambda t=t, axis=axis: getattr(ow, name)(t, axis=axis),
            ):
                if hasattr(ow, name):
                    with pytest.raises(ValueError, match=r"extent 0 has no value|All-NaN slice encountered"):
                        call()
    assert getattr(np, name)(ow.asarray(np.zeros((0, 3)), format=spec), axis=1).shape == (0,)
