"""Reductions that leave two dimensions or more: sparse in the operand's levels, equal to NumPy's of the dense array."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.compiler.schedule.kept_format import kept_format

X = np.random.default_rng(0).integers(-3, 4, (3, 4, 5)) * (np.random.default_rng(1).random((3, 4, 5)) < 0.3) * 1.0
FORMATS = (
    "coo", "csf", "bitmap", "(i, j, k) -> (k : dense, i : compressed, j : compressed)",
    "(b, i, j) -> (b : dense, i : dense, j : compressed)", "(i, j, k) -> (i : dense, j : compressed, k : dense)",
    "(i, j, k) -> (i : dense, j // 2 : compressed, k : dense, j % 2 : dense)",
)  # fmt: skip
SIMPLE = ("sum", "prod", "max", "min", "mean", "any", "all", "count_nonzero", "argmax", "argmin")
SLOWER = ("std", "var", "median", "nansum", "nanmax", "nanmean")


def agree(name: str, t: ow.Tensor, array: np.ndarray[Any, Any], axis: Any, keepdims: bool) -> ow.Tensor:
    got: ow.Tensor = getattr(ow, name)(t, axis=axis, keepdims=keepdims)
    want = getattr(np, name)(array, axis=axis, keepdims=keepdims)
    dense = got.to_numpy()
    assert (dense.shape, dense.dtype) == (want.shape, want.dtype), (name, axis, keepdims)
    np.testing.assert_allclose(dense, want, rtol=1e-12, err_msg=f"{name} {axis} {keepdims}")
    return got


@pytest.mark.thin(6)
@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_values_and_formats(spec: str) -> None:
    first = FORMATS.index(spec)
    names = (*SIMPLE[first % 2 :: 2], *SLOWER[first % 3 :: 3])
    for fill in (0, 2):
        t = ow.asarray(X + fill, format="coo", fill_value=fill).asformat(spec)
        for k, name in enumerate(names):
            axis, keepdims = (k + fill) % 3, k % 2 == 0
            got = agree(name, t, X + fill, axis, keepdims)
            dims = tuple(d for d in range(3) if keepdims or d != axis)
            kept = kept_format(t.format, dims, 0, (axis,) if keepdims else ())
            assert got.format.is_dense if kept is None else got.format == kept, (name, axis)


def test_formats_of_results() -> None:
    for spec, axis, want in (
        ("coo", 0, "coo"), ("csf", 1, "(i, k) -> (i : compressed, k : compressed)"), ("bitmap", 0, "bitmap"),
        (FORMATS[3], 0, "csc"), (FORMATS[4], 0, "csr"), (FORMATS[4], 2, "dense"), (FORMATS[5], 1, "dense"),
        (FORMATS[5], 0, "(i, j) -> (i : compressed, j : dense)"), (FORMATS[6], 2, "coo"),
    ):  # fmt: skip
        t = ow.asarray(X, format=spec)
        got = ow.sum(t, axis=axis)
        assert got.format == ow.format(want, 2), (spec, axis, got.format)
        if not got.format.is_dense:
            assert np.array_equal(
                ow.asarray(got != 0).to_numpy() <= (got.pattern().to_numpy() != 0), np.ones(got.shape)
            )
    batched = ow.asarray(np.broadcast_to(X[0] != 0, (2, 4, 5)) * 1.0, format=ow.format("csr", batch=1))
    assert [ow.sum(batched, axis=d).format for d in range(3)] == [
        ow.format("csr"), ow.format("csr"), ow.format("dense", 2),
    ]  # fmt: skip


def test_results_of_one_dimension_stay_dense() -> None:
    t = ow.asarray(X, format="csf")
    for axis in ((0, 1), (0, 2), (1, 2), None):
        for keepdims in (False, True):
            assert agree("sum", t, X, axis, keepdims).format.is_dense
    A = ow.asarray(X[0], format="csr")
    assert all(ow.sum(A, axis=d, keepdims=k).format.is_dense for d in (0, 1) for k in (False, True))


def test_rank_four() -> None:
    x = np.random.default_rng(2).integers(-1, 2, (3, 2, 4, 3)) * 1.0
    for spec in ("coo", "csf"):
        t = ow.asarray(x, format=spec)
        for axis in ((0, 1), (1, 3), (0, 3), 2, ()):
            for name in ("sum", "max"):
                got = agree(name, t, x, axis, axis == (1, 3))
                assert not got.format.is_dense


def test_what_cannot_be_dense() -> None:
    crd, n = {0: [5, 5, 7], 1: [3, 3, 9], 2: [1, 2, 4]}, 10**5
    t = ow.assemble("coo", (n, n, 10), pos={0: [0, 3]}, crd=crd, values=[1.0, 2.0, 4.0])
    total = ow.sum(t, axis=2)
    assert (total.shape, total.nse, total.item(5, 3), total.item(7, 9)) == ((n, n), 2, 3.0, 4.0)
    for name in (*SIMPLE, "std", "median", "logsumexp"):
        assert getattr(ow, name)(t, axis=2).nse == 2
    assert ow.quantile(t, [0.1, 0.99], axis=2).shape == (2, n, n)
    assert ow.max(t, axis=2, explicit=True).nse == ow.argmax(t, axis=2, explicit=True).nse == 2
    assert ow.linalg.vector_norm(t, axis=2).item(5, 3) == pytest.approx(5**0.5)
    assert ow.as_masked_tensor(t).sum(2).nse == 2
    assert ow.einsum("ijk->ji", t).item(3, 5) == 3.0
    assert ow.evaluate("y[i, j] max= A[i, j, k]", A=t).item(5, 3) == 2.0
    assert ow.compute(ow.sum(ow.lazy(t) * 2, axis=2)).item(5, 3) == 6.0
    assert np.sum(t, axis=2, where=t > 1, initial=1.0).fill_value == 1.0
    largest = 1 << 40
    wide = ow.assemble("coo", (largest,) * 4, pos={0: [0, 1]}, crd={d: [largest - 1] for d in range(4)}, values=[3.0])
    assert ow.sum(wide, axis=0).nse == ow.sum(wide, axis=3).nse == 1
    assert ow.sum(wide, axis=(1, 2)).item(largest - 1, largest - 1) == 3.0


def test_duplicates_and_kinds_of_values() -> None:
    crd, shape = np.array([[0, 0, 1], [1, 1, 0], [1, 1, 1]]), (2, 2, 2)
    for dtype in ("int8", "bool", "float32", "complex64"):
        t = ow.sparse_coo_tensor(crd, np.array([1, 1, 1], dtype), shape)
        for name in ("sum", "prod", "any", "mean"):
            agree(name, t, t.to_numpy(), 2, False)
    with pytest.raises(ow.DTypeError, match="complex numbers are not ordered"):
        ow.max(t, axis=0)


def test_no_elements() -> None:
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        t = ow.asarray(np.zeros(shape), format="csf")
        for axis in range(3):
            agree("sum", t, np.zeros(shape), axis, False)
            if shape[axis] == 0:
                with pytest.raises(ow.ShapeError, match=f"max over axes \\({axis},\\) of extent 0"):
                    ow.max(t, axis=axis)
            else:
                agree("any", t, np.zeros(shape), axis, True)


def test_again_with_other_values() -> None:
    for spec in ("coo", "csf", "bitmap"):
        t = ow.asarray(X, format=spec)
        for factor in (1, 2, 3):
            for name in ("sum", "max"):
                agree(name, t * factor, X * factor, 1, False)
        kept = ow.sum(t, axis=1)
        kept.values[:] = 0
        agree("sum", t, X, 1, False)
        assert ow.explain(lambda t=t: ow.sum(t, axis=1)).result.format == kept.format


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's, when it first has tangents
@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.slow)])
@pytest.mark.parametrize("spec", ["csf", "(i, j, k) -> (k : dense, i : compressed, j : compressed)", "csr"])
def test_prepared_calls_take_the_values_of_each_call(spec: str, library: str) -> None:
    """Infinite and missing values too, which a call that is kept must not have folded in; and what torch records."""
    torch = pytest.importorskip("torch") if library == "torch" else None
    array = X[0] if spec == "csr" else X
    t = ow.asarray(array if torch is None else torch.from_numpy(array), format=spec)
    others = [1.0, -2.0, np.inf, np.nan, 3.0]
    for name, axis in (("sum", 1), ("max", 1), ("min", 0), ("mean", 1), ("prod", 0), ("max", (0, 1)), ("sum", None)):
        for number, scale in enumerate(others * 2):
            with np.errstate(all="ignore"):
                values = np.arange(1.0, 1 + len(t.values)) - scale * (number % 3)
            s = t.with_values(values if torch is None else torch.from_numpy(values))
            agree_quietly(name, s, axis)
        if torch is not None and name != "prod":
            sign = -1.0 if name == "min" else 1.0
            leaf = (torch.arange(1.0, 1 + len(t.values), dtype=torch.float64) * sign).requires_grad_()
            w = t.with_values(leaf)
            ow.sum(getattr(ow, name)(w, axis=axis)).to_dense().backward()
            assert leaf.grad.abs().sum() > 0
            with torch.no_grad():
                assert not getattr(ow, name)(w, axis=axis).values.requires_grad
            _, tangent = torch.func.jvp(
                lambda v: getattr(ow, name)(t.with_values(v), axis=axis).to_dense(),  # noqa: B023
                (w.values.detach(),), (torch.ones(len(t.values), dtype=torch.float64),),
            )  # fmt: skip
            assert tangent.abs().sum() > 0


def agree_quietly(name: str, t: ow.Tensor, axis: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = getattr(np, name)(t.to_numpy(), axis=axis)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        got = getattr(ow, name)(t, axis=axis)
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-12, err_msg=f"{name} {axis}")


@pytest.mark.thin(2)
@pytest.mark.parametrize("ring", ["plus_times", "min_plus", "max_min", "times_times"])
def test_einsum_of_one_operand_reduces_stored_fibres(ring: str) -> None:
    """Its letters in any order, diagonals and formats, over what is stored alone; again with other values."""
    function = {"plus": np.sum, "min": np.min, "max": np.max, "times": np.prod}[ring.partition("_")[0]]
    for spec in ("csf", "(i, j, k) -> (k : dense, i : compressed, j : compressed)"):
        t = ow.asarray(X, format=spec)
        for values in (t.values, t.values * 2, t.values - 5, t.values + 1):
            s = t.with_values(values)
            stored, there = s.to_numpy(), t.pattern().to_numpy() != 0
            for letters, axis in (("ij", 2), ("kj", 0), ("ki", 1), ("i", (1, 2))):
                got = ow.einsum(f"ijk->{letters}", s, semiring=ring)
                dims = "ijk" if got.ndim == 1 else "".join(c for c in "ijk" if c in letters)
                seen = there.any(axis)
                want = np.full(seen.shape, got.fill_value)
                for at in np.argwhere(seen):
                    fibre = [slice(None)] * 3
                    for place, c in zip(at, [c for c in "ijk" if c in letters], strict=True):
                        fibre["ijk".index(c)] = slice(int(place), int(place) + 1)
                    want[tuple(at)] = function(stored[tuple(fibre)][there[tuple(fibre)]])
                want = want if dims == letters or got.ndim == 1 else want.T
                np.testing.assert_allclose(got.to_numpy(), want, err_msg=f"{spec} {letters}")


def test_one_operand_of_einsum_and_of_index_notation() -> None:
    t = ow.asarray(X, format="csf")
    for text, axis in (("ijk->ij", 2), ("ijk->ik", 1), ("ijk->jk", 0)):
        assert ow.einsum(text, t).format == ow.sum(t, axis=axis).format
        np.testing.assert_array_equal(ow.einsum(text, t).to_numpy(), X.sum(axis))
    assert ow.einsum("ijk->ij", t, semiring="max_plus").fill_value == float("-inf")
    assert ow.evaluate("y[i, k] += A[i, j, k]", A=t).format == ow.sum(t, axis=1).format
    assert ow.compute(ow.sum(ow.lazy(t) + t, axis=0)).format == ow.sum(t, axis=0).format


def test_masked_tensors() -> None:
    m, want = ow.as_masked_tensor(ow.asarray(X, format="csf")), np.ma.MaskedArray(X, X == 0)
    for name in ("sum", "mean", "prod", "any"):
        for axis in range(3):
            got, expected = getattr(m, name)(axis=axis), getattr(want, name)(axis=axis)
            assert not got.format.is_dense
            assert np.array_equal(got.get_mask().to_numpy(), ~np.ma.getmaskarray(expected))
            np.testing.assert_allclose(got.to_numpy(0), expected.filled(0))
    assert ow.as_masked_tensor(X, X != 0).sum(0).format == ow.format("bitmap", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corrected = m.var(axis=2, correction=1)
    assert corrected.nse == m.sum(axis=2).nse
    one = m.count(axis=2).to_numpy(0) == 1
    assert one.any()
    assert np.isnan(corrected.to_numpy(0)[one]).all()


def test_gradients() -> None:
    torch = pytest.importorskip("torch")
    for spec, name in (("coo", "sum"), ("csf", "max"), ("bitmap", "sum"), (FORMATS[5], "logsumexp")):
        t = ow.asarray(torch.tensor(X[:2, :2, :3] + (X[:2, :2, :3] == 0) * [1.0, 0, 0]), format=spec)

        def result(values: Any, t: Any = t, name: str = name) -> Any:
            return getattr(ow, name)(t.with_values(values), axis=1).to_dense()

        values = t.values.clone() + torch.arange(t.values.shape[0]) * 0.1
        assert torch.autograd.gradcheck(result, values.requires_grad_())
    dense = torch.tensor(X, requires_grad=True)
    ow.sum(ow.asarray(dense, format="csf", grad="dense") ** 2, axis=0).to_dense().sum().backward()
    np.testing.assert_allclose(dense.grad.numpy(), 2 * X)


@pytest.mark.filterwarnings("ignore")
def test_extents_of_zero_and_infinite_elements() -> None:
    none = np.zeros((0, 3, 0, 2))
    for spec in ("coo", "dense"):
        t = ow.asarray(none, format=spec)
        assert ow.median(t, axis=(0, 2)).shape == (3, 2)
        assert ow.median(t, axis=(0, 1)).shape == (0, 2)
        assert ow.median(t, axis=(1, 2), keepdims=True).shape == (0, 1, 1, 2)
        with pytest.raises(ow.ShapeError, match="extent 0"):  # as NumPy's and torch's
            ow.argmax(t, axis=0)
    x = np.array([[[1, np.inf, np.nan], [np.inf, np.inf, 0]], [[-np.inf, np.inf, 3], [0, -np.inf, -np.inf]]])
    for axis in (0, 1, 2, (0, 2), None):
        got = ow.nanmedian(ow.asarray(x, format="coo"), axis=axis).to_numpy()
        assert np.array_equal(got, np.nanmedian(x, axis=axis), equal_nan=True)


def test_a_dense_sum_that_is_asked_for_is_one_walk() -> None:
    """`format="dense"` makes no sparse result on its way."""
    t = ow.asarray(np.arange(60.0).reshape(3, 4, 5) % 7, format="csf")
    assert str(ow.explain(lambda t: ow.einsum("ijk->jk", t, format="dense"), t)).startswith("1. kernel out[j, k] +=")
    np.testing.assert_allclose(ow.einsum("ijk->jk", t, format="dense").to_numpy(), t.to_numpy().sum(0))


def test_masked_results_are_missing_where_nothing_is_specified() -> None:
    t = ow.sparse_coo_tensor([[0, 2], [1, 3], [0, 1]], [2.0, 5.0], (3, 4, 2))
    m = ow.as_masked_tensor(t.asformat("(i, j, k) -> (i : compressed, j : dense, k : compressed)"))
    for name in ("sum", "max", "mean", "argmax"):
        got = getattr(m, name)(axis=2)
        assert np.argwhere(ow.asarray(got.get_mask()).to_numpy()).tolist() == [[0, 1], [2, 3]], name
