"""Random formats of the whole grammar and random arrays of awkward values, from a `random.Random`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from matrix import FORMATS
from views import LAYOUTS, REPEATED, TORCH_LAYOUTS, numpy_view, torch_view

import openwork as ow

__all__ = ["BATCHES", "DTYPES", "array", "awkward", "extents", "laid", "random_format", "tensor"]

Array = np.ndarray[Any, Any]
LEVELS = (
    "dense", "dense", "compressed", "compressed", "singleton", "loose_compressed", "bitmap", "ell(2)", "ell(7)",
    "range", "structured", "batch", "renamed",
)  # fmt: skip
PROPERTIES = ("", "", "", "", "(nonunique)", "(unordered)", "(nonunique, unordered)")
BATCHES = {
    2: ("(a, b) -> (a : batch, b : compressed)", "(a, b) -> (b : batch, a // 2 : compressed, a % 2 : dense)"),
    3: (
        "(a, b, c) -> (a : batch, c - b : compressed, c : range)",
        "(a, b, c) -> (c : batch, a + b : compressed, a : range)",
        "(a, b, c) -> (a : batch, b : dense, c : compressed)",
        "(a, b, c) -> (b : batch, a : compressed(nonunique), c : singleton)",
        "(a, b, c) -> (a : batch, b : batch, c : bitmap)",
        "(a, b, c) -> (a : batch, b : dense, c // 4 : dense, c % 4 : structured(2, 4))",
    ),
}
"""Batches, which hold an array only where all of them store as many elements: drawn by chance that is too seldom."""
TRIES = 60
DTYPES = (
    "bool", "int8", "int32", "int64", "uint8", "uint16", "uint64", "float16", "float32", "float64", "float64",
    "complex64", "complex128", "complex128",
)  # fmt: skip


def random_format(rng: random.Random, rank: int, levels: tuple[str, ...] = LEVELS) -> ow.Format:
    """A legal format: texts of the grammar are drawn until one is not refused."""
    if not rank:
        return ow.format("() -> ()")
    if rng.random() < 0.2:
        return ow.format(rng.choice(FORMATS[rank]), rank)
    for _ in range(TRIES):
        try:
            return ow.format(_text(rng, rank, levels))
        except ow.FormatError:
            continue
    return ow.format("coo", rank)


def _text(rng: random.Random, rank: int, levels: tuple[str, ...]) -> str:
    dims = "abcdefgh"[:rank]
    order = rng.sample(dims, rank)
    batch = rng.choice((0, 0, 0, 0, 0, 1, 2)) if "batch" in levels else 0
    front, rest = order[:batch], order[batch:]
    parts = list(rest)
    if len(rest) > 1 and rng.random() < 0.25:
        parts[0] = rng.choice(("{0} - {1}", "{1} - {0}", "{0} + {1}")).format(*rest[:2])
    parts = [p for e in parts for p in (_blocks(rng, e) if rng.random() < 0.3 else [e])]
    if rng.random() < 0.6:
        rng.shuffle(parts)
    behind = rng.choice((0, 0, 0, 1, 2))
    made, above = [f"{d} : batch" for d in front], ""
    plan = _blocked(rng, len(parts)) if rng.random() < 0.3 else [""] * len(parts)
    for at, e in enumerate(parts):
        kind = plan[at] or ("dense" if at >= len(parts) - behind else rng.choice(levels))
        if "nonunique" in above and rng.random() < 0.8:
            kind = "singleton"
        if kind == "structured":
            kind = f"structured({rng.randint(1, 2)}, {e.rpartition('% ')[2] if '%' in e else 4})"
        above = rng.choice(PROPERTIES) if not plan[at] and kind not in ("dense", "bitmap", "range", "batch") else ""
        if kind.endswith(")") and above:
            above = f", {above[1:]}"
            kind = kind[:-1]
        made.append(f"{e} : {kind}{above}")
    return f"({', '.join(dims)}) -> ({', '.join(made)})"


def _blocked(rng: random.Random, n: int) -> list[str]:
    """Levels as blocked formats have them: a few that locate, one that is searched, and dense ones."""
    above = rng.randint(0, max(0, n - 1))
    return [rng.choice(("dense", "bitmap")) for _ in range(above)] + ["compressed"] + ["dense"] * (n - above - 1)


def _blocks(rng: random.Random, e: str) -> list[str]:
    e = f"({e})" if " " in e else e
    n = rng.choice((1, 2, 2, 3, 4))
    if rng.random() < 0.75:
        return [f"{e} // {n}", f"{e} % {n}"]
    return [f"{e} // {2 * n}", f"{e} % {2 * n} // {n}", f"{e} % {n}"]


def awkward(dtype: str) -> list[Any]:
    """Values at which arithmetic of the dtype turns."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return [False, True]
    if kind in "iu":
        info = np.iinfo(dtype)
        return [0, 1, 2, 3, int(info.min), int(info.max), int(info.max) - 1]
    info = np.finfo(dtype)
    real = [0.0, -0.0, 1.0, -1.5, 2.0, np.nan, np.inf, -np.inf, float(info.smallest_subnormal), float(info.max)]
    if kind == "f":
        return real
    parts = [0.0, -0.0, 1.0, -1.0, np.inf, np.nan]
    return [0j, 0j, *(complex(a, b) for a in parts for b in parts), 2 + 1j, -1 + 1j]


def array(rng: random.Random, shape: tuple[int, ...], dtype: str, tame: bool, fill: Any = 0) -> Array:
    """An array with more or less of it at the fill value; `tame` values are small whole numbers."""
    least = 0 if np.dtype(dtype).kind in "bu" else -3
    pool = list(range(least, 5)) if tame else awkward(dtype)
    density = rng.choice((0.0, 0.2, 0.4, 0.8, 1.0))
    flat = [rng.choice(pool) if rng.random() < density else fill for _ in range(int(np.prod(shape)))]
    return np.array(flat, dtype).reshape(shape)


def laid(rng: random.Random, x: Any, share: float = 0.6, repeated: bool = False) -> Any:
    """An array of either library as people have them, a part of a table, say; `repeated`: with other elements too."""
    if rng.random() > share or (not isinstance(x, np.ndarray) and not x.ndim):
        return x
    if not isinstance(x, np.ndarray):
        return torch_view(x, rng.choice((*TORCH_LAYOUTS, *REPEATED * repeated)))
    return numpy_view(x, rng.choice((*LAYOUTS, *REPEATED * repeated)))


def extents(rng: random.Random, rank: int) -> tuple[int, ...]:
    if rank <= 2 and rng.random() < 0.06:  # rows that are packed, copied for the cache, or read in register tiles
        return tuple(rng.choice((8, 24, 40, 64, 72)) for _ in range(rank))
    return tuple(rng.choice((0, 1, 1, 2, 3, 4, 5, 7)) for _ in range(rank))


def tensor(rng: random.Random, dense: Array, fill: Any, format: ow.Format, tame: bool) -> ow.Tensor:
    """The array in the format, or in one that can hold it; with explicit fill values, at times with duplicates."""
    if fill == 0 and dense.ndim and rng.random() < 0.4:
        explicit = np.array([rng.random() < 0.2 for _ in range(dense.size)], bool).reshape(dense.shape)
        places = np.argwhere(
            (dense != 0) | np.signbit(dense.real) | explicit if dense.dtype.kind in "fc" else (dense != 0) | explicit
        )
        values = dense[tuple(places.T)]
        if tame and dense.dtype.kind in "if" and len(values) and rng.random() < 0.4:
            places = np.concatenate([places, places[:1]])
            values = np.concatenate([values, values[:1] * 0 + 1])
            values[0] -= 1
        places = laid(rng, places.T.reshape(dense.ndim, len(places)))
        start = ow.sparse_coo_tensor(places, laid(rng, values), dense.shape)
        if len(np.unique(places, axis=1).T) == places.shape[1] and np.signbit(values.real).any() and not tame:
            start = start.coalesce()  # sums of a nonunique format begin at +0.0
    else:
        start = ow.asarray(laid(rng, dense), format="coo" if dense.ndim else None, fill_value=fill)
    try:
        made = start.asformat(format)
    except (ow.FormatError, ow.UnsupportedError, ow.ShapeError):
        return start
    signed = made.dtype.kind in "fc" and not made.format.is_unique  # a zero among duplicates has no sign
    return made.with_values(laid(rng, made.values + 0 if signed else made.values, 1 if signed else 0.2))
