"""The arrays of `openwork.compat.pydata_sparse`: pydata/sparse's attributes and rules for results, over Tensors."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.compat import pydata_sparse as sparse

A = np.array([[1.0, 0, 2, 0], [0, 0, 3, 0], [4, 5, 0, 6]])
KINDS = ("COO", "GCXS", "DOK", "CSR", "CSC")


@pytest.fixture(params=KINDS)
def made(request):
    return getattr(sparse, request.param).from_numpy(A)


def test_an_array_holds_buffers_and_a_tensor(made):
    assert isinstance(made, sparse.SparseArray)
    assert (made.shape, made.ndim, made.size, made.nnz, made.dtype) == (A.shape, 2, 12, 6, A.dtype)
    assert (made.fill_value, made.density, made.device) == (0, 0.5, "cpu")
    assert isinstance(ow.asarray(made), ow.Tensor)
    np.testing.assert_array_equal(ow.asarray(made).to_numpy(), A)
    if not isinstance(made, sparse.DOK):
        assert np.shares_memory(made.tensor.values, made.data)
    np.testing.assert_array_equal(made.todense(), A)
    for other in ("coo", "gcxs", "dok", "csr", "csc"):
        np.testing.assert_array_equal(made.asformat(other).todense(), A)
    twin = pickle.loads(pickle.dumps(made))
    assert type(twin) is type(made)
    np.testing.assert_array_equal(twin.todense(), A)
    assert type(made).__name__ in repr(made)
    assert "nnz=6" in repr(made)


@pytest.mark.thin(3)
def test_results_are_of_the_operands_class_and_store_no_fill_value(made):
    for got, want in (
        (made + made, A + A), (made * 2, A * 2), (made + 1, A + 1), (made > 1, A > 1), (np.sin(made), np.sin(A)),
        (made - made, A - A), (-made, -A), (made @ made.T, A @ A.T), (made.T, A.T), (made[1:], A[1:]),
        (made.reshape((4, 3)), A.reshape(4, 3)), (made.sum(axis=0), A.sum(axis=0)), (abs(made), A),
        (np.sum(made), A.sum()), (sparse.concatenate([made, made]), np.concatenate([A, A])),
        (made.astype(np.int32), A.astype(np.int32)), (np.where(made > 1, made, 0), np.where(A > 1, A, 0)),
    ):  # fmt: skip
        assert isinstance(got, sparse.SparseArray)
        np.testing.assert_array_equal(got.todense(), want)
        assert got.dtype == np.asarray(want).dtype
        if got.ndim:
            assert got.nnz == np.count_nonzero(got.todense() != got.fill_value)
    assert (made + 1).fill_value == 1
    assert isinstance(made + made, type(made))
    assert made[2, 3] == 6.0


def test_mixed_formats_and_dense_operands():
    coo, gcxs = sparse.COO(A), sparse.GCXS(A, compressed_axes=(1,))
    assert isinstance(coo + gcxs, sparse.COO)
    np.testing.assert_array_equal((coo * A).todense(), A * A)
    np.testing.assert_array_equal((gcxs + sp.csr_array(A)).todense(), A + A)
    np.testing.assert_array_equal((sp.csr_array(A) - coo).todense(), A - A)
    assert isinstance(coo @ A.T, np.ndarray)
    assert isinstance(sparse.tensordot(coo, A.T, 1, return_type=sparse.GCXS), sparse.GCXS)
    with pytest.raises(ValueError, match="mixed sparse-dense"):
        sparse.COO(np.stack([A, A])) + A
    with pytest.raises(ValueError, match="consistent fill-values"):
        sparse.concatenate([coo, coo + 1])
    with pytest.raises(ValueError, match="zero fill values"):
        (coo + 1) @ A.T
    with pytest.raises(RuntimeError, match="todense"):
        np.asarray(coo)
    assert sparse.elemwise(operator.add, coo, object()) is NotImplemented


def test_out_and_assignment():
    dok = sparse.DOK((3, 4))
    shared, own = dok.copy(deep=False), dok.copy()
    dok[2, 3] = 5
    assert (shared[2, 3], own[2, 3]) == (5, 0)
    dok[2, 3] = 0
    dok[0, 1:3] = [5, 6]
    dok[[1, 2], [0, 3]] = 7
    dok[1, 0] = 0
    want = np.array([[0, 5.0, 6, 0], [0, 0, 0, 0], [0, 0, 0, 7]])
    np.testing.assert_array_equal(dok.todense(), want)
    assert dok.nnz == 3
    with pytest.raises(IndexError, match="out of bounds for extent 4"):
        dok[[1, 2], [0, 4]]
    coo = sparse.COO(A)
    np.multiply(coo, 2, out=coo)
    np.testing.assert_array_equal(coo.todense(), 2 * A)
    with pytest.raises(TypeError, match="cannot cast"):
        np.multiply(sparse.COO(A.astype(int)), 0.5, out=sparse.COO(A.astype(int)))


def test_differences_are_of_the_last_axis():
    cube = np.arange(24.0).reshape(2, 3, 4) ** 2
    np.testing.assert_array_equal(sparse.diff(sparse.COO(cube)).todense(), np.diff(cube))


def test_constructors(tmp_path):
    twice = sparse.COO([[0, 0, 1], [1, 1, 2]], [1.0, 2.0, 4.0], shape=(2, 3))
    np.testing.assert_array_equal(twice.todense(), [[0, 3, 0], [0, 0, 4]])
    np.testing.assert_array_equal(sparse.COO({(0, 1): 3.0}, shape=(1, 2)).todense(), [[0, 3]])
    s = sparse.random((4, 5, 6), density=0.2, random_state=0, format="gcxs")
    assert s.nnz == 24
    np.testing.assert_array_equal(s.todense(), sparse.random((4, 5, 6), density=0.2, random_state=0).todense())
    for kind in ("coo", "gcxs"):
        path = tmp_path / f"{kind}.npz"
        sparse.save_npz(path, s.asformat(kind))
        assert sparse.load_npz(path).format == kind
        np.testing.assert_array_equal(sparse.load_npz(path).todense(), s.todense())
    with pytest.raises(ValueError, match="out of bounds"):
        sparse.COO([[3]], [1], shape=(2,))
    with pytest.raises(ValueError, match="indptr"):
        sparse.GCXS(([1.0], [0], [0, 1, 3]), shape=(2, 3), compressed_axes=(0,))


def test_the_names_are_those_of_pydata():
    assert sorted(sparse.__all__) == sparse.__all__
    assert all(hasattr(sparse, name) for name in sparse.__all__)
    with pytest.raises(AttributeError):
        sparse.nothing_of_that_name  # noqa: B018


def test_clip_puts_its_result_into_out():
    a, out = sparse.COO.from_numpy(A), sparse.COO.from_numpy(np.zeros_like(A))
    assert sparse.clip(a, 1, 3, out=out) is out
    np.testing.assert_array_equal(out.todense(), A.clip(1, 3))


def test_diagonals_and_axes_of_coordinates():
    a = sparse.COO.from_numpy(A)
    want = np.zeros((3, 4, 4))
    want[:, range(4), range(4)] = A
    np.testing.assert_array_equal(sparse.diagonalize(a, axis=1).todense(), want)
    cube = sparse.COO.from_numpy(want)
    np.testing.assert_array_equal(cube.swapaxes(0, 2).todense(), want.swapaxes(0, 2))
    with pytest.raises(NotImplementedError, match="'ell'"):
        a.asformat("ell")


@pytest.mark.parametrize(
    ("coords", "data", "shape", "want"),
    [
        ([], [5.0], (), 5.0),
        (np.zeros((0, 1), int), [5.0], (), 5.0),
        (np.zeros((0, 2), int), [5.0, 2], (), 7.0),
        ([1, 3], [5.0, 2], (4,), [0.0, 5, 0, 2]),
        ([1, 3], 2.0, (4,), [0.0, 2, 0, 2]),
        ([], 5.0, (3,), [0.0, 0, 0]),
        ([], [], (2, 3), np.zeros((2, 3))),
        ([[1], [2]], 4.0, (2, 3), [[0.0, 0, 0], [0, 0, 4]]),
    ],
)
def test_coordinates_of_every_rank(coords: object, data: object, shape: tuple[int, ...], want: object) -> None:
    found = sparse.COO(coords, data, shape=shape).todense()
    assert found.shape == shape
    np.testing.assert_array_equal(found, want)
