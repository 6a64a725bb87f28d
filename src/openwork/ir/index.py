"""Index notation: statements over tensor elements, before any format or loop is chosen; their printed form.

Grammar (the printed form parses back, see `ir.index_text`)::

    assignment := access OP expression                OP: = += *= min= max= |= &=
                | NAME < mask > [ INDEX , ... ] OP expression
    mask       := access | ~ access                   the elements that it specifies, or all others
    access     := NAME [ INDEX , ... ]                a tensor's element; NAME alone is a scalar
    expression := access | literal | expression OPERATOR expression | FUNCTION ( expression , ... )

An index of the right side that the left side lacks is reduced: the whole right side is combined over it by the
assignment's operator (`=` and `+=` sum). The result is new: earlier values of the left side play no part, and elements
outside the mask are not computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..classes import frozen
from .operations import INFIX

__all__ = [
    "ASSIGNMENTS",
    "PRESENCE",
    "REDUCED_BY",
    "Access",
    "Apply",
    "Assignment",
    "Expression",
    "Literal",
    "accesses",
    "show",
]

PRESENCE = ("either", "given")
"""Operations of two operands that decide by presence, see `compiler.fill`: `either(a, b)` is b where a is missing,
`given(a, b)` is a where both are present."""

ASSIGNMENTS = {"=": "add", "+=": "add", "*=": "mul", "min=": "min", "max=": "max", "|=": "or", "&=": "and"}
"""The operators of an assignment, and the operation by which each reduces."""

REDUCED_BY = {"add": "sum", "mul": "prod", "min": "min", "max": "max", "or": "any", "and": "all"}
"""The reduction of tensors that combines elements by such an operation."""


@frozen
class Access:
    """The element of `tensor` at `indices`; a scalar has none."""

    tensor: str
    indices: tuple[str, ...] = ()

    def __str__(self) -> str:
        return show(self)


@frozen(eq=False)
class Literal:
    """A number; equal when the kind and the bits are (1, 1.0 and True differ, NaN equals NaN)."""

    value: bool | int | float | complex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))

    def __str__(self) -> str:
        return show(self)


@frozen
class Apply:
    """An operation of `ir.ops`, by name, on expressions."""

    op: str
    args: tuple[Expression, ...]

    def __str__(self) -> str:
        return show(self)


Expression = Access | Literal | Apply


@frozen(slots=False)
class Assignment:
    """`lhs op rhs`, at the elements that a mask specifies. The derived properties are in order of first appearance."""

    lhs: Access
    op: str
    rhs: Expression
    mask: Access | None = None
    complement: bool = False
    """whether the mask specifies the elements that are not computed"""

    def __str__(self) -> str:
        target = str(self.lhs)
        if self.mask is not None:
            mask_text = f"<{'~' * self.complement}{self.mask}>"
            target = self.lhs.tensor + mask_text + target.removeprefix(self.lhs.tensor)
        return f"{target} {self.op} {self.rhs}"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.lhs, self.op, self.rhs, self.mask, self.complement))

    @cached_property
    def forms(self) -> dict[str, Any]:
        """What the runtime derives of the statement, kept with it: by the name of its sparse operand."""
        return {}

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Each distinct access of the right side."""
        return tuple(dict.fromkeys(accesses(self.rhs)))

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The names of the right side's tensors, each once."""
        return tuple(dict.fromkeys(a.tensor for a in self.accesses))

    @property
    def free_indices(self) -> tuple[str, ...]:
        return self.lhs.indices

    @cached_property
    def reduction_indices(self) -> tuple[str, ...]:
        reduced = (i for a in self.accesses for i in a.indices if i not in self.lhs.indices)
        return tuple(dict.fromkeys(reduced))

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """Free indices, then reduction indices."""
        return (*self.free_indices, *self.reduction_indices)

    @property
    def reduction(self) -> str:
        """The operation that combines the right side over the reduction indices."""
        return ASSIGNMENTS[self.op]


def accesses(e: Expression) -> Iterator[Access]:
    """Every access in `e`, from left to right, repeated ones too."""
    match e:
        case Access():
            yield e
        case Apply(_, args):
            for arg in args:
                yield from accesses(arg)


_COMPARE, _NEGATE, _POWER, _ATOM = INFIX["eq"][1], 12, INFIX["pow"][1], 14
PREFIX = {"not": ("not ", 4), "neg": ("-", _NEGATE), "bnot": ("~", _NEGATE)}


def show(e: Expression) -> str:
    """The text of an expression, with the fewest parentheses."""
    return _show(e, 0)


def _show(e: Expression, level: int) -> str:
    text, binds = _text(e)
    return text if binds >= level else f"({text})"


def _text(e: Expression) -> tuple[str, int]:
    match e:
        case Access(tensor, ()):
            return tensor, _ATOM
        case Access(tensor, indices):
            return f"{tensor}[{', '.join(indices)}]", _ATOM
        case Literal(complex() as z):
            return f"complex({z.real!r}, {z.imag!r})", _ATOM
        case Literal(value):
            text = repr(value)
            return text, _NEGATE if text[0] == "-" else _ATOM
        case Apply("neg", (Literal(),)):
            return f"neg({_show(e.args[0], 0)})", _ATOM
        case Apply(op, (arg,)) if op in PREFIX:
            word, level = PREFIX[op]
            return word + _show(arg, level), level
        case Apply(op, (left, right)) if op in INFIX:
            word, level = INFIX[op]
            low = _ATOM if level == _POWER else level + (level == _COMPARE)
            high = _NEGATE if level == _POWER else level + 1
            return f"{_show(left, low)} {word} {_show(right, high)}", level
        case Apply(op, args):
            return f"{op}({', '.join(_show(a, 0) for a in args)})", _ATOM
