"""Elements of fibres by their order: the first k, those at ranks, and partitions, on every format, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix import FORMATS, dense_array, same

import openwork as ow
from openwork.compiler.selection import first_kernel, order_kernel, place_kernel, rank_kernel
from openwork.ir.interpret import run
from openwork.ops.selection import MORE, Rows, rows_of

ALL = [(rank, spec) for rank in (1, 2, 3) for spec in FORMATS[rank] if "nm(" not in spec]
PLACES = {1: (9,), 2: (7, 11), 3: (4, 6, 5)}
DTYPES = ("bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64")


def array(rank: int, fill: float) -> np.ndarray[Any, Any]:
    """Values of both signs, ties, NaN, infinities and zeros of both signs, and mostly `fill`."""
    a = dense_array(PLACES[rank], 3) - 2
    a[a == -1] = np.nan
    a[a == 1] = -0.0
    a[a == 2] = -np.inf
    return np.where(dense_array(PLACES[rank], 3) == 0, fill, a)


def made(a: np.ndarray[Any, Any], spec: str, fill: Any) -> ow.Tensor:
    if spec.startswith("dense"):
        return ow.asarray(a).asformat(ow.format(spec, a.ndim))
    return ow.asarray(a, format="coo", fill_value=fill).asformat(ow.format(spec, a.ndim))


def ascending(a: np.ndarray[Any, Any], axis: int, descending: bool = False) -> np.ndarray[Any, Any]:
    """NumPy's stable order; the descending one is that of the reversed fibre, reversed."""
    if not descending:
        return np.argsort(a, axis=axis, kind="stable")
    return a.shape[axis] - 1 - np.flip(np.argsort(np.flip(a, axis), axis=axis, kind="stable"), axis)


def rows_in(values: np.ndarray[Any, Any], counts: list[int]) -> Rows:
    """Rows of stored elements, of an extent that all fill."""
    pos = np.append(0, np.cumsum(counts))
    crd = np.concatenate([np.arange(n) for n in counts])
    return Rows(values, pos, crd, len(counts), max(counts), 0)


@pytest.mark.thin(21)
@pytest.mark.parametrize(("rank", "spec"), ALL)
def test_first_elements_of_every_format(rank: int, spec: str) -> None:
    for fill in (0.0, 1.5, np.nan):
        a = array(rank, fill)
        t = made(a, spec, fill)
        for axis in range(rank):
            for largest in (False, True):
                want = ascending(a, axis, largest)
                for k in (0, 1, 3, a.shape[axis]):
                    values, indices = ow.topk(t, k, axis=axis, largest=largest)
                    taken = np.take(want, range(k), axis)
                    same(indices, taken)
                    same(values, np.take_along_axis(a, taken, axis))
                    assert values.format.is_dense == t.format.is_dense
                    assert values.fill_value == t.fill_value or np.isnan(fill) or t.format.is_dense


@pytest.mark.thin(14)
@pytest.mark.parametrize(("rank", "spec"), ALL)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_partitions_of_every_format(rank: int, spec: str) -> None:
    for fill in (0.0, 1.5, np.nan):
        a = array(rank, fill)
        t = made(a, spec, fill)
        for axis in range(rank):
            n = a.shape[axis]
            ordered = np.sort(a, axis=axis)
            for kth in ([0], [n // 2], [-1, 1]):
                parts = np.asarray(np.partition(t, kth, axis=axis).to_numpy())
                indices = np.argpartition(t, kth, axis=axis).to_numpy()
                same(
                    np.sort(indices, axis=axis),
                    np.broadcast_to(np.argsort(ascending(a, axis), axis), a.shape) * 0
                    + np.arange(n).reshape([-1 if d == axis else 1 for d in range(rank)]),
                )
                for out in (parts, np.take_along_axis(a, indices, axis)):
                    same(np.sort(out, axis=axis), ordered)
                    for k in kth:
                        same(np.take(out, k, axis), np.take(ordered, k, axis))
                        before = np.take(out, range(k % n), axis)
                        same(np.sort(before, axis=axis), np.take(ordered, range(k % n), axis))


@pytest.mark.thin(15)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", ["csr", "dense"])
def test_extremes_of_dtypes(spec: str, dtype: str) -> None:
    kind = np.dtype(dtype)
    ends = (
        [np.finfo(kind).min, np.finfo(kind).max, np.inf, -np.inf, np.nan, -np.nan, np.finfo(kind).smallest_subnormal]
        if kind.kind == "f"
        else [False, True]
        if kind.kind == "b"
        else [np.iinfo(kind).min, np.iinfo(kind).max]
    )
    rng = np.random.default_rng(1)
    a = rng.choice(np.array([0, 0, 1, *ends], kind), (6, 90))
    t = made(a, spec, a[0, 0])
    for largest in (False, True):
        want = ascending(a, 1, largest)
        for k in (1, 7, 60, 90):
            values, indices = ow.topk(t, k, largest=largest)
            same(indices, want[:, :k])
            same(values, np.take_along_axis(a, want[:, :k], 1))
    same(ow.sort(t), np.take_along_axis(a, ascending(a, 1), 1))


def patterns(n: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(2)
    return {
        "ascending": np.arange(n), "descending": np.arange(n)[::-1], "equal": np.zeros(n),
        "two values": rng.integers(0, 2, n), "organ pipe": np.abs(np.arange(n) - n // 2), "saw": np.arange(n) % 7,
        "largest": np.full(n, 2**63 - 1), "random": rng.standard_normal(n),
    }  # fmt: skip


@pytest.mark.thin(6)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", list(patterns(1)))
def test_long_rows(name: str, dtype: str) -> None:
    """Rows much longer than the candidates that are kept, in every order that is bad for some pivot."""
    a = patterns(5000)[name].astype(dtype)
    rows = rows_in(np.concatenate([a, a[:1], a[::-1]]), [5000, 1, 5000])
    for descending in (False, True):
        for k in (1, 5, MORE + 1, 700, 5000):
            want = ascending(a, 0, descending)[:k]
            places, found = rows.first(k, descending)
            assert (places[0] == want).all()
            assert (found[0] == want).all()
            assert (places[2] == ascending(a[::-1], 0, descending)[:k]).all()
    order, moved = rows.order(False)
    assert (moved[:5000] == np.arange(5000)).all()
    assert (order[:5000] == ascending(a, 0)).all()
    ranks = np.array([4999, 0, 2500, 2500, 17, -1])
    places, found, _ = rows.at(ranks)
    assert (places[0, :5] == ascending(a, 0)[ranks[:5]]).all()
    assert places[0, 5] == found[0, 5] == -1
    each = np.array([[3, 1], [0, 0], [4000, 5000]])
    places, _, _ = rows.at(each)
    assert (places[0] == ascending(a, 0)[[3, 1]]).all()
    assert places[2].tolist() == [ascending(a[::-1], 0)[4000], -1]


@pytest.mark.thin(8)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("fill", [0.0, 1.0, -np.inf, np.nan])
@pytest.mark.parametrize("special", [0, 3, 4000])
def test_long_rows_of_awkward_values(dtype: str, fill: float, special: int) -> None:
    """Samples, and the ends of ranges, that are NaN, infinite or zeros of both signs; the fill value among them."""
    rng = np.random.default_rng(special)
    a = np.full((3, 9000), fill, dtype)
    for row, stored in zip(a, (1100, 5000, 9000), strict=True):
        values = rng.standard_normal(stored).astype(dtype)
        values[:special] = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], len(values[:special]))
        row[rng.permutation(9000)[:stored]] = rng.permutation(values)
    t = made(a, "csr", fill)
    ranks = [0, 1, 400, 4499, 4500, 8100, 8998, 8999]
    rows, order = rows_of(t, 1)[0], ascending(a, 1)
    places, found, nans = rows.at(ranks)
    same(places, order[:, ranks])
    same(rows.gathered(found), np.take_along_axis(a, order[:, ranks], 1))
    assert nans.tolist() == np.isnan(a).sum(1).tolist()
    for largest in (False, True):
        for k in (1, 10, 50):
            want = ascending(a, 1, largest)[:, :k]
            values, indices = ow.topk(t, k, largest=largest)
            same(indices, want)
            same(values, np.take_along_axis(a, want, 1))


@pytest.mark.thin(6)
@pytest.mark.parametrize("kind", ["first", "ranks", "order", "places"])
@pytest.mark.parametrize("scalar", ["f32", "i64"])
def test_kernels_do_what_the_interpreter_does(kind: str, scalar: str) -> None:
    rng = np.random.default_rng(3)
    counts = np.array([0, 3, 40, 1, 64])
    pos = np.append(0, np.cumsum(counts))
    crd = np.concatenate([np.sort(rng.permutation(70)[:n]) for n in counts])
    values = rng.integers(-4, 5, pos[-1]).astype({"f32": np.float32, "i64": np.int64}[scalar])
    rows = Rows(values, pos, crd, 5, 70, 1)
    dense = np.ones((5, 70), values.dtype)
    dense[np.repeat(np.arange(5), counts), crd] = values
    make = {"first": first_kernel, "ranks": rank_kernel, "order": order_kernel, "places": place_kernel}[kind]
    kernel = make(scalar, "i64", "i64", False, False, False)
    keys = values.view(np.int32) if scalar == "f32" else values
    fill = np.ones(1, values.dtype).view(keys.dtype)
    a, b = (np.zeros(30, np.int64) for _ in range(2))
    ranks, order, moved = np.array([0, 9, 33, 34, 68, 69]), *(np.zeros(pos[-1], np.int64) for _ in range(2))
    arguments: dict[str, list[Any]] = {
        "first": [a, b, 6, 70, -1, 2 * 6 + MORE + 2],
        "ranks": [ranks, a, b, np.zeros(5, np.int64), 6, 0, 70, 0, 65],
        "order": [ranks, rows.at(ranks)[1].ravel(), order, moved, 6, 70, 0, 65],
        "places": [rows.order(False)[0], all_places := np.zeros(5 * 70, np.int64), 70, 0],
    }
    names = [p.name for p in kernel.params]
    assert (
        run(
            kernel,
            dict(zip(names, [pos, crd, keys, values, fill, np.ones(1, values.dtype), *arguments[kind]], strict=True)),
            0,
            5,
        )
        == 0
    )
    if kind == "order":
        want, want_moved = rows.order(False, ranks)
        assert (order == want).all()
        assert (moved == want_moved).all()
    elif kind == "places":
        assert (all_places.reshape(5, 70) == rows.places(False)).all()
        assert (all_places.reshape(5, 70) == np.argsort(dense, axis=1, kind="stable")).all()
    else:
        places, found = rows.first(6, True) if kind == "first" else rows.at(ranks)[:2]
        assert (places.ravel() == a).all()
        assert (found.ravel() == b).all()


def test_compressed_rows_are_read_where_they_are() -> None:
    t = ow.random((50, 40), 0.3, format="csr", rng=0)
    rows, _ = rows_of(t, 1)
    assert rows.values is t._storage.values
    assert np.shares_memory(rows.crd, t._storage.crd[1])
    columns, _ = rows_of(t.T, 0)
    assert columns.values is t._storage.values


@pytest.mark.parametrize("spec", ["csr", "coo", "dense"])
def test_candidates_are_bounded_by_k(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread's workspace has room for 2 k and a few elements, however long the rows are."""
    rooms = []
    launch = Rows._run
    monkeypatch.setattr(Rows, "_run", lambda self, kind, words: (rooms.append(words[-1]), launch(self, kind, words))[1])
    t = made(np.arange(30000.0).reshape(3, 10000), spec, 0.0)
    values, _ = ow.topk(t, 2)
    assert rooms == [4 + MORE + 2]
    same(values, np.array([[9999.0, 9998], [19999, 19998], [29999, 29998]]))


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dense"])
def test_order_statistics_along_rows(spec: str) -> None:
    rng = np.random.default_rng(4)
    a = np.round(rng.standard_normal((8, 61)), 1) * (rng.random((8, 61)) < 0.6)
    with_nan = a.copy()
    with_nan[2, 5] = with_nan[6, ::3] = np.nan
    for x in (a, with_nan):
        t = made(x, spec, 0.0)
        for axis in (0, 1, None):
            same(ow.median(t, axis=axis), np.median(x, axis=axis))
            same(ow.nanmedian(t, axis=axis), np.nanmedian(x, axis=axis))
            for q in (0.3, [0.9, 0.0, 0.45, 1.0]):
                same(ow.quantile(t, q, axis=axis), np.quantile(x, q, axis=axis))
                same(ow.nanquantile(t, q, axis=axis), np.nanquantile(x, q, axis=axis))
                same(ow.percentile(t, np.multiply(q, 100), axis=axis), np.percentile(x, np.multiply(q, 100), axis=axis))


@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dense"])
def test_masked_selection(spec: str) -> None:
    rng = np.random.default_rng(5)
    a, bits = np.round(rng.standard_normal((6, 40)), 1), rng.random((6, 40)) < 0.4
    bits[3] = False
    m = ow.masked_tensor(ow.asarray(a), ow.asarray(bits)).asformat(spec)
    want = np.ma.masked_array(a, ~bits)
    same(m.median(axis=1).filled(7.0), np.ma.median(want, axis=1).filled(7.0))
    filled = np.where(bits, a, -np.inf)
    for k in (1, 4, 40):
        values, indices = ow.topk(m, k, axis=1)
        order = ascending(filled, 1, True)[:, :k]
        there = np.take_along_axis(bits, order, 1)
        same(values.filled(-1.0), np.where(there, np.take_along_axis(a, order, 1), -1.0))
        same(indices.filled(-1), np.where(there, order, -1))


@pytest.mark.thin(2)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
def test_torch_values_places_and_gradients(layout: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    dense = torch.randn(5, 30, dtype=torch.float64) * (torch.rand(5, 30) < 0.5)
    t = ow.asarray(dense).asformat(layout).requires_grad_()
    leaf = dense.clone().requires_grad_()
    for name, arguments in (
        ("topk", (4, 1)), ("topk", (3, 0, False)), ("kthvalue", (20, 1)), ("median", (1,)), ("nanmedian", (0,)),
        ("quantile", (torch.tensor([0.2, 0.9], dtype=torch.float64), 1)), ("nanquantile", (0.35, 0)),
    ):  # fmt: skip
        got, want = getattr(torch, name)(t, *arguments), getattr(torch, name)(leaf, *arguments)
        values, wanted = (x if isinstance(x, torch.Tensor) else x[0] for x in (got, want))
        values = values.to_dense() if isinstance(values, ow.Tensor) else values
        torch.testing.assert_close(values, wanted)
        weights = torch.rand_like(wanted)
        (grad,) = torch.autograd.grad((values * weights).sum(), t.values)
        (wanted_grad,) = torch.autograd.grad((wanted * weights).sum(), leaf)
        full = t.detach().with_values(grad).to_dense() if layout != "dense" else grad.reshape(5, 30)
        torch.testing.assert_close(full * (dense != 0), wanted_grad * (dense != 0))  # which zero is taken is free


@pytest.mark.thin(6)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
@pytest.mark.parametrize("kind", ["normal", "ties", "ascending", "positive"])
def test_ranks_of_long_rows(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(len(kind))
    n = 3000
    drawn = {
        "normal": rng.standard_normal((3, n)) * 100, "ties": rng.integers(0, 5, (3, n)),
        "ascending": np.sort(rng.standard_normal((3, n)) * 50), "positive": rng.random((3, n)) + 1,
    }[kind]  # fmt: skip
    x = np.where(rng.random((3, n)) < 0.9, drawn, 0).astype(dtype)
    if dtype[0] == "f":
        x[0, ::97], x[1, ::50], x[2, ::33] = np.nan, np.inf, -0.0
    order = np.argsort(x, axis=1, kind="stable")
    for format in ("csr", "dense"):
        rows, _ = rows_of(ow.asarray(x, format=format), 1)
        for ranks in ([5, 2990, 1500, 1501, 700], [2999], [0, 2999], [1499, 1500]):
            np.testing.assert_array_equal(rows.at(ranks)[0], order[:, ranks])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "float16", "float64"])
@pytest.mark.parametrize("k", [127, 128, 256, 300, 1000])
def test_as_many_as_no_element_could_count(dtype: str, k: int) -> None:
    """Numbers of elements are no elements: of narrow types they would be cut short."""
    x = np.zeros((3, 1000), dtype)
    x[0, 3], x[1, 5:400] = 1, 1
    for format in ("csr", "coo", "dense"):
        for largest in (True, False):
            values, places = ow.topk(ow.asarray(x, format=format), k, axis=1, largest=largest)
            at = np.asarray(places.to_numpy() if isinstance(places, ow.Tensor) else places)
            got = np.asarray(values.to_numpy() if isinstance(values, ow.Tensor) else values)
            ordered = np.sort(x, axis=1)
            np.testing.assert_array_equal(got, (ordered[:, ::-1] if largest else ordered)[:, :k])
            np.testing.assert_array_equal(np.take_along_axis(x, at, 1), got)
            assert all(len(set(row)) == k for row in at)
