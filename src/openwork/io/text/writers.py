"""Tensors -> text files: Matrix Market, FROSTT, Rutherford-Boeing, with the shortest numbers that read back exactly."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...classes import frozen
from ...errors import ShapeError, UnsupportedError
from ..shared.records import SYMMETRIES, Array, Coordinates, Step
from ..shared.replace import compressing
from ..shared.tensors import coordinates_of
from .declared import declaration
from .digits import table_lines

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["write_mtx", "write_rb", "write_tns"]

_ROWS = 1 << 16
Path_ = str | os.PathLike[str]


def write_mtx(path: Path_, t: Tensor, symmetry: str, comment: str, progress: Step | None) -> None:
    """Coordinates, or an array where the tensor is dense; other ranks than 2 as `vector` and `tensor`."""
    if symmetry != "general" and t.ndim == 2:
        t = t.asformat("dense_f" if t.format.is_dense else "coo")
    record = coordinates_of(t, "Matrix Market")
    symmetry = _resolve_symmetry(record, symmetry)
    record = _lower_triangle(record, symmetry)
    scalar = t._storage.scalar
    values = _text_values(record.values, scalar)
    field = {"f": "real", "i": "integer", "u": "integer", "c": "complex"}[values.dtype.kind]
    kind = {1: "vector", 2: "matrix"}.get(len(record.shape), "tensor")
    layout = "coordinate" if record.dense is None else "array"
    sizes = list(record.shape) + ([values.size] if record.dense is None else [])
    head = [f"%%MatrixMarket {kind} {layout} {field} {symmetry}"]
    head.append(f"%%{declaration(scalar)}")
    head += [f"% {line}" for line in comment.splitlines()]
    head.append(" ".join(map(str, sizes)))
    _write(path, head, record.indices, values, progress)


def write_tns(path: Path_, t: Tensor, comment: str, progress: Step | None) -> None:
    """One line per element; the shape and the number of elements stand in a comment, which `read` checks."""
    record = coordinates_of(t, ".tns")
    if record.dense is not None:
        indices = tuple(c.ravel(order="F") for c in np.indices(record.shape, np.int64))
        record = Coordinates(record.shape, indices, record.dense.ravel(order="F"))
    scalar = t._storage.scalar
    if record.values.dtype.kind == "c":
        raise UnsupportedError("write: .tns cannot hold complex values\n  help: write .mtx or .npz")
    head = [f"# {declaration(scalar)}", f"# shape {' '.join(map(str, record.shape))} entries {record.values.size}"]
    head += [f"# {line}" for line in comment.splitlines()]
    _write(path, head, record.indices, _text_values(record.values, scalar), progress)


def _write(path: Path_, head: Sequence[str], indices: tuple[Array, ...], values: Array, progress: Step | None) -> None:
    with compressing(path) as file:
        file.write(("\n".join(head) + "\n").encode())
        for start in range(0, values.size, _ROWS):
            stop = min(start + _ROWS, values.size)
            file.write(table_lines(tuple(c[start:stop] for c in indices), values[start:stop]))
            if progress is not None:
                progress(stop, values.size)


def _text_values(values: Array, scalar: str) -> Array:
    """Values in a dtype that text has: bool as integers, half precision as float32."""
    if scalar == "bool":
        return values.astype(np.int64)
    if scalar in ("f16", "bf16"):
        return values.astype(np.float32)
    return np.ascontiguousarray(values)


def _resolve_symmetry(record: Coordinates, asked: str) -> str:
    if asked == "general":
        return asked
    square = len(record.shape) == 2 and record.shape[0] == record.shape[1]
    kinds = SYMMETRIES[1:] if asked == "auto" else (asked,)
    symmetries = [k for k in kinds if square and _has_symmetry(record, k)]
    if not symmetries and asked != "auto":
        raise ShapeError(f"write: the tensor of shape {record.shape} is not {asked}\n  help: symmetry='general'")
    return symmetries[0] if symmetries else "general"


_REFLECTIONS: dict[str, Callable[[Array], Array]] = {
    "symmetric": lambda x: x, "skew-symmetric": np.negative, "hermitian": np.conj,
}  # fmt: skip
_NOT_OF = {"b": ("skew-symmetric", "hermitian"), "u": ("skew-symmetric",)}
"""Symmetries that matrices of a kind of dtype have not, whatever their elements: `read` asks for signs."""


def _has_symmetry(record: Coordinates, kind: str) -> bool:
    """Whether the matrix equals its own mirror image, element by stored element."""
    if kind in _NOT_OF.get(record.values.dtype.kind, ()):
        return False
    reflect = _REFLECTIONS[kind]
    nan = record.values.dtype.kind in "fc"
    if record.dense is not None:
        return np.array_equal(record.dense, reflect(record.dense.T), equal_nan=nan)
    row, column = record.indices
    order, mirrored = np.lexsort((column, row)), np.lexsort((row, column))
    if not (np.array_equal(row[order], column[mirrored]) and np.array_equal(column[order], row[mirrored])):
        return False
    return np.array_equal(record.values[order], reflect(record.values[mirrored]), equal_nan=nan)


def _lower_triangle(record: Coordinates, symmetry: str) -> Coordinates:
    """The stored triangle: the strictly lower one where skew."""
    if symmetry == "general":
        return record
    first_diagonal = -1 if symmetry == "skew-symmetric" else 0
    if record.dense is not None:
        n = record.shape[0]
        columns = [record.dense[j - first_diagonal :, j] for j in range(n)]
        values = np.concatenate(columns) if columns else record.values
        return Coordinates(record.shape, (), values, symmetry, record.dense)
    row, column = record.indices
    stored_half = row > column if first_diagonal else row >= column
    return Coordinates(record.shape, (row[stored_half], column[stored_half]), record.values[stored_half], symmetry)


@frozen
class _Section:
    """Numbers in a fixed-width Fortran format: `per` fields on each line, each printed with `form`."""

    fortran: str
    numbers: Array
    per: int
    form: str

    @property
    def lines(self) -> int:
        return -(-self.numbers.size // self.per)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Lines of text, some at a time, with how many numbers they hold."""
        step = _ROWS // self.per * self.per
        for start in range(0, self.numbers.size, step):
            numbers = self.numbers[start : start + step].tolist()
            full_lines = len(numbers) // self.per
            form = (self.form * self.per + "\n") * full_lines
            remaining = len(numbers) - full_lines * self.per
            form += self.form * remaining + "\n" if remaining else ""
            yield len(numbers), (form % tuple(numbers)).encode("ascii")


def write_rb(path: Path_, t: Tensor, symmetry: str, title: str, progress: Step | None) -> None:
    """Compressed columns of a matrix; reals with 17 significant digits, which read back exactly."""
    if t.ndim != 2 or t._storage.fill_value != 0:
        raise UnsupportedError("write: Rutherford-Boeing holds matrices with fill value 0\n  help: write .npz")
    record = coordinates_of(t.asformat("csc").asformat("coo"), "Rutherford-Boeing")
    symmetry = _resolve_symmetry(record, symmetry)
    record = _lower_triangle(record, symmetry)
    row, column = record.indices
    order = np.lexsort((row, column))
    row, values = row[order].astype(np.int64) + 1, _text_values(record.values[order], t._storage.scalar)
    pos = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=t.shape[1]))]) + 1
    letter = {"f": "r", "i": "i", "u": "i", "c": "c"}[values.dtype.kind]
    form = {"general": "u" if t.shape[0] == t.shape[1] else "r", "skew-symmetric": "z"}.get(symmetry, symmetry[0])
    parts = values.view(values.real.dtype) if letter == "c" else values
    sections = [_integers(pos), _integers(row), _integers(parts) if letter == "i" else _reals(parts.astype(np.float64))]
    counts = [section.lines for section in sections]
    head = [
        f"{(title.splitlines() or ['openwork'])[0][:72]:<72}|{'':<7}",
        f"{sum(counts):14d}{counts[0]:14d}{counts[1]:14d}{counts[2]:14d}",
        f"{letter + form + 'a':<14}{t.shape[0]:14d}{t.shape[1]:14d}{values.size:14d}{0:14d}",
        f"{sections[0].fortran:<16}{sections[1].fortran:<16}{sections[2].fortran:<20}",
    ]
    total, done = sum(section.numbers.size for section in sections), 0
    with compressing(path) as file:
        file.write(("\n".join(head) + "\n").encode("ascii", "replace"))
        for section in sections:
            for count, text in section.blocks():
                file.write(text)
                done += count
                if progress is not None:
                    progress(done, total)


def _integers(numbers: Array) -> _Section:
    """Integers, as narrow as they allow."""
    extremes = [int(numbers.min()), int(numbers.max())] if numbers.size else [0]
    width = max(len(str(n)) for n in extremes) + 1
    per = max(80 // width, 1)
    return _Section(f"({per}I{width})", numbers, per, f"%{width}d")


def _reals(numbers: Array) -> _Section:
    return _Section("(3E25.16)", numbers, 3, "%25.16E")
