"""A name, a text or a Format -> a Format; the table of named formats; a Format -> its name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NoReturn

from openwork.errors import DTypeError, FormatError
from openwork.format.expression import Dim, Div, Expression, Mod, Sub
from openwork.format.format import Format, Level
from openwork.format.level import MAX_INTEGER, LevelFormat
from openwork.format.levels import LEVEL_FORMATS, Batch, Bitmap, Compressed, Dense, Ell, Range, Singleton, Structured
from openwork.format.message import counted, excerpt, refusal
from openwork.format.parser import MAX_TEXT, parse
from openwork.format.rules import MAX_DIMENSIONS
from openwork.integers import integer

from ..classes import frozen
from ..provided import provides

__all__ = ["NAMED", "coo", "format", "recognise"]

Levels = tuple[Level, ...]


def _level(d: int, level_format: LevelFormat) -> Level:
    return Level(Dim(d), level_format)


def _dense(first: int, ndim: int) -> Levels:
    return tuple(_level(first + d, Dense()) for d in range(ndim))


def _dense_f(first: int, ndim: int) -> Levels:
    return _dense(first, ndim)[::-1]


def _coo(first: int, ndim: int) -> Levels:
    return _coordinates(first, ndim, unique=True, ordered=True)


def _coordinates(first: int, ndim: int, *, unique: bool, ordered: bool) -> Levels:
    kinds: list[type[LevelFormat]] = [Compressed, *[Singleton] * (ndim - 1)][:ndim]
    return tuple(
        _level(first + d, kind(unique=unique and d == ndim - 1, ordered=ordered)) for d, kind in enumerate(kinds)
    )


def _csf(first: int, ndim: int) -> Levels:
    return tuple(_level(first + d, Compressed()) for d in range(ndim))


def _bitmap(first: int, ndim: int) -> Levels:
    return (*_dense(first, ndim - 1), _level(first + ndim - 1, Bitmap())) if ndim else ()


def _csr(first: int, ndim: int) -> Levels:
    return _level(first, Dense()), _level(first + 1, Compressed())


def _csc(first: int, ndim: int) -> Levels:
    return _level(first + 1, Dense()), _level(first, Compressed())


def _dcsr(first: int, ndim: int) -> Levels:
    return _level(first, Compressed()), _level(first + 1, Compressed())


def _dcsc(first: int, ndim: int) -> Levels:
    return _level(first + 1, Compressed()), _level(first, Compressed())


def _blocks(first: int, b0: int, b1: int) -> tuple[Expression, Expression, Levels]:
    i, j = Dim(first), Dim(first + 1)
    return Div(i, b0), Div(j, b1), (Level(Mod(i, b0), Dense()), Level(Mod(j, b1), Dense()))


def _bsr(first: int, ndim: int, b0: int, b1: int) -> Levels:
    row, column, inner = _blocks(first, b0, b1)
    return Level(row, Dense()), Level(column, Compressed()), *inner


def _bsc(first: int, ndim: int, b0: int, b1: int) -> Levels:
    row, column, inner = _blocks(first, b0, b1)
    return Level(column, Dense()), Level(row, Compressed()), *inner


def _dia(first: int, ndim: int) -> Levels:
    return Level(Sub(Dim(first + 1), Dim(first)), Compressed()), _level(first, Range())


def _ell(first: int, ndim: int, k: int) -> Levels:
    return _level(first, Dense()), _level(first + 1, Ell(k))


def _nm(first: int, ndim: int, n: int, m: int) -> Levels:
    j = Dim(first + 1)
    return _level(first, Dense()), Level(Div(j, m), Dense()), Level(Mod(j, m), Structured(n, m))


@frozen
class Named:
    """A row of the table: the sparse levels of a name, its arguments, and whether it takes any rank."""

    levels: Callable[..., Levels]
    parameters: tuple[str, ...] = ()
    any_rank: bool = False
    example: str = ""
    level_format: type[LevelFormat] | None = None
    """the level format that takes the arguments"""


NAMED: dict[str, Named] = {
    "dense": Named(_dense, any_rank=True),
    "dense_f": Named(_dense_f, any_rank=True),
    "coo": Named(_coo, any_rank=True),
    "csr": Named(_csr),
    "csc": Named(_csc),
    "dcsr": Named(_dcsr),
    "dcsc": Named(_dcsc),
    "bsr": Named(_bsr, ("b0", "b1"), example="bsr(4, 4)"),
    "bsc": Named(_bsc, ("b0", "b1"), example="bsc(4, 4)"),
    "dia": Named(_dia),
    "ell": Named(_ell, ("k",), example="ell(8)", level_format=Ell),
    "csf": Named(_csf, any_rank=True),
    "bitmap": Named(_bitmap, any_rank=True),
    "nm": Named(_nm, ("n", "m"), example="nm(2, 4)", level_format=Structured),
}
SPEC = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*", re.ASCII)
_RANKED = re.compile(r"([A-Za-z_]+)([1-9][0-9]?)", re.ASCII)
"""A name of any rank with the rank behind it: coo3, csf5."""
NAMES = "ijklmnopqrstuvwxyz"
_cache: dict[object, Format] = {}
CACHE_SIZE = 4096
PROPERTIES = ("nonunique", "unordered")
"""What may stand behind the arguments of a name: csr(nonunique, unordered)."""


def format(spec: str | Format, ndim: int | None = None, *, batch: int = 0, dense: int = 0) -> Format:
    """The format of a text, a name or a Format.

    Parameters
    ----------
    spec : the format language ("(i, j) -> (i : dense, j : compressed)"), MLIR's encoding of such a map, a name ("csr",
        "bsr(2, 3)", "coo(nonunique, unordered)": repeated coordinates, in any order), or a Format
    ndim : number of dimensions, batch and dense ones included; taken by coo, csf, dense, dense_f and bitmap
        (default 2 + batch + dense), checked for everything else
    batch : how many batch dimensions a named format gets in front
    dense : how many dense dimensions a named format gets behind

    Returns
    -------
    Format

    Guarantees: `format(str(f)) == f` for every format.
    Raises FormatError, pointing at the place, for anything else.

    Cost: O(length of the text); named formats are kept.
    See also: Format, advise.

    Examples
    --------
    >>> ow.format("csr")
    format('(i, j) -> (i : dense, j : compressed)')
    >>> print(ow.format("bsr(2, 3)", batch=1))
    (b, i, j) -> (b : batch, i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)
    """
    if type(spec) is not str or not ((ndim is None or type(ndim) is int) and type(batch) is type(dense) is int):
        return _format(spec, ndim, batch, dense)
    key = (spec, ndim, batch, dense, tuple(LEVEL_FORMATS.values()) if "->" in spec else None)
    known = _cache.get(key)
    if known is not None:
        return known
    result = _format(spec, ndim, batch, dense)
    if len(_cache) >= CACHE_SIZE:
        _cache.clear()
    _cache[key] = result
    return result


@lru_cache(maxsize=256)
def coo(ndim: int = 2, *, unique: bool = True, ordered: bool = True, batch: int = 0, dense: int = 0) -> Format:
    """Coordinates: `coo(n)` is `format("coo", n)`; unique=False allows duplicates, ordered=False any order."""
    sparse = format("coo", ndim, batch=batch, dense=dense).ndim - batch - dense
    return _assemble(_coordinates(batch, sparse, unique=unique, ordered=ordered), ndim, batch, dense)


@provides("recognise")
def recognise(f: Format) -> str | None:
    """The name and arguments of the named format that f is, apart from its batch and dense dimensions."""
    dense = 0 if f.is_dense else f.dense_ndim
    rank = f.ndim - f.batch_ndim - dense
    for name, row in NAMED.items():
        if not row.any_rank and rank != 2:
            continue
        for arguments in _possible_arguments(f, row):
            levels = _with_properties(row.levels(f.batch_ndim, rank, *arguments), f.is_unique, f.is_ordered)
            if _all_levels(levels, f.ndim, f.batch_ndim, dense) == f.levels:
                lacks = zip((f.is_unique, f.is_ordered), PROPERTIES, strict=True)
                inside = [*map(str, arguments), *(word for has, word in lacks if not has)]
                return f"{name}({', '.join(inside)})" if inside else name
    return None


def _with_properties(levels: Levels, unique: bool, ordered: bool) -> Levels:
    """Levels that may hold a coordinate twice (the last that can), and in any order (all that can)."""
    out = list(levels)
    last = max((k for k, level in enumerate(levels) if "nonunique" in level.format.may_be), default=None)
    if not unique and last is not None:
        out[last] = replace(out[last], format=replace(out[last].format, unique=False))
    if not ordered:
        out = [
            replace(x, format=replace(x.format, ordered=False)) if "unordered" in x.format.may_be else x for x in out
        ]
    return tuple(out)


def _possible_arguments(f: Format, row: Named) -> list[tuple[int, ...]]:
    """The arguments with which the named format could be f."""
    if not row.parameters:
        return [()]
    if row.level_format is not None:
        return [level.format.arguments for level in f.levels if type(level.format) is row.level_format]
    return [f.blocksize] if f.blocksize is not None and len(f.blocksize) == 2 else []


def _all_levels(sparse: Levels, ndim: int, batch: int, dense: int) -> Levels:
    return tuple(_level(d, Batch()) for d in range(batch)) + sparse + _dense(ndim - dense, dense)


def _assemble(sparse: Levels, ndim: int, batch: int, dense: int) -> Format:
    dims = ("b",) if batch == 1 else tuple(f"b{d}" for d in range(batch))
    rest = ndim - batch
    dims += tuple(NAMES[:rest]) if rest <= len(NAMES) else tuple(f"i{d}" for d in range(rest))
    return Format(dims, _all_levels(sparse, ndim, batch, dense))


def _format(spec: object, ndim: object, batch: object, dense: object) -> Format:
    if not isinstance(spec, str | Format):
        _fail(
            "neither a name, a text nor a Format",
            excerpt(spec),
            0,
            f"expected: str or Format; got: {type(spec).__name__}",
            _names_help(),
        )
    ndim = None if ndim is None else _count("ndim", ndim)
    batch, dense = _count("batch", batch), _count("dense", dense)
    if isinstance(spec, Format) or "->" in spec or "#sparse_tensor" in spec or len(spec) > MAX_TEXT:
        result = parse(spec) if isinstance(spec, str) else spec
        if ndim is not None and ndim != result.ndim:
            detail = f"expected: {ndim} dimensions; got: {result.ndim}, ({', '.join(result.dims)})"
            _fail(
                "another number of dimensions than ndim",
                str(result),
                0,
                detail,
                f"leave ndim out, or declare {ndim} dimensions",
            )
        if batch or dense:
            argument = "batch" if batch else "dense"
            detail = f"expected: a name with {argument}={batch or dense}; got: a format written out"
            _fail(f"{argument} is for named formats only", str(result), 0, detail, f"write the {argument} levels out")
        return result
    return _named(spec, ndim, batch, dense)


def _named(spec: str, ndim: int | None, batch: int, dense: int) -> Format:
    match = SPEC.fullmatch(spec)
    ranked = _RANKED.fullmatch(match[1]) if match else None
    if match and ranked and (row := NAMED.get(ranked[1].lower())) and row.any_rank:
        rank = int(ranked[2]) + batch + dense
        if ndim is not None and ndim != rank:
            detail = f"expected: {ndim} dimensions; got: {rank}, those of {match[1]} and of batch= and dense="
            _fail("another number of dimensions than ndim", spec, match.start(1), detail, f"write {ranked[1]}")
        return _named(ranked[1] + spec[match.end(1) :], rank, batch, dense)
    if not match or match[1].lower() not in NAMED:
        close = difflib.get_close_matches(match[1].lower(), NAMED, 1) if match else []
        help = f"did you mean {close[0]}?" if close else "write a name, or (dims) -> (levels)"
        if pattern := re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", spec):
            help = f"{pattern[1]} of {pattern[2]} elements is nm({pattern[1]}, {pattern[2]})"
        if match and match[1].lower() in ("lil", "dok"):
            help = (
                "csr and coo are written to as these are, A[i, j] = v; to_scipy() gives SciPy's, which has more formats"
            )
        offset = len(spec) - len(spec.lstrip())
        _fail(
            "neither a named format nor a text with ->",
            spec,
            offset,
            f"expected: {', '.join(NAMED)}; got: {spec.strip()[:60]}",
            help,
        )
    name = match[1].lower()
    row = NAMED[name]
    arguments, properties = _arguments(spec, match, name, row)
    ndim = 2 + batch + dense if ndim is None else ndim
    rank = ndim - batch - dense
    if rank < 0 or (not row.any_rank and rank != 2):
        takes = f"ndim >= {batch + dense}" if row.any_rank else f"ndim = {2 + batch + dense}"
        parts = f"{'' if row.any_rank else '2 + '}batch {batch} + dense {dense}"
        help = (
            "use csf or coo for any rank, or batch= and dense= for more dimensions"
            if rank >= 0
            else "give a larger ndim"
        )
        _fail(
            f"{name} does not have {ndim} dimensions",
            spec,
            match.start(1),
            f"expected: {takes} ({parts}); got: ndim = {ndim}",
            help,
        )
    levels = row.levels(batch, rank, *arguments)
    for offset, word in properties:
        if not any(word in level.format.may_be for level in levels):
            detail = f"expected: a name whose last level may be {word}, such as csr or coo; got: {name}"
            _fail(f"{name} has no level that can be {word}", spec, offset, detail, f"leave {word} out")
    words = [word for _, word in properties]
    loose = _with_properties(levels, "nonunique" not in words, "unordered" not in words)
    return _assemble(loose, ndim, batch, dense)


def _arguments(spec: str, match: re.Match[str], name: str, row: Named) -> tuple[tuple[int, ...], list[tuple[int, str]]]:
    """The numbers in parentheses, and the properties behind them with their places."""
    inside = (match[2] or "").strip()
    texts = [part.strip() for part in inside.split(",")] if inside else []
    properties, end = [], match.end(2)
    while texts and texts[-1] in PROPERTIES:
        word = texts.pop()
        end = spec.rindex(word, 0, end)
        properties.append((end, word))
    usage = f"{name}({', '.join(row.parameters)})" if row.parameters else name
    help = f"write {row.example}" if row.parameters else f"write {name}"
    if len(texts) != len(row.parameters):
        offset = match.start(2) if match[2] is not None else match.end(1)
        got = spec.strip()[:60]
        _fail(f"{name} takes {counted(len(row.parameters))}", spec, offset, f"expected: {usage}; got: {got}", help)
    offset = match.start(2)
    for text, part in zip(texts, (match[2] or "").split(","), strict=False):
        if not re.fullmatch("[0-9]{1,10}", text, re.ASCII) or not 1 <= int(text) <= MAX_INTEGER:
            at = offset + len(part) - len(part.lstrip())
            detail = f"expected: {usage} with integers from 1 to {MAX_INTEGER}; got: {text[:60]}"
            _fail(f"an argument of {name} is not a positive integer", spec, at, detail, help)
        offset += len(part) + 1
    arguments = tuple([int(text) for text in texts])
    if row.level_format is not None and (problem := row.level_format.problem(arguments, ())):
        _fail(problem.what, spec, match.start(2), problem.detail, problem.help.replace(row.level_format.name, name, 1))
    return arguments, properties


class CountError(FormatError, DTypeError):
    """A number of dimensions that is no integer."""


def _count(what: str, value: object) -> int:
    detail = f"expected: an integer from 0 to {MAX_DIMENSIONS}; got: {excerpt(value)}"
    failure = refusal(
        f"{what} is not a number of dimensions", f"{what}={excerpt(value)}", len(what) + 1, detail,
        f"give {what} as a small integer",
    )  # fmt: skip
    try:
        count = integer(value, "format", what)
    except DTypeError:
        raise CountError(str(failure)) from None
    if not 0 <= count <= MAX_DIMENSIONS:
        raise failure
    return count


def _names_help() -> str:
    return f"write one of {', '.join(NAMED)}, or (dims) -> (levels)"


def _fail(what: str, text: str, offset: int, detail: str, help: str) -> NoReturn:
    raise refusal(what, text, offset, detail, help)
