"""Functions and methods under SciPy's names, over every format, fill value and library, against SciPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow

FORMATS = ("csr", "csc", "coo", "dcsr", "bsr(2, 3)", "dia", "bitmap", "ell(6)", "dense")
RNG = np.random.default_rng(5)
X = np.where(RNG.random((4, 6)) < 0.4, RNG.integers(-4, 5, (4, 6)) + 0.5, 0.0)


def tensors(x: np.ndarray = X, fills: tuple[float, ...] = (0.0, 0.5)) -> Any:
    for spec in FORMATS:
        for fill in fills:
            try:
                yield ow.asarray(x, format=spec, fill_value=fill)
            except ow.FormatError:
                continue


def uncoalesced(values: Any = (1.0, 2.0, 3.0, 0.0, 4.0)) -> ow.Tensor:
    return ow.sparse_coo_tensor(np.array([[2, 0, 2, 1, 0], [1, 3, 1, 0, 0]]), values, (3, 4))


def test_eye_array():
    for options in ({}, {"n": 5}, {"k": 1}, {"n": 2, "k": -2, "dtype": np.int8}, {"format": "csr"}):
        got, want = ow.eye_array(4, **options), sp.eye_array(4, **options)
        assert (got.format.name, got.dtype) == (want.format, want.dtype)
        np.testing.assert_array_equal(got.to_numpy(), want.toarray())
    assert ow.eye_array(0).shape == (0, 0)


@pytest.mark.parametrize(
    ("diagonals", "options"),
    [
        ([1.0, 2, 3], {}),
        ([[1.0, 2, 3], [4.0, 5], [6.0]], {"offsets": [0, 1, -2]}),
        ([[1.0, 2, 3], [4.0, 5, 6, 7]], {"offsets": (-1, 2), "shape": (4, 5)}),
        ([1.0, -2, 1], {"offsets": [-1, 0, 1], "shape": (4, 4)}),
        ([[1.0, 2, 3, 4, 5, 6]], {"offsets": [1], "shape": (2, 3)}),
        (np.arange(6.0).reshape(2, 3), {"offsets": np.array([0, 3]), "shape": (3, 6)}),
        ([7.0], {"shape": (2, 3)}),
        ([], {"offsets": [], "shape": (2, 3)}),
        ([[]], {"offsets": [3], "shape": (2, 3)}),
        ([[1, 2], [3j, 4]], {"offsets": [0, -1], "shape": (3, 2), "format": "csr"}),
        ([[1, 2], [3, 4]], {"offsets": [0, -1], "shape": (3, 2), "dtype": "float32"}),
    ],
)
def test_diags_array(diagonals, options):
    got = ow.diags_array(diagonals, **options)
    if not np.size(options.get("offsets", 0)):
        assert (got.shape, got.nse, got.format.name) == (options["shape"], 0, "dia")
        return
    several = np.ndim(options.get("offsets", 0)) and not isinstance(diagonals, np.ndarray)
    given = [np.asarray(d) for d in diagonals] if several else diagonals
    dtype = np.result_type(*given) if several else np.asarray(given).dtype
    want = sp.diags_array(given, **{"dtype": dtype, **options})
    assert (got.format.name, got.dtype) == (want.format, want.dtype)
    np.testing.assert_array_equal(got.to_numpy(), want.toarray())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ow.diags_array([[1, 2, 3]], offsets=[9], shape=(3, 3)), "out of bounds"),
        (lambda: ow.diags_array([[1, 2]], offsets=[0], shape=(3, 3)), "does not agree"),
        (lambda: ow.diags_array([[1, 2], [3]], offsets=[0]), "2 diagonals and 1 offsets"),
        (lambda: ow.diags_array([[1, 2], [3, 4]], offsets=[0, 0]), "duplicates"),
        (lambda: ow.diags_array([], offsets=[]), "no diagonals"),
        (lambda: ow.block_array([[X, X], [X]]), "as many in each row"),
        (lambda: ow.block_array([[X, None], [None, None]]), "no block but None"),
        (lambda: ow.block_array([[X, X[:2]]]), r"row 0 has blocks of \[2, 4\] rows"),
        (lambda: ow.block_array([]), "rows of no blocks"),
        (lambda: ow.block_diag([np.zeros((2, 2, 2))]), "concat takes any rank"),
        (lambda: ow.kronsum(X, X), "square"),
        (lambda: ow.reshape(X, (6, 4), order="K"), "supported: 'C', 'F'"),
        (lambda: ow.asarray(X).setdiag(1, 9), "exceeds"),
        (lambda: ow.asarray(X).resize(2), "reshape changes the rank"),
        (lambda: ow.block_diag([ow.asarray(X, format="csr", fill_value=1)]), "unspecified elements of a block are 1"),
    ],
)
def test_refusals(call: Callable[[], Any], words: str):
    with pytest.raises((ow.ShapeError, ow.UnsupportedError), match=words) as found:
        call()
    assert "help:" in str(found.value)


def test_blocks_of_every_format():
    y, z = X[:, :2] * 2, np.array([[7.0, 8]])
    grid = np.block([[X, y], [np.zeros((1, 6)), z]])
    for t in tensors(fills=(0.0,)):
        got = ow.block_array([[t, y], [None, ow.asarray(z, format="coo")]])
        np.testing.assert_array_equal(got.to_numpy(), grid)
        assert not got.format.is_dense
        got.check()
        want = sp.block_diag([X, z, [5.0, 0], 3]).toarray()
        np.testing.assert_array_equal(ow.block_diag([t, z, [5.0, 0], 3]).to_numpy(), want)
        np.testing.assert_array_equal(ow.hstack([t, y]).to_numpy(), np.hstack([X, y]))
        np.testing.assert_array_equal(ow.vstack([t, t]).to_numpy(), np.vstack([X, X]))
    np.testing.assert_array_equal(ow.block_array([[X, None], [None, X]]).to_numpy(), np.kron(np.eye(2), X))
    for fill in (0.5, 2.0):
        t = ow.asarray(X, format="csr", fill_value=fill)
        np.testing.assert_array_equal(ow.vstack([t, t]).to_numpy(), np.vstack([X, X]))
    made = ow.hstack([ow.asarray(X, format="csr"), X], "csc", "float32")
    assert (made.format.name, made.dtype) == ("csc", np.float32)
    assert ow.block_diag([]).shape == (0, 0)
    v = ow.asarray(X[0], format="coo")
    np.testing.assert_array_equal(ow.hstack([v, v]).to_numpy(), np.hstack([X[0], X[0]]))
    np.testing.assert_array_equal(ow.vstack([v, v]).to_numpy(), np.vstack([X[0], X[0]]))
    twice = uncoalesced()
    np.testing.assert_array_equal(ow.block_diag([twice, twice]).to_numpy(), np.kron(np.eye(2), twice.to_numpy()))


def test_blocks_of_numpys_and_of_masked_tensors():
    t = ow.asarray(X, format="csr")
    assert isinstance(np.hstack([t, X]), ow.Tensor)
    np.testing.assert_array_equal(np.vstack([t, X]).to_numpy(), np.vstack([X, X]))
    m = ow.masked_tensor(X, X > 0)
    for got, join in ((ow.hstack([m, m]), np.hstack), (ow.vstack([m, m]), np.vstack)):
        assert isinstance(got, ow.MaskedTensor)
        np.testing.assert_array_equal(got.to_numpy(-9), join([np.where(X > 0, X, -9)] * 2))
    np.testing.assert_array_equal(ow.vstack([m[0], m[1]]).to_numpy(-9), np.where(X > 0, X, -9)[:2])
    np.testing.assert_array_equal(ow.hstack([ow.lazy(t), t]).to_numpy(), np.hstack([X, X]))


def test_kronsum():
    a, b = X[:3, :3], X[1:3, 2:4]
    for spec in ("csr", "coo", "dense", "dia"):
        got = ow.kronsum(ow.asarray(a, format=spec), b)
        np.testing.assert_array_equal(got.to_numpy(), sp.kronsum(sp.csr_array(a), sp.csr_array(b)).toarray())
    assert ow.kronsum(a, b, "csc").format.name == "csc"


def test_find():
    for t in tensors():
        rows, columns, values = ow.find(t)
        want = np.nonzero(X)
        for got, expected in zip((rows, columns, values), (*want, X[want]), strict=True):
            assert got.format.is_dense
            np.testing.assert_array_equal(got.to_numpy(), expected)
    rows, columns, values = ow.find(uncoalesced())
    assert [x.tolist() for x in (rows, columns, values)] == [[0, 0, 2], [0, 3, 1], [4.0, 2.0, 4.0]]
    cube = ow.asarray(np.stack([X, 0 * X, X]), format="csf")
    assert len(ow.find(cube)) == 4
    np.testing.assert_array_equal(ow.find(cube)[3].to_numpy(), np.r_[X[X != 0], X[X != 0]])
    assert [len(x) for x in ow.find(ow.zeros((3, 4)))] == [0, 0, 0]


def test_random_array():
    a = ow.random_array((50, 40), density=0.1, rng=3)
    assert (a.nse, a.dtype, a.format.name) == (200, np.float64, "coo")
    b = ow.random_array((5, 4, 3), density=0.5, rng=3, data_sampler=lambda size: np.arange(size), format="csf")
    assert (b.dtype, b.format.name) == (np.arange(1).dtype, "csf")
    assert sorted(b.values.tolist()) == list(range(30))
    c = ow.random_array((9, 9), dtype="float32", rng=0, data_sampler=lambda size, dtype: np.ones(size, dtype))
    assert c.dtype == np.float32


def test_reshape_in_column_major_order():
    for t in tensors():
        for shape in ((6, 4), (2, 2, 6), (-1,), (8, -1)):
            np.testing.assert_array_equal(ow.reshape(t, shape, order="F").to_numpy(), X.reshape(shape, order="F"))
            np.testing.assert_array_equal(t.reshape(shape).to_numpy(), X.reshape(shape))
        np.testing.assert_array_equal(t.reshape(6, 4, order="F").to_numpy(), X.reshape(6, 4, order="F"))
        np.testing.assert_array_equal(t.reshape(24).to_numpy(), X.reshape(24))
        np.testing.assert_array_equal(np.reshape(t, (6, 4), order="F").to_numpy(), X.reshape(6, 4, order="F"))


@pytest.mark.thin(2)
@pytest.mark.parametrize("explicit", [False, True])
def test_extremes_of_stored_elements(explicit):
    stored = X.copy()
    stored[1] = 0
    held = stored != 0
    for t in tensors(stored):
        if t.format.is_dense or t.format.name in ("bsr(2, 3)", "dia", "ell(6)"):
            continue
        seen = stored != t.fill_value if explicit else np.ones_like(held)
        for axis in (None, 0, 1):
            any_of = seen.any(axis)
            for name, worst in (("max", -np.inf), ("min", np.inf)):
                numbers = np.where(seen, stored, worst)
                want = np.where(any_of, getattr(numbers, name)(axis), t.fill_value)
                for got in (
                    getattr(t, name)(axis, explicit=explicit),
                    getattr(ow, name)(t, axis=axis, explicit=explicit),
                ):
                    np.testing.assert_array_equal(got.to_numpy(), want)
                place = np.where(any_of, getattr(numbers, f"arg{name}")(axis), 0)
                for got in (
                    getattr(t, f"arg{name}")(axis, explicit=explicit),
                    getattr(ow, f"arg{name}")(t, axis=axis, explicit=explicit),
                ):
                    np.testing.assert_array_equal(got.to_numpy(), place)
    twice = uncoalesced((-1.0, -2.0, -3.0, 0.0, -4.0))
    assert twice.max(1, explicit=True).tolist() == [-2.0, 0.0, -4.0]
    assert twice.min(0, explicit=True).tolist() == [-4.0, -4.0, 0.0, -2.0]


def test_getnnz_counts_what_is_stored():
    for t in tensors(fills=(0.0,)):
        if t.format.name in ("csr", "csc", "coo", "dcsr", "bitmap"):
            assert type(t.getnnz()) is int
            assert t.getnnz() == np.count_nonzero(X)
            for axis in (0, 1, -1):
                np.testing.assert_array_equal(t.getnnz(axis).to_numpy(), np.count_nonzero(X, axis))
    assert uncoalesced().getnnz() == 5
    assert uncoalesced().getnnz(1).tolist() == [2, 1, 2]


def test_setdiag_in_place():
    for t in tensors():
        for values, k in (
            (7.0, 0),
            ([1.0, 2, 3, 4], 2),
            ([9.0, 8], -1),
            (np.arange(3.0), 1),
            (ow.asarray([1.0, 2.0]), 4),
        ):
            changed, want = t.clone(), X.copy()
            assert changed.setdiag(values, k) is None
            given = values.to_numpy() if isinstance(values, ow.Tensor) else np.asarray(values)
            n = min(4 + min(k, 0), 6 - max(k, 0))
            n = min(n, len(given)) if given.ndim else n
            at = np.arange(n)
            want[at + max(-k, 0), at + max(k, 0)] = given[:n] if given.ndim else given
            np.testing.assert_array_equal(changed.to_numpy(), want)
            assert changed.format == t.format or not t.format.is_unique
        np.testing.assert_array_equal(t.to_numpy(), X)


def test_in_place_structure():
    t = uncoalesced()
    assert t.sum_duplicates() is None
    assert (t.nse, t.format) == (4, ow.format("coo"))
    assert t.eliminate_zeros() is None
    assert t.nse == 3
    u = uncoalesced()
    u.sort_indices()
    assert u.is_coalesced()
    np.testing.assert_array_equal(u.to_numpy(), uncoalesced().to_numpy())
    for fill in (0.0, 0.5, np.nan):
        stored = np.array([[0.0, -0.0, 0.5], [np.nan, 1.0, 0.0]])
        full = ow.asarray(stored, format="csr", fill_value=9.0)
        full = ow.Tensor._from_storage(full._storage.with_values(full.values, fill))
        full.eliminate_zeros()
        gone = np.isnan(stored) if fill != fill else stored == fill
        assert full.nse == np.count_nonzero(~gone)
        np.testing.assert_array_equal(full.to_numpy(), stored)


def test_resize_in_place():
    for t in tensors():
        for shape in ((2, 3), (7, 9), (4, 2), (6, 6), (0, 3)):
            try:
                ow.zeros(shape, format=t.format)
            except (ow.FormatError, ow.ShapeError):
                continue
            changed, want = t.clone(), np.full(shape, t.fill_value)
            inside = tuple(slice(min(a, b)) for a, b in zip(shape, X.shape, strict=True))
            want[inside] = X[inside]
            assert changed.resize(*shape) is None
            np.testing.assert_array_equal(changed.to_numpy(), want)
            changed.check()


def test_methods_of_elements():
    for t in tensors(fills=(0.0,)):
        np.testing.assert_array_equal(t.power(2).to_numpy(), X**2)
        assert t.power(2, dtype="float32").dtype == np.float32
        np.testing.assert_array_equal(ow.asarray(t.multiply(X)).to_numpy(), X * X)
        np.testing.assert_array_equal(t.maximum(1.0).to_numpy(), np.maximum(X, 1))
        np.testing.assert_array_equal(t.minimum(t.T.T).to_numpy(), X)
        np.testing.assert_array_equal(t.diagonal(1).to_numpy(), np.diagonal(X, 1))
        assert t.trace().item() == np.trace(X)
        assert [x.tolist() for x in t.nonzero()] == [x.tolist() for x in np.nonzero(X)]
        np.testing.assert_array_equal(t.count_nonzero(axis=0).to_numpy(), np.count_nonzero(X, 0))


def test_over_torch_buffers_with_gradients():
    torch = pytest.importorskip("torch")
    dense = torch.tensor(X, requires_grad=True)
    t = ow.asarray(torch.tensor(X), format="csr")
    t = ow.Tensor._from_storage(t._storage.with_values(t.values.clone().requires_grad_()))
    weights = torch.arange(96.0, dtype=torch.float64).reshape(8, 12)
    v = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    held = torch.tensor(X != 0)
    for ours, theirs in (
        (lambda x: ow.block_diag([x, x]), lambda x: torch.block_diag(x, x)),
        (lambda x: ow.block_array([[x, None], [None, x]]), lambda x: torch.block_diag(x, x)),
        (lambda x: ow.vstack([ow.hstack([x, x]), ow.hstack([x, x])]), lambda x: torch.tile(x, (2, 2))),
        (lambda x: x.reshape(8, 3, order="F"), lambda x: x.T.reshape(3, 8).T),
    ):
        got, want = ours(t).to_dense(), theirs(dense)
        torch.testing.assert_close(got, want)
        w = weights[: got.shape[0], : got.shape[1]]
        mine = torch.autograd.grad((got * w).sum(), t.values)[0]
        torch.testing.assert_close(mine, torch.autograd.grad((want * w).sum(), dense)[0][held])
    made = ow.diags_array([v, 2 * v[:2]], offsets=[0, 1])
    want = torch.diag(v) + torch.diag(2 * v[:2], 1)
    torch.testing.assert_close(made.to_dense(), want)
    torch.testing.assert_close(
        *(torch.autograd.grad((x * weights[:3, :3]).sum(), v)[0] for x in (made.to_dense(), want))
    )
    changed = t.clone()
    changed.setdiag(v, 1)
    (mine,) = torch.autograd.grad((changed.to_dense() * weights[:4, :6]).sum(), v)
    torch.testing.assert_close(mine, weights[:3, 1:4].diag())
    with torch.no_grad():
        plain = ow.asarray(torch.tensor(X), format="csr")
        plain.setdiag(torch.tensor(5.0))
        assert plain.trace().item() == 20
        assert plain.getnnz(0).sum().item() == plain.nse
        plain.eliminate_zeros()
        plain.resize(2, 2)
        assert plain.shape == (2, 2)
        assert plain.max(1, explicit=True).to_dense().shape == (2,)
