"""MATLAB files through our own scanner: equal to SciPy's reading of good files; what is broken is FileFormatError."""

from __future__ import annotations

import random
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import FileFormatError, UnsupportedError

sparse = pytest.importorskip("scipy.sparse")
scipy_io = pytest.importorskip("scipy.io")

rng = np.random.default_rng(0)
S = sparse.random_array((30, 20), density=0.1, rng=rng, format="csc")
CASES = {
    "sparse": S,
    "complex": S * (1 + 2j),
    "logical": S.astype(bool),
    "empty": sparse.csc_array((4, 0)),
    "zeros": sparse.csc_array((4, 3)),
    "dense": np.arange(6.0).reshape(2, 3),
    "cube": np.arange(24.0).reshape(2, 3, 4),
    "single": np.ones((2, 2), np.float32),
    "complex64": np.ones((2, 2), np.complex64) * 1j,
    "int8": np.array([[-5, 7]], np.int8),
    "uint64": np.array([[2**64 - 1]], np.uint64),
    "small": np.array([[3.0]]),
    "none": np.zeros((0, 3)),
}


def value(found: object) -> np.ndarray:
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_as_scipy_reads_it(tmp_path: Path, name: str, compressed: bool) -> None:
    path = tmp_path / "a.mat"
    other = {"title": "text", "cells": np.array([1, "x"], object), "B": CASES[name]}
    scipy_io.savemat(path, other, do_compression=compressed)
    t = ow.read(path, variable="B")
    expected = scipy_io.loadmat(path)["B"]
    assert (t.shape, t.dtype) == (expected.shape, "bool" if name == "logical" else expected.dtype)
    np.testing.assert_array_equal(t.to_numpy(), value(expected))
    assert (t.format.name == "csc") == hasattr(expected, "toarray")


@pytest.mark.parametrize("name", ["sparse", "complex", "dense", "dense complex", "single", "zeros", "int8"])
def test_version_4(tmp_path: Path, name: str) -> None:
    own = {"int8": np.array([[-5, 7]], np.int16), "dense complex": np.array([[1 - 2j, 3j, 0], [5, -1.5j, 2]])}
    matrix = own[name] if name in own else CASES[name]
    scipy_io.savemat(tmp_path / "a.mat", {"x": "text", "A": matrix}, format="4")
    expected = value(scipy_io.loadmat(tmp_path / "a.mat")["A"])
    t = ow.read(tmp_path / "a.mat")
    assert t.shape == expected.shape
    np.testing.assert_array_equal(t.to_numpy(), expected)


@pytest.mark.parametrize("compressed", [False, True])
def test_structures(tmp_path: Path, compressed: bool) -> None:
    problem = {"name": "HB/west", "A": S, "aux": {"b": np.ones((3, 1)), "nodes": {"x": np.eye(2)}}}
    scipy_io.savemat(tmp_path / "a.mat", {"Problem": problem}, do_compression=compressed)
    np.testing.assert_array_equal(ow.read(tmp_path / "a.mat").to_numpy(), S.toarray())
    t = ow.read(tmp_path / "a.mat", variable="Problem.aux.nodes.x")
    np.testing.assert_array_equal(t.to_numpy(), np.eye(2))
    with pytest.raises(FileFormatError, match=r"no variable 'x'; variables: Problem\.A"):
        ow.read(tmp_path / "a.mat", variable="x")


def element(kind: int, data: bytes, order: str = "<") -> bytes:
    side = "little" if order == "<" else "big"
    return kind.to_bytes(4, side) + len(data).to_bytes(4, side) + data + bytes(-len(data) % 8)


def made(order: str = "<", **parts: object) -> bytes:
    """A file with one sparse 3x2 matrix `A`, in which `parts` replace what is right."""
    u4, i4, f8 = order + "u4", order + "i4", order + "f8"
    right = {
        "flags": (6, np.array([5, 2], u4)), "dims": (5, np.array([3, 2], i4)), "name": (1, np.array([65], "u1")),
        "rows": (5, np.array([0, 2], i4)), "columns": (5, np.array([0, 1, 2], i4)), "real": (9, np.array([1.5, 258], f8)),
    }  # fmt: skip
    used = [part for part in {**right, **parts}.values() if part is not None]
    body = b"".join(element(kind, data.tobytes(), order) for kind, data in used)
    mark = b"\0\1IM" if order == "<" else b"\1\0MI"
    return b"MATLAB 5.0 MAT-file".ljust(124) + mark + element(14, body, order)


@pytest.mark.parametrize("order", ["<", ">"])
def test_byte_orders(tmp_path: Path, order: str) -> None:
    (tmp_path / "a.mat").write_bytes(made(order))
    np.testing.assert_array_equal(ow.read(tmp_path / "a.mat").to_numpy(), [[1.5, 0], [0, 0], [0, 258]])


def test_narrow_storage_is_of_the_class(tmp_path: Path) -> None:
    (tmp_path / "a.mat").write_bytes(made(real=(2, np.array([1, 3], "u1")), columns=(2, np.array([0, 1, 2], "u1"))))
    t = ow.read(tmp_path / "a.mat")
    assert t.dtype == "float64"
    assert t.to_numpy().sum() == 4


I4 = "<i4"


def dense(flags: int, kind: int, numbers: Any, **parts: object) -> dict[str, object]:
    """The parts of a dense 1x2 array of a class."""
    none = {"rows": None, "columns": None}
    array = {
        "flags": (6, np.array([flags, 0], "<u4")),
        "dims": (5, np.array([1, 2], I4)),
        "real": (kind, np.array(numbers)),
    }
    return {**none, **array, **parts}


BROKEN = [
    ({"rows": (5, np.array([0, 3], I4))}, "row indices: an index is outside 0..2: 3"),
    ({"rows": (5, np.array([0, -1], I4))}, "row indices: an index is outside 0..2: -1"),
    ({"rows": (9, np.array([0.5, 1]))}, "row indices of data type 9; expected numbers"),
    ({"columns": (5, np.array([0, 1], I4))}, "2 column pointers; expected 3"),
    ({"columns": (5, np.array([0, 1, 9], I4))}, "the pointers end with 9, for 2 indices and 2 values"),
    ({"columns": (5, np.array([0, 1, -1], I4))}, "the pointers end with -1"),
    ({"columns": (5, np.array([0, 3, 2], I4))}, "falls from 3 to 2"),
    ({"columns": (5, np.array([1, 1, 2], I4))}, "it begins with 1; expected 0"),
    ({"columns": (9, np.array([0, 1, 2.0]))}, "column pointers of data type 9; expected numbers"),
    ({"dims": (5, np.array([3, -2], I4))}, "dimensions (3, -2)"),
    ({"dims": (5, np.array([3], I4))}, "dimensions (3,)"),
    ({"dims": (5, np.array([3, 2**31 - 1], I4))}, "3 column pointers; expected 2147483648"),
    ({"flags": (6, np.array([99, 2], "<u4"))}, "an array of class 99, which there is not"),
    ({"flags": (6, np.array([6, 2], "<u4"))}, "the real part has 2 numbers; expected 6"),
    ({"flags": (6, np.array([5 | 0x800, 2], "<u4"))}, "expected a tag of 8 bytes, got 0"),
    ({"flags": (5, np.array([5, 2], "<u4"))}, "expected the flags of an array"),
    ({"real": (14, np.array([1.5, 2]))}, "the real part of data type 14; expected numbers"),
    ({"real": (9, np.array([1, 2, 3], "u1"))}, "no multiple of 8"),
    ({"name": (9, np.array([65.0]))}, "a name of data type 9"),
    ({"dims": (5, np.array([3, 2, 1], I4))}, "a sparse matrix of shape (3, 2, 1); expected two dimensions"),
    ({"flags": (6, np.array([5 | 0x800, 2], "<u4")), "imaginary": (9, np.ones(3))}, "2 real and 3 imaginary parts"),
    (dense(8, 9, [1.0, 127.5]), "the real part has numbers that are not of int8"),
    (dense(8, 9, [1.0, 128.0]), "the real part has numbers that are not of int8"),
    (dense(9, 3, np.array([1, -1], "<i2")), "the real part has numbers that are not of uint8"),
    (dense(8 | 0x800, 1, np.array([1, 2], "i1"), imaginary=(1, np.array([1, 2], "i1"))), "complex integers of int8"),
    (dense(6 | 0x800, 9, [1.0, 2.0], imaginary=(9, np.ones(3))), "the imaginary part has 3 numbers; expected 2"),
]


@pytest.mark.parametrize(("parts", "message"), BROKEN)
def test_what_is_broken(tmp_path: Path, parts: dict[str, object], message: str) -> None:
    (tmp_path / "a.mat").write_bytes(made(**parts))
    with pytest.raises(FileFormatError) as caught:
        ow.read(tmp_path / "a.mat")
    place, _, said = str(caught.value).partition(": ")
    assert message in said
    assert re.fullmatch(re.escape(f"{tmp_path / 'a.mat'}, byte ") + r"\d+", place)


@pytest.mark.ci
def test_elements_that_are_not_what_stands_there(tmp_path: Path) -> None:
    path, good = tmp_path / "a.mat", made()
    flags = (
        element(6, np.array([2, 0], "<u4").tobytes()) + element(5, np.array([1, 1], I4).tobytes()) + element(1, b"s")
    )
    fields = element(5, np.array([2], I4).tobytes()) + element(1, b"a\0")
    packed_all = zlib.compress(good[128:])
    for raw, words in (
        (good[:124] + b"\0\2IM" + good[128:], "byte 124: not a readable MATLAB file: version 0x0200; expected 0x0100"),
        (good[:124] + b"\1\0XX" + good[128:], "byte 126: not a readable MATLAB file: expected the mark IM or MI"),
        (good + element(9, bytes(8)), f"byte {len(good)}: an element of data type 9; expected a variable"),
        (
            good[:128] + element(14, flags + fields + element(9, bytes(8))),
            "the field a of data type 9; expected an array",
        ),
        (good[:128] + element(15, packed_all[:-6]), "the compressed variable has no end"),
        (good[:128] + element(15, packed_all[:-4] + b"abcd"), "the compressed variable is corrupt"),
    ):
        path.write_bytes(raw)
        with pytest.raises(FileFormatError, match=re.escape(words)):
            ow.read(path)
    scipy_io.savemat(path, {"A": np.zeros((1500, 1500))}, do_compression=True)
    assert ow.read(path, max_ratio=1000).shape == (1500, 1500)
    with pytest.raises(FileFormatError, match="unpacks to more than"):
        ow.read(path, max_ratio=1)


@pytest.mark.parametrize(("extents", "fits"), [((3, 2), True), ((3, 2.5), False), ((-3, 2), False), ((3, np.nan), False),
                                               ((2, 2), False), ((3, 1), False), ((3, 2**31), False), ((np.inf, 2), False)])  # fmt: skip
def test_version_4_sparse_extents(tmp_path: Path, extents: tuple[float, float], fits: bool) -> None:
    table = np.array([[1, 1, 5.0], [3, 2, 7.0], [*extents, 0]])
    head = np.array([2, *table.shape, 0, 2], "<i4").tobytes() + b"A\0"
    (tmp_path / "a.mat").write_bytes(head + table.astype("<f8").tobytes("F"))
    if fits:
        np.testing.assert_array_equal(ow.read(tmp_path / "a.mat").to_numpy(), [[5, 0], [0, 0], [0, 7]])
        return
    with pytest.raises(FileFormatError, match=r"a sparse matrix of shape|an index that is no whole number"):
        ow.read(tmp_path / "a.mat")


@pytest.mark.parametrize("extents", [(0, 3), (3, 0), (100, 2), (2, 2**31 - 1)])
def test_version_4_sparse_without_elements(tmp_path: Path, extents: tuple[int, int]) -> None:
    head = np.array([2, 1, 3, 0, 2], "<i4").tobytes() + b"A\0"
    (tmp_path / "a.mat").write_bytes(head + np.array([*extents, 0], "<f8").tobytes())
    t = ow.read(tmp_path / "a.mat")
    assert (t.shape, t.nse) == (extents, 0)
    (tmp_path / "a.mat").write_bytes(np.array([0, 1, 1, 0, 0], "<i4").tobytes() + np.ones(1).tobytes())
    with pytest.raises(FileFormatError, match=r"byte 0: a variable of shape \(1, 1\) with a name of 0 bytes"):
        ow.read(tmp_path / "a.mat")


@pytest.mark.parametrize("size", [4, 20, 127])
def test_a_file_that_ends_inside_the_header(tmp_path: Path, size: int) -> None:
    (tmp_path / "a.mat").write_bytes(made()[:size])
    with pytest.raises(FileFormatError, match=f"byte {size}: not a readable MATLAB file: it ends inside the header"):
        ow.read(tmp_path / "a.mat")


@pytest.mark.parametrize(("size", "names", "right"), [(5, 10, True), (5, 7, False), (0, 4, False), (4097, 4097, False)])
def test_names_of_fields_have_the_length_that_is_said(tmp_path: Path, size: int, names: int, right: bool) -> None:
    fields = b"aaaaa" + b"b".ljust(max(names - 5, 0), b"\0")
    head = element(6, np.array([2, 0], "<u4").tobytes()) + element(5, np.array([1, 1], I4).tobytes()) + element(1, b"s")
    body = head + element(5, np.array([size], I4).tobytes()) + element(1, fields[:names]) + 2 * made()[128:]
    (tmp_path / "a.mat").write_bytes(made()[:128] + element(14, body))
    if right:
        for field in ("aaaaa", "b"):
            assert ow.read(tmp_path / "a.mat", variable=f"s.{field}").shape == (3, 2)
        return
    with pytest.raises(FileFormatError, match=r"a\.mat, byte \d+: the names of the fields have no length that fits"):
        ow.read(tmp_path / "a.mat")


def test_structures_nested_too_deeply(tmp_path: Path) -> None:
    body = made()[136:]
    for _ in range(2000):
        flags = element(6, np.array([2, 0], "<u4").tobytes()) + element(5, np.array([1, 1], I4).tobytes())
        body = (
            flags + element(1, b"s") + element(5, np.array([2], I4).tobytes()) + element(1, b"a\0") + element(14, body)
        )
    raw = made()[:128] + element(14, body)
    (tmp_path / "a.mat").write_bytes(raw)
    with pytest.raises(FileFormatError, match="structures more than 32 deep"):
        ow.read(tmp_path / "a.mat")


@pytest.mark.ci
def test_bombs(tmp_path: Path) -> None:
    head = made()[136:184]
    for inner in (
        element(14, bytes(1 << 26)),
        element(14, head + bytes(1 << 26)),
        b"\x0e\0\0\0\xff\xff\xff\xff" + head,
    ):
        (tmp_path / "a.mat").write_bytes(made()[:128] + element(15, zlib.compress(inner)))
        with pytest.raises(FileFormatError):
            ow.read(tmp_path / "a.mat")


def outcome(path: Path) -> str:
    try:
        t = ow.read(path)
    except (FileFormatError, UnsupportedError):
        return "refused"
    assert np.asarray(t.to_numpy()).shape == t.shape
    return "read"


def mutated(raw: bytes, chance: random.Random) -> bytes:
    out = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(min(len(out), 600) if chance.random() < 0.7 else len(out))
        kind = chance.randrange(4)
        if kind == 0:
            out[at] = chance.choice((0, 1, 2, 5, 14, 15, 127, 128, 255, chance.randrange(256)))
        elif kind == 1:
            out[at : at + 4] = chance.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 8, 16)).to_bytes(4, "little")
        elif kind == 2:
            del out[at : at + chance.randint(1, 9)]
        else:
            out = out[: max(at, 1)] if chance.random() < 0.3 else out[:at] + bytes(chance.randint(1, 9)) + out[at:]
        out = out or bytearray(b"\0")
    return bytes(out)


def packed(raw: bytes) -> bytes:
    """The file with its variables compressed after the mutation, so that the checksum is right."""
    return raw[:128] + element(15, zlib.compress(raw[128:])) if len(raw) > 128 else raw


def fuzz(folder: Path, count: int, seed: int) -> dict[str, int]:
    chance, found = random.Random(seed), {"refused": 0, "read": 0}
    files = []
    for version in ("4", "5"):
        for matrix in (S, S * 1j, np.eye(3)):
            scipy_io.savemat(folder / "good.mat", {"A": matrix}, format=version)
            files.append((folder / "good.mat").read_bytes())
    scipy_io.savemat(folder / "good.mat", {"Problem": {"A": S, "x": np.eye(2), "s": "text"}})
    files.append((folder / "good.mat").read_bytes())
    scipy_io.savemat(folder / "good.mat", {"A": S}, do_compression=True)
    files.append((folder / "good.mat").read_bytes())
    for _ in range(count):
        raw = mutated(chance.choice(files), chance)
        raw = packed(raw) if chance.random() < 0.3 and raw[:6] == b"MATLAB" else raw
        (folder / "a.mat").write_bytes(raw)
        found[outcome(folder / "a.mat")] += 1
    return found


@pytest.mark.ci
def test_mutations(tmp_path: Path) -> None:
    assert fuzz(tmp_path, 300, seed=0)["refused"] > 50


@pytest.mark.slow
def test_many_mutations(tmp_path: Path) -> None:
    assert fuzz(tmp_path, 20_000, seed=1)["refused"] > 5000


def hdf5(path: Path, change: str = "") -> Path:
    """A MATLAB 7.3 file, with one thing wrong."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, matrix in (("A", S), ("L", S.astype(bool))):
            group = file.create_group(name)
            group.attrs["MATLAB_class"] = np.bytes_("logical" if name == "L" else "double")
            rows = -1 if change == "rows" else 3 if change == "few rows" else 30
            group.attrs["MATLAB_sparse"] = np.int64(rows) if change else np.uint64(rows)
            indices = S.indices + (0.5 if change == "fraction" else 0)
            pointers = S.indptr[::-1] if change == "pointers" else S.indptr
            if change == "two dimensions":
                indices = indices.reshape(-1, 1)
            if change != "no jc":
                group["jc"] = pointers.astype(np.uint64) if not change else pointers
            group["ir"] = indices.astype(np.uint64) if not change else indices
            if change == "virtual":
                layout = h5py.VirtualLayout(S.data.shape, "f8")
                layout[:] = h5py.VirtualSource("other.h5", "x", S.data.shape)
                group.create_virtual_dataset("data", layout)
            elif change == "external":
                group.create_dataset("data", S.data.shape, "f8", external=[("/etc/passwd", 0, 480)])
            elif change == "link":
                group["data"] = h5py.ExternalLink("other.h5", "x")
            elif change == "huge":
                group.create_dataset("data", (10**12,), "f8", chunks=(10**6,), compression="gzip")
            else:
                group["data"] = matrix.data.astype(np.uint8) if name == "L" else S.data
        dense = file.create_dataset("D", data=np.arange(6.0).reshape(3, 2))
        dense.attrs["MATLAB_class"] = np.bytes_("double")
        problem = file.create_group("Problem")
        problem.attrs["MATLAB_class"] = np.bytes_("struct")
        problem["A"] = file["A"]
    raw = path.read_bytes()
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + raw[128:])
    return path


def test_version_73(tmp_path: Path) -> None:
    path = hdf5(tmp_path / "a.mat")
    t = ow.read(path)
    assert t.format.name == "csc"
    np.testing.assert_array_equal(t.to_numpy(), S.toarray())
    logical = ow.read(path, variable="L")
    assert logical.dtype == "bool"
    np.testing.assert_array_equal(logical.to_numpy(), S.toarray() != 0)
    np.testing.assert_array_equal(ow.read(path, variable="D").to_numpy(), np.arange(6.0).reshape(3, 2).T)


@pytest.mark.parametrize(
    "change",
    ["rows", "few rows", "fraction", "pointers", "two dimensions", "no jc", "virtual", "external", "link", "huge"],
)
def test_version_73_that_is_broken(tmp_path: Path, change: str) -> None:
    with pytest.raises(FileFormatError, match=r"a\.mat"):
        ow.read(hdf5(tmp_path / "a.mat", change), variable="A")


def test_version_73_of_nothing_and_of_complex_numbers(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.mat"
    pair = np.dtype([("real", "f8"), ("imag", "f8")])
    with h5py.File(path, "w") as file:
        for name, kind, shape in (
            ("E", "double", [0, 3]),
            ("F", "logical", [2, 0, 4]),
            ("G", "double", [2, 3]),
            ("H", "double", []),
        ):
            item = file.create_dataset(name, data=np.array(shape, np.uint64))
            item.attrs["MATLAB_class"], item.attrs["MATLAB_empty"] = np.bytes_(kind), np.uint8(1)
        file["Z"] = np.array([[(1, 2), (3, 4)]], pair)
        file["T"] = np.array([[(1, 2, 3)]], [(n, "f8") for n in "xyz"])
        file["U"] = np.array([[(1, 2)]], [("real", "i8"), ("imag", "i8")])
        file["N"] = h5py.Empty("f8")
        for name in "ZTUN":
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
        for name, jc in (("S", [0, 0, 0]), ("V", [0, 0, 1]), ("W", [])):
            group = file.create_group(name)
            group.attrs["MATLAB_class"], group.attrs["MATLAB_sparse"] = np.bytes_("logical"), np.uint64(5)
            group["jc"] = np.array(jc, np.uint64)
        group = file.create_group("s")
        for _ in range(40):
            group.attrs["MATLAB_class"] = np.bytes_("struct")
            group = group.create_group("s")
    with pytest.raises(FileFormatError, match="structures more than 32 deep"):
        ow.read(path, variable="E")
    with h5py.File(path, "a") as file:
        del file["s"]
    for name, shape, dtype in (("E", (0, 3), "float64"), ("F", (2, 0, 4), "bool"), ("S", (5, 2), "bool")):
        t = ow.read(path, variable=name)
        assert (t.shape, t.dtype, t.to_numpy().any()) == (shape, dtype, False)
    assert (ow.read(path, variable="S").format.name, ow.read(path, variable="S").nse) == ("csc", 0)
    np.testing.assert_array_equal(ow.read(path, variable="Z").to_numpy(), [[1 + 2j], [3 + 4j]])
    for name, words in (
        ("G", "marked as empty, with the shape"), ("H", "marked as empty"), ("T", "expected numbers"), ("U", "expected numbers"),
        ("N", "N has no shape"), ("V", "3 column pointers, and neither"), ("W", "0 column pointers, and neither"),
    ):  # fmt: skip
        with pytest.raises(FileFormatError, match=words):
            ow.read(path, variable=name)


def test_version_73_names_each_array_once(tmp_path: Path) -> None:
    """Neither what `#refs#` holds nor a second link to an array is a variable."""
    h5py = pytest.importorskip("h5py")
    path = hdf5(tmp_path / "a.mat")
    with h5py.File(path, "r+") as file:
        refs = file.create_group("#refs#")
        refs.attrs["MATLAB_class"] = np.bytes_("struct")
        refs.create_dataset("x", data=np.eye(2)).attrs["MATLAB_class"] = np.bytes_("double")
    with pytest.raises(FileFormatError) as caught:
        ow.read(path, variable="x")
    assert "#refs#" not in str(caught.value)
    assert "Problem.A" not in str(caught.value)


def test_hdf5_from_the_first_byte_is_version_73(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file.create_dataset("D", data=np.eye(3)).attrs["MATLAB_class"] = np.bytes_("double")
    assert ow.read(tmp_path / "a.mat").to_numpy().sum() == 3


def test_names_that_collections_use_come_before_others(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy_io.savemat(path, {"B": 2 * S, "A": S, "C": 3 * S})
    np.testing.assert_array_equal(ow.read(path).to_numpy(), S.toarray())
    scipy_io.savemat(path, {"B": 2 * S, "A": S, "Problem": {"A": 5 * S}})
    np.testing.assert_array_equal(ow.read(path).to_numpy(), 5 * S.toarray())
    scipy_io.savemat(path, {"B": 2 * S, "D": np.eye(2)})
    np.testing.assert_array_equal(ow.read(path).to_numpy(), 2 * S.toarray())
    scipy_io.savemat(path, {"B": 2 * S, "C": S})
    with pytest.raises(FileFormatError, match="several variables; variables: B, C"):
        ow.read(path)


@pytest.mark.parametrize("table", [np.zeros((0, 3)), np.ones((2, 2)), np.ones((2, 3)) * 1j])
def test_version_4_sparse_tables_that_are_none(tmp_path: Path, table: np.ndarray[Any, Any]) -> None:
    parts = (table.real, table.imag) if table.dtype.kind == "c" else (table,)
    head = np.array([2, *table.shape, len(parts) - 1, 2], "<i4").tobytes() + b"A\0"
    (tmp_path / "a.mat").write_bytes(head + b"".join(x.astype("<f8").tobytes("F") for x in parts))
    with pytest.raises(FileFormatError, match=r"a sparse matrix in a table of shape"):
        ow.read(tmp_path / "a.mat")


def test_version_4_that_ends_before_its_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy_io.savemat(path, {"A": np.ones((3, 4))}, format="4")
    path.write_bytes(path.read_bytes()[:-16])
    with pytest.raises(FileFormatError, match=r"a\.mat.*: a variable of 96 bytes, of which 80 are there"):
        ow.read(path)
