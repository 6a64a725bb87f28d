"""Memory is in proportion to the bytes on disk: bombs of every kind are FileFormatError."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import openwork as ow
import openwork.io as io
from openwork.errors import FileFormatError
from openwork.io.containers import store_header
from openwork.io.shared import limits

BANNER = b"%%MatrixMarket matrix coordinate real general\n9 9 40000000\n"
MIB = 1 << 20


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Fail where the block allocates more than `count` bytes at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < count
    finally:
        tracemalloc.stop()


def bomb(packer: object, filling: bytes, size: int, start: bytes = BANNER) -> bytes:
    """`start`, then `filling` up to `size` bytes, packed block by block."""
    block = filling * (MIB // len(filling))
    out = packer.compress(start)
    for _ in range(size // MIB):
        out += packer.compress(block)
    return out + packer.flush()


def gz() -> object:
    import zlib

    return zlib.compressobj(9, zlib.DEFLATED, 31)


PACKERS = {".gz": gz, ".bz2": bz2.BZ2Compressor, ".xz": lzma.LZMACompressor}


@pytest.mark.thin(33)
@pytest.mark.parametrize(
    "filling", [b"\n", b"% comment\n", b"9 9 1\n", b" "], ids=["ends", "comments", "entries", "line"]
)
@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_streams(tmp_path: Path, ending: str, filling: bytes) -> None:
    path = tmp_path / f"a.mtx{ending}"
    path.write_bytes(bomb(PACKERS[ending](), filling, 24 * MIB))
    with at_most(40 * MIB), pytest.raises(FileFormatError, match=r"unpacks to more than \d+ bytes from \d+"):
        ow.read(path)


def test_the_ratio_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mtx.gz"
    path.write_bytes(bomb(gz(), b"\n", 20 * MIB, BANNER.replace(b"40000000", b"0")))
    with pytest.raises(FileFormatError, match=r"pass max_ratio= \(the default is 64\)"):
        ow.read(path)
    assert ow.read(path, max_ratio=1000).shape == (9, 9)
    monkeypatch.setenv("OPENWORK_READ_RATIO", "1000")
    assert ow.read(path).shape == (9, 9)
    for bad in ("0", "x", "²", "-1", "1.5"):
        monkeypatch.setenv("OPENWORK_READ_RATIO", bad)
        with pytest.raises(ValueError, match="OPENWORK_READ_RATIO must be a whole number"):
            ow.read(path)
    with pytest.raises(ValueError, match="max_ratio must be a whole number from 1 up"):
        ow.read(path, max_ratio=0)
    for bad in (1.5, True, "64"):
        with pytest.raises(TypeError, match="read: max_ratio is an integer"):
            ow.read(path, max_ratio=bad)


def test_gzip_in_gzip_and_streams_that_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx.gz"
    inner = BANNER.replace(b"40000000", b"1") + b"1 1 1\n"
    path.write_bytes(gzip.compress(gzip.compress(inner)))
    with pytest.raises(FileFormatError):
        ow.read(path)
    path.write_bytes(gzip.compress(inner[:30]) + b"\0" * 9 + gzip.compress(inner[30:]) + b"\0")
    assert ow.read(path).nse == 1
    for tail in (b"x", b"\0x", gzip.compress(b"1 1 1\n")[:-1]):
        path.write_bytes(gzip.compress(inner) + tail)
        with pytest.raises(FileFormatError, match=r"a\.mtx\.gz: the compressed stream is truncated or corrupt"):
            ow.read(path)


def test_a_dictionary_of_xz_is_bounded(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    path = tmp_path / "a.mtx.xz"
    path.write_bytes(lzma.compress(BANNER, filters=filters) if os.environ.get("OPENWORK_MUCH_MEMORY") else _wide_xz())
    with pytest.raises(FileFormatError, match="truncated or corrupt"):
        ow.read(path)


def _wide_xz() -> bytes:
    """A stream whose block header claims a dictionary of 4 GiB."""
    import zlib

    raw = bytearray(lzma.compress(b"1 1 1\n", check=lzma.CHECK_CRC32))
    at = raw.index(b"\x21\x01", 12)
    raw[at + 2] = 40
    size = (raw[12] + 1) * 4
    raw[12 + size - 4 : 12 + size] = zlib.crc32(raw[12 : 12 + size - 4]).to_bytes(4, "little")
    return bytes(raw)


CSR = {"format": np.array(b"csr"), "shape": np.array([2, 3]), "indptr": np.array([0, 1, 2])}
CSR |= {"indices": np.array([0, 2]), "data": np.ones(2)}


def archive(path: Path, extra: str, size: int) -> Path:
    """A file of SciPy's in which the array `extra` has `size` zero bytes, deflated."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for key, array in CSR.items():
            if key != extra:
                with out.open(f"{key}.npy", "w") as file:
                    np.lib.format.write_array(file, array)
        with out.open(f"{extra}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|i1", "fortran_order": False, "shape": (size,)})
            for _ in range(size // MIB):
                file.write(bytes(MIB))
    return path


def test_a_member_that_nobody_asked_for_is_not_loaded(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", "other", 128 * MIB)
    with at_most(8 * MIB):
        assert ow.read(path).nse == 2
        assert io.header(path).shape == (2, 3)


@pytest.mark.thin(4)
@pytest.mark.parametrize("key", ["data", "indices", "shape", "format"])
def test_a_member_that_unpacks_too_far(tmp_path: Path, key: str) -> None:
    path = archive(tmp_path / "a.npz", key, 64 * MIB)
    with at_most(8 * MIB), pytest.raises(FileFormatError, match=f"{key}.npy"):
        ow.read(path)


@pytest.mark.thin(10)
@pytest.mark.parametrize("name", ["a.mtx", "a.tns", "a.rb", "a.tri", "a.smtx", "a.sptensor", "a.svm", "a.edgelist"])
@pytest.mark.parametrize("filling", [b"1", b"1 ", b" ", b"-", b"(", b"%"])
def test_long_lines(tmp_path: Path, name: str, filling: bytes) -> None:
    path = tmp_path / name
    starts = {
        "a.mtx": BANNER[:46],
        "a.rb": b"t\n1 1 1 1\n",
        "a.sptensor": b"sptensor\n",
        "a.svm": b"x",
        "a.edgelist": b"x",
    }
    path.write_bytes(starts.get(name, b"") + filling * (MIB // len(filling)))
    with at_most(64 * MIB), pytest.raises(FileFormatError, match=name):
        ow.read(path)


def test_one_long_line_among_many_short_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.rb"
    head = b"t\n9 9 9 9\nrua 2 500000 1 0\n(9999I999) (1I3) (9999I999)\n"
    path.write_bytes(head + b" " * MIB + b"1\n" + b" 1\n" * 300_000)
    with at_most(64 * MIB), pytest.raises(FileFormatError, match=r"a\.rb, line"):
        ow.read(path)


def test_holes_are_not_bytes_on_disk(tmp_path: Path) -> None:
    """On the first file system that has holes: the folder of tests, or the one in memory."""
    for folder in (tmp_path, Path("/dev/shm")):
        if not os.access(folder, os.W_OK):
            continue
        with tempfile.NamedTemporaryFile(suffix=".mtx", dir=folder) as file:
            file.write(BANNER)
            file.truncate(1 << 34)
            if os.stat(file.name).st_blocks * 512 <= MIB:
                with at_most(MIB), pytest.raises(FileFormatError, match="of which only"):
                    ow.read(file.name)
                return
    pytest.skip("no file system with holes")


def test_a_store_of_holes(tmp_path: Path) -> None:
    """Its header, with the checksums of zeros, fits; no buffer of the size that it says is made."""
    size = 256 * MIB
    for folder in (tmp_path, Path("/dev/shm")):
        if not os.access(folder, os.W_OK):
            continue
        with tempfile.TemporaryDirectory(dir=folder, suffix=".ow") as name:
            values = {
                "dtype": "f8", "length": size // 8, "crc32": [zlib.crc32(bytes(store_header.BLOCK))] * (size // store_header.BLOCK)
            }  # fmt: skip
            text = store_header.spelled(ow.format("dense", 1), (size // 8,), "f64", 0.0, {"values": values})
            (Path(name) / store_header.HEADER).write_bytes(text)
            with (Path(name) / "values.bin").open("wb") as file:
                file.truncate(size)
                if os.fstat(file.fileno()).st_blocks * 512 > MIB:
                    continue
            with at_most(MIB), pytest.raises(FileFormatError, match="of which only"):
                ow.read(name)
            return
    pytest.skip("no file system with holes")


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mtx")
    (tmp_path / "b.mtx").symlink_to("/dev/zero")
    (tmp_path / "c.npz").symlink_to("/dev/zero")
    for name in ("a.mtx", "b.mtx", "c.npz"):
        with pytest.raises(FileFormatError, match="not a regular file"):
            ow.read(tmp_path / name)
    (tmp_path / "d.mtx").mkdir()
    with pytest.raises(IsADirectoryError):
        ow.read(tmp_path / "d.mtx")


def test_allowance() -> None:
    assert limits.allowed(0) == limits.FLOOR == 16 * MIB
    assert limits.allowed(1000) == limits.FLOOR + 64_000
    assert limits.allowed(1000, 2) == limits.FLOOR + 2000
