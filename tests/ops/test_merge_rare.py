"""Rare conditions of elementwise operations: stretched levels, batches, wide coordinates, many operands, no elements."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.storage.exact import check_indices
from openwork.storage.invariants import check_layout


def valid(t: Any) -> Any:
    check_layout(t._storage)
    check_indices(t._storage)
    return t


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = ow.get_num_threads()
    ow.set_num_threads(n)
    try:
        yield
    finally:
        ow.set_num_threads(before)


def sparse(shape: tuple[int, ...], seed: int, density: float = 0.5) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(float)


@pytest.mark.thin(3)
@pytest.mark.parametrize("op", [np.add, np.multiply, np.less])
@pytest.mark.parametrize("spec", ["coo", "csf", "bitmap"])
@pytest.mark.parametrize("shapes", [((3, 1, 4), (3, 2, 4)), ((2, 1, 3, 1), (2, 2, 3, 2)), ((1, 3, 1), (2, 3, 2))])
def test_dimensions_of_extent_one_are_stretched(spec: str, shapes: Any, op: Any) -> None:
    x, y = (sparse(shape, k, 0.7) for k, shape in enumerate(shapes))
    a, b = ow.asarray(x, format=spec), ow.asarray(y, format="csf")
    for left, right, want in ((a, b, op(x, y)), (b, a, op(y, x))):
        np.testing.assert_array_equal(valid(op(left, right)).to_numpy(), want)


BATCHED = (
    "(a, b, c) -> (a : batch, b : dense, c : compressed)",
    "(a, b, c) -> (a : batch, b : compressed, c : compressed)",
    "(a, b, c) -> (a : batch, c - b : compressed, c : range)",
    "(a, b, c) -> (a : batch, b : batch, c : compressed)",
)
X = np.array([[[1.0, 0, 2], [0, 3, 0]], [[0, 4, 6], [0, 0, 5]]])
"""As many elements and diagonals in both slices; not in every row."""
Y = np.array([[[1.0, 2], [3, 0]], [[0, 1], [5, 4]]])


def batch(x: np.ndarray[Any, Any], text: str) -> ow.Tensor:
    try:
        return ow.asarray(x).asformat(text)
    except ow.ShapeError:
        x = np.where(np.arange(x.shape[-1]) < 2, 7.0, 0) + 0 * x
        return ow.asarray(x).asformat(text)


@pytest.mark.thin(2)
@pytest.mark.parametrize("text", BATCHED)
def test_results_of_batches_are_valid(text: str) -> None:
    a = batch(X, text)
    x = a.to_numpy()
    others: list[Any] = [
        ow.asarray(np.array([[[1.0], [0]], [[0], [5]]]), format="coo"),
        ow.asarray(np.array([[[0.0, 0, 0], [0, 0, 0]], [[0, 1, 0], [6, 0, 0]]]), format="csf"),
        ow.asarray(np.array([[0.0, 1, 0], [0, 0, 2]]), format="csr"),
        ow.asarray(np.array([0.0, 1, 0]), format="coo"),
        a, a * 2.0,
    ]  # fmt: skip
    for other, op in itertools.product(others, (np.add, np.multiply, np.maximum)):
        np.testing.assert_array_equal(valid(op(a, other)).to_numpy(), op(x, other.to_numpy()))
        np.testing.assert_array_equal(valid(op(other, a)).to_numpy(), op(other.to_numpy(), x))


@pytest.mark.parametrize("text", BATCHED)
def test_other_operations_on_batches_are_valid(text: str) -> None:
    a = batch(X, text)
    x, c = a.to_numpy(), ow.asarray(sparse((2, 2, 3), 3), format="coo")
    y = c.to_numpy()
    made: list[tuple[Any, Any]] = [
        (ow.concat([a, c], axis=0), np.concatenate([x, y])),
        (ow.concat([a, a], axis=2), np.concatenate([x, x], 2)),
        (ow.concat([c, a], axis=1), np.concatenate([y, x], 1)),
        (ow.where(c > 2, a, c), np.where(y > 2, x, y)),
        (ow.where(a > 2, a, c), np.where(x > 2, x, y)),
        (ow.einsum("abc,abc->abc", a, c), x * y),
        (ow.einsum("abc,dbc->ad", a, c), np.einsum("abc,dbc->ad", x, y)),
        (ow.flip(a, axis=0), x[::-1]),
        (a[:, :, 1:], x[:, :, 1:]),
        (a[1:], x[1:]),
        (ow.broadcast_to(a, (2, 2, 2, 3)), np.broadcast_to(x, (2, 2, 2, 3))),
        (ow.roll(a, 1, axis=2), np.roll(x, 1, 2)),
        (ow.tril(a), np.tril(x)),
        *((ow.sum(a, axis=d), x.sum(d)) for d in range(3)),
        *((ow.max(a, axis=d), x.max(d)) for d in range(3)),
    ]
    for got, want in made:
        if isinstance(got, ow.Tensor):
            valid(got)
            got = got.to_numpy()
        np.testing.assert_array_equal(got, want)


def test_a_sum_in_a_batch_format() -> None:
    text = BATCHED[0]
    a, b = ow.asarray(X, format="coo"), ow.asarray(2 * X, format="coo")
    got = valid(ow.pointwise("A[i, j, k] + B[i, j, k]", {"A": a, "B": b}, format=text))
    assert got.format == ow.format(text)
    np.testing.assert_array_equal(got.to_numpy(), 3 * X)
    uneven = ow.asarray(np.where(np.arange(12).reshape(2, 2, 3) == 1, 1.0, 0), format="coo")
    with pytest.raises(ow.ShapeError, match="as many in every batch"):
        ow.pointwise("A[i, j, k] + B[i, j, k]", {"A": a, "B": uneven}, format=text)


@pytest.mark.parametrize("count", [2, 7, 9])
def test_products_of_many_operands_that_meet_infinity(count: int) -> None:
    rng = np.random.default_rng(count)
    arrays = [np.where(rng.random(20) < 0.6, rng.integers(1, 4, 20), 0).astype(float) for _ in range(count)]
    arrays[-1][[3, 7]] = np.inf, np.nan
    names = [f"T{k}" for k in range(count)]
    text = " * ".join(f"{name}[i]" for name in names)
    with np.errstate(all="ignore"):
        want = np.prod(arrays, axis=0)
        got = ow.pointwise(text, {n: ow.asarray(x, format="coo") for n, x in zip(names, arrays, strict=True)})
    np.testing.assert_array_equal(got.to_numpy(), want)


@pytest.mark.parametrize("op", ["+", "*", "-"])
def test_rows_with_columns_beyond_31_bits(op: str) -> None:
    """Long rows, which are merged in vectors."""
    n, shape = 100, (3, 2**40)
    rng = np.random.default_rng(5)
    rows: list[list[np.ndarray[Any, Any]]] = []
    places = np.unique(np.concatenate([2**31 - 60 + np.arange(120), rng.integers(2**31, 2**40, 200)]))
    parts = []
    for _ in range(2):
        crd = [np.sort(rng.choice(places, n, replace=False)) for _ in range(shape[0])]
        rows.append(crd)
        pos = np.arange(0, n * shape[0] + 1, n)
        parts.append(
            ow.assemble("csr", shape, pos={1: pos}, crd={1: np.concatenate(crd)}, values=np.arange(1.0, 3 * n + 1))
        )
    got = valid({"+": np.add, "*": np.multiply, "-": np.subtract}[op](*parts))
    for i in range(shape[0]):
        left, right = (dict(zip(rows[k][i].tolist(), range(n * i + 1, n * i + n + 1), strict=True)) for k in range(2))
        keys = set(left) & set(right) if op == "*" else set(left) | set(right)
        want = {c: float(eval(f"x {op} y", {"x": left.get(c, 0), "y": right.get(c, 0)})) for c in keys}
        first, last = got.pos(1)[i : i + 2]
        assert dict(zip(got.crd(1)[first:last].tolist(), got.values[first:last].tolist(), strict=True)) == want


@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dcsr", "bitmap", "dense"])
@pytest.mark.parametrize("shape", [(5, 0), (0, 5), (0, 0)])
def test_sums_without_elements(shape: tuple[int, int], spec: str) -> None:
    a = ow.asarray(np.zeros(shape), format=spec)
    got = a + ow.asarray(np.zeros(shape), format="csr")
    check_layout(got._storage)
    assert got.shape == shape
    assert not got.nse
    if spec == "csr":
        assert np.asarray(got.pos(1)).tolist() == [0] * (shape[0] + 1)


@pytest.mark.parametrize("count", [1, 4])
def test_lazy_sums_over_torch_stay_torch(count: int) -> None:
    torch = pytest.importorskip("torch")
    x, y = sparse((600, 400), 1), sparse((600, 400), 2)
    a, b = (ow.asarray(torch.from_numpy(v), format="csr") for v in (x, y))
    with threads(count):
        for axis in (None, 0):
            got = ow.compute(ow.sum(ow.lazy(a) * ow.lazy(b), axis=axis))
            values = got.values if isinstance(got, ow.Tensor) else got
            assert isinstance(values, torch.Tensor)
            np.testing.assert_allclose(
                np.asarray(got.to_dense() if isinstance(got, ow.Tensor) else got), (x * y).sum(axis)
            )


def test_a_wide_tensor_to_a_level_that_repeats_coordinates() -> None:
    shape = (4, 2**40, 2**40)
    rng = random.Random(3)
    crd = [[rng.randrange(n) for _ in range(30)] for n in shape]
    values = np.arange(1.0, 31)
    a = ow.sparse_coo_tensor(np.array(crd), values, shape)
    to = ow.format("(i, j, k) -> (i : dense, j : compressed(nonunique), k : singleton)")
    back = ow.format("(i, j, k) -> (k : compressed, i : compressed, j : compressed)")
    got = valid(valid(a.asformat(to)).asformat(back)).asformat("coo")
    order = np.lexsort(crd[::-1])
    for d in range(3):
        np.testing.assert_array_equal(got.crd(d), np.array(crd[d])[order])
    np.testing.assert_array_equal(got.values, values[order])


def test_operands_whose_presence_takes_elements_away() -> None:
    """Where A is, `isnan` of it is false by the zero that annihilates; elsewhere its fill value decides."""
    x = {n: sparse((3, 20), k) for k, n in enumerate("ABCDE")}
    alone = np.where(x["A"] == 0, x["D"], 0)
    x["A"] = np.where(x["A"] == 0, np.nan, x["A"])
    for spec in ("csr", "coo"):
        tensors = {n: ow.asarray(v, format=spec, fill_value=np.nan if n == "A" else 0) for n, v in x.items()}
        for text, want in (
            ("where(isnan(A * 0.0), D, 0.0)", alone),
            ("where(isnan(A * 0.0), D, 0.0) + B", alone + x["B"]),
            ("where(isnan(A * 0.0), D, 0.0) + B + C - E", alone + x["B"] + x["C"] - x["E"]),
        ):
            used = {n: t for n, t in tensors.items() if n in text}
            found = valid(ow.pointwise(text, used, zero_annihilates=True))
            np.testing.assert_array_equal(found.to_numpy(), want)
