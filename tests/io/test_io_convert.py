"""`convert` and `write_parts`: the tensor that `asformat` gives, from runs of a few elements too; nothing is left behind."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.faults import injected, nth
from openwork.format.named import coo
from openwork.io import parts, write_parts
from openwork.io.out_of_core import conversion
from openwork.io.out_of_core.external_sort import ExternalSort

RNG = np.random.default_rng(3)
DENSE = RNG.integers(1, 9, (23, 17)) * (RNG.random((23, 17)) < 0.3) * 0.5
DENSE[4:15] = 0
DENSE[2] = 1.5
LOOSE_ROWS = "(i, j) -> (i : dense, j : loose_compressed)"
LOOSE = coo(2, unique=False, ordered=False)
WRITTEN = (
    "csr", "csc", "coo", "dcsc", "bsr(2, 3)", "dense_f", "(i, j) -> (j - i : compressed, i : compressed)", "bitmap",
    "dia", "ell(17)", "nm(9, 9)", "(i, j) -> (j : dense, i // 8 : dense, i % 8 : structured(7, 8))",
    "(i, j) -> (i : compressed, j : bitmap)", "(i, j) -> (i : ell(23), j : compressed)",
)  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the memory is for elements, pieces are short, and nothing waits for a disk."""
    monkeypatch.setattr(conversion, "OVERHEAD", 0)
    monkeypatch.setattr("openwork.io.out_of_core.text_parts._PIECE", 200)
    monkeypatch.setattr("openwork.io.out_of_core.level_writer._STEP", 37)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def matrix(format: str = "csr") -> ow.Tensor:
    return ow.asarray(DENSE, format=format)


def same(path: Path, want: ow.Tensor) -> None:
    got = ow.open(path, verify=True)
    assert (got.format, got.shape, got.dtype, got.nse) == (want.format, want.shape, want.dtype, want.nse)
    np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())


@pytest.mark.thin(8)
@pytest.mark.parametrize("source", ["csr", "csc", "dia", "bitmap", "ell(17)", "nm(9, 9)", "bsr(2, 3)"])
def test_padded_formats_in_parts(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every buffer is that of `asformat`, whatever the parts; nothing is read whole."""
    monkeypatch.setattr(conversion, "_whole", None)
    for fill in (0, 1.5):
        t = ow.add(matrix(source), fill) if fill else matrix(source)
        ow.write(tmp_path / "a.ow", t)
        roomy = source not in ("dia", "nm(9, 9)")  # which store zeros too, more than 7 of 8
        for target in (*(x for x in WRITTEN[7:] if roomy or "(7, 8)" not in x), "csr"):
            want = t.asformat(target)
            ow.convert(tmp_path / "a.ow", tmp_path / "b.ow", format=target, memory=1500)
            same(tmp_path / "b.ow", want)
            for one, other in zip(ow.open(tmp_path / "b.ow")._storage.buffers, want._storage.buffers, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "format",
    ["(i, j) -> (i : ell(23), j : ell(17))", "(i, j) -> (i : bitmap, j : ell(17))", "(i, j) -> (i : ell(23), j : bitmap)",
     "(i, j) -> (i : ell(20), j : dense)", "(i, j) -> (i : compressed, j : ell(17))",
     "(i, j) -> (i : dense, j // 4 : dense, j % 4 : ell(4))"],
)  # fmt: skip
def test_parts_of_two_padded_levels(format: str) -> None:
    """What is padded in either level is no element."""
    x = DENSE[:, :17].copy()
    x[5:9] = 0
    t = ow.asarray(x, format="coo").asformat(format)
    for memory in (300, 10**6):
        got, count = np.zeros(x.shape), 0
        for (rows, columns), values in parts(t, memory):
            count += values.size
            assert min(rows.min(initial=0), columns.min(initial=0)) == 0
            np.add.at(got, (rows, columns), values)
        np.testing.assert_array_equal(got, x)
        assert count == t.nse


@pytest.mark.ci
def test_slots_and_disks_that_are_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ow.write(tmp_path / "a.ow", matrix())
    for format in ("ell(3)", "nm(2, 9)"):
        with pytest.raises(ow.FormatError, match=r"has \d+ elements or more\n  expected: at most \d, as level"):
            ow.convert(tmp_path / "a.ow", tmp_path / "b.ow", format=format, memory=1500)
        assert os.listdir(tmp_path) == ["a.ow"]
    free = shutil.disk_usage(tmp_path)._replace(free=2000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: free)
    for format in ("dia", "bitmap"):
        with pytest.raises(ow.SizeError, match=r"positions of .*\n  expected: 2000 bytes at most"):
            ow.convert(tmp_path / "a.ow", tmp_path / "b.ow", format=format, memory=1500)
        assert os.listdir(tmp_path) == ["a.ow"]
    for format in ("dia", "bitmap"):
        room = 2000
        while True:  # a disk with just the bytes that the last refusal asked for, until it has enough
            monkeypatch.setattr(shutil, "disk_usage", lambda folder, room=room: free._replace(free=room))
            try:
                ow.convert(tmp_path / "a.ow", tmp_path / "b.ow", format=format, memory=1500)
            except ow.SizeError as error:
                asked = int(re.findall(r"take (\d+) bytes", str(error))[0])
                assert asked > room
                room = asked
            else:
                break
        np.testing.assert_array_equal(ow.read(tmp_path / "b.ow").to_numpy(), matrix().to_numpy())


@pytest.mark.thin(2)
@pytest.mark.parametrize("memory", [3000, 1 << 20])
def test_stores_to_formats(tmp_path: Path, memory: int) -> None:
    sources = ("csr", "csc", "coo", "bsr(2, 3)", "dense", "bitmap", "dia", "ell(17)")
    for k, format in enumerate(sources):
        t = matrix(format)
        ow.write(tmp_path / "a.ow", t)
        for target in (WRITTEN[k % len(WRITTEN)], WRITTEN[(k + 3) % len(WRITTEN)]):
            ow.convert(tmp_path / "a.ow", tmp_path / "b.ow", format=target, memory=memory)
            same(tmp_path / "b.ow", t.asformat(target))
    assert sorted(os.listdir(tmp_path)) == ["a.ow", "b.ow"]


def test_to_npz_and_to_formats_that_are_made_whole(tmp_path: Path) -> None:
    ow.write(tmp_path / "a.npz", matrix())
    ow.convert(tmp_path / "a.npz", tmp_path / "b.npz", format="csc", memory=600)
    same(tmp_path / "b.npz", matrix("csc"))
    for format in ("bitmap", "ell(17)"):
        ow.convert(tmp_path / "a.npz", tmp_path / "b.ow", format=format)
        same(tmp_path / "b.ow", matrix(format))
    ow.convert(tmp_path / "b.npz", tmp_path / "c.mtx")
    np.testing.assert_array_equal(ow.read(tmp_path / "c.mtx").to_numpy(), DENSE)
    ow.write(tmp_path / "packed.npz", matrix(), compress=True)
    ow.convert(tmp_path / "packed.npz", tmp_path / "c.ow")
    same(tmp_path / "c.ow", matrix())
    ow.convert(tmp_path / "c.ow", tmp_path / "c.ow", format="csc")  # in its own place
    same(tmp_path / "c.ow", matrix("csc"))


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["a.mtx", "a.tns", "a.mtx.gz"])
def test_text(tmp_path: Path, name: str) -> None:
    for t in (matrix("coo"), matrix("coo").astype("int16"), ow.asarray(DENSE > 1, format="coo")):
        ow.write(tmp_path / name, t)
        for format, memory in ((None, 600), ("csr", 1 << 20)):
            ow.convert(tmp_path / name, tmp_path / "b.ow", format=format, memory=memory)
            same(tmp_path / "b.ow", t if format is None else t.asformat(format))


@pytest.mark.ci
def test_tensors_and_foreign_text(tmp_path: Path) -> None:
    path, out = tmp_path / "a.tns", tmp_path / "b.ow"
    path.write_bytes(b"\xef\xbb\xbf# three\r\n3 1 2 1.5\r\n1 2 2 -2\r\n3 1 2 1\r\n" + b"1 1 1 0.5\n" * 90)
    ow.convert(path, out, format="csf", memory=900)
    same(out, ow.read(path, format="csf"))
    path = tmp_path / "c.mtx"
    for field, line in (("complex", "2 1 1.5 -2"), ("pattern", "2 1"), ("integer", "2 1 7")):
        for symmetry in ("general", "hermitian" if field == "complex" else "symmetric"):
            path.write_text(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% c\n3 3 1\n% c\n{line}\n")
            ow.convert(path, out, format="csr")
            same(out, ow.read(path, format="csr"))
    ow.convert(path, out, symmetry="keep", base=0)
    same(out, ow.read(path, symmetry="keep", base=0, format="coo"))
    path.write_text("%%MatrixMarket matrix array real general\n2 1\n1\n2\n")
    ow.convert(path, out)
    assert ow.read(out).to_numpy().tolist() == [[1], [2]]


def test_faults_of_text_name_the_line(tmp_path: Path) -> None:
    lines = "".join(f"{k} {k} 1.5\n" for k in range(1, 100))
    head = "%%MatrixMarket matrix coordinate real general\n99 99 99\n"
    cases = {
        head + lines.replace("77 77", "77 177"): "line 79: index 177 in column 2 is outside 1..99",
        head + lines.replace("77 77 1.5", "77 77 x"): "line 79: expected a number, got 'x'",
        head + lines.replace("\n77 ", "\n\x01 "): "line 79: a control character",
        head + lines[:-20]: "has 97 of 99 entries",
        head + lines + "1 1 1\n": "has 100 of 99 entries",
        head.replace("general", "symmetric")
        + lines.replace("5 5 1", "5 6 1").replace("9 9 1", "9 8 1"): "both triangles",
        head.replace("general", "skew-symmetric") + lines: "diagonal element of a skew-symmetric matrix must be 0",
    }
    path, out = tmp_path / "a.mtx.gz", tmp_path / "b.ow"
    for text, message in cases.items():
        path.write_bytes(gzip.compress(text.encode()))
        with pytest.raises((ow.FileFormatError, ow.UnsupportedError), match=message.replace(".", r"\.")):
            ow.convert(path, out)
        assert os.listdir(tmp_path) == ["a.mtx.gz"]
    ow.write(tmp_path / "t.tns", matrix())
    text = (tmp_path / "t.tns").read_text()
    (tmp_path / "t.tns").write_text(text[:-1])
    with pytest.raises(ow.FileFormatError, match="the file ends inside a line"):
        ow.convert(tmp_path / "t.tns", out)


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", ["b.ow", "b.npz"])
@pytest.mark.parametrize("kind", ["write", "fsync", "rename"])
def test_the_old_file_survives_every_fault(tmp_path: Path, name: str, kind: Any) -> None:
    out = tmp_path / name
    ow.write(tmp_path / "a.ow", matrix())
    ow.write(out, matrix() * 2)
    ow.convert(
        tmp_path / "a.ow", tmp_path / "warm.ow", format="csc", memory=4000
    )  # kernels are written and renamed too
    shutil.rmtree(tmp_path / "warm.ow")
    for n in range(1, 200, 1 if kind != "write" else 7):
        failed = None
        with injected(nth(kind, n)):
            try:
                ow.convert(tmp_path / "a.ow", out, format="csc", memory=4000)
            except OSError as error:
                failed = error
        assert sorted(os.listdir(tmp_path)) == ["a.ow", name]
        if failed is None:
            break
        assert failed.filename == str(out)
        same(out, matrix() * 2)
    assert n > 1
    same(out, matrix("csc"))


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    ow.write(tmp_path / "a.ow", matrix())
    for last in (1, 3, 12):
        calls = []

        def stop(done: int, total: int, last: int = last, calls: list[int] = calls) -> None:
            calls.append(done)
            if len(calls) == last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ow.convert(tmp_path / "a.ow", tmp_path / "b.ow", format="csc", memory=2000, progress=stop)
        assert os.listdir(tmp_path) == ["a.ow"]


def test_parts_are_mapped_to_another_file(tmp_path: Path) -> None:
    for format in ("csr", "coo", "bsr(2, 3)", "bitmap", "dense"):
        ow.write(tmp_path / "a.ow", matrix(format))
        t = ow.open(tmp_path / "a.ow")
        roots = ((c, np.sqrt(v)) for c, v in parts(t, 900))
        target = format if format in ("csr", "coo") else "csr"
        write_parts(tmp_path / "b.ow", roots, t.shape, format=target, ordered=format in ("csr", "coo"))
        np.testing.assert_array_equal(ow.read(tmp_path / "b.ow").to_numpy(), np.sqrt(DENSE))


def test_parts_in_any_order_with_duplicates(tmp_path: Path) -> None:
    index = RNG.integers(0, 9, (3, 400))
    values = RNG.integers(0, 5, 400)
    blocks = [(tuple(index[:, k : k + 50]), values[k : k + 50]) for k in range(0, 400, 50)]
    want = ow.sparse_coo_tensor(index, values, (9, 9, 9))
    for memory in (3000, 1 << 20):
        for format in ("coo", "csf"):
            write_parts(tmp_path / "b.ow", blocks, (9, 9, 9), format=format, dtype="int64", memory=memory)
            same(tmp_path / "b.ow", want.asformat(format))
    write_parts(tmp_path / "b.ow", blocks, (9, 9, 9), format=coo(3, unique=False, ordered=False), dtype="int64")
    assert ow.open(tmp_path / "b.ow").nse == 400
    write_parts(tmp_path / "b.ow", [], (4, 5), format="csr")
    same(tmp_path / "b.ow", ow.zeros((4, 5), format="csr"))


def test_arguments(tmp_path: Path) -> None:
    ow.write(tmp_path / "a.ow", matrix())
    a, b, one = tmp_path / "a.ow", tmp_path / "b.ow", [(([3], [1]), [2.0]), (([2], [1]), [2.0])]
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: ow.convert(a, b, memory="2 gallons"), ValueError, "memory is a number of bytes"),
        (lambda: ow.convert(a, b, memory=0), ValueError, 'help: write "2GiB"'),
        (lambda: ow.convert(a, b, memory=0.5), TypeError, "memory is an integer"),
        (lambda: ow.convert(a, b, format="crs"), ow.FormatError, "did you mean csr"),
        (lambda: ow.convert(a, b, base=1), ValueError, "base= means nothing"),
        (lambda: ow.convert(a, tmp_path / "b.xyz"), ow.UnsupportedError, "unknown extension"),
        (lambda: ow.convert(tmp_path / "no.ow", b), FileNotFoundError, "no.ow"),
        (lambda: ow.convert(tmp_path / "no.mtx", b), FileNotFoundError, "no.mtx"),
        (lambda: write_parts(b, one, (4, 2), ordered=True), ow.FormatError, r"got: \[2, 1\] after \[3, 1\]"),
        (lambda: write_parts(b, one, (3, 2)), ow.ShapeError, "dimension 0 from 3 to 3"),
        (lambda: write_parts(b, one, (4, 2, 2)), ow.ShapeError, "expected: 3 vectors"),
        (lambda: write_parts(b, [(([0.5], [1]), [1])], (4, 2)), ow.DTypeError, "float64"),
        (lambda: write_parts(b, [(([0, 1], [1, 0]), [1.0, 2, 3])], (4, 2)), ow.ShapeError, "as long as the values"),
        (lambda: write_parts(b, [(([0], [1, 0]), [1.0, 2])], (4, 2)), ow.ShapeError, "as long as the values"),
        (lambda: write_parts(b, [(([[0]], [[1]]), [[1.0]])], (4, 2)), ow.ShapeError, "as long as the values"),
        (
            lambda: write_parts(b, [(([0, [1]], [1, 0]), [1.0, 2])], (4, 2)),
            ow.ShapeError,
            "a part that is not an array",
        ),
        (lambda: write_parts(b, one, (4, 2), format=LOOSE_ROWS), ow.UnsupportedError, "but batch and"),
        (lambda: parts(np.eye(2)), ow.UnsupportedError, "expected: a Tensor"),  # type: ignore[arg-type]
        (lambda: write_parts(tmp_path / "b.mtx", one, (4, 2)), ow.UnsupportedError, "expected: .ow or .npz"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
        assert os.listdir(tmp_path) == ["a.ow"], message


@pytest.mark.slow
def test_under_a_limit_of_memory(tmp_path: Path) -> None:
    """180 MB of elements are sorted and multiplied by a process that the system gives no more than 220 MiB."""
    script = Path(__file__).resolve().parents[2] / "benchmarks" / "out_of_core.py"
    subprocess.run([sys.executable, str(script), "1.5e7", "220MiB", str(tmp_path)], check=True, timeout=600)


def test_folders_with_anything_else_in_them_are_not_replaced(tmp_path: Path) -> None:
    t = ow.asarray(np.eye(3), format="csr")
    for name in ("a.ow", "b.bsp.zarr"):
        if name.endswith(".zarr"):
            pytest.importorskip("zarr")
        ow.write(tmp_path / name, t)
        (tmp_path / name / "notes.txt").write_text("mine")
        with pytest.raises(ow.UnsupportedError, match="or with other files in it"):
            ow.write(tmp_path / name, t)
        assert (tmp_path / name / "notes.txt").read_text() == "mine"
    (tmp_path / "a.ow" / "notes.txt").unlink()
    ow.convert(tmp_path / "a.ow", tmp_path / "a.ow" / "inner.ow")
    with pytest.raises(ow.UnsupportedError, match="or with other files in it"):
        ow.convert(tmp_path / "a.ow" / "inner.ow", tmp_path / "a.ow")
    foreign = tmp_path / "project.ow"
    foreign.mkdir()
    (foreign / "header.json").write_text('{"project": 1}')
    with pytest.raises(ow.UnsupportedError, match="no openwork store"):
        ow.write(foreign, t)

    def parts_and_a_file() -> Iterator[tuple[list[list[int]], list[float]]]:
        yield [[0], [0]], [1.0]
        (tmp_path / "late.ow").write_text("mine")

    with pytest.raises(ow.UnsupportedError, match="no openwork store"):
        write_parts(tmp_path / "late.ow", parts_and_a_file(), (2, 2))
    assert (tmp_path / "late.ow").read_text() == "mine"
    assert not list(tmp_path.glob(".openwork*"))


def test_values_that_the_dtype_does_not_hold(tmp_path: Path) -> None:
    def write(values: object, dtype: object) -> None:
        write_parts(tmp_path / "b.ow", [(([0, 1], [1, 0]), values)], (2, 2), dtype=dtype)

    refused = [
        (np.array([1 + 2j, 0]), "float64"), ([1.5, 1], "int64"), (np.array([300, 1]), "uint8"), ([-1, 1], "uint64"),
        (np.array([1 << 63, 1], np.uint64), "int64"), ([np.nan, 1], "int32"), ([0.5, 1], bool), (["1", "2"], "float64"),
        ([None, 1.0], "float64"), ([1, 2], object), ([1, 2], "S3"), (np.array([-1.0, 1]), "uint8"),
    ]  # fmt: skip
    for values, dtype in refused:
        with pytest.raises(ow.DTypeError):
            write(values, dtype)
    with pytest.raises(ow.UnsupportedError, match="masked"):
        write(np.ma.array([1.0, 2.0], mask=[True, False]), "float64")
    for values, dtype in (([1, 2], "uint8"), ([1.0, 2.0], "int64"), ([1, 2], ">f8"), ([True, False], "float16")):
        write(values, dtype)
        assert ow.read(tmp_path / "b.ow").to_numpy()[[0, 1], [1, 0]].tolist() == list(values)
    for part in (3, (1, 2, 3), {}):
        with pytest.raises(ow.ShapeError, match="a pair of coordinates and values"):
            write_parts(tmp_path / "b.ow", [part], (2, 2))  # type: ignore[list-item]
    with pytest.raises(ow.ShapeError, match="the disk has free"):
        write_parts(tmp_path / "b.ow", [], (1 << 62, 2), format="csr")


def test_unsigned_coordinates_are_exact(tmp_path: Path) -> None:
    rows = np.array([0, 1, 2], np.uint64) + np.uint64(1 << 61)
    write_parts(
        tmp_path / "b.ow", [((rows[:2], rows[:2]), [1, 2]), ((rows[2:], rows[2:]), [3])], (1 << 62,) * 2, ordered=True
    )
    assert ow.read(tmp_path / "b.ow").nse == 3
    small = np.array([0, 0, 3, 2], np.uint8), np.array([0, 3, 1, 2], np.uint8)
    blocks = "(i, j) -> (i // 2 : dense, j // 2 : compressed, i % 2 : dense, j % 2 : dense)"
    for format in (blocks, "(i, j) -> (j - i : compressed, i : compressed)"):
        for dtype in (np.uint8, np.uint64):
            parts_of = [(tuple(c.astype(dtype) for c in small), [1, 2, 3, 4])]
            write_parts(tmp_path / "b.ow", parts_of, (4, 4), format=format, ordered="//" in format)
            assert ow.read(tmp_path / "b.ow").to_numpy()[small].tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts what Linux lists")
def test_runs_do_not_keep_files_open(tmp_path: Path) -> None:
    """A limit of 1,024 open files is no limit of the runs of a conversion."""
    before = len(os.listdir("/proc/self/fd"))
    dtypes = np.dtype(np.int32), np.dtype(np.float64)
    with ExternalSort((50, 60), dtypes, 0, 2000, str(tmp_path)) as sort:
        elements = {}
        for k in range(40):
            crd = RNG.integers(0, 50, 10), RNG.integers(0, 60, 10)
            sort.add(crd, np.full(10, k + 1.0))
            for i, j in zip(*crd, strict=True):
                elements[i, j] = elements.get((i, j), 0) + k + 1.0
        got = {}
        for columns, values in sort.merged():
            assert len(os.listdir("/proc/self/fd")) <= before + 6
            got |= dict(zip(zip(*(c.tolist() for c in columns), strict=True), values.tolist(), strict=True))
        assert got == elements
        assert list(got) == sorted(got)
    assert len(os.listdir("/proc/self/fd")) <= before + 3
    assert not os.listdir(tmp_path)


def test_errors_in_pieces_name_the_line_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.io.shared.unpack._BLOCK", 100)
    monkeypatch.setattr("openwork.io.out_of_core.text_parts._PIECE", 64)
    monkeypatch.setattr("openwork.io.out_of_core.text_parts._LONGEST", 300)
    path, out = tmp_path / "a.mtx", tmp_path / "a.ow"
    entries = [f"{i + 1} {i % 7 + 1} {i}.5" for i in range(200)]

    def convert(lines: list[str], end: str) -> None:
        head = f"%%MatrixMarket matrix coordinate real general{end}200 7 200{end}"
        path.write_bytes((head + end.join(lines) + end).encode())
        ow.convert(path, out, format="csr")

    for end in ("\n", "\r\n", "\r"):
        convert([*entries[:9], entries[9] + " " * 150, *entries[10:]], end)
        same(out, ow.read(path, format="csr"))
        for bad in (0, 3, 150, 199):
            with pytest.raises(ow.FileFormatError, match=f", line {bad + 3}: expected an integer index"):
                convert([*entries[:bad], "1 x 3", *entries[bad + 1 :]], end)
    convert(entries, "\n")
    path.write_bytes(path.read_bytes()[:-1])  # a last line without an end
    ow.convert(path, out, format="csr")
    same(out, ow.read(path, format="csr"))
    with pytest.raises(ow.FileFormatError, match=r"byte \d+: \d+ bytes without a line end"):
        convert([*entries[:9], entries[9] + " " * 500, *entries[10:]], "\n")
    path.write_text(f"%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 {2**64 - 1}\n")
    with pytest.raises(ow.UnsupportedError, match=r"integers beyond 2\*\*63 - 1, in parts"):
        ow.convert(path, out)
