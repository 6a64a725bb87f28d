"""A path or a file-like argument -> the path as text. Raises TypeError, ValueError, which say what a path is."""

from __future__ import annotations

import os

from ...errors import UnsupportedError
from .remote import is_url

__all__ = ["path_of"]


def path_of(given: object, operation: str, url: bool = False) -> str:
    """The text of a path.

    Raises TypeError for what is none: bytes, a descriptor, None; ValueError for characters that no name has;
    UnsupportedError for a URL where these are not taken.
    """
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if isinstance(text, bytes):
        raise TypeError(f"{operation}: expected a path as text; got: bytes\n  help: os.fsdecode(path)")
    if not isinstance(text, str):
        remedy = "write(path, t)" if operation == "write" else "a str or a pathlib.Path"
        raise TypeError(f"{operation}: expected a path; got: {type(given).__name__}\n  help: {remedy}")
    if "\0" in text:
        raise ValueError(f"{operation}: a path with a NUL character at {text.index(chr(0))}: {text[:80]!r}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{operation}: a path with a character that names of files do not have, at {error.start}: {text[:80]!r}"
        ) from None
    if not url and is_url(text):
        raise UnsupportedError(
            f"{operation}: {text[:200]} is a URL\n  supported: ow.read, ow.write and ow.convert of URLs, which copy the"
            " file\n  help: ow.convert(url, path) first"
        )
    return text
