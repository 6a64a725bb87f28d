"""Selections, conversions and joins of little data by one launch: what the stages give, for all formats and libraries."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.runtime import moves

torch = pytest.importorskip("torch")

FORMATS = ["csr", "csc", "coo", "dcsr", "bitmap", "ell(8)", "bsr(2, 2)", "dia"]
RNG = np.random.default_rng(3)
X = np.where(RNG.random((6, 8)) < 0.4, RNG.integers(1, 9, (6, 8)), 0).astype(float)

MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "column": lambda a, xp: a[:, 3],
    "columns": lambda a, xp: a[:, 2:7],
    "box": lambda a, xp: a[1:5, 2:7],
    "steps": lambda a, xp: a[::2, ::-1],
    "row": lambda a, xp: a[2],
    "rows": lambda a, xp: a[1:4],
    "new": lambda a, xp: a[None, 1],
    "list": lambda a, xp: a[:, [1, 5, 1]],
    "places": lambda a, xp: a[[1, 2, 2], [0, 3, 3]],
    "array": lambda a, xp: a[:, np.array([4, -1])],
    "element": lambda a, xp: a[3, 3],
    "dots": lambda a, xp: a[..., 1],
    "tril": lambda a, xp: xp.tril(a, k=1),
    "triu": lambda a, xp: xp.triu(a),
    "roll": lambda a, xp: xp.roll(a, 2, axis=1),
    "reshape": lambda a, xp: xp.reshape(a, (4, 12)),
    "flip": lambda a, xp: xp.flip(a, axis=0),
    "repeat": lambda a, xp: xp.repeat(a, 2, axis=0),
    "diagonal": lambda a, xp: xp.diagonal(a, offset=1),
    "to csr": lambda a, xp: a.asformat("csr") if xp is ow else a,
    "to csc": lambda a, xp: a.asformat("csc") if xp is ow else a,
    "to coo": lambda a, xp: a.asformat("coo") if xp is ow else a,
    "to dense": lambda a, xp: a.asformat("dense") if xp is ow else a,
}


def dense(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x)


@pytest.mark.thin(102)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("like", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", MOVES)
def test_other_values_of_one_structure(name: str, like: Any, format: str) -> None:
    move, a = MOVES[name], ow.asarray(like(X), format=format)
    first = move(a, ow)
    for factor in (1, 2, 3, 3):
        found = move(a * factor, ow)
        np.testing.assert_array_equal(dense(found), dense(move(X * factor, np)))
        assert (found.shape, found.format, found.dtype) == (first.shape, first.format, first.dtype)
        found.check()
    np.testing.assert_array_equal(dense(first), dense(move(X, np)))
    np.testing.assert_array_equal(dense(move(a.astype("float32"), ow)), dense(move(X, np)))


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("name", MOVES)
def test_gradients(name: str) -> None:
    move = MOVES[name]
    for _ in range(2):
        a = ow.asarray(torch.from_numpy(X), format="csr").requires_grad_()
        for _ in range(4):
            a.grad = None
            found = move(a, ow)
            ow.sum(found * found).values.sum().backward()
            y = torch.from_numpy(X).requires_grad_()
            wanted = y[tuple(move(np.indices(X.shape)[k].astype(float), np).astype(int) for k in range(2))]
            mask = torch.from_numpy(np.asarray(move(np.ones(X.shape), np))) if "tri" in name else 1
            (mask * wanted**2).sum().backward()
            np.testing.assert_array_equal(a.grad.to_dense(), y.grad * (torch.from_numpy(X) != 0))


LARGER: dict[str, Callable[[Any], Any]] = {
    "joined": lambda a: ow.concat([a, a], axis=0),
    "joined beside": lambda a: ow.concat([a, a[:, 2:], a], axis=1),
    "stacked": lambda a: ow.stack([a, a], axis=1),
    "blocks": lambda a: a[np.ix_([3, 1, 3], [7, 0])],
    "mask": lambda a: a[:, np.arange(8) % 3 == 0],
    "padded": lambda a: ow.pad(a, ((1, 0), (2, 3))),
    "moved axes": lambda a: ow.reshape(a, (2, 3, 8))[:, 1, ::-2],
    "resized": lambda a: ow.tile(a, (2, 1)),
    "csf": lambda a: ow.reshape(a, (2, 3, 8)).asformat("csf"),
    "dcsr": lambda a: a.asformat("dcsr"),
    "blocked": lambda a: a.asformat("bsr(2, 2)"),
}


@pytest.mark.thin(140)
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", [*MOVES, *LARGER])
def test_one_launch_gives_what_the_stages_give(
    name: str, format: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same buffers, of the same types and in the same order."""
    a = ow.asarray(X.astype(dtype), format=format)
    call = LARGER.get(name) or (lambda a: MOVES[name](a, ow))
    launched = call(a)
    monkeypatch.setattr(moves, "LITTLE", -1)
    staged = call(a)
    assert (launched.shape, launched.format, launched.dtype) == (staged.shape, staged.format, staged.dtype)
    for x, y in zip(launched._storage.buffers, staged._storage.buffers, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    launched.check()


def test_what_depends_on_values_is_asked_each_time() -> None:
    x = X.copy()
    a = ow.asarray(X, format="csr")
    for k in range(4):
        x[x == k] = 0
        a.values[a.values == k] = 0.0
        np.testing.assert_array_equal(ow.prune(a).nse, np.count_nonzero(x))
        d = ow.asarray(x)
        assert d.asformat("csr").nse == np.count_nonzero(x)
    t = ow.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    for _ in range(4):
        np.testing.assert_array_equal(t[:, 1].to_numpy(), [3.0, 0.0])


@pytest.mark.parametrize("fill", [2.0, -0.0, np.nan])
def test_fill_values(fill: float) -> None:
    a = ow.asarray(X, format="csr")
    b, y = ow.where(a != 0, a, fill), np.where(X == 0, fill, X)
    for _ in range(4):
        for move in (MOVES["box"], MOVES["column"], MOVES["roll"], MOVES["to dense"]):
            found = dense(move(b, ow))
            np.testing.assert_array_equal(found, move(y, np))
            np.testing.assert_array_equal(np.signbit(found), np.signbit(move(y, np)))


def test_keys_are_not_mixed_up() -> None:
    a = ow.asarray(X, format="csr")
    keys: list[Any] = [1, True, (1, 1), (True, 1), (1, slice(1, 2)), (1, None), (None, 1), ([1], 1), (np.array([1]), 1)]
    keys += [(np.int64(1), 1), (slice(None), [1, 1]), (slice(0, 1), 1), (slice(False, True), 1), np.array([True] * 6)]
    for _ in range(4):
        for key in keys:
            np.testing.assert_array_equal(a[key].to_numpy(), X[key])
        for bad in ((6, 0), (slice(None), 8), (slice(None), 1.0), (0, 0, 0), "a"):
            with pytest.raises((IndexError, TypeError)):
                a[bad]


def test_parts_of_the_memory_stay_parts_of_it() -> None:
    a = ow.asarray(X, format="csr")
    for _ in range(4):
        assert np.shares_memory(a[1:4].values, a.values)
        assert np.shares_memory(a.asformat("coo").values, a.values)
        assert not np.shares_memory(a.asformat("coo", copy=True).values, a.values)
        assert not np.shares_memory(a[:, 1:4].values, a.values)
        a[1:4].values[:] *= 2
    np.testing.assert_array_equal(a.to_numpy()[1:4], X[1:4] * 16)


@pytest.mark.parametrize("name", ["columns", "rows", "to csc", "diagonal", "tril"])
def test_a_matrix_of_scipy_may_be_changed(name: str) -> None:
    """SciPy's methods write to the indices that they are given."""
    scipy = pytest.importorskip("scipy.sparse")
    a = ow.asarray(X, format="csr")
    a.values[::2] = 0
    x = a.to_numpy()
    for _ in range(5):
        found = MOVES[name](a, ow)
        np.testing.assert_array_equal(dense(found), dense(MOVES[name](x, np)))
        m = found.to_scipy()
        for b in (m.coords if m.format == "coo" else (m.indices, m.indptr)) if name != "rows" else ():
            b[:] = 0
        assert scipy.issparse(m)


def test_indices_of_torch_that_were_written_to() -> None:
    a = ow.asarray(torch.from_numpy(X), format="csr")
    for _ in range(5):
        found = a[:, 2:7]
        np.testing.assert_array_equal(found.to_numpy(), X[:, 2:7])
        found.crd(1).zero_()
    for _ in range(5):
        m = a[:, 2:7].to_torch()
        m.col_indices().zero_()
        np.testing.assert_array_equal(a[:, 2:7].to_numpy(), X[:, 2:7])


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_transforms_tangents_and_inference_mode() -> None:
    x = torch.from_numpy(X)

    def fresh() -> ow.Tensor:
        return ow.asarray(x, format="csr")

    a = fresh()
    with torch.inference_mode():
        for _ in range(4):
            a[:, 2:7]
    a.requires_grad_()
    for _ in range(3):
        a[:, 2:7].values.sum().backward()
    a = fresh()

    def columns(values: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ow.assemble(a.format, a.shape, pos=[None, a.pos(1)], crd=[None, a.crd(1)], values=values)[
                :, 2:7
            ].values

    for _ in range(4):
        both = torch.func.jvp(columns, (a.values,), (a.values * 2,))
        assert torch.equal(both[1], 2 * both[0])
    for _ in range(4):
        a[:, 2:7]
    assert torch.equal(torch.func.jvp(lambda v: columns(v), (a.values,), (a.values,))[0], a[:, 2:7].values)


def test_nothing_holds_operands_or_results() -> None:
    b = ow.asarray(X, format="csr")
    values, results = [], []
    for k in range(4):
        c = b * (k + 1)
        found = ow.concat([c, b])[:, [1, 0]]
        values.append(weakref.ref(c.values))
        results.append(weakref.ref(found.values))
        del c, found
    gc.collect()
    assert [r() for r in (*values, *results)] == [None] * 8


def test_much_data_goes_in_stages() -> None:
    """On both sides of the limit, the same."""
    n = moves.LITTLE // 64
    for rows in (64, 65):
        x = RNG.random((rows, n)) + 1
        a = ow.asarray(x, format="csr")
        np.testing.assert_array_equal(a[:, 5:900].to_numpy(), x[:, 5:900])
        np.testing.assert_array_equal(a.asformat("csc").to_numpy(), x)
        np.testing.assert_array_equal(ow.concat([a, a], axis=1).to_numpy(), np.concatenate([x, x], axis=1))


@pytest.mark.thin(6)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "complex64", "float16", "bool"])
@pytest.mark.parametrize("target", ["csr", "csc", "dcsr", "coo", "csf"])
def test_duplicates_are_added_as_the_stages_add_them(target: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which they are given, bit for bit."""
    rng = np.random.default_rng(5)
    at = np.stack([rng.integers(0, n, 90) for n in (6, 8, 3)[: 3 if target == "csf" else 2]])
    values = (100 * rng.standard_normal(90)).astype(dtype)
    for order in (np.arange(90), np.lexsort(at[::-1])):
        a = ow.sparse_coo_tensor(at[:, order], values[order], (6, 8, 3)[: len(at)])
        monkeypatch.setattr(moves, "LITTLE", 1 << 15)
        launched = a.asformat(target)
        monkeypatch.setattr(moves, "LITTLE", -1)
        staged = a.asformat(target)
        assert launched.nse < a.nse or launched.nse < 90
        for x, y in zip(launched._storage.buffers, staged._storage.buffers, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
        launched.check()
