"""Arguments of NumPy's functions, drawn from its signatures: every value of every parameter, by keyword and by position."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

AXES: tuple[Any, ...] = (None, 0, 1, -1, -2, (0, 1), (-1,), (), 2, -3, (0, 0), np.int64(1))
ONE: tuple[Any, ...] = (None, 0, 1, -1, 2, -3, np.int64(0))
DOMAINS: dict[str, tuple[Any, ...]] = {
    "axes": (None, (0, 1), (1, 0), [1, 0], (-1, 0), (0, 0), (0,), (0, 5)),
    "axis": AXES,
    "axis1": (0, 1, -1, 3),
    "axis2": (1, 0, -2),
    "correction": (0, 1, 2.5),
    "ddof": (0, 1, 0.5),
    "decimals": (0,),
    "destination": (0, 1, -1, (0, 1), 5),
    "dtype": (None, "float32", "int64", "complex128", bool),
    "k": (-9, -1, 0, 1, 2, 9),
    "keepdims": (False, True),
    "n": (0, 1, 2, 5, -1),
    "offset": (-9, -1, 0, 1, 2, 9),
    "repeats": (0, 1, 2, [2], -1),
    "reps": (0, 1, 2, (2, 1), (1, 2, 1), [1, 2], -1),
    "shape": ((6,), (3, 2), (-1,), (2, -1), 6, (1, 2, 3), (-1, -1), (4, 2), (0,), [3, 2]),
    "shift": (0, 1, -1, 7, (1, 2), [1], (1, 2, 3)),
    "source": (0, 1, -1, (1, 0), 5),
}
"""Values of a parameter, right ones and wrong ones, by NumPy's name for it."""

OWN: dict[tuple[str, str], tuple[Any, ...]] = {
    **{
        (f, "axis"): ONE for f in ("argmax", "argmin", "argsort", "cumsum", "cumprod", "diff", "repeat", "sort", "take")
    },
    ("expand_dims", "axis"): (0, 1, -1, (0, 1), (0, -1), 3, -4, (0, 0)),
    ("flip", "axis"): AXES,
    ("broadcast_to", "shape"): ((2, 3), (4, 2, 3), (2, 1), (3,), (2, 2, 3)),
    ("take", "indices"): (0, -1, [0, 1], [[0, 1], [1, 0]], 9, []),
    ("tensordot", "axes"): (0, 1, 2, 3, -1, ([1], [1]), ([0, 1], [0, 1]), (1, 1), ([0], [1]), ([0], [0, 1])),
}
"""Values of a parameter of one function."""

LEFT_OUT = {"a", "m", "arr", "A", "x", "b", "out", "initial", "where", "mean", "order", "kind", "stable", "mode",
            "prepend", "append", "subok", "copy", "overwrite_input", "array", "correction", "v", "filter"}  # fmt: skip
"""Parameters that are operands, or are not there."""


def calls(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments behind the first operands, each parameter through its domain, two at a time, by keyword and by place."""
    function = getattr(np, name)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in LEFT_OUT]
    domains = [(p, OWN.get((name, p.name)) or DOMAINS.get(p.name, ())) for p in parameters]
    needed = [(p, values) for p, values in domains if p.default is p.empty]
    extra = [(p, values) for p, values in domains if p.default is not p.empty and values]
    fixed = [
        dict(zip((p.name for p, _ in needed), found, strict=True))
        for found in itertools.product(*(v for _, v in needed))
    ]
    for base in fixed:
        yield (), base
        for p, values in extra:
            yield from (((), {**base, p.name: value}) for value in values)
    base = fixed[len(fixed) // 2] if fixed else {}
    for (p, first), (q, second) in itertools.combinations(extra, 2):
        yield from (((), {**base, p.name: v, q.name: w}) for v, w in itertools.product(first, second))


def by_place(name: str, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments by position, as far as the signature goes without a gap."""
    args: list[Any] = []
    rest = dict(kwargs)
    for p in [
        p
        for p in inspect.signature(getattr(np, name)).parameters.values()
        if p.name not in ("a", "m", "arr", "A", "x", "b", "array")
    ]:
        if p.kind is p.KEYWORD_ONLY or p.name not in rest:
            break
        args.append(rest.pop(p.name))
    return tuple(args), rest
