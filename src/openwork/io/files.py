"""`read`, `write`, `header`: a path -> a Tensor or a Header, a Tensor -> a file, by a table of file formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..classes import frozen
from ..errors import FileFormatError, UnsupportedError
from ..format.format import Format
from ..integers import extents, integer
from ..interop.sources import asarray
from ..interruptible import LONG, whole
from ..progress import Progress, check_progress, reporting
from ..runtime.overrides import is_long
from ..storage.buffers import numpy_dtype
from ..tensor.one_library import in_library
from ..tensor.tensor import Tensor
from .binary import matlab, parquet, petsc
from .containers import anndata, binsparse, hdf5, hdf5_kinds, npz, store, zarr
from .containers.masked import masked_in_library, read_masked, write_masked
from .shared.paths import path_of
from .shared.records import SYMMETRIES, Buffers, Coordinates, Header, Options, Step
from .shared.remote import fetched, is_url, sending
from .shared.rows import rows_of
from .shared.tensors import to_tensor, with_shape
from .text import frostt, matrix_market, rutherford_boeing, smtx, svmlight, triplet, writers
from .text.source import Text, head, suffix

__all__ = ["beginning", "check_options", "check_read", "check_write", "header", "load", "read", "write"]

Record = Coordinates | Buffers
Path_ = str | os.PathLike[str]


@frozen
class _Kind:
    """How one kind of file is read: from its text, or from its path."""

    name: str
    suffixes: tuple[str, ...]
    text: Callable[[Text, Options], Record] | None = None
    path: Callable[[Path_, Options], Record] | None = None
    header: Callable[[Text], Header] | None = None
    options: tuple[str, ...] = ()


_BOEING = tuple(f".{f}{s}{a}" for f in "rcip" for s in "suhzr" for a in "ae")
_BASE = ("base",)
_KINDS = (
    _Kind(
        "Matrix Market", (".mtx", ".mm", ".ttx", ".matrixmarket"), matrix_market.read, None, matrix_market.header, _BASE
    ),
    _Kind("FROSTT", (".tns",), frostt.read_tns, None, frostt.header_tns, ("base", "values", "shape")),
    _Kind("sptensor", (".sptensor",), frostt.read_sptensor, None, frostt.header_tns, _BASE),
    _Kind("Rutherford-Boeing", (".rb", ".hb", *_BOEING), rutherford_boeing.read, None, rutherford_boeing.header),
    _Kind("CHOLMOD triplets", (".tri", ".triplet"), triplet.read, None, triplet.header, _BASE),
    _Kind("npz", (".npz",), path=npz.read),
    _Kind("store", (".ow",), path=store.read),
    _Kind("MATLAB", (".mat",), path=matlab.read_mat, options=("variable",)),
    _Kind("HDF5", (".h5", ".hdf5"), path=hdf5_kinds.read, options=("variable", "rows")),
    _Kind("AnnData", (".h5ad",), path=anndata.read, options=("variable", "rows")),
    _Kind("zarr", (".zarr",), path=zarr.read, options=("variable", "rows")),
    _Kind("PETSc", (".petsc",), path=petsc.read),
    _Kind("Parquet", (".parquet",), path=parquet.read, options=("shape",)),
    _Kind("svmlight", (".svm", ".svmlight", ".libsvm"), svmlight.read, options=_BASE),
    _Kind("smtx", (".smtx",), smtx.read, header=smtx.header),
    _Kind("edge list", (".edgelist", ".edges"), frostt.read_edges, options=(*_BASE, "shape")),
    _Kind("bag of words", (), frostt.read_docword),
)
_BY_NAME = {k.name: k for k in _KINDS}
_BY_SUFFIX = {s: k for k in _KINDS for s in k.suffixes}


def _kind_of(path: Path_) -> _Kind:
    """The kind of file by its extension, else by how it begins."""
    if Path(path).name.lower().startswith("docword"):
        return _BY_NAME["bag of words"]
    by_suffix = _BY_SUFFIX.get(suffix(path))
    if by_suffix is not None:
        return by_suffix
    start = head(path)
    tests: tuple[tuple[str, bool], ...] = (
        ("npz", start.startswith(b"PK")),
        ("MATLAB", start.startswith(b"MATLAB")),
        ("HDF5", start.startswith(b"\x89HDF")),
        ("PETSc", petsc.looks_like(start)),
        ("Parquet", start.startswith(b"PAR1")),
        ("Matrix Market", matrix_market.is_banner(start)),
        ("sptensor", start.lstrip().startswith(b"sptensor")),
        ("Rutherford-Boeing", rutherford_boeing.looks_like(start)),
        ("svmlight", svmlight.looks_like(start)),
        ("CHOLMOD triplets", triplet.looks_like(start)),
    )
    for name, matches in tests:
        if matches:
            return _BY_NAME[name]
    suffixes = " ".join(s for k in _KINDS for s in k.suffixes if k.name != "Rutherford-Boeing")
    raise FileFormatError(
        f"{os.fspath(path)}: neither its name nor its beginning says what it is\n  read: {suffixes} .rb"
    )


def _check_one_of(what: str, got: object, allowed: tuple[object, ...]) -> None:
    """Raise ValueError for a value that the option does not have."""
    if not any(type(got) is type(k) and got == k for k in allowed):
        *names, last = (f'"{k}"' if isinstance(k, str) else repr(k) for k in allowed if k is not None)
        raise ValueError(f"{what} must be {', '.join(names)} or {last}, got {got!r}")


def _check_type(what: str, got: object, kind: type, expected: str) -> None:
    if not isinstance(got, kind):
        raise TypeError(f"{what} must be {expected}; got {got!r}")


def check_read(options: Options) -> None:
    _check_one_of("read: symmetry", options.symmetry, ("expand", "keep"))
    _check_one_of("read: base", options.base, (None, 0, 1))
    _check_one_of("read: values", options.values, (True, False))
    if options.ratio is not None and (type(options.ratio) is not int or options.ratio < 1):
        raise ValueError(f"read: max_ratio must be a whole number from 1 up, got {options.ratio!r}")
    _check_type("read: variable", options.variable, str | None, "a name")  # type: ignore[arg-type]


def check_options(path: Path_, options: Options) -> None:
    """Raise for an option that this kind of file does not have."""
    kind = _kind_of(path)
    given_options = {
        "base": options.base is not None,
        "values": not options.values,
        "variable": options.variable is not None,
    }
    given_options |= {"rows": options.rows is not None, "shape": options.shape is not None}
    for option, is_given in given_options.items():
        if is_given and option not in kind.options:
            supported = ", ".join(f"{o}=" for o in (*kind.options, "format", "symmetry", "progress"))
            raise ValueError(
                f"read: {os.fspath(path)}: {option}= means nothing for {kind.name} files; known here: {supported}"
            )


def load(path: Path_, options: Options = Options()) -> Record:  # noqa: B008
    """The file's contents as a plain record, symmetry not expanded.

    Parameters
    ----------
    options : what `read` takes by name, in one object

    Returns
    -------
    Coordinates or Buffers, as the file has them

    Cost: O(size of the file).
    See also: read, header.

    Examples
    --------
    >>> path = "small.npz"
    >>> ow.write(path, ow.eye(2))
    >>> ow.io.load(path).values
    array([1., 1.])
    """
    path = path_of(path, "load")
    kind = _kind_of(path)
    check_options(path, options)
    if kind.path is not None:
        return kind.path(path, options)
    assert kind.text is not None
    return kind.text(Text.open(path, options.ratio), options)


def read(
    path: Path_,
    *,
    format: str | Format | None = None,
    symmetry: str = "expand",
    base: int | None = None,
    values: bool = True,
    variable: str | None = None,
    progress: Progress = None,
    max_ratio: int | None = None,
    rows: Any = None,
    shape: Sequence[int] | None = None,
    like: object = None,
) -> Tensor | Any:
    """Read a sparse matrix or tensor from a file.

    Parameters
    ----------
    path : a file, or a URL that fsspec knows, which is copied first; the extension tells the kind of file, else its
        beginning: Matrix Market (.mtx, .ttx), FROSTT (.tns, .sptensor), Rutherford- and Harwell-Boeing (.rb, .rua,
        ...), CHOLMOD triplets (.tri), .npz (SciPy's and ours), folders .ow, MATLAB (.mat), svmlight (.svm), .smtx, 10x
        HDF5 (.h5), AnnData (.h5ad, .zarr), binsparse (.bsp.h5, .bsp.zarr), PETSc's binary (.petsc), Parquet triplets
        (.parquet), .edgelist; text may be .gz, .bz2 or .xz
    format : the format of the result; by default the file's own: text gives sorted "coo" where the entries are sorted
        and distinct and the uncoalesced COO where not, compressed files keep their compression without a copy
    symmetry : "expand" mirrors the stored triangle of symmetric files; "keep" returns it as stored (see `header`)
    base : the first index, where a file does not follow its kind's rule (0 for zero-based Matrix Market)
    values : False where a .tns file has no column of values
    variable : the variable of a .mat file, "Problem.A", the group of an .h5 file, or the element of an .h5ad or .zarr
        file, "X", "layers/counts", "obsp/distances"
    progress : True for a bar on stderr, or a function of (bytes read, bytes in all), of text, .rb, .npz and .ow; the
        others are read in one step
    max_ratio : the most bytes that each byte of a compressed file may become, past the first 16 MiB; 64 by default
    rows : rows of an .h5ad or .zarr element, in this order: a range, slice(1000, 2000), an array of their numbers, or
        a mask; the rest is not read
    shape : extents of a .tns, .parquet or .edges file, which are else those that it says or as small as they can be
    like : the library of the result's buffers, as of `asarray`: like="torch"; NumPy without

    Returns
    -------
    Tensor; a pattern has ones. Duplicates are kept as stored, they mean their sum. A MaskedTensor where one was
    written.

    Raises FileFormatError that names the file and the line where the file breaks its own rules. Memory is in
    proportion to the file, whatever sizes it declares.

    Cost: O(size of the file).
    See also: write, open, io.header.

    Examples
    --------
    >>> ow.write("small.mtx", ow.eye(2))
    >>> A = ow.read("small.mtx", format="csr")
    >>> A.to_numpy()
    array([[1., 0.],
           [0., 1.]])
    """
    path = path_of(path, "read", url=True)
    if is_url(path):
        with fetched(path, "read") as local:
            return read(
                local, format=format, symmetry=symmetry, base=base, values=values, variable=variable,
                progress=progress, max_ratio=max_ratio, rows=rows, shape=shape, like=like,
            )  # fmt: skip
    base = None if base is None else integer(base, "read", "base", boolean=False)
    max_ratio = None if max_ratio is None else integer(max_ratio, "read", "max_ratio", boolean=False)
    options = Options(symmetry, base, values, variable, None, max_ratio, rows_of(rows))
    if shape is not None:
        options = replace(options, shape=extents(shape, "read"))
    check_read(options)
    with reporting(progress, "read") as passes:
        options = replace(options, progress=passes.begin(f"reading {Path(path).name}"))
        long = options.progress is None and _is_long(path)
        found = whole(_read, (path, format, options), {}) if long else _read(path, format, options)
    if like is None:
        return found
    return in_library(found, like, "read") if isinstance(found, Tensor) else masked_in_library(found, like)


def _is_long(path: Path_) -> bool:
    """Whether a file is so long that a helper thread reads it, so that the main thread answers signals.

    A function that is told of the progress is called on the thread that asked for it: between its calls that answers.
    """
    try:
        return os.stat(path).st_size >= LONG
    except (OSError, ValueError, TypeError):
        return False


def _read(path: Path_, format: object, options: Options) -> Any:
    """`read`, after its arguments were checked."""

    record = load(path, options)
    if options.shape is not None and isinstance(record, Coordinates):
        record = with_shape(path, record, options.shape)
    if isinstance(record, Buffers) and record.masked:
        return read_masked(path, record, format)
    return to_tensor(path, record, format, options.symmetry == "expand")


def header(path: Path_) -> Header:
    """The header of a file: kind, shape, field, symmetry, entries.

    The entries are not read where the kind of file has a header; elsewhere (svmlight, MATLAB, ...) they are, because
    nothing else tells the shape.

    Returns
    -------
    Header: kind, shape, field, symmetry, entries

    Cost: O(header of the file).
    See also: read, load.

    Examples
    --------
    >>> path = "small.npz"
    >>> ow.write(path, ow.eye(2))
    >>> ow.io.header(path).shape
    (2, 2)
    """
    path = path_of(path, "header", url=True)
    if is_url(path):
        with fetched(path, "header") as local:
            return header(local)
    kind = _kind_of(path)
    if kind.name == "npz":
        return npz.header(path)
    if kind.name == "store":
        return store.header(path)
    if kind.header is not None:
        return kind.header(beginning(path))
    record = load(path)
    count = int(record.values.size)
    return Header(kind.name, record.shape, str(record.values.dtype), record.symmetry, count)


def beginning(path: Path_) -> Text:
    """The beginning of a text that holds its header, comments included."""
    size = 1 << 14
    while True:
        start = head(path, size)
        if len(start) < size or _has_content(start):
            return Text.of(start[: start.rfind(b"\n") + 1] if len(start) == size else start, os.fspath(path))
        size *= 8


def _has_content(start: bytes) -> bool:
    lines = [s for line in start.split(b"\n")[1:-1] if (s := line.strip()) and not s.startswith((b"%", b"#"))]
    return len(lines) > 4


def write(
    path: Path_,
    t: Any,
    *,
    symmetry: str = "general",
    comment: str = "",
    compress: bool = False,
    progress: Progress = None,
) -> None:
    """Write a tensor to a file; the extension tells the kind.

    Parameters
    ----------
    path : .mtx, .tns, .rb (with .gz, .bz2, .xz); .npz; a folder .ow, whose buffers have checksums; .petsc; AnnData
        .h5ad, binsparse .bsp.h5 and 10x .h5 through h5py; AnnData .zarr and binsparse .bsp.zarr through zarr; .parquet
        through pyarrow
    t : Tensor, or what `asarray` takes; a masked tensor, to .npz; for .h5ad and .zarr also tensors by name, {"X": A,
        "layers/counts": B, "obsp/distances": C}
    symmetry : for .mtx and .rb, "symmetric", "skew-symmetric" or "hermitian" writes the lower triangle after checking
        that the matrix is that; "auto" finds out
    comment : lines for the head of .mtx and .tns
    compress : deflate .npz, HDF5 and zarr
    progress : True for a bar on stderr, or a function of (elements written, elements in all), those of all arrays
        where a file keeps several

    What else a file holds stays where its kind is a collection (.h5ad, .zarr, .h5); else the write is refused.

    Guarantees: `read(path)` has the same shape and elements, every number exactly; .npz and .ow keep any format,
    .bsp.h5 those of dense, compressed and coordinate levels; all but .rb and .petsc keep the dtype.

    Cost: O(nse).
    See also: read, open.

    Examples
    --------
    >>> ow.write("small.npz", ow.eye(2, format="bsr(2, 2)"))
    >>> ow.read("small.npz").format == ow.format("bsr(2, 2)")
    True
    """
    path = path_of(path, "write", url=True)
    if is_url(path):
        with sending(path, "write") as local:
            write(local, t, symmetry=symmetry, comment=comment, compress=compress, progress=progress)
        return
    kind = check_write(path, symmetry, comment, compress, progress)
    masked = hasattr(t, "get_mask") and hasattr(t, "specified")
    if kind in (".h5ad", ".zarr"):
        t = {key: x if isinstance(x, Tensor) else asarray(x) for key, x in _elements_by_name(t).items()}
    elif not masked and not isinstance(t, Tensor):
        t = asarray(t)
    with reporting(progress, "write") as passes:
        step = passes.begin(f"writing {Path(path).name}")
        args = path, t, kind, masked, symmetry, comment, compress, step
        if step is None and is_long(t.values() if isinstance(t, dict) else (t,)):
            whole(_write, args, {})  # the path is replaced only where no interrupt has come before
        else:
            _write(*args)


def _write(
    path: Path_, t: Any, kind: str, masked: bool, symmetry: str, comment: str, compress: bool, progress: Step | None
) -> None:
    """`write`, after its arguments were checked."""
    for x in t.values() if isinstance(t, Mapping) else (t,):
        if str(x.dtype).endswith("bfloat16"):
            numpy_dtype("bf16")  # files are written from NumPy's arrays: the error where there are none
    if masked:
        write_masked(path, t, kind, compress, progress)
    else:
        _WRITERS[kind](path, t, _WriteOptions(symmetry, comment, compress, progress))


def _elements_by_name(t: Any) -> Mapping[str, Any]:
    """The elements of an AnnData file by name; a tensor alone is X."""
    return t if isinstance(t, Mapping) else {"X": t}


@frozen
class _WriteOptions:
    """The options of `write`."""

    symmetry: str
    comment: str
    compress: bool
    progress: Step | None


def _mtx(path: Path_, t: Tensor, how: _WriteOptions) -> None:
    writers.write_mtx(path, t, how.symmetry, how.comment, how.progress)


def _rb(path: Path_, t: Tensor, how: _WriteOptions) -> None:
    writers.write_rb(path, t, how.symmetry, how.comment, how.progress)


_WRITERS: dict[str, Callable[[Path_, Any, _WriteOptions], None]] = {
    **dict.fromkeys((".mtx", ".mm", ".ttx"), _mtx),
    **dict.fromkeys((".rb", ".hb"), _rb),
    ".tns": lambda path, t, how: writers.write_tns(path, t, how.comment, how.progress),
    ".npz": lambda path, t, how: npz.write(path, npz.parts_of(t._storage), how.compress, how.progress),
    ".ow": lambda path, t, how: store.write(path, t, how.progress),
    ".h5ad": lambda path, t, how: anndata.write(path, t, how.compress, how.progress),
    ".bsp.h5": lambda path, t, how: binsparse.write(path, t, how.compress, how.progress),
    ".h5": lambda path, t, how: hdf5.write_tenx(path, t, how.compress, how.progress),
    ".zarr": lambda path, t, how: zarr.write(path, t, how.compress, how.progress),
    ".bsp.zarr": lambda path, t, how: zarr.write(path, t, how.compress, how.progress),
    ".petsc": lambda path, t, how: petsc.write(path, t, how.progress),
    ".parquet": lambda path, t, how: parquet.write(path, t, how.progress),
}
_COMPRESSIBLE = (".npz", ".h5ad", ".bsp.h5", ".h5", ".zarr", ".bsp.zarr")
_SYMMETRIC = (".mtx", ".mm", ".ttx", ".rb", ".hb")
_COMMENTED = (*_SYMMETRIC, ".tns")


def check_write(path: Path_, symmetry: object, comment: object, compress: object, progress: object) -> str:
    """The extension of a kind that is written; raises for options that have no such value, or mean nothing for it."""
    name = path_of(path, "write")
    text = name.lower()
    kind = next(
        (k for k in (".bsp.h5", ".bsp.zarr") if text.endswith((k, f"{k}.gz", f"{k}.bz2", f"{k}.xz"))), suffix(text)
    )
    if kind not in _WRITERS:
        suffixes = " ".join(k for k in _WRITERS if k not in (".mm", ".ttx", ".hb"))
        what = f"{kind} files are read only" if kind in _BY_SUFFIX else f"unknown extension {kind!r}"
        raise UnsupportedError(f"write: {name}: {what}; written are {suffixes}")
    if kind not in _COMMENTED and not text.endswith(kind):
        help = "compress=True packs its arrays" if kind in _COMPRESSIBLE else f"end the name in {kind}"
        raise UnsupportedError(f"write: {name}: {kind} files are not packed as a whole\n  help: {help}")
    _check_one_of("write: symmetry", symmetry, ("auto", *SYMMETRIES))
    _check_type("write: comment", comment, str, "text")
    _check_one_of("write: compress", compress, (True, False))
    check_progress(progress, "write")
    if kind not in _SYMMETRIC and symmetry not in ("auto", "general"):
        raise UnsupportedError(f"write: {name}: {kind} files say no symmetry; got {symmetry!r}\n  help: .mtx or .rb")
    if kind not in _COMMENTED and comment:
        raise UnsupportedError(f"write: {name}: {kind} files hold no comment; got {comment!r}\n  help: .mtx or .tns")
    if kind not in _COMPRESSIBLE and compress:
        help = f"name the file {kind}.gz" if kind in _COMMENTED else "leave compress out"
        raise UnsupportedError(f"write: {name}: compress= is for {' '.join(_COMPRESSIBLE)}\n  help: {help}")
    return kind
