"""The JSON text of a store's header -> checked format, shape, fill value and description of each buffer; and back."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from ...classes import frozen
from ...errors import FileFormatError, FormatError, UnsupportedError
from ...format import format as parse
from ...format.format import Format
from ...storage.buffers import SCALARS, numpy_dtype
from ...storage.scalars import python_scalar
from ..shared.folder import Folder

__all__ = ["BLOCK", "HEADER", "StoreHeader", "Stored", "read_header", "spelled", "text_of"]

HEADER = "header.json"
BLOCK = 1 << 22
"""Bytes that one checksum is of."""
VERSION = 1
_MAX_HEADER = 1 << 28
_MAX_FORMAT_TEXT = 4096
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@frozen
class Stored:
    """A buffer's file as the header describes it."""

    dtype: np.dtype[Any]
    length: int
    checksums: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.length * self.dtype.itemsize


@frozen
class StoreHeader:
    """A store's header, of which everything was checked that follows without the buffers."""

    format: Format
    shape: tuple[int, ...]
    scalar: str
    fill_value: Any
    buffers: Mapping[str, Stored]


def spelled(format: Format, shape: tuple[int, ...], scalar: str, fill_value: Any, buffers: Mapping[str, Any]) -> bytes:
    """The text of a header, which ends with its own checksum."""
    body = {
        "openwork": VERSION, "format": str(format), "shape": list(shape), "scalar": scalar,
        "fill_value": _json_of(python_scalar(fill_value, scalar)), "block": BLOCK, "buffers": buffers,
    }  # fmt: skip
    return _text({**body, "crc32": zlib.crc32(_text(body))})


def read_header(folder: Folder) -> StoreHeader:
    """The header. Raises FileFormatError for what is missing or does not fit, with what was got and expected."""
    name = folder.place(HEADER)
    try:
        text = folder.read(HEADER, _MAX_HEADER)
    except (FileNotFoundError, IsADirectoryError):
        raise FileFormatError(f"{folder.name}: no store, there is no {HEADER}\n  help: ow.write makes one") from None
    try:
        body = json.loads(text)
        checksum = body.pop("crc32", None) if isinstance(body, dict) else None
        computed = zlib.crc32(_text(body))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name}: no JSON ({error})") from None
    if not isinstance(body, dict) or type(checksum) is not int:
        raise FileFormatError(f"{name}: no header of a store: it has no checksum of itself")
    if computed != checksum:
        raise FileFormatError(f"{name}: the checksum {checksum:#010x} is not that of the header: it was changed")
    return _checked(name, body)


def _checked(name: str, body: dict[str, Any]) -> StoreHeader:
    """The header of a JSON object."""

    def fail(message: str) -> NoReturn:
        raise FileFormatError(f"{name}: {message}")

    version, shape, text, scalar = (body.get(key) for key in ("openwork", "shape", "format", "scalar"))
    if type(version) is not int or version < 1:
        fail(f"openwork, the version of the layout, is {version!r}")
    if version > VERSION or body.get("block") != BLOCK:
        raise UnsupportedError(
            f"{name}: layout {version} with blocks of {body.get('block')!r} bytes; read are 1 to {VERSION}"
            f" with {BLOCK}\n  help: a later version of openwork may read it"
        )
    if not isinstance(shape, list) or len(shape) > 64 or any(type(n) is not int or not 0 <= n < 2**63 for n in shape):
        fail(f"shape is {str(shape)[:80]}; expected at most 64 extents from 0 to 2**63 - 1")
    if not isinstance(text, str) or len(text) > _MAX_FORMAT_TEXT:
        fail(f"format is {str(text)[:80]!r}; expected a text of {_MAX_FORMAT_TEXT} characters at most")
    if scalar not in SCALARS:
        fail(f"scalar is {scalar!r}; known: {', '.join(SCALARS)}")
    try:
        format = parse(text, len(shape))
    except (FormatError, RecursionError) as error:
        fail(f"{error or 'the format is nested too deeply'}")
    expected = [f"{kind}_{k}" for k, level in enumerate(format.levels) for kind in level.format.buffers]
    buffers = body.get("buffers")
    if not isinstance(buffers, dict) or set(buffers) != {*expected, "values"}:
        got = ", ".join(map(str, buffers)) if isinstance(buffers, dict) else repr(buffers)
        fail(f"buffers are {got[:200]}; those of {format} are {', '.join([*expected, 'values'])}")
    stored = {key: _stored(buffers[key], key, scalar, fail) for key in (*expected, "values")}
    return StoreHeader(format, tuple(shape), scalar, _fill_of(body.get("fill_value"), scalar, fail), stored)


def _stored(entry: Any, key: str, scalar: str, fail: Callable[[str], NoReturn]) -> Stored:
    """A buffer's entry in the header."""
    if not isinstance(entry, dict):
        fail(f"{key} is {entry!r:.80}; expected dtype, length and crc32")
    dtype, length, checksums = entry.get("dtype"), entry.get("length"), entry.get("crc32")
    if key == "values":
        values = np.dtype(np.uint16) if scalar == "bf16" else np.dtype(numpy_dtype(scalar))
        allowed = {text_of(values): values}
    else:
        allowed = {text_of(np.dtype(d)): np.dtype(d) for d in (np.int32, np.int64, np.bool_)}
    if not isinstance(dtype, str) or dtype not in allowed:
        fail(f"{key} has the dtype {dtype!r}; expected {' or '.join(allowed)}")
    if type(length) is not int or not 0 <= length < 2**60:
        fail(f"{key} has the length {length!r}; expected 0 to 2**60")
    blocks = -(-length * allowed[dtype].itemsize // BLOCK)
    if not isinstance(checksums, list) or len(checksums) != blocks or any(type(c) is not int for c in checksums):
        fail(f"{key} has not the checksums of {blocks} blocks")
    return Stored(allowed[dtype], length, tuple(checksums))


def text_of(dtype: np.dtype[Any]) -> str:
    """A dtype's name in the header: "i8", "f4", "b1"."""
    return dtype.str[1:]


def _text(body: Any) -> bytes:
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def _json_of(fill: Any) -> Any:
    """A fill value as JSON: special values as text, a complex number as its two parts."""
    if isinstance(fill, complex):
        return [_json_of(fill.real), _json_of(fill.imag)]
    if isinstance(fill, float) and not math.isfinite(fill):
        return repr(fill)
    return fill


def _fill_of(value: Any, scalar: str, fail: Callable[[str], NoReturn]) -> Any:
    """The fill value of a header, of the scalar type."""
    parts = value if isinstance(value, list) and len(value) == 2 and scalar.startswith("c") else [value]
    numbers = [_SPECIAL.get(x, x) if isinstance(x, str) else x for x in parts]
    expected = {"b": bool, "i": int, "u": int}.get(scalar[0] if scalar != "bf16" else "f", float)
    if not all(type(x) is expected for x in numbers):
        fail(f"fill_value is {value!r:.80}, which is not of {scalar}")
    bounds = np.iinfo(numpy_dtype(scalar)) if expected is int else None
    if bounds is not None and not bounds.min <= int(numbers[0]) <= bounds.max:
        fail(f"fill_value is {value!r:.80}, which is not of {scalar}")
    return complex(*numbers) if scalar.startswith("c") else numbers[0]
