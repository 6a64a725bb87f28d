"""Text files that contradict themselves are refused at the line; unusual legal ones are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openwork as ow
import openwork.io as io
from openwork.errors import FileFormatError
from openwork.io.text.source import Text

HEAD = "%%MatrixMarket matrix {} {} {}\n% note\n"
RB = "t\n 3 1 1 1\n{} 2 2 {} 0\n(26I3) (40I2) (3F9.1)\n{}\n"
REFUSED = [
    ("a.mtx", HEAD.format("coordinate", "real", "skew-symmetric") + "2 2 2\n2 1 1\n\n2 2 5\n",
     "line 6: a diagonal element of a skew-symmetric matrix must be 0, got 5.0"),
    ("a.mtx", HEAD.format("coordinate", "real", "skew-symmetric") + "2 2 1\n1 1 nan\n", "line 4: a diagonal element"),
    ("a.mtx", HEAD.format("coordinate", "complex", "hermitian") + "2 2 2\n1 1 1 0\n2 2 1 3\n",
     "line 5: a diagonal element of a Hermitian matrix must be real, got (1+3j)"),
    ("a.mtx", HEAD.format("array", "complex", "hermitian") + "2 2\n1 0\n5 5\n1 -2\n", "must be real, got (1-2j)"),
    ("a.mtx", HEAD.format("coordinate", "real", "symmetric") + "3 3 3\n2 1 1\n3 3 1\n1 2 1\n",
     "line 6: both (1, 2) and (2, 1) are stored, of a symmetric matrix"),
    ("a.mtx", HEAD.format("coordinate", "pattern", "symmetric") + "3 3 3\n1 2 9\n1 3\n3 1\n", "line 6: both (3, 1) and"),
    ("a.mtx", HEAD.format("coordinate", "integer", "skew-symmetric") + "3 3 2\n1 2 9\n2 1 -9\n", "line 5: both (2, 1)"),
    ("a.tri", "2 2 2 -1\n0 0 1 2\n1 0 3 4\n", "must be real, got (1+2j)"),
    ("a.svm", "1 1:2 2:3\n1 3 4:5\n1 2:3 7 8\n", "line 2: expected a label, then pairs"),
    ("a.rb", RB.format("rza", 1, "  1  2  2\n 1\n      5.0"), "line 6: a diagonal element of a skew-symmetric"),
    ("a.rb", RB.format("rsa", 2, "  1  2  3\n 2 1\n      5.0      5.0"), "line 6: both (1, 2) and (2, 1)"),
    ("a.rb", RB.format("rsa", 1, "  1  2  2\n 1\n      5.").replace(" 2 2 1", " 2 3 1"), "type RSA must be square, got 2x3"),
    ("a.rb", RB.format("rua", 1, "  1  2  2\n 1\n    5.1").rstrip(), "the file ends inside a field"),
    ("a.rb", RB.format("rua", 1, "  1  2  2\n 1\n 5.0 1.0"), "line 7: two numbers in one field of 9 characters"),
    ("a.rb", RB.format("rua", 1, "\n\n\n"), "line 6: the file ends before the 3 column pointers"),
    ("a.rb", RB.format("rua", 1, "  1  2  2\n 1\n 5.0").replace("2 2", "² 2"), "line 3: expected the type, then rows"),
    ("a.rb", RB.format("rua", 1, "  1  2  2\n 3\n 5.0"), "line 6: row index 3 (entry 1) is outside 1..2"),
    ("a.rb", RB.format("rua", 1, "  2  2  2\n 1\n 5.0"), "line 5: column pointer 1 must be 1, got 2"),
    ("a.rb", RB.format("rua", 1, "  1  2  3\n 1\n 5.0"), "line 5: column pointer 3 must be 2, got 3"),
    ("a.rb", RB.format("rua", 1, "  1  3  2\n 1\n 5.0"), "line 5: column pointer 3 falls from 3 to 2"),
    ("a.mtx", HEAD.format("coordinate", "real", "general") + "2 2 1\n1\0 1 1\n", "line 4: a control character, 0x00"),
    ("a.tns", "1 1 1\n1\x012 1\n", "line 2: a control character, 0x01"),
    ("a.svm", "1 1:2\x0e3:4\n", "line 1: a control character, 0x0e"),
    ("a.tns", "\ufeff1 1 1\n".encode("utf-16").decode("latin-1"), "line 1: the text is UTF-16"),
    ("a.tns", "# extended FROSTT format\n2 2\n2 2\n1 1 1\n", "the file ends after 1 of 2 entries"),
    ("a.tns", "# extended FROSTT format\n3 1\n2 2\n1 1 1\n", "line 3: expected a line with the order"),
    ("a.tns", "# extended FROSTT format\n2 1\n2 2\n3 1 1\n", "line 4: index 3 in column 1 is outside 1..2"),
    ("a.tns", "1.5 1 1\n", "line 1: expected an integer index"),
    ("a.tns", " ".join(["1"] * 70_000) + "\n", "line 1: a line of 139999 bytes"),
    ("a.smtx", "2, 2, 1\n0 1.5 1\n0\n", "line 2: expected an integer of at most 64 bits, got '1.5'"),
    ("a.tri", "2 2 1\n0.5 0 1\n", "line 2: expected an integer index"),
    ("a.tri", "3 -3 1\n0 0 1\n", "line 1: a size cannot be negative, got -3"),
    ("a.tri", "2 2 1\n0\n", "line 2: expected a row, a column and up to two values, got 1 fields"),
    ("a.tri", "2 2 1\n0 0 1 2 3\n", "line 2: expected a row, a column and up to two values, got 5 fields"),
    ("a.tri", "2 3 2\n0 0 1\n2 1 1\n", "row index 2 is outside 0..1 (an index 0 occurs"),
    ("a.tri", "2 3 2\n0 0 1\n1 3 1\n", "column index 3 is outside 0..2 (an index 0 occurs"),
    ("a.mtx", HEAD.format("array", "pattern", "general") + "2 2\n", "line 1: an array cannot have the field pattern"),
    ("a.mtx", HEAD.format("coordinate", "real", "symmetric") + "2 3 1\n1 1 1\n", "line 3: a symmetric matrix must be square, got 2x3"),
    ("a.mtx", HEAD.format("array", "complex", "hermitian") + "3 2\n", "line 3: a hermitian matrix must be square, got 3x2"),
    ("a.mtx", "%%MatrixMarket vector array real symmetric\n3\n1\n1\n1\n", "line 2: a symmetric vector must be square, got 3"),
    ("a.mtx", HEAD.format("coordinate", "integer", "general") + f"2 2 2\n1 1 -1\n2 2 {2**64 - 1}\n",
     "line 5: no integer type holds both this value and the negative ones"),
    ("a.mtx", HEAD.format("coordinate", "integer", "general") + "%%openwork dtype i8\n2 2 1\n1 1 128\n",
     "line 1: an entry does not fit the dtype i8 that the file declares"),
    ("a.mtx", HEAD.format("coordinate", "integer", "general") + "%%openwork dtype u16\n2 2 1\n1 1 -1\n",
     "an entry does not fit the dtype u16 that the file declares"),
    ("a.tns", "# openwork dtype int64\n# shape 2 2 entries 1\n1 1 1 5\n", "expected 2 indices, as the shape in the comment has, got 3"),
    ("a.tns", "# openwork dtype int64\n# shape 2 2 entries 2\n1 1 5\n", "ends after 1 of 2 entries"),
    ("a.ttx", "%%MatrixMarket tensor coordinate real general\n5\n", "line 2: expected the sizes (one size per dimension entries), got 1"),
    ("a.rb", RB.format("rua", 1, "  1  2  2\n 1\n      5.0").replace(" 2 2 1 ", f" 2 {2**63} 1 "), "line 3: a size does not fit in 64 bits"),
    ("a.sptensor", "sptensor\n3\n3 3\n1\n0 1 5\n", "expected lines with the order, the sizes and the number of entries"),
    ("docword.a.txt", "3 3\n3\n1\n1 1 1\n", "line 1: expected one number (documents, words, entries), got 2"),
]  # fmt: skip


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("name", "text", "message"), REFUSED)
def test_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(FileFormatError) as caught:
        ow.read(tmp_path / name)
    assert message in str(caught.value)
    assert f"{name}, line " in str(caught.value)
    if "symmetr" in message or "Hermitian" in message:
        assert 'symmetry="keep" gives what is stored' in str(caught.value) or "square" in message
        if "square" not in message:
            assert ow.read(tmp_path / name, symmetry="keep").shape


def test_one_triangle_or_a_mixture(tmp_path: Path) -> None:
    head = HEAD.format("coordinate", "real", "symmetric") + "3 3 3\n"
    for body in ("2 1 5\n3 1 6\n3 3 7\n", "1 2 5\n1 3 6\n3 3 7\n", "1 2 5\n3 1 6\n3 3 7\n"):
        (tmp_path / "a.mtx").write_text(head + body)
        np.testing.assert_array_equal(ow.read(tmp_path / "a.mtx").to_numpy(), [[0, 5, 6], [5, 0, 0], [6, 0, 7]])
    (tmp_path / "a.mtx").write_text(head + "2 1 5\n2 1 1\n3 3 7\n")
    assert ow.read(tmp_path / "a.mtx").to_numpy()[0, 1] == 6
    (tmp_path / "a.mtx").write_text(HEAD.format("coordinate", "real", "skew-symmetric") + "2 2 2\n2 1 5\n1 1 0\n")
    np.testing.assert_array_equal(ow.read(tmp_path / "a.mtx").to_numpy(), [[0, -5], [5, 0]])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.mtx", HEAD.format("coordinate", "real", "general") + "2 2 1\n2 1 1.5\n"),
        ("a.tns", "2 1 1.5\n"),
        ("a.rb", RB.format("rua", 1, "  1  2  2\n 2\n      1.5")),
        ("a.tri", "2 2 1 0\n1 0 1.5\n"),
        ("a.edges", "1 0\n"),
    ],
)
def test_a_byte_order_mark_is_skipped(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    expected, head = ow.read(tmp_path / name), io.header(tmp_path / name)
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    np.testing.assert_array_equal(ow.read(tmp_path / name).to_numpy(), expected.to_numpy())
    assert io.header(tmp_path / name) == head


def test_control_characters_of_comments_and_of_dos(tmp_path: Path) -> None:
    text = HEAD.format("coordinate", "real", "general") + "%\x01\x00 \x02\n2 2 1\n2 1 1.5\n\x1a"
    (tmp_path / "a.mtx").write_bytes(text.encode())
    assert ow.read(tmp_path / "a.mtx").nse == 1


def test_control_characters_are_no_blanks() -> None:
    for code in range(32):
        text = Text.of(b"1 1%c 5\n" % code)
        if code in b"\t\n\v\f\r":
            text.check_characters()
        else:
            with pytest.raises(FileFormatError, match=f"line 1: a control character, 0x{code:02x}"):
                text.check_characters()


def test_extended_frostt(tmp_path: Path) -> None:
    for note in ("", "# a comment\n"):
        (tmp_path / "a.tns").write_text(f"# extended FROSTT format\n{note}3 2\n{note}2 3 4\n1 1 1 5\n2 3 4 6\n")
        t = ow.read(tmp_path / "a.tns")
        assert (t.shape, t.nse, t.dtype) == ((2, 3, 4), 2, "float64")
        assert io.header(tmp_path / "a.tns").shape == (2, 3, 4)
        assert io.header(tmp_path / "a.tns").entries == 2
    (tmp_path / "a.tns").write_text("# extended FROSTT format\n2 2\n2 3\n1 1\n2 3\n")
    assert ow.read(tmp_path / "a.tns", values=False).to_numpy().sum() == 2


@pytest.mark.parametrize("name", ["a.mtx", "a.tns", "a.npz", "a.mtx.gz"])
def test_large_unsigned_values(tmp_path: Path, name: str) -> None:
    values = np.array([2**64 - 1, 2**63, 2**63 - 1, 1], np.uint64)
    t = ow.sparse_coo_tensor(np.array([[0, 1, 2, 3], [3, 2, 1, 0]]), values, (4, 4))
    ow.write(tmp_path / name, t)
    back = ow.read(tmp_path / name)
    assert back.dtype == "uint64"
    assert [int(v) for v in np.asarray(back.values)] == [int(v) for v in values]


def test_svmlight_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "1 1:2 3:4 # note\r\n-1 2:1\n\n# only a note\n3\n1 4:0.5\n2 1:1"
    (tmp_path / "a.svm").write_bytes(text.encode())
    whole = ow.read(tmp_path / "a.svm").to_numpy()
    assert whole.shape == (5, 4)
    told: list[int] = []
    monkeypatch.setattr("openwork.io.text.svmlight._BLOCK", 7)
    ow.read(tmp_path / "a.svm", progress=lambda done, total: told.append(done))
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == len(text)
    for size in (1, 2, 7, 20, 40):
        monkeypatch.setattr("openwork.io.text.svmlight._BLOCK", size)
        np.testing.assert_array_equal(ow.read(tmp_path / "a.svm").to_numpy(), whole)
        (tmp_path / "b.svm").write_text(text + "\n1 x:3\n")
        with pytest.raises(FileFormatError, match=r"b\.svm, line 8: "):
            ow.read(tmp_path / "b.svm")
    (tmp_path / "a.svm").write_text("")
    assert ow.read(tmp_path / "a.svm").shape == (0, 0)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2 3 0 0\n", np.zeros((2, 3))),
        ("2 2 0 -1\n", np.zeros((2, 2))),
        ("2 3 2 0\n0 0 1.5\n1 2 2\n", [[1.5, 0, 0], [0, 0, 2]]),
        ("2 3 2 0\n1 1 1.5\n2 3 2\n", [[1.5, 0, 0], [0, 0, 2]]),
        ("2 3 2\n0 0\n1 2\n", [[1, 0, 0], [0, 0, 1]]),
        ("2 2 2 1\n0 0 1\n0 1 2\n", [[1, 2], [2, 0]]),
        ("2 2 2 -1\n0 0 1\n1 0 2\n", [[1, 2], [2, 0]]),
        ("2 2 2 0\n0 0 1 2\n1 0 3 -4\n", [[1 + 2j, 0], [3 - 4j, 0]]),
        ("2 2 2\n0 0 1\n1 0 2\n", [[1, 2], [2, 0]]),
        ("2 2 2\n1 2 1\n2 2 2\n", [[0, 1], [1, 2]]),
        ("2 2 2\n0 1 1\n1 0 2\n", [[0, 1], [2, 0]]),
        ("2 2 2\n0 1 1 2\n1 1 3 0\n", [[0, 1 + 2j], [1 - 2j, 3]]),
        ("2 2 3 1\n0 0 1\n0 1 2\n1 0 9\n", [[1, 2], [2, 0]]),
        ("2 2 3 -1\n0 0 1\n0 1 9\n1 0 2\n", [[1, 2], [2, 0]]),
    ],
)
def test_triplets_of_cholmod(tmp_path: Path, text: str, want: object) -> None:
    (tmp_path / "a.tri").write_text(text)
    got, array = io.read(tmp_path / "a.tri"), np.asarray(want)
    np.testing.assert_array_equal(got.to_numpy(), array)
    assert got.to_numpy().dtype == np.result_type(array.dtype, np.float64)


def test_dense_matrices_of_cholmod(tmp_path: Path) -> None:
    path = tmp_path / "a.tri"
    path.write_text("2 3\n1\n2\n3\n4\n5\n6.5\n")
    t = io.read(path)
    assert t.format.is_dense
    np.testing.assert_array_equal(t.to_numpy(), [[1, 3, 5], [2, 4, 6.5]])
    path.write_text("2 1\n1 2\n-3 4\n")
    np.testing.assert_array_equal(io.read(path).to_numpy(), [[1 + 2j], [-3 + 4j]])
    path.write_text("2 1\n1 2 3\n-3 4 5\n")
    with pytest.raises(FileFormatError, match="line 2: expected one element of a dense matrix per line, got 3 fields"):
        io.read(path)
    path.write_text("2 2\n1\n2\n3\n")
    with pytest.raises(FileFormatError, match=r"a\.tri"):
        io.read(path)


def test_elements_in_order_and_almost(tmp_path: Path) -> None:
    """The format says the order that all elements have, whatever the first ones have."""
    n = 5000
    lines = [f"{k // 100 + 1} {k % 100 + 1} {k + 1}" for k in range(n)]
    want = np.arange(1.0, n + 1).reshape(50, 100)
    head = HEAD.format("coordinate", "real", "general") + f"50 100 {n}\n"
    for order, is_sorted in (
        (lines, True),
        ([*lines[:-2], lines[-1], lines[-2]], False),
        ([lines[1], lines[0], *lines[2:]], False),
    ):
        (tmp_path / "a.mtx").write_text(head + "\n".join(order) + "\n")
        t = ow.read(tmp_path / "a.mtx")
        assert (t.format == ow.format("coo")) == is_sorted
        assert list(t.pos(0)) == [0, n]
        np.testing.assert_array_equal(t.to_numpy(), want)
    (tmp_path / "a.mtx").write_text(head + "\n".join([*lines[:-1], lines[-2]]) + "\n")
    t = ow.read(tmp_path / "a.mtx")
    assert not t.format.is_unique
    assert t.to_numpy()[-1, -2:].tolist() == [2 * n - 2, 0]


def test_where_indices_start_is_said(tmp_path: Path) -> None:
    """`base=` of files that do not say it, and of those whose indices would tell otherwise."""
    for name, head in (("a.tri", "2 3 {}\n"), ("a.sptensor", "sptensor\n2\n2 3\n{}\n"), ("a.edges", ""), ("a.svm", "")):
        entries = "1 1:1.5\n" if name == "a.svm" else "1 1 1.5\n"
        (tmp_path / name).write_text(head.format(1) + entries)
        for base in (0, 1):
            coordinates = [c.tolist() for c in ow.read(tmp_path / name, base=base, format="coo").indices()]
            assert coordinates == ([[0], [1 - base]] if name == "a.svm" else [[1 - base]] * 2), name
    (tmp_path / "a.svm").write_text("1 0:2 3:4\n")
    with pytest.raises(FileFormatError, match="an index 0 occurs, below the first one, 1"):
        ow.read(tmp_path / "a.svm", base=1)
    assert ow.read(tmp_path / "a.svm").shape == (1, 4)


def test_lines_before_and_behind_what_is_read(tmp_path: Path) -> None:
    """Blank lines before a banner, a line about right-hand sides, more fields of an edge, a comment of 40 kB."""
    text = HEAD.format("coordinate", "real", "general") + "2 2 1\n2 1 1.5\n"
    for before in ("", "\n", "  \n\n\n", "\r\n"):
        (tmp_path / "a.mtx").write_bytes((before + text).encode())
        np.testing.assert_array_equal(ow.read(tmp_path / "a.mtx").to_numpy(), [[0, 0], [1.5, 0]])
        assert io.header(tmp_path / "a.mtx").shape == (2, 2)
    (tmp_path / "a.mtx").write_bytes(b"\n \n")
    with pytest.raises(FileFormatError, match='line 2: expected the banner "%%MatrixMarket'):
        ow.read(tmp_path / "a.mtx")
    rb = RB.format("rua", 1, "  1  2  2\n 2\n      1.5")
    sides = "F              1 1\n"
    for counts in (" 3 1 1 1\n", " 4 1 1 1 1\n"):
        (tmp_path / "a.rb").write_text(rb.replace(" 3 1 1 1\n", counts).replace("(3F9.1)\n", f"(3F9.1)\n{sides}"))
        np.testing.assert_array_equal(ow.read(tmp_path / "a.rb").to_numpy(), [[0, 0], [1.5, 0]])
    (tmp_path / "a.rb").write_text(RB.format("rue", 1, "  1  2  2\n 2\n      1.5"))
    with pytest.raises(ow.UnsupportedError, match=r"elemental matrices \(rue\) are not read"):
        ow.read(tmp_path / "a.rb")
    (tmp_path / "a.tns").write_text(
        "".join(f"# note {k:09d}\n" for k in range(2500)) + "# shape 3 4 entries 1\n3 1 2\n"
    )
    assert (io.header(tmp_path / "a.tns").shape, ow.read(tmp_path / "a.tns").shape) == ((3, 4), (3, 4))


@pytest.mark.parametrize("name", ["a.mtx", "a.tns", "a.rb"])
def test_halves_of_a_tie_of_float32(tmp_path: Path, name: str) -> None:
    """The shortest decimal of a float32 may lie halfway to its neighbour, read as a float64."""
    values = np.array([0x15AE43FD, 1, 0x00800000, 0x7F7FFFFF, 0x3DCCCCCD, 0x4B800000], np.uint32).view(np.float32)
    x = ow.sparse_coo_tensor(np.stack([np.arange(6), np.arange(6)[::-1]]), values, (6, 6))
    ow.write(tmp_path / name, x)
    back = ow.read(tmp_path / name, format="coo").to_numpy().astype(np.float32)
    np.testing.assert_array_equal(back.view(np.uint32), x.to_numpy().view(np.uint32))
