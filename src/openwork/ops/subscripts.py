"""The text of an einsum: terms, result, ellipsis."""

from __future__ import annotations

from functools import lru_cache
from string import ascii_letters

from ..errors import ShapeError

__all__ = ["Subscripts", "parse_subscripts"]

Subscripts = tuple[tuple[str, ...], str, str]
"""The letters of each term, those of the result, and those that an ellipsis stands for."""


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
        raise ShapeError(f"einsum {text!r}: {bad[0]!r} is no index letter\n  help: write 'ij,jk->ik'")
    spare = [c for c in reversed(ascii_letters) if c not in text]
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(inputs, ranks, strict=True)]
    widest = max((w for term, w in zip(inputs, widths, strict=True) if "..." in term), default=0)
    terms = []
    for term, width, rank in zip(inputs, widths, ranks, strict=True):
        if width < 0 or (width and "..." not in term):
            raise ShapeError(
                f"einsum {text!r}: the term {term!r} has {len(term.replace('...', ''))} letters, its operand"
                f" {rank} dimensions\n  help: write one letter for each, or an ellipsis"
            )
        terms.append(term.replace("...", "".join(spare[widest - width : widest])))
    letters = "".join(terms)
    if arrow:
        out = right.replace("...", "".join(spare[:widest]))
    else:
        named = left.replace(",", "").replace("...", "")
        out = "".join((*spare[:widest], *sorted(c for c in set(named) if named.count(c) == 1)))
    unknown = [c for c in out if c not in letters]
    if unknown or len(set(out)) != len(out):
        raise ShapeError(
            f"einsum {text!r}: the output has {(unknown or [out])[0]!r}, which must stand once and on the left"
        )
    return tuple(terms), out, "".join(spare[:widest])
