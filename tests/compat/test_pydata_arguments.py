"""Arguments of constructors, conversions and assignments of `openwork.compat.pydata_sparse`: the class, dtype, stored
elements, fill value and compressed axes of what comes out, as pydata/sparse 0.19 has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from compat.test_pydata_functions import MATRIX, same

from openwork.compat import pydata_sparse as sparse

A = np.array([[1.0, 0, -2, 0], [0, 0, 3, 0], [4, 5, 0, 6]])
T = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 1, np.arange(24.0).reshape(2, 3, 4), 0)
V = np.array([0.0, 3, 0, -1])
PAIRS = [((1,), 3.0), ((0,), 2.0), ((4,), 1.5)]
FIVE = [2, 3, 0, 0, 1.5]

Want = tuple[str, str, int, Any, Any, Any]
"""Class, dtype, stored elements, fill value, compressed axes, elements."""

MADE: dict[str, tuple[Callable[[Any], Any], Want]] = {
    "pairs": (lambda m: m.COO(iter(PAIRS)), ("COO", "float64", 3, 0, None, FIVE)),
    "pairs in a dtype": (
        lambda m: m.COO.from_iter(PAIRS, shape=(5,), dtype=np.float32), ("COO", "float32", 3, 0, None, FIVE)
    ),
    "a dict in a dtype": (
        lambda m: m.COO.from_iter(dict(PAIRS), shape=6, fill_value=7, dtype="i4"),
        ("COO", "int32", 3, 7, None, [2, 3, 7, 7, 1, 7]),
    ),
    "values and coordinates in a dtype": (
        lambda m: m.COO.from_iter(([1, 2], ([0, 1], [1, 0])), shape=(2, 2), dtype="i1"),
        ("COO", "int8", 2, 0, None, [[0, 1], [2, 0]]),
    ),
    "nothing": (lambda m: m.COO.from_iter([], shape=(2, 0)), ("COO", "float64", 0, 0, None, np.zeros((2, 0)))),
    "two values at one place": (
        lambda m: m.COO([[1, 0, 1]], [1.0, 2, 3], shape=(2,)), ("COO", "float64", 2, 0, None, [2, 4])
    ),
    "sorted places": (
        lambda m: m.COO([[0, 1]], [1.0, 2], shape=(2,), sorted=True, has_duplicates=False),
        ("COO", "float64", 2, 0, None, [1, 2]),
    ),
    "pruned": (
        lambda m: m.COO([[0, 1]], [1.0, 2], shape=(3,), fill_value=2, prune=True),
        ("COO", "float64", 1, 2, None, [1, 2, 2]),
    ),
    "an array of SciPy over a fill value": (
        lambda m: m.COO.from_scipy_sparse(sp.csc_array(A), fill_value=9), ("COO", "float64", 6, 9, None, np.where(A, A, 9))
    ),
    "a vector of vectors": (lambda m: m.GCXS(m.GCXS(m.COO(V))), ("GCXS", "float64", 2, 0, (), V)),
    "a vector without offsets": (lambda m: m.GCXS(([1.0], [2], []), shape=(4,)), ("GCXS", "float64", 1, 0, (), [0, 0, 1, 0])),
    "SciPy's columns": (lambda m: m.GCXS(sp.csc_array(A)), ("GCXS", "float64", 6, 0, (1,), A)),
    "SciPy's columns by rows": (
        lambda m: m.GCXS(sp.csc_array(A), compressed_axes=(0,)), ("GCXS", "float64", 6, 0, (0,), A)
    ),
    "the axes of another": (
        lambda m: m.GCXS(m.GCXS(T, compressed_axes=(0, 2))), ("GCXS", "float64", np.count_nonzero(T), 0, (0, 2), T)
    ),
    "other axes": (
        lambda m: m.GCXS(m.GCXS(T, compressed_axes=(0, 2)), compressed_axes=(1,)),
        ("GCXS", "float64", np.count_nonzero(T), 0, (1,), T),
    ),
    "the shortest axis": (lambda m: m.GCXS(T.transpose(2, 0, 1)), ("GCXS", "float64", 5, 0, (1,), T.transpose(2, 0, 1))),
    "rows without stored fill values": (
        lambda m: m.GCXS(([1.0, 0], [0, 3], [0, 1, 1, 2]), shape=(3, 4), prune=True),
        ("GCXS", "float64", 1, 0, (0,), np.eye(3, 4) * [1, 0, 0, 0]),
    ),
    "numbers over a fill value": (
        lambda m: m.GCXS.from_numpy(A, compressed_axes=(1,), fill_value=3), ("GCXS", "float64", 11, 3, (1,), A)
    ),
    "pairs by rows": (
        lambda m: m.GCXS.from_iter({(0, 1): 2.0}, shape=(2, 3), compressed_axes=(1,), fill_value=4),
        ("GCXS", "float64", 1, 4, (1,), [[4, 2, 4], [4, 4, 4]]),
    ),
    "reshaped by other axes": (
        lambda m: m.GCXS(T).reshape((4, 6), compressed_axes=(1,)), ("GCXS", "float64", 5, 0, (1,), T.reshape(4, 6))
    ),
    "turned by other axes": (
        lambda m: m.GCXS(T).transpose((2, 0, 1), compressed_axes=(0, 2)),
        ("GCXS", "float64", 5, 0, (0, 2), T.transpose(2, 0, 1)),
    ),
    "a matrix of rows by other axes": (
        lambda m: m.CSR(A).asformat("gcxs", compressed_axes=(1,)), ("GCXS", "float64", 6, 0, (1,), A)
    ),
    "a matrix of rows by its own axes": (
        lambda m: m.CSR(A).asformat("gcxs", compressed_axes=(0,)), ("GCXS", "float64", 6, 0, (0,), A)
    ),
    "a matrix of columns turned": (lambda m: m.CSC(A).transpose(), ("CSR", "float64", 6, 0, (0,), A.T)),
    "a matrix not turned": (lambda m: m.CSR(A).transpose((0, 1)), ("CSR", "float64", 6, 0, (0,), A)),
    "another dtype": (lambda m: m.asarray(m.COO(A), dtype=np.int8), ("COO", "int8", 6, 0, None, A)),
    "another dtype of numbers": (lambda m: m.asarray(A.tolist(), dtype="f4"), ("COO", "float32", 6, 0, None, A)),
    "a number": (lambda m: m.asarray(3.0), ("COO", "float64", 0, 3, None, 3)),
    **{
        f"{what} as {name}": (
            lambda m, name=name, wrap=wrap: m.asarray(wrap(m), format=name),  # type: ignore[misc]
            (name.upper(), "float64", 6, 0, {"csr": (0,), "csc": (1,), "gcxs": axes}.get(name), A),
        )
        for name in ("coo", "dok", "gcxs", "csr", "csc")
        for what, wrap, axes in (
            ("numbers", lambda m: A, (0,)), ("places", lambda m: m.COO(A), (0,)), ("SciPy's", lambda m: sp.csc_array(A), (1,)),
        )
    },
    "differences with neighbours": (
        lambda m: m.diff(m.COO(A), prepend=m.COO(A[:, :1]), append=m.COO(A[:, 1:3])),
        ("COO", "float64", 12, 0, None, np.diff(A, prepend=A[:, :1], append=A[:, 1:3])),
    ),
    "differences of rows": (
        lambda m: m.diff(m.COO(A), axis=0, append=m.COO(A[:2])),
        ("COO", "float64", 12, 0, None, np.diff(A, axis=0, append=A[:2])),
    ),
    "a deviation in a dtype": (
        lambda m: m.COO(A).std(dtype=np.float32), ("COO", "float32", 0, A.std(dtype="f4"), None, A.std(dtype="f4"))
    ),
    "NaN as an integer": (
        lambda m: m.COO([[1]], [2.5], shape=(3,), fill_value=np.inf).astype(bool), ("COO", "bool", 0, True, None, [1, 1, 1])
    ),
    "a dict": (lambda m: m.DOK((2, 2), {(0, 1): 1}, dtype="i2", fill_value=3), ("DOK", "int16", 1, 3, None, [[3, 1], [3, 3]])),
    "values of a dict": (lambda m: m.DOK((2,), {1: 2}), ("DOK", "int64", 1, 0, None, [0, 2])),
    "a dict of SciPy's": (lambda m: m.DOK(sp.coo_array(A)), ("DOK", "float64", 6, 0, None, A)),
    "a dict of numbers": (lambda m: m.DOK(A), ("DOK", "float64", 6, 0, None, A)),
    "a dict of one number": (lambda m: m.DOK.from_numpy(np.float64(5)), ("DOK", "float64", 1, 0, None, 5.0)),
    "one random number": (
        lambda m: m.random((), density=1.0, data_rvs=lambda n: np.full(n, 2.0)), ("COO", "float64", 1, 0, None, 2.0)
    ),
    "a Kronecker product of numbers": (
        lambda m: m.kron(m.COO(np.float64(3)), m.COO(A[:1, :2])), ("COO", "float64", 1, 0, None, 3 * A[:1, :2])
    ),
    "a dict of a dict": (lambda m: m.DOK(m.DOK(A)), ("DOK", "float64", 6, 0, None, A)),
}  # fmt: skip


def outcome(x: Any) -> Want:
    return (
        type(x).__name__, str(x.dtype), x.nnz, x.fill_value, getattr(x, "compressed_axes", None), x.todense().tolist()
    )  # fmt: skip


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("what", MADE)
def test_what_is_made_of_arguments(what: str) -> None:
    call, want = MADE[what]
    assert outcome(call(sparse)) == (*want[:-1], np.asarray(want[-1]).tolist())


KEYS: list[tuple[Any, Any]] = [
    (([0, 1], [1, 2]), [5, 6]), (([0, -1], [1, -2]), np.array([5, 6])), (([0, 2], [3, 3]), 7), ((-1, -1), 7),
    (slice(None), 7), (Ellipsis, 7), ((Ellipsis, 0), [1, 2, 3]), ((0, Ellipsis), [1, 0, 3, 0]), (1, np.arange(4.0)),
    ((slice(0, 3, 2), slice(1, 3)), [[1, 2], [3, 4]]), ((slice(0, 3, 2), slice(1, 3)), [1, 2]), ((slice(2, 0, -1), 1), [1, 2]),
    ((np.int8(2), np.int64(3)), 0), ((slice(5, 9), 1), 4), ((slice(None), slice(1, 2)), [[1], [2], [0]]),
]  # fmt: skip


def test_assignments_are_numpys() -> None:
    """From an empty array and from a full one; what equals the fill value goes."""
    for dense in (np.zeros((3, 4)), A, np.ones((3, 4))):
        for key, value in KEYS:
            x, want = sparse.DOK(dense), dense.copy()
            x[key], want[key] = value, value
            np.testing.assert_array_equal(x.todense(), want)
            assert x.nnz == np.count_nonzero(want)
            assert all(type(k) is int for place in x.data for k in place)


@pytest.mark.thin(8, rest="ci")
@pytest.mark.parametrize("name", [n for n in MATRIX if not n.endswith("into an array")])
def test_numpys_functions_are_those_of_the_module(name: str) -> None:
    """`numpy.f(A)` gives what `f(A)` of the module does: NumPy's result in the class of A."""
    x = sparse.GCXS.from_numpy(MATRIX_OF)
    try:
        got = MATRIX[name](np, x)
    except AttributeError:
        assert not any(hasattr(np, part) for part in (name.split()[0], "diagonal"))
        return
    same(got, MATRIX[name](np, MATRIX_OF))
    assert type(got) is type(MATRIX[name](sparse, x))


MIXED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a row of signs": (lambda x: x * V, 0), "before a row of signs": (lambda x: V * x, 0),
    "vecdot of signs": (lambda x: np.vecdot(x, V), 0), "a column of signs": (lambda x: x * -np.arange(3.0)[:, None], 0),
    "quotients": (lambda x: x / np.array([1.0, -2, np.inf, 4]), 0), "by NaN": (lambda x: x * np.full(4, np.nan), np.nan),
    "maximum": (lambda x: np.maximum(x, np.full(4, -1.0)), 0), "sums": (lambda x: x + np.full(4, 2.0), 2),
    "powers": (lambda x: x ** np.array([1.0, 2, 3, 1]), 0), "comparisons": (lambda x: x > np.array([0.0, 1, 2, 3]), False),
    "sums of the same shape": (lambda x: x + A, 0),
}  # fmt: skip
"""Operations with dense operands, and the fill values of their results."""


@pytest.mark.parametrize("what", MIXED)
def test_dense_operands_of_one_fill_value(what: str) -> None:
    call, fill = MIXED[what]
    for kind in ("COO", "GCXS", "DOK"):
        got = call(getattr(sparse, kind)(A))
        assert type(got).__name__ == kind
        np.testing.assert_array_equal(got.todense(), call(A))
        np.testing.assert_array_equal(got.fill_value, fill)


@pytest.mark.parametrize(
    "call", [lambda x: x + V, lambda x: x * np.array([1, 2, np.inf, 4]), lambda x: np.maximum(x, V), lambda x: x >= V]
)
def test_dense_operands_of_several_fill_values(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="mixed sparse-dense"):
        call(sparse.COO(A))


MATRIX_OF = np.array([[1.0, 0, -2, 0], [0, 0, 3, 0], [4, 5, 0, 6]])


def test_numpys_functions_have_the_rules_of_the_module() -> None:
    x = sparse.COO(A)
    with pytest.raises(NotImplementedError, match="Mode 'edge'"):
        np.pad(x, 1, mode="edge")
    with pytest.raises(ValueError, match="must be integers or 1D"):
        np.roll(x, [[1]])
    with pytest.raises(ValueError, match="greater than one: 4"):
        np.squeeze(x, 1)
    for got, want in (
        (np.matvec(x, V), A @ V), (np.vecmat(V[:3], x), V[:3] @ A), (np.vecdot(x, V), A @ V), (np.matmul(x, A.T), A @ A.T),
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(got, "todense", lambda got=got: got)(), want)


def test_random_numbers_have_as_many_rows_of_coordinates_as_dimensions() -> None:
    for shape in ((), (5,), (2, 3, 4)):
        x = sparse.random(shape, density=1.0, random_state=0)
        assert x.coords.shape == (len(shape), int(np.prod(shape)))
        assert x.shape == shape


def test_methods_that_numpy_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("COO", "GCXS", "DOK"):
        x = getattr(sparse, kind)(A)
        for got, want in (
            (x.reshape((1, 3, 1, 4)).squeeze(), A), (x.reshape((1, 3, 1, 4)).squeeze(2), A[None]), (x.broadcast_to((2, 3, 4)), [A, A]),
            (sparse.COO.from_scipy_sparse(sp.csr_array(A.T)) @ x, A.T @ A), (np.linalg.matrix_transpose(x), A.T), (x.reshape((3, 4)), A), (x.flatten("F"), A.ravel("F")),
        ):  # fmt: skip
            np.testing.assert_array_equal(getattr(got, "todense", lambda got=got: got)(), want)
        sign, logarithm = np.linalg.slogdet(getattr(sparse, kind)(np.diag([2.0, -1, 3])))
        assert type(sign).__name__ == type(logarithm).__name__ == kind
        np.testing.assert_allclose([float(sign), float(logarithm)], np.linalg.slogdet(np.diag([2.0, -1, 3])))
    for x in (sparse.GCXS(T, compressed_axes=(0, 2)), sparse.COO(T)):
        assert x.to_scipy_sparse().shape == T.shape
        np.testing.assert_array_equal(x.to_scipy_sparse().toarray(), T)
    for dtype in (np.int8, np.uint16, np.int64):
        assert sparse.COO([[0, 2]], [1.0, 2], (3,), idx_dtype=dtype).coords.dtype == dtype
    monkeypatch.setattr(np, "__version__", "2.0.0")
    with pytest.raises(ValueError, match="One of max or min must be given"):
        sparse.clip(sparse.COO(A))
    monkeypatch.setattr(np, "__version__", "2.1.0")
    np.testing.assert_array_equal(sparse.clip(sparse.COO(A)).todense(), A)


def test_what_need_not_change_is_itself() -> None:
    x = sparse.COO(A)
    assert x.reshape((3, 4)) is x
    for itself in (
        sparse.asarray(x),
        sparse.asarray(x, dtype=float),
        sparse.asarray(x, format="coo"),
        x.asformat("coo"),
        x[:],
    ):
        assert itself is x
    for other in (sparse.asarray(x, copy=True), sparse.asarray(x, dtype=np.float32), x.copy()):
        assert not np.shares_memory(other.data, x.data)


def test_casts_are_silent() -> None:
    x = sparse.COO([[0, 2]], [np.nan, 300.0], shape=(3,), fill_value=np.inf)
    with np.errstate(all="raise"):
        assert x.astype(np.int8).dtype == np.int8
        assert (1e3 * x).astype(np.float16).todense()[1] == np.inf
    assert x.astype(float, copy=False) is x
    assert x.astype(float) is not x


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sparse.COO.from_iter([((1.5,), 3.0), ((0,), 2.0), ((1,), 2.0)], (5,)), ValueError, "Invalid iterable"),
        (lambda: sparse.COO.from_iter([((-1,), 3.0), ((0,), 2.0), ((1,), 2.0)], (5,)), ValueError, "Invalid iterable"),
        (
            lambda: sparse.COO.from_iter([((1,), 3.0), ((0,), 2.0, 1), ((1,), 2.0)], (5,)),
            ValueError,
            "Invalid iterable",
        ),
        (
            lambda: sparse.COO.from_iter([((1,), [3.0]), ((0,), [2.0]), ((1,), [2.0])], (5,)),
            ValueError,
            "Invalid iterable",
        ),
        (lambda: sparse.CSR(V), ValueError, "1-d array: CSR is 2-d"),
        (lambda: sparse.CSC(([1.0], [0], [0, 1]), shape=(3,)), ValueError, "1-d shape: CSC is 2-d"),
        (lambda: sparse.CSC(A, compressed_axes=(0,)), ValueError, r"CSC only accepts \(1,\)"),
        (lambda: sparse.asarray(A, device="gpu"), ValueError, "Device must be"),
        (lambda: sparse.CSR(A).transpose((0, 0)), ValueError, r"Invalid transpose axes: \(0, 0\)"),
        (lambda: sparse.CSC(A).transpose(3), ValueError, "Invalid transpose axes: 3"),
        (lambda: sparse.GCXS(T).transpose((0, 1, 1)), ValueError, "don't match array"),
        (lambda: sparse.COO(A).transpose((0, 2)), ValueError, "Invalid axis index 2"),
        (lambda: sparse.COO(A)["a"], IndexError, "only integers, slices"),
        (lambda: sparse.COO(A)[1.5], IndexError, "only integers, slices"),
        (lambda: sparse.GCXS(A)[:, 9], IndexError, "index 9 is out of bounds"),
        (lambda: np.add(sparse.COO(A), sparse.COO(A), out=np.zeros((3, 4))), TypeError, "returned NotImplemented"),
        (lambda: A.T.tolist() @ sparse.COO(A), TypeError, "unsupported operand"),
        (lambda: sparse.COO(A) @ A.T.tolist(), TypeError, "unsupported operand"),
        (lambda: np.asarray(sparse.COO(A)), RuntimeError, "Cannot convert a sparse array to dense"),
        (lambda: float(sparse.COO(A)), ValueError, "one element and no dimension"),
        (lambda: sparse.COO([[0, 200]], [1, 2], (300,), idx_dtype=np.int8), ValueError, "cannot cast array"),
    ],
)
def test_arguments_that_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
