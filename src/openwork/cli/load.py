"""Files and text from the command line, turned into tensors, SciPy arrays and formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openwork as ow
from openwork.progress import at_terminal

from .main import CliError, one_line

__all__ = ["about", "bindings", "check_path", "read", "split_outside", "to_csr"]


def read(path: str, format: str | None = None) -> Any:
    """The tensor in a file; a terminal is shown how much of it is read."""
    check_path(path)
    try:
        with at_terminal() as passes:
            return ow.read(path, format=format, progress=passes)
    except (ValueError, TypeError) as error:
        raise CliError(about(path, error)) from error


def about(path: str, error: BaseException) -> str:
    """What is wrong with a file, in a line that names it once."""
    text = one_line(error)
    return text if path in text else f"{path}: {text}"


def check_path(path: str) -> None:
    """Refuse what is no file, and no folder that is one of ours or a zarr store."""
    if not Path(path).is_file() and not path.rstrip("/").endswith((".ow", ".zarr")):
        raise CliError(f"{path}: no such file" if not Path(path).exists() else f"{path}: not a file")


def to_csr(t: Any) -> Any:
    """A matrix as a SciPy CSR array with sorted, unique columns."""
    if t.ndim != 2:
        raise CliError(f"this needs a matrix; the file holds a tensor of {t.ndim} dimensions, shape {t.shape}")
    return t.asformat("csr").to_scipy("csr")


def split_outside(text: str, separator: str = ",") -> list[str]:
    """Split at separators that are not inside parentheses: `"csr,bsr(4,4)" -> ["csr", "bsr(4,4)"]`."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


def bindings(items: list[str], what: str) -> dict[str, str]:
    """`["A=csr,B=csc", "x=dense"] -> {"A": "csr", "B": "csc", "x": "dense"}`."""
    result: dict[str, str] = {}
    for part in (part for item in items for part in split_outside(item)):
        name, equals, value = part.partition("=")
        if not (equals and name.strip().isidentifier() and value.strip()):
            raise CliError(f"{what}: expected NAME={what.rstrip('s').upper()}, got {part!r}")
        if name.strip() in result:
            raise CliError(f"{what}: {name.strip()} is given twice")
        result[name.strip()] = value.strip()
    return result
