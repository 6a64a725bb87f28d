"""Operations on zeros of both signs, infinities, NaN and the ends of a dtype: kernel, interpreter and NumPy agree."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.ir.arithmetic import FUNCTIONS
from openwork.runtime.values import UNARY, apply

INF, NAN = np.inf, np.nan
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, INF, -INF, NAN]
PARTS = [0.0, -0.0, 1.0, -3.0, 2.0, INF, -INF, NAN]


def awkward(dtype: str) -> np.ndarray[Any, Any]:
    """The values that an operation may get wrong."""
    d = np.dtype(dtype)
    if d.kind == "c":
        return np.array([complex(re, im) for re in PARTS for im in PARTS], d)
    if d.kind == "f":
        limits = np.finfo(d)
        return np.array([*REAL, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal], d)
    limits = np.iinfo(d)
    return np.array([0, 1, 2, 3, limits.max, limits.min, limits.min + 1], d)


def stored(values: np.ndarray[Any, Any]) -> ow.Tensor:
    """A vector that specifies every element."""
    n = len(values)
    pos, crd = {0: np.array([0, n], np.int32)}, {0: np.arange(n, dtype=np.int32)}
    return ow.assemble("(i) -> (i : compressed)", (n,), pos=pos, crd=crd, values=values)


def equal(got: Any, want: Any, rtol: float) -> Any:
    """Element by element, part by part: NaN and infinities at the same places, signs of zeros aside."""
    if got.dtype.kind == "c":
        parts = equal(got.real, want.real, rtol) & equal(got.imag, want.imag, rtol)
        with np.errstate(all="ignore"):
            return parts | (np.isfinite(want) & (abs(got - want) <= rtol * abs(want)))
    return np.isclose(got, want, rtol=rtol, atol=1e-12, equal_nan=got.dtype.kind == "f")


UNARY_OPS = (
    "abs", "sign", "sqrt", "exp", "expm1", "log", "log1p", "sin", "cosh", "round", "reciprocal", "square", "isnan", "isinf",
    "isfinite", "neg", "conj",
)  # fmt: skip
BINARY_OPS = ("mul", "div", "pow", "min", "lt", "ne")
CASES = [
    *((op, "complex128") for op in (*UNARY_OPS, *BINARY_OPS)),
    *((op, "float64") for op in ("sign", "log", "mod", "floordiv", "pow", "copysign", "atan2", "hypot", "min")),
    *((op, "int8") for op in ("floordiv", "mod", "abs", "shl", "sign")),
    ("pow", "uint8"), ("pow", "complex64"), ("div", "complex64"), ("sign", "float32"),
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_kernel_interpreter_and_numpy_agree(op: str, dtype: str) -> None:
    x = awkward(dtype)
    args = (x,) if op in UNARY else tuple(v.ravel() for v in np.meshgrid(x, x, indexing="ij"))
    text = f"{op}({', '.join(f'{name}[i]' for name in 'AB'[: len(args)])})"
    rtol = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    with np.errstate(all="ignore"):
        want = apply(op, *args)
        got = ow.pointwise(text, dict(zip("AB", map(stored, args), strict=False))).to_numpy()
        reference = np.asarray(FUNCTIONS[op](*args)).astype(want.dtype)
    assert got.dtype == want.dtype
    for found in (got, reference):
        wrong = np.flatnonzero(~equal(found, want, rtol))
        assert not len(wrong), [(*(a[k] for a in args), found[k], want[k]) for k in wrong[:5]]


@pytest.mark.parametrize("spec", ["coo", "csr", "dcsr", "bitmap", "dense"])
def test_a_stored_zero_to_the_power_of_zero_is_one(spec: str) -> None:
    base = ow.assemble("coo", (2, 2), pos={0: [0, 2]}, crd={0: [0, 1], 1: [1, 0]}, values=np.array([0j, 2j]))
    for exponent in (base, ow.asarray(np.full((2, 2), -1 + 1j), format="coo")):
        with np.errstate(all="ignore"):
            want = np.power(base.to_numpy(), exponent.to_numpy())
            got = base.asformat(spec) ** exponent.asformat(spec)
        np.testing.assert_array_equal(np.asarray(got.to_numpy()), want)


def test_the_sign_of_a_negative_zero_is_zero() -> None:
    got = ow.pointwise("sign(A[i])", {"A": stored(np.array([-0.0, 0.0, NAN]))}).values
    assert not np.signbit(np.asarray(got)[:2]).any()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "uint64", "bool"])
@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_integers_by_a_fill_value_of_nan(dtype: str, name: str) -> None:
    """NaN, not what lies in memory: LLVM takes an fmod of what cannot be infinite for one that cannot be NaN."""
    b = np.array([0, 3, 0, 1, 255, 2]).astype(dtype)
    a = np.array([np.nan, np.nan, 0.0, np.nan, np.nan, 1.0])
    with np.errstate(all="ignore"):
        got = getattr(ow, name)(ow.asarray(b, format="coo"), ow.asarray(a, format="coo", fill_value=np.nan))
        np.testing.assert_array_equal(got.to_numpy(), getattr(np, name)(b, a))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bounded_function_of_nan_modulo_a_number(dtype: str) -> None:
    x = np.array([np.nan, 0, 0.5, -2, np.nan, 7], dtype)
    for number in (np.nan, 2.0, -0.5):
        with np.errstate(all="ignore"):
            got = ow.fused(lambda t, n=number: ow.sin(t) % n)(ow.asarray(x, format="coo"))
            np.testing.assert_allclose(got.to_numpy(), np.sin(x) % np.dtype(dtype).type(number), rtol=1e-6)


def test_subclasses_of_arrays_are_plain_operands() -> None:
    class Sub(np.ndarray):
        pass

    x = np.arange(1.0, 4)
    t = ow.asarray(np.eye(3), format="csr")
    operators = (operator.mul, operator.truediv, operator.add, operator.sub, operator.eq)
    for y in (x.view(Sub), x[None].view(np.matrix), np.ma.array(x, mask=[False] * 3)):
        for call in operators:
            got = call(t, y)
            got = got.to_numpy() if isinstance(got, ow.Tensor) else got
            assert type(got) is np.ndarray
            assert got.tolist() == call(np.eye(3), x).tolist(), (type(y), call)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", ["csr", "dia", "bitmap", "ell(3)", "bsr(2, 2)", "dense"])
def test_complex_products_over_full_and_partial_fibres(format: str, library: str) -> None:
    """torch's `0j ** 0j` is NaN, and a full fibre has no element of the fill value."""
    x = np.array([[1, 0, 2, 0], [3, 0, 0, 4], [5, 6, 0, 0], [7, 0, 8, 0]]) * (1 + 2j)
    t = ow.asarray(x if library == "numpy" else pytest.importorskip("torch").tensor(x), format=format)
    for fill in (0, 1j):
        for axis in (0, 1, None):
            found = ow.prod(t + fill, axis=axis)
            np.testing.assert_allclose(
                np.asarray(found.to_dense() if axis is not None else found), np.prod(x + fill, axis=axis)
            )


@pytest.mark.parametrize("format", ["csr", "dia", "dense"])
def test_complex_powers_of_zero_are_one_in_either_library(format: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[0, 1 + 1j], [2j, 0]])
    for t, zeros in (
        (ow.asarray(x, format=format), 0 * x),
        (ow.asarray(torch.tensor(x), format=format), torch.tensor(0 * x)),
    ):
        for exponent in (t * 0, zeros, 0):
            np.testing.assert_array_equal(np.asarray(ow.asarray(t**exponent).to_dense()), np.ones((2, 2)))
        np.testing.assert_array_equal(np.asarray(ow.asarray(0j ** (t * 0)).to_dense()), np.ones((2, 2)))


@pytest.mark.parametrize("format", ["csr", "dense"])
@pytest.mark.parametrize("name", ["maximum", "minimum", "remainder", "atan2", "copysign"])
def test_numbers_beside_integers_of_torch_are_not_rounded(name: str, format: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[0, 1, 5], [7, 0, 2]], np.int8)
    got = getattr(ow, name)(ow.asarray(torch.tensor(x), format=format), 1.5)
    assert got.dtype == torch.float32
    numpys = {"atan2": "arctan2"}.get(name, name)
    np.testing.assert_allclose(np.asarray(got.to_dense()), getattr(np, numpys)(x, 1.5), rtol=1e-6)


@pytest.mark.parametrize("format", ["csr", "dense"])
def test_integers_that_a_dtype_does_not_hold_are_refused_with_a_remedy(format: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[0, 1, 255]], np.uint8)
    for number in (-1, 256):
        for name in ("add", "multiply", "maximum", "bitwise_or"):
            with pytest.raises(OverflowError, match=f"{name}: .*\n  help: ") as caught:
                getattr(ow, name)(ow.asarray(x, format=format), number)
            assert isinstance(caught.value, ow.DTypeError)
    with pytest.raises(ow.DTypeError, match="help"):
        ow.maximum(ow.asarray(torch.tensor(x), format=format), 256)
    with pytest.raises(ow.DTypeError, match="help"):
        ow.minimum(ow.asarray(torch.tensor(x), format=format), 2j)


@pytest.mark.parametrize("format", ["csr", "coo", "dense"])
def test_values_with_more_dimensions_than_the_elements_set(format: str) -> None:
    for value in (np.ones((1, 3)), np.arange(3.0).reshape(1, 1, 3), np.ones((1, 1))):
        want, t = np.eye(3), ow.asarray(np.eye(3), format=format)
        want[1] = value
        np.testing.assert_array_equal(t.at[1].set(value).to_numpy(), want)
    with pytest.raises(ow.ShapeError, match="could not broadcast"):
        ow.asarray(np.eye(3), format=format).at[1].set(np.ones((3, 1)))


@pytest.mark.parametrize("format", ["coo", "dense"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_signs_over_torch_are_those_of_kernels(dtype: str, format: str) -> None:
    """torch's sign of NaN is 0, and that of a complex number with an infinite part NaN."""
    torch = pytest.importorskip("torch")
    x = awkward(dtype)
    t = ow.asarray(torch.from_numpy(x), format=format).requires_grad_()
    got = ow.sign(t)
    with np.errstate(all="ignore"):
        want = np.sign(x)
    assert equal(got.detach().to_numpy(), want, 1e-3 if dtype == "float16" else 1e-6).all()
    if want.dtype.kind == "f":
        got.sum().backward()
        assert not t.grad.to_numpy().any()


@pytest.mark.parametrize("format", ["coo", "dense"])
def test_anything_complex_to_the_power_zero_is_one_over_torch(format: str) -> None:
    torch = pytest.importorskip("torch")
    x = awkward("complex128")
    t = ow.asarray(torch.from_numpy(x), format=format)
    for zero in (0, 0j, ow.asarray(torch.zeros(len(x), dtype=torch.complex128))):
        np.testing.assert_array_equal(np.asarray(ow.asarray(t**zero).to_dense()), np.ones(len(x)))
