"""Functions, methods and constructors of `openwork.compat.pydata_sparse` over each class: NumPy's results, or refusals
whose messages say what is wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.compat import pydata_sparse as sparse

A = np.array([[1.0, 0, -2, 0], [0, 0, 3, 0], [4, 5, 0, 6]])
B = np.array([[0.0, 2, 0, 0], [0, 0, 3, 1], [1, 0, 0, 0]])
T = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 1, np.arange(24.0).reshape(2, 3, 4), 0)
V = np.array([0.0, 3, 0, -1])
HARD = np.array([[0, np.inf, 0, np.nan], [-np.inf, 0, 1, 0]])
KINDS = ("COO", "GCXS", "DOK", "CSR", "CSC")


def _into(m: Any) -> dict[str, Any]:
    """What asks the module for a NumPy array."""
    return {} if m is np else {"return_type": np.ndarray}


MATRIX: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda m, x: m.where(x > 0, x, 2 * x),
    "argwhere": lambda m, x: m.argwhere(x),
    "nonzero": lambda m, x: np.stack(m.nonzero(x)),
    "nonzero method": lambda m, x: np.stack(x.nonzero()),
    "clip": lambda m, x: m.clip(x, -1, 4),
    "clip below": lambda m, x: m.clip(x, min=-1),
    "clip above": lambda m, x: m.clip(x, max=2),
    "clip method": lambda m, x: x.clip(-1, 2),
    "roll": lambda m, x: m.roll(x, 1),
    "roll along": lambda m, x: m.roll(x, 1, axis=1),
    "roll along both": lambda m, x: m.roll(x, (1, 2), axis=(0, 1)),
    "pad": lambda m, x: m.pad(x, 1),
    "pad unevenly": lambda m, x: m.pad(x, ((1, 0), (2, 3))),
    "diagonal": lambda m, x: m.diagonal(x),
    "diagonal above": lambda m, x: m.diagonal(x, 1),
    "diagonal turned": lambda m, x: m.diagonal(x, offset=1, axis1=1, axis2=0),
    "triu": lambda m, x: m.triu(x),
    "triu above": lambda m, x: m.triu(x, 1),
    "tril": lambda m, x: m.tril(x),
    "tril below": lambda m, x: m.tril(x, k=-1),
    "sort": lambda m, x: m.sort(x),
    "sort columns": lambda m, x: m.sort(x, axis=0),
    "interp": lambda m, x: m.interp(x, np.array([-2.0, 0, 6]), np.array([1.0, 0, 3])),
    "interp with ends": lambda m, x: m.interp(x, np.array([-1.0, 0, 3]), np.array([1.0, 0, 3]), left=7, right=8),
    "permute_dims": lambda m, x: m.permute_dims(x, (1, 0)),
    "transpose": lambda m, x: m.transpose(x),
    "matrix_transpose": lambda m, x: m.matrix_transpose(x),
    "swapaxes": lambda m, x: x.swapaxes(0, 1),
    "swapaxes from the end": lambda m, x: x.swapaxes(-1, 0),
    "mT": lambda m, x: x.mT,
    "reshape": lambda m, x: m.reshape(x, (2, 6)),
    "reshape inferred": lambda m, x: m.reshape(x, (-1,)),
    "reshape method": lambda m, x: x.reshape((6, 2)),
    "flatten": lambda m, x: x.flatten(),
    "flatten by columns": lambda m, x: x.flatten(order="F"),
    "squeeze": lambda m, x: m.squeeze(m.reshape(x, (3, 1, 4, 1))),
    "squeeze one": lambda m, x: m.squeeze(m.reshape(x, (3, 1, 4, 1)), axis=1),
    "squeeze from the end": lambda m, x: m.squeeze(m.reshape(x, (3, 1, 4, 1)), axis=(-1, 1)),
    "broadcast_to": lambda m, x: m.broadcast_to(x, (2, 3, 4)),
    "repeat": lambda m, x: m.repeat(x, 2, axis=1),
    "repeat flat": lambda m, x: m.repeat(x, 3),
    "tile": lambda m, x: m.tile(x, (2, 1)),
    "tile by a number": lambda m, x: m.tile(x, 2),
    "unstack": lambda m, x: m.unstack(x)[1],
    "unstack columns": lambda m, x: m.unstack(x, axis=-1)[2],
    "unstack rows from the end": lambda m, x: m.unstack(x, axis=-2)[2],
    "diff": lambda m, x: m.diff(x),
    "diff twice": lambda m, x: m.diff(x, axis=0, n=2),
    "argmax": lambda m, x: m.argmax(x, axis=1),
    "argmax flat": lambda m, x: m.argmax(x),
    "argmin": lambda m, x: m.argmin(x, axis=0, keepdims=True),
    "unique_values": lambda m, x: m.unique_values(x),
    "unique_counts": lambda m, x: np.stack(m.unique_counts(x)),
    "isposinf": lambda m, x: m.isposinf(x),
    "isneginf": lambda m, x: m.isneginf(x),
    "isinf": lambda m, x: m.isinf(x),
    "isnan": lambda m, x: m.isnan(x),
    "astype": lambda m, x: m.astype(x, np.int32),
    "conj": lambda m, x: x.conj(),
    "real": lambda m, x: x.real,
    "imag": lambda m, x: x.imag,
    "round": lambda m, x: (x / 3).round(1),
    "round to integers": lambda m, x: m.round(x / 3),
    "sum": lambda m, x: x.sum(),
    "sum along": lambda m, x: x.sum(axis=1, keepdims=True),
    "sum in a dtype": lambda m, x: x.sum(0, dtype=np.float32),
    "prod": lambda m, x: x.prod(axis=0),
    "mean": lambda m, x: x.mean(axis=1),
    "max": lambda m, x: x.max(axis=0),
    "min": lambda m, x: x.min(axis=(0, 1)),
    "any": lambda m, x: x.any(axis=1),
    "all": lambda m, x: x.all(axis=0),
    "var": lambda m, x: x.var(axis=0),
    "var of a sample": lambda m, x: x.var(axis=1, ddof=1),
    "std": lambda m, x: x.std(ddof=1, keepdims=True),
    "kron": lambda m, x: m.kron(x, B),
    "concatenate": lambda m, x: m.concatenate([x, x * 2], axis=1),
    "concat": lambda m, x: m.concat([x, x]),
    "stack": lambda m, x: m.stack([x, x * 2]),
    "stack at the end": lambda m, x: m.stack([x, x * 2], axis=-1),
    "tensordot": lambda m, x: m.tensordot(x, x, axes=2),
    "tensordot into an array": lambda m, x: m.tensordot(x, x, 2, **_into(m)),
    "products of rows into an array": lambda m, x: m.tensordot(x, x, ([1], [1]), **_into(m)),
    "tensordot of two": lambda m, x: m.tensordot(x, x, axes=([1], [1])),
    "matmul": lambda m, x: m.matmul(x, x.T),
    "dot": lambda m, x: x.dot(x.T),
    "dot of a dense matrix": lambda m, x: m.dot(x, B.T),
    "a dense matrix times": lambda m, x: B.T @ x,
    "vecdot": lambda m, x: m.vecdot(x, x),
    "vecdot of columns": lambda m, x: m.vecdot(x, x, axis=0),
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
    "einsum with a dense matrix": lambda m, x: m.einsum("ij,jk->ik", x, B.T),
    "einsum of a dense matrix": lambda m, x: m.einsum("ki,ij->kj", B.T[:, :3], x),
    "einsum in a dtype": lambda m, x: m.einsum("ij->j", x, dtype=np.complex128),
    "slice": lambda m, x: x[1:, ::2],
    "row": lambda m, x: x[1],
    "element": lambda m, x: x[2, 3],
    "list": lambda m, x: x[[0, 2]],
    "mask": lambda m, x: x[np.array([True, False, True])],
    "new axis": lambda m, x: x[:, None, 1],
    "NumPy's sum": lambda m, x: np.sum(x, axis=0),
    "NumPy's reduce": lambda m, x: np.add.reduce(x, axis=0),
    "NumPy's outer sum": lambda m, x: np.add(x, x, dtype=np.float64),
    "expand_dims": lambda m, x: m.expand_dims(x, axis=1),
    "flip": lambda m, x: m.flip(x, axis=0),
    "nanmax": lambda m, x: m.nanmax(x, axis=0),
    "nansum": lambda m, x: m.nansum(x, axis=1),
    "take": lambda m, x: m.take(x, np.array([2, 0]), axis=1),
    "logical_and": lambda m, x: m.logical_and(x > 1, x < 5),
    "maximum": lambda m, x: m.maximum(x, 2),
}  # fmt: skip


DENSE = (
    "argwhere",
    "nonzero",
    "nonzero method",
    "dot of a dense matrix",
    "products of rows into an array",
    "a dense matrix times",
    "unique_values",
    "unique_counts",
)
"""Calls whose results are NumPy's."""


def dense(x: Any) -> Any:
    """The NumPy array of a result of either module."""
    return x.todense() if isinstance(x, sparse.SparseArray) else np.asarray(x)


def same(got: Any, want: Any) -> None:
    np.testing.assert_allclose(dense(got), want, rtol=1e-12)
    assert dense(got).dtype == np.asarray(want).dtype
    assert not isinstance(got, ow.Tensor)
    if isinstance(got, sparse.SparseArray) and got.ndim:
        array = dense(got)
        assert got.nnz == np.count_nonzero(
            (array != got.fill_value) | (np.signbit(array.real) != np.signbit(got.fill_value.real))
        )


@pytest.mark.thin(11, rest="ci")
@pytest.mark.parametrize("name", MATRIX)
def test_of_matrices(name: str) -> None:
    call = MATRIX[name]
    want = call(np, A)
    for kind in KINDS:
        if kind == "DOK" and name in ("list", "mask"):
            continue
        got = call(sparse, getattr(sparse, kind).from_numpy(A))
        same(got, want)
        if np.ndim(want):
            assert isinstance(got, sparse.SparseArray) is (name not in DENSE)


OTHERS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "nonzero of three dimensions": (T, lambda m, x: np.stack(m.nonzero(x))),
    "transpose in an order": (T, lambda m, x: x.transpose((1, 2, 0))),
    "mT of three dimensions": (T, lambda m, x: x.mT),
    "matrix_transpose of three dimensions": (T, lambda m, x: m.matrix_transpose(x)),
    "swapaxes of three dimensions": (T, lambda m, x: x.swapaxes(0, -1)),
    "diagonal of three dimensions": (T, lambda m, x: m.diagonal(x, axis1=1, axis2=2)),
    "roll of three dimensions": (T, lambda m, x: m.roll(x, -5)),
    "kron of a number": (np.array(3.0), lambda m, x: m.kron(x, x) + 0),
    "kron of a vector": (T, lambda m, x: m.kron(x, V)),
    "matmul of stacks": (T, lambda m, x: m.matmul(x, x.mT)),
    "vecdot along the middle": (T, lambda m, x: m.vecdot(x, x, axis=1)),
    "sums of two axes": (T, lambda m, x: x.sum(axis=(0, 2))),
    "reduce of two axes": (T, lambda m, x: x.sum(axis=(1, 2), keepdims=True)),
    "sort of a vector": (V, lambda m, x: m.sort(x)),
    "an element of a vector": (V, lambda m, x: np.array(x[1])),
    "all elements of a vector": (V, lambda m, x: x[...]),
    "roll with wide coordinates": (T, lambda m, x: m.roll(T if m is np else m.COO(T, idx_dtype=np.int32), 2**40)),
    "squeeze of a vector": (V, lambda m, x: m.squeeze(x)),
    "dot of vectors": (V, lambda m, x: m.dot(x, x)),
    "length": (T, lambda m, x: np.array(len(x))),
    "fill value stays": (V, lambda m, x: (x + 1).clip(0, 2)),
    "pad with another fill value": (V, lambda m, x: m.pad(x + 1, 2, constant_values=1)),
    "isposinf of infinities": (HARD, lambda m, x: m.isposinf(x)),
    "isneginf of infinities": (HARD, lambda m, x: m.isneginf(x)),
    "nanprod": (HARD, lambda m, x: m.nanprod(x, axis=0)),
    "real of complex": (A * (1 - 2j), lambda m, x: x.real),
    "imag of complex": (A * (1 - 2j), lambda m, x: m.imag(x)),
    "conj of complex": (A * (1 - 2j), lambda m, x: x.conj()),
    "vecdot of complex": (A * (1 - 2j), lambda m, x: m.vecdot(x, x)),
    "reshape to nothing": (np.zeros((0, 3)), lambda m, x: x.reshape((3, 0))),
    "sum of nothing": (np.zeros((0, 3)), lambda m, x: x.sum(axis=0)),
}  # fmt: skip


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("name", OTHERS)
def test_of_other_arrays(name: str) -> None:
    x, call = OTHERS[name]
    want = call(np, x)
    for kind in KINDS[: 5 if x.ndim == 2 else 3]:
        same(call(sparse, getattr(sparse, kind).from_numpy(x)), want)


def test_orders_of_the_array_api() -> None:
    x = sparse.COO(HARD)
    np.testing.assert_array_equal(sparse.sort(x, descending=True).todense(), np.sort(-HARD) * -1)
    whole = sparse.COO(A.astype(np.int8))
    np.testing.assert_array_equal(sparse.sort(whole, axis=0, descending=True).todense(), -np.sort(-A, axis=0))
    assert sparse.can_cast(x, np.complex128)
    assert not sparse.can_cast(np.float64, np.int8)
    assert sparse.can_cast(np.float64, np.int8, casting="unsafe") is True
    assert sparse.result_type(whole, np.float32) == np.float32
    assert isinstance(x.__array_namespace__(api_version="2022.12").asarray(1.0), sparse.COO)
    assert x.__array_namespace__() is sparse
    assert "devices" in dir(sparse.__array_namespace_info__())
    np.testing.assert_array_equal(sparse.nanreduce(x, np.add, axis=1).todense(), np.nansum(HARD, axis=1))
    np.testing.assert_array_equal(
        sparse.nanreduce(x, np.maximum, identity=-5, axis=0, keepdims=True).todense(), [[0, np.inf, 1, 0]]
    )


def test_coordinates_that_are_replaced() -> None:
    x = sparse.COO(A)
    assert x.sum(axis=0).todense().tolist() == A.sum(0).tolist()
    x.coords = np.stack([x.coords[0], A.shape[1] - 1 - x.coords[1]])
    assert x.sum(axis=0).todense().tolist() == A.sum(0)[::-1].tolist()


def test_numbers_of_no_dimension() -> None:
    for kind in KINDS[:3]:
        x = getattr(sparse, kind).from_numpy(np.array(3.0))
        assert (float(x), int(x), complex(x), bool(x), operator.index(x), x.shape) == (3.0, 3, 3, True, 3, ())
        assert x.reshape((1, 1)).todense().tolist() == [[3.0]]
        assert (x + 1).todense() == 4.0
    for count in (1, 2, 3):
        single = sparse.COO(np.zeros((0, count), np.intp), np.arange(1.0, count + 1), shape=())
        assert (single.coords.shape, single.data.tolist()) == ((0, 1), [count * (count + 1) / 2])
    zero = sparse.COO(np.array([], np.intp).reshape(0, 0), np.array([]), shape=(), fill_value=2.0)
    assert (zero.nnz, float(zero)) == (0, 2.0)
    with pytest.raises(TypeError, match="unsized"):
        len(zero)


def test_dense_arguments() -> None:
    np.testing.assert_array_equal(sparse.matmul(A, A.T), A @ A.T)
    np.testing.assert_array_equal(sparse.tensordot(A, A, axes=2), np.tensordot(A, A))
    np.testing.assert_array_equal(sparse.einsum("ij->i", A), A.sum(1))
    np.testing.assert_array_equal(sparse.sum(A, axis=0), A.sum(0))
    np.testing.assert_array_equal(sparse.interp(A, [0, 1], [0, 2.0]), np.interp(A, [0, 1], [0, 2.0]))
    np.testing.assert_array_equal(sparse.asnumpy(sparse.COO(A), dtype=np.float32, order="F"), A)
    assert sparse.asnumpy(sparse.COO(A), np.float32).dtype == np.float32
    np.testing.assert_array_equal(sparse.asnumpy([1, 2]), [1, 2])
    np.testing.assert_array_equal(sparse.as_coo(ow.asarray(A, format="csc")).todense(), A)
    assert sparse.asCOO(A, check=False).nnz == 6
    got = sparse.tensordot(sparse.COO(A), B, axes=2, return_type=np.ndarray)
    assert isinstance(got, np.ndarray)
    assert got == np.tensordot(A, B)
    assert isinstance(sparse.tensordot(A, sparse.COO(B), axes=([1], [1]), return_type=sparse.COO), sparse.COO)
    assert isinstance(sparse.COO(A) @ sparse.GCXS(A.T), sparse.GCXS)
    assert sparse.kron(V, sparse.COO(A)).shape == (3, 16)
    assert sparse.concatenate([sparse.GCXS(A), sparse.GCXS(B)], compressed_axes=(1,)).compressed_axes == (1,)
    assert sparse.stack([sparse.GCXS(A), sparse.GCXS(B)], compressed_axes=(0, 2)).compressed_axes == (0, 2)
    diagonal = sparse.diagonalize(sparse.COO(V))
    np.testing.assert_array_equal(diagonal.todense(), np.diag(V))
    assert sparse.diagonalize(sparse.COO(A), axis=1).todense()[2, 3].tolist() == [0, 0, 0, 6]


def test_results_go_into_out() -> None:
    x = sparse.COO(A)
    for call, want in (
        (lambda o: sparse.isposinf(x, out=o), np.isposinf(A)), (lambda o: sparse.isneginf(x, out=o), np.isneginf(A)),
        (lambda o: x.clip(0, 2, out=o), A.clip(0, 2)), (lambda o: x.round(out=o), A.round()),
        (lambda o: np.add(x, x, out=o), A + A), (lambda o: sparse.clip(x, 0, out=o), A.clip(0)),
    ):  # fmt: skip
        out = sparse.COO(np.zeros((3, 4), np.asarray(want).dtype))
        assert call(out) is out
        np.testing.assert_array_equal(out.todense(), want)
    row = sparse.COO(np.zeros(4))
    for name in ("sum", "prod", "mean", "max", "min", "var", "std"):
        assert getattr(x, name)(axis=0, out=row) is row
        np.testing.assert_allclose(row.todense(), getattr(A, name)(axis=0))
    yes = sparse.COO(np.zeros(4, np.bool_))
    for name in ("any", "all"):
        assert getattr(x, name)(axis=0, out=yes) is yes
        np.testing.assert_array_equal(yes.todense(), getattr(A, name)(axis=0))


def test_constructors_of_values() -> None:
    for name in ("zeros", "ones", "empty"):
        got = getattr(sparse, name)((2, 3))
        assert (type(got), got.dtype, got.nnz, got.fill_value) == (sparse.COO, np.float64, 0, name == "ones")
        got = getattr(sparse, name)(3, dtype=np.int8, format="dok", device="cpu")
        assert (type(got), got.dtype, got.shape) == (sparse.DOK, np.int8, (3,))
        got = getattr(sparse, f"{name}_like")(sparse.GCXS(T, compressed_axes=(0, 2)))
        assert (type(got), got.compressed_axes, got.dtype, got.fill_value) == (
            sparse.GCXS,
            (0, 2),
            T.dtype,
            name == "ones",
        )
        got = getattr(sparse, f"{name}_like")(A, dtype=np.int32, shape=(2,), format="gcxs")
        assert (type(got), got.dtype, got.shape) == (sparse.GCXS, np.int32, (2,))
    got = sparse.full((2, 2), 3)
    assert (got.dtype, got.fill_value) == (np.int64, 3)
    got = sparse.full_like(sparse.COO(A), 2.5, order="C", compressed_axes=None)
    assert (got.shape, got.fill_value) == (A.shape, 2.5)
    assert sparse.full_like(sparse.COO(A), 2.5, format="gcxs", compressed_axes=(1,)).compressed_axes == (1,)
    for arguments in ((4,), (3, 5), (5, 3, 1), (3, 3, -1), (2, 4, 3), (0,)):
        np.testing.assert_array_equal(sparse.eye(*arguments).todense(), np.eye(*arguments))
    assert sparse.eye(3, dtype=np.int8, format="csr").dtype == np.int8


def test_random_arrays() -> None:
    x = sparse.random((10, 20), density=0.1, random_state=5)
    assert (x.nnz, x.shape, x.dtype) == (20, (10, 20), np.float64)
    assert 0 <= x.data.min() < x.data.max() < 1
    np.testing.assert_array_equal(x.todense(), sparse.random((10, 20), 0.1, random_state=5).todense())
    assert sparse.random((50, 20)).nnz == 10
    y = sparse.random(
        (3, 4, 5), nnz=7, format="gcxs", compressed_axes=(1,), fill_value=2, data_rvs=np.ones, idx_dtype=np.int8
    )
    assert (y.nnz, y.compressed_axes, y.fill_value, y.todense().max()) == (7, (1,), 2, 2)
    assert sparse.random((), nnz=1).shape == ()
    assert sparse.random((0, 4)).nnz == 0


def test_constructors_of_buffers() -> None:
    x = sparse.COO([[1, 0, 1], [0, 2, 0]], [1.0, 2, 3], shape=(2, 3))
    np.testing.assert_array_equal(x.todense(), [[0, 0, 2], [4, 0, 0]])
    assert x.linear_loc().tolist() == [2, 3]
    assert sparse.COO([1, 3], 5.0, shape=4).todense().tolist() == [0, 5, 0, 5]
    assert sparse.COO([[0], [1]], [0.0], shape=(2, 2), prune=True).nnz == 0
    assert sparse.COO(x, fill_value=7).fill_value == 7
    assert sparse.COO({(1, 2): 3.0, (0, 1): 2.0}).shape == (2, 3)
    assert sparse.COO([((1,), 3.0), ((0,), 2.0), ((4,), 1.0)]).todense().tolist() == [2, 3, 0, 0, 1]
    assert sparse.COO(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2)).todense().tolist() == [[0, 1], [2, 0]]
    assert sparse.COO.from_iter([], shape=(2, 2), dtype=np.int8).dtype == np.int8
    assert sparse.COO(sp.csr_array(A)).nnz == 6
    assert sparse.COO.from_scipy_sparse(sp.csr_array(A), fill_value=1).todense()[0, 1] == 1
    assert sparse.COO(A, idx_dtype=np.int16).coords.dtype == np.int16
    assert sparse.COO.from_numpy(A, fill_value=5).nnz == 11
    g = sparse.GCXS(([1.0, 2.0], [0, 3], [0, 1, 1, 2]), shape=(3, 4))
    assert (g.compressed_axes, g.todense()[2, 3], g.nbytes) == ((0,), 2, 2 * 8 * 2 + 4 * 8)
    assert sparse.GCXS(([1.0], [2], [0, 1]), shape=(4,)).todense().tolist() == [0, 0, 1, 0]
    assert sparse.GCXS(sp.csc_array(A)).compressed_axes == (1,)
    assert sparse.GCXS(g, compressed_axes=(1,)).compressed_axes == (1,)
    assert sparse.GCXS(sparse.GCXS(T, compressed_axes=(2,))).compressed_axes == (2,)
    assert sparse.GCXS(([0.0, 2.0], [0, 3], [0, 1, 1, 2]), shape=(3, 4), prune=True).nnz == 1
    assert sparse.GCXS.from_iter({(1, 2): 3.0}, shape=(2, 3), compressed_axes=(1,)).compressed_axes == (1,)
    assert g.transpose(compressed_axes=(0,)).compressed_axes == (0,)
    assert g.reshape((2, 6), compressed_axes=(1,)).compressed_axes == (1,)
    assert g.change_compressed_axes((0,)) is g
    assert "compressed_axes=(0,)" in repr(g)
    assert isinstance(g.todok(), sparse.DOK)
    assert g.asformat("gcxs", compressed_axes=[1]).compressed_axes == (1,)
    r = sparse.CSR(A)
    assert isinstance(r.T, sparse.CSC)
    assert r.transpose((0, 1)) is r
    np.testing.assert_array_equal(r.transpose(copy=True).todense(), A.T)
    assert not np.shares_memory(r.transpose(copy=True).data, r.data)
    d = sparse.DOK((2, 3), {(0, 1): 2, (1, 2): 3})
    assert (d.dtype, d.nnz, d.nbytes, d[1, 2]) == (np.int64, 2, 2 * 24, 3)
    d[0] = 7
    d[..., 2] = 0
    d[[0, 1], [0, 0]] = [4, 5]
    assert d.todense().tolist() == [[4, 7, 0], [5, 0, 0]]
    assert sparse.DOK(sp.csr_array(A)).nnz == sparse.DOK(sparse.GCXS(A)).nnz == sparse.DOK(A).nnz == 6
    copies = d.copy(), d.copy(deep=False), sparse.COO(A).copy(), g.copy(deep=False), r.copy()
    assert copies[0].data is not d.data
    assert copies[1].data is d.data
    assert all(
        np.array_equal(c.todense(), x.todense()) for c, x in zip(copies, (d, d, sparse.COO(A), g, r), strict=True)
    )


def test_asarray() -> None:
    x = sparse.COO(A)
    assert sparse.asarray(x) is x
    assert sparse.asarray(x, copy=True) is not x
    assert isinstance(sparse.asarray(x, format="dok"), sparse.DOK)
    assert sparse.asarray(x, dtype=np.int8).dtype == np.int8
    assert isinstance(sparse.asarray(sp.csr_array(A), format="csc"), sparse.CSC)
    assert isinstance(sparse.asarray(sparse.COO(A), format="csr"), sparse.CSR)
    assert sparse.asarray([[1, 0], [0, 2]], dtype=np.float32).dtype == np.float32
    assert x.to_device("cpu") is x
    assert x.astype(np.float64, copy=False) is x
    np.testing.assert_array_equal(sparse.COO(HARD).isinf().todense(), np.isinf(HARD))
    np.testing.assert_array_equal(sparse.COO(HARD).isnan().todense(), np.isnan(HARD))
    assert (x.density, x.maybe_densify().tolist(), x.__sizeof__()) == (0.5, A.tolist(), x.nbytes)
    assert sparse.COO(np.zeros((40, 40)), fill_value=0).to_scipy_sparse(accept_fv=[0, 1]).shape == (40, 40)
    assert (x + 1).to_scipy_sparse(accept_fv=1).nnz == 6
    assert (sparse.CSC(A).to_scipy_sparse().format, x.tocsr().format, x.tocsc().format) == ("csc", "csr", "csc")


def test_caches_keep_three_results() -> None:
    x = sparse.COO(A, cache=True)
    first = x.transpose()
    assert x.transpose() is first
    assert x.reshape((2, 6)) is x.reshape((2, 6))
    assert x.tocsr() is x.tocsr()
    for shape in ((4, 3), (12,), (1, 12)):
        x.reshape(shape)
    assert len(x._cache["reshape"]) == 3
    y = sparse.COO(A)
    assert y.transpose() is not y.transpose()


def test_files(tmp_path: Path) -> None:
    for x in (sparse.COO(A) + 1, sparse.GCXS(T, compressed_axes=(1,))):
        for compressed in (True, False):
            sparse.save_npz(tmp_path / "a.npz", x, compressed=compressed)
            got = sparse.load_npz(tmp_path / "a.npz")
            assert (type(got), got.fill_value) == (type(x), x.fill_value)
            np.testing.assert_array_equal(got.todense(), x.todense())
    np.savez(tmp_path / "b.npz", format="rle")
    with pytest.raises(AttributeError, match="unknown format 'rle'"):
        sparse.load_npz(tmp_path / "b.npz")


C, G, D, R = sparse.COO(A), sparse.GCXS(A), sparse.DOK(A), sparse.CSR(A)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: sparse.where(C, C), ValueError, "either both or neither"),
    (lambda: sparse.where(A), ValueError, "would produce a dense result: ndarray"),
    (lambda: sparse.nonzero(C + 1), ValueError, "argument 0 had a fill value of 1.0"),
    (lambda: sparse.nonzero(sparse.COO(np.array(0.0))), ValueError, "undefined for `self.ndim == 0`"),
    (lambda: sparse.roll(C, [[1]]), ValueError, "integers or 1D sequences"),
    (lambda: sparse.roll(C, (1, 1), axis=0), ValueError, "'axis' must have equal length"),
    (
        lambda: sparse.roll(sparse.COO(A, idx_dtype=np.int8), 300),
        ValueError,
        "shift 300 does not fit coordinates of int8",
    ),
    (lambda: sparse.pad(C, 1, mode="edge"), NotImplementedError, "Mode 'edge'"),
    (lambda: sparse.pad(C, 1, constant_values=2), ValueError, "can only be the fill value 0.0, got 2"),
    (lambda: sparse.diagonal(sparse.COO(V)), ValueError, "at least 2-d"),
    (lambda: sparse.diagonal(C, axis1=1, axis2=-1), ValueError, "cannot be the same"),
    (lambda: sparse.matrix_transpose(sparse.COO(V)), ValueError, "at least 2-dimensional"),
    (lambda: sparse.COO(V).mT, ValueError, "`ndim < 2`"),
    (lambda: sparse.squeeze(C, axis="a"), ValueError, "Invalid axis parameter: `a`"),
    (lambda: sparse.squeeze(C, axis=1), ValueError, "axis `1` has a size greater than one: 4"),
    (lambda: sparse.squeeze(C, axis=2), ValueError, "Invalid axis index 2 for ndim=2"),
    (lambda: sparse.repeat(A, 2), TypeError, "repeat: `a` must be a SparseArray, got ndarray"),
    (lambda: sparse.repeat(C, 1.5), ValueError, "must be an integer"),
    (lambda: sparse.unstack(A), TypeError, "unstack: `a` must"),
    (lambda: sparse.unstack(C, axis=2), ValueError, r"range \[-2, 2\), got 2"),
    (lambda: sparse.diff(A), TypeError, "diff: `a` must"),
    (lambda: sparse.argmax(C, axis=-3), ValueError, "`axis=-3` is out of bounds for array of dimension 2"),
    (lambda: sparse.unique_values(A), ValueError, "instance of SparseArray"),
    (lambda: sparse.unique_counts(A), ValueError, "instance of SparseArray"),
    (lambda: sparse.asCOO(A), ValueError, "dense result: asCOO"),
    (lambda: sparse.elemwise(np.add, A, A), ValueError, "None of the args is sparse"),
    (lambda: np.add(C, C, out=sparse.COO(np.zeros((2, 2)))), ValueError, r"shape \(2, 2\): the result has \(3, 4\)"),
    (lambda: np.add(C, C, out=sparse.COO(np.zeros((3, 4), np.int8))), TypeError, "from float64 to int8"),
    (lambda: C.to_device("gpu"), ValueError, "Only `device='cpu'`"),
    (lambda: C.__array_namespace__(api_version="2020.01"), ValueError, '"2020.01" Array API version'),
    (lambda: float(C), ValueError, "float'> can be computed for arrays of one element"),
    (lambda: C.transpose((0, 0)), ValueError, "are not an order of 2 dimensions"),
    (lambda: C.transpose((0, 1.5)), ValueError, "not understood"),
    (lambda: C.reshape((2, 6), order="F"), NotImplementedError, "`order` parameter is not supported"),
    (lambda: C.flatten(order="A"), NotImplementedError, "C, F or None"),
    (lambda: C.astype(np.int8, casting="safe"), TypeError, "from float64 to int8 by the rule 'safe'"),
    (lambda: C["a"], IndexError, "."),
    (lambda: sparse.COO(np.eye(40)).maybe_densify(), ValueError, "converting large sparse array"),
    (lambda: (C + 1).to_scipy_sparse(), ValueError, r"should be in \[0\]"),
    (lambda: sparse.COO(T).tocsr(), ValueError, "must be two-dimensional"),
    (lambda: sparse.concatenate([A, A]), ValueError, "must be instances of SparseArray"),
    (lambda: sparse.stack([]), ValueError, "at least one"),
    (lambda: sparse.stack([C, C + 1]), ValueError, "consistent fill-values"),
    (lambda: sparse.vecdot(C, C, axis=2), ValueError, "match along `axis`"),
    (lambda: sparse.vecdot(C, sparse.COO(V[:3])), ValueError, "match along `axis`"),
    (lambda: sparse.kron(A, A), ValueError, "dense result: kron"),
    (lambda: sparse.einsum(), ValueError, "No input operands"),
    (lambda: sparse.einsum(3, C), TypeError, "subscripts or arrays expected, got 3"),
    (lambda: sparse.random((2, 2), density=0.5, nnz=2), ValueError, "mutually exclusive"),
    (lambda: sparse.random((2, 2), density=1.5), ValueError, "density 1.5 is not in the unit interval"),
    (lambda: sparse.random((2, 2), nnz=5), ValueError, "cannot generate 5 nonzero elements for an array with 4"),
    (lambda: sparse.random((2, 200), idx_dtype=np.int8), ValueError, r"\(2, 200\) to dtype"),
    (lambda: sparse.random((2, 2), nnz=2, data_rvs=lambda n: np.ones(3)), ValueError, r"gave shape \(3,\)"),
    (lambda: sparse.zeros((2, 2), device="gpu"), ValueError, "Device must be"),
    (lambda: sparse.full((2, 2), 1, order="F"), NotImplementedError, "only 'C' and None"),
    (lambda: sparse.asarray(A, format="rle"), ValueError, "rle format not supported"),
    (lambda: sparse.asarray(object()), ValueError, "not supported"),
    (lambda: sparse.save_npz("x", A), ValueError, "array of type ndarray"),
    (lambda: sparse.COO(C, shape=(3, 4)), ValueError, "no other arguments"),
    (lambda: sparse.COO([[0]], [1.0]), ValueError, "`shape` was not provided"),
    (lambda: sparse.COO([[0]], [[1.0]], shape=(2,)), ValueError, "scalar or 1-dimensional"),
    (lambda: sparse.COO([[0, 1]], [1.0], shape=(2,)), ValueError, "1 values, 2 places"),
    (lambda: sparse.COO([[0]], [1.0], shape=(2, 2)), ValueError, "doesn't match the shape of `coords`"),
    (lambda: sparse.COO([[2]], [1.0], shape=(2,)), ValueError, "out of bounds"),
    (lambda: sparse.COO([[-1]], [1.0], shape=(2,)), ValueError, "out of bounds"),
    (lambda: sparse.COO([[1]], [1.0], shape=(200,), idx_dtype=np.int8), ValueError, "cannot cast array with shape"),
    (lambda: sparse.COO([[1]], [1.0], shape=(-2,)), ValueError, r"shape: numbers from 0 on expected, got \(-2,\)"),
    (lambda: sparse.COO.from_numpy(np.zeros(200), idx_dtype=np.int8), ValueError, r"\(200,\) to dtype"),
    (lambda: sparse.COO.from_iter([1, 2, 3], shape=(2,)), TypeError, "no len"),
    (lambda: sparse.COO.from_iter({(-1, 0): 2.0}, shape=(2, 2)), ValueError, "Invalid iterable"),
    (lambda: sparse.as_coo(A, shape=(3, 4)), ValueError, "a shape in combination"),
    (lambda: sparse.as_coo(C, fill_value=1), ValueError, "a fill-value in combination"),
    (lambda: sparse.as_coo(object()), ow.UnsupportedError, "object is not an array"),
    (lambda: C.asformat(3), ValueError, "Invalid format: 3"),
    (lambda: C.asformat("module"), NotImplementedError, "'module' is not supported"),
    (lambda: C.asformat("dok", compressed_axes=(0,)), TypeError, "Invalid keyword arguments"),
    (lambda: sparse.GCXS(A.tolist()), ValueError, "missing `shape`"),
    (lambda: sparse.GCXS(A, compressed_axes=0), ValueError, "must be an iterable"),
    (lambda: sparse.GCXS(A, compressed_axes=(0, 1)), ValueError, "not all axes"),
    (lambda: sparse.GCXS(T, compressed_axes=(1, 0)), ValueError, "sorted, without repeats"),
    (lambda: sparse.GCXS(V, compressed_axes=(0,)), ValueError, "no axes to compress for 1d array"),
    (lambda: sparse.GCXS(([1.0], [0], [0, 1]), (3,), compressed_axes=(0,)), ValueError, "no axes to compress for 1d"),
    (lambda: sparse.GCXS(V).change_compressed_axes((0,)), NotImplementedError, "no axes to compress"),
    (lambda: sparse.GCXS(([1.0], [0], [0, 1]), (3, 4)), ValueError, "cannot infer `compressed_axes`"),
    (
        lambda: sparse.GCXS(([1.0], [4], [0, 0, 0, 1]), (3, 4)),
        ValueError,
        "`indices` contains one or more out of bounds",
    ),
    (
        lambda: sparse.GCXS(([1.0], [-1], [0, 0, 0, 1]), (3, 4)),
        ValueError,
        "`indices` contains one or more out of bounds",
    ),
    (lambda: sparse.GCXS(([1.0], [0], [0, 0, 0, 2]), (3, 4)), ValueError, "4 offsets into `data`"),
    (lambda: sparse.GCXS(([1.0], [0], [0, 1, 0, 1]), (3, 4)), ValueError, "4 offsets into `data`"),
    (lambda: sparse.GCXS(([[1.0]], [0], [0, 0, 0, 1]), (3, 4)), ValueError, "one dimension and the same shape"),
    (lambda: sparse.GCXS(A, idx_dtype=np.int8).change_compressed_axes((5,)), ValueError, "Invalid axis index 5"),
    (lambda: sparse.GCXS(np.zeros((2, 200)), compressed_axes=(0,), idx_dtype=np.int8), ValueError, "dtype"),
    (lambda: G.transpose((0, 0)), ValueError, "don't match array"),
    (lambda: R.transpose((0, 2)), ValueError, "Invalid"),
    (lambda: sparse.DOK((2, 2), [1]), ValueError, "data must be a dict"),
    (lambda: D[[0, 1]], NotImplementedError, "for all 2 array dimensions"),
    (lambda: D[[0, 1], [0]], IndexError, "Unequal length"),
    (lambda: D[[0.5], [1.5]], IndexError, "sequences of integers"),
    (lambda: D[[3], [0]], IndexError, "out of bounds for extent 3"),
    (lambda: operator.setitem(D, ([0, 1], [0, 1]), [1.0, 2, 3]), ValueError, "Shape mismatch of indices"),
    (lambda: operator.setitem(D, (0, 1), [1.0, 2]), ValueError, "with a sequence"),
    (lambda: operator.setitem(D, (0, 1, 2), 1.0), IndexError, "3 indices for 2 dimensions"),
    (lambda: operator.setitem(D, (0, 7), 1.0), IndexError, "7 is not an index of a dimension of extent 4"),
]


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals_say_what_is_wrong(k: int) -> None:
    call, error, message = REFUSED[k]
    with pytest.raises(error, match=message):
        call()
