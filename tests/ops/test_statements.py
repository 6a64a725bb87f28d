"""`ow.evaluate`: masks, Einstein's convention, reductions inside expressions, results that combine with what was there,
sparse results of any reduction; and what is refused, with its message."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from matrix import dense_array

import openwork as ow
from openwork.fusion import statement

A, B, C, M = (dense_array(s, seed=k) for k, s in enumerate([(4, 5), (5, 6), (4, 6), (4, 6)]))
P, X, Z = M != 0, np.arange(5.0), np.arange(4.0) + 1
TERMS = A[:, :, None] * B[None]
BOTH = (A[:, :, None] != 0) & (B[None] != 0)
SHORTEST = np.where(BOTH, A[:, :, None] + B[None], np.inf).min(1)
GIVEN = {"A": A, "B": B, "N": C, "C": 7 * A @ B, "M": M, "x": X, "z": Z, "alpha": 2, "beta": 3.0}
FORMATS = ["csr", "csc", "coo", "dense", "bsr(2, 2)"]

STATEMENTS: list[tuple[str, Any]] = [
    ("R<M>[i, k] += A[i, j] * B[j, k]", A @ B * P),
    ("R<~M>[i, k] += A[i, j] * B[j, k]", A @ B * ~P),
    ("R<M[i, k]>[k, i] += A[i, j] * B[j, k]", (A @ B * P).T),
    ("R<M>(i, k) = N(i, k) + 1", (C + 1) * P),
    ("R<not M>[i, k] = N[i, k] + 1", (C + 1) * ~P),
    ("R<M>[i, k] = 3", 3 * P),
    ("R<M>[i, k] = z[i]", Z[:, None] * P),
    ("R<M>[i, k] max= A[i, j] * B[j, k]", TERMS.max(1) * P),
    ("C<M>[i, k] = N[i, k]", np.where(P, C, GIVEN["C"])),
    ("C<M>[i, k] += N[i, k]", GIVEN["C"] + np.where(P, C, 0)),
    ("C<~M>[i, k] min= N[i, k]", np.where(P, GIVEN["C"], np.minimum(C, GIVEN["C"]))),
    ("C[i, k] += A[i, j] * B[j, k]", 8 * A @ B),
    ("C[i, k] max= A[i, j] * B[j, k]", np.maximum(GIVEN["C"], TERMS.max(1))),
    ("C[i, k] += z[i]", GIVEN["C"] + Z[:, None]),
    ("alpha += A[i, j]", 2 + A.sum()),
    ("R[i, k] += A[i, j] * B[j, k]; R[i, k] += N[i, k]", A @ B + C),
    ("R[i, k] = N[i, k]; R[i, k] = N[i, k]", C),
    ("y(i) = z(i) - A(i, j) * x(j)", Z - A @ X),
    ("y(i) = alpha * A(i, j) * x(j) + beta * z(i)", 2 * A @ X + 3 * Z),
    ("y(i) = 2 * (z(i) - A(i, j) * x(j) / 4)", 2 * (Z - A @ X / 4)),
    ("y(i) = exp(A(i, j)) * x(j) - 1", np.exp(A) @ X - 1),
    ("s = A(i, j) * x(j) - z(k)", (A @ X).sum() - Z.sum()),
    ("y[i] += z[i] - A[i, j] * x[j]", 5 * Z - A @ X),
    ("y(i) = sum(j, A(i, j) * x(j)) / max(j, A(i, j) + 1)", A @ X / (A + 1).max(1)),
    ("y(i) = max(sum(j, A(i, j)), z(i))", np.maximum(A.sum(1), Z)),
    ("s = sum(i, any(j, A(i, j)))", (A != 0).any(1).sum()),
    ("R[i, k] += abs(A[i, j]) * B[j, k] / 2", abs(A) @ B / 2),
    ("R[i, k] += N[i, k] * A[i, j] * x[j]", C * (A @ X)[:, None]),
    ("R<M>[i, k] += A[i, j] * N[i, k]", A.sum(1)[:, None] * C * P),
    ("y[i] += -(A[i, j] * x[j] - 2 * A[i, j])", 2 * A.sum(1) - A @ X),
    ("R[i, k] |= A[i, j] and B[j, k]", BOTH.any(1)),
]


def tensors(text: str, form: str) -> dict[str, Any]:
    """The operands that a statement names, those of rank 2 in a format."""
    names = [n for n in GIVEN if re.search(rf"\b{n}\b", text)]
    return {n: ow.asarray(GIVEN[n]).asformat(form) if np.ndim(GIVEN[n]) == 2 else GIVEN[n] for n in names if n != "R"}


def dense(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x)


@pytest.mark.thin(42)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("text", "want"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_statements(text: str, want: Any, form: str) -> None:
    got = ow.evaluate(text, **tensors(text, form))
    np.testing.assert_allclose(dense(got), want)
    assert got.shape == np.shape(want)


SIZES = {"i": 3, "j": 4, "k": 2, "l": 3}
BY_RANK = {
    1: ["coo", "csf", "dense", "bitmap"],
    2: ["csr", "csc", "coo", "dcsr", "dense", "bsr(2, 2)", "dia", "ell(4)", "bitmap", "dense_f"],
    3: ["coo", "csf", "dense", "bitmap"],
}
COMBINE = {"+=": np.sum, "*=": np.prod, "min=": np.min, "max=": np.max, "any=": np.any, "all=": np.all}
JOIN = {"+": np.add, "-": np.subtract, "*": np.multiply}


@pytest.mark.thin(12)
@pytest.mark.parametrize("seed", range(40))
def test_random_statements(seed: int) -> None:
    """Up to three tensors of any rank and format, combined and reduced in any way, under a mask now and then."""
    rng = np.random.default_rng(seed)
    sides = [tuple(rng.permutation(list(SIZES))[: rng.integers(1, 4)]) for _ in range(rng.integers(1, 4))]
    arrays = [rng.integers(-3, 4, [SIZES[i] for i in s]) * (rng.random([SIZES[i] for i in s]) < 0.5) for s in sides]
    signs = [str(rng.choice(["+", "-", "*", "*"])) for _ in sides[1:]]
    every = list(dict.fromkeys(i for s in sides for i in s))
    free = [i for i in rng.permutation(every) if rng.random() < 0.5][:3]
    order = [*free, *(i for i in every if i not in free)]
    op = str(rng.choice(list(COMBINE)))
    text = f"T0[{', '.join(sides[0])}]"
    want: Any = spread(arrays[0], sides[0], order)
    for k, sign in enumerate(signs, 1):
        text = f"({text}) {sign} T{k}[{', '.join(sides[k])}]"
        want = JOIN[sign](want, spread(arrays[k], sides[k], order))
    want = np.broadcast_to(want, [SIZES[i] for i in order])
    want = COMBINE[op](want, axis=tuple(range(len(free), len(order))))
    given: dict[str, Any] = {
        f"T{k}": ow.asarray(x.astype(float), format=ow.format(str(rng.choice(BY_RANK[x.ndim])), x.ndim))
        for k, x in enumerate(arrays)
    }
    mask = ""
    if free and rng.random() < 0.4:
        keep = rng.random(want.shape) < 0.5
        given["M"], mask = ow.asarray(keep, format=ow.format(str(rng.choice(BY_RANK[keep.ndim])), keep.ndim)), "<M>"
        want = np.where(keep, want, np.zeros((), want.dtype))
    got = ow.evaluate(f"R{mask}[{', '.join(free)}] {op} {text}", **given)
    np.testing.assert_allclose(dense(got), want)


def spread(x: Any, indices: tuple[str, ...], order: list[str]) -> Any:
    """The array with a dimension for each index of the order."""
    turned = x.transpose(sorted(range(x.ndim), key=lambda d: order.index(indices[d])))
    return turned.reshape([SIZES[i] if i in indices else 1 for i in order])


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dcsr", "ell(6)", "bitmap"])
def test_semirings_under_masks(form: str) -> None:
    given = {n: ow.asarray(GIVEN[n], format=form) for n in "ABM"}
    for mask, keep in (("", np.ones_like(P)), ("<M>", P), ("<~M>", ~P)):
        used = given if mask else {n: given[n] for n in "AB"}
        got = ow.evaluate(f"R{mask}[i, k] += A[i, j] * B[j, k]", semiring="min_plus", **used)
        np.testing.assert_array_equal(got.to_numpy(), np.where(keep, SHORTEST, np.inf))
        assert got.fill_value == np.inf


def test_zeros_of_a_mask_leave_out() -> None:
    mask = ow.asarray(P, format="csr")
    stored = mask._from_storage(mask._storage.with_values(np.arange(mask.nse) % 2, 0))
    keep = stored.to_numpy() != 0
    for given in ({"A": A, "B": B}, {n: ow.asarray(GIVEN[n], format="csr") for n in "AB"}):
        got = ow.evaluate("R<M>[i, k] += A[i, j] * B[j, k]", M=stored, **given)
        np.testing.assert_allclose(dense(got), A @ B * keep)
        assert got.nse <= keep.sum()


@pytest.mark.parametrize("form", ["csr", "coo"])
def test_masks_that_are_true_where_nothing_is_stored(form: str) -> None:
    mask = ow.asarray(np.where(M == 0, 2.0, M - M.max()), format=form, fill_value=2.0)
    keep = mask.to_numpy() != 0
    given = {n: ow.asarray(GIVEN[n], format=form) for n in "ABN"}
    for sign, at in (("", keep), ("~", ~keep)):
        for text, want in (("A[i, j] * B[j, k]", A @ B), ("N[i, k] + 1", C + 1)):
            used = {n: t for n, t in given.items() if f"{n}[" in text}
            got = ow.evaluate(f"R<{sign}M>[i, k] += {text}", M=mask, **used)
            np.testing.assert_allclose(dense(got), np.where(at, want, 0))


def test_fills_that_annihilate_make_a_contraction() -> None:
    """Distances of unconnected pairs are infinite: the result stores what a path was found for."""
    far = [np.where(x != 0, x, np.inf) for x in (A, B)]
    given = {n: ow.asarray(x, fill_value=np.inf, format="csr") for n, x in zip("AB", far, strict=True)}
    got = ow.evaluate("D[i, k] min= A[i, j] + B[j, k]", **given)
    np.testing.assert_array_equal(got.to_numpy(), SHORTEST)
    assert got.fill_value == np.inf
    assert got.nse == BOTH.any(1).sum()


WIDE = 20_000


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("R[i, k] max= A[i, j] * A[j, k]", 6.0),
        ("R[i, k] min= -A[i, j] * A[j, k]", -6.0),
        ("R[i, k] any= A[i, j] * A[j, k]", True),
        ("R[i, k] *= 1 + A[i, j] * A[j, k]", 7.0),
        ("R[i, k] += abs(A[i, j]) * abs(A[j, k])", 6.0),
        ("R[i, k] = A[i, j] * A[j, k] + 2 * A[i, k]", None),
    ],
)
def test_results_much_larger_than_the_operands_are_sparse(text: str, value: Any) -> None:
    found = ow.asarray(np.array([2.0, 3.0]))
    matrix = ow.sparse_coo_tensor(np.array([[1, 7], [7, 5]]), found.to_numpy(), (WIDE, WIDE))
    got = ow.evaluate(text, A=matrix)
    assert got.shape == (WIDE, WIDE)
    assert got.nse <= 3
    if value is not None:
        assert got[1, 5] == value
    else:
        assert [float(got[1, 5]), float(got[1, 7]), float(got[7, 5])] == [6, 4, 6]


REDUCTIONS: dict[str, Any] = {
    "+=": np.sum, "*=": np.prod, "min=": np.min, "max=": np.max, "any=": np.any, "all=": np.all
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("extent", [0, 2])
def test_sparse_reductions_of_any_kind(monkeypatch: pytest.MonkeyPatch, extent: int) -> None:
    """As a result much larger than its operands is reduced: the same values as dense, over an empty index too."""
    monkeypatch.setattr(statement, "_prefers_sparse", lambda *_: True)
    a, b = dense_array((4, extent), seed=3), dense_array((extent, 6), seed=4)
    given: dict[str, Any] = {"A": ow.asarray(a, format="csr"), "B": ow.asarray(b, format="coo"), "D": b}
    x, y = a[:, :, None], b[None]
    terms = {
        "A[i, j] * B[j, k]": x * y,
        "A[i, j] * D[j, k]": x * y,
        "2 * A[i, j] * B[j, k]": 2 * x * y,
        "A[i, j] - B[j, k]": x - y,
    }
    for (text, values), (op, function) in itertools.product(terms.items(), REDUCTIONS.items()):
        used = {n: t for n, t in given.items() if f"{n}[" in text}
        if not extent and op in ("min=", "max="):
            with pytest.raises(ow.ShapeError, match=r"of extent 0 has no value"):
                ow.evaluate(f"R[i, k] {op} {text}", **used)
            continue
        got, want = ow.evaluate(f"R[i, k] {op} {text}", **used), function(values, axis=1)
        np.testing.assert_array_equal(dense(got), want)
        assert got.dtype == want.dtype


def test_sparse_reductions_that_have_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "_prefers_sparse", lambda *_: True)
    a, b = (ow.asarray(x, format="csr") for x in (A, B))
    for op in ("|=", "&="):
        with pytest.raises(ow.UnsupportedError, match="combine truth values; got float64"):
            ow.evaluate(f"R[i, k] {op} A[i, j] * B[j, k]", A=a, B=b)
    for op in ("min=", "max="):
        with pytest.raises(ow.DTypeError, match=f"{op} of complex numbers, which are not ordered"):
            ow.evaluate(f"R[i, k] {op} A[i, j] * B[j, k]", A=a * 1j, B=b)
    with pytest.raises(ow.UnsupportedError, match='max: no sparse result\n  help: format="dense"'):
        ow.evaluate("R[i, k] max= A[i, j] + z[k]", A=a, z=Z)


@pytest.mark.thin(49)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr(2, 2)"])
@pytest.mark.parametrize("dtype", ["float64", "int8", "float32"])
def test_products_reduced_as_contractions(monkeypatch: pytest.MonkeyPatch, form: str, dtype: str) -> None:
    """What a result much larger than its operands takes, on small ones."""
    monkeypatch.setattr(statement, "_prefers_sparse", lambda *_: True)
    a, b = np.where(A > 2, -A, A).astype(dtype), B.astype(dtype)
    given = {"A": ow.asarray(a, format=form), "B": ow.asarray(b, format=form)}
    terms = a[:, :, None] * b[None]
    for op, want in (("max", terms.max(1)), ("min", terms.min(1)), ("any", (terms != 0).any(1)), ("*", terms.prod(1))):
        got = ow.evaluate(f"R[k, i] {op}= A[i, j] * B[j, k]", **given).to_numpy()
        np.testing.assert_array_equal(got, want.T)
        assert got.dtype == want.dtype
    far = ow.evaluate("R[i] max= A[i, j] * B[j, k]", A=given["A"], B=given["B"] * np.inf)
    np.testing.assert_array_equal(far.to_numpy(), (a[:, :, None] * (b * np.inf)[None]).max((1, 2)))
    if dtype != "int8":
        a, b = (np.where(x == x.max(), np.inf, x) for x in (a, b))
        given = {"A": ow.asarray(a, format=form), "B": ow.asarray(b, format=form)}
        far = ow.evaluate("R[i, k] max= A[i, j] * B[j, k]", **given)
        np.testing.assert_array_equal(far.to_numpy(), (a[:, :, None] * b[None]).max(1))


def test_plans_of_index_notation() -> None:
    plan = ow.explain("T[i] = A[i, j] * x[j]; s max= T[i]", ow.asarray(A, format="csr"), X)
    assert float(plan.result) == (A @ X).max()
    assert "statement T[i] = A[i, j] * x[j]" in str(plan)
    with pytest.raises(ow.ShapeError, match="has operands A, x; got 1 values"):
        ow.explain("T[i] = A[i, j] * x[j]", ow.asarray(A, format="csr"))


def test_dense_factors_are_sampled_at_a_wide_mask() -> None:
    mask = ow.sparse_coo_tensor(np.array([[1, 7], [7, 5]]), np.ones(2), (WIDE, WIDE))
    left, right = np.arange(2.0 * WIDE).reshape(WIDE, 2), np.ones((2, WIDE))
    got = ow.evaluate("R<M>[i, k] = U[i, j] * V[j, k]", M=mask, U=left, V=right)
    assert got.nse == 2
    assert [float(got[1, 7]), float(got[7, 5])] == [5, 29]
    scaled = ow.evaluate("R[k, i] = M[i, k] * U[i, j] * V[j, k]", M=2 * mask, U=left, V=right)
    assert [float(scaled[7, 1]), float(scaled[5, 7])] == [10, 58]


def test_products_with_a_number_have_its_dtype_under_masks() -> None:
    given = {n: ow.asarray(x.astype(np.int64), format="csr") for n, x in (("A", A), ("B", B), ("M", M))}
    for scale in (1, 1.0, 2.5, 1j):
        text = f"A[i, j] * B[j, k] * {scale}"
        if scale == 1j:
            text, given["s"] = "A[i, j] * B[j, k] * s", 1.0 + 0j
        got, whole = (ow.evaluate(f"R{mask}[i, k] += {text}", **given) for mask in ("<M>", "<~M>"))
        assert got.dtype == whole.dtype == np.result_type(np.int64, type(scale))
        want = np.rint(A @ B) * (1.0 if scale == 1j else scale)
        np.testing.assert_allclose(got.to_numpy() + whole.to_numpy(), want)


def test_what_reduces_nothing_keeps_the_dtype() -> None:
    for dtype in (np.bool_, np.int8, np.float32):
        x = np.array([1, 0, 3]).astype(dtype)
        for op in ("=", "+=", "*=", "min=", "max=", "|=", "&="):
            got = ow.evaluate(f"y[i] {op} x[i]", x=x)
            assert got.dtype == dtype
            assert got.tolist() == x.tolist()


def test_a_largest_over_torch() -> None:
    torch = pytest.importorskip("torch")
    T = ow.asarray(torch.eye(3, dtype=torch.float64), format="csr")
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    assert dense(ow.evaluate("y[i] max= A[i, j] * x[j]", A=T, x=x)).tolist() == [1, 0, 3]
    assert ow.compute((ow.lazy(T) * x).max(axis=1)).to_numpy().tolist() == [1, 0, 3]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "y[i] += A[i, j] * v[j]",
            ow.ShapeError,
            "A[i, j] * v[j]\n                    ^\n  no tensor v\n  given: A, B",
        ),
        (
            "y[i] = A[i, j] * B[i, j]",
            ow.ShapeError,
            "\n                   ^\n  index i is 4 in A[i, j] and 5 in B[i, j]",
        ),
        ("y[i] = A[i] + B[i, j]", ow.ShapeError, "\n         ^\n  A has 2 dimensions, A[i] has 1 indices"),
        ("y[i, q] = A[i, j] * B[j, k]", ow.ShapeError, "\n       ^\n  the extent of index q does not follow"),
        ("y[i, i] = A[i, j] * B[j, k]", ow.FormatError, "an index is repeated on the left"),
        ("y[i] mean= A[i, j] * B[j, k]", ow.FormatError, "expected one of = += *= min= max= |= &= any= all="),
        ("y<A>[i] = A[i, j] * B[j, k]", ow.FormatError, "A is used with different numbers of indices"),
        ("y<A[i, j]>[i] = B[i, j]", ow.FormatError, "a mask has the indices of the left side"),
        ("y[i] = A[i, j] * B[j, k] * y[i]", ow.FormatError, "the result is read on the right"),
        ("y<B>[i, k] = A[i, j] * B[j, k]", ow.ShapeError, "index i is 4 in A[i, j] and 5 in B[i, k]"),
        ("y(i) = sum(A(i, j)) + B(j, k)", ow.FormatError, "sum lacks its indices"),
        ("y(i, k) = (1 + A(i, j)) * (1 + B(j, k))", ow.FormatError, "how the product is expanded"),
        ("y(i) = sqr(A(i, j)) * B(j, k)", ow.FormatError, "there is no function sqr; did you mean sqrt?"),
        ("y[i] += A[i, 1] + B[j, k]", ow.FormatError, "expected the name of an index variable; got '1'"),
        ("A[i] += A[i, j] * B[j, k]", ow.FormatError, "A is used with different numbers of indices"),
        ("s max= fma(A[i, j], B[j, k], 2.0)", ow.UnsupportedError, "fma(A[i, j], B[j, k], 2.0) cannot be reduced"),
        ("s[i] max= A[i, j] * 2 ** -1 * B[j, k]", ValueError, "integers to negative integer powers are not integers"),
    ],
)
def test_what_does_not_fit_is_pointed_at(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        ow.evaluate(text, A=ow.asarray(A, format="csr"), B=B)
    assert message in str(caught.value)


def test_extents_of_what_was_there_count() -> None:
    with pytest.raises(ow.ShapeError, match=r"index k is 6 in B.j, k. and 5 in C.i, k."):
        ow.evaluate("C[i, k] += A[i, j] * B[j, k]", A=A, B=B, C=A)


def test_a_number_at_the_elements_of_a_mask() -> None:
    M = ow.asarray(np.eye(3), format="csr")
    assert ow.evaluate("C<M>[i, j] = 1", M=M).to_numpy().tolist() == np.eye(3).tolist()
    assert ow.evaluate("C<~M>[i, j] += 2.5", M=M).to_numpy().tolist() == (2.5 * (1 - np.eye(3))).tolist()


def test_a_sum_that_is_no_operation_combines_with_nothing() -> None:
    likely = ow.Semiring("likely", ow.Monoid("either", "x + y - x * y", "0"), "x * y")
    a, b = (ow.asarray(x / 8, format="csr") for x in (A, B))
    want = 1 - np.prod(1 - TERMS / 64, axis=1)
    np.testing.assert_allclose(ow.evaluate("R[i, k] = A[i, j] * B[j, k]", A=a, B=b, semiring=likely).to_numpy(), want)
    with pytest.raises(ow.UnsupportedError, match=r"no elementwise sum of Semiring\(name='likely'"):
        ow.evaluate("C[i, k] += A[i, j] * B[j, k]", A=a, B=b, C=C, semiring=likely)


@pytest.mark.parametrize("wrong", [[object()], ["a"], {"a": 1}])
def test_operands_that_are_no_tensors_are_named(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError), match="evaluate: operand A: asarray: "):
        ow.evaluate("y[i] = A[i]", A=wrong)


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_kinds_of_results(form: str) -> None:
    """A Tensor of Tensors, an array where a dense product has an array among its operands, or what is asked for."""
    a, t, v = ow.asarray(A, format=form), ow.asarray(X), ow.asarray(Z, format="coo")
    for text in ("y[i] += A[i, j] * x[j]", "y[i] max= A[i, j] + x[j]", "s += A[i, j] * x[j]"):
        assert isinstance(ow.evaluate(text, A=a, x=t), ow.Tensor)
        assert isinstance(ow.evaluate(text, A=A, x=X), ow.Tensor) == ("max" in text)
        assert isinstance(ow.evaluate(text, A=a, x=X, format="dense"), ow.Tensor)
    assert isinstance(ow.evaluate("y[i] += A[i, j] * x[j]", A=a, x=X), np.ndarray)
    assert isinstance(ow.evaluate("y[i] += A[i, j]", A=a), ow.Tensor)
    scaled = ow.evaluate("C[i, k] *= z[i]", C=ow.asarray(C, format="csr"), z=v)
    assert not scaled.format.is_dense
    np.testing.assert_array_equal(scaled.to_numpy(), C * Z[:, None])
