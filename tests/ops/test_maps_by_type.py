"""Maps of values that are kept with a structure give what they gave the first time, and see what has changed."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, ReadOnlyError

X = (np.arange(48).reshape(6, 8) % 5 == 0) * np.arange(1.0, 49).reshape(6, 8)
NUMBERS = (2, 2.0, 0.5, True, -1.0, 0, 1e-20, 1e30, np.inf, np.nan, 10**30, 3j)
INPLACE = {"mul": operator.imul, "div": operator.itruediv}


def kinds() -> list[Any]:
    """Arrays of both libraries, where both are there."""
    arrays: list[Any] = [X, X.astype("f4"), X.astype("i4"), X.astype("c8")]
    try:
        import torch
    except ImportError:
        return arrays
    return arrays + [torch.from_numpy(x) for x in arrays]


@pytest.mark.thin(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", ["csr", "coo", "ell(4)"])
def test_scalings_again(format: str) -> None:
    """By every kind of number, after others have been kept, new tensors and those written to alike."""
    for x in kinds():
        a = ow.asarray(x, format=format)
        for op in (operator.mul, operator.truediv, lambda y, n: n * y):
            for number in (3, 3.0, 3, *NUMBERS):
                with np.errstate(all="ignore"):
                    try:
                        expected = op(x, number)
                    except (ZeroDivisionError, RuntimeError, OverflowError):
                        continue
                    got = op(a, number)
                assert got.dtype == expected.dtype
                np.testing.assert_array_equal(got.to_numpy(), np.asarray(expected))


@pytest.mark.filterwarnings("ignore")
def test_scalings_in_place_again() -> None:
    """What shares the values follows; a fill value that changes, its sign alone too, is the tensor's own."""
    for x in kinds():
        for name, op in INPLACE.items():
            a = ow.asarray(x, format="csr")
            a = a.clone()
            shared, want = a.T, np.asarray(x).copy()
            for number in (2, 2.0, 0.5, 2.0, -1.0, 2.0):
                factor = want.dtype.type(number) if want.dtype.kind in "fc" else number
                if want.dtype.kind == "i" and (name == "div" or type(number) is float):
                    with pytest.raises(DTypeError):
                        op(a, number)
                    continue
                before = a.values
                op(a, number)
                want = want * factor if name == "mul" else want / factor
                np.testing.assert_array_equal(a.to_numpy(), want)
                if number > 0 and a.values is before and shared.fill_value == 0:
                    np.testing.assert_array_equal(shared.to_numpy(), a.to_numpy().T)
            assert str(a.fill_value) == str(-0.0 if want.dtype.kind == "f" else a.fill_value)


def test_warnings_and_refusals_are_those_of_the_first_call() -> None:
    a = ow.asarray(X, format="csr").clone()
    for _ in range(3):
        a *= 1.0
    with np.errstate(all="warn"):
        _warns(a)
    a.values.flags.writeable = False
    with pytest.raises(ReadOnlyError):
        a *= 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (a * 2.0).check()


def _warns(a: Any) -> None:
    large = ow.Tensor._from_storage(a._storage.with_values(a.values * 1e300))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="overflow"):
            large * 1e10
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        large *= 1e10
    assert np.isfinite(large.values).all()


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_maps_of_torch_see_what_changes() -> None:
    """Gradients, tangents, transforms, the default type and memory are asked at every call."""
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X)
    a = ow.asarray(x.to_sparse_csr())
    functions = (torch.sin, torch.cos, torch.neg, torch.conj, torch.relu, lambda t: t * 2, lambda t: t.abs())
    for f in functions:
        for _ in range(3):
            np.testing.assert_array_equal(f(a).to_numpy(), f(x).numpy())
        w = ow.asarray(x.to_sparse_csr()).requires_grad_()
        w = ow.Tensor._from_storage(a._storage.with_values(a.values.clone().requires_grad_()))
        f(w).values.sum().backward()
        assert w.values.grad is not None
        with torch.no_grad():
            assert f(w).requires_grad is f(w.values).requires_grad

        def of_values(v: Any, f: Any = f) -> Any:
            return f(ow.Tensor._from_storage(a._storage.with_values(v))).values

        tangent = torch.func.jvp(of_values, (a.values,), (a.values,))[1]
        torch.testing.assert_close(tangent, torch.func.jvp(f, (a.values,), (a.values,))[1])
        batch = torch.stack([a.values, 2 * a.values])
        torch.testing.assert_close(torch.func.vmap(of_values)(batch), f(batch))
    whole = ow.asarray(torch.from_numpy(X.astype("i4")).to_sparse_csr())
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            assert torch.sin(whole).dtype == dtype
        finally:
            torch.set_default_dtype(torch.float32)


def test_norms_again() -> None:
    for dtype in ("f4", "f8", "c16", "i8"):
        x = X.astype(dtype)
        a = ow.asarray(x, format="csr")
        for keepdims in (False, True, False, False):
            got = ow.linalg.norm(a, keepdims=keepdims)
            np.testing.assert_allclose(got.to_numpy(), np.linalg.norm(x, keepdims=keepdims), rtol=1e-6)
    a = ow.asarray(X, format="csr")
    large = ow.Tensor._from_storage(a._storage.with_values(a.values * 1e300))
    for t, name in ((a, None), (large, "overflow"), (a, None), (large, "overflow")):
        with np.errstate(all="warn"), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ow.linalg.norm(t)
        assert [name in str(w.message) for w in found] == [True] * len(found)
        assert bool(found) is (name is not None)


def test_numpys_functions_again() -> None:
    a = ow.asarray(X, format="csr")
    for _ in range(2):
        for kwargs in ({}, {"axis": 1}, {"axis": None}, {"axis": 0, "keepdims": True}, {"dtype": np.float32}):
            np.testing.assert_allclose(np.asarray(np.sum(a, **kwargs).to_numpy()), np.sum(X, **kwargs), rtol=1e-6)
        np.testing.assert_array_equal(np.sum(a, 0).to_numpy(), X.sum(0))
        np.testing.assert_array_equal(np.max(a, axis=1).to_numpy(), X.max(1))
        np.testing.assert_allclose(np.std(a, ddof=1).to_numpy(), X.std(ddof=1))
        out = np.empty(8)
        assert np.sum(a, axis=0, out=out) is out
        np.testing.assert_array_equal(np.tril(a, 1).to_numpy(), np.tril(X, 1))
        with pytest.raises(TypeError):
            np.sum(a, axes=1)


def test_numbers_on_the_left_of_torchs_tensors_are_not_rounded() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float64, torch.complex128):
        a = ow.asarray(torch.from_numpy(X).to(dtype), format="csr")
        for number in (0.1, 0.1 + 0.3j):
            if dtype.is_complex or type(number) is float:
                for op in (operator.mul, operator.add, operator.sub):
                    got = op(number, a)
                    assert torch.equal(got.values, op(number, a.values))
                    assert got.fill_value == op(number, 0.0)
