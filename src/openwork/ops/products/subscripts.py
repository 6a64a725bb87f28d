"""The subscripts of an einsum and the operands' ranks -> the letters of each term and of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

from ...errors import ShapeError
from ...integers import integer

__all__ = ["Subscripts", "parse_subscripts", "subscripts_of"]

Subscripts = tuple[tuple[str, ...], str, str]
"""The letters of each term, those of the result, and those that an ellipsis stands for."""


_LABELS = ascii_uppercase + ascii_lowercase
"""Letters of numbered indices, in the order of the numbers."""


def subscripts_of(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """(A, [0, 1], B, [1, 2], [0, 2]) -> ("AB,BC->AC", (A, B)); the last list, the result's, may be left out.

    Raises ShapeError where a list is missing, DTypeError for what is no number of an index.
    """
    pairs, output = (arguments[:-1], arguments[-1:]) if len(arguments) % 2 else (arguments, ())
    lists = [*pairs[1::2], *output]
    if not pairs or not all(isinstance(x, list | tuple) for x in lists):
        raise ShapeError("einsum: expected a text, or operands and lists in turn\n  help: einsum('ij,jk->ik', A, B)")
    terms = ["".join(_label(n) for n in x) for x in lists]
    text = ",".join(terms[: len(pairs) // 2]) + ("->" + terms[-1] if output else "")
    return text, tuple(pairs[::2])


def _label(n: Any) -> str:
    if n is Ellipsis:
        return "..."
    index = integer(n, "einsum", "an index")
    if not 0 <= index < len(_LABELS):
        raise ShapeError(f"einsum: index {index}\n  expected: 0 to {len(_LABELS) - 1}\n  help: number indices from 0")
    return _LABELS[index]


@lru_cache(maxsize=1024)
def parse_subscripts(text: str, ranks: tuple[int, ...]) -> Subscripts:
    """The terms and the result of an einsum's text, for operands of these ranks; an ellipsis becomes letters.

    Raises ShapeError where the text does not fit the operands.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ShapeError(f"einsum {text!r} has {len(inputs)} terms, got {len(ranks)} operands")
    bad = [c for c in left.replace(",", "").replace("...", "") + right.replace("...", "") if not c.isalpha()]
    if bad:
        raise ShapeError(f"einsum {text!r}: {bad[0]!r} is not an index letter\n  help: write 'ij,jk->ik'")
    for term in (*inputs, right):
        if term.count("...") > 1:
            raise ShapeError(
                f"einsum {text!r}: the term {term!r} has {term.count('...')} ellipses\n  expected: one at most"
                "\n  help: an ellipsis stands for all dimensions without a letter"
            )
    free_letters = [c for c in reversed(ascii_letters) if c not in text]
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(inputs, ranks, strict=True)]
    ellipsis_rank = max((w for term, w in zip(inputs, widths, strict=True) if "..." in term), default=0)
    terms = []
    for term, width, rank in zip(inputs, widths, ranks, strict=True):
        if width < 0 or (width and "..." not in term):
            raise ShapeError(
                f"einsum {text!r}: the term {term!r} has {len(term.replace('...', ''))} letters, its operand"
                f" {rank} dimensions\n  help: write one letter for each, or an ellipsis"
            )
        terms.append(term.replace("...", "".join(free_letters[ellipsis_rank - width : ellipsis_rank])))
    letters = "".join(terms)
    if arrow:
        out = right.replace("...", "".join(free_letters[:ellipsis_rank]))
    else:
        written = left.replace(",", "").replace("...", "")
        out = "".join((*free_letters[:ellipsis_rank], *sorted(c for c in set(written) if written.count(c) == 1)))
    unknown = [c for c in out if c not in letters]
    if unknown or len(set(out)) != len(out):
        raise ShapeError(
            f"einsum {text!r}: the output has {(unknown or [out])[0]!r}, which must stand once and on the left"
        )
    return tuple(terms), out, "".join(free_letters[:ellipsis_rank])
