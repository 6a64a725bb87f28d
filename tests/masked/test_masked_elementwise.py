"""Elementwise operations of masked tensors against numpy.ma, and NaN as missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_cases import CASES, FEW, MOST, SHAPES, agree, arrays, made, reference

import openwork as ow
from openwork.masked import binary, lift

DTYPES = ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128")


@pytest.mark.thin(15)
@pytest.mark.parametrize(("rank", "spec"), CASES, ids=lambda x: str(x))
def test_every_format(rank: int, spec: str) -> None:
    shape = SHAPES[rank][0]
    data, bits = arrays(shape)
    other, _ = arrays(shape, 1)
    m, n = made(data, bits, spec), made(other, bits, spec)
    a, b = reference(data, bits), reference(other, bits)
    agree(np.exp(m), np.ma.exp(a))
    agree(-m, -a)
    agree(m + n, a + b)
    agree(m * n - 2, a * b - 2)
    agree(m < n, a < b)
    agree(m + other, a + other)
    agree(m * other[..., :1], a * other[..., :1])
    agree(2.0 - m, 2.0 - a)
    assert (m + n).format == m.format


@pytest.mark.thin(3)
@pytest.mark.parametrize(("rank", "spec"), MOST, ids=lambda x: str(x))
def test_masks_that_differ(rank: int, spec: str) -> None:
    shape = SHAPES[rank][0]
    data, bits = arrays(shape)
    other, also = arrays(shape, 1)
    m, n = made(data, bits, spec), made(other, also, spec)
    agree(m.add(n, how="intersection"), reference(data + other, bits & also))
    either = np.where(bits & also, data + other, np.where(bits, data, other))
    agree(m.add(n, how="union"), reference(either, bits | also))
    with pytest.raises(ow.ShapeError) as error:
        m + n
    first = tuple(int(c) for c in np.argwhere(bits != also)[0])
    which = "first" if bits[first] else "second"
    assert f"element {first} is specified in the {which} operand only" in str(error.value)


@pytest.mark.ci
@given(st.sampled_from(DTYPES), st.sampled_from(("all", "none", "one", 0.5)), st.sampled_from(FEW), st.integers(0, 9))
@settings(max_examples=25)
def test_filled_commutes(dtype: str, mask: Any, case: tuple[int, str], seed: int) -> None:
    """filled(v) of elementwise == elementwise of filled(v), where specified."""
    rank, spec = case
    data, bits = arrays(SHAPES[rank][0], seed, dtype, mask)
    m = made(data, bits, spec)
    for function in (np.square, np.conjugate, np.isfinite):
        got = lift(function, (m,), "f").filled(1).to_numpy()[bits]
        np.testing.assert_array_equal(got, function(m.filled(1).to_numpy())[bits])
    np.testing.assert_array_equal(binary("mul", m, m).filled(1).to_numpy()[bits], (data * data)[bits])


def test_missing_values_never_matter() -> None:
    data = np.array([1.0, 0.0, np.nan, np.inf])
    bits = np.array([True, False, False, True])
    m = ow.masked_tensor(data, bits)
    agree(1 / m, np.ma.MaskedArray([1.0, 0, 0, 0.0], mask=~bits))
    with np.errstate(all="raise"):
        np.log(m)
    assert not np.isnan(np.isnan(m).compressed()).any()


def test_different_formats() -> None:
    data, bits = arrays((8, 12))
    for f, g in (("csr", "coo"), ("dense", "csc"), ("bsr(2, 3)", "dense")):
        total = made(data, bits, f) + made(data, bits, g)
        agree(total, reference(2 * data, bits))
        assert total.format == made(data, bits, f).format


def test_broadcasting() -> None:
    data, bits = arrays((4, 5))
    row, some = arrays((5,), 1)
    for f in ("dense", "csr"):
        m = made(data, bits, f)
        agree(m.add(ow.masked_tensor(row, some), how="intersection"), reference(data + row, bits & some))
        full = ow.masked_tensor(row, np.ones(5, np.bool_))
        agree(made(data, np.ones((4, 5), np.bool_), f) * full, np.ma.asarray(data * row))
    with pytest.raises(ow.ShapeError, match="do not broadcast"):
        ow.masked_tensor(data, bits) + np.ones(3)


@pytest.mark.ci
def test_where() -> None:
    data, bits = arrays((6, 7))
    other, also = arrays((6, 7), 1)
    condition, known = arrays((6, 7), 2)
    condition = condition > 0
    want = reference(np.where(condition, data, other), np.where(condition, bits, also))
    for f in ("dense", "csr", "coo", "bsr(2, 2)", "dia"):
        m, n = made(data, bits, f), made(other, also, f)
        got = m.where(condition, n)
        agree(got, want)
        assert got.format == m.format
        agree(m.where(condition, 3.0), reference(np.where(condition, data, 3), np.where(condition, bits, True)))
        unsure = made(condition, known, f)
        agree(m.where(unsure, n), reference(want.data, ~want.mask & known))
        for got, places in zip(ow.where(m), np.nonzero(np.where(bits, data, 0)), strict=True):
            np.testing.assert_array_equal(got, places)
        for choices in ((m, None), (None, m)):
            with pytest.raises(ow.ShapeError, match="where: either both or neither"):
                ow.where(unsure, *choices)


def test_clamp_and_in_place() -> None:
    data, bits = arrays((6, 7))
    for f in ("dense", "csc"):
        m = made(data, bits, f)
        agree(m.clamp(-1, 2), reference(np.clip(data, -1, 2), bits))
        values = m.values
        m += 1
        m *= m
        assert m.values is values
        agree(m, reference((data + 1) ** 2, bits))
    n = made(data.astype(int), bits)
    with pytest.raises(ow.DTypeError, match="in place: the result has dtype float64"):
        n /= 2


@pytest.mark.parametrize("spec", ["dense", "csr", "coo"])
def test_sparse_tensors_have_a_value_everywhere(spec: str) -> None:
    data, bits = arrays((6, 7))
    other = np.where(arrays((6, 7), 1)[1], data + 1, 0)
    other[0, 0] = np.inf
    m, s = made(data, bits, spec), ow.asarray(other, format="csr")
    with np.errstate(invalid="ignore"):
        agree(m * s, reference(data * other, bits))
        agree(s - m, reference(other - data, bits))
        agree(m * s[:1], reference(data * other[:1], bits))
        agree(lift(np.logaddexp, (m, s), "logaddexp"), reference(np.logaddexp(data, other), bits), exact=False)


def test_how_is_one_of_three() -> None:
    data, bits = arrays((3, 4))
    with pytest.raises(ow.UnsupportedError, match="how='all'"):
        made(data, bits).add(made(data, bits), how="all")


def test_tensors_on_the_left() -> None:
    data, bits = arrays((3, 4))
    m, whole = made(data, bits), ow.asarray(np.ones((3, 4)))
    agree(whole - m, reference(1 - data, bits))
    agree(whole == m, reference(data == 1, bits))
    agree(ow.asarray(np.ones((2, 3))) @ m, (np.ones((2, 3)) @ m).to_masked_array())
    agree(whole.asformat("csr") * m, reference(data, bits))


def test_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    t = torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)
    m = ow.masked_tensor(t, torch.tensor([True, False, True])).asformat("coo")
    assert (m + m).compressed().tolist() == [2.0, 6.0]
    assert (m + m).dtype == torch.bfloat16


def test_numbers_are_weak_beside_torchs_integers() -> None:
    torch = pytest.importorskip("torch")
    t, bits = torch.arange(6).reshape(2, 3), torch.tensor([[True, False, True], [False, True, True]])
    for format in ("dense", "csr"):
        m = ow.masked_tensor(t, bits).asformat(format)
        for got, want in ((m + 2.5, t + 2.5), (np.maximum(m, 2.5), t.clamp(2.5)), (m + np.array(2), t + 2)):
            assert got.dtype == want.dtype
            assert got.compressed().tolist() == want[bits].tolist()
        for found, places in zip(m.nonzero(), torch.nonzero(t * bits, as_tuple=True), strict=True):
            torch.testing.assert_close(found, places)


def test_masks_that_differ_between_formats() -> None:
    data, bits = arrays((5, 6))
    other = bits.copy()
    other[0, 0] = not other[0, 0]
    for f, g in (("csr", "coo"), ("csr", "dense"), ("dense", "csc"), ("csc", "csr")):
        with pytest.raises(ow.ShapeError, match=r"the masks differ: element \(0, 0\)"):
            made(data, bits, f) + made(data, other, g)


def test_rank_0() -> None:
    x = ow.masked_tensor(np.array([1.5, 2.0]), np.array([True, False]))
    for k, known in ((0, True), (1, False)):
        s = x[k]
        again = ow.masked_tensor(ow.asarray(np.array(3.0)), np.array(known))
        assert (s + again).filled(-1).item() == (4.5 if known else -1)
        assert (again * 2).filled(-1).item() == (6 if known else -1)


def test_a_number_of_the_other_library() -> None:
    torch = pytest.importorskip("torch")
    m = ow.masked_tensor(np.array([[1.0, 2], [3, 4]]), np.array([[True, False], [True, True]]))
    for result in (m * torch.tensor(2.0), ow.multiply(m, torch.tensor(2.0))):
        assert result.filled(0).to_numpy().tolist() == [[2, 0], [6, 8]]
    with pytest.raises(TypeError, match="len"):
        len(ow.masked_tensor(np.array(2.0), np.array(True)))
