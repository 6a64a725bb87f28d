"""A file that was cut is refused, an option that means nothing is refused, and comments are only comments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openwork as ow
import openwork.io as io
from openwork.errors import FileFormatError, UnsupportedError

A = ow.asarray(np.array([[1.5, 0, -0.002], [0, 1e-17, 0], [0, 0, 12.25]]), format="coo")
KINDS = ["t.mtx", "t.tns", "t.rb", "t.npz", "t.mtx.gz", "t.tns.gz", "t.rb.gz", "t.tns.bz2", "t.mtx.xz"]


@pytest.mark.thin(91)
@pytest.mark.parametrize("dtype", ["float64", "int64", "float32"])
@pytest.mark.parametrize("name", KINDS)
def test_every_truncation_is_refused_or_equal(tmp_path: Path, name: str, dtype: str) -> None:
    t = A.astype(dtype) if dtype != "int64" else (A * 1000).astype(dtype)
    path, cut = tmp_path / name, tmp_path / f"cut-{name}"
    ow.write(path, t)
    raw, whole = path.read_bytes(), t.to_numpy()
    np.testing.assert_array_equal(ow.read(path).to_numpy(), whole)
    step = 1 if len(raw) < 700 else 7
    for n in range(0, len(raw), step):
        cut.write_bytes(raw[:n])
        try:
            found = ow.read(cut)
        except FileFormatError:
            continue
        assert name.startswith("t.rb") or found.dtype == t.dtype
        np.testing.assert_array_equal(found.to_numpy(), whole)


def test_a_short_tns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    rng = np.random.default_rng(0)
    ow.write(path, ow.random((50, 40, 30), 0.01, rng=rng))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:40]))
    with pytest.raises(FileFormatError, match=r"t\.tns, line 41: the file ends after 38 of 600 entries"):
        ow.read(path)
    path.write_text("".join([*lines, "1 1 1 1\n"]))
    with pytest.raises(FileFormatError, match=r"line 603: more entries than the 600 that are declared"):
        ow.read(path)
    assert io.header(path).entries == 600


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ["t.mtx", "t.tns", "t.rb", "t.npz"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3)])
def test_without_elements(tmp_path: Path, name: str, shape: tuple[int, int]) -> None:
    ow.write(tmp_path / name, ow.zeros(shape, format="coo"))
    found = ow.read(tmp_path / name)
    assert (found.shape, found.nse, found.dtype) == (shape, 0, "float64")


@pytest.mark.parametrize("comment", ["openwork dtype i8", "shape 9 9", "shape 9 9 entries 1", "extended FROSTT format"])
@pytest.mark.parametrize("name", ["t.mtx", "t.tns"])
def test_a_comment_is_only_a_comment(tmp_path: Path, name: str, comment: str) -> None:
    ow.write(tmp_path / name, A, comment=comment)
    found = ow.read(tmp_path / name)
    assert (found.shape, found.dtype) == (A.shape, A.dtype)
    np.testing.assert_array_equal(found.to_numpy(), A.to_numpy())


BANNER = "%%MatrixMarket matrix coordinate {} general\n%%openwork dtype {}\n2 2 1\n"


@pytest.mark.parametrize(
    ("field", "dtype", "entry"), [("complex", "f64", "1 2"), ("real", "i64", "1.5"), ("integer", "f32", "1")]
)
def test_a_declared_dtype_suits_the_field(tmp_path: Path, field: str, dtype: str, entry: str) -> None:
    path = tmp_path / "t.mtx"
    path.write_text(BANNER.format(field, dtype) + f"1 1 {entry}\n")
    with pytest.raises(FileFormatError, match=f"the dtype {dtype} that the file declares does not suit its numbers"):
        ow.read(path)


@pytest.mark.parametrize("name", ["t.mtx", "t.tns", "t.rb", "t.npz"])
def test_options_of_write(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    known = '"auto", "general", "symmetric", "skew-symmetric" or "hermitian"'
    for bad in ("nonsense", "", None, 1, "Symmetric", ["general"]):
        with pytest.raises(ValueError, match=f"write: symmetry must be {known}, got "):
            ow.write(path, A, symmetry=bad)
    for option, bad in (("comment", 3), ("comment", b"x"), ("progress", 3)):
        with pytest.raises(TypeError, match=f"write: {option} must be"):
            ow.write(path, A, **{option: bad})
    for bad in ("gzip", 1, None):
        with pytest.raises(ValueError, match=f"write: compress must be True or False, got {bad!r}"):
            ow.write(path, A, compress=bad)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        ow.write(path, A, symetry="auto")
    assert not list(tmp_path.iterdir())


def test_numbers_of_options_are_no_booleans(tmp_path: Path) -> None:
    ow.write(tmp_path / "t.mtx", A)
    for option in ({"base": True}, {"max_ratio": True}, {"rows": slice(True, 2)}, {"rows": slice(0, True)}):
        with pytest.raises(ow.DTypeError, match=f"read: {next(iter(option))} is an integer; got: True"):
            ow.read(tmp_path / "t.mtx", **option)  # type: ignore[arg-type]
    for rows in (slice(-1, 2), slice(0, -1)):
        with pytest.raises(ValueError, match="rows are counted from the front"):
            ow.read(tmp_path / "t.mtx", rows=rows)


def test_options_that_mean_nothing(tmp_path: Path) -> None:
    for name in ("t.npz", "t.tns"):
        with pytest.raises(UnsupportedError, match=f"{name[1:]} files say no symmetry; got 'symmetric'"):
            ow.write(tmp_path / name, ow.eye(3), symmetry="symmetric")
        ow.write(tmp_path / name, ow.eye(3), symmetry="auto")
    with pytest.raises(UnsupportedError, match=r"\.npz files hold no comment"):
        ow.write(tmp_path / "t.npz", A, comment="note")
    with pytest.raises(UnsupportedError, match=r"name the file \.mtx\.gz"):
        ow.write(tmp_path / "t.mtx", A, compress=True)
    with pytest.raises(UnsupportedError, match=r"help: leave compress out"):
        ow.write(tmp_path / "t.ow", A, compress=True)
    for option in ({"base": 0}, {"values": False}, {"variable": "A"}):
        with pytest.raises(ValueError, match=f"{next(iter(option))}= means nothing for npz files; known here: "):
            ow.read(tmp_path / "t.npz", **option)


def test_options_of_read(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    ow.write(path, A)
    for option, bad, known in (
        ("symmetry", "nonsense", '"expand" or "keep"'),
        ("symmetry", None, '"expand" or "keep"'),
        ("base", 2, "0 or 1"),
        ("values", 1, "True or False"),
    ):
        with pytest.raises(ValueError, match=f"read: {option} must be {known}, got {bad!r}"):
            ow.read(path, **{option: bad})
    for option, bad in (("variable", 3), ("progress", "x"), ("base", 1.0), ("base", True)):
        with pytest.raises(TypeError, match=f"read: {option} (must be|is an integer)"):
            ow.read(path, **{option: bad})
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        ow.read(path, bas=1)


@pytest.mark.parametrize("text", ["1" * 100, "0." + "0" * 70 + "1", "1." + "0" * 70 + "e5", "0" * 70 + "5"])
def test_numbers_of_many_digits(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.tns").write_text(f"1 {text}\n")
    assert ow.read(tmp_path / "t.tns").values[0] == float(text)


def test_a_number_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.tns").write_text(f"1 1\n1 {'1' * 10**6}\n")
    with pytest.raises(FileFormatError, match="line 2: a number of 4096 characters or more"):
        ow.read(tmp_path / "t.tns")
