"""An encoding of MLIR's sparse tensors -> its map, which is a format, and its explicitVal; other fields are checked.

    #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

A format has no index widths: buffers of int32 and int64 are taken as they are, and a conversion chooses those that fit.
Nor has it a fill value, which a tensor has beside its format: an `implicitVal` is 0. An `explicitVal`, one value that
all stored elements share, is what conversions to the format hold a tensor to; see `iso`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from openwork.format.message import refusal

__all__ = ["map_of"]

COMMENT = re.compile(r"#[^\n]*")
BEGIN = re.compile(r"\s*(?:#\w+\s*=\s*)?#sparse_tensor\.encoding\s*<\s*\{")
END = re.compile(r"\}\s*>\s*$")
FIELD = re.compile(r"\s*(\w*)\s*=?\s*(.*?)\s*$", re.DOTALL)
WIDTHS = ("0", "32", "64")
NUMBER = r"\s*[-+]?0+(?:\.0*)?(?:e[-+]?\d+)?\s*"
ZERO = re.compile(rf"(?:{NUMBER}|\({NUMBER},{NUMBER}\)\s*)(?::.*)?", re.I)
"""0, or a complex (0, 0), and its type."""
FIELDS = "map, posWidth, crdWidth, explicitVal, implicitVal"
_DIGITS = r"[-+]?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?"
VALUE = re.compile(
    rf"(?P<word>true|false)|(?P<number>{_DIGITS})|\(\s*(?P<real>{_DIGITS})\s*,\s*(?P<imag>{_DIGITS})\s*\)", re.I
)
Value = bool | int | float | complex


def map_of(text: str) -> tuple[str, Value | None]:
    """The text without comments, with everything but an encoding's map blank: offsets stay; and its explicitVal.

    Raises FormatError that points at a field which no format has.
    """
    begin = BEGIN.match(text)
    start = 0 if begin is None else begin.end()
    text = text[:start] + COMMENT.sub(lambda m: " " * len(m[0]), text[start:])
    if begin is None:
        return text, None
    text = _without_line_comments(text, begin.end())
    end = END.search(text, begin.end())
    if end is None:
        at = len(text.rstrip())
        detail = f"expected: }}> behind the last field; got: {text[begin.end() :].strip()[-20:] or 'the end'}"
        raise refusal("an encoding is not closed", text, at, detail, "write #sparse_tensor.encoding<{ map = ... }>")
    found, explicit = "", None
    for offset, field in _fields(text, begin.end(), end.start()):
        name, value = _checked(text, offset, field)
        if name == "map":
            found = " " * offset + field
        explicit = value if name == "explicitVal" else explicit
    if not found:
        detail, help = "expected: map = (d0, d1) -> (...); got: none", "write map = (d0, d1) -> (d0 : dense, ...)"
        raise refusal("an encoding without a map", text, begin.end(), detail, help)
    return found, explicit


def _without_line_comments(text: str, begin: int) -> str:
    """The text with MLIR's comments blank, `//` to the end of the line, outside of brackets: within them it divides."""
    depth, at = 0, begin
    while at < len(text):
        depth += (text[at] in "([") - (text[at] in ")]")
        if text.startswith("//", at) and not depth:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            text = text[:at] + " " * (end - at) + text[end:]
        at += 1
    return text


def _fields(text: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    """(offset, text) of what stands between commas outside of brackets."""
    depth = 0
    for at in range(begin, end + 1):
        if at == end or (text[at] == "," and not depth):
            if text[begin:at].strip():
                yield begin, text[begin:at]
            begin = at + 1
        elif text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1


def _checked(text: str, offset: int, field: str) -> tuple[str, Value | None]:
    """The name of a field whose value a format can have, and an explicitVal's number."""
    match = FIELD.match(field)
    assert match is not None
    name, value = match[1], match[2]
    at = offset + match.start(1)
    if name in ("posWidth", "crdWidth") and value not in WIDTHS:
        detail, help = f"expected: {', '.join(WIDTHS)}; got: {value}", "buffers are of int32 or int64"
        raise refusal(f"{name} is no width of indices", text, offset + match.start(2), detail, help)
    if name == "implicitVal" and not ZERO.fullmatch(value):
        detail = f"expected: 0, as a format has no fill value; got: {value}"
        help = "leave it out, and give fill_value= where the tensor is made"
        raise refusal("implicitVal is not 0", text, offset + match.start(2), detail, help)
    if name == "explicitVal":
        return name, _number(text, offset + match.start(2), value)
    if name not in ("map", "posWidth", "crdWidth", "implicitVal"):
        detail = f"expected: {FIELDS}; got: {name or field.strip()[:20]}"
        raise refusal("a field of an encoding that no format has", text, at, detail, "leave it out")
    return name, None


def _number(text: str, at: int, value: str) -> Value:
    """The number of an attribute such as `1.0 : f64`; of its type only the kind counts, as a tensor has its own."""
    literal, _, kind = (part.strip() for part in value.partition(":"))
    match = VALUE.fullmatch(literal)
    if match is None:
        detail = f"expected: a number and its type; got: {value or 'nothing'}"
        raise refusal("explicitVal is no number", text, at, detail, "write explicitVal = 1.0 : f64")
    if match["word"]:
        return literal.lower() == "true"
    if match["number"]:
        is_integer = literal.lstrip("+-").isdigit() and not kind.startswith(("f", "bf"))
        return int(literal) if is_integer else float(literal)
    return complex(float(match["real"]), float(match["imag"]))
