from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from openwork.errors import FormatError
from openwork.format import Compressed, Dense, Dim, Div, Ell, Format, Level, Singleton, Structured, coo, format
from openwork.format.parser import MAX_TEXT

CASES = [
    tuple(block[2:].rstrip("\n").split("\n", 1))
    for block in re.split(r"\n\n(?=> )", (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8"))
]


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("text", "message"), CASES, ids=[text[:60] for text, _ in CASES])
def test_refusal(text: str, message: str) -> None:
    with pytest.raises(FormatError) as error:
        format(text)
    assert str(error.value) == message


@pytest.mark.parametrize("message", [message for _, message in CASES])
def test_every_refusal_has_its_five_lines(message: str) -> None:
    what, shown, caret, detail, help = message.split("\n")
    assert what.startswith("format: ")
    assert shown.startswith("  ")
    assert re.fullmatch(" +\\^", caret)
    assert len(caret) <= len(shown) + 1
    assert re.match("  (expected|known dimensions): .+; got: ", detail)
    assert re.match("  help: .+", help)


def test_the_caret_is_under_the_number_of_dimensions() -> None:
    what, shown, caret, *_ = refused(lambda: format("csr", -1)).split("\n")
    assert (what, shown, caret) == ("format: ndim is not a number of dimensions", "  ndim=-1", "       ^")


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(FormatError) as error:
        make()
    return str(error.value)


I = Level(Dim(0), Dense())  # noqa: E741


def test_a_refusal_points_into_the_printed_text() -> None:
    """Formats that are made by hand have no text of the user's: the caret stands under the printed one."""
    assert refused(lambda: Format(("i",), (I, Level(Dim(3), Dense())))) == (
        "format: a level uses an unknown dimension\n"
        "  (i) -> (i : dense, <dimension 3> : dense)\n"
        "                     ^\n"
        "  known dimensions: i; got: dimension 3\n"
        "  help: declare it on the left"
    )
    assert refused(lambda: Format(("i", "j"), (Level(Dim(0), Singleton()), Level(Dim(1), Dense())))) == (
        "format: singleton cannot come first\n"
        "  (i, j) -> (i : singleton, j : dense)\n"
        "                 ^\n"
        "  expected: a level above that says how many elements there are; got: i : singleton\n"
        "  help: write i : compressed(nonunique) for coordinates, or put a level above it"
    )
    nonunique = Level(Dim(0), Compressed(unique=False))
    assert refused(lambda: Format(("i", "j"), (nonunique, Level(Dim(1), Compressed())))) == (
        "format: a nonunique level whose children are not singletons\n"
        "  (i, j) -> (i : compressed(nonunique), j : compressed)\n"
        "                            ^\n"
        "  expected: singleton below it, or dense levels only; got: compressed\n"
        "  help: leave nonunique out, or write j : singleton"
    )


@pytest.mark.parametrize(
    ("name", "shown"), [("i j", "i j"), ("", ""), ("3", "3"), ("mod", "mod"), (3, "3"), ("é", "é"), ("i\n", "i ")]
)
def test_dimension_names(name: object, shown: str) -> None:
    message = refused(lambda: Format((name,), (I,)))  # type: ignore[arg-type]
    assert message.startswith(f"format: not a dimension's name\n  ({shown}) -> ({shown} : dense)\n   ^\n")
    assert message.endswith("\n  help: name it i0")


@pytest.mark.parametrize("divisor", [0, -2, 2**31, 2.0, True])
def test_divisors(divisor: int) -> None:
    message = refused(lambda: Format(("i",), (Level(Div(Dim(0), divisor), Dense()),)))
    assert message == (
        "format: a divisor is not a positive integer\n"
        f"  (i) -> (i // {divisor} : dense)\n"
        "          ^\n"
        f"  expected: an integer from 1 to 2147483647; got: {divisor}\n"
        "  help: use the size of the block"
    )


def test_too_many_of_everything() -> None:
    names = tuple(f"i{d}" for d in range(65))
    assert "expected: at most 64; got: 65\n" in refused(lambda: Format(names, ()))
    assert "expected: at most 128; got: 129\n" in refused(lambda: Format(("i",), (I,) * 129))
    assert "expected: at most 128; got: more\n" in refused(lambda: format(f"(i) -> ({'i : dense, ' * 129})"))
    assert "expected: at most 64; got: more\n" in refused(lambda: format(f"({', '.join(names)}) -> ()"))
    nested = Dim(0)
    for _ in range(2_000):
        nested = Div(nested, 1)  # type: ignore[assignment]
    assert "expected: at most 16 divisions" in refused(lambda: Format(("i",), (Level(nested, Dense()),)))
    assert "expected: at most 16 levels; got: more" in refused(lambda: format(f"(i) -> (i{' // 2' * 17} : dense)"))
    assert f"expected: at most {MAX_TEXT} characters" in refused(lambda: format("(" * 30_000))


def test_what_is_no_level_format() -> None:
    assert refused(lambda: Format(("i",), (Level(Dim(0), "dense"),))) == (  # type: ignore[arg-type]
        "format: not a level format\n"
        "  (i) -> (i : dense)\n"
        "              ^\n"
        "  expected: a LevelFormat; got: 'dense'\n"
        "  help: write Dense(), Compressed(), ..."
    )


def test_level_formats_refuse_by_themselves() -> None:
    assert refused(lambda: Dense(unique=False)) == (
        "format: dense cannot be nonunique\n"
        "  dense(nonunique)\n"
        "        ^\n"
        "  expected: no property, dense is always unique and ordered; got: nonunique\n"
        "  help: leave it out, or use compressed(nonunique)"
    )
    assert refused(lambda: Ell(3, unique=False)) == (
        "format: ell cannot be nonunique\n"
        "  ell(3, nonunique)\n"
        "         ^\n"
        "  expected: unordered; got: nonunique\n"
        "  help: leave it out, or use compressed(nonunique)"
    )
    assert refused(lambda: Structured(3, 2)) == (
        "format: structured cannot keep more elements than it has\n"
        "  structured(3, 2)\n"
        "             ^\n"
        "  expected: n <= m; got: n = 3, m = 2\n"
        "  help: write structured(2, 3) for 2 of 3"
    )
    for k in (0, -1, 2**31, 1.5):
        assert refused(lambda k=k: Ell(k)) == (  # type: ignore[misc]
            "format: argument k of ell is not a positive integer\n"
            f"  ell({k})\n"
            "      ^\n"
            f"  expected: 1 <= k <= 2147483647; got: {k}\n"
            "  help: write ell(k) with positive integers"
        )


def named(*args: object, **options: object) -> str:
    return refused(lambda: format(*args, **options))  # type: ignore[arg-type]


def test_named_formats_refuse_other_ranks() -> None:
    assert named("csr", 3) == (
        "format: csr does not have 3 dimensions\n"
        "  csr\n"
        "  ^\n"
        "  expected: ndim = 2 (2 + batch 0 + dense 0); got: ndim = 3\n"
        "  help: use csf or coo for any rank, or batch= and dense= for more dimensions"
    )
    assert named(" bsr(2, 3)", 3, batch=2, dense=1) == (
        "format: bsr does not have 3 dimensions\n"
        "   bsr(2, 3)\n"
        "   ^\n"
        "  expected: ndim = 5 (2 + batch 2 + dense 1); got: ndim = 3\n"
        "  help: use csf or coo for any rank, or batch= and dense= for more dimensions"
    )
    assert named("coo", 1, dense=2) == (
        "format: coo does not have 1 dimensions\n"
        "  coo\n"
        "  ^\n"
        "  expected: ndim >= 2 (batch 0 + dense 2); got: ndim = 1\n"
        "  help: give a larger ndim"
    )
    assert "got: 65\n" in named("coo", 65)
    assert "too many dimensions" in named("csr", batch=64)
    assert "coo does not have 1 dimensions" in refused(lambda: coo(1, dense=2))


@pytest.mark.parametrize("what", ["ndim", "batch", "dense"])
@pytest.mark.parametrize("value", [-1, 65, 1.5, "2", 10**5000], ids=["negative", "large", "float", "text", "huge"])
def test_counts(what: str, value: object) -> None:
    message = named("coo", **{what: value})
    assert message.startswith(f"format: {what} is not a number of dimensions\n  {what}=")
    assert "  expected: an integer from 0 to 64; got: " in message
    assert message.endswith(f"\n  help: give {what} as a small integer")


def test_written_formats_and_options() -> None:
    assert named("(i) -> (i : dense)", 2) == (
        "format: another number of dimensions than ndim\n"
        "  (i) -> (i : dense)\n"
        "  ^\n"
        "  expected: 2 dimensions; got: 1, (i)\n"
        "  help: leave ndim out, or declare 2 dimensions"
    )
    assert named(format("csr"), batch=1) == (
        "format: batch is for named formats only\n"
        "  (i, j) -> (i : dense, j : compressed)\n"
        "  ^\n"
        "  expected: a name with batch=1; got: a format written out\n"
        "  help: write the batch levels out"
    )
    assert "dense is for named formats only" in named(format("csr"), dense=1)


@pytest.mark.parametrize("spec", [3, None, b"csr", ["csr"], {}, 1.5])
def test_what_is_neither_text_nor_format(spec: object) -> None:
    message = named(spec)
    assert message.startswith(
        f"format: neither a name, a text nor a Format\n  {spec!r}\n  ^\n  expected: str or Format; got: "
    )
    assert message.endswith("nm, or (dims) -> (levels)")


def test_an_empty_text() -> None:
    assert named("").startswith("format: neither a named format nor a text with ->\n  \n  ^\n")
