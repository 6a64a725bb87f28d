"""Integers to the power of negative integers: refused on every way, as NumPy refuses them of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import openwork as ow

A = np.arange(12).reshape(3, 4)
B = -(A % 3)


def coo(a: np.ndarray, **options: object) -> ow.Tensor:
    return ow.asarray(a, format="coo", **options)


WAYS = {
    "merge": lambda: coo(A) ** coo(B),
    "merge of formats": lambda: ow.asarray(A, format="csr") ** ow.asarray(B, format="csc"),
    "broadcast": lambda: coo(A) ** coo(B[:1]),
    "one row": lambda: coo(A[1:2]) ** coo(B[1:2]),
    "one column": lambda: ow.asarray(A[:, 1:2], format="csr") ** B[:, 1:2],
    "dense": lambda: ow.asarray(A) ** ow.asarray(B),
    "sparse, array": lambda: coo(A) ** B,
    "array, sparse": lambda: A ** coo(B),
    "dense, sparse": lambda: np.power(ow.asarray(A), coo(B)),
    "number": lambda: coo(A) ** -1,
    "reflected": lambda: 2 ** coo(B),
    "in place": lambda: coo(A).__ipow__(-1),
    "truths": lambda: coo(A > 2) ** coo(B),
    "fill value": lambda: coo(A) ** coo(np.full((3, 4), -1), fill_value=-1),
    "bitmap": lambda: coo(A) ** ow.asarray(B, format="bitmap"),
    "lazy": lambda: ow.compute((ow.lazy(coo(A)) + 1) ** ow.lazy(coo(B))),
    "fused": lambda: ow.fused(lambda a, b: a * 2 + (a + 1) ** b)(coo(A), coo(B)),
    "evaluate": lambda: ow.evaluate("C[i,j] = A[i,j] ** B[i,j]", A=coo(A), B=coo(B)),
    "evaluate, sum": lambda: ow.evaluate("s += A[i,j] ** B[i,j]", A=coo(A), B=coo(B)),
    "evaluate, number": lambda: ow.evaluate("C[i,j] = A[i,j] ** (-1)", A=coo(A)),
}


@pytest.mark.parametrize("way", WAYS)
def test_negative_exponents_are_refused(way: str) -> None:
    with pytest.raises(ValueError, match="negative integer powers") as error:
        WAYS[way]()
    assert isinstance(error.value, ow.DTypeError)
    assert "help:" in str(error.value)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_nothing_has_any_power(shape: tuple[int, ...]) -> None:
    base, exponent = np.zeros(shape, int), np.full(shape, -1)
    for got in (coo(base) ** coo(exponent, fill_value=-1), coo(base) ** exponent):
        assert (got.shape, got.dtype) == (shape, int)
    for got in (coo(np.zeros((0, 3), int)) ** np.full((1, 3), -1), coo(A[:1, :3]) ** np.full((0, 3), -1)):
        assert (got.shape, got.dtype) == ((0, 3), int)


def test_an_exponent_that_is_computed_is_refused() -> None:
    with pytest.raises(ow.UnsupportedError, match="a statement of its own"):
        ow.evaluate("C[i,j] = A[i,j] ** (B[i,j] + 1)", A=coo(A), B=coo(B))


def test_what_is_no_integer_power_stays() -> None:
    np.testing.assert_array_equal((coo(A) ** coo(-B)).to_numpy(), A ** (-B))
    np.testing.assert_array_equal(
        ow.fused(lambda a, b: (a + 1) ** b + a)(coo(A), coo(-B)).to_numpy(), (A + 1) ** -B + A
    )
    np.testing.assert_allclose((coo(A + 1.0) ** coo(B)).to_numpy(), (A + 1.0) ** B)
    assert (coo(A[:0]) ** coo(B[:0])).shape == (0, 4)
    twice = ow.sparse_coo_tensor([[1, 1], [1, 1]], np.array([-1, 3]), (3, 4))
    np.testing.assert_array_equal((coo(A) ** twice).to_numpy(), A ** twice.to_numpy())


def test_truths_have_no_sign() -> None:
    for call in (ow.positive, lambda t: +t, np.positive, lambda t: ow.positive(t.to_numpy())):
        with pytest.raises(TypeError, match="positive"):
            call(coo(A > 2))
    np.testing.assert_array_equal(ow.clip(coo(A > 2)).to_numpy(), A > 2)


def test_a_limit_that_is_an_array() -> None:
    np.testing.assert_array_equal(np.asarray(ow.clip(coo(A), np.array([2]), 5)), np.clip(A, 2, 5))
