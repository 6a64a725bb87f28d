"""AnnData, binsparse, 10x, PETSc and Parquet: what is written reads back; other programs' files; broken ones are refused."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sps

import openwork as ow
from openwork import faults
from openwork.io.binary import parquet
from openwork.io.containers.chunked import Chunked
from openwork.io.containers.hdf5 import _HeldErrors

ENDINGS = (".h5ad", ".bsp.h5", ".h5", ".petsc", ".parquet")
NEEDS = {".h5ad": "h5py", ".bsp.h5": "h5py", ".h5": "h5py", ".parquet": "pyarrow"}


def array(dtype: str = "float64", shape: tuple[int, ...] = (7, 5)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(3)
    x = np.where(rng.random(shape) < 0.3, rng.integers(1, 9, shape), 0).astype(dtype)
    return x * (1 + 2j) if x.dtype.kind == "c" else x


@pytest.mark.thin(56)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "bsr(2, 2)", "dia", "bitmap", "dense"])
def test_round_trips(tmp_path: Path, ending: str, spec: str) -> None:
    pytest.importorskip(NEEDS.get(ending, "numpy"))
    for x in (array(), np.zeros((3, 4)), np.zeros((0, 4)), np.zeros((4, 0))):
        path = tmp_path / f"a{ending}"
        ow.write(path, ow.asarray(x, format=spec))
        back = ow.read(path)
        assert back.shape == x.shape
        assert back.dtype == "float64"
        np.testing.assert_array_equal(back.to_numpy(), x)
        np.testing.assert_array_equal(ow.read(path, format="csr").to_numpy(), x)


@pytest.mark.thin(9)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float32", "complex64", "complex128"])
def test_binsparse_keeps_types_and_formats(tmp_path: Path, dtype: str) -> None:
    h5py = pytest.importorskip("h5py")
    for spec in ("csr", "csc", "dcsr", "coo", "dense", "dense_f", "(i, j) -> (j : compressed, i : compressed)"):
        t = ow.asarray(array(dtype), format=spec)
        ow.write(tmp_path / "a.bsp.h5", t, compress=spec == "csr")
        back = ow.read(tmp_path / "a.bsp.h5")
        with h5py.File(tmp_path / "a.bsp.h5") as file:
            named = json.loads(file.attrs["binsparse"])["binsparse"]["format"]
        known = {"csr": "CSR", "csc": "CSC", "dcsr": "DCSR", "coo": "COOR", "dense": "DMATR", "dense_f": "DMATC"}
        assert named == known.get(spec, "DCSC")
        assert (str(back.format), str(back.dtype), back.nse) == (str(t.format), str(t.dtype), t.nse)
        np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())


CUSTOM = {
    1: ["(i) -> (i : compressed)", "(i) -> (i : dense)"],
    3: [
        "csf", "coo", "(i, j, k) -> (k : dense, i : compressed, j : compressed)",
        "(i, j, k) -> (j : dense, k : compressed(nonunique), i : singleton)",
        "(i, j, k) -> (i : compressed, k : dense, j : dense)",
    ],
}  # fmt: skip


@pytest.mark.thin(6)
@pytest.mark.parametrize(("ndim", "spec"), [(n, spec) for n, specs in CUSTOM.items() for spec in specs])
def test_binsparse_of_any_rank(tmp_path: Path, ndim: int, spec: str) -> None:
    h5py = pytest.importorskip("h5py")
    for fill in (0.0, 2.5):
        x = array(shape=(4, 3, 5)[:ndim]) + fill
        t = ow.asarray(x, format=spec, fill_value=fill)
        ow.write(tmp_path / "a.bsp.h5", t)
        back = ow.read(tmp_path / "a.bsp.h5")
        assert [str(level.format) for level in back.format.levels] == [str(level.format) for level in t.format.levels]
        assert back.fill_value == t.fill_value
        np.testing.assert_array_equal(back.to_numpy(), x)
    with h5py.File(tmp_path / "a.bsp.h5") as file:
        said = json.loads(file.attrs["binsparse"])["binsparse"]
        assert said["format"] in (("CVEC", "DVEC", "custom") if ndim == 1 else ("COO", "custom"))
        assert set(said["data_types"]) == set(file)
        assert said["fill"] is (True if fill else None)


def described(folder: Path, said: dict[str, Any], **arrays: Any) -> Path:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        for name, x in arrays.items():
            file[name] = x
        types = {name: str(np.asarray(x).dtype) for name, x in arrays.items()}
        whole = {"version": "0.1", "data_types": types, "number_of_stored_values": len(arrays["values"]), **said}
        file.attrs["binsparse"] = json.dumps({"binsparse": whole, "author": "somebody"})
    return folder / "x.h5"


def test_binsparse_of_others(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    row, col, values = np.array([0, 1, 1], np.uint64), np.array([2, 0, 1], np.uint64), np.array([1.0, 2.0, 3.0])
    want = np.array([[0, 0, 1.0], [2, 3, 0], [0, 0, 0]])
    shape: dict[str, Any] = {"shape": [3, 3]}
    path = described(tmp_path, {"format": "COO", **shape}, indices_0=row, indices_1=col, values=values)
    np.testing.assert_array_equal(ow.read(path).to_numpy(), want)
    pointers = np.array([0, 1, 3, 3], np.uint32)
    path = described(tmp_path, {"format": "CSR", **shape}, pointers_to_1=pointers, indices_1=col, values=values)
    assert ow.read(path).format == ow.format("csr")
    np.testing.assert_array_equal(ow.read(path).to_numpy(), want)
    types = {"pointers_to_1": "uint32", "indices_1": "uint64", "values": "iso[int8]"}
    iso = {"format": "CSR", **shape, "data_types": types, "number_of_stored_values": 3}
    path = described(tmp_path, iso, pointers_to_1=pointers, indices_1=col, values=np.array([4], np.int8))
    np.testing.assert_array_equal(ow.read(path).to_numpy(), 4 * (want != 0))
    half = {"format": "CSC", **shape, "structure": "symmetric_lower"}
    path = described(
        tmp_path, half, pointers_to_1=np.array([0, 2, 2, 2]), indices_1=np.array([0, 2]), values=np.array([1.0, 5.0])
    )
    np.testing.assert_array_equal(ow.read(path).to_numpy(), [[1, 0, 5], [0, 0, 0], [5, 0, 0]])


def sparse_rows(dense: int = 1) -> dict[str, Any]:
    """The levels of CSR, or of more dense dimensions."""
    level: dict[str, Any] = {"level_desc": "sparse", "rank": 1, "level": {"level_desc": "element"}}
    for _ in range(dense):
        level = {"level_desc": "dense", "rank": 1, "level": level}
    return level


def typed(**types: str) -> dict[str, Any]:
    return {"data_types": {"pointers_to_1": "int64", "indices_1": "int64", "values": "float64", **types}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "1.0"}, "binsparse 1.0; read is version 0.1"),
        ({"format": "XYZ"}, "format is 'XYZ'"),
        ({"format": None}, "format is None"),
        ({"shape": [3]}, "levels of 2 dimensions; the shape has 1"),
        ({"shape": [3, -1]}, "expected extents"),
        ({"shape": [2**63, 3]}, "expected extents"),
        ({"shape": "3x3"}, "expected a list"),
        ({"number_of_stored_values": 4}, "3 values; number_of_stored_values is 4"),
        ({"data_types": {}}, "data_types says None"),
        ({"data_types": 5}, "expected the types"),
        ({"format": "custom", "custom": {"level": {"level_desc": "odd", "rank": 1}}}, "a level is 'odd'"),
        ({"format": "custom", "custom": {"level": None}}, "a level is None"),
        ({"format": "custom", "custom": {"transpose": [0, 0], "level": {"level_desc": "element"}}}, "levels of 0"),
        ({"structure": "odd_lower"}, "structure is 'odd_lower'"),
        ({"fill": True}, "fill_value is missing"),
        ({"shape": [3, 2]}, "outside|coordinate"),
        ({"shape": [2, 3]}, "pos|length|pointers"),
        ({"format": "custom", "custom": {"transpose": [0, 0], "level": sparse_rows()}}, "expected the numbers of 2 dimensions"),
        ({"format": "custom", "custom": {"transpose": [0, 2], "level": sparse_rows()}}, "expected the numbers of 2 dimensions"),
        ({"format": "custom", "custom": {"transpose": [0, 1.0], "level": sparse_rows()}}, "levels of 2 dimensions"),
        ({"format": "custom", "custom": {"level": sparse_rows(dense=33)}}, "more than 32 levels"),
        ({"format": "custom", "custom": {"level": {"level_desc": "sparse", "rank": 33}}}, "sparse' of rank 33"),
        ({"format": "custom", "custom": {"level": {"level_desc": "dense", "rank": True}}}, "dense' of rank True"),
        (typed(values="int64"), "values has values of float64; data_types says 'int64'"),
        (typed(values="bint8"), "values has values of float64; data_types says 'bint8'"),
        (typed(values="complex[float64]"), "values has 3 values of float64; data_types says 'complex.float64.'"),
        (typed(values="complex[float32]"), "values has 3 values of float64; data_types says 'complex.float32.'"),
        (typed(values="iso[float64]"), "3 values that are all the same; expected one, of a sparse format"),
        (typed(indices_1="int32"), "indices_1 has values of int64; data_types says 'int32'"),
    ],
)  # fmt: skip
def test_binsparse_that_contradicts_itself(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    pytest.importorskip("h5py")
    said = {"format": "CSR", "shape": [3, 3], **change}
    arrays = {"pointers_to_1": np.array([0, 1, 3, 3]), "indices_1": np.array([2, 0, 1]), "values": np.ones(3)}
    with pytest.raises((ow.FileFormatError, ow.UnsupportedError), match=words):
        ow.read(described(tmp_path, said, **arrays))


@pytest.mark.parametrize("name", ["x.h5", "x.bsp.h5"])
def test_binsparse_arrays_that_do_not_fit(tmp_path: Path, name: str) -> None:
    """Whole, and in parts."""
    h5py = pytest.importorskip("h5py")
    whole = name == "x.h5"

    def get(path: Path, **options: Any) -> None:
        ow.read(path, **options) if whole else ow.convert(path, tmp_path / "y.ow", memory=300, **options)

    good = {"pointers_to_1": np.array([0, 1, 3, 3]), "indices_1": np.array([2, 0, 1]), "values": np.ones(3)}
    bad: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({}, {"indices_1": np.array([2, 0, -1])}, "outside"),
        ({}, {"indices_1": np.array([2, 0, 3])}, r"outside|crd\[1\]\[2\] == 3"),
        ({}, {"indices_1": np.array([2.0, 0, 1])}, "integers"),
        ({}, {"pointers_to_1": np.array([0.0, 1, 3, 3])}, "integers"),
        ({}, {"values": np.array([b"a", b"b", b"c"])}, "expected numbers"),
        ({}, {"values": np.ones((3, 1))}, "one dimension"),
        ({}, {"indices_1": np.array([[2], [0], [1]])}, "one dimension|expected integers"),
        ({"fill": True}, {"fill_value": np.ones(2)}, "fill_value has 2 elements; expected one"),
        ({"fill": True}, {"fill_value": np.ones(0)}, "fill_value has 0 elements; expected one"),
        ({"format": "COO", "structure": "symmetric_lower"},
         {"indices_0": np.array([0, 1, 2])}, "structure 'symmetric_lower' is read of CSR and CSC"),
        ({**typed(values="iso[float64]"), "number_of_stored_values": 4}, {"values": np.ones(1)}, "3 indices; number_of_stored"),
    ]  # fmt: skip
    for said, arrays, words in bad:
        (tmp_path / name).unlink(missing_ok=True)
        described(tmp_path, {"format": "CSR", "shape": [3, 3], **said}, **{**good, **arrays}).rename(tmp_path / name)
        with pytest.raises((ow.FileFormatError, ow.UnsupportedError), match=words):
            get(tmp_path / name)
        assert not (tmp_path / "y.ow").exists()
    for attribute, words in (
        (3, "is no text of at most"), ("[" * 3, "is no description"), ("{}", "is no description"), ("[1]", "is no description"),
        ('{"binsparse": 3}', "is no description of a tensor"), (None, "has no attribute 'binsparse'"),
    ):  # fmt: skip
        (tmp_path / name).unlink(missing_ok=True)
        described(tmp_path, {"format": "CSR", "shape": [3, 3]}, **good).rename(tmp_path / name)
        with h5py.File(tmp_path / name, "a") as file:
            del file.attrs["binsparse"]
            if attribute is not None:
                file.attrs["binsparse"] = attribute
            elif whole:
                file["group/values"] = np.ones(3)
                file.attrs["binsparse"] = "{}"
        with pytest.raises(ow.FileFormatError, match=words):
            get(tmp_path / name, variable="group" if whole and attribute is None else None)
    with pytest.raises(ow.FileFormatError, match=r"there is no group 'none(/values)?'; there are "):
        get(tmp_path / name, variable="none/values" if whole else "none")


@pytest.mark.thin(2)
@pytest.mark.parametrize("ending", [".bsp.h5", ".bsp.zarr"])
def test_binsparse_that_is_converted_whole(tmp_path: Path, ending: str) -> None:
    """One value for all, complex numbers, truth values and fill values: of these a part is not read on its own."""
    pytest.importorskip("h5py" if ending == ".bsp.h5" else "zarr")
    x = ow.asarray(array(), format="csr")
    for t in (ow.iso(x, 3.0), x.astype(np.complex64), x != 0, x + 1.5):
        ow.write(tmp_path / f"a{ending}", t)
        ow.convert(tmp_path / f"a{ending}", tmp_path / "b.ow", format="csc", memory=2000)
        back = ow.read(tmp_path / "b.ow")
        assert (back.format, back.dtype, back.fill_value) == (ow.format("csc"), t.dtype, t.fill_value)
        np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())
        ow.write(tmp_path / "c.ow", t)
        refused = t.dtype.kind in "bc"
        try:
            ow.convert(tmp_path / "c.ow", tmp_path / f"d{ending}", format="csr", memory=2000)
        except ow.UnsupportedError as error:
            assert refused
            assert "in parts\n  help: .ow, or write it whole" in str(error)  # noqa: PT017
            continue
        assert not refused
        back = ow.read(tmp_path / f"d{ending}")
        assert (back.format, back.fill_value) == (ow.format("csr"), t.fill_value)
        np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())


def test_what_a_kind_of_file_has_not(tmp_path: Path) -> None:
    scalar, shifted = ow.asarray(np.float64(3.0)), ow.asarray(array(), format="csr") + 1
    half = ow.asarray(array("float16"), format="csr")
    for ending, t, words in (
        (".bsp.h5", scalar, "binsparse has no tensor of no dimensions"), (".bsp.h5", half, "no values of float16"),
        (".mtx", scalar, "Matrix Market cannot hold a tensor of no dim"), (".tns", scalar, "no dimensions"),
        (".parquet", scalar, "Parquet cannot hold a tensor of no dim"), (".mtx", shifted, "the fill value 1"),
        (".parquet", shifted, "the fill value 1"), (".h5", shifted, "10x files have no fill value 1"),
        (".petsc", shifted, "have no fill value 1"), (".rb", shifted, "matrices with fill value 0"),
        (".rb", ow.asarray(np.ones(3)), "matrices with fill value 0"), (".h5ad", {"X": shifted}, "fill value 1"),
        (".parquet", shifted.astype(np.complex64) - 1, "Parquet has no values of complex64"),
        (".tns", shifted.astype(np.complex64) - 1, "cannot hold complex values"),
    ):  # fmt: skip
        pytest.importorskip(NEEDS.get(ending, "numpy"))
        with pytest.raises(ow.UnsupportedError, match=words):
            ow.write(tmp_path / f"a{ending}", t)
    assert not list(tmp_path.iterdir())
    for ending in ENDINGS[:4]:
        for shape in ((3,), (2, 3, 4)) if ending != ".bsp.h5" else ():
            with pytest.raises(ow.ShapeError):
                ow.write(tmp_path / f"a{ending}", ow.asarray(np.ones(shape)))
    for x in ([[1.0, 0], [0, 2]], sps.csr_array(np.eye(2))):  # what asarray takes
        ow.write(tmp_path / "a.npz", x)
        np.testing.assert_array_equal(ow.read(tmp_path / "a.npz").to_numpy(), np.asarray(ow.asarray(x).to_numpy()))


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("ending", [*ENDINGS, ".zarr", ".bsp.zarr", ".npz", ".ow", ".mtx", ".mtx.gz", ".tns", ".rb"])
def test_progress_of_every_kind(tmp_path: Path, ending: str) -> None:
    """It never goes back, and ends at the whole: written, read where the kind tells, and written in parts."""
    pytest.importorskip("zarr" if "zarr" in ending else NEEDS.get(ending, "numpy"))
    path, told, t = tmp_path / f"a{ending}", [], ow.asarray(array(), format="csr")
    ow.write(path, t, progress=lambda *x: told.append(x))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] >= t.nse
    quiet = tmp_path / f"b{ending}"
    ow.write(quiet, t)
    np.testing.assert_array_equal(ow.read(quiet).to_numpy(), t.to_numpy())
    told.clear()
    ow.read(path, progress=lambda *x: told.append(x))
    assert told == sorted(told)
    assert all(done <= total for done, total in told)
    if ending in (".npz", ".ow", ".mtx", ".tns", ".rb"):
        assert told[-1][0] == told[-1][1] > 0


def test_anndata_elements_and_rows(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    x, counts, close = array(), array("int32"), array(shape=(7, 7))
    path = tmp_path / "cells.h5ad"
    ow.write(
        path,
        {
            "X": ow.asarray(x, format="csr"), "layers/counts": ow.asarray(counts, format="csc"),
            "obsp/distances": ow.asarray(close, format="coo"), "obsm/pca": np.ones((7, 2)),
        },
    )  # fmt: skip
    np.testing.assert_array_equal(ow.read(path).to_numpy(), x)
    got = ow.read(path, variable="layers/counts")
    assert (got.format, got.dtype) == (ow.format("csc"), "int32")
    np.testing.assert_array_equal(got.to_numpy(), counts)
    np.testing.assert_array_equal(ow.read(path, variable="obsp/distances").to_numpy(), close)
    np.testing.assert_array_equal(ow.read(path, variable="obsm/pca").to_numpy(), np.ones((7, 2)))
    for rows in (slice(2, 5), slice(None, 3), slice(5, None), slice(6, 100), slice(4, 4), slice(9, 12), slice(5, 2)):
        np.testing.assert_array_equal(ow.read(path, rows=rows).to_numpy(), x[rows])
        np.testing.assert_array_equal(ow.read(path, variable="obsm/pca", rows=rows).to_numpy(), np.ones((7, 2))[rows])
    with pytest.raises(ow.UnsupportedError, match="stored by columns"):
        ow.read(path, variable="layers/counts", rows=slice(0, 2))
    with pytest.raises(ow.FileFormatError, match="there is no element 'layers/none'; there are X, layers/counts"):
        ow.read(path, variable="layers/none")
    for bad, error in ((slice(0, 4, 2), TypeError), (5, TypeError), (slice(-3, None), ValueError)):
        with pytest.raises(error, match="rows"):
            ow.read(path, rows=bad)  # type: ignore[arg-type]
    np.savez(tmp_path / "a.npz", x)
    with pytest.raises(ValueError, match="rows= means nothing for npz files"):
        ow.read(tmp_path / "a.npz", rows=slice(0, 2))


def test_anndata_reads_and_writes_them(tmp_path: Path) -> None:
    """The library itself takes what we write, and we read what it writes."""
    anndata = pytest.importorskip("anndata")
    x = array()
    ow.write(tmp_path / "a.h5ad", {"X": ow.asarray(x, format="csr"), "layers/raw": ow.asarray(x * 2, format="csc")})
    theirs = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert theirs.shape == x.shape
    np.testing.assert_array_equal(theirs.X.toarray(), x)
    np.testing.assert_array_equal(theirs.layers["raw"].toarray(), x * 2)
    made = anndata.AnnData(sps.csr_matrix(x), layers={"c": sps.csc_matrix(x + 1)}, obsm={"p": x[:, :2]})
    made.write_h5ad(tmp_path / "b.h5ad", compression="gzip")
    np.testing.assert_array_equal(ow.read(tmp_path / "b.h5ad").to_numpy(), x)
    np.testing.assert_array_equal(ow.read(tmp_path / "b.h5ad", rows=slice(1, 4)).to_numpy(), x[1:4])
    np.testing.assert_array_equal(ow.read(tmp_path / "b.h5ad", variable="layers/c").to_numpy(), x + 1)
    np.testing.assert_array_equal(ow.read(tmp_path / "b.h5ad", variable="obsm/p").to_numpy(), x[:, :2])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"layers/a": np.eye(3)}, "no X among layers/a"),
        ({"X": np.eye(3), "Y": np.eye(3)}, "no place for 'Y'"),
        ({"X": np.eye(3), "layers/a": np.eye(2)}, r"layers/a has shape \(2, 2\)"),
        ({"X": np.ones(3)}, "X has shape"),
        ({"X": ow.asarray(np.eye(3), format="csr") + 1}, "fill value 1"),
    ],
)  # fmt: skip
def test_anndata_that_does_not_fit(tmp_path: Path, parts: dict[str, Any], words: str) -> None:
    pytest.importorskip("h5py")
    with pytest.raises((ow.UnsupportedError, ow.ShapeError), match=words):
        ow.write(tmp_path / "a.h5ad", parts)
    assert not list(tmp_path.iterdir())


def test_broken_elements_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for key, change, words in (
        ("indptr", [0, 5, 2, 3], "falls from 5"), ("indices", [9, 0, 1], "outside"), ("indptr", [0, 1], "does not fit"),
        ("indices", [0.5, 1, 2], "expected integers"), ("data", [[1.0, 2, 3]], "one dimension"),
    ):  # fmt: skip
        path = tmp_path / "a.h5ad"
        ow.write(path, ow.asarray(np.eye(3), format="csr"))
        with h5py.File(path, "a") as file:
            del file["X"][key]
            file["X"][key] = np.array(change)
        with pytest.raises(ow.FileFormatError, match=words):
            ow.read(path)
        with pytest.raises(ow.FileFormatError):
            ow.read(path, rows=slice(0, 3))


def test_tenx_without_a_matrix_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("matrix")["data"] = np.ones(3)
    with pytest.raises(ow.FileFormatError, match="expected a group with data, indices, indptr, shape"):
        ow.read(tmp_path / "a.h5")


def test_tenx_is_read_back_by_its_layout(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    x = array("int32")
    ow.write(tmp_path / "a.h5", ow.asarray(x, format="csr"), compress=True)
    with h5py.File(tmp_path / "a.h5") as file:
        group = file["matrix"]
        theirs = sps.csc_matrix((group["data"][:], group["indices"][:], group["indptr"][:]), tuple(group["shape"][:]))
        assert len(group["barcodes"]) == 5
        assert len(group["features"]["name"]) == 7
    np.testing.assert_array_equal(theirs.toarray(), x)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("kind", [">f8", ">c16"])
def test_petsc_of_others(tmp_path: Path, width: int, kind: str) -> None:
    x = array("complex128" if kind == ">c16" else "float64")
    s = sps.csr_array(x)
    head = np.array([1211216, *s.shape, s.nnz], f">i{width}")
    parts = [head, np.diff(s.indptr).astype(f">i{width}"), s.indices.astype(f">i{width}"), s.data.astype(kind)]
    data = b"".join(p.tobytes() for p in parts)
    for name in ("a.petsc", "unnamed"):
        (tmp_path / name).write_bytes(data)
        np.testing.assert_array_equal(ow.read(tmp_path / name).to_numpy(), x)
    for broken in (data[:-3], data[:20], data + b"x" * 8, data[:7]):
        (tmp_path / "a.petsc").write_bytes(broken)
        with pytest.raises(ow.FileFormatError):
            ow.read(tmp_path / "a.petsc")
    word = f">i{width}"
    for at, number, words in (
        (3, -1, "a dense matrix, which is not read"), (3, -2, "7 x 5 with -2 elements"), (1, -7, "-7 x 5 with"),
        (2, -5, "7 x -5 with"), (4 + 2, -1, "row 2 has -1 elements"), (4, 2**30, "elements by row"),
        (4 + 7, 5, "outside"), (4 + 7, -1, "outside"),
    ):  # fmt: skip
        broken = bytearray(data)
        broken[at * width : (at + 1) * width] = np.array(number, word).tobytes()
        (tmp_path / "a.petsc").write_bytes(broken)
        with pytest.raises(ow.FileFormatError, match=words):
            ow.read(tmp_path / "a.petsc")


def test_petsc_has_no_other_numbers(tmp_path: Path) -> None:
    ow.write(tmp_path / "a.petsc", ow.asarray(np.array([[3, 0]], np.int64), format="csr"))
    assert ow.read(tmp_path / "a.petsc").dtype == "float64"
    with pytest.raises(ow.UnsupportedError, match=r"beyond 2\*\*53"):
        ow.write(tmp_path / "a.petsc", ow.asarray(np.array([[2**60 + 1]]), format="csr"))
    with pytest.raises(ow.ShapeError, match="hold a matrix"):
        ow.write(tmp_path / "a.petsc", ow.asarray(np.ones(3), format="coo"))


def test_parquet_of_others(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pyarrow.table({"row": [0, 2, 2], "col": [1, 0, 0], "weight": [1.5, 2.0, 3.0]}), path)
    np.testing.assert_array_equal(ow.read(path).to_numpy(), [[0, 1.5], [0, 0], [5, 0]])
    for columns, words in (
        ({"row": ["a"], "value": [1.0]}, "expected numbers"), ({"row": [0.5], "value": [1.0]}, "expected indices"),
        ({"row": [-1], "value": [1.0]}, "expected indices"), ({"row": [1, None], "value": [1.0, 2.0]}, "missing"),
        ({"value": [1.0]}, "expected indices, then values"),
    ):  # fmt: skip
        pq.write_table(pyarrow.table(columns), path)
        with pytest.raises(ow.FileFormatError, match=words):
            ow.read(path)
    pq.write_table(pyarrow.table([[1], [2], [1.5]], names=["i", "i", "value"]), path)
    with pytest.raises(ow.FileFormatError, match="columns i, i, value; expected names that are there once"):
        ow.read(path)
    table = pyarrow.table({"value": [1.5, 2.5], "i": [0, 2], "j": [1, 3]})
    for shape in ("[3, 4]", "[3, 9]", f"[{2**62}, 4]"):
        pq.write_table(table.replace_schema_metadata({"openwork_shape": shape}), path)
        assert ow.read(path).shape == tuple(json.loads(shape))
    for shape in (
        "[3, 3]", "[2, 4]", "[3]", "[3, 4, 1]", "[3.0, 4]", "3", "[3, 4", "[true, 4]", f"[{2**62 + 1}, 4]", "{}", "[" * 4000,
    ):  # fmt: skip
        pq.write_table(table.replace_schema_metadata({"openwork_shape": shape}), path)
        with pytest.raises(ow.FileFormatError, match="does not fit coordinates up to"):
            ow.read(path)
    x = ow.asarray(array(shape=(3, 4, 5)), format="csf")
    ow.write(path, x)
    assert pq.read_table(path).column_names == ["i0", "i1", "i2", "value"]
    np.testing.assert_array_equal(ow.read(path).to_numpy(), x.to_numpy())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ow.FileFormatError, match="not a readable Parquet"):
        ow.read(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(NEEDS.get(ending, "numpy"))
    path = tmp_path / f"a{ending}"
    ow.write(path, ow.asarray(np.eye(3), format="csr"))
    before = path.read_bytes()
    kinds: tuple[faults.Kind, ...] = ("write", "fsync", "rename")
    for kind in kinds:
        with faults.injected(faults.nth(kind, 1)), pytest.raises(OSError):
            ow.write(path, ow.asarray(np.ones((3, 3)), format="csr"))
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    ow.write(path, ow.asarray(np.eye(3), format="csr"))
    assert path.read_bytes() == before


def test_an_hdf5_file_with_other_groups_is_not_replaced(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path, t = tmp_path / "a.bsp.h5", ow.asarray(np.eye(3), format="csr")
    for groups in (("layers",), ()):  # another's file, and one of ours with a group in addition
        with h5py.File(path, "a") as file:
            for name in groups or ("other",):
                file.create_group(name)["x"] = [1, 2]
        with pytest.raises(ow.UnsupportedError, match=f"'{(groups or ('other',))[0]}' besides, which would be lost"):
            ow.write(path, t)
        with pytest.raises(ow.UnsupportedError, match="besides"):
            ow.io.write_parts(path, [], (3, 3))
        with h5py.File(path) as file:
            assert file[(groups or ("other",))[0]]["x"][:].tolist() == [1, 2]
        path.unlink()
        ow.write(path, t)
        ow.write(path, t * 2)  # one tensor alone is replaced
    assert ow.read(path).to_numpy().tolist() == (np.eye(3) * 2).tolist()


def test_values_of_binsparse_have_one_dimension(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.bsp.h5"
    ow.write(path, ow.eye(4).asformat("csr"))
    with h5py.File(path, "r+") as file:
        values = file["values"][:]
        del file["values"]
        file["values"] = values.reshape(2, 2)
    with pytest.raises(ow.FileFormatError, match=r"values has shape \(2, 2\); expected one dimension"):
        ow.read(path)


@pytest.mark.thin(12)
@pytest.mark.parametrize("name", ["a.bsp.h5", "a.h5ad", "a.h5"])
@pytest.mark.parametrize("compress", [False, True])
def test_a_wrong_bit_is_an_error_or_nowhere(tmp_path: Path, name: str, compress: bool) -> None:
    """HDF5's own checksums find damage of what a tensor is read from."""
    pytest.importorskip("h5py")
    x = np.arange(1.0, 201.0).reshape(10, 20) * (np.arange(200).reshape(10, 20) % 3 == 0)
    path = tmp_path / name
    ow.write(path, ow.asarray(x, format="csr"), compress=compress)
    whole, found = path.read_bytes(), 0
    texts = whole.find(b"GCOL")  # HDF5 has no checksums of AnnData's texts of any length
    for at in range(0, len(whole), len(whole) // 100):
        if 0 <= texts <= at < texts + 4096:
            continue
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        try:
            np.testing.assert_array_equal(ow.read(path).to_numpy(), x)
        except (ow.FileFormatError, ow.UnsupportedError) as error:
            found += 1
            assert name in str(error)  # noqa: PT017
    assert found > 20


def test_files_under_hdf5_have_the_length_that_was_set(tmp_path: Path) -> None:
    with _HeldErrors(str(tmp_path / "a")) as file:
        for written, length in ((b"0123456789", 4), (b"56", 6), (b"", 9)):
            file.write(written)
            assert file.truncate(length) == length
            assert (file.seek(0, os.SEEK_END), os.path.getsize(tmp_path / "a")) == (length, length)
        assert file.truncate() == 9
        file.error = OSError("no space left")
        assert (file.truncate(2), file.seek(-1, os.SEEK_END), os.path.getsize(tmp_path / "a")) == (2, 1, 9)


def test_damage_of_hdf5_names_the_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("h5py")
    monkeypatch.setattr("openwork.io.containers.hdf5._CHUNK", 8)
    path = tmp_path / "a.bsp.h5"
    ow.write(path, ow.asarray(np.diag(np.arange(1.0, 41.0)), format="csr"))
    whole = path.read_bytes()
    at = whole.index(np.float64(20.0).tobytes())
    path.write_bytes(whole[:at] + b"\1" + whole[at + 1 :])
    with pytest.raises(ow.FileFormatError, match=r"a\.bsp\.h5: /values, chunk 2 \(from 16 on\): the data is corrupt"):
        ow.read(path)


def test_damage_that_is_in_no_chunk_on_its_own() -> None:
    """A dataset without chunks is one; where each chunk is read, the array is named alone."""

    class Item:
        shape, dtype, failed = (4,), "f8", 0

        def __init__(self, chunks: tuple[int, ...] | None, fails: int) -> None:
            self.chunks, self.fails = chunks, fails

        def __getitem__(self, key: Any) -> Any:
            self.failed += 1
            if self.failed <= self.fails:
                raise OSError("no")
            return np.arange(4.0)[key]

    for chunks, words in (
        (None, r"a: /x, chunk 0: the data is corrupt \(no\)"),
        ((2,), "a: /x, chunk 0: the data is corrupt"),
    ):
        with pytest.raises(ow.FileFormatError, match=words):
            Chunked(Item(chunks, 2), "a: /x")[()]
        with pytest.raises(ow.FileFormatError, match=r"a: /x: not readable \(no\)"):
            Chunked(Item(chunks, 1), "a: /x")[1:3]
        assert Chunked(Item(chunks, 0), "a: /x")[1:3].tolist() == [1, 2]


def test_damage_of_parquet_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, values = tmp_path / "a.parquet", np.random.default_rng(0).random(40)
    ow.write(path, ow.asarray(np.diag(values), format="coo"))
    whole = path.read_bytes()
    at = whole.index(values[20].tobytes())
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ow.FileFormatError, match=r"a\.parquet"):
        ow.read(path)
    for shape, checksum in ((b"[40, 41]", parquet._checksum(b"[40, 40]")), (b"[40, 40]", b"00000000")):
        table = parquet._pyarrow(path).parquet.read_table(io.BytesIO(whole))
        metadata = {b"openwork_shape": shape, b"openwork_shape_crc32": checksum}
        parquet._pyarrow(path).parquet.write_table(table.replace_schema_metadata(metadata), path)
        with pytest.raises(ow.FileFormatError, match="not that of its checksum"):
            ow.read(path)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_indices_of_every_width_in_any_order(tmp_path: Path, dtype: str) -> None:
    """Of 32 and 64 bits with a sign they stay; differences of others do not tell that they fall."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file.attrs["encoding-type"] = "anndata"
        x = file.create_group("X")
        x.attrs["encoding-type"], x.attrs["shape"] = "csr_matrix", np.array([2, 6])
        x["indptr"], x["indices"] = np.array([0, 3, 5], dtype), np.array([5, 2, 0, 1, 1], dtype)
        x["data"] = np.arange(1.0, 6)
    t = ow.read(tmp_path / "a.h5ad")
    assert t._storage.crd[1].dtype == (dtype if dtype in ("i4", "i8") else "i4")
    assert "unordered" in str(t.format)
    np.testing.assert_array_equal(t.to_numpy(), [[3, 0, 2, 0, 0, 1], [0, 9, 0, 0, 0, 0]])
