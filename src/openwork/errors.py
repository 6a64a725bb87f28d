"""The error types and the warning: each message says the operation, what was got, what was expected and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    "argument_hint",
    "broadcast_error",
    "suggestion",
]


class FormatError(ValueError):
    """A storage format that does not parse, is not invertible, or does not suit the operation.

    Examples
    --------
    >>> ow.format("(i, j) -> (i : dense, k : compressed)")
    Traceback (most recent call last):
    ...
    openwork.errors.FormatError: format: a level uses an unknown dimension
      (i, j) -> (i : dense, k : compressed)
                            ^
      known dimensions: i, j; got: k
      help: declare k on the left, or write j
    """


class ShapeError(ValueError):
    """Shapes or extents that do not agree.

    Examples
    --------
    >>> ow.eye(3) @ np.ones(4)
    Traceback (most recent call last):
    ...
    openwork.errors.ShapeError: matmul: inner extents differ, 3 and 4, in shapes (3, 3) and (4,)
      help: transpose an operand with .T, or check the order of the operands
    """


class SizeError(ShapeError, MemoryError):
    """A result, or a part of the way to it, with more bytes than can be had; the message says how many.

    Examples
    --------
    >>> ow.zeros((10**6, 10**7), format="dense")
    Traceback (most recent call last):
    ...
    openwork.errors.SizeError: full: an array of shape (10000000000000,) has 80,000,000,000,000 bytes
      expected: no more than there is memory for
      help: take a part of the tensor, A[rows], or an operation of its stored elements only; to_scipy() stays sparse
    """


class InvariantError(ValueError):
    """Buffers that break a numbered invariant of the storage (`docs/design.md`, section 3).

    Examples
    --------
    >>> ow.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3))
    Traceback (most recent call last):
    ...
    openwork.errors.InvariantError: level 1 (compressed) of "(i, j) -> (i : dense, j : compressed)": coordinates
      expected: 0 <= crd < 3; got: col_indices[1] == 5
      help: check the shape, or the coordinates (invariant 5.5)
    """


class ReadOnlyError(ValueError):
    """An in-place form of a tensor whose memory may not be written to.

    Examples
    --------
    >>> numbers = np.array([1.0, 2.0])
    >>> numbers.flags.writeable = False
    >>> A = ow.sparse_csr_tensor([0, 1, 2], [0, 1], numbers, (2, 2))
    >>> try:
    ...     A[0, 0] = 3.0
    ... except ow.ReadOnlyError as error:
    ...     print(str(error).splitlines()[-1])
      help: clone() the tensor, or asarray(..., copy=True)
    """


class DTypeError(TypeError):
    """A dtype that an operation does not take.

    Examples
    --------
    >>> ow.bitwise_and(ow.eye(3), 1)
    Traceback (most recent call last):
    ...
    openwork.errors.DTypeError: bitwise_and does not take float64, int
      help: convert with .astype(...)
    """


class FileFormatError(ValueError):
    """A file that breaks the rules of its own format; the message names the line.

    Examples
    --------
    >>> with open("a.mtx", "w") as file:
    ...     lines = file.write("%%MatrixMarket matrix coordinate real general\\n2 2 1\\n1 3 1.0\\n")
    >>> ow.read("a.mtx")
    Traceback (most recent call last):
    ...
    openwork.errors.FileFormatError: a.mtx, line 3: index 3 in column 2 is outside 1..2
      1 3 1.0
        ^
    """


class UnsupportedError(NotImplementedError):
    """Something that is not supported; the message says what is.

    Examples
    --------
    >>> ow.linalg.inv(ow.eye(3))
    Traceback (most recent call last):
    ...
    openwork.errors.UnsupportedError: inv: the inverse of a sparse matrix has no zeros to speak of
      help: solve(A, b) for inv(A) @ b, factorized(A) to solve again and again; inv takes asformat('dense')
    """


class ExportError(UnsupportedError, BufferError):
    """An array that DLPack cannot hold: a BufferError, as the array API asks for.

    Examples
    --------
    >>> try:
    ...     np.from_dlpack(ow.eye(3))
    ... except BufferError as error:
    ...     print(str(error).splitlines()[0])
    __dlpack__: a sparse tensor of shape (3, 3) would take 72 bytes as a dense array
    """


class BlockError(RuntimeError):
    """A block of a tensor on workers or on disk that is lost or damaged; the message names it.

    Examples
    --------
    >>> from openwork.interop.frames import opened, sealed
    >>> header = sealed("block (0, 3) of A", None, [b"sent"])  # as between two workers
    >>> opened(header, [b"lost"])
    Traceback (most recent call last):
    ...
    openwork.errors.BlockError: block (0, 3) of A is damaged on its way between processes or on disk
      expected checksum 00000000746e657300000000746e6573; got 0000000074736f6c0000000074736f6c
      help: compute it anew; look at the disk of the workers' local directory where it was spilled
    """


class CompilerBug(RuntimeError):
    """A fault of the compiler itself: the message carries the stage, the IR and the kernel's key.

    It is never the fault of the arguments: please report the whole of its text.

    Examples
    --------
    >>> import openwork.ir.text
    >>> openwork.ir.text.parse("def f(n: i64):\\n    m = n + k")  # a kernel, as the compiler writes them
    Traceback (most recent call last):
    ...
    openwork.errors.CompilerBug: loop IR text, line 2: unknown name 'k'; known: n
          m = n + k
                  ^
    """


class ConvergenceWarning(RuntimeWarning):
    """An iterative solver that ended before it reached its tolerance.

    operation : the solver's name
    iterations : how many it took
    residual : the norm of `b - A @ x` at the end

    Examples
    --------
    >>> import warnings
    >>> A = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(99, 99))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     x, info = ow.linalg.cg(A, np.ones(99), maxiter=5)
    >>> caught[0].message.operation, caught[0].message.iterations
    ('cg', 5)
    """

    def __init__(self, message: str, operation: str = "", iterations: int = 0, residual: float = float("nan")) -> None:
        super().__init__(message)
        self.operation, self.iterations, self.residual = operation, iterations, residual


def broadcast_error(operation: str, shapes: Sequence[tuple[int, ...]]) -> ShapeError:
    """What is raised where shapes do not broadcast; of a reduction along rows the help says how it would."""
    last = len(shapes) == 2 and min(map(len, shapes)) > 0 and abs(len(shapes[0]) - len(shapes[1])) == 1
    short, long = sorted(shapes, key=len)[:2] if last else ((), ())
    if last and all(a in (1, b) for a, b in zip(short, long, strict=False)):
        remedy = "keepdims=True in the reduction that it is from, or [..., None], gives it the last dimension"
    else:
        remedy = "extents agree from the last one on, or are 1; reshape an operand"
    return ShapeError(f"{operation}: shapes {' and '.join(map(str, shapes))} do not broadcast\n  help: {remedy}")


def suggestion(name: object, known: Iterable[str]) -> str:
    """What is asked at the end of a message about a name that is not there; nothing where no name is like it."""
    asked, names = str(name)[:60], [n for n in known if not n.startswith("_")]
    found = get_close_matches(asked, [n for n in names if abs(len(n) - len(asked)) <= 2], 1, 0.7)
    if not found and len(asked) >= 5:
        found = sorted((n for n in names if asked.lower() in n.lower()), key=len)
    return f"\n  help: did you mean {found[0]!r}?" if found else ""


_SAID_ELSEWHERE = {
    "dim": "axis", "dims": "axis", "axes": "axis", "keepdim": "keepdims", "random_state": "rng", "seed": "rng",
    "generator": "rng", "tol": "rtol", "tolerance": "rtol", "max_iter": "maxiter", "n_iter": "maxiter", "fmt": "format",
    "data_rvs": "values", "layout": "format",
}  # fmt: skip
"""Arguments of torch, SciPy, scikit-learn and others -> what they are called here."""


def argument_hint(name: str, known: Iterable[str]) -> str:
    """What to write in place of an argument that a function does not have, or which it has."""
    names = [n for n in known if not n.startswith("_")]
    if (meant := _SAID_ELSEWHERE.get(name)) in names:
        return f"\n  help: did you mean {meant!r}?"
    return suggestion(name, names) or f"\n  help: it takes {', '.join(names)}"


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
