"""An encoding of MLIR's sparse tensors -> its map, which is a format; what its other fields say is checked.

    #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

A format has no index widths: buffers of int32 and int64 are taken as they are, and a conversion chooses those that fit.
Nor has it a fill value, which a tensor has beside its format: an `implicitVal` is 0. An `explicitVal`, one value that
all stored elements share, is refused: kernels read a value for each of them.
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
FIELDS = "map, posWidth, crdWidth, implicitVal"


def map_of(text: str) -> str:
    """The text without comments, with everything but an encoding's map blank: offsets stay.

    Raises FormatError that points at a field which no format has.
    """
    begin = BEGIN.match(text)
    start = 0 if begin is None else begin.end()
    text = text[:start] + COMMENT.sub(lambda m: " " * len(m[0]), text[start:])
    if begin is None:
        return text
    end = END.search(text, begin.end())
    if end is None:
        at = len(text.rstrip())
        detail = f"expected: }}> behind the last field; got: {text[begin.end() :].strip()[-20:] or 'the end'}"
        raise refusal("an encoding is not closed", text, at, detail, "write #sparse_tensor.encoding<{ map = ... }>")
    found = ""
    for offset, field in _fields(text, begin.end(), end.start()):
        if _checked(text, offset, field) == "map":
            found = " " * offset + field
    if not found:
        detail, help = "expected: map = (d0, d1) -> (...); got: none", "write map = (d0, d1) -> (d0 : dense, ...)"
        raise refusal("an encoding without a map", text, begin.end(), detail, help)
    return found


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


def _checked(text: str, offset: int, field: str) -> str:
    """The name of a field whose value a format can have."""
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
        detail = f"expected: {FIELDS}; got: explicitVal = {value}"
        help = "leave it out; A.pattern() stores a byte for each element"
        raise refusal("explicitVal: stored elements have a value each", text, at, detail, help)
    if name not in ("map", "posWidth", "crdWidth", "implicitVal"):
        detail = f"expected: {FIELDS}; got: {name or field.strip()[:20]}"
        raise refusal("a field of an encoding that no format has", text, at, detail, "leave it out")
    return name
