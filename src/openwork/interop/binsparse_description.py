"""A format and its arrays <-> a description of binsparse, as files and the protocol between libraries have it.

Source: the binsparse specification, version 0.1; custom formats too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, Protocol

import numpy as np

from ..errors import UnsupportedError
from ..format.expression import Dim
from ..format.format import Format
from ..storage.buffers import Array

__all__ = [
    "ATTRIBUTE", "VALUE_TYPES", "VERSION", "Levels", "Source", "as_stored", "description_of", "format_description",
    "format_text", "levels_of", "levels_of_format", "numbers", "shape_of", "symmetry_of",
]  # fmt: skip

ATTRIBUTE = "binsparse"
VERSION = "0.1"
_MAX_RANK = 32
Levels = tuple[tuple[str, int], ...]
"""The kind, "dense" or "sparse", and the number of dimensions of each level, outermost first."""

_DENSE, _SPARSE, _PAIR = ("dense", 1), ("sparse", 1), ("sparse", 2)
_PREDEFINED: dict[str, tuple[Levels, bool]] = {
    "DVEC": ((_DENSE,), False), "CVEC": ((_SPARSE,), False),
    "DMATR": ((_DENSE, _DENSE), False), "DMATC": ((_DENSE, _DENSE), True),
    "CSR": ((_DENSE, _SPARSE), False), "CSC": ((_DENSE, _SPARSE), True),
    "DCSR": ((_SPARSE, _SPARSE), False), "DCSC": ((_SPARSE, _SPARSE), True),
    "COOR": ((_PAIR,), False), "COOC": ((_PAIR,), True),
}  # fmt: skip
"""The predefined formats: levels, and whether the columns come first."""
_ALIASES = {"DMAT": "DMATR", "COO": "COOR"}
_STRUCTURES = {"symmetric": "symmetric", "hermitian": "hermitian", "skew_symmetric": "skew-symmetric"}
VALUE_TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")


class Source(Protocol):
    """What a description belongs to: a file, or an object of another library."""

    name: str

    def fail(self, message: str) -> NoReturn: ...


def levels_of_format(format: Format) -> tuple[Levels, tuple[int, ...]] | None:
    """The levels of a format and the dimensions in their order; None for one that the specification does not have."""
    order, levels, rank = [], [], 0
    for level in format.levels:
        kind, e = level.format, level.expression
        if not isinstance(e, Dim) or not kind.ordered or kind.batched:
            return None
        order.append(e.index)
        if rank:
            if not kind.is_singleton:
                return None
            rank += 1
        elif kind.is_dense:
            levels.append(("dense", 1))
            continue
        elif not kind.is_compressed:
            return None
        else:
            rank = 1
        if kind.unique:
            levels.append(("sparse", rank))
            rank = 0
    return None if rank or len(set(order)) < format.ndim else (tuple(levels), tuple(order))


def as_stored(values: Array, name: str) -> tuple[Array, str]:
    """Values as they are stored, and the name of their type."""
    dtype = values.dtype
    if dtype == np.bool_:
        return values.view(np.uint8), "bint8"
    if dtype.kind == "c":
        return values.view(np.float32 if dtype.itemsize == 8 else np.float64), f"complex[float{dtype.itemsize * 4}]"
    if str(dtype) not in VALUE_TYPES:
        raise UnsupportedError(f"write: {name}: binsparse has no values of {dtype}\n  help: astype, or write .npz")
    return values, str(dtype)


def format_description(levels: Levels, order: tuple[int, ...]) -> dict[str, Any]:
    """The predefined format of levels, or their custom description."""
    transposed_order = order == (1, 0)
    for name, (known_levels, transposed) in _PREDEFINED.items():
        if known_levels == levels and transposed == transposed_order and sorted(order) == list(range(len(order))):
            return {"format": name}
    level: dict[str, Any] = {"level_desc": "element"}
    for kind, rank in reversed(levels):
        level = {"level_desc": kind, "rank": rank, "level": level}
    custom: dict[str, Any] = {"level": level}
    if order != tuple(range(len(order))):
        custom["transpose"] = list(order)
    return {"format": "custom", "custom": custom}


def description_of(format: Format, shape: tuple[int, ...], types: dict[str, str], stored: int) -> dict[str, Any]:
    """The description of a tensor in a format that the specification has."""
    found = levels_of_format(format)
    assert found is not None
    head = {"version": VERSION, **format_description(*found), "shape": list(shape)}
    return {**head, "number_of_stored_values": stored, "data_types": types}


def shape_of(file: Source, shape: object) -> tuple[int, ...]:
    if not isinstance(shape, list) or not 0 < len(shape) <= _MAX_RANK:
        file.fail(f"shape is {shape!r}; expected a list of 1 to {_MAX_RANK} extents")
    if any(type(n) is not int or not 0 <= n <= 2**62 for n in shape):
        file.fail(f"shape is {shape!r}; expected extents from 0 to 2**62")
    return tuple(shape)


def levels_of(file: Source, description: dict[str, Any], ndim: int) -> tuple[Levels, tuple[int, ...]]:
    name = description.get("format")
    custom = description.get("custom")
    if isinstance(name, str) and (named_format := _PREDEFINED.get(_ALIASES.get(name, name))) is not None:
        levels, transposed = named_format
        order = (1, 0) if transposed else tuple(range(ndim))
    elif isinstance(custom, dict):
        levels = tuple(_levels_of_custom(file, custom.get("level")))
        order = tuple(custom.get("transpose", range(ndim)))
    else:
        file.fail(f"format is {name!r}; known are {', '.join((*_PREDEFINED, *_ALIASES))}, and custom")
    if sum(rank for _, rank in levels) != ndim or any(type(d) is not int for d in order):
        file.fail(f"format {name}: levels of {sum(rank for _, rank in levels)} dimensions; the shape has {ndim}")
    if sorted(order) != list(range(ndim)):
        file.fail(f"transpose is {list(order)}; expected the numbers of {ndim} dimensions")
    return levels, order


def _levels_of_custom(file: Source, level: object) -> Iterator[tuple[str, int]]:
    for _ in range(_MAX_RANK + 1):
        if not isinstance(level, dict):
            file.fail(f"a level is {level!r:.80}; expected level_desc, rank and level")
        kind, rank = level.get("level_desc"), level.get("rank")
        if kind == "element":
            return
        if kind not in ("dense", "sparse") or type(rank) is not int or not 1 <= rank <= _MAX_RANK:
            file.fail(f"a level is {kind!r:.80} of rank {rank!r:.80}; expected dense, sparse or element")
        yield from ((kind, 1) for _ in range(rank)) if kind == "dense" else ((kind, rank),)
        level = level.get("level")
    file.fail(f"more than {_MAX_RANK} levels")


def format_text(levels: Levels, order: tuple[int, ...]) -> str:
    """Levels -> the text of the format; a sparse level of several dimensions is a chain of coordinates."""
    names = [f"i{d}" for d in range(len(order))] if len(order) > 2 else ["i", "j"][: len(order)]
    texts, dims = [], iter(order)
    for kind, rank in levels:
        first = "dense" if kind == "dense" else "compressed" if rank == 1 else "compressed(nonunique)"
        kinds = [first, *["singleton(nonunique)"] * (rank - 2), *["singleton"] * (rank > 1)]
        texts += [f"{names[next(dims)]} : {k}" for k in kinds]
    return f"({', '.join(names)}) -> ({', '.join(texts)})"


def symmetry_of(file: Source, description: dict[str, Any], levels: Levels) -> str:
    structure = description.get("structure")
    if structure is None:
        return "general"
    name, _, triangle = str(structure).rpartition("_")
    if name not in _STRUCTURES or triangle not in ("lower", "upper"):
        file.fail(f"structure is {structure!r}; known are {', '.join(_STRUCTURES)} with _lower or _upper")
    if levels != (_DENSE, _SPARSE):
        raise UnsupportedError(f"{file.name}: structure {structure!r} is read of CSR and CSC")
    return _STRUCTURES[name]


def numbers(file: Source, key: str, array: Array, declared: str) -> Array:
    """Values as their type says: pairs are complex numbers, bytes may be truth values; of "iso[...]" one value."""
    inner = declared.removeprefix("iso[").rstrip("]") + "]" * declared.removeprefix("iso[").count("[")
    if array.ndim != 1:
        file.fail(f"{key} has shape {array.shape}; expected one dimension")
    if inner == "bint8":
        if array.dtype.kind not in "biu":
            file.fail(f"{key} has values of {array.dtype}; data_types says {declared!r}")
        return np.asarray(array != 0)
    if inner.startswith("complex["):
        part = inner[len("complex[") : -1]
        if str(array.dtype) != part or part not in ("float32", "float64") or array.size % 2:
            file.fail(f"{key} has {array.size} values of {array.dtype}; data_types says {declared!r}")
        return array.view(np.complex64 if part == "float32" else np.complex128)
    if str(array.dtype) != inner:
        file.fail(f"{key} has values of {array.dtype}; data_types says {declared!r}")
    return array
