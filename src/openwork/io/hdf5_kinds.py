"""A file of HDF5 whose extension does not say of what kind: binsparse, AnnData or 10x Genomics, by what is in it."""

from __future__ import annotations

import os

from ..errors import UnsupportedError
from . import anndata, binsparse, hdf5
from .records import Buffers, Coordinates, Options

__all__ = ["read"]


def read(path: str | os.PathLike[str], options: Options) -> Buffers | Coordinates:
    """The tensor of the file, or that of the group or element `variable=`."""
    with hdf5.opened_hdf5(path, options.ratio) as file:
        described = binsparse.ATTRIBUTE in file.root.attrs
        if options.variable is not None and not described:
            *above, last = options.variable.strip("/").split("/")
            item = file.members(file.group("/".join(above))).get(last)
            described = item is not None and binsparse.ATTRIBUTE in item.attrs
        kind = "binsparse" if described else "AnnData" if anndata.is_anndata(file) else "10x"
    if options.rows is not None and kind != "AnnData":
        raise UnsupportedError(f"{os.fspath(path)}: rows= of a {kind} file\n  help: read it whole, and slice that")
    readers = {"binsparse": binsparse.read, "AnnData": anndata.read, "10x": hdf5.read_tenx}
    return readers[kind](path, options)
