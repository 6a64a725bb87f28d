"""The array API's elementwise functions, dtypes and creation functions, against NumPy."""

from __future__ import annotations

import itertools
import math
from inspect import isfunction, signature
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from matrix import FORMATS, SHAPES, dense_array, same, tensor

import openwork as ow

UNARY = (  # noqa: SIM905
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log10 log1p "
    "log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (  # noqa: SIM905
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()
QUOTIENTS = ("divide", "floor_divide", "remainder")
"""An unspecified zero divided by a dense zero is zero, not NaN."""
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
NUMPY = {"bitwise_invert": "invert"}
SOME = (
    "dense", "coo", "csr", "csc", "bsr(2, 3)", "dia", "ell(12)", "bitmap", "dcsr",
    "(i, j) -> (i : dense, j : compressed(nonunique, unordered))", "(i, j) -> (i + j : compressed, i : range)",
)  # fmt: skip


def numpy_function(name: str) -> Any:
    return getattr(np, NUMPY.get(name, name))


def close(got: Any, want: Any) -> None:
    got = got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype in (np.float32, np.complex64) else 1e-13)


@pytest.mark.thin(63)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("spec", SOME)
def test_unary(name: str, spec: str) -> None:
    array = dense_array((7, 11)) / 4
    with np.errstate(all="ignore"):
        for a in (array, 0.0 - array, np.where(array > 0.7, np.nan, array)):
            close(getattr(ow, name)(tensor(a, spec)), numpy_function(name)(a))


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "complex128"])
def test_unary_dtypes(name: str, dtype: str) -> None:
    array = dense_array((7, 11), dtype=dtype)
    with np.errstate(all="ignore"):
        try:
            want = numpy_function(name)(array)
        except TypeError:
            with pytest.raises(ow.DTypeError, match="astype"):
                getattr(ow, name)(tensor(array, "csr"))
            return
        if want.dtype != np.float16:
            close(getattr(ow, name)(tensor(array, "csr")), want)


@pytest.mark.thin(68)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("spec", SOME)
def test_binary(name: str, spec: str) -> None:
    a, b = dense_array((7, 11), 1), dense_array((7, 11), 2)
    function, oracle = getattr(ow, name), numpy_function(name)
    with np.errstate(all="ignore"):
        close(function(tensor(a, spec), 2.0), oracle(a, 2.0))
        close(function(2.0, tensor(a, spec)), oracle(2.0, a))
        d = b + 1 if name in QUOTIENTS else b
        close(function(tensor(a, spec), ow.asarray(d)), oracle(a, d))
        if name != "nextafter" or spec == "dense":
            close(function(tensor(a, spec), tensor(b, spec)), oracle(a, b))


@pytest.mark.parametrize("name", BITS)
def test_bits(name: str) -> None:
    a, b = dense_array((7, 11), 1, "int32"), dense_array((7, 11), 2, "int32")
    close(getattr(ow, name)(tensor(a, "csr"), tensor(b, "coo")), numpy_function(name)(a, b))
    close(getattr(ow, name)(tensor(a, "csr"), 2), numpy_function(name)(a, np.int32(2)))
    close(ow.bitwise_invert(tensor(a, "csr")), ~a)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", SOME)
def test_where_and_clip(spec: str) -> None:
    a, b, c = (dense_array((7, 11), k) for k in range(3))
    t, u, v = (tensor(x, spec) for x in (a, b, c))
    same(ow.where(v, t, u), np.where(c, a, b))
    same(ow.where(v > 1, t, 2.5), np.where(c > 1, a, 2.5))
    same(ow.where(v > 1, 0.0, t), np.where(c > 1, 0.0, a))
    same(ow.where(v > 1, ow.asarray(b), t), np.where(c > 1, b, a))
    same(
        ow.where(v > 1, t.astype("int32"), u.astype("float32")), np.where(c > 1, a.astype("int32"), b.astype("float32"))
    )
    same(ow.clip(t, 1, 3), np.clip(a, 1, 3))
    same(ow.clip(t, max=2), np.minimum(a, 2))
    same(ow.clip(t, None, ow.asarray(b)), np.minimum(a, b))
    assert ow.clip(t, 1, 3).fill_value == 1.0


@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool", "float64"])
def test_choices_beyond_64_bits(dtype: str) -> None:
    """Refused beside integers as NumPy does, taken beside floats."""
    test, x = np.array([True, False]), np.array([0, 1], dtype)
    for made in (ow.asarray(x, format="coo"), ow.asarray(x)):
        sparse = ow.asarray(test, format=made.format)
        for number in (2**64, -(2**63) - 1, 2**70):
            for choices in ((number, made), (made, number)):
                if dtype == "float64":
                    want = np.where(test, *(x if c is made else c for c in choices))
                    np.testing.assert_array_equal(ow.where(sparse, *choices).to_numpy(), want)
                else:
                    with pytest.raises(OverflowError, match="does not fit"):
                        ow.where(sparse, *choices)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "logaddexp"])
def test_arrays_and_numbers_alone_give_tensors(name: str) -> None:
    a, b = dense_array((3, 4), 1) + 1, dense_array((3, 4), 2) + 1
    function, oracle = getattr(ow, name), getattr(np, name)
    for x, y in ((a, b), (a, 2.0), (2.0, a), (1.5, 2.0), (list(a), list(b))):
        got = function(x, y)
        assert isinstance(got, ow.Tensor)
        same(got, oracle(x, y))


def test_errors() -> None:
    with pytest.raises(ow.ShapeError, match=r"nextafter: shapes .* do not broadcast"):
        ow.nextafter(ow.eye(3), ow.eye(2))
    with pytest.raises(ow.DTypeError, match="bitwise_invert does not take float64\n  help: convert"):
        ow.bitwise_invert(ow.eye(3))
    with pytest.raises(ow.DTypeError, match="isdtype: 'float' is not a kind of dtypes\n  supported: bool, signed"):
        ow.isdtype(ow.float32, "float")
    with pytest.raises(ow.DTypeError, match="result_type: expected a tensor, array or dtype"):
        ow.result_type(1, 2.0)
    with pytest.raises(ow.DTypeError, match=r"finfo: int32 is not a floating-point dtype\n  help: iinfo\(\)"):
        ow.finfo(ow.int32)
    with pytest.raises(ow.DTypeError, match=r"iinfo: float32 is not an integer dtype\n  help: finfo\(\)"):
        ow.iinfo(ow.float32)
    with pytest.raises(ow.ShapeError, match=r"shape \(2, -1\) has a negative extent"):
        ow.zeros((2, -1))
    with pytest.raises(ow.ShapeError, match=r"a shape is a tuple of integers; got: 2\.5"):
        ow.zeros(2.5)  # type: ignore[arg-type]
    with pytest.raises(ow.DTypeError, match="full: 1j is no float64\n  help: give dtype='complex128'"):
        ow.full(3, 1j, dtype="float64")
    with pytest.raises(ow.UnsupportedError, match="meshgrid: indexing='yx'"):
        ow.meshgrid([1], indexing="yx")


DTYPES = [*"bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()]  # noqa: SIM905


@given(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=3), st.sampled_from(DTYPES))
def test_promotion_is_numpys(names: list[str], other: str) -> None:
    assert ow.result_type(*names) == np.result_type(*map(np.dtype, names))
    assert ow.result_type(*map(np.dtype, names), ow.eye(2, dtype=names[0])) == np.result_type(*map(np.dtype, names))
    assert ow.can_cast(names[0], other) == (np.result_type(names[0], other) == np.dtype(other))


def test_promotion_of_three_has_no_order() -> None:
    for names in itertools.product(("int8", "uint16", "int64", "float16", "float32", "complex64"), repeat=3):
        want = np.result_type(*map(np.dtype, names))
        assert ow.result_type(*names) == want
        if len(set(names)) == 3:
            assert ow.concat([ow.zeros(2, dtype=name) for name in names]).dtype == want
    many = {str(ow.result_type(*names)) for names in itertools.permutations(("bfloat16", "int8", "uint16"))}
    assert len(many) == 1


def test_dtypes() -> None:
    assert ow.result_type(ow.float32, 2.0) == ow.float32
    assert ow.result_type(ow.int8, 2.0) == ow.float64
    assert ow.isdtype(ow.float32, "real floating")
    assert ow.isdtype(ow.int8, ("bool", "integral"))
    assert ow.isdtype("uint8", "unsigned integer")
    assert not ow.isdtype(ow.bool, "numeric")
    assert ow.finfo(ow.complex64).eps == np.finfo(np.float32).eps
    assert ow.finfo("float64").smallest_normal == np.finfo(np.float64).smallest_normal
    assert (ow.iinfo(ow.int8).min, ow.iinfo(ow.uint8).max) == (-128, 255)
    assert ow.astype(ow.eye(2), ow.float32).dtype == ow.float32
    assert ow.astype(np.eye(2), "float32").dtype == np.float32
    x = np.eye(2)
    assert ow.astype(x, "float64", copy=False) is x
    assert ow.astype(x, "float64") is not x
    assert ow.isdtype(ow.float32, np.float32)
    assert not ow.isdtype(ow.float32, ow.float64)
    assert repr(ow.finfo("float32")) == (
        "finfo(float32, eps=1.1920928955078125e-07, max=3.4028234663852886e+38, smallest_normal=1.1754943508222875e-38)"
    )
    assert repr(ow.iinfo("int8")) == "iinfo(int8, min=-128, max=127)"
    assert (ow.e, ow.pi, ow.inf, ow.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(ow.nan)
    info = ow.__array_namespace_info__()
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    assert info.default_dtypes()["indexing"] == np.int64
    assert info.default_device() in info.devices()
    assert "bool" in info.dtypes()
    assert ow.eye(2).__array_namespace__(api_version="2024.12") is ow


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (0, 4), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float64", "complex64"])
def test_constants_are_sparse(shape: tuple[int, ...], dtype: str) -> None:
    for name, value in (("zeros", 0), ("ones", 1)):
        t = getattr(ow, name)(shape, dtype=dtype)
        same(t, getattr(np, name)(shape, dtype))
        assert not shape or (t.nse == 0 and t.fill_value == value and t.is_coalesced())
        same(getattr(ow, name + "_like")(t), getattr(np, name)(shape, dtype))
    same(ow.full(shape, True, dtype=dtype, format="dense"), np.ones(shape, dtype))
    same(ow.empty(shape, dtype=dtype), np.zeros(shape, dtype))


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", FORMATS[2])
def test_constants_in_any_format(spec: str) -> None:
    for shape in SHAPES[2]:
        try:
            t = ow.full(shape, 2.5, format=spec)
        except ow.FormatError:  # an `nm` level holds a fixed number of elements
            continue
        same(t, np.full(shape, 2.5))
        assert t.format == ow.format(spec, 2)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(-7, 7))
def test_eye(n: int, m: int, k: int) -> None:
    same(ow.eye(n, m, k=k), np.eye(n, m, k))
    same(ow.eye(n, m, k=k, format="csr", dtype="int8"), np.eye(n, m, k, "int8"))


def test_ranges() -> None:
    for args in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0, 1, 0.25), (3, 1), (3.5,), (1, 4.0)):
        same(ow.arange(*args), np.arange(*args))
    same(ow.arange(4, dtype="float32"), np.arange(4, dtype="float32"))
    same(ow.arange(1.0, 3.0, 0.5), np.arange(1.0, 3.0, 0.5))
    same(ow.arange(2.5, -1.0, -0.75), np.arange(2.5, -1.0, -0.75))
    same(ow.linspace(0, 1, 5, endpoint=False), np.linspace(0, 1, 5, endpoint=False))
    for got, want in zip(ow.meshgrid(ow.arange(3), ow.arange(4)), np.meshgrid(np.arange(3), np.arange(4)), strict=True):
        same(got, want)
    x = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(ow.from_dlpack(x).to_numpy(), x)


def test_torch_keeps_its_dtypes() -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.eye(3, dtype=torch.float32).to_sparse_coo())
    assert ow.sin(t).dtype == torch.float32
    assert ow.add(t, 1.5).dtype == torch.float32
    assert ow.maximum(t, 0.5).to_dense().equal(torch.eye(3).clamp(min=0.5))
    assert ow.result_type(torch.int64, torch.float32) == torch.float32
    assert ow.zeros((2, 2), dtype=torch.float16).dtype == torch.float16
    assert ow.zeros_like(t).dtype == torch.float32
    assert ow.divide(2.0, t).to_dense().equal(2.0 / torch.eye(3))
    assert ow.imag(t).nse == t.nse


@pytest.mark.parametrize("spec", ["coo", "csf", "bitmap", "(i) -> (i // 3 : compressed, i % 3 : dense)"])
@pytest.mark.parametrize("name", ["maximum", "add", "multiply", "divide"])
def test_sparse_operands_are_stretched_to_dense_ones(spec: str, name: str) -> None:
    a, b = dense_array((7,)), dense_array((3, 1), 1) + 1
    for fill in (0.0, 2.0):
        t = ow.asarray(a, format="coo", fill_value=fill).asformat(ow.format(spec, 1))
        same(getattr(ow, name)(t, ow.asarray(b)), getattr(np, name)(a, b))
        same(getattr(ow, name)(ow.asarray(b[:0]), t), getattr(np, name)(b[:0], a))
    assert not ow.multiply(tensor(a, spec), b).format.is_dense


def test_diagonals_beyond_any_matrix_are_empty() -> None:
    for k in (2**63, -(2**63) - 1, 10**30):
        assert ow.eye(3, k=k).nse == 0
        assert ow.eye(0, k=k).shape == (0, 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_that_are_computed_in_others(dtype: str) -> None:
    x = np.array([[0, 1.5, 0], [2, 0, -3]], dtype)
    t = ow.asarray(x, format="csr")
    assert ow.erf(t).dtype == dtype
    for _ in range(4):
        same(ow.mean(t, axis=1), x.mean(1))
        same(ow.mean(t, axis=0), x.mean(0))
    same(np.identity(3, dtype=dtype, like=t), np.identity(3, dtype))


def test_batches_without_rows() -> None:
    for shape in ((2, 0, 3), (0, 2, 3), (2, 3, 0)):
        t = ow.asarray(np.zeros(shape), format="(b, i, j) -> (b : batch, i : dense, j : compressed)")
        t.check()
        same(t.asformat("coo").asformat(t.format), np.zeros(shape))


def test_pointwise_takes_whatever_is_a_tensor() -> None:
    a, b = dense_array((7, 11), 1), dense_array((7, 11), 2)
    t = tensor(a, "csr")
    for x in (ow.lazy(t), a, scipy.sparse.csr_array(a)):
        same(ow.pointwise("A * B", {"A": x, "B": tensor(b, "csr")}), a * b)
    same(ow.pointwise("C[j,i] = A[i,j] * 2.0", {"A": t}), a.T * 2)


def test_extremes_beside_fill_values() -> None:
    """NaN, infinities and ties, stored and as what is not stored."""
    for fill in (0.0, np.nan, np.inf, -np.inf, 5.0):
        vectors = (
            [0, np.nan],
            [np.nan, 0],
            [fill, np.nan, fill],
            [3, fill],
            [-3, fill, 9],
            [fill, fill],
            [np.inf, fill, -np.inf],
        )
        for x in vectors:
            t = ow.asarray(np.array(x, float), format="coo", fill_value=fill)
            for name in ("argmin", "argmax", "nanargmin", "nanargmax"):
                if name[0] == "a" or not np.isnan(x).all():
                    assert int(getattr(ow, name)(t)) == getattr(np, name)(x), (name, x, fill)


def test_calls_after_the_first_keep_fill_values() -> None:
    x = np.array([[0, 1.5, 0, -2], [3, 0, 0, 0]])
    for fill in (0.0, 2.0, -1.0):
        t = ow.asarray(np.where(x, x, fill), format="csr", fill_value=fill)
        for number in (3.0, 4.0, -5.0, 6.0):
            got = t * number
            assert str(got.fill_value) == str(fill * number)
            same(got, t.to_numpy() * number)
        for op in ("sum", "prod"):
            for axis in (None, 0, 1):
                same(getattr(ow, op)(t, axis=axis), getattr(np, op)(t.to_numpy(), axis=axis))


def test_results_keep_their_structure() -> None:
    a = dense_array((7, 11), 1)
    t, row = tensor(a, "csr"), np.arange(1.0, 12)
    for function in (ow.remainder, ow.floor_divide, ow.divide, ow.multiply):
        assert function(t, row).format == t.format
    assert ow.quantile(ow.asarray(a), [0.2, 0.5], axis=0).format == ow.format("dense", 2)
    assert not ow.sum(ow.asarray(np.stack([a, a]), format="coo"), axis=0).format.is_dense
    assert ow.eye(3, format="csr").format == ow.format("csr")
    b = t.with_values(np.where(t.values > 2, t.values, 0))
    assert [ow.prune(x).nse for x in (t, b, t)] == [np.count_nonzero(x.values) for x in (t, b, t)]
    lazy = ow.multiply(ow.lazy(t), np.full(11, np.inf), zero_annihilates=True)
    same(ow.compute(lazy), np.where(a, np.inf, 0))
    assert type(ow.compute(ow.lazy(a) + 1)) is np.ndarray
    assert ow.lazy(lazy) is lazy
    same(ow.compute(ow.matrix_transpose(ow.lazy(t))), a.T)
    same(ow.compute(ow.positive(ow.lazy(t))), a)
    limits = ow.__array_namespace_info__().capabilities()
    assert limits == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}


def test_parts_of_an_element_are_rounded_together() -> None:
    spec = "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"
    t = ow.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], np.array([0.5, 0.5, 3.7]), (3, 4)).asformat(spec)
    same(t.astype("int32"), t.to_numpy().astype("int32"))
    same(ow.square(ow.kron(t, t)), np.square(np.kron(t.to_numpy(), t.to_numpy())))


def test_memory_of_dlpack_is_copied_where_asked() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for source in (x, ow.asarray(x)):
        assert not np.shares_memory(ow.from_dlpack(source, copy=True).to_numpy(), x)
        assert np.shares_memory(ow.from_dlpack(source, copy=False).to_numpy(), x)


def test_blocks_of_vectors_are_rows() -> None:
    same(ow.block_diag([[[1, 2]], 3, [4, 5]]), np.array([[1, 2, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 4, 5]]))
    same(ow.block_diag([tensor(dense_array((7, 11)), "csr")]), dense_array((7, 11)))


def test_topk_of_dense_tensors() -> None:
    x = dense_array((7, 11))
    for largest in (True, False):
        values, places = ow.topk(ow.asarray(x), 3, axis=1, largest=largest)
        order = np.sort(x, axis=1)
        same(values, order[:, ::-1][:, :3] if largest else order[:, :3])
        same(ow.take_along_axis(ow.asarray(x), places, axis=1), values.to_numpy())


def test_an_elements_own_update_reads_it() -> None:
    x = dense_array((7, 11))
    same(tensor(x, "csr").at[2].get(), x[2])
    same(tensor(x, "csr").reshape(shape=(11, 7)), x.reshape(11, 7))


def test_sums_over_fibres_of_huge_extents() -> None:
    crd = np.array([[0, 5, 10**6 - 1, 5], [1, 2, 3, 0], [10**6 - 1, 7, 7, 7]])
    t = ow.sparse_coo_tensor(crd, np.array([1.0, 2, 3, 4]), (10**6, 4, 10**6))
    total = ow.sum(t, axis=1)
    assert total.nse == 3
    assert [total.item(*k) for k in ((0, 10**6 - 1), (5, 7), (10**6 - 1, 7), (5, 8))] == [1, 6, 3, 0]


def test_a_random_element() -> None:
    for density in (0, 1):
        t = ow.random((), density=density)
        assert (t.shape, t.values.shape) == ((), (1,))
        assert bool(t.to_numpy()) is bool(density)


def test_like_dense_tensors_in_the_order_that_is_asked_for() -> None:
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        t = ow.asarray(np.zeros(shape))
        for order in ("K", "C", "A", "F"):
            got = ow.full_like(t, 2.0, order=order)
            want = np.full_like(np.zeros(shape), 2.0, order=order)
            same(got, want)
            assert got.format == ow.format("dense_f" if order == "F" and len(shape) > 1 else "dense", len(shape))


def test_kept_dimensions_have_extent_1() -> None:
    """Of every public reduction, with elements that are NaN."""
    x = np.where(np.arange(20).reshape(4, 5) % 3 == 1, np.arange(20.0).reshape(4, 5), 0)
    x[1, 2] = np.nan
    t, count = ow.asarray(x, format="csr"), 0
    for space in (ow, ow.linalg):
        for name in dir(space):
            function = getattr(space, name)
            if name.startswith("_") or not isfunction(function) or "keepdims" not in signature(function).parameters:
                continue
            given = (0.5,) if "quantile" in name or "percentile" in name else ()
            for axis, shape in ((0, (1, 5)), (None, (1, 1))):
                axes = ((0, 1), (1, 1)) if name == "matrix_norm" else (axis, shape)
                got = function(t, *given, axis=axes[0])
                kept = function(t, *given, axis=axes[0], keepdims=True)
                assert kept.shape == axes[1], (name, axis)
                np.testing.assert_array_equal(np.ravel(kept.to_numpy()), np.ravel(got.to_numpy()), name)
            count += 1
    assert count > 25


def test_indices_and_operands_of_either_kind() -> None:
    """Indices in a sparse tensor, and functions of the array library of a sparse operand beside an array."""
    x, places = np.arange(12.0).reshape(3, 4), np.array([[0, 2], [0, 1]])
    a = ow.asarray(x, format="csr")
    for index in (ow.asarray(places, format="csr"), ow.asarray(places), places):
        same(ow.take(a, index, axis=0), x[places])
    for left, right in [(a, x + 1), (x + 1, a), (a, ow.asarray(x + 1))]:
        found = ow.logaddexp(left, right)
        np.testing.assert_allclose(found.to_numpy() if isinstance(found, ow.Tensor) else found, np.logaddexp(x, x + 1))
