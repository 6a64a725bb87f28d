from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import formats

from openwork.errors import FormatError
from openwork.format import Format, format

CSR = "(i, j) -> (i : dense, j : compressed)"
BSR = "(i, j) -> (i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)"
SAME = [
    ("map = (d0, d1) -> (d0 : dense, d1 : compressed)", CSR),
    ("  (i,j)->(i:dense,j:compressed)  ", CSR),
    ("(i, j,) -> (i : dense, j : compressed,)", CSR),
    ("(i, j)\n  -> (i : dense,\n\tj : compressed)\n", CSR),
    ("(i, j) -> (i : Dense, j : COMPRESSED())", CSR),
    ("(map, dense) -> (map : dense, dense : compressed(unique, ordered))", CSR),
    ("(i, j) -> ((i) : dense, ((j)) : compressed)", CSR),
    ("(i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense)", BSR),
    ("(i, j) -> ((i) // 002 : dense, (j // 3) : compressed, i % 2 : dense, j % 3 : dense)", BSR),
    (
        "(i, j) -> (i : compressed(non-unique, nonordered), j : singleton(non_unique, non-ordered))",
        "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
    ),
    (
        "(i, j) -> (i : compressed(unordered, nonunique), j : singleton)",
        "(i, j) -> (i : compressed(nonunique, unordered), j : singleton)",
    ),
    (
        "(i, j) -> (i : dense, j // 4 : dense, j % 4 : structured[2, 4])",
        "(i, j) -> (i : dense, j // 4 : dense, j % 4 : structured(2, 4))",
    ),
    (
        "(i, j) -> (((j - i)) floordiv 4 : loose_compressed, (j - i) mod 4 : dense, i : range)",
        "(i, j) -> ((j - i) // 4 : loose_compressed, (j - i) % 4 : dense, i : range)",
    ),
    (
        "(i) -> ((i // 4) // 2 : dense, i // 4 % 2 : dense, i % 4 : ell(unordered, 3))",
        "(i) -> (i // 4 // 2 : dense, i // 4 % 2 : dense, i % 4 : ell(3, unordered))",
    ),
    ("#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>", CSR),
    (
        "#CSR = #sparse_tensor.encoding<{\n  map = (d0, d1) -> (d0 : dense, d1 : compressed), # rows\n"
        "  posWidth = 32, crdWidth = 64, implicitVal = 0.0 : f64\n}>",
        CSR,
    ),
    (
        "#sparse_tensor.encoding<{crdWidth = 0, map = (i, j) -> (l0 = j : dense, l1 = i : compressed),}>",
        "(i, j) -> (j : dense, i : compressed)",
    ),
    (
        "#sparse_tensor.encoding<{ map = {il, jl, ii, jj} (i = il * 2 + ii, j = 3 * jl + jj) -> (il = i floordiv 2 : "
        "dense, jl = j floordiv 3 : compressed, ii = i mod 2 : dense, jj = j mod 3: dense), posWidth = 32 }>",
        BSR,
    ),
    ("map = (i = r, j = c * 1 + r - r) -> (r = i : dense, c = j : compressed)", CSR),
    (
        "map = {l0, l1} (i = l1, j = l0 + l1) -> (l0 = j - i : compressed, l1 = i : range)",
        "(i, j) -> (j - i : compressed, i : range)",
    ),
    ("#sparse_tensor.encoding<{map = () -> (), implicitVal = (0.0, 0) : complex<f32>}>", "() -> ()"),
    (
        "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : block2_4)  # 2:4",
        "(i, j) -> (i : dense, j // 4 : dense, j % 4 : structured(2, 4))",
    ),
    (
        "( d0, d1 ) -> ( d0 div 2 : dense, d1 div 3 : compressed, d0 mod 2 : dense, d1 mod 3 : dense )",
        BSR,
    ),
    (
        "(i, j, k) -> (i : compressed(non-unique), j : singleton(nonunique, soa), k : singleton(soa))",
        "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : singleton)",
    ),
]


@pytest.mark.parametrize(("text", "printed"), SAME)
def test_other_spellings(text: str, printed: str) -> None:
    assert format(text) == format(printed)
    assert str(format(printed)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "() -> ()",
        "(i, j) -> (i : dense, j : singleton)",
        "(i, j, k) -> (i : compressed(nonunique), j : singleton, k : compressed)",
        "(i, k) -> (i : compressed(nonunique, unordered), k : dense)",
        "(b, i, j) -> (b : batch, i : compressed(nonunique), j : singleton)",
        "(i, j) -> (j - i : compressed, j : range)",
        "(i, j) -> (i + j : dense, i : range)",
        "(i, j) -> (i : dense, i + j : ell(3))",
        "(i) -> (i // 16 : dense, i % 16 // 4 : compressed, i % 4 : bitmap)",
        "(i, j) -> (i : dense, j % 4 : structured(2, 4), j // 4 : dense)",
        "(i, j, k) -> (i : loose_compressed(nonunique), j : singleton(nonunique, unordered), k : singleton)",
    ],
)
def test_legal_formats_print_as_they_are_written(text: str) -> None:
    assert str(format(text)) == text


def outcome(text: str) -> None:
    """A Format that prints and parses, or a FormatError with its five lines; nothing else."""
    message, f = "", None
    try:
        f = format(text)
    except FormatError as error:
        message = str(error)
    if f is None:
        assert message.count("\n") == 4
        assert all(len(line) < 300 for line in message.split("\n"))
    else:
        assert isinstance(f, Format)
        assert format(str(f)) == f


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    outcome(text)
    outcome(f"(i, j) -> ({text})")
    outcome(f"({text}) -> (i : dense)")
    outcome(f"(i) -> (i : {text})")
    outcome(f"bsr({text})")


WORDS = "( ) ( ) [ ] { } , : -> // % + - * = floordiv mod map i j k 0 1 2 3 4 16 99999999999999999999 dense batch compressed "
WORDS += (
    "loose_compressed singleton range structured ell bitmap nonunique unordered unique ordered non csr bsr é \x00 \n"
)


@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=40))
def test_any_words(words: list[str]) -> None:
    outcome(" ".join(words))
    outcome("(i, j) -> (" + " ".join(words))


@given(st.data())
def test_mutations_of_legal_texts(data: st.DataObject) -> None:
    text = str(data.draw(formats()))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        until = min(len(text), at + data.draw(st.integers(0, 8)))
        new = data.draw(st.one_of(st.sampled_from(WORDS.split(" ")), st.text(max_size=3), st.just(text[at:until] * 2)))
        text = text[:at] + new + text[until:]
    outcome(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "(i) -> (" + "(" * 10_000 + "i",
        "(i) -> (i" + " // 1" * 3_000 + " : dense)",
        "(i) -> (i // " + "9" * 15_000 + " : dense)",
        "(i) -> (i : ell(" + "9" * 15_000 + "))",
        "bsr(" + "9" * 10_000 + ", 1)",
        "bsr(" + "1," * 5_000 + ")",
        "(" + ",".join(f"i{d}" for d in range(3_000)) + ") -> ()",
        "(i) -> (" + "i : dense, " * 1_500 + ")",
        "(i) -> (i : " + "x" * 15_000 + ")",
        "(i) -> (i : compressed(" + "nonunique, " * 1_500 + "))",
        "(" + "i" * 19_000 + ") -> ()",
        "(i) -> (" + "j" * 19_000 + " : dense)",
        "x" * 1_000_000,
        "\n" * 1_000_000 + "->",
        "(i) -> (i : dense" + " " * 15_000 + "é",
        "-" * 19_000 + ">",
    ],
    ids=lambda text: f"{text[:20]}... ({len(text)})".encode("unicode_escape").decode(),
)
def test_huge_texts(text: str) -> None:
    outcome(text)


def test_leading_zeros_are_no_reason() -> None:
    assert format("(i) -> (i // " + "0" * 5_000 + "1 : dense, i % 1 : dense)").blocksize == (1,)
