"""Malformed input made here: an error with a line number, memory in proportion to the file."""

from __future__ import annotations

import contextlib
import gzip
import io as streams
import re
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openwork.io as io
from openwork.errors import FileFormatError, UnsupportedError

BANNER = "%%MatrixMarket matrix coordinate real general\n"
HUGE = {
    "entries.mtx": BANNER + "1000000000 1000000000 1000000000\n1 1 1\n",
    "array.mtx": "%%MatrixMarket matrix array real general\n1000000000 1000000000\n1\n",
    "symmetric.mtx": "%%MatrixMarket matrix array real symmetric\n3000000000 3000000000\n1\n",
    "tensor.ttx": "%%MatrixMarket tensor array real general\n99999999 99999999 99999999\n1\n",
    "triplet.tri": "1000000000 1000000000 1000000000\n0 0 1\n",
    "dense.tri": "1000000000 1000000000\n1\n",
    "head.sptensor": "sptensor\n3\n9 9 9\n1000000000\n0 0 0 1\n",
    "extended.tns": "# extended FROSTT format\n2 1000000000\n9 9\n1 1 1\n",
    "head.smtx": "1000000000, 1000000000, 1000000000\n0 1\n",
    "docword.x.txt": "9\n9\n1000000000\n1 1 1\n",
    "rows.rb": "t\n 3 1 1 1\nrua 1000000000 1000000000 1000000000 0\n(26I3) (40I2) (26I3)\n  1  2\n 1\n  5\n",
    "wide.rb": "t\n 3 1 1 1\nrua 2 2 1 0\n(9999I999) (9999I999) (9999I999)\n  1  2\n 1\n  5\n",
}


@pytest.mark.parametrize("name", HUGE)
def test_declared_sizes_do_not_allocate(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(HUGE[name])
    message = f"{re.escape(name)}, line [0-9]+"
    with pytest.raises(FileFormatError, match=message):
        io.read(path)  # compiles the scanner, which takes memory of its own in the worker that comes first
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=message):
            io.read(path)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


MESSAGES = [
    ("a.mtx", BANNER + "2 2 1\n1 1 1\n2 2 2\n", "line 4: more entries than the 1 that are declared"),
    ("a.mtx", BANNER + "2 2 2\n1 1 1\n\n", "line 5: the file ends after 1 of 2 entries"),
    ("a.mtx", BANNER + "2 2 1\n1 1.0 1\n", "line 3: expected an integer index of at most 18 digits, got '1.0'"),
    ("a.mtx", BANNER + "2 2 1\n1 -1 1\n", "line 3: expected an integer index of at most 18 digits, got '-1'"),
    ("a.mtx", BANNER + "2 2 1\n1 1 1_0\n", "line 3: expected a number, got '1_0'"),
    ("a.mtx", BANNER + "2 2 1\n1 1 0x10\n", "line 3: expected a number, got '0x10'"),
    ("a.mtx", BANNER + "2 2\n1 1 1\n", "line 2: expected the sizes (rows columns entries), got 2 numbers"),
    ("a.mtx", BANNER + "2 two 1\n1 1 1\n", "line 2: expected an integer size, got 'two'"),
    ("a.mtx", BANNER.replace("real", "integer") + "2 2 1\n1 1 1.5\n", "an integer of at most 64 bits, got '1.5'"),
    ("a.mtx", BANNER.replace("real", "integer") + f"2 2 1\n1 1 {2**64}\n", "an integer of at most 64 bits"),
    (
        "a.mtx",
        BANNER.replace("real general", "integer skew-symmetric") + "%%openwork dtype bool\n2 2 1\n2 1 1\n",
        "line 3: a skew-symmetric matrix needs signed values, got bool",
    ),
    ("a.mtx", BANNER + "%%openwork dtype q7\n2 2 1\n1 1 1\n", "unknown dtype 'q7'"),
    ("a.mtx", "", 'line 1: expected the banner "%%MatrixMarket matrix coordinate real general"'),
    ("a.tns", "", "the file holds no entries"),
    ("a.tns", "5\n", "line 1: expected coordinates and a value on each line, got one field"),
    ("a.tns", "1 1 1\n2 2\n", "line 2: expected 3 fields per line (2 indices, a value), got 2"),
    (
        "a.sptensor",
        "sptensor\n2\n3 3\n1\n1 1 5\n",
        "line 5: cannot tell whether indices start at 0 or 1: neither 0 nor a dimension's size occurs\n",
    ),
    ("a.tri", "2 2 1 x\n0 0 1\n", "line 1: expected an integer stype, got 'x'"),
    ("a.svm", "1 2:3\n1 2:3 4\n", "line 2: expected a label, then pairs index:value"),
    ("a.svm", "1 2:3\n1 1.5:3\n", "line 2: expected an index that is a whole number, got '1.5'"),
    ("a.smtx", "2, 2, 1\n0 1 0\n0\n", "line 2: row pointers must rise from 0 to 1"),
    ("a.smtx", "2, 2, 1\n0 1 1\n2\n", "line 3: column index 2 is outside 0..1"),
    ("a.rb", "t\n1 1 1 1\nxyz 1 1 1 0\n\n", "line 3: expected a matrix type such as RUA or PSA, got 'xyz'"),
    (
        "a.rb",
        "t\n1 1 1 1\nrua 1 1 1 0\n(3Q2) (3I2) (3I2)\n",
        "line 4: expected a Fortran format such as (16I5), got (3Q2)",
    ),
    ("what.ever", "hello world\n", "neither its name nor its beginning says what it is"),
    ("what.ever", "hello world\n", ".edgelist .edges .rb"),  # of Rutherford and Boeing's many endings one
]


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("name", "text", "message"), MESSAGES)
def test_messages(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FileFormatError) as caught:
        io.read(tmp_path / name)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_message_in_full(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text(BANNER + "% note\n3 3 2\n1 1 1\n2 0 1\n")
    with pytest.raises(FileFormatError) as caught:
        io.read(tmp_path / "a.mtx")
    assert str(caught.value) == (
        f"{tmp_path / 'a.mtx'}, line 5: index 0 in column 2 is outside 1..3\n"
        "  2 0 1\n"
        "    ^\n"
        "  help: for a zero-based file pass base=0"
    )


SAMPLES = {
    "a.mtx": (BANNER + "3 3 2\n1 1 1.5\n3 2 -2e-3\n").encode(),
    "a.tns": b"1 1 1 1.5\n3 2 1 -2\n",
    "a.tri": b"3 3 2 -1\n0 0 1\n2 1 5\n",
    "a.sptensor": b"sptensor\n2\n3 3\n2\n0 1 5\n1 1 2\n",
    "a.svm": b"1 1:2 3:4\n-1 2:1\n",
    "a.smtx": b"2, 3, 2\n0 1 2\n0 2\n",
    "a.rb": b"t\n 3 1 1 1\nrua 2 2 2 0\n(26I3) (40I2) (26I3)\n  1  2  3\n 1 2\n  5  6\n",
}


@given(st.data())
def test_damaged_files_never_crash(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)))
    raw = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"9" * 12, b"-"])
        )
        raw = raw or bytearray(b"1")
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(bytes(raw))
    with contextlib.suppress(FileFormatError, UnsupportedError):
        assert io.read(path).ndim >= 1


def test_truncated_and_corrupt_compression(tmp_path: Path) -> None:
    packed = gzip.compress((BANNER + "9 9 1\n1 1 1\n").encode() * 50)
    for name, content in (("cut.mtx.gz", packed[:40]), ("bad.mtx.gz", packed[:30] + b"\0" * 8 + packed[38:])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match=f"{re.escape(name)}: the compressed stream is truncated or corrupt"):
            io.read(tmp_path / name)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        io.read(tmp_path / "nothing.mtx")


def test_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='symmetry must be "expand" or "keep", got \'x\''):
        io.read(tmp_path / "a.mtx", symmetry="x")
    with pytest.raises(ValueError, match="base must be 0 or 1, got 2"):
        io.read(tmp_path / "a.mtx", base=2)


def npy(array: np.ndarray, shape: str | None = None, pickle: bool = False) -> bytes:
    stream = streams.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=pickle)
    raw = stream.getvalue()
    old = re.search(rb"'shape': \([^)]*\)", raw)
    assert old is not None
    return raw if shape is None else raw.replace(old[0], f"'shape': {shape}".encode().ljust(len(old[0])))


CSR = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 3]),
    "indptr": np.array([0, 1, 2], np.int32),
    "indices": np.array([0, 2], np.int32),
    "data": np.array([1.0, 2.0]),
}


def save(path: Path, **members: bytes | None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for key in {**CSR, **members}:
            raw = members[key] if key in members else npy(CSR[key])
            if raw is not None:
                archive.writestr(f"{key}.npy", raw)
    return path


BAD_NPZ = [
    ({"data": npy(np.ones(2), "(10**9,)".replace("10**9", "1000000000"))}, "declares 8000000000 bytes"),
    ({"data": npy(np.array([{}, []], object), pickle=True)}, "holds Python objects, which are never loaded"),
    ({"data": b"not an array at all"}, "is not an array of format"),
    ({"indptr": None}, "the array 'indptr' is missing"),
    ({"indptr": npy(np.array([0, 5, 2], np.int32))}, "indptr of length 3 does not fit"),
    ({"indptr": npy(np.array([0, 2], np.int32))}, "indptr of length 2 does not fit"),
    ({"indices": npy(np.array([0, 3], np.int32))}, "an index is outside 0..2"),
    ({"indices": npy(np.array([-1, 2], np.int32))}, "an index is outside 0..2"),
    ({"format": npy(np.array(b"xyz"))}, "unknown format 'xyz'"),
    ({"openwork_format": npy(np.array("(i, j) -> (i : nothing)"))}, "nothing"),
]


@pytest.mark.parametrize(("members", "message"), BAD_NPZ)
def test_bad_npz(tmp_path: Path, members: dict[str, bytes | None], message: str) -> None:
    assert io.read(save(tmp_path / "good.npz")).nse == 2
    with pytest.raises(FileFormatError) as caught:
        io.read(save(tmp_path / "bad.npz", **members))
    assert message in str(caught.value)


def test_npz_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\3\4 and then nothing")
    with pytest.raises(FileFormatError, match=r"not a readable \.npz"):
        io.read(tmp_path / "a.npz")
