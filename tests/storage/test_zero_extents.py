"""Tensors with an extent of 0 in every format: what is written is read, and what is taken apart is put together."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matrix import FORMATS

import openwork as ow

MORE = {
    2: (
        "(i, j) -> (j % 1 : structured(1, 1), j // 1 : dense, i : dense)",
        "(i, j) -> (j % 2 : structured(1, 2), j // 2 : dense, i : dense)",
        "(i, j) -> (j % 4 : structured(2, 4), i : dense, j // 4 : dense)",
        "(i, j) -> (i : dense, j // 4 : dense, j % 4 : structured(2, 4))",
        "(i, j) -> (j % 2 : ell(2), j // 2 : dense, i : dense)",
        "(i, j) -> (j % 2 : bitmap, j // 2 : compressed, i : dense)",
        "(i, j) -> (j % 2 : compressed, j // 2 : dense, i : dense)",
    ),
    3: ("(b, i, j) -> (b : batch, j % 2 : structured(1, 2), j // 2 : dense, i : dense)",),
}
CASES = [(text, rank) for rank in (1, 2, 3) for text in (*FORMATS[rank], *MORE.get(rank, ()))]


def empties(text: str, rank: int) -> Iterator[tuple[ow.Tensor, tuple[int, ...]]]:
    for shape in itertools.product((0, 2), repeat=rank):
        if shape.count(0) in (1, rank):
            yield ow.asarray(np.zeros(shape), format="coo").asformat(ow.format(text, rank)), shape


@pytest.mark.thin(30)
@pytest.mark.parametrize(("text", "rank"), CASES)
def test_written_and_read(text: str, rank: int, tmp_path: Path) -> None:
    for t, shape in empties(text, rank):
        for suffix in (".npz", ".mtx", ".tns", ".rb") if shape == (2, 0) else (".npz",):
            path = tmp_path / f"a{suffix}"
            try:
                ow.write(path, t)
            except ow.UnsupportedError:
                assert suffix == ".rb"
                continue
            again = ow.read(path)
            assert again.shape == shape
            assert suffix != ".npz" or again.format == t.format


@pytest.mark.thin(6)
@pytest.mark.parametrize(("text", "rank"), CASES)
def test_taken_apart(text: str, rank: int) -> None:
    for t, shape in empties(text, rank):
        pos, crd = ({k: b for k in range(t.format.nlevels) if (b := get(k)) is not None} for get in (t.pos, t.crd))
        put_together = ow.assemble(t.format, shape, pos=pos, crd=crd, values=t.values)
        converted = t.asformat("coo").asformat(t.format)
        for again in (put_together, pickle.loads(pickle.dumps(t)), copy.deepcopy(t), t.T.T, converted):
            assert again.shape == shape
            assert again.to_numpy().shape == shape


@pytest.mark.thin(3)
@pytest.mark.parametrize(("text", "rank"), CASES)
def test_to_torch(text: str, rank: int) -> None:
    pytest.importorskip("torch")
    for t, shape in empties(text, rank):
        try:
            there = t.to_torch()
        except ow.UnsupportedError:
            continue
        assert tuple(there.shape) == shape
