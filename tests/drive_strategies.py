"""Hypothesis strategies for drive cases: random formats and elements, and random statements over them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from drives import Drive, Packed, drive, packed
from hypothesis import assume
from hypothesis import strategies as st
from reference import Unpackable
from strategies import formats, shapes
from views import LAYOUTS, numpy_view

from openwork.format.format import Format
from openwork.ir.index import Access, Apply, Assignment, Expression
from openwork.storage.buffers import numpy_dtype

__all__ = ["drives", "sources", "statements"]

NAMES = "ijkl"
WIDE = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33, 70, 130, 300])
"""Extents of indices that the sparse operand lacks: below, at and beyond a register tile."""
MOST_WORK = 60_000
"""Stored elements times such extents: the interpreter makes some 100,000 steps a second."""
FORWARD = [how for how in LAYOUTS if "reversed" not in how]
"""The interpreter's buffers begin at their first element."""


@st.composite
def sources(draw: st.DrawFn, ndim: int | None = None, *, scalar: str = "f64") -> Packed:
    """A sparse operand of any format: few elements of small whole values, explicit zeros, duplicates where they may be."""
    fmt: Format = draw(formats(ndim))
    shape = draw(shapes(fmt.ndim, max_extent=5))
    places = list(itertools.product(*map(range, shape)))
    seed, share = draw(st.integers(0, 99)), draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    rng = np.random.default_rng(seed)
    elements = [(c, float(rng.integers(0, 5))) for c in places if rng.random() < share]
    if fmt.batch_ndim:
        batch = {level.expression.index for level in fmt.levels[: fmt.batch_ndim]}  # type: ignore[union-attr]
        elements = [(c, v) for c, v in elements if not any(c[d] for d in batch)]
    if not fmt.is_unique and not fmt.is_dense:
        elements += [(c, v + 1) for c, v in elements[::3]]
    widths = draw(st.sampled_from([("int32", "int32"), ("int64", "int64"), ("int64", "int32")]))
    while True:
        try:
            return packed(fmt, shape, elements, scalar, widths)
        except Unpackable:
            assume(elements)
            elements = elements[: len(elements) // 2]


@st.composite
def statements(draw: st.DrawFn, ndim: int, unique: bool, kinds: tuple[str, ...]) -> tuple[Assignment, bool]:
    """A statement whose sparse operand is A of this rank, and whether its output has A's structure."""
    own = tuple(NAMES[:ndim])
    sparse = Access("A", own)
    kind = draw(st.sampled_from(kinds))
    if kind in ("extreme", "product") and unique:
        lhs = draw(st.permutations(draw(st.lists(st.sampled_from(own), unique=True)) if own else []))
        rhs: Expression = sparse
        if kind == "extreme" and draw(st.booleans()):
            rhs = Apply("add", (sparse, _access(draw, "B", own)))
        operator = draw(st.sampled_from(["min=", "max="])) if kind == "extreme" else "*="
        return Assignment(Access("y", tuple(lhs)), operator, rhs), False
    if kind == "elementwise" and own:
        other = _access(draw, "B", own)
        names = ["mul", "add", "sub", "div", "max"] if unique else ["mul"]
        pair = (sparse, other) if draw(st.booleans()) else (other, sparse)
        return Assignment(Access("C", own), "=", Apply(draw(st.sampled_from(names)), pair)), True
    if kind == "sampled" and unique and own:
        left = Access("B", (*draw(st.sampled_from([own[:1], own])), "r"))
        right = Access("D", ("r", *own[1:]))
        first = draw(st.sampled_from([Apply("pattern", (sparse,)), sparse]))
        dot = Apply("mul", (left, right))
        return Assignment(Access("C", own), "+=", Apply("mul", (first, dot))), True
    return _contraction(draw, sparse, own), False


def _access(draw: st.DrawFn, name: str, indices: tuple[str, ...]) -> Access:
    chosen = draw(st.lists(st.sampled_from(indices), unique=True, max_size=3)) if indices else []
    return Access(name, tuple(chosen))


def _contraction(draw: st.DrawFn, sparse: Access, own: tuple[str, ...]) -> Assignment:
    """A sum of products of A with up to three dense operands, in any order, kept indices in any order."""
    names = (*own, *("r", "s")[: draw(st.sampled_from([0, 1, 1, 1, 2]))])
    factors: list[Expression] = [_access(draw, n, names) for n in "BDE"[: draw(st.integers(0, 3))]]
    if factors and draw(st.integers(0, 3)) == 0:
        factors[0] = Apply("add", (factors[0], factors[0]))
    first: Expression = Apply("neg", (sparse,)) if draw(st.integers(0, 5)) == 0 else sparse
    factors.insert(draw(st.integers(0, len(factors))), first)
    rhs = factors[0]
    for f in factors[1:]:
        rhs = Apply("mul", (rhs, f) if draw(st.booleans()) else (f, rhs))
    used = dict.fromkeys(i for a in Assignment(sparse, "+=", rhs).accesses for i in a.indices)
    kept = draw(st.lists(st.sampled_from(list(used)), unique=True, max_size=5)) if used else []
    return Assignment(Access("y", tuple(kept)), "+=", rhs)


ALL_KINDS = ("contraction", "contraction", "contraction", "elementwise", "sampled", "extreme", "product")


@st.composite
def drives(
    draw: st.DrawFn, *, kinds: tuple[str, ...] = ALL_KINDS, scalars: tuple[str, ...] = ("f64",), ndim: int | None = None
) -> Drive:
    """A statement with operands of any layout."""
    scalar = draw(st.sampled_from(scalars))
    source = draw(sources(ndim, scalar=scalar))
    fmt = source.storage.format
    stmt, shared = draw(statements(fmt.ndim, fmt.is_unique or fmt.is_dense, kinds))
    extents = dict(zip(NAMES, source.storage.shape, strict=False))
    arrays, work = {}, max(1, len(source.storage.values))
    for access in stmt.accesses:
        if access.tensor != "A":
            for i in access.indices:
                if i not in extents:
                    n = draw(WIDE)
                    extents[i] = n if work * n <= MOST_WORK else 1 + n % 5
                    work *= extents[i]
            arrays[access.tensor] = _dense(draw, tuple(extents[i] for i in access.indices), scalar)
    return drive(
        stmt,
        source,
        arrays,
        scalar,
        shared=shared,
        large=draw(st.integers(0, 3)) == 0,
        medium=draw(st.integers(0, 2)) == 0,
    )


def _dense(draw: st.DrawFn, shape: tuple[int, ...], scalar: str) -> np.ndarray[Any, Any]:
    """Powers of two, so that quotients are exact; in any memory that an array may have."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    array = (2 ** rng.integers(0, 2, shape)).astype(numpy_dtype(scalar))
    how = draw(st.sampled_from([None, *FORWARD]))
    return array if how is None else numpy_view(array, how)
