"""A format -> the layout of SciPy's or torch's that has the same buffers: COO, CSR, CSC, BSR, BSC, DIA or dense."""

from __future__ import annotations

from functools import lru_cache

from ..classes import frozen
from ..format.expression import Dim, Div, Mod, Sub
from ..format.format import Format, Level

__all__ = ["Layout", "layout_of"]


@frozen
class Layout:
    """A format seen as one of the known layouts.

    kind : "dense", "coo", "csr", "csc", "bsr", "bsc" or "dia"
    batch, dense : dimensions in front and behind; sparse : those between
    level : the level that stores pos and crd; the first of all coordinates for "coo"
    block : block extents, (1, 1) without blocks; column_major : how elements lie inside a block
    exact : no duplicates, coordinates in order
    """

    kind: str
    batch: int
    dense: int
    sparse: int
    level: int
    block: tuple[int, int] = (1, 1)
    column_major: bool = False
    exact: bool = True


@lru_cache(maxsize=1024)
def layout_of(format: Format) -> Layout | None:
    """The layout that `format` stores its buffers in, or None where neither library has one."""
    batch = format.batch_ndim
    if any(level.expression != Dim(at) for at, level in enumerate(format.levels[:batch])):
        return None
    dense, ndim = 0, format.ndim
    core = list(format.levels[batch:])
    while core and core[-1].format.is_dense and core[-1].expression == Dim(ndim - dense - 1):
        core.pop()
        dense += 1
    sparse = ndim - batch - dense
    if not core:
        return Layout("dense", batch, dense, 0, len(format.levels)) if sparse == 0 else None
    return _coo(core, batch, dense, sparse) or _compressed(core, batch, dense, sparse) or _diagonals(core, batch, dense)


def _exact(levels: list[Level]) -> bool:
    return all(level.format.ordered for level in levels) and levels[-1].format.unique


def _coo(core: list[Level], batch: int, dense: int, sparse: int) -> Layout | None:
    if batch or len(core) != sparse or not core[0].format.is_compressed:
        return None
    if not all(level.format.is_singleton for level in core[1:]):
        return None
    if any(level.expression != Dim(at) for at, level in enumerate(core)):
        return None
    return Layout("coo", 0, dense, sparse, 0, exact=_exact(core))


def _compressed(core: list[Level], batch: int, dense: int, sparse: int) -> Layout | None:
    if sparse != 2 or len(core) < 2 or not core[1].format.is_compressed:
        return None
    if not all(level.format.is_dense for level in (core[0], *core[2:])):
        return None
    rows, columns = Dim(batch), Dim(batch + 1)
    expressions = [level.expression for level in core]
    exact = _exact(core[:2])
    if expressions == [rows, columns]:
        return Layout("csr", batch, dense, 2, batch + 1, exact=exact)
    if expressions == [columns, rows]:
        return Layout("csc", batch, dense, 2, batch + 1, exact=exact)
    if len(core) != 4:
        return None
    outer, inner = expressions[:2], expressions[2:]
    if not all(isinstance(e, Div) for e in outer) or not all(isinstance(e, Mod) for e in inner):
        return None
    sizes = {e.base: e.divisor for e in outer if isinstance(e, Div)}
    if {e.base: e.divisor for e in inner if isinstance(e, Mod)} != sizes or set(sizes) != {rows, columns}:
        return None
    kind = "bsr" if outer[0] == Div(rows, sizes[rows]) else "bsc"
    column_major = inner[0] == Mod(columns, sizes[columns])
    return Layout(kind, batch, dense, 2, batch + 1, (sizes[rows], sizes[columns]), column_major, exact)


def _diagonals(core: list[Level], batch: int, dense: int) -> Layout | None:
    if batch or dense or len(core) != 2 or not (core[0].format.is_compressed and core[1].format.is_range):
        return None
    if core[0].expression != Sub(Dim(1), Dim(0)) or core[1].expression != Dim(1):
        return None
    return Layout("dia", 0, 0, 2, 0, exact=core[0].format.unique)
