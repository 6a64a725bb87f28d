"""What the prompt and a notebook show of an object: at most 25 lines; a matrix with a picture for light and dark pages."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

import openwork as ow

X = ow.random((300, 60), 0.2, format="csr", rng=0)
OBJECTS: dict[str, Any] = {
    "Tensor": lambda: X,
    "printed Tensor": lambda: str(ow.random((9,) * 6, 1e-4, format="csf", rng=0)),
    "PCA": lambda: ow.linalg.pca(X, 40),
    "SVD": lambda: ow.linalg.randomized_svd(X, 40, rng=0),
    "Plan": lambda: ow.explain(
        lambda: ((X.T @ X) @ np.ones(60), X + X, X.T @ np.ones(300), X * 2 + X * X, X.sum(axis=0))
    ),
    "Advice": lambda: ow.advise(X, op="scale", seconds=0.001),
    "CP": lambda: ow.decomposition.cp_als(ow.random((4, 5, 6), 0.5, rng=0), 3, rng=0),
    "MaskedTensor": lambda: ow.masked_tensor(np.ones((300, 60)), np.ones((300, 60)) > 0),
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", OBJECTS)
def test_echoes_are_short(name: str) -> None:
    found = OBJECTS[name]()
    lines = found.splitlines() if isinstance(found, str) else repr(found).splitlines()
    assert len(lines) <= 25
    assert name in lines[0] or name in ("Plan", "Advice", "printed Tensor")


def test_a_plan_echoes_its_beginning() -> None:
    plan = OBJECTS["Plan"]()
    lines = str(plan).splitlines()
    *shown, last = repr(plan).splitlines()
    assert shown == lines[:23]
    assert last == f"... {len(lines) - 23} more lines: print(plan)"
    short = ow.explain(ow.matmul, X, np.ones(60))
    assert repr(short) == str(short)


def test_pca_shows_its_components() -> None:
    found = ow.linalg.pca(X, 3)
    head, columns, *rows = repr(found).splitlines()
    assert (
        head
        == f"PCA(300 samples x 60 features, k=3, {100 * found.explained_variance_ratio.sum():.2g}% of the variance)"
    )
    assert columns.split("  ")[-1] == "sum of shares"
    assert [float(row.split()[1]) for row in rows] == pytest.approx(found.singular_values, rel=1e-3)
    html = found._repr_html_()
    assert html.count("<tr>") == 4
    assert all(cell in html for row in rows for cell in row.split())


def picture(html: str) -> tuple[np.ndarray[Any, Any], tuple[int, int]]:
    """The cells (height, width, RGBA) of the picture in a page, and its size in pixels (width, height)."""
    data = b64decode(re.findall(r"base64,([^']+)'", html)[0])
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    assert (depth, colour) == (8, 6)
    at = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[at - 4 : at])
    rows = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + length]), np.uint8).reshape(height, 1 + 4 * width)
    (size,) = re.findall(r"width:(\d+)px;height:(\d+)px", html)
    return rows[:, 1:].reshape(height, width, 4), (int(size[0]), int(size[1]))


@pytest.mark.parametrize(
    ("shape", "size"), [((6, 6), (96, 96)), ((3, 6), (96, 48)), ((300, 300), (192, 192)), ((1, 1), (96, 96))]
)
def test_the_picture_of_a_matrix_is_seen_on_light_and_dark_pages(shape: tuple[int, int], size: tuple[int, int]) -> None:
    cells, shown = picture(ow.eye(*shape, format="csr")._repr_html_())
    assert shown == size
    opacity = cells[..., 3]
    assert opacity.max() == 255
    assert opacity[opacity > 0].min() >= 100
    np.testing.assert_array_equal(opacity > 0, np.eye(*opacity.shape) > 0)
    blue = cells[0, 0, :3].astype(float) @ [0.2126, 0.7152, 0.0722] / 255
    assert 0.2 < blue < 0.6


def test_buffers_are_folded_and_monospace() -> None:
    html = X._repr_html_()
    folded = re.findall(r"<details><summary>buffers</summary><pre[^>]*>(.*?)</pre></details>", html, re.DOTALL)
    assert [line.split(" = ")[0] for line in folded[0].splitlines()] == ["pos[1]", "crd[1]", "values"]
    assert "pos[1]" not in html.replace(folded[0], "")
