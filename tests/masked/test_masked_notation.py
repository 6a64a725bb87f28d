"""`ow.evaluate` of masked tensors against loops over every element: masks, accumulation, semirings, several statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from masked_reference import run
from scipy import sparse

import openwork as ow

RNG = np.random.default_rng(0)


def _data(*shape: int) -> Any:
    return RNG.integers(1, 5, shape).astype(float)


DATA = {"A": _data(4, 5), "B": _data(5, 3), "C": _data(4, 3), "D": _data(4, 5), "E": _data(4, 4), "y": _data(4),
        "T": _data(4, 5, 3)}  # fmt: skip
MASKS = {n: RNG.random(x.shape) < 0.6 for n, x in DATA.items()}
MASKS["A"][2] = False
PLAIN = {
    "x": np.arange(1.0, 6.0), "X": _data(5, 3), "z": _data(4), "Z": _data(4, 5) * (RNG.random((4, 5)) < 0.5),
    "W": _data(4, 3), "M": (RNG.random((4, 5)) < 0.5) * 2.0, "P": RNG.random((4, 3)) < 0.5, "q": RNG.random(4) < 0.5,
    "s": 2.0, "U": _data(4, 2), "V": _data(2, 3),
}  # fmt: skip

STATEMENTS = [
    # elementwise and reductions
    "R[i, j] = A[i, j] + 1",
    "R[j, i] = A[i, j] * x[j]",
    "R[i, j] = A[i, j] * D[i, j] - Z[i, j]",
    "R[i, j] = A[i, j] + A[i, j]; r[i] += R[i, j]",
    "r[i] += A[i, j]",
    "r(i) = A(i, j) * x(j)",
    "r[i] max= A[i, j] * 2",
    "r[j] min= A[i, j] - z[i]",
    "r min= A[i, j]",
    "r[j] any= A[i, j] > 3",
    "r[j] all= A[i, j] > 3",
    "r[i] *= A[i, j]",
    "R[i, k] += A[i, j] * B[j, k]",
    "R[k, i] += A[i, j] * X[j, k]",
    "R[i, k] += 3 * A[i, j] * B[j, k]",
    "r[i] += E[i, i]",
    "r[i] = E[i, i] * y[i]",
    "r += E[i, i]",
    "R[i, k] += A[i, j] * T[i, j, k] * x[j]",
    "R[i, j] = y[i] * x[j]",
    "R[i, j] = s * A[i, j] / 4",
    "R[i, k] += M[i, j] * B[j, k]",
    # term by term, and whole
    "r(i) = z(i) - A(i, j) * x(j)",
    "r(i) = A(i, j) * x(j) + D(i, j) * x(j)",
    "r[i] += A[i, j] * x[j] + D[i, j] * x[j]",
    "r(i) = A(i, j) + D(i, j) - y(i)",
    # reductions of a pair as contractions
    "R[i, k] min= A[i, j] + B[j, k]",
    "R[i, k] max= abs(A[i, j] - B[j, k])",
    "R[i, k] max= A[i, j] - B[j, k]",
    "R[i, k] min= A[i, j] + X[j, k]",
    # several statements, numbers among them
    "t += A[i, j]; R[i, j] = A[i, j] / t",
    "t += A[i, j]; u max= B[j, k]; r = t - u",
    "R(i, j) = A(i, j) / sum(j, A(i, j))",
    "t[i] max= A[i, j]; R[i, j] = exp(A[i, j] - t[i]); r[i] += R[i, j]",
    "R[i, j] = Z[i, j] * 2; r[i] += R[i, j] * A[i, j]",
    "R[i, j] = A[i, j]; R[i, j] += D[i, j]; R[i, j] max= Z[i, j]",
    # masks
    "R<M>[i, j] = A[i, j]",
    "R<~M>[i, j] = A[i, j]",
    "R<D>[i, j] = A[i, j] * 2",
    "R<~D>[i, j] = A[i, j] * 2",
    "R<A>[i, j] = Z[i, j]",
    "R<~A>[i, j] = Z[i, j]",
    "R<A>[i, j] = 1",
    "R<M>[i, j] = y[i]",
    "R<P>[i, k] = A[i, j] * B[j, k]",
    "R<~P>[i, k] = A[i, j] * B[j, k]",
    "R<C>[i, k] = A[i, j] * B[j, k]",
    "R<~C>[i, k] = A[i, j] * B[j, k]",
    "R<C>[i, k] = U[i, j] * V[j, k]",
    "R<P[i, k]>[k, i] = A[i, j] * B[j, k]",
    "R<P>[i, k] += A[i, j] * X[j, k]",
    "R<P>[i, k] max= A[i, j] - B[j, k]",
    "r<q>[i] += A[i, j]",
    "r<y>[i] = z[i] - A[i, j] * x[j]",
    # what was there, masked and not
    "C[i, k] += A[i, j] * B[j, k]",
    "y[i] += A[i, j]",
    "y[i] min= A[i, j]",
    "y[i] *= z[i]",
    "y[i] = z[i]; y[i] max= A[i, j]",
    "D[i, j] += A[i, j] * 2",
    "D[i, j] max= Z[i, j]",
    "D[i, j] += y[i]",
    "D[i, j] any= A[i, j] > 2",
    "z[i] += A[i, j]",
    "z[i] max= A[i, j] * 2",
    "z[i] *= y[i]",
    "Z[i, j] += A[i, j]",
    "Z[i, j] min= A[i, j]",
    "Z[i, j] += y[i]",
    "W[i, k] += A[i, j] * B[j, k]",
    "s += A[i, j]",
    # both
    "C<P>[i, k] = A[i, j] * B[j, k]",
    "C<~P>[i, k] = A[i, j] * B[j, k]",
    "C<P>[i, k] += A[i, j] * B[j, k]",
    "C<~P>[i, k] += A[i, j] * B[j, k]",
    "D<M>[i, j] = Z[i, j]",
    "D<A>[i, j] = 7",
    "D<A>[i, j] += Z[i, j]",
    "Z<M>[i, j] = A[i, j]",
    "Z<A>[i, j] = Z2[i, j]",
    "Z<A>[i, j] += 1",
    "Z<~A>[i, j] += D[i, j]",
]
PLAIN["Z2"] = PLAIN["Z"] + 1
RINGS = [
    ("R[i, k] += A[i, j] * B[j, k]", "min_plus"),
    ("R[i, k] = A[i, j] * X[j, k]", "max_plus"),
    ("R[k] += y[i] * A[i, j] * B[j, k]", "max_plus"),
    ("r[i] += A[i, j] * x[j]", "min_plus"),
    ("r[i] += A[i, j]", "max_times"),
    ("r += A[i, j] * D[i, j]", "min_max"),
    ("R[i, j] = A[i, j]", "min_plus"),
    ("R[i, j] = A[i, j] * D[i, j]", "min_plus"),
    ("C[i, k] += A[i, j] * B[j, k]", "min_plus"),
    ("W[i, k] += A[i, j] * B[j, k]", "min_plus"),
    ("R<P>[i, k] += A[i, j] * B[j, k]", "min_plus"),
    ("R<~P>[i, k] += A[i, j] * B[j, k]", "max_plus"),
    ("R<C>[i, k] += A[i, j] * B[j, k]", "max_plus"),
    ("C<P>[i, k] += A[i, j] * B[j, k]", "min_plus"),
    ("R[i, k] += A[i, j] * B[j, k]; r[i] += R[i, k] * V2[k]", "min_plus"),
]
PLAIN["V2"] = np.array([1.0, 2.0, 3.0])
FORMATS = ["csr", "csc", "coo", "dense"]


def masked(name: str, form: str, like: Any = None) -> Any:
    data, bits = DATA[name], MASKS[name]
    data, bits = (data, bits) if like is None else (like.as_tensor(data), like.as_tensor(bits))
    m = ow.masked_tensor(data, bits)
    form = "csf" if data.ndim == 3 and form in ("csr", "csc") else form
    return m if form == "dense" or data.ndim == 1 else m.asformat(form)


def names(text: str) -> list[str]:
    """Those that the statements use, of the tensors that there are."""
    import re

    used = set(re.findall(r"[A-Za-z]\w*(?=[<\[(>])", text)) | set(re.findall(r"\b[st]\b", text))
    return [n for n in (*DATA, *PLAIN) if n in used]


def check(got: Any, text: str, ring: str | None = None) -> None:
    used = names(text)
    tensors = {n: (DATA[n], MASKS[n]) for n in used if n in DATA}
    (data, bits), lacks = run(text, tensors, {n: PLAIN[n] for n in used if n in PLAIN}, ring)
    assert isinstance(got, ow.MaskedTensor) == lacks, f"{type(got)}; expected masked: {lacks}"
    found = got.to_masked_array() if lacks else np.ma.asarray(got.to_numpy() if isinstance(got, ow.Tensor) else got)
    assert found.shape == data.shape
    np.testing.assert_array_equal(~np.ma.getmaskarray(found), bits)
    np.testing.assert_allclose(np.ma.filled(found, 0)[bits], data[bits])


def call(text: str, form: str, plain: str, **options: Any) -> Any:
    given = {n: masked(n, form) if n in DATA else PLAIN[n] for n in names(text)}
    if plain != "array":
        given = {n: ow.asarray(x, format=plain) if n in PLAIN and np.ndim(x) == 2 else x for n, x in given.items()}
    return ow.evaluate(text, **given, **options)


@pytest.mark.parametrize(("form", "plain"), [("csr", "array"), ("coo", "csr"), ("dense", "array"), ("csc", "csr")])
@pytest.mark.parametrize("text", STATEMENTS)
@pytest.mark.thin(105)
def test_statements(text: str, form: str, plain: str) -> None:
    check(call(text, form, plain), text)


@pytest.mark.thin(6)
@pytest.mark.parametrize("form", ["csr", "dense"])
@pytest.mark.parametrize(("text", "ring"), RINGS)
def test_semirings(text: str, ring: str, form: str) -> None:
    check(call(text, form, "array", semiring=ring), text, ring)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("text", ["r<s> += A[i, j]", "r<~s> += A[i, j]"])
def test_a_mask_of_one_element(text: str, value: int) -> None:
    got = ow.evaluate(text, A=masked("A", "csr"), s=value)
    assert got.nse == (value == ("~" not in text))
    missing = ow.masked_tensor(np.array(value), np.array(False))
    assert ow.evaluate(text, A=masked("A", "csr"), s=missing).nse == 0


def test_the_format_that_is_asked_for() -> None:
    assert call("R[i, k] += A[i, j] * B[j, k]", "csr", "array", format="csc").format == ow.format("csc")
    assert call("Z[i, j] += A[i, j]", "csr", "csr", format="coo").format == ow.format("coo")
    got = call("R<A>[i, j] = Z[i, j]", "csr", "csr")
    assert got.format == ow.format("csr")


def test_extents_beyond_what_is_dense() -> None:
    n = 10**12
    rows, columns = np.array([5, n - 1, 5]), np.array([1, 2, 2])
    t = ow.asarray(sparse.coo_array((np.array([1.0, 2, 4]), (rows, columns)), shape=(n, 10)))
    m = ow.masked_tensor(t)
    assert ow.evaluate("y[i] += A[i, j]", A=m).compressed().tolist() == [5, 2]
    assert ow.evaluate("y[i] max= A[i, j] * 2", A=m).compressed().tolist() == [8, 4]
    assert ow.evaluate("C[j, i] = A[i, j]", A=m).shape == (10, n)
    plain = ow.evaluate("S[i, j] += A[i, j]", A=m, S=t)
    assert isinstance(plain, ow.Tensor)
    assert plain.asformat("coo").values.tolist() == [2, 8, 4]
    with pytest.raises(ow.UnsupportedError, match="which has a value everywhere"):
        ow.evaluate("C[i, k] += A[i, j] * S[j, k]", A=m, S=ow.asarray(np.eye(10), format="csr").T @ m.specified.T)


def test_products_with_sparse_tensors_may_be_as_large_as_both() -> None:
    """A result of 90,000 elements, which a few thousand of the operands allow."""
    bits = np.zeros((300, 300), bool)
    bits[np.arange(300)[:, None], (np.arange(300)[:, None] + np.arange(7)) % 300] = True
    m = ow.masked_tensor(np.ones((300, 300)), bits).asformat("csr")
    t = ow.asarray(bits * np.arange(1.0, 301), format="csr")
    got = ow.masked.einsum("ij,jk->ik", m, t)
    assert got.nse == 90_000
    np.testing.assert_array_equal(got.filled(-1).to_numpy(), bits.astype(float) @ t.to_numpy())


def test_fill_values_are_values() -> None:
    filled = ow.asarray(PLAIN["X"], format="csr", fill_value=PLAIN["X"][0, 0])
    text = "R[k, i] += A[i, j] * X[j, k]"
    check(ow.evaluate(text, A=masked("A", "csr"), X=filled), text)


def test_several_masked_operands_and_numbers() -> None:
    text = "R[i, j] = A[i, j] + D[i, j] * 2 - A[i, j] / D[i, j] + s"
    check(call(text, "csr", "array"), text)


def test_gradients_reach_what_took_part() -> None:
    torch = pytest.importorskip("torch")
    x, bits = torch.tensor([[1.0, 2], [3, 4]], requires_grad=True), torch.tensor([[True, False], [True, True]])
    y = torch.ones(2, requires_grad=True)
    m, total = ow.as_masked_tensor(x, bits), ow.as_masked_tensor(y, torch.tensor([True, False]))
    ow.evaluate("y[i] += m[i, j] * m[i, j]", m=m, y=total).sum().backward()
    assert x.grad.tolist() == [[2, 0], [6, 8]]
    assert y.grad.tolist() == [1, 0]
    x.grad = None
    m = ow.as_masked_tensor(x, bits).to_sparse_csr()
    ow.evaluate("C<M>[i, k] = m[i, j] * m[j, k]", m=m, M=torch.eye(2)).sum().backward()
    assert x.grad.tolist() == [[2, 0], [0, 8]]
    x.grad = None
    ow.evaluate("y[i] max= m[i, j]", m=ow.as_masked_tensor(x, bits), y=y).sum().backward()
    assert x.grad.tolist() == [[0.5, 0], [0, 1]] or x.grad.tolist() == [[0, 0], [0, 1]]


RECORDED = [
    "R<~M>[i, j] = A[i, j] * 2",
    "R<C>[i, k] = A[i, j] * B[j, k]",
    "R[i, k] max= abs(A[i, j] - B[j, k])",
    "D[i, j] max= Z[i, j]",
    "y[i] *= z[i]",
    "Z[i, j] += y[i]",
    "z[i] max= A[i, j] * 2",
    "C<~P>[i, k] += A[i, j] * B[j, k]",
    "D<A>[i, j] += Z[i, j]",
    "Z<A>[i, j] = Z2[i, j]",
    "R(i, j) = A(i, j) / sum(j, A(i, j))",
    # what is specified decides
    "D[i, j] += 1 - A[i, j]",
    "R[i, j] = either(either(A[i, j], D[i, j]) * 2, y[i])",
    "R[i, j] = either(either(A[i, j], x[j]) * D[i, j], y[i])",
    "R[i, j] = either(either(A[i, j], x[j]), y[i])",
    "R[i, j] = either(where(A[i, j] > 2, D[i, j], A[i, j] * 3), y[i])",
    "R[i, j] = either(where(z[i] > 2, D[i, j], x[j]), y[i])",
    "R[i, j] = either(where(z[i] > 2, x[j], D[i, j]), y[i])",
    "R[i, j] = either(where(A[i, j] > 2, D[i, j], x[j]), y[i])",
    "R[i, j] = either(A[i, j] * D[i, j], y[i])",
]


@pytest.mark.ci
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_gradients_are_slopes(form: str) -> None:
    """Along one direction, of all operands that have values, by differences of the loops over every element."""
    torch = pytest.importorskip("torch")
    data = {n: x + 0.3 * RNG.random(x.shape) for n, x in (DATA | PLAIN).items() if np.ndim(x) and n not in "MPq"}
    along = {n: RNG.standard_normal(x.shape) for n, x in data.items()}

    def weighted(x: Any) -> Any:
        weights = np.cos(np.arange(1.0, 1 + np.prod(x.shape))).reshape(x.shape)
        return (x * (weights if isinstance(x, np.ndarray) else torch.as_tensor(weights))).sum()

    def at(text: str, step: float) -> Any:
        values = PLAIN | {n: x + step * along[n] for n, x in data.items()}
        pairs = {n: (values[n], MASKS[n]) for n in names(text) if n in DATA}
        (found, bits), _ = run(text, pairs, {n: values[n] for n in names(text) if n in PLAIN})
        return weighted(np.where(bits, found, 0))

    for text in RECORDED:
        leaves = {n: torch.tensor(data[n], requires_grad=True) for n in names(text) if n in data}
        given = {n: leaves[n] if n in leaves else torch.as_tensor(PLAIN[n]) for n in names(text)}
        masks = {n: torch.as_tensor(MASKS[n]) for n in given if n in DATA}
        given |= {n: ow.as_masked_tensor(given[n], bits) for n, bits in masks.items()}
        given |= {n: x.asformat(form) for n, x in given.items() if n in DATA and x.ndim == 2}
        got = ow.evaluate(text, **given)
        got = got.filled(0) if isinstance(got, ow.MaskedTensor) else got
        total = weighted(got.to_dense() if isinstance(got, ow.Tensor) else got)
        np.testing.assert_allclose(total.item(), at(text, 0), err_msg=text)
        found = torch.autograd.grad(total, list(leaves.values()), materialize_grads=True)
        slope = sum((g.numpy() * along[n]).sum() for n, g in zip(leaves, found, strict=True))
        np.testing.assert_allclose(slope, (at(text, 1e-5) - at(text, -1e-5)) / 2e-5, rtol=1e-6, err_msg=text)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("C[i, k] += A[i, j] + B[j, k]", {"semiring": "min_plus"}, "expected: a product of tensors"),
        ("y[i] |= A[i, j]", {}, "any= asks which are not 0"),
        ("C[i, j] = A[i, j] + Q[i, j]", {}, "no tensor Q"),
    ],
)
def test_refusals(text: str, options: dict[str, Any], message: str) -> None:
    given = {n: masked(n, "csr") for n in names(text)}
    with pytest.raises(ow.UnsupportedError if "Q" not in text else ow.ShapeError, match=message):
        ow.evaluate(text, **given, **options)


def test_einsum_takes_formats_semirings_and_lists() -> None:
    a, b = masked("A", "csr"), masked("B", "csr")
    check(ow.einsum("ij,jk->ik", a, b, semiring="min_plus"), "R[i, k] += A[i, j] * B[j, k]", "min_plus")
    check(ow.einsum(a, [0, 1], b, [1, 2], [0, 2], format="csc"), "R[i, k] += A[i, j] * B[j, k]")
    assert ow.einsum("ij->ji", a, format="coo").format == ow.format("coo")
    twice = ow.einsum("ij,->ij", a, ow.masked_tensor(np.array(2.0), np.array(True)))
    assert np.array_equal(twice.to_numpy(0), 2 * a.to_numpy(0))


def test_products_over_dimensions() -> None:
    t, v, u, w = masked("T", "csf"), np.arange(1.0, 6), _data(5, 2), _data(3, 2)
    given = {"T": (DATA["T"], MASKS["T"])}
    for got, text, plain in [
        (ow.ttv(t, v, 1), "R[i, k] += T[i, j, k] * v[j]", {"v": v}),
        (ow.ttm(t, u, 1), "R[i, r, k] += T[i, j, k] * u[j, r]", {"u": u}),
        (ow.mttkrp(t, [None, u, w], 0), "R[i, r] += T[i, j, k] * u[j, r] * w[k, r]", {"u": u, "w": w}),
    ]:
        (data, bits), _ = run(text, given, plain)
        assert np.array_equal(got.to_dense().get_mask().to_numpy(), bits)
        np.testing.assert_allclose(got.to_numpy(0)[bits], data[bits])


def test_sampled_products() -> None:
    m, x, y = masked("C", "csr"), _data(4, 2), _data(2, 3)
    got = ow.sddmm(m, x, y)
    np.testing.assert_allclose(got.to_numpy(0), x @ y * MASKS["C"])
    text = "R<C>[i, k] += A[i, j] * B[j, k]"
    check(ow.sddmm(m, masked("A", "csr"), masked("B", "csr")), text)


def test_pointwise_of_numbers_and_of_outer_indices() -> None:
    s = ow.masked_tensor(np.array(3.0), np.array(True))
    assert ow.pointwise("A * 2 + B", {"A": s, "B": s}).item() == 9
    absent = ow.masked_tensor(np.array(3.0), np.array(False))
    for text in ("A * 2 + B", "B - A", "A * B"):
        assert ow.pointwise(text, {"A": s, "B": absent}).nse == 0
    assert ow.pointwise("A * S", {"A": masked("A", "csr"), "S": s}).nse == MASKS["A"].sum()
    assert ow.pointwise("y[i] * y[j]", {"y": masked("y", "dense")}).shape == (4, 4)
