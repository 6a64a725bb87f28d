"""What the public functions refuse, one call for each refusal that no other test makes: its error and its message's start."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raised import check_raised

import openwork as ow
from openwork import linalg, masked
from openwork.fusion.explain import sampled_plan
from openwork.runtime.kernel_text import show_kernel

A = ow.asarray(np.array([[1.0, 0, -2, 0], [0, 0, 3, 0], [4, 5, 0, 6]]), format="csr")
"""(3, 4)"""
S = ow.asarray(np.diag([1.0, 2, 3]), format="csr")
I = ow.asarray(np.arange(12).reshape(3, 4) % 3, format="coo")  # noqa: E741
C = ow.asarray(np.eye(3) * 1j, format="csr")
V = ow.asarray(np.array([0.0, 3, 0, -1]), format="coo")
T = ow.asarray(np.arange(24.0).reshape(2, 3, 4) % 5, format="coo")
N = ow.asarray(np.float64(3.0))
"""of rank 0"""
M = masked.masked_tensor(np.arange(12.0).reshape(3, 4), np.arange(12).reshape(3, 4) % 2 == 0)


def _places_beyond_64_bits(shape: tuple[int, ...], place: Any) -> Any:
    return ow.sparse_coo_tensor(np.zeros((len(shape), 1), int), [1.0], shape)[(place,) * len(shape)]


def _set_places(shape: tuple[int, ...]) -> None:
    ow.sparse_coo_tensor(np.zeros((len(shape), 1), int), [1.0], shape)[np.array([0, 1]), np.array([1, 2])] = 5.0


REFUSED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "to_dense: out=list": (ow.UnsupportedError, lambda: A.to_dense(out=[])),
    "to_dense: out has shape (4, 3); expected (3, 4)": (ow.ShapeError, lambda: A.to_dense(out=np.zeros((4, 3)))),
    "to_dense: out is read-only": (ow.ReadOnlyError, lambda: A.to_dense(out=np.broadcast_to(0.0, (3, 4)))),
    "__array__: copy=False, but": (ValueError, lambda: ow.asarray(np.ones(3)).__array__(np.float32, copy=False)),
    "onenormest: expected t >= 1 and itmax >= 2; got 0 and 5": (ValueError, lambda: linalg.onenormest(S, t=0)),
    "onenormest: expected t >= 1 and itmax >= 2; got 2 and 1": (ValueError, lambda: linalg.onenormest(S, itmax=1)),
    "matrix_norm: axis=(0, 1, 2)": (ow.ShapeError, lambda: linalg.matrix_norm(T, axis=(0, 1, 2))),
    "matrix_power: n=0 of a stack": (ow.UnsupportedError, lambda: linalg.matrix_power(T[:, :, :3], 0)),
    "evaluate: expected statements as a str; got int": (TypeError, lambda: ow.evaluate(3, A=A)),  # type: ignore[arg-type]
    "matmul: an operand of rank 0": (ow.ShapeError, lambda: M @ masked.masked_tensor(np.float64(1), np.True_)),
    "pad: 1 pairs of widths for 2 dimensions": (ow.ShapeError, lambda: masked.pad(M, [(1, 1)])),
    "item: expected one element; got shape (3, 4)": (ow.ShapeError, lambda: M.item()),
    "filled: 1j is not a value of dtype f64": (ow.DTypeError, lambda: M.filled(1j)),
    "pointwise: no tensor C": (ow.ShapeError, lambda: ow.pointwise("A[i,j] * C[i,j]", {"A": A})),
    "pointwise: A[i, i] does not suit a tensor of shape (3, 4)": (ow.ShapeError, lambda: ow.pointwise("A[i,i]", {"A": A})),
    "kronsum: a matrix of shape (4,)": (ow.ShapeError, lambda: ow.kronsum(V, S)),
    "kronsum: a matrix of shape (2, 2, 4)": (ow.ShapeError, lambda: ow.kronsum(S, T[:, :2])),
    "kronsum: a matrix of shape (3, 4)": (ow.ShapeError, lambda: ow.kronsum(S, A)),
    "asarray: like=3": (ow.UnsupportedError, lambda: ow.asarray(A, like=3)),
    "take_along_axis: indices are integers; got dtype float64": (
        ow.DTypeError, lambda: ow.take_along_axis(A, np.zeros((3, 4)), axis=1)
    ),
    "take_along_axis: indices have 1 dimensions, the tensor 2": (
        ow.ShapeError, lambda: ow.take_along_axis(A, np.zeros(3, np.int64), axis=1)
    ),
    "take_along_axis: indices of shape (5, 1) do not broadcast with": (
        ow.ShapeError, lambda: ow.take_along_axis(A, np.zeros((5, 1), np.int64), axis=1)
    ),
    "diags_array: a diagonal of several dimensions": (ow.ShapeError, lambda: ow.diags_array([np.ones((2, 2))])),
    "diags_array: shape (3,)": (ow.ShapeError, lambda: ow.diags_array([np.ones(2)], shape=(3,))),
    "y[i] += A[i, j] * B[j, i]: one sparse operand with dense ones compiles here, got 2": (
        ow.UnsupportedError, lambda: show_kernel("y(i) += A(i,j) * B(j,i)", {"A": "csr", "B": "csr"}, {}, "loops")
    ),
    "s += A[i, i]: an index repeated in the sparse operand A": (
        ow.UnsupportedError, lambda: show_kernel("s += A(i,i)", {"A": "csr"}, {}, "loops")
    ),
    "'y[i] += A[i, j] * x[j]' has no operand 'B'": (
        ow.FormatError, lambda: sampled_plan("y[i] += A[i, j] * x[j]", {"B": "csr"}, {})
    ),
    "stack: need at least one array to stack": (ow.ShapeError, lambda: ow.stack([])),
    "unstack: a tensor of rank 0 has no axis": (ow.ShapeError, lambda: ow.unstack(N)),
    "pad: an extent of 0 has nothing for mode='edge'": (ow.ShapeError, lambda: ow.pad(A[:0], 1, mode="edge")),
    "pad: reflect_type='odd'": (ow.UnsupportedError, lambda: np.pad(A, 1, mode="reflect", reflect_type="odd")),
    "reshape: the coordinates of a sparse tensor": (ValueError, lambda: ow.reshape(A, (4, 3), copy=False)),
    "diag: expected one or two dimensions; got shape (2, 3, 4)": (ow.ShapeError, lambda: ow.diag(T)),
    "dtypes: 'odd' is not a kind of dtypes": (
        ow.DTypeError, lambda: A.__array_namespace__().__array_namespace_info__().dtypes(kind="odd")
    ),
    "numpy.put: mode='clip' of a Tensor": (ow.UnsupportedError, lambda: np.put(A, [0], [1], mode="clip")),
    "put: place 12 of 12 elements": (IndexError, lambda: np.put(A, [0, 12], [1])),
    "place: no values for the places of the mask": (ow.ShapeError, lambda: np.place(A, np.ones((3, 4), bool), [])),
    "place: a mask of shape (3,) for shape (3, 4)": (ow.ShapeError, lambda: np.place(A, np.ones(3, bool), [1])),
    "numpy.fill_diagonal of shape (2, 3, 4)": (ow.UnsupportedError, lambda: np.fill_diagonal(T, 1)),
    "vsplit: expected two dimensions or more": (ow.ShapeError, lambda: np.vsplit(V, 2)),
    "hsplit: an extent of 4 into 3 parts": (ow.ShapeError, lambda: np.hsplit(A, 3)),
    "vsplit: an extent of 3 into 2 parts": (ow.ShapeError, lambda: np.vsplit(A, 2)),
    "take: indices are integers; got dtype float64": (ow.DTypeError, lambda: ow.take(A, [0.5], axis=0)),
    "index 9 is out of bounds for axis 0 with size 3": (IndexError, lambda: A[[9, 9, 0]]),
    "index -4 is out of bounds for axis 0 with size 3": (IndexError, lambda: A[[0, -4, -4]]),
    "dsplit: expected three dimensions or more": (ow.ShapeError, lambda: np.dsplit(A, 2)),
    "rot90: axes (0, -2) are one dimension": (ow.ShapeError, lambda: np.rot90(A, axes=(0, -2))),
    "average: weights of shape (2,) for shape (3, 4)": (ow.ShapeError, lambda: np.average(A, axis=0, weights=[1, 2])),
    "average: weights sum to zero": (ZeroDivisionError, lambda: np.average(A, axis=0, weights=[1, -1, 0])),
    "compress: a condition of shape (1, 2)": (ow.ShapeError, lambda: np.compress([[True, False]], A, axis=0)),
    "bincount: negative numbers": (ValueError, lambda: np.bincount(ow.asarray(np.array([1, -1]), format="coo"))),
    "numpy.histogram: weights= of a Tensor": (ow.UnsupportedError, lambda: np.histogram(V, weights=np.ones(4))),
    "numpy.histogram: bins='auto' of a Tensor": (ow.UnsupportedError, lambda: np.histogram(V, bins="auto")),
    "numpy.intersect1d: return_indices= of a Tensor": (
        ow.UnsupportedError, lambda: np.intersect1d(V, V, return_indices=True)
    ),
    "matmul: stacks of shapes (2,) and (3,) do not broadcast": (
        ow.ShapeError, lambda: T @ ow.asarray(np.ones((3, 4, 2)), format="coo")
    ),
    "sddmm: a mask of type numpy.ndarray": (
        ow.DTypeError, lambda: ow.sddmm(np.ones((3, 4)), np.ones((3, 2)), np.ones((2, 4)))
    ),
    "sddmm: mask (3, 4), a (3, 2), b (3, 4); expected": (
        ow.ShapeError, lambda: ow.sddmm(A, np.ones((3, 2)), np.ones((3, 4)))
    ),
    "spgemm: matrices of shapes (3, 4) and (3, 4)": (ow.ShapeError, lambda: ow.spgemm(A, A)),
    "einsum: expected a text, or operands and lists in turn": (ow.ShapeError, lambda: ow.einsum(A, 3)),
    "einsum: index 52": (ow.ShapeError, lambda: ow.einsum(A, [0, 52])),
    "tensordot: axes=3 of operands with 2 and 2 dimensions": (ow.ShapeError, lambda: ow.tensordot(A, A, axes=3)),
    "tensordot: axes=([0], [0], [0])": (ow.ShapeError, lambda: ow.tensordot(A, A, axes=([0], [0], [0]))),
    "vecdot: extents 4 and 3 along axis -1": (ow.ShapeError, lambda: ow.vecdot(A, np.ones((3, 3)))),
    "tensordot: axis 2 of 2 dimensions": (IndexError, lambda: ow.tensordot(A, A, axes=([2], [0]))),
    "sum: axis 0 of a tensor of rank 0": (IndexError, lambda: ow.sum(N, axis=0)),
    "max: axis 5 of a tensor of rank 2": (IndexError, lambda: A.max(axis=5)),
    "mean: axis 5 of a tensor of rank 2": (IndexError, lambda: np.mean(A, axis=5)),
    "std: axis 5 of a tensor of rank 2": (IndexError, lambda: M.std(axis=5)),
    "diff: axis 5 is out of bounds": (IndexError, lambda: M.diff(axis=5)),
    "unstack: axis 5 is out of bounds": (IndexError, lambda: ow.unstack(M, axis=5)),
    "vecdot: axis 5 is out of bounds": (IndexError, lambda: ow.vecdot(M, M, axis=5)),
    "split: axis 5 is out of bounds": (IndexError, lambda: M.split(2, 5)),
    "flatten: axis 5 is out of bounds": (IndexError, lambda: M.flatten(5)),
    "kron: NoneType is not an array": (ow.UnsupportedError, lambda: ow.kron(A, None)),
    "kron: elements of dtype <U1 are not numbers": (ow.DTypeError, lambda: ow.kron(A, "x")),
    "clip: elements of dtype <U1 are not numbers": (ow.DTypeError, lambda: ow.clip(A, "a", "b")),
    "zeros: a shape is a tuple of integers": (ow.DTypeError, lambda: ow.zeros("x")),
    "add: object is not an array": (ow.UnsupportedError, lambda: ow.add(A, object())),
    "where: shapes (3, 4) and (3, 4) and (2, 2) do not broadcast": (ow.ShapeError, lambda: ow.where(A > 0, A, np.ones((2, 2)))),
    "quantile: q of dtype complex128": (ow.DTypeError, lambda: ow.quantile(V, 0.5j)),
    "format (i, j) -> (i : dense, j : compressed) has 2 dimensions, the tensor 3": (ow.ShapeError, lambda: T.asformat(A.format)),
    "tobsr: blocksize is a pair of integers; got (2,)": (ow.ShapeError, lambda: A.tobsr(blocksize=(2,))),
    "backward needs torch values": (ow.UnsupportedError, lambda: A.backward()),
    "solve: expected a matrix; got shape (4,)": (ow.ShapeError, lambda: linalg.solve(V, np.ones(4))),
    "setdiag: expected a matrix; got shape (4,)": (ow.ShapeError, lambda: V.setdiag(1.0)),
    "numpy.sum: out= is of type list": (ow.UnsupportedError, lambda: np.sum(A, out=[])),  # type: ignore[call-overload]
    "add: Cannot cast ufunc 'add' input 0": (ow.DTypeError, lambda: np.add(A, 1.0, dtype=np.float32, casting="no")),
    "add: Cannot cast ufunc 'add' input 1": (ow.DTypeError, lambda: np.add(A, [1j, 0, 0, 0], dtype=np.float64)),
    "numpy.ravel: order='X'": (ow.UnsupportedError, lambda: np.ravel(A, order="X")),  # type: ignore[call-overload]
    "initial=1.5 of a tensor of int64": (
        ow.DTypeError, lambda: np.max(I, where=[True, False, True, True], initial=1.5)
    ),
    "bitwise_and.at: ufunc 'bitwise_and' not supported": (ow.DTypeError, lambda: np.bitwise_and.at(V.clone(), [0], [1])),
    "mean: a complex result is no float64": (ow.DTypeError, lambda: ow.mean(C, dtype="float64")),
    "sddmm: mask (4,), a (3, 2), b (2, 4); expected": (
        ow.ShapeError, lambda: ow.sddmm(V, np.ones((3, 2)), np.ones((2, 4)))
    ),
    "index 9 is out of bounds for axis 1 with": (IndexError, lambda: ow.take_along_axis(A, np.full((3, 1), 9), axis=1)),
    "indexing with 4 arrays of 70000 places over extents": (
        ow.UnsupportedError, lambda: _places_beyond_64_bits((10**5,) * 4, np.arange(70000))
    ),
    "setting elements by arrays over extents (8589934592, 8589934592)": (
        ow.UnsupportedError, lambda: _set_places((2**33, 2**33))
    ),
    "onenormest: expected a square matrix; got shape (3, 4)": (
        ow.ShapeError, lambda: linalg.onenormest(linalg.aslinearoperator(A))
    ),
    "norm: ord='fro' of 3 dimensions": (ow.ShapeError, lambda: linalg.norm(T, ord="fro")),
    "norm: ord=2 of 0 dimensions": (ow.ShapeError, lambda: linalg.norm(N, ord=2)),
    "solve_tridiagonal: stacks (2,) and (3,) do not broadcast": (
        ow.ShapeError, lambda: linalg.solve_tridiagonal(ow.stack([S, S]), np.ones((3, 3, 1)))
    ),
    "H: expected a matrix; got shape (2, 3, 4)": (ow.ShapeError, lambda: T.H),
    "t: expected one or two dimensions; got shape (2, 3, 4)": (ow.ShapeError, lambda: T.t()),
    "to_sparse: csr of 1 dimensions, 0 of them dense": (ow.ShapeError, lambda: V.to_sparse_csr()),
    "pointwise: index i0 of A[i0, i1] is not one of the result's ('x', 'y')": (
        ow.UnsupportedError, lambda: ow.pointwise("C[x,y] = A", {"A": A})
    ),
    "pointwise: C<M[i, j]>[i, j] = A[i, j] has a mask": (
        ow.UnsupportedError, lambda: ow.pointwise("C<M>[i,j] = A[i,j]", {"A": A, "M": A})
    ),
    "reshape() missing": (TypeError, lambda: A.reshape()),
    "unpickling: expected a Storage; got: int": (
        ow.InvariantError, lambda: A.__reduce__()[0](3, *A.__reduce__()[1][1:])
    ),
}  # fmt: skip

REMEDIES: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "ow.read(path) reads a file": (ow.DTypeError, lambda: ow.asarray("matrix.mtx")),
    "coordinates come first, then values (invariant 1.1)": (
        ow.InvariantError, lambda: ow.sparse_coo_tensor(np.ones(3), np.zeros((2, 3), int), (3, 3))
    ),
    "indices.T: it has a row for each dimension, a column for each value (invariant 3.10)": (
        ow.InvariantError, lambda: ow.sparse_coo_tensor([[0, 1], [1, 0], [2, 2]], np.ones(3), (3, 3))
    ),
    "sparse_coo_tensor(coordinates, values, size)": (
        ow.ShapeError, lambda: ow.sparse_coo_tensor((np.ones(3), ([0, 1, 2], [0, 1, 2])), (3, 3))
    ),
    "an index names a whole dimension: A[i, j]": (ow.FormatError, lambda: ow.evaluate("y[i] = A[i,:] @ v", A=A, v=V)),
    "eigh(A.asformat('dense')) gives all": (ow.ShapeError, lambda: linalg.eigsh(S, k=3)),
    "eig(A.asformat('dense')) gives all": (ow.ShapeError, lambda: linalg.eigs(S, k=2)),
    "write(path, t)": (TypeError, lambda: ow.write(A, "a.npz")),  # type: ignore[arg-type]
    "values is the buffer of values; asarray(t, like=torch) has torch's data": (AttributeError, lambda: A.data),
    "pos(level) has the positions of a level, pos(1) of CSR and CSC": (AttributeError, lambda: A.indptr),  # type: ignore[attr-defined]
    "asformat('coo').indices() has the coordinates": (AttributeError, lambda: A.coords),  # type: ignore[attr-defined]
    "openwork.compat.scipy_sparse.csr_array": (AttributeError, lambda: ow.csr_array),  # type: ignore[attr-defined]
}  # fmt: skip
"""By the help that a beginner's mistake gets: what is typed by somebody who comes from another library."""


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    check_raised(REFUSED[message], message)


def test_operators_between_unlike_shapes() -> None:
    for op in (operator.add, operator.mul, operator.lt):
        with pytest.raises(ValueError, match="broadcast"):
            op(A, np.ones((2, 4)))


ABSENT: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "read .h5": ("h5py", lambda folder: ow.read(folder / "a.h5")),
    "write .h5ad": ("h5py", lambda folder: ow.write(folder / "a.h5ad", A)),
    "read .zarr": ("zarr", lambda folder: ow.read(folder / "a.zarr")),
    "write .bsp.zarr": ("zarr", lambda folder: ow.write(folder / "a.bsp.zarr", A)),
    "read .parquet": ("pyarrow", lambda folder: ow.read(folder / "a.parquet")),
    "write .parquet": ("pyarrow", lambda folder: ow.write(folder / "a.parquet", A)),
    "to_pandas": ("pandas", lambda folder: A.to_pandas()),
    "to_networkx": ("networkx", lambda folder: S.to_networkx()),
}


@pytest.mark.parametrize("what", ABSENT)
def test_what_needs_a_library_says_so(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, call = ABSENT[what]
    for name in [*(m for m in sys.modules if m.startswith(f"{library}.")), library]:
        monkeypatch.setitem(sys.modules, name, None)
    for ending in ("h5", "parquet"):
        (tmp_path / f"a.{ending}").write_bytes(b"\x89HDF\r\n\x1a\nPAR1")
    with pytest.raises(ow.UnsupportedError, match=f"pip install {library}"):
        call(tmp_path)


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_beginners_mistake_has_a_remedy(remedy: str) -> None:
    error, call = REMEDIES[remedy]
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value).endswith(f"\n  help: {remedy}")
