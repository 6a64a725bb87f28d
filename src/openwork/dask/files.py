"""A file of a tensor -> a Dask array in blocks of rows, each read when a task asks for it, and back block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import DTypeError, FileFormatError, Format, Tensor, UnsupportedError, asarray, assemble, zeros
from ..advice.units import Size
from ..format import format as parse
from ..format.expression import Dim
from ..integers import integer
from ..io import Options, parts, write_parts
from ..io import open as open_mapped
from ..io.containers.mapped import open_rows
from ..io.out_of_core.dataset_parts import is_dataset_file, opened_group
from ..io.shared.paths import path_of
from ..io.shared.stored_range import Stored, positions_are_elements, ranges, row_positions
from ..runtime.leading_slice import outer_block

__all__ = ["from_file", "to_file"]

Path_ = str | os.PathLike[str]


def from_file(path: Path_, rows: int | None = None, *, variable: str | None = None, verify: bool = True) -> Any:
    """A tensor in a file as a Dask array in blocks of rows, of which none is read before it is asked for.

    path : `.ow` and uncompressed `.npz`, which every worker maps; binsparse's `.bsp.h5` and `.bsp.zarr`, of which a
        task reads its rows; the file is where the workers find it under the same path
    rows : of a block; by default so many that a block has about 64 MiB
    variable : the group of a binsparse file
    verify : compare what is read with its checksums. Of an `.ow` a task compares the blocks of 4 MiB that hold its
        rows; an `.npz`, whose checksums are of whole arrays, is read once by this call. Chunks of binsparse files are
        compared in any case, where they have checksums, as those that are written here do

    Returns
    -------
    dask.array.Array of blocks that are Tensors

    Returns: a dask.array.Array whose chunks are Tensors in the format of the file. Raises UnsupportedError where rows
    are not stored one after the other, as in CSC: `ow.convert(path, other, format="csr")`. What is damaged is
    FileFormatError, from the task that reads it, with the file and the block or chunk.
    Cost: of the call, that of opening the file; of a task, O(elements of its rows).
    See also: to_file, open, convert.

    Examples
    --------
    >>> ow.write("A.ow", ow.eye_array(4, format="csr"))
    >>> x = ow.dask.from_file("A.ow", rows=2)
    >>> x.chunks
    ((2, 2), (4,))
    >>> (x @ np.ones(4)).compute()
    array([1., 1., 1., 1.])
    """
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import delayed

    name = os.path.abspath(path_of(path, "from_file"))
    shape, format, dtype, nbytes, unit = _facts(name, variable, verify)
    step = shape[0] * (64 << 20) // max(nbytes, 1) // unit * unit
    step = max(unit, step) if rows is None else integer(rows, "from_file", "rows")
    if step < 1:
        raise ValueError(f"from_file: rows of a block are 1 or more; got: {rows}\n  help: leave rows out")
    block = delayed(_rows, pure=True)
    token = tokenize(name, os.stat(name).st_mtime_ns, variable)
    meta = zeros((0,) * len(shape), dtype=dtype, format=format)
    cuts = [(first, min(first + step, shape[0])) for first in range(0, shape[0], step)] or [(0, 0)]
    arrays = [
        da.from_delayed(
            block(name, variable, verify, a, b, dask_key_name=f"openwork-file-{token}-{a}"),
            (b - a, *shape[1:]),
            meta=meta,
        )
        for a, b in cuts
    ]
    return da.concatenate(arrays) if len(arrays) > 1 else arrays[0]


def to_file(x: Any, path: Path_, *, format: str | Format | None = None, memory: Size | None = None) -> None:
    """Write a Dask array of matrices or tensors to a file, one block of rows after the other.

    x : an array of Dask, whose blocks of rows are computed one at a time, on whatever scheduler is in use
    path : `.ow`, `.npz`, `.bsp.h5` or `.bsp.zarr`
    format, memory : as of `ow.convert`; sorted coordinates by default

    Guarantees: the file is written whole, or is as it was. Cost: O(nse) beside that of the blocks.
    Raises DTypeError for what is no array of Dask, and what `io.write_parts` raises.
    See also: from_file, io.write_parts.

    Examples
    --------
    >>> import dask.array as da
    >>> ow.dask.to_file(da.from_array(np.eye(4), chunks=2), "B.ow", format="csr")
    >>> ow.open("B.ow").nse
    4
    """

    if not hasattr(x, "chunks"):
        raise DTypeError(
            f"to_file: expected an array of Dask; got: {type(x).__name__}\n  help: ow.write(path, t) writes a Tensor"
        )

    def blocks() -> Iterator[tuple[list[Any], Any]]:
        first = 0
        for k, count in enumerate(x.chunks[0]):
            block = x.blocks[k].compute()
            t = block if isinstance(block, Tensor) else asarray(block)
            for columns, values in parts(t):
                yield [columns[0].astype(np.int64) + first, *columns[1:]], values
            first += count

    target = None if format is None else parse(format, x.ndim)
    write_parts(path, blocks(), x.shape, format=target, dtype=x.dtype, memory=memory)


def _facts(path: str, variable: str | None, verify: bool) -> tuple[tuple[int, ...], Any, Any, int, int]:
    """Shape, format, dtype and bytes of the tensor of a file whose rows, or so many rows, are stored one after the
    other."""
    if is_dataset_file(path):
        with opened_group(path, Options(variable=variable)) as stored:
            if stored is None or not positions_are_elements(stored.format) or row_positions(stored, 0) is None:
                raise _refused(path, "this group")
            item = stored.dtype.itemsize + 8 * len(stored.crd)
            return stored.shape, stored.format, stored.dtype, stored.size * item, 1
    t = open_mapped(path, check=False, verify=verify and not os.path.isdir(path))
    block = outer_block(t.format) if isinstance(t, Tensor) else None
    by_rows = isinstance(t, Tensor) and t.ndim and t.format.levels[0].expression == Dim(0)
    if not by_rows and (block is None or block[0] != 0):
        raise _refused(path, str(getattr(t, "format", "a masked tensor")))
    return t.shape, t.format, t.dtype, t.nbytes, 1 if block is None else block[1]


def _refused(path: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"from_file: {path}: {what} is not stored row after row\n  help: ow.convert(path, other, format='csr')"
    )


def _rows(path: str, variable: str | None, verify: bool, first: int, last: int) -> Tensor:
    """A block of rows of a file, in its format; the index buffers of these rows are checked."""
    if not is_dataset_file(path):
        return open_rows(path, first, last, verify)
    with opened_group(path, Options(variable=variable)) as stored:
        assert stored is not None
        return _block(path, stored, first, last)


def _block(path: str, stored: Stored, first: int, last: int) -> Tensor:
    begin, end = row_positions(stored, first), row_positions(stored, last)
    assert begin is not None
    assert end is not None
    shape = (last - first, *stored.shape[1:])
    if begin == end:
        return zeros(shape, dtype=stored.dtype, format=stored.format)
    columns, values = next(ranges(stored, end - begin, begin, end))
    columns = [np.ascontiguousarray(c, np.int64) for c in (columns[0].astype(np.int64) - first, *columns[1:])]
    if any(c.size and not 0 <= int(c.min()) <= int(c.max()) < n for c, n in zip(columns, shape, strict=True)):
        raise FileFormatError(f"{path}: coordinates of rows {first} to {last} outside of the shape {stored.shape}")
    ndim, data = len(shape), np.ascontiguousarray(values, stored.dtype)
    spec = parse("coo(nonunique, unordered)", ndim)
    t = assemble(spec, shape, crd=columns, values=data, fill_value=stored.fill_value, check=False)
    return t.asformat(stored.format)
