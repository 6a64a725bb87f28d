"""One variable of a MATLAB file of any version: `.mat` in, its sparse columns or dense array out."""

from __future__ import annotations

import os

from ...errors import FileFormatError
from ..containers import hdf5
from ..shared.records import Buffers, Coordinates, Options
from ..shared.unpack import load
from . import mat5

__all__ = ["read_mat"]

_HDF5 = b"\x89HDF\r\n\x1a\n"


def read_mat(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """`variable=`, or `Problem.A`, or `A`, or the only sparse one; version 7.3 is HDF5 and needs h5py."""
    data = load(path, options.ratio)[:-1]
    if _HDF5 in (data[512:520].tobytes(), data[:8].tobytes()):
        del data
        with hdf5.open_hdf5(path, options.ratio) as file:
            places = hdf5.matlab(file)
            name = _choose_variable(path, {n: place[2] for n, place in places.items()}, options.variable)
            return hdf5.load_matlab(file, places[name])
    variables = mat5.variables(os.fspath(path), data, options.ratio)
    return variables[_choose_variable(path, {n: v.sparse for n, v in variables.items()}, options.variable)].load()


def _choose_variable(path: str | os.PathLike[str], choices: dict[str, bool], name_asked: str | None) -> str:
    """The variable to read among `choices`, of which some are sparse."""
    sparse = [n for n, is_sparse in choices.items() if is_sparse]
    for name in [name_asked] if name_asked is not None else ["Problem.A", "A", *(sparse if len(sparse) == 1 else ())]:
        if name in choices:
            return name
    if name_asked is None and len(choices) == 1:
        return next(iter(choices))
    listed = ", ".join((sparse or list(choices))[:40]) or "none"
    what = (
        f"no variable {name_asked!r}" if name_asked is not None else "several variables" if choices else "no variable"
    )
    raise FileFormatError(f"{os.fspath(path)}: {what}; variables: {listed}\n  help: pass variable=")
