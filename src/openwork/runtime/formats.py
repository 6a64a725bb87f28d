"""A format's name or text, and a rank -> a Format; two formats -> whether buffers of one are valid for the other."""

from __future__ import annotations

from functools import cache

from ..errors import FormatError, ShapeError
from ..format import format as parse
from ..format.format import Format

__all__ = ["dense_format", "promises_less", "resolve_format"]


def resolve_format(format: object, ndim: int, like: Format | None = None, *, explicit: bool = False) -> Format:
    """`format`, a Format or its text or name, for a tensor of `ndim` dimensions.

    A name that stands for fewer dimensions keeps the batch dimensions of `like` and gets dense ones for the rest.
    explicit : an encoding's `explicitVal` is taken; a FormatError elsewhere, as it says something about values
    """
    if isinstance(format, Format):
        out = format
    elif like is not None and ndim > 2 and isinstance(format, str) and "->" not in format:
        try:
            out = parse(format, ndim)
        except FormatError as error:
            batch = min(like.batch_ndim, ndim - 2)
            try:
                out = parse(format, ndim, batch=batch, dense=ndim - 2 - batch)
            except FormatError:
                raise error from None
    else:
        out = parse(format, ndim)  # type: ignore[arg-type]
    if out.ndim != ndim:
        raise ShapeError(
            f"format {out} has {out.ndim} dimensions, the tensor {ndim}\n  help: give a format of {ndim} dimensions"
        )
    if out.explicit is not None and not explicit:
        raise FormatError(
            f"format {out}: explicitVal is about the values of a tensor that is there\n  expected: a map; got:"
            f" explicitVal = {out.explicit}\n  help: leave it out, and call asformat with it, or iso, on the result"
        )
    return out


@cache
def dense_format(ndim: int) -> Format:
    """Row-major dense storage."""
    return parse("dense", ndim)


def promises_less(target: Format, source: Format) -> bool:
    """Whether buffers of `source` are valid for `target` as they are."""
    if len(target.levels) != len(source.levels):
        return False
    for a, b in zip(target.levels, source.levels, strict=True):
        x, y = a.format, b.format
        if a.expression != b.expression or x.name != y.name or x.arguments != y.arguments:
            return False
        if (x.unique and not y.unique) or (x.ordered and not y.ordered):
            return False
    return True
