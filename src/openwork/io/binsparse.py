"""Binsparse files (`.bsp.h5`): a JSON text that describes dense and sparse levels, and HDF5 datasets of their buffers.

The levels of the specification (version 0.1) are ours: "dense" is dense, "sparse" of rank 1 is compressed, of rank r
a chain of coordinates; `transpose` is the order of the dimensions. So every format of such levels is read and written
as it is, in any rank, under its predefined name (CSR, DCSC, COOR, ...) where it has one. Other formats are written as
coordinates. Source: GraphBLAS/binsparse-specification.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UnsupportedError
from ..format.expression import Dim
from ..format.format import Format
from ..format.named import coo
from ..storage.buffers import to_numpy
from .hdf5 import Hdf5, created, dataset, opened_hdf5
from .records import Array, Buffers, Coordinates, Options, Progress
from .scan import index_dtype

if TYPE_CHECKING:
    from ..storage.storage import Storage
    from ..tensor.tensor import Tensor

__all__ = ["ATTRIBUTE", "read", "read_group", "write"]

ATTRIBUTE = "binsparse"
VERSION = "0.1"
_LONGEST = 1 << 16
"""Characters of a description."""
_RANKS = 32
Levels = tuple[tuple[str, int], ...]
"""The kind, "dense" or "sparse", and the number of dimensions of each level, outermost first."""

_D, _S, _PAIR = ("dense", 1), ("sparse", 1), ("sparse", 2)
_NAMED: dict[str, tuple[Levels, bool]] = {
    "DVEC": ((_D,), False), "CVEC": ((_S,), False),
    "DMATR": ((_D, _D), False), "DMATC": ((_D, _D), True),
    "CSR": ((_D, _S), False), "CSC": ((_D, _S), True),
    "DCSR": ((_S, _S), False), "DCSC": ((_S, _S), True),
    "COOR": ((_PAIR,), False), "COOC": ((_PAIR,), True),
}  # fmt: skip
"""The predefined formats: levels, and whether the columns come first."""
_ALIASES = {"DMAT": "DMATR", "COO": "COOR"}
_STRUCTURES = {"symmetric": "symmetric", "hermitian": "hermitian", "skew_symmetric": "skew-symmetric"}
_TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The tensor of the file, or of the group `variable=`; level buffers as they are in the file."""
    with opened_hdf5(path, options.ratio) as file:
        group = file.group(options.variable)
        if ATTRIBUTE not in group.attrs:
            file.fail(f"{group.name} has no attribute {ATTRIBUTE!r}\n  help: pass variable=, the name of a group")
        return read_group(file, group)


def read_group(file: Hdf5, group: Any) -> Buffers:
    """The tensor that a group describes. Raises FileFormatError that names what is missing or does not fit."""
    said = _description(file, group)
    shape = _shape(file, said.get("shape"))
    levels, order = _levels(file, said, len(shape))
    text = _text(levels, order)
    pos: dict[int, Array] = {}
    crd: dict[int, Array] = {}
    types = said.get("data_types")
    if not isinstance(types, dict):
        file.fail(f"{group.name}: data_types is {types!r}; expected the types of the arrays by name")
    k = 0
    for kind, rank in levels:
        if kind == "sparse":
            columns = [_indices(file, group, f"indices_{k + r}", types) for r in range(rank)]
            root = np.array([0, columns[0].size], np.int64)
            pos[k] = root if k == 0 else _indices(file, group, f"pointers_to_{k}", types)
            crd |= {k + r: c for r, c in enumerate(columns)}
        k += rank
    values = _values(file, group, "values", types)
    stored = said.get("number_of_stored_values")
    if str(types.get("values", "")).startswith("iso["):
        values = _repeated(file, values, stored, crd)
    elif type(stored) is not int or stored != values.size:
        file.fail(f"{group.name}: {values.size} values; number_of_stored_values is {stored!r}")
    fill = _values(file, group, "fill_value", types).reshape(-1) if said.get("fill") is True else values[:0]
    if said.get("fill") is True and fill.size != 1:
        file.fail(f"{group.name}/fill_value has {fill.size} elements; expected one")
    dtype = index_dtype((*shape, values.size))
    pos, crd = ({n: a.astype(dtype, copy=False) for n, a in side.items()} for side in (pos, crd))
    zero = fill[0] if fill.size else values.dtype.type(0)
    return Buffers(text, shape, pos, crd, values, _symmetry(file, said, levels), zero)


def write(
    path: str | os.PathLike[str], t: Tensor, compress: bool, progress: Progress | None,
    opening: Callable[..., Any] = created,
) -> None:  # fmt: skip
    """A file with the tensor in its format, where the specification has that, else as sorted coordinates."""
    name = os.fspath(path)
    if not t.ndim:
        raise UnsupportedError(f"write: {name}: binsparse has no tensor of no dimensions\n  help: write .npz")
    found = described(t.format)
    if found is None:
        t = t.asformat(coo(t.ndim))
        found = described(t.format)
    assert found is not None
    storage, (levels, order) = t._storage, found
    arrays, types = _arrays(storage, levels, name)
    said: dict[str, Any] = {"version": VERSION, **_named(levels, order), "shape": list(storage.shape)}
    said |= {"number_of_stored_values": int(storage.values.shape[0]), "data_types": types}
    if storage.fill_value != 0:
        said["fill"] = True
        arrays["fill_value"], types["fill_value"] = _stored(np.array([storage.fill_value], arrays_dtype(storage)), name)
    total, done = sum(a.size for a in arrays.values()), 0
    with opening(path) as root:
        root.attrs[ATTRIBUTE] = json.dumps({ATTRIBUTE: said})
        for key, array in arrays.items():
            dataset(root, key, array, compress)
            done += array.size
            if progress is not None:
                progress(done, total)


def described(format: Format) -> tuple[Levels, tuple[int, ...]] | None:
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


def arrays_dtype(storage: Storage) -> np.dtype[Any]:
    """The dtype of the values as NumPy's."""
    found: np.dtype[Any] = to_numpy(storage.values).dtype
    return found


def _arrays(storage: Storage, levels: Levels, name: str) -> tuple[dict[str, Array], dict[str, str]]:
    arrays: dict[str, Array] = {}
    k = 0
    for kind, rank in levels:
        if kind == "sparse":
            if k:
                arrays[f"pointers_to_{k}"] = to_numpy(storage.pos[k])
            arrays |= {f"indices_{k + r}": to_numpy(storage.crd[k + r]) for r in range(rank)}
        k += rank
    types = {key: str(a.dtype) for key, a in arrays.items()}
    arrays["values"], types["values"] = _stored(to_numpy(storage.values), name)
    return arrays, types


def _stored(values: Array, name: str) -> tuple[Array, str]:
    """Values as they are stored, and the name of their type."""
    kind = values.dtype
    if kind == np.bool_:
        return values.view(np.uint8), "bint8"
    if kind.kind == "c":
        return values.view(np.float32 if kind.itemsize == 8 else np.float64), f"complex[float{kind.itemsize * 4}]"
    if str(kind) not in _TYPES:
        raise UnsupportedError(f"write: {name}: binsparse has no values of {kind}\n  help: astype, or write .npz")
    return values, str(kind)


def _named(levels: Levels, order: tuple[int, ...]) -> dict[str, Any]:
    """The predefined format of levels, or their custom description."""
    turned = order == (1, 0)
    for name, (known, transposed) in _NAMED.items():
        if known == levels and transposed == turned and sorted(order) == list(range(len(order))):
            return {"format": name}
    level: dict[str, Any] = {"level_desc": "element"}
    for kind, rank in reversed(levels):
        level = {"level_desc": kind, "rank": rank, "level": level}
    custom: dict[str, Any] = {"level": level}
    if order != tuple(range(len(order))):
        custom["transpose"] = list(order)
    return {"format": "custom", "custom": custom}


def _description(file: Hdf5, group: Any) -> dict[str, Any]:
    said = group.attrs[ATTRIBUTE]
    if isinstance(said, dict):  # zarr's attributes are JSON themselves
        said = json.dumps({ATTRIBUTE: said.get(ATTRIBUTE, said)})
    said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    if not isinstance(said, str) or len(said) > _LONGEST:
        file.fail(f"{group.name}: the attribute {ATTRIBUTE!r} is no text of at most {_LONGEST} characters")
    try:
        found = json.loads(said)
        found = found[ATTRIBUTE]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        file.fail(f"{group.name}: the attribute {ATTRIBUTE!r} is no description of a tensor ({error})")
    if not isinstance(found, dict):
        file.fail(f"{group.name}: the attribute {ATTRIBUTE!r} is no description of a tensor")
    version = str(found.get("version"))
    if version.split(".")[0] != VERSION.split(".")[0]:
        raise UnsupportedError(f"{file.name}: binsparse {version}; read is version {VERSION}")
    return found


def _shape(file: Hdf5, shape: object) -> tuple[int, ...]:
    if not isinstance(shape, list) or not 0 < len(shape) <= _RANKS:
        file.fail(f"shape is {shape!r}; expected a list of 1 to {_RANKS} extents")
    if any(type(n) is not int or not 0 <= n <= 2**62 for n in shape):
        file.fail(f"shape is {shape!r}; expected extents from 0 to 2**62")
    return tuple(shape)


def _levels(file: Hdf5, said: dict[str, Any], ndim: int) -> tuple[Levels, tuple[int, ...]]:
    name = said.get("format")
    custom = said.get("custom")
    if isinstance(name, str) and (known := _NAMED.get(_ALIASES.get(name, name))) is not None:
        levels, turned = known
        order = (1, 0) if turned else tuple(range(ndim))
    elif isinstance(custom, dict):
        levels = tuple(_walked(file, custom.get("level")))
        order = tuple(custom.get("transpose", range(ndim)))
    else:
        file.fail(f"format is {name!r}; known are {', '.join((*_NAMED, *_ALIASES))}, and custom")
    if sum(rank for _, rank in levels) != ndim or any(type(d) is not int for d in order):
        file.fail(f"format {name}: levels of {sum(rank for _, rank in levels)} dimensions; the shape has {ndim}")
    if sorted(order) != list(range(ndim)):
        file.fail(f"transpose is {list(order)}; expected the numbers of {ndim} dimensions")
    return levels, order


def _walked(file: Hdf5, level: object) -> Iterator[tuple[str, int]]:
    for _ in range(_RANKS + 1):
        if not isinstance(level, dict):
            file.fail(f"a level is {level!r:.80}; expected level_desc, rank and level")
        kind, rank = level.get("level_desc"), level.get("rank")
        if kind == "element":
            return
        if kind not in ("dense", "sparse") or type(rank) is not int or not 1 <= rank <= _RANKS:
            file.fail(f"a level is {kind!r:.80} of rank {rank!r:.80}; expected dense, sparse or element")
        yield from ((kind, 1) for _ in range(rank)) if kind == "dense" else ((kind, rank),)
        level = level.get("level")
    file.fail(f"more than {_RANKS} levels")


def _text(levels: Levels, order: tuple[int, ...]) -> str:
    """The format in our language; a sparse level of several dimensions is a chain of coordinates."""
    names = [f"i{d}" for d in range(len(order))] if len(order) > 2 else ["i", "j"][: len(order)]
    texts, at = [], iter(order)
    for kind, rank in levels:
        first = "dense" if kind == "dense" else "compressed" if rank == 1 else "compressed(nonunique)"
        kinds = [first, *["singleton(nonunique)"] * (rank - 2), *["singleton"] * (rank > 1)]
        texts += [f"{names[next(at)]} : {k}" for k in kinds]
    return f"({', '.join(names)}) -> ({', '.join(texts)})"


def _indices(file: Hdf5, group: Any, key: str, types: dict[str, Any]) -> Array:
    found = file.whole(group, key)
    if types.get(key) != str(found.dtype):
        file.fail(f"{key} has values of {found.dtype}; data_types says {types.get(key)!r}")
    if found.size and not 0 <= int(found.min()) <= int(found.max()) <= 2**62:
        file.fail(f"{key} has values outside 0 to 2**62")
    return found


def _values(file: Hdf5, group: Any, key: str, types: dict[str, Any]) -> Array:
    """The values as their type says: pairs are complex numbers, bytes may be truth values."""
    found, said = file.array(group, key), str(types.get(key))
    inner = said.removeprefix("iso[").rstrip("]") + "]" * said.removeprefix("iso[").count("[")
    if found.ndim != 1:
        file.fail(f"{key} has shape {found.shape}; expected one dimension")
    if inner == "bint8":
        if found.dtype.kind not in "biu":
            file.fail(f"{key} has values of {found.dtype}; data_types says {said!r}")
        return np.asarray(found != 0)
    if inner.startswith("complex["):
        part = inner[len("complex[") : -1]
        if str(found.dtype) != part or part not in ("float32", "float64") or found.size % 2:
            file.fail(f"{key} has {found.size} values of {found.dtype}; data_types says {said!r}")
        return found.view(np.complex64 if part == "float32" else np.complex128)
    if str(found.dtype) != inner:
        file.fail(f"{key} has values of {found.dtype}; data_types says {said!r}")
    return found


def _repeated(file: Hdf5, values: Array, stored: object, crd: dict[int, Array]) -> Array:
    """One value for as many as the innermost level stores."""
    if values.size != 1 or not crd:
        file.fail(f"{values.size} values that are all the same; expected one, of a sparse format")
    last = crd[max(crd)]
    if type(stored) is not int or stored != last.size:
        file.fail(f"{last.size} indices; number_of_stored_values is {stored!r}")
    return np.repeat(values, last.size)


def _symmetry(file: Hdf5, said: dict[str, Any], levels: Levels) -> str:
    structure = said.get("structure")
    if structure is None:
        return "general"
    name, _, triangle = str(structure).rpartition("_")
    if name not in _STRUCTURES or triangle not in ("lower", "upper"):
        file.fail(f"structure is {structure!r}; known are {', '.join(_STRUCTURES)} with _lower or _upper")
    if levels != (_D, _S):
        raise UnsupportedError(f"{file.name}: structure {structure!r} is read of CSR and CSC")
    return _STRUCTURES[name]
