"""Joining and taking apart: every format against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.errors import ShapeError, UnsupportedError
from openwork.ops.manipulation.joining import concat, concatenate, stack, unstack

A, B = dense_array((8, 12), 3), dense_array((8, 12), 4)


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", FORMATS[2])
def test_every_format(spec: str) -> None:
    a, b = tensor(A, spec), tensor(B, spec)
    got = concat([a, b], axis=1)
    same(got, np.concatenate([A, B], axis=1))
    assert got.format.is_unique
    assert got.format.is_ordered
    same(concat([a, b[:3], a]), np.concatenate([A, B[:3], A]))


@pytest.mark.parametrize("spec", ["csr", "coo", "csc", "dense", "bitmap"])
def test_stack_and_unstack(spec: str) -> None:
    a, b = tensor(A, spec), tensor(B, spec)
    for axis in (0, 1, 2, -1):
        same(stack([a, b], axis=axis), np.stack([A, B], axis=axis))
    for axis in (0, 1):
        parts = unstack(a, axis=axis)
        assert len(parts) == A.shape[axis]
        for part, want in zip(parts, np.unstack(A, axis=axis), strict=True):
            same(part, want)


def test_mixed_formats_dtypes_and_arrays() -> None:
    got = concat([tensor(A, "csr").astype("float32"), tensor(B, "bsr(2, 3)"), A.astype(np.int32)], axis=0)
    same(got, np.concatenate([A.astype(np.float32), B, A.astype(np.int32)]))
    assert got.format == ow.format("csr")
    assert concat([tensor(A, "csr"), tensor(B, "csc")], format="coo").format == ow.format("coo")
    same(concat([tensor(A, "dense"), B]), np.concatenate([A, B]))
    same(concat([tensor(A, "csr"), tensor(B[0], "coo")[None]]), np.concatenate([A, B[:1]]))
    same(concatenate([tensor(A, "coo"), tensor(B, "csr")], axis=None), np.concatenate([A, B], axis=None))


def test_rank_one_and_three() -> None:
    for spec in FORMATS[1]:
        same(concat([tensor(A[0], spec), tensor(B[0], spec)]), np.concatenate([A[0], B[0]]))
    cube = dense_array((4, 6, 5), 3)
    for spec in ("csf", "coo", "(i, j, k) -> (i : dense, j : compressed, k : dense)"):
        for axis in (0, 2):
            same(concat([tensor(cube, spec)] * 2, axis=axis), np.concatenate([cube] * 2, axis=axis))


def test_empty_operands() -> None:
    t = tensor(A, "csr")
    same(concat([t[:0], t, t[3:3]]), A)
    same(concat([t[:, :0], t], axis=1), A)
    same(concat([tensor(np.zeros((0, 0)), "csr")] * 2), np.zeros((0, 0)))


def test_fill_values() -> None:
    a = ow.asarray(np.where(A > 0, A, 5.0), format="csr", fill_value=5.0)
    got = concat([a, a], axis=1)
    assert got.fill_value == 5.0
    same(got, np.concatenate([a.to_numpy()] * 2, axis=1))
    same(concat([a, B]), np.concatenate([a.to_numpy(), B]))
    with pytest.raises(UnsupportedError, match=r"fill values 5.0 and 0.0 differ"):
        concat([a, tensor(B, "csr")])


def test_rows_of_one_format_are_put_behind_each_other() -> None:
    for spec in ("csr", "csc", "coo", "dcsr", "csf"):
        axis = 1 if spec == "csc" else 0
        parts = [tensor(A, spec), tensor(B, spec), tensor(A, spec)]
        got = concat(parts, axis=axis)
        same(got, np.concatenate([A, B, A], axis=axis))
        assert got.nse == sum(t.nse for t in parts)
        ow.assemble(got.format, got.shape, pos=got._storage.pos, crd=got._storage.crd, values=got.values)


def test_errors() -> None:
    with pytest.raises(ShapeError, match="need at least one array to concatenate"):
        concat([])
    with pytest.raises(ShapeError, match=r"shapes \(8, 12\) and \(7, 12\) differ beside axis 1"):
        concat([tensor(A, "csr"), tensor(A[:7], "csr")], axis=1)
    with pytest.raises(ShapeError, match="zero-dimensional arrays cannot be concatenated"):
        concat([ow.asarray(1.0)])
    with pytest.raises(ShapeError, match="must have the same shape"):
        stack([tensor(A, "csr"), tensor(A[:7], "csr")])
    with pytest.raises(IndexError, match="axis 2 is out of bounds"):
        concat([tensor(A, "csr")], axis=2)
