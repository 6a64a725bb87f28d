"""`convert`: a file -> another file of the same tensor, in a format, in bounded memory where both kinds allow it.

The source gives its elements in parts. Parts that come in the order of the result's levels are written as they come;
others go through an external sort, whose temporary folder is beside the result.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ...advice.units import Size, bytes_of
from ...errors import SizeError, UnsupportedError
from ...format import format as parse
from ...format.expression import evaluate
from ...format.format import Format
from ...format.named import coo
from ...integers import extents, integer
from ...progress import Passes, Progress, reporting
from ...storage.buffers import scalar_of
from .. import files
from ..containers import npz, store
from ..containers.mapped import open as open_mapped
from ..shared.leftovers import PREFIX, temporary_folder
from ..shared.paths import path_of
from ..shared.records import Array, Options, Step, index_dtype
from ..shared.remote import fetched, is_url, sending
from .dataset_parts import DatasetSink, to_hdf5, to_zarr
from .external_sort import ExternalSort
from .given_parts import checked_part, dtype_of_parts
from .level_writer import LevelWriter, Sink, is_written
from .parts_of_file import Part, Source, open_source

__all__ = ["convert", "write_parts"]

MEMORY = 1 << 30
OVERHEAD = 256 << 20
"""Bytes of the interpreter and its libraries."""
_LIMIT = 2**31 - 1
Path_ = str | os.PathLike[str]


def convert(
    src: Path_,
    dst: Path_,
    *,
    format: str | Format | None = None,
    memory: Size | None = None,
    symmetry: str = "expand",
    base: int | None = None,
    values: bool = True,
    variable: str | None = None,
    progress: Progress = None,
    max_ratio: int | None = None,
) -> None:
    """Write the tensor of one file to another, in a format.

    Parameters
    ----------
    src : any file that `read` takes. In parts are read `.ow` and uncompressed `.npz`, which are mapped, and `.mtx` and
        `.tns`, packed or not, which threads scan, and binsparse's `.bsp.h5` and `.bsp.zarr`
    dst : any file that `write` takes. `.ow`, `.npz`, `.bsp.h5` and `.bsp.zarr` are written in parts
    format : the format of the result; by default the source's own, sorted coordinates for text
    memory : the bytes that the process takes at most, 2 << 30 or "2GiB", where source and result go in parts and the
        format's levels are any but `batch` and `loose_compressed`; 1 GiB by default. About a quarter of a gigabyte of
        it is the interpreter's. Others are read and converted in memory
    symmetry, base, values, variable, max_ratio : as of `read`
    progress : True for bars on stderr, or a function of (done, total), one after the other: of the source's bytes or
        elements, of elements that are merged, of what is copied into an `.npz`

    Guarantees: `src` is compared with its checksums, where it has some, as `read` does; `read(dst)` has the elements of
    `read(src)` in `format`; duplicates are added up, but for the
    uncoalesced COO. `dst` is as it was, and nothing is left beside it, where anything fails or is interrupted.
    Cost: O(nse log nse); each element is read, sorted and written twice where memory does not hold all. On disk, for
    that time, the elements as coordinates and values beside the result.
    Raises what `read` and `write` raise; OSError with the path where the disk is full.
    See also: open, read, write, io.write_parts.

    Examples
    --------
    >>> ow.write("A.mtx", ow.eye_array(3, format="coo"))
    >>> ow.convert("A.mtx", "A.ow", format="csr", memory="512MiB")
    >>> ow.open("A.ow").format.name
    'csr'
    """
    src, dst = path_of(src, "convert", url=True), path_of(dst, "convert", url=True)
    if is_url(src) or is_url(dst):
        with ExitStack() as stack:
            source_path = stack.enter_context(fetched(src, "convert")) if is_url(src) else src
            target_path = stack.enter_context(sending(dst, "convert")) if is_url(dst) else dst
            convert(
                source_path, target_path, format=format, memory=memory, symmetry=symmetry, base=base, values=values,
                variable=variable, max_ratio=max_ratio, progress=progress,
            )  # fmt: skip
        return
    budget = MEMORY if memory is None else bytes_of(memory, "convert", "memory")
    base = None if base is None else integer(base, "convert", "base", boolean=False)
    max_ratio = None if max_ratio is None else integer(max_ratio, "convert", "max_ratio", boolean=False)
    options = Options(symmetry, base, values, variable, None, max_ratio)
    files.check_read(options)
    kind = files.check_write(dst, "general", "", False, progress)
    room = max(budget - OVERHEAD, budget // 4)
    source = open_source(src, options) if kind in _SINKS else None
    target = None if source is None else _target(source, format)
    if source is None or target is None or not is_written(target):
        with reporting(progress, "convert") as passes:
            _whole(src, dst, format, options, passes)
        return
    with reporting(progress, "convert") as passes, _named(dst), _sink(kind, dst, passes) as sink:
        _write(source, target, sink, room, os.path.dirname(os.path.realpath(dst)), passes)


def write_parts(
    dst: Path_,
    parts: Iterable[tuple[Sequence[Any], Any]],
    shape: Sequence[int],
    *,
    format: str | Format | None = None,
    dtype: object = None,
    ordered: bool = False,
    memory: Size | None = None,
    progress: Progress = None,
) -> None:
    """Write a tensor whose elements come in parts, and need not be in memory together.

    Parameters
    ----------
    dst : a folder `.ow`, an `.npz`, a `.bsp.h5` or a `.bsp.zarr`
    parts : pairs of coordinates, an array for each dimension, and values
    shape : extents of the dimensions
    format : the format of the result, of levels but `batch` and `loose_compressed`; sorted coordinates by default
    dtype : of the values, which are rounded where both are floats, and else must be numbers that it holds; without one
        that of the first part, which holds those of the others
    ordered : True where the elements come in the order of the format's levels, without repetition, which is checked:
        nothing is sorted then, and nothing is written twice
    memory, progress : as of `convert`; a part takes memory beside it

    Cost: that of `convert`; with `ordered`, O(nse), each element written once.
    Raises ShapeError for coordinates outside the shape, DTypeError for values that the dtype does not hold,
    UnsupportedError for another kind of file or format, SizeError where the disk cannot hold what the format
    stores, FormatError where a level has less room than a row has elements.
    See also: parts, convert, open.

    Examples
    --------
    >>> from openwork.io import write_parts
    >>> blocks = ((([k, k], [0, k]), [1.0, 2.0]) for k in range(1, 4))
    >>> write_parts("A.ow", blocks, (4, 4), format="csr")
    >>> ow.open("A.ow").to_numpy().tolist()
    [[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0], [1.0, 0.0, 0.0, 2.0]]
    """
    dst = path_of(dst, "write_parts")
    budget = MEMORY if memory is None else bytes_of(memory, "write_parts", "memory")
    extents_of = extents(shape, "write_parts")
    target = coo(len(extents_of)) if format is None else parse(format, len(extents_of))
    kind = files.check_write(dst, "general", "", False, progress)
    if kind not in _SINKS or not is_written(target):
        what = f"{kind} files" if kind not in _SINKS else f"the format {target}"
        raise UnsupportedError(
            f"write_parts: {what} in parts\n  expected: {' or '.join(_SINKS)}, of any levels but batch and"
            " loose_compressed\n  help: write .ow with format='coo', and convert that"
        )
    scalar, parts = dtype_of_parts(dtype, parts)

    def checked(step: int, progress: Step | None) -> Iterator[Part]:
        return (checked_part(part, extents_of, scalar, is_rounded=dtype is not None) for part in parts)

    source = Source(
        extents_of, scalar, scalar.type(0).item(), target, None, target if ordered else None, checked, False
    )
    room = max(budget - OVERHEAD, budget // 4)
    with reporting(progress, "write_parts") as passes, _named(dst), _sink(kind, dst, passes) as sink:
        _write(source, target, sink, room, os.path.dirname(os.path.realpath(dst)), passes)


def _target(source: Source, format: Any) -> Format:
    return source.format if format is None else parse(format, len(source.shape))


def _whole(src: Path_, dst: Path_, format: Any, options: Options, passes: Passes) -> None:
    """Read, convert and write in memory."""
    t = files.read(
        src, format=format, symmetry=options.symmetry, base=options.base, values=options.values,
        variable=options.variable, max_ratio=options.ratio, progress=passes.begin("reading"),
    )  # fmt: skip
    files.write(dst, t, progress=passes.begin("writing"))


@contextmanager
def _named(path: Path_) -> Iterator[None]:
    """Give an OSError of writing, such as a full disk, that names a temporary file or none, the result's path."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (error.filename is None or PREFIX in str(error.filename)):
            error.filename = os.fspath(path)
        raise


@contextmanager
def _to_npz(path: Path_, passes: Passes) -> Iterator[Sink]:
    """A sink of an .npz: a store beside it, whose buffers are then copied member by member."""
    folder = temporary_folder(os.path.dirname(os.path.realpath(path)))
    try:
        place = os.path.join(folder, "t.ow")
        with store.writing(place) as writer:
            yield writer
        npz.write(path, npz.parts_of(open_mapped(place, check=False)._storage), False, passes.begin("copying"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_SINKS: dict[str, Callable[..., Any]] = {
    ".ow": store.writing, ".npz": _to_npz, ".bsp.h5": to_hdf5, ".bsp.zarr": to_zarr,
}  # fmt: skip


def _sink(kind: str, path: Path_, passes: Passes) -> Any:
    """The sink of a kind of file, as a context manager."""
    return _to_npz(path, passes) if kind == ".npz" else _SINKS[kind](path)


def _write(source: Source, target: Format, sink: Sink, memory: int, folder: str, passes: Passes) -> None:
    """The elements of the source as the level buffers of the format."""
    if isinstance(sink, DatasetSink):
        sink.check(target, source.dtype)
    spans = target.level_intervals(source.shape)
    crd = index_dtype([max(abs(lo), hi) for lo, hi in spans])
    lows = [lo for lo, _ in spans]
    _check_room(target, spans, min(crd.itemsize, source.dtype.itemsize), folder)

    def level_coordinates(columns: list[Array]) -> list[Array]:
        return [evaluate(level.expression, columns) for level in target.levels]

    def moved(columns: list[Array], sign: int) -> list[Array]:
        return [c + sign * lo if lo else c for c, lo in zip(columns, lows, strict=True)]

    def writer(entries: int) -> LevelWriter:
        pos = crd if entries <= _LIMIT else np.dtype(np.int64)
        free = shutil.disk_usage(folder or ".").free
        return LevelWriter(sink, target, spans, (pos, crd), source.fill_value, source.dtype, free)

    with ExternalSort([hi - lo for lo, hi in spans], (crd, source.dtype), source.fill_value, memory, folder) as sort:
        step = max(sort.room // 8, 1)
        if source.is_in_order_of(target) or target == coo(target.ndim, unique=False, ordered=False):
            out = writer(_LIMIT + 1 if source.entries is None else source.entries)
            for columns, values in source.parts(step, passes.begin("converting")):
                out.append(level_coordinates(columns), values, not source.is_trusted and source.order is not None)
        else:
            for columns, values in source.parts(step, passes.begin("reading")):
                sort.add(moved(level_coordinates(columns), -1), values)
            out = writer(sort.added)
            for columns, values in sort.merged(passes.begin("merging")):
                out.append(moved(columns, 1), values)
        out.finish()
    sink.finish(target, source.shape, scalar_of(np.empty(0, source.dtype)), source.fill_value)


def _check_room(target: Format, spans: Sequence[tuple[int, int]], item: int, folder: str) -> None:
    """SizeError where the located levels that come first have more positions than the disk has room for."""
    positions = 1
    for level, (lo, hi) in zip(target.levels, spans, strict=True):
        if not level.format.is_located and level.format.slots is None:
            break
        positions *= hi - lo if level.format.slots is None else level.format.slots
    free = shutil.disk_usage(folder or ".").free
    if positions * item > free:
        raise SizeError(
            f"{positions} positions of the first levels of {target} take {positions * item} bytes or more\n  expected:"
            f" {free} bytes at most, which the disk has free\n  help: a format of compressed levels, such as 'coo'"
        )
