"""`ow.evaluate` of masked tensors against `numpy.ma`: missing where an operand is, reductions skip what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

RNG = np.random.default_rng(0)
D, E = RNG.integers(1, 5, (4, 5)).astype(float), RNG.integers(1, 5, (5, 3)).astype(float)
K, L = RNG.random((4, 5)) < 0.6, RNG.random((5, 3)) < 0.6
X = np.arange(1.0, 6.0)
A = np.ma.masked_array(D, ~K)
PRODUCT = np.ma.masked_array((D * K) @ (E * L), K.astype(int) @ L.astype(int) == 0)

STATEMENTS: list[tuple[str, Any]] = [
    ("C[i, j] = A[i, j] + 1", A + 1),
    ("C[j, i] = A[i, j] * x[j]", (A * X).T),
    ("C[i, j] = A[i, j] + A[i, j]; D[i] += C[i, j]", 2 * A.sum(1)),
    ("y[i] += A[i, j]", A.sum(1)),
    ("y(i) = A(i, j) * x(j)", (A * X).sum(1)),
    ("y[i] max= A[i, j] * 2", A.max(1) * 2),
    ("s min= A[i, j]", A.min()),
    ("y[j] any= A[i, j] > 3", (A > 3).any(0)),
    ("C[i, k] += A[i, j] * B[j, k]", PRODUCT),
]


def operands(form: str) -> dict[str, Any]:
    found = {n: ow.masked_tensor(ow.asarray(v * k, format=form), ow.asarray(k, format=form)) for n, v, k in
             (("A", D, K), ("B", E, L))}  # fmt: skip
    return {**found, "x": X}


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dense"])
@pytest.mark.parametrize(("text", "want"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_statements(text: str, want: Any, form: str) -> None:
    given = {n: x for n, x in operands(form).items() if f"{n}[" in text or f"{n}(" in text}
    got = ow.evaluate(text, **given).to_masked_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(got), np.ma.getmaskarray(want))
    np.testing.assert_allclose(np.ma.filled(got, 0), np.ma.filled(want, 0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C<M>[i, j] = A[i, j]", "a mask with masked tensors"),
        ("M[i, j] += A[i, j]", "what was there with masked tensors"),
    ],
)
def test_what_is_not_there_is_refused(text: str, message: str) -> None:
    with pytest.raises(ow.UnsupportedError, match=message):
        ow.evaluate(text, A=operands("csr")["A"], M=D)


def test_semirings_are_refused() -> None:
    with pytest.raises(ow.UnsupportedError, match="a semiring with masked tensors"):
        ow.evaluate("y[i] += A[i, j] * x[j]", semiring="min_plus", A=operands("csr")["A"], x=X)
