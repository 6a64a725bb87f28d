"""Containers of arrays: MATLAB's `.mat`, 10x Genomics' HDF5 matrices (where h5py is installed)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..errors import FileFormatError, UnsupportedError
from .compressed import compressed
from .records import Array, Buffers, Coordinates, Options

__all__ = ["read_mat", "read_tenx"]


def read_mat(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """One sparse or dense variable of a MATLAB file: `variable=`, or `Problem.A`, or `A`, or the only sparse one."""
    from scipy.io import loadmat

    try:
        found = loadmat(os.fspath(path), squeeze_me=False)
    except NotImplementedError:
        raise UnsupportedError(f"{os.fspath(path)}: MATLAB 7.3 files are HDF5\n  help: save with -v7") from None
    except Exception as error:
        raise FileFormatError(f"{os.fspath(path)}: not a readable MATLAB file ({error})") from None
    choices = dict(_variables("", found))
    name = _choose(path, choices, options.variable)
    value = choices[name]
    if not hasattr(value, "tocsc"):
        dense = np.asfortranarray(value)
        return Coordinates(dense.shape, (), dense.ravel(order="K"), "general", dense)
    csc = value.tocsc()
    return compressed("j", csc.shape, csc.indptr, csc.indices, csc.data)


def _variables(prefix: str, container: dict[str, Any]) -> list[tuple[str, Any]]:
    """Every numeric array and sparse matrix, fields of 1x1 structures by dotted names."""
    named: list[tuple[str, Any]] = []
    for name, value in container.items():
        if name.startswith("__"):
            continue
        if hasattr(value, "tocsc"):
            named.append((prefix + name, value))
        elif isinstance(value, np.ndarray) and value.dtype.names and value.size == 1:
            record = value.reshape(-1)[0]
            named += _variables(f"{prefix}{name}.", {k: record[k] for k in value.dtype.names})
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            named.append((prefix + name, value))
    return named


def _choose(path: str | os.PathLike[str], choices: dict[str, Any], wanted: str | None) -> str:
    sparse = [n for n, v in choices.items() if hasattr(v, "tocsc")]
    for name in [wanted] if wanted is not None else ["Problem.A", "A", *(sparse if len(sparse) == 1 else ())]:
        if name in choices:
            return name
    if wanted is None and len(choices) == 1:
        return next(iter(choices))
    listed = ", ".join(sparse or choices) or "none"
    what = f"no variable {wanted!r}" if wanted is not None else "several variables"
    raise FileFormatError(f"{os.fspath(path)}: {what}; variables: {listed}\n  help: pass variable=")


def read_tenx(path: str | os.PathLike[str], options: Options) -> Buffers:
    """The matrix of a 10x Genomics file: compressed columns (features x barcodes), in group `matrix` or a genome's."""
    try:
        import h5py
    except ImportError:
        raise UnsupportedError(f"{os.fspath(path)}: HDF5 files need h5py\n  help: pip install h5py") from None
    try:
        with h5py.File(path, "r") as file:
            groups = [n for n in file if "indptr" in file[n]]
            name = options.variable or ("matrix" if "matrix" in groups else groups[0] if len(groups) == 1 else None)
            if name not in groups:
                raise FileFormatError(
                    f"{os.fspath(path)}: expected a group with data, indices, indptr, shape; got {groups}"
                )
            parts: list[Array] = [np.asarray(file[name][k]) for k in ("indptr", "indices", "data", "shape")]
    except OSError as error:
        raise FileFormatError(f"{os.fspath(path)}: not a readable HDF5 file ({error})") from None
    pos, crd, data, shape = parts
    _check(path, pos, crd, data, (int(shape[0]), int(shape[1])))
    return compressed("j", (int(shape[0]), int(shape[1])), pos, crd, data)


def _check(path: str | os.PathLike[str], pos: Array, crd: Array, data: Array, shape: tuple[int, int]) -> None:
    good = (
        pos.size == shape[1] + 1 and pos[0] == 0 and pos[-1] == crd.size == data.size and not (np.diff(pos) < 0).any()
    )
    if not good or (crd.size and not 0 <= int(crd.min()) <= int(crd.max()) < shape[0]):
        raise FileFormatError(f"{os.fspath(path)}: pointers, indices and shape {shape} do not agree")
