"""Paths, `rows=`, `shape=` and files that say impossible things: right, or an error that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.io import header, write_parts
from openwork.io.shared.rows import pieces

BAD_PATHS: list[tuple[Any, type[Exception], str]] = [
    ("a\0b.mtx", ValueError, "a path with a NUL character at 1"),
    (PurePosixPath("a\0b.npz"), ValueError, "a path with a NUL character at 1"),
    ("\ud800.ow", ValueError, "a character that names of files do not have, at 0"),
    (b"a.mtx", TypeError, r"expected a path as text; got: bytes\n  help: os.fsdecode\(path\)"),
    (7, TypeError, "expected a path; got: int"),
    (None, TypeError, "expected a path; got: NoneType"),
    (["a.mtx"], TypeError, "expected a path; got: list"),
]


@pytest.mark.parametrize(("path", "error", "message"), BAD_PATHS)
def test_what_is_no_path(path: Any, error: type[Exception], message: str) -> None:
    t = ow.eye(2)
    for call in (
        lambda: ow.read(path), lambda: ow.open(path), lambda: header(path), lambda: ow.io.load(path),
        lambda: ow.write(path, t), lambda: ow.convert(path, "b.ow"), lambda: ow.convert("b.ow", path),
        lambda: write_parts(path, [], (2, 2)),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="asks for /proc")
@pytest.mark.parametrize("ending", ["mtx", "npz", "mat", "petsc", "rb", "svm", "mtx.gz"])
def test_files_that_hide_their_content(tmp_path: Path, ending: str) -> None:
    """Those of /proc say that they are empty."""
    for name in ("mem", "status"):
        path = tmp_path / f"{name}.{ending}"
        path.symlink_to(f"/proc/self/{name}")
        with pytest.raises(ow.FileFormatError, match="not a regular file"):
            ow.read(path)


@pytest.mark.parametrize("n", [65, 70, 200])
def test_more_dimensions_than_a_tensor_has(tmp_path: Path, n: int) -> None:
    ones = " ".join(["1"] * n)
    texts = {
        "t.tns": f"{ones} 2.5\n", "t.mtx": f"%%MatrixMarket tensor coordinate real general\n{ones} 1\n{ones} 2.5\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(ow.FileFormatError, match=f"{n} dimensions; a tensor has 64 at most"):
            ow.read(tmp_path / name)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("chunks", [[0, 2], [0, 0]])
def test_chunks_of_nothing(tmp_path: Path, version: int, chunks: list[int]) -> None:
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(tmp_path / "t.zarr", mode="w", zarr_format=version)
    root.attrs["encoding-type"] = "anndata"
    root.create_array("X", shape=(4, 4), chunks=(2, 2), dtype="f8")[...] = 1
    place = tmp_path / "t.zarr" / "X" / ("zarr.json" if version == 3 else ".zarray")
    metadata = json.loads(place.read_text())
    if version == 3:
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = chunks
    else:
        metadata["chunks"] = chunks
    place.write_text(json.dumps(metadata))
    with pytest.raises(ow.FileFormatError, match="expected 1 at least"):
        ow.read(tmp_path / "t.zarr")


# -- rows ------------------------------------------------------------------------------------------------------------

DENSE = ow.random((300, 20), 0.2, format="csr", rng=0).to_numpy()
ROWS: dict[str, Any] = {
    "some": [5, 3, 3, -1, 299], "mask": np.arange(300) % 7 == 0, "none": [], "empty mask": np.zeros(300, bool),
    "all": np.random.default_rng(0).permutation(300), "far": np.array([0, 299], np.uint8 if False else np.int16),
    "range": slice(7, 9), "list of bools": [True] * 300,
}  # fmt: skip


@pytest.fixture(params=[".h5ad", ".zarr"], scope="module")
def cells(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("h5py" if request.param == ".h5ad" else "zarr")
    path = tmp_path_factory.mktemp("rows") / f"t{request.param}"
    ow.write(path, {"X": ow.asarray(DENSE, format="csr"), "layers/dense": ow.asarray(DENSE)})
    return path


@pytest.mark.thin(9)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("element", ["X", "layers/dense"])
def test_rows_by_mask_and_by_number(cells: Path, name: str, element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ROWS[name]
    want = DENSE[rows] if isinstance(rows, slice) else DENSE[np.asarray(rows, None if len(rows) else int)]
    for piece, gap in ((1 << 22, 1 << 16), (50, 5)):  # one piece, and many
        monkeypatch.setattr("openwork.io.containers.anndata._PIECE", piece)
        monkeypatch.setattr("openwork.io.containers.anndata._GAP", gap)
        got = ow.read(cells, variable=element, rows=rows)
        np.testing.assert_array_equal(got.to_numpy(), want)
        assert got.format.name == ("csr" if element == "X" else got.format.name)


def test_rows_of_torch_choose_too(cells: Path) -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(ow.read(cells, rows=torch.tensor([2, 1])).to_numpy(), DENSE[[2, 1]])


def test_rows_that_are_not_there(cells: Path) -> None:
    for rows, error, message in (
        ([300], IndexError, "row 300 of 300"),
        ([-301], IndexError, "row -301 of 300"),
        ([True] * 3, ow.ShapeError, "a mask of 3 rows, of 300"),
        ([0.5], ow.DTypeError, "rows of float64"),
        (np.zeros((2, 2), int), TypeError, "a mask, or a vector of numbers"),
        (5, TypeError, "a mask, or a vector of numbers"),
        (slice(0, 9, 2), TypeError, "a slice of step 1"),
    ):
        with pytest.raises(error, match=message):
            ow.read(cells, rows=rows)


def test_pieces_hold_the_rows_and_little_else() -> None:
    rng, begin = np.random.default_rng(0), np.cumsum([0, *np.random.default_rng(1).integers(0, 9, 500)])
    for most, gap in ((1, 0), (20, 3), (100, 10), (10**6, 0), (10**6, 10**6)):
        rows = np.unique(rng.integers(0, 500, 60))
        ranges = list(pieces(rows, lambda row: int(begin[row]), most, gap))
        covered = np.concatenate([np.arange(a, b) for a, b in ranges])
        assert set(rows) <= set(covered)
        assert (np.diff(covered) > 0).all()
        assert all(b - a == 1 or begin[b] - begin[a] <= most for a, b in ranges)
    assert len(ranges) == 1


def test_a_backed_dataset_of_anndata_is_an_array(tmp_path: Path) -> None:
    pytest.importorskip("h5py")

    class Backed:
        """What anndata's CSRDataset is like."""

        format = "csr"
        reads = 0

        def to_memory(self) -> Any:
            Backed.reads += 1
            return ow.asarray(DENSE, format="csr").to_scipy()

    t = ow.asarray(Backed())
    assert (t.format.name, Backed.reads) == ("csr", 1)
    np.testing.assert_array_equal(t.to_numpy(), DENSE)


def test_anndata_s_own_backed_datasets(cells: Path) -> None:
    anndata = pytest.importorskip("anndata.io")
    if cells.suffix == ".h5ad":
        import h5py

        with h5py.File(cells) as file:
            t = ow.asarray(anndata.sparse_dataset(file["X"]))
    else:
        import zarr

        t = ow.asarray(anndata.sparse_dataset(zarr.open_group(cells, mode="r")["X"]))
    np.testing.assert_array_equal(t.to_numpy(), DENSE)
    assert t.format.name == "csr"


# -- shape -----------------------------------------------------------------------------------------------------------


def test_the_shape_of_a_file_that_does_not_say_it(tmp_path: Path) -> None:
    (tmp_path / "t.tns").write_text("1 2 2.5\n3 1 1\n")
    (tmp_path / "t.edges").write_text("0 1\n2 0\n")
    paths = {"t.tns": (3, 2), "t.edges": (3, 3)}
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"row": [0, 2], "col": [1, 0], "x": [2.5, 1.0]}), tmp_path / "t.parquet")
        paths["t.parquet"] = (3, 2)
    except ImportError:
        pass
    for name, smallest in paths.items():
        path = tmp_path / name
        assert ow.read(path).shape == smallest
        t = ow.read(path, shape=(5, 4), format="csr")
        assert (t.shape, t.nse) == ((5, 4), 2)
        for shape in ((2, 2), (5,), (5, 4, 1)):
            with pytest.raises(ow.ShapeError, match="which it must hold"):
                ow.read(path, shape=shape)
        with pytest.raises(ow.ShapeError, match="read"):
            ow.read(path, shape=(-1, 4))
    ow.write(tmp_path / "t.npz", ow.eye(2))
    with pytest.raises(ValueError, match="shape= means nothing for npz files"):
        ow.read(tmp_path / "t.npz", shape=(3, 3))
