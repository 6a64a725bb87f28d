"""Masked tensors from everything that they are made of, their accessors and how they look."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from masked_cases import CASES, MOST, SHAPES, agree, arrays, made, reference

import openwork as ow
from openwork.ops import mask_formats as forms


@pytest.mark.thin(14)
@pytest.mark.parametrize(("rank", "spec"), CASES, ids=lambda x: str(x))
def test_round_trip(rank: int, spec: str) -> None:
    """`to_dense().asformat(f) == self`, and only specified elements count."""
    data, bits = arrays(SHAPES[rank][0])
    m = made(data, bits, spec)
    agree(m, reference(data, bits))
    assert m.nse == bits.sum()
    again = m.to_dense().asformat(m.format)
    assert again.format == m.format
    agree(again, reference(data, bits))
    np.testing.assert_array_equal(np.asarray(m.compressed()), data[bits])
    np.testing.assert_array_equal(m.filled(9).to_numpy(), np.where(bits, data, 9))
    np.testing.assert_array_equal(m.get_mask().to_numpy(), bits)
    np.testing.assert_array_equal(m.get_data().to_numpy()[bits], data[bits])


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "spec"), CASES, ids=lambda x: str(x))
@pytest.mark.parametrize("mask", ["all", "none", "one"])
def test_round_trip_of_extreme_masks(rank: int, spec: str, mask: str) -> None:
    for shape in SHAPES[rank]:
        data, bits = arrays(shape, mask=mask)
        m = made(data, bits, spec)
        agree(m, reference(data, bits))
        agree(m.to_dense().asformat(m.format), reference(data, bits))


@pytest.mark.thin(6)
@pytest.mark.parametrize(("rank", "spec"), MOST, ids=lambda x: str(x))
def test_data_and_mask_of_one_sparse_format(rank: int, spec: str) -> None:
    """What a sparse mask stores and is False stays stored, and is missing."""
    data, stored = arrays(SHAPES[rank][0])
    _, bits = arrays(SHAPES[rank][0], 7)
    f = ow.format(spec, rank)
    values = ow.asarray(np.where(stored, data, 0)).asformat(f)
    pattern = ow.asarray(stored).asformat(f)
    mask = pattern._from_storage(pattern._storage.with_values(pattern.values & False, False))
    mask = ow.sparse_mask(ow.asarray(bits), pattern) if not f.is_dense else ow.asarray(bits).asformat(f)
    if f.is_dense:
        agree(ow.masked_tensor(values, mask), reference(values.to_numpy(), bits))
        return
    data = values.to_numpy()
    held = ow.sparse_mask(ow.asarray(data), mask)
    m = ow.masked_tensor(held, mask)
    want = mask.to_numpy()
    agree(m, reference(data, want))
    np.testing.assert_array_equal(m.get_mask().to_numpy(), want)
    assert forms.plain(m.format).ndim == rank


def test_the_pair_of_constructions_of_the_note() -> None:
    torch = pytest.importorskip("torch")
    i, size = [[0, 1, 1], [2, 0, 2]], (2, 3)
    gone = ow.masked_tensor(
        torch.tensor([[0, 0, 3], [4, 0, 5]]).to_sparse(),
        torch.tensor([[False, False, True], [False, False, True]]).to_sparse(),
    )
    kept = ow.masked_tensor(
        torch.sparse_coo_tensor(i, [3, 4, 5], size), torch.sparse_coo_tensor(i, torch.tensor([True, False, True]), size)
    )
    assert str(gone) == str(kept)
    assert gone.get_data().nse == 2
    assert kept.get_data().nse == 3
    assert kept.nse == 2
    assert gone.is_sparse_coo()
    assert kept.is_sparse_coo()
    with pytest.raises(ow.ShapeError, match=r"the masks agree, but what is stored does not: 2 elements and 3") as error:
        gone + kept
    assert "help: compact()" in str(error.value)
    agree(gone + kept.compact(), reference(np.array([[0, 0, 6], [0, 0, 10]]), gone.get_mask().to_numpy()))


def test_sources() -> None:
    data, bits = arrays((3, 4))
    want = reference(data, bits)
    agree(ow.masked_tensor(want), want)
    agree(ow.masked_tensor(data.tolist(), bits.tolist()), want)
    agree(ow.masked_tensor(ow.asarray(data), ow.asarray(bits)), want)
    matrix = sp.csr_array(data * bits)
    agree(ow.masked_tensor(matrix), reference(data, bits))
    assert ow.masked_tensor(matrix).is_sparse_csr()
    agree(ow.masked_tensor(ow.masked_tensor(data, bits)), want)


def test_pandas_columns() -> None:
    pandas = pytest.importorskip("pandas")
    m = ow.masked_tensor(pandas.Series([1, None, 3], dtype="Int64"))
    agree(m, np.ma.MaskedArray(np.array([1, 0, 3]), mask=[0, 1, 0]))


class Column:
    """A nullable column as pandas has it."""

    dtype = np.dtype("int64")

    def isna(self) -> Any:
        return np.array([False, True, False])

    def to_numpy(self, dtype: Any, na_value: Any) -> Any:
        return np.array([1, na_value, 3], dtype)


def test_nullable_columns() -> None:
    agree(ow.masked_tensor(Column()), np.ma.MaskedArray(np.array([1, 0, 3]), mask=[0, 1, 0]))


def test_torch_layouts_and_masked() -> None:
    torch = pytest.importorskip("torch")
    from torch.masked import masked_tensor

    data, bits = arrays((4, 6), dtype="float32")
    t, b = torch.from_numpy(data), torch.from_numpy(bits)
    want = reference(data, bits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = masked_tensor(t, b)
        agree(ow.masked_tensor(theirs), want)
        assert str(ow.masked_tensor(t, b)) == str(theirs)
        assert str(ow.masked_tensor(t, b).to_torch_masked()) == str(theirs)
        one = masked_tensor(torch.tensor(3.0), torch.tensor(False))
        assert str(ow.masked_tensor(one)) == str(one)
        line = masked_tensor(torch.tensor([1000000, 2, 3]), torch.tensor([True, False, True]))
        assert str(ow.masked_tensor(line)) == str(line)
    for kind in ("to_sparse_csr", "to_sparse_csc"):
        made = ow.masked_tensor(getattr(t * b, kind)(), getattr(b, kind)())
        agree(made, want)
        assert made.layout is getattr(torch, kind[3:])
    blocks = ow.masked_tensor(t.to_sparse_bsr((2, 3)), torch.ones(4, 6, dtype=torch.bool).to_sparse_bsr((2, 3)))
    assert blocks.layout is torch.sparse_bsr
    assert blocks.asformat("dcsr").layout is None
    assert ow.masked_tensor(t, b).layout is torch.strided
    assert ow.masked_tensor(data, bits).layout == "strided"
    assert type(ow.masked_tensor(t, b).to_tensor(0)) is torch.Tensor


@pytest.mark.parametrize(
    ("data", "mask", "kind", "text"),
    [
        (np.ones(3), np.ones(4, np.bool_), ow.ShapeError, "data of shape (3,), mask of shape (4,)"),
        (np.ones(3), np.ones(3), ow.DTypeError, "expected a mask of dtype bool; got float64"),
        (np.ones(3), None, ow.UnsupportedError, "dense data needs a mask"),
        (np.ma.ones(3), np.ones(3, np.bool_), ow.UnsupportedError, "the data has a mask of its own"),
        (sp.csr_array(np.eye(3)), sp.coo_array(np.eye(3) > 0), ow.FormatError, "data and mask have one format"),
        (sp.csr_array(np.eye(3)), sp.csr_array(np.eye(3)), ow.DTypeError, "expected a mask of dtype bool"),
        (
            sp.csr_array(np.eye(3)), sp.csr_array(np.ones((3, 3)) > 0), ValueError,
            "the mask specifies element (0, 1), which the data does not store (6 such)",
        ),
    ],
)  # fmt: skip
def test_refusals(data: Any, mask: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as error:
        ow.masked_tensor(data, mask)
    assert text in str(error.value)
    assert "help: " in str(error.value)


def test_a_masked_tensor_is_no_array() -> None:
    m = ow.masked_tensor(np.ones(3), np.array([True, False, True]))
    with pytest.raises(ow.UnsupportedError, match="missing elements have no value"):
        np.asarray(m)
    with pytest.raises(TypeError, match="masked_tensor"):
        ow.MaskedTensor(1)


def test_copies_and_views() -> None:
    data, bits = arrays((3, 4))
    assert np.shares_memory(ow.as_masked_tensor(data, bits).values, data)
    assert not np.shares_memory(ow.masked_tensor(data, bits).values, data)
    m = ow.masked_tensor(data, bits)
    assert np.shares_memory(m.get_data().to_numpy(), m.values)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), m.clone()):
        agree(other, reference(data, bits))
        assert not np.shares_memory(other.values, m.values)
    one = ow.masked_tensor(np.float64(2), np.bool_(True))
    assert pickle.loads(pickle.dumps(one)).item() == 2


def test_scalars() -> None:
    some, none = (ow.masked_tensor(np.float64(2), np.bool_(b)) for b in (True, False))
    assert some.shape == none.shape == ()
    assert float(some) == 2
    assert str(none) == "MaskedTensor(--, False)"
    assert none.nse == 0
    assert none.filled(5).to_numpy() == 5
    with pytest.raises(ValueError, match="the element is missing"):
        none.item()
    with pytest.raises(ow.ShapeError, match="the masks differ"):
        some + none


def test_filled_keeps_the_format() -> None:
    data, bits = arrays((5, 6))
    for spec in ("dense", "csr"):
        with pytest.raises(ow.DTypeError, match="fill value nan does not fit i64"):
            made(data.astype(int), bits, spec).filled(np.nan)
    f = made(data, bits, "csr").filled(7)
    assert f.format == ow.format("csr")
    assert f.fill_value == 7
    assert made(data, bits).filled(7).format.is_dense


def test_long_ones_are_elided() -> None:
    m = ow.masked_tensor(np.arange(3000.0).reshape(50, 60), np.ones((50, 60), np.bool_)).to_sparse_csr()
    text = str(m)
    assert text.count("...") == 7
    assert len(text.splitlines()) == 11
    assert "2999.0000" in text
    assert "<pre>MaskedTensor(" in m._repr_html_()
    assert "3,000 of 3,000" in m._repr_html_()


def test_what_a_masked_number_shows() -> None:
    for number in (0.0, 3.0):
        m = ow.masked_tensor(np.array([number]), np.array([True])).sum()
        assert str(m) == f"MaskedTensor({number:8.4f}, True)"


@pytest.mark.parametrize("spec", ["(a, b) -> (a : batch, b : batch)", "(a, b) -> (b : batch, a : batch)"])
def test_formats_of_batches_alone_get_bits(spec: str) -> None:
    """A specified 0 stays specified, and a missing element missing."""
    data, bits = np.array([[0.0, 3, 0], [1, 0, 2]]), np.array([[True, True, False], [False, True, True]])
    for m in (made(data, bits, "dense"), made(data, bits, "coo")):
        found = m.asformat(spec)
        assert found.nse == bits.sum()
        agree(found, reference(data, bits))
    vector = made(data[0], bits[0], "csf").asformat("(a) -> (a : batch)")
    agree(vector, reference(data[0], bits[0]))


EVERY = [
    "csr",
    "csc",
    "coo",
    "dcsr",
    "dcsc",
    "dia",
    "ell(3)",
    "bsr(2, 2)",
    "bsc(2, 2)",
    "bitmap",
    "nm(2, 4)",
    "nm(1, 2)",
]


@pytest.mark.parametrize("spec", EVERY)
def test_what_a_tensor_of_each_format_specifies(spec: str) -> None:
    """What it stores, zeros of blocks and lanes included; padding of none."""
    x = np.array([[0, 1.5, 0, 0], [2, 0, 0, 3], [0, 0, 0, 0], [0, 4, 5, 0]])
    t = ow.asarray(x, format=spec)
    stored = ow.Tensor._from_storage(t._storage.with_values(np.ones_like(np.asarray(t.values)), 0)).to_numpy() != 0
    found = ow.masked_tensor(t).to_masked_array()
    np.testing.assert_array_equal(~np.ma.getmaskarray(found), stored)
    np.testing.assert_array_equal(found.filled(0), x)


def test_missing_elements_want_a_value() -> None:
    m = ow.masked_tensor(np.arange(3.0), np.array([True, False, True]))
    np.testing.assert_array_equal(m.to_numpy(7), [0, 7, 2])
    with pytest.raises(ow.UnsupportedError, match=r"help: to_numpy\(0\), or to_masked_array\(\)"):
        m.to_numpy()
