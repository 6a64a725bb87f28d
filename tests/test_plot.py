"""Pictures: what is drawn is what the tensor stores."""

from __future__ import annotations

import re
from pathlib import Path
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
    assert (image.norm.vmin, image.norm.vmax) == (1, 2)
    monkeypatch.setattr("openwork.plot.pictures.MARKED", 0)
    for shape, cells in (((1, 40), (1, 2)), ((40, 1), (2, 1)), ((30, 40), (2, 2)), ((40, 9), (2, 1))):
        (image,) = ow.plot.spy(ow.asarray(np.eye(*shape), format="coo")).images
        drawn = image.get_array()
        assert (drawn.shape, drawn.sum()) == (cells, min(shape))
        assert not (drawn.compressed() == 0).any()
        assert image.norm.vmin == 1
        assert image.norm.vmax == max(2, drawn.max())


@pytest.mark.parametrize(
    ("shape", "aspect"),
    [((53, 10), 1), ((54, 10), "auto"), ((10, 53), 1), ((10, 54), "auto"), ((9, 9), 1), ((0, 4), "auto"), ((0, 3), 1)],
)
def test_spy_has_square_cells_up_to_five_times_as_long_as_wide(shape: tuple[int, int], aspect: object) -> None:
    assert ow.plot.spy(ow.zeros(shape, format="csr")).get_aspect() == aspect


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
    assert ax.figure.get_figheight() == 1.0 + 0.75 * 3  # of the root and two levels


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
        (lambda: ow.plot.rows(D, axis=-3), "axis -3 of a matrix"),
        (lambda: ow.plot.levels(np.ones((30, 30))), "more than 400 positions"),
    ]:
        with pytest.raises(ow.ShapeError, match=words):
            call()


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ow.UnsupportedError, match=r"pip install matplotlib"):
        ow.plot.spy(D)


def test_empty_matrices() -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        t = ow.zeros(shape, format="csr")
        assert ow.plot.spy(t).get_title().endswith("0 elements")
        ow.plot.rows(t)
        ow.plot.levels(t)


def _numbers(x: Any) -> str:
    return " ".join(f"{v:.4g}" for v in np.ma.filled(np.asarray(x, np.float64), np.nan).reshape(-1))


def drawn(ax: Any) -> list[str]:
    """Everything on the axes and beside them, as lines of text."""
    out = [
        f"title {ax.get_title()!r}",
        f"x {ax.get_xlabel()!r} {_numbers(ax.get_xlim())}, y {ax.get_ylabel()!r} {_numbers(ax.get_ylim())}",
    ]
    out.append(
        f"axis {'on' if ax.axison else 'off'}, aspect {ax.get_aspect()}, {type(ax.yaxis.get_major_locator()).__name__}"
    )
    if ax.patches:  # other ticks are chosen by matplotlib
        out.append("ticks " + " ".join(f"{t.get_text()}@{t.get_rotation():g}" for t in ax.get_xticklabels()))
    for line in ax.lines:
        style = f"{line.get_marker()} {line.get_linestyle()} {line.get_color()} {line.get_markersize():.3g} {line.get_linewidth():g}"
        out.append(f"line {style}: {_numbers(line.get_xdata())} | {_numbers(line.get_ydata())}")
    for patch in ax.patches:
        out.append(
            f"patch {type(patch).__name__} {_numbers(patch.get_extents().transformed(ax.transData.inverted()).bounds)} {_numbers(patch.get_facecolor())}"
        )
    for text in ax.texts:
        out.append(
            f"text {text.get_text()!r} {_numbers(text.get_position())} {text.get_fontsize():g} {text.get_ha()} {text.get_va()} {text.get_color()}"
        )
    for image in ax.images:
        norm = image.norm
        out.append(
            f"image {type(norm).__name__} {norm.vmin} {norm.vmax} {_numbers(image.get_extent())}: {_numbers(image.get_array())}"
        )
    out += [f"beside {other.get_ylabel()!r}" for other in ax.figure.axes if other is not ax]
    return out


@pytest.mark.ci
def test_everything_drawn_is_as_recorded(monkeypatch: pytest.MonkeyPatch, update_golden: bool) -> None:
    """`--update-golden` writes tests/pictures.txt anew; look at the pictures then."""
    long = np.zeros((40, 300))
    long[np.arange(40), np.arange(40) * 7] = 1
    long[:5, : 2 ** np.arange(5)[-1]] = 2
    long[0] = 3
    matrices = {"small": D, "long": long, "nothing": np.zeros((3, 5)), "flat": np.zeros((0, 4))}
    text = []
    for name, array in matrices.items():
        for format in ("csr", "dense") if name == "small" else ("coo",):
            t = ow.asarray(array, format=format)
            pictures = {
                "spy": ow.plot.spy,
                "rows": ow.plot.rows,
                "columns": lambda t: ow.plot.rows(t, axis=-1, color="red"),
            }
            for kind, picture in pictures.items():
                text += [f"[{kind} of {name} in {format}]", *drawn(picture(t))]
                pyplot.close("all")
    monkeypatch.setattr("openwork.plot.pictures.MARKED", 4)
    monkeypatch.setattr("openwork.plot.pictures.CELLS", 10)
    for name in ("small", "long"):
        text += [f"[counts of {name}]", *drawn(ow.plot.spy(ow.asarray(matrices[name], format="csr")))]
    for format in ("csr", "dcsr", "coo", "csc", "dia", "bsr(2, 2)", "bitmap", "dense"):
        text += [f"[levels of {format}]", *drawn(ow.plot.levels(ow.asarray(D, format=format)))]
        pyplot.close("all")
    path = Path(__file__).parent / "pictures.txt"
    if update_golden:
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
    assert "\n".join(text) + "\n" == path.read_text(encoding="utf-8")
