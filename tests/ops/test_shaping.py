"""Shapes, triangles, what is taken and masked: every format against NumPy on the dense array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.errors import ShapeError, UnsupportedError
from openwork.ops.creation import eye
from openwork.ops.indexing.taking import prune, sparse_mask, take, take_along_axis
from openwork.ops.manipulation.repetition import broadcast_arrays, broadcast_to, repeat, tile
from openwork.ops.manipulation.shaping import (
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
)
from openwork.ops.manipulation.triangles import diag, diagonal, tril, triu
from openwork.storage.exact import check_indices

Array = np.ndarray[Any, Any]
Case = tuple[Callable[[Any], Any], Callable[[Array], Any]]
OTHER = dense_array((8, 12), 7)
PLACES = np.array([[1, 0, -3]])

SHORT: dict[str, Case] = {
    "reshape": (lambda t: reshape(t, (3, -1)), lambda a: a.reshape(3, 32)),
    "roll": (lambda t: roll(t, (3, -2), axis=(0, 1)), lambda a: np.roll(a, (3, -2), (0, 1))),
    "tril": (lambda t: tril(t, k=1), lambda a: np.tril(a, 1)),
    "diagonal": (lambda t: diagonal(t, offset=2), lambda a: np.diagonal(a, 2)),
    "sparse_mask": (lambda t: sparse_mask(t, tensor(OTHER, "csc")), lambda a: np.where(OTHER != 0, a, 0)),
    "permute_dims": (lambda t: permute_dims(t, (1, 0)), np.transpose),
    "expand_dims": (lambda t: expand_dims(t, axis=(0, 2)), lambda a: np.expand_dims(a, (0, 2))),
}
LONG: dict[str, Case] = SHORT | {
    "reshape to three": (lambda t: reshape(t, (4, 2, 12)), lambda a: a.reshape(4, 2, 12)),
    "ravel": (lambda t: reshape(t, -1), np.ravel),
    "ones": (lambda t: reshape(t, (8, 1, 12, 1)), lambda a: a.reshape(8, 1, 12, 1)),
    "flip": (flip, np.flip),
    "flip 0": (lambda t: flip(t, axis=0), lambda a: np.flip(a, 0)),
    "roll flat": (lambda t: roll(t, 5), lambda a: np.roll(a, 5)),
    "squeeze": (lambda t: squeeze(expand_dims(t, axis=(0, 2))), lambda a: a),
    "squeeze of one": (lambda t: squeeze(t[:, 3:4], axis=1), lambda a: a[:, 3]),
    "moveaxis": (lambda t: moveaxis(t, 0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "matrix_transpose": (matrix_transpose, np.transpose),
    "broadcast_to": (lambda t: broadcast_to(t, (3, 8, 12)), lambda a: np.broadcast_to(a, (3, 8, 12))),
    "broadcast row": (lambda t: broadcast_to(t[3], (5, 12)), lambda a: np.broadcast_to(a[3], (5, 12))),
    "broadcast column": (lambda t: broadcast_to(t[:, 3:4], (8, 5)), lambda a: np.broadcast_to(a[:, 3:4], (8, 5))),
    "repeat": (lambda t: repeat(t, 2, axis=1), lambda a: np.repeat(a, 2, axis=1)),
    "repeat each": (lambda t: repeat(t, np.arange(8) % 3, axis=0), lambda a: np.repeat(a, np.arange(8) % 3, axis=0)),
    "repeat flat": (lambda t: repeat(t, 2), lambda a: np.repeat(a, 2)),
    "tile": (lambda t: tile(t, (2, 3)), lambda a: np.tile(a, (2, 3))),
    "tile more": (lambda t: tile(t, (2, 1, 2)), lambda a: np.tile(a, (2, 1, 2))),
    "tile none": (lambda t: tile(t, (0, 1)), lambda a: np.tile(a, (0, 1))),
    "triu": (lambda t: triu(t, k=-1), lambda a: np.triu(a, -1)),
    "diagonal below": (lambda t: diagonal(t, offset=-3), lambda a: np.diagonal(a, -3)),
    "diag": (lambda t: diag(t[2], k=-1), lambda a: np.diag(a[2], -1)),
    "diag of matrix": (diag, np.diag),
    "take": (lambda t: take(t, [3, -1, 3], axis=1), lambda a: np.take(a, [3, -1, 3], axis=1)),
    "take_along_axis": (lambda t: take_along_axis(t, PLACES, axis=1), lambda a: np.take_along_axis(a, PLACES, 1)),
    "prune": (lambda t: prune(t, 2), lambda a: np.where(a > 2, a, 0)),
}  # fmt: skip


@pytest.mark.thin(7)
@pytest.mark.parametrize("spec", FORMATS[2])
def test_every_format(spec: str) -> None:
    array = dense_array((8, 12), 3)
    t = tensor(array, spec)
    for operation, oracle in SHORT.values():
        same(operation(t), oracle(array))


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("spec", ["csr", "coo", "dense", "csc"])
def test_every_operation(name: str, spec: str) -> None:
    if name == "prune" and spec == "dense":
        pytest.skip("a dense tensor has nothing to leave out")
    operation, oracle = LONG[name]
    array = dense_array((8, 12), 3)
    same(operation(tensor(array, spec)), oracle(array))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("spec", FORMATS[3])
def test_rank_three(spec: str) -> None:
    array = dense_array((4, 6, 5), 3)
    t = tensor(array, spec)
    same(reshape(t, (8, 15)), array.reshape(8, 15))
    same(diagonal(t, axis1=0, axis2=2), np.diagonal(array, axis1=0, axis2=2))
    same(permute_dims(t, (2, 0, 1)), array.transpose(2, 0, 1))
    same(tril(t), np.tril(array))


@pytest.mark.parametrize("spec", ["csr", "coo"])
@pytest.mark.parametrize("fill", [3.0, float("nan")])
def test_fill_values_stay(spec: str, fill: float) -> None:
    array = np.where(OTHER > 0, OTHER, fill)
    t = ow.asarray(array, format=spec, fill_value=fill)
    for name in ("reshape", "roll", "diagonal", "broadcast_to", "tile", "repeat", "take_along_axis", "diag", "flip"):
        operation, oracle = LONG[name]
        same(operation(t), oracle(array))
    with pytest.raises(UnsupportedError, match=r"tril: .*768 bytes"):
        tril(t)


def test_formats_stay() -> None:
    for spec in ("csr", "csc", "coo", "bsr(2, 3)", "dia"):
        t = tensor(OTHER, spec)
        for result in (flip(t), roll(t, 1, axis=0), tril(t), prune(t), tile(t, (1, 2))):
            assert result.format == t.format
    assert permute_dims(tensor(OTHER, "csr"), (1, 0)).format == ow.format("csc")
    wide = reshape(
        ow.assemble("csr", (4, 10**9), pos={1: [0, 1, 1, 1, 2]}, crd={1: [5, 7]}, values=[1.0, 2.0]), (-1, 4)
    )
    assert wide.format == ow.format("coo")


def test_buffers_are_shared() -> None:
    t = tensor(OTHER, "csr")
    for result in (permute_dims(t, (1, 0)), moveaxis(t, 0, 1), expand_dims(t, axis=1), reshape(t, (8, 12))):
        assert np.shares_memory(result.values, t.values)
    mask = tensor(dense_array((8, 12), 3), "csr")
    assert np.shares_memory(sparse_mask(t, mask).crd(1), mask.crd(1))


@pytest.mark.parametrize("args", [(5,), (3, 7), (7, 3)])
@pytest.mark.parametrize("k", [-2, 0, 4])
def test_eye(args: tuple[int, ...], k: int) -> None:
    for spec in ("csr", "coo", "dense"):
        same(eye(*args, k=k, dtype="float32", format=spec), np.eye(*args, k=k, dtype=np.float32))


def test_shapes_broadcast_as_numpys() -> None:
    for shapes in ((), ((),), ((3, 1), (2,)), ((0, 1), (1, 4), ()), (5, (2, 1)), ((1, 1), (7, 1, 1), (3,))):
        want = np.broadcast_shapes(*shapes)
        assert ow.broadcast_shapes(*shapes) == want
        arrays = [np.ones(s) for s in shapes]
        assert [t.shape for t in ow.broadcast_arrays(*arrays)] == [want] * len(shapes)


def test_sparse_mask_of_arrays() -> None:
    mask = tensor(OTHER, "coo")
    array = dense_array((8, 12), 3)
    got = sparse_mask(array, mask)
    assert got.nse == mask.nse
    same(got, np.where(OTHER != 0, array, 0))
    doubled = ow.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (8, 12))
    assert sparse_mask(array, doubled).nse == 1
    for number in (0.0, 3.0):
        same(sparse_mask(np.float64(3), ow.asarray(np.float64(number))), np.array(3.0))


def test_prune() -> None:
    t = ow.sparse_coo_tensor([[0, 0, 1, 2], [0, 1, 1, 2]], [0.0, -0.5, 2.0, float("nan")], (3, 3))
    assert prune(t).nse == 3
    assert prune(t, 0.5).nse == 2
    assert prune(prune(t, 0.5), 0.5).nse == 2
    for dtype in ("bool", "uint8", "int32", "float16", "complex64"):
        x = ow.sparse_coo_tensor([[0, 1], [0, 1]], np.array([0, 1], dtype), (3, 3))
        assert prune(x).nse == 1
        assert prune(x, 2**70).nse == 0


@pytest.mark.thin(6)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_prune_of_integers_as_far_apart_as_their_type_goes(library: str, dtype: str) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    values = np.array([low, low + 1, -1 % high if low == 0 else -1, 0, 1, 2, high - 1, high], dtype)
    if library == "torch":
        torch = pytest.importorskip("torch")
        if dtype in ("uint32", "uint64"):
            pytest.skip("torch has no kernels for it")
        data = torch.from_numpy(values)
    else:
        data = values
    apart = high - low
    for fill in (0, 1, low, high):
        t = ow.asarray(data, format="coo", fill_value=fill)
        for threshold in (0, 1, high - 1, high, high + 1, apart - 1, apart, apart + 1, 2**70):
            kept = [int(v) for v in values if abs(int(v) - fill) > threshold]
            assert sorted(int(v) for v in prune(t, threshold).values) == sorted(kept), (fill, threshold)


@pytest.mark.parametrize("threshold", ["0.5", None, 1j, [1.0], -1, float("nan")])
def test_prune_says_what_a_threshold_is(threshold: Any) -> None:
    t = ow.sparse_coo_tensor([[0, 1], [0, 1]], [0.0, 2.0], (3, 3))
    for dtype in ("float64", "int32"):
        with pytest.raises((ow.DTypeError, ValueError), match=r"prune: the threshold is .*(got: |expected 0)"):
            prune(t.astype(dtype), threshold)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: reshape(t, (5, 5)), "cannot reshape array of size 96"),
        (lambda t: reshape(t, (-1, -1)), "leaves more than one extent open"),
        (lambda t: broadcast_to(t, (8, 13)), "does not broadcast"),
        (lambda t: squeeze(t, axis=0), "axis 0 has extent 8"),
        (lambda t: flip(t, axis=2), "axis 2 is out of bounds for array of dimension 2"),
        (lambda t: permute_dims(t, (0, 0)), "repeated axis"),
        (lambda t: permute_dims(t, (0,)), "do not match 2 dimensions"),
        (lambda t: repeat(t, [1, 2], axis=0), "2 counts for 8 elements"),
        (lambda t: repeat(t, -1, axis=0), "negative"),
        (lambda t: tril(t[0]), "expected two dimensions or more"),
        (lambda t: take_along_axis(t, np.zeros((3, 2), int), axis=1), "do not broadcast"),
        (lambda t: sparse_mask(t, t[:4]), r"shape \(8, 12\) of the tensor, \(4, 12\) of the mask"),
        (lambda t: broadcast_arrays(t, np.zeros(5)), "do not broadcast"),
        (lambda t: roll(t, (1, 2, 3), axis=(0, 1)), "3 shifts for 2 axes"),
    ],
)
def test_errors(wrong: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        wrong(tensor(OTHER, "csr"))


def test_take_out_of_bounds() -> None:
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 1 with size 12"):
        take(tensor(OTHER, "csr"), [12], axis=1)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_reshapes(data: st.DataObject) -> None:
    """reshape(reshape(t, s), t.shape) is t, and both are NumPy's."""
    old = data.draw(st.sampled_from([(8, 12), (4, 6, 5), (12,), (3, 0, 2), (1, 6, 1)]))
    size = int(np.prod(old))
    options = [(size,), (-1, 1), (1, size, 1)] + [
        s for s in ((2, -1), (3, -1, 2), (-1, 6)) if size % abs(int(np.prod(s))) == 0
    ]
    new = data.draw(st.sampled_from([s for s in options if size or -1 not in s]))
    array = dense_array(old, 5)
    t = tensor(array, "coo")
    there = reshape(t, new)
    same(there, array.reshape(new))
    same(reshape(there, old), array)


def test_extents_beyond_64_bits_are_refused() -> None:
    wide = ow.sparse_coo_tensor(np.array([[2**39], [2**29]]), [1.0], (2**40, 2**30))
    for made in (
        lambda: ow.reshape(wide, (-1,)),
        lambda: ow.tile(wide, (2**24, 1)),
        lambda: ow.zeros((2**64,), format="coo"),
    ):
        with pytest.raises(ow.InvariantError, match="64-bit"):
            made()
    with pytest.raises(ow.ShapeError, match="places beyond 64 bits"):
        ow.argmax(wide)
    assert wide.max().item() == 1
    assert wide.sum().item() == 1


@pytest.mark.thin(4)
@pytest.mark.parametrize(
    "spec",
    [
        "(a, b) -> (a : dense, b : compressed(nonunique))",
        "(a, b) -> (b : compressed(nonunique), a : singleton(nonunique))",
        "(a, b) -> (a // 2 : compressed(nonunique), b : singleton(nonunique), a % 2 : singleton(nonunique))",
        "(a, b) -> (a : compressed(nonunique, unordered), b : singleton(nonunique, unordered))",
    ],
)
def test_duplicates_that_are_repeated_stay_one_element(spec: str) -> None:
    """Each of them gives its copies, so that these leave in no order."""
    for places, shape in (
        ([[0, 0, 2], [0, 0, 0]], (3, 1)),
        ([[0, 0, 0], [0, 0, 2]], (1, 3)),
        ([[0, 0], [0, 0]], (1, 1)),
    ):
        t = ow.sparse_coo_tensor(np.array(places), np.array([1.0, 1.0, 5.0][: len(places[0])]), shape).asformat(spec)
        a = t.to_numpy()
        wide = np.arange(12.0).reshape(3, 4)[:, : a.shape[1] if a.shape[1] > 1 else 4]
        calls: list[tuple[Any, Any]] = [
            (ow.broadcast_to(t, wide.shape), np.broadcast_to(a, wide.shape)), (ow.broadcast_to(t, (2, *shape)), np.broadcast_to(a, (2, *shape))),
            (ow.repeat(t, 3, axis=0), np.repeat(a, 3, 0)), (ow.repeat(t, 2, axis=1), np.repeat(a, 2, 1)), (ow.tile(t, (2, 2)), np.tile(a, (2, 2))),
            (t[:, [0, 0, -1]], a[:, [0, 0, -1]]), (t[[0, 0, -1]], a[[0, 0, -1]]), (t[[0, 0], [0, 0]], a[[0, 0], [0, 0]]),
            (t + wide, a + wide), (ow.pow(wide, t), wide**a), (t * ow.asarray(wide, format="csr"), a * wide),
            (ow.take(t, np.array([0, 0]), axis=1), a.take([0, 0], 1)), (ow.kron(t, t), np.kron(a, a)),
        ]  # fmt: skip
        for k, (got, want) in enumerate(calls):
            if isinstance(got, ow.Tensor):
                check_indices(got._storage)
                got = got.to_numpy()
            np.testing.assert_array_equal(got, want, err_msg=f"{k} {shape}")


def test_axes_are_refused_by_the_names_of_their_parameters() -> None:
    t = tensor(dense_array((8, 12)), "csr")
    for source, destination, words in ((1.5, 0, "moveaxis: source"), (0, 1.5, "moveaxis: destination")):
        with pytest.raises(TypeError, match=words):
            moveaxis(t, source, destination)  # type: ignore[arg-type]


def test_bitmaps_stay_bitmaps_where_extents_of_1_are_added() -> None:
    x = np.arange(12.0) % 3
    t = ow.asarray(x, format="bitmap")
    for shape in ((3, 4, 1), (1, 3, 4), (3, 1, 4)):
        r = t.reshape(shape)
        assert np.array_equal(r.to_numpy(), x.reshape(shape))
        assert r.any(axis=shape.index(1)).format == ow.format("bitmap")
    assert t.reshape((12, 1)).shape == (12, 1)
