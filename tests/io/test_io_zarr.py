"""zarr stores: AnnData's layout and binsparse's groups, written and read whole, by element and by rows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow

zarr = pytest.importorskip("zarr")

X = np.random.default_rng(0).poisson(0.4, (30, 12)).astype(np.float32)


@pytest.mark.parametrize("compress", [False, True])
def test_an_anndata_store_round_trips(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "cells.zarr"
    square = ow.asarray(sp.random_array((30, 30), density=0.1, rng=np.random.default_rng(1)))
    parts = {
        "X": ow.asarray(X, format="csr"), "layers/counts": ow.asarray(X.astype(np.int64), format="csc"),
        "obsm/pca": ow.asarray(X[:, :3]), "obsp/near": square,
    }  # fmt: skip
    ow.write(path, parts, compress=compress)
    for name, t in parts.items():
        back = ow.read(path, variable=name)
        assert back.dtype == t.dtype
        np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())
    assert ow.read(path).format == ow.format("csr")
    assert ow.read(path, variable="layers/counts").format == ow.format("csc")
    for first, last in ((0, 5), (7, 7), (20, 99)):
        for name in ("X", "obsm/pca"):
            part = ow.read(path, variable=name, rows=slice(first, last))
            np.testing.assert_array_equal(part.to_numpy(), parts[name].to_numpy()[first:last])
    with pytest.raises(ow.UnsupportedError, match="stored by columns"):
        ow.read(path, variable="layers/counts", rows=slice(0, 2))
    with pytest.raises(ow.ShapeError, match="does not suit X of shape"):
        ow.write(path, {"X": square})  # the other elements are of other shapes
    ow.write(path, {"X": parts["X"] * 2})
    np.testing.assert_array_equal(ow.read(path).to_numpy(), parts["X"].to_numpy() * 2)
    assert [p.name for p in tmp_path.iterdir()] == ["cells.zarr"]


def test_rows_read_their_chunks_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.io.containers.zarr._CHUNK", 16)
    path = tmp_path / "cells.zarr"
    ow.write(path, {"X": ow.asarray(X, format="csr")})
    whole = ow.read(path)
    at = int(whole.pos(1)[20]) // 16
    for key in ("indices", "data"):
        for chunk in (path / "X" / key / "c").iterdir():
            if int(chunk.name) < at:
                chunk.write_bytes(b"broken")
    np.testing.assert_array_equal(ow.read(path, rows=slice(20, 30)).to_numpy(), X[20:])
    with pytest.raises(ow.FileFormatError, match=r"cells\.zarr"):
        ow.read(path)


@pytest.mark.parametrize("spec", ["csr", "csc", "dcsr", "coo", "dense"])
def test_a_binsparse_group_round_trips(tmp_path: Path, spec: str) -> None:
    path = tmp_path / "x.bsp.zarr"
    t = ow.asarray(X, format=spec)
    ow.write(path, t)
    back = ow.read(path)
    assert back.format == t.format
    np.testing.assert_array_equal(back.to_numpy(), X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", [2, 3])
def test_anndata_reads_and_writes_the_same(tmp_path: Path, version: int) -> None:
    anndata = pytest.importorskip("anndata")
    path = tmp_path / "theirs.zarr"
    made = anndata.AnnData(ow.asarray(X, format="csr").to_scipy(), layers={"c": sp.csc_matrix(X * 2)})
    made.obsm["pca"] = X[:, :2]
    with anndata.settings.override(zarr_write_format=version):
        made.write_zarr(path)
    np.testing.assert_array_equal(ow.read(path).to_numpy(), X)
    np.testing.assert_array_equal(ow.read(path, variable="layers/c").to_numpy(), X * 2)
    np.testing.assert_array_equal(ow.read(path, variable="obsm/pca", rows=slice(3, 9)).to_numpy(), X[3:9, :2])
    shutil.rmtree(path)
    ow.write(path, {"X": ow.asarray(X, format="csr"), "obsm/pca": ow.asarray(X[:, :2])}, compress=True)
    back = anndata.read_zarr(path)
    np.testing.assert_array_equal(back.X.toarray(), X)
    np.testing.assert_array_equal(back.obsm["pca"], X[:, :2])
    assert list(back.obs_names[:2]) == ["0", "1"]


def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ow.read(tmp_path / "none.zarr")
    folder = tmp_path / "mine.zarr"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    with pytest.raises(ow.FileFormatError, match="not a readable zarr store"):
        ow.read(folder)
    with pytest.raises(ow.UnsupportedError, match="no zarr store"):
        ow.write(folder, {"X": ow.asarray(X)})
    assert (folder / "letter.txt").read_text() == "dear"
    with pytest.raises(ow.ShapeError, match="obsp/near"):
        ow.write(tmp_path / "bad.zarr", {"X": ow.asarray(X), "obsp/near": ow.asarray(X)})
    assert not (tmp_path / "bad.zarr").exists()


def test_a_store_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zarr"
    root = zarr.open_group(str(path), mode="w", zarr_format=2)
    root.attrs["encoding-type"] = "anndata"
    made = root.create_array("X", shape=(10**6, 10**4), dtype="f8", chunks=(10**3, 10**3))
    made.attrs["encoding-type"] = "array"
    with pytest.raises(ow.FileFormatError, match="unpacks to more"):
        ow.read(path)


@pytest.mark.parametrize("compress", [False, True])
def test_damage_is_an_error_with_the_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: bool) -> None:
    monkeypatch.setattr("openwork.io.containers.zarr._CHUNK", 16)
    path = tmp_path / "x.bsp.zarr"
    ow.write(path, ow.asarray(X, format="csr"), compress=compress)
    chunk = path / "values" / "c" / "3"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-7] + bytes([whole[-7] ^ 1]) + whole[-6:])
    with pytest.raises(ow.FileFormatError, match=r"x\.bsp\.zarr: /values, chunk 3 \(from 48 on\): the data is corrupt"):
        ow.read(path)
    chunk.unlink()
    with pytest.raises(ow.FileFormatError, match=r"/values, chunk 3 .*missing"):
        ow.read(path)
    chunk.write_bytes(whole)
    description = path / "zarr.json"
    text = description.read_text()
    description.write_text(text.replace("12", "22"))
    with pytest.raises(ow.FileFormatError, match=r"checksum .* is not that of the metadata"):
        ow.read(path)
    description.write_text(text)
    np.testing.assert_array_equal(ow.read(path).to_numpy(), X)


def test_chunks_of_rows_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two dimensions, whole and by rows; a group of others may describe its tensor by JSON itself."""
    monkeypatch.setattr("openwork.io.containers.zarr._CHUNK", 24)
    path = tmp_path / "a.zarr"
    ow.write(path, {"X": ow.asarray(X)})
    np.testing.assert_array_equal(ow.read(path).to_numpy(), X)
    shutil.rmtree(path / "X" / "c" / "14")
    with pytest.raises(ow.FileFormatError, match=r"/X, chunk 14, 0 \(from 28 on\): the chunk is missing"):
        ow.read(path)
    np.testing.assert_array_equal(ow.read(path, rows=slice(3, 28)).to_numpy(), X[3:28])
    with pytest.raises(ow.FileFormatError, match="chunk 14, 0"):
        ow.read(path, rows=slice(27, 29))
    path = tmp_path / "b.bsp.zarr"
    ow.write(path, ow.asarray(X, format="csr"))
    with pytest.raises(ow.UnsupportedError, match="rows= of a binsparse group"):
        ow.read(path, rows=slice(0, 2))
    root = zarr.open_group(str(path), mode="a")
    said = json.loads(root.attrs["binsparse"]) if isinstance(root.attrs["binsparse"], str) else root.attrs["binsparse"]
    for description in (said, said["binsparse"]):
        root.attrs.update({"binsparse": description, "openwork": None})
        del root.attrs["openwork"]
        np.testing.assert_array_equal(ow.read(path).to_numpy(), X)


def test_a_store_of_others_has_chunks_that_are_not_there(tmp_path: Path) -> None:
    """zarr leaves out chunks of fill values, and gives no checksums of its own."""
    path = tmp_path / "theirs.zarr"
    root = zarr.open_group(str(path), mode="w", zarr_format=3)
    root.attrs["encoding-type"] = "anndata"
    made = root.create_array("X", shape=(6, 4), dtype="f4", chunks=(2, 4))
    made.attrs["encoding-type"] = "array"
    made[2:4] = 1
    assert sorted(p.name for p in (path / "X" / "c").iterdir()) == ["1"]
    np.testing.assert_array_equal(ow.read(path).to_numpy()[:, 0], [0, 0, 1, 1, 0, 0])


def test_the_files_of_a_store_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda d: synced.append(os.fstat(d).st_ino))
    ow.write(tmp_path / "x.bsp.zarr", ow.asarray(X, format="csr"))
    assert {p.stat().st_ino for p in (tmp_path / "x.bsp.zarr").rglob("*") if p.is_file()} <= set(synced)
