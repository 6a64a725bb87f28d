"""A format -> the nearest in which every mask can be stored.

A masked tensor is one Tensor whose specified elements are those of the mask, so its format must be able to leave any
element out. The format language has all that is needed:

    fitting     a format whose last level stores all children of its parent gets a bitmap there
                    dense        (i : dense, j : dense)            ->  (i : dense, j : bitmap)
                    bsr(2, 2)    (..., i % 2 : dense, j % 2 : dense) ->  (..., i % 2 : dense, j % 2 : bitmap)
                    dia          (j - i : compressed, i : range)     ->  (j - i : compressed, i : bitmap)
                any other leaves elements out as it is: csr -> csr
    keeping     a format that also keeps the values of elements that are masked out: a bit below each stored element
                    csr       (i : dense, j : compressed)       ->  (i : dense, j // 1 : compressed, j % 1 : bitmap)
    plain       the format of data and mask apart: without the bits
"""

from __future__ import annotations

from functools import lru_cache

from ..compiler.coiterate.merge_formats import merge_format, with_bitmap
from ..compiler.conversion.level_runs import unbatched
from ..format import build
from ..format import format as parse
from ..format.cached import cached
from ..format.expression import Dim, Div, Expression, Mod
from ..format.format import Format, Level
from ..runtime.conversion.remap import canonical
from ..runtime.layouts import layout_of
from .result_format import named_family

__all__ = [
    "compressed", "fitting", "has_bits", "is_strided", "keeping", "layout_name", "loose", "merged", "plain", "related",
    "stores_all", "strided",
]  # fmt: skip


@lru_cache(maxsize=64)
def strided(ndim: int) -> Format:
    """The bitmap format of a rank, row-major: what a dense array and its mask are; that of rank 0 has one dimension."""

    return parse("bitmap", max(ndim, 1))


@cached(1024)
def fitting(format: Format) -> Format:
    """The format that holds the specified elements of any mask over data of this format, and nothing else."""
    if not format.levels:
        return strided(0)
    whole = unbatched(format)
    return canonical(with_bitmap(whole) or whole)


@cached(1024)
def keeping(format: Format) -> Format:
    """The format whose elements are those that this one stores, each with a bit that says whether it is specified."""
    if has_bits(format):
        return format
    result = with_bitmap(format)
    if result is not None:
        return result
    *above, last = format.levels
    bits = build.bitmap(Mod(last.expression, 1))
    return Format(format.dims, (*above, Level(Div(last.expression, 1), last.format), bits))


def has_bits(format: Format) -> bool:
    """Whether the last level is a bitmap."""
    return bool(format.levels) and format.levels[-1].format.is_bitmap


@cached(1024)
def plain(format: Format) -> Format:
    """The format of data and mask: all that is stored, with or without its bit."""
    if not has_bits(format):
        return format
    *above, last = format.levels
    if loose(format):
        inner = last.expression
        assert isinstance(inner, Mod)
        return Format(format.dims, tuple(Level(_merged(x.expression, inner.base), x.format) for x in above))
    return Format(format.dims, (*above, build.dense(last.expression)))


def _merged(e: Expression, base: Expression) -> Expression:
    return base if e == Div(base, 1) else e


def loose(format: Format) -> bool:
    """Whether every stored element has a bit of its own: some may be stored and masked out."""
    if not has_bits(format):
        return False
    last = format.levels[-1].expression
    return isinstance(last, Mod) and last.divisor == 1


def related(format: Format, ndim: int) -> Format:
    """The format of a result of another rank."""
    if ndim == 0:
        return strided(0)
    base = plain(format)
    return fitting(base if base.ndim == ndim else named_family(base, ndim))


def compressed(format: Format, ndim: int) -> Format:
    """The named format of a result, most like this one, which takes any elements: without levels of fixed width."""
    return fitting(named_family(plain(format), ndim))


def merged(format: Format, ndim: int) -> Format:
    """The format that a merge of a rank writes, whose result is to be `related` to this one."""
    return merge_format(related(format, ndim))


def stores_all(format: Format) -> bool:
    """Whether the last level stores all children of its parent: an element is left out by a bit of a bitmap there."""
    return with_bitmap(format) is not None


def is_strided(format: Format) -> bool:
    """Whether data and mask are a dense array each."""
    return has_bits(format) and plain(format).is_dense and all(isinstance(x.expression, Dim) for x in format.levels)


def layout_name(format: Format) -> str:
    """torch's name of the layout of data and mask: "strided", "sparse_coo", ...; else the format's text."""
    if is_strided(format):
        return "strided"
    layout = layout_of(plain(format))
    return str(plain(format)) if layout is None else f"sparse_{layout.kind}"
