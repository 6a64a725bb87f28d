"""Level and Format: a storage format as an immutable value, equal by structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, repeat
from typing import Any

from openwork.errors import FormatError, ShapeError
from openwork.format.expression import Dim, Div, dimensions, interval, rename, render
from openwork.format.level import Level, LevelFormat
from openwork.format.message import Problem, refusal
from openwork.format.printer import encoded, show, show_with_spans
from openwork.format.rules import check
from openwork.integers import integers

from ..provided import provided

recognise: Callable[..., str | None] = provided("recognise", __name__)


__all__ = ["Format", "Level", "unpickled"]


_format_numbers: dict[Format, int] = {}
_numbers = count()


@dataclass(frozen=True, eq=False, repr=False)
class Format:
    """A storage format: the names of the dimensions, and the levels from the outermost to the leaf.

    Parameters
    ----------
    dims : names of the dimensions; they play no part in equality
    levels : the storage levels; a dimension in them is its position in `dims`
    explicit : what an encoding of MLIR's says that every stored element is, None of others; no part in equality

    Guarantees: `format(str(f)) == f`; equal formats have equal hashes; pickling keeps equality in any process.
    Raises FormatError, with a caret under the place, if the levels do not determine every dimension, or a level format
    is not allowed there.

    Examples
    --------
    >>> f = ow.format("bsr(2, 3)")
    >>> f.name, f.ndim, f.blocksize
    ('bsr(2, 3)', 2, (2, 3))
    >>> f == ow.format("(r, c) -> (r // 2 : dense, c // 3 : compressed, r % 2 : dense, c % 3 : dense)")
    True
    """

    dims: tuple[str, ...]
    levels: tuple[Level, ...]
    inverse: tuple[tuple[tuple[int, int], ...], ...] = field(init=False)
    """for every dimension its linear form ((level, coefficient), ...) in level coordinates"""
    text: str = field(init=False)
    """the format in the language that it is parsed from; made with the format, so that torch.compile can read it"""
    _hash: int = field(init=False)
    explicit: bool | int | float | complex | None = None

    def __post_init__(self) -> None:
        dims, levels = tuple(self.dims), tuple(self.levels)
        solution = check(dims, levels)
        if isinstance(solution, Problem):
            text, spans = show_with_spans(dims, levels)
            raise refusal(solution.what, text, spans[solution.place], solution.detail, solution.help)
        names = tuple(level.format.name for level in levels)
        object.__setattr__(self, "dims", dims)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "inverse", tuple(tuple(sorted(solution.forms[d].items())) for d in range(len(dims))))
        text = show(dims, levels)
        object.__setattr__(self, "text", text if self.explicit is None else encoded(text, self.explicit))
        object.__setattr__(self, "_hash", hash((len(dims), names, levels)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Format):
            return NotImplemented
        return self._hash == other._hash and len(self.dims) == len(other.dims) and self.levels == other.levels

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (self.dims, self.levels, *(() if self.explicit is None else (self.explicit,)))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"format({self.text!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    @cached_property
    def canonical(self) -> str:
        """The format's text with its dimensions called d0, d1, ...: equal formats have equal ones."""
        return show(tuple(f"d{d}" for d in range(self.ndim)), self.levels)

    @cached_property
    def identity(self) -> str:
        """What kernels of the format are made of, in every process: its canonical text, and its level functions."""
        return f"{self.canonical} of {' '.join(level.format.definition for level in self.levels)}"

    @cached_property
    def name(self) -> str | None:
        """The named format that this one is, arguments included ("csr", "bsr(2, 3)"), or None.

        Guarantees: `format(f.name, f.ndim, batch=f.batch_ndim, dense=0 if f.is_dense else f.dense_ndim) == f`.
        """

        return recognise(self)

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def nlevels(self) -> int:
        return len(self.levels)

    @cached_property
    def number(self) -> int:
        """A number that equal formats share."""
        return _format_numbers.get(self) or _format_numbers.setdefault(self, next(_numbers))

    @cached_property
    def batch_ndim(self) -> int:
        """The number of leading batch levels."""
        return sum(level.format.batched for level in self.levels)

    @cached_property
    def ends_in_singleton(self) -> bool:
        """Whether each position of the last level is one of the level above."""
        return bool(self.levels) and self.levels[-1].format.is_singleton

    @cached_property
    def is_structured(self) -> bool:
        """Whether the last level has the same number of children for each parent, n of m."""
        return bool(self.levels) and self.levels[-1].format.is_structured

    @cached_property
    def dense_ndim(self) -> int:
        """The number of trailing dense levels on dimensions of their own; of a dense format all but the batch."""
        if self.is_dense:
            return self.ndim - self.batch_ndim
        uses = [d for level in self.levels for d in dimensions(level.expression)]
        count = 0
        for level in reversed(self.levels):
            if not level.format.is_dense or not isinstance(level.expression, Dim):
                break
            if uses.count(level.expression.index) > 1:
                break
            count += 1
        return count

    @property
    def sparse_ndim(self) -> int:
        """The number of dimensions that are neither batch nor dense."""
        return self.ndim - self.batch_ndim - self.dense_ndim

    @cached_property
    def is_dense(self) -> bool:
        """Whether every level is dense or batch."""
        return all(level.format.functions.full for level in self.levels)

    @cached_property
    def is_padded(self) -> bool:
        """Whether a level may store slots that are no elements."""
        return any(level.format.functions.padded for level in self.levels)

    @cached_property
    def is_unique(self) -> bool:
        """Whether no element can be stored twice: the last level that is not dense is unique."""
        sparse = [level.format for level in self.levels if not level.format.functions.full]
        return not sparse or sparse[-1].unique

    @cached_property
    def is_ordered(self) -> bool:
        """Whether elements are stored in lexicographic order of their level coordinates."""
        return all(level.format.ordered for level in self.levels)

    @cached_property
    def blocksize(self) -> tuple[int, ...] | None:
        """The block's extent in each sparse dimension, 1 where it is not split; None for a format without blocks."""
        by_dimension = {level.expression.index: level for level in self.levels if isinstance(level.expression, Dim)}
        unsplit = [d for d, level in by_dimension.items() if level.format.batched]
        if not self.is_dense:
            unsplit += [next(dimensions(level.expression)) for level in self.levels[self.nlevels - self.dense_ndim :]]
        sizes: dict[int, int] = {}
        for level in self.levels:
            size, base = 1, level.expression
            while isinstance(base, Div):
                size, base = size * base.divisor, base.base
            if isinstance(base, Dim) and isinstance(level.expression, Div):
                sizes[base.index] = max(size, sizes.get(base.index, 1))
        return tuple(sizes.get(d, 1) for d in range(self.ndim) if d not in unsplit) if sizes else None

    def level_intervals(self, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The half-open coordinate range of every level for a tensor of this shape."""
        if len(shape) != len(self.dims):
            raise ShapeError(
                f"format {self}: expected: a shape of {len(self.dims)} extents; got: {tuple(shape)}\n"
                f"  help: give one extent for each of {', '.join(self.dims) or 'no dimensions'}"
            )
        if self.level_dims is not None:
            return tuple(zip(repeat(0), map(shape.__getitem__, self.level_dims), strict=False))
        return tuple([level.format.interval(*interval(level.expression, shape)) for level in self.levels])

    @cached_property
    def level_dims(self) -> tuple[int, ...] | None:
        """The dimension that each level stores as it is; None where a level's coordinates are computed from them."""
        plain = [
            level.expression.index
            for level in self.levels
            if isinstance(level.expression, Dim) and type(level.format).interval is LevelFormat.interval
        ]
        return tuple(plain) if len(plain) == len(self.levels) else None

    @cached_property
    def position_texts(self) -> tuple[str | None, ...]:
        """The level functions that give each level's number of positions; None where it has one for each coordinate."""
        functions = [level.format.functions for level in self.levels]
        return tuple([None if f.full else f.positions for f in functions])

    @cached_property
    def has_bitmap(self) -> bool:
        """Whether a level says by bits which of its positions are elements."""
        return any(level.format.is_bitmap for level in self.levels)

    def ragged(self, shape: Sequence[int]) -> bool:
        """Whether level coordinates inside their ranges can lie outside the shape, so that walking them needs a guard.

        True where a block does not divide its extent, and for a diagonal whose dimension is not a range.
        """
        if not self.guarded:
            return False
        intervals = self.level_intervals(shape)
        if any(lo == hi for lo, hi in intervals):
            return False
        for d in self.guarded:
            low = high = 0
            for level, coefficient in self.inverse[d]:
                ends = intervals[level][0] * coefficient, (intervals[level][1] - 1) * coefficient
                low, high = low + min(ends), high + max(ends)
            if low < 0 or high >= shape[d]:
                return True
        return False

    @cached_property
    def guarded(self) -> tuple[int, ...]:
        """The dimensions that can exceed the shape: neither a level of their own nor completed by a range level."""
        return tuple(
            d for d, form in enumerate(self.inverse) if len(form) > 1 and not self.levels[form[-1][0]].format.is_range
        )

    def permute(self, axes: Sequence[int]) -> Format:
        """The format of the transposed tensor over the same buffers: its dimension k is dimension axes[k] of this one.

        axes : a permutation of the dimensions

        Guarantees: `f.permute(a).permute(inverse of a) == f`; levels, and so buffers, stay as they are.
        """
        order = tuple([a + self.ndim * (a < 0) for a in integers(axes, "permute", "axes")])
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError(
                f"permute {self}: expected: a permutation of 0 to {self.ndim - 1}; got: {tuple(axes)}\n"
                f"  help: name each of the {self.ndim} dimensions once"
            )
        found = self._permuted.get(tuple(order))
        if found is None:
            position = sorted(range(self.ndim), key=order.__getitem__)
            levels = tuple(Level(rename(level.expression, position), level.format) for level in self.levels)
            found = Format(tuple(self.dims[axis] for axis in order), levels, self.explicit)
            self._permuted[tuple(order)] = found
        return found

    @cached_property
    def _permuted(self) -> dict[tuple[int, ...], Format]:
        """The formats of transposes, by axes."""
        return {}

    def describe(self) -> str:
        """A table of the levels: coordinate, level format, buffers, children and positions."""
        head = ("level", "coordinate", "level format", "buffers", "children of p", "positions")
        rows = [head]
        for index, level in enumerate(self.levels):
            f = level.format
            expression = render(level.expression, self.dims)
            rows.append((str(index), expression, str(f), ", ".join(f.buffers) or "-", f.summary, f.functions.positions))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def unpickled(dims: tuple[str, ...], levels: tuple[Level, ...], explicit: Any = None) -> Format:
    """A format of a pickle, which may hold anything. Raises FormatError where it is none."""
    is_valid = (
        type(dims) is tuple and all(type(d) is str and d.isidentifier() for d in dims) and len({*dims}) == len(dims)
    )
    is_valid = is_valid and (explicit is None or type(explicit) in (bool, int, float, complex))
    if not is_valid or type(levels) is not tuple or not all(isinstance(level, Level) for level in levels):
        raise FormatError(f"unpickling: no format of {dims!r} and {levels!r}\n  help: the file was changed")
    named = {d for level in levels for d in dimensions(level.expression)}
    if max(named, default=-1) >= len(dims):
        raise FormatError(f"unpickling: dimension {max(named)} of {len(dims)}\n  help: the file was changed")
    return Format(dims, levels, explicit)
