"""AnnData files (`.h5ad`): sparse and dense elements by name (X, layers, obsm, obsp, ...), read and written.

An element is a group of the arrays of compressed rows or columns, or a dataset; its attribute `encoding-type` says
which. Ranges of rows are read without the rest. Source: the on-disk format of anndata 0.8 and later; the attributes
of earlier files (`h5sparse_format`) are read too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...format import format as parse
from ...storage.buffers import to_numpy
from ..shared.compressed import check_pointers, compressed
from ..shared.records import Array, Buffers, Coordinates, Options, Rows, Step
from ..shared.rows import numbers_of, pieces, range_of
from .besides import lost, refuse_loss
from .hdf5 import Hdf5, create_hdf5, dataset, open_hdf5, text_dataset

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["is_anndata", "read", "write"]

_MAJOR = {"csr": "i", "csc": "j"}
_PIECE, _GAP = 1 << 22, 1 << 16
"""Elements that are read together, and elements between two rows that are not worth a second read."""
_AXES = {"layers": (0, 1), "obsm": (0, None), "varm": (1, None), "obsp": (0, 0), "varp": (1, 1)}
"""The extents of X that the dimensions of an element of each group have."""


def is_anndata(file: Hdf5) -> bool:
    """Whether the file has AnnData's layout."""
    encoding = file.root.attrs.get("encoding-type")
    return encoding in ("anndata", b"anndata") or {"X", "obs", "var"} <= set(file.members(file.root))


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The element `variable=`, "X" by default; compressed rows stay that, a dense array is dense."""
    with open_hdf5(path, options.ratio) as file:
        return read_element(file, options.variable or "X", options.rows)


def read_element(file: Hdf5, name: str, rows: Rows | None) -> Buffers | Coordinates:
    """An element by its path in the file."""
    *group_path, key = name.strip("/").split("/")
    parent = file.group("/".join(group_path))
    item = file.members(parent).get(key)
    if item is None:
        file.fail(f"there is no element {name!r}; there are {', '.join(_elements(file)[:40])}")
    if not file.is_group(item):
        return _read_dense(file, parent, key, rows)
    kind = _text(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", ""))).removesuffix("_matrix")
    if kind not in _MAJOR:
        file.fail(f"{item.name} is of encoding-type {kind!r}; expected csr_matrix, csc_matrix or array")
    shape = np.asarray(item.attrs.get("shape", item.attrs.get("h5sparse_shape", ())))
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not 0 <= int(shape.min()) <= int(shape.max()) <= 2**62:
        file.fail(f"{item.name}: shape is {shape.tolist()}; expected two extents")
    n, m = (int(x) for x in shape)
    if rows is not None:
        if kind != "csr":
            raise UnsupportedError(
                f"{file.name}: rows= of {item.name}, which is stored by columns\n  help: read it whole"
            )
        return _read_rows(file, item, (n, m), rows)
    pos, crd, data = file.integers(item, "indptr"), file.integers(item, "indices"), file.array(item, "data")
    outer, inner = (n, m) if kind == "csr" else (m, n)
    if data.ndim != 1:
        file.fail(f"{item.name}/data has shape {data.shape}; expected one dimension")
    if fault := check_pointers(pos, crd, data.size, outer, inner, ("indptr", "indices")):
        file.fail(f"{item.name}: {fault}")
    return compressed(_MAJOR[kind], (n, m), pos, crd, data)


def _read_rows(file: Hdf5, item: Any, shape: tuple[int, int], rows: Rows) -> Buffers:
    """Compressed rows: their pointers, indices and values, and nothing else of the file."""
    stored = min(int(item[key].shape[0]) if item[key].shape else 0 for key in ("indices", "data"))
    if isinstance(rows, tuple):
        first, last = range_of(rows, shape[0])
        pos = _pointers(file, item, first, last, stored)
        part = slice(int(pos[0]), int(pos[-1]))
        pos, crd, data = pos - pos[0], file.integers(item, "indices", part), file.array(item, "data", part)
    else:
        pos, crd, data = _gathered(file, item, numbers_of(rows, shape[0]), _pointers(file, item, 0, shape[0], stored))
    if fault := check_pointers(pos, crd, data.size, pos.size - 1, shape[1], ("indptr", "indices")):
        file.fail(f"{item.name}: {fault}")
    return compressed("i", (pos.size - 1, shape[1]), pos, crd, data)


def _pointers(file: Hdf5, item: Any, first: int, last: int, stored: int) -> Array:
    """The pointers of rows first to last - 1, which ascend and lie inside what is stored."""
    pos = file.integers(item, "indptr", slice(first, last + 1))
    if pos.size != last - first + 1:
        file.fail(f"{item.name}: indptr ends before row {last}")
    low, high = int(pos[0]), int(pos[-1])
    if not 0 <= low <= high <= stored or (pos[1:] < pos[:-1]).any():
        file.fail(f"{item.name}: rows {first} to {last} lie at {low} to {high} of {stored} elements")
    return pos


def _gathered(file: Hdf5, item: Any, rows: Array, pos: Array) -> tuple[Array, Array, Array]:
    """Compressed rows in an order of the caller's: those that are wanted are read once, piece by piece."""
    wanted, place = np.unique(rows, return_inverse=True)
    kept: tuple[list[Array], list[Array]] = ([], [])
    for first, last in pieces(wanted, lambda row: int(pos[row]), _PIECE, _GAP):
        part = slice(int(pos[first]), int(pos[last]))
        counts = np.diff(pos[first : last + 1])
        is_wanted = np.zeros(last - first, np.bool_)
        is_wanted[wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, last)] - first] = True
        inside = np.repeat(is_wanted, counts)
        kept[0].append(file.integers(item, "indices", part)[inside])
        kept[1].append(file.array(item, "data", part)[inside])
    if not kept[0]:
        kept[0].append(file.integers(item, "indices", slice(0, 0)))
        kept[1].append(file.array(item, "data", slice(0, 0)))
    crd, data = (np.concatenate(parts) for parts in kept)
    counts = (pos[wanted + 1] - pos[wanted]).astype(np.int64)
    starts = np.cumsum(counts) - counts
    out_pos = np.zeros(rows.size + 1, np.int64)
    np.cumsum(counts[place], out=out_pos[1:])
    order = np.arange(out_pos[-1]) + np.repeat(starts[place] - out_pos[:-1], counts[place])
    return out_pos.astype(pos.dtype), crd[order], data[order]


def _read_dense(file: Hdf5, parent: Any, key: str, rows: Rows | None) -> Coordinates:
    extent = parent[key].shape
    if rows is None or not extent:
        array = file.array(parent, key)
    elif isinstance(rows, tuple):
        array = file.array(parent, key, slice(*range_of(rows, int(extent[0]))))
    else:
        numbers, width = numbers_of(rows, int(extent[0])), max(1, math.prod(int(n) for n in extent[1:]))
        wanted, place = np.unique(numbers, return_inverse=True)
        parts = [file.array(parent, key, slice(0, 0))]
        for first, last in pieces(wanted, lambda row: row * width, _PIECE, _GAP):
            inside = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, last)] - first
            parts.append(file.array(parent, key, slice(first, last))[inside])
        array = np.concatenate(parts)[place]
    array = np.asfortranarray(array)
    return Coordinates(array.shape, (), array.ravel(order="K"), "general", array)


def _elements(file: Hdf5) -> list[str]:
    """The names of elements that can be read."""
    names = []
    for name, item in file.members(file.root).items():
        if name in _AXES and file.is_group(item):
            names += [f"{name}/{key}" for key in file.members(item)]
        elif name == "X":
            names.append(name)
    return names


def _text(x: Any) -> str:
    return x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x)


def write(
    path: str | os.PathLike[str], parts: Mapping[str, Tensor], compress: bool, progress: Step | None = None,
    opening: Callable[..., Any] = create_hdf5,
) -> None:  # fmt: skip
    """A file with X and other elements; observations and variables are named by their numbers.

    A file of AnnData's that is there keeps what is not named, its tables and other elements.

    parts : Tensors by name: "X", and "layers/NAME", "obsm/NAME", "varm/NAME", "obsp/NAME", "varp/NAME", whose extents
        are X's. Compressed rows and columns and dense arrays are written as they are, other formats as compressed rows
    """
    name = os.fspath(path)
    _check_elements(parts, name)
    shape = None if "X" not in parts else _check_extents(parts, parts["X"].shape, name)
    total, done = sum(int(t.nse) for t in parts.values()), 0
    adding = False

    def keeps(file: Hdf5) -> bool:
        nonlocal adding
        adding = _keeps(file, parts, name)
        return adding

    with opening(path, keeps) as root:
        if not adding:
            _empty(root, shape, parts, name)
        for key, t in parts.items():
            *group_path, member = key.split("/")
            parent = root
            for part in group_path:
                if part not in parent:
                    _set_encoding(parent.create_group(part), "dict", "0.1.0")
                parent = parent[part]
            if member in parent:
                del parent[member]
            _element(parent, member, t, compress)
            done += int(t.nse)
            if progress is not None:
                progress(done, total)


def _empty(root: Any, shape: tuple[int, int] | None, parts: Mapping[str, Tensor], name: str) -> None:
    """The groups and tables of a new file. Raises UnsupportedError where nothing says its extents."""
    if shape is None:
        raise UnsupportedError(
            f"write: {name}: no X among {', '.join(parts)}, and no file to add them to\n  help: {{'X': A,"
            " 'layers/name': B}"
        )
    _set_encoding(root, "anndata", "0.1.0")
    for key, extent in zip(("obs", "var"), shape, strict=True):
        _frame(root.create_group(key), extent)
    for key in (*_AXES, "uns"):
        _set_encoding(root.create_group(key), "dict", "0.1.0")


def _keeps(file: Hdf5, parts: Mapping[str, Tensor], name: str) -> bool:
    """Whether a file has more than the parts. Raises for what is none of AnnData's, and for other extents."""
    if not is_anndata(file):
        if list(file.root):
            refuse_loss(name, list(file.root))
        return False
    if not list(lost(file, parts, (*_AXES, "uns"))):
        return False
    extents = [_length(file, key) for key in ("obs", "var")]
    _check_extents(parts, (extents[0], extents[1]), f"{name}, a file that is there with other elements")
    return True


def _length(file: Hdf5, key: str) -> int | None:
    """The number of observations or variables, None where the file does not say it."""
    table = file.members(file.root).get(key)
    if table is not None and file.is_group(table):
        index = table.attrs.get("_index", "_index")
        table = file.members(table).get(_text(index))
    if table is not None and file.is_group(table):  # texts some of which may be missing
        table = file.members(table).get("values")
    return None if table is None or file.is_group(table) or len(table.shape) != 1 else int(table.shape[0])


def _check_elements(parts: Mapping[str, Tensor], name: str) -> None:
    """Raise where an element has no place, or a fill value."""
    for key, t in parts.items():
        group_name, _, member = key.partition("/")
        if key != "X" and (group_name not in _AXES or not member or "/" in member):
            raise UnsupportedError(
                f"write: {name}: no place for {key!r}\n  known: X, {', '.join(_AXES)}, each with /NAME"
            )
        if t.fill_value != 0 and not t.format.is_dense:
            raise UnsupportedError(f"write: {name}: {key} has the fill value {t.fill_value!r}\n  help: write .npz")


def _check_extents(parts: Mapping[str, Tensor], shape: tuple[int | None, ...], name: str) -> tuple[int, int]:
    """The numbers of observations and variables, where they are known. Raises where an element has other extents."""
    if len(shape) != 2:
        raise ShapeError(f"write: {name}: X has shape {shape}\n  expected: observations by variables")
    for key, t in parts.items():
        dims = (0, 1) if key == "X" else _AXES[key.partition("/")[0]]
        wanted = [None if d is None else shape[d] for d in dims]
        if t.ndim != 2 or any(n is not None and t.shape[k] != n for k, n in enumerate(wanted)):
            raise ShapeError(f"write: {name}: {key} has shape {t.shape}, which does not suit X of shape {shape}")
    return shape[0] or 0, shape[1] or 0


def _element(group: Any, key: str, t: Tensor, compress: bool) -> None:
    if t.format.is_dense:
        _set_encoding(dataset(group, key, np.ascontiguousarray(to_numpy(t.to_dense())), compress), "array", "0.2.0")
        return
    kind = next((k for k in ("csr", "csc") if t.format == parse(k, 2)), "csr")
    storage = t.asformat(kind)._storage
    subgroup = group.create_group(key)
    _set_encoding(subgroup, f"{kind}_matrix", "0.1.0")
    subgroup.attrs["shape"] = np.array(t.shape, np.int64)
    arrays: dict[str, Array] = {
        "data": to_numpy(storage.values), "indices": to_numpy(storage.crd[1]), "indptr": to_numpy(storage.pos[1]),
    }  # fmt: skip
    for part, array in arrays.items():
        dataset(subgroup, part, array, compress)


def _frame(group: Any, extent: int) -> None:
    """A table of no columns, whose rows are named 0, 1, ..."""
    _set_encoding(group, "dataframe", "0.2.0")
    group.attrs["_index"] = "_index"
    group.attrs["column-order"] = np.zeros(0, "S1")
    _set_encoding(text_dataset(group, "_index", [str(k) for k in range(extent)]), "string-array", "0.2.0")


def _set_encoding(item: Any, kind: str, version: str) -> None:
    item.attrs["encoding-type"] = kind
    item.attrs["encoding-version"] = version
