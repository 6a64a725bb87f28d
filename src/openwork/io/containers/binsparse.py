"""Binsparse files (`.bsp.h5`): a JSON text that describes dense and sparse levels, and HDF5 datasets of their buffers.

The levels of the specification (version 0.1) are ours: "dense" is dense, "sparse" of rank 1 is compressed, of rank r
a chain of coordinates; `transpose` is the order of the dimensions. So every format of such levels is read and written
as it is, in any rank, under its predefined name (CSR, DCSC, COOR, ...) where it has one. Other formats are written as
coordinates. Source: GraphBLAS/binsparse-specification.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...format import format as parse
from ...format.named import coo
from ...interop.binsparse_description import (
    ATTRIBUTE,
    VALUE_TYPES,
    VERSION,
    Levels,
    as_stored,
    description_of,
    format_description,
    format_text,
    levels_of,
    levels_of_format,
    numbers,
    shape_of,
    symmetry_of,
)
from ...storage.buffers import to_numpy
from ...storage.iso import repeated
from ..shared.records import Array, Buffers, Coordinates, Options, Step, index_dtype
from ..shared.stored_range import Stored
from .besides import refuse_loss
from .hdf5 import Hdf5, create_hdf5, dataset, open_hdf5, set_text

if TYPE_CHECKING:
    from ...storage.storage import Storage
    from ...tensor.tensor import Tensor

__all__ = [
    "ATTRIBUTE",
    "as_stored",
    "create_binsparse",
    "description_of",
    "levels_of_format",
    "read",
    "read_group",
    "refuse_others",
    "stored_group",
    "write",
]

_ARRAYS = re.compile(r"values|fill_value|(indices|pointers_to)_\d+")
_MAX_DESCRIPTION = 1 << 16
"""Characters of a description."""


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The tensor of the file, or of the group `variable=`; level buffers as they are in the file."""
    with open_hdf5(path, options.ratio) as file:
        group = file.group(options.variable)
        if ATTRIBUTE not in group.attrs:
            file.fail(f"{group.name} has no attribute {ATTRIBUTE!r}\n  help: pass variable=, the name of a group")
        return read_group(file, group)


def read_group(file: Hdf5, group: Any) -> Buffers:
    """The tensor that a group describes. Raises FileFormatError that names what is missing or does not fit."""
    description = _description(file, group)
    shape = shape_of(file, description.get("shape"))
    levels, order = levels_of(file, description, len(shape))
    text = format_text(levels, order)
    pos: dict[int, Array] = {}
    crd: dict[int, Array] = {}
    types = description.get("data_types")
    if not isinstance(types, dict):
        file.fail(f"{group.name}: data_types is {types!r}; expected the types of the arrays by name")
    k = 0
    for kind, rank in levels:
        if kind == "sparse":
            columns = [_indices(file, group, f"indices_{k + r}", types) for r in range(rank)]
            root_pos = np.array([0, columns[0].size], np.int64)
            pos[k] = root_pos if k == 0 else _indices(file, group, f"pointers_to_{k}", types)
            crd |= {k + r: c for r, c in enumerate(columns)}
        k += rank
    values = _values(file, group, "values", types)
    number_stored = description.get("number_of_stored_values")
    if str(types.get("values", "")).startswith("iso["):
        values = _repeat_iso_value(file, values, number_stored, crd)
    elif type(number_stored) is not int or number_stored != values.size:
        file.fail(f"{group.name}: {values.size} values; number_of_stored_values is {number_stored!r}")
    fill = _values(file, group, "fill_value", types).reshape(-1) if description.get("fill") is True else values[:0]
    if description.get("fill") is True and fill.size != 1:
        file.fail(f"{group.name}/fill_value has {fill.size} elements; expected one")
    dtype = index_dtype((*shape, values.size))
    pos, crd = ({n: a.astype(dtype, copy=False) for n, a in side.items()} for side in (pos, crd))
    zero = fill[0] if fill.size else values.dtype.type(0)
    return Buffers(text, shape, pos, crd, values, symmetry_of(file, description, levels), zero)


def stored_group(file: Hdf5, group: Any) -> Stored | None:
    """The tensor that a group describes, over its datasets, of which nothing is loaded; None of what has to be: one
    value for all, complex numbers, truth values, triangles."""
    description = _description(file, group)
    shape = shape_of(file, description.get("shape"))
    levels, order = levels_of(file, description, len(shape))
    types = description.get("data_types")
    if not isinstance(types, dict) or str(types.get("values")) not in VALUE_TYPES:
        return None
    if symmetry_of(file, description, levels) != "general" or description.get("fill") is True:
        return None
    pos: dict[int, Any] = {}
    crd: dict[int, Any] = {}
    k = 0
    for kind, rank in levels:
        if kind == "sparse":
            crd |= {k + r: file.dataset(group, f"indices_{k + r}") for r in range(rank)}
            pos[k] = np.array([0, int(crd[k].shape[0])]) if k == 0 else file.dataset(group, f"pointers_to_{k}")
        k += rank
    values = file.dataset(group, "values")
    if any(b.dtype.kind not in "iu" for b in (*pos.values(), *crd.values())):
        file.fail(f"{group.name}: pointers and indices are integers")
    if any(len(b.shape) != 1 for b in (*pos.values(), *crd.values(), values)):
        file.fail(f"{group.name}: pointers, indices and values have one dimension each")
    dtype = np.dtype(values.dtype).newbyteorder("=")
    return Stored(parse(format_text(levels, order), len(shape)), shape, dtype.type(0).item(), pos, crd, values, dtype)


def refuse_others(file: Hdf5) -> bool:
    """False, of a file or store with one binsparse tensor, whose arrays are at the root, and nothing else.

    Raises UnsupportedError where others would be lost.
    """
    root = file.root
    lost = [name for name in root if ATTRIBUTE not in root.attrs or not _ARRAYS.fullmatch(name)]
    if lost:
        refuse_loss(file.name, lost)
    return False


@contextmanager
def create_binsparse(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The root group of a new `.bsp.h5`. Raises UnsupportedError where a file with other members would be lost."""
    with create_hdf5(path, refuse_others) as root:
        yield root


def write(
    path: str | os.PathLike[str], t: Tensor, compress: bool, progress: Step | None,
    opening: Callable[..., Any] = create_binsparse,
) -> None:  # fmt: skip
    """A file with the tensor in its format, where the specification has that, else as sorted coordinates."""
    name = os.fspath(path)
    if not t.ndim:
        raise UnsupportedError(f"write: {name}: binsparse has no tensor of no dimensions\n  help: write .npz")
    levels_and_order = levels_of_format(t.format)
    if levels_and_order is None:
        t = t.asformat(coo(t.ndim))
        levels_and_order = levels_of_format(t.format)
    assert levels_and_order is not None
    storage, (levels, order) = t._storage, levels_and_order
    arrays, types = _arrays(storage, levels, name)
    description: dict[str, Any] = {
        "version": VERSION,
        **format_description(levels, order),
        "shape": list(storage.shape),
    }
    description |= {"number_of_stored_values": int(storage.values.shape[0]), "data_types": types}
    if storage.fill_value != 0:
        description["fill"] = True
        arrays["fill_value"], types["fill_value"] = as_stored(
            np.array([storage.fill_value], arrays_dtype(storage)), name
        )
    total, done = sum(a.size for a in arrays.values()), 0
    with opening(path) as root:
        set_text(root, ATTRIBUTE, json.dumps({ATTRIBUTE: description}))
        for key, array in arrays.items():
            dataset(root, key, array, compress)
            done += array.size
            if progress is not None:
                progress(done, total)


def arrays_dtype(storage: Storage) -> np.dtype[Any]:
    """The dtype of the values as NumPy's."""
    dtype: np.dtype[Any] = to_numpy(storage.values).dtype
    return dtype


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
    is_iso = storage.is_iso and levels[-1][0] == "sparse" and len(storage.values) > 0
    values = to_numpy(storage.values)[: 1 if is_iso else None]
    arrays["values"], types["values"] = as_stored(values, name)
    if is_iso:
        types["values"] = f"iso[{types['values']}]"
    return arrays, types


def _description(file: Hdf5, group: Any) -> dict[str, Any]:
    attribute = group.attrs[ATTRIBUTE]
    if isinstance(attribute, dict):  # zarr's attributes are JSON themselves
        attribute = json.dumps({ATTRIBUTE: attribute.get(ATTRIBUTE, attribute)})
    attribute = attribute.decode("utf-8", "replace") if isinstance(attribute, bytes) else attribute
    if not isinstance(attribute, str) or len(attribute) > _MAX_DESCRIPTION:
        file.fail(f"{group.name}: the attribute {ATTRIBUTE!r} is no text of at most {_MAX_DESCRIPTION} characters")
    try:
        description = json.loads(attribute)
        description = description[ATTRIBUTE]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        file.fail(f"{group.name}: the attribute {ATTRIBUTE!r} is no description of a tensor ({error})")
    if not isinstance(description, dict):
        file.fail(f"{group.name}: the attribute {ATTRIBUTE!r} is no description of a tensor")
    version = str(description.get("version"))
    if version.split(".")[0] != VERSION.split(".")[0]:
        raise UnsupportedError(f"{file.name}: binsparse {version}; read is version {VERSION}")
    return description


def _indices(file: Hdf5, group: Any, key: str, types: dict[str, Any]) -> Array:
    array = file.integers(group, key)
    if types.get(key) != str(array.dtype):
        file.fail(f"{key} has values of {array.dtype}; data_types says {types.get(key)!r}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= 2**62:
        file.fail(f"{key} has values outside 0 to 2**62")
    return array


def _values(file: Hdf5, group: Any, key: str, types: dict[str, Any]) -> Array:
    """The values as their type says: pairs are complex numbers, bytes may be truth values."""
    array: Array = numbers(file, key, file.array(group, key), str(types.get(key)))
    return array


def _repeat_iso_value(file: Hdf5, values: Array, number_stored: object, crd: dict[int, Array]) -> Array:
    """An iso-valued array -> its one value repeated for every element that the innermost level stores."""
    if values.size != 1 or not crd:
        file.fail(f"{values.size} values that are all the same; expected one, of a sparse format")
    innermost = crd[max(crd)]
    if type(number_stored) is not int or number_stored != innermost.size:
        file.fail(f"{innermost.size} indices; number_of_stored_values is {number_stored!r}")
    return to_numpy(repeated(values, innermost.size))
