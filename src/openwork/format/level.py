"""Level formats: name, arguments, the buffers that are stored, and a form.

The form is the level functions (`functions.py`), one of those in `forms.py`: all code that reads or writes buffers
supports these. Other modules use properties of a level format, which follow from its form.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from openwork.classes import frozen
from openwork.errors import FormatError
from openwork.format.expression import Add, Dim, Div, Expression, Mod, Sub
from openwork.format.forms import form_of
from openwork.format.functions import Insert, Iterate, LevelFunctions
from openwork.format.message import Problem, counted, refusal

__all__ = ["MAX_INTEGER", "Insert", "Iterate", "Level", "LevelFormat", "LevelFunctions", "unpickled", "unpickled_level"]

MAX_INTEGER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LevelFormat:
    """How one level is stored. A subclass per level format; its integer fields are the arguments of its text."""

    unique: bool = field(default=True, kw_only=True)
    ordered: bool = field(default=True, kw_only=True)
    definition: str = field(init=False, repr=False, kw_only=True)
    """a digest of the level functions and buffers of its class: level formats of one name that differ in them are not
    equal, and share neither plans nor kernels"""

    name: ClassVar[str]
    functions: ClassVar[LevelFunctions]
    buffers: ClassVar[tuple[str, ...]] = ()
    """the buffers it stores: "pos", "crd" or both, in this order"""
    may_be: ClassVar[tuple[str, ...]] = ()
    """the properties that it may have instead of unique and ordered: "nonunique", "unordered" """
    parameters: ClassVar[tuple[str, ...]] = ()
    """the names of its arguments"""
    invariants: ClassVar[tuple[str, ...]] = ()
    """numbers of the index invariants that its buffers keep"""
    summary: ClassVar[str] = ""
    """the children of position p, in words"""
    batched: ClassVar[bool] = False
    """the buffers of deeper levels get a leading axis for it"""

    def __init_subclass__(cls) -> None:
        """Refuse a level format of an unknown form. Raises FormatError."""
        form_of(cls.name, cls.functions, cls.buffers, cls.parameters)

    def __post_init__(self) -> None:
        if problem := self.problem(self.arguments, self.properties):
            text, kind = str(self), problem.place[0]
            offset = text.index(kind) if kind in self.properties else len(self.name) + 1
            raise refusal(problem.what, text, offset, problem.detail, problem.help)
        definition = _digest(self.functions, self.buffers, self.parameters, self.batched)
        object.__setattr__(self, "definition", definition)

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled, (type(self), self.arguments, self.unique, self.ordered)

    # -- what the level functions say, in words: this is what the rest of the package asks --------------------------

    @property
    def is_dense(self) -> bool:
        """Every coordinate has its position, nothing is stored, and deeper buffers are linearised."""
        return self.functions.full and not self.batched

    @property
    def is_range(self) -> bool:
        """The coordinates are those of a diagonal inside the shape; all of the extent have positions."""
        return self.functions.bounds == ("valid_lo", "valid_hi")

    @property
    def is_bitmap(self) -> bool:
        """crd holds a truth value for every coordinate, not coordinates."""
        return self.functions.iterate is Iterate.COORDINATE and "crd" in self.buffers

    @property
    def stores_coordinates(self) -> bool:
        """crd holds coordinates."""
        return "crd" in self.buffers and not self.is_bitmap

    @property
    def is_located(self) -> bool:
        """Every parent has a position for every coordinate: the extent's number of them."""
        return self.functions.locate is not None

    @property
    def is_compressed(self) -> bool:
        """pos[p], pos[p + 1] bound the children of p, which follow those of the parent before."""
        return self.functions.pos_length == "parents + 1"

    @property
    def is_loose(self) -> bool:
        """pos[2 * p], pos[2 * p + 1] bound the children of p, in any place."""
        return self.functions.pos_length == "2 * parents"

    @property
    def is_singleton(self) -> bool:
        """Every parent has one child, at its own position."""
        return self.functions.branchless

    @property
    def slots(self) -> int | None:
        """The number of positions of each parent, where it is the level's first argument; else None."""
        return self.arguments[0] if self.functions.insert is Insert.SLOT else None

    @property
    def has_sentinel(self) -> bool:
        """Unused slots hold a sentinel in place of a coordinate."""
        return self.functions.insert is Insert.SLOT and self.functions.padded

    @property
    def is_structured(self) -> bool:
        """All slots are in use: each parent has the same number of children."""
        return self.functions.insert is Insert.SLOT and not self.functions.padded

    def interval(self, low: int, high: int) -> tuple[int, int]:
        """The half-open range of its coordinates, where its expression takes the values of `low` to `high`."""
        return low, high

    @property
    def index_scalars(self) -> tuple[str, ...]:
        """The types that its index buffers may have."""
        return ("i32", "i64")

    @property
    def arguments(self) -> tuple[int, ...]:
        return tuple(getattr(self, parameter) for parameter in self.parameters)

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that its text names: those that are not the default."""
        return (() if self.unique else ("nonunique",)) + (() if self.ordered else ("unordered",))

    @classmethod
    def problem(cls, arguments: tuple[int, ...], properties: tuple[str, ...]) -> Problem | None:
        """The problem with these arguments and properties, if there is one."""
        place = ("properties", 0)
        if len(arguments) != len(cls.parameters):
            what = f"{cls.name} takes {counted(len(cls.parameters))}"
            detail = f"expected: {cls.usage()}; got: {', '.join(map(str, arguments)) or 'none'}"
            return Problem(
                place, what, detail, f"write {cls.usage()}" + " with positive integers" * bool(cls.parameters)
            )
        for name in properties:
            if name not in cls.may_be:
                allowed = " or ".join(cls.may_be) or f"no property, {cls.name} is always unique and ordered"
                detail = f"expected: {allowed}; got: {name}"
                return Problem(
                    (name, 0), f"{cls.name} cannot be {name}", detail, f"leave it out, or use compressed({name})"
                )
        for parameter, value in zip(cls.parameters, arguments, strict=True):
            if type(value) is not int or not 1 <= value <= MAX_INTEGER:
                what = f"argument {parameter} of {cls.name} is not a positive integer"
                detail = f"expected: 1 <= {parameter} <= {MAX_INTEGER}; got: {value!r}"
                return Problem(place, what, detail, f"write {cls.usage()} with positive integers")
        return None

    @classmethod
    def usage(cls) -> str:
        """The level format's text with the names of its arguments."""
        return f"{cls.name}({', '.join(cls.parameters)})" if cls.parameters else cls.name

    def __str__(self) -> str:
        inside = ", ".join([*map(str, self.arguments), *self.properties])
        return f"{self.name}({inside})" if inside else self.name


@lru_cache(256)
def _digest(functions: LevelFunctions, buffers: tuple[str, ...], parameters: tuple[str, ...], batched: bool) -> str:
    """A short text that stands for these in keys of kernels, the same in every process."""
    return hashlib.sha256(f"{functions!r} {buffers} {parameters} {batched}".encode()).hexdigest()[:16]


def unpickled(kind: type[LevelFormat], arguments: tuple[int, ...], unique: bool, ordered: bool) -> LevelFormat:
    """A level format of a pickle, which may hold anything. Raises FormatError where there is no such level format."""
    is_valid = isinstance(kind, type) and issubclass(kind, LevelFormat) and type(arguments) is tuple
    if not is_valid or type(unique) is not bool or type(ordered) is not bool:
        raise FormatError(f"unpickling: no level format {kind!r} of {arguments!r}\n  help: the file was changed")
    try:
        return kind(*arguments, unique=unique, ordered=ordered)
    except TypeError as error:
        raise FormatError(f"unpickling: {kind.__name__} of {arguments!r}: {error}") from error


@frozen
class Level:
    """One storage level: the expression of its coordinate, and its level format."""

    expression: Expression
    format: LevelFormat

    def __reduce__(self) -> tuple[Any, ...]:
        return unpickled_level, (self.expression, self.format)


def unpickled_level(expression: Expression, format: LevelFormat) -> Level:
    """A level of a pickle, which may hold anything. Raises FormatError where it is none."""
    if not isinstance(format, LevelFormat) or not _is_expression(expression):
        raise FormatError(f"unpickling: no level {expression!r} : {format!r}\n  help: the file was changed")
    try:
        level_format = unpickled(type(format), format.arguments, format.unique, format.ordered)
    except AttributeError as error:
        raise FormatError(f"unpickling: a level format lacks a part: {error}") from error
    return Level(expression, level_format)


def _is_expression(e: object) -> bool:
    match e:
        case Dim(index):
            return type(index) is int and index >= 0
        case Add(left, right) | Sub(left, right):
            return all(isinstance(x, Dim) and _is_expression(x) for x in (left, right))
        case Div(base, divisor) | Mod(base, divisor):
            return type(divisor) is int and divisor > 0 and _is_expression(base)
    return False
