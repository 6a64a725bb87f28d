"""A statement with one sparse operand -> its schedule: the decisions that fix one loop nest, as data.

A schedule is a pure function of the statement, the operands' structure and a few facts of the extents
(`Facts`); it names the driver, the placement of the dense loops, the register tiles and the prefetch distance.
"""

from __future__ import annotations

from dataclasses import replace

from ... import tuning
from ...classes import frozen
from ...errors import UnsupportedError
from ...format.expression import Dim, Mod, dimensions
from ...format.format import Format
from ...format.level import Iterate
from ...ir.index import Access, Assignment
from ...ir.types import itemsize, real_of
from ..operand import Operand
from ..packed_coordinates import coordinate_bits

__all__ = ["Facts", "Schedule", "Tile", "schedule", "tiles"]

VECTOR_BYTES = tuning.VECTOR_BYTES
MAX_ACCUMULATORS = tuning.MAX_ACCUMULATORS
MAX_CONSTANT = tuning.MAX_CONSTANT_EXTENT
MAX_UNROLL = tuning.MAX_UNROLL
ROWS = tuning.ROWS_SIDE_BY_SIDE
PACKED, MAX_TABLE = tuning.PACKED_TOGETHER, tuning.PERMUTED_VECTORS
PACKED_ROWS, PANEL, BLOCK_BYTES = tuning.PACKED_ROWS, tuning.PACKED_PANEL, tuning.PACKED_BLOCK
_NO_BLOCK_LANES = ("c64", "c128", "bool", "f16", "bf16")


@frozen
class Facts:
    """The facts that a schedule may depend on: small extents exactly, whether the gathered data leaves the cache, and
    whether the innermost fibers are long, short and of many lengths, or at least of middle length.

    packed: whether an n:m level's coordinates are there as packed words too. permutes: bytes of the widest vectors
    whose lanes the processor permutes.
    """

    extents: tuple[tuple[str, int], ...] = ()
    large: bool = False
    long: bool = False
    short: bool = False
    packed: bool = False
    permutes: int = 0
    medium: bool = False

    def extent(self, index: str) -> int | None:
        return dict(self.extents).get(index)


@frozen
class Tile:
    """A piece of a register tile: `lanes` elements from `offset` on."""

    offset: int
    lanes: int


@frozen
class Schedule:
    """One loop nest, decided.

    driver: the sparse operand whose levels are walked. outer: dense indices looped outside the walk.
    vector: the dense index that runs innermost in register tiles, reduced or not. main: pieces of the tile that a
    loop repeats, rest: pieces of what remains after it. output_depth: driver level below which the output is constant,
    so that a sum stays in registers. unrolled: first level of the trailing levels of constant extent that are
    written out. block_vector: the last of these runs in vector lanes. run_reduce: runs of equal coordinates of a
    nonunique level are summed before they are stored. parallel: ranges write to elements of their own, and may run side
    by side. sliced: the index of the output whose coordinates ranges count, those of the outermost loop without.
    gather: that many elements of a fiber are taken in vector lanes, their operands gathered; masked: the last ones too,
    with lanes of the next fiber that count for nothing, see `without_gathers`. short: fibers of the last level are
    walked in one loop. rows: that many of the outermost level are walked side by side. packed: that many
    elements of an n:m level are taken together, their coordinates from packed words: in vector lanes whose operands
    are permuted where no dense index is the vector. panel: that many rows of the outermost level go through a block of
    the level below before the next block, of `reads` reads of packed coordinates, and add to the output; 0 for none.
    """

    driver: str
    outer: tuple[str, ...] = ()
    vector: str | None = None
    main: tuple[Tile, ...] = ()
    rest: tuple[Tile, ...] = ()
    output_depth: int = 0
    unrolled: int = 0
    block_vector: bool = False
    run_reduce: bool = False
    no_alias: bool = False
    writes_all: bool = False
    parallel: bool = False
    sliced: str | None = None
    prefetch: int = 0
    gather: int = 0
    masked: bool = False
    short: bool = False
    rows: int = 1
    packed: int = 0
    panel: int = 0
    reads: int = 0


def tiles(extent: int, lanes: int) -> tuple[Tile, ...]:
    """Cut `extent` into pieces of `lanes` and the powers of two below."""
    out = []
    at = 0
    while at < extent:
        while lanes > extent - at:
            lanes //= 2
        out.append(Tile(at, lanes))
        at += lanes
    return tuple(out)


def schedule(stmt: Assignment, operands: dict[str, Operand], facts: Facts) -> Schedule:
    """Decide the loop nest of a statement with one sparse operand."""
    driver = _driver(stmt, operands)
    access = next(a for a in stmt.accesses if a.tensor == driver)
    fmt = operands[driver].format
    assert fmt is not None
    out = operands[stmt.lhs.tensor]
    free = [i for i in dict.fromkeys((*stmt.lhs.indices, *stmt.reduction_indices)) if i not in access.indices]
    vector = _vector_index(stmt, operands, [i for i in free if facts.extent(i) is not None])
    shared = out.format is not None
    unrolled = _first_unrolled(fmt)
    dims = [] if shared else [access.indices.index(i) for i in stmt.lhs.indices if i in access.indices]
    output_depth = fmt.nlevels if shared else _bound_at(fmt, dims, unrolled)
    levels = _levels_above(fmt, output_depth, dims, unrolled)
    run_reduce = _run_reduce(fmt, output_depth) and not shared
    outer = tuple(i for i in free if i != vector)
    no_alias = shared or (_no_alias(fmt, levels, dims) and (run_reduce or _unique(fmt, output_depth)))
    no_alias = no_alias and all(i in stmt.lhs.indices for i in outer) and (output_depth > 0 or not fmt.nlevels)
    writes_all = no_alias and not shared and all(fmt.levels[k].format.functions.full for k in range(output_depth))
    scalar = out.scalar
    lanes = VECTOR_BYTES // _compute_bytes(scalar)
    rows = _accumulators_per_tile(fmt, dims, unrolled)
    main, rest = _tile_plan(facts.extent(vector) if vector else None, vector, lanes, rows)
    parallel = shared or no_alias or _parallel(fmt, dims, output_depth, run_reduce)
    sliced = None if parallel else _sliced(fmt, access, stmt)
    side_by_side = not shared and no_alias and not outer and _equal_rows(fmt, output_depth, unrolled)
    gathers = not shared and vector is None and _gathers(fmt, output_depth, run_reduce, unrolled, scalar)
    masked = gathers and (facts.long or facts.medium) and fmt.levels[-1].format.functions.passed is not None
    gathers = gathers and (facts.long or masked)
    packed = _packed(stmt, operands, access, facts, vector, output_depth)
    most = PACKED_ROWS if packed and vector is None else ROWS
    tile = main or rest  # of a vector of no elements none
    together = max(1, min(most, MAX_ACCUMULATORS // max(1, len(tile)))) if side_by_side else 1
    in_blocks = packed and tile and side_by_side and output_depth == fmt.nlevels - 2
    panel, reads = (PANEL // together * together, _reads(fmt, packed, tile, scalar)) if in_blocks else (0, 0)
    return Schedule(
        driver=driver,
        outer=outer,
        vector=vector,
        main=main,
        rest=rest,
        output_depth=output_depth,
        unrolled=unrolled,
        block_vector=vector is None and not shared and _block_vector(stmt, operands, access, unrolled),
        run_reduce=run_reduce,
        no_alias=no_alias,
        writes_all=writes_all and not in_blocks,
        parallel=parallel or sliced is not None,
        sliced=sliced,
        prefetch=_prefetch(facts, vector) if not gathers else 0,
        gather=lanes if gathers else 0,
        masked=masked,
        short=facts.short
        and no_alias
        and not shared
        and vector is None
        and _has_contiguous_fibers(operands[driver], output_depth),
        packed=packed,
        rows=together,
        panel=panel,
        reads=reads,
    )


def without_gathers(plan: Schedule, facts: Facts) -> Schedule:
    """The schedule for a CPU whose gathers are slow: only long fibers are taken in lanes, and their last elements are
    not."""
    if not plan.masked:
        return plan
    if facts.long:
        return replace(plan, masked=False)
    return replace(plan, masked=False, gather=0, prefetch=_prefetch(facts, plan.vector))


def _prefetch(facts: Facts, vector: str | None) -> int:
    """How many elements ahead the gathered data is prefetched; 0 where it stays in the cache."""
    return (16 if vector else 32) if facts.large else 0


def _driver(stmt: Assignment, operands: dict[str, Operand]) -> str:
    sparse = [a.tensor for a in stmt.accesses if operands[a.tensor].format is not None]
    if len(sparse) != 1:
        raise UnsupportedError(
            f"{stmt}: one sparse operand with dense ones compiles here, got {len(sparse)} sparse operands"
        )
    indices = next(a.indices for a in stmt.accesses if a.tensor == sparse[0])
    if len(set(indices)) != len(indices):
        raise UnsupportedError(
            f"{stmt}: an index repeated in the sparse operand {sparse[0]} (a diagonal) is not there yet"
            "\n  help: take the diagonal first"
        )
    return sparse[0]


def _vector_index(stmt: Assignment, operands: dict[str, Operand], free: list[str]) -> str | None:
    """The free index that is contiguous in the output, or else in every operand that has it.

    free: those of known extent; register tiles of any other could reach beyond it.
    """

    def unit(a: Access, i: str) -> bool:
        u = operands[a.tensor].unit
        return u is not None and a.indices[u] == i and a.indices.count(i) == 1

    accesses = [a for a in (stmt.lhs, *stmt.accesses) if operands[a.tensor].format is None]
    for i in free:
        accessing = [a for a in accesses if i in a.indices]
        if accessing and all(unit(a, i) for a in accessing):
            return i
    return None


def _compute_bytes(scalar: str) -> int:
    size = 4 if scalar in ("f16", "bf16") else itemsize(real_of(scalar))
    return max(size, 4)


def _first_unrolled(fmt: Format) -> int:
    """The first of the trailing levels of constant extent, as long as their product is small."""
    first, product = fmt.nlevels, 1
    while first > 0:
        level = fmt.levels[first - 1]
        if level.format.functions.iterate is not Iterate.COORDINATE or level.format.functions.present is not None:
            break
        if not isinstance(level.expression, Mod) or product * level.expression.divisor > MAX_UNROLL:
            break
        product *= level.expression.divisor
        first -= 1
    return first


def _bound_at(fmt: Format, dims: list[int], unrolled: int) -> int:
    """The number of levels after which the dims are known, up to the offsets of the unrolled ones."""
    needed = [k + 1 for d in dims for k, _ in fmt.inverse[d] if k < unrolled]
    return max(needed, default=0)


def _levels_above(fmt: Format, output_depth: int, dims: list[int], unrolled: int) -> tuple[int, ...]:
    used = {k for d in dims for k, _ in fmt.inverse[d]}
    return tuple(sorted(set(range(output_depth)) | {k for k in used if k >= unrolled}))


def _no_alias(fmt: Format, levels: tuple[int, ...], dims: list[int]) -> bool:
    """Whether no two paths through `levels` reach the same output element: their coordinates follow from it."""
    return all(set(dimensions(fmt.levels[k].expression)) <= set(dims) for k in levels)


def _unique(fmt: Format, output_depth: int) -> bool:
    """Whether no path of coordinates through the first levels repeats; a unique singleton ends a nonunique chain."""
    unique = True
    for level in fmt.levels[:output_depth]:
        if level.format.is_singleton or not level.format.unique:
            unique = level.format.unique
    return unique


def _gathers(fmt: Format, output_depth: int, run_reduce: bool, unrolled: int, scalar: str) -> bool:
    """Whether the innermost level is a plain reduction over stored coordinates that vector lanes can take."""
    if output_depth >= fmt.nlevels or unrolled < fmt.nlevels or scalar not in ("f32", "f64"):
        return False
    last = fmt.levels[-1]
    if not isinstance(last.expression, Dim) or last.format.functions.coordinate != "crd[q]":
        return False
    if last.format.is_singleton:
        return run_reduce and output_depth == fmt.nlevels - 1
    return last.format.functions.present is None and not run_reduce


def _has_contiguous_fibers(driver: Operand, output_depth: int) -> bool:
    """Whether the fibers of the last level are contiguous, and the output is bound by the level above."""
    assert driver.format is not None
    levels = driver.format.levels
    if (
        driver.ragged
        or output_depth != len(levels) - 1
        or output_depth == 0
        or levels[-1].format.functions.passed is None
    ):
        return False
    above = levels[-2].format
    return above.is_dense or (above.is_compressed and above.unique)


def _equal_rows(fmt: Format, output_depth: int, unrolled: int) -> bool:
    """Whether the rows of the outermost level store coordinates in places that follow from the row's number alone."""
    below = [level.format for level in fmt.levels[output_depth:]]
    return (
        output_depth == 1 and unrolled == fmt.nlevels and fmt.levels[0].format.is_dense and len(below) > 1
        and below[0].is_dense and not below[-1].is_dense
        and all(f.functions.fixed_width and f.functions.present is None and not f.is_singleton for f in below)
    )  # fmt: skip


def _packed(
    stmt: Assignment, operands: dict[str, Operand], driver: Access, facts: Facts, vector: str | None, output_depth: int
) -> int:
    """The number of elements of an n:m level that are taken together, their coordinates from packed words; 0 for none.

    Without a vector index these are the lanes of a vector, and each dense operand that is read at their coordinates is
    permuted: it is contiguous, and a few vectors wide.
    """
    operand, out = operands[driver.tensor], operands[stmt.lhs.tensor]
    fmt = operand.format
    if fmt is None or not facts.packed or coordinate_bits(fmt, operand.ragged) is None:
        return 0
    if output_depth > fmt.nlevels - 2 or out.format is not None:
        return 0
    n, m = fmt.levels[-1].format.arguments
    if vector is not None:
        return PACKED if vector in stmt.lhs.indices and PACKED % n == 0 else 0
    lanes = facts.permutes // _compute_bytes(out.scalar)
    along = next(driver.indices[d] for d, form in enumerate(fmt.inverse) if (fmt.nlevels - 1, 1) in form)
    reads = [a for a in stmt.accesses if along in a.indices and operands[a.tensor].format is None]
    if not reads or out.scalar not in ("f32", "f64") or lanes < 8 or lanes % n or m > MAX_TABLE * n:
        return 0
    units = [operands[a.tensor].unit for a in reads]
    is_contiguous = all(
        u is not None and a.indices[u] == along and a.indices.count(along) == 1
        for a, u in zip(reads, units, strict=True)
    )
    return lanes if is_contiguous else 0


def _reads(fmt: Format, packed: int, tile: tuple[Tile, ...], scalar: str) -> int:
    """Reads of packed coordinates whose rows of a register tile stay in the first cache."""
    n, m = fmt.levels[-1].format.arguments
    row = (tile[-1].offset + tile[-1].lanes) * _compute_bytes(scalar)
    return max(1, BLOCK_BYTES // (row * packed // n * m))


def _run_reduce(fmt: Format, output_depth: int) -> bool:
    """A nonunique position level whose children are singletons, and the output is bound right at it."""
    if output_depth == 0 or output_depth == fmt.nlevels:
        return False
    level, below = fmt.levels[output_depth - 1].format, fmt.levels[output_depth:]
    sorted_above = all(f.format.unique for f in fmt.levels[: output_depth - 1])
    return (
        level.is_compressed and not level.unique and level.ordered and sorted_above
        and all(f.format.is_singleton for f in below)
    )  # fmt: skip


def _parallel(fmt: Format, dims: list[int], output_depth: int, run_reduce: bool) -> bool:
    """Ranges of the outermost loop write disjoint outputs: its coordinate follows from the output's and comes once,
    or in one run that no range is cut inside of."""
    if output_depth == 0 or not _no_alias(fmt, (0,), dims):
        return False
    return fmt.levels[0].format.unique or (run_reduce and output_depth == 1)


def _sliced(fmt: Format, driver: Access, stmt: Assignment) -> str | None:
    """An index of the output that a range level completes, whose bounds can be narrowed to a part of its coordinates:
    a row of a diagonal."""
    for d, form in enumerate(fmt.inverse):
        last = max((k for k, _ in form), default=0)
        if fmt.levels[last].format.is_range and driver.indices[d] in stmt.lhs.indices:
            return driver.indices[d]
    return None


def _accumulators_per_tile(fmt: Format, dims: list[int], unrolled: int) -> int:
    rows = 1
    used = {k for d in dims for k, _ in fmt.inverse[d]}
    for k in range(unrolled, fmt.nlevels):
        e = fmt.levels[k].expression
        if k in used and isinstance(e, Mod):
            rows *= e.divisor
    return rows


def _tile_plan(
    extent: int | None, vector: str | None, lanes: int, rows: int
) -> tuple[tuple[Tile, ...], tuple[Tile, ...]]:
    """(main, rest): small extents are written out whole, others loop over full tiles and finish one by one."""
    if vector is None:
        return (), ()
    width = lanes  # a power of two, so that a canonical extent leaves the rest that the true one does
    while 2 * width * rows <= MAX_ACCUMULATORS * lanes:
        width *= 2
    if extent is not None and extent <= max(width, lanes):
        return (), tiles(extent, lanes)
    main = tiles(width, lanes)
    return main, () if extent is None else tiles(extent % width, lanes)


def _block_vector(stmt: Assignment, operands: dict[str, Operand], driver: Access, unrolled: int) -> bool:
    """The last block level fills vector lanes: a small power of two, no ragged edge, contiguous in every array."""
    operand = operands[driver.tensor]
    fmt = operand.format
    if fmt is None or unrolled >= fmt.nlevels or operand.ragged or operand.scalar in _NO_BLOCK_LANES:
        return False
    last = fmt.nlevels - 1
    e = fmt.levels[last].expression
    if not isinstance(e, Mod) or e.divisor not in (2, 4, 8, 16):
        return False
    along = next((driver.indices[d] for d, form in enumerate(fmt.inverse) if (last, 1) in form), None)
    if along is None:
        return False
    arrays = [a for a in (stmt.lhs, *stmt.accesses) if along in a.indices and operands[a.tensor].format is None]
    units = [operands[a.tensor].unit for a in arrays]
    return all(
        u is not None and a.indices[u] == along and a.indices.count(along) == 1
        for a, u in zip(arrays, units, strict=True)
    )
