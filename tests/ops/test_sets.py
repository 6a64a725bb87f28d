"""Distinct elements on every format, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.errors import ShapeError

ALL = [(rank, spec) for rank in (1, 2, 3, 4) for spec in FORMATS[rank] if "nm(" not in spec]
PLACES = {1: (7,), 2: (7, 11), 3: (4, 6, 5), 4: (3, 4, 2, 5)}


def agrees(t: ow.Tensor, a: np.ndarray[Any, Any]) -> None:
    """All four functions give what NumPy's `unique` gives; places of equal NaNs may be in any order."""
    got = ow.unique_all(t)
    values, first, _, counts = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )  # fmt: skip
    same(got.values, values)
    same(got.counts, counts)
    places, inverse = got.indices.to_numpy(), got.inverse_indices.to_numpy()
    known = values == values
    same(places[known], first[known])
    assert sorted(places.tolist()) == sorted(first.tolist())
    assert inverse.shape == a.shape
    assert inverse.dtype == np.int64
    np.testing.assert_array_equal(values[inverse], a)
    np.testing.assert_array_equal(np.bincount(inverse.reshape(-1), minlength=len(values)), counts)
    same(ow.unique_values(t), values)
    same(ow.unique_counts(t).counts, counts)
    same(ow.unique_counts(t)[0], values)
    same(ow.unique_inverse(t).inverse_indices, inverse)
    same(ow.unique_inverse(t).values, values)


@pytest.mark.thin(221)
@pytest.mark.parametrize(("rank", "spec"), ALL)
@pytest.mark.parametrize("fill", [0.0, 1.5, np.nan])
def test_every_format(rank: int, spec: str, fill: float) -> None:
    a = dense_array(PLACES[rank], 1) - 2
    a[a == -1] = np.nan
    a = np.where(dense_array(PLACES[rank], 1) == 0, fill, a)
    dense = spec.startswith("dense")
    t = ow.asarray(a) if dense else ow.asarray(a, format="coo", fill_value=fill)
    t = t.asformat(ow.format(spec, rank))
    agrees(t, a)
    if not t.format.is_dense and fill == fill:
        inverse = ow.unique_inverse(t).inverse_indices
        assert not inverse.format.is_dense
        if t.nse < t.size:
            assert ow.unique_values(t)[inverse.fill_value] == fill


@pytest.mark.thin(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("spec", ["dense", "csr", "bsr(2, 3)"])
def test_dtypes(spec: str, dtype: str) -> None:
    a = dense_array((7, 11), 5, dtype)
    if dtype == "complex128":
        a[a == 3] = complex(0, -1)
    if dtype == "uint64":
        a[a == 3] = 2**63 + 5
    agrees(tensor(a, spec), a)


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (1,), (2, 3)])
def test_empty_and_scalar(shape: tuple[int, ...]) -> None:
    agrees(ow.full(shape, 1.5), np.full(shape, 1.5))
    agrees(ow.full(shape, np.nan), np.full(shape, np.nan))
    agrees(ow.full(shape, 2, format="dense"), np.full(shape, 2))


def test_unspecified_elements_cost_nothing() -> None:
    """10^18 elements, three of them stored."""
    big = 10**6
    t = ow.sparse_coo_tensor([[0, 0, 5], [0, 0, 5], [0, 2, 5]], [7.0, 0.0, -1.0], (big, big, big))
    got = ow.unique_all(t)
    same(got.values, np.array([-1.0, 0.0, 7.0]))
    same(got.counts, np.array([1, big**3 - 2, 1]))
    same(got.indices, np.array([5 * big**2 + 5 * big + 5, 1, 0]))
    assert got.inverse_indices.nse == 3
    assert got.inverse_indices.fill_value == 1


values = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan])


@pytest.mark.ci
@given(st.lists(values, max_size=9), values, st.booleans())
@settings(max_examples=80)
def test_laws(elements: list[float], fill: float, sparse: bool) -> None:
    a = np.array(elements, np.float64)
    t = ow.asarray(a, format="coo", fill_value=fill) if sparse else ow.asarray(a)
    agrees(t, a)
    got = ow.unique_all(t)
    assert int(got.counts.to_numpy().sum()) == t.size
    np.testing.assert_array_equal(a[got.indices.to_numpy()], got.values.to_numpy())


def test_torch_values() -> None:
    torch = pytest.importorskip("torch")
    a = torch.tensor([[0.0, 3, -2, 3], [5, 0, 0, -2]], dtype=torch.float64)
    t = ow.asarray(a.to_sparse_csr()).requires_grad_()
    got = ow.unique_all(t)
    assert got.values.to_dense().equal(torch.unique(a))
    assert isinstance(got.counts.values, torch.Tensor)
    got.values.to_dense().sum().backward()
    assert t.grad is not None
    assert t.grad.values.tolist() == [1, 1, 0, 1, 0]
    half = ow.asarray(a.to(torch.bfloat16).to_sparse_csr())
    assert ow.unique_values(half).dtype == torch.bfloat16
    assert ow.unique_values(half).to_dense().tolist() == [-2, 0, 3, 5]


def test_errors() -> None:
    big = 2**31
    t = ow.sparse_coo_tensor([[0], [0], [0]], [1.0], (big, big, big))
    with pytest.raises(ow.UnsupportedError, match=r"unique: shape (.|\n)*help: unique of t.values"):
        ow.unique_values(t)


def test_only_integers_of_a_vector_are_counted() -> None:
    for x in (np.ones((2, 2), int), np.ones(3)):
        with pytest.raises(ShapeError, match="vector of integers"):
            np.bincount(ow.asarray(x, format="coo"))
