"""The error types of the package. Each message says the operation, what was got, what was expected and a remedy."""

from __future__ import annotations

__all__ = [
    "CompilerBug",
    "DTypeError",
    "FileFormatError",
    "FormatError",
    "InvariantError",
    "ReadOnlyError",
    "ShapeError",
    "SizeError",
    "UnsupportedError",
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


class CompilerBug(RuntimeError):
    """A fault of the compiler itself: the message carries the stage, the IR and the kernel's key."""
