"""Arrow's sparse tensors -> Tensors and back: every class, order of dimensions, width of indices and type of values."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import openwork as ow

pa = pytest.importorskip("pyarrow")

DENSE = np.array([[0.0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 3, 0]])
CUBE = np.where(np.random.default_rng(0).random((3, 5, 2)) < 0.4, 1.5, 0)


@pytest.mark.parametrize("name", ["SparseCOOTensor", "SparseCSRMatrix", "SparseCSCMatrix", "SparseCSFTensor"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64"])
def test_what_arrow_makes_comes_in(name: str, dtype: str) -> None:
    array = DENSE.astype(dtype)
    t = ow.asarray(getattr(pa, name).from_dense_numpy(array))
    np.testing.assert_array_equal(t.to_numpy(), array)
    assert (t.nse, str(t.dtype)) == (3, dtype)
    if name in ("SparseCSRMatrix", "SparseCSCMatrix"):
        assert t.format.name == name[6:9].lower()


@pytest.mark.parametrize("shape", [(4,), (3, 5, 2), (2, 2, 3, 2), (2, 3, 2, 2, 3, 2)])
def test_coordinates_and_trees_of_every_rank(shape: tuple[int, ...]) -> None:
    array = np.where(np.arange(np.prod(shape)).reshape(shape) % 3 == 0, 1.5, 0)
    np.testing.assert_array_equal(ow.asarray(pa.SparseCOOTensor.from_dense_numpy(array)).to_numpy(), array)
    if len(shape) > 1:  # Arrow orders the dimensions of a tree by their extents
        np.testing.assert_array_equal(ow.asarray(pa.SparseCSFTensor.from_dense_numpy(array)).to_numpy(), array)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_trees_in_every_order_of_dimensions(order: tuple[int, ...]) -> None:
    names = "ijk"
    levels = ", ".join(f"{names[d]} : compressed" for d in order)
    t = ow.asarray(CUBE, format=f"(i, j, k) -> ({levels})")
    made = t.to_arrow()
    assert type(made) is pa.SparseCSFTensor
    np.testing.assert_array_equal(made.to_tensor().to_numpy(), CUBE)
    back = ow.asarray(made)
    assert back.format == t.format
    np.testing.assert_array_equal(back.to_numpy(), CUBE)


KINDS = {"csr": "SparseCSRMatrix", "csc": "SparseCSCMatrix", "dcsr": "SparseCSFTensor", "coo": "SparseCOOTensor"}


@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dcsr", "dcsc", "bsr(1, 2)", "dia", "bitmap", "dense"])
@pytest.mark.parametrize("array", [DENSE, np.zeros((3, 4)), np.zeros((0, 4))], ids=["some", "none", "no rows"])
def test_there_and_back(spec: str, array: Any) -> None:
    t = ow.asarray(array).asformat(spec)
    made = t.to_arrow()
    assert type(made).__name__ == KINDS.get(spec, "SparseCSFTensor" if spec == "dcsc" else "SparseCOOTensor")
    back = ow.asarray(made)
    np.testing.assert_array_equal(back.to_numpy(), array)
    if spec in KINDS and spec != "coo":
        assert back.format == t.format
    np.testing.assert_array_equal(ow.asarray(made, format="csr").to_numpy(), array)


def test_buffers_are_shared_where_they_can_be() -> None:
    t = ow.asarray(DENSE, format="csr")
    assert np.shares_memory(ow.asarray(t.to_arrow()).values, t.values)
    assert not np.shares_memory(ow.asarray(t.to_arrow(), copy=True).values, t.values)
    torch = pytest.importorskip("torch")
    made = ow.asarray(torch.tensor(DENSE), format="csr").to_arrow()
    np.testing.assert_array_equal(made.to_tensor().to_numpy(), DENSE)


def test_indices_that_lie_are_refused() -> None:
    made = pa.SparseCOOTensor.from_numpy(np.ones((1, 1)), np.array([[0, 9]]), shape=(3, 4))
    with pytest.raises(ow.InvariantError, match=r"invariant 5\.5"):
        ow.asarray(made)


def test_what_arrow_does_not_have() -> None:
    for t, message in (
        (ow.exp(ow.asarray(DENSE, format="csr")), "elements that are not stored are 1"),
        (ow.asarray(2.0), "a scalar has no coordinates"),
        (ow.asarray(DENSE * 1j, format="csr"), "no tensors of complex128"),
        (ow.asarray(DENSE != 0, format="csr"), "no tensors of bool"),
    ):
        with pytest.raises(ow.UnsupportedError, match=message):
            t.to_arrow()
