"""The error types and the warning: each message says the operation, what was got, what was expected and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BlockError",
    "CompilerBug",
    "ConvergenceWarning",
    "DTypeError",
    "ExportError",
    "FileFormatError",
    "FormatError",
    "InvariantError",
    "ReadOnlyError",
    "ShapeError",
    "SizeError",
    "UnsupportedError",
    "suggestion",
]


class FormatError(ValueError):
    """A storage format that does not parse, is not invertible, or does not suit the operation."""


class ShapeError(ValueError):
    """Shapes or extents that do not agree."""


class SizeError(ShapeError, MemoryError):
    """A result, or a part of the way to it, with more bytes than can be had; the message says how many."""


class InvariantError(ValueError):
    """Buffers that break a numbered invariant of the storage (`docs/design.md`, section 3)."""


class ReadOnlyError(ValueError):
    """An in-place form of a tensor whose memory may not be written to."""


class DTypeError(TypeError):
    """A dtype that an operation does not take."""


class FileFormatError(ValueError):
    """A file that breaks the rules of its own format; the message names the line."""


class UnsupportedError(NotImplementedError):
    """Something that is not supported; the message says what is."""


class ExportError(UnsupportedError, BufferError):
    """An array that DLPack cannot hold: a BufferError, as the array API asks for."""


class BlockError(RuntimeError):
    """A block of a tensor on workers or on disk that is lost or damaged; the message names it."""


class CompilerBug(RuntimeError):
    """A fault of the compiler itself: the message carries the stage, the IR and the kernel's key."""


class ConvergenceWarning(RuntimeWarning):
    """An iterative solver that ended before it reached its tolerance.

    operation : the solver's name; iterations : how many it took; residual : the norm of `b - A @ x` at the end
    """

    def __init__(self, message: str, operation: str = "", iterations: int = 0, residual: float = float("nan")) -> None:
        super().__init__(message)
        self.operation, self.iterations, self.residual = operation, iterations, residual


def suggestion(name: object, known: Iterable[str]) -> str:
    """What is asked at the end of a message about a name that is not there; nothing where no name is like it."""
    found = get_close_matches(str(name)[:60], [n for n in known if not n.startswith("_")], 1, 0.7)
    return f"\n  help: did you mean {found[0]!r}?" if found else ""


WIDTH = 100
"""Characters of a text that a message shows."""


def clip(line: str) -> str:
    """One printable line of limited length, with its end, where the message says what was got."""
    line = "".join(c if c.isprintable() else " " for c in line)
    return line if len(line) <= 2 * WIDTH else f"{line[:WIDTH]}...{line[-WIDTH:]}"


def marked(text: str, offset: int) -> str:
    """The part of a text around a place, on one line, and a caret under the place."""
    shown, column = _window(text, offset)
    return f"  {shown}\n  {' ' * column}^"


def _window(text: str, offset: int) -> tuple[str, int]:
    """At most WIDTH characters of text on one line, and the caret's column in them."""
    line = "".join(c if c.isprintable() else " " for c in text[max(0, offset - WIDTH) : offset + WIDTH])
    column = min(offset, WIDTH)
    if len(text) <= WIDTH:
        return line, column
    start = max(0, column - WIDTH // 2)
    ellipsis = "..." if start or offset > WIDTH else ""
    part = line[start : start + WIDTH - 6]
    right = "..." if max(0, offset - WIDTH) + start + len(part) < len(text) else ""
    return ellipsis + part + right, column - start + len(ellipsis)
