"""A write over a file keeps what else is in it, or is refused: AnnData, 10x, HDF5 groups of one's own, `.npz`."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.io import write_parts

NAMES = ["AAAC", "AAAG", "AAAT", "AACA"]
X = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 0]])


def sparse(array: Any = X, format: str = "csr") -> ow.Tensor:
    return ow.asarray(array, format=format)


@pytest.fixture(params=[".h5ad", ".h5ad ?", ".zarr", ".zarr 2", ".zarr 3?"])
def cells(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of AnnData's layout with names, a column, an embedding and a raw group, as anndata writes one.

    ? : names may be missing, as in tables of pandas 3
    """
    missing = request.param.endswith("?")
    ending, _, version = request.param.rstrip("?").partition(" ")
    path = tmp_path / f"cells{ending}"
    if ending == ".h5ad":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            fill(file, missing)
        return path
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(path, mode="w", zarr_format=int(version or 3))
    fill(root, missing)
    return path


def fill(root: Any, missing: bool = False) -> None:
    def array(group: Any, key: str, data: Any, encoding: str) -> None:
        data = np.asarray(data)
        if hasattr(group, "create_dataset") and hasattr(group, "file"):
            item = group.create_dataset(key, data=data.astype(object) if data.dtype.kind == "U" else data)
        else:
            item = group.create_array(key, shape=data.shape, dtype=str if data.dtype.kind == "U" else data.dtype)
            item[...] = data.astype(object) if data.dtype.kind == "U" else data
        item.attrs.update({"encoding-type": encoding, "encoding-version": "0.2.0"})

    root.attrs["encoding-type"], root.attrs["encoding-version"] = "anndata", "0.1.0"
    for key, names in (("obs", NAMES), ("var", ["g0", "g1", "g2"])):
        table = root.create_group(key)
        table.attrs.update({"encoding-type": "dataframe", "_index": "_index", "column-order": ["depth"]})
        if missing:
            index = table.create_group("_index")
            index.attrs.update({"encoding-type": "nullable-string-array", "encoding-version": "0.1.0"})
            array(index, "values", names, "string-array")
            array(index, "mask", np.zeros(len(names), bool), "array")
        else:
            array(table, "_index", names, "string-array")
        array(table, "depth", np.arange(len(names)), "array")
    array(root, "X", X, "array")
    array(root.create_group("obsm"), "X_pca", np.eye(4)[:, :2], "array")
    array(root.create_group("uns"), "note", np.array([1, 2]), "array")


def opened(path: Path) -> Any:
    if path.suffix == ".h5ad":
        import h5py

        return h5py.File(path)
    import zarr

    return contextlib.nullcontext(zarr.open_group(path, mode="r"))


def tables(path: Path) -> list[Any]:
    """All that was there besides X."""
    with opened(path) as file:
        key = "obs/_index/values" if "obs/_index/values" in file else "obs/_index"
        texts = [x.decode() if isinstance(x, bytes) else str(x) for x in np.asarray(file[key][:])]
        arrays = [np.asarray(file[k][:]).tolist() for k in ("obs/depth", "var/depth", "obsm/X_pca", "uns/note")]
        return [texts, *arrays]


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("compress", [False, True])
def test_elements_are_added_to_a_file(cells: Path, compress: bool) -> None:
    before = tables(cells)
    ow.write(cells, {"layers/log": sparse(np.log1p(X))}, compress=compress)
    np.testing.assert_array_equal(ow.read(cells, variable="layers/log").to_numpy(), np.log1p(X))
    np.testing.assert_array_equal(ow.read(cells).to_numpy(), X)
    assert tables(cells) == before
    ow.write(cells, sparse(X * 2, "csc"), compress=compress)  # a dense X becomes one by columns
    ow.write(cells, {"layers/log": sparse(X * 3), "obsp/near": sparse(np.eye(4))})
    assert ow.read(cells).format == ow.format("csc")
    for name, want in (("X", X * 2), ("layers/log", X * 3), ("obsp/near", np.eye(4))):
        np.testing.assert_array_equal(ow.read(cells, variable=name).to_numpy(), want)
    assert tables(cells) == before
    assert [p.name for p in cells.parent.iterdir()] == [cells.name]


def test_other_extents_than_those_of_the_names_are_refused(cells: Path) -> None:
    before = tables(cells)
    for parts in ({"X": sparse(X[:3])}, {"layers/log": sparse(X.T)}, {"obsp/near": sparse(np.eye(3))}):
        with pytest.raises(ow.ShapeError, match=r"a file that is there.* does not suit X of shape \(4, 3\)"):
            ow.write(cells, parts)
    assert tables(cells) == before
    np.testing.assert_array_equal(ow.read(cells).to_numpy(), X)


def test_a_write_that_fails_adds_nothing(cells: Path) -> None:
    before = tables(cells)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ow.write(cells, {"layers/log": sparse()}, progress=stop)
    assert tables(cells) == before
    with opened(cells) as file:
        assert "layers" not in file
    assert [p.name for p in cells.parent.iterdir()] == [cells.name]


@pytest.mark.parametrize("ending", [".h5ad", ".zarr"])
def test_a_file_of_ours_alone_is_written_anew(tmp_path: Path, ending: str) -> None:
    """Nobody named anything in it; other extents are none of its business then."""
    pytest.importorskip("h5py" if ending == ".h5ad" else "zarr")
    path = tmp_path / f"t{ending}"
    ow.write(path, sparse())
    ow.write(path, sparse(np.eye(7)))
    assert ow.read(path).shape == (7, 7)
    with pytest.raises(ow.UnsupportedError, match="no X among layers/log, and no file to add them to"):
        ow.write(tmp_path / f"none{ending}", {"layers/log": sparse()})


def test_metadata_that_was_collected_is_collected_again(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        fill(zarr.open_group(path, mode="w", zarr_format=version))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(path)
        ow.write(path, {"layers/log": sparse()})
        assert "log" in zarr.open_group(path, mode="r", use_consolidated=True)["layers"]


def test_chunks_that_others_left_out_are_no_damage(tmp_path: Path) -> None:
    """zarr leaves out chunks of fill values; checksums of metadata are for what is written here."""
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "t.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=3)
    fill(root)
    zeros = root.create_group("layers").create_array("zeros", shape=(4, 3), dtype="f8", chunks=(2, 3))
    zeros.attrs["encoding-type"] = "array"
    ow.write(path, {"layers/log": sparse()})
    np.testing.assert_array_equal(ow.read(path, variable="layers/zeros").to_numpy(), np.zeros((4, 3)))
    next((path / "layers" / "log" / "data").rglob("c/0")).unlink()
    with pytest.raises(ow.FileFormatError, match="the chunk is missing"):
        ow.read(path, variable="layers/log")


def test_groups_of_ones_own_stay_beside_a_10x_matrix(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file.create_group("mine")["x"] = [1, 2]
    for array in (X, X * 2):
        ow.write(path, sparse(array))
        np.testing.assert_array_equal(ow.read(path).to_numpy(), array)
        with h5py.File(path) as file:
            assert file["mine/x"][:].tolist() == [1, 2]
    with h5py.File(path, "r+") as file:
        file["matrix/barcodes"][...] = [b"c0", b"c1", b"c2"]
    with pytest.raises(ow.ShapeError, match=r"names 4 features; got a matrix of shape \(9, 9\)"):
        ow.write(path, sparse(np.eye(9)))
    ow.write(path, sparse(X))
    with h5py.File(path) as file:
        assert file["matrix/barcodes"][0] == b"c0"
        del file
    for name in ("a.bsp.h5", "a.h5ad"):
        ow.write(tmp_path / name, sparse())
        (tmp_path / name).rename(tmp_path / "b.h5")
        with pytest.raises(ow.UnsupportedError, match="besides, which would be lost"):
            ow.write(tmp_path / "b.h5", sparse())


def test_files_of_other_kinds_are_not_replaced(tmp_path: Path) -> None:
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["x"] = [1, 2]
    zarr.open_group(tmp_path / "a.zarr", mode="w").create_array("x", shape=(2,), dtype="f8")
    zarr.open_group(tmp_path / "a.bsp.zarr", mode="w").create_array("x", shape=(2,), dtype="f8")
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    np.savez(tmp_path / "labels.npz", labels=np.arange(3), format=np.array("csr"), data=np.arange(3))
    for name in ("a.h5ad", "a.zarr", "a.bsp.zarr", "a.npz", "labels.npz"):
        with pytest.raises(ow.UnsupportedError, match=r"has '(x|labels)' besides, which would be lost"):
            ow.write(tmp_path / name, sparse())
    with pytest.raises(ow.UnsupportedError, match="besides"):
        write_parts(tmp_path / "a.bsp.zarr", [], (3, 3))
    assert np.load(tmp_path / "a.npz")["x"].tolist() == [0, 1, 2]


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "coo", "dia", "bsr(2, 1)", "dcsr", "bitmap"])
def test_a_tensor_alone_is_replaced(tmp_path: Path, spec: str) -> None:
    path = tmp_path / "t.npz"
    for array in (X, X * 2):
        ow.write(path, ow.asarray(array, format=spec))
        np.testing.assert_array_equal(ow.read(path).to_numpy(), array)
    ow.write(path, ow.masked_tensor(X, X > 0))
    ow.write(path, sparse().to_scipy())
    import scipy.sparse

    scipy.sparse.save_npz(path, scipy.sparse.csr_array(X))
    ow.write(path, sparse(X * 3))
    np.testing.assert_array_equal(ow.read(path).to_numpy(), X * 3)


# -- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.thin(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
def test_parts_keep_their_dtype(tmp_path: Path, dtype: str) -> None:
    parts = [(([k, k], [0, k]), np.array([1, k > 1], dtype)) for k in range(1, 4)]
    write_parts(tmp_path / "t.ow", iter(parts), (4, 4), format="csr")
    t = ow.open(tmp_path / "t.ow")
    assert str(t.dtype) == dtype
    assert t.to_numpy()[3, 3] == 1
    write_parts(tmp_path / "t.ow", iter(parts), (4, 4), format="csr", dtype="complex128")
    assert str(ow.open(tmp_path / "t.ow").dtype) == "complex128"


def test_a_later_part_that_the_first_ones_dtype_does_not_hold_is_refused(tmp_path: Path) -> None:
    first = (([0], [0]), np.ones(1, np.float32))
    with pytest.raises(ow.DTypeError, match="values of float64 that float32 does not hold"):
        write_parts(tmp_path / "t.ow", [first, (([1], [1]), np.array([0.1]))], (4, 4))
    write_parts(tmp_path / "t.ow", [first, (([1], [1]), np.array([0.5]))], (4, 4))
    write_parts(tmp_path / "t.ow", [first, (([1], [1]), np.array([0.1]))], (4, 4), dtype="float32")
    assert ow.open(tmp_path / "t.ow").to_numpy()[1, 1] == np.float32(0.1)
