"""The forms of level formats: each layout of a level in memory, as its level functions.

    LOCATED      no buffer: position p * N + (c - lo) for every coordinate
    DIAGONAL     as LOCATED, for the coordinates of a diagonal that are inside the shape
    BITMAP       as LOCATED, and crd holds a truth value for each position
    COMPRESSED   crd[pos[p] : pos[p + 1]], parent after parent
    LOOSE        crd[pos[2 * p] : pos[2 * p + 1]], anywhere
    SINGLETON    crd[p]
    slots(k)     crd[p * k : p * k + k], all taken;  with a sentinel: -1 in the slots at the end that are not

Conversions, co-iteration, invariants, files and views read and write buffers by these forms, which they distinguish by
properties (`level.py`): a level format of an unknown form would be mistaken for another, and is refused when its class
is defined.
"""

from __future__ import annotations

from dataclasses import replace

from openwork.errors import FormatError
from openwork.format.functions import Insert, Iterate, LevelFunctions

__all__ = ["BITMAP", "COMPRESSED", "DIAGONAL", "LOCATED", "LOOSE", "SINGLETON", "form_of", "slots"]

LOCATED = LevelFunctions(
    iterate=Iterate.COORDINATE,
    bounds=("lo", "hi"),
    coordinate="c",
    position="p * N + (c - lo)",
    positions="parents * N",
    locate="p * N + (c - lo)",
    insert=Insert.LOCATE,
    full=True,
    compact=True,
    fixed_width=True,
)
DIAGONAL = replace(LOCATED, bounds=("valid_lo", "valid_hi"), full=False, compact=False, padded=True)
BITMAP = replace(
    LOCATED,
    present="crd[p * N + (c - lo)]",
    crd_length="positions",
    append_coord="crd[p * N + (c - lo)] = True",
    full=False,
    compact=False,
    padded=True,
)
COMPRESSED = LevelFunctions(
    iterate=Iterate.POSITION,
    bounds=("pos[p]", "pos[p + 1]"),
    coordinate="crd[q]",
    position="q",
    positions="pos[parents]",
    seek="crd[q] < c",
    passed="pos[p + 1] <= q",
    pos_length="parents + 1",
    crd_length="positions",
    insert=Insert.APPEND,
    append_coord="crd[q] = c",
    append_edges="pos[p + 1] = q",
    init_edges="pos[0] = 0",
    insert_edge="pos[p + 1] = pos[p] + count",
    compact=True,
)
LOOSE = LevelFunctions(
    iterate=Iterate.POSITION,
    bounds=("pos[2 * p]", "pos[2 * p + 1]"),
    coordinate="crd[q]",
    position="q",
    positions="len(crd)",
    seek="crd[q] < c",
    pos_length="2 * parents",
    insert=Insert.APPEND,
    append_coord="crd[q] = c",
    append_edges="pos[2 * p] = begin; pos[2 * p + 1] = q",
    insert_edge="pos[2 * p] = begin; pos[2 * p + 1] = begin + count",
    padded=True,
)
SINGLETON = LevelFunctions(
    iterate=Iterate.POSITION,
    bounds=("p", "p + 1"),
    coordinate="crd[q]",
    position="p",
    positions="parents",
    seek="crd[q] < c",
    crd_length="positions",
    insert=Insert.APPEND,
    append_coord="crd[q] = c",
    branchless=True,
    compact=True,
    fixed_width=True,
)


def slots(k: str, *, sentinel: bool) -> LevelFunctions:
    """The form of k slots per parent; `k` names the level format's first argument."""
    return LevelFunctions(
        iterate=Iterate.POSITION,
        bounds=(f"p * {k}", f"p * {k} + {k}"),
        coordinate="crd[q]",
        position="q",
        present="crd[q] >= 0" if sentinel else None,
        positions=f"parents * {k}",
        seek="crd[q] < c",
        crd_length="positions",
        insert=Insert.SLOT,
        append_coord="crd[q] = c",
        compact=not sentinel,
        padded=sentinel,
        fixed_width=True,
    )


def form_of(name: str, functions: LevelFunctions, buffers: tuple[str, ...], parameters: tuple[str, ...]) -> str:
    """The name of a level format's form. Raises FormatError where its functions, or its buffers, are of none."""
    forms: dict[str, tuple[LevelFunctions, tuple[str, ...]]] = {
        "LOCATED": (LOCATED, ()), "DIAGONAL": (DIAGONAL, ()), "BITMAP": (BITMAP, ("crd",)),
        "COMPRESSED": (COMPRESSED, ("pos", "crd")), "LOOSE": (LOOSE, ("pos", "crd")),
        "SINGLETON": (SINGLETON, ("crd",)),
    }  # fmt: skip
    if parameters:
        for sentinel in (True, False):
            forms[f"slots({parameters[0]!r}, sentinel={sentinel})"] = slots(parameters[0], sentinel=sentinel), ("crd",)
    for form, functions_and_buffers in forms.items():
        if functions_and_buffers == (functions, buffers):
            return form
    raise FormatError(
        f"level format {name}: its level functions are of no form that is known"
        f"\n  expected: one of {', '.join(forms)}, with its buffers; got: bounds {functions.bounds}, "
        f"coordinate {functions.coordinate!r}, pos_length {functions.pos_length!r}, buffers {buffers}"
        "\n  help: take a form of format/forms.py, or add one there and wherever the properties of levels are asked for"
    )
