"""Binsparse files in parts, and files as arrays of Dask in blocks of rows, there and back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import openwork as ow
from openwork.io.out_of_core import conversion

RNG = np.random.default_rng(5)
DENSE = RNG.integers(1, 9, (23, 17)) * (RNG.random((23, 17)) < 0.3) * 0.5
DENSE[4:9] = 0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "OVERHEAD", 0)
    monkeypatch.setattr("openwork.io.out_of_core.dataset_parts._CHUNK", 16)
    monkeypatch.setattr("openwork.io.containers.zarr._CHUNK", 16)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def end_of(name: str) -> str:
    pytest.importorskip("h5py" if name.endswith("h5") else "zarr")
    return name


@pytest.mark.parametrize("name", ["b.bsp.h5", "b.bsp.zarr"])
def test_binsparse_in_parts(tmp_path: Path, name: str) -> None:
    path = tmp_path / end_of(name)
    ow.write(tmp_path / "a.ow", ow.asarray(DENSE, format="csr"))
    for format, back in (("csr", "csc"), ("coo", "dcsr")):
        ow.convert(tmp_path / "a.ow", path, format=format, memory=3000)
        t = ow.read(path)
        assert t.format == ow.format(format)
        np.testing.assert_array_equal(t.to_numpy(), DENSE)
        ow.convert(path, tmp_path / "c.ow", format=back, memory=3000)
        np.testing.assert_array_equal(ow.open(tmp_path / "c.ow", verify=True).to_numpy(), DENSE)
    with pytest.raises(ow.UnsupportedError, match="binsparse has no format"):
        ow.convert(tmp_path / "a.ow", path, format="bsr(2, 3)")
    assert ow.read(path).format == ow.format("coo")


@pytest.mark.parametrize("name", ["a.bsp.h5", "a.bsp.zarr"])
def test_rows_of_nothing_and_rows_that_are_outside(tmp_path: Path, name: str) -> None:
    pytest.importorskip("dask.array")
    from openwork.dask import from_file

    path = tmp_path / end_of(name)
    dense = np.zeros((300, 5))
    dense[[7, 299], [3, 4]] = 2, 3
    for format in ("csr", "coo"):
        ow.write(path, ow.asarray(dense, format=format))
        x = from_file(path, rows=100)
        for k in range(3):
            block = x.blocks[k].compute(scheduler="sync")
            assert (block.format, block.nse, block.dtype) == (ow.format(format), [1, 0, 1][k], "float64")
            np.testing.assert_array_equal(block.to_numpy(), dense[100 * k : 100 * k + 100])
        ow.convert(path, tmp_path / "b.ow", format="csc", memory=2000)
        np.testing.assert_array_equal(ow.read(tmp_path / "b.ow").to_numpy(), dense)
    if name == "a.bsp.h5":
        import h5py

        with h5py.File(path, "a") as file:
            column = file["indices_1"][:]
            del file["indices_1"]
            file["indices_1"] = column + 1
        with pytest.raises(ow.FileFormatError, match="coordinates of rows 200 to 300 outside of the shape"):
            from_file(path, rows=100).blocks[2].compute(scheduler="sync")
        with pytest.raises(ow.FileFormatError, match="coordinates outside of the shape"):
            ow.convert(path, tmp_path / "c.ow", format="csc", memory=2000)


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", ["a.ow", "a.npz", "a.bsp.h5", "a.bsp.zarr"])
def test_arrays_of_dask(tmp_path: Path, name: str) -> None:
    pytest.importorskip("dask.array")
    from openwork.dask import from_file, to_file

    path = tmp_path / (end_of(name) if "bsp" in name else name)
    for format in ("csr",) if name == "a.npz" else ("coo", "csr"):
        ow.write(path, ow.asarray(DENSE, format=format))
        x = from_file(path, rows=6)
        assert x.chunks == ((6, 6, 6, 5), (17,))
        assert x.blocks[1].compute(scheduler="sync").format == ow.format(format)
        np.testing.assert_array_equal((x @ np.ones(17)).compute(scheduler="sync"), DENSE.sum(1))
    out = tmp_path / name.replace("a.", "b.")
    to_file(x * 2, out, format="csr")
    np.testing.assert_array_equal(ow.read(out).to_numpy(), 2 * DENSE)
    assert from_file(out).chunks == ((23,), (17,))
    ow.write(path, ow.asarray(DENSE, format="csc"))
    with pytest.raises(ow.UnsupportedError, match="is not stored row after row"):
        from_file(path)
    if name == "a.ow":
        ow.write(path, ow.asarray(DENSE, format="csr"))
        content = bytearray((path / "values.bin").read_bytes())
        content[8] ^= 1
        (path / "values.bin").write_bytes(content)
        with pytest.raises(ow.FileFormatError, match=r"values\.bin, block 0 .*corrupt"):
            from_file(path).compute(scheduler="sync")
        assert (from_file(path, verify=False).compute(scheduler="sync").to_numpy() != DENSE).sum() == 1
    with pytest.raises(ValueError, match="rows of a block are 1 or more"):
        from_file(out, rows=0)


@pytest.mark.ci
def test_damage_of_a_mapped_file_is_an_error_with_the_rows_or_the_block(tmp_path: Path) -> None:
    """Tasks read files that nobody has checked: a kernel must not follow what is damaged there."""
    pytest.importorskip("dask.array")
    from openwork.dask import from_file

    path, found = tmp_path / "a.ow", 0
    for format in ("csr", "coo", "dcsr", "csr(nonunique, unordered)"):
        ow.write(path, ow.asarray(DENSE, format=format))
        for place in (p for p in path.iterdir() if p.name != "header.json"):
            whole = place.read_bytes()
            for at in range(3, len(whole), len(whole) // 3):
                place.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
                try:
                    from_file(path, rows=5, verify=False).compute(scheduler="sync")
                except ow.FileFormatError as error:
                    found += 1
                    assert "a.ow" in str(error)  # noqa: PT017
                with pytest.raises(ow.FileFormatError, match=r"a.ow/\w+.bin, block 0"):
                    ow.convert(path, tmp_path / "b.ow", format="csc")
            place.write_bytes(whole)
    assert found > 10


@pytest.mark.thin(12)
@pytest.mark.parametrize(
    ("name", "format"),
    [
        *(("a.ow", f) for f in ("csr", "coo", "dcsr", "bsr(2, 3)", "ell(17)", "bitmap", "csr(nonunique, unordered)")),
        *(("a.bsp.h5", f) for f in ("csr", "coo", "dcsr")),
        ("a.bsp.zarr", "csr"),
        *(pytest.param("a.bsp.zarr", f, marks=pytest.mark.slow) for f in ("coo", "dcsr")),
    ],
)
def test_damage_is_an_error_of_the_task_that_reads_it(
    tmp_path: Path, name: str, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever bit is wrong, the result is right or an error that names the block; rows elsewhere are read."""
    pytest.importorskip("dask.array")
    from openwork.dask import from_file

    if name == "a.bsp.zarr":
        monkeypatch.setattr("openwork.io.containers.zarr._CHUNK", 64)
    for module in ("containers.store.BLOCK", "containers.store_header.BLOCK", "containers.hdf5._CHUNK"):
        monkeypatch.setattr(f"openwork.io.{module}", 16)
    path = tmp_path / (end_of(name) if "bsp" in name else name)
    ow.write(path, ow.asarray(DENSE, format=format))
    named = {"a.ow": r"a\.ow/\w+\.bin, block \d+", "a.bsp.h5": r"a\.bsp\.h5", "a.bsp.zarr": r"a\.bsp\.zarr"}[name]
    places = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and p.suffix != ".json")
    found = 0
    for place in places[:: max(1, len(places) // 4)]:
        whole = place.read_bytes()
        for at in range(len(whole) // 3, len(whole), max(1, len(whole) // (2 if len(places) > 1 else 9))):
            place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            try:
                back = from_file(path, rows=5).compute(scheduler="sync").to_numpy()
                np.testing.assert_array_equal(back, DENSE)
            except ow.FileFormatError as error:
                found += 1
                assert re.search(named, str(error))  # noqa: PT017
        place.write_bytes(whole)
    assert found > 2
    if name == "a.ow" and "nonunique" not in format:  # formats whose rows are a range of every buffer
        place = path / "values.bin"
        place.write_bytes(place.read_bytes()[:-1] + b"?")
        x = from_file(path, rows=6)
        np.testing.assert_array_equal(x[:6].compute(scheduler="sync").to_numpy(), DENSE[:6])
        with pytest.raises(ow.FileFormatError, match=r"values.bin, block"):
            x[18:].compute(scheduler="sync")


def test_to_file_takes_arrays_of_dask(tmp_path: Path) -> None:
    with pytest.raises(ow.DTypeError, match="to_file: expected an array of Dask; got: Tensor"):
        ow.dask.to_file(ow.eye(3), tmp_path / "t.ow")


@pytest.mark.parametrize("outer", ["dense", "compressed"])
def test_rows_of_a_format_with_gaps(tmp_path: Path, outer: str) -> None:
    """Loose rows may stand anywhere in the buffers below: all of these are compared with their checksums."""
    pytest.importorskip("dask.array")
    from openwork.dask import from_file

    ow.write(tmp_path / "a.ow", ow.asarray(DENSE, format=f"(i, j) -> (i : {outer}, j : loose_compressed)"))
    for rows in (2, 5):
        got = from_file(tmp_path / "a.ow", rows=rows).compute(scheduler="sync")
        np.testing.assert_array_equal(got.to_numpy(), DENSE)
