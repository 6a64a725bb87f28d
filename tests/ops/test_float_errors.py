"""Warnings of elementwise operations are NumPy's, of the same kinds and under `np.errstate`."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.storage.storage import Storage

X = np.array([[0.0, 1, 0, -4], [2, 0, 0, 1e200], [0, 0, 0, 5]])
Y = np.array([[0.0, 3, 1, 0], [2, 0, 0, 1e200], [0, -7, 0, 0]])
FORMATS = ("coo", "csr", "dcsr", "bitmap", "bsr(2,2)", "ell(3)", "dense", "(i, j) -> (j : compressed, i : compressed)")


def said(function: Callable[[], Any]) -> set[str]:
    """The kinds of warnings."""
    with np.errstate(all="warn"):
        return said_as_asked(function)


def said_as_asked(function: Callable[[], Any]) -> set[str]:
    """The same under the caller's `np.errstate`."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    assert all(w.category is RuntimeWarning for w in found)
    return {str(w.message).split(" encountered")[0] for w in found}


UNARY = (np.log, np.sqrt, np.reciprocal, np.exp, np.arcsin, np.log1p, np.square, np.sin, np.abs, np.arctanh)
BINARY = (
    operator.truediv, operator.mul, operator.add, operator.sub, operator.pow, operator.floordiv, operator.mod, np.maximum,
    np.hypot, operator.lt,
)  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("f", UNARY)
def test_functions(f: Any, spec: str) -> None:
    a = ow.asarray(X, format=spec)
    assert said(lambda: f(a)) == said(lambda: f(X))


@pytest.mark.thin(33)
@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("op", BINARY)
def test_operations_of_two_tensors_a_number_and_an_array(op: Any, spec: str) -> None:
    a, b = ow.asarray(X, format=spec), ow.asarray(Y, format="csr")
    for left, right, x, y in (
        (a, b, X, Y),
        (a, a, X, X),
        (a, 0.0, X, 0.0),
        (2.0, a, 2.0, X),
        (a, Y, X, Y),
        (Y, a, Y, X),
    ):
        assert said(lambda: op(left, right)) == said(lambda: op(x, y)), (left, right)  # noqa: B023


def test_elements_that_are_all_specified_say_nothing_of_the_fill_value() -> None:
    a = ow.asarray(np.array([1.0, 2.0]), format="coo")
    assert said(lambda: 1 / a) == said(lambda: np.log(a)) == said(lambda: a / a) == set()


def test_integers_by_zero() -> None:
    x, y = np.array([5, 0, -3, 0]), np.array([0, 2, 1, 0])
    a, b = ow.asarray(x, format="coo"), ow.asarray(y, format="coo")
    for op in (operator.floordiv, operator.mod):
        assert said(lambda: op(a, b)) == said(lambda: op(x, y)) == {"divide by zero"}  # noqa: B023


def test_integers_by_an_array_with_and_without_a_zero() -> None:
    """NumPy warns of a zero in the divisor, wherever it is, and of nothing else."""
    x, y = np.arange(-3, 3).reshape(2, 3), np.arange(1, 7).reshape(2, 3)
    zero = y - 1
    with np.errstate(all="raise"):
        for left, right in itertools.product(("csr", "dense", "coo", None), repeat=2):
            for op in (operator.floordiv, operator.mod):
                t, divisor, by_zero = (
                    z if f is None else ow.asarray(z, format=f) for z, f in ((x, left), (y, right), (zero, right))
                )
                found = op(t, divisor)
                np.testing.assert_array_equal(found.to_numpy() if isinstance(found, ow.Tensor) else found, op(x, y))
                with pytest.raises(FloatingPointError, match="divide by zero"):
                    op(t, by_zero)


def test_broadcasting_and_expressions() -> None:
    a, b = ow.asarray(X, format="csr"), ow.asarray(np.array([0.0, 0, 2, 0]), format="coo")
    assert said(lambda: a / b) == said(lambda: X / np.array([0.0, 0, 2, 0]))
    assert said(lambda: ow.pointwise("log(A[i, j]) + B[j]", {"A": a, "B": b})) == {"divide by zero", "invalid value"}
    assert said(lambda: ow.pointwise("A[i, j] + B[j]", {"A": a, "B": b})) == set()


def test_what_was_infinite_before_is_nothing_new() -> None:
    x = np.array([np.inf, 0, np.nan, 1])
    a, b = ow.asarray(x, format="coo"), ow.asarray(np.array([0.0, 3, 1, 0]), format="coo")
    assert said(lambda: a + b) == said(lambda: a + 1.0) == set()


@pytest.mark.parametrize("spec", ["csr", "coo"])
def test_errstate_decides(spec: str) -> None:
    a, b = ow.asarray(X, format=spec), ow.asarray(Y, format="dcsr")
    for function in (lambda: 1 / a, lambda: a / b, lambda: np.log(a)):
        with np.errstate(all="ignore"):
            function()
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            function()
        called: list[str] = []
        with np.errstate(all="call", call=lambda kind, _: called.append(kind)):  # noqa: B023
            function()
        assert called


A = ow.asarray(X, format="csr")
WARN = {
    "log": lambda: np.log(A),
    "number": lambda: A * 1e200,
    "tensor": lambda: A / ow.asarray(Y, format="dcsr"),
    "same structure": lambda: A / A,
    "fused": lambda: ow.evaluate("x[i,j] = a[i,j] / (a[i,j] - a[i,j])", a=A),
    "fill": lambda: ow.reciprocal(A),
    "integers": lambda: A.astype(np.int64) // ow.asarray(Y.astype(np.int64), format="dcsr"),
    "cast": lambda: ow.asarray([[1e200, 0]], format="csr").astype(np.int32),
    "long": lambda: ow.asarray(np.full(200_000, 1e200), format="dense") * 1e200,
    "nanmax": lambda: ow.nanmax(ow.asarray([[np.nan]], format="csr"), axis=0),
    "nanmedian": lambda: ow.nanmedian(ow.asarray([[np.nan]], format="csr"), axis=0),
}


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("name", WARN)
def test_the_line_of_the_caller_is_named(name: str) -> None:
    with warnings.catch_warnings(record=True) as found, np.errstate(all="warn"):
        warnings.simplefilter("always")
        WARN[name]()
    assert found
    assert {(w.filename, w.lineno) for w in found} == {(__file__, WARN[name].__code__.co_firstlineno)}


def test_a_function_of_the_user_for_some_errors() -> None:
    called: list[str] = []
    with np.errstate(divide="call", over="warn", invalid="warn", call=lambda kind, _: called.append(kind)):
        assert said_as_asked(lambda: 1 / A) == set()
        assert said_as_asked(lambda: A * 1e200) == {"overflow"}
    assert called == ["divide by zero"]


def test_torch_says_nothing() -> None:
    torch = pytest.importorskip("torch")
    a, b = (ow.asarray(torch.from_numpy(v), format="csr") for v in (X, Y))
    assert said(lambda: a / b) == said(lambda: 1 / a) == said(lambda: a.log()) == set()


def test_extents_whose_product_is_no_index() -> None:
    def of(values: np.ndarray[Any, Any], columns: list[int]) -> Any:
        pos, crd = (np.array([0, 3]), None), (np.array([0, 5, 2**39]), np.array(columns))
        return ow.Tensor._from_storage(Storage((2**40, 2**40), ow.format("coo", 2), "f64", 0.0, pos, crd, values))

    x, y = np.array([1e200, 1, -2]), np.array([np.inf, 1, 3])
    a, b, c = of(x, [1, 2**38, 7]), of(y, [1, 2**38, 7]), of(y, [1, 7, 2**38])
    assert said(lambda: a * a) == said(lambda: x * x) == {"overflow"}
    assert said(lambda: a * b) == said(lambda: a + c) == set()
    assert said(lambda: b - b) == said(lambda: c - b) == {"invalid value"}


def test_duplicates_are_one_value() -> None:
    format = "(i) -> (i : compressed(nonunique, unordered))"
    crd, values = np.array([2, 1, 1]), np.array([3.0, 1e160, -1e160])
    a = ow.Tensor._from_storage(Storage((4,), ow.format(format), "f64", 0.0, (np.array([0, 3]),), (crd,), values))
    assert said(lambda: a * a) == said(lambda: a * np.ones(4)) == set()
    assert said(lambda: 1 / (a - 1)) == set()
    assert said(lambda: np.log(a - 4)) == {"invalid value"}
