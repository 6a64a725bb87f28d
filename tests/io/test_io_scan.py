"""Numbers from text and to text: exactly rounded, the compiled scanner equal to its reference."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openwork as ow
from openwork.errors import FileFormatError
from openwork.io.text import scan, scan_kernel
from openwork.io.text.digits import table_lines, table_lines_python
from openwork.io.text.scan_layout import Layout, Rest
from openwork.io.text.source import Text

NUMBERS = st.one_of(
    st.floats().map(repr),
    st.floats(width=32).map(str),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,30})([eEdD][+-]?[0-9]{1,4})?", fullmatch=True),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["inf", "-Infinity", "NaN", "1e23", "9007199254740993", "2.2250738585072011e-308", "5e-324", "-0"]),
)


def bits(x: float) -> bytes:
    return struct.pack("<d", float("nan") if x != x else x)


@given(st.lists(NUMBERS, min_size=1))
def test_floats_are_exactly_rounded(tokens: list[str]) -> None:
    found = scan.scan(Text.of("\n".join(tokens).encode()), 0, Layout(0, 1), len(tokens)).values
    for token, value in zip(tokens, found.tolist(), strict=True):
        assert bits(value) == bits(float(token.lower().replace("d", "e"))), token


def test_many_random_doubles() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**64, 50_000, np.uint64).view(np.float64)
    values = np.concatenate([values[np.isfinite(values)], 10.0 ** np.arange(-320, 309), 2.0 ** np.arange(-1074, 1024)])
    for text in ("\n".join(map(repr, values.tolist())), "\n".join(f"{v:.16e}" for v in values.tolist())):
        found = scan.scan(Text.of(text.encode()), 0, Layout(0, 1), values.size).values
        np.testing.assert_array_equal(found.view(np.uint64), values.view(np.uint64))


@given(st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1))
def test_integers(numbers: list[int]) -> None:
    text = Text.of("\n".join(map(str, numbers)).encode())
    if min(numbers) < 0 and max(numbers) > 2**63 - 1:
        with pytest.raises(FileFormatError, match="no integer type holds"):
            scan.scan(text, 0, Layout(0, 1, "i64"), len(numbers))
    else:
        assert scan.scan(text, 0, Layout(0, 1, "i64"), len(numbers)).values.tolist() == numbers


LINES = st.lists(
    st.lists(
        st.one_of(
            st.integers(0, 12).map(str),
            NUMBERS,
            st.sampled_from(["", "x", "%", "1e", "-", "1 %c", "9" * 19, "\t", "\x0b"]),
        ),
        max_size=5,
    ).map(" ".join),
    max_size=6,
)
LAYOUTS = st.builds(
    Layout,
    columns=st.integers(0, 3),
    values=st.integers(0, 2),
    scalar=st.sampled_from(["f64", "i64"]),
    base=st.integers(0, 1),
    comment=st.sampled_from(["%", "#", ""]),
    rest=st.sampled_from([Rest.REFUSE, Rest.IGNORE]),
).filter(lambda x: x.columns + x.values > 0)


def outcome(text: Text, layout: Layout, rows: int | None, reference: bool) -> object:
    """What a scan gives, as something to compare."""
    original = scan_kernel.scanner
    if reference:
        scan_kernel.scanner = lambda layout, dtype: lambda *args: scan_kernel.scan_python(layout, *args)  # type: ignore[assignment]
    try:
        table = scan.scan(text, 0, layout, rows, (10,) * layout.columns)
    except FileFormatError as error:
        return str(error)
    finally:
        scan_kernel.scanner = original
    return table.rows, [c.tolist() for c in table.indices], table.values.dtype, table.values.tobytes()


@pytest.mark.ci
@given(LINES, LAYOUTS, st.one_of(st.none(), st.integers(0, 6)), st.sampled_from(["\n", "\r\n", "\r"]))
def test_compiled_equals_reference(lines: list[str], layout: Layout, rows: int | None, end: str) -> None:
    text = Text.of(end.join(lines).encode())
    assert outcome(text, layout, rows, False) == outcome(text, layout, rows, True)


@pytest.mark.ci
@given(st.binary(max_size=80), LAYOUTS)
def test_any_bytes_give_a_table_or_an_error(data: bytes, layout: Layout) -> None:
    text = Text.of(data)
    assert outcome(text, layout, None, False) == outcome(text, layout, None, True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("layout", [Layout(0, 1), Layout(1, 1), Layout(1, 0), Layout(0, 1, comment="")])
def test_control_characters_are_no_blanks(layout: Layout) -> None:
    """Blanks, tabs and line ends end a number; any other byte beside a number is an error, as in the reference."""
    for byte in range(256):
        for data in (
            bytes([byte]),
            b"0" + bytes([byte]),
            bytes([byte]) + b"7",
            b"1 2.5" + bytes([byte]),
            b"3 4" + bytes([byte]) + b"5",
        ):
            text = Text.of(data)
            assert outcome(text, layout, None, False) == outcome(text, layout, None, True), data


@given(st.lists(st.floats(), min_size=1), st.sampled_from(["float64", "float32"]))
def test_shortest_text(numbers: list[float], dtype: str) -> None:
    with np.errstate(over="ignore"):
        values = np.array(numbers, dtype)
    ours, theirs = table_lines((), values).decode().split(), table_lines_python((), values).decode().split()
    for a, b in zip(ours, theirs, strict=True):
        assert bits(float(a)) == bits(float(b)) or np.dtype(dtype).type(float(a)) == np.dtype(dtype).type(float(b))
        assert significant(a) == significant(b)


def significant(text: str) -> str:
    return text.lower().split("e")[0].replace(".", "").replace("-", "").strip("0")


def test_line_numbers_for_every_line_end() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        text = Text.of(end.join([b"1 1", b"", b"2 x", b"3 3"]))
        with pytest.raises(FileFormatError) as caught:
            scan.scan(text, 0, Layout(2, 0), 3, (9, 9))
        assert (
            str(caught.value) == "text, line 3: expected an integer index of at most 18 digits, got 'x'\n  2 x\n    ^"
        )


def test_progress_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_CHUNK", 64)
    body = b"".join(b"%d %d 0.%025d\n" % (k + 1, 1, k) for k in range(100))
    seen: list[tuple[int, int]] = []
    table = scan.scan(Text.of(body), 0, Layout(2, 1), 100, (100, 1), lambda *s: seen.append(s))
    assert table.indices[0].tolist() == list(range(100))
    assert table.values.tolist() == [float(f"0.{k:025d}") for k in range(100)]
    assert seen[-1] == (len(body), len(body))
    assert seen == sorted(seen)
    assert len(seen) > 10


@pytest.mark.thin(2)
@pytest.mark.parametrize("suffix", [".smtx", ".rb", ".svm", ".mtx", ".tns"])
def test_a_zero_byte_in_a_file_is_an_error(suffix: str, tmp_path: Path) -> None:
    """Among numbers it is an error; the scanner took it for the start of a comment where a kind of file has none."""
    path = tmp_path / f"a{suffix}"
    whole = ow.asarray(np.array([[1.0, 0, 2], [0, 3, 0]]), format="csr")
    texts = {".smtx": b"2, 3, 3\n0 2 3\n0 2 1\n", ".svm": b"1 1:1 3:2\n1 2:3\n"}
    if suffix in texts:
        path.write_bytes(texts[suffix])
    else:
        ow.write(path, whole)
    good = path.read_bytes()
    ow.read(path)
    for at in range(len(good) - 1):
        if good[at : at + 1] in b" \n":
            path.write_bytes(good[: at + 1] + b"\0" + good[at + 1 :])
            try:
                again = ow.read(path)
            except ow.FileFormatError:
                continue
            assert suffix in (".rb", ".mtx", ".tns"), (at, again)
            np.testing.assert_array_equal(again.to_numpy(), whole.to_numpy())  # in a title or comment
