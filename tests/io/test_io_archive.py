"""`.npz`: what is not asked for is not loaded, what does not fit is a FileFormatError with the member's name."""

from __future__ import annotations

import contextlib
import io as streams
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.errors import FileFormatError

CSR = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 3]),
    "indptr": np.array([0, 1, 2], np.int32),
    "indices": np.array([0, 2], np.int32),
    "data": np.array([1.0, 2.0]),
}
COO = {"format": np.array(b"coo"), "shape": np.array([2, 3]), "row": np.array([0, 1]), "col": np.array([0, 2])}
COO["data"] = CSR["data"]
ND = {"format": np.array(b"coo"), "shape": np.array([2, 3, 1]), "coords": np.array([[0, 1], [0, 2], [0, 0]])}
ND["data"] = CSR["data"]
DIA = {"format": np.array(b"dia"), "shape": np.array([2, 3]), "offsets": np.array([0, 1]), "data": np.ones((2, 3))}
BSR = {**CSR, "format": np.array(b"bsr"), "shape": np.array([2, 6]), "data": np.ones((2, 1, 2))}


def npy(array: np.ndarray) -> bytes:
    stream = streams.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def save(path: Path, parts: dict[str, object], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for key, part in parts.items():
            if part is not None:
                archive.writestr(f"{key}.npy", part if isinstance(part, bytes) else npy(np.asarray(part)))
    return path


def own(tmp_path: Path, format: str) -> dict[str, object]:
    """The members of a file of ours."""
    ow.write(tmp_path / "own.npz", ow.asarray(np.arange(6.0).reshape(2, 3)).asformat(format))
    with np.load(tmp_path / "own.npz") as found:
        return dict(found)


def refused(path: Path, message: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        ow.read(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


SCIPY = [
    (CSR, {"indices": np.array([0.9, 1.0])}, "indices.npy has values of float64; expected integers"),
    (CSR, {"indices": np.array([0, 1 + 0j])}, "indices.npy has values of complex128; expected integers"),
    (CSR, {"indices": np.array([True, False])}, "indices.npy has values of bool; expected integers"),
    (CSR, {"indptr": np.array([0.0, 1, 2])}, "indptr.npy has values of float64; expected integers"),
    (CSR, {"shape": np.array([2.5, 3])}, "shape.npy has values of float64; expected integers"),
    (CSR, {"shape": np.array([-2, 3])}, "shape.npy is (-2, 3); expected 1 to 64 extents, none negative"),
    (CSR, {"shape": np.array(6)}, "shape.npy has shape (); expected 1 dimension"),
    (CSR, {"shape": np.array([[2, 3]])}, "shape.npy has shape (1, 2); expected 1 dimension"),
    (CSR, {"shape": np.array([2, 3, 1])}, "a csr matrix has two dimensions, got shape (2, 3, 1)"),
    (CSR, {"indices": np.array([[0, 2]])}, "indices.npy has shape (1, 2); expected 1 dimension"),
    (CSR, {"indices": np.array(0)}, "indices.npy has shape (); expected 1 dimension"),
    (CSR, {"data": np.ones((2, 1))}, "data.npy has shape (2, 1); a csr matrix has 1 dimensions there"),
    (CSR, {"data": np.array(["a", "b"])}, "data.npy has values of <U1; expected numbers"),
    (CSR, {"data": np.ones(2, np.longdouble)}, "expected bool, integers, floats or complex"),
    (CSR, {"data": np.zeros(2, "M8[s]")}, "data.npy: not the header of an array of numbers"),
    (CSR, {"data": np.zeros(2, [("a", "f8")])}, "data.npy: not the header of an array of numbers"),
    (CSR, {"data": np.array([None, 1])}, "data.npy holds Python objects, which are never loaded"),
    (CSR, {"format": np.array([b"csr", b"csc"])}, "format.npy is not one text, its shape is (2,)"),
    (CSR, {"format": np.array(3)}, "format.npy has values of int64; expected text"),
    (CSR, {"format": np.array("c" * 5000)}, "format.npy has 20000 bytes; expected 16384 at most"),
    (CSR, {"indptr": np.array([1, 1, 2])}, "indptr of length 3 does not fit: it begins with 1; expected 0"),
    (CSR, {"indptr": np.array([0, 1, 3])}, "indptr of length 3 does not fit: it ends with 3; expected 2"),
    (CSR, {"indptr": np.array([0, 1, 2**63], np.uint64)}, "indptr.npy holds 9223372036854775808"),
    (CSR, {"indptr": np.array([0, 2**62, 2])}, "it falls from 4611686018427387904 to 2 at 2"),
    (CSR, {"openwork_format": np.array("(" * 3000)}, "bad.npz"),
    (BSR, {"shape": np.array([2, 5])}, "blocks of shape (1, 2) do not divide a matrix of shape (2, 5)"),
    (BSR, {"data": np.ones((2, 0, 2))}, "blocks of shape (0, 2) do not divide"),
    (COO, {"row": np.array([0.5, 1])}, "row.npy has values of float64; expected integers"),
    (COO, {"col": np.array([0, 1.5])}, "col.npy has values of float64; expected integers"),
    (COO, {"col": np.array([0, 3])}, "the coordinates do not fit shape (2, 3)"),
    (COO, {"row": np.array([0])}, "1 coordinates do not fit data of shape (2,)"),
    (ND, {"coords": np.array([[0, 1], [0, 2]])}, "coordinates in 2 dimensions do not fit shape (2, 3, 1)"),
    (ND, {"coords": np.array([[0, 1], [0, 2], [0, 0.5]])}, "coords.npy has values of float64; expected integers"),
    (DIA, {"offsets": np.array([0, 0.5])}, "offsets.npy has values of float64; expected integers"),
    (DIA, {"offsets": np.array([0, 0])}, "offsets.npy has 2 offsets, which do not fit"),
    (DIA, {"data": np.ones(6)}, "which do not fit data of shape (6,)"),
    (CSR, {"format": np.array(b"c" * 5000)}, "format.npy has 5000 characters; expected 4096 at most"),
]


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("good", "bad", "message"), SCIPY)
def test_members_that_do_not_fit(tmp_path: Path, good: dict, bad: dict, message: str) -> None:
    assert ow.read(save(tmp_path / "good.npz", good)).ndim >= 2
    refused(save(tmp_path / "bad.npz", {**good, **bad}), message)


OWN = [
    ({"pos_x": np.array([0])}, "pos_x.npy is an array that no level"),
    ({"crd_0": np.array([0])}, "crd_0.npy is an array that no level"),
    ({"pos_1": np.array([0.0, 2, 5])}, "pos_1.npy has values of float64; expected integers"),
    ({"crd_1": np.array([1.5, 2, 0, 1, 2])}, "crd_1.npy has values of float64; expected integers"),
    ({"crd_1": None}, "the array 'crd_1' is missing"),
    ({"openwork": np.array(1.5)}, "the version of the layout, is 1.5"),
    ({"openwork": np.array(-1)}, "the version of the layout, is -1"),
    ({"openwork": np.array(0)}, "the version of the layout, is 0"),
    ({"openwork": np.array([1, 1])}, "openwork.npy is not one number"),
    ({"scalar": np.array("f16")}, "values.npy has shape (5,) and dtype float64; expected one dimension of float16"),
    ({"scalar": np.array("q7")}, "scalar.npy names 'q7'; known: "),
    ({"values": np.ones((5, 1))}, "values.npy has shape (5, 1)"),
    ({"fill_value": np.array(1j)}, "fill_value.npy holds 1j, which is not of float64"),
    ({"format": np.array("(i, j) -> (i : dense, j : wobbly)")}, "wobbly"),
    ({"openwork_masked": np.array("yes")}, "openwork_masked is 'yes'"),
    (
        {"fill_value": np.array(0.5), "scalar": np.array("i64"), "values": np.arange(5)},
        "holds 0.5, which is not of int64",
    ),
    (
        {"fill_value": np.array(300), "scalar": np.array("u8"), "values": np.ones(5, np.uint8)},
        "holds 300, which is not of uint8",
    ),
    (
        {"fill_value": np.array(np.nan), "scalar": np.array("i64"), "values": np.arange(5)},
        "holds nan, which is not of int64",
    ),
]


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize(("bad", "message"), OWN)
def test_members_of_ours_that_do_not_fit(tmp_path: Path, bad: dict, message: str) -> None:
    good = own(tmp_path, "(i, j) -> (i : dense, j : compressed(unordered))")
    good = {k: v for k, v in good.items() if k not in ("indptr", "indices", "data", "_is_array", "openwork_format")}
    levels = {"pos_1": np.array([0, 2, 5]), "crd_1": np.array([1, 2, 0, 1, 2]), "values": np.arange(1.0, 6)}
    good |= {"openwork": np.array(1), "scalar": np.array("f64"), "fill_value": np.array(0.0), **levels}
    good["format"] = np.array("(i, j) -> (i : dense, j : compressed(unordered))")
    assert ow.read(save(tmp_path / "good.npz", good)).nse == 5
    refused(save(tmp_path / "bad.npz", {**good, **bad}), message)


def test_bits_that_are_neither_0_nor_1(tmp_path: Path) -> None:
    parts = own(tmp_path, "(i, j) -> (i : dense, j : bitmap)")
    parts["crd_1"] = npy(parts["crd_1"])[:-1] + b"\2"
    refused(save(tmp_path / "bad.npz", parts), "crd_1.npy holds truth values that are neither 0 nor 1")
    for bits in (np.ones((2, 3), bool), np.ones(6, np.int8)):
        parts["crd_1"] = bits
        refused(save(tmp_path / "bad.npz", parts), "expected the bits of a level")
    parts |= {"openwork": np.array(2)}
    with pytest.raises(ow.UnsupportedError, match="layout 2, this version reads up to 1"):
        ow.read(save(tmp_path / "later.npz", parts))


HEADERS = [
    ("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }", "data.npy has values of <U0"),
    ("{'descr': '<S0', 'fortran_order': False, 'shape': (1000000000000,), }", "data.npy has values of |S0"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", "declares 8000000000000 bytes"),
    ("{'descr': '|b1', 'fortran_order': False, 'shape': (99999999999999999999,), }", "has an impossible shape"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999), }", "has an impossible shape"),
    ("{'descr': '<U999999999', 'fortran_order': False, 'shape': (1,), }", "data.npy"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 300 + ")" * 300 + "}", "not the header"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2, 3)", "not the header of an array"),
    ("{'descr': '<f8', 'fortran_order': 1, 'shape': (2,)}", "not the header of an array"),
    ("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "not the header of an array"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': (1,)}", "not the header of an array"),
    ("{'descr': '<f8', 'fortran_order': False}", "not the header of an array"),
    ("{'descr': (2,), 'fortran_order': False, 'shape': '<f8'}", "not the header of an array"),
    ("{'descr': '<f8' 'fortran_order': False, 'shape': (2,)}", "not the header of an array"),
    ("__import__('os').system('true')", "not the header of an array"),
    ("{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}", "data.npy"),
    ("", "not the header of an array"),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("header", "message"), HEADERS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_absurd_headers(tmp_path: Path, header: str, message: str, version: int) -> None:
    raw = header.encode().ljust(117) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(raw))
    data = b"\x93NUMPY" + bytes([version, 0]) + size + raw + np.ones(2).tobytes()
    refused(save(tmp_path / "bad.npz", {**CSR, "data": data}), message)


def test_headers_of_every_version_are_read(tmp_path: Path) -> None:
    for version in ((1, 0), (2, 0), (3, 0)):
        stream = streams.BytesIO()
        np.lib.format.write_array(stream, np.array([1.0, 2.0]), version=version)
        assert ow.read(save(tmp_path / "a.npz", {**CSR, "data": stream.getvalue()})).nse == 2
    for bad in (
        b"\x93NUMPY\0\0",
        b"\x93NUMPY\4\0",
        b"\x93NUMPX\1\0",
        b"",
        b"\x93NUMPY\1\0\xff\xff",
        b"\x93NUMPY\2\0" + b"\xff" * 4,
    ):
        refused(save(tmp_path / "a.npz", {**CSR, "data": bad}), "data.npy")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path: Path, method: int) -> None:
    refused(save(tmp_path / "a.npz", CSR, method), "expected one that is stored or deflated")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_twice_encrypted_or_corrupt(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", CSR)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.npy", npy(np.ones(2)))
    refused(path, "data.npy is there twice")
    raw = bytearray(save(path, CSR).read_bytes())
    for at in (raw.rfind(b"PK\1\2") + 8, raw.rfind(b"PK\3\4") + 6):
        raw[at] |= 1
    path.write_bytes(raw)
    refused(path, "data.npy is encrypted; expected one that is stored or deflated")
    raw = save(path, CSR).read_bytes()
    path.write_bytes(raw.replace(np.array([1.0, 2.0]).tobytes(), np.array([1.0, 3.0]).tobytes()))
    refused(path, "data.npy is truncated or corrupt (Bad CRC-32")


def test_every_byte_flipped(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", CSR)
    raw, whole = path.read_bytes(), ow.read(path).to_numpy()
    for at in range(0, len(raw), 5):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 255]) + raw[at + 1 :])
        with contextlib.suppress(FileFormatError):
            np.testing.assert_array_equal(ow.read(path).to_numpy(), whole)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("said", [1, 3])
def test_members_of_other_lengths_than_the_directory_says(tmp_path: Path, method: int, said: int) -> None:
    """The header of the array and the directory agree; of the two elements some are not there, or not told."""
    head = npy(np.zeros(said))[: -8 * said]
    raw = bytearray(save(tmp_path / "a.npz", {**CSR, "data": head + np.ones(2).tobytes()}, method).read_bytes())
    for mark, at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        at += raw.rfind(mark)
        raw[at : at + 4] = struct.pack("<I", len(head) + 8 * said)
    (tmp_path / "a.npz").write_bytes(raw)
    refused(tmp_path / "a.npz", "ends after 16 of 24 bytes" if said == 3 else "data.npy is truncated or corrupt")


def test_a_masked_number_of_another_format(tmp_path: Path) -> None:
    for format, values in (("coo", [2.0]), ("(i) -> (i : bitmap)", [2.0, 3.0]), ("(i) -> (i : bitmap)", [2.0])):
        m = ow.masked_tensor(np.array(values), np.ones(len(values), bool)).asformat(format)
        ow.write(tmp_path / "m.npz", m)
        with np.load(tmp_path / "m.npz") as found:
            parts = dict(found)
        assert ow.read(save(tmp_path / "a.npz", parts)).shape == m.shape
        path = save(tmp_path / "a.npz", {**parts, "openwork_masked": np.array("number")})
        if format == "coo" or len(values) == 2:
            refused(path, f"a masked number of shape ({len(values)},), in format ")
        else:
            assert (ow.read(path).shape, ow.read(path).item()) == ((), 2.0)


def test_indices_of_two_widths(tmp_path: Path) -> None:
    parts = {**COO, "row": np.array([0, 1], np.int32), "col": np.array([0, 2], np.int64)}
    np.testing.assert_array_equal(ow.read(save(tmp_path / "a.npz", parts)).to_numpy(), [[1, 0, 0], [0, 0, 2]])


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i8", ">u2", ">c16"])
def test_big_endian_arrays(tmp_path: Path, dtype: str) -> None:
    parts = {**CSR, "data": np.array([1, 258]).astype(dtype)}
    parts |= {k: CSR[k].astype(CSR[k].dtype.newbyteorder(">")) for k in ("shape", "indptr", "indices")}
    t = ow.read(save(tmp_path / "a.npz", parts))
    assert t.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(t.to_numpy(), [[1, 0, 0], [0, 0, 258]])


@pytest.mark.thin(6)
@pytest.mark.parametrize("shape", [(6, 6), (4, 7), (7, 4), (1, 5), (5, 1)])
@pytest.mark.parametrize("width", [0, -1, 2])
def test_diagonals_of_scipy(tmp_path: Path, shape: tuple[int, int], width: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    offsets = [2, -1, 0, -3, 30]
    data = np.arange(1.0, 1 + 5 * (shape[1] + width)).reshape(5, -1)
    a = sparse.dia_array((data, offsets), shape=shape)
    sparse.save_npz(tmp_path / "a.npz", a)
    t = ow.read(tmp_path / "a.npz")
    assert t.format == ow.format("dia", 2)
    assert t.format.name == "dia"
    np.testing.assert_array_equal(t.to_numpy(), a.toarray())
    ow.write(tmp_path / "b.npz", t)
    back = sparse.load_npz(tmp_path / "b.npz")
    assert back.format == "dia"
    np.testing.assert_array_equal(back.toarray(), a.toarray())
    assert ow.read(tmp_path / "b.npz").format == t.format


def test_few_diagonals_of_large_matrices_of_scipy(tmp_path: Path) -> None:
    """What is mostly outside, or not there, takes no memory for the shape."""
    sparse = pytest.importorskip("scipy.sparse")
    n = 1 << 40
    for offsets, places in (([], []), ([0], [(0, 0), (1, 1)]), ([-3], [(3, 0), (4, 1)]), ([2, 0], [(0, 0), (1, 1)])):
        a = sparse.dia_array((np.arange(1.0, 1 + 2 * len(offsets)).reshape(len(offsets), 2), offsets), shape=(n, n))
        sparse.save_npz(tmp_path / "a.npz", a)
        t = ow.read(tmp_path / "a.npz").asformat("coo")
        assert t.shape == (n, n)
        assert [tuple(int(c) for c in x) for x in t.indices().T] == places


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", ["dia", "(i, j) -> (j - i : compressed, j : range)"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bool"])
def test_diagonals_of_ours_for_scipy(tmp_path: Path, format: str, dtype: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = (np.arange(30).reshape(5, 6) % 4 == 1).astype(dtype)
    t = ow.asarray(dense, format="coo").asformat(format)
    ow.write(tmp_path / "a.npz", t)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), dense)
    back = ow.read(tmp_path / "a.npz")
    assert (back.format, back.dtype) == (t.format, t.dtype)
    np.testing.assert_array_equal(back.to_numpy(), dense)


def test_short_diagonals_of_a_long_matrix(tmp_path: Path) -> None:
    parts = {**DIA, "shape": np.array([10**12, 10**12]), "offsets": np.array([10**11, -5])}
    t = ow.read(save(tmp_path / "a.npz", parts))
    assert (t.shape, t.nse) == ((10**12, 10**12), 3)
    assert [int(t.crd(0)[k]) for k in range(3)] == [5, 6, 7]


def test_arrays_by_columns_are_read_by_columns(tmp_path: Path) -> None:
    blocks = sp.bsr_array(np.arange(36.0).reshape(6, 6), blocksize=(2, 3))
    np.savez(
        tmp_path / "a.npz", data=np.asfortranarray(blocks.data), indices=blocks.indices, indptr=blocks.indptr,
        shape=blocks.shape, format=np.array(b"bsr"),
    )  # fmt: skip
    np.testing.assert_array_equal(ow.read(tmp_path / "a.npz").to_numpy(), blocks.toarray())
