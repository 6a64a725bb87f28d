"""Indexing: every kind of key on every format against NumPy on the dense array."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.ops.indexing import index
from openwork.ops.manipulation.shaping import expand_dims
from openwork.runtime import leading_slice

SHAPE = {0: (), 1: (12,), 2: (8, 12), 3: (4, 6, 5), 4: (3, 4, 2, 5)}
FULL = ("csr", "coo")
"""The formats that the long tables are tried on; all others get the short ones."""
ALL = slice(None)
MASK = dense_array(SHAPE[2], 5) > 1

SHORT: dict[int, list[Any]] = {
    0: [(), ..., None],
    1: [3, slice(9, 1, -2), [3, 1, 1], dense_array((12,), 5) > 1],
    2: [
        (ALL, 2), (slice(1, 6), slice(9, 2, -2)), [3, 1, 1], ([[0], [2]], [1, 3, 3]), MASK,
    ],
    3: [2, (..., -2), (slice(1, 3), ALL, [0, 3]), ([0, 2], [1, 1]), np.ix_([3, 0], [1, 5, 1], [4, -1])],
    4: [(1, ..., 2), ([2, 0], ALL, [1, 0]), (*np.ix_([2, 0], [3, 1]), ALL, slice(4, 0, -2))],
}  # fmt: skip
LONG: list[Any] = [
    0, slice(1, 5), slice(5, 1), slice(-3, None), slice(None, None, 2), slice(None, None, -1), (ALL, slice(1, 6)),
    (slice(6, 1, -2), slice(1, 9, 3)), None, (None, ALL, None), ..., (..., 1), (1, ...), (ALL, None, [2, 1]),
    (0, [1, 2]), ([1, 2], slice(1, 4)), ([1, 2], None, [0, 3]), (MASK[:, 0], ALL), (ALL, MASK[0]), (MASK[:, 0], 3),
    ([-1, -8], [-12, 11]), (np.array(2), ALL), (np.uint8(3), np.array([[1, 2], [3, 4]])), [], (ALL, []), True, False,
    (np.zeros((8, 12), bool),), (np.ones(8, bool), [1]), ([0, 1], True), (ALL, np.arange(12)), (np.arange(8)[::-1],),
    (np.arange(8)[:, None], np.array([3, 0, 3])), ([3], [[5]]), (slice(2, 2), [1, 1]), (np.zeros(0, bool),),
    (ALL, np.zeros(0, bool)), (np.zeros((0, 12), bool),), (np.zeros((8, 0), bool),), (np.zeros(0, bool), [2]),
]  # fmt: skip
WRONG: list[Any] = [
    8, -9, (0, 12), (0, 0, 0), (..., ...), "x", 1.5, ([8],), (ALL, [0, -13]), ([0, 1], [0, 1, 2]), (MASK[:7],),
    (MASK.T,), ([1.5],), (None, 8), (MASK, 0), (np.zeros(3, bool), 1),
    (np.zeros((0, 5), bool),),
]  # fmt: skip
SPECS = [(ndim, spec) for ndim, specs in FORMATS.items() for spec in specs]


def canonical(t: Any) -> bool:
    return isinstance(t, ow.Tensor) and t.format.is_unique and t.format.is_ordered


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize(("ndim", "spec"), SPECS)
def test_keys_on_every_format(ndim: int, spec: str) -> None:
    array = dense_array(SHAPE[ndim], 3)
    t = tensor(array, spec)
    for key in SHORT[ndim]:
        got = t[key]
        same(got, array[key])
        assert canonical(got), (spec, key)
        assert got.format.is_dense or got.nse <= max(got.size, 0)


@pytest.mark.parametrize("spec", FULL)
def test_every_key(spec: str) -> None:
    array = dense_array((8, 12), 3)
    t = tensor(array, spec)
    for key in LONG:
        got = t[key]
        same(got, array[key])
        assert canonical(got), key


@pytest.mark.parametrize("key", WRONG, ids=repr)
@pytest.mark.parametrize("spec", ["csr", "dense"])
def test_errors_are_numpys(spec: str, key: Any) -> None:
    array = dense_array((8, 12), 3)
    with pytest.raises(IndexError) as theirs:
        array[key]
    with pytest.raises(IndexError) as ours:
        tensor(array, spec)[key]
    assert str(ours.value).strip() == str(theirs.value).strip()


def test_step_zero_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        tensor(dense_array((8, 12)), "csr")[::0]


@pytest.mark.thin(3)
@pytest.mark.parametrize("fill", [2.0, float("nan"), -0.0])
@pytest.mark.parametrize("spec", ["csr", "coo", "bitmap", "bsr(2, 3)"])
def test_fill_values_stay(spec: str, fill: float) -> None:
    array = np.where(dense_array((8, 12), 3) > 0, dense_array((8, 12), 3), fill)
    t = ow.asarray(array, format=spec, fill_value=fill)
    for key in (1, (2, 3), (7, 11), (ALL, 2), [3, 1, 1], slice(None, None, -2), MASK):
        got = t[key]
        same(got, array[key])
        np.testing.assert_equal(got.fill_value, fill)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128"])
def test_dtypes(dtype: str) -> None:
    array = dense_array((8, 12), 3, dtype)
    t = tensor(array, "csr")
    for key in (1, (2, 3), [3, 1, 1], (ALL, [2, 5, 5])):
        same(t[key], array[key])


@pytest.mark.parametrize("spec", ["csr", "csc"])
def test_blocks_of_rows_and_columns_are_taken_one_after_the_other(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = dense_array(SHAPE[2], 3)
    t, rows, columns = tensor(array, spec), [5, 0, -1], [7, 7, 2, 11]
    monkeypatch.setattr(index, "_remap_selection", None)  # every element would have to be looked at there
    for key in (np.ix_(rows, columns), np.ix_(MASK[:, 0], columns)):
        got = t[key]
        same(got, array[key])
        assert canonical(got)
    recorded = ow.asarray(torch.tensor(array, dtype=torch.float64), format=spec).requires_grad_()
    block = recorded[np.ix_(rows, columns)]
    (block.values**2).sum().backward()
    times = np.zeros_like(array)
    np.add.at(times, np.ix_(rows, columns), 1)
    gradient = recorded.grad
    assert gradient is not None
    same(gradient.to_numpy(), 2 * times * array)


def test_masks_that_are_tensors() -> None:
    array = dense_array((8, 12), 3)
    t = tensor(array, "csr")
    for spec in ("dense", "csc", "coo"):
        same(t[tensor(MASK, spec)], array[MASK])
    same(t[ow.asarray(np.array([2, 0]))], array[[2, 0]])
    filled = ow.asarray(~MASK, format="coo", fill_value=True)
    same(t[filled], array[~MASK])


def test_torch_arrays_as_keys() -> None:
    torch = pytest.importorskip("torch")
    array = dense_array((8, 12), 3)
    t = ow.asarray(torch.from_numpy(array)).asformat("csr")
    got = t[torch.tensor([3, 1])]
    assert isinstance(got.values, torch.Tensor)
    same(got.to_numpy(), array[[3, 1]])


def test_empty_and_zero_extents() -> None:
    for shape in ((0, 4), (4, 0), (5, 5)):
        array = np.zeros(shape)
        for spec in ("csr", "coo", "dcsr"):
            t = tensor(array, spec)
            for key in (
                (slice(None, None, -1),),
                (ALL, slice(0, 2)),
                (np.zeros(0, int),),
                (ALL, np.zeros(0, int)),
                None,
            ):
                same(t[key], array[key])


def test_rows_of_csr_share_their_elements() -> None:
    t = tensor(dense_array((8, 12), 3), "csr")
    part = t[2:6]
    assert np.shares_memory(part.values, t.values)
    assert np.shares_memory(part.crd(1), t.crd(1))
    assert np.shares_memory(t[3].values, t.values)
    assert np.shares_memory(t[None].values, t.values)
    assert str(part.format) == str(t.format)
    columns = tensor(dense_array((8, 12), 3), "csc")[:, 2:6]
    assert columns.format == ow.format("csc")


def test_result_formats() -> None:
    array = dense_array((8, 12), 3)
    for spec in ("csr", "csc", "coo", "bsr(2, 3)", "dia", "bitmap", "dcsr"):
        assert tensor(array, spec)[:, [1, 2]].format == ow.format(spec, 2)
    full = ow.asarray(np.eye(4), format="ell(1)")
    assert full[:, [0, 0]].format == ow.format("csr")
    assert ow.asarray(np.eye(4), format="csr")[:, 1].ndim == 1
    cube = ow.asarray(dense_array((4, 6, 5)), format="coo")
    assert cube[0].format == ow.format("coo", 2)
    assert ow.asarray(dense_array((4, 6, 5)), format="csf")[:, 1].format == ow.format("csf", 2)


def test_batches_of_different_sizes_become_dense_levels() -> None:
    batched = ow.format("csr", 3, batch=1)
    array = np.zeros((2, 3, 4))
    array[0, 0, :2] = 1
    array[1, 0, 2:] = 2
    t = ow.asarray(array).asformat(batched)
    same(t[:, :, 1:3], array[:, :, 1:3])
    same(t[:, :, :3], array[:, :, :3])
    same(t[1], array[1])


def test_duplicates_are_summed() -> None:
    t = ow.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, 3.0], (3, 2))
    want = np.array([[0, 3], [0, 0], [3, 0]], float)
    for key in ((ALL,), 0, (ALL, 1), [0, 0], (0, 1)):
        same(t[key], want[key])
        assert canonical(t[key])


def test_extents_too_large_to_multiply() -> None:
    n = 2**40
    t = ow.assemble("coo", (n, n), crd={0: np.array([5, n - 1]), 1: np.array([n - 2, 7])}, values=[1.0, 2.0])
    same(t[[n - 1, 5, 5], [7, 0, n - 2]], np.array([2.0, 0.0, 1.0]))
    same(t[[[n - 1], [5]], [7, n - 2]], np.array([[2.0, 0.0], [0.0, 1.0]]))
    same(t[n - 1, [6, 7]], np.array([0.0, 2.0]))
    assert t[:, : n - 5].nse == 1


def keys(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Keys of every kind, some of them wrong."""

    def one(n: int) -> st.SearchStrategy[Any]:
        bound = st.one_of(st.none(), st.integers(-n - 1, n + 1))
        return st.one_of(
            st.integers(-n, max(n - 1, 0)),
            st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1, -3])),
            st.lists(st.integers(-n, max(n - 1, 0)), max_size=4),
            st.lists(st.integers(-n, max(n - 1, 0)), min_size=2, max_size=2).map(lambda x: np.array(x).reshape(2, 1)),
            st.lists(st.booleans(), min_size=n, max_size=n).map(lambda x: np.array(x, bool)),
        )

    extra = st.sampled_from([None, ..., True])
    picks = st.integers(0, len(shape)).flatmap(lambda k: st.tuples(*(one(n) for n in shape[:k])))
    return st.tuples(picks, st.lists(st.tuples(st.integers(0, 4), extra), max_size=2)).map(
        lambda x: tuple(_insert(list(x[0]), x[1]))
    )


def _insert(items: list[Any], extras: list[tuple[int, Any]]) -> list[Any]:
    for at, item in extras:
        items.insert(at, item)
    return items


def agree(spec: str, array: np.ndarray[Any, Any], key: Any) -> None:
    t = tensor(array, spec)
    try:
        want = array[key]
    except IndexError:
        with pytest.raises(IndexError):
            t[key]
        return
    same(t[key], want)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_keys(data: st.DataObject) -> None:
    ndim = data.draw(st.sampled_from([1, 2, 3]))
    spec = data.draw(st.sampled_from({1: ["coo"], 2: ["csr", "coo"], 3: ["csf"]}[ndim]))
    agree(spec, dense_array(SHAPE[ndim], 3), data.draw(keys(SHAPE[ndim])))


@pytest.mark.nightly
@pytest.mark.timeout(14400)
@settings(max_examples=3000, deadline=None)
@given(st.data())
def test_random_keys_on_every_format(data: st.DataObject) -> None:
    ndim, spec = data.draw(st.sampled_from(SPECS))
    agree(spec, dense_array(SHAPE[ndim], 3), data.draw(keys(SHAPE[ndim])))


def test_expand_dims_is_a_format() -> None:
    t = tensor(dense_array((8, 12), 3), "csr")
    assert str(expand_dims(t, axis=1).format).endswith("(d1 : dense, d0 : dense, d2 : compressed)")


@pytest.mark.parametrize("widths", [(np.int64, np.int32), (np.int32, np.int64), (np.int64, np.int64)])
def test_rows_of_indices_of_two_widths(widths: tuple[type, type]) -> None:
    pos, crd = np.array([0, 2, 2, 3], widths[0]), np.array([0, 3, 1], widths[1])
    A = ow.assemble("csr", (3, 4), pos={1: pos}, crd={1: crd}, values=np.array([1.0, 2, 3]))
    for rows in ([2, 0], [1], [0, 0, 2, 1]):
        got = A[rows]
        np.testing.assert_array_equal(got.to_numpy(), A.to_numpy()[rows])
        assert (got.pos(1).dtype, got.crd(1).dtype) == widths


def test_keys_that_are_sequences_of_other_kinds() -> None:
    for key in (array("q", [2, 0]), range(3)):
        same(tensor(dense_array((8, 12)), "csr")[key], dense_array((8, 12))[np.asarray(key)])


@pytest.mark.parametrize("spec", ["csf", "(i, j, k) -> (i : compressed, j : compressed, k : dense)"])
def test_slices_without_elements(spec: str) -> None:
    dense = np.zeros((3, 4, 5))
    dense[0, 1, 2] = 1
    a = ow.asarray(dense, format=spec)
    for key in (1, slice(1, 2), (slice(1, 3), 1)):
        np.testing.assert_array_equal(a[key].to_numpy(), dense[key])
    np.testing.assert_array_equal(a[1:2][0].to_numpy(), dense[1])


def test_many_rows_of_small_dense_blocks() -> None:
    dense = np.arange(72.0).reshape(6, 4, 3) * (np.arange(24).reshape(6, 4, 1) % 3 == 0)
    a = ow.asarray(dense, format="(i, j, k) -> (i : dense, j : compressed, k : dense)")
    rows = np.arange(600) * 5 % 6
    np.testing.assert_array_equal(ow.take(a, rows, axis=0).to_numpy(), dense[rows])


def test_rows_that_all_threads_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading_slice, "PARALLEL_NSE", 1)
    dense = np.arange(60.0).reshape(6, 10) * (np.arange(60).reshape(6, 10) % 3 == 0)
    dense[4] = 0
    a = ow.asarray(dense, format="csr")
    before = ow.get_num_threads()
    ow.set_num_threads(3)
    try:
        for rows in (np.arange(600) * 5 % 6, np.full(600, 4), np.arange(600) // 599 * 5):
            np.testing.assert_array_equal(ow.take(a, rows, axis=0).to_numpy(), dense[rows])
    finally:
        ow.set_num_threads(before)


@pytest.mark.thin(5)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "bsr(2, 2)", "bitmap"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64])
def test_pairs_of_coordinates(format: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((30, 20)) * (rng.random((30, 20)) < 0.3)
    t = ow.asarray(dense, format=format)
    rows, cols = rng.integers(0, 30, 50).astype(dtype), rng.integers(0, 20, 50).astype(dtype)
    found = t[rows, cols]
    found.check()
    same(found, dense[rows, cols])
    if dtype in (np.int64, np.int32):
        same(t[rows - 30, -1 - cols], dense[rows - 30, -1 - cols])
    for wrong in [(rows + 30, cols), (rows, cols + 20)]:
        with pytest.raises(IndexError, match="out of bounds"):
            t[wrong]
    with pytest.raises(IndexError, match="broadcast"):
        t[rows[:3], cols[:2]]


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "bool", "int8"])
def test_rows_over_torch(dtype: str) -> None:
    dense = (torch.rand(30, 40) * 9 * (torch.rand(30, 40) < 0.2)).to(getattr(torch, dtype))
    t = ow.asarray(dense, format="csr")
    for key in (torch.tensor([3, 1, 1, -2]), torch.tensor([3], dtype=torch.int32), torch.rand(30) < 0.5, [4, 5]):
        found = t[key]
        found.check()
        assert found.values.dtype == dense.dtype
        assert torch.equal(found.to_dense(), dense[key])
    with pytest.raises(IndexError, match="out of bounds"):
        t[torch.tensor([30])]
