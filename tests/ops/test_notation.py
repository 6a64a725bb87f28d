"""`ow.evaluate`: statements of index notation against the same on dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix import dense_array

import openwork as ow

D, F, E = dense_array((5, 6)), dense_array((5, 6), seed=1), dense_array((6, 4), seed=2)
S, X = dense_array((5, 5), seed=3), np.arange(6.0)
G = dense_array((5, 6, 4), seed=4)
DENSE = {"A": D, "B": F, "E": E, "S": S, "x": X, "G": G, "a": 3}
PRODUCT = np.where((D[:, :, None] != 0) & (E[None] != 0), D[:, :, None] + E[None], np.inf).min(1)

STATEMENTS: list[tuple[str, Any]] = [
    ("y[i] += A[i, j] * x[j]", D @ X),
    ("y[j] += A[i, j] * a", 3 * D.sum(0)),
    ("C[i, k] += A[i, j] * E[j, k]", D @ E),
    ("C(i, k) = A(i, j) * E(j, k)", D @ E),
    ("C[k, i] += A[i, j] * E[j, k] + 1", (D @ E).T + 6),
    ("C[i, j] = A[i, j] + 2 * B[i, j]", D + 2 * F),
    ("C[j, i] = A[i, j] * B[i, j]", (D * F).T),
    ("C[i, j] = A[i, j] * x[j]", D * X),
    ("C[i, j] += S[i, j] * A[i, k] * B[j, k]", S * (D @ F.T)),
    ("s += A[i, j] * B[i, j]", (D * F).sum()),
    ("s max= abs(A[i, j] - B[i, j])", abs(D - F).max()),
    ("y[i] min= A[i, j]", D.min(1)),
    ("y[j] *= A[i, j] + 1", (D + 1).prod(0)),
    ("y[i] += A[i, j] * x[j] - B[i, j] * x[j]", (D - F) @ X),
    ("y[i] += A[i, j] * x[j] - B[i, j]", D @ X - F.sum(1)),
    ("y[i] += E[j, k] * A[i, j]", (D @ E).sum(1)),
    ("y[i] any= A[i, j]", (D != 0).any(1)),
    ("s all= A[i, j] + 1", True),
    ("y[i] |= A[i, j] > 2", (D > 2).any(1)),
    ("y[i] &= A[i, j] < 9", (D < 9).all(1)),
    ("y[i] = S[i, i]", np.diag(S)),
    ("s += S[i, i]", np.trace(S)),
    ("y[i] += exp(A[i, j]) * x[j]", np.exp(D) @ X),
    ("y[i] += where(A[i, j] > 2, A[i, j], 0)", np.where(D > 2, D, 0).sum(1)),
    ("y[i] += A[i, j] * x[j] * sqrt(4.0)", 2 * (D @ X)),
    ("s += A[i, j] * exp(1)", D.sum() * np.exp(1)),
    ("y[i] max= A[i, j] * -abs(-3)", (-3 * D).max(1)),
    ("C[i, j] = where(1 > 2, A[i, j], 2 ** 3 * A[i, j])", 8 * D),
    ("y[i, j] += G[i, k, l] * A[j, k] * E[k, l]", np.einsum("ikl,jk,kl->ij", G, D, E)),
    ("T(i, j) = A(i, j) + B(i, j)  # first\ns max= T(i, j)", (D + F).max()),
    ("T[i] += A[i, j]; U[i] = T[i] * T[i]; s += U[i]", (D.sum(1) ** 2).sum()),
]


def used(text: str) -> set[str]:
    return {name for name in DENSE if any(f"{name}{c}" in text for c in "[(") or (name == "a" and "* a" in text)}


@pytest.mark.thin(15)
@pytest.mark.parametrize("form", ["csr", "coo", "dense"])
@pytest.mark.parametrize(("text", "want"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_statements(text: str, want: Any, form: str) -> None:
    given = {n: DENSE[n] for n in used(text)}
    tensors = {
        n: ow.asarray(v).asformat(ow.format("coo" if form == "csr" and np.ndim(v) != 2 else form, np.ndim(v)))
        if n not in "xa"
        else v
        for n, v in given.items()
    }
    got = ow.evaluate(text, **tensors)
    np.testing.assert_allclose(got.to_numpy() if isinstance(got, ow.Tensor) else got, want)
    assert np.shape(want) == got.shape


@given(st.data())
def test_sums_of_products_are_those_of_einsum(data: st.DataObject) -> None:
    """Random products of up to three operands over four indices, on any side of the assignment."""
    sizes = {"i": 2, "j": 3, "k": 4, "l": 1}
    terms, arrays = [], {}
    for name in "ABC"[: data.draw(st.integers(1, 3))]:
        indices = data.draw(st.permutations("ijkl")).copy()[: data.draw(st.integers(1, 3))]
        arrays[name] = dense_array(tuple(sizes[i] for i in indices), seed=ord(name))
        terms.append((name, indices))
    every = sorted({i for _, indices in terms for i in indices})
    free = [i for i in data.draw(st.permutations(every)) if data.draw(st.booleans())]
    text = f"R[{', '.join(free)}]" if free else "R"
    text += " += " + " * ".join(f"{n}[{', '.join(ix)}]" for n, ix in terms)
    want = np.einsum(",".join("".join(ix) for _, ix in terms) + "->" + "".join(free), *arrays.values())
    got = ow.evaluate(text, **{n: ow.asarray(a).asformat(ow.format("coo", a.ndim)) for n, a in arrays.items()})
    np.testing.assert_allclose(got.to_numpy(), want)


NUMPY_NUMBERS = [np.int64(2), np.int8(-3), np.uint8(200), np.bool_(True), np.float16(2), np.float32(2), np.float64(2)]


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
@pytest.mark.parametrize("number", [*NUMPY_NUMBERS, np.complex64(1j)], ids=repr)
def test_numbers_of_numpy_have_their_type_and_lists_are_arrays(number: Any, dtype: type) -> None:
    dense = D.astype(dtype)
    A, want = ow.asarray(dense, format="csr"), dense * number
    got = ow.evaluate("C[i, j] = A[i, j] * c", A=A, c=number)
    sums = ow.evaluate("y[i] += A[i, j] * c", A=A, c=number)
    assert got.dtype == sums.dtype == want.dtype
    np.testing.assert_array_equal(got.to_numpy(), want)
    np.testing.assert_array_equal(sums, want.sum(1))
    x = [1, 0, 3, 0, 5, 2]
    np.testing.assert_array_equal(ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=x), dense.astype(int) @ x)


def test_integers_of_a_statement_have_no_width() -> None:
    """Sums and powers of them are exact, beside floats beyond 64 bits too, and refused where no dtype holds them."""
    x = ow.asarray(X, format="coo")
    for text, number in (
        ("9223372036854775807 + 1", 2.0**63), ("2 ** 100", 2.0**100), ("(1 << 70)", 2.0**70),
        ("abs(-9223372036854775807 - 1)", 2.0**63), ("(100000000000000000000 * 2)", 2e20),
    ):  # fmt: skip
        np.testing.assert_array_equal(ow.evaluate(f"y[i] = x[i] * ({text})", x=x).to_numpy(), X * number)
        np.testing.assert_array_equal(ow.pointwise(f"A * ({text})", {"A": x}).to_numpy(), X * number)
        with pytest.raises((ow.DTypeError, OverflowError)):
            ow.evaluate(f"y[i] = x[i] * ({text})", x=x.astype("int32"))
    with pytest.raises(ow.DTypeError, match="beyond every dtype"):
        ow.evaluate("y[i] = x[i] * 2 ** 100000000000", x=x)


def test_results_are_sparse_where_they_can_be() -> None:
    A, M = ow.asarray(D, format="csr"), ow.asarray(S, format="csr")
    assert ow.evaluate("C[i, j] = A[i, j] * x[j]", A=A, x=X).format == ow.format("csr")
    assert ow.evaluate("C[i, j] += M[i, j] * X[i, k] * Y[j, k]", M=M, X=D, Y=F).format == ow.format("csr")
    assert ow.evaluate("C[i, k] += A[i, j] * A[k, j]", A=A, format="coo").format == ow.format("coo", 2)
    assert isinstance(ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=X), np.ndarray)


def test_semirings_leave_out_what_is_unspecified() -> None:
    A, B = ow.asarray(D, format="csr"), ow.asarray(E, format="csc")
    got = ow.evaluate("C[i, k] += A[i, j] * B[j, k]", A=A, B=B, semiring="min_plus")
    np.testing.assert_array_equal(got.to_numpy(), PRODUCT)


def test_fill_values_are_values() -> None:
    A = ow.asarray(D, format="csr", fill_value=2)
    np.testing.assert_allclose(ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=X), D @ X)
    assert float(ow.evaluate("s min= A[i, j]", A=A)) == D.min()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("y[i] += A[i, j] * z[j]", ow.ShapeError, "no tensor z\n  given: A, x\n  help: evaluate(text, z=...)"),
        ("y[i] += a[i, j] * x[j]", ow.ShapeError, "no tensor a"),
        ("y[i] = A[i, j] * x[i]", ow.ShapeError, "index i is 5 in A[i, j] and 6 in x[i]\n  help: slice or pad"),
        ("y[i] = A[i] * x[i]", ow.ShapeError, "A has 2 dimensions, A[i] has 1 indices"),
        ("y[q] = A[i, j] * x[j]", ow.ShapeError, "the extent of index q does not follow"),
        ("y[i] |= A[i, j] * x[j]", ow.UnsupportedError, "any= asks which are not 0"),
        ("y[i] + A[i, j]", ow.FormatError, "expected an assignment"),
        (" # nothing", ow.FormatError, "there is no statement"),
        ("s += A[i, j]", TypeError, "no statement uses x\n  help: leave it out"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        ow.evaluate(text, A=ow.asarray(D, format="csr"), x=X)
    assert message in str(caught.value)


def test_a_semiring_takes_products_only() -> None:
    A = ow.asarray(D, format="csr")
    with pytest.raises(ow.UnsupportedError, match="expected: a product of tensors"):
        ow.evaluate("C[i, j] = A[i, j] + A[i, j]", A=A, semiring="min_plus")
