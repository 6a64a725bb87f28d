"""Pictures: what is drawn is what the tensor stores."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import openwork as ow

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from matplotlib import pyplot  # noqa: E402

D = np.array([[0, 1.5, 0, 0], [2, 0, 0, 3], [0, 0, 0, 0], [0, 4, 5, 0]])


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    pyplot.close("all")


def texts(ax: Any) -> list[str]:
    return [t.get_text() for t in ax.texts]


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bitmap", "dense"])
def test_spy_marks_elements(format: str) -> None:
    ax = ow.plot.spy(ow.asarray(D, format=format))
    (line,) = ax.lines
    drawn = set(zip(line.get_ydata().tolist(), line.get_xdata().tolist(), strict=True))
    assert drawn == set(zip(*map(np.ndarray.tolist, np.nonzero(D)), strict=True))
    assert ax.get_ylim() == (3.5, -0.5)


def test_spy_counts_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.plot.pictures.MARKED", 4)
    monkeypatch.setattr("openwork.plot.pictures.CELLS", 2)
    ax = ow.plot.spy(ow.asarray(D, format="csr"))
    (image,) = ax.images
    assert image.get_array().filled(0).tolist() == [[2, 1], [1, 1]]


def test_pictures_on_given_axes() -> None:
    _, (left, right) = pyplot.subplots(1, 2)
    assert ow.plot.spy(D, ax=left) is left
    assert ow.plot.rows(D, ax=right) is right
    assert [p.get_height() for p in right.patches] == [1, 1, 2]
    ow.plot.rows(ow.asarray(D, format="csr"), axis=1, ax=left)
    assert [p.get_height() for p in left.patches] == [0, 3, 1]


@pytest.mark.parametrize(
    ("format", "nodes", "titles"),
    [
        ("csr", ["", *"0123", *"10312"], ["i : dense", "j : compressed"]),
        ("dcsr", ["", *"013", *"10312"], ["i : compressed", "j : compressed"]),
        ("coo", ["", *"01133", *"10312"], ["i : compressed(nonunique)", "j : singleton"]),
    ],
)
def test_levels_are_a_tree(format: str, nodes: list[str], titles: list[str]) -> None:
    ax = ow.plot.levels(ow.asarray(D, format=format))
    seen = texts(ax)
    assert [t for t in seen if re.fullmatch(r"\d*", t)][: len(nodes)] == [n for n in seen if n in nodes][: len(nodes)]
    assert sorted(t for t in seen if t and not t.startswith("values")) == sorted(
        [*(n for n in nodes if n), *titles, "1.5", "2", "3", "4", "5"]
    )
    lines = sum(line.get_xdata().size == 2 for line in ax.lines)
    assert lines == len(nodes) - 1
    for line in ax.lines:
        below, above = line.get_ydata()
        assert abs(above - below) == 1  # an edge joins two levels


def test_levels_of_blocks_batches_and_tensors() -> None:
    stack = ow.asarray(np.stack([D, D]), format="coo").asformat("(b, i, j) -> (b : batch, i : dense, j : compressed)")
    for t in (
        ow.asarray(D, format="bsr(2, 2)"),
        ow.asarray(D, format="dia"),
        ow.asarray(np.stack([D, D]), format="csf"),
        stack,
    ):
        ax = ow.plot.levels(t)
        assert sum(t in ("1.5", "4", "5") for t in texts(ax)) >= 3


def test_what_is_no_matrix_is_refused() -> None:
    cube = np.ones((2, 2, 2))
    for call, words in [
        (lambda: ow.plot.spy(cube), "plot.spy: a tensor of 3 dimensions"),
        (lambda: ow.plot.rows(cube), "plot.rows: a tensor of 3 dimensions"),
        (lambda: ow.plot.rows(D, axis=2), "axis 2 of a matrix"),
        (lambda: ow.plot.levels(np.ones((30, 30))), "more than 400 positions"),
    ]:
        with pytest.raises(ow.ShapeError, match=words):
            call()


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ow.UnsupportedError, match=r"pip install openwork\[plot\]"):
        ow.plot.spy(D)


def test_empty_matrices() -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        t = ow.zeros(shape, format="csr")
        assert ow.plot.spy(t).get_title().endswith("0 elements")
        ow.plot.rows(t)
        ow.plot.levels(t)
